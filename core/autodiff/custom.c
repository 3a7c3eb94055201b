#include "core/autodiff/custom.h"

#include "core/autodiff/grad.h"

#include <stdlib.h>

static dc_ref hole(dc_func *f, const dc_type *t, int64_t id, int64_t which)
{
    const int64_t attr[2] = {id, which};
    return dc_graph_make(f, DC_OP_HOLE, NULL, 0, attr, 2, t);
}

static dc_ref replaced(dc_job *j, const dc_custom *c, dc_ref root, const dc_ref *to, int n)
{
    dc_subgraph_replace(j, c->f, (dc_subgraph_change){c->stand_in, to, n, 0}, &root, 1);
    return root;
}

static bool is_float(const dc_func *f, dc_ref r)
{
    return dc_dtype_is_float((dc_dtype)dc_node_at(f, r)->dtype);
}

typedef struct reading {
    dc_arena *a;
    dc_ref first;
    const bool *does; /* it is made of a stand-in, from `first` on */
    DC_VEC(dc_ref) node;
} reading;

/* What no stand-in is part of, and a gradient can flow to. */
static void note_read(reading *x, const dc_func *f, dc_ref r)
{
    const bool inside = r >= x->first && x->does[r - x->first];
    if (!inside && dc_node_at(f, r)->varies)
        DC_PUSH_IN(x->a, x->node, r);
}

static int by_age(const void *a, const void *b)
{
    const dc_ref x = *(const dc_ref *)a, y = *(const dc_ref *)b;
    return (x > y) - (x < y);
}

/*
 * What the body that made y of the stand-ins read besides, as far as gradients can flow to it: floats
 * that no stand-in is part of, read by a node that one is part of. Not what is constant. In order of age.
 */
static int captures(dc_job *j, const dc_custom *c, dc_ref y, dc_ref *out, int most)
{
    const dc_func *f = c->f;
    const dc_mark mark = dc_arena_mark(&j->scratch);
    const dc_ref first = dc_subgraph_oldest(f, c->stand_in, c->n);
    bool *part = dc_subgraph_of(j, f, &y, 1, false, 0, first);
    reading x = {
        .a = &j->scratch, .first = first, .does = dc_subgraph_depending(j, f, c->stand_in, c->n, 0, first)};
    int n = 0;
    for (int i = 0; i < c->n; i++)
        part[c->stand_in[i] - first] = false; /* what it reads is no capture */
    for (dc_ref r = first; r <= y; r++) {
        const dc_node *node = dc_node_at(f, r);
        if (!part[r - first] || !x.does[r - first] || node->op == DC_OP_STOP)
            continue;
        for (int i = 0; i < dc_node_inputs(node); i++)
            note_read(&x, f, node->in[i]);
    }
    note_read(&x, f, y);
    if (x.node.n > 1)
        qsort(x.node.at, x.node.n, sizeof *x.node.at, by_age);
    for (uint32_t i = 0; i < x.node.n; i++) {
        if (i > 0 && x.node.at[i] == x.node.at[i - 1])
            continue;
        if (n < most)
            out[n] = x.node.at[i];
        n++;
    }
    dc_arena_rewind(&j->scratch, mark);
    return n;
}

/* ---- recording ------------------------------------------------------------------------------- */

void dc_custom_begin(dc_func *f, const dc_ref *x, int n, dc_custom *out)
{
    DC_ASSERT(n <= DC_CUSTOM_INPUTS, "%d inputs", n);
    *out = (dc_custom){.f = f, .n = n};
    for (int i = 0; i < n; i++) {
        out->x[i] = x[i];
        out->stand_in[i] = dc_graph_barrier(f, x[i], x[i]);
    }
}

/* Holes of the type of the value. */
static void make_holes(dc_custom *c)
{
    const dc_type t = dc_node_type(c->f, c->y);
    c->id = c->f->node.n;
    c->dy = hole(c->f, &t, c->id, 0);
    c->y_again = hole(c->f, &t, c->id, 1);
}

dc_status dc_custom_value(dc_job *j, dc_custom *c, dc_ref y, dc_ref *captured)
{
    if (captures(j, c, y, captured, 1) > 0)
        return dc_fail(j, DC_ERR_GRAD_CAPTURED, &(dc_fact){.op = "custom_grad"});
    c->y = replaced(j, c, y, c->x, c->n);
    make_holes(c);
    return DC_OK;
}

void dc_custom_given(dc_func *f, const dc_ref *x, int n, dc_ref y, dc_custom *out)
{
    DC_ASSERT(n <= DC_CUSTOM_INPUTS, "%d inputs", n);
    *out = (dc_custom){.f = f, .n = n, .y = y};
    for (int i = 0; i < n; i++)
        out->x[i] = x[i];
    make_holes(out);
}

static dc_status check_gradients(dc_job *j, const dc_custom *c, const dc_ref *dx)
{
    for (int i = 0; i < c->n; i++) {
        if (dx[i] == 0)
            continue;
        const dc_type x = dc_node_type(c->f, c->x[i]), d = dc_node_type(c->f, dx[i]);
        char want[DC_TYPE_TEXT], got[DC_TYPE_TEXT];
        dc_type_print(&x, want, sizeof want);
        dc_type_print(&d, got, sizeof got);
        if (!dc_dtype_is_float((dc_dtype)x.dtype))
            return dc_failf(j, DC_ERR_GRAD_CUSTOM, "custom_grad",
                            "argument %d is %s and has no gradient, nil stands for none", i + 1,
                            want);
        if (!dc_type_same(&x, &d))
            return dc_failf(j, DC_ERR_GRAD_CUSTOM, "custom_grad",
                            "the gradient of argument %d is %s, the argument is %s", i + 1, got,
                            want);
    }
    return DC_OK;
}

dc_status dc_custom_end(dc_job *j, dc_custom *c, const dc_ref *dx, dc_ref *out)
{
    dc_ref in[DC_MAX_OPERANDS] = {c->y};
    int64_t attr[3] = {c->n, c->id, 0};
    int nin = 1;
    DC_TRY(check_gradients(j, c, dx));
    for (int i = 0; i < c->n; i++)
        in[nin++] = c->x[i];
    for (int i = 0; i < c->n; i++)
        if (dx[i] != 0) {
            in[nin++] = dx[i];
            attr[2] |= INT64_C(1) << i;
        }
    *out = dc_graph_make(c->f, DC_OP_CUSTOM, in, nin, attr, 3, NULL);
    return DC_OK;
}

dc_ref dc_custom_leaf(dc_func *f, dc_ref a)
{
    const int64_t attr[3] = {0, f->node.n, 0};
    return dc_graph_make(f, DC_OP_CUSTOM, &a, 1, attr, 3, NULL);
}

dc_status dc_custom_remat(dc_job *j, dc_custom *c, dc_ref y, dc_ref *out)
{
    dc_func *f = c->f;
    dc_ref wrt[DC_CUSTOM_INPUTS], dx[DC_CUSTOM_INPUTS], later[DC_CUSTOM_INPUTS],
        part[DC_CUSTOM_INPUTS];
    int where[DC_CUSTOM_INPUTS], nwrt = 0;
    const int n = c->n, more = captures(j, c, y, c->x + n, DC_CUSTOM_INPUTS - n);
    if (n + more > DC_CUSTOM_INPUTS)
        return dc_failf(j, DC_ERR_ARG, "remat", "the function reads %d tensors, %d is the most",
                        n + more, DC_CUSTOM_INPUTS);
    c->y = replaced(j, c, y, c->x, n);
    make_holes(c);
    for (int i = 0; i < n; i++)
        later[i] = dc_graph_barrier(f, c->x[i], c->dy);
    const dc_ref same = replaced(j, c, y, later, n);
    c->n += more;
    for (int i = 0; i < c->n; i++) {
        dx[i] = 0;
        if (!is_float(f, c->x[i]))
            continue;
        where[nwrt] = i;
        wrt[nwrt++] = i < n ? later[i] : c->x[i];
    }
    DC_TRY(dc_grad_pull(j, f, &same, &c->dy, 1, wrt, nwrt, part));
    for (int i = 0; i < nwrt; i++)
        dx[where[i]] = part[i];
    return dc_custom_end(j, c, dx, out);
}

void dc_custom_pull(dc_job *j, dc_func *f, dc_ref r, dc_ref cotangent, dc_ref *out)
{
    const dc_node n = *dc_node_at(f, r);
    const dc_type t = dc_node_type(f, r);
    const int given = n.nin - 1 - (int)n.attr[0];
    const dc_ref from[2] = {hole(f, &t, n.attr[1], 0), hole(f, &t, n.attr[1], 1)};
    dc_ref dx[DC_CUSTOM_INPUTS];
    for (int i = 0; i < given; i++)
        dx[i] = n.in[1 + n.attr[0] + i];
    dc_subgraph_replace(j, f, (dc_subgraph_change){from, (const dc_ref[]){cotangent, r}, 2, n.attr[1]}, dx, given);
    for (int i = 0, at = 0; i < (int)n.attr[0]; i++)
        out[i] = n.attr[2] >> i & 1 ? dx[at++] : 0;
}
