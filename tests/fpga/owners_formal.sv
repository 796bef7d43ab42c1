// Nodes that claim and leave channels as they like. Proved:
//
//   theft   a channel that has participants is changed by one of them alone
//   hasty   it is free again only when each of them has left it
//   late    a claim is looked at within 3 clocks for each node, and 2
module owners_formal #(
    parameter NODES = 4,
    parameter CHANNELS = 2,
    parameter THEFT = 1, HASTY = 1, LATE = 1 // what to prove
) (
    input wire clk,
    input wire [$clog2(NODES)-1:0] someone, // any, but always the same
    input wire [$clog2(CHANNELS)-1:0] somewhere,
    input wire [NODES-1:0] asks,
    input wire [NODES*4-1:0] which,
    input wire [NODES*NODES-1:0] masks_wanted
);
    reg [$clog2(NODES)-1:0] someone_was = 0;
    reg [$clog2(CHANNELS)-1:0] somewhere_was = 0;
    reg begun = 0;
    reg [NODES-1:0] claims = 0;
    reg [NODES*4-1:0] channels = 0;
    reg [NODES*NODES-1:0] wanted = 0;
    wire [NODES-1:0] taken;
    wire [NODES*CHANNELS-1:0] masks, left;
    wire [NODES-1:0] mask = masks[somewhere*NODES +: NODES];
    reg [NODES-1:0] mask_was = 0, taken_was = 0;
    reg someone_left = 0;
    reg [5:0] since = 0;
    // The mask changes in the clock after the claim was taken.
    wire [NODES-1:0] by = taken_was;
    wire leaves = taken[someone] && channels[someone*4 +: 4] == somewhere
        && !wanted[someone*NODES + someone];
    integer n;

    collx_owners #(.NODES(NODES), .CHANNELS(CHANNELS)) board(.clk(clk), .reset(1'b0),
        .claims(claims), .channels(channels), .wanted(wanted), .taken(taken), .masks(masks),
        .left(left));

    always @(posedge clk) begin
        for (n = 0; n < NODES; n = n + 1)
            if (taken[n])
                claims[n] <= 0;
            else if (!claims[n] && asks[n] && which[n*4 +: 4] < CHANNELS) begin
                claims[n] <= 1;
                channels[n*4 +: 4] <= which[n*4 +: 4];
                wanted[n*NODES +: NODES] <= masks_wanted[n*NODES +: NODES];
            end
        begun <= 1;
        someone_was <= someone;
        somewhere_was <= somewhere;
        if (begun) assume(someone == someone_was && somewhere == somewhere_was);
        taken_was <= taken;
        mask_was <= mask;
        if (mask != mask_was && mask != 0)
            someone_left <= 0;
        else if (leaves)
            someone_left <= mask[someone];
        since <= claims[someone] && !taken[someone] ? since + 1 : 0;
        if (THEFT && mask_was != 0 && mask != mask_was)
            assert((by & mask_was) != 0);
        if (HASTY && mask_was[someone] && mask == 0)
            assert(someone_left);
        // Lets the induction work.
        assert(!left[somewhere*NODES + someone] || someone_left);
        if (LATE) assert(since <= 3 * NODES + 2);
    end
endmodule
