/*
 * Gathers with known distances, in LLVM IR (jit/render/llvm_gather.h).
 *
 * The lanes of such an index are a scalar plus a constant each: x[16*i + lane/3], or a row backwards. They are
 * loaded a register of the machine at a time: the elements between the least and the largest place that one
 * register asks for are read in vectors, the last of which overlaps the one before, so that nothing outside of
 * that span is touched; shuffles by constants pick the lanes. A span of many vectors is read lane by lane.
 */
#include "jit/render/llvm_gather.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MOST_WINDOWS = 4 };

/* Known values ------------------------------------------------------------------------------- */

static bool is_counted(int type)
{
    return type == DC_U32 || type == DC_INDEX || type == DC_BOOL;
}

static uint64_t fold_op(dc_kop op, uint64_t a, uint64_t b, bool *done)
{
    *done = true;
    switch ((int)op) {
    case DC_K_ADD:
        return a + b;
    case DC_K_SUB:
        return a - b;
    case DC_K_MUL:
        return a * b;
    case DC_K_AND:
        return a & b;
    case DC_K_OR:
        return a | b;
    case DC_K_LT:
        return a < b;
    case DC_K_DIV:
    case DC_K_REM:
        *done = b != 0;
        return b == 0 ? 0 : op == DC_K_DIV ? a / b : a % b;
    }
    *done = false;
    return 0;
}

/* The lanes of a vector of indices or tests where they depend on nothing, else NULL. In the scratch arena. */
static uint64_t *known(const dc_llvm_text *r, dc_fv v)
{
    const dc_finst *i = dc_lltext_at(r, v);
    bool done = is_counted(i->type) && i->level == 0;
    uint64_t *out = DC_NEW_ARRAY(&r->j->scratch, uint64_t, i->lanes);
    if (done && (i->op == DC_K_CONST || i->op == DC_K_LANES)) {
        for (int n = 0; n < i->lanes; n++)
            out[n] = i->op == DC_K_CONST ? i->imm
                                         : dc_flat_canonical(r->f, i->type, i->imm * (uint64_t)n);
        return out;
    }
    if (!done || dc_kop_row_of((dc_kop)i->op)->n != 2 ||
        !is_counted(dc_lltext_at(r, i->in[0])->type))
        return NULL;
    const uint64_t *a = known(r, i->in[0]), *b = a != NULL ? known(r, i->in[1]) : NULL;
    for (int n = 0; n < i->lanes && b != NULL && done; n++)
        out[n] = dc_flat_canonical(r->f, i->type, fold_op((dc_kop)i->op, a[n], b[n], &done));
    return b != NULL && done ? out : NULL;
}

typedef struct places {
    dc_fv base; /* a scalar that all lanes have in common; 0: none */
    uint64_t *at;
} places;

static bool places_of(const dc_llvm_text *r, dc_fv v, places *p)
{
    const dc_finst *i = dc_lltext_at(r, v);
    places other;
    *p = (places){0};
    if (i->op == DC_K_SPLAT) {
        p->base = i->in[0];
        p->at = DC_NEW_ARRAY(&r->j->scratch, uint64_t, i->lanes);
        return true;
    }
    p->at = known(r, v);
    if (p->at != NULL)
        return true;
    if (i->op != DC_K_ADD || !places_of(r, i->in[0], p) || !places_of(r, i->in[1], &other) ||
        (p->base != 0 && other.base != 0))
        return false;
    p->base = p->base != 0 ? p->base : other.base;
    for (int n = 0; n < i->lanes; n++)
        p->at[n] = dc_flat_canonical(r->f, i->type, p->at[n] + other.at[n]);
    return true;
}

/* What is loaded ----------------------------------------------------------------------------- */

typedef struct gather {
    dc_llvm_text *r;
    dc_fv v;
    const char *type;   /* of an element in memory */
    int lanes, part;    /* of all; of a register */
    int64_t *at;        /* from the place of the address */
    const uint64_t *on; /* by lane: is it loaded? NULL: all are */
} gather;

static bool is_on(const gather *g, int lane)
{
    return g->on == NULL || g->on[lane] != 0;
}

/* Distances from the least place of a lane that is on, and the address of that. False: no lane is. */
static bool put_address(gather *g, const places *p)
{
    dc_llvm_text *r = g->r;
    const dc_finst *i = dc_lltext_at(r, g->v);
    const int type = p->base != 0 ? dc_lltext_at(r, p->base)->type : DC_INDEX;
    const int unused = 64 - dc_flat_width(r->f, type);
    int least = -1;
    for (int n = 0; n < g->lanes; n++)
        if (is_on(g, n) && (least < 0 || (int64_t)((p->at[n] - p->at[least]) << unused) < 0))
            least = n;
    if (least < 0)
        return false;
    g->at = DC_NEW_ARRAY(&r->j->scratch, int64_t, g->lanes);
    for (int n = 0; n < g->lanes; n++)
        g->at[n] = (int64_t)((p->at[n] - p->at[least]) << unused) >> unused;
    const int64_t first = (int64_t)(p->at[least] << unused) >> unused;
    if (p->base == 0) {
        dc_llvm_text_line(r, "%%v%u.p = getelementptr inbounds %s, ptr %%b%u, i64 %l", g->v,
                          g->type, i->buf, first);
        return true;
    }
    dc_llvm_text_line(r, "%%v%u.s = add %T, %l", g->v, p->base, first);
    if (unused > 0)
        dc_llvm_text_line(r, "%%v%u.x = zext %s %%v%u.s to i64", g->v,
                          dc_llvm_text_scalar(r, type, false), g->v);
    dc_llvm_text_line(r, "%%v%u.p = getelementptr inbounds %s, ptr %%b%u, i64 %%v%u.%s", g->v,
                      g->type, i->buf, g->v, unused > 0 ? "x" : "s");
    return true;
}

/* Registers ---------------------------------------------------------------------------------- */

typedef struct span { /* of one register: windows of `width` elements in which its lanes stand */
    int64_t begin[MOST_WINDOWS];
    int width, windows;
} span;

/* The least place of a lane from `from` on, or the greatest; false: there is none. */
static bool least_place(const gather *g, int lane, int64_t from, int64_t *least, int64_t *last)
{
    bool any = false;
    for (int n = lane; n < lane + g->part; n++) {
        if (!is_on(g, n) || g->at[n] < from)
            continue;
        *least = any ? dc_min_i64(*least, g->at[n]) : g->at[n];
        *last = any ? dc_max_i64(*last, g->at[n]) : g->at[n];
        any = true;
    }
    return any;
}

/* False: no lane of the register is on. No windows: there would be too many. */
static bool span_of(const gather *g, int lane, span *s)
{
    int64_t at, last;
    *s = (span){.width = 1};
    if (!least_place(g, lane, 0, &at, &last))
        return false;
    while (2 * s->width <= dc_min_i64(last - at + 1, g->part))
        s->width *= 2;
    while (s->windows < MOST_WINDOWS) {
        const int64_t begin = dc_min_i64(at, last - s->width + 1);
        s->begin[s->windows++] = begin;
        if (!least_place(g, lane, begin + s->width, &at, &last))
            return true;
    }
    s->windows = 0;
    return true;
}

static int window_of(const span *s, int64_t at)
{
    int w = 0;
    while (at >= s->begin[w] + s->width)
        w++;
    return w;
}

static void put_type(const gather *g, int lanes)
{
    dc_text_printf(g->r->out, "<%d x %s>", lanes, g->type);
}

static void put_place(gather *g, const char *name, int64_t at)
{
    dc_llvm_text_line(g->r, "%s.p = getelementptr inbounds %s, ptr %%v%u.p, i64 %l", name, g->type,
                      g->v, at);
}

static int element_size(const gather *g)
{
    return (int)dc_dtype_size((dc_dtype)dc_lltext_at(g->r, g->v)->type);
}

/* What two vectors make: lane n of the register is element pick[n] of both, behind each other; -1: any. */
static void put_shuffle(gather *g, const char *name, const char *a, const char *b, int lanes,
                        const int *pick, int n)
{
    dc_text_printf(g->r->out, "  %s = shufflevector ", name);
    put_type(g, lanes);
    dc_text_printf(g->r->out, " %s, ", a);
    put_type(g, lanes);
    dc_text_printf(g->r->out, " %s, <%d x i32> <", b, n);
    for (int k = 0; k < n; k++)
        dc_text_printf(g->r->out, pick[k] < 0 ? "%si32 undef" : "%si32 %d", k > 0 ? ", " : "",
                       pick[k]);
    dc_text_puts(g->r->out, ">\n");
}

/* The register from window to window: each adds the lanes that are in it. */
static void put_windows(gather *g, const char *name, int lane, const span *s)
{
    char window[MOST_WINDOWS][DC_LLNAME] = {"poison", "poison", "poison", "poison"},
         sum[DC_LLNAME] = "poison";
    int *pick = DC_NEW_ARRAY(&g->r->j->scratch, int, g->part);
    for (int w = 0; w < s->windows; w++) {
        snprintf(window[w], DC_LLNAME, "%.32s.w%d", name, w);
        put_place(g, window[w], s->begin[w]);
        dc_text_printf(g->r->out, "  %s = load ", window[w]);
        put_type(g, s->width);
        dc_text_printf(g->r->out, ", ptr %s.p, align %d\n", window[w], element_size(g));
    }
    for (int w = 1; w < dc_max_i64(s->windows, 2); w++) {
        for (int n = 0; n < g->part; n++) {
            const int in = is_on(g, lane + n) ? window_of(s, g->at[lane + n]) : MOST_WINDOWS;
            const int element = in <= w ? (int)(g->at[lane + n] - s->begin[in]) : -1;
            pick[n] = in > w ? -1 : in == w ? s->width + element : w == 1 ? element : n;
        }
        char next[DC_LLNAME];
        snprintf(next, sizeof next, "%.32s.s%d", name, w);
        put_shuffle(g, next, w == 1 ? window[0] : sum, window[w], s->width, pick, g->part);
        memcpy(sum, next, sizeof sum);
    }
    dc_text_printf(g->r->out, "  %s = select <%d x i1> <", name, g->part);
    for (int n = 0; n < g->part; n++)
        dc_text_printf(g->r->out, "%si1 %s", n > 0 ? ", " : "",
                       is_on(g, lane + n) ? "true" : "false");
    dc_text_puts(g->r->out, ">, ");
    put_type(g, g->part);
    dc_text_printf(g->r->out, " %s, ", sum);
    put_type(g, g->part);
    dc_text_puts(g->r->out, " zeroinitializer\n");
}

static void put_by_lane(gather *g, const char *name, int lane)
{
    char sum[DC_LLNAME] = "zeroinitializer", one[DC_LLNAME];
    int last = lane;
    for (int n = lane; n < lane + g->part; n++)
        last = is_on(g, n) ? n : last;
    for (int n = lane; n <= last; n++) {
        if (!is_on(g, n))
            continue;
        snprintf(one, sizeof one, "%.32s.e%d", name, n - lane);
        put_place(g, one, g->at[n]);
        dc_llvm_text_line(g->r, "%s = load %s, ptr %s.p, align %d", one, g->type, one,
                          element_size(g));
        dc_text_printf(g->r->out, "  %s%s = insertelement ", n == last ? name : one,
                       n == last ? "" : ".i");
        put_type(g, g->part);
        dc_llvm_text_line(g->r, "%s, %s %s, i32 %d", sum, g->type, one, n - lane);
        snprintf(sum, sizeof sum, "%.40s.i", one);
    }
}

/* Its name, or that of a vector of zeros. */
static dc_llname put_register(gather *g, const char *name, int lane)
{
    span s;
    dc_llname result = {"zeroinitializer"};
    if (!span_of(g, lane, &s))
        return result;
    if (s.windows == 0)
        put_by_lane(g, name, lane);
    else
        put_windows(g, name, lane, &s);
    snprintf(result.s, sizeof result.s, "%s", name);
    return result;
}

/* Registers to one vector, two and two. */
static void put_together(gather *g, dc_llname *part, int n, const char *name)
{
    int *pick = DC_NEW_ARRAY(&g->r->j->scratch, int, g->lanes);
    for (int k = 0; k < g->lanes; k++)
        pick[k] = k;
    for (int width = g->part; n > 1; n /= 2, width *= 2)
        for (int k = 0; k < n / 2; k++) {
            dc_llname both;
            if (n == 2)
                snprintf(both.s, sizeof both.s, "%s", name);
            else
                snprintf(both.s, sizeof both.s, "%%v%" PRIu32 ".t%d.%d", g->v, 2 * width, k);
            put_shuffle(g, both.s, part[2 * k].s, part[2 * k + 1].s, width, pick, 2 * width);
            part[k] = both;
        }
}

static bool read_places(gather *g, places *p)
{
    const dc_finst *i = dc_lltext_at(g->r, g->v);
    if (i->in[1] != 0) {
        g->on = known(g->r, i->in[1]);
        if (g->on == NULL)
            return false;
    }
    if (i->op == DC_K_GATHER)
        return places_of(g->r, i->in[0], p);
    *p = (places){i->in[0], DC_NEW_ARRAY(&g->r->j->scratch, uint64_t, i->lanes)};
    for (int n = 0; n < i->lanes; n++)
        p->at[n] = i->imm * (uint64_t)n;
    return true;
}

static void put_gather(gather *g, const char *suffix)
{
    const int n = g->lanes / g->part;
    dc_llname *part = DC_NEW_ARRAY(&g->r->j->scratch, dc_llname, n), whole;
    snprintf(whole.s, sizeof whole.s, "%%v%" PRIu32 "%s", g->v, suffix);
    for (int k = 0; k < n; k++) {
        char name[DC_LLNAME];
        snprintf(name, sizeof name, "%%v%" PRIu32 ".r%d", g->v, k);
        part[k] = put_register(g, n == 1 ? whole.s : name, k * g->part);
    }
    put_together(g, part, n, whole.s);
}

bool dc_llvm_gather_put(dc_llvm_text *r, dc_fv v, const char *suffix)
{
    const dc_finst *i = dc_lltext_at(r, v);
    const dc_mark mark = dc_arena_mark(&r->j->scratch);
    const int64_t size = (int64_t)dc_dtype_size((dc_dtype)i->type);
    gather g = {.r = r, .v = v, .type = dc_llvm_text_scalar(r, i->type, true), .lanes = i->lanes};
    g.part = (int)dc_min_i64(i->lanes, dc_max_i64(r->vector_bytes / size, 1));
    places p = {0};
    const bool done = read_places(&g, &p) && put_address(&g, &p);
    if (done)
        put_gather(&g, suffix);
    dc_arena_rewind(&r->j->scratch, mark);
    return done;
}
