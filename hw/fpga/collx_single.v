// The board of one channel, in which all nodes take part: from each node a wire, to each node a wire.
//
// Reset (a button; none is needed after power-up) is for a board without jobs: nodes that are waiting
// then would be released, or never.
module collx_single #(
    parameter NODES = 60
) (
    input wire clk,
    input wire reset_n,
    input wire [NODES-1:0] from_node,
    output wire [NODES-1:0] to_node,
    output wire led
);
    wire [NODES-1:0] levels;
    wire run, state;
    genvar n;

    collx_wire button(.clk(clk), .pin(reset_n), .level(run));
    generate
        for (n = 0; n < NODES; n = n + 1) begin : node
            collx_wire in(.clk(clk), .pin(from_node[n]), .level(levels[n]));
        end
    endgenerate
    collx_barrier #(.NODES(NODES)) barrier(.clk(clk), .reset(!run), .participants({NODES{1'b1}}),
        .levels(levels), .arrived(), .state(state));
    assign to_node = {NODES{state}};
    assign led = state;
endmodule
