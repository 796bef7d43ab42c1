/* Errors of SISCI, thrown inside of the stand-in. */
#ifndef COLLX_TESTS_SISCI_ERRORS_H
#define COLLX_TESTS_SISCI_ERRORS_H

namespace standin
{

constexpr unsigned ERROR_BUSY = 0x40000900;
constexpr unsigned ERROR_ILLEGAL_FLAG = 0x40000902;
constexpr unsigned ERROR_NO_SUCH_ADAPTER = 0x40000909;
constexpr unsigned ERROR_OUT_OF_RANGE = 0x4000090b;
constexpr unsigned ERROR_NO_SUCH_SEGMENT = 0x4000090c;
constexpr unsigned ERROR_SEGMENTID_USED = 0x40000918;
constexpr unsigned ERROR_NO_MEMORY = 0x400009ff;

struct Error {
    unsigned code;
};

} // namespace standin

#endif
