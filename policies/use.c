/* `use:`, the list of algorithms that a rule prefers, with their parameters. */
#include "base/error.h"
#include "policies/yaml.h"

#include <stdio.h>
#include <string.h>

/* What is written, before anybody knows whether there is such a thing. */
struct wish {
    struct collx_mark mark;
    char name[COLLX_PATTERN_MAX];
    unsigned params;
    struct {
        struct collx_mark mark;
        char name[COLLX_PATTERN_MAX], value[COLLX_PATTERN_MAX];
    } param[COLLX_PARAMS_MAX];
};

/* Copies what stands between two places, blanks at its ends left out. */
static void copy_trimmed(char to[COLLX_PATTERN_MAX], const char *from, const char *end)
{
    while (from < end && *from == ' ')
        from++;
    while (from < end && end[-1] == ' ')
        end--;
    snprintf(to, COLLX_PATTERN_MAX, "%.*s", (int)(end - from), from);
}

static bool add_param(struct collx_yaml *yaml, struct wish *wish, struct collx_mark mark)
{
    if (wish->params < COLLX_PARAMS_MAX) {
        wish->param[wish->params].mark = mark;
        return true;
    }
    collx_yaml_complain(yaml, mark, "too many parameters for %.40s; no algorithm has more than %d",
                        wish->name, COLLX_PARAMS_MAX);
    return false;
}

/* "nx" or "nx(n=6, mode=exchange)" */
static bool parse_wish(struct collx_yaml *yaml, const char *text, struct wish *wish)
{
    const char *open = strchr(text, '('), *close = strchr(text, ')');

    copy_trimmed(wish->name, text, open ? open : text + strlen(text));
    if (!open && !close)
        return true;
    if (!open || !close || close[1]) {
        collx_yaml_complain(yaml, wish->mark,
                            "'%.40s' is not right; parameters are written like nx(n=6)", text);
        return false;
    }
    for (const char *at = open + 1, *end; at < close; at = end + 1) {
        end = strpbrk(at, ",)");
        const char *equals = memchr(at, '=', (size_t)(end - at));

        if (!equals) {
            collx_yaml_complain(yaml, wish->mark,
                                "'%.*s' is not right; parameters are written like nx(n=6)",
                                (int)(end - at), at);
            return false;
        }
        if (!add_param(yaml, wish, wish->mark))
            return false;
        copy_trimmed(wish->param[wish->params].name, at, equals);
        copy_trimmed(wish->param[wish->params++].value, equals + 1, end);
    }
    return true;
}

/* "nx: { n: 6, mode: exchange }" */
static bool read_wish(struct collx_yaml *yaml, struct fy_node *node, struct wish *wish)
{
    struct collx_pair pair, param;
    void *state = NULL, *inner = NULL;

    if (!collx_yaml_pair(yaml, node, &state, &pair)) {
        if (fy_node_mapping_is_empty(node)) /* else something was said of what is there */
            collx_yaml_complain(yaml, wish->mark,
                                "an entry has to name an algorithm, such as nx: { n: 6 }");
        return false;
    }
    snprintf(wish->name, sizeof wish->name, "%s", pair.key);
    if (!collx_yaml_is_mapping(yaml, pair.value, pair.mark, wish->name,
                               "a name alone, or its parameters, such as nx: { n: 6 }"))
        return false;
    while (collx_yaml_pair(yaml, pair.value, &inner, &param)) {
        if (!add_param(yaml, wish, param.mark) ||
            !collx_yaml_text(yaml, param.value, param.mark, wish->param[wish->params].value,
                             sizeof wish->param[wish->params].value))
            return false;
        snprintf(wish->param[wish->params].name, sizeof param.key, "%s", param.key);
        wish->params++;
    }
    if (collx_yaml_pair(yaml, node, &state, &pair)) {
        collx_yaml_complain(yaml, pair.mark,
                            "one algorithm an entry; begin a new one with '- ' or a comma");
        return false;
    }
    return true;
}

static void say_unknown(struct collx_yaml *yaml, const struct wish *wish, uint32_t kinds)
{
    struct collx_nearest nearest = {.word = wish->name};
    char hint[COLLX_WHY_MAX / 2];
    bool exists = false;

    for (unsigned i = 0; collx_algorithms[i]; i++) {
        exists |= strcmp(collx_algorithms[i]->name, wish->name) == 0;
        if (kinds >> collx_algorithms[i]->kind & 1)
            collx_nearest_offer(&nearest, collx_algorithms[i]->name);
    }
    collx_nearest_offer(&nearest, "pmpi");
    collx_yaml_complain(yaml, wish->mark, "'%.40s' %s%s", wish->name,
                        exists ? "does none of the collectives of this rule"
                               : "is not an algorithm",
                        collx_nearest_hint(&nearest, hint, sizeof hint));
}

/* The value of a parameter.  0, or COLLX_EINVALID and why. */
static int parse_value(const struct collx_param *param, const char *text, int64_t *value, char *why,
                       size_t size)
{
    struct collx_nearest nearest = {.word = text};
    char hint[COLLX_WHY_MAX / 2];

    if (!param->words)
        return collx_value_parse(COLLX_NUMBER, text, param->min, param->max, value, why, size);
    for (int64_t i = 0; param->words[i]; i++) {
        if (strcmp(text, param->words[i]) == 0) {
            *value = i;
            return 0;
        }
        collx_nearest_offer(&nearest, param->words[i]);
    }
    snprintf(why, size, "'%.40s' is not right%s", text,
             collx_nearest_hint(&nearest, hint, sizeof hint));
    return COLLX_EINVALID;
}

/* Sets parameter number `p` of a wish wherever it exists. */
static bool set_param(struct collx_yaml *yaml, const struct wish *wish, unsigned p, uint32_t kinds,
                      struct collx_use *use)
{
    const char *name = wish->param[p].name;
    struct collx_nearest nearest = {.word = name};
    char why[COLLX_WHY_MAX];
    bool known = false;

    for (unsigned q = 0; q < p; q++)
        if (strcmp(wish->param[q].name, name) == 0) {
            collx_yaml_complain(yaml, wish->param[p].mark, "%s has '%s' twice; once is enough",
                                wish->name, name);
            return false;
        }
    for (unsigned kind = 0; kind < COLLX_ROUTED; kind++) {
        const struct collx_algorithm *algorithm =
            kinds >> kind & 1 ? collx_algorithm_find(kind, wish->name) : NULL;

        for (unsigned i = 0; algorithm && algorithm->params && algorithm->params[i].name; i++) {
            const struct collx_param *param = &algorithm->params[i];

            collx_nearest_offer(&nearest, param->name);
            if (strcmp(param->name, name) != 0)
                continue;
            known = true;
            if (parse_value(param, wish->param[p].value, &use->args[kind].value[i], why,
                            sizeof why)) {
                collx_yaml_complain(yaml, wish->param[p].mark, "%s of %s: %s", name, wish->name,
                                    why);
                return false;
            }
        }
    }
    if (!known)
        collx_yaml_complain(yaml, wish->param[p].mark, "%s has no parameter '%.40s'%s", wish->name,
                            name, collx_nearest_hint(&nearest, why, sizeof why));
    return known;
}

/* From what is written to what is meant. */
static bool resolve(struct collx_yaml *yaml, const struct wish *wish, uint32_t kinds,
                    struct collx_use *use)
{
    bool pmpi = strcmp(wish->name, "pmpi") == 0, known = pmpi, good = true;

    memset(use, 0, sizeof *use);
    for (unsigned kind = 0; kind < COLLX_ROUTED && !pmpi; kind++) {
        const struct collx_algorithm *algorithm =
            kinds >> kind & 1 ? collx_algorithm_find(kind, wish->name) : NULL;

        known |= algorithm != NULL;
        for (unsigned i = 0; algorithm && algorithm->params && algorithm->params[i].name; i++)
            use->args[kind].value[i] = algorithm->params[i].initial;
    }
    if (!known) {
        say_unknown(yaml, wish, kinds);
        return false;
    }
    snprintf(use->name, sizeof use->name, "%.*s", COLLX_NAME_MAX - 1, wish->name);
    for (unsigned p = 0; p < wish->params; p++)
        good &= set_param(yaml, wish, p, kinds, use);
    return good;
}

static void add_use(struct collx_yaml *yaml, const struct wish *wish, const struct collx_use *use,
                    struct collx_rule *rule)
{
    if (rule->uses > 0 && strcmp(rule->use[rule->uses - 1].name, "pmpi") == 0) {
        collx_yaml_complain(yaml, wish->mark,
                            "'%s' is never reached, for pmpi always runs; put it before pmpi",
                            wish->name);
        return;
    }
    for (uint32_t i = 0; i < rule->uses; i++)
        if (memcmp(&rule->use[i], use, sizeof *use) == 0) {
            collx_yaml_complain(yaml, wish->mark, "'%s' stands here twice; once is enough",
                                wish->name);
            return;
        }
    if (rule->uses == COLLX_POLICY_USES) {
        collx_yaml_complain(yaml, wish->mark, "too many algorithms; a rule has at most %d",
                            COLLX_POLICY_USES);
        return;
    }
    rule->use[rule->uses++] = *use;
}

/* Whether a text is the first piece of what YAML has split at a comma; *split stays true until its
 * last piece has gone by. */
static bool is_piece(struct collx_yaml *yaml, struct collx_mark mark, const char *text, bool *split)
{
    bool was = *split;

    if (was) {
        *split = !strchr(text, ')');
        return true;
    }
    if (!strchr(text, '(') || strchr(text, ')'))
        return false;
    collx_yaml_complain(yaml, mark,
                        "'%.40s' is cut off, for in YAML a comma separates entries; put quotes "
                        "around the whole, \"nx(n=6, mode=exchange)\", or write "
                        "nx: { n: 6, mode: exchange }",
                        text);
    *split = true;
    return true;
}

void collx_use_read(struct collx_yaml *yaml, struct fy_node *node, struct collx_mark key,
                    struct collx_rule *rule)
{
    struct fy_node *item;
    struct collx_use use;
    void *state = NULL;
    bool any = false, split = false;
    char text[2 * COLLX_PATTERN_MAX];

    while ((item = collx_yaml_item(node, &state))) {
        struct wish wish = {.mark = collx_yaml_mark(item, key)};

        any = true;
        if (fy_node_is_mapping(item)) {
            if (!read_wish(yaml, item, &wish))
                continue;
        } else if (!collx_yaml_text(yaml, item, key, text, sizeof text) ||
                   is_piece(yaml, wish.mark, text, &split) || !parse_wish(yaml, text, &wish)) {
            continue;
        }
        if (resolve(yaml, &wish, rule->kinds, &use))
            add_use(yaml, &wish, &use, rule);
    }
    if (!any)
        collx_yaml_complain(yaml, key, "'use' names nothing; say what runs, such as [shm, pmpi]");
}
