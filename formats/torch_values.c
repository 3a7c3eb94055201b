/*
 * What pickles of torch.save mean: tensors, and tables and lists of them and of plain values.
 *
 * A tensor is a call of torch._utils._rebuild_tensor_v2(storage, offset, sizes, strides, ...), a storage a persistent id
 * ('storage', type, key, location, elements); a parameter a call with a tensor. Nothing else has a meaning here.
 */
#include "core/base/path.h"
#include "formats/torch_impl.h"

#include <inttypes.h>
#include <string.h>

static const dc_torch_dtype dtypes[] = {
    {"float32", "FloatStorage", DC_F32, NULL, 4},
    {"float64", "DoubleStorage", DC_F64, NULL, 8},
    {"float16", "HalfStorage", DC_F16, NULL, 2},
    {"bfloat16", "BFloat16Storage", DC_BF16, NULL, 2},
    {"int64", "LongStorage", DC_I64, NULL, 8},
    {"int32", "IntStorage", DC_I32, NULL, 4},
    {"int16", "ShortStorage", DC_I16, NULL, 2},
    {"int8", "CharStorage", DC_I8, NULL, 1},
    {"uint8", "ByteStorage", DC_U8, NULL, 1},
    {"bool", "BoolStorage", DC_BOOL, NULL, 1},
    {"complex64", "ComplexFloatStorage", DC_C64, NULL, 8},
    {"complex128", "ComplexDoubleStorage", DC_C128, NULL, 16},
    {"uint16", NULL, DC_U16, NULL, 2},
    {"uint32", NULL, DC_U32, NULL, 4},
    {"uint64", NULL, DC_U64, NULL, 8},
    {"float8_e4m3fn", NULL, DC_F32, "f8_e4m3", 1},
    {"float8_e5m2", NULL, DC_F32, "f8_e5m2", 1},
};

static const dc_torch_dtype untyped = {"uint8", NULL, DC_U8, NULL, 1};

static const char *const others[] = {
    "collections OrderedDict",
    "torch._utils _rebuild_tensor",
    "torch._utils _rebuild_tensor_v2",
    "torch._utils _rebuild_tensor_v3",
    "torch._utils _rebuild_parameter",
    "torch._utils _rebuild_parameter_with_state",
    "torch._tensor _rebuild_from_type_v2",
    "torch.nn.parameter Parameter",
    "torch Tensor",
    "torch Size",
    "torch device",
    "_codecs encode",
};

/* "torch float32" */
static const dc_torch_dtype *dtype_of_global(const char *global)
{
    for (size_t i = 0; i < DC_COUNTOF(dtypes); i++)
        if (strncmp(global, "torch ", 6) == 0 && strcmp(global + 6, dtypes[i].name) == 0)
            return &dtypes[i];
    return NULL;
}

/* "torch FloatStorage" */
static const dc_torch_dtype *storage_of_global(const char *global)
{
    if (strcmp(global, "torch.storage UntypedStorage") == 0 ||
        strcmp(global, "torch UntypedStorage") == 0)
        return &untyped;
    for (size_t i = 0; i < DC_COUNTOF(dtypes); i++)
        if (dtypes[i].storage != NULL && strncmp(global, "torch ", 6) == 0 &&
            strcmp(global + 6, dtypes[i].storage) == 0)
            return &dtypes[i];
    return NULL;
}

int64_t dc_torch_storage_size(const char *global)
{
    const dc_torch_dtype *type = storage_of_global(global);
    return type != NULL ? type->size : 0;
}

bool dc_torch_known(const char *global)
{
    for (size_t i = 0; i < DC_COUNTOF(others); i++)
        if (strcmp(global, others[i]) == 0)
            return true;
    return dtype_of_global(global) != NULL || storage_of_global(global) != NULL;
}

/* ---- nodes ------------------------------------------------------------------------------------ */

#define REFUSE(t, ...) dc_path_fail((t)->job, DC_ERR_FORMAT, (t)->path, __VA_ARGS__)

typedef const dc_pickle_node node;

static node *at(const dc_torch *t, dc_pickle_ref r)
{
    return &t->pickle.node.at[r];
}

/* Item i of a list, if it is of a kind; else NULL. */
static node *item_of(const dc_torch *t, node *list, uint32_t i, dc_pickle_kind kind)
{
    node *n = i < list->item.n ? at(t, list->item.at[i]) : NULL;
    return n != NULL && n->kind == kind ? n : NULL;
}

static bool is_call(const dc_torch *t, node *n, const char *global)
{
    return n->kind == DC_PICKLE_CALL && strcmp(at(t, n->item.at[0])->text, global) == 0;
}

static node *arguments_of(const dc_torch *t, node *call)
{
    return at(t, call->item.at[1]);
}

/* A list that may be a torch.Size. */
static node *list_of(const dc_torch *t, node *list, uint32_t i)
{
    node *n = i < list->item.n ? at(t, list->item.at[i]) : NULL;
    if (n != NULL && is_call(t, n, "torch Size"))
        return item_of(t, arguments_of(t, n), 0, DC_PICKLE_LIST);
    return n != NULL && n->kind == DC_PICKLE_LIST ? n : NULL;
}

/* ---- tensors ---------------------------------------------------------------------------------- */

/* A tensor as its pickle has it, checked step by step. */
typedef struct tensor {
    const char *name;
    const dc_torch_dtype *type;
    int64_t at, elements; /* of its storage: where it begins, what it has */
    int64_t offset;
    int rank;
    int64_t size[DC_MAX_RANK], stride[DC_MAX_RANK];
} tensor;

static dc_status refuse_tensor(dc_torch *t, const tensor *x, const char *what)
{
    return REFUSE(t, "tensor '%s' %s", dc_show_name(x->name).s, what);
}

static dc_status read_storage(dc_torch *t, tensor *x, node *persistent, const dc_torch_dtype *as)
{
    int64_t bytes, wanted;
    node *id = at(t, persistent->item.at[0]);
    node *kind = id->kind == DC_PICKLE_LIST ? item_of(t, id, 0, DC_PICKLE_TEXT) : NULL;
    node *type = kind != NULL ? item_of(t, id, 1, DC_PICKLE_GLOBAL) : NULL;
    node *key = type != NULL ? item_of(t, id, 2, DC_PICKLE_TEXT) : NULL;
    node *count = key != NULL ? item_of(t, id, 4, DC_PICKLE_INT) : NULL;
    if (count == NULL || kind->n != 7 || memcmp(kind->text, "storage", 7) != 0)
        return refuse_tensor(t, x, "has a storage that is none of torch.save's");
    if (id->item.n > 5 && at(t, id->item.at[5])->kind != DC_PICKLE_NONE)
        return refuse_tensor(t, x,
                             "has a storage that is a view of another one, which is not read");
    const dc_torch_dtype *stored = storage_of_global(type->text);
    if (stored == NULL)
        return refuse_tensor(t, x, "has a storage that is none of torch.save's");
    x->type = as != NULL ? as : stored;
    const char *name =
        dc_arena_printf(&t->arena, "%.*s", (int)(key->n < 200 ? key->n : 200), key->text);
    DC_TRY(t->find(t->ctx, name, &x->at, &bytes));
    if (count->i < 0 || !dc_mul_ok(count->i, stored->size, &wanted) || wanted > bytes)
        return REFUSE(
            t, "tensor '%s' has a storage of %" PRId64 " elements of %u bytes in %" PRId64 " bytes",
            dc_show_name(x->name).s, count->i, stored->size, bytes);
    x->elements = wanted / x->type->size;
    return DC_OK;
}

static dc_status read_sizes(dc_torch *t, tensor *x, node *sizes, node *strides)
{
    if (sizes == NULL || strides == NULL || sizes->item.n != strides->item.n)
        return refuse_tensor(t, x, "has sizes and strides that do not belong together");
    if (sizes->item.n > DC_MAX_RANK)
        return REFUSE(t, "tensor '%s' has %u axes, %d is the most", dc_show_name(x->name).s,
                      sizes->item.n, DC_MAX_RANK);
    x->rank = (int)sizes->item.n;
    for (int i = 0; i < x->rank; i++) {
        node *size = item_of(t, sizes, (uint32_t)i, DC_PICKLE_INT);
        node *stride = item_of(t, strides, (uint32_t)i, DC_PICKLE_INT);
        if (size == NULL || stride == NULL || size->i < 0 || stride->i < 0)
            return refuse_tensor(t, x, "has a size or a stride that is no whole number from 0 on");
        x->size[i] = size->i;
        x->stride[i] =
            size->i > 1 ? stride->i : 0; /* of others it says nothing, and may be anything */
    }
    return DC_OK;
}

/* Do the elements lie one behind the other, the last axis along memory? */
static bool is_dense(const tensor *x)
{
    int64_t step = 1;
    for (int i = x->rank; i-- > 0; step *= x->size[i])
        if (x->size[i] != 1 && x->stride[i] != step)
            return false;
    return true;
}

/* All elements lie in the storage, and are no more than it has. */
static dc_status check_extent(dc_torch *t, const tensor *x)
{
    int64_t last = x->offset, count = 1, reach;
    if (!dc_dims_known(x->rank, x->size) || !dc_dims_fit(x->rank, x->size, 16))
        return refuse_tensor(t, x, "is too large to address");
    for (int i = 0; i < x->rank; i++)
        count *= x->size[i];
    if (count == 0)
        return DC_OK;
    for (int i = 0; i < x->rank; i++)
        if (!dc_mul_ok(x->size[i] - 1, x->stride[i], &reach) || !dc_add_ok(last, reach, &last))
            return refuse_tensor(t, x, "is too large to address");
    if (x->offset < 0 || last >= x->elements)
        return REFUSE(t, "tensor '%s' has its last element at %" PRId64 " of a storage of %" PRId64,
                      dc_show_name(x->name).s, last, x->elements);
    if (count > x->elements)
        return refuse_tensor(t, x,
                             "is expanded: it has more elements than its storage; "
                             "x.contiguous() before torch.save");
    return DC_OK;
}

static dc_status add_tensor(dc_torch *t, const tensor *x)
{
    dc_file_tensor out = {.name = x->name, .format = x->type->name, .index = UINT32_MAX};
    out.packing = x->type->packing != NULL ? dc_packing_find(x->type->packing) : NULL;
    out.asks = out.packing != NULL;
    out.type = dc_type_make(x->type->dtype, x->rank, x->size);
    if (!dc_type_has_parts(&out.type))
        return refuse_tensor(t, x, "of complex numbers has too many axes");
    const int64_t count = dc_type_count(&out.type);
    out.at = count > 0 ? x->at + x->offset * x->type->size : x->at;
    out.bytes = count * x->type->size;
    if (count > 0 && !is_dense(x)) {
        dc_torch_strides s = {0};
        memcpy(s.stride, x->stride, sizeof s.stride);
        out.index = t->strides.n;
        out.whole = true;
        DC_PUSH(t->strides, s);
    }
    DC_PUSH(t->tensor, out);
    return DC_OK;
}

/* A call with these arguments: a tensor, or a parameter of one. */
static dc_status read_tensor(dc_torch *t, const char *f, node *args, const char *name, int depth)
{
    tensor x = {.name = name};
    node *first = args->item.n > 0 ? at(t, args->item.at[0]) : NULL;
    if (first == NULL || depth > 4)
        return refuse_tensor(t, &x, "is no tensor");
    if (strncmp(f, "torch._utils _rebuild_parameter", 31) == 0) {
        if (first->kind != DC_PICKLE_CALL)
            return refuse_tensor(t, &x, "is a parameter of no tensor");
        return read_tensor(t, at(t, first->item.at[0])->text, arguments_of(t, first), name,
                           depth + 1);
    }
    if (strcmp(f, "torch._tensor _rebuild_from_type_v2") == 0) {
        node *inner = item_of(t, args, 2, DC_PICKLE_LIST);
        if (first->kind != DC_PICKLE_GLOBAL || inner == NULL)
            return refuse_tensor(t, &x, "is no tensor");
        return read_tensor(t, first->text, inner, name, depth + 1);
    }
    const bool third = strcmp(f, "torch._utils _rebuild_tensor_v3") == 0;
    if (!third && strncmp(f, "torch._utils _rebuild_tensor", 28) != 0)
        return refuse_tensor(t, &x, "is no tensor");
    node *offset = item_of(t, args, 1, DC_PICKLE_INT);
    node *dtype = third ? item_of(t, args, 6, DC_PICKLE_GLOBAL) : NULL;
    const dc_torch_dtype *as = dtype != NULL ? dtype_of_global(dtype->text) : NULL;
    if (first->kind != DC_PICKLE_PERSISTENT || offset == NULL || (third && as == NULL))
        return refuse_tensor(t, &x, "is no tensor");
    DC_TRY(read_storage(t, &x, first, as));
    x.offset = offset->i;
    DC_TRY(read_sizes(t, &x, list_of(t, args, 2), list_of(t, args, 3)));
    DC_TRY(check_extent(t, &x));
    return add_tensor(t, &x);
}

/* ---- the tree --------------------------------------------------------------------------------- */

enum { DEEPEST = 64, LONGEST = 1 << 12 /* of a name, in bytes */ };

typedef struct walking {
    dc_torch *t;
    dc_text path;           /* "model.0.weight" */
    uint64_t visits;        /* of nodes; those that are shared come several times */
    DC_VEC(dc_tree *) made; /* trees of nodes that have been visited: node.about - 1 */
} walking;

static void free_walking(void *at)
{
    walking *w = at;
    dc_text_free(&w->path);
    DC_VEC_FREE(w->made);
}

static dc_status walk(walking *w, dc_pickle_ref r, int depth, dc_tree **out);

/* A part of the path for what is read next; returns what to cut it to afterwards. */
static size_t enter(walking *w, const dc_meta *key)
{
    const size_t n = w->path.n;
    dc_text_puts(&w->path, n > 0 ? "." : "");
    if (key->kind == DC_META_TEXT)
        dc_text_put(&w->path, key->text, (size_t)key->n);
    else
        dc_text_printf(&w->path, "%" PRId64, key->i);
    return n;
}

static void leave(walking *w, size_t n)
{
    w->path.n = n;
    if (w->path.s != NULL)
        w->path.s[n] = '\0';
}

static dc_status walk_item(walking *w, dc_pickle_ref r, const dc_meta *key, int depth,
                           dc_tree *parent, uint32_t i)
{
    const size_t n = enter(w, key);
    if (w->path.n > LONGEST)
        return REFUSE(w->t, "the name '%s' has more than %d bytes", dc_show_name(w->path.s).s,
                      LONGEST);
    parent->key[i] = *key;
    DC_TRY(walk(w, r, depth + 1, &parent->item[i]));
    leave(w, n);
    return DC_OK;
}

static dc_status read_key(walking *w, node *key, dc_meta *out)
{
    if (key->kind == DC_PICKLE_INT) {
        *out = (dc_meta){.kind = DC_META_I64, .i = key->i};
        return DC_OK;
    }
    if (key->kind != DC_PICKLE_TEXT)
        return REFUSE(w->t,
                      "a dictionary at '%s' has a key that is neither a text nor a whole number",
                      dc_show_name(w->path.s != NULL ? w->path.s : "").s);
    if (key->n > 0 && memchr(key->text, '\0', (size_t)key->n) != NULL)
        return REFUSE(w->t, "a dictionary at '%s' has a key with a zero byte",
                      dc_show_name(w->path.s != NULL ? w->path.s : "").s);
    *out = (dc_meta){.kind = DC_META_TEXT, .text = key->text, .n = key->n};
    return DC_OK;
}

/* Items of a table, or of a list, which are counted from 1. */
static dc_status walk_items(walking *w, dc_pickle_ref r, int depth, dc_tree *out)
{
    dc_torch *t = w->t;
    const bool table = at(t, r)->kind == DC_PICKLE_TABLE;
    out->kind = table ? DC_TREE_TABLE : DC_TREE_LIST;
    out->n = at(t, r)->item.n / (table ? 2 : 1);
    out->item = DC_NEW_ARRAY(&t->arena, dc_tree *, out->n + 1);
    out->key = DC_NEW_ARRAY(&t->arena, dc_meta, out->n + 1);
    for (uint32_t i = 0; i < out->n; i++) {
        dc_meta key = {.kind = DC_META_I64, .i = (int64_t)i + 1};
        const dc_pickle_ref *item = at(t, r)->item.at;
        if (table)
            DC_TRY(read_key(w, at(t, item[2 * i]), &key));
        DC_TRY(walk_item(w, item[table ? 2 * i + 1 : i], &key, depth, out, i));
    }
    return DC_OK;
}

static dc_status add_value(walking *w, dc_tree *out, dc_meta v)
{
    out->kind = DC_TREE_VALUE;
    out->value = v;
    DC_PUSH(
        w->t->entry,
        ((dc_meta_entry){dc_arena_strdup(&w->t->arena, w->path.s != NULL ? w->path.s : ""), v}));
    return DC_OK;
}

/* "torch float32" as Python prints it. */
static dc_status add_global(walking *w, dc_tree *out, const char *global)
{
    char *text = dc_arena_strdup(&w->t->arena, global);
    *strchr(text, ' ') = '.';
    return add_value(w, out, (dc_meta){.kind = DC_META_TEXT, .text = text, .n = strlen(text)});
}

static dc_status walk_call(walking *w, node *call, int depth, dc_tree *out)
{
    dc_torch *t = w->t;
    node *args = arguments_of(t, call);
    const char *f = at(t, call->item.at[0])->text;
    node *text = item_of(t, args, 0, DC_PICKLE_TEXT);
    if (strcmp(f, "torch Size") == 0 && args->item.n > 0 && item_of(t, args, 0, DC_PICKLE_LIST))
        return walk_items(w, args->item.at[0], depth, out);
    if (text != NULL && (strcmp(f, "torch device") == 0 || strcmp(f, "_codecs encode") == 0))
        return add_value(w, out, (dc_meta){.kind = DC_META_TEXT, .text = text->text, .n = text->n});
    const char *name = dc_arena_strdup(&t->arena, w->path.s);
    out->kind = DC_TREE_TENSOR;
    out->name = name;
    return read_tensor(t, f, args, name, 0);
}

static dc_status fill(walking *w, dc_pickle_ref r, int depth, dc_tree *out)
{
    dc_torch *t = w->t;
    node *n = at(t, r);
    const char *where = w->path.s != NULL ? w->path.s : "";
    switch (n->kind) {
    case DC_PICKLE_NONE:
        out->kind = DC_TREE_NONE;
        return DC_OK;
    case DC_PICKLE_BOOL:
        return add_value(w, out, (dc_meta){.kind = DC_META_BOOL, .u = n->b});
    case DC_PICKLE_INT:
        return add_value(w, out, (dc_meta){.kind = DC_META_I64, .i = n->i});
    case DC_PICKLE_REAL:
        return add_value(w, out, (dc_meta){.kind = DC_META_F64, .f = n->f});
    case DC_PICKLE_TEXT:
        return add_value(w, out, (dc_meta){.kind = DC_META_TEXT, .text = n->text, .n = n->n});
    case DC_PICKLE_GLOBAL:
        return add_global(w, out, n->text);
    case DC_PICKLE_LIST:
    case DC_PICKLE_TABLE:
        return walk_items(w, r, depth, out);
    case DC_PICKLE_CALL:
        return walk_call(w, n, depth, out);
    case DC_PICKLE_BIG:
        return REFUSE(t, "'%s' is a number of more than 64 bits", dc_show_name(where).s);
    case DC_PICKLE_PERSISTENT:
        return REFUSE(t, "'%s' is a storage without a tensor, which is not read",
                      dc_show_name(where).s);
    }
    DC_BUG("a node of kind %d", (int)n->kind);
}

/* Shared nodes have one tree, and a name for each way that leads to their tensors. */
static dc_status walk(walking *w, dc_pickle_ref r, int depth, dc_tree **out)
{
    dc_torch *t = w->t;
    dc_pickle_node *n = &t->pickle.node.at[r];
    if (depth > DEEPEST)
        return REFUSE(t, "values are nested more than %d deep", DEEPEST);
    if (++w->visits > 16 * (uint64_t)t->pickle.node.n + 1024)
        return REFUSE(t, "values are nested in more ways than there are values");
    if (w->visits % 1024 == 0)
        DC_TRY(dc_job_ended(t->job));
    dc_tree *made = DC_NEW(&t->arena, dc_tree);
    DC_TRY(fill(w, r, depth, made));
    if (n->about == 0) {
        DC_PUSH(w->made, made);
        n->about = w->made.n;
    }
    *out = w->made.at[n->about - 1];
    return DC_OK;
}

dc_status dc_torch_values(dc_torch *t, dc_pickle_ref root)
{
    walking *w = DC_NEW(&t->job->scratch, walking);
    dc_tree *tree = NULL;
    w->t = t;
    dc_job_defer(t->job, free_walking, w);
    const dc_pickle_kind kind = at(t, root)->kind;
    if (kind == DC_PICKLE_TABLE || kind == DC_PICKLE_LIST) {
        DC_TRY(walk(w, root, 0, &tree));
    } else { /* a value alone has a name all the same */
        const dc_meta key = {.kind = DC_META_TEXT, .text = "value", .n = 5};
        tree = DC_NEW(&t->arena, dc_tree);
        *tree = (dc_tree){.kind = DC_TREE_TABLE, .n = 1};
        tree->item = DC_NEW(&t->arena, dc_tree *);
        tree->key = DC_NEW(&t->arena, dc_meta);
        DC_TRY(walk_item(w, root, &key, 0, tree, 0));
    }
    t->tree = tree;
    dc_job_keep(t->job, w);
    free_walking(w);
    return DC_OK;
}
