// Nodes that keep to the protocol, as fast or slow as can be, around the barrier and the wires to it.
// Proved of all that they may do:
//
//   early   who is released from a barrier, for that every participant has arrived
//   late    DELAY clocks after the last one has arrived the state has changed
//
// Nodes that do not take part do anything, at any time.
module barrier_formal #(
    parameter NODES = 3,
    parameter WIRES = 1, // with collx_wire in between, which needs a longer induction
    parameter DELAY = 7,
    parameter LATE = 1 // whether to prove that, too
) (
    input wire clk,
    input wire [NODES-1:0] participants, // any, but always the same
    input wire [NODES-1:0] enters, reads, noise
);
    reg [NODES-1:0] participants_were = 0;
    reg begun = 0;
    wire [NODES-1:0] levels, arrived;
    wire state;
    reg [NODES-1:0] out = 0, waiting = 0;
    reg [1:0] round[NODES-1:0]; // barriers that the node has entered, and the board released
    reg [1:0] released = 0;
    reg state_was = 0;
    reg [3:0] since = 0; // clocks that all have been there
    wire [NODES-1:0] entered;
    wire [1:0] current = released + (state != state_was);
    genvar n;

    collx_barrier #(.NODES(NODES)) board(.clk(clk), .reset(1'b0), .participants(participants),
        .levels(levels), .arrived(arrived), .state(state));

    always @(posedge clk) begin
        begun <= 1;
        participants_were <= participants;
        if (begun) assume(participants == participants_were);
        state_was <= state;
        released <= current;
        since <= &(entered | ~participants) && |participants ? since + 1 : 0;
        if (LATE) assert(since <= DELAY);
    end
    generate
        for (n = 0; n < NODES; n = n + 1) begin : node
            wire [1:0] ahead = round[n] - current;
            initial round[n] = 0;
            if (WIRES) begin : cable
                collx_wire in(.clk(clk), .pin(out[n]), .level(levels[n]));
            end else begin : direct
                assign levels[n] = out[n];
            end
            // Entered what is not released yet.
            assign entered[n] = ahead == 1;
            always @(posedge clk) begin
                if (!participants[n])
                    out[n] <= noise[n];
                else if (!waiting[n] && enters[n]) begin
                    out[n] <= !state;
                    waiting[n] <= 1;
                    round[n] <= round[n] + 1;
                end else if (waiting[n] && reads[n] && state == out[n])
                    waiting[n] <= 0;
                // Were one released that another one has not entered, the other one would be behind.
                if (participants[n])
                    assert(waiting[n] ? ahead <= 1 : ahead == 0);
                // Says nothing new, and lets the induction work.
                assert(state == current[0]);
                if (participants[n] && begun) assert(out[n] == round[n][0]);
            end
        end
    endgenerate
endmodule
