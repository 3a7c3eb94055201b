/* Passes over the flat form (jit/flat/passes.def) and the loop that runs them. */
#include "jit/flat/flat.h"

static void (*const passes[])(dc_flat *f) = {
#define PASS(id, help) dc_pass_##id,
#include "jit/flat/passes.def"
};

dc_status dc_flat_optimize(dc_job *j, dc_flat *f, uint32_t skip, bool check)
{
    for (uint32_t i = 0; i < DC_COUNTOF(passes); i++) {
        if (skip >> i & 1)
            continue;
        passes[i](f);
        if (check)
            DC_TRY(dc_flat_check(j, f));
    }
    return DC_OK;
}

/* Order by scopes ---------------------------------------------------------------------------- */

/* An open scope and the instructions that are to stand in it, what opens it first. */
typedef struct scope {
    dc_kop op;    /* LOOP, IF or ROWS; of the outermost: END */
    bool *stored; /* by buffer, of a LOOP: is it stored to inside? For licm */
    DC_VEC(dc_fv) list;
} scope;

typedef struct scopes {
    dc_flat *f;
    scope *at;
    uint32_t depth; /* of the innermost open one */
    uint32_t *home; /* by value: depth of the scope that it is in */
} scopes;

static uint32_t deepest(const dc_flat *f)
{
    uint32_t depth = 0, most = 0;
    for (uint32_t n = 0; n < f->order.n; n++) {
        const dc_kop op = (dc_kop)dc_finst_at(f, f->order.at[n])->op;
        if (dc_kop_opens(op))
            depth++;
        if (op == DC_K_END)
            depth--;
        most = depth > most ? depth : most;
    }
    return most;
}

static scopes scopes_of(dc_flat *f)
{
    scopes s = {.f = f,
                .at = DC_NEW_ARRAY(&f->arena, scope, deepest(f) + 1),
                .home = DC_NEW_ARRAY(&f->arena, uint32_t, f->inst.n)};
    s.at[0].op = DC_K_END;
    return s;
}

static void put_value(scopes *s, uint32_t depth, dc_fv v)
{
    DC_PUSH_IN(&s->f->arena, s->at[depth].list, v);
}

/* LOOP, IF, ROWS and END; false for others. */
static bool put_structure(scopes *s, dc_fv v)
{
    const dc_kop op = (dc_kop)dc_finst_at(s->f, v)->op;
    if (dc_kop_opens(op)) {
        s->at[++s->depth].op = op;
        s->at[s->depth].list.n = 0;
        s->home[v] = s->depth;
        put_value(s, s->depth, v);
        return true;
    }
    if (op != DC_K_END)
        return false;
    const scope *inner = &s->at[s->depth--];
    for (uint32_t n = 0; n < inner->list.n; n++)
        put_value(s, s->depth, inner->list.at[n]);
    put_value(s, s->depth, v);
    return true;
}

static void take_order(scopes *s)
{
    s->f->order.at = s->at[0].list.at;
    s->f->order.n = s->at[0].list.n;
    s->f->order.cap = s->at[0].list.cap;
}

/* licm -------------------------------------------------------------------------------------- */

/* Buffers that are stored to between the loop at place n of the order and its end. */
static void find_stores(scopes *s, uint32_t n, bool *stored)
{
    uint32_t depth = 0;
    do {
        const dc_finst *i = dc_finst_at(s->f, s->f->order.at[n++]);
        depth += dc_kop_opens((dc_kop)i->op);
        depth -= i->op == DC_K_END;
        if (dc_kop_stores((dc_kop)i->op))
            stored[i->buf] = true;
    } while (depth > 0);
}

/* It loads from memory that other threads do not write. */
static bool reads_own(const dc_flat *f, const dc_finst *i)
{
    return dc_kop_loads((dc_kop)i->op) && (f->buf.at[i->buf].scope == DC_SCOPE_LOCAL ||
                                           f->buf.at[i->buf].scope == DC_SCOPE_SCRATCH);
}

/* An input that an update in place gives the memory of an output. */
static bool may_be_output(const dc_flat *f, const dc_finst *i)
{
    const dc_buffer *in = &f->buf.at[i->buf];
    for (uint32_t b = 0; b < f->buf.n; b++) {
        const dc_buffer *out = &f->buf.at[b];
        if (out->scope == DC_SCOPE_PARAM && out->mode != DC_MODE_IN && out->dtype == in->dtype &&
            (out->count == in->count || out->table != 0))
            return true;
    }
    return false;
}

/*
 * The scope to compute v in: out through loops that it does not depend on. A pure value may leave
 * an `if` on the way to a loop outside it; a load may not, the condition may guard it. A load of the
 * thread's own leaves loops that do not store to its buffer. One that a work item may overwrite stays in the loop
 * over work items: before it, a thread would read what another one is storing.
 */
static uint32_t place_of(const scopes *s, dc_fv v)
{
    const dc_finst *i = dc_finst_at(s->f, v);
    const bool pure = dc_kop_pure((dc_kop)i->op), own = reads_own(s->f, i);
    uint32_t needs = 0, best = s->depth;
    if (!pure && !own && !dc_flat_reads_input(s->f, i))
        return best;
    for (int n = 0; n < 3; n++)
        if (i->in[n] != 0 && s->home[i->in[n]] > needs)
            needs = s->home[i->in[n]];
    if (!pure && !own && !s->f->simt && needs == 0 && s->depth > 0 && may_be_output(s->f, i))
        needs = 1;
    for (uint32_t d = s->depth; d > needs; d--) {
        if (own && s->at[d].op == DC_K_LOOP && s->at[d].stored[i->buf])
            break;
        if (s->at[d].op == DC_K_LOOP)
            best = d - 1;
        else if (!pure)
            break;
    }
    return best;
}

void dc_pass_licm(dc_flat *f)
{
    scopes s = scopes_of(f);
    for (uint32_t n = 0; n < f->order.n; n++) {
        const dc_fv v = f->order.at[n];
        if (put_structure(&s, v)) {
            if (dc_finst_at(f, v)->op == DC_K_LOOP) {
                s.at[s.depth].stored = DC_NEW_ARRAY(&f->arena, bool, f->buf.n);
                find_stores(&s, n, s.at[s.depth].stored);
            }
            continue;
        }
        s.home[v] = place_of(&s, v);
        put_value(&s, s.home[v], v);
    }
    take_order(&s);
}

/* dce --------------------------------------------------------------------------------------- */

static bool *live_values(dc_flat *f)
{
    bool *live = DC_NEW_ARRAY(&f->arena, bool, f->inst.n);
    for (uint32_t n = f->order.n; n-- > 0;) { /* users before what they use */
        const dc_fv v = f->order.at[n];
        const dc_finst *i = dc_finst_at(f, v);
        const bool makes_value =
            dc_kop_meets((dc_kop)i->op) || dc_kop_loads((dc_kop)i->op) || i->op == DC_K_MATRIX;
        if (!dc_kop_pure((dc_kop)i->op) && (!makes_value || dc_kop_stores((dc_kop)i->op)))
            live[v] = true;
        if (live[v])
            for (int m = 0; m < 3; m++)
                live[i->in[m]] = true;
    }
    return live;
}

/* Puts the pure values that v reads, each in its scope, which is open still. */
static void put_operands(scopes *s, dc_fv v, bool *done)
{
    const dc_finst *i = dc_finst_at(s->f, v);
    for (int n = 0; n < 3; n++) {
        const dc_fv o = i->in[n];
        if (o == 0 || done[o] || !dc_kop_pure((dc_kop)dc_finst_at(s->f, o)->op))
            continue;
        done[o] = true;
        put_operands(s, o, done);
        put_value(s, s->home[o], o);
    }
}

/* Ids in the order of the instructions, none unused. */
static void renumber(dc_flat *f)
{
    dc_fv *id = DC_NEW_ARRAY(&f->arena, dc_fv, f->inst.n);
    dc_finst *inst = DC_NEW_ARRAY(&f->arena, dc_finst, f->order.n + 1);
    for (uint32_t n = 0; n < f->order.n; n++) {
        dc_finst *i = &inst[n + 1];
        *i = *dc_finst_at(f, f->order.at[n]);
        id[f->order.at[n]] = n + 1;
        for (int m = 0; m < 3; m++)
            i->in[m] = id[i->in[m]];
        f->order.at[n] = n + 1;
    }
    f->inst.at = inst;
    f->inst.n = f->inst.cap = f->order.n + 1;
}

/*
 * Memory, structure, barriers and shuffles keep their order; pure values follow in the order they are asked for. So the
 * result does not depend on the order that arguments of calls are evaluated in where it was built.
 */
void dc_pass_dce(dc_flat *f)
{
    scopes s = scopes_of(f);
    const bool *live = live_values(f);
    bool *done = DC_NEW_ARRAY(&f->arena, bool, f->inst.n);
    uint32_t depth = 0;
    for (uint32_t n = 0; n < f->order.n; n++) {
        const dc_kop op = (dc_kop)dc_finst_at(f, f->order.at[n])->op;
        depth += dc_kop_opens(op);
        depth -= op == DC_K_END;
        s.home[f->order.at[n]] = depth;
    }
    for (uint32_t n = 0; n < f->order.n; n++) {
        const dc_fv v = f->order.at[n];
        if (!live[v] || dc_kop_pure((dc_kop)dc_finst_at(f, v)->op))
            continue;
        put_operands(&s, v, done);
        if (!put_structure(&s, v))
            put_value(&s, s.home[v], v);
    }
    take_order(&s);
    renumber(f);
}
