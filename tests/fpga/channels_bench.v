// The board of several channels: its frames, whose a channel is, and barriers side by side. Prints
// what is wrong, or "passed" at the end.
`timescale 1ns / 1ps
module channels_bench;
    localparam NODES = 8;
    localparam CHANNELS = 4;
    reg clk = 0, reset_n = 0;
    reg [NODES*CHANNELS-1:0] from_node = 0;
    wire [NODES*CHANNELS-1:0] to_node;
    reg [NODES-1:0] config_clock = 0, config_data = 0;
    wire [NODES-1:0] config_answer;
    wire led;
    reg [31:0] got;
    integer wrong = 0, changes = 0, n;

    always #5 clk = !clk;
    always @(to_node) changes = changes + 1;
    collx_channels #(.NODES(NODES), .CHANNELS(CHANNELS)) board(.clk(clk), .reset_n(reset_n),
        .from_node(from_node), .to_node(to_node), .config_clock(config_clock),
        .config_data(config_data), .config_answer(config_answer), .led(led));

    task automatic put(input integer node, input level); // one bit of a frame
        begin
            config_clock[node] = 0;
            #100 config_data[node] = level;
            #100 config_clock[node] = 1;
            #100;
        end
    endtask
    task automatic start(input integer node, input [1:0] operation, input [3:0] channel);
        integer b;
        begin
            put(node, 1);
            config_data[node] = 0;
            #100;
            put(node, operation[1]);
            put(node, operation[0]);
            for (b = 3; b >= 0; b = b - 1) put(node, channel[b]);
        end
    endtask
    task automatic ask(input integer node, input [1:0] operation, input [3:0] channel, input integer bits);
        integer b;
        begin
            start(node, operation, channel);
            got = 0;
            for (b = 0; b < bits; b = b + 1) begin
                got[b] = config_answer[node];
                put(node, 0);
            end
        end
    endtask
    task automatic claim(input integer node, input [3:0] channel, input [NODES-1:0] mask);
        integer b;
        begin
            start(node, 3, channel);
            for (b = 0; b < NODES; b = b + 1) put(node, mask[b]);
            #500;
        end
    endtask
    task automatic expect_mask(input integer node, input [3:0] channel, input [NODES-1:0] mask);
        begin
            ask(node, 1, channel, NODES);
            check(got == mask, "mask");
        end
    endtask
    task automatic check(input good, input [8*24-1:0] what);
        if (!good) begin
            $display("%0t: wrong %0s, got %h", $time, what, got);
            wrong = wrong + 1;
        end
    endtask
    task automatic set(input integer node, input integer channel, input level);
        begin
            from_node[node*CHANNELS + channel] = level;
            #200;
        end
    endtask

    initial begin
        #100 reset_n = 1;
        #200;
        for (n = 0; n < NODES; n = n + 1) begin
            ask(n, 0, 0, 32);
            check(got == {n[7:0], 8'd4, 8'd8, 8'hC1}, "identity");
        end
        // Nobody has channel 1: nothing happens there.
        changes = 0;
        for (n = 0; n < NODES; n = n + 1) set(n, 1, 1);
        for (n = 0; n < NODES; n = n + 1) set(n, 1, 0);
        check(changes == 0, "release without owner");
        claim(2, 1, 8'b00010110);
        expect_mask(2, 1, 8'b00010110);
        expect_mask(7, 1, 8'b00010110);
        expect_mask(7, 0, 0);
        // A frame that breaks off, by a process that dies: the next one starts afresh.
        start(4, 3, 1);
        put(4, 1);
        put(4, 1);
        ask(4, 0, 0, 32);
        check(got == {8'd4, 8'd4, 8'd8, 8'hC1}, "identity");
        expect_mask(2, 1, 8'b00010110);
        // Not by others, and no channel that there is not.
        claim(5, 1, 8'b00100001);
        expect_mask(5, 1, 8'b00010110);
        claim(5, 9, 8'b00100001);
        expect_mask(5, 9, 0);
        claim(5, 2, 8'b00100001);
        expect_mask(5, 2, 8'b00100001);
        // Two channels at once; the board tells who is missing.
        set(1, 1, 1);
        set(4, 1, 1);
        set(0, 1, 1); // takes no part
        set(0, 2, 1);
        ask(1, 2, 1, NODES);
        check((got & 8'b00010110) == 8'b00010010, "arrivals");
        check(to_node == 0, "early release");
        set(5, 2, 1);
        check(to_node == {NODES{4'b0100}}, "release of channel 2");
        set(2, 1, 1);
        check(to_node == {NODES{4'b0110}}, "release of channel 1");
        // Who leaves still has to arrive, until all have left.
        claim(1, 1, 0);
        claim(4, 1, 0);
        expect_mask(2, 1, 8'b00010110);
        set(2, 1, 0);
        check(to_node == {NODES{4'b0110}}, "release by leaving");
        claim(2, 1, 0);
        expect_mask(2, 1, 0);
        // A dead job's channel: one of its nodes takes it for others.
        claim(0, 2, 8'b00001001);
        expect_mask(0, 2, 8'b00001001);
        claim(3, 2, 8'b00001001);
        expect_mask(3, 2, 8'b00001001);
        claim(5, 2, 8'b00100100);
        expect_mask(5, 2, 8'b00001001);
        // All claim at the same time: one wins, and no mixture.
        fork
            claim(6, 3, 8'b11000000);
            #7 claim(1, 3, 8'b00000011);
        join
        ask(0, 1, 3, NODES);
        check(got == 8'b11000000 || got == 8'b00000011, "winner");
        reset_n = 0;
        #200 check(to_node == 0, "reset");
        reset_n = 1;
        #200 expect_mask(6, 3, 0);
        if (!wrong) $display("passed");
        $finish(0);
    end
endmodule
