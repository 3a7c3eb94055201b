/*
 * Modules, functions and their nodes; hash-consing; live nodes, clones and hashes.
 *
 * Operands of commuting operations are stored in one order: constants last, else by ref. A node
 * that is made again is found again; only the list of its origins grows (up to MAX_ORIGINS).
 */
#include "core/base/extent.h"
#include "core/ir/control.h"
#include "core/ir/subgraph.h"

#include <stdio.h>
#include <string.h>

enum { MAX_ORIGINS = 8 };

static void free_arrays(dc_func *f)
{
    DC_VEC_FREE(f->node);
    DC_VEC_FREE(f->param);
    DC_VEC_FREE(f->label);
    DC_VEC_FREE(f->result);
    DC_VEC_FREE(f->origins);
    dc_xfree(f->bucket);
    f->bucket = NULL;
    f->nbucket = 0;
}

void dc_func_detach(dc_func *f)
{
    dc_module *m = f->module;
    for (uint32_t i = 0, to = 0; i < m->func.n; i++)
        if (m->func.at[i] != f)
            m->func.at[to++] = m->func.at[i];
    m->func.n--;
}

void dc_func_drop(dc_func *f)
{
    dc_func_detach(f);
    free_arrays(f);
}

void dc_func_clear(dc_func *f, dc_mark empty)
{
    enum { KEEP = 1024 };
    f->node.n = f->origins.n = 1;
    f->param.n = f->label.n = f->result.n = 0;
    f->where = f->path = NULL;
    if (f->nbucket > KEEP) {
        dc_xfree(f->bucket);
        f->bucket = NULL;
        f->nbucket = 0;
    } else if (f->nbucket > 0) {
        memset(f->bucket, 0, f->nbucket * sizeof *f->bucket);
    }
    dc_arena_rewind(&f->module->arena, empty);
}

void dc_module_free(dc_module *m)
{
    if (m == NULL)
        return;
    for (uint32_t i = 0; i < m->func.n; i++)
        free_arrays(m->func.at[i]);
    for (uint32_t i = 0; i < m->body.n; i++)
        free_arrays(m->body.at[i].fn);
    DC_VEC_FREE(m->func);
    DC_VEC_FREE(m->body);
    if (!m->lent)
        dc_names_free(m->names);
    dc_arena_free(&m->arena);
    dc_xfree(m);
}

static void release_module(void *m)
{
    dc_module_free(m);
}

void dc_module_defer(dc_job *j, dc_module *m)
{
    dc_job_defer(j, release_module, m);
}

dc_module *dc_module_new(void)
{
    dc_job *j = dc_job_here();
    dc_module *m = dc_xalloc(sizeof *m);
    dc_module_defer(j, m);
    m->names = dc_names_new();
    dc_job_keep(j, m);
    return m;
}

dc_module *dc_module_beside(const dc_module *m)
{
    dc_module *made = dc_xalloc(sizeof *made);
    made->names = m->names;
    made->lent = true;
    made->extents = m->extents;
    made->written = m->written;
    return made;
}

dc_func *dc_func_new(dc_module *m, const char *name)
{
    dc_func *f = DC_NEW(&m->arena, dc_func);
    f->module = m;
    f->name = dc_name_intern_text(m->names, name == NULL ? "" : name);
    DC_PUSH(m->func, f); /* from here on the module frees what f holds */
    DC_PUSH(f->node, (dc_node){0});
    DC_PUSH(f->origins, (dc_origin){0});
    return f;
}

dc_ref dc_number_param(const dc_func *f, dc_ref r)
{
    for (;;) {
        const dc_node *n = dc_node_at(f, r);
        if (n->op == DC_OP_PARAM)
            return n->rank == 0 && n->dtype == DC_I32 ? r : 0;
        if (n->op != DC_OP_RESHAPE && n->op != DC_OP_EXPAND)
            return 0;
        r = n->in[0];
    }
}

dc_type dc_node_type(const dc_func *f, dc_ref r)
{
    const dc_node *n = dc_node_at(f, r);
    return dc_type_make((dc_dtype)n->dtype, n->rank, n->dim);
}

int64_t dc_node_count(const dc_node *n)
{
    int64_t count = 1;
    for (int i = 0; i < n->rank; i++)
        count *= dc_extent_bound(n->dim[i]);
    return count;
}

/* ---- origins ---- */

void dc_func_from(dc_func *f, const char *where, const char *path)
{
    f->where = dc_name_intern_text(f->module->names, where);
    f->path = dc_name_intern_text(f->module->names, path);
}

/* Strings are interned in f's module already. */
static void add_origin(dc_func *f, dc_ref r, const char *where, const char *path)
{
    int length = 0;
    uint32_t last = 0;
    if (where == NULL && path == NULL)
        return;
    for (uint32_t i = f->node.at[r].origin; i != 0; i = f->origins.at[i].next, length++) {
        if (f->origins.at[i].where == where && f->origins.at[i].path == path)
            return;
        last = i;
    }
    if (length == MAX_ORIGINS)
        return;
    const uint32_t added = f->origins.n;
    DC_PUSH(f->origins, ((dc_origin){.where = where, .path = path}));
    if (last == 0)
        f->node.at[r].origin = added;
    else
        f->origins.at[last].next = added;
}

void dc_func_copy_origin(dc_func *f, dc_ref s, const dc_func *from, dc_ref r)
{
    const bool same = f->module == from->module;
    for (uint32_t i = dc_node_at(from, r)->origin; i != 0; i = from->origins.at[i].next) {
        const char *where = from->origins.at[i].where, *path = from->origins.at[i].path;
        add_origin(f, s, same ? where : dc_name_intern_text(f->module->names, where),
                   same ? path : dc_name_intern_text(f->module->names, path));
    }
}

/* ---- hash-consing ---- */

static uint64_t hash_node(const dc_node *n)
{
    uint64_t h = dc_hash_mix(n->op, n->dtype);
    for (int i = 0; i < n->rank; i++)
        h = dc_hash_mix(h, (uint64_t)n->dim[i]);
    for (int i = 0; i < n->nin; i++)
        h = dc_hash_mix(h, n->in[i]);
    for (int i = 0; i < n->nattr; i++)
        h = dc_hash_mix(h, (uint64_t)n->attr[i]);
    return h;
}

/* n * size bytes; either may be NULL when there are none. */
static bool same_bytes(const void *a, const void *b, size_t bytes)
{
    return bytes == 0 || memcmp(a, b, bytes) == 0;
}

static bool same_node(const dc_node *a, const dc_node *b)
{
    return a->op == b->op && a->dtype == b->dtype && a->rank == b->rank && a->nin == b->nin &&
           a->nattr == b->nattr && same_bytes(a->dim, b->dim, a->rank * sizeof *a->dim) &&
           same_bytes(a->in, b->in, a->nin * sizeof *a->in) &&
           same_bytes(a->attr, b->attr, a->nattr * sizeof *a->attr);
}

/* Where the node of this hash is or belongs. */
static uint32_t find_bucket(const dc_func *f, const dc_node *key, uint32_t hash)
{
    uint32_t i = hash & (f->nbucket - 1);
    while (f->bucket[i].node != 0 &&
           (f->bucket[i].hash != hash || !same_node(&f->node.at[f->bucket[i].node], key)))
        i = (i + 1) & (f->nbucket - 1);
    return i;
}

static void grow_buckets(dc_func *f)
{
    const uint32_t n = f->nbucket ? f->nbucket * 2 : 64;
    dc_bucket *bucket = dc_xalloc(n * sizeof *bucket);
    for (uint32_t i = 0; i < f->nbucket; i++) {
        uint32_t to = f->bucket[i].hash & (n - 1);
        while (f->bucket[i].node != 0 && bucket[to].node != 0)
            to = (to + 1) & (n - 1);
        if (f->bucket[i].node != 0)
            bucket[to] = f->bucket[i];
    }
    dc_xfree(f->bucket);
    f->bucket = bucket;
    f->nbucket = n;
}

static void *copy_to(void *to, const void *from, size_t bytes)
{
    if (bytes > 0)
        memcpy(to, from, bytes);
    return (char *)to + bytes;
}

/* What the node points at, copied into one piece of memory. */
static void copy_parts(dc_arena *a, dc_node *n)
{
    const size_t dims = n->rank * sizeof *n->dim, attrs = n->nattr * sizeof *n->attr,
                 refs = n->nin * sizeof *n->in;
    int64_t *at = dc_arena_alloc(a, dims + attrs + refs);
    void *end = copy_to(at, n->dim, dims);
    end = copy_to(end, n->attr, attrs);
    copy_to(end, n->in, refs);
    n->dim = at;
    n->attr = at + n->rank;
    n->in = (const dc_ref *)(at + n->rank + n->nattr);
}

/* Through floats, and through loops and branches, whatever their type. */
static bool varies(const dc_func *f, const dc_node *n)
{
    const bool is_float = dc_dtype_is_float((dc_dtype)n->dtype);
    const int nin = dc_node_inputs(n);
    bool found = is_float && (n->op == DC_OP_PARAM || n->op == DC_OP_BARRIER ||
                              n->op == DC_OP_HOLE || n->op == DC_OP_RECV || n->op == DC_OP_SEND);
    if ((!is_float && !dc_is_control(n)) || n->op == DC_OP_STOP)
        return false;
    for (int i = 0; i < nin && !found; i++)
        found = f->node.at[n->in[i]].varies;
    return found;
}

/* Finds the node or adds it. The key points at memory of the caller. */
static dc_ref cons(dc_func *f, const dc_node *key)
{
    if (f->node.n * 2 >= f->nbucket)
        grow_buckets(f);
    const uint32_t hash = (uint32_t)hash_node(key), slot = find_bucket(f, key, hash);
    dc_ref r = f->bucket[slot].node;
    if (r == 0) {
        dc_node n = *key;
        n.origin = 0;
        n.varies = varies(f, key);
        copy_parts(&f->module->arena, &n);
        DC_ROOM(f->origins); /* a node is there with its origin or not at all */
        r = f->node.n;
        DC_PUSH(f->node, n);
        f->bucket[slot] = (dc_bucket){hash, r};
    }
    add_origin(f, r, f->where, f->path);
    return r;
}

/* Constants come last, so that rules look for them in one place. */
static bool comes_after(const dc_func *f, dc_ref a, dc_ref b)
{
    const bool ca = f->node.at[a].op == DC_OP_CONST, cb = f->node.at[b].op == DC_OP_CONST;
    return ca != cb ? ca : a > b;
}

static dc_ref make_node(dc_func *f, dc_op op, const dc_ref *in, int nin, const int64_t *attr,
                        int nattr, const dc_type *type)
{
    dc_ref order[DC_MAX_OPERANDS];
    for (int i = 0; i < nin; i++)
        order[i] = in[i];
    if (dc_op_row_of(op)->flags & DC_OPF_COMM && comes_after(f, in[0], in[1])) {
        order[0] = in[1];
        order[1] = in[0];
    }
    return cons(f, &(dc_node){.op = (uint8_t)op,
                              .dtype = type->dtype,
                              .rank = type->rank,
                              .nin = (uint16_t)nin,
                              .nattr = (uint16_t)nattr,
                              .dim = type->dim,
                              .in = order,
                              .attr = attr});
}

dc_status dc_make(dc_job *j, dc_func *f, dc_op op, const dc_ref *in, int nin, const int64_t *attr,
                  int nattr, const dc_type *want, dc_ref *out)
{
    dc_type type, types[DC_MAX_TYPED];
    if (op == DC_OP_PARAM)
        DC_BUG("parameters are made by dc_graph_param");
    if (dc_op_is(op, DC_CLASS_CTL)) {
        DC_TRY(dc_control_infer(j, f, op, in, nin, attr, nattr, &type));
        *out = make_node(f, op, in, nin, attr, nattr, &type);
        return DC_OK;
    }
    for (int i = 0; i < nin && i < DC_MAX_TYPED; i++)
        types[i] = dc_node_type(f, in[i]);
    DC_TRY(dc_infer(j, op, types, nin, attr, nattr, want, &type));
    DC_ASSERT(!dc_dtype_is_complex((dc_dtype)type.dtype), "a complex %s", dc_op_row_of(op)->name);
    *out = make_node(f, op, in, nin, attr, nattr, &type);
    return DC_OK;
}

/* ---- for passes ---- */

static DC_NORETURN void refuse_node(dc_func *f, dc_op op, const dc_ref *in, int nin,
                                    const int64_t *attr, int nattr, const dc_type *want)
{
    dc_job own = {.extents = f->module->extents};
    dc_ref r;
    char text[200];
    dc_make(&own, f, op, in, nin, attr, nattr, want, &r);
    dc_err_render(&own.err, 0, text, sizeof text);
    DC_BUG("%s", text);
}

dc_ref dc_graph_make(dc_func *f, dc_op op, const dc_ref *in, int nin, const int64_t *attr,
                     int nattr, const dc_type *want)
{
    dc_job own; /* without a record, whose zeros would cost more than the node */
    dc_ref r = 0;
    own.extents = f->module->extents;
    own.err.status = DC_OK;
    if (dc_make(&own, f, op, in, nin, attr, nattr, want, &r) != DC_OK)
        refuse_node(f, op, in, nin, attr, nattr, want);
    return r;
}

static bool same_type(const dc_node *a, const dc_node *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           same_bytes(a->dim, b->dim, a->rank * sizeof *a->dim);
}

/* The type is a function of the operation, its attributes and the types of the operands. */
static bool keeps_type(const dc_func *to, const dc_func *from, const dc_node *n, const dc_ref *in)
{
    for (int i = 0; i < n->nin; i++)
        if (!same_type(&to->node.at[in[i]], &from->node.at[n->in[i]]))
            return false;
    return !dc_is_control(n) && n->op != DC_OP_PARAM;
}

dc_ref dc_graph_on(dc_func *to, const dc_func *from, dc_ref r, const dc_ref *in,
                   const int64_t *attr)
{
    const dc_node n = *dc_node_at(from, r); /* `to` may be `from`, whose nodes move */
    const dc_type t = dc_node_type(from, r);
    if (attr == n.attr && keeps_type(to, from, &n, in))
        return make_node(to, (dc_op)n.op, in, n.nin, attr, n.nattr, &t);
    return dc_graph_make(to, (dc_op)n.op, in, n.nin, attr, n.nattr, &t);
}

dc_ref dc_graph_op1(dc_func *f, dc_op op, dc_ref a)
{
    return dc_graph_make(f, op, &a, 1, NULL, 0, NULL);
}

dc_ref dc_graph_op2(dc_func *f, dc_op op, dc_ref a, dc_ref b)
{
    return dc_graph_make(f, op, (dc_ref[]){a, b}, 2, NULL, 0, NULL);
}

dc_ref dc_graph_op3(dc_func *f, dc_op op, dc_ref a, dc_ref b, dc_ref c)
{
    return dc_graph_make(f, op, (dc_ref[]){a, b, c}, 3, NULL, 0, NULL);
}

dc_ref dc_graph_const(dc_func *f, const dc_type *t, double v)
{
    const int64_t bits = (int64_t)dc_bits_of((dc_dtype)t->dtype, v);
    return dc_graph_make(f, DC_OP_CONST, NULL, 0, &bits, 1, t);
}

dc_ref dc_graph_like(dc_func *f, dc_ref r, double v)
{
    const dc_type t = dc_node_type(f, r);
    return dc_graph_const(f, &t, v);
}

dc_ref dc_graph_param(dc_func *f, const dc_type *t, const char *label)
{
    const int64_t index = f->param.n;
    const dc_type parts = dc_type_parts(t);
    const char *kept = dc_name_intern_text(f->module->names, label);
    DC_ROOM(f->label); /* node, label and place in the list come together or not at all */
    DC_ROOM(f->param);
    const dc_ref r = make_node(f, DC_OP_PARAM, NULL, 0, &index, 1, &parts);
    DC_PUSH(f->label, kept);
    DC_PUSH(f->param, r);
    return r;
}

void dc_graph_params(dc_func *f, const dc_func *from, dc_ref *map)
{
    for (uint32_t i = 0; i < from->param.n; i++) {
        const dc_ref r = from->param.at[i];
        const dc_type t = dc_node_type(from, r);
        map[r] = dc_graph_param(f, &t, from->label.at[i]);
        dc_func_copy_origin(f, map[r], from, r);
    }
}

dc_ref dc_graph_extent(dc_func *f, int64_t dim)
{
    const dc_type ones = dc_type_make(DC_I32, 1, &dim), scalar = dc_type_scalar(DC_I32);
    if (!dc_extent_is(dim))
        return dc_graph_const(f, &scalar, (double)dim);
    return dc_graph_reduce(f, DC_OP_SUM, dc_graph_const(f, &ones, 1), 1);
}

dc_ref dc_graph_cast(dc_func *f, dc_ref a, dc_dtype t)
{
    dc_type want = dc_node_type(f, a);
    if (want.dtype == t)
        return a;
    want.dtype = (uint8_t)t;
    return dc_graph_make(f, DC_OP_CAST, &a, 1, NULL, 0, &want);
}

dc_ref dc_graph_bitcast(dc_func *f, dc_ref a, dc_dtype t)
{
    dc_type want = dc_node_type(f, a);
    want.dtype = (uint8_t)t;
    return dc_graph_make(f, DC_OP_BITCAST, &a, 1, NULL, 0, &want);
}

/* The type of a with other dims; false: they are its own. */
static bool with_dims(const dc_func *f, dc_ref a, int rank, const int64_t *dim, dc_type *out)
{
    const dc_node *n = dc_node_at(f, a);
    if (n->rank == rank && same_bytes(n->dim, dim, (size_t)rank * sizeof *dim))
        return false;
    *out = dc_type_make((dc_dtype)n->dtype, rank, dim);
    return true;
}

dc_ref dc_graph_reshape(dc_func *f, dc_ref a, int rank, const int64_t *dim)
{
    dc_type want;
    if (!with_dims(f, a, rank, dim, &want))
        return a;
    return dc_graph_make(f, DC_OP_RESHAPE, &a, 1, NULL, 0, &want);
}

dc_ref dc_graph_permute(dc_func *f, dc_ref a, const int64_t *perm)
{
    const int rank = dc_node_at(f, a)->rank;
    bool same = true;
    for (int i = 0; i < rank; i++)
        same = same && perm[i] == i;
    return same ? a : dc_graph_make(f, DC_OP_PERMUTE, &a, 1, perm, rank, NULL);
}

dc_ref dc_graph_expand(dc_func *f, dc_ref a, const int64_t *dim)
{
    dc_type want;
    if (!with_dims(f, a, dc_node_at(f, a)->rank, dim, &want))
        return a;
    return dc_graph_make(f, DC_OP_EXPAND, &a, 1, NULL, 0, &want);
}

/* With equal extents nothing is cut and every element stays where it is. */
dc_ref dc_graph_slice(dc_func *f, dc_ref a, const int64_t *start, const int64_t *step,
                      const int64_t *dim)
{
    const int rank = dc_node_at(f, a)->rank;
    int64_t attr[2 * DC_MAX_RANK];
    dc_type want;
    if (!with_dims(f, a, rank, dim, &want))
        return a;
    for (int i = 0; i < rank; i++) {
        attr[i] = start[i];
        attr[rank + i] = step[i];
    }
    return dc_graph_make(f, DC_OP_SLICE, &a, 1, attr, 2 * rank, &want);
}

dc_ref dc_graph_pad(dc_func *f, dc_ref a, const int64_t *lo, const int64_t *step,
                    const int64_t *dim, uint64_t fill)
{
    const int rank = dc_node_at(f, a)->rank;
    int64_t attr[2 * DC_MAX_RANK + 1];
    dc_type want;
    if (!with_dims(f, a, rank, dim, &want))
        return a;
    for (int i = 0; i < rank; i++) {
        attr[i] = lo[i];
        attr[rank + i] = step[i];
    }
    attr[2 * rank] = (int64_t)fill;
    return dc_graph_make(f, DC_OP_PAD, &a, 1, attr, 2 * rank + 1, &want);
}

dc_ref dc_graph_flip(dc_func *f, dc_ref a, uint32_t axes)
{
    const int64_t attr = axes;
    return axes == 0 ? a : dc_graph_make(f, DC_OP_FLIP, &a, 1, &attr, 1, NULL);
}

dc_ref dc_graph_set_size(dc_func *f, dc_ref a, int axis, dc_ref size)
{
    const int64_t attr = axis;
    return dc_graph_make(f, DC_OP_SET_SIZE, (dc_ref[]){a, size}, 2, &attr, 1, NULL);
}

dc_ref dc_graph_reduce(dc_func *f, dc_op op, dc_ref a, uint32_t axes)
{
    const int64_t attr = axes;
    const bool widens = op == DC_OP_SUM || op == DC_OP_PROD;
    if (axes == 0 && (!widens || dc_dtype_bits((dc_dtype)dc_node_at(f, a)->dtype) >= 32))
        return a;
    return dc_graph_make(f, op, &a, 1, &attr, 1, NULL);
}

dc_ref dc_graph_unreduce(dc_func *f, dc_ref a, uint32_t axes, int rank, const int64_t *dim)
{
    int64_t kept[DC_MAX_RANK];
    for (int i = 0; i < rank; i++)
        kept[i] = axes >> i & 1 ? 1 : dim[i];
    return dc_graph_expand(f, dc_graph_reshape(f, a, rank, kept), dim);
}

dc_ref dc_graph_repeated(const dc_func *f, dc_ref r)
{
    const dc_node *n = dc_node_at(f, r);
    const int last = n->rank - 1;
    if (n->op != DC_OP_EXPAND || last < 0 || n->dim[last] < 2)
        return 0;
    const dc_node *a = dc_node_at(f, n->in[0]);
    for (int i = 0; i <= last; i++)
        if (a->dim[i] != (i < last ? n->dim[i] : 1))
            return 0;
    return n->in[0];
}

dc_ref dc_graph_gather(dc_func *f, dc_ref a, dc_ref index, int axis, int nb)
{
    const int64_t attr[2] = {axis, nb};
    return dc_graph_make(f, DC_OP_GATHER, (dc_ref[]){a, index}, 2, attr, 2, NULL);
}

/* op: a scatter */
dc_ref dc_graph_scatter(dc_func *f, dc_op op, dc_ref a, dc_ref index, dc_ref updates, int axis,
                        int nb)
{
    const int64_t attr[2] = {axis, nb};
    return dc_graph_make(f, op, (dc_ref[]){a, index, updates}, 3, attr, 2, NULL);
}

bool dc_is_const(const dc_func *f, dc_ref r, double v)
{
    const dc_node *n = dc_node_at(f, r);
    const dc_dtype t = (dc_dtype)n->dtype;
    if (n->op != DC_OP_CONST || (uint64_t)n->attr[0] != dc_bits_of(t, v))
        return false;
    return dc_value_of(t, (uint64_t)n->attr[0]) == v || v != v; /* 0.5 is no u8, 1e300 no f32 */
}

/* ---- whole functions ---- */

bool *dc_func_live(const dc_func *f, dc_arena *a)
{
    bool *live = DC_NEW_ARRAY(a, bool, f->node.n);
    for (uint32_t i = 0; i < f->result.n; i++)
        live[f->result.at[i]] = true;
    for (dc_ref r = f->node.n; r-- > 1;)
        for (int i = 0; live[r] && i < f->node.at[r].nin; i++)
            live[f->node.at[r].in[i]] = true;
    return live;
}

uint32_t *dc_func_numbers(const dc_func *f, dc_arena *a)
{
    uint32_t *number = DC_NEW_ARRAY(a, uint32_t, f->node.n), n = 0;
    const bool *live = dc_func_live(f, a);
    for (uint32_t i = 0; i < f->param.n; i++)
        number[f->param.at[i]] = ++n;
    for (dc_ref r = 1; r < f->node.n; r++)
        if (live[r] && number[r] == 0)
            number[r] = ++n;
    return number;
}

void dc_node_operands(const dc_func *f, const uint32_t *number, dc_ref r, uint32_t *out)
{
    const dc_node *n = dc_node_at(f, r);
    for (int i = 0; i < n->nin; i++)
        out[i] = number[n->in[i]];
    if ((dc_op_row_of((dc_op)n->op)->flags & DC_OPF_COMM) == 0 ||
        (f->node.at[n->in[0]].op == DC_OP_CONST) != (f->node.at[n->in[1]].op == DC_OP_CONST))
        return;
    if (out[0] > out[1]) {
        const uint32_t first = out[0];
        out[0] = out[1];
        out[1] = first;
    }
}

dc_func *dc_func_clone(dc_module *to, const dc_func *from, dc_ref *map)
{
    return dc_func_clone_with(to, from, map,
                              DC_NEW_ARRAY(&to->arena, uint32_t, from->module->body.n + 1));
}

dc_func *dc_func_clone_with(dc_module *to, const dc_func *from, dc_ref *map, uint32_t *known)
{
    dc_func *f = dc_func_new(to, from->name);
    const bool *live = dc_func_live(from, &to->arena);
    if (map == NULL)
        map = DC_NEW_ARRAY(&to->arena, dc_ref, from->node.n);
    memset(map, 0, from->node.n * sizeof *map);
    dc_graph_params(f, from, map);
    for (dc_ref r = 1; r < from->node.n; r++) {
        const dc_node *n = &from->node.at[r];
        const dc_type t = dc_node_type(from, r);
        dc_ref in[DC_MAX_OPERANDS];
        if (!live[r] || n->op == DC_OP_PARAM)
            continue;
        for (int i = 0; i < n->nin; i++)
            in[i] = map[n->in[i]];
        const int64_t id = f->node.n; /* of a barrier: canonical again */
        int64_t bodies[DC_LOOP_ATTRS];
        const int64_t *attr = n->op == DC_OP_BARRIER ? &id : n->attr;
        if (dc_is_control(n)) {
            dc_bodies_import(to, from->module, n, bodies, known);
            attr = bodies;
        }
        map[r] = make_node(f, (dc_op)n->op, in, n->nin, attr, n->nattr, &t);
        dc_func_copy_origin(f, map[r], from, r);
    }
    for (uint32_t i = 0; i < from->result.n; i++)
        DC_PUSH(f->result, map[from->result.at[i]]);
    return f;
}

static uint64_t hash_numbered(const dc_func *f, const uint32_t *number, dc_ref r)
{
    dc_node key = *dc_node_at(f, r);
    uint32_t in[DC_MAX_OPERANDS];
    int64_t attr[DC_LOOP_ATTRS];
    dc_node_operands(f, number, r, in);
    key.in = in;
    if (dc_is_control(&key)) { /* what bodies are, not their numbers */
        for (int i = 0; i < key.nattr; i++)
            attr[i] = i < dc_node_bodies(&key) ? (int64_t)f->module->body.at[key.attr[i]].hash
                                               : key.attr[i];
        key.attr = attr;
    }
    return hash_node(&key);
}

uint64_t dc_func_hash(const dc_func *f)
{
    dc_scratch scratch;
    dc_arena *a = dc_scratch_begin(&scratch);
    const uint32_t *number = dc_func_numbers(f, a);
    uint64_t h = dc_hash_mix(f->param.n, f->result.n);
    for (uint32_t i = 0; i < f->param.n; i++)
        h = dc_hash_mix(h, hash_node(dc_node_at(f, f->param.at[i])));
    for (dc_ref r = 1; r < f->node.n; r++)
        if (number[r] > f->param.n)
            h = dc_hash_mix(h, hash_numbered(f, number, r));
    for (uint32_t i = 0; i < f->result.n; i++)
        h = dc_hash_mix(h, number[f->result.at[i]]);
    dc_scratch_end(&scratch);
    return h;
}
