/* Memory to share, in a process that is limited. */
extern "C" {
#include "hw/shm.h"
}

#include <cerrno>
#include <functional>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
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

TEST(Shm, BeyondTheLimitOfFilesIsAnErrorAndNoSignal)
{
    EXPECT_EQ(0, status_of([] {
                  const struct rlimit limit = {mib, mib};
                  void *base;
                  int fd;

                  return !setrlimit(RLIMIT_FSIZE, &limit) &&
                         collx_shm_create(mib + 1, &base, &fd) == -EFBIG &&
                         collx_shm_create(mib, &base, &fd) == 0 && collx_shm_allocate(fd, mib) == 0;
              }));
}

} // namespace
