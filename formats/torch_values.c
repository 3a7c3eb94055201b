/*
 * What pickles of torch.save mean: tensors, and tables and lists of them and of plain values.
 *
 * A tensor is a call of torch._utils._rebuild_tensor_v2(storage, offset, sizes, strides, ...), a storage a persistent id
 * ('storage', type, key, location, elements); a parameter a call with a tensor. What else torch.load reads by default
 * (weights_only: torch/_weights_only_unpickler.py) is a plain value, or is left out.
 */
#include "core/base/number.h"
#include "core/base/path.h"
#include "core/base/sort.h"
#include "core/base/utf8.h"
#include "formats/torch_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

static bool is_text(node *n, const char *text)
{
    return n->kind == DC_PICKLE_TEXT && n->n == strlen(text) && memcmp(n->text, text, n->n) == 0;
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
    int64_t size[DC_MAX_RANK];
    dc_torch_form form;
    const char *why; /* it is left out; or NULL */
} tensor;

static dc_status refuse_tensor(dc_torch *t, const tensor *x, const char *what)
{
    return REFUSE(t, "tensor '%s' %s", dc_show_name(x->name).s, what);
}

/* A part of another storage: (key, the first element, how many there are). */
static dc_status read_view(dc_torch *t, tensor *x, node *view, uint32_t size)
{
    node *first = view->kind == DC_PICKLE_LIST ? item_of(t, view, 1, DC_PICKLE_INT) : NULL;
    node *count = first != NULL ? item_of(t, view, 2, DC_PICKLE_INT) : NULL;
    if (count == NULL || first->i < 0 || count->i < 0 || first->i > x->elements ||
        count->i > x->elements - first->i)
        return refuse_tensor(t, x, "has a storage that is no part of the one it is a view of");
    x->at += first->i * size;
    x->elements = count->i;
    return DC_OK;
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
    const dc_torch_dtype *stored = dc_torch_storage_of(type->text);
    if (stored == NULL)
        return refuse_tensor(t, x, "has a storage that is none of torch.save's");
    x->type = as != NULL ? as : stored;
    const char *name =
        dc_arena_printf(&t->arena, "%.*s", (int)(key->n < 200 ? key->n : 200), key->text);
    DC_TRY(t->find(t->ctx, name, &x->at, &bytes, &x->form.packed));
    if (count->i < 0 || !dc_mul_ok(count->i, stored->size, &wanted) || wanted > bytes)
        return REFUSE(
            t, "tensor '%s' has a storage of %" PRId64 " elements of %u bytes in %" PRId64 " bytes",
            dc_show_name(x->name).s, count->i, stored->size, bytes);
    x->elements = count->i;
    if (id->item.n > 5 && at(t, id->item.at[5])->kind != DC_PICKLE_NONE)
        DC_TRY(read_view(t, x, at(t, id->item.at[5]), stored->size));
    x->elements = x->elements * stored->size / x->type->size;
    if (t->big && stored->size > 1) /* as PyTorch does it, by the type of the storage */
        x->form.swap = dc_dtype_is_complex(stored->dtype) ? stored->size / 2 : stored->size;
    return DC_OK;
}

static dc_status read_sizes(dc_torch *t, tensor *x, node *sizes, node *strides)
{
    if (sizes == NULL || strides == NULL || sizes->item.n != strides->item.n)
        return refuse_tensor(t, x, "has sizes and strides that do not belong together");
    if (sizes->item.n > DC_MAX_RANK) {
        x->why = dc_arena_printf(&t->arena, "it has %u axes, %d is the most", sizes->item.n,
                                 DC_MAX_RANK);
        return DC_OK;
    }
    x->rank = (int)sizes->item.n;
    for (int i = 0; i < x->rank; i++) {
        node *size = item_of(t, sizes, (uint32_t)i, DC_PICKLE_INT);
        node *stride = item_of(t, strides, (uint32_t)i, DC_PICKLE_INT);
        if (size == NULL || stride == NULL || size->i < 0 || stride->i < 0)
            return refuse_tensor(t, x, "has a size or a stride that is no whole number from 0 on");
        x->size[i] = size->i;
        x->form.stride[i] =
            size->i > 1 ? stride->i : 0; /* of others it says nothing, and may be anything */
    }
    return DC_OK;
}

/* Do the elements lie one behind the other, the last axis along memory? */
static bool is_dense(const tensor *x)
{
    int64_t step = 1;
    for (int i = x->rank; i-- > 0; step *= x->size[i])
        if (x->size[i] != 1 && x->form.stride[i] != step)
            return false;
    return true;
}

/* All elements lie in the storage. */
static dc_status check_extent(dc_torch *t, tensor *x)
{
    int64_t last = x->offset, count = 1, reach;
    if (!dc_dims_known(x->rank, x->size) || !dc_dims_fit(x->rank, x->size, 16))
        return refuse_tensor(t, x, "is too large to address");
    for (int i = 0; i < x->rank; i++)
        count *= x->size[i];
    if (count == 0)
        return DC_OK;
    for (int i = 0; i < x->rank; i++)
        if (!dc_mul_ok(x->size[i] - 1, x->form.stride[i], &reach) || !dc_add_ok(last, reach, &last))
            return refuse_tensor(t, x, "is too large to address");
    if (x->offset < 0 || last >= x->elements)
        return REFUSE(t, "tensor '%s' has its last element at %" PRId64 " of a storage of %" PRId64,
                      dc_show_name(x->name).s, last, x->elements);
    x->form.expanded = count > x->elements;
    return DC_OK;
}

static void push_tensor(dc_torch *t, const dc_file_tensor *x, dc_tree *tree)
{
    DC_ROOM(t->tensor);
    DC_PUSH(t->tree_of, tree);
    DC_PUSH(t->tensor, *x);
}

/* One that is in the list and is not read. */
static dc_status leave_tensor(dc_torch *t, const char *name, dc_tree *tree, const char *format,
                              const char *why)
{
    const dc_file_tensor out = {.name = name,
                                .format = format,
                                .index = UINT32_MAX,
                                .bytes = -1,
                                .unread = true,
                                .why = why};
    push_tensor(t, &out, tree);
    return DC_OK;
}

static dc_status add_tensor(dc_torch *t, const tensor *x, dc_tree *tree)
{
    dc_file_tensor out = {.name = x->name, .format = x->type->name, .index = UINT32_MAX};
    out.packing = x->type->packing != NULL ? dc_packing_find(x->type->packing) : NULL;
    out.asks = out.packing != NULL;
    out.type = dc_type_make(x->type->dtype, x->rank, x->size);
    if (x->why != NULL || x->type->quantized)
        return leave_tensor(t, x->name, tree, x->type->name, x->why);
    if (!dc_type_has_parts(&out.type))
        return leave_tensor(t, x->name, tree, x->type->name,
                            "it is complex, and has too many axes for that");
    const int64_t count = dc_type_count(&out.type);
    const dc_torch_form *form = &x->form;
    const bool dense = is_dense(x);
    out.at = count > 0 ? x->at + x->offset * x->type->size : x->at;
    out.bytes = count * x->type->size;
    if (count > 0 && (!dense || form->conj || form->neg || form->swap > 0 || form->packed > 0)) {
        out.index = t->form.n;
        out.whole = !dense || form->packed > 0;
        DC_PUSH(t->form, *form);
    }
    push_tensor(t, &out, tree);
    return DC_OK;
}

/* {"conj": True, "neg": True}: conjugates and negatives that are only noted in the tensor. */
static void read_signs(const dc_torch *t, tensor *x, node *table)
{
    for (uint32_t i = 0; table != NULL && i + 1 < table->item.n; i += 2) {
        node *key = at(t, table->item.at[i]), *value = at(t, table->item.at[i + 1]);
        const bool is = value->kind == DC_PICKLE_BOOL && value->b;
        x->form.conj |= is && is_text(key, "conj") && dc_dtype_is_complex(x->type->dtype);
        x->form.neg |= is && is_text(key, "neg");
    }
}

/* _rebuild_tensor, _v2, _v3: a storage, an offset, sizes, strides, and more. */
static dc_status read_rebuilt(dc_torch *t, const char *f, node *args, const char *name,
                              dc_tree *tree)
{
    tensor x = {.name = name};
    const bool third = strcmp(f, "torch._utils _rebuild_tensor_v3") == 0;
    node *first = item_of(t, args, 0, DC_PICKLE_PERSISTENT);
    node *offset = item_of(t, args, 1, DC_PICKLE_INT);
    node *dtype = third ? item_of(t, args, 6, DC_PICKLE_GLOBAL) : NULL;
    if (dtype != NULL && dc_torch_is_unread(dtype->text))
        return leave_tensor(t, name, tree, strchr(dtype->text, ' ') + 1, NULL);
    const dc_torch_dtype *as = dtype != NULL ? dc_torch_dtype_of(dtype->text) : NULL;
    if (first == NULL || offset == NULL || (third && as == NULL))
        return refuse_tensor(t, &x, "is no tensor");
    DC_TRY(read_storage(t, &x, first, as));
    x.offset = offset->i;
    DC_TRY(read_sizes(t, &x, list_of(t, args, 2), list_of(t, args, 3)));
    if (x.why == NULL)
        DC_TRY(check_extent(t, &x));
    read_signs(t, &x, item_of(t, args, third ? 7 : 6, DC_PICKLE_TABLE));
    return add_tensor(t, &x, tree);
}

static bool is_rebuild(const char *f)
{
    return strncmp(f, "torch._utils _rebuild_", 22) == 0 ||
           strcmp(f, "torch._tensor _rebuild_from_type_v2") == 0;
}

/* A call of one of these with these arguments. */
static dc_status read_tensor(dc_torch *t, const char *f, node *args, const char *name,
                             dc_tree *tree, int depth)
{
    const tensor x = {.name = name};
    node *first = args->item.n > 0 ? at(t, args->item.at[0]) : NULL;
    if (!is_rebuild(f) || first == NULL || depth > 4)
        return refuse_tensor(t, &x, "is no tensor");
    const dc_torch_unread *unread = dc_torch_find_unread(f);
    if (unread != NULL)
        return leave_tensor(t, name, tree, unread->format, unread->why);
    if (strncmp(f, "torch._utils _rebuild_tensor", 28) == 0)
        return read_rebuilt(t, f, args, name, tree);
    if (strcmp(f, "torch._tensor _rebuild_from_type_v2") == 0) {
        node *inner = item_of(t, args, 2, DC_PICKLE_LIST);
        if (first->kind != DC_PICKLE_GLOBAL || inner == NULL)
            return refuse_tensor(t, &x, "is no tensor");
        return read_tensor(t, first->text, inner, name, tree, depth + 1);
    }
    if (first->kind != DC_PICKLE_CALL)
        return refuse_tensor(t, &x, "is a parameter of no tensor");
    DC_TRY(read_tensor(t, at(t, first->item.at[0])->text, arguments_of(t, first), name, tree,
                       depth + 1));
    node *dtype = item_of(t, args, 1, DC_PICKLE_GLOBAL); /* of one of another device */
    dc_file_tensor *made = &t->tensor.at[t->tensor.n - 1];
    if (dtype != NULL && strcmp(strchr(dtype->text, ' ') + 1, made->format) != 0) {
        made->unread = true;
        made->why = "it is to be converted to another type";
    }
    return DC_OK;
}

/* A storage by itself: its elements in a row. */
static dc_status read_row(dc_torch *t, node *persistent, const char *name, dc_tree *tree)
{
    tensor x = {.name = name, .rank = 1};
    DC_TRY(read_storage(t, &x, persistent, NULL));
    x.size[0] = x.elements;
    x.form.stride[0] = x.elements > 1;
    DC_TRY(check_extent(t, &x));
    return add_tensor(t, &x, tree);
}

/* ---- the tree --------------------------------------------------------------------------------- */

enum { DEEPEST = 64, LONGEST = 1 << 12 /* of a name, in bytes */ };

typedef struct walking {
    dc_torch *t;
    dc_text path;           /* "model.0.weight" */
    uint64_t visits;        /* of nodes; those that are shared come several times */
    uint64_t notes;         /* those that were too many are counted */
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
    uint64_t bits;
    char number[DC_NUMBER_TEXT];
    if (key->kind == DC_META_TEXT) {
        for (uint64_t i = 0; i < key->n; i++)
            if (key->text[i] != '\0')
                dc_text_put(&w->path, &key->text[i], 1);
            else
                dc_text_puts(&w->path, "\\0");
    } else if (key->kind == DC_META_F64) {
        memcpy(&bits, &key->f, sizeof bits);
        dc_text_puts(&w->path, dc_number_print(DC_F64, bits, number));
    } else if (key->kind == DC_META_BOOL) {
        dc_text_puts(&w->path, key->u != 0 ? "true" : "false");
    } else {
        dc_text_printf(&w->path, "%" PRId64, key->i);
    }
    return n;
}

static void leave(walking *w, size_t n)
{
    w->path.n = n;
    if (w->path.s != NULL)
        w->path.s[n] = '\0';
}

/* A sentence about what is at the path: it begins with its name. */
static void note(walking *w, const char *fmt, ...) DC_PRINTF(2, 3);

static void note(walking *w, const char *fmt, ...)
{
    enum { MOST = 1000 };
    char text[300];
    va_list ap;
    if (w->notes++ >= MOST)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    DC_PUSH(w->t->note, dc_arena_printf(&w->t->arena, "'%s' %s",
                                        dc_show_name(w->path.s != NULL ? w->path.s : "").s, text));
}

static dc_status walk_item(walking *w, dc_pickle_ref r, const dc_meta *key, int depth,
                           dc_tree **item)
{
    const size_t n = enter(w, key);
    dc_status status = DC_OK;
    *item = NULL;
    if (w->path.n > LONGEST)
        note(w, "is left out: its name has more than %d bytes", LONGEST);
    else
        status = walk(w, r, depth + 1, item);
    leave(w, n);
    return status;
}

/* Bytes that a text of code points up to 255 stands for, as Python 3 writes them for Python 2. */
static bool read_bytes_of(dc_torch *t, node *args, dc_meta *out)
{
    node *inner = item_of(t, args, 0, DC_PICKLE_CALL); /* a bytearray of bytes */
    if (inner != NULL && is_call(t, inner, "_codecs encode"))
        args = arguments_of(t, inner);
    node *text = item_of(t, args, 0, DC_PICKLE_TEXT), *codec = item_of(t, args, 1, DC_PICKLE_TEXT);
    *out = (dc_meta){.kind = DC_META_TEXT, .text = "", .n = 0};
    if (text == NULL)
        return args->item.n == 0;
    out->text = text->text;
    out->n = text->n;
    if (codec == NULL || (!is_text(codec, "latin1") && !is_text(codec, "latin-1")))
        return codec == NULL || is_text(codec, "utf-8") || is_text(codec, "utf8");
    char *bytes = dc_arena_alloc(&t->arena, (size_t)text->n + 1);
    out->text = bytes;
    out->n = 0;
    for (size_t i = 0, n; i < text->n; i += n) {
        uint32_t code;
        n = dc_utf8_character(text->text + i, (size_t)text->n - i, &code);
        if (n == 0 || code > 0xff)
            return false;
        bytes[out->n++] = (char)code;
    }
    return true;
}

/* "torch.float32" as Python prints it. */
static dc_meta name_of_global(dc_torch *t, const char *global)
{
    char *text = dc_arena_strdup(&t->arena, global);
    *strchr(text, ' ') = '.';
    return (dc_meta){.kind = DC_META_TEXT, .text = text, .n = strlen(text)};
}

/* "cuda:1" */
static dc_meta name_of_device(dc_torch *t, node *args)
{
    node *name = item_of(t, args, 0, DC_PICKLE_TEXT), *index = item_of(t, args, 1, DC_PICKLE_INT);
    const char *text =
        dc_arena_printf(&t->arena, "%.*s", (int)(name->n < 100 ? name->n : 100), name->text);
    if (index != NULL)
        text = dc_arena_printf(&t->arena, "%s:%" PRId64, text, index->i);
    return (dc_meta){.kind = DC_META_TEXT, .text = text, .n = strlen(text)};
}

/* A number, a truth value or a text, as values and keys are; false: it is something else. */
static bool plain_value(walking *w, node *n, dc_meta *out)
{
    dc_torch *t = w->t;
    switch (n->kind) {
    case DC_PICKLE_BOOL:
        *out = (dc_meta){.kind = DC_META_BOOL, .u = n->b};
        return true;
    case DC_PICKLE_INT:
        *out = (dc_meta){.kind = DC_META_I64, .i = n->i};
        return true;
    case DC_PICKLE_BIG:
        note(w, "is a number of more than 64 bits, and is rounded");
        *out = (dc_meta){.kind = DC_META_F64, .f = n->f};
        return true;
    case DC_PICKLE_REAL:
        *out = (dc_meta){.kind = DC_META_F64, .f = n->f};
        return true;
    case DC_PICKLE_TEXT:
        *out = (dc_meta){.kind = DC_META_TEXT, .text = n->text, .n = n->n};
        return true;
    case DC_PICKLE_GLOBAL:
        *out = name_of_global(t, n->text);
        return true;
    case DC_PICKLE_CALL:
        if (is_call(t, n, "_codecs encode") || is_call(t, n, "builtins bytearray"))
            return read_bytes_of(t, arguments_of(t, n), out);
        if (is_call(t, n, "torch.serialization _get_layout"))
            return read_bytes_of(t, arguments_of(t, n), out);
        if (is_call(t, n, "torch device") && item_of(t, arguments_of(t, n), 0, DC_PICKLE_TEXT)) {
            *out = name_of_device(t, arguments_of(t, n));
            return true;
        }
        return false;
    case DC_PICKLE_NONE:
    case DC_PICKLE_LIST:
    case DC_PICKLE_TABLE:
    case DC_PICKLE_PERSISTENT:
        return false;
    }
    DC_BUG("a node of kind %d", (int)n->kind);
}

/* A key that Lua's tables have, too. */
static bool read_key(walking *w, node *key, dc_meta *out)
{
    const bool ok = plain_value(w, key, out) && !(out->kind == DC_META_F64 && isnan(out->f));
    if (!ok)
        note(w, "has a key that is no text, number or truth value: what it stands for is left out");
    return ok;
}

/* Items of a table, or of a list, which are counted from 1. */
static dc_status walk_items(walking *w, dc_pickle_ref r, int depth, dc_tree *out)
{
    dc_torch *t = w->t;
    const bool table = at(t, r)->kind == DC_PICKLE_TABLE;
    const uint32_t n = at(t, r)->item.n / (table ? 2 : 1);
    out->kind = table ? DC_TREE_TABLE : DC_TREE_LIST;
    out->item = DC_NEW_ARRAY(&t->arena, dc_tree *, n + 1);
    out->key = DC_NEW_ARRAY(&t->arena, dc_meta, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        dc_meta key = {.kind = DC_META_I64, .i = (int64_t)i + 1};
        const dc_pickle_ref *item = at(t, r)->item.at;
        if (table && !read_key(w, at(t, item[2 * i]), &key))
            continue;
        DC_TRY(walk_item(w, item[table ? 2 * i + 1 : i], &key, depth, &out->item[out->n]));
        out->key[out->n] = key;
        out->n += out->item[out->n] != NULL;
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

static dc_status walk_call(walking *w, node *call, int depth, dc_tree *out)
{
    dc_torch *t = w->t;
    node *args = arguments_of(t, call);
    const char *f = at(t, call->item.at[0])->text;
    if (strcmp(f, "torch Size") == 0 || strcmp(f, "builtins set") == 0) {
        if (args->item.n > 0 && item_of(t, args, 0, DC_PICKLE_LIST) != NULL)
            return walk_items(w, args->item.at[0], depth, out);
        out->kind = args->item.n == 0 ? DC_TREE_LIST : DC_TREE_NONE;
        return DC_OK;
    }
    if (is_rebuild(f)) {
        out->kind = DC_TREE_TENSOR;
        out->name = dc_arena_strdup(&t->arena, w->path.s);
        return read_tensor(t, f, args, out->name, out, 0);
    }
    const dc_meta name = name_of_global(t, f);
    if (strcmp(f, "builtins complex") == 0)
        note(w, "is left out: a complex number");
    else
        note(w, "is left out: what %.100s makes", name.text);
    return DC_OK;
}

static dc_status fill(walking *w, dc_pickle_ref r, int depth, dc_tree *out)
{
    dc_torch *t = w->t;
    node *n = at(t, r);
    dc_meta v;
    if (n->kind == DC_PICKLE_LIST || n->kind == DC_PICKLE_TABLE)
        return walk_items(w, r, depth, out);
    if (plain_value(w, n, &v))
        return add_value(w, out, v);
    if (n->kind == DC_PICKLE_CALL)
        return walk_call(w, n, depth, out);
    if (n->kind == DC_PICKLE_PERSISTENT) {
        out->kind = DC_TREE_TENSOR;
        out->name = dc_arena_strdup(&t->arena, w->path.s);
        return read_row(t, n, out->name, out);
    }
    return DC_OK; /* None */
}

/* Shared nodes have one tree, and a name for each way that leads to their tensors. *out stays where there is none. */
static dc_status walk(walking *w, dc_pickle_ref r, int depth, dc_tree **out)
{
    dc_torch *t = w->t;
    dc_pickle_node *n = &t->pickle.node.at[r];
    if (++w->visits > 16 * (uint64_t)t->pickle.node.n + 1024)
        return REFUSE(t, "values are nested in more ways than there are values");
    if (w->visits % 1024 == 0)
        DC_TRY(dc_job_ended(t->job));
    if (depth > DEEPEST && (n->kind == DC_PICKLE_LIST || n->kind == DC_PICKLE_TABLE)) {
        note(w, "is left out: values are nested more than %d deep", DEEPEST);
        return DC_OK;
    }
    dc_tree *made = DC_NEW(&t->arena, dc_tree);
    DC_TRY(fill(w, r, depth, made));
    if (n->about == 0) {
        DC_PUSH(w->made, made);
        n->about = w->made.n;
    }
    *out = w->made.at[n->about - 1];
    return DC_OK;
}

/* ---- names ------------------------------------------------------------------------------------ */

/* One of a list that is sorted by names: where it stands in the other list, which holds the name. */
typedef struct named {
    const char *name;
    uint32_t i;
} named;

static int by_name(const void *x, const void *y)
{
    return strcmp(((const named *)x)->name, ((const named *)y)->name);
}

/* Of several with one name the second gets "#2" behind it, and so on: "a.b", "a.b#2". */
static dc_status number_names(dc_torch *t, named *list, uint32_t n)
{
    enum {
        ROUNDS = 8
    }; /* a new name may be another one's: dc_tensor_file_make refuses what is left */
    bool changed = true;
    for (int round = 0; round < ROUNDS && changed; round++) {
        changed = false;
        DC_TRY(dc_sort(t->job, list, n, sizeof *list, by_name));
        for (uint32_t i = 0, end; i < n; i = end) {
            const named first = list[i];
            for (end = i + 1; end < n && by_name(&first, &list[end]) == 0; end++) {
                list[end].name = dc_arena_printf(&t->arena, "%s#%u", first.name, end - i + 1);
                changed = true;
            }
        }
    }
    return DC_OK;
}

/* "a.b" of {"a.b": x} and of {"a": {"b": x}}: names are apart afterwards. */
static dc_status name_apart(dc_torch *t)
{
    const uint32_t most = t->tensor.n > t->entry.n ? t->tensor.n : t->entry.n;
    named *list = DC_NEW_ARRAY(&t->job->scratch, named, most + 1);
    for (uint32_t i = 0; i < t->tensor.n; i++)
        list[i] = (named){t->tensor.at[i].name, i};
    DC_TRY(number_names(t, list, t->tensor.n));
    for (uint32_t i = 0; i < t->tensor.n; i++)
        t->tree_of.at[list[i].i]->name = t->tensor.at[list[i].i].name = list[i].name;
    for (uint32_t i = 0; i < t->entry.n; i++)
        list[i] = (named){t->entry.at[i].key, i};
    DC_TRY(number_names(t, list, t->entry.n));
    for (uint32_t i = 0; i < t->entry.n; i++)
        t->entry.at[list[i].i].key = list[i].name;
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
        *tree->key = key;
        DC_TRY(walk_item(w, root, &key, 0, tree->item));
    }
    if (w->notes > t->note.n) {
        const uint64_t more = w->notes - t->note.n;
        DC_PUSH(t->note, dc_arena_printf(&t->arena, "and %" PRIu64 " more", more));
    }
    DC_TRY(name_apart(t));
    t->tree = tree;
    dc_job_keep(t->job, w);
    free_walking(w);
    return DC_OK;
}
