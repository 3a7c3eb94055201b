/*
 * Verifier of the flat form: what stands in the comments of jit/flat/flat.h and in the notes of
 * jit/flat/kops.def. Takes anything that jit/flat/flat_parse.c gives out; what it lets pass can be rendered and
 * interpreted without further checks of structure and types.
 */
#include "jit/flat/flat_print.h"

#include <inttypes.h>
#include <stdio.h>

enum { MAX_LANES = 1024, MAX_THREADS = 4096, SCRATCH_ALIGN = 64, MAX_GROUPS = 64 };
enum { MAX_LEADING = 1 << 18, MAX_GROUPS_WGMMA = 7 };

#define MAX_BYTES ((int64_t)1 << 48) /* of a buffer */

typedef struct check {
    const dc_flat *f;
    uint32_t *scope_of; /* by value: 1 + the open scope it was computed in; 0 not computed yet */
    uint32_t *scope;    /* ids of the open scopes */
    uint32_t depth, next;
    bool *closed;     /* by scope id */
    bool *varies;     /* by value: may differ between the threads of a group */
    bool *divides;    /* by depth: not all threads of the group need come into the scope */
    uint32_t divided; /* open scopes that do */
    uint32_t *table;  /* by depth: of a scope ROWS, 1 + its table */
    bool *chosen;     /* by table: is such a scope open? */
    bool *taken;      /* by parameter: a buffer is it */
} check;

/* Kernel and buffers ------------------------------------------------------------------------ */

static const char *check_scratch(const dc_flat *f, const dc_buffer *b)
{
    const int64_t bytes = b->count * (int64_t)dc_dtype_size((dc_dtype)b->dtype);
    if (b->at % SCRATCH_ALIGN != 0)
        return "a buffer in scratch memory is not aligned";
    if (b->at > f->scratch || (uint64_t)bytes > f->scratch - b->at)
        return "a buffer lies outside the scratch memory";
    return NULL;
}

static bool is_size(const dc_buffer *b, int64_t count)
{
    int64_t bytes;
    return count >= 0 && dc_mul_ok(count, (int64_t)dc_dtype_size((dc_dtype)b->dtype), &bytes) &&
           bytes <= MAX_BYTES;
}

/* In each row. */
static const char *check_param(const check *c, const dc_buffer *b)
{
    const dc_flat *f = c->f;
    const dc_ftable *t =
        b->table != 0 && b->table <= f->table.n ? &f->table.at[b->table - 1] : NULL;
    if (t == NULL && (b->table != 0 || b->step != 0 || b->column != 0))
        return "a buffer of no table";
    if (t != NULL && b->column > t->columns)
        return "a size in no column";
    for (uint32_t r = 0; r < dc_flat_rows(f, b); r++) {
        const uint64_t param = b->param + (uint64_t)b->step * r;
        if (param >= f->nparam)
            return "a parameter has no number";
        if (c->taken[param])
            return "two buffers are the same parameter";
        c->taken[param] = true;
        if (!is_size(b, dc_flat_count(f, b, r)) || dc_flat_count(f, b, r) > b->count)
            return "a buffer has no size";
    }
    return NULL;
}

static const char *check_buffer(const check *c, uint32_t n)
{
    const dc_flat *f = c->f;
    const dc_buffer *b = &f->buf.at[n];
    if (b->dtype >= DC_DTYPE__COUNT || b->mode > DC_MODE_INOUT)
        return "a buffer has no type";
    if (!is_size(b, b->count))
        return "a buffer has no size";
    if (b->scope != DC_SCOPE_PARAM && (b->table != 0 || b->step != 0 || b->column != 0))
        return "a buffer of a table is no parameter";
    if (b->nontemporal && (b->scope != DC_SCOPE_PARAM || b->mode != DC_MODE_OUT))
        return "a buffer that is stored past the caches is no output";
    if (b->prefetch > 2)
        return "a buffer is prefetched to no cache";
    if (b->prefetch != 0 && (b->scope != DC_SCOPE_PARAM || b->mode != DC_MODE_IN))
        return "a buffer that is prefetched is no input";
    switch ((dc_scope)b->scope) {
    case DC_SCOPE_PARAM:
        return check_param(c, b);
    case DC_SCOPE_LOCAL:
        return NULL;
    case DC_SCOPE_GROUP:
        return f->simt ? NULL : "workers have no group to share a buffer";
    case DC_SCOPE_SCRATCH:
        return f->simt ? "threads of a group have no scratch memory" : check_scratch(f, b);
    case DC_SCOPE_THREAD:
        break;
    }
    return "a buffer of a scope that the flat form has not";
}

static const char *check_heading(const check *c)
{
    const dc_flat *f = c->f;
    uint32_t params = 0;
    if (f->index_bits != 32 && f->index_bits != 64)
        return "the index type has neither 32 nor 64 bits";
    if (f->simt ? f->threads < 1 || f->threads > MAX_THREADS : f->threads > 1)
        return "no such number of threads";
    if (f->lanes < 0 || f->lanes > MAX_THREADS || f->positions < 0)
        return "no such number of lanes or positions";
    if (f->table.n > 0 && !f->simt)
        return "workers have no tables";
    for (uint32_t n = 0; n < f->table.n; n++)
        if (f->table.at[n].rows == 0)
            return "a table without rows";
    for (uint32_t n = 0; n < f->buf.n; n++) {
        const char *wrong = check_buffer(c, n);
        if (wrong != NULL)
            return wrong;
        params += dc_flat_rows(f, &f->buf.at[n]);
    }
    return params == f->nparam ? NULL : "a parameter has no buffer";
}

/* Operands and types ------------------------------------------------------------------------ */

static const char *check_operands(const check *c, const dc_finst *i)
{
    for (int n = 0; n < 3; n++) {
        const dc_fv o = i->in[n];
        if (o == 0)
            continue;
        if (o >= c->f->inst.n || c->scope_of[o] == 0)
            return "an operand is not computed before its user";
        if (c->closed[c->scope_of[o] - 1])
            return "an operand belongs to a scope that is closed";
        if (c->f->inst.at[o].lanes == 0 || dc_kop_stores((dc_kop)c->f->inst.at[o].op))
            return "an operand has no value";
        if (c->f->inst.at[o].op == DC_K_LDMATRIX && i->op != DC_K_MMA)
            return "a matrix is an operand of mma alone";
        if ((c->f->inst.at[o].op == DC_K_MATRIX) != (i->op == DC_K_WGMMA && n > 0))
            return "matrices, and they alone, are operands of wgmma";
    }
    return NULL;
}

static bool like(const dc_finst *a, const dc_finst *b)
{
    return a->type == b->type && a->lanes == b->lanes;
}

static bool is_index(const dc_finst *a, int lanes)
{
    return (a->type == DC_INDEX || (lanes > 1 && a->type == DC_U32)) && a->lanes == lanes;
}

static const char *check_leaf(const check *c, const dc_finst *i)
{
    if (i->op == DC_K_LANES && (i->type == DC_BOOL || dc_ftype_is_float(i->type)))
        return "lanes of what is no integer";
    if (i->op != DC_K_ARG)
        return NULL;
    if (i->type != DC_INDEX || i->lanes != 1 || i->imm > DC_KARG_THREAD)
        return "no such argument";
    if ((i->imm >= DC_KARG_GROUP) != c->f->simt)
        return c->f->simt ? "groups have no begin and end" : "workers have no group and thread";
    return NULL;
}

/* Rows of 16 bytes in memory that the group shares. */
/* How many matrices of 8 rows of 16 bytes a value has 4 bytes in each lane of; 0: none. */
static int matrices_of(const dc_finst *i)
{
    if (!dc_ftype_is_half(i->type) && i->type != DC_F32 && i->type != DC_I8)
        return 0;
    const size_t bytes = i->lanes * dc_dtype_size((dc_dtype)i->type);
    return bytes == 4 || bytes == 8 || bytes == 16 ? (int)bytes / 4 : 0;
}

static const char *check_ldmatrix(const check *c, const dc_finst *i)
{
    const dc_buffer *b = i->buf < c->f->buf.n ? &c->f->buf.at[i->buf] : NULL;
    if (b == NULL || i->type != b->dtype)
        return "no matrix of that type";
    if (b->scope != DC_SCOPE_GROUP || c->f->lanes != 32 || c->f->threads % 32 != 0)
        return "a matrix that no 32 lanes share";
    if (matrices_of(i) == 0)
        return "one, two or four matrices are loaded";
    if (i->imm != 0 && i->imm != (i->type == DC_F32 ? 2 : dc_ftype_is_half(i->type) ? 1 : 0))
        return "elements of that type are not transposed or rounded";
    if (i->in[0] == 0 || !is_index(dc_finst_at(c->f, i->in[0]), 1) || i->in[1] != 0 ||
        i->in[2] != 0)
        return "the index is none";
    return i->align == 16 ? NULL : "a row of a matrix has 16 bytes";
}

static const char *check_mma(const check *c, const dc_finst *i, const dc_finst *const *in)
{
    if (c->f->lanes != 32 || c->f->threads % 32 != 0)
        return "there are no 32 lanes";
    if (in[0]->op != DC_K_LDMATRIX || in[1]->op != DC_K_LDMATRIX || in[0]->type != in[1]->type ||
        matrices_of(in[0]) != 4 || matrices_of(in[1]) != 2)
        return "the operands are no matrices";
    if (in[0]->type == DC_F32 && (in[0]->imm != 2 || in[1]->imm != 2))
        return "factors of f32 are rounded to TF32";
    return i->type == (in[0]->type == DC_I8 ? DC_I32 : DC_F32) && i->lanes == 4 && like(i, in[2])
               ? NULL
               : "the sum is no matrix";
}

/* Behind rows of 128 bytes, 8 of them, that the group shares. */
static const char *check_matrix(const check *c, const dc_finst *i)
{
    const dc_buffer *b = i->buf < c->f->buf.n ? &c->f->buf.at[i->buf] : NULL;
    if (b == NULL || i->type != b->dtype || !dc_ftype_is_half(i->type) || i->lanes != 1)
        return "no matrix of that type";
    if (b->scope != DC_SCOPE_GROUP || !b->atoms)
        return "a matrix that is not in atoms";
    if (i->in[0] == 0 || !is_index(dc_finst_at(c->f, i->in[0]), 1) || i->in[1] != 0 ||
        i->in[2] != 0)
        return "the index is none";
    return i->imm % 1024 == 0 && i->imm < MAX_LEADING ? NULL : "parts of rows that are no atoms";
}

/* Sums of a thread in its own memory; of wgmma, of two matrices. */
static const char *check_wgmma(const check *c, const dc_finst *i)
{
    const dc_buffer *b = i->buf < c->f->buf.n ? &c->f->buf.at[i->buf] : NULL;
    if (c->f->lanes != 32 || c->f->threads % 128 != 0)
        return "there are no 128 threads";
    if (b == NULL || b->scope != DC_SCOPE_LOCAL || b->dtype != DC_F32 || i->type != DC_F32 ||
        (i->lanes != 32 && i->lanes != 64 && i->lanes != 128))
        return "the sums are none of a thread";
    if (i->in[0] == 0 || dc_finst_at(c->f, i->in[0])->op != DC_K_CONST)
        return "the index is no number";
    if (i->op == DC_K_WGMMA_WAIT)
        return i->in[1] == 0 && i->in[2] == 0 && i->imm <= MAX_GROUPS_WGMMA ? NULL
                                                                            : "no such groups";
    if (i->in[1] == 0 || i->in[2] == 0 ||
        dc_finst_at(c->f, i->in[1])->type != dc_finst_at(c->f, i->in[2])->type)
        return "the operands are no matrices";
    return i->imm <= (DC_WGMMA_BEGIN | DC_WGMMA_END) ? NULL : "no such place in a group";
}

static bool is_reachable(const check *c, const dc_finst *i)
{
    return i->buf >= c->f->buf.n || c->f->buf.at[i->buf].table == 0 ||
           c->chosen[c->f->buf.at[i->buf].table - 1];
}

static const char *check_mem(const check *c, const dc_finst *i)
{
    if (!is_reachable(c, i))
        return "no row of its table is chosen";
    if (i->op == DC_K_LDMATRIX)
        return check_ldmatrix(c, i);
    if (i->op == DC_K_MATRIX)
        return check_matrix(c, i);
    if (i->op == DC_K_WGMMA || i->op == DC_K_WGMMA_WAIT)
        return check_wgmma(c, i);
    const bool stores = dc_kop_stores((dc_kop)i->op);
    const bool spread = i->op == DC_K_GATHER || i->op == DC_K_SCATTER;
    const dc_fv mask = i->in[stores ? 2 : 1];
    if (i->buf >= c->f->buf.n || i->type != c->f->buf.at[i->buf].dtype)
        return "no buffer of that type";
    if (!stores && i->in[2] != 0 &&
        (i->op != DC_K_LOAD || i->lanes == 1 || i->imm != 1 || mask != 0 ||
         c->f->buf.at[i->buf].scope != DC_SCOPE_PARAM || c->f->buf.at[i->buf].mode != DC_MODE_IN ||
         c->f->buf.at[i->buf].prefetch == 0 || !is_index(dc_finst_at(c->f, i->in[2]), 1)))
        return "nothing to prefetch";
    if (spread && i->lanes == 1)
        return "one lane is not spread";
    if (i->in[0] == 0 || !is_index(dc_finst_at(c->f, i->in[0]), spread ? i->lanes : 1))
        return "the index is none";
    if (stores && (i->in[1] == 0 || !like(i, dc_finst_at(c->f, i->in[1]))))
        return "the value stored is of another type";
    if (stores && c->f->buf.at[i->buf].scope == DC_SCOPE_PARAM &&
        c->f->buf.at[i->buf].mode == DC_MODE_IN)
        return "an input is stored to";
    if (mask != 0 && (dc_finst_at(c->f, mask)->type != DC_BOOL ||
                      dc_finst_at(c->f, mask)->lanes != i->lanes || (stores && i->lanes == 1)))
        return "the mask is none";
    if (mask != 0 && !spread && i->imm != 1)
        return "a mask and a step";
    if (i->align == 0 || (i->align & (i->align - 1)) != 0)
        return "the alignment is no power of two";
    if (i->op == DC_K_STORE_ASYNC && dc_flat_async_bytes(c->f, i) == 0)
        return "no copy of 4, 8 or 16 bytes of an input to group memory";
    return NULL;
}

/* Its cells are numbers of the type. */
static const char *check_cell(const check *c, const dc_finst *i, const dc_finst *row)
{
    const uint32_t table = dc_cell_table(i), column = dc_cell_column(i);
    if (table >= c->f->table.n || column >= c->f->table.at[table].columns)
        return "no such cell";
    if (i->lanes != 1 || i->type == DC_BOOL || dc_ftype_is_short(i->type) || !is_index(row, 1))
        return "no cell of that type";
    const dc_ftable *t = &c->f->table.at[table];
    for (uint32_t r = 0; r < t->rows; r++) {
        const uint64_t bits = t->cell[r * t->columns + column];
        if (dc_flat_canonical(c->f, i->type, bits) != bits)
            return "a cell holds no number of the type";
    }
    return NULL;
}

static const char *check_conv(const check *c, const dc_finst *i, const dc_finst *a)
{
    if (i->op == DC_K_CELL)
        return check_cell(c, i, a);
    if (i->op == DC_K_SPLAT)
        return a->type == i->type && a->lanes == 1 && i->lanes > 1 ? NULL
                                                                   : "splat of what is no scalar";
    if (i->op == DC_K_ANY)
        return a->type == DC_BOOL && a->lanes > 1 && i->type == DC_BOOL && i->lanes == 1
                   ? NULL
                   : "any of what is not bool";
    if (a->lanes != i->lanes)
        return "lanes differ";
    if (i->op == DC_K_BITCAST && dc_flat_width(c->f, a->type) != dc_flat_width(c->f, i->type))
        return "widths differ";
    const bool half = (a->type == DC_F16 && i->type == DC_F32) ||
                      (a->type == DC_F32 && (i->type == DC_F16 || i->type == DC_BF16));
    if (i->op == DC_K_CONVERT && (dc_ftype_is_short(a->type) || dc_ftype_is_short(i->type)) &&
        !half)
        return "a conversion of short floats";
    return NULL;
}

static const char *check_same(const dc_kop_row *row, const dc_finst *i, const dc_finst *const *in)
{
    for (int n = 0; n < row->n; n++)
        if (!like(in[n], i))
            return "operand and result differ in type";
    if (dc_kop_zips((dc_kop)i->op))
        return i->lanes % 2 == 0 ? NULL : "halves of an odd number of lanes";
    if (i->op == DC_K_SCALE && (i->type != DC_F32 || i->lanes % 16 != 0))
        return "only vectors of 16 f32 are scaled";
    if (i->op == DC_K_DP4A && i->type != DC_U32)
        return "bytes of what is no u32";
    if (dc_ftype_is_short(i->type))
        return "arithmetic on short floats";
    return row->llvm[dc_kop_column(i->type)][0] != '\0' ? NULL : "an operand of a type without it";
}

static const char *check_loop(const dc_finst *const *in)
{
    if (!is_index(in[0], 1) || !is_index(in[1], 1))
        return "the bounds of a loop are no index";
    if (in[0]->op == DC_K_CONST && in[1]->op == DC_K_CONST &&
        (int64_t)in[0]->imm >= (int64_t)in[1]->imm)
        return "a loop that never runs"; /* renderers run those of constant bounds at least once */
    return NULL;
}

static const char *check_rows(const check *c, const dc_finst *i, const dc_finst *row)
{
    if (!is_index(row, 1) || i->imm >= c->f->table.n)
        return "no such table";
    if (c->varies[i->in[0]])
        return "not all threads of the group are in the same row";
    return c->chosen[i->imm] ? "a row of the table is chosen already" : NULL;
}

static const char *check_types(const check *c, const dc_finst *i)
{
    const dc_kop_row *row = dc_kop_row_of((dc_kop)i->op);
    const dc_finst *in[3] = {&c->f->inst.at[i->in[0]], &c->f->inst.at[i->in[1]],
                             &c->f->inst.at[i->in[2]]};
    if (row->form != DC_KFORM_MEM)
        for (int n = 0; n < 3; n++)
            if ((i->in[n] != 0) != (n < row->n))
                return "wrong number of operands";
    switch ((dc_kform)row->form) {
    case DC_KFORM_LEAF:
        return check_leaf(c, i);
    case DC_KFORM_SAME:
        return check_same(row, i, in);
    case DC_KFORM_TEST:
        return like(in[0], in[1]) && i->type == DC_BOOL && i->lanes == in[0]->lanes &&
                       !dc_ftype_is_short(in[0]->type)
                   ? NULL
                   : "operands differ in type";
    case DC_KFORM_PICK:
        return in[0]->type == DC_BOOL && in[0]->lanes == i->lanes && like(in[1], i) &&
                       like(in[2], i)
                   ? NULL
                   : "operands differ in type";
    case DC_KFORM_CONV:
        return check_conv(c, i, in[0]);
    case DC_KFORM_LANE:
        if (i->op == DC_K_MMA)
            return check_mma(c, i, in);
        if (!like(in[0], i) || i->lanes != 1)
            return "operand and result differ in type";
        return in[1]->type == DC_U32 && in[1]->lanes == 1 ? NULL : "the lane is no u32";
    case DC_KFORM_MEM:
        return check_mem(c, i);
    case DC_KFORM_CTRL:
        if (i->op == DC_K_LOOP)
            return check_loop(in);
        if (i->op == DC_K_IF && !(in[0]->type == DC_BOOL && in[0]->lanes == 1))
            return "the condition is no bool";
        if (i->op == DC_K_ROWS)
            return check_rows(c, i, in[0]);
        if (dc_kop_orders((dc_kop)i->op) && (!c->f->simt || i->imm > MAX_GROUPS))
            return "no groups of async stores";
        return NULL;
    }
    return "no such form";
}

/* Threads that have to come by together ------------------------------------------------------ */

static bool is_meeting(const dc_finst *i)
{
    return i->op == DC_K_BARRIER || dc_kop_meets((dc_kop)i->op);
}

static const char *check_meeting(const check *c, const dc_finst *i)
{
    const bool lanes = dc_kop_meets((dc_kop)i->op) || i->imm == DC_BARRIER_LANES;
    if (!c->f->simt)
        return "workers do not meet";
    if (i->op == DC_K_BARRIER && i->imm > DC_BARRIER_ASYNC)
        return "no such barrier";
    if (lanes && c->f->lanes < 1)
        return "the group has no lanes";
    if (c->divided > 0)
        return "not all threads of the group come by";
    return NULL;
}

/* Sizes that loops end by: integers that are parameters, which no thread changes. */
static bool reads_size(const check *c, const dc_finst *i)
{
    return i->op == DC_K_LOAD && i->lanes == 1 && i->type == DC_I32 && i->in[1] == 0 &&
           dc_flat_reads_input(c->f, i);
}

/* What depends on the number of the thread, on memory or on other lanes. */
static bool does_vary(const check *c, const dc_finst *i)
{
    bool varies = dc_kop_meets((dc_kop)i->op) ||
                  (dc_kop_loads((dc_kop)i->op) && !reads_size(c, i)) ||
                  (i->op == DC_K_ARG && i->imm == DC_KARG_THREAD);
    for (int n = 0; n < 3; n++)
        varies = varies || (i->in[n] != 0 && c->varies[i->in[n]]);
    return varies;
}

/* Order and scopes -------------------------------------------------------------------------- */

static const char *check_shape(const check *c, dc_fv v)
{
    if (v == 0 || v >= c->f->inst.n)
        return "no such instruction";
    if (c->scope_of[v] != 0)
        return "an instruction stands twice";
    const dc_finst *i = &c->f->inst.at[v];
    if (i->op >= DC_K__COUNT || i->type > DC_INDEX)
        return "no such operation or type";
    const bool bare = i->op == DC_K_IF || i->op == DC_K_ROWS || i->op == DC_K_END ||
                      i->op == DC_K_BARRIER || dc_kop_orders((dc_kop)i->op);
    if (bare ? i->lanes != 0 : i->lanes < 1 || i->lanes > MAX_LANES)
        return "no such number of lanes";
    if (i->op == DC_K_LOOP && (i->type != DC_INDEX || i->lanes != 1))
        return "the counter of a loop is no index";
    return NULL;
}

static void open_scope(check *c, const dc_finst *i, bool divides)
{
    c->scope[++c->depth] = c->next++;
    c->table[c->depth] = i->op == DC_K_ROWS ? (uint32_t)i->imm + 1 : 0;
    if (i->op == DC_K_ROWS)
        c->chosen[i->imm] = true;
    c->divides[c->depth] = divides;
    c->divided += divides;
}

static const char *check_one(check *c, dc_fv v)
{
    const char *wrong = check_shape(c, v);
    if (wrong != NULL)
        return wrong;
    const dc_finst *i = &c->f->inst.at[v];
    wrong = check_operands(c, i);
    if (wrong == NULL)
        wrong = check_types(c, i);
    if (wrong == NULL && is_meeting(i))
        wrong = check_meeting(c, i);
    if (wrong != NULL)
        return wrong;
    if (i->op == DC_K_END) {
        if (c->depth == 0)
            return "end without a beginning";
        c->divided -= c->divides[c->depth];
        if (c->table[c->depth] != 0)
            c->chosen[c->table[c->depth] - 1] = false;
        c->closed[c->scope[c->depth--]] = true;
    }
    c->varies[v] = does_vary(c, i);
    if (dc_kop_opens((dc_kop)i->op))
        open_scope(c, i, c->varies[v]);
    c->scope_of[v] = c->scope[c->depth] + 1;
    return NULL;
}

static const char *check_body(check *c, uint32_t *at)
{
    for (*at = 0; *at < c->f->order.n; ++*at) {
        const char *wrong = check_one(c, c->f->order.at[*at]);
        if (wrong != NULL)
            return wrong;
    }
    return c->depth > 0 ? "a scope stays open" : NULL;
}

dc_status dc_flat_check(dc_job *j, const dc_flat *f)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    check c = {.f = f,
               .scope_of = DC_NEW_ARRAY(&j->scratch, uint32_t, f->inst.n),
               .scope = DC_NEW_ARRAY(&j->scratch, uint32_t, f->order.n + 1),
               .closed = DC_NEW_ARRAY(&j->scratch, bool, f->order.n + 1),
               .varies = DC_NEW_ARRAY(&j->scratch, bool, f->inst.n),
               .divides = DC_NEW_ARRAY(&j->scratch, bool, f->order.n + 1),
               .table = DC_NEW_ARRAY(&j->scratch, uint32_t, f->order.n + 1),
               .chosen = DC_NEW_ARRAY(&j->scratch, bool, f->table.n),
               .taken = DC_NEW_ARRAY(&j->scratch, bool, f->nparam),
               .next = 1};
    uint32_t at = f->order.n;
    const char *wrong = check_heading(&c);
    if (wrong == NULL)
        wrong = check_body(&c, &at);
    dc_arena_rewind(&j->scratch, mark);
    if (wrong == NULL)
        return DC_OK;
    char text[200];
    const dc_fv v = at < f->order.n ? f->order.at[at] : 0;
    const bool known = v > 0 && v < f->inst.n && f->inst.at[v].op < DC_K__COUNT;
    snprintf(text, sizeof text, "flat %s, %s at %" PRIu32 ": %s", f->name,
             known ? dc_kop_row_of((dc_kop)f->inst.at[v].op)->name : "kernel", at, wrong);
    return dc_fail(j, DC_ERR_BUG, &(dc_fact){.num = {__LINE__}, .word = {__FILE__, text}});
}
