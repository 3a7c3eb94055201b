/*
 * Contractions for all iterations at once: one large product instead of n small ones.
 *
 * Before the loop: what is made of xs and constants through a contraction becomes an x. Behind it: a y that no carry needs,
 * made through a contraction of values whose stacks are there or are no larger than its own. Both are functions of one
 * iteration, batched (core/transform/batch.h), so the order of additions does not change.
 */
#include "core/autodiff/custom.h"
#include "core/ir/conv.h"
#include "core/ir/dot.h"
#include "core/ir/exchange.h"
#include "core/transform/batch.h"
#include "jit/base/tuning.h"
#include "jit/rewrite/loops_impl.h"

static int64_t bytes_of(const dc_func *f, dc_ref r)
{
    const dc_type t = dc_node_type(f, r);
    return (int64_t)dc_type_bytes(&t);
}

/* A convolution, or a product that adds up. */
static bool contracts(const dc_func *f, dc_ref r)
{
    const dc_node *n = dc_node_at(f, r);
    int64_t terms = 1;
    if (n->op != DC_OP_DOT)
        return n->op == DC_OP_CONV;
    const dc_dot d = dc_dot_of(f, n);
    for (int i = 0; i < d.ncontract; i++)
        terms *= dc_node_at(f, n->in[0])->dim[d.contract[0][i]];
    return terms > 1;
}

/* ---- functions of one iteration -------------------------------------------------------------- */

typedef struct taking {
    dc_loopedit *w;
    dc_func *fn;
    dc_ref *map;             /* by node of the body */
    DC_VEC(dc_loop_arg) arg; /* by parameter of fn */
} taking;

static void begin_taking(taking *t, dc_loopedit *w)
{
    *t = (taking){.w = w, .fn = dc_func_new(w->f->module, "iteration")};
    t->map = DC_NEW_ARRAY(&w->j->scratch, dc_ref, w->body->node.n);
}

/* Node r of the body is a parameter of fn. */
static void take_arg(taking *t, dc_ref r, dc_loop_arg arg)
{
    const dc_type type = dc_node_type(t->w->body, r);
    t->map[r] = dc_graph_param(t->fn, &type, NULL);
    DC_PUSH_IN(&t->w->j->scratch, t->arg, arg);
}

/* All nodes that the value is made of, as far as nothing stands for them. */
static void take_cone(taking *t, dc_ref value)
{
    const dc_func *b = t->w->body;
    bool *cone = DC_NEW_ARRAY(&t->w->j->scratch, bool, b->node.n);
    dc_ref in[DC_MAX_OPERANDS];
    cone[value] = true;
    for (dc_ref r = value; r > 0; r--)
        for (int i = 0; cone[r] && t->map[r] == 0 && i < dc_node_at(b, r)->nin; i++)
            cone[dc_node_at(b, r)->in[i]] = true;
    for (dc_ref r = 1; r <= value; r++) {
        const dc_node *n = dc_node_at(b, r);
        if (!cone[r] || t->map[r] != 0)
            continue;
        for (int i = 0; i < n->nin; i++)
            in[i] = t->map[n->in[i]];
        t->map[r] = dc_graph_again(t->fn, b, r, in);
    }
}

/* fn for all iterations, in `to`; false: a value would have too many axes. */
static bool try_batch(taking *t, dc_func *to, const dc_ref *param, dc_ref *result)
{
    dc_job *j = t->w->j;
    const dc_err before = j->err;
    bool *rows = DC_NEW_ARRAY(&j->scratch, bool, t->fn->param.n);
    bool *is = DC_NEW_ARRAY(&j->scratch, bool, t->fn->result.n);
    for (uint32_t i = 0; i < t->fn->param.n; i++)
        rows[i] = t->arg.at[i].from != DC_LOOP_OUTER;
    const dc_status s = dc_batch_inline(j, to, t->fn, param, rows, t->w->n, result, is);
    if (s != DC_OK)
        j->err = before;
    for (uint32_t i = 0; s == DC_OK && i < t->fn->result.n; i++)
        if (!is[i])
            return false;
    return s == DC_OK;
}

/* ---- before the loop ------------------------------------------------------------------------- */

typedef struct projecting {
    dc_loopedit *w;
    bool *fixed; /* by node of the body: made of constants */
    bool *of_x;  /* of xs, too, and of nothing else */
    uint32_t *uses;
    dc_ref *user; /* the last one */
    bool *cut;    /* becomes an x */
    bool chunks;  /* of chunks: memory of all iterations does not count */
} projecting;

static void find_kinds(projecting *p)
{
    const dc_loopedit *w = p->w;
    const dc_func *b = w->body;
    for (uint32_t i = 0; i < w->constant.n; i++)
        p->fixed[w->constant.at[i].param] = true;
    for (uint32_t i = 0; i < w->x.n; i++)
        p->of_x[w->x.at[i].param] = true;
    for (dc_ref r = 1; r < b->node.n; r++) {
        const dc_node *n = dc_node_at(b, r);
        bool all = n->op != DC_OP_HOLE && n->op != DC_OP_BARRIER && !dc_exchange_is_ordered(b, n),
             any = false;
        if (n->op == DC_OP_PARAM)
            continue;
        for (int i = 0; i < n->nin; i++) {
            all = all && (p->fixed[n->in[i]] || p->of_x[n->in[i]]);
            any = any || p->of_x[n->in[i]];
        }
        p->fixed[r] = all && !any;
        p->of_x[r] = all && any;
    }
}

static void count_uses(projecting *p)
{
    const dc_loopedit *w = p->w;
    const bool *needed = dc_loop_needed(w);
    for (dc_ref r = 1; r < w->body->node.n; r++)
        for (int i = 0; needed[r] && i < dc_node_at(w->body, r)->nin; i++) {
            const dc_ref in = dc_node_at(w->body, r)->in[i];
            p->uses[in]++;
            p->user[in] = r;
        }
    for (uint32_t i = 0; i < w->carry.n; i++)
        p->uses[w->carry.at[i].next] += 2;
    for (uint32_t i = 0; i < w->y.n; i++)
        p->uses[w->y.at[i].value] += 2;
}

/* From a contraction on, what is alone in reading it and no larger, is made of xs, and is no control flow. */
static dc_ref last_of(const projecting *p, dc_ref r)
{
    const dc_func *b = p->w->body;
    for (;;) {
        const dc_ref next = p->user[r];
        if (p->uses[r] != 1 || !p->of_x[next] ||
            dc_op_is((dc_op)dc_node_at(b, next)->op, DC_CLASS_CTL) ||
            bytes_of(b, next) > bytes_of(b, r))
            return r;
        r = next;
    }
}

/* Memory of all iterations is little, or no many times what the xs have. */
static bool is_worth_memory(const projecting *p, dc_ref r)
{
    const dc_loopedit *w = p->w;
    const dc_func *b = w->body;
    bool *cone = DC_NEW_ARRAY(&w->j->scratch, bool, b->node.n);
    int64_t of_xs = 0, all;
    cone[r] = true;
    for (dc_ref k = r; k > 0; k--)
        for (int i = 0; cone[k] && i < dc_node_at(b, k)->nin; i++)
            cone[dc_node_at(b, k)->in[i]] = true;
    for (uint32_t i = 0; i < w->x.n; i++)
        if (cone[w->x.at[i].param])
            of_xs += bytes_of(b, w->x.at[i].param);
    return p->chunks || (dc_mul_ok(bytes_of(b, r), w->n, &all) &&
                         (all <= DC_TUNE_LOOP_STACK_BYTES ||
                          bytes_of(b, r) / DC_TUNE_LOOP_STACK_SHARE <= of_xs));
}

static bool find_cuts(projecting *p)
{
    const dc_func *b = p->w->body;
    bool any = false;
    for (dc_ref r = 1; r < b->node.n; r++) {
        if (!p->of_x[r] || p->uses[r] == 0 || !contracts(b, r))
            continue;
        const dc_ref last = last_of(p, r);
        p->cut[last] = is_worth_memory(p, last);
        any = any || p->cut[last];
    }
    return any;
}

static void project(projecting *p)
{
    dc_loopedit *w = p->w;
    dc_arena *a = &w->j->scratch;
    taking t;
    begin_taking(&t, w);
    for (uint32_t i = 0; i < w->constant.n; i++)
        take_arg(&t, w->constant.at[i].param,
                 (dc_loop_arg){.from = DC_LOOP_OUTER, .in = w->constant.at[i].in});
    for (uint32_t i = 0; i < w->x.n; i++)
        take_arg(&t, w->x.at[i].param,
                 (dc_loop_arg){.from = DC_LOOP_OUTER_STACK, .in = w->x.at[i].in});
    DC_VEC(dc_ref) cut = {0};
    for (dc_ref r = 1; r < w->body->node.n; r++)
        if (p->cut[r] && dc_loop_operand_count(w) + cut.n < DC_MAX_OPERANDS) {
            take_cone(&t, r);
            DC_PUSH(t.fn->result, t.map[r]);
            DC_PUSH_IN(a, cut, r);
        }
    dc_ref *param = DC_NEW_ARRAY(a, dc_ref, t.fn->param.n), *made;
    made = DC_NEW_ARRAY(a, dc_ref, cut.n);
    for (uint32_t i = 0; i < t.fn->param.n; i++)
        param[i] = t.arg.at[i].in;
    const bool done = try_batch(&t, w->f, param, made);
    dc_func_drop(t.fn);
    if (!done)
        return;
    for (uint32_t i = 0; i < cut.n; i++)
        DC_PUSH_IN(a, w->x, ((dc_loop_slot){.in = made[i], .param = cut.at[i]}));
    dc_loop_remake(w, NULL, NULL);
    dc_loop_drop_dead(w);
}

/* What is to be projected, as a whole or in chunks; false: nothing is. */
static bool plan(projecting *p, dc_loopedit *w, bool chunks)
{
    dc_arena *a = &w->j->scratch;
    const uint32_t n = w->body->node.n;
    *p = (projecting){.w = w,
                      .fixed = DC_NEW_ARRAY(a, bool, n),
                      .of_x = DC_NEW_ARRAY(a, bool, n),
                      .uses = DC_NEW_ARRAY(a, uint32_t, n),
                      .user = DC_NEW_ARRAY(a, dc_ref, n),
                      .cut = DC_NEW_ARRAY(a, bool, n),
                      .chunks = chunks};
    if (w->x.n == 0 || ((w->flags & DC_LOOP_TEST) != 0 && w->n > DC_TUNE_LOOP_TESTED))
        return false;
    find_kinds(p);
    count_uses(p);
    return find_cuts(p);
}

/* Of a product: rows of what is made of xs. A convolution has many. */
static int64_t rows_of(const projecting *p, dc_ref r)
{
    const dc_func *b = p->w->body;
    const dc_node *n = dc_node_at(b, r);
    if (n->op != DC_OP_DOT)
        return INT64_MAX;
    const dc_dot d = dc_dot_of(b, n);
    const int side = p->of_x[n->in[0]] ? 0 : 1;
    int64_t rows = 1;
    for (int i = 0; i < d.nfree[side]; i++)
        rows *= dc_node_at(b, n->in[side])->dim[d.free[side][i]];
    return rows;
}

/* It runs to its end, and there is room for the number of a chunk. */
static bool may_have_chunks(const dc_loopedit *w)
{
    return (w->flags & (DC_LOOP_LIMIT | DC_LOOP_TEST | DC_LOOP_ROWS)) == 0 &&
           dc_loop_operand_count(w) < DC_MAX_OPERANDS - 1;
}

/*
 * Bytes of what is cut of one iteration, the fewest rows of a product among it, and the largest matrix that one reads for
 * them.
 */
static int64_t cut_bytes(const projecting *p, int64_t *rows, int64_t *matrix)
{
    const dc_func *b = p->w->body;
    int64_t bytes = 0;
    *rows = INT64_MAX;
    *matrix = 0;
    for (dc_ref r = 1; r < b->node.n; r++) {
        const dc_node *n = dc_node_at(b, r);
        bytes += p->cut[r] ? bytes_of(b, r) : 0;
        if (!p->of_x[r] || p->uses[r] == 0 || !contracts(b, r))
            continue;
        *rows = dc_min_i64(*rows, rows_of(p, r));
        for (int i = 0; i < 2; i++)
            if (p->fixed[n->in[i]])
                *matrix = dc_max_i64(*matrix, bytes_of(b, n->in[i]));
    }
    return bytes;
}

/* The divisor of n, less than n, that is nearest to the length, up to twice or half of it; 0: there is none. */
static int64_t divisor_near(int64_t n, int64_t length)
{
    for (int64_t off = 0; off <= length; off++) {
        if (length + off < n && n % (length + off) == 0)
            return length + off;
        if (2 * (length - off) >= length && length > off && n % (length - off) == 0 &&
            length - off < n)
            return length - off;
    }
    return 0;
}

int64_t dc_loop_chunk(dc_loopedit *w, const dc_loop_sizes *sizes)
{
    projecting p;
    int64_t rows, matrix, all;
    if (sizes->stack_bytes == 0 || !may_have_chunks(w) || !plan(&p, w, true))
        return 0;
    const int64_t bytes = cut_bytes(&p, &rows, &matrix);
    if (bytes == 0 || (dc_mul_ok(bytes, w->n, &all) && all <= sizes->stack_bytes))
        return 0;
    if (matrix > sizes->chunk_bytes && rows < sizes->chunk_rows)
        return 0; /* it would be read for few rows, and leave a chunk no room */
    const int64_t least = rows >= sizes->chunk_rows ? 1 : (sizes->chunk_rows - 1) / rows + 1;
    return divisor_near(w->n, dc_max_i64(sizes->chunk_bytes / bytes, least));
}

void dc_loop_project(dc_loopedit *w, const dc_loop_sizes *sizes)
{
    projecting p;
    if ((w->flags & DC_LOOP_ROWS) == 0 && plan(&p, w, false) && dc_loop_chunk(w, sizes) == 0)
        project(&p);
}

/* ---- behind the loop ------------------------------------------------------------------------- */

typedef struct delaying {
    dc_loopedit *w;
    bool *carried; /* by node of the body: a carry needs it */
    bool *late;    /* of the y at hand: computed behind the loop */
    int64_t added; /* bytes of an element of the ys that are new for it */
    taking t;
    uint32_t ny; /* before it was tried */
} delaying;

static void find_carried(delaying *d)
{
    const dc_loopedit *w = d->w;
    const dc_func *b = w->body;
    for (uint32_t i = 0; i < w->carry.n; i++)
        d->carried[w->carry.at[i].next] = true;
    for (dc_ref r = b->node.n; r-- > 1;)
        for (int i = 0; d->carried[r] && i < dc_node_at(b, r)->nin; i++)
            d->carried[dc_node_at(b, r)->in[i]] = true;
}

/* Is the value made through a contraction by nodes that no carry needs? Marks them. */
static bool find_late(delaying *d, dc_ref value)
{
    const dc_func *b = d->w->body;
    bool any = false;
    for (dc_ref r = 1; r < b->node.n; r++)
        d->late[r] = r == value;
    for (dc_ref r = value; r > 0; r--) {
        const dc_node *n = dc_node_at(b, r);
        d->late[r] = d->late[r] && !d->carried[r] && n->op != DC_OP_PARAM;
        if (d->late[r] &&
            (n->op == DC_OP_BARRIER || n->op == DC_OP_HOLE || dc_exchange_is_ordered(b, n)))
            return false;
        any = any || (d->late[r] && contracts(b, r));
        for (int i = 0; d->late[r] && i < n->nin; i++)
            d->late[n->in[i]] = true;
    }
    return any;
}

/* The y that stacks node r, which may be a new one. */
static uint32_t stack_of(delaying *d, dc_ref r)
{
    dc_loopedit *w = d->w;
    for (uint32_t i = 0; i < w->y.n; i++)
        if (w->y.at[i].value == r)
            return i;
    const dc_type t = dc_node_type(w->body, r), all = dc_loop_stacked(&t, w->n);
    const dc_ref kept = w->flags & DC_LOOP_LIMIT ? dc_graph_const(w->f, &all, 0) : 0;
    DC_PUSH_IN(&w->j->scratch, w->y, ((dc_loop_stack){.value = r, .kept = kept}));
    d->added += bytes_of(w->body, r);
    return w->y.n - 1;
}

static dc_loop_arg arg_of(delaying *d, dc_ref r)
{
    dc_loopedit *w = d->w;
    const int64_t along = 0;
    const dc_type line = dc_type_make(DC_I32, 1, &w->n);
    for (uint32_t i = 0; i < w->constant.n; i++)
        if (w->constant.at[i].param == r)
            return (dc_loop_arg){.from = DC_LOOP_OUTER, .in = w->constant.at[i].in};
    for (uint32_t i = 0; i < w->x.n; i++)
        if (w->x.at[i].param == r)
            return (dc_loop_arg){.from = DC_LOOP_OUTER_STACK, .in = w->x.at[i].in};
    if (r == w->i)
        return (dc_loop_arg){.from = DC_LOOP_OUTER_STACK,
                             .in = dc_graph_make(w->f, DC_OP_IOTA, NULL, 0, &along, 1, &line)};
    return (dc_loop_arg){.from = DC_LOOP_Y, .y = stack_of(d, r)};
}

/* What late nodes read of others: trivial ones are made again. False: an element may not be stacked. */
static bool take_args(delaying *d, dc_ref value)
{
    const dc_func *b = d->w->body;
    for (dc_ref r = 1; r <= value; r++) {
        const dc_node *n = dc_node_at(b, r);
        for (int i = 0; d->late[r] && i < n->nin; i++) {
            const dc_ref in = n->in[i];
            if (d->late[in] || d->t.map[in] != 0 || dc_loop_is_trivial(b, in))
                continue;
            if (dc_is_control(dc_node_at(b, in)) || dc_node_at(b, in)->rank == DC_MAX_RANK)
                return false;
            take_arg(&d->t, in, arg_of(d, in));
        }
    }
    return true;
}

/* In a function that is dropped: does it get through? */
static bool is_possible(delaying *d)
{
    const dc_loopedit *w = d->w;
    dc_func *trial = dc_func_new(w->f->module, "trial");
    dc_ref *param = DC_NEW_ARRAY(&w->j->scratch, dc_ref, d->t.fn->param.n), made;
    for (uint32_t i = 0; i < d->t.fn->param.n; i++) {
        const dc_type t = dc_node_type(d->t.fn, d->t.fn->param.at[i]);
        const dc_type all = dc_loop_stacked(&t, w->n);
        param[i] = dc_graph_param(trial, d->t.arg.at[i].from == DC_LOOP_OUTER ? &t : &all, NULL);
    }
    const bool good = try_batch(&d->t, trial, param, &made);
    dc_func_drop(trial);
    return good;
}

static bool take_value(delaying *d, dc_ref value)
{
    const dc_loopedit *w = d->w;
    bool rows = false;
    if (!take_args(d, value) || d->added > bytes_of(w->body, value) ||
        dc_loop_operand_count(w) > DC_MAX_OPERANDS)
        return false;
    for (uint32_t i = 0; i < d->t.arg.n; i++)
        rows = rows || d->t.arg.at[i].from != DC_LOOP_OUTER;
    if (!rows)
        return false;
    take_cone(&d->t, value);
    DC_PUSH(d->t.fn->result, d->t.map[value]);
    return is_possible(d);
}

static bool is_read(const dc_loopedit *w, uint32_t y)
{
    for (uint32_t i = 0; i < w->nresult; i++)
        if (w->result[i].kind == DC_LOOP_STACKED && w->result[i].at == y)
            return true;
    return false;
}

static bool delay_y(delaying *d, uint32_t y)
{
    dc_loopedit *w = d->w;
    const dc_ref value = w->y.at[y].value;
    if (w->y.at[y].asked || !is_read(w, y) || !find_late(d, value))
        return false;
    d->added = 0;
    d->ny = w->y.n;
    begin_taking(&d->t, w);
    if (!take_value(d, value)) {
        w->y.n = d->ny;
        dc_func_drop(d->t.fn);
        return false;
    }
    for (uint32_t i = 0; i < d->t.arg.n; i++)
        if (d->t.arg.at[i].from == DC_LOOP_Y)
            w->y.at[d->t.arg.at[i].y].asked = true;
    for (uint32_t i = 0; i < w->nresult; i++)
        if (w->result[i].kind == DC_LOOP_STACKED && w->result[i].at == y)
            w->result[i] = (dc_loop_result){DC_LOOP_LATE, w->late.n, 0};
    const dc_loop_late late = {d->t.fn, d->t.arg.at, w->y.at[y].kept};
    DC_PUSH_IN(&w->j->scratch, w->late, late);
    return true;
}

void dc_loop_delay(dc_loopedit *w)
{
    dc_arena *a = &w->j->scratch;
    delaying d = {.w = w,
                  .carried = DC_NEW_ARRAY(a, bool, w->body->node.n),
                  .late = DC_NEW_ARRAY(a, bool, w->body->node.n)};
    if (w->flags & (DC_LOOP_TEST | DC_LOOP_ROWS))
        return;
    find_carried(&d);
    for (bool more = true; more;) { /* a stack that is made for one may serve another */
        const uint32_t ny = w->y.n;
        more = false;
        for (uint32_t y = 0; y < ny; y++)
            more = delay_y(&d, y) || more;
    }
    if (w->late.n > 0)
        dc_loop_drop_dead(w);
}
