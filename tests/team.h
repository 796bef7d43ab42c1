/* Ranks without MPI: forked processes, or threads for ThreadSanitizer, that lend an algorithm what
 * the MPI adapter otherwise lends it. */
#ifndef COLLX_TESTS_TEAM_H
#define COLLX_TESTS_TEAM_H

extern "C" {
#include "algorithms/reduction/reduce.h"
#include "base/algorithm.h"
#include "hw/place.h"
#include "hw/shm.h"
}

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

/* Sanitizers make everything several times slower, and what they look for shows in few rounds. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int slower = 10;
#else
constexpr int slower = 1;
#endif

/* An element for reductions that do not commute: x -> a x + b, modulo 2^64.  Combining two is doing
 * one after the other, which is associative, and exact. */
struct Affine {
    uint64_t a, b;
};

inline Affine after(const Affine &first, const Affine &second)
{
    return {second.a * first.a, second.a * first.b + second.b};
}

/* Bytes that tell where in a message they are, and of which round it is.  They are made once, since
 * a sanitizer looks at each byte that a loop touches, but at what memcpy() does as a whole. */
class Pattern
{
  public:
    explicit Pattern(size_t most) : bytes(most + rounds)
    {
        for (size_t i = 0; i < bytes.size(); i++)
            bytes[i] = static_cast<unsigned char>(i * 7 + i / 251);
    }
    const unsigned char *of(int round) const
    {
        return &bytes[static_cast<size_t>(round) % rounds];
    }
    /* What is wrong with a message of round `round`; "": nothing. */
    std::string compare(const unsigned char *got, size_t size, int round) const
    {
        const unsigned char *wanted = of(round);
        if (!memcmp(got, wanted, size))
            return "";
        const auto at = std::mismatch(got, got + size, wanted).first - got;
        return "byte " + std::to_string(at) + " of " + std::to_string(size) +
               " is wrong in round " + std::to_string(round);
    }

  private:
    static constexpr size_t rounds = 251;
    std::vector<unsigned char> bytes;
};

/* One rank's view of a team with one algorithm attached. */
struct Rank {
    collx_team team;
    collx_slot slot;
    const collx_algorithm *algorithm;
    bool abandoned; /* by others, which have died: what waits for them is not waited for */
    /* How many it was asked for, and how many of those the algorithm has taken.  The others are
     * carried out as by an MPI library. */
    unsigned calls, taken;

    int barrier();
    /* In elements of `each` bytes; 0: of 1, or 4 that have to be packed. */
    int bcast(void *buf, size_t bytes, int root, bool contiguous = true, size_t each = 0);
    int sum(const int64_t *send, int64_t *receive, int64_t count);
    /* By the lender's reduction, on elements that have to be packed, of so many each. */
    int compose(const Affine *send, Affine *receive, int64_t count, int64_t each = 1);
    /* All ranks have called it, which is no call of the algorithm.  Returns the process of each. */
    std::vector<pid_t> meet();

  private:
    int carry_out(collx_call &call);
};

enum class Ranks { processes, threads };

/* What to run a case as.  ThreadSanitizer sees nothing of what passes between processes, and to
 * AddressSanitizer one is like the other. */
#if defined(__SANITIZE_THREAD__)
constexpr Ranks all_kinds[] = {Ranks::threads};
#elif defined(__SANITIZE_ADDRESS__)
constexpr Ranks all_kinds[] = {Ranks::processes};
#else
constexpr Ranks all_kinds[] = {Ranks::processes, Ranks::threads};
#endif

/* Until a process has ended, and whoever began it has heard of that. */
void await_end_of(pid_t process);

/* From now on the kernel refuses this process cross-memory attach. */
void forbid_cma();

/* What a rank that is out of reach makes of a call. */
enum { UNREACHABLE = 98 };

/* What a body tells of a round of its own. */
inline std::string at(const char *what, int round)
{
    return std::string(what) + " in round " + std::to_string(round);
}

/* Run `body` on every rank of a team, with these parameters, or the initial ones, and with the
 * places, and the nodes of the ranks, that are said, whatever is true.  Returns what went wrong, ""
 * if nothing did: what a body returns, or how its process died. */
std::string run_team(const collx_algorithm *algorithm, int size, Ranks kind, bool crowded,
                     const std::function<std::string(Rank &)> &body,
                     const collx_args *args = nullptr, const collx_place *places = nullptr,
                     const std::vector<int> &node = {});

#endif
