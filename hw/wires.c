#include "hw/wires.h"

#include "base/clock.h"
#include "base/parse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct collx_wire_ops *find(const char *name, size_t length, char *why, size_t size)
{
    char text[32], hint[COLLX_WHY_MAX];
    struct collx_nearest nearest = {.word = text};

    snprintf(text, sizeof text, "%.*s", (int)length, name);
    for (unsigned i = 0; collx_wire_drivers[i]; i++) {
        if (strcmp(collx_wire_drivers[i]->name, text) == 0)
            return collx_wire_drivers[i];
        collx_nearest_offer(&nearest, collx_wire_drivers[i]->name);
    }
    snprintf(why, size, "'%s' is not a driver of wires%s", text,
             collx_nearest_hint(&nearest, hint, sizeof hint));
    return NULL;
}

static int number(const char *key, const char *text, unsigned long max, unsigned long *value,
                  char *why, size_t size)
{
    char *end;

    errno = 0;
    /* Nobody who pads numbers with zeros means octal ones. */
    *value = strtoul(text, &end, strncasecmp(text, "0x", 2) ? 10 : 16);
    if (*text >= '0' && *text <= '9' && !*end && !errno && *value <= max)
        return 0;
    snprintf(why, size, "%s=%s: a number from 0 to %lu is right", key, text, max);
    return -EINVAL;
}

/* One pin: "ack", "!busy", "17". */
static int parse_pin(const struct collx_wire_ops *ops, const char *key, const char *text,
                     uint16_t *pin, bool *inverted, char *why, size_t size)
{
    bool output = strcmp(key, "out") == 0;
    char names[160] = "";
    unsigned long value;

    *inverted = *text == '!';
    text += *inverted;
    if (!ops->pins) {
        int error = number(key, text, UINT16_MAX, &value, why, size);
        *pin = (uint16_t)value;
        return error;
    }
    for (const struct collx_wire_pin *named = ops->pins; named->name; named++) {
        if (named->output != output)
            continue;
        if (strcmp(named->name, text) == 0) {
            *pin = named->pin;
            *inverted ^= named->inverted;
            return 0;
        }
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", named->name);
    }
    snprintf(why, size, "%s=%s: there are %s", key, text, names);
    return -EINVAL;
}

/* The first `count` of "d0/d1/!d2"; there are no more if it is exact. */
static int parse_pins(const struct collx_wire_ops *ops, const char *key, const char *list,
                      unsigned first, unsigned count, bool exact, uint16_t *pins,
                      uint32_t *inverted, char *why, size_t size)
{
    char text[COLLX_WIRES_SPEC], *rest = text, *word;
    unsigned i = first;

    snprintf(text, sizeof text, "%s", list);
    while (i < first + count && (word = strsep(&rest, "/"))) {
        bool inverts;
        int error = parse_pin(ops, key, word, &pins[i], &inverts, why, size);
        if (error)
            return error;
        /* One channel's levels would be taken for another's, and release nodes early. */
        for (unsigned other = 0; other < i; other++)
            if (pins[other] == pins[i]) {
                snprintf(why, size, "%s=%s: each wire has a pin of its own, and %s is there twice",
                         key, list, word);
                return -EINVAL;
            }
        *inverted |= (uint32_t)inverts << i++;
    }
    if (i == first + count && !(exact && rest))
        return 0;
    snprintf(why, size, "%s=%s names %s wires than the %u that are needed", key, list,
             rest ? "more" : "fewer", count);
    return -EINVAL;
}

/* All pins of one direction: as they were said, else as they usually are. */
static int choose_pins(const struct collx_wire_ops *ops, const char *key, const char *said,
                       const char *usual, const char *usual_config, unsigned channels,
                       unsigned config, uint16_t *pins, uint32_t *inverted, char *why, size_t size)
{
    if (ops->flags & COLLX_WIRES_NUMBERED) {
        for (unsigned i = 0; i < channels + config; i++)
            pins[i] = (uint16_t)i;
        if (*said)
            snprintf(why, size, "%s has no pins to choose: leave out %s=", ops->name, key);
        return *said ? -EINVAL : 0;
    }
    if (*said)
        return parse_pins(ops, key, said, 0, channels + config, true, pins, inverted, why, size);
    if (!usual) {
        snprintf(why, size, "%s has no usual pins: %s=… has to name %u, with / between them",
                 ops->name, key, channels + config);
        return -EINVAL;
    }
    int error = parse_pins(ops, key, usual, 0, channels, false, pins, inverted, why, size);
    if (!error && config)
        error =
            parse_pins(ops, key, usual_config, channels, config, true, pins, inverted, why, size);
    return error;
}

/* "out=…,in=…": `text` is taken apart. */
static int parse_keys(char *text, struct collx_wire_spec *spec, const char **out, const char **in,
                      char *why, size_t size)
{
    char *word;

    while ((word = strsep(&text, ","))) {
        char *value = strchr(word, '=');
        unsigned long n = 0, m = 0;
        int error = 0;

        if (value)
            *value++ = 0;
        if (!value) {
            snprintf(why, size, "'%s': KEY=VALUE is right", word);
            error = -EINVAL;
        } else if (strcmp(word, "out") == 0) {
            *out = value;
        } else if (strcmp(word, "in") == 0) {
            *in = value;
        } else if (strcmp(word, "channels") == 0) {
            error = number(word, value, COLLX_WIRES_CHANNELS, &n, why, size);
            spec->channels = (unsigned)n;
        } else if (strcmp(word, "nodes") == 0) {
            error = number(word, value, COLLX_WIRES_NODES, &n, why, size);
            spec->nodes = (unsigned)n;
        } else if (strcmp(word, "node") == 0) {
            error = number(word, value, COLLX_WIRES_NODES - 1, &n, why, size);
            spec->node = (unsigned)n;
        } else if (strcmp(word, "registers") == 0) {
            char *second = strchr(value, '/');
            if (!second) {
                snprintf(why, size, "registers=%s: two offsets are right, OUT/IN", value);
                return -EINVAL;
            }
            *second++ = 0;
            error = number(word, value, UINT32_MAX, &n, why, size);
            if (!error)
                error = number(word, second, UINT32_MAX, &m, why, size);
            spec->out_register = (uint32_t)n;
            spec->in_register = (uint32_t)m;
        } else {
            struct collx_nearest nearest = {.word = word};
            static const char *const keys[] = {"channels", "in",  "node",
                                               "nodes",    "out", "registers"};
            char hint[COLLX_WHY_MAX];
            for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
                collx_nearest_offer(&nearest, keys[i]);
            snprintf(why, size, "'%s' is not a key%s", word,
                     collx_nearest_hint(&nearest, hint, sizeof hint));
            error = -EINVAL;
        }
        if (error)
            return error;
    }
    return 0;
}

int collx_wires_parse(const char *text, const struct collx_wire_ops **ops,
                      struct collx_wire_spec *spec, char *why, size_t size)
{
    char copy[COLLX_WIRES_SPEC], *rest = copy, *device;
    const char *out = "", *in = "";
    size_t length = strcspn(text, ":");

    *spec = (struct collx_wire_spec){.in_register = 4};
    if (strlen(text) >= sizeof copy) {
        snprintf(why, size, "a spec has %zu characters at most", sizeof copy - 1);
        return -EINVAL;
    }
    *ops = find(text, length, why, size);
    if (!*ops)
        return -EINVAL;
    strcpy(copy, text[length] ? text + length + 1 : "");
    device = strsep(&rest, ",");
    if (!*device && !(*ops)->device) {
        snprintf(why, size, "%s needs to know where: %s:DEVICE", text, (*ops)->name);
        return -EINVAL;
    }
    snprintf(spec->device, sizeof spec->device, "%s", *device ? device : (*ops)->device);
    int error = rest ? parse_keys(rest, spec, &out, &in, why, size) : 0;
    if (error)
        return error;

    unsigned channels = spec->channels ? spec->channels : 1;
    unsigned config_outs = spec->channels ? 2 : 0, config_ins = spec->channels ? 1 : 0;
    spec->outs = channels + config_outs;
    spec->ins = channels + config_ins;
    error = choose_pins(*ops, "out", out, (*ops)->out, (*ops)->config_out, channels, config_outs,
                        spec->out, &spec->out_inverted, why, size);
    if (!error)
        error = choose_pins(*ops, "in", in, (*ops)->in, (*ops)->config_in, channels, config_ins,
                            spec->in, &spec->in_inverted, why, size);
    return error;
}

int collx_wires_open(struct collx_wires *wires, const char *text, char *why, size_t size)
{
    *wires = (struct collx_wires){.port = NULL};
    *why = 0;
    int error = collx_wires_parse(text, &wires->ops, &wires->spec, why, size);
    if (!error)
        error = wires->ops->open(&wires->port, &wires->spec, why, size);
    if (error && !*why)
        snprintf(why, size, "cannot open %s: %s", text, strerror(-error));
    return error;
}

void collx_wires_close(struct collx_wires *wires)
{
    if (wires->port)
        wires->ops->close(wires->port);
    wires->port = NULL;
}

/* Orders what is in memory and what a device sees, either way.  x86 keeps it by itself; C's fences
 * (dmb ish) are for what CPUs share, and a device is farther out. */
static inline void device_fence(void)
{
#if defined(__aarch64__)
    __asm__ volatile("dmb osh" ::: "memory");
#endif
}

int collx_wires_set(struct collx_wires *wires, uint32_t mask, uint32_t levels)
{
    wires->writes++;
    /* What this node has stored, and read, before it tells the others that it has come.  The
     * partner is that of the others in collx_wires_get(), and the board between them. */
    device_fence();
    return wires->ops->set(wires->port, mask, levels ^ wires->spec.out_inverted);
}

int collx_wires_get(struct collx_wires *wires, uint32_t *levels)
{
    int error = wires->ops->get(wires->port, levels);

    /* Nothing that follows a barrier may have been read before the wire that ends it: pairs with
     * that in collx_wires_set(). */
    device_fence();
    wires->reads++;
    *levels ^= wires->spec.in_inverted;
    return error;
}

int collx_wires_settle(struct collx_wires *wires)
{
    if (wires->ops->settle) {
        int error = wires->ops->settle(wires->port);

        /* A read whose value nobody needs is not waited for: what tells others that the wires have
         * their levels could be seen before the card has answered. */
        device_fence();
        return error;
    }
    uint64_t start = collx_clock_ns();
    while (collx_clock_ns() - start < 1000)
        ;
    return 0;
}

uint32_t collx_wires_spread(const struct collx_wire_spec *spec, uint32_t value, uint32_t mask,
                            uint32_t levels)
{
    for (unsigned wire = 0; wire < spec->outs; wire++)
        if (mask >> wire & 1)
            value = (value & ~(1u << spec->out[wire])) | (levels >> wire & 1) << spec->out[wire];
    return value;
}

uint32_t collx_wires_gather(const struct collx_wire_spec *spec, uint32_t value)
{
    uint32_t levels = 0;

    for (unsigned wire = 0; wire < spec->ins; wire++)
        levels |= (value >> spec->in[wire] & 1) << wire;
    return levels;
}
