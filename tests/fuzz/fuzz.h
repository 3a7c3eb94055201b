/*
 * What the fuzzing targets share. A target is a file fuzz_NAME.c that defines fuzz_one: it gives the bytes to one
 * reader of ours and does with what was read all that a user could. Whatever the bytes are, the reader takes them or
 * refuses them with a sentence; crashes, reports of the sanitizers, leaks, broken promises (DC_E_BUG) and what a
 * target finds wrong (fuzz_finding) end the process.
 *
 * With clang and the preset `fuzz` libFuzzer makes the bytes (scripts/fuzz). In every other build fuzz/corpus.c is
 * linked in its place and runs the inputs of tests/fuzz/corpus/NAME, which has those that once failed, as a test, and
 * some that are made of them.
 */
#ifndef DC_TESTS_FUZZ_H
#define DC_TESTS_FUZZ_H

#include "core/base/job.h"
#include "core/ir/graph.h"

typedef struct fuzz_input {
    const unsigned char *at;
    size_t n;
    const char *text; /* the same, with a '\0' behind it */
} fuzz_input;

/* Of the target. Nothing that it leaves behind may change what it does with the next input. */
void fuzz_one(const fuzz_input *in);

DC_NORETURN void fuzz_finding(const char *fmt, ...) DC_PRINTF(1, 2);

/* Runs the body with a job of its own; a BUG is a finding. The sentence of its failure is in fuzz_error. */
dc_status fuzz_protect(dc_status (*body)(dc_job *, void *), void *arg);
const char *fuzz_error(void);
/* The same, where a BUG whose sentence has these words is what the input asked for. */
dc_status fuzz_protect_but(dc_status (*body)(dc_job *, void *), void *arg, const char *words);

/* The path of a file with these bytes, the same one each time; the path alone. */
const char *fuzz_file(const void *bytes, size_t n);
const char *fuzz_path(void);

/* Is so little computed in the function that running it takes no time worth mentioning? */
bool fuzz_is_small(const dc_func *f, int64_t elements);

/* Memory for a value of the type, filled with numbers that depend on *state and are odd now and then. */
void *fuzz_value(dc_arena *a, const dc_type *t, uint64_t *state);

#endif
