/*
 * The reference interpreter: a function and arrays of its parameters in, arrays of its results out.
 *
 * Nodes run in the order of their refs, which is topological. A value lives in one dense array from
 * its node to its last use. All arrays hang on one state that is on the job's cleanup list, so
 * nothing leaks when a broken promise unwinds.
 */
#include "core/eval/eval.h"

#include "core/base/control_word.h"
#include "core/eval/eval_impl.h"

#include <string.h>

size_t dc_eval_size(dc_eval_mode mode, dc_dtype t)
{
    return mode == DC_EVAL_WIDE && dc_dtype_is_float(t) ? sizeof(double) : dc_dtype_size(t);
}

dc_status dc_eval_alloc(dc_eval_state *s, int64_t count, size_t size, void **slot)
{
    DC_ASSERT(*slot == NULL, "a value is made twice");
    if (count > 0 && (uint64_t)count > PTRDIFF_MAX / size)
        return dc_fail(s->j, DC_ERR_NOMEM, NULL);
    *slot = dc_try_realloc(NULL, (size_t)count * size);
    return *slot == NULL ? dc_fail_memory(s->j, (uint64_t)count * size) : DC_OK;
}

void dc_eval_drop(void **slot)
{
    dc_xfree(*slot);
    *slot = NULL;
}

static void drop_temps(dc_eval_state *s)
{
    for (int i = 0; i < DC_EVAL_TEMPS; i++)
        dc_eval_drop(&s->temp[i]);
}

static void drop_value(dc_eval_state *s, dc_ref r)
{
    if (!s->lent[r])
        dc_xfree(s->value[r]);
    s->value[r] = NULL;
    for (uint32_t i = 0; i < s->many[r].n; i++)
        dc_eval_drop(&s->many[r].at[i]);
}

static void drop_all(void *what)
{
    dc_eval_state *s = what;
    for (dc_ref r = 0; r < s->n; r++)
        drop_value(s, r);
    drop_temps(s);
    dc_set_control_word(s->control);
}

/* ---- movement ---- */

void dc_eval_steps(int rank, const int64_t *dim, int64_t *step)
{
    int64_t n = 1;
    for (int i = rank - 1; i >= 0; i--) {
        step[i] = n;
        n *= dim[i];
    }
}

/* Leaves out axes of extent 1 and joins neighbours that are one run on both sides. */
static dc_eval_move joined(const dc_eval_move *m)
{
    dc_eval_move o = {0};
    for (int i = 0; i < m->rank; i++) {
        if (m->dim[i] == 1)
            continue;
        const int last = o.rank - 1;
        const bool run = o.rank > 0 && o.to[last] == m->dim[i] * m->to[i] &&
                         o.from[last] == m->dim[i] * m->from[i];
        const int at = run ? last : o.rank++;
        o.dim[at] = run ? o.dim[at] * m->dim[i] : m->dim[i];
        o.to[at] = m->to[i];
        o.from[at] = m->from[i];
    }
    return o;
}

/* Copies of constant size become single moves, whatever the type of the elements is. */
#define ROW(bytes)                  \
    for (int64_t i = 0; i < n; i++) \
    memcpy(t + i * step_to * (bytes), f + i * step_from * (bytes), (bytes))

static void move_row(size_t size, void *to, int64_t at_to, int64_t step_to, const void *from,
                     int64_t at_from, int64_t step_from, int64_t n)
{
    char *t = (char *)to + at_to * (int64_t)size;
    const char *f = (const char *)from + at_from * (int64_t)size;
    if (step_to == 1 && step_from == 1)
        memcpy(t, f, (size_t)n * size);
    else if (size == 1)
        ROW(1);
    else if (size == 2)
        ROW(2);
    else if (size == 4)
        ROW(4);
    else if (size == 8)
        ROW(8);
    else
        DC_BUG("elements of %zu bytes", size);
}
#undef ROW

void dc_eval_move_run(const dc_eval_move *m, size_t size, void *to, const void *from)
{
    for (int i = 0; i < m->rank; i++)
        if (m->dim[i] == 0)
            return;
    const dc_eval_move o = joined(m);
    const int last = o.rank - 1;
    int64_t pos[DC_MAX_RANK] = {0}, at_to = 0, at_from = 0, rows = 0;
    for (;;) {
        if (rows++ % DC_EVAL_CHUNK == 0)
            dc_job_look();
        if (last < 0)
            move_row(size, to, 0, 1, from, 0, 1, 1);
        else
            move_row(size, to, at_to, o.to[last], from, at_from, o.from[last], o.dim[last]);
        int i = last - 1;
        for (; i >= 0; i--) {
            at_to += o.to[i];
            at_from += o.from[i];
            if (++pos[i] < o.dim[i])
                break;
            at_to -= o.to[i] * o.dim[i];
            at_from -= o.from[i] * o.dim[i];
            pos[i] = 0;
        }
        if (i < 0)
            return;
    }
}

/*
 * The index map of a movement operation as steps: the walk is over the result's positions (reading
 * backwards through the map), for pad over the operand's. *base_to and *base_from are where it
 * starts.
 */
static dc_eval_move map_of(const dc_node *n, const dc_node *in, int64_t *base_to,
                           int64_t *base_from)
{
    const int64_t *a = n->attr;
    dc_eval_move m = {.rank = n->rank};
    int64_t step[DC_MAX_RANK]; /* of the operand */
    *base_to = *base_from = 0;
    dc_eval_steps(n->rank, n->dim, m.to);
    dc_eval_steps(in->rank, in->dim, step);
    for (int i = 0; i < n->rank; i++) {
        m.dim[i] = n->dim[i];
        switch ((int)n->op) {
        case DC_OP_PERMUTE:
            m.from[i] = step[a[i]];
            break;
        case DC_OP_EXPAND:
            m.from[i] = in->dim[i] == n->dim[i] ? step[i] : 0;
            break;
        case DC_OP_SLICE:
            *base_from += a[i] * step[i];
            m.from[i] = step[i] * a[n->rank + i];
            break;
        case DC_OP_FLIP: {
            const bool turned = (a[0] >> i & 1) != 0;
            *base_from += turned ? (n->dim[i] - 1) * step[i] : 0;
            m.from[i] = turned ? -step[i] : step[i];
            break;
        }
        case DC_OP_PAD:
            *base_to += a[i] * m.to[i];
            m.to[i] *= a[n->rank + i];
            m.from[i] = step[i];
            m.dim[i] = in->dim[i];
            break;
        default:
            DC_BUG("%s moves nothing", dc_op_row_of((dc_op)n->op)->name);
        }
    }
    return m;
}

static void fill_value(dc_eval_state *s, const dc_node *n, void *to, uint64_t bits)
{
    const dc_dtype t = (dc_dtype)n->dtype;
    const size_t size = dc_eval_size(s->mode, t);
    const int64_t count = dc_node_count(n);
    union {
        double wide;
        float f;
        uint64_t bits;
    } one = {0};
    if (count == 0)
        return;
    if (dc_dtype_is_float(t)) {
        const double v = dc_value_of(t, bits);
        dc_eval_put_f(s->mode, t, &one, 0, 1, &v);
    } else {
        dc_eval_put_i(t, &one, 0, 1, &bits);
    }
    const dc_eval_move m = {.rank = 1, .dim = {count}, .to = {1}, .from = {0}};
    dc_eval_move_run(&m, size, to, &one);
}

static void move(dc_eval_state *s, dc_ref r)
{
    const dc_node *n = dc_node_at(s->f, r), *in = dc_node_at(s->f, n->in[0]);
    const size_t size = dc_eval_size(s->mode, (dc_dtype)n->dtype);
    char *to = s->value[r];
    const char *from = s->value[n->in[0]];
    if (n->op == DC_OP_PAD)
        fill_value(s, n, to, (uint64_t)n->attr[2 * n->rank]);
    if (dc_node_count(n) == 0 || dc_node_count(in) == 0)
        return; /* no address outside an array is formed; one of nothing may be NULL */
    if (n->op == DC_OP_RESHAPE) {
        memcpy(to, from, (size_t)dc_node_count(n) * size);
        return;
    }
    int64_t base_to, base_from;
    const dc_eval_move m = map_of(n, in, &base_to, &base_from);
    dc_eval_move_run(&m, size, to + (size_t)base_to * size, from + (size_t)base_from * size);
}

static void copy_value(dc_eval_state *s, dc_ref r)
{
    const dc_node *n = dc_node_at(s->f, r);
    const size_t size = dc_eval_size(s->mode, (dc_dtype)n->dtype);
    if (dc_node_count(n) > 0)
        memcpy(s->value[r], s->value[n->in[0]], (size_t)dc_node_count(n) * size);
}

/* Where each piece of a join lies in it. */
static void put_pieces(dc_eval_state *s, dc_ref r)
{
    const dc_node *n = dc_node_at(s->f, r);
    const size_t size = dc_eval_size(s->mode, (dc_dtype)n->dtype);
    for (int i = 1; i < n->nin; i++) {
        const dc_node *p = dc_node_at(s->f, n->in[i]);
        const int64_t *lo = p->attr + 2, *step = lo + n->rank, *dim = step + n->rank;
        dc_eval_move m = {.rank = n->rank};
        int64_t base = 0;
        dc_eval_steps(n->rank, n->dim, m.to);
        dc_eval_steps(n->rank, dim, m.from);
        for (int k = 0; k < n->rank; k++) {
            m.dim[k] = dim[k];
            base += lo[k] * m.to[k];
            m.to[k] *= step[k];
        }
        dc_eval_move_run(&m, size, (char *)s->value[r] + (size_t)base * size, s->value[n->in[i]]);
    }
}

/* ---- sources ---- */

static void iota(dc_eval_state *s, dc_ref r)
{
    const dc_node *n = dc_node_at(s->f, r);
    const dc_dtype t = (dc_dtype)n->dtype;
    const int64_t count = dc_node_count(n), axis = n->attr[0];
    int64_t step[DC_MAX_RANK];
    dc_eval_steps(n->rank, n->dim, step);
    for (int64_t i = 0; i < count; i++) {
        if (i % DC_EVAL_CHUNK == 0)
            dc_job_look();
        const int64_t at = i / step[axis] % n->dim[axis];
        if (dc_dtype_is_float(t)) {
            const double v = (double)at;
            dc_eval_put_f(s->mode, t, s->value[r], i, 1, &v);
        } else {
            const uint64_t bits = (uint64_t)at;
            dc_eval_put_i(t, s->value[r], i, 1, &bits);
        }
    }
}

/* ---- the walk ---- */

static dc_status run_node(dc_eval_state *s, dc_ref r, const void *const *params)
{
    const dc_node *n = dc_node_at(s->f, r);
    const dc_op op = (dc_op)n->op;
    if (op == DC_OP_PARAM) {
        s->lent[r] = true;
        memcpy(&s->value[r], &params[n->attr[0]], sizeof s->value[r]); /* only read from now on */
        return DC_OK;
    }
    DC_TRY(dc_eval_alloc(s, dc_node_count(n), dc_eval_size(s->mode, (dc_dtype)n->dtype),
                         &s->value[r]));
    switch ((dc_op_class)dc_op_row_of(op)->cls) {
    case DC_CLASS_EW:
        dc_eval_ew(s, r);
        return DC_OK;
    case DC_CLASS_RED:
        return dc_eval_reduce(s, r);
    case DC_CLASS_MOV:
        move(s, r);
        return DC_OK;
    case DC_CLASS_SRC:
        if (op == DC_OP_CONST || op == DC_OP_HOLE)
            fill_value(s, n, s->value[r], op == DC_OP_CONST ? (uint64_t)n->attr[0] : 0);
        else
            iota(s, r);
        return DC_OK;
    case DC_CLASS_CON:
        return op == DC_OP_CONV ? dc_eval_conv(s, r) : dc_eval_dot(s, r);
    case DC_CLASS_SAME:
        copy_value(s, r);
        return DC_OK;
    case DC_CLASS_PART:
        copy_value(s, r);
        put_pieces(s, r);
        return DC_OK;
    case DC_CLASS_FFT:
        return dc_eval_fft(s, r);
    case DC_CLASS_IDX:
        if (op != DC_OP_GATHER)
            return dc_eval_scatter(s, r);
        dc_eval_gather(s, r);
        return DC_OK;
    case DC_CLASS_HST:
    case DC_CLASS_COM:
        return dc_eval_host(s, r);
    case DC_CLASS_CTL:
        if (op != DC_OP_PICK)
            return op == DC_OP_LOOP ? dc_eval_loop(s, r) : dc_eval_branch(s, r);
        dc_eval_pick(s, r);
        return DC_OK;
    }
    DC_BUG("class of op %d", (int)op);
}

/* last[r] is the last node that reads r; a result is read after the last node, UINT32_MAX. */
static dc_ref *last_uses(dc_eval_state *s, const bool *live)
{
    dc_ref *last = DC_NEW_ARRAY(&s->j->scratch, dc_ref, s->n);
    for (dc_ref r = 1; r < s->n; r++)
        for (int i = 0; live[r] && i < dc_node_at(s->f, r)->nin; i++)
            last[dc_node_at(s->f, r)->in[i]] = r;
    for (uint32_t i = 0; i < s->f->result.n; i++)
        last[s->f->result.at[i]] = UINT32_MAX;
    return last;
}

static dc_status run_all(dc_eval_state *s, const void *const *params, void *const *results)
{
    const bool *live = dc_func_live(s->f, &s->j->scratch);
    const dc_ref *last = last_uses(s, live);
    for (dc_ref r = 1; r < s->n; r++) {
        if (!live[r])
            continue;
        if (dc_job_cancelled(s->j))
            return dc_fail(s->j, DC_ERR_INTERRUPTED, NULL);
        DC_TRY(run_node(s, r, params));
        drop_temps(s);
        if (s->search != NULL)
            dc_eval_look(s, r);
        const dc_node *n = dc_node_at(s->f, r);
        for (int i = 0; i < n->nin; i++)
            if (last[n->in[i]] == r)
                drop_value(s, n->in[i]);
    }
    for (uint32_t i = 0; i < s->f->result.n; i++) {
        const dc_ref r = s->f->result.at[i];
        const dc_node *n = dc_node_at(s->f, r);
        const size_t bytes = (size_t)dc_node_count(n) * dc_eval_size(s->mode, (dc_dtype)n->dtype);
        if (bytes > 0)
            memcpy(results[i], s->value[r], bytes);
    }
    return DC_OK;
}

dc_status dc_eval(dc_job *j, const dc_func *f, dc_eval_mode mode, const void *const *params,
                  void *const *results)
{
    return dc_eval_watched(j, f, mode, params, results, NULL);
}

dc_status dc_eval_watched(dc_job *j, const dc_func *f, dc_eval_mode mode, const void *const *params,
                          void *const *results, struct dc_eval_search *search)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    dc_eval_state *s = DC_NEW(&j->scratch, dc_eval_state);
    *s = (dc_eval_state){.j = j, .f = f, .mode = mode, .search = search};
    s->value = DC_NEW_ARRAY(&j->scratch, void *, f->node.n);
    s->lent = DC_NEW_ARRAY(&j->scratch, bool, f->node.n);
    s->many = DC_NEW_ARRAY(&j->scratch, dc_eval_many, f->node.n);
    s->n = f->node.n;
    s->control = dc_control_word();
    dc_job_defer(j, drop_all, s);
    if (j->opt != NULL && j->opt->flush)
        dc_set_control_word(s->control | DC_CONTROL_FLUSH);
    const dc_status status = run_all(s, params, results);
    dc_job_keep(j, s);
    drop_all(s);
    dc_arena_rewind(&j->scratch, mark);
    return status;
}
