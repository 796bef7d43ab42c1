/* Segments of the stand-in: files in a folder, and what the environment says. */
#include "tests/sisci/standin.h"

#include "tests/sisci/errors.h"

extern "C" {
#include "base/clock.h"
}

#include <atomic>
#include <cstdlib>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace standin
{

namespace
{

/* In front of the data, in a page of its own. */
struct Header {
    std::atomic<uint32_t> available;
};
static_assert(std::atomic<uint32_t>::is_always_lock_free, "processes share it");
constexpr size_t header_bytes = 4096;

uint64_t number(const char *name, uint64_t initial)
{
    const char *text = getenv((std::string("COLLX_TEST_SISCI_") + name).c_str());
    return text && *text ? strtoull(text, nullptr, 10) : initial;
}

std::string path_of(const Settings &settings, unsigned node, unsigned id)
{
    return settings.folder + "/segment-" + std::to_string(node) + "-" + std::to_string(id);
}

/* A lock of the open file, which goes with its last descriptor. */
bool lock_file(int fd, int command, short *type)
{
    struct flock lock = {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    bool good = fcntl(fd, command, &lock) == 0;
    *type = lock.l_type;
    return good;
}

} // namespace

Settings settings_from_environment()
{
    const char *folder = getenv("COLLX_TEST_SISCI_FOLDER");
    auto small = [](const char *name, unsigned initial) {
        return static_cast<unsigned>(number(name, initial));
    };

    Settings settings = {};
    settings.folder = folder ? folder : ".";
    settings.node = small("NODE", 4);
    settings.adapters = small("ADAPTERS", 1);
    settings.line = number("LINE", 64);
    settings.shared = small("SHARED", 0);
    settings.fail = small("FAIL", 0);
    settings.lose = small("LOSE", 50);
    settings.hard = small("HARD", 0);
    settings.pending = small("PENDING", 0);
    settings.late = small("LATE", 0);
    settings.starts = small("STARTS", 1);
    settings.seed = small("SEED", 1);
    settings.latency_ns = number("LATENCY_NS", 0);
    settings.line_ns = number("LINE_NS", 0);
    settings.barrier_ns = number("BARRIER_NS", 0);
    settings.check_ns = number("CHECK_NS", 0);
    return settings;
}

File::File(std::string path, int fd, void *base, size_t all)
    : path_(std::move(path)), fd_(fd), base_(base), all_(all)
{
}

File::File(File &&other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)),
      base_(std::exchange(other.base_, nullptr)), all_(other.all_)
{
}

File::~File()
{
    if (base_)
        munmap(base_, all_);
    if (fd_ >= 0)
        close(fd_);
}

static void *map(int fd, size_t all)
{
    void *base = mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) {
        close(fd);
        throw Error{ERROR_NO_MEMORY};
    }
    return base;
}

File File::create(const Settings &settings, unsigned node, unsigned id, size_t size)
{
    std::string path = path_of(settings, node, id);
    size_t all = header_bytes + size;
    short type;

    int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        throw Error{errno == EEXIST ? ERROR_SEGMENTID_USED : ERROR_NO_MEMORY};
    if (ftruncate(fd, static_cast<off_t>(all)) || !lock_file(fd, F_OFD_SETLK, &type)) {
        close(fd);
        throw Error{ERROR_NO_MEMORY};
    }
    return {path, fd, map(fd, all), all};
}

File File::connect(const Settings &settings, unsigned node, unsigned id)
{
    std::string path = path_of(settings, node, id);
    struct stat status;

    int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0)
        throw Error{ERROR_NO_SUCH_SEGMENT};
    if (fstat(fd, &status) || static_cast<size_t>(status.st_size) < header_bytes) {
        close(fd);
        throw Error{ERROR_NO_SUCH_SEGMENT};
    }
    size_t all = static_cast<size_t>(status.st_size);
    File file(path, fd, map(fd, all), all);
    if (!file.is_there())
        throw Error{ERROR_NO_SUCH_SEGMENT};
    return file;
}

char *File::data() const
{
    return static_cast<char *>(base_) + header_bytes;
}

size_t File::size() const
{
    return all_ - header_bytes;
}

void File::set_available(bool available)
{
    static_cast<Header *>(base_)->available = available;
}

bool File::is_there() const
{
    short type = F_WRLCK;

    return static_cast<Header *>(base_)->available && lock_file(fd_, F_OFD_GETLK, &type) &&
           type != F_UNLCK;
}

void File::remove()
{
    unlink(path_.c_str());
}

bool happens(std::mt19937 &random, unsigned percent)
{
    return random() % 100 < percent;
}

void spend(uint64_t ns)
{
    if (!ns)
        return;
    for (uint64_t start = collx_clock_ns(); collx_clock_ns() - start < ns;)
        ;
}

} // namespace standin
