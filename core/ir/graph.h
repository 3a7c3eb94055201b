/*
 * Graphs: a module holds functions; a function is closed (parameters to results) and made of
 * immutable hash-consed nodes in one arena. A ref is the index of a node in its function; operands
 * have smaller refs than their users, so the array is in topological order. Ref 0 is "none".
 *
 * A node's identity is op, attributes, operands, dtype, extents. Names of dims are no part of it
 * (they live on dc_val, the typed handle); where it came from is in a side table that merging
 * appends to.
 *
 * A closed function may be read by several threads while one of them adds others to its module: who only
 * reads (dc_func_print, dc_func_hash, dc_flops_func, ...) works in scratch memory (dc_scratch_begin), never
 * in the arena of the module.
 */
#ifndef DC_CORE_IR_GRAPH_H
#define DC_CORE_IR_GRAPH_H

#include "core/base/job.h"
#include "core/ir/op.h"

typedef uint32_t dc_ref;

enum {
    DC_CUSTOM_INPUTS = 62,                   /* of one custom gradient */
    DC_MAX_TYPED = 1 + 2 * DC_CUSTOM_INPUTS, /* operands of a node but a loop or a branch, */
    DC_MAX_OPERANDS = 1000                   /* of any node */
};

typedef struct dc_node {
    uint8_t op;    /* dc_op */
    uint8_t dtype; /* dc_dtype */
    uint8_t rank;
    bool varies; /* a gradient can flow from it to a parameter, a barrier, a hole or a message */
    uint16_t nin;
    uint16_t nattr;
    uint32_t origin;     /* head of its list in dc_func.origins, 0 none */
    const int64_t *dim;  /* [rank], in the arena */
    const dc_ref *in;    /* [nin] */
    const int64_t *attr; /* [nattr], see core/ir/ops.def */
} dc_node;

typedef struct dc_origin { /* one place in a script that made a node */
    const char *where;     /* "train.lua:15", interned in the module */
    const char *path;      /* "net.2 (nn.Linear 784 -> 10)", or NULL */
    uint32_t next;
} dc_origin;

typedef struct dc_bucket {
    uint32_t hash; /* of the node, so that others are told apart without a look at them */
    dc_ref node;   /* 0: it is empty */
} dc_bucket;

typedef struct dc_func {
    struct dc_module *module;
    const char *name;
    DC_VEC(dc_node) node;       /* [0] is a placeholder */
    DC_VEC(dc_ref) param;       /* by index; every parameter is a node, used or not */
    DC_VEC(const char *) label; /* of each parameter: "x", "net.2.weight"; for dumps and messages */
    DC_VEC(dc_ref) result;
    DC_VEC(dc_origin) origins; /* [0] is a placeholder */
    dc_bucket *bucket;         /* hash-consing: open addressing over refs */
    uint32_t nbucket;
    const char *where, *path; /* given to nodes made from now on; NULL none */
    dc_ref
        token; /* what messages that a gradient makes come after (core/ir/exchange.h); 0: they have no place */
} dc_func;

/* What a loop or a branch names by its number in the module. Equal ones are one; none is ever dropped. */
typedef struct dc_body {
    dc_func *fn; /* names bodies with smaller numbers alone */
    uint64_t hash;
    uint32_t
        simplified; /* the number of what it is simplified to, and one more; 0: it has not been */
} dc_body;

typedef struct dc_module {
    dc_arena arena;
    dc_names *names; /* strings of origins and labels */
    bool lent;       /* they are another module's, which outlives this one */
    struct dc_extents
        *extents; /* of sizes known at run time; the context's, NULL: there are none */
    bool written; /* exchanges are a script's, and numbered (core/ir/exchange.h) */
    DC_VEC(dc_func *) func;
    DC_VEC(dc_body) body;
} dc_module;

dc_module *dc_module_new(void);
/* Another that shares the strings of m, so that origins stay the same pointers; m stays longer. */
dc_module *dc_module_beside(const dc_module *m);
void dc_module_free(dc_module *m);
void dc_module_defer(dc_job *j, dc_module *m); /* dc_job_defer: j frees it */
dc_func *dc_func_new(dc_module *m, const char *name);
void dc_func_drop(dc_func *f);   /* takes a function that is not used out of its module */
void dc_func_detach(dc_func *f); /* the same, but does not free it */
/* A body with what f, of any module, computes, in the order of a clone; f stays. */
uint32_t dc_body_add(dc_module *m, const dc_func *f);
static inline const dc_func *dc_body_at(const dc_module *m, int64_t body)
{
    DC_ASSERT(body >= 0 && body < (int64_t)m->body.n, "body %d of %u", (int)body, m->body.n);
    return m->body.at[body].fn;
}

/* Empty again; gives back what the arena of its module has handed out since the mark. */
void dc_func_clear(dc_func *f, dc_mark empty);

static inline const dc_node *dc_node_at(const dc_func *f, dc_ref r)
{
    DC_ASSERT(r > 0 && r < f->node.n, "ref %u of %u", r, f->node.n);
    return &f->node.at[r];
}

/* What r is, but for how much of it is needed (set_size). */
static inline dc_ref dc_below_sizes(const dc_func *f, dc_ref r)
{
    while (dc_node_at(f, r)->op == DC_OP_SET_SIZE)
        r = dc_node_at(f, r)->in[0];
    return r;
}

/* The parameter of type i32[] that r is, or repeats; 0: it is something else. */
dc_ref dc_number_param(const dc_func *f, dc_ref r);

dc_type dc_node_type(const dc_func *f, dc_ref r); /* without names */
int64_t dc_node_count(const dc_node *n);          /* elements */

/* Where nodes made from now on come from; strings are copied. NULL, NULL: unknown. */
void dc_func_from(dc_func *f, const char *where, const char *path);

/* Adds the origins of node r of `from` to node s of f (rewriting, cloning). */
void dc_func_copy_origin(dc_func *f, dc_ref s, const dc_func *from, dc_ref r);

/*
 * The one way to make a node. dc_infer computes and checks the type; names in the operand types
 * follow the names rule. `want` gives what operands and attributes do not: the result type of
 * const, param, iota; the dtype of cast; the dims of reshape, expand, slice, pad (names in it are
 * taken for reshape). A failure is a record with 0-based axes.
 */
dc_status dc_infer(dc_job *j, dc_op op, const dc_type *in, int nin, const int64_t *attr, int nattr,
                   const dc_type *want, dc_type *out);

/* The dtype rule alone: dtype of the result, extents not looked at. DTYPE, DTYPE_MIX. */
dc_status dc_infer_dtype(dc_job *j, dc_op op, const dc_type *in, int nin, const dc_type *want,
                         dc_dtype *out);

/* Every op but param, which dc_graph_param makes. */
dc_status dc_make(dc_job *j, dc_func *f, dc_op op, const dc_ref *in, int nin, const int64_t *attr,
                  int nattr, const dc_type *want, dc_ref *out);

/* For passes, whose nodes are right by construction: a failure is a bug of ours. */
dc_ref dc_graph_make(dc_func *f, dc_op op, const dc_ref *in, int nin, const int64_t *attr,
                     int nattr, const dc_type *want);
/* Node r of `from` on these operands and attributes (its own ones: of operands of the same types nothing is inferred). */
dc_ref dc_graph_on(dc_func *to, const dc_func *from, dc_ref r, const dc_ref *in,
                   const int64_t *attr);
dc_ref dc_graph_op1(dc_func *f, dc_op op, dc_ref a);
dc_ref dc_graph_op2(dc_func *f, dc_op op, dc_ref a, dc_ref b);
dc_ref dc_graph_op3(dc_func *f, dc_op op, dc_ref a, dc_ref b, dc_ref c);
dc_ref dc_graph_const(dc_func *f, const dc_type *t, double v); /* the same value everywhere */
dc_ref dc_graph_like(dc_func *f, dc_ref r, double v);          /* const of the type of r */
dc_ref dc_graph_param(dc_func *f, const dc_type *t,
                      const char *label); /* of complex numbers: of their parts */
/* The parameters of `from`, of any module, with labels and origins; map receives them by ref. */
void dc_graph_params(dc_func *f, const dc_func *from, dc_ref *map);
dc_ref dc_graph_cast(dc_func *f, dc_ref a, dc_dtype t);
dc_ref dc_graph_bitcast(dc_func *f, dc_ref a, dc_dtype t); /* as wide; it has no gradient */
dc_ref dc_graph_reshape(dc_func *f, dc_ref a, int rank, const int64_t *dim);
dc_ref dc_graph_permute(dc_func *f, dc_ref a, const int64_t *perm);
dc_ref dc_graph_expand(dc_func *f, dc_ref a, const int64_t *dim); /* same rank; size 1 grows */
dc_ref dc_graph_slice(dc_func *f, dc_ref a, const int64_t *start, const int64_t *step,
                      const int64_t *dim);
dc_ref dc_graph_pad(dc_func *f, dc_ref a, const int64_t *lo, const int64_t *step,
                    const int64_t *dim, uint64_t fill);
dc_ref dc_graph_set_size(dc_func *f, dc_ref a, int axis, dc_ref size); /* i32[] */
dc_ref dc_graph_flip(dc_func *f, dc_ref a, uint32_t axes);
dc_ref dc_graph_reduce(dc_func *f, dc_op op, dc_ref a, uint32_t axes);
/* The reverse of dropping reduced axes: puts them back with size 1 and stretches to dim. */
dc_ref dc_graph_unreduce(dc_func *f, dc_ref a, uint32_t axes, int rank, const int64_t *dim);
/* What r repeats along its last axis, and along no other; 0: it does not. */
dc_ref dc_graph_repeated(const dc_func *f, dc_ref r);
dc_ref dc_graph_dot(dc_func *f, dc_ref a, dc_ref b, int nb, const int64_t *lb, const int64_t *rb,
                    int nc, const int64_t *lc, const int64_t *rc);
dc_ref dc_graph_gather(dc_func *f, dc_ref a, dc_ref index, int axis, int nb);
dc_ref dc_graph_scatter(dc_func *f, dc_op op, dc_ref a, dc_ref index, dc_ref updates, int axis,
                        int nb);

/* An i32[]: the size, which may be known at run time only, as the sum of so many ones. */
dc_ref dc_graph_extent(dc_func *f, int64_t dim);

/* Is the node a constant of this value? */
bool dc_is_const(const dc_func *f, dc_ref r, double v);

/* live[r] for every ref reachable from the results; in the arena given. */
bool *dc_func_live(const dc_func *f, dc_arena *a);

/*
 * Dense numbers from 1 by ref, as dumps and hashes use them: parameters first, then live nodes in
 * order; 0 for the rest. dc_node_operands gives the numbers of a node's operands in canonical order.
 */
uint32_t *dc_func_numbers(const dc_func *f, dc_arena *a);
void dc_node_operands(const dc_func *f, const uint32_t *number, dc_ref r, uint32_t *out);

/*
 * Copies what is reachable from the results of `from` into a new function of `to`, keeping every
 * parameter; consing runs again. map (may be NULL) receives new refs by old ref.
 */
dc_func *dc_func_clone(dc_module *to, const dc_func *from, dc_ref *map);

/* 64-bit hash of the canonical text: op, attributes, operands, types; no names, no lines. */
uint64_t dc_func_hash(const dc_func *f);

#endif
