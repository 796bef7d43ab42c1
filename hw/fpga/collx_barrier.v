// The barrier: a machine of two states. It changes state when all participants have written the
// opposite level, and its state is the level that all nodes read.
//
// Levels of different nodes need not arrive together: a node writes once, and not again before it has
// read the new state. Without participants the state stays.
module collx_barrier #(
    parameter NODES = 60
) (
    input wire clk,
    input wire reset,
    input wire [NODES-1:0] participants,
    input wire [NODES-1:0] levels, // of the nodes, synchronous
    output wire [NODES-1:0] arrived,
    output reg state
);
    assign arrived = levels ^ {NODES{state}};
    wire all = &(arrived | ~participants) && |participants;

    initial state = 0;
    always @(posedge clk)
        if (reset) state <= 0;
        else if (all) state <= !state;
endmodule
