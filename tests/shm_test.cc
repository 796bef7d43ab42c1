/* Memory to share, in a process that is limited, or disturbed by signals. */
extern "C" {
#include "hw/shm.h"
}

#include <cerrno>
#include <cstring>
#include <functional>
#include <future>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace
{

constexpr size_t mib = 1 << 20;

/* What waitpid() says of a process of its own that does this. */
int status_of(const std::function<bool()> &body)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        alarm(20);
        _exit(!body());
    }
    waitpid(child, &status, 0);
    return status;
}

/* From now on an fallocate() of more than so many bytes is interrupted. */
bool interrupt_beyond(unsigned bytes)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[3])),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, bytes, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINTR),
    };
    struct sock_fprog program = {std::size(filter), filter};

    return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
           !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

/* What one process releases is free, whoever has it mapped; its first page stays. */
TEST(Shm, WhatIsReleasedIsFree)
{
    void *own, *other;
    struct stat status;
    int fd;
    uint64_t *cookie;

    ASSERT_EQ(0, collx_shm_create(mib, &own, &fd));
    ASSERT_EQ(0, collx_shm_allocate(fd, mib));
    const collx_shm_address address = collx_shm_tell(fd, cookie = static_cast<uint64_t *>(own));
    ASSERT_EQ(0, collx_shm_open(&address, mib, 0, &other));
    memset(static_cast<char *>(other) + 8, 1, mib - 8);
    ASSERT_EQ(0, fstat(fd, &status));
    if (status.st_blocks * 512 != static_cast<long>(mib))
        GTEST_SKIP() << "memory comes in pages of another size here";
    collx_shm_release(own, mib);
    ASSERT_EQ(0, fstat(fd, &status));
    EXPECT_EQ(status.st_blocks * 512, sysconf(_SC_PAGESIZE));
    EXPECT_EQ(*static_cast<uint64_t *>(other), *cookie);
    collx_shm_close(other, mib);
    collx_shm_close(own, mib);
    close(fd);
}

TEST(Shm, OfAThreadWithDescriptorsOfItsOwnIsFound)
{
    std::promise<collx_shm_address> told;
    std::promise<void> opened;
    void *own, *other = nullptr;

    std::thread maker([&] {
        int fd = -1;

        EXPECT_EQ(0, unshare(CLONE_FILES));
        EXPECT_EQ(0, collx_shm_create(mib, &own, &fd));
        EXPECT_EQ(0, collx_shm_allocate(fd, mib));
        told.set_value(collx_shm_tell(fd, static_cast<uint64_t *>(own)));
        opened.get_future().wait();
        close(fd);
    });
    const collx_shm_address address = told.get_future().get();
    const int error = collx_shm_open(&address, mib, 0, &other);
    opened.set_value();
    maker.join();
    ASSERT_EQ(error, 0) << strerror(-error);
    EXPECT_EQ(*static_cast<uint64_t *>(other), address.cookie);
    collx_shm_close(other, mib);
    collx_shm_close(own, mib);
}

TEST(Shm, BeyondTheLimitOfFilesIsAnErrorAndNoSignal)
{
    EXPECT_EQ(0, status_of([] {
                  const struct rlimit limit = {mib, mib};
                  void *base;
                  int fd = 0;

                  return !setrlimit(RLIMIT_FSIZE, &limit) &&
                         collx_shm_create(mib + 1, &base, &fd) == -EFBIG && fd == -1 &&
                         collx_shm_create(mib, &base, &fd) == 0 && collx_shm_allocate(fd, mib) == 0;
              }));
}

/* As in a program that a profiler interrupts a thousand times a second, on a kernel that gives up
 * an fallocate() for any signal. */
TEST(Shm, IsAllocatedInPiecesThatAreDoneBetweenTwoSignals)
{
    EXPECT_EQ(0, status_of([] {
                  const size_t size = 5 * mib + 4096;
                  struct stat status;
                  void *base;
                  int fd;

                  return interrupt_beyond(mib) && collx_shm_create(size, &base, &fd) == 0 &&
                         collx_shm_allocate(fd, size) == 0 && fstat(fd, &status) == 0 &&
                         static_cast<size_t>(status.st_blocks) * 512 >= size;
              }));
}

/* What another thread writes meanwhile comes to nothing, as before. */
TEST(Shm, IsNotWhereAProgramWritesThatHasClosedItsOutput)
{
    EXPECT_EQ(0, status_of([] {
                  const char text[] = "lost";
                  void *base;
                  int fd;

                  close(STDIN_FILENO);
                  close(STDOUT_FILENO);
                  close(STDERR_FILENO);
                  if (collx_shm_create(mib, &base, &fd) || collx_shm_allocate(fd, mib))
                      return false;
                  bool written = false;
                  for (int each : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
                      written = write(each, text, sizeof text) > 0 || written;
                  return !written && memcmp(base, "\0\0\0\0", 4) == 0;
              }));
}

/* A process that is as another one was may have what seems to be its descriptor, of what is not its
 * segment: more than there is of it would be SIGBUS. */
TEST(Shm, IsOpenedByItsSizeAndItsCookie)
{
    EXPECT_EQ(0, status_of([] {
                  void *base, *again = nullptr;
                  int fd;

                  if (collx_shm_create(mib, &base, &fd) || collx_shm_allocate(fd, mib))
                      return false;
                  struct collx_shm_address at = collx_shm_tell(fd, static_cast<uint64_t *>(base));
                  if (collx_shm_open(&at, mib, 0, &again) || memcmp(base, again, sizeof at.cookie))
                      return false;
                  if (collx_shm_open(&at, 2 * mib, 0, &again) != -ESTALE ||
                      collx_shm_open(&at, mib / 2, 0, &again) != -ESTALE)
                      return false;
                  at.cookie += 2;
                  return collx_shm_open(&at, mib, 0, &again) == -ESTALE && !again;
              }));
}

/* It has no part in collectives, and would keep the memory alive. */
TEST(Shm, IsNotTheChildsOfAFork)
{
    EXPECT_EQ(0, status_of([] {
                  void *base;
                  int fd;

                  return collx_shm_create(mib, &base, &fd) == 0 &&
                         msync(base, mib, MS_ASYNC) == 0 &&
                         status_of([=] {
                             return msync(base, mib, MS_ASYNC) < 0 && errno == ENOMEM;
                         }) == 0;
              }));
}

TEST(Shm, SaysWhatToDoOfEachKindOfFailure)
{
    const auto says = [](int error, const char *word) {
        return strstr(collx_shm_advice(error), word) != nullptr;
    };

    for (int error : {EACCES, ENOENT, ESTALE})
        EXPECT_TRUE(says(error, "/proc")) << strerror(error);
    for (int error : {ENOMEM, ENOSPC})
        EXPECT_TRUE(says(error, "memory")) << strerror(error);
    EXPECT_TRUE(says(EFBIG, "ulimit -f"));
    EXPECT_TRUE(says(EAGAIN, "ulimit -l"));
    EXPECT_TRUE(says(EMFILE, "ulimit -n"));
    EXPECT_TRUE(says(ENFILE, "fs.file-max"));
    for (int error : {ENOSYS, EPERM})
        EXPECT_TRUE(says(error, "memfd_create")) << strerror(error);
}

} // namespace
