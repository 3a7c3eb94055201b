/*
 * Files to read, in the folder of DEEPC_DUMP: every kernel in all its forms, one file each.
 *
 *   NAME-HASH.txt   the nest as lowered, its schedule, the nest scheduled, the flat form, the text
 *                   for the device's compiler
 *
 * The hash is of the nest as lowered, the target and the settings that decide what becomes of it.
 * So a file keeps its name when rules or renderers change, and folders of two versions of deepc
 * can be compared with diff -r.
 */
#ifndef DC_JIT_COMPILE_DUMP_H
#define DC_JIT_COMPILE_DUMP_H

#include "jit/compile/codegen.h"

/* The folder is made if it is not there. FILE when it cannot be written to. */
dc_status dc_dump_open(dc_job *j, const char *folder);

/* A kernel that has been flattened. Its file is replaced whole, so readers of the folder see no partial one. */
dc_status dc_dump_kernel(dc_job *j, const dc_env *env, dc_entry *e);

#endif
