/* The exported names: MPI_X and PMPI_X for every X of base/entries.def.
 *
 * Each is one indirect jump through a table, so the arguments stay where the caller put them,
 * whatever their number and type, and the return address remains the caller's own (the trace
 * reads the call site from it).  The tables first point back here, to a stub that says which entry
 * it is and has interpose/resolve.c fill in both tables; then the call is made again.
 *
 *   1. MPI_X jumps to collx_mpi_table[X], PMPI_X to collx_pmpi_table[X].
 *   2. Before the first call those hold first_MPI_X and first_PMPI_X: number of the entry, and on.
 *   3. resolve: keep the argument registers, call collx_resolve, restore, jump through the table.
 *
 * No argument of these functions is a floating-point number, so vector registers need no keeping.
 */
#include "base/collectives.h"

/* Each machine's own 1, 2 and 3. */
/* clang-format off */
#if defined(__x86_64__)

#define JUMP(label, table)                                                                         \
    .globl label; .type label, @function; .p2align 4;                                              \
    label: endbr64; jmp *table + 8 * index(%rip); .size label, . - label;
#define FIRST(label, common)                                                                       \
    label: endbr64; movl $index, %eax; jmp common;

/* eax holds the entry; the stack is as at the caller's call instruction. */
#define RESOLVE(label, table)                                                                      \
    label:                                                                                         \
    .cfi_startproc;                                                                                \
    pushq %rdi; .cfi_adjust_cfa_offset 8;                                                          \
    pushq %rsi; .cfi_adjust_cfa_offset 8;                                                          \
    pushq %rdx; .cfi_adjust_cfa_offset 8;                                                          \
    pushq %rcx; .cfi_adjust_cfa_offset 8;                                                          \
    pushq %r8; .cfi_adjust_cfa_offset 8;                                                           \
    pushq %r9; .cfi_adjust_cfa_offset 8;                                                           \
    pushq %rax; .cfi_adjust_cfa_offset 8;                                                          \
    call collx_resolve;                                                                            \
    popq %rax; .cfi_adjust_cfa_offset -8;                                                          \
    popq %r9; .cfi_adjust_cfa_offset -8;                                                           \
    popq %r8; .cfi_adjust_cfa_offset -8;                                                           \
    popq %rcx; .cfi_adjust_cfa_offset -8;                                                          \
    popq %rdx; .cfi_adjust_cfa_offset -8;                                                          \
    popq %rsi; .cfi_adjust_cfa_offset -8;                                                          \
    popq %rdi; .cfi_adjust_cfa_offset -8;                                                          \
    leaq table(%rip), %r11;                                                                        \
    jmp *(%r11, %rax, 8);                                                                          \
    .cfi_endproc;

#elif defined(__aarch64__)

/* The barrier pairs with the release in interpose/resolve.c.  A jump to an address that was loaded
 * orders no loads here: those of the function could have been made before, on a guess of where the
 * jump goes to.  In RESOLVE the lock has seen to that. */
#define JUMP(label, table)                                                                         \
    .globl label; .type label, %function; .p2align 2;                                              \
    label: hint 34; adrp x16, table + 8 * index;                                                   \
    ldr x16, [x16, :lo12:table + 8 * index]; dmb ishld; br x16; .size label, . - label;
#define FIRST(label, common)                                                                       \
    label: hint 34; mov w17, index; b common;

#define RESOLVE(label, table)                                                                      \
    label:                                                                                         \
    .cfi_startproc;                                                                                \
    stp x29, x30, [sp, #-96]!; .cfi_def_cfa_offset 96; .cfi_offset 29, -96; .cfi_offset 30, -88;   \
    mov x29, sp;                                                                                   \
    stp x0, x1, [sp, #16]; stp x2, x3, [sp, #32]; stp x4, x5, [sp, #48]; stp x6, x7, [sp, #64];    \
    str x17, [sp, #80];                                                                            \
    bl collx_resolve;                                                                              \
    ldr x17, [sp, #80];                                                                            \
    ldp x0, x1, [sp, #16]; ldp x2, x3, [sp, #32]; ldp x4, x5, [sp, #48]; ldp x6, x7, [sp, #64];    \
    ldp x29, x30, [sp], #96; .cfi_def_cfa_offset 0; .cfi_restore 29; .cfi_restore 30;              \
    adrp x16, table; add x16, x16, :lo12:table;                                                    \
    ldr x16, [x16, x17, lsl #3]; br x16;                                                           \
    .cfi_endproc;

#else
#error "collx has entries for x86-64 and AArch64; add this machine's to interpose/entry.S"
#endif

    .text
    .globl collx_entries, collx_entries_end
    .hidden collx_entries, collx_entries_end
    /* One for all: in none is the stack another one than the caller's. */
    .cfi_startproc
collx_entries:
    .set index, 0
#define ENTRY(Name)                                                                                \
    JUMP(MPI_##Name, collx_mpi_table)                                                              \
    JUMP(PMPI_##Name, collx_pmpi_table)                                                            \
    FIRST(first_MPI_##Name, resolve_mpi)                                                           \
    FIRST(first_PMPI_##Name, resolve_pmpi)                                                         \
    .set index, index + 1;
#include "base/entries.def"
#undef ENTRY
collx_entries_end:
    .cfi_endproc

RESOLVE(resolve_mpi, collx_mpi_table)
RESOLVE(resolve_pmpi, collx_pmpi_table)

    .section .data.collx_tables, "aw"
    .p2align 6
    .globl collx_mpi_table, collx_pmpi_table
    .hidden collx_mpi_table, collx_pmpi_table
collx_mpi_table:
#define ENTRY(Name) .quad first_MPI_##Name;
#include "base/entries.def"
#undef ENTRY
collx_pmpi_table:
#define ENTRY(Name) .quad first_PMPI_##Name;
#include "base/entries.def"
#undef ENTRY

    .section .note.GNU-stack, "", %progbits
