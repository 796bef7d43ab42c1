/* A process with one net, for tests of segments. */
#ifndef COLLX_TESTS_ALONE_H
#define COLLX_TESTS_ALONE_H

#include "tests/nodes.h"

#include "tests/sisci/standin.h"

extern "C" {
#include "hw/segment.h"
}

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>

inline bool has(const std::string &text, const std::string &part)
{
    return text.find(part) != std::string::npos;
}

/* Of the stand-in or another library. */
class Alone : public testing::Test
{
  protected:
    void set(Variables variables)
    {
        variables.insert(variables.begin(), {{"COLLX_SISCI_LIBRARY", COLLX_TEST_SISCI},
                                             {"COLLX_TEST_SISCI_FOLDER", folder.path}});
        environment.reset();
        environment = std::make_unique<Environment>(variables);
    }

    int open(const char *driver, Variables variables = {})
    {
        set(variables);
        ops = collx_seg_find(driver);
        return ops->open(&net, &caps, why, sizeof why);
    }

    int make(size_t bytes)
    {
        return ops->make(net, bytes, &own, &local, &address, why, sizeof why);
    }

    int connect(const collx_seg_address &to, size_t bytes, collx_remote **remote)
    {
        return ops->connect(net, &to, bytes, remote, why, sizeof why);
    }

    uint8_t check(collx_remote *remote)
    {
        uint8_t state = 99;
        last = ops->check(net, &remote, 1, &state);
        return state;
    }

    standin::Counts counts()
    {
        standin::Counts counts = {};
        void *library = dlopen(COLLX_TEST_SISCI, RTLD_NOW | RTLD_NOLOAD);
        auto *get = reinterpret_cast<void (*)(standin::Counts *)>(dlsym(library, STANDIN_COUNTS));
        get(&counts);
        dlclose(library);
        return counts;
    }

    Folder folder;
    std::unique_ptr<Environment> environment;
    const collx_seg_ops *ops = nullptr;
    collx_net *net = nullptr;
    collx_seg_caps caps = {};
    collx_export *own = nullptr;
    collx_seg_address address = {};
    void *local = nullptr;
    char why[512] = "";
    int last = 0;
};

#endif
