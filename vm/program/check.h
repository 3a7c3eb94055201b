/*
 * A script that is run without a device, so that its typed functions are traced and checked: what `deepc check` and
 * the language server make of it.
 *
 * The context compiles nothing, and calls of typed functions return zeros of the declared types (dc_rt.check). What
 * the script would do to the world, it does not (check_world.c). A loop over batches runs once. A function that does
 * not pass is a problem where it is defined, and the script goes on to the next one.
 */
#ifndef DC_VM_PROGRAM_CHECK_H
#define DC_VM_PROGRAM_CHECK_H

#include "core/runtime/rt.h"
#include "dsl/base/uses.h"
#include "vm/program/check_types.h"

#include <lua.h>

#include <stdatomic.h>

/* A line that has to do with a problem: where an operand comes from. */
typedef struct dc_check_related {
    char *file, *text; /* file: NULL where no line is known */
    int line;
} dc_check_related;

typedef enum dc_check_severity {
    DC_CHECK_ERROR,
    DC_CHECK_WARNING,
    DC_CHECK_NOTE
} dc_check_severity;

typedef struct dc_check_problem {
    dc_check_severity severity;
    char *file, *sentence;
    char *kind;  /* "DC0301", "syntax", "error", "warning", "note" */
    char *hint;  /* NULL: none */
    char *layer; /* "net.2 (nn.Linear 784 -> 10)", or NULL */
    char *word;  /* of the line, which it is about: an operation, a name; or NULL */
    int line;    /* 0: unknown */
    int number;  /* in the order of finding */
    DC_VEC(dc_check_related) related;
} dc_check_problem;

typedef struct dc_check {
    dc_rt *rt;
    const char *file;  /* the script, as its lines are named */
    uint64_t deadline; /* dc_clock_ns */
    uint32_t errors;
    atomic_bool stopped; /* by dc_stop, since its time is over; a signal handler says so */
    bool over; /* the script is to end: too long, os.exit, a function that did not pass is called */
    bool late, ended; /* too long; the script came to its end */
    dc_uses_watch watch;
    dc_check_types *types; /* what values of the script are, or NULL */
    DC_VEC(dc_check_problem) found;
    uint32_t held; /* functions that check_open.c has to look at */
    uint32_t made; /* results of operations, while it does */
} dc_check;

/* The script: a file, or its text under the name of a file. */
typedef struct dc_check_source {
    const char *file, *text; /* text: NULL: what is in the file */
    size_t n;
    int argc;
    char **argv; /* the file and what follows */
} dc_check_source;

/* The state, whose context is attached, becomes one of checks. May raise. */
void dc_check_prepare(lua_State *L, dc_check *c);
/* Runs the script; problems are in c->found, sorted by file and line. May raise. */
void dc_check_trace(lua_State *L, dc_check *c, const dc_check_source *s);
/* The error value on top is a problem; pops it. */
void dc_check_report(lua_State *L, dc_check *c, const char *kind);
void dc_check_sort(dc_check *c);
void dc_check_free(dc_check *c);

/* Of "train.lua:12" the line, where it is one of this file; else 0. */
int dc_check_line_of(const char *place, const char *file);

/* Of the state; NULL where there is none. */
dc_check *dc_check_of(lua_State *L);
/* Raises what ends the script. */
DC_NORETURN void dc_check_stop(lua_State *L);

/*
 * check_open.c: hold: the typed function on top was defined outside of traces. trace_open: the script is at its end; those
 * that nothing has traced are, for sizes that stand for any.
 */
void dc_check_hold(lua_State *L, dc_check *c);
void dc_check_trace_open(lua_State *L, dc_check *c, const dc_check_source *s);

/* check_world.c: functions of Lua's libraries that print, write files and run programs do nothing from now on. */
void dc_check_silence(lua_State *L);

/*
 * check_json.c: {"file": ..., "problems": [...]}; docs/editors.md describes it. text: of the script, to find columns;
 * NULL unknown.
 */
void dc_check_print_json(const dc_check *c, const char *text, size_t n, dc_text *out);
/* The list of problems alone. */
void dc_check_print_problems(const dc_check *c, const char *text, size_t n, dc_text *out);
/* A string of JSON; what is no UTF-8 becomes U+FFFD. */
void dc_check_print_string(dc_text *out, const char *s, size_t n);

#endif
