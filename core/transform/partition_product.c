/*
 * Contractions, convolutions and indexing in parts. What an axis of the mesh splits has a role in the operation: it is
 * an axis that both operands and the result have, one that an operand gives to the result, or one that is summed over,
 * of which every rank then has terms.
 */
#include "core/ir/conv.h"
#include "core/ir/dot.h"
#include "core/transform/partition_impl.h"

#include <string.h>

/*
 * A role: axis in[0] of operand 0, in[1] of operand 1, out of the result, each counted from 1; 0: it has none. Without
 * one in the result it is summed over.
 */
typedef struct role {
    uint8_t in[2], out;
} role;

typedef struct roles {
    role at[4 * DC_MAX_RANK];
    int n;
} roles;

static void add_role(roles *x, int64_t left, int64_t right, int64_t out)
{
    x->at[x->n++] = (role){{(uint8_t)left, (uint8_t)right}, (uint8_t)out};
}

/* That of axis `dim` (from 1) of an operand; NULL: it has to be whole. */
static const role *role_of(const roles *x, int operand, uint8_t dim)
{
    for (int i = 0; i < x->n && dim != 0; i++)
        if (x->at[i].in[operand] == dim)
            return &x->at[i];
    return NULL;
}

/* ---- what an axis of the mesh does --------------------------------------------------------------- */

typedef struct choice {
    dc_sharding in[2], out;
} choice;

/* The choice with axis a of the mesh in this role; false: something does not divide. */
static bool with_role(const dc_partitioner *p, dc_ref r, const role *x, uint32_t a, choice *c)
{
    const dc_node *n = dc_shard_node(p, r);
    choice next = *c;
    for (int i = 0; i < 2; i++) {
        next.in[i].dim[a] = x->in[i];
        if (!dc_shard_fits(p, n->in[i], &next.in[i]))
            return false;
    }
    if (x->out != 0)
        next.out.dim[a] = x->out;
    else
        next.out.partial |= (uint8_t)(1u << a);
    if (!dc_shard_fits(p, r, &next.out))
        return false;
    *c = next;
    return true;
}

static double bytes_of(const dc_partitioner *p, dc_ref r)
{
    const dc_type t = dc_node_type(p->from, r);
    return (double)dc_type_bytes(&t);
}

/*
 * Both operands are split, for different roles: that of an operand that depends on data stays; of two such operands a role
 * that needs no sum; else that of the larger one.
 */
static int winner(const dc_partitioner *p, const dc_node *n, const role *x, const role *y)
{
    if (p->data[n->in[0]] != p->data[n->in[1]])
        return p->data[n->in[0]] ? 0 : 1;
    if ((x->out == 0) != (y->out == 0))
        return x->out == 0 ? 1 : 0;
    return bytes_of(p, n->in[0]) >= bytes_of(p, n->in[1]) ? 0 : 1;
}

/* One operand is split in an axis that is summed over: is it better gathered? */
static bool rather_whole(const dc_partitioner *p, dc_ref r, int operand, const role *x)
{
    const dc_node *n = dc_shard_node(p, r);
    return x->out == 0 && bytes_of(p, n->in[operand]) < 2 * bytes_of(p, r) &&
           p->data[n->in[operand]];
}

static void choose(const dc_partitioner *p, dc_ref r, const roles *x, uint32_t a,
                   const dc_sharding *s, choice *c)
{
    const dc_node *n = dc_shard_node(p, r);
    const role *of[2] = {role_of(x, 0, s[0].dim[a]), role_of(x, 1, s[1].dim[a])};
    if (of[0] == NULL && of[1] == NULL)
        return;
    if (of[0] != NULL && of[1] != NULL && of[0] != of[1])
        of[1 - winner(p, n, of[0], of[1])] = NULL;
    const int i = of[0] != NULL ? 0 : 1;
    const bool other_split = of[1 - i] == of[i];
    if (!other_split && rather_whole(p, r, i, of[i]))
        return;
    with_role(p, r, of[i], a, c);
}

static void make(dc_partitioner *p, dc_ref r, const roles *x)
{
    const dc_node *n = dc_shard_node(p, r);
    const dc_sharding s[2] = {dc_shard_summed(p, n->in[0]), dc_shard_summed(p, n->in[1])};
    choice c = {0};
    dc_ref in[DC_MAX_TYPED];
    for (uint32_t a = 0; a < p->mesh->naxis; a++)
        choose(p, r, x, a, s, &c);
    for (int i = 0; i < 2; i++)
        in[i] = dc_shard_as(p, n->in[i], &c.in[i]);
    dc_shard_add(p, r, &c.out, dc_shard_make(p, r, in, &c.out));
}

/* ---- contractions -------------------------------------------------------------------------------- */

void dc_shard_dot(dc_partitioner *p, dc_ref r)
{
    const dc_dot d = dc_dot_of(p->from, dc_shard_node(p, r));
    roles x = {.n = 0};
    int out = 0;
    for (int i = 0; i < d.nbatch; i++)
        add_role(&x, 1 + d.batch[0][i], 1 + d.batch[1][i], 1 + out++);
    for (int i = 0; i < d.nfree[0]; i++)
        add_role(&x, 1 + d.free[0][i], 0, 1 + out++);
    for (int i = 0; i < d.nfree[1]; i++)
        add_role(&x, 0, 1 + d.free[1][i], 1 + out++);
    for (int i = 0; i < d.ncontract; i++)
        add_role(&x, 1 + d.contract[0][i], 1 + d.contract[1][i], 0);
    make(p, r, &x);
}

/* Windows stay whole, and channels that fall into groups. */
void dc_shard_conv(dc_partitioner *p, dc_ref r)
{
    const dc_conv c = dc_conv_of(dc_shard_node(p, r));
    roles x = {.n = 0};
    if (c.batch_groups == 1)
        add_role(&x, 1 + c.in[0], 0, 1 + c.out[0]);
    if (c.batch_groups == 1 && c.groups == 1) {
        add_role(&x, 0, 1 + c.kernel[0], 1 + c.out[1]);
        add_role(&x, 1 + c.in[1], 1 + c.kernel[1], 0);
    }
    make(p, r, &x);
}

/* ---- indexing ------------------------------------------------------------------------------------ */

/* Axes of operands and result, as core/ir/ops.def has them: x [batch, before, axis, behind], i [batch, own]. */
typedef struct indexing {
    const dc_node *n;
    int axis, nb, own; /* own: axes that only the integers have */
    int rank;          /* of x */
} indexing;

static indexing indexing_of(const dc_partitioner *p, dc_ref r)
{
    const dc_node *n = dc_shard_node(p, r);
    indexing w = {.n = n, .axis = (int)n->attr[0], .nb = (int)n->attr[1]};
    w.own = dc_shard_node(p, n->in[1])->rank - w.nb;
    w.rank = dc_shard_node(p, n->in[0])->rank;
    return w;
}

/* The axis (from 1) of the elements that an axis of x, of the integers is; 0: none. */
static uint8_t element_of(const indexing *w, int operand, uint8_t dim)
{
    const int k = dim - 1;
    if (dim == 0 || (operand == 0 && k == w->axis))
        return 0;
    if (operand == 1)
        return (uint8_t)(1 + (k < w->nb ? k : w->axis + k - w->nb));
    return (uint8_t)(1 + (k < w->axis ? k : k - 1 + w->own));
}

/* And back. */
static uint8_t operand_of(const indexing *w, int operand, uint8_t element)
{
    const int k = element - 1;
    const bool own = k >= w->axis && k < w->axis + w->own;
    if (element == 0)
        return 0;
    if (operand == 1)
        return own ? (uint8_t)(1 + k - w->axis + w->nb) : k < w->nb ? element : 0;
    return own ? 0 : k < w->axis ? element : (uint8_t)(1 + k + 1 - w->own);
}

static dc_sharding of_operand(const dc_partitioner *p, const indexing *w, int operand,
                              const dc_sharding *elements)
{
    dc_sharding s = {0};
    for (uint32_t a = 0; a < p->mesh->naxis; a++)
        s.dim[a] = operand_of(w, operand, elements->dim[a]);
    return s;
}

/* How the elements are split, if the operands given are: the first one that says something, data before parameters. */
static dc_sharding elements_of(const dc_partitioner *p, const indexing *w, dc_ref like,
                               const dc_sharding *third)
{
    dc_sharding s = {0};
    const int first = p->data[w->n->in[1]] || !p->data[w->n->in[0]] ? 1 : 0;
    for (uint32_t a = 0; a < p->mesh->naxis; a++) {
        uint8_t dim = third != NULL ? third->dim[a] : 0;
        for (int k = 0; k < 2 && dim == 0; k++) {
            const int i = k == 0 ? first : 1 - first;
            dim = element_of(w, i, dc_shard_of(p, w->n->in[i])->dim[a]);
        }
        dc_sharding more = s;
        more.dim[a] = dim;
        const dc_sharding x = of_operand(p, w, 0, &more), i = of_operand(p, w, 1, &more);
        if ((like == 0 || dc_shard_fits(p, like, &more)) && dc_shard_fits(p, w->n->in[0], &x) &&
            dc_shard_fits(p, w->n->in[1], &i))
            s = more;
    }
    return s;
}

/* Axes of the mesh that split the table along the axis that is indexed, and nothing else here. */
static uint32_t splits_table(const dc_partitioner *p, const indexing *w,
                             const dc_sharding *elements)
{
    const dc_sharding *x = dc_shard_of(p, w->n->in[0]);
    uint32_t mask = 0;
    for (uint32_t a = 0; a < p->mesh->naxis; a++)
        mask |= x->dim[a] == w->axis + 1 && elements->dim[a] == 0 ? 1u << a : 0;
    return mask;
}

static dc_ref like_scalar(dc_partitioner *p, dc_ref scalar, dc_ref like)
{
    int64_t ones[DC_MAX_RANK];
    const dc_type t = dc_node_type(p->to, like);
    for (int k = 0; k < t.rank; k++)
        ones[k] = 1;
    const dc_ref cast = dc_graph_cast(p->to, scalar, (dc_dtype)t.dtype);
    return dc_graph_expand(p->to, dc_graph_reshape(p->to, cast, t.rank, ones), t.dim);
}

static dc_ref op2(dc_partitioner *p, dc_op op, dc_ref a, dc_ref b)
{
    return dc_graph_op2(p->to, op, a, b);
}

/* Flags by integer, stretched over the elements. */
static dc_ref over_elements(dc_partitioner *p, const indexing *w, dc_ref flags, const dc_type *t)
{
    int64_t dim[DC_MAX_RANK];
    const dc_type i = dc_node_type(p->to, flags);
    for (int k = 0; k < t->rank; k++) {
        const uint8_t from = operand_of(w, 1, (uint8_t)(k + 1));
        dim[k] = from != 0 ? i.dim[from - 1] : 1;
    }
    return dc_graph_expand(p->to, dc_graph_reshape(p->to, flags, t->rank, dim), t->dim);
}

/*
 * Each rank has some rows of the table: it picks those that it has, and zeros for the others, of which all together is
 * the sum. Integers outside the axis count as the nearest inside, so they are clamped first.
 */
static void gather_in_table(dc_partitioner *p, dc_ref r, const indexing *w, dc_sharding elements,
                            uint32_t mask)
{
    dc_func *f = p->to;
    dc_sharding x = of_operand(p, w, 0, &elements), i = of_operand(p, w, 1, &elements);
    for (uint32_t a = 0; a < p->mesh->naxis; a++)
        x.dim[a] = mask >> a & 1 ? (uint8_t)(w->axis + 1) : x.dim[a];
    const dc_ref table = dc_shard_as(p, w->n->in[0], &x), given = dc_shard_as(p, w->n->in[1], &i);
    const int64_t all = dc_shard_node(p, w->n->in[0])->dim[w->axis];
    const int64_t part = dc_node_at(f, table)->dim[w->axis];
    const dc_ref at = dc_graph_cast(f, given, DC_I64);
    const dc_ref inside = op2(p, DC_OP_MIN, op2(p, DC_OP_MAX, at, dc_graph_like(f, at, 0)),
                              dc_graph_like(f, at, (double)(all - 1)));
    const dc_ref number = dc_graph_cast(f, dc_shard_number(p, &x, w->axis), DC_I64);
    const dc_ref first = op2(p, DC_OP_MUL, number, dc_graph_like(f, number, (double)part));
    const dc_ref here = op2(p, DC_OP_SUB, inside, like_scalar(p, first, inside));
    const dc_ref mine = op2(p, DC_OP_AND, op2(p, DC_OP_LE, dc_graph_like(f, here, 0), here),
                            op2(p, DC_OP_LT, here, dc_graph_like(f, here, (double)part)));
    const dc_ref in[2] = {table, here};
    dc_sharding out = elements;
    out.partial = (uint8_t)mask;
    const dc_ref picked = dc_shard_make(p, r, in, &out);
    const dc_type t = dc_node_type(f, picked);
    dc_shard_add(p, r, &out,
                 dc_graph_op3(f, DC_OP_WHERE, over_elements(p, w, mine, &t), picked,
                              dc_graph_like(f, picked, 0)));
}

/* Sums of less bytes than the table is: worth it, where the dtype has sums. */
static bool table_stays(const dc_partitioner *p, dc_ref r, const indexing *w, uint32_t mask)
{
    return mask != 0 && dc_shard_node(p, r)->dtype != DC_BOOL &&
           2 * bytes_of(p, r) < bytes_of(p, w->n->in[0]) * (double)dc_mesh_size(p->mesh);
}

static void gather(dc_partitioner *p, dc_ref r)
{
    const indexing w = indexing_of(p, r);
    const dc_sharding elements = elements_of(p, &w, r, NULL);
    const uint32_t mask = splits_table(p, &w, &elements);
    if (table_stays(p, r, &w, mask)) {
        gather_in_table(p, r, &w, elements, mask);
        return;
    }
    const dc_sharding x = of_operand(p, &w, 0, &elements), i = of_operand(p, &w, 1, &elements);
    const dc_ref in[2] = {dc_shard_as(p, w.n->in[0], &x), dc_shard_as(p, w.n->in[1], &i)};
    dc_shard_add(p, r, &elements, dc_shard_make(p, r, in, &elements));
}

/* Only sums may be made in parts along axes that the integers have alone. */
static uint32_t without_own(const dc_partitioner *p, const indexing *w, dc_sharding *elements)
{
    uint32_t own = 0;
    for (uint32_t a = 0; a < p->mesh->naxis; a++) {
        const int k = elements->dim[a] - 1;
        if (k < w->axis || k >= w->axis + w->own)
            continue;
        own |= 1u << a;
        if (w->n->op != DC_OP_SCATTER_ADD)
            elements->dim[a] = 0;
    }
    return w->n->op == DC_OP_SCATTER_ADD ? own : 0;
}

/* Terms into zeros on each rank; what was there is added to their sum, once. */
static void scatter(dc_partitioner *p, dc_ref r)
{
    const indexing w = indexing_of(p, r);
    const dc_sharding third = dc_shard_summed(p, w.n->in[2]);
    dc_sharding elements = elements_of(p, &w, w.n->in[2], &third);
    const uint32_t own = without_own(p, &w, &elements);
    const dc_sharding x = of_operand(p, &w, 0, &elements), i = of_operand(p, &w, 1, &elements);
    dc_ref in[DC_MAX_TYPED] = {dc_shard_as(p, w.n->in[0], &x), dc_shard_as(p, w.n->in[1], &i),
                               dc_shard_as(p, w.n->in[2], &elements)};
    dc_sharding out = x;
    if (own == 0) {
        dc_shard_add(p, r, &out, dc_shard_make(p, r, in, &out));
        return;
    }
    const dc_ref before = in[0];
    in[0] = dc_graph_like(p->to, before, 0);
    out.partial = (uint8_t)own;
    dc_ref at = dc_shard_make(p, r, in, &out);
    if (!dc_is_const(p->to, before, 0)) {
        at = dc_shard_reduce(p, at, DC_COMBINE_SUM, own);
        at = dc_graph_cast(p->to, at, (dc_dtype)w.n->dtype);
        at = op2(p, DC_OP_ADD, before, at);
        out.partial = 0;
    }
    dc_shard_add(p, r, &out, at);
}

void dc_shard_index(dc_partitioner *p, dc_ref r)
{
    if (dc_shard_node(p, r)->op == DC_OP_GATHER)
        gather(p, r);
    else
        scatter(p, r);
}
