/*
 * Files that are mostly valid, for the targets made_*: an input is no file but a list of choices, of which a target makes
 * one of its format, with lengths and checksums that agree, and knows what has to be read from it. Some inputs ask for
 * lies, numbers that are other than they should be, and for edits of the bytes; all others have to be read with exactly
 * the values that were put in (made_tensors_check), or it is a finding.
 */
#ifndef DC_TESTS_FUZZ_MADE_H
#define DC_TESTS_FUZZ_MADE_H

#include "formats/tensor_file.h"

#include "tests/fuzz/fuzz.h"

/* What has to be read. */
typedef struct made_tensor {
    const char *name;
    dc_type type;
    const unsigned char *bytes; /* in the order of its axes; packed ones as they lie. NULL: any */
    size_t n;
    bool unread; /* it is in the list, and is not read */
} made_tensor;

typedef struct made {
    dc_arena *arena;
    const unsigned char *choice; /* that are left */
    size_t choices;
    bool lies, edits;  /* are asked for */
    bool lied;         /* something is not as it should be */
    unsigned char *at; /* the file */
    size_t n, room;
    DC_VEC(made_tensor) tensor; /* in the arena */
} made;

void made_begin(made *m, dc_arena *a, const fuzz_input *in);
/* Changes some bytes, where the input asks for it. */
void made_end(made *m);
bool made_is_intact(const made *m); /* it has to be read */

/* ---- choices: 0 where there are none left ---- */

uint32_t made_below(made *m, uint32_t n);
bool made_once_in(made *m, uint32_t n);
/* The number, or a lie. */
uint64_t made_number(made *m, uint64_t right);
/* The text, with lies in the place of some of its numbers. */
const char *made_lies_in(made *m, const char *text);

/* ---- bytes ---- */

void made_put(made *m, const void *bytes, size_t n);
void made_text(made *m, const char *s);
void made_byte(made *m, unsigned v);
void made_le(made *m, uint64_t v, int bytes);
void made_be(made *m, uint64_t v, int bytes);
void made_printf(made *m, const char *fmt, ...) DC_PRINTF(2, 3);
void made_align(made *m, size_t to, unsigned with); /* fills up to a multiple */
/*
 * What is made from now on is a part of its own, at 0; gives the file as it is. The second goes on with that file, and
 * gives the part.
 */
made made_part_begin(made *m);
made made_part_end(made *m, const made *file);

/* ---- JSON ---- */

void made_quoted(made *m, const char *text);
/* Of a header of safetensors: a tensor whose bytes begin `at`; `more` is of other fields, or empty. */
void made_st_entry(made *m, const char *name, const char *more, const char *dtype,
                   const dc_type *type, uint64_t at, uint64_t bytes);

/* One that is in the list, and is not read. */
void made_expect_unread(made *m, const char *name);

/* n bytes that depend on a choice; of truth values 0 and 1. */
unsigned char *made_data(made *m, dc_dtype dtype, size_t n);
/* Sizes of a tensor of few elements, some of none. */
int made_sizes(made *m, int most_rank, int64_t dim[DC_MAX_RANK]);
const char *made_name(made *m, const char *prefix,
                      uint32_t number); /* another one for each number */
void made_expect(made *m, const char *name, const dc_type *type, const unsigned char *bytes,
                 size_t n);

/* ---- archives ---- */

typedef struct made_entry {
    const char *name;
    const unsigned char *bytes;
    size_t n;
    uint32_t align; /* where its bytes begin; 0: anywhere */
    bool may_deflate;
} made_entry;

/* In any order. */
void made_zip(made *m, made_entry *entry, uint32_t n);

/* ---- what is read ---- */

/* Opens the file, reads all of it, and compares where it is intact. */
dc_status made_tensors_check(dc_job *j, made *m);

/*
 * Reads it as a sound, which has to be refused for lack of a library alone where it is intact, and otherwise to have this
 * rate and shape: *samples are its then, else NULL.
 */
dc_status made_sound_read(dc_job *j, made *m, int rate, int64_t frames, int channels,
                          const float **samples);

#endif
