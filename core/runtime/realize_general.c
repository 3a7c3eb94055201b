/*
 * Programs of lazy expressions for one size that differs from time to time: means of windows that grow, batches of any
 * length. A form is an expression without its sizes. Where the interpreter has computed a form with several sizes for
 * as long as a compilation takes, two of these expressions are laid beside each other: each size that differs is taken
 * for k n + c, with n the one that differs least. The function with these sizes, n known at run time
 * (core/transform/bounded.h), is compiled once, up to a bound.
 *
 * Whether it is the function of an expression is not guessed: that is described as words, and the program is taken
 * where all of them are what k n + c gives.
 */
#include "core/runtime/block.h"
#include "core/runtime/realize_impl.h"
#include "core/transform/bounded.h"

#include <string.h>

/* ---- forms ------------------------------------------------------------------------------------- */

enum {
    SIZES = 3,
    TRIES = 4,  /* programs for one form, as sizes grow beyond their bounds */
    MOST = 1000 /* in a context, whose table of sizes has room for others, too (DC_EXTENT_MOST) */
};

/* An expression without its sizes, and what the interpreter has computed of it. */
typedef struct dc_lazy_form {
    uint64_t hash;
    uint64_t *word; /* of the last expression; NULL: the place is free */
    uint32_t nword, sizes, tries;
    double ns;
} dc_lazy_form;

static uint64_t hash_form(const dc_realize_task *t)
{
    uint64_t h = t->word.n;
    for (uint32_t i = 0; i < t->word.n; i++)
        h = dc_hash_mix(h, t->size.at[i] ? UINT64_MAX : t->word.at[i]);
    return h;
}

static bool same_form(const dc_realize_task *t, const uint64_t *word, uint32_t nword)
{
    bool same = word != NULL && nword == t->word.n;
    for (uint32_t i = 0; same && i < nword; i++)
        same = t->size.at[i] || word[i] == t->word.at[i];
    return same;
}

void dc_lazy_forms_free(dc_lazies *l)
{
    for (uint32_t i = 0; l->form != NULL && i < DC_LAZY_FORMS; i++)
        dc_xfree(l->form[i].word);
    dc_xfree(l->form);
    l->form = NULL;
}

static void keep_words(const dc_realize_task *t, dc_lazy_form *x)
{
    if (x->nword != t->word.n) {
        dc_xfree(x->word);
        x->word = NULL;
        x->nword = 0;
        x->word = dc_xalloc(t->word.n * sizeof *x->word);
        x->nword = t->word.n;
    }
    memcpy(x->word, t->word.at, t->word.n * sizeof *x->word);
}

/* The place of its form, which another one may have had. */
static dc_lazy_form *form_of(const dc_realize_task *t)
{
    dc_lazies *l = t->rt->lazy;
    const uint64_t hash = t->form;
    if (l->form == NULL)
        l->form = dc_xalloc(DC_LAZY_FORMS * sizeof *l->form);
    dc_lazy_form *x = &l->form[hash % DC_LAZY_FORMS];
    if (x->hash == hash && same_form(t, x->word, x->nword))
        return x;
    keep_words(t, x);
    x->hash = hash;
    x->sizes = 1;
    x->tries = 0;
    x->ns = 0;
    return x;
}

/* ---- programs ---------------------------------------------------------------------------------- */

struct dc_lazy_general {
    uint32_t n;            /* the word that is the size */
    int64_t lo, hi;        /* its bounds */
    int64_t *base, *slope; /* [nword]: what each word is */
    dc_extents *table;     /* of the context */
    dc_extent_list size;   /* those that the program is given */
    uint32_t nleaf, nresult;
    dc_type *type; /* of leaves, and of results behind them */
};

void dc_lazy_general_free(dc_lazy_general *g)
{
    if (g == NULL)
        return;
    dc_xfree(g->base);
    dc_xfree(g->slope);
    dc_xfree(g->type);
    DC_VEC_FREE(g->size);
    dc_xfree(g);
}

/* What a word says, as a number; false: no whole number. */
static bool number_of(uint8_t size, uint64_t word, int64_t *out)
{
    enum { EXACT = 1 << 24 }; /* in every element type that is read so */
    if (size < DC_LAZY_CONST) {
        *out = (int64_t)word;
        return true;
    }
    const double v = dc_value_of((dc_dtype)(size - DC_LAZY_CONST), word);
    if (!(v > -EXACT && v < EXACT) || v != (double)(int64_t)v)
        return false;
    *out = (int64_t)v;
    return true;
}

static uint64_t word_of(uint8_t size, int64_t number)
{
    return size < DC_LAZY_CONST ? (uint64_t)number
                                : dc_bits_of((dc_dtype)(size - DC_LAZY_CONST), (double)number);
}

static bool fits(const dc_realize_task *t, const dc_lazy_entry *e)
{
    const dc_lazy_general *g = e->general;
    if (g == NULL || e->nword != t->word.n)
        return false;
    const int64_t n = (int64_t)t->word.at[g->n];
    bool same = n >= g->lo && n <= g->hi && e->hash == t->form;
    for (uint32_t i = 0; same && i < e->nword; i++)
        same = t->word.at[i] == (g->slope[i] == 0
                                     ? (uint64_t)g->base[i]
                                     : word_of(t->size.at[i], g->base[i] + g->slope[i] * n));
    return same;
}

/* The dim that differs least is n; -1: none does, or what is no size differs. */
static int64_t find_variable(const dc_realize_task *t, const uint64_t *other)
{
    uint64_t least = UINT64_MAX;
    int64_t at = -1;
    for (uint32_t i = 0; i < t->word.n; i++) {
        const uint64_t a = t->word.at[i], b = other[i], d = a > b ? a - b : b - a;
        if (d != 0 && !t->size.at[i])
            return -1;
        if (d != 0 && d < least && t->size.at[i] < DC_LAZY_CONST) {
            least = d;
            at = i;
        }
    }
    return at;
}

/* Base and slope of each word; false where one is no multiple, and where bounds leave nothing. */
static bool find_slopes(const dc_realize_task *t, const uint64_t *other, dc_lazy_general *g)
{
    const int64_t n = (int64_t)t->word.at[g->n], m = (int64_t)other[g->n];
    g->lo = dc_min_i64(n, m) / 2;
    g->hi = 2 * dc_max_i64(n, m);
    for (uint32_t i = 0; i < t->word.n; i++) {
        int64_t a, b;
        g->slope[i] = 0;
        g->base[i] = (int64_t)t->word.at[i];
        if (t->word.at[i] == other[i])
            continue;
        if (!number_of(t->size.at[i], t->word.at[i], &a) ||
            !number_of(t->size.at[i], other[i], &b) || (a - b) % (n - m) != 0)
            return false;
        const int64_t k = (a - b) / (n - m), least = t->size.at[i] != DC_LAZY_BEGIN;
        g->slope[i] = k;
        g->base[i] = a - k * n;
        if (k > 0)
            g->lo = dc_max_i64(g->lo, (least - g->base[i] + k - 1) / k);
        else if (k < 0)
            g->hi = dc_min_i64(g->hi, (g->base[i] - least) / -k);
    }
    return g->lo <= dc_min_i64(n, m) && g->hi >= dc_max_i64(n, m);
}

/* The words with sizes that are known at run time; false where there is no form for one. */
static bool write_codes(const dc_lazy_general *g, uint32_t nword, int64_t var, int64_t *out)
{
    for (uint32_t i = 0; i < nword && var != DC_EXTENT_NONE; i++) {
        out[i] = g->base[i];
        if (g->slope[i] == 0)
            continue;
        const int64_t product = dc_extent_mul(g->table, var, g->slope[i]);
        out[i] = product != DC_EXTENT_NONE ? dc_extent_add(g->table, product, g->base[i])
                                           : DC_EXTENT_NONE;
        if (out[i] == DC_EXTENT_NONE)
            return false;
    }
    return var != DC_EXTENT_NONE;
}

/* A constant that is a size: so many ones are added up. */
static dc_ref count(dc_func *f, int64_t size, const dc_type *type)
{
    const dc_type ones = dc_type_make((dc_dtype)type->dtype, 1, &size);
    const dc_ref sum = dc_graph_reduce(f, DC_OP_SUM, dc_graph_const(f, &ones, 1), 1);
    return dc_graph_unreduce(f, sum, (1u << type->rank) - 1, type->rank, type->dim);
}

/* May sizes of it be known at run time? Others that have none are as they are. */
static bool takes_sizes(dc_op op)
{
    switch ((dc_op_class)dc_op_row_of(op)->cls) {
    case DC_CLASS_EW:
    case DC_CLASS_RED:
    case DC_CLASS_MOV:
    case DC_CLASS_SRC:
    case DC_CLASS_IDX:
        return true;
    case DC_CLASS_SAME:
        return op != DC_OP_RESHARD;
    case DC_CLASS_CON: /* windows move along fixed sizes alone */
        return op == DC_OP_DOT;
    case DC_CLASS_FFT:
    case DC_CLASS_HST:
    case DC_CLASS_PART:
    case DC_CLASS_COM:
    case DC_CLASS_CTL:
        return false;
    }
    return false;
}

/*
 * `want` is made of the words of n, `attr` are those of its attributes; is_size: a constant is a size, whose bits tell nothing.
 * TYPE or VALUE where there is none.
 */
static dc_status write_node(const dc_realize_task *t, dc_func *f, const dc_lazy *n, dc_ref *ref,
                            const dc_type *want, const int64_t *attr, bool is_size)
{
    dc_ref *in = DC_NEW_ARRAY(&t->j->scratch, dc_ref, n->nin);
    bool sized = dc_build_is_bounded(want, UINT32_MAX);
    for (uint32_t k = 0; k < n->nin; k++) {
        in[k] = ref[dc_lazy_walk_real(&t->walk, n->in[k])->number];
        const dc_type of = dc_node_type(f, in[k]);
        sized = sized || dc_build_is_bounded(&of, UINT32_MAX);
    }
    if (n->op == DC_OP_CONST && is_size) {
        ref[n->number] = count(f, attr[0], want);
        return DC_OK;
    }
    if (sized && !takes_sizes((dc_op)n->op))
        return DC_E_VALUE;
    DC_TRY(dc_make(t->j, f, (dc_op)n->op, in, (int)n->nin, attr, (int)n->nattr, want,
                   &ref[n->number]));
    const dc_type is = dc_node_type(f, ref[n->number]);
    return dc_type_same(&is, want) ? DC_OK : DC_E_VALUE;
}

/* The function of the expression with these words for its sizes and attributes. */
static dc_status write_func(const dc_realize_task *t, dc_module *m, const dc_lazy_general *g,
                            const int64_t *word, dc_func **out)
{
    const int64_t *first = word;
    dc_func *f = *out = dc_func_new(m, "lazy");
    dc_ref *ref = DC_NEW_ARRAY(&t->j->scratch, dc_ref, t->walk.order.n + 1);
    for (uint32_t i = 0; i < t->walk.order.n; i++) {
        const dc_lazy *n = t->walk.order.at[i];
        const dc_type bare = dc_type_make((dc_dtype)n->type.dtype, n->type.rank, n->type.dim);
        dc_type type = dc_type_parts(&bare);
        word++;
        for (int k = 0; k < type.rank; k++)
            type.dim[k] = *word++;
        if (dc_lazy_walk_leaf(&t->walk, n)) {
            ref[n->number] = dc_graph_param(f, &type, NULL);
            continue;
        }
        word += n->nin;
        dc_func_from(f, n->where, n->path);
        DC_TRY(write_node(t, f, n, ref, &type, word, g->slope[word - first] != 0));
        word += n->nattr;
    }
    dc_func_from(f, NULL, NULL);
    for (uint32_t i = 0; i < t->result.n; i++)
        DC_PUSH(f->result, ref[t->result.at[i]->number]);
    return DC_OK;
}

static void keep_types(dc_lazy_general *g, const dc_func *f)
{
    g->nleaf = f->param.n;
    g->nresult = f->result.n;
    g->type = dc_xalloc((g->nleaf + g->nresult + 1) * sizeof *g->type);
    for (uint32_t i = 0; i < g->nleaf; i++)
        g->type[i] = dc_node_type(f, f->param.at[i]);
    for (uint32_t i = 0; i < g->nresult; i++)
        g->type[g->nleaf + i] = dc_node_type(f, f->result.at[i]);
}

static dc_status build(const dc_realize_task *t, const uint64_t *other, dc_lazy_entry *e)
{
    dc_job *j = t->j;
    dc_lazy_general *g = e->general;
    const int64_t at = find_variable(t, other);
    int64_t *word = DC_NEW_ARRAY(&j->scratch, int64_t, t->word.n);
    g->n = (uint32_t)at;
    g->table = t->rt->extents;
    g->base = dc_xalloc(t->word.n * sizeof *g->base);
    g->slope = dc_xalloc(t->word.n * sizeof *g->slope);
    if (at < 0 || !find_slopes(t, other, g) ||
        !write_codes(g, t->word.n, dc_extent_var(g->table, "n", g->lo, g->hi), word))
        return DC_E_VALUE;
    dc_module *m = dc_module_new();
    dc_module_defer(j, m);
    m->extents = g->table;
    dc_func *lowered, *f;
    dc_status status = write_func(t, m, g, word, &f);
    if (status == DC_OK) {
        keep_types(g, f);
        status = dc_bounded_lower(j, f, g->nleaf, &g->size, &lowered);
    }
    if (status == DC_OK)
        status = e->exec->build(t->rt, j, lowered, NULL, g->size.n, &e->program);
    dc_job_keep(j, m);
    dc_module_free(m);
    return status;
}

dc_status dc_lazy_general_make(const dc_realize_task *t, dc_lazy_entry *e, bool *made)
{
    dc_lazy_form *x = form_of(t);
    *made = false;
    x->sizes = 1;
    x->ns = 0;
    x->tries++;
    t->rt->lazy->general++;
    e->general = dc_xalloc(sizeof *e->general);
    e->exec = t->rt->lazy_exec;
    e->hash = x->hash;
    const dc_status status = build(t, x->word, e);
    if (status == DC_E_TYPE || status == DC_E_VALUE || status == DC_E_BUILD ||
        status ==
            DC_E_NOMEM) { /* an operation needs a fixed size; the bounds need too much memory */
        dc_err_clear(&t->j->err);
        x->tries = TRIES;
        return DC_OK;
    }
    *made = status == DC_OK;
    keep_words(t, x);
    return status;
}

/* ---- choosing ---------------------------------------------------------------------------------- */

dc_lazy_entry *dc_lazy_general_find(const dc_realize_task *t)
{
    const dc_lazies *l = t->rt->lazy;
    for (uint32_t i = 0; i < l->nentry; i++)
        if (fits(t, l->entry[i]))
            return l->entry[i];
    return NULL;
}

bool dc_realize_generalises(dc_realize_task *t, double rent, double price)
{
    dc_lazies *l = t->rt->lazy;
    t->form = hash_form(t);
    if (dc_lazy_general_find(t) != NULL)
        return true;
    dc_lazy_form *x = form_of(t);
    if (x->tries >= TRIES || l->general >= MOST ||
        memcmp(x->word, t->word.at, t->word.n * sizeof *x->word) == 0)
        return false;
    x->sizes++;
    x->ns += rent < price ? rent : price;
    const bool soon = strcmp(t->rt->opt.lazy, "sizes") == 0;
    if (x->sizes >= SIZES && (x->ns > 2 * price || soon) && find_variable(t, x->word) >= 0) {
        l->compiles = true;
        return true;
    }
    keep_words(t, x);
    return false;
}

/* ---- running ----------------------------------------------------------------------------------- */

static int64_t value_of(void *ctx, int64_t var)
{
    DC_UNUSED(var); /* there is one */
    return *(const int64_t *)ctx;
}

/* The leaf in memory of its bound. */
static dc_status pad(const dc_realize_task *t, const dc_type *type, const dc_tensor **leaf,
                     dc_tensor **made)
{
    dc_job *j = t->j;
    const dc_type bound = dc_type_bound(type), actual = dc_type_parts(&(*leaf)->type);
    const size_t room = (*leaf)->store->bytes - (*leaf)->offset;
    dc_tensor *to;
    if (dc_block_is_prefix(type) && room >= dc_type_bytes(&bound))
        return DC_OK; /* what lies behind it is not read, or does not matter */
    DC_TRY(dc_tensor_new(t->rt, j, &bound, &to));
    dc_tensor_defer(j, to);
    char *host =
        dc_arena_alloc(&j->scratch, dc_block_host_bytes(t->rt, &actual, &bound, &actual) + 1);
    DC_TRY(dc_block_copy(t->rt, j, host, &actual, (dc_block){dc_tensor_mem(to), &bound},
                         (dc_block){dc_tensor_mem(*leaf), &actual}));
    *leaf = *made = to;
    return DC_OK;
}

/* Does a result that is held keep much more memory than it shows? */
static bool wastes_memory(const dc_type *want, const dc_type *bound)
{
    enum { PAGES = 1 << 14 };
    const size_t room = dc_type_bytes(bound);
    return room > PAGES && dc_type_bytes(want) < room / 2;
}

/* Results of the actual sizes, shown in memory of the bounds, or copied where that has gaps or is much more. */
static dc_status trim(const dc_realize_task *t, const dc_lazy_general *g, dc_tensor **made)
{
    dc_job *j = t->j;
    for (uint32_t i = 0; i < g->nresult; i++) {
        const dc_type *type = &g->type[g->nleaf + i];
        const dc_type bound = dc_type_bound(type);
        const dc_type want = dc_type_parts(&t->result.at[i]->type);
        dc_tensor *to;
        if (!dc_build_is_bounded(type, UINT32_MAX) ||
            (dc_block_is_prefix(type) && !wastes_memory(&want, &bound))) {
            made[i]->type = want;
            continue;
        }
        DC_TRY(dc_tensor_new(t->rt, j, &want, &to));
        dc_tensor_defer(j, to);
        char *host =
            dc_arena_alloc(&j->scratch, dc_block_host_bytes(t->rt, &want, &want, &bound) + 1);
        DC_TRY(dc_block_copy(t->rt, j, host, &want, (dc_block){dc_tensor_mem(to), &want},
                             (dc_block){dc_tensor_mem(made[i]), &bound}));
        dc_job_keep(j, to);
        dc_job_keep(j, made[i]);
        dc_tensor_release(made[i]);
        made[i] = to;
        dc_tensor_defer(j, to);
    }
    return DC_OK;
}

dc_status dc_lazy_general_run(const dc_realize_task *t, const dc_lazy_entry *e, dc_tensor **made)
{
    dc_job *j = t->j;
    const dc_lazy_general *g = e->general;
    int64_t n = (int64_t)t->word.at[g->n];
    dc_lazy_arg *arg = DC_NEW_ARRAY(&j->scratch, dc_lazy_arg, g->nleaf + g->size.n);
    dc_tensor **padded = DC_NEW_ARRAY(&j->scratch, dc_tensor *, g->nleaf);
    for (uint32_t i = 0; i < g->nleaf; i++) {
        arg[i] = (dc_lazy_arg){t->given[i], t->walk.leaf.at[i]->bits};
        if (dc_build_is_bounded(&g->type[i], UINT32_MAX))
            DC_TRY(pad(t, &g->type[i], &arg[i].tensor, &padded[i]));
    }
    for (uint32_t i = 0; i < g->size.n; i++)
        arg[g->nleaf + i].bits = (uint32_t)dc_extent_eval(g->table, g->size.at[i], value_of, &n);
    DC_TRY(e->exec->run(e->program, j, arg, made));
    for (uint32_t i = 0; i < g->nresult; i++)
        dc_tensor_defer(j, made[i]);
    for (uint32_t i = 0; i < g->nleaf; i++)
        if (padded[i] != NULL) {
            dc_job_keep(j, padded[i]);
            dc_tensor_release(padded[i]);
        }
    DC_TRY(trim(t, g, made));
    for (uint32_t i = 0; i < g->nresult; i++)
        dc_job_keep(j, made[i]);
    return DC_OK;
}
