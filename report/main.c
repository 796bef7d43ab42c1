#include "report/format.h"

#include "base/parse.h"

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* argp looks for it by name. */
__attribute__((visibility("default"))) const char *argp_program_version =
    "collx-report " COLLX_RELEASE;

static const struct collx_format *const formats[] = {&collx_format_text, &collx_format_csv,
                                                     &collx_format_json, NULL};

struct request {
    const char *words[2];
    const struct collx_format *format;
    struct collx_report_view view;
    bool top_given;
    struct collx_report_options options;
};

static const struct argp_option options[] = {
    {"format", 'f', "FORMAT", 0, "text (default), csv or json", 0},
    {"by", 'b', "KEYS", 0,
     "Group by these, separated by commas: collective, comm, size, route, site", 0},
    {"top", 'n', "N", 0,
     "Show the N rows that take most time; 0: all (default: 12 in text, else all)", 0},
    {"job", 'j', "ID", 0, "Which job, where the folder has traces of several (default: the newest)",
     0},
    {0},
};

static unsigned parse_by(const char *list, struct argp_state *state)
{
    static const struct {
        const char *word;
        unsigned bit;
    } keys[] = {{"collective", COLLX_BY_COLLECTIVE},
                {"comm", COLLX_BY_COMM},
                {"size", COLLX_BY_SIZE},
                {"route", COLLX_BY_ROUTE},
                {"site", COLLX_BY_SITE}};
    unsigned by = 0;

    for (;;) {
        size_t length = strcspn(list, ",");
        unsigned bit = 0;
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            if (strlen(keys[i].word) == length && !strncmp(keys[i].word, list, length))
                bit = keys[i].bit;
        if (!bit)
            argp_error(state, "--by: '%.*s' is none of collective, comm, size, route, site",
                       (int)length, list);
        by |= bit;
        if (!list[length])
            return by;
        list += length + 1;
    }
}

static size_t parse_top(const char *text, struct argp_state *state)
{
    char why[COLLX_WHY_MAX];
    int64_t value;

    if (collx_value_parse(COLLX_NUMBER, text, 0, INT64_MAX, &value, why, sizeof why))
        argp_error(state, "--top: %s", why);
    return (size_t)value;
}

static uint64_t parse_job(const char *text, struct argp_state *state)
{
    char *end;

    errno = 0;
    unsigned long long value = strtoull(text, &end, 16);
    /* By itself it takes blanks and signs, too. */
    if (errno || *end || !isxdigit((unsigned char)*text))
        argp_error(state, "--job: '%s' is not a hexadecimal number, as the report writes them",
                   text);
    return value;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct request *request = state->input;

    switch (key) {
    case 'f':
        request->format = NULL;
        for (const struct collx_format *const *format = formats; *format; format++)
            if (!strcmp((*format)->name, argument))
                request->format = *format;
        if (!request->format)
            argp_error(state, "--format: '%s' is none of text, csv, json", argument);
        return 0;
    case 'b':
        request->view.by = parse_by(argument, state);
        return 0;
    case 'n':
        request->view.top = parse_top(argument, state);
        request->top_given = true;
        return 0;
    case 'j':
        request->options.job = parse_job(argument, state);
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num >= 2)
            argp_error(state, "too many arguments: '%s'", argument);
        request->words[state->arg_num] = argument;
        return 0;
    case ARGP_KEY_END:
        if (!state->arg_num)
            argp_error(state, "give the folder that COLLX_TRACE named");
        if (state->arg_num == 2 && strcmp(request->words[0], "summary"))
            argp_error(state, "'%s' is no subcommand; there is: summary", request->words[0]);
        if (state->arg_num == 1 && !strcmp(request->words[0], "summary") && access("summary", F_OK))
            argp_error(state, "summary: give the folder that COLLX_TRACE named");
        return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

/* Those that tables may take. */
static int columns(void)
{
    enum { LEAST = 80, USUAL = 120 };
    const char *text = getenv("COLUMNS");
    const int told = text ? atoi(text) : 0;
    struct winsize size;

    if (told >= LEAST)
        return told;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_col < LEAST)
        return USUAL;
    return size.ws_col;
}

int main(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse,
        .args_doc = "[summary] DIR",
        .doc = "Say where the time of an MPI program went in its collectives.\vDIR is the folder "
               "that COLLX_TRACE named when the program ran.  A single trace file will do, too.\n\n"
               "Exit status: 0, everything could be read; 1, nothing could be shown; 2, shown, "
               "but some files are damaged, or belong to another job.",
    };
    struct request request = {.format = &collx_format_text};
    struct collx_summary *summary;
    char why[4096];

    argp_parse(&argp, argc, argv, 0, NULL, &request);
    if (!request.top_given)
        request.view.top = request.format->top;
    request.view.width = columns();
    request.options.progress = isatty(STDERR_FILENO);

    const char *path = request.words[1] ? request.words[1] : request.words[0];
    if (collx_summary_create(&summary, path, &request.options, why, sizeof why)) {
        fprintf(stderr, "collx-report: %s\n", why);
        return 1;
    }
    struct collx_symbols *symbols = collx_symbols_create(summary);
    int error = symbols ? request.format->print(stdout, summary, symbols, &request.view) : -ENOMEM;
    if (error)
        fprintf(stderr, "collx-report: %s\n", strerror(-error));
    else if (fflush(stdout) || ferror(stdout)) {
        error = -errno;
        fprintf(stderr, "collx-report: cannot write the report: %s\n", strerror(-error));
    }
    /* The text has them at its end. */
    for (uint32_t i = 0; request.format != &collx_format_text && i < summary->problems_count; i++)
        fprintf(stderr, "collx-report: %s\n", summary->problems[i]);
    int status = error ? 1 : summary->damaged ? 2 : 0;
    collx_symbols_destroy(symbols);
    collx_summary_destroy(summary);
    return status;
}
