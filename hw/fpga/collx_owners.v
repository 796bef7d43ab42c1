// Whose the channels are. The claims of the nodes are looked at one after the other.
//
// A node may claim a channel that is free, or one that it is a participant of already: then whoever
// had it there is gone, for a node gives a channel to one job at a time. A channel is free again when
// all its participants have left it: until then those who have left still have to arrive, so nobody
// who is waiting is released.
module collx_owners #(
    parameter NODES = 8,
    parameter CHANNELS = 4
) (
    input wire clk,
    input wire reset,
    input wire [NODES-1:0] claims,
    input wire [NODES*4-1:0] channels,
    input wire [NODES*NODES-1:0] wanted, // the masks that the nodes claim
    output reg [NODES-1:0] taken,
    output reg [NODES*CHANNELS-1:0] masks,
    output reg [NODES*CHANNELS-1:0] left // of those, who has left the channel
);
    localparam LAST = NODES - 1;
    reg [$clog2(NODES)-1:0] turn = 0;
    // Three clocks for a node, so that the board's clock can be fast: take the claim, look at the
    // channel, decide.
    reg [1:0] step = 0;
    reg due = 0;
    reg [3:0] c = 0;
    reg [NODES-1:0] want = 0, self = 1, old = 0, gone = 0;
    wire may = old == 0 || (old & self) != 0;
    wire joins = (want & self) != 0;
    wire over = joins || old == 0 || gone == old; // nobody is left of those who had it

    initial begin
        taken = 0;
        masks = 0;
        left = 0;
    end
    always @(posedge clk) begin
        taken <= 0;
        step <= step == 2 ? 0 : step + 1;
        if (step == 0) begin
            due <= claims[turn];
            c <= channels[turn*4 +: 4];
            want <= wanted[turn*NODES +: NODES];
        end
        if (step == 1) begin
            old <= masks[c*NODES +: NODES];
            gone <= left[c*NODES +: NODES] | self;
            if (due) taken <= self;
        end
        if (step == 2) begin
            turn <= turn == LAST[$clog2(NODES)-1:0] ? 0 : turn + 1;
            self <= {self[NODES-2:0], self[NODES-1]};
        end
        if (reset) begin
            masks <= 0;
            left <= 0;
        end else if (step == 2 && due && may) begin
            masks[c*NODES +: NODES] <= joins ? want : over ? {NODES{1'b0}} : old;
            left[c*NODES +: NODES] <= over ? {NODES{1'b0}} : gone;
        end
    end

`ifdef FORMAL
    // What an induction has to know, of nodes that hold a claim until it is taken.
    always @* begin
        assert(self == {{LAST{1'b0}}, 1'b1} << turn);
        assert(step <= 2);
        assert((left & ~masks) == 0);
        assert(taken == (step == 2 && due ? self : {NODES{1'b0}}));
        if (step != 0 && due)
            assert(claims[turn] && c == channels[turn*4 +: 4] && want == wanted[turn*NODES +: NODES]);
        if (step == 2)
            assert(old == masks[c*NODES +: NODES] && gone == (left[c*NODES +: NODES] | self));
    end
`endif
endmodule
