// One wire from a node: asynchronous, on a long cable.
//
// Two flip-flops let a metastable level settle. Then a new level has to stay for FILTER clocks before
// it counts, so that crosstalk of a neighbour's edge is not taken for an arrival.
module collx_wire #(
    parameter FILTER = 4
) (
    input wire clk,
    input wire pin,
    output reg level
);
    reg settling = 0, settled = 0;
    reg [FILTER-2:0] seen = 0; // a one for each clock of the newer level

    initial level = 0;
    always @(posedge clk) begin
        settling <= pin;
        settled <= settling;
        if (settled == level)
            seen <= 0;
        else if (&seen) begin
            level <= settled;
            seen <= 0;
        end else
            seen <= (seen << 1) | 1;
    end
endmodule
