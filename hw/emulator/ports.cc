/* The board's wires as parallel ports: a FUSE file system of files that take ppdev's ioctls, for
 * its unmodified users.  Each file is the port of a node, with the cable of docs/hardware.md. */
#include "hw/emulator/board.h"

#include <cstdio>

#ifndef COLLX_FUSE
int serve_ports(Board &, const std::string &, const char *)
{
    std::fputs("collx-hwemu: built without FUSE; install libfuse3-dev, and build again\n", stderr);
    return 77;
}
#else

#define FUSE_USE_VERSION 35
#include <cerrno>
#include <cstring>
#include <fuse.h>
#include <linux/parport.h>
#include <linux/ppdev.h>
#include <string>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <vector>

namespace
{

/* Which bit of the data register is which wire to the board, and of the status register, from it.
 */
constexpr unsigned data_bits[] = {0, 1, 2, 3, 6, 7};
constexpr unsigned status_bits[] = {6, 5, 4, 3, 7};
constexpr unsigned busy = 0x80; /* the port inverts it */
#ifdef COLLX_BOARD_SINGLE
static_assert(data_bits[0] == 0 && status_bits[0] == 6, "D0 and ACK");
#endif

/* An open file.  Its first claim registers it with the port, as in the kernel's driver; an
 * exclusive one has to be the only one that is. */
struct Handle {
    unsigned port;
    bool exclusive = false, registered = false, claimed = false;
};

struct Port {
    uint8_t data = 0, control = 0;
    unsigned registered = 0;
    bool exclusive = false;
    Handle *owner = nullptr;
};

Board *board;
std::vector<Port> ports;

int port_of(const char *path)
{
    unsigned number;
    char rest;

    if (std::sscanf(path, "/parport%u%c", &number, &rest) != 1 || number >= ports.size())
        return -ENOENT;
    return static_cast<int>(number);
}

Handle *handle_of(fuse_file_info *info)
{
    return reinterpret_cast<Handle *>(info->fh);
}

int getattr(const char *path, struct stat *status, fuse_file_info *)
{
    const bool top = std::strcmp(path, "/") == 0;

    *status = {};
    if (!top && port_of(path) < 0)
        return -ENOENT;
    status->st_mode = top ? S_IFDIR | 0755 : S_IFREG | 0660;
    status->st_nlink = top ? 2 : 1;
    return 0;
}

int readdir(const char *, void *buffer, fuse_fill_dir_t fill, off_t, fuse_file_info *,
            fuse_readdir_flags)
{
    for (size_t i = 0; i < ports.size(); i++)
        fill(buffer, ("parport" + std::to_string(i)).c_str(), nullptr, 0,
             static_cast<fuse_fill_dir_flags>(0));
    return 0;
}

int open_port(const char *path, fuse_file_info *info)
{
    const int port = port_of(path);

    if (port < 0)
        return port;
    info->direct_io = 1;
    info->fh = reinterpret_cast<uint64_t>(new Handle{static_cast<unsigned>(port)});
    return 0;
}

int release(const char *, fuse_file_info *info)
{
    Handle *handle = handle_of(info);

    Port &port = ports[handle->port];

    /* The data lines keep their levels: a dead job's do. */
    if (port.owner == handle)
        port.owner = nullptr;
    if (handle->registered) {
        port.registered--;
        port.exclusive = false;
    }
    delete handle;
    return 0;
}

uint8_t status_of(unsigned node)
{
    uint8_t status = 0;

    for (unsigned wire = 0; wire < Board::ins; wire++)
        if (board->get(node, wire))
            status = static_cast<uint8_t>(status | 1u << status_bits[wire]);
    return static_cast<uint8_t>(status ^ busy);
}

void write_data(unsigned node, uint8_t data)
{
    ports[node].data = data;
    for (unsigned wire = 0; wire < Board::outs; wire++)
        board->set(node, wire, data >> data_bits[wire] & 1);
    board->run();
}

int claim(Handle &handle)
{
    Port &port = ports[handle.port];

    if (handle.claimed)
        return -EINVAL;
    if (!handle.registered) {
        if (port.exclusive || (handle.exclusive && port.registered))
            return -ENXIO;
        handle.registered = true;
        port.registered++;
        port.exclusive = handle.exclusive;
    }
    /* The kernel's driver waits here; this file system has no thread to do so. */
    if (port.owner)
        return -EAGAIN;
    port.owner = &handle;
    handle.claimed = true;
    return 0;
}

int ioctl_port(const char *, unsigned command, void *, fuse_file_info *info, unsigned, void *data)
{
    Handle &handle = *handle_of(info);
    auto *byte = static_cast<uint8_t *>(data);

    if (command == PPEXCL) {
        handle.exclusive = true;
        return 0;
    }
    if (command == PPCLAIM)
        return claim(handle);
    if (!handle.claimed)
        return -EINVAL;
    switch (command) {
    case PPRELEASE:
        ports[handle.port].owner = nullptr;
        handle.claimed = false;
        return 0;
    case PPWDATA:
        write_data(handle.port, *byte);
        return 0;
    case PPRDATA:
        *byte = ports[handle.port].data;
        return 0;
    case PPRSTATUS:
        *byte = status_of(handle.port);
        return 0;
    case PPRCONTROL:
        *byte = ports[handle.port].control;
        return 0;
    case PPDATADIR:
        return 0;
    case PPWCONTROL:
        ports[handle.port].control = *byte;
        return 0;
    case PPCLRIRQ:
        std::memset(data, 0, sizeof(int));
        return 0;
    default:
        return -EINVAL;
    }
}

void *started(fuse_conn_info *, fuse_config *config)
{
    config->kernel_cache = 0;
    std::puts("ready");
    std::fflush(stdout);
    return nullptr;
}

} // namespace

int serve_ports(Board &emulated, const std::string &folder, const char *program)
{
    fuse_operations operations = {};
    operations.getattr = getattr;
    operations.readdir = readdir;
    operations.open = open_port;
    operations.release = release;
    operations.ioctl = ioctl_port;
    operations.init = started;

    board = &emulated;
    ports.resize(emulated.nodes);
    std::string words[] = {program, "-f", "-s", "-o", "fsname=collx-hwemu", folder};
    std::vector<char *> arguments;
    for (std::string &word : words)
        arguments.push_back(word.data());
    return fuse_main(static_cast<int>(arguments.size()), arguments.data(), &operations, nullptr);
}
#endif
