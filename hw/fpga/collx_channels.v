// The board of several channels, each with participants of its own that the nodes choose by
// themselves: see collx_config.v. Wires of node n: channel c is bit n * CHANNELS + c.
module collx_channels #(
    parameter NODES = 8,
    parameter CHANNELS = 4
) (
    input wire clk,
    input wire reset_n,
    input wire [NODES*CHANNELS-1:0] from_node,
    output wire [NODES*CHANNELS-1:0] to_node,
    input wire [NODES-1:0] config_clock,
    input wire [NODES-1:0] config_data,
    output wire [NODES-1:0] config_answer,
    output wire led
);
    wire [CHANNELS-1:0] state;
    wire [NODES*CHANNELS-1:0] masks, arrived; // by channel
    wire [NODES-1:0] claims, taken;
    wire [NODES*4-1:0] channels;
    wire [NODES*NODES-1:0] wanted;
    wire run;
    genvar n, c;

    collx_wire button(.clk(clk), .pin(reset_n), .level(run));
    generate
        for (c = 0; c < CHANNELS; c = c + 1) begin : channel
            wire [NODES-1:0] levels;
            for (n = 0; n < NODES; n = n + 1) begin : node
                collx_wire in(.clk(clk), .pin(from_node[n*CHANNELS + c]), .level(levels[n]));
                assign to_node[n*CHANNELS + c] = state[c];
            end
            collx_barrier #(.NODES(NODES)) barrier(.clk(clk), .reset(!run),
                .participants(masks[c*NODES +: NODES]), .levels(levels),
                .arrived(arrived[c*NODES +: NODES]), .state(state[c]));
        end
        for (n = 0; n < NODES; n = n + 1) begin : node
            wire bit_clock, data;
            collx_wire clock_in(.clk(clk), .pin(config_clock[n]), .level(bit_clock));
            collx_wire data_in(.clk(clk), .pin(config_data[n]), .level(data));
            collx_config #(.NODES(NODES), .CHANNELS(CHANNELS), .SELF(n)) port(.clk(clk),
                .reset(!run), .bit_clock(bit_clock), .data(data), .masks(masks), .arrived(arrived),
                .answer(config_answer[n]), .claim(claims[n]), .channel(channels[n*4 +: 4]),
                .mask(wanted[n*NODES +: NODES]), .taken(taken[n]));
        end
    endgenerate
    collx_owners #(.NODES(NODES), .CHANNELS(CHANNELS)) owners(.clk(clk), .reset(!run),
        .claims(claims), .channels(channels), .wanted(wanted), .taken(taken), .masks(masks), .left());
    assign led = ^state;
endmodule
