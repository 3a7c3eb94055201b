/*
 * Kernels in flat form from text, for tests of what interprets them.
 *
 *   dc_flat *f = flat_of(text);           parsed and verified; NULL after a failed check
 *   flat_runs(f, mem, positions)          interpreted; false, with flat_said(), after a failure
 */
#ifndef DC_TESTS_FLAT_RUN_H
#define DC_TESTS_FLAT_RUN_H

#include "jit/sim/flat_interp.h"

#include <math.h>
#include <string.h>

#include "tests/t.h"

static dc_opts flat_opt;
static dc_log flat_log;
static dc_job flat_job;
static char flat_text[700];

static inline void flat_open(void)
{
    const char *bad;
    dc_opts_init(&flat_opt, &bad);
    dc_job_init(&flat_job, &flat_opt, &flat_log);
}

static inline void flat_close(void)
{
    dc_job_fini(&flat_job);
}

/* The sentence of the last failure, which is forgotten. */
static inline const char *flat_said(void)
{
    dc_err_render(&flat_job.err, 0, flat_text, sizeof flat_text);
    flat_job.err = (dc_err){0};
    return flat_text;
}

static inline bool flat_says(const char *part)
{
    const char *said = flat_said();
    if (CHECK(strstr(said, part) != NULL))
        return true;
    printf("    '%s' says nothing of '%s'\n", said, part);
    return false;
}

static inline dc_flat *flat_of(const char *text)
{
    dc_flat *f = NULL;
    if (CHECK(dc_flat_parse(&flat_job, &text, &f) == DC_OK) && CHECK(f != NULL) &&
        CHECK(dc_flat_check(&flat_job, f) == DC_OK))
        return f;
    printf("    %s\n", flat_said());
    dc_flat_free(f);
    return NULL;
}

static inline bool flat_runs(const dc_flat *f, void *const *mem, int64_t positions)
{
    return dc_flat_run(&flat_job, f, mem, 0, positions) == DC_OK;
}

/* Parses, runs, frees; complains. */
static inline bool flat_do(const char *text, void *const *mem, int64_t positions)
{
    dc_flat *f = flat_of(text);
    if (f == NULL)
        return false;
    const bool ok = flat_runs(f, mem, positions);
    if (!CHECK(ok))
        printf("    %s\n", flat_said());
    dc_flat_free(f);
    return ok;
}

/* The same, to fail with a sentence that has `part` in it. */
static inline void flat_fails(const char *text, void *const *mem, int64_t positions,
                              const char *part)
{
    dc_flat *f = flat_of(text);
    if (f == NULL)
        return;
    CHECK(!flat_runs(f, mem, positions));
    CHECK_EQ(flat_job.err.status, DC_E_BUG);
    flat_says(part);
    dc_flat_free(f);
}

/* Bit by bit, but for what a NaN is. */
static inline bool flat_same(dc_dtype t, uint64_t a, uint64_t b)
{
    return a == b || (dc_dtype_is_float(t) && isnan(dc_value_of(t, a)) && isnan(dc_value_of(t, b)));
}

#endif
