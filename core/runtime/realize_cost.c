/*
 * What a lazy expression costs the interpreter, and what it costs to compile it, in nanoseconds: estimates out of
 * operations, types and sizes alone, never a clock, so that a script chooses alike each time it runs. The numbers were
 * measured with one thread on an x86-64 of 2.9 GHz (bench/lazy.lua); what counts is how they compare.
 */
#include "core/ir/flops.h"
#include "core/runtime/realize_impl.h"

#include <math.h>

/* ---- the interpreter --------------------------------------------------------------------------- */

static double count(const dc_type *t)
{
    return (double)dc_type_count(t);
}

/* To bring an element to what loops compute with, and back. */
static double access_ns(const dc_type *t)
{
    const dc_type parts = dc_type_parts(t);
    const dc_dtype e = (dc_dtype)parts.dtype;
    return dc_dtype_is_float(e) && dc_dtype_bits(e) < 32 ? 11 : 0.3;
}

/* One element, its operands aside. */
static double element_ns(dc_op op, bool floats)
{
    const dc_op_row *row = dc_op_row_of(op);
    switch ((int)op) {
    case DC_OP_EXP:
    case DC_OP_EXP2:
    case DC_OP_LOG:
    case DC_OP_LOG2:
        return 4;
    case DC_OP_SIN:
    case DC_OP_COS:
    case DC_OP_ERF:
    case DC_OP_ERFC:
        return 9;
    case DC_OP_DIV:
    case DC_OP_SQRT:
        return floats ? 1.5 : 27;
    case DC_OP_REM:
        return 27;
    case DC_OP_WHERE:
    case DC_OP_CAST:
        return 3;
    case DC_OP_THREEFRY:
        return 30;
    default:
        return row->flags & DC_OPF_NEAR ? 25 : 0.8;
    }
}

static double reduction_ns(const dc_lazy *n)
{
    const dc_type *t = &n->in[0]->type;
    const bool floats = dc_dtype_is_float((dc_dtype)t->dtype);
    return count(t) * (access_ns(t) + (floats ? (n->op == DC_OP_SUM ? 0.7 : 1.6) : 9));
}

static double dot_ns(const dc_lazy *n)
{
    const dc_type *left = &n->in[0]->type, *right = &n->in[1]->type;
    const double terms = dc_flops_terms(DC_OP_DOT, n->attr, n->nattr, left, right);
    return count(&n->type) * (2 + 0.2 * terms) + count(left) * (1.2 + access_ns(left)) +
           count(right) * (1.2 + access_ns(right));
}

static double conv_ns(const dc_lazy *n)
{
    const double terms =
        dc_flops_terms(DC_OP_CONV, n->attr, n->nattr, &n->in[0]->type, &n->in[1]->type);
    return count(&n->type) * (10 + 0.3 * terms) + count(&n->in[0]->type) * 3;
}

/* Elements, and the runs of them that are moved at a time. */
static double index_ns(const dc_lazy *n)
{
    const dc_type *index = &n->in[1]->type;
    const double moved = n->op == DC_OP_GATHER ? count(&n->type) : count(&n->in[2]->type);
    return count(&n->type) * 0.5 + moved * 3 + count(index) * 15;
}

static double transform_ns(const dc_lazy *n)
{
    const double all = count(&n->type), length = (double)n->in[0]->type.dim[n->attr[0]];
    return 4 * all * (length > 1 ? log2(length) : 1);
}

/* The same code computes it either way, but compiled several threads do. */
static double host_ns(const dc_lazy *n)
{
    const dc_type *t = &n->in[0]->type;
    const bool rows =
        n->op == DC_OP_SORT || n->op == DC_OP_ARGSORT || n->op == DC_OP_TOPK || n->op == DC_OP_RUN;
    return count(t) * (rows || t->rank == 0 ? 5 : (double)t->dim[t->rank - 1]);
}

static double node_ns(const dc_lazy *n)
{
    const dc_op op = (dc_op)n->op;
    double ns = 0;
    switch ((dc_op_class)dc_op_row_of(op)->cls) {
    case DC_CLASS_EW:
        for (uint32_t i = 0; i < n->nin; i++)
            ns += access_ns(&n->in[i]->type);
        ns += access_ns(&n->type);
        ns += element_ns(op, dc_dtype_is_float((dc_dtype)n->in[n->nin - 1]->type.dtype));
        return ns * count(&n->type);
    case DC_CLASS_RED:
        return reduction_ns(n);
    case DC_CLASS_CON:
        return op == DC_OP_CONV ? conv_ns(n) : dot_ns(n);
    case DC_CLASS_IDX:
        return index_ns(n);
    case DC_CLASS_FFT:
        return transform_ns(n);
    case DC_CLASS_MOV:
        return count(&n->type) * (op == DC_OP_RESHAPE ? 0.2 : 0.6);
    case DC_CLASS_SRC:
        return count(&n->type) * (op == DC_OP_IOTA ? 4 : 0.4);
    case DC_CLASS_SAME:
    case DC_CLASS_PART:
        return count(&n->type) * 0.3;
    case DC_CLASS_HST:
        return host_ns(n);
    case DC_CLASS_COM: /* the same code does it either way */
    case DC_CLASS_CTL:
        return 0;
    }
    return 0;
}

/* ---- the compiler ------------------------------------------------------------------------------ */

enum { MS = 1000000 };

/* Element-wise and other code inside of loops; once more for each reduction that it is fused with, up to two. */
static double body_ns(const dc_lazy *n)
{
    const dc_op op = (dc_op)n->op;
    if (op == DC_OP_SIN || op == DC_OP_COS || op == DC_OP_TAN)
        return 9 * MS;
    if (op == DC_OP_THREEFRY)
        return 4 * MS;
    if (op == DC_OP_PERMUTE)
        return 2 * MS;
    return (dc_op_row_of(op)->flags & DC_OPF_NEAR ? 1 : 0.08) * MS;
}

/* Loops of its own. */
static double loops_ns(const dc_lazy *n)
{
    switch ((dc_op_class)dc_op_row_of((dc_op)n->op)->cls) {
    case DC_CLASS_RED:
        return 3 * MS;
    case DC_CLASS_CON:
        return 4 * MS;
    case DC_CLASS_FFT:
        return 10 * MS;
    case DC_CLASS_EW:
    case DC_CLASS_IDX:
    case DC_CLASS_MOV:
    case DC_CLASS_SRC:
    case DC_CLASS_SAME:
    case DC_CLASS_PART:
    case DC_CLASS_HST:
    case DC_CLASS_COM:
    case DC_CLASS_CTL:
        return 0;
    }
    return 0;
}

enum { OPENING = 20 * MS }; /* what the first one takes besides, to open the compiler */

/* ---- the choice -------------------------------------------------------------------------------- */

enum { MOST_BYTES = 64 << 20, SHARE = 16 };

/* The interpreter has an array for each operation. */
static bool is_wide(const dc_realize_task *t, double bytes)
{
    const double limit = (double)t->rt->first->opt.memory;
    return bytes > MOST_BYTES || (limit > 0 && bytes > limit / SHARE);
}

static uint64_t *spent_on(dc_rt *rt, uint64_t structure)
{
    dc_lazies *l = rt->lazy;
    if (l->spent == NULL)
        l->spent = dc_xalloc(DC_LAZY_SPENT * sizeof *l->spent);
    dc_lazy_spent *s = &l->spent[structure % DC_LAZY_SPENT];
    if (s->structure != structure)
        *s = (dc_lazy_spent){.structure = structure};
    return &s->ns;
}

/*
 * Of the first expression that comes to be compiled the interpreter may have taken the price, of later ones half of it:
 * where one has been repeated, others will be.
 */
bool dc_realize_rents(dc_realize_task *t, uint64_t structure)
{
    double rent = 1000, body = 0, price = 2 * MS, bytes = 0;
    int reductions = 0;
    for (uint32_t i = 0; i < t->walk.order.n; i++) {
        const dc_lazy *n = t->walk.order.at[i];
        if (dc_lazy_walk_leaf(&t->walk, n))
            continue;
        rent += 300 + node_ns(n);
        bytes += (double)dc_type_bytes(&n->type);
        body += body_ns(n);
        price += loops_ns(n);
        reductions += dc_op_is((dc_op)n->op, DC_CLASS_RED);
    }
    price += body * (1 + (reductions < 2 ? reductions : 2));
    if (is_wide(t, bytes) || dc_realize_is_known(t, structure))
        return false;
    if (dc_realize_generalises(t, rent, price)) {
        t->general = true;
        return true;
    }
    uint64_t *spent = spent_on(t->rt, structure);
    dc_lazies *l = t->rt->lazy;
    const double most = l->compiles ? price / 2 : price, all = (double)l->rent + rent;
    if ((double)*spent + rent > most && (l->compiles || rent > price + OPENING || all > OPENING)) {
        l->compiles = true;
        return false;
    }
    *spent += (uint64_t)rent;
    l->rent += (uint64_t)rent;
    return true;
}
