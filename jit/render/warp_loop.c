/* Which loops a warp can look through 32 iterations at a time (jit/render/warp_loop.h). */
#include "jit/render/warp_loop.h"

enum { WARP = 32, LEAST = 64 /* iterations */ };

typedef struct finding {
    const dc_flat *f;
    bool *same; /* by value: all threads of a warp have the same */
    dc_warp_loop *out;
    DC_VEC(dc_fv) open; /* scopes round the place */
    int apart;          /* how many of them not all threads enter */
    dc_fv inside;       /* the loop whose IF comes; 0: none */
    bool any;
} finding;

static bool operands_same(const finding *x, const dc_finst *i)
{
    for (int n = 0; n < 3; n++)
        if (i->in[n] != 0 && !x->same[i->in[n]])
            return false;
    return true;
}

/* The number of the warp, or a test whether it is one of the first. */
static bool is_of_warp(const finding *x, const dc_finst *i)
{
    const dc_finst *a = i->in[0] != 0 ? dc_finst_at(x->f, i->in[0]) : NULL;
    const dc_finst *c = i->in[1] != 0 ? dc_finst_at(x->f, i->in[1]) : NULL;
    return (i->op == DC_K_DIV || i->op == DC_K_LT) && a->op == DC_K_ARG &&
           a->imm == DC_KARG_THREAD && c->op == DC_K_CONST && c->imm % WARP == 0;
}

static bool is_same(const finding *x, const dc_finst *i)
{
    const dc_kop op = (dc_kop)i->op;
    if (op == DC_K_ARG)
        return i->imm != DC_KARG_THREAD;
    if (op == DC_K_LOAD || op == DC_K_GATHER)
        return dc_flat_reads_input(x->f, i) && operands_same(x, i);
    return (dc_kop_pure(op) || op == DC_K_LOOP) && (operands_same(x, i) || is_of_warp(x, i));
}

static bool is_long(const dc_flat *f, const dc_finst *loop)
{
    const dc_finst *from = dc_finst_at(f, loop->in[0]), *to = dc_finst_at(f, loop->in[1]);
    return from->op == DC_K_CONST && to->op == DC_K_CONST && to->imm > from->imm &&
           to->imm - from->imm >= LEAST;
}

/* Behind the END of what is opened at n. */
static uint32_t behind(const dc_flat *f, uint32_t n)
{
    int depth = 0;
    do {
        const uint8_t op = dc_finst_at(f, f->order.at[n++])->op;
        depth += dc_kop_opens((dc_kop)op);
        depth -= op == DC_K_END;
    } while (depth > 0);
    return n;
}

/* The IF that the loop at n consists of, behind values and loads of inputs; 0: it has others or more. */
static dc_fv only_if(const dc_flat *f, uint32_t n)
{
    for (n++; n < f->order.n; n++) {
        const dc_finst *i = dc_finst_at(f, f->order.at[n]);
        if (i->op == DC_K_IF)
            break;
        if (!dc_kop_pure((dc_kop)i->op) && !dc_flat_reads_input(f, i))
            return 0;
    }
    if (n == f->order.n)
        return 0;
    const dc_fv found = f->order.at[n];
    return dc_finst_at(f, f->order.at[behind(f, n)])->op == DC_K_END ? found : 0;
}

/* The factors of the condition that a warp agrees in. */
static void add_tests(const finding *x, dc_fv cond, dc_warp_loop *out)
{
    const dc_finst *i = dc_finst_at(x->f, cond);
    if (x->same[cond] && out->n < DC_WARP_TESTS) {
        out->test[out->n++] = cond;
    } else if (i->op == DC_K_AND && i->type == DC_BOOL) {
        add_tests(x, i->in[0], out);
        add_tests(x, i->in[1], out);
    }
}

static void open_scope(finding *x, dc_arena *a, uint32_t n)
{
    const dc_fv v = x->f->order.at[n];
    const dc_finst *i = dc_finst_at(x->f, v);
    const dc_fv test =
        i->op == DC_K_LOOP && x->apart == 0 && is_long(x->f, i) ? only_if(x->f, n) : 0;
    DC_PUSH_IN(a, x->open, v);
    x->apart += !operands_same(x, i);
    if (test != 0)
        x->inside = v;
}

static void close_scope(finding *x)
{
    const dc_finst *i = dc_finst_at(x->f, x->open.at[--x->open.n]);
    x->apart -= !operands_same(x, i);
}

const dc_warp_loop *dc_warp_loops_find(const dc_flat *f, dc_arena *a)
{
    finding x = {.f = f,
                 .same = DC_NEW_ARRAY(a, bool, f->inst.n),
                 .out = DC_NEW_ARRAY(a, dc_warp_loop, f->inst.n)};
    if (!f->simt || f->lanes != WARP || f->threads % WARP != 0)
        return NULL;
    for (uint32_t n = 0; n < f->order.n; n++) {
        const dc_fv v = f->order.at[n];
        const dc_finst *i = dc_finst_at(f, v);
        x.same[v] = is_same(&x, i);
        if (i->op == DC_K_IF && x.inside != 0) {
            add_tests(&x, i->in[0], &x.out[x.inside]);
            x.any |= x.out[x.inside].n > 0;
            x.inside = 0;
        }
        if (dc_kop_opens((dc_kop)i->op))
            open_scope(&x, a, n);
        else if (i->op == DC_K_END)
            close_scope(&x);
    }
    return x.any ? x.out : NULL;
}

static void need(const dc_flat *f, dc_fv loop, dc_fv v, bool *needed)
{
    const dc_finst *i = dc_finst_at(f, v);
    if (v <= loop || needed[v])
        return;
    needed[v] = true;
    for (int n = 0; n < 3; n++)
        if (i->in[n] != 0)
            need(f, loop, i->in[n], needed);
}

void dc_warp_loop_needs(const dc_flat *f, dc_fv loop, const dc_warp_loop *x, bool *needed)
{
    for (int n = 0; n < x->n; n++)
        need(f, loop, x->test[n], needed);
}
