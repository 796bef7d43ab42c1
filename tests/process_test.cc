/* Which process this is, also in children however they come about, and where the kernel does not
 * help. */
extern "C" {
#include "base/process.h"
}

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <gtest/gtest.h>
#include <initializer_list>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace
{

pid_t fork_past_libc()
{
    return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
}

/* Twice: the second time it is known. */
bool knows_itself()
{
    for (int time = 0; time < 2; time++) {
        errno = EXDEV;
        if (collx_process_own() != getpid() || errno != EXDEV)
            return false;
    }
    return true;
}

bool child_does(pid_t (*make)(), bool (*body)())
{
    int status = -1;
    pid_t child = make();

    if (child == 0)
        _exit(!body());
    waitpid(child, &status, 0);
    return status == 0;
}

bool knows_its_children()
{
    for (pid_t (*make)() : std::initializer_list<pid_t (*)()>{fork, fork_past_libc})
        if (!child_does(make, [] {
                return knows_itself() && child_does(fork, knows_itself) && knows_itself();
            }))
            return false;
    return knows_itself();
}

/* From now on that system call does nothing but return this error, or 0. */
bool answer(unsigned call, unsigned error)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {std::size(filter), filter};

    return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
           !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

/* It refuses, or has no idea of what is asked and says that all is well.  First, as a page that is
 * there stays in use. */
TEST(Process, KnowsItselfWithoutTheKernelsHelp)
{
    EXPECT_TRUE(
        child_does(fork, [] { return answer(SYS_madvise, EINVAL) && knows_its_children(); }));
    EXPECT_TRUE(child_does(fork, [] { return answer(SYS_madvise, 0) && knows_its_children(); }));
}

/* All ask for the first time, at once. */
TEST(Process, IsTheSameForAllItsThreads)
{
    bool right[4] = {};
    std::thread threads[4];
    std::atomic<int> waiting = 4;

    for (int i = 0; i < 4; i++)
        threads[i] = std::thread([&right, &waiting, i] {
            /* Relaxed: it is to order nothing that collx_process_own() does not. */
            waiting.fetch_sub(1, std::memory_order_relaxed);
            while (waiting.load(std::memory_order_relaxed))
                sched_yield();
            right[i] = collx_process_own() == getpid();
        });
    for (std::thread &thread : threads)
        thread.join();
    for (bool each : right)
        EXPECT_TRUE(each);
}

TEST(Process, KnowsItselfAndItsChildrenThemselves)
{
    EXPECT_TRUE(knows_its_children());
}

TEST(Process, MakesNoSystemCallToKnow)
{
    EXPECT_TRUE(child_does(fork, [] {
        const pid_t own = getpid();

        return collx_process_own() == own && answer(SYS_getpid, EPERM) && getpid() < 0 &&
               collx_process_own() == own;
    }));
}

} // namespace
