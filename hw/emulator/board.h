/* A verilated board, and what offers its wires to nodes. */
#ifndef COLLX_EMULATOR_BOARD_H
#define COLLX_EMULATOR_BOARD_H

#include <cstdint>
#include <memory>
#include <string>

struct Circuit; /* verilator's */

class Board
{
  public:
    /* On a board where all nodes take part the others have a plug that arrives by itself. */
    explicit Board(unsigned nodes);
    ~Board();

    const unsigned nodes;
    static const unsigned all_nodes, channels, outs, ins;

    void set(unsigned node, unsigned wire, bool level);
    bool get(unsigned node, unsigned wire) const;
    /* For as long as a port access takes, about: all that was set has had its effect then. */
    void run();

  private:
    void clock();
    std::unique_ptr<Circuit> circuit_;
};

/* Whether to end; a signal says so. */
bool stopping();

/* Serve the board until stopping().  They return an exit code, and print "ready" when they are. */
int serve_file(Board &board, const std::string &path);
int serve_ports(Board &board, const std::string &folder, const char *program);

#endif
