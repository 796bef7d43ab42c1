#include "hw/emulator/board.h"

#include <argp.h>
#include <csignal>
#include <cstdlib>

namespace
{

struct Chosen {
    unsigned nodes = Board::all_nodes;
    bool ports = false;
    std::string path;
};

volatile std::sig_atomic_t stop;

void on_signal(int)
{
    stop = 1;
}

error_t parse(int key, char *arg, argp_state *state)
{
    auto &chosen = *static_cast<Chosen *>(state->input);

    switch (key) {
    case 'n':
        chosen.nodes = static_cast<unsigned>(std::strtoul(arg, nullptr, 10));
        if (chosen.nodes < 1 || chosen.nodes > Board::all_nodes)
            argp_error(state, "this board has 1 to %u nodes", Board::all_nodes);
        return 0;
    case 'p':
        chosen.ports = true;
        return 0;
    case ARGP_KEY_ARG:
        if (!chosen.path.empty())
            argp_error(state, "one path, please");
        chosen.path = arg;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "which file?");
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

} // namespace

bool stopping()
{
    return stop;
}

int main(int argc, char **argv)
{
    static const argp_option options[] = {
        {"nodes", 'n', "N", 0, "Nodes that are connected; all that the board has without it", 0},
        {"ports", 'p', nullptr, 0,
         "PATH is a folder, and gets a file system of parallel ports, parport0 and so on", 0},
        {nullptr, 0, nullptr, 0, nullptr, 0}};
    static const argp parser = {
        options,
        parse,
        "PATH",
        "The board of collx's hardware barrier, emulated from its Verilog. "
        "PATH is the file that nodes map: emu:PATH,node=0. Prints \"ready\", "
        "and runs until a signal.",
        nullptr,
        nullptr,
        nullptr};
    Chosen chosen;

    if (argp_parse(&parser, argc, argv, 0, nullptr, &chosen))
        return 64;
    Board board(chosen.nodes);
    if (chosen.ports)
        return serve_ports(board, chosen.path, argv[0]); /* FUSE handles signals itself */
    struct sigaction action = {};
    action.sa_handler = on_signal;
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    return serve_file(board, chosen.path);
}
