/*
 * The prompt: what its files share. Lines come in (prompt_line.c, which edits them where there is a
 * terminal and libedit), pieces of Lua or commands go out (prompt.c, prompt_cmd.c), values are shown
 * (prompt_show.c).
 */
#ifndef DC_VM_PROGRAM_PROMPT_H
#define DC_VM_PROGRAM_PROMPT_H

#include "core/runtime/rt.h"

#include <lua.h>

typedef struct dc_lines dc_lines;

typedef struct dc_prompt {
    lua_State *L;
    dc_rt *rt;
    dc_lines *lines;
    bool terminal; /* both ends are */
    bool colour;
    bool told_local; /* that locals end with their piece */
    bool unwritten;  /* output was lost, and not by Ctrl-C */
    bool peak_known; /* the next two have been measured */
    double peak_gflops, peak_gbs;
} dc_prompt;

/* Until the input ends. The state has a context. Returns the exit status. */
int dc_prompt_run(lua_State *L, dc_rt *rt);

/* ---- pieces (prompt.c) ------------------------------------------------------------------------ */

/* Compiles text as an expression; the failure's text is on top then. */
int dc_prompt_load_expression(lua_State *L, const char *text);
/* Calls the function under its arguments; a failure is printed. Results stay on the stack. */
bool dc_prompt_call(dc_prompt *p, int narg);
/* What follows is not interrupted by the Ctrl-C of what was before. */
void dc_prompt_forget(dc_prompt *p);
/* Prints the error value on top and pops it. */
void dc_prompt_report(dc_prompt *p);
/* Begin and end of colours, "" without. */
const char *dc_prompt_dim(const dc_prompt *p);
const char *dc_prompt_red(const dc_prompt *p);
const char *dc_prompt_bold(const dc_prompt *p);
const char *dc_prompt_plain(const dc_prompt *p);

/* ---- commands (prompt_cmd.c) ------------------------------------------------------------------ */

/* ":time f(x)"; false: the prompt is to end. */
bool dc_prompt_command(dc_prompt *p, const char *line);
/* Names of commands by number, NULL at the end. */
const char *dc_prompt_command_name(int i);

/* ---- values (prompt_show.c) ------------------------------------------------------------------- */

/* Prints the n values on top, a line or more each; pops them. May raise. */
void dc_prompt_show(lua_State *L, int n);
/* Pushes the text of the table at idx: its fields, two levels deep. May raise. */
void dc_prompt_push_table(lua_State *L, int idx);
/* For Lua: is the argument a tensor or a cell? */
int dc_prompt_is_tensor(lua_State *L);
/* Pushes what :type says of the value at idx. */
void dc_prompt_push_type(lua_State *L, int idx);

/* ---- completion (prompt_complete.c) ----------------------------------------------------------- */

/*
 * Pushes a list of the words that the name before position `at` of the line may become, sorted;
 * returns where that name begins. Calls nothing of the script's. May raise.
 */
size_t dc_prompt_complete(lua_State *L, const char *line, size_t at);
/*
 * Replaces the value on top by its field, whose key is on top of it, through tables and metatables; false: it is not
 * to be known, and the key is popped.
 */
bool dc_prompt_get_field(lua_State *L);
/* Pushes a sorted list of the names of fields of the value at idx, its own and through its metatables. May raise. */
void dc_prompt_push_fields(lua_State *L, int idx);

/* ---- lines (prompt_line.c, prompt_edit.c) ----------------------------------------------------- */

typedef enum dc_line_end {
    DC_LINE_READ,
    DC_LINE_INTERRUPTED, /* Ctrl-C: what was typed is dropped */
    DC_LINE_END
} dc_line_end;

dc_lines *dc_lines_open(dc_prompt *p);
void dc_lines_close(dc_lines *l);
/* *out lives until the next call. `more`: the begin of a piece is there already. */
dc_line_end dc_lines_read(dc_lines *l, bool more, const char **out);
void dc_lines_remember(dc_lines *l, const char *piece);

/* Editing of lines; NULL where there is none. */
typedef struct dc_edit dc_edit;
/* The names of libedit, which the first prompt opens; none: built without. NULL at the end. */
extern const char *const dc_edit_libraries[];
/* NULL where the library is not there. */
dc_edit *dc_edit_open(dc_prompt *p);
void dc_edit_close(dc_edit *e);
dc_line_end dc_edit_read(dc_edit *e, bool more, const char **out);
void dc_edit_remember(dc_edit *e, const char *piece);

/* ---- history (prompt_history.c) --------------------------------------------------------------- */

/* The file; false: none is kept. */
bool dc_history_path(const dc_opts *opt, char *out, size_t size);
/* Calls see for each piece of the file, the oldest first. */
void dc_history_load(const char *path, void (*see)(void *ctx, const char *piece), void *ctx);
void dc_history_add(const char *path, const char *piece);

#endif
