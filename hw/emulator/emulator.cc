#include "hw/emulator/board.h"

#include <Vboard.h>
#include <verilated.h>

struct Circuit {
    VerilatedContext context;
    Vboard board{&context};
};

/* As the boards are built by default: hw/fpga/. */
#ifdef COLLX_BOARD_SINGLE
const unsigned Board::all_nodes = 60, Board::channels = 0, Board::outs = 1, Board::ins = 1;
#else
const unsigned Board::all_nodes = 8, Board::channels = 4, Board::outs = 6, Board::ins = 5;
#endif

template <class Word> static void set_bit(Word &word, unsigned bit, bool level)
{
    const Word one = static_cast<Word>(Word{1} << bit);

    word = static_cast<Word>(level ? word | one : word & ~one);
}

Board::Board(unsigned connected) : nodes(connected), circuit_(std::make_unique<Circuit>())
{
    circuit_->board.clk = 0;
    circuit_->board.reset_n = 1;
    run(); /* until the button's wire is seen */
}

Board::~Board()
{
    circuit_->board.final();
}

void Board::set(unsigned node, unsigned wire, bool level)
{
#ifdef COLLX_BOARD_SINGLE
    set_bit(circuit_->board.from_node, node + wire, level);
#else
    if (wire < channels)
        set_bit(circuit_->board.from_node, node * channels + wire, level);
    else
        set_bit(wire == channels ? circuit_->board.config_clock : circuit_->board.config_data, node,
                level);
#endif
}

bool Board::get(unsigned node, unsigned wire) const
{
#ifdef COLLX_BOARD_SINGLE
    return circuit_->board.to_node >> (node + wire) & 1;
#else
    return wire < channels ? circuit_->board.to_node >> (node * channels + wire) & 1
                           : circuit_->board.config_answer >> node & 1;
#endif
}

void Board::clock()
{
    for (unsigned node = nodes; channels == 0 && node < all_nodes; node++)
        set(node, 0, !get(node, 0));
    circuit_->board.clk = 1;
    circuit_->board.eval();
    circuit_->board.clk = 0;
    circuit_->board.eval();
}

void Board::run()
{
    /* A wire takes 8 clocks to have an effect, and a claim 24 to have its turn. */
    for (int i = 0; i < 32; i++)
        clock();
}
