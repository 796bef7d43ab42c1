/* Single copy: algorithms/within/single.c.  A rank reads what it wants from another one's memory,
 * where the kernel lets it; else it asks by a letter, which the owner answers in any of its waits.
 *
 * Spin chooses of each read whether the kernel lets it.  Who includes this says what `mine(what)`
 * is, in the memory of the rank `me`, and `theirs(rank, what)`.
 *
 * Mutants:
 *   NO_ANSWER       waiting ranks do not look for letters
 *   NO_OWNER        a letter does not say whom it is for
 *   NUMBER_WRAPS    the number of a letter has two bits, with the number of the answer it has more
 *   ANSWER_FIRST    the answer is posted before what was asked for is in the mailbox
 */
byte open[RANKS];
byte step[RANKS];
byte letter[RANKS]; /* 4 * letters so far + the rank that the last one is for */
byte wanted[RANKS]; /* beside it */
byte answer[RANKS];
byte mail[RANKS];

#ifdef NO_OWNER
#define is_for_me(rank) (rank != me)
#else
#define is_for_me(rank) (letter[rank] % 4 == me)
#endif
#if RANKS > 4
#error "a letter has two bits for its owner"
#endif
#ifdef NUMBER_WRAPS
#define number(letters) ((letters) % 4)
#else
#define number(letters) (letters)
#endif
#define asked(rank) (rank < RANKS && is_for_me(rank) && answer[rank] < letter[rank] / 4)

/* answer(), for one letter; `at`, too, is the caller's. */
inline reply(rank)
{
    at = letter[rank] / 4;
#ifdef ANSWER_FIRST
    answer[rank] = at;
    mail[rank] = mine(wanted[rank]);
#else
    mail[rank] = mine(wanted[rank]);
    answer[rank] = at;
#endif
    at = 0
}

/* collx_single_wait */
inline single_wait(condition)
{
    do
    :: condition -> break
#ifndef NO_ANSWER
    :: asked(0) -> reply(0)
    :: asked(1) -> reply(1)
#if RANKS > 2
    :: asked(2) -> reply(2)
#endif
#endif
    od
}

/* collx_single_read */
inline single_read(owner, what)
{
    if
    :: got = theirs(owner, what)
#ifndef NO_LETTERS
    :: wanted[me] = what;
        letters++;
        letter[me] = 4 * number(letters) + owner;
        single_wait(answer[me] >= letters);
        got = mail[me]
#endif
    fi
}

inline single_await_all(steps)
{
    other = 0;
    do
    :: other < RANKS ->
        if
        :: other == me
        :: else -> single_wait(step[other] >= steps)
        fi;
        other++
    :: else -> other = 0; break
    od
}
