/* The collx command, as people type it. */
#ifndef COLLX_TESTS_CLI_H
#define COLLX_TESTS_CLI_H

#include <cstdio>
#include <string>
#include <sys/wait.h>

struct Outcome {
    int code = -1;
    std::string out; /* and what went to stderr */

    bool has(const std::string &text) const
    {
        return out.find(text) != std::string::npos;
    }
};

/* `environment collx arguments`, in a shell without any variable but a sanitizer's. */
inline Outcome run_collx(const std::string &arguments, const std::string &environment = "",
                         const std::string &collx = "'" COLLX_TEST_COMMAND "'")
{
    Outcome outcome;
    const std::string command = "env -i ${ASAN_OPTIONS:+\"ASAN_OPTIONS=$ASAN_OPTIONS\"}"
                                " ${UBSAN_OPTIONS:+\"UBSAN_OPTIONS=$UBSAN_OPTIONS\"} " +
                                environment + " " + collx + " " + arguments + " 2>&1";
    FILE *pipe = popen(command.c_str(), "re");
    char piece[4096];

    while (size_t got = pipe ? fread(piece, 1, sizeof piece, pipe) : 0)
        outcome.out.append(piece, got);
    int status = pipe ? pclose(pipe) : -1;
    if (WIFEXITED(status))
        outcome.code = WEXITSTATUS(status);
    return outcome;
}

#endif
