/* Settings, read once from the environment by the table core/base/opt.def. */
#ifndef DC_CORE_BASE_OPT_H
#define DC_CORE_BASE_OPT_H

#include "core/base/base.h"

typedef struct dc_opts {
    struct dc_heap *heap; /* of the host, or one that counts (core/base/heap.h); NULL: malloc's */
    void *stream; /* of the host: where a device that shares does its work; NULL: one of its own */
    bool numbers; /* DEEPC_CHECK=nan, dc.check_numbers: stop where infinities and NaN are made */
    bool flush;   /* DEEPC_MATH=ftz, dc.flush_denormals: denormal numbers are zeros */
#define DC_OPT_FIELD_INT(id)  int64_t id;
#define DC_OPT_FIELD_CHECK(id) int64_t id;
#define DC_OPT_FIELD_SIZE(id) int64_t id;
#define DC_OPT_FIELD_TEXT(id) char id[256];
#define OPT(id, env, kind, dflt, help) DC_OPT_FIELD_##kind(id)
#include "core/base/opt.def"
} dc_opts;

/*
 * Defaults, then the environment. A value that cannot be read keeps the default; *bad then names
 * the variable (else NULL).
 */
void dc_opts_init(dc_opts *o, const char **bad);

/* May files be opened and processes started? */
bool dc_opts_files(const dc_opts *o);

/* Is `word` among those of DEEPC_MATH, which has several with commas? And are all of them known, each once? */
bool dc_opts_math(const dc_opts *o, const char *word);
bool dc_opts_math_known(const dc_opts *o);

/* What DEEPC_MACHINE says of one: bytes of caches, and cores, -1: nothing; instructions. False: it cannot be read. */
typedef struct dc_machine {
    int64_t l1, l2, l3, cores;
    char set[16]; /* any word; "": nothing */
} dc_machine;
bool dc_opts_machine(const dc_opts *o, dc_machine *out);

/* Is it a word that DEEPC_COMPILE may have? */
bool dc_opts_compile_known(const dc_opts *o);

/* What the variable has to be, for messages: "a whole number". */
const char *dc_opts_wants(const char *env);

/* The folder for temporary files and reports of bugs: TMPDIR, else /tmp. */
const char *dc_opts_temporary(void);

/* What is no setting of ours: HOME, TERM, NO_COLOR. "" where it is not set. */
const char *dc_opts_system(const char *name);

/* Calls see(variable, default, current, help) for each setting, in table order. */
void dc_opts_each(const dc_opts *o,
                  void (*see)(void *ctx, const char *env, const char *dflt, const char *now,
                              const char *help),
                  void *ctx);

#endif
