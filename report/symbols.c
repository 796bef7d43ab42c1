#include "report/symbols.h"

#include "base/log.h"

#include <ctype.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* From the C++ runtime, which has no C header for it. */
char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status);

struct module {
    bool tried;
    Dwfl_Module *dwfl; /* NULL: not there, or another one than ran */
};

struct site {
    bool tried;
    struct collx_symbol symbol;
    char *module, *function, *file; /* as in the symbol, and safe to print */
};

struct collx_symbols {
    const struct collx_summary *summary;
    Dwfl *dwfl;
    struct module *modules;
    struct site *sites;
};

static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
    .section_address = dwfl_offline_section_address,
};

struct collx_symbols *collx_symbols_create(const struct collx_summary *summary)
{
    struct collx_symbols *symbols = calloc(1, sizeof *symbols);

    if (!symbols)
        return NULL;
    /* libdw asks the servers named there, over the network, for every module without debug
     * information. */
    unsetenv("DEBUGINFOD_URLS");
    symbols->summary = summary;
    symbols->dwfl = dwfl_begin(&callbacks);
    symbols->modules = calloc(summary->modules_count + 1, sizeof *symbols->modules);
    symbols->sites = calloc(summary->sites_count + 1, sizeof *symbols->sites);
    if (!symbols->dwfl || !symbols->modules || !symbols->sites) {
        collx_symbols_destroy(symbols);
        return NULL;
    }
    return symbols;
}

/* A descriptor of what is there under the name of a program, if that is a file: traces may be old,
 * and libdw would wait for somebody to write to a pipe.  -1: it is none. */
static int open_module(const char *path)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat facts;

    if (fd >= 0 && (fstat(fd, &facts) || !S_ISREG(facts.st_mode))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static Dwfl_Module *module_of(struct collx_symbols *symbols, uint32_t number)
{
    const struct collx_report_module *from = &symbols->summary->modules[number];
    struct module *module = &symbols->modules[number];
    const unsigned char *build_id;
    GElf_Addr address;

    if (module->tried || !*from->path)
        return module->dwfl;
    module->tried = true;
    int fd = open_module(from->path);
    if (fd < 0)
        return NULL;
    dwfl_report_begin_add(symbols->dwfl);
    Dwfl_Module *found = dwfl_report_offline(symbols->dwfl, from->path, from->path, fd);
    dwfl_report_end(symbols->dwfl, NULL, NULL);
    if (!found) {
        close(fd); /* it is taken over only if all goes well */
        return NULL;
    }
    GElf_Addr bias;
    if (!dwfl_module_getelf(found, &bias))
        return NULL;
    int size = dwfl_module_build_id(found, &build_id, &address);
    /* Without a build-id on either side there is nothing to tell a rebuilt program by. */
    if (from->build_id_size && size > 0 &&
        ((size_t)size != from->build_id_size || memcmp(build_id, from->build_id, (size_t)size)))
        return NULL;
    if (!from->build_id_size != (size <= 0))
        return NULL;
    return module->dwfl = found;
}

/* "operator<" and "operator()" open nothing. */
static char *past_operator(const char *name, char *at)
{
    static const char word[] = "operator";

    if (strncmp(at, word, sizeof word - 1) ||
        (at > name && (isalnum((unsigned char)at[-1]) || at[-1] == '_')))
        return at;
    at += sizeof word - 1;
    return at + (strncmp(at, "()", 2) ? strspn(at, "<=>-") : 2);
}

/* Behind what `at` opens, and what says more of a function. */
static char *past_parameters(char *at)
{
    static const char more[] = " const";
    int depth = 0;

    do {
        depth += *at == '(';
        depth -= *at == ')';
        at += *at != 0;
    } while (depth && *at);
    return at + (strncmp(at, more, sizeof more - 1) ? 0 : sizeof more - 1);
}

/* A name as people write it: without the parameters that C++ puts into it.  Not those of a function
 * that a lambda is in, nor those of the lambda, which tell it from others. */
static char *readable(const char *name)
{
    int status;
    char *plain = __cxa_demangle(name, NULL, NULL, &status);

    if (!plain)
        return strdup(name);
    int depth = 0;
    for (char *at = plain; *at; at++) {
        at = past_operator(plain, at);
        depth += *at == '<' || *at == '{';
        depth -= (*at == '>' || *at == '}') && depth;
        if (*at == '(' && !depth) {
            char *end = past_parameters(at);
            if (strncmp(end, "::", 2))
                *at = 0;
            else
                at = end;
        }
        if (!*at)
            break;
    }
    return plain;
}

/* The source file of what is at `address`, and the line there; NULL: nothing tells.  Owned by the
 * module. */
static const char *source_of(Dwfl_Module *module, GElf_Addr address, int *line)
{
    Dwfl_Line *found = dwfl_module_getsrc(module, address);
    if (found)
        return dwfl_lineinfo(found, NULL, line, NULL, NULL, NULL);

    /* Clang, and who makes compilers of it, leaves out the table of the addresses of all units
     * (.debug_aranges), without which libdw before 0.191 finds none of them. */
    GElf_Addr bias;
    for (Dwarf_Die *unit = NULL; (unit = dwfl_module_nextcu(module, unit, &bias));)
        if (dwarf_haspc(unit, address - bias) > 0) {
            Dwarf_Line *at = dwarf_getsrc_die(unit, address - bias);
            return !at || dwarf_lineno(at, line) ? NULL : dwarf_linesrc(at, NULL, NULL);
        }
    return NULL;
}

struct collx_symbol collx_symbols_find(struct collx_symbols *symbols, uint32_t number)
{
    const struct collx_summary *summary = symbols->summary;
    struct site *site = &symbols->sites[number];

    if (number >= summary->sites_count)
        return (struct collx_symbol){.module = ""};
    if (site->tried)
        return site->symbol;
    site->tried = true;
    const struct collx_report_site *from = &summary->sites[number];
    site->module = strdup(summary->modules[from->module].path);
    if (site->module)
        collx_text_clean(site->module, '?');
    site->symbol =
        (struct collx_symbol){.module = site->module ? site->module : "", .offset = from->offset};
    Dwfl_Module *module = module_of(symbols, from->module);
    GElf_Addr bias;
    if (!module || !from->offset || !dwfl_module_getelf(module, &bias))
        return site->symbol;

    /* The call is the instruction before the one that it returns to. */
    GElf_Addr address = from->offset - 1 + bias;
    const char *name = dwfl_module_addrname(module, address);
    if (name && (site->function = readable(name))) {
        collx_text_clean(site->function, '?');
        site->symbol.function = site->function;
    }
    int line = 0;
    const char *file = source_of(module, address, &line);
    if (file && (site->file = strdup(file))) {
        collx_text_clean(site->file, '?');
        site->symbol.file = site->file;
        site->symbol.line = line;
    }
    return site->symbol;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

void collx_symbol_print(const struct collx_symbol *symbol, char *text, size_t size)
{
    if (symbol->function && symbol->file)
        snprintf(text, size, "%s (%s:%d)", symbol->function, base_name(symbol->file), symbol->line);
    else if (symbol->function)
        snprintf(text, size, "%s (%s)", symbol->function, base_name(symbol->module));
    else if (*symbol->module)
        snprintf(text, size, "%s+0x%llx", base_name(symbol->module),
                 (unsigned long long)symbol->offset);
    else
        snprintf(text, size, "unknown");
}

void collx_symbols_destroy(struct collx_symbols *symbols)
{
    if (!symbols)
        return;
    for (uint32_t i = 0; symbols->sites && i < symbols->summary->sites_count; i++) {
        free(symbols->sites[i].module);
        free(symbols->sites[i].function);
        free(symbols->sites[i].file);
    }
    if (symbols->dwfl)
        dwfl_end(symbols->dwfl);
    free(symbols->modules);
    free(symbols->sites);
    free(symbols);
}
