/*
 * Kernels and random lists of schedule moves for tests. Kernels are text: some written here, small,
 * with sums that are exact in any order; those of tests/kernel; and what random graphs are lowered
 * to. Moves are proposed by the shape of the tree as it stands, so that long lists come about, with
 * threads, their memory and caches in them.
 */
#ifndef DC_TESTS_SCHEDULE_RANDOM_H
#define DC_TESTS_SCHEDULE_RANDOM_H

#include "core/ir/simplify.h"
#include "jit/fuse/fuse.h"
#include "jit/lower/lower.h"
#include "jit/moves/move.h"
#include "jit/nest/matrix_tile.h"

#include <stdlib.h>
#include <string.h>

#include "tests/t.h"
#include "tests/unit/graphgen.h"

enum { SR_PARAMS = 16, SR_MOVES = 60, SR_LOOPS = 200, SR_TEXT = 1 << 15, SR_WORK = 1 << 18 };

typedef struct sr_source {
    char *text;           /* a kernel without moves, strict */
    bool exact;           /* sums of the inputs that are given are exact, in any order */
    int share[SR_PARAMS]; /* by parameter: the output whose memory it may be in; else -1 */
} sr_source;

typedef struct sr_list {
    int n;
    char move[SR_MOVES][200];
} sr_list;

/* Kernels --------------------------------------------------------------------------------------- */

/* clang-format off */
static const char *const sr_written[] = {
    "kernel product(out0: f32[192] out, x0: f32[240], x1: f32[320]) strict {\n"
    "  local acc: f32[1]\n"
    "  for m in 12\n"
    "    for n in 16\n"
    "      acc[0] = 0:f32\n"
    "      for k in 20 reduce\n"
    "        acc[0] add= mul(x0[20*m + k], x1[16*k + n])\n"
    "      out0[16*m + n] = acc[0]\n"
    "}\n",
    "kernel batches(out0: f32[144] out, out1: f32[144] out, x0: f32[96], x1: f32[96], x2: f32[6]) strict {\n"
    "  local acc: f32[1]\n"
    "  for b in 4\n"
    "    for m in 6\n"
    "      for n in 6\n"
    "        acc[0] = x2[n]\n"
    "        for k in 4 reduce\n"
    "          acc[0] add= mul(x0[24*b + 4*m + k], x1[24*b + 6*k + n])\n"
    "        out0[36*b + 6*m + n] = maximum(acc[0], 0:f32)\n"
    "        & out1[36*b + m + 6*n] = acc[0]\n"
    "}\n",
    "kernel rows(out0: f32[264] out, x0: f32[264]) strict {\n"
    "  local top: f32[1]\n"
    "  local low: f32[33]\n"
    "  local sum: f32[1]\n"
    "  for i in 8\n"
    "    top[0] = -inf:f32\n"
    "    for k in 33 reduce\n"
    "      top[0] maximum= x0[33*i + k]\n"
    "    for n in 33\n"
    "      low[n] = sub(x0[33*i + n], top[0])\n"
    "    sum[0] = 0:f32\n"
    "    for j in 33 reduce\n"
    "      sum[0] add= low[j]\n"
    "    for m in 33\n"
    "      out0[33*i + m] = sub(mul(low[m], 2:f32), sum[0])\n"
    "}\n",
    "kernel totals(out0: f32[3] out, out1: i32[3] out, x0: f32[288], x1: i32[288]) strict {\n"
    "  local acc: f32[1]\n"
    "  local most: i32[1]\n"
    "  for g in 3\n"
    "    acc[0] = 0:f32\n"
    "    for k in 96 reduce\n"
    "      acc[0] add= x0[96*g + k]\n"
    "    most[0] = -1000:i32\n"
    "    for l in 96 reduce\n"
    "      most[0] maximum= x1[96*g + l]\n"
    "    out0[g] = acc[0]\n"
    "    & out1[g] = most[0]\n"
    "}\n",
    "kernel total(out0: f32[1] out, x0: f32[384]) strict {\n"
    "  local acc: f32[1]\n"
    "  acc[0] = 0:f32\n"
    "  for h in 6 reduce\n"
    "    for k in 64 reduce\n"
    "      acc[0] add= x0[64*h + k]\n"
    "  out0[0] = acc[0]\n"
    "}\n",
    "kernel argmax(out0: f32[13] out, out1: i32[13] out, x0: f32[260]) strict {\n"
    "  local best: f32[1]\n"
    "  local place: i32[1]\n"
    "  for i in 13\n"
    "    best[0] = x0[20*i]\n"
    "    & place[0] = 0:i32\n"
    "    for k in 20\n"
    "      t0 = lt(best[0], x0[20*i + k])\n"
    "      best[0] = where(t0, x0[20*i + k], best[0])\n"
    "      & place[0] = where(t0, i32(k), place[0])\n"
    "    out0[i] = best[0]\n"
    "    & out1[i] = place[0]\n"
    "}\n",
    "kernel updates(p0: f32[60] inout, p1: f32[35] inout, x0: f32[60], x1: f32[35]) strict {\n"
    "  for i in 60\n"
    "    p0[i] = sub(p0[i], mul(0.125:f32, x0[i]))\n"
    "  for j in 5\n"
    "    for k in 7\n"
    "      p1[7*j + k] = sub(p1[7*j + k], mul(0.25:f32, x1[j + 5*k]))\n"
    "}\n",
    "kernel scatter(out0: f32[133] out, x0: f32[133], x1: i32[40], x2: f32[280]) strict {\n"
    "  for n in 7\n"
    "    for a in 19\n"
    "      out0[7*a + n] = x0[7*a + n]\n"
    "    for k in 40\n"
    "      t0 = minimum(maximum(x1[k], 0:i32), 18:i32)\n"
    "      out0[7*int(t0) + n] = add(out0[7*int(t0) + n], x2[7*k + n])\n"
    "}\n",
    "kernel two(out0: f32[120] out, x0: f32[160], x1: f32[20]) strict {\n"
    "  local a: f32[20]\n"
    "  local acc: f32[1]\n"
    "  for i in 8\n"
    "    for j in 20\n"
    "      a[j] = add(x0[20*i + j], x1[j])\n"
    "    for n in 15\n"
    "      acc[0] = 0:f32\n"
    "      for k in 6 reduce\n"
    "        acc[0] add= mul(a[n + k], x1[k])\n"
    "      out0[15*i + n] = acc[0]\n"
    "}\n",
    "kernel stages(out0: f32[96] out, x0: f32[96], x1: f32[24]) strict {\n"
    "  local a: f32[24]\n"
    "  local b: f32[24]\n"
    "  for i in 4\n"
    "    for j in 24\n"
    "      a[j] = mul(x0[24*i + j], x1[j])\n"
    "    for l in 24\n"
    "      b[l] = add(a[l], a[-l + 23])\n"
    "    for n in 4\n"
    "      for q in 6\n"
    "        out0[24*i + 6*n + q] = sub(b[4*q + n], x1[6*n + q])\n"
    "}\n",
    "kernel exchange(out0: f32[64] out uncached, x0: f32[64] uncached) strict {\n"
    "  local a: f32[16]\n"
    "  local b: f32[16]\n"
    "  local c: f32[16]\n"
    "  for i in 4\n"
    "    for j in 16\n"
    "      a[j] = x0[16*i + j]\n"
    "    for l in 16\n"
    "      b[l] = add(a[l], a[-l + 15])\n"
    "    for n in 16\n"
    "      c[n] = sub(mul(b[n], b[0]), a[3])\n"
    "    for q in 16\n"
    "      out0[16*i + q] = sub(c[((q + 5)%16)], a[q + 1 if q in 15])\n"
    "}\n",
    "kernel norm(out0: f32[96] out uncached, x0: f32[96]) strict {\n"
    "  local mean: f32[1]\n"
    "  local m2: f32[1]\n"
    "  for i in 8\n"
    "    mean[0] = 0:f32\n"
    "    & m2[0] = 0:f32\n"
    "    for k in 12\n"
    "      t0 = sub(x0[12*i + k], mean[0])\n"
    "      t1 = add(mean[0], div(t0, cast.f32(i32(k + 1))))\n"
    "      mean[0] = t1\n"
    "      & m2[0] = add(m2[0], mul(t0, sub(x0[12*i + k], t1)))\n"
    "    for n in 12\n"
    "      out0[12*i + n] = div(sub(x0[12*i + n], mean[0]), add(m2[0], 1:f32))\n"
    "}\n",
};
/* clang-format on */

static const char *const sr_files[] = {"softmax", "layer_norm", "attention", "argmax",
                                       "product", "total",      "updates"};

static inline bool sr_from_file(rng *r, sr_source *s)
{
    char path[100];
    const int n = rng_below(r, (int)DC_COUNTOF(sr_files));
    snprintf(path, sizeof path, "tests/kernel/%s.nest", sr_files[n]);
    FILE *in = fopen(path, "rb");
    s->text = calloc(1, SR_TEXT);
    s->exact = n >= 3;
    if (!CHECK(in != NULL))
        return false;
    s->text[fread(s->text, 1, SR_TEXT - 1, in)] = '\0';
    fclose(in);
    return true;
}

static inline const dc_buffer *sr_param(const dc_kernel *k, uint32_t p)
{
    for (uint32_t b = 0; b < k->buf.n; b++)
        if (k->buf.at[b].scope == DC_SCOPE_PARAM && k->buf.at[b].param == p)
            return &k->buf.at[b];
    DC_BUG("%s has no parameter %u", k->name, p);
}

static inline size_t sr_bytes(const dc_buffer *b)
{
    return (size_t)b->count * dc_dtype_size((dc_dtype)b->dtype);
}

static inline bool sr_usable(const dc_kernel *k)
{
    int64_t elements = 0;
    for (uint32_t p = 0; p < k->nparam && p < SR_PARAMS; p++) {
        const dc_buffer *b = sr_param(k, p);
        elements += b->count;
        if (b->mode == DC_MODE_OUT && b->count == 0)
            return false;
    }
    return k->nparam <= SR_PARAMS && elements < 3000 && k->root != NULL;
}

static inline void sr_sharing(rng *r, dc_kernel *k, const dc_group *g, sr_source *s)
{
    for (uint32_t o = 0; o < g->nout; o++)
        for (uint32_t i = 0; i < g->nin; i++) {
            const size_t same = sr_bytes(sr_param(k, o));
            if (rng_below(r, 2) && same == sr_bytes(sr_param(k, g->nout + i)) &&
                s->share[g->nout + i] < 0 && dc_lower_in_place(k, g, o, i)) {
                s->share[g->nout + i] = (int)o;
                break;
            }
        }
}

/* A kernel of a random graph; false where it has none of the right size. */
static inline bool sr_from_graph(dc_job *j, rng *r, sr_source *s)
{
    dc_arena mem = {0};
    dc_module *m = dc_module_new();
    dc_groups groups;
    dc_kernel *k = NULL;
    const dc_func *f = graphgen_func(m, rng_next(r), 4 + rng_below(r, 16));
    if (rng_below(r, 3))
        f = dc_simplify(f);
    bool ok = CHECK(dc_fuse(j, &mem, f, rng_below(r, 4) ? 2 : 0, &groups) == DC_OK);
    if (ok && (ok = groups.n > 0)) {
        const uint32_t g = (uint32_t)rng_below(r, (int)groups.n);
        ok = CHECK(dc_lower(j, &groups, g, &k) == DC_OK) && sr_usable(k);
        if (ok) {
            dc_text text = {0};
            k->strict = true;
            sr_sharing(r, k, &groups.at[g], s);
            dc_nest_print(k, &text);
            s->text = memcpy(calloc(1, text.n + 1), text.s, text.n);
            dc_text_free(&text);
        }
        dc_kernel_free(k);
    }
    dc_arena_free(&mem);
    dc_module_free(m);
    return ok;
}

static inline bool sr_source_new(dc_job *j, rng *r, sr_source *s)
{
    const int what = rng_below(r, 20);
    *s = (sr_source){.exact = false};
    for (int p = 0; p < SR_PARAMS; p++)
        s->share[p] = -1;
    if (what == 0)
        return sr_from_file(r, s);
    if (what < 10)
        return sr_from_graph(j, r, s);
    const int n = rng_below(r, (int)DC_COUNTOF(sr_written));
    s->text = strcpy(calloc(1, strlen(sr_written[n]) + 1), sr_written[n]);
    s->exact = n != (int)DC_COUNTOF(sr_written) - 1;
    return true;
}

/* The tree as it stands ------------------------------------------------------------------------- */

typedef struct sr_tree { /* loops, each after the one round it */
    int n;
    const dc_stmt *loop[SR_LOOPS], *up[SR_LOOPS];
} sr_tree;

static inline void sr_gather(const dc_stmt *first, const dc_stmt *up, sr_tree *t)
{
    for (const dc_stmt *s = first; s != NULL; s = s->next)
        if (s->kind == DC_STMT_LOOP && t->n < SR_LOOPS) {
            t->loop[t->n] = s;
            t->up[t->n++] = up;
            sr_gather(s->body, s, t);
        }
}

static inline sr_tree sr_tree_of(const dc_kernel *k)
{
    sr_tree t = {0};
    sr_gather(k->root, NULL, &t);
    return t;
}

/* Moves ----------------------------------------------------------------------------------------- */

typedef struct sr_maker {
    rng *r;
    dc_kernel *k;
    int team;   /* threads that this list likes */
    bool lanes; /* it likes lanes */
    sr_list *list;
    sr_tree t;
    long tried, done;
    void (*refused)(const char *move, const char *why); /* NULL: not reported */
    bool stop;
} sr_maker;

/* How often statements run. */
static inline int64_t sr_work(const dc_kernel *k, const dc_stmt *first)
{
    int64_t n = 0;
    for (const dc_stmt *s = first; s != NULL && n <= SR_WORK; s = s->next)
        n += s->kind != DC_STMT_LOOP ? 1 : (1 + sr_work(k, s->body)) * k->axis.at[s->axis].extent;
    return n;
}

/* Applies a move, if it fits. The list ends before one that makes the kernel slow to interpret. */
static inline bool sr_do(sr_maker *m, const char *move)
{
    const char *why = "";
    if (m->stop || m->list->n == SR_MOVES || strlen(move) + 1 >= sizeof m->list->move[0])
        return false;
    m->tried++;
    if (!dc_move_apply_text(m->k, move, &why)) {
        if (m->refused != NULL)
            m->refused(move, why);
        return false;
    }
    m->done++;
    if ((m->stop = sr_work(m->k, m->k->root) > SR_WORK))
        return false;
    snprintf(m->list->move[m->list->n++], sizeof m->list->move[0], "%s", move);
    return true;
}

static inline const char *sr_name(const sr_maker *m, const dc_stmt *loop)
{
    return m->k->axis.at[loop->axis].name;
}

static inline int64_t sr_extent(const sr_maker *m, const dc_stmt *loop)
{
    return m->k->axis.at[loop->axis].extent;
}

static inline uint8_t sr_kind(const sr_maker *m, const dc_stmt *loop)
{
    return m->k->axis.at[loop->axis].kind;
}

static inline int sr_count(sr_maker *m)
{
    static const int some[] = {2, 3, 4, 5, 8, 16};
    return rng_below(m->r, 2) ? m->team : some[rng_below(m->r, (int)DC_COUNTOF(some))];
}

static inline const char *sr_buffer(sr_maker *m)
{
    return m->k->buf.at[rng_below(m->r, (int)m->k->buf.n)].name;
}

/* Names of loops inside loop `in`, in some order, sometimes all. */
static inline void sr_inner(sr_maker *m, const dc_stmt *in, int most, char *out, size_t size)
{
    sr_tree t = {0};
    sr_gather(in->body, in, &t);
    for (int n = 0; n < most && t.n > 0; n++) {
        const int at = rng_below(m->r, t.n);
        const size_t used = strlen(out);
        snprintf(out + used, size - used, " %s", sr_name(m, t.loop[at]));
        t.loop[at] = t.loop[--t.n];
    }
}

static inline void sr_put(char *out, size_t size, const char *word)
{
    const size_t used = strlen(out);
    snprintf(out + used, size - used, " %s", word);
}

/* What one argument may be that is no axis. */
static inline const char *sr_other(sr_maker *m, dc_move_kind kind, const char *arg, char *number,
                                   size_t size)
{
    static const char *const scopes[] = {"local", "thread", "group"};
    if (strncmp(arg, "buffer", 6) == 0)
        return sr_buffer(m);
    if (strncmp(arg, "scope", 5) == 0)
        return scopes[rng_below(m->r, 3)];
    if (strncmp(arg, "tile", 4) == 0)
        return dc_tile_row_of((uint32_t)rng_below(m->r, DC_TILE__COUNT))->name;
    snprintf(number, size, "%d", kind == DC_MOVE_PREFETCH ? 1 + rng_below(m->r, 2) : sr_count(m));
    return number;
}

/* The axes: a loop, one around it, unless the row wants others. */
static inline void sr_pair(sr_maker *m, dc_move_kind kind, const dc_stmt *pair[2])
{
    const int at = rng_below(m->r, m->t.n);
    const dc_stmt *loop = m->t.loop[at], *up = m->t.up[at] != NULL ? m->t.up[at] : loop;
    const bool outer_first = kind == DC_MOVE_FUSE || kind == DC_MOVE_PREFETCH;
    const bool any = kind == DC_MOVE_PART || kind == DC_MOVE_PART_AFTER;
    pair[0] = outer_first ? up : loop;
    pair[1] = outer_first ? loop : any ? m->t.loop[rng_below(m->r, m->t.n)] : up;
}

/* One move of any row that may fit, in text: by the kinds of its arguments. */
static inline void sr_propose(sr_maker *m, dc_move_kind kind, char *out, size_t size)
{
    const char *args = dc_move_args(kind);
    const bool traffic = dc_move_effect_of(kind) == DC_MOVE_TRAFFIC;
    const bool copies = strncmp(args, "buffer", 6) == 0 && !traffic;
    const dc_stmt *pair[2];
    char number[16];
    int axes = 0;
    sr_pair(m, kind, pair);
    snprintf(out, size, "%s", dc_move_name(kind));
    for (int i = 0; kind == DC_MOVE_GRID && i < m->t.n; i++)
        if (m->t.up[i] == NULL)
            sr_put(out, size, sr_name(m, m->t.loop[i]));
    if (kind == DC_MOVE_GRID)
        return;
    for (; *args != '\0'; args += strcspn(args, " "), args += strspn(args, " ")) {
        const bool is_axis = strncmp(args, "axis", 4) == 0, repeats = is_axis && args[4] == '.';
        if (is_axis && copies && axes > 0) { /* dims */
            if (!repeats || rng_below(m->r, 3) == 0)
                sr_inner(m, pair[0], 1 + rng_below(m->r, 3), out, size);
            return;
        }
        sr_put(out, size,
               is_axis ? sr_name(m, pair[axes++]) : sr_other(m, kind, args, number, sizeof number));
    }
}

/* How often each row is proposed when loops get their shape, when they become parallel, and late. */
typedef struct sr_weights {
    int shape[DC_MOVE__COUNT], bound[DC_MOVE__COUNT], late[DC_MOVE__COUNT];
} sr_weights;

static const sr_weights sr_weight = {
#define W(id, s, b, l) .shape[DC_MOVE_##id] = s, .bound[DC_MOVE_##id] = b, .late[DC_MOVE_##id] = l
    W(SPLIT, 4, 1, 1),         W(SPLIT_FULL, 3, 1, 1),   W(CUT, 1, 1, 1),
    W(PART, 2, 1, 1),          W(REORDER, 5, 1, 1),      W(REORDER_REDUCE, 2, 0, 1),
    W(FUSE, 2, 1, 1),          W(PAD, 1, 1, 1),          W(VECTORIZE, 0, 2, 5),
    W(UNROLL, 0, 2, 3),        W(GRID, 0, 3, 2),         W(BLOCK, 0, 8, 5),
    W(LANE, 0, 4, 3),          W(SCOPE, 0, 2, 4),        W(CACHE_READ, 4, 2, 2),
    W(PACK, 1, 1, 1),          W(WINDOW_READ, 1, 1, 1),  W(CACHE_WRITE, 2, 1, 1),
    W(COMPUTE_AT, 3, 1, 1),    W(SPLIT_REDUCE, 3, 1, 1), W(SUBTOTAL, 2, 1, 1),
    W(TENSORIZE, 2, 1, 1),     W(REPLICATE, 1, 1, 3),    W(PAD_ROWS, 1, 2, 2),
    W(SWIZZLE, 1, 2, 3),       W(RANGES, 1, 1, 1),       W(PART_AFTER, 1, 1, 1),
    W(SWIZZLE_ATOMS, 1, 2, 3),
#undef W
};

/* Memory traffic, which comes last. */
static const int sr_traffic[DC_MOVE__COUNT] = {
    [DC_MOVE_STAGE] = 4, [DC_MOVE_NONTEMPORAL] = 2, [DC_MOVE_PREFETCH] = 4, [DC_MOVE_PIPELINE] = 3};

static inline void sr_any(sr_maker *m, const int *weight)
{
    char move[200] = "";
    int all = 0;
    for (int i = 0; i < DC_MOVE__COUNT; i++)
        all += weight[i];
    int at = rng_below(m->r, all), kind = 0;
    while (at >= weight[kind])
        at -= weight[kind++];
    m->t = sr_tree_of(m->k);
    if (m->t.n == 0 || m->t.n == SR_LOOPS)
        return;
    sr_propose(m, (dc_move_kind)kind, move, sizeof move);
    sr_do(m, move);
}

static inline void sr_some(sr_maker *m, int n, const int *weight)
{
    while (n-- > 0 && !m->stop)
        sr_any(m, weight);
}

/* A loop in pieces of a team, which become threads. */
static inline void sr_team_loop(sr_maker *m, const dc_stmt *loop)
{
    char a[80], move[200], inner[96];
    const bool reduce = m->k->axis.at[loop->axis].reduce,
               lane = rng_below(m->r, 8) == 0 ? !m->lanes : m->lanes;
    const char *bind = lane ? "lane" : "block";
    snprintf(a, sizeof a, "%s", sr_name(m, loop));
    snprintf(inner, sizeof inner, "%s", a);
    if (sr_kind(m, loop) != DC_AXIS_SERIAL)
        return;
    if (sr_extent(m, loop) != m->team) {
        snprintf(move, sizeof move, "%s %s %d", reduce ? "split_reduce" : "split", a, m->team);
        if (!sr_do(m, move))
            return;
        snprintf(inner, sizeof inner, "%s.i", a);
        snprintf(move, sizeof move, "reorder %s.i %s.o", a, a);
        if (reduce || rng_below(m->r, 2))
            sr_do(m, move);
    }
    snprintf(move, sizeof move, "%s %s", bind, inner);
    sr_do(m, move);
    if (reduce && rng_below(m->r, 2)) { /* the sums of the partial sums by threads, too */
        snprintf(move, sizeof move, "split_reduce %s.j %d", a, m->team);
        sr_do(m, move);
    }
}

static inline bool sr_holds_loops(const dc_stmt *loop)
{
    for (const dc_stmt *s = loop->body; s != NULL; s = s->next)
        if (s->kind == DC_STMT_LOOP)
            return true;
    return false;
}

/* Threads for the phases: for loops that hold no others, or all. */
static inline void sr_teams(sr_maker *m)
{
    const bool leaves = rng_below(m->r, 3) > 0;
    const int skip = 1 + rng_below(m->r, 8);
    uint32_t axis[SR_LOOPS];
    int n = 0;
    m->t = sr_tree_of(m->k);
    for (int i = 0; i < m->t.n; i++)
        if ((!leaves || !sr_holds_loops(m->t.loop[i])) && rng_below(m->r, 8) < skip + 1)
            axis[n++] = m->t.loop[i]->axis;
    for (int i = 0; i < n; i++) {
        m->t = sr_tree_of(m->k);
        for (int l = 0; l < m->t.n; l++)
            if (m->t.loop[l]->axis == axis[i]) {
                sr_team_loop(m, m->t.loop[l]);
                break;
            }
    }
}

/* A random list for kernel k, which it is applied to. */
static inline void sr_make(sr_maker *m)
{
    static const int grid[DC_MOVE__COUNT] = {[DC_MOVE_GRID] = 1};
    static const int teams[] = {2, 4, 4, 8, 8, 16, 32};
    rng *r = m->r;
    m->team = teams[rng_below(r, (int)DC_COUNTOF(teams))];
    m->lanes = rng_below(r, 3) == 0;
    m->t = sr_tree_of(m->k);
    if (m->t.n > 0 && rng_below(r, 3) == 0) {
        const int64_t extent = sr_extent(m, m->t.loop[rng_below(r, m->t.n)]);
        m->team = extent > 1 && extent <= 32 ? (int)extent : m->team;
    }
    sr_some(m, rng_below(r, 3) ? rng_below(r, 12) : 0, sr_weight.shape);
    if (rng_below(r, 2))
        sr_some(m, 1, grid);
    if (rng_below(r, 4))
        sr_teams(m);
    sr_some(m, rng_below(r, 8), sr_weight.bound);
    if (rng_below(r, 2))
        sr_teams(m);
    sr_some(m, rng_below(r, 12), sr_weight.late);
    if (rng_below(r, 2))
        sr_some(m, 1, grid);
    sr_some(m, rng_below(r, 4), sr_weight.late);
    sr_some(m, rng_below(r, 3) ? 0 : rng_below(r, 12), sr_traffic);
}

#endif
