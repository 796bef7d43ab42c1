/* A policy file into a struct collx_policy. */
#include "policies/read.h"

#include "base/error.h"
#include "base/options.h"
#include "policies/match.h"
#include "policies/yaml.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Who has no `match` key says nothing about it. */
static const struct collx_rule any_rule = {COLLX_RULE_ANY};

/* Which of `words` a key is.  -1 if none, which was said. */
static int find_word(struct collx_yaml *yaml, struct collx_mark mark, const char *word,
                     const char *const *words, const char *where)
{
    struct collx_nearest nearest = {.word = word};
    char hint[COLLX_WHY_MAX / 2];

    for (int i = 0; words[i]; i++) {
        if (strcmp(word, words[i]) == 0)
            return i;
        collx_nearest_offer(&nearest, words[i]);
    }
    collx_yaml_complain(yaml, mark, "unknown key '%.40s' %s%s", word, where,
                        collx_nearest_hint(&nearest, hint, sizeof hint));
    return -1;
}

/* ---- match: ---- */

static int collective(const char *word, char *hint, size_t size)
{
    struct collx_nearest nearest = {.word = word};
    char text[COLLX_WHY_MAX / 2];

    for (unsigned kind = 0; kind < COLLX_KINDS; kind++) {
        const char *name = collx_kind_name(kind);
        if (strcmp(word, name) == 0) {
            if (kind < COLLX_ROUTED)
                return (int)kind;
            snprintf(hint, size,
                     "collx has no way of its own for '%s': it goes to the MPI library without a "
                     "rule; there are barrier, bcast and allreduce",
                     word);
            return -1;
        }
        if (kind < COLLX_ROUTED)
            collx_nearest_offer(&nearest, name);
    }
    snprintf(hint, size, "'%.40s' is not a collective%s", word,
             collx_nearest_hint(&nearest, text, sizeof text));
    return -1;
}

static int operation(const char *word, char *hint, size_t size)
{
    struct collx_nearest nearest = {.word = word};
    char text[COLLX_WHY_MAX / 2];

    for (unsigned op = COLLX_OP_NONE + 1; op < COLLX_OP_COUNT; op++) {
        if (strcmp(word, collx_op_name(op)) == 0)
            return (int)op;
        collx_nearest_offer(&nearest, collx_op_name(op));
    }
    snprintf(hint, size, "'%.40s' is not a reduction operation%s", word,
             collx_nearest_hint(&nearest, text, sizeof text));
    return -1;
}

/* One word or a list of them, as a set of bits. */
static void read_set(struct collx_yaml *yaml, struct fy_node *node, struct collx_mark key,
                     int (*find)(const char *word, char *hint, size_t size), uint32_t *set)
{
    char word[COLLX_PATTERN_MAX], hint[COLLX_WHY_MAX];
    struct fy_node *item;
    void *state = NULL;
    uint32_t found = 0;
    bool any = false;

    while ((item = collx_yaml_item(node, &state))) {
        struct collx_mark mark = collx_yaml_mark(item, key);

        any = true;
        if (!collx_yaml_text(yaml, item, key, word, sizeof word))
            continue;
        int bit = find(word, hint, sizeof hint);
        if (bit < 0)
            collx_yaml_complain(yaml, mark, "%s", hint);
        else if (found >> bit & 1)
            collx_yaml_complain(yaml, mark, "'%s' stands here twice; once is enough", word);
        else
            found |= 1u << bit;
    }
    if (!any)
        collx_yaml_complain(yaml, key, "this list is empty; leave the key out to match everything");
    if (found)
        *set = found;
}

static void read_range(struct collx_yaml *yaml, struct fy_node *node, struct collx_mark key,
                       enum collx_type type, int64_t min, struct collx_range *range)
{
    char text[COLLX_VALUE_MAX], why[COLLX_WHY_MAX];
    struct collx_range read;

    if (!collx_yaml_text(yaml, node, key, text, sizeof text))
        return;
    if (collx_range_parse(type, text, min, &read, why, sizeof why))
        collx_yaml_complain(yaml, collx_yaml_mark(node, key), "%s", why);
    else
        *range = read;
}

static void read_match(struct collx_yaml *yaml, struct fy_node *node, struct collx_mark key,
                       struct collx_rule *rule)
{
    enum { COLLECTIVE, COMM, RANKS, NODES, RANKS_PER_NODE, BYTES, OP };
    static const char *const keys[] = {"collective",     "comm",  "ranks", "nodes",
                                       "ranks_per_node", "bytes", "op",    NULL};
    struct collx_pair pair;
    void *state = NULL;

    if (!collx_yaml_is_mapping(yaml, node, key, "match", "keys, such as { bytes: ..8KiB }"))
        return;
    while (collx_yaml_pair(yaml, node, &state, &pair)) {
        switch (find_word(yaml, pair.mark, pair.key, keys, "in match")) {
        case COLLECTIVE:
            read_set(yaml, pair.value, pair.mark, collective, &rule->kinds);
            break;
        case COMM:
            if (!collx_yaml_text(yaml, pair.value, pair.mark, rule->comm, sizeof rule->comm))
                strcpy(rule->comm, "*");
            break;
        case RANKS:
            read_range(yaml, pair.value, pair.mark, COLLX_NUMBER, 1, &rule->ranks);
            break;
        case NODES:
            read_range(yaml, pair.value, pair.mark, COLLX_NUMBER, 1, &rule->nodes);
            break;
        case RANKS_PER_NODE:
            read_range(yaml, pair.value, pair.mark, COLLX_NUMBER, 1, &rule->node_ranks);
            break;
        case BYTES:
            read_range(yaml, pair.value, pair.mark, COLLX_SIZE, 0, &rule->bytes);
            break;
        case OP:
            read_set(yaml, pair.value, pair.mark, operation, &rule->ops);
            break;
        }
    }
}

/* ---- version:, options:, rules: ---- */

static void read_version(struct collx_yaml *yaml, struct fy_node *node, struct collx_mark key)
{
    char text[COLLX_VALUE_MAX];

    if (collx_yaml_text(yaml, node, key, text, sizeof text) && strcmp(text, "1") != 0)
        collx_yaml_complain(yaml, collx_yaml_mark(node, key),
                            "version '%s' is not known here; this collx reads version: 1", text);
}

static void read_options(struct collx_yaml *yaml, struct fy_node *node, struct collx_mark key,
                         struct collx_policy *policy)
{
    char value[sizeof policy->option[0].value], why[COLLX_WHY_MAX];
    struct collx_pair pair;
    void *state = NULL;

    if (!collx_yaml_is_mapping(yaml, node, key, "options", "keys, such as { stall: 60s }"))
        return;
    while (collx_yaml_pair(yaml, node, &state, &pair)) {
        if (!collx_yaml_text(yaml, pair.value, pair.mark, value, sizeof value))
            continue;
        if (collx_option_check(pair.key, value, why, sizeof why)) {
            collx_yaml_complain(yaml, pair.mark, "%s", why);
        } else if (policy->options < COLLX_POLICY_OPTIONS) {
            snprintf(policy->option[policy->options].word,
                     sizeof policy->option[policy->options].word, "%.*s", COLLX_NAME_MAX - 1,
                     pair.key);
            snprintf(policy->option[policy->options].value, sizeof value, "%s", value);
            policy->options++;
        }
    }
}

static void read_order(struct collx_yaml *yaml, struct fy_node *node, struct collx_mark key,
                       struct collx_rule *rule)
{
    static const char *const words[] = {
        [COLLX_ORDER_ANY] = "any", [COLLX_ORDER_RANK] = "rank", NULL};
    char word[COLLX_VALUE_MAX], hint[COLLX_WHY_MAX / 2];
    struct collx_nearest nearest = {.word = word};
    bool reduces = false;

    for (unsigned kind = 0; kind < COLLX_ROUTED; kind++)
        reduces |= (rule->kinds >> kind & 1) && collx_kind_reduces(kind);
    if (!reduces)
        collx_yaml_complain(yaml, key,
                            "'order' is about reductions, and none of the collectives of this rule "
                            "is one; leave it out");
    if (!collx_yaml_text(yaml, node, key, word, sizeof word))
        return;
    for (uint32_t i = 0; words[i]; i++) {
        if (strcmp(word, words[i]) == 0) {
            rule->order = i;
            return;
        }
        collx_nearest_offer(&nearest, words[i]);
    }
    collx_yaml_complain(yaml, collx_yaml_mark(node, key), "'%.40s' is not an order%s", word,
                        collx_nearest_hint(&nearest, hint, sizeof hint));
}

static void read_rule(struct collx_yaml *yaml, struct fy_node *node, struct collx_mark key,
                      struct collx_rule *rule)
{
    enum { MATCH, ORDER, USE };
    static const char *const keys[] = {"match", "order", "use", NULL};
    struct collx_pair pair, use = {.value = NULL}, order = {.value = NULL};
    struct collx_mark mark = collx_yaml_mark(node, key);
    bool has_use = false, has_order = false;
    void *state = NULL;

    *rule = any_rule;
    rule->line = (uint32_t)mark.line;
    if (!collx_yaml_is_mapping(yaml, node, key, "a rule", "keys: match, order and use"))
        return;
    while (collx_yaml_pair(yaml, node, &state, &pair)) {
        switch (find_word(yaml, pair.mark, pair.key, keys, "in a rule")) {
        case MATCH:
            read_match(yaml, pair.value, pair.mark, rule);
            break;
        case ORDER:
            order = pair;
            has_order = true;
            break;
        case USE:
            use = pair;
            has_use = true;
            break;
        }
    }
    /* Last, for what may be said depends on the collectives. */
    if (has_order)
        read_order(yaml, order.value, order.mark, rule);
    if (has_use)
        collx_use_read(yaml, use.value, use.mark, rule);
    else
        collx_yaml_complain(yaml, mark,
                            "this rule has no 'use'; say what runs, such as use: [shm, pmpi]");
}

static void read_rules(struct collx_yaml *yaml, struct fy_node *node, struct collx_mark key,
                       struct collx_policy *policy)
{
    struct fy_node *item;
    void *state = NULL;
    uint64_t good = 0;
    char why[COLLX_WHY_MAX];

    if (!collx_yaml_is_list(yaml, node, key, "rules", "a list, each beginning with '- '"))
        return;
    while ((item = collx_yaml_item(node, &state))) {
        struct collx_mark mark = collx_yaml_mark(item, key);
        unsigned before = yaml->complaints;
        uint32_t at = policy->rules;

        if (at == COLLX_POLICY_RULES) {
            collx_yaml_complain(yaml, mark, "too many rules; a policy has at most %d",
                                COLLX_POLICY_RULES);
            return;
        }
        read_rule(yaml, item, key, &policy->rule[at]);
        policy->rules++;
        /* What is wrong in itself is not measured against the others. */
        if (yaml->complaints != before)
            continue;
        if (collx_rule_check(policy, at, good, why, sizeof why))
            collx_yaml_complain(yaml, mark, "%s", why);
        else
            good |= 1ull << at;
    }
    if (policy->rules == 0)
        collx_yaml_complain(yaml, key,
                            "there are no rules; one that lets collx choose is "
                            "- use: [shm, pmpi]");
}

static void read_root(struct collx_yaml *yaml, struct fy_node *root, struct collx_policy *policy)
{
    enum { VERSION, OPTIONS, RULES };
    static const char *const keys[] = {"version", "options", "rules", NULL};
    struct collx_mark top = {1, 1};
    struct collx_pair pair;
    bool seen[3] = {false};
    void *state = NULL;

    if (!collx_yaml_is_mapping(yaml, root, top, "a policy", "keys: version, options and rules"))
        return;
    while (collx_yaml_pair(yaml, root, &state, &pair)) {
        int key = find_word(yaml, pair.mark, pair.key, keys, "in a policy");

        if (key >= 0)
            seen[key] = true;
        if (key == VERSION)
            read_version(yaml, pair.value, pair.mark);
        else if (key == OPTIONS)
            read_options(yaml, pair.value, pair.mark, policy);
        else if (key == RULES)
            read_rules(yaml, pair.value, pair.mark, policy);
    }
    if (!seen[VERSION])
        collx_yaml_complain(yaml, top, "there is no version; begin with version: 1");
    if (!seen[RULES])
        collx_yaml_complain(yaml, top,
                            "there are no rules; one that lets collx choose is "
                            "rules: [ use: [shm, pmpi] ]");
}

int collx_policy_read(const char *path, struct collx_policy *policy,
                      void (*report)(void *ctx, const char *message), void *ctx)
{
    struct collx_yaml yaml = {.path = path, .report = report, .ctx = ctx};
    struct fy_node *root;
    int keep = errno;

    memset(policy, 0, sizeof *policy);
    policy->version = COLLX_POLICY_VERSION;
    /* Of a path that is too long the end says more. */
    size_t length = strlen(path), room = sizeof policy->source - 1;
    snprintf(policy->source, sizeof policy->source, "%s",
             length > room ? path + length - room : path);

    int error = collx_yaml_load(&yaml, &root);
    if (!error) {
        read_root(&yaml, root, policy);
        error = yaml.complaints ? COLLX_EINVALID : 0;
    }
    collx_yaml_finish(&yaml);
    errno = keep;
    return error;
}

__attribute__((visibility("default"))) const struct collx_policy_reader collx_policy_reader = {
    .version = collx_policy_version,
    .read = collx_policy_read,
};
