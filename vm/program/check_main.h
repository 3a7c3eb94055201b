/*
 * `deepc check FILE`: a script is run without a device, so that its typed functions are traced and
 * checked, and what is wrong is listed.
 *
 *   train.lua:15: DC0301: matmul: inner dims differ: axis 3 = 28 against axis 1 = 784
 *     hint: 28 * 28 = 784; :flatten(2) first?
 */
#ifndef DC_VM_PROGRAM_CHECK_MAIN_H
#define DC_VM_PROGRAM_CHECK_MAIN_H

#include "core/runtime/rt.h"

#include <lua.h>

int dc_check_main(int argc, char **argv); /* behind the word check */

/* The same for others that run scripts without effects. */
typedef struct dc_check_run {
    const char *device;  /* NULL: that of the settings */
    const char *seconds; /* how long, as a user writes it */
    int argc;
    char **argv;                            /* the file and what follows */
    bool json;                              /* problems as JSON (vm/program/check.h) */
    bool aside;                             /* problems go to stderr */
    void (*prepare)(dc_rt *rt, void *ctx);  /* before the script; NULL: nothing */
    int (*finish)(lua_State *L, void *ctx); /* after it, unless there were errors; may raise */
    void *ctx;
} dc_check_run;

int dc_check_script(const dc_check_run *run);

/* Nothing is computed, and yet a script is told the device that it would run on. */
void dc_check_name_device(dc_rt *rt);

#endif
