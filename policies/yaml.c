#include "policies/yaml.h"

#include "base/error.h"
#include "base/log.h"
#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void say(struct collx_yaml *yaml, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* What a message quotes is UTF-8, but may have been cut within a character: leave no part of one.
 */
static void mend_cuts(char *text)
{
    for (size_t length; *text; text += length ? length : 1) {
        length = collx_utf8_length(text);
        if (!length)
            *text = '?';
    }
}

static void say(struct collx_yaml *yaml, const char *format, ...)
{
    char message[2 * COLLX_WHY_MAX];
    va_list args;

    yaml->complaints++;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    mend_cuts(message);
    collx_text_clean(message, '?');
    yaml->report(yaml->ctx, message);
}

void collx_yaml_complain(struct collx_yaml *yaml, struct collx_mark mark, const char *format, ...)
{
    char text[COLLX_WHY_MAX];
    va_list args;

    if (yaml->complaints > COLLX_YAML_COMPLAINTS)
        return;
    if (yaml->complaints == COLLX_YAML_COMPLAINTS) {
        say(yaml, "%s: more is wrong; put this right first", yaml->path);
        return;
    }
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    say(yaml, "%s:%d:%d: %s", yaml->path, mark.line, mark.column, text);
}

/* The whole file, and a 0 behind it.  0 and its length; or -errno or COLLX_EINVALID, which was
 * said. */
static int read_file(struct collx_yaml *yaml, size_t *length)
{
    struct stat file;
    size_t have = 0;
    ssize_t got = 0;
    int error;
    /* Not blocking, for opening a pipe waits for its other end. */
    int fd = TEMP_FAILURE_RETRY(open(yaml->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));

    if (fd < 0 || fstat(fd, &file)) {
        error = -errno;
        say(yaml, "%s: cannot be read: %s", yaml->path, strerror(-error));
    } else if (!S_ISREG(file.st_mode)) {
        error = COLLX_EINVALID;
        say(yaml, "%s: is %s; a policy is an ordinary file", yaml->path,
            S_ISDIR(file.st_mode) ? "a folder" : "a device, a pipe or a socket");
    } else if (file.st_size > COLLX_YAML_BYTES) {
        error = COLLX_EINVALID;
        say(yaml, "%s: is too large for a policy; they have at most 128KiB", yaml->path);
    } else if (!(yaml->text = malloc(COLLX_YAML_BYTES + 1))) {
        error = -ENOMEM;
        say(yaml, "%s: cannot be read: out of memory", yaml->path);
    } else {
        /* What it has, not what it had: files in /proc say 0, others grow. */
        while (have <= COLLX_YAML_BYTES &&
               (got = TEMP_FAILURE_RETRY(
                    read(fd, yaml->text + have, COLLX_YAML_BYTES + 1 - have))) > 0)
            have += (size_t)got;
        error = got < 0 ? -errno : have > COLLX_YAML_BYTES ? COLLX_EINVALID : 0;
        if (got < 0)
            say(yaml, "%s: cannot be read: %s", yaml->path, strerror(-error));
        else if (error)
            say(yaml, "%s: is too large for a policy; they have at most 128KiB", yaml->path);
        else
            yaml->text[have] = '\0';
    }
    if (fd >= 0)
        close(fd);
    *length = have;
    return error;
}

static int say_no_memory(struct collx_yaml *yaml)
{
    say(yaml, "%s: cannot be read: out of memory", yaml->path);
    return -ENOMEM;
}

static void say_alias(struct collx_yaml *yaml, struct collx_mark mark)
{
    collx_yaml_complain(yaml, mark,
                        "*name is an alias in YAML, which a policy cannot use; put quotes "
                        "around what begins with *");
}

/* libfyaml stops at the first thing that is no YAML; that and its consequences are in the diag. */
static int say_no_yaml(struct collx_yaml *yaml)
{
    void *state = NULL;
    struct fy_diag_error *error = fy_diag_errors_iterate(yaml->diag, &state);

    if (!error)
        collx_yaml_complain(yaml, (struct collx_mark){1, 1}, "this is not YAML");
    else if (strcmp(error->msg, "invalid alias detected") == 0) /* it stands behind a * alone */
        say_alias(yaml, (struct collx_mark){error->line, error->column - 1});
    else
        collx_yaml_complain(yaml, (struct collx_mark){error->line, error->column},
                            "this is not YAML: %s", error->msg);
    return COLLX_EINVALID;
}

/* Whether a tab and what may begin an entry follow a colon. */
static bool is_tab_entry(const char *text)
{
    size_t blanks = strspn(text, " \t");

    return memchr(text, '\t', blanks) && text[blanks] && strchr("?:|>-", text[blanks]);
}

/* What libfyaml is not given.  It takes a byte of 0, and outside of scalars one that is not UTF-8,
 * for the end, and what comes after it would be lost without a word; in a directive the second
 * keeps it busy for ever.  Where a `? ` marks a key it reports such a tab, and frees the key twice
 * then; whether the one seen here marks any does not matter, for a space does as well. */
static int check_text(struct collx_yaml *yaml, size_t length)
{
    struct collx_mark mark = {1, 1};
    const char *at = yaml->text;
    bool explicit = false;

    for (size_t bytes; *at && (bytes = collx_utf8_length(at)); at += bytes) {
        explicit |= *at == '?' && (at[1] <= ' ' || at[1] > '~');
        if (explicit && *at == ':' && is_tab_entry(at + 1)) {
            collx_yaml_complain(yaml, mark, "behind this colon no tab can stand; write a space");
            return COLLX_EINVALID;
        }
        mark.column++;
        if (*at == '\n')
            mark = (struct collx_mark){mark.line + 1, 1};
    }
    if (at == yaml->text + length)
        return 0;
    collx_yaml_complain(yaml, mark, "this is not YAML: a byte of %#x; a policy is text in UTF-8",
                        (unsigned char)*at);
    return COLLX_EINVALID;
}

int collx_yaml_load(struct collx_yaml *yaml, struct fy_node **root)
{
    struct collx_mark top = {1, 1};
    struct fy_diag_cfg quiet;
    size_t length;
    int error = read_file(yaml, &length);

    if (!error)
        error = check_text(yaml, length);
    if (error)
        return error;
    fy_diag_cfg_default(&quiet);
    quiet.fp = NULL;
    quiet.level = FYET_ERROR;
    yaml->diag = fy_diag_create(&quiet);
    if (!yaml->diag)
        return say_no_memory(yaml);
    fy_diag_set_collect_errors(yaml->diag, true);
    struct fy_parse_cfg config = {.flags = FYPCF_DEFAULT_VERSION_1_2 | FYPCF_JSON_NONE |
                                           FYPCF_ALLOW_DUPLICATE_KEYS,
                                  .diag = yaml->diag};
    yaml->parser = fy_parser_create(&config);
    if (!yaml->parser || fy_parser_set_string(yaml->parser, yaml->text, length))
        return say_no_memory(yaml);

    yaml->document = fy_parse_load_document(yaml->parser);
    if (fy_parser_get_stream_error(yaml->parser))
        return say_no_yaml(yaml);
    *root = yaml->document ? fy_document_root(yaml->document) : NULL;
    if (!*root) {
        collx_yaml_complain(yaml, top, "the file says nothing; begin with version: 1");
        return COLLX_EINVALID;
    }
    struct fy_document *second = fy_parse_load_document(yaml->parser);
    if (second)
        fy_parse_document_destroy(yaml->parser, second);
    if (fy_parser_get_stream_error(yaml->parser))
        return say_no_yaml(yaml);
    if (second) {
        collx_yaml_complain(yaml, top, "there is more than one document (---); a policy is one");
        return COLLX_EINVALID;
    }
    return 0;
}

void collx_yaml_finish(struct collx_yaml *yaml)
{
    if (yaml->document)
        fy_parse_document_destroy(yaml->parser, yaml->document);
    if (yaml->parser)
        fy_parser_destroy(yaml->parser);
    fy_diag_destroy(yaml->diag);
    free(yaml->text);
}

struct collx_mark collx_yaml_mark(struct fy_node *node, struct collx_mark key)
{
    const struct fy_mark *mark = NULL;
    int sign = 0;

    /* A collection stands where the first thing in it stands. */
    while (node && !mark) {
        struct fy_node *inner = NULL;
        void *state = NULL;

        if (fy_node_is_scalar(node)) {
            struct fy_token *token = fy_node_get_scalar_token(node);
            enum fy_node_style style = fy_node_get_style(node);
            size_t length = 0;

            fy_node_get_scalar(node, &length);
            /* Of nothing libfyaml 0.8 has a token, too. */
            bool nothing = !length && style == FYNS_PLAIN;
            mark = token && !nothing ? fy_token_start_mark(token) : NULL;
            /* libfyaml's mark is behind the quote or the *. */
            sign =
                style == FYNS_SINGLE_QUOTED || style == FYNS_DOUBLE_QUOTED || style == FYNS_ALIAS;
        } else if (fy_node_is_mapping(node)) {
            struct fy_node_pair *pair = fy_node_mapping_iterate(node, &state);
            inner = pair ? fy_node_pair_key(pair) : NULL;
        } else {
            inner = fy_node_sequence_iterate(node, &state);
        }
        node = inner;
    }
    return mark ? (struct collx_mark){mark->line + 1, mark->column + 1 - sign} : key;
}

/* Whether it is one, which was said then. */
static bool is_alias(struct collx_yaml *yaml, struct fy_node *node, struct collx_mark mark)
{
    if (!node || !fy_node_is_alias(node))
        return false;
    say_alias(yaml, mark);
    return true;
}

bool collx_yaml_text(struct collx_yaml *yaml, struct fy_node *node, struct collx_mark key,
                     char *text, size_t size)
{
    struct collx_mark mark = collx_yaml_mark(node, key);
    size_t length = 0;
    const char *scalar;

    if (is_alias(yaml, node, mark))
        return false;
    if (node && !fy_node_is_scalar(node)) {
        collx_yaml_complain(yaml, mark, "one value has to stand here, not a list or keys");
        return false;
    }
    scalar = node ? fy_node_get_scalar(node, &length) : NULL;
    if (!scalar || length == 0) {
        collx_yaml_complain(yaml, mark, "nothing stands here; write a value or leave the key out");
        return false;
    }
    if (memchr(scalar, '\0', length)) {
        collx_yaml_complain(yaml, mark, "a character of number 0 cannot stand here");
        return false;
    }
    if (length >= size) {
        collx_yaml_complain(yaml, mark, "'%.20s…' is too long; %zu characters are possible", scalar,
                            size - 1);
        return false;
    }
    memcpy(text, scalar, length);
    text[length] = '\0';
    return true;
}

bool collx_yaml_is_mapping(struct collx_yaml *yaml, struct fy_node *node, struct collx_mark key,
                           const char *what, const char *form)
{
    struct collx_mark mark = collx_yaml_mark(node, key);

    if (node && fy_node_is_mapping(node))
        return true;
    if (!is_alias(yaml, node, mark))
        collx_yaml_complain(yaml, mark, "%s has to be %s", what, form);
    return false;
}

bool collx_yaml_is_list(struct collx_yaml *yaml, struct fy_node *node, struct collx_mark key,
                        const char *what, const char *form)
{
    struct collx_mark mark = collx_yaml_mark(node, key);

    if (node && fy_node_is_sequence(node))
        return true;
    if (!is_alias(yaml, node, mark))
        collx_yaml_complain(yaml, mark, "%s has to be %s", what, form);
    return false;
}

/* Whether a key of this mapping stands there already, before `pair`. */
static bool is_repeated(struct fy_node *mapping, const struct fy_node_pair *pair, const char *key)
{
    struct fy_node_pair *other;
    void *state = NULL;
    size_t length;

    while ((other = fy_node_mapping_iterate(mapping, &state)) && other != pair) {
        const char *text = fy_node_get_scalar(fy_node_pair_key(other), &length);

        if (text && length == strlen(key) && memcmp(text, key, length) == 0)
            return true;
    }
    return false;
}

bool collx_yaml_pair(struct collx_yaml *yaml, struct fy_node *mapping, void **state,
                     struct collx_pair *pair)
{
    struct collx_mark above = collx_yaml_mark(mapping, (struct collx_mark){1, 1});
    struct fy_node_pair *next;

    /* Ends where nothing more is told, so that a huge file does not take for ever. */
    while (yaml->complaints <= COLLX_YAML_COMPLAINTS &&
           (next = fy_node_mapping_iterate(mapping, state))) {
        struct fy_node *key = fy_node_pair_key(next);

        pair->value = fy_node_pair_value(next);
        pair->mark = collx_yaml_mark(key, above);
        if (!collx_yaml_text(yaml, key, above, pair->key, sizeof pair->key))
            continue;
        if (!is_repeated(mapping, next, pair->key))
            return true;
        collx_yaml_complain(yaml, pair->mark, "'%.40s' stands here twice; once is enough",
                            pair->key);
    }
    return false;
}

struct fy_node *collx_yaml_item(struct fy_node *list, void **state)
{
    if (list && fy_node_is_sequence(list))
        return fy_node_sequence_iterate(list, state);
    if (*state)
        return NULL;
    *state = list;
    return list;
}
