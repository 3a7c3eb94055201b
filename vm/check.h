/*
 * `deepc check FILE`: a script is run without a device, so that its typed functions are traced and
 * checked, and what is wrong is listed.
 *
 *   train.lua:15: DC0301: matmul: inner dims differ: axis 3 = 28 against axis 1 = 784
 *     hint: 28 * 28 = 784; :flatten(2) first?
 */
#ifndef DC_VM_CHECK_H
#define DC_VM_CHECK_H

#include <lua.h>

#include <stdbool.h>

int dc_check_main(int argc, char **argv); /* behind the word check */

/* ---- between check.c and check_lint.c --------------------------------------------------------- */

typedef struct dc_check dc_check;
typedef struct dc_lint dc_lint; /* what is suspicious in one file */

void dc_check_report(dc_check *c, const char *at, const char *code, const char *sentence,
                     const char *hint);

/* NULL where the file cannot be read. */
dc_lint *dc_lint_open(const char *path);
void dc_lint_close(dc_lint *l);
/* Does the line hold == or ~= beside a number? */
bool dc_lint_compares(const dc_lint *l, int line);
/* That line of the file is about to run, in the function of ar. */
void dc_lint_line(dc_lint *l, dc_check *c, lua_State *L, lua_Debug *ar);

#endif
