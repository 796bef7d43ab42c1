/* The file that a process which runs the board shares with the nodes that are connected to it.
 *
 * A node stores levels in its wires and rings; the board takes all levels, runs for a while, stores
 * the levels of the wires to the nodes, and says which ring it has heard.  Each wire has a line of
 * its own.  The board holds a lock on the byte EMULATOR_ALIVE of the file as long as it runs. */
#ifndef COLLX_EMULATOR_H
#define COLLX_EMULATOR_H

#include <assert.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>

#define EMULATOR_MAGIC 0x31656d7578637863u /* "cxcxume1" */

enum {
    EMULATOR_LINE = 64,
    EMULATOR_ALIVE = 1 << 20, /* bytes that only locks know */
    EMULATOR_LOCKS = 1 << 21, /* and from here 64 for each node */
};

struct emulator_wire {
    alignas(EMULATOR_LINE) uint32_t level;
    uint32_t sleepers; /* of wires to a node: who waits for a change */
};
static_assert(sizeof(struct emulator_wire) == EMULATOR_LINE, "a line for each wire");

struct emulator_file {
    uint64_t magic;
    uint32_t nodes, channels; /* channels: 0 of the board on which all nodes take part */
    uint32_t outs, ins;       /* wires of a node: channels, then those that configure */
    alignas(EMULATOR_LINE) uint32_t ring;   /* counts what nodes have set */
    alignas(EMULATOR_LINE) uint32_t heard;  /* the last ring whose levels the board has taken */
    alignas(EMULATOR_LINE) uint32_t asleep; /* the board waits for a ring */
    struct emulator_wire wires[];           /* node by node, those from it first */
};
static_assert(offsetof(struct emulator_file, ring) == 64, "it is mapped by other programs");
static_assert(offsetof(struct emulator_file, heard) == 128, "it is mapped by other programs");
static_assert(offsetof(struct emulator_file, wires) == 256, "it is mapped by other programs");

static inline size_t emulator_bytes(uint32_t nodes, uint32_t outs, uint32_t ins)
{
    return sizeof(struct emulator_file) +
           (size_t)nodes * (outs + ins) * sizeof(struct emulator_wire);
}

#endif
