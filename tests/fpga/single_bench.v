// 60 nodes on the board of one channel, each at its own pace and out of step with the clock; crosstalk;
// levels that a dead job has left. Prints what is wrong, or "passed" at the end.
`timescale 1ns / 1ps
module single_bench;
    localparam NODES = 60;
    localparam ROUNDS = 40;
    reg clk = 0, reset_n = 0;
    reg [NODES-1:0] from_node = 0, pulse = 0;
    wire [NODES-1:0] to_node;
    wire led;
    integer entered[NODES-1:0];
    integer wrong = 0, done = 0, changes = 0, slow;

    always #5 clk = !clk;
    always @(to_node) changes = changes + 1;
    collx_single #(.NODES(NODES)) board(.clk(clk), .reset_n(reset_n), .from_node(from_node ^ pulse),
        .to_node(to_node), .led(led));

    // As a process does it: read, write the opposite, read until it is there.
    task automatic barrier(input integer n);
        reg level;
        integer other;
        begin
            level = to_node[n];
            entered[n] = entered[n] + 1;
            from_node[n] = !level;
            while (to_node[n] == level) #1.3;
            for (other = 0; other < NODES; other = other + 1)
                if (entered[other] < entered[n]) begin
                    $display("node %0d is released from barrier %0d, where %0d is in %0d", n,
                        entered[n], other, entered[other]);
                    wrong = wrong + 1;
                end
        end
    endtask

    genvar g;
    generate
        for (g = 0; g < NODES; g = g + 1) begin : node
            integer round, pause;
            initial begin
                entered[g] = 0;
                #500;
                for (round = 0; round < ROUNDS; round = round + 1) begin
                    // Sometimes one is later than all others.
                    pause = $urandom % 300 + (round % NODES == g ? 1000 : 0);
                    #(pause * 1.07);
                    barrier(g);
                end
                done = done + 1;
            end
        end
    endgenerate

    initial begin
        #100 reset_n = 1;
        // A pulse shorter than the filter on the wires of all nodes.
        #200 changes = 0;
        pulse = ~0;
        #25 pulse = 0;
        #100 if (changes) begin
            $display("crosstalk released everybody");
            wrong = wrong + 1;
        end
        fork : waiting
            begin
                wait (done == NODES);
                disable waiting;
            end
            begin
                #1000000 $display("only %0d of %0d nodes are through", done, NODES);
                wrong = wrong + 1;
                disable waiting;
            end
        join
        if (to_node != {NODES{ROUNDS[0]}}) begin
            $display("not in step after the last barrier");
            wrong = wrong + 1;
        end
        // A job dies with node 0 arrived. The next one first takes the level that is there.
        from_node[0] = !to_node[0];
        #200 from_node = to_node;
        #200 from_node = {!to_node[59], to_node[58:0]};
        #200 if (to_node != 0) begin
            $display("a stale level released everybody");
            wrong = wrong + 1;
        end
        // Fast enough: from the last arrival to the release.
        @(posedge clk) from_node = ~to_node;
        for (slow = 0; slow < 20 && to_node == 0; slow = slow + 1) @(posedge clk);
        $display("%0d clocks from the last arrival to the release", slow);
        if (!wrong) $display("passed");
        $finish(0);
    end
endmodule
