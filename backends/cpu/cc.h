/*
 * The system's C compiler as the compiler of kernels: the device `cpu:cc`. C11 text
 * (jit/render/render_c.h) goes to a temporary folder, the compiler makes a shared object of it, which is
 * opened; then the folder is removed. Which compiler is the setting `cc`: a program and options,
 * split at blanks; no shell sees it. The options come after ours, so they win.
 *
 * In everything but compilation the device is `cpu`. Compilations may run at the same time.
 */
#ifndef DC_BACKENDS_CPU_CC_H
#define DC_BACKENDS_CPU_CC_H

#include "core/runtime/device.h"

typedef struct dc_cc {
    char command[sizeof((dc_opts *)0)->cc];
    char folder[sizeof((dc_opts *)0)->tmp]; /* that temporary ones are made in */
    const char *march;                      /* of the compiler */
    atomic_bool late;                       /* it did not end in time: it is not started again */
} dc_cc;

/*
 * Entries in entry[], as many as src has, and what they live in. DEVICE when the compiler cannot be
 * run, BUILD with its words when it refuses, or did not end within DEEPC_COMPILE_SECONDS; it is ended then, as it
 * is when the job is cancelled, with all processes that it has started.
 */
dc_status dc_cc_compile(dc_cc *cc, dc_job *j, const dc_source *src, void **entry,
                        void **library);

/*
 * The same in two halves (dc_device_ops.translate): the shared object as bytes in the scratch arena;
 * bytes that are written to a temporary folder again and opened. And what the bytes depend on.
 */
dc_status dc_cc_translate(dc_cc *cc, dc_job *j, const dc_source *src, const void **object,
                          size_t *bytes);
dc_status dc_cc_load(dc_cc *cc, dc_job *j, const dc_source *src, const void *object,
                     size_t bytes, void **entry, void **library);
void dc_cc_settings(const dc_cc *cc, dc_text *out);
bool dc_cc_toolchain(const dc_cc *cc, dc_text *out);
void dc_cc_unload(void *library);

/* One line, "cc: cc (Debian 12.2.0-14) 12.2.0", or why there is none; false then. */
bool dc_cc_probe(const char *command, char *line, size_t size);

#endif
