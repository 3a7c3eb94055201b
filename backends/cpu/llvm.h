/*
 * LLVM, found at run time: IR text in, an ELF object out.
 *
 * An open LLVM belongs to the device that opened it; any number of threads may compile with it
 * at once. Each compilation has a context and a target machine of its own; machines are kept for
 * the next one. LLVM does not survive a failed malloc (docs/embedding.md).
 */
#ifndef DC_BACKENDS_CPU_LLVM_H
#define DC_BACKENDS_CPU_LLVM_H

#include "core/base/job.h"

typedef struct dc_llvm dc_llvm;

typedef struct dc_llvm_conf {
    const char *path; /* of the library; "" tries the usual names */
    const char *triple;
    const char *cpu;      /* as LLVM calls it; NULL: the host's, with the host's features */
    const char *features; /* of `cpu` beyond its own, or "" */
    const char *passes;   /* for experiments; NULL: the usual ones */
    int level;            /* of code generation, 0..3 */
} dc_llvm_conf;

/* DEVICE with every name that was tried and why it was refused. */
dc_status dc_llvm_open(dc_job *j, const dc_llvm_conf *conf, dc_llvm **out);
void dc_llvm_close(dc_llvm *l);

/*
 * The object lies in the scratch arena of the job. BUILD with the compiler's words, among them line
 * and column of the text.
 */
dc_status dc_llvm_compile(dc_llvm *l, dc_job *j, const char *text, const void **object,
                          size_t *bytes);

/* What objects depend on besides their text (dc_device_ops.settings, toolchain); opens nothing. */
void dc_llvm_settings(const dc_llvm_conf *conf, dc_text *out);
bool dc_llvm_toolchain(const dc_llvm_conf *conf, dc_text *out);

/* One line, "LLVM 19.1.7, /usr/lib/...", or why there is none; false then. Keeps nothing open. */
bool dc_llvm_probe(const char *path, char *line, size_t size);

#endif
