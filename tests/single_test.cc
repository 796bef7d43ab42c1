/* What cannot be read straight goes by mail, however many letters there have been. */
extern "C" {
#include "tests/single_mail.h"
}

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace
{

bool comes_by_mail(uint64_t letters, size_t bytes)
{
    void *memory =
        mmap(nullptr, mail_space(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child[2];
    bool good = true;

    for (int rank = 0; rank < 2; rank++) {
        child[rank] = fork();
        if (child[rank] == 0) {
            alarm(20);
            _exit(!mail_passes(rank, memory, letters, bytes));
        }
    }
    for (pid_t each : child) {
        int status = 0;
        waitpid(each, &status, 0);
        good = good && status == 0;
    }
    munmap(memory, mail_space());
    return good;
}

TEST(Mail, Comes)
{
    EXPECT_TRUE(comes_by_mail(0, 10000));
}

TEST(Mail, NumbersOfLettersDoNotWrap)
{
    EXPECT_TRUE(comes_by_mail((uint64_t(1) << 32) - 2, 20000));
}

} // namespace
