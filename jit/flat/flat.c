/* The flat form: rows, and building with hash-consing by scope and folding (jit/flat/flat.h). */
#include "jit/flat/flat.h"

#include <string.h>

static const dc_kop_row rows[] = {
#define KOP(id, name, n, form, flt, sgn, uns, c) \
    [DC_K_##id] = {name, n, DC_KFORM_##form, {flt, sgn, uns}, c},
#include "jit/flat/kops.def"
};

const dc_kop_row *dc_kop_row_of(dc_kop op)
{
    return &rows[op];
}

int dc_kop_column(int type)
{
    if (type == DC_INDEX)
        return 2;
    switch (dc_dtype_kind((dc_dtype)type)) {
    case DC_KIND_FLOAT:
        return 0;
    case DC_KIND_SINT:
        return 1;
    case DC_KIND_UINT:
    case DC_KIND_BOOL:
    case DC_KIND_COMPLEX: /* no kernel has one */
        break;
    }
    return 2;
}

bool dc_flat_reads_input(const dc_flat *f, const dc_finst *i)
{
    return dc_kop_loads((dc_kop)i->op) && f->buf.at[i->buf].scope == DC_SCOPE_PARAM &&
           f->buf.at[i->buf].mode == DC_MODE_IN;
}

enum { ATOM = 1024 };

size_t dc_flat_group_offset(const dc_flat *f, uint32_t n)
{
    size_t bytes = 0;
    for (uint32_t b = 0; b < n; b++) {
        const dc_buffer *x = &f->buf.at[b];
        if (x->scope != DC_SCOPE_GROUP)
            continue;
        bytes = x->atoms ? dc_align_up(bytes, ATOM) : bytes;
        bytes += dc_align_up((size_t)x->count * dc_dtype_size((dc_dtype)x->dtype), 16);
    }
    return n < f->buf.n && f->buf.at[n].atoms ? dc_align_up(bytes, ATOM) : bytes;
}

size_t dc_flat_group_bytes(const dc_flat *f)
{
    return dc_flat_group_offset(f, f->buf.n);
}

size_t dc_flat_async_bytes(const dc_flat *f, const dc_finst *store)
{
    const dc_finst *load = dc_finst_at(f, store->in[1]);
    const dc_buffer *to = &f->buf.at[store->buf];
    if (!f->simt || to->scope != DC_SCOPE_GROUP || store->in[2] != 0 || load->op != DC_K_LOAD ||
        !dc_flat_reads_input(f, load) || load->in[2] != 0)
        return 0;
    const size_t bytes = store->lanes * dc_dtype_size((dc_dtype)to->dtype);
    const bool one = store->lanes == 1 || (store->imm == 1 && load->imm == 1);
    const bool as_one =
        load->in[1] == 0 || load->lanes == 1 || dc_finst_at(f, load->in[1])->op == DC_K_SPLAT;
    return (bytes == 4 || bytes == 8 || bytes == 16) && one && as_one &&
                   store->lanes == load->lanes && store->align % bytes == 0 &&
                   load->align % bytes == 0
               ? bytes
               : 0;
}

void dc_flat_free(dc_flat *f)
{
    if (f == NULL)
        return;
    dc_arena_free(&f->arena);
    dc_xfree(f);
}

/* Making instructions ----------------------------------------------------------------------- */

dc_fbuild *dc_fb_new(dc_flat *f)
{
    dc_fbuild *b = DC_NEW(&f->arena, dc_fbuild);
    b->f = f;
    DC_PUSH_IN(&f->arena, f->inst, (dc_finst){0});
    DC_PUSH_IN(&f->arena, b->chain, 0);
    return b;
}

static uint32_t bucket_of(const dc_fbuild *b, const dc_finst *i)
{
    uint64_t h = dc_hash_mix(i->op, i->type);
    h = dc_hash_mix(dc_hash_mix(h, i->lanes), i->imm);
    h = dc_hash_mix(dc_hash_mix(h, i->in[0]), i->in[1]);
    h = dc_hash_mix(dc_hash_mix(h, i->in[2]), i->buf);
    return (uint32_t)h % DC_COUNTOF(b->head);
}

static bool same(const dc_finst *a, const dc_finst *b)
{
    return a->op == b->op && a->type == b->type && a->lanes == b->lanes && a->imm == b->imm &&
           a->buf == b->buf && a->align == b->align && memcmp(a->in, b->in, sizeof a->in) == 0;
}

static uint16_t level_of(const dc_fbuild *b, const dc_finst *i)
{
    uint16_t level = 0;
    for (int n = 0; n < 3; n++)
        if (i->in[n] != 0 && dc_fb_at(b, i->in[n])->level > level)
            level = dc_fb_at(b, i->in[n])->level;
    return level;
}

static dc_fv append_inst(dc_fbuild *b, const dc_finst *i)
{
    dc_flat *f = b->f;
    const dc_fv v = f->inst.n;
    DC_PUSH_IN(&f->arena, f->inst, *i);
    DC_PUSH_IN(&f->arena, b->chain, 0);
    DC_PUSH_IN(&f->arena, f->order, v);
    return v;
}

static dc_fv cons(dc_fbuild *b, dc_finst i)
{
    const uint32_t at = bucket_of(b, &i);
    for (dc_fv v = b->head[at]; v != 0; v = b->chain.at[v])
        if (same(dc_fb_at(b, v), &i))
            return v;
    i.level = level_of(b, &i);
    const dc_fv v = append_inst(b, &i);
    b->chain.at[v] = b->head[at];
    b->head[at] = v;
    DC_PUSH_IN(&b->f->arena, b->consed, v);
    return v;
}

/* Folding ----------------------------------------------------------------------------------- */

int dc_flat_width(const dc_flat *f, int type)
{
    return type == DC_INDEX ? f->index_bits : type == DC_BOOL ? 1 : dc_dtype_bits((dc_dtype)type);
}

uint64_t dc_flat_canonical(const dc_flat *f, int type, uint64_t bits)
{
    const int unused = 64 - dc_flat_width(f, type);
    bits <<= unused;
    return dc_ftype_is_signed(type) ? (uint64_t)((int64_t)bits >> unused) : bits >> unused;
}

static uint64_t fold_value(dc_kop op, uint64_t a, uint64_t c)
{
    switch ((int)op) {
    case DC_K_ADD:
        return a + c;
    case DC_K_SUB:
        return a - c;
    case DC_K_MUL:
        return a * c;
    case DC_K_DIV:
        return a / c;
    case DC_K_REM:
        return a % c;
    case DC_K_AND:
        return a & c;
    case DC_K_OR:
        return a | c;
    case DC_K_XOR:
        return a ^ c;
    case DC_K_LT:
        return a < c;
    case DC_K_LE:
        return a <= c;
    case DC_K_EQ:
        return a == c;
    case DC_K_NE:
        return a != c;
    }
    DC_BUG("no folding of %s", rows[op].name);
}

static bool foldable(dc_kop op, int type)
{
    if (dc_kop_zips(op))
        return false;
    if (type == DC_INDEX || type == DC_U32)
        return op != DC_K_SHL && op != DC_K_SHR;
    return type == DC_BOOL && (op == DC_K_AND || op == DC_K_OR || op == DC_K_XOR);
}

/* x op constant, where that is x or the constant. 0: neither. */
static dc_fv fold_identity(dc_kop op, int type, dc_fv x, dc_fv constant, uint64_t bits)
{
    const bool is_bool = type == DC_BOOL;
    switch ((int)op) {
    case DC_K_ADD:
    case DC_K_SUB:
        return bits == 0 ? x : 0;
    case DC_K_MUL:
        return bits == 1 ? x : bits == 0 ? constant : 0;
    case DC_K_DIV:
        return bits == 1 ? x : 0;
    case DC_K_AND:
        return bits == 0 ? constant : is_bool ? x : 0;
    case DC_K_OR:
        return bits == 0 ? x : is_bool ? constant : 0;
    }
    return 0;
}

static dc_fv fold2(dc_fbuild *b, dc_kop op, dc_fv a, dc_fv c)
{
    const dc_finst *x = dc_fb_at(b, a);
    const int type = x->type, lanes = x->lanes;
    uint64_t p, q;
    if (!foldable(op, type))
        return 0;
    const bool left = dc_fb_is_const(b, a, &p), right = dc_fb_is_const(b, c, &q);
    if (left && right) {
        const bool test = rows[op].form == DC_KFORM_TEST;
        const uint64_t v = fold_value(op, p, q);
        return test ? dc_fb_const(b, DC_BOOL, lanes, v) : dc_fb_const(b, type, lanes, v);
    }
    if (right)
        return fold_identity(op, type, a, c, q);
    if (left && (op == DC_K_ADD || op == DC_K_MUL || op == DC_K_AND || op == DC_K_OR))
        return fold_identity(op, type, c, a, p);
    return 0;
}

/* Rows -------------------------------------------------------------------------------------- */

dc_fv dc_fb_const(dc_fbuild *b, int type, int lanes, uint64_t bits)
{
    return cons(b, (dc_finst){.op = DC_K_CONST,
                              .type = (uint8_t)type,
                              .lanes = (uint16_t)lanes,
                              .imm = dc_flat_canonical(b->f, type, bits)});
}

dc_fv dc_fb_arg(dc_fbuild *b, int which)
{
    return cons(b,
                (dc_finst){.op = DC_K_ARG, .type = DC_INDEX, .lanes = 1, .imm = (uint64_t)which});
}

dc_fv dc_fb_lanes(dc_fbuild *b, int type, int lanes, int64_t step)
{
    return cons(b, (dc_finst){.op = DC_K_LANES,
                              .type = (uint8_t)type,
                              .lanes = (uint16_t)lanes,
                              .imm = (uint64_t)step});
}

dc_fv dc_fb_splat(dc_fbuild *b, dc_fv a, int lanes)
{
    const dc_finst *i = dc_fb_at(b, a);
    uint64_t bits;
    if (i->lanes == lanes)
        return a;
    DC_ASSERT(i->lanes == 1, "splat of %d lanes", i->lanes);
    if (dc_fb_is_const(b, a, &bits))
        return dc_fb_const(b, i->type, lanes, bits);
    return cons(b,
                (dc_finst){.op = DC_K_SPLAT, .type = i->type, .lanes = (uint16_t)lanes, .in = {a}});
}

dc_fv dc_fb_op1(dc_fbuild *b, dc_kop op, dc_fv a)
{
    const dc_finst *i = dc_fb_at(b, a);
    if (op == DC_K_NEG && !dc_ftype_is_float(i->type))
        return dc_fb_op2(b, DC_K_SUB, dc_fb_const(b, i->type, i->lanes, 0), a);
    if (op == DC_K_ANY)
        return i->lanes == 1 ? a : cons(b, (dc_finst){.op = DC_K_ANY, .lanes = 1, .in = {a}});
    return cons(b, (dc_finst){.op = (uint8_t)op, .type = i->type, .lanes = i->lanes, .in = {a}});
}

dc_fv dc_fb_op2(dc_fbuild *b, dc_kop op, dc_fv a, dc_fv c)
{
    const dc_fv folded = fold2(b, op, a, c);
    if (folded != 0)
        return folded;
    const dc_finst *i = dc_fb_at(b, a);
    const uint8_t type = rows[op].form == DC_KFORM_TEST ? (uint8_t)DC_BOOL : i->type;
    return cons(b, (dc_finst){.op = (uint8_t)op, .type = type, .lanes = i->lanes, .in = {a, c}});
}

dc_fv dc_fb_op3(dc_fbuild *b, dc_kop op, dc_fv a, dc_fv c, dc_fv d)
{
    uint64_t bits;
    if (op == DC_K_SELECT && (c == d || dc_fb_is_const(b, a, &bits)))
        return c == d || bits != 0 ? c : d;
    const dc_finst *i = dc_fb_at(b, op == DC_K_SELECT ? c : a);
    return cons(b,
                (dc_finst){.op = (uint8_t)op, .type = i->type, .lanes = i->lanes, .in = {a, c, d}});
}

dc_fv dc_fb_convert(dc_fbuild *b, dc_fv a, int type)
{
    const dc_finst *i = dc_fb_at(b, a);
    if (i->type == type)
        return a;
    if (i->op == DC_K_CONST && i->type == DC_INDEX && !dc_ftype_is_float(type))
        return dc_fb_const(b, type, i->lanes, i->imm);
    return cons(
        b, (dc_finst){.op = DC_K_CONVERT, .type = (uint8_t)type, .lanes = i->lanes, .in = {a}});
}

dc_fv dc_fb_bitcast(dc_fbuild *b, dc_fv a, int type)
{
    const dc_finst *i = dc_fb_at(b, a);
    if (i->type == type)
        return a;
    return cons(
        b, (dc_finst){.op = DC_K_BITCAST, .type = (uint8_t)type, .lanes = i->lanes, .in = {a}});
}

/* Locals ------------------------------------------------------------------------------------ */

static dc_fkept *kept_at(dc_fbuild *b, uint32_t buf, uint64_t at)
{
    return &b->kept[dc_hash_mix(buf, at) % DC_COUNTOF(b->kept)];
}

static dc_fheld *held_of(dc_fbuild *b, uint32_t buf)
{
    while (b->held.n <= buf)
        DC_PUSH_IN(&b->f->arena, b->held, (dc_fheld){0});
    return &b->held.at[buf];
}

/* Does it touch whole lanes of a local, side by side, at a place that is a multiple of them? Which. */
static bool is_kept(const dc_fbuild *b, const dc_finst *i, uint64_t *at)
{
    const dc_fv mask = i->op == DC_K_LOAD ? i->in[1] : i->in[2];
    return b->f->buf.at[i->buf].scope == DC_SCOPE_LOCAL && mask == 0 &&
           (i->imm == 1 || i->lanes == 1) && dc_fb_is_const(b, i->in[0], at) && *at % i->lanes == 0;
}

/* What a store leaves there, until this scope or the next one inside it ends. */
static void keep(dc_fbuild *b, const dc_finst *i)
{
    dc_fheld *h = held_of(b, i->buf);
    uint64_t at;
    const bool is = i->op == DC_K_STORE && is_kept(b, i, &at);
    if (!is || h->since != b->since || h->lanes != i->lanes)
        *h = (dc_fheld){.since = b->since, .stores = h->stores + 1, .lanes = is ? i->lanes : 0};
    if (is)
        *kept_at(b, i->buf, at) = (dc_fkept){
            .buf = i->buf, .since = b->since, .stores = h->stores, .at = at, .value = i->in[1]};
}

/* The value that was stored at the address of a load; 0: not known. */
static dc_fv kept_of(dc_fbuild *b, const dc_finst *i)
{
    uint64_t at;
    if (i->op != DC_K_LOAD || !is_kept(b, i, &at))
        return 0;
    const dc_fheld *h = held_of(b, i->buf);
    const dc_fkept *e = kept_at(b, i->buf, at);
    const bool is = e->value != 0 && e->buf == i->buf && e->at == at && e->since == b->since &&
                    h->since == b->since && e->stores == h->stores && h->lanes == i->lanes;
    return is ? e->value : 0;
}

dc_fv dc_fb_mem(dc_fbuild *b, const dc_finst *mem)
{
    dc_finst i = *mem;
    i.type = b->f->buf.at[i.buf].dtype;
    if (dc_flat_reads_input(b->f, &i))
        return cons(b, i);
    const dc_fv kept = kept_of(b, &i);
    if (kept != 0)
        return kept;
    if (dc_kop_stores((dc_kop)i.op))
        keep(b, &i);
    i.level = b->level;
    return append_inst(b, &i);
}

/* Threads meet ------------------------------------------------------------------------------ */

void dc_fb_barrier(dc_fbuild *b, int kind)
{
    append_inst(b, &(dc_finst){.op = DC_K_BARRIER, .level = b->level, .imm = (uint64_t)kind});
}

void dc_fb_commit(dc_fbuild *b)
{
    append_inst(b, &(dc_finst){.op = DC_K_COMMIT, .level = b->level});
}

void dc_fb_wait(dc_fbuild *b, int groups)
{
    append_inst(b, &(dc_finst){.op = DC_K_WAIT, .level = b->level, .imm = (uint64_t)groups});
}

/* Not made once for several: each is a place that all lanes come by. */
dc_fv dc_fb_shuffle(dc_fbuild *b, dc_fv a, dc_fv lane)
{
    return append_inst(b, &(dc_finst){.op = DC_K_SHUFFLE,
                                      .type = dc_fb_at(b, a)->type,
                                      .lanes = 1,
                                      .level = b->level,
                                      .in = {a, lane}});
}

/* The lanes hold parts of matrices. */
dc_fv dc_fb_mma(dc_fbuild *b, dc_fv a, dc_fv c, dc_fv d)
{
    return append_inst(b, &(dc_finst){.op = DC_K_MMA,
                                      .type = dc_fb_at(b, d)->type,
                                      .lanes = dc_fb_at(b, d)->lanes,
                                      .level = b->level,
                                      .in = {a, c, d}});
}

/* Scopes ------------------------------------------------------------------------------------ */

static dc_fv open_scope(dc_fbuild *b, const dc_finst *i)
{
    const dc_fv v = append_inst(b, i);
    DC_PUSH_IN(&b->f->arena, b->around, b->since);
    b->since = v;
    DC_PUSH_IN(&b->f->arena, b->scope, b->consed.n);
    DC_PUSH_IN(&b->f->arena, b->opened, v);
    return v;
}

dc_fv dc_fb_loop(dc_fbuild *b, dc_fv begin, dc_fv end)
{
    return open_scope(b, &(dc_finst){.op = DC_K_LOOP,
                                     .type = DC_INDEX,
                                     .lanes = 1,
                                     .level = ++b->level,
                                     .in = {begin, end}});
}

void dc_fb_if(dc_fbuild *b, dc_fv cond)
{
    open_scope(b, &(dc_finst){.op = DC_K_IF, .level = b->level, .in = {cond}});
}

void dc_fb_rows(dc_fbuild *b, uint32_t table, dc_fv row)
{
    open_scope(b, &(dc_finst){.op = DC_K_ROWS, .level = b->level, .in = {row}, .imm = table});
}

dc_fv dc_fb_cell(dc_fbuild *b, int type, uint32_t table, uint32_t column, dc_fv row)
{
    return cons(b, (dc_finst){.op = DC_K_CELL,
                              .type = (uint8_t)type,
                              .lanes = 1,
                              .imm = dc_cell_of(table, column),
                              .in = {row}});
}

void dc_fb_end(dc_fbuild *b)
{
    const uint32_t keep = b->scope.at[--b->scope.n];
    while (b->consed.n > keep) { /* newest first: each is the head of its chain */
        const dc_fv v = b->consed.at[--b->consed.n];
        b->head[bucket_of(b, dc_fb_at(b, v))] = b->chain.at[v];
    }
    if (dc_fb_at(b, b->opened.at[--b->opened.n])->op == DC_K_LOOP)
        b->level--;
    b->since = b->around.at[--b->around.n];
    append_inst(b, &(dc_finst){.op = DC_K_END});
}
