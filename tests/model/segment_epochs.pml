/* Flags of few bits that are not written in every call: a node writes to another one only in the
 * calls whose root it is, and any node may be the root.  Before the root of a call has written, its
 * flag must not look as if it had; a root that has not been one for half of all epochs is where it
 * goes wrong.  Epochs have three bits here, in segments they have 32 (collx_seg_reached).
 *
 * It goes well where each flag counts the calls in which it is written.
 *
 * ok: NODES=2
 * ok: NODES=3
 * fails: assertion: NODES=2 COMMON_COUNT    all flags hold the number of the call
 */
#define EPOCHS 8
#define reached(value, epoch) ((value + EPOCHS - (epoch)) % EPOCHS < EPOCHS / 2)
byte flag[NODES]; /* of a root, at its reader */
#ifdef COMMON_COUNT
byte count[1];
#define epoch_of(root) count[0]
#else
byte count[NODES];
#define epoch_of(root) count[root]
#endif

active proctype calls()
{
    byte root;

    do
    :: select(root : 0 .. NODES - 1);
        epoch_of(root) = (epoch_of(root) + 1) % EPOCHS;
        assert(!reached(flag[root], epoch_of(root)));
        flag[root] = epoch_of(root)
    od
}
