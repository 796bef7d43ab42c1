// One node's way to ask for channels: a clock and a data wire from it, an answer wire to it.
//
// Data that falls while the clock is high starts a frame, also in the middle of another one, which a
// process that died may have left. Then each rising clock takes a bit of data: two of the operation,
// the higher one first, four of the channel, likewise, and NODES of a mask, node 0 first.
//
//   0  identify   answers 8 bits each: 0xC1, NODES, CHANNELS, the node's own number
//   1  mask       answers the participants of the channel, node 0 first
//   2  arrived    answers which nodes have written the level that is not the state's
//   3  claim      asks for the channel with this mask; a mask without the node itself: leaves it
//
// The answer's first bit is there after the last bit of the channel, the next one after each rising
// clock. Numbers have their lowest bit first. What came of a claim, the mask tells.
module collx_config #(
    parameter NODES = 8,
    parameter CHANNELS = 4,
    parameter SELF = 0
) (
    input wire clk,
    input wire reset,
    input wire bit_clock,
    input wire data,
    input wire [NODES*CHANNELS-1:0] masks,
    input wire [NODES*CHANNELS-1:0] arrived,
    output wire answer,
    output reg claim,   // until taken
    output reg [3:0] channel,
    output wire [NODES-1:0] mask,
    input wire taken
);
    localparam WIDTH = NODES > 32 ? NODES : 32;
    localparam HEADER = 6;
    localparam [31:0] IDENTITY = (SELF << 24) | (CHANNELS << 16) | (NODES << 8) | 32'hC1;
    reg clock_was = 0, data_was = 0, active = 0, load = 0;
    reg [1:0] operation = 0;
    reg [6:0] count = 0; // bits of the frame so far
    reg [WIDTH-1:0] shift = 0;
    wire start = clock_was && bit_clock && data_was && !data;
    wire rise = !clock_was && bit_clock;
    wire [NODES-1:0] mask_now = masks[channel*NODES +: NODES];
    wire [NODES-1:0] arrived_now = arrived[channel*NODES +: NODES];

    assign answer = shift[0];
    assign mask = shift[WIDTH-1 -: NODES];
    initial begin
        claim = 0;
        channel = 0;
    end

    always @(posedge clk) begin
        clock_was <= bit_clock;
        data_was <= data;
        load <= 0;
        if (taken) claim <= 0;
        if (reset) begin
            active <= 0;
            claim <= 0;
        end else if (start) begin
            active <= 1;
            count <= 0;
            claim <= 0;
        end else if (rise && active) begin
            count <= count + 1;
            if (count < 2)
                operation <= {operation[0], data};
            else if (count < HEADER)
                channel <= {channel[2:0], data};
            else
                shift <= {data, shift[WIDTH-1:1]};
            load <= count == HEADER - 1;
            if (count == HEADER + NODES - 1) begin
                claim <= operation == 3 && channel < CHANNELS;
                active <= operation != 3;
            end
            if (count == HEADER + WIDTH - 1)
                active <= 0;
        end else if (load) begin
            shift <= 0;
            if (operation == 0)
                shift[31:0] <= IDENTITY;
            else if (operation != 3 && channel < CHANNELS)
                shift[NODES-1:0] <= operation == 1 ? mask_now : arrived_now;
        end
    end
endmodule
