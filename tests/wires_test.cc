/* Specs of wires, what drivers say when they cannot, and the one that needs no hardware: registers.
 */
extern "C" {
#include "base/clock.h"
#include "hw/wires.h"
}

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/gpio.h>
#include <linux/parport.h>
#include <linux/ppdev.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

namespace
{

struct Parsed {
    int error = 0;
    const collx_wire_ops *ops = nullptr;
    collx_wire_spec spec = {};
    char why[512] = "";

    explicit Parsed(const std::string &text)
    {
        error = collx_wires_parse(text.c_str(), &ops, &spec, why, sizeof why);
    }
};

TEST(WireSpec, HasTheUsualPins)
{
    const Parsed paper("ppdev");
    ASSERT_EQ(paper.error, 0) << paper.why;
    EXPECT_STREQ(paper.ops->name, "ppdev");
    EXPECT_STREQ(paper.spec.device, "/dev/parport0");
    EXPECT_EQ(paper.spec.outs, 1u);
    EXPECT_EQ(paper.spec.ins, 1u);
    EXPECT_EQ(paper.spec.out[0], 0) << "D0";
    EXPECT_EQ(paper.spec.in[0], 6) << "ACK";
    EXPECT_EQ(paper.spec.in_inverted, 0u);

    const Parsed four("ioport:0x278,channels=4,nodes=8");
    ASSERT_EQ(four.error, 0) << four.why;
    EXPECT_STREQ(four.spec.device, "0x278");
    EXPECT_EQ(four.spec.nodes, 8u);
    EXPECT_EQ(four.spec.outs, 6u);
    EXPECT_EQ(four.spec.ins, 5u);
    EXPECT_EQ(std::vector<int>(four.spec.out, four.spec.out + 6),
              (std::vector<int>{0, 1, 2, 3, 6, 7}));
    EXPECT_EQ(std::vector<int>(four.spec.in, four.spec.in + 5), (std::vector<int>{6, 5, 4, 3, 7}));
    EXPECT_EQ(four.spec.in_inverted, 1u << 4) << "the port inverts BUSY";
}

TEST(WireSpec, TakesOtherPins)
{
    const Parsed pins("ppdev:/dev/parport1,out=!d5,in=busy");
    ASSERT_EQ(pins.error, 0) << pins.why;
    EXPECT_EQ(pins.spec.out[0], 5);
    EXPECT_EQ(pins.spec.out_inverted, 1u);
    EXPECT_EQ(pins.spec.in[0], 7);
    EXPECT_EQ(pins.spec.in_inverted, 1u);
    EXPECT_EQ(Parsed("ppdev:,in=!busy").spec.in_inverted, 0u) << "inverted twice";

    EXPECT_EQ(Parsed("ppdev:,node=010").spec.node, 10u);
    EXPECT_EQ(Parsed("ppdev:,node=08").spec.node, 8u);
    EXPECT_EQ(Parsed("ppdev:,node=0x1F").spec.node, 31u);

    const Parsed lines("gpio:/dev/gpiochip1,out=17,in=!27");
    ASSERT_EQ(lines.error, 0) << lines.why;
    EXPECT_EQ(lines.spec.out[0], 17);
    EXPECT_EQ(lines.spec.in[0], 27);
    EXPECT_EQ(lines.spec.in_inverted, 1u);
}

TEST(WireSpec, HasAllOfALongPath)
{
    const std::string path(COLLX_WIRES_SPEC - 1 - strlen("mmio:"), 'x');
    const Parsed whole("mmio:" + path), longer("mmio:" + path + "x");

    ASSERT_EQ(whole.error, 0) << whole.why;
    EXPECT_EQ(whole.spec.device, path);
    EXPECT_EQ(longer.error, -EINVAL);
    EXPECT_STREQ(longer.why, "a spec has 511 characters at most");
}

TEST(WireSpec, SaysWhatIsWrong)
{
    const std::pair<const char *, const char *> wrong[] = {
        {"pdev", "'pdev' is not a driver of wires; did you mean 'ppdev'?"},
        {"emu", "emu needs to know where: emu:DEVICE"},
        {"mmio:x,chanels=2", "'chanels' is not a key; did you mean 'channels'?"},
        {"ppdev:,channels", "'channels': KEY=VALUE is right"},
        {"ppdev:,channels=17", "channels=17: a number from 0 to 16 is right"},
        {"ppdev:,channels=-1", "channels=-1: a number from 0 to 16 is right"},
        {"ppdev:,nodes=61", "nodes=61: a number from 0 to 60 is right"},
        {"ppdev:,in=d0", "in=d0: there are error, select, paperout, ack, busy"},
        {"ppdev:,out=d0/d1", "out=d0/d1 names more wires than the 1 that are needed"},
        {"ppdev:,channels=2,out=d0/d1/d2",
         "out=d0/d1/d2 names fewer wires than the 4 that are needed"},
        {"ppdev:,channels=5", "out=d0/d1/d2/d3 names fewer wires than the 5 that are needed"},
        {"gpio", "gpio has no usual pins: out=… has to name 1, with / between them"},
        {"gpio:,out=x,in=1", "out=x: a number from 0 to 65535 is right"},
        {"emu:file,out=1", "emu has no pins to choose: leave out out="},
        {"mmio:x,registers=0", "registers=0: two offsets are right, OUT/IN"},
        {"mmio:x,registers=0/", "registers=: a number from 0 to 4294967295 is right"},
        {"ppdev:,node=0a", "node=0a: a number from 0 to 59 is right"},
        {"ppdev:,channels=4,out=d0/d1/d1/d3/d6/d7",
         "out=d0/d1/d1/d3/d6/d7: each wire has a pin of its own, and d1 is there twice"},
        {"ppdev:,channels=1,out=d0/d7/d0",
         "out=d0/d7/d0: each wire has a pin of its own, and d0 is there twice"},
        {"ppdev:,channels=1,in=busy/!busy",
         "in=busy/!busy: each wire has a pin of its own, and !busy is there twice"},
    };
    for (const auto &[text, why] : wrong) {
        const Parsed parsed(text);
        EXPECT_EQ(parsed.error, -EINVAL) << text;
        EXPECT_STREQ(parsed.why, why) << text;
    }
}

/* What a user does about it has to be in the message. */
TEST(Wires, SayWhatToDo)
{
    const std::tuple<const char *, int, const char *> wrong[] = {
        {"ppdev:/dev/no-such-port", -ENOENT, "modprobe -a parport_pc ppdev"},
        {"ppdev:/dev/null", -ENOTTY, "/dev/null is not a parallel port of ppdev's"},
#if defined(__x86_64__) || defined(__i386__)
        {"ioport:123x", -EINVAL, "0x378, 0x278 and 0x3bc are usual"},
#else
        {"ioport:0x378", -ENOSYS, "ppdev:/dev/parport0 works elsewhere"},
#endif
        {"devport:0xffff", -EINVAL, "0x378, 0x278 and 0x3bc are usual"},
        {"gpio:/dev/no-such-chip,out=1,in=2", -ENOENT, "`gpiodetect` lists the chips"},
        {"gpio:/dev/null,out=1,in=2", -ENOTTY, "`gpioinfo` says who has them"},
        {"mmio:/dev/no-such-card", -ENOENT, "`lspci -v` finds the card"},
        {"mmio:/dev/null,registers=0/2", -EINVAL, "multiples of 4 below"},
        {"mmio:/dev/null,out=32", -EINVAL, "the bits 0 to 31"},
        {"emu:/tmp/no-such-file", -ENOENT, "collx-hwemu-single or -channels makes it"},
        {"emu:/dev/null", -EINVAL, "is not the file of an emulated board"},
    };
    for (const auto &[text, error, part] : wrong) {
        collx_wires wires;
        char why[512];
        EXPECT_EQ(collx_wires_open(&wires, text, why, sizeof why), error) << text;
        EXPECT_NE(std::string(why).find(part), std::string::npos) << text << ": " << why;
    }
}

class Registers : public testing::Test
{
  protected:
    Registers()
    {
        fd = mkstemp(path);
        if (fd < 0 || ftruncate(fd, 4096))
            abort();
        page =
            static_cast<uint32_t *>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    }

    ~Registers() override
    {
        munmap(page, 4096);
        close(fd);
        unlink(path);
    }

    char path[32] = "/tmp/collx-test-XXXXXX";
    char why[512] = "";
    int fd;
    uint32_t *page;
};

TEST_F(Registers, HaveTheWires)
{
    collx_wires wires;
    const std::string spec =
        std::string("mmio:") + path + ",channels=2,registers=8/16,out=3/!4/5/6,in=0/!31/7";
    page[2] = 0xffff0000u;
    ASSERT_EQ(collx_wires_open(&wires, spec.c_str(), why, sizeof why), 0) << why;
    EXPECT_EQ(collx_wires_set(&wires, 3, 1), 0);
    EXPECT_EQ(page[2], 0xffff0018u) << "wire 1 is inverted, other bits stay";
    EXPECT_EQ(collx_wires_set(&wires, 3, 2), 0);
    EXPECT_EQ(page[2], 0xffff0000u);
    EXPECT_EQ(collx_wires_set(&wires, 8, ~0u), 0);
    EXPECT_EQ(page[2], 0xffff0040u);
    uint32_t levels;
    page[4] = 0x80000081u;
    EXPECT_EQ(collx_wires_get(&wires, &levels), 0);
    EXPECT_EQ(levels, 5u);
    page[4] = 0;
    EXPECT_EQ(collx_wires_get(&wires, &levels), 0);
    EXPECT_EQ(levels, 2u);
    EXPECT_EQ(wires.writes, 3u);
    EXPECT_EQ(wires.reads, 2u);
    EXPECT_EQ(collx_wires_settle(&wires), 0);

    collx_wires second;
    EXPECT_EQ(collx_wires_open(&second, spec.c_str(), why, sizeof why), -EBUSY);
    EXPECT_NE(std::string(why).find("is in use by another process"), std::string::npos) << why;
    collx_wires_close(&wires);
    EXPECT_EQ(collx_wires_open(&second, spec.c_str(), why, sizeof why), 0) << why;
    collx_wires_close(&second);
}

/* A chip whose lines have no interrupts, as the kernel answers for it; its device is /dev/null. */
struct Chip {
    std::vector<uint64_t> asked; /* the flags of each request */
    int taken = 0;               /* not 0: errno of requests for input */
    uint64_t levels = 0;
} * chip;

class Gpio : public testing::Test
{
  protected:
    Gpio()
    {
        chip = &own;
    }
    ~Gpio() override
    {
        chip = nullptr;
    }

    Chip own;
    collx_wires wires;
    char why[512] = "";
};

TEST_F(Gpio, DoesWithoutInterrupts)
{
    ASSERT_EQ(collx_wires_open(&wires, "gpio:/dev/null,out=1,in=2", why, sizeof why), 0) << why;
    EXPECT_EQ(own.asked,
              (std::vector<uint64_t>{GPIO_V2_LINE_FLAG_OUTPUT,
                                     GPIO_V2_LINE_FLAG_INPUT | GPIO_V2_LINE_FLAG_EDGE_RISING |
                                         GPIO_V2_LINE_FLAG_EDGE_FALLING,
                                     GPIO_V2_LINE_FLAG_INPUT}));
    const uint64_t start = collx_clock_ns();
    EXPECT_EQ(wires.ops->wait_edge(wires.port, 20), 0);
    EXPECT_GE(collx_clock_ns() - start, 19000000u) << "it sleeps instead";
    collx_wires_close(&wires);
}

/* To see how long it takes; the kernel takes no write to no line. */
TEST_F(Gpio, WritesToNoLine)
{
    ASSERT_EQ(collx_wires_open(&wires, "gpio:/dev/null,out=1,in=2", why, sizeof why), 0) << why;
    EXPECT_EQ(collx_wires_set(&wires, 1, 1), 0);
    EXPECT_EQ(collx_wires_set(&wires, 0, 0), 0);
    EXPECT_EQ(own.levels, 1u);
    collx_wires_close(&wires);
}

TEST_F(Gpio, SaysWhoHasALine)
{
    own.taken = EBUSY;
    EXPECT_EQ(collx_wires_open(&wires, "gpio:/dev/null,out=1,in=2", why, sizeof why), -EBUSY);
    EXPECT_NE(std::string(why).find("`gpioinfo` says who has them"), std::string::npos) << why;
}

/* A parallel port, as ppdev answers for it; its device is /dev/null. */
struct Paper {
    uint8_t data, status = 0;
} * paper;

/* What else hangs on the data lines stays as it was found. */
TEST(Ppdev, LeavesOtherLinesAlone)
{
    Paper own = {0xa5};
    collx_wires wires;
    uint32_t levels;
    char why[512] = "";

    paper = &own;
    ASSERT_EQ(collx_wires_open(&wires, "ppdev:/dev/null,out=d1,in=paperout", why, sizeof why), 0)
        << why;
    EXPECT_EQ(own.data, 0xa5) << "nothing was set";
    EXPECT_EQ(collx_wires_set(&wires, 1, 1), 0);
    EXPECT_EQ(own.data, 0xa7);
    EXPECT_EQ(collx_wires_set(&wires, 1, 0), 0);
    EXPECT_EQ(own.data, 0xa5);
    EXPECT_EQ(collx_wires_get(&wires, &levels), 0);
    EXPECT_EQ(levels, 0u);
    own.status = PARPORT_STATUS_PAPEROUT;
    EXPECT_EQ(collx_wires_get(&wires, &levels), 0);
    EXPECT_EQ(levels, 1u);
    collx_wires_close(&wires);
    paper = nullptr;
}

/* A file that is no card's would be SIGBUS. */
TEST_F(Registers, AreInTheFile)
{
    collx_wires wires;
    const std::string spec = std::string("mmio:") + path;

    ASSERT_EQ(ftruncate(fd, 0), 0);
    EXPECT_EQ(collx_wires_open(&wires, spec.c_str(), why, sizeof why), -EINVAL);
    EXPECT_NE(std::string(why).find("is empty"), std::string::npos) << why;
}

int answer_for_paper(unsigned long request, void *argument)
{
    auto *byte = static_cast<uint8_t *>(argument);

    if (request == PPRDATA)
        *byte = paper->data;
    else if (request == PPWDATA)
        paper->data = *byte;
    else if (request == PPRSTATUS)
        *byte = paper->status;
    return 0;
}

int answer(unsigned long request, void *argument)
{
    auto *lines = static_cast<gpio_v2_line_request *>(argument);

    if (request == GPIO_V2_GET_LINE_IOCTL) {
        const uint64_t flags = lines->config.flags;
        chip->asked.push_back(flags);
        errno = flags & GPIO_V2_LINE_FLAG_INPUT ? chip->taken : 0;
        if (flags & GPIO_V2_LINE_FLAG_EDGE_RISING && !errno)
            errno = ENXIO;
        lines->fd = errno ? -1 : eventfd(0, EFD_CLOEXEC);
    } else if (request == GPIO_V2_LINE_SET_VALUES_IOCTL ||
               request == GPIO_V2_LINE_GET_VALUES_IOCTL) {
        auto *values = static_cast<gpio_v2_line_values *>(argument);
        errno = values->mask ? 0 : EINVAL;
        if (request == GPIO_V2_LINE_SET_VALUES_IOCTL)
            chip->levels = (chip->levels & ~values->mask) | (values->bits & values->mask);
        else
            values->bits = chip->levels & values->mask;
    } else {
        errno = ENOTTY;
    }
    return errno ? -1 : 0;
}

} // namespace

/* The linker puts it in the place of ioctl(). */
extern "C" int __real_ioctl(int fd, unsigned long request, ...);
extern "C" int __wrap_ioctl(int fd, unsigned long request, void *argument)
{
    return chip    ? answer(request, argument)
           : paper ? answer_for_paper(request, argument)
                   : __real_ioctl(fd, request, argument);
}
