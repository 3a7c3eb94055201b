/*
 * What the files of the interpreter share. Private to core/eval/eval*.c.
 *
 *   eval.c      the walk over the nodes, sources, movement
 *   eval_ew.c   element-wise operations, and access to elements of every dtype
 *   eval_red.c  reductions and dot
 *   eval_conv.c convolutions
 *   eval_control.c loops and branches
 *   eval_idx.c  gather, scatter
 *   eval_host.c operations of core/host
 *   eval_fft.c  Fourier transforms
 *   eval_find.c where infinities and NaN come from
 */
#ifndef DC_CORE_EVAL_EVAL_IMPL_H
#define DC_CORE_EVAL_EVAL_IMPL_H

#include "core/eval/eval.h"

enum { DC_EVAL_CHUNK = 512, DC_EVAL_TEMPS = 4 };

/* Arrays of a loop or a branch: its results, then room for the carries of another iteration. */
typedef struct dc_eval_many {
    uint32_t n;
    void **at;
} dc_eval_many;

typedef struct dc_eval_state {
    dc_job *j;
    const dc_func *f;
    dc_eval_mode mode;
    uint32_t n;
    void **value;              /* [n] dense arrays by ref; NULL before and after its life */
    bool *lent;                /* [n] the array is the caller's */
    dc_eval_many *many;        /* [n] results of loops and branches */
    void *temp[DC_EVAL_TEMPS]; /* memory of the node at work */
    uint64_t control;          /* the caller's control word */
    struct dc_eval_search *search; /* core/eval/eval_find.c; NULL: values are not looked at */
} dc_eval_state;

/* Bytes of an element in memory: floats are doubles in the wide mode. */
size_t dc_eval_size(dc_eval_mode mode, dc_dtype t);

/* Is an element in memory a double? */
static inline bool dc_eval_holds_double(dc_eval_mode mode, dc_dtype t)
{
    return t == DC_F64 || (mode == DC_EVAL_WIDE && dc_dtype_is_float(t));
}

/* NOMEM as a status; *slot is one of s->value or s->temp, so that it is released on any way out. */
dc_status dc_eval_alloc(dc_eval_state *s, int64_t count, size_t size, void **slot);
void dc_eval_drop(void **slot); /* frees it early */

/*
 * Elements i to i + n - 1 as doubles (of any dtype: their value) or as patterns (of floats
 * not in the wide mode), and back: a double is rounded once to a float dtype, or compared with 0 for bool; a pattern is
 * cut.
 */
void dc_eval_get_f(dc_eval_mode mode, dc_dtype t, const void *at, int64_t i, int64_t n,
                   double *out);
void dc_eval_put_f(dc_eval_mode mode, dc_dtype t, void *at, int64_t i, int64_t n, const double *in);
void dc_eval_get_i(dc_dtype t, const void *at, int64_t i, int64_t n, uint64_t *out);
void dc_eval_put_i(dc_dtype t, void *at, int64_t i, int64_t n, const uint64_t *in);

/* A copy of elements of one size: position p of `dim` goes from sum p*from to sum p*to. */
typedef struct dc_eval_move {
    int rank;
    int64_t dim[DC_MAX_RANK];
    int64_t to[DC_MAX_RANK], from[DC_MAX_RANK]; /* steps in elements */
} dc_eval_move;

void dc_eval_move_run(const dc_eval_move *m, size_t size, void *to, const void *from);
void dc_eval_steps(int rank, const int64_t *dim, int64_t *step); /* of a dense row-major array */

/* dc_eval with a search beside it, and what that does behind node r. */
dc_status dc_eval_watched(dc_job *j, const dc_func *f, dc_eval_mode mode,
                          const void *const *params, void *const *results,
                          struct dc_eval_search *search);
void dc_eval_look(dc_eval_state *s, dc_ref r);
/* dc_eval of the body that node r has, for element i of a loop, or -1; the search goes on in it. */
dc_status dc_eval_body(dc_eval_state *s, dc_ref r, const dc_func *body, int64_t i,
                       const void *const *params, void *const *results);

/* dst: the array of node r, allocated. */
void dc_eval_ew(dc_eval_state *s, dc_ref r);
dc_status dc_eval_reduce(dc_eval_state *s, dc_ref r);
dc_status dc_eval_dot(dc_eval_state *s, dc_ref r);
dc_status dc_eval_conv(dc_eval_state *s, dc_ref r);
dc_status dc_eval_fft(dc_eval_state *s, dc_ref r); /* a transform, or a stage of one */
/* c[0..n) += a[0..kn) * b[kn][n], term by term in the order of k; doubles, or patterns of integers. */
void dc_eval_rows(dc_eval_mode mode, dc_dtype t, int64_t kn, int64_t n, const void *a, const void *b,
                  void *c);
void dc_eval_gather(dc_eval_state *s, dc_ref r);
dc_status dc_eval_scatter(dc_eval_state *s, dc_ref r);

dc_status dc_eval_host(dc_eval_state *s, dc_ref r);

/* Loops and branches, whose results dc_eval_pick copies. */
dc_status dc_eval_loop(dc_eval_state *s, dc_ref r);
dc_status dc_eval_branch(dc_eval_state *s, dc_ref r);
void dc_eval_pick(dc_eval_state *s, dc_ref r);

#endif
