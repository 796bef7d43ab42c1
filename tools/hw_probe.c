/* `collx hw probe`: which ports there are, who may use them, and how fast they are. */
#include "tools/hw.h"
#include "tools/tools.h"

#include "hw/board.h"

#include <argp.h>
#include <glob.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct request {
    const char *specs[64];
    unsigned count;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct request *request = state->input;

    if (key != ARGP_KEY_ARG)
        return ARGP_ERR_UNKNOWN;
    if (request->count == sizeof request->specs / sizeof *request->specs)
        argp_error(state, "too many SPECs");
    request->specs[request->count++] = arg;
    return 0;
}

/* A spec that was given: open it, and measure.  Whether it can be used. */
static bool probe_spec(const char *spec)
{
    struct collx_wires wires;
    struct collx_hw_cost cost;
    struct collx_board board;
    char why[512];

    printf("%s\n", spec);
    if (collx_wires_open(&wires, spec, why, sizeof why)) {
        printf("  no: %s\n", why);
        return false;
    }
    int error = collx_hw_measure(&wires, &cost);
    if (error) {
        printf("  no: it cannot be read or written: %s\n", strerror(-error));
    } else {
        printf("  a write takes %.2f us, a read %.2f us; so a barrier at least %.2f us\n",
               cost.write / 1e3, cost.read / 1e3, (cost.write + cost.read) / 1e3);
        if (wires.spec.channels && !collx_board_identify(&wires, &board))
            printf("  a board with %u channels for %u nodes; this is node %u\n", board.channels,
                   board.nodes, board.self);
        else if (wires.spec.channels)
            printf("  no board with channels answers; `collx hw test %s` finds out why\n", spec);
    }
    collx_wires_close(&wires);
    return !error;
}

/* "crw-rw---- root lp" */
static void print_owner(const char *path)
{
    struct stat status;

    if (stat(path, &status))
        return;
    const struct passwd *user = getpwuid(status.st_uid);
    const struct group *group = getgrgid(status.st_gid);
    printf("  owner %s, group %s, mode %03o: %s\n", user ? user->pw_name : "?",
           group ? group->gr_name : "?", (unsigned)status.st_mode & 0777,
           access(path, R_OK | W_OK) ? "you may not use it" : "you may use it");
}

/* What there is without being told: devices by name.  Only parallel ports are opened, for writing
 * what is there already does nothing to them; of others nobody has said which pins are ours. */
static unsigned probe_devices(const char *driver, const char *pattern, const char *if_none,
                              bool try)
{
    glob_t found;
    unsigned usable = 0;

    if (glob(pattern, 0, NULL, &found)) {
        printf("%s: no %s; %s\n", driver, pattern, if_none);
        return 0;
    }
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char spec[300];

        snprintf(spec, sizeof spec, "%s:%s", driver, found.gl_pathv[i]);
        if (try)
            usable += probe_spec(spec);
        else
            printf("%s\n", spec);
        print_owner(found.gl_pathv[i]);
    }
    globfree(&found);
    return usable;
}

/* "  0378-037a : parport0", which says so to root alone; the registers of EPP, from 037b, are
 * another line. */
static void probe_addresses(void)
{
    FILE *file = fopen("/proc/ioports", "re");
    char line[256];
    unsigned first, last;

    while (file && fgets(line, sizeof line, file))
        if (strstr(line, "parport") && sscanf(line, " %x-%x", &first, &last) == 2 &&
            (first == 0x3bc || (first && first % 8 == 0)))
            printf("ioport:%#x\n  %s\n", first,
                   geteuid() ? "for root, faster than ppdev" : "faster than ppdev: you are root");
    if (file)
        fclose(file);
}

int collx_hw_probe_main(int argc, char **argv)
{
    static const struct argp argp = {
        .parser = parse,
        .args_doc = "[SPEC...]",
        .doc = "Say which ports there are for the hardware barrier, who may use them, and how long "
               "a write and a read take; or that of SPECs alone.\v"
               "It writes what is there already: no wire changes."};
    struct request request = {.count = 0};
    unsigned usable = 0;

    argp_parse(&argp, argc, argv, 0, NULL, &request);
    for (unsigned i = 0; i < request.count; i++)
        usable += probe_spec(request.specs[i]);
    if (request.count)
        return usable == request.count ? COLLX_EXIT_GOOD : COLLX_EXIT_BAD;
    usable = probe_devices("ppdev", "/dev/parport*",
                           "`modprobe -a parport_pc ppdev` makes them, if there is a port", true);
    probe_addresses();
    probe_devices("gpio", "/dev/gpiochip*", "this machine has no GPIO chip with a driver", false);
    probe_devices("mmio", "/dev/uio*", "no card has a driver of UIO's", false);
    printf("%u parallel port%s can be used\n", usable, usable == 1 ? "" : "s");
    return usable ? COLLX_EXIT_GOOD : COLLX_EXIT_BAD;
}
