/*
 * Which compiler would make the code, without opening it: the file it is in, with its size and date.
 * What the cache on disk asks; see dc_device_ops.toolchain.
 */
#ifndef DC_BACKENDS_CPU_TOOLCHAIN_H
#define DC_BACKENDS_CPU_TOOLCHAIN_H

#include "core/base/job.h"

/* The usual names of the library, the best known first; NULL at the end. */
extern const char *const dc_toolchain_llvm[];

/*
 * The file of LLVM: `wanted`, or the first usual name that is in a folder where the system looks
 * for libraries. False: it is not there, or elsewhere, where only opening finds it.
 */
bool dc_toolchain_find_llvm(const char *wanted, char *path, size_t size);

/* The file of a program, by PATH. */
bool dc_toolchain_find_program(const char *name, char *path, size_t size);

/* What the processor says of itself, as far as compilers look at it. */
void dc_toolchain_put_processor(dc_text *out);

#endif
