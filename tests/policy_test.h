/* What the tests of policies share: reading one from a text. */
#ifndef COLLX_POLICY_TEST_H
#define COLLX_POLICY_TEST_H

extern "C" {
#include "base/error.h"
#include "policies/read.h"
}

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

using Lines = std::vector<std::string>;

inline void keep_line(void *lines, const char *line)
{
    static_cast<Lines *>(lines)->push_back(line);
}

struct Reading {
    int result;
    Lines messages; /* the file's name is left out: "line:column: …" */
    std::shared_ptr<collx_policy> policy = std::make_shared<collx_policy>();
};

inline Reading read_file(const std::string &path)
{
    Reading reading;

    reading.result =
        collx_policy_read(path.c_str(), reading.policy.get(), keep_line, &reading.messages);
    for (std::string &message : reading.messages)
        if (message.compare(0, path.size() + 1, path + ":") == 0)
            message.erase(0, path.size() + 1);
    return reading;
}

inline Reading read_text(const std::string &text)
{
    char path[] = "/tmp/collx-policy-test-XXXXXX";
    int file = mkstemp(path);

    if (file < 0 || write(file, text.data(), text.size()) != (ssize_t)text.size())
        abort();
    close(file);
    Reading reading = read_file(path);
    unlink(path);
    return reading;
}

/* The only message about a policy of these rules, without those that have to be there. */
inline std::string complaint(const std::string &rules)
{
    Reading reading = read_text("version: 1\nrules:\n" + rules);

    if (reading.messages.empty())
        return reading.result == 0 ? "right" : "wrong without a message";
    std::string all;
    for (const std::string &message : reading.messages)
        all += (all.empty() ? "" : "\n") + message;
    return reading.result == COLLX_EINVALID ? all : "right in spite of " + all;
}

#endif
