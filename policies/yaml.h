/* Inside the policy reader: libfyaml, with a place for everything and no word on stderr. */
#ifndef COLLX_YAML_H
#define COLLX_YAML_H

#include "policies/policy.h"

#include <libfyaml.h>

enum {
    /* A file larger than this is no policy.  With more, libfyaml can be kept busy for minutes: it
     * compares each anchor, and each tag, with all before. */
    COLLX_YAML_BYTES = 128 << 10,
    COLLX_YAML_COMPLAINTS = 50, /* told of one file; more help nobody */
};

/* Counted from 1, as editors do; a column is a character. */
struct collx_mark {
    int line, column;
};

struct collx_yaml {
    const char *path;
    void (*report)(void *ctx, const char *message);
    void *ctx;
    unsigned complaints;
    char *text;
    struct fy_diag *diag;
    struct fy_parser *parser;
    struct fy_document *document;
};

/* One pair of a mapping.  `value` may be NULL: nothing was written. */
struct collx_pair {
    char key[COLLX_PATTERN_MAX];
    struct collx_mark mark; /* of the key */
    struct fy_node *value;
};

/* Read yaml->path.  0 and the root of its only document; -errno or COLLX_EINVALID, which was said.
 * In any case finish() has to follow. */
int collx_yaml_load(struct collx_yaml *yaml, struct fy_node **root);
void collx_yaml_finish(struct collx_yaml *yaml);

/* "file:line:column: …" to report(). */
void collx_yaml_complain(struct collx_yaml *yaml, struct collx_mark mark, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Where a node stands; `key` (of the pair that it belongs to) for one that nothing was written
 * for. */
struct collx_mark collx_yaml_mark(struct fy_node *node, struct collx_mark key);

/* The text of a scalar.  False if it is something else, is empty or too long; that was said. */
bool collx_yaml_text(struct collx_yaml *yaml, struct fy_node *node, struct collx_mark key,
                     char *text, size_t size);

/* Whether a node is one; else "WHAT has to be FORM" was said. */
bool collx_yaml_is_mapping(struct collx_yaml *yaml, struct fy_node *node, struct collx_mark key,
                           const char *what, const char *form);
bool collx_yaml_is_list(struct collx_yaml *yaml, struct fy_node *node, struct collx_mark key,
                        const char *what, const char *form);

/* The next pair of a mapping; *state is NULL at first.  Keys that are no text, or stand there
 * twice, are passed over, and that was said. */
bool collx_yaml_pair(struct collx_yaml *yaml, struct fy_node *mapping, void **state,
                     struct collx_pair *pair);

/* The next item of a list; what is no list is a list of itself. */
struct fy_node *collx_yaml_item(struct fy_node *list, void **state);

/* Reads `use:` into a rule whose collectives are known. */
void collx_use_read(struct collx_yaml *yaml, struct fy_node *node, struct collx_mark key,
                    struct collx_rule *rule);

#endif
