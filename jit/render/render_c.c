/*
 * The C family (jit/render/render_c.h): functions, statements, loops; expressions are those of jit/render/c_expr.c.
 * Passes leave ids in order, so equal kernels have equal text.
 */
#include "jit/render/render_c.h"

#include "core/runtime/halt.h"
#include "jit/flat/flat_polls.h"
#include "jit/render/c_expr.h"
#include "jit/render/c_tables.h"
#include "jit/render/warp_loop.h"

#include <inttypes.h>
#include <string.h>

typedef struct render {
    dc_job *j;
    dc_c_text t;
    int depth;
    const bool *look;         /* loops of the kernel that ask whether it is to end; or NULL */
    const dc_warp_loop *warp; /* by value: loops that a warp looks through; or NULL */
    DC_VEC(dc_fv) open;       /* LOOP or IF of each open scope */
} render;

#define put(r, ...) dc_c_text_put(&(r)->t, __VA_ARGS__)

static const dc_finst *at(const render *r, dc_fv v)
{
    return dc_ctext_at(&r->t, v);
}

static const char *type_name(const render *r, int type, bool memory)
{
    return dc_c_text_type(&r->t, type, memory);
}

static const char *signed_index(const render *r)
{
    return r->t.f->index_bits == 32 ? "i32" : "i64";
}

static void indent(render *r)
{
    for (int n = 0; n < r->depth; n++)
        dc_text_puts(r->t.out, "    ");
}

/* Statements --------------------------------------------------------------------------------- */

static void put_store(render *r, const dc_finst *i)
{
    if (i->in[2] != 0)
        put(r, "if (%V) ", i->in[2]);
    dc_c_expr_element(&r->t, i);
    put(r, " = %V;\n", i->in[1]);
}

static void put_statement(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    indent(r);
    if (dc_kop_stores((dc_kop)i->op)) {
        put_store(r, i);
        return;
    }
    if (r->t.plan.array[v])
        put(r, "v%u[l] = ", v);
    else
        put(r, "const %s v%u = ", type_name(r, i->type, false), v);
    dc_c_expr_put(&r->t, v);
    put(r, ";\n");
}

static void put_any(render *r, dc_fv v)
{
    const dc_fv a = at(r, v)->in[0];
    indent(r);
    put(r, "bool v%u = 0;\n", v);
    indent(r);
    put(r, "for (int l = 0; l < %d; l++)\n", (int)at(r, a)->lanes);
    indent(r);
    put(r, "    v%u |= %V;\n", v, a);
}

static void put_barrier(render *r, const dc_finst *i)
{
    const char *barrier = r->t.d->barrier[i->imm == DC_BARRIER_LANES];
    if (barrier == NULL || !r->t.f->simt)
        dc_c_text_no_rendering(&r->t, i);
    indent(r);
    put(r, "%s%s;\n", i->imm == DC_BARRIER_ASYNC ? "fence_async_proxy(); " : "", barrier);
}

static void put_bound(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    if (i->op == DC_K_CONST)
        dc_c_text_literal(&r->t, i->type, i->imm);
    else if (i->op == DC_K_ARG && i->imm == DC_KARG_END && r->t.f->index_bits == 64)
        put(r, "end");
    else
        put(r, "(%s)%V", signed_index(r), v);
}

/*
 * What to tell the compiler of a loop with neither loops nor barriers in it: to unroll it, where it has few iterations, or not
 * to, where that would be too much to keep in registers.
 */
static const char *unrolling(const render *r, dc_fv loop)
{
    enum { SHORT_LOOP = 16, LONG_BODY = 512 };
    const dc_finst *i = at(r, loop);
    const dc_flat *f = r->t.f;
    const dc_finst *begin = at(r, i->in[0]), *end = at(r, i->in[1]);
    uint32_t n = 0, depth = 0;
    if (begin->op != DC_K_CONST || end->op != DC_K_CONST || end->imm - begin->imm > SHORT_LOOP)
        return NULL;
    while (f->order.at[n] != loop)
        n++;
    const uint32_t first = n;
    for (n++, depth++; n < f->order.n && depth > 0; n++) {
        const uint8_t op = at(r, f->order.at[n])->op;
        if (op == DC_K_LOOP || op == DC_K_BARRIER)
            return NULL;
        depth += op == DC_K_IF || op == DC_K_ROWS;
        depth -= op == DC_K_END;
    }
    return (n - first) * (end->imm - begin->imm) > LONG_BODY ? " 1" : "";
}

/* Bounds compare as signed numbers, so that loops over nothing may end anywhere. */
static void put_loop(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    const char *t = type_name(r, DC_INDEX, false);
    const bool fixed = at(r, i->in[0])->op == DC_K_CONST && at(r, i->in[1])->op == DC_K_CONST;
    const char *unroll = r->t.d->unroll != NULL ? unrolling(r, v) : NULL;
    if (unroll != NULL) {
        indent(r);
        put(r, "%s%s\n", r->t.d->unroll, unroll);
    }
    indent(r);
    put(r, "for (%s v%u = %V; ", t, v, i->in[0]);
    if (fixed) {
        put(r, "v%u < %V; ", v, i->in[1]);
    } else {
        put(r, "(%s)v%u < ", signed_index(r), v);
        put_bound(r, i->in[1]);
        put(r, "; ");
    }
    put(r, "v%u++) {\n", v);
    r->depth++;
}

/* Loops that a warp looks through ---------------------------------------------------------------- */

enum { WARP_VOTES = 8 };

static void put_statements_of(render *r, const bool *needed, dc_fv loop)
{
    for (uint32_t n = 0; n < r->t.plan.n; n++) {
        const dc_fv v = r->t.plan.step[n].v;
        if (v > loop && needed[v])
            put_statement(r, v);
    }
}

/* Each thread looks at iterations of its own; the votes of a warp about 32 of them go to one thread each. */
static void put_votes(render *r, dc_fv v, const dc_warp_loop *x)
{
    const dc_finst *i = at(r, v);
    const char *t = type_name(r, DC_INDEX, false);
    bool *needed = DC_NEW_ARRAY(&r->j->scratch, bool, r->t.f->inst.n);
    dc_warp_loop_needs(r->t.f, v, x, needed);
    indent(r);
    put(r, "u32 votes%u = 0;\n", v);
    indent(r);
    put(r, "#pragma unroll\n");
    indent(r);
    put(r, "for (u32 part = 0; part < %d; part++) {\n", WARP_VOTES);
    r->depth++;
    indent(r);
    put(r, "const %s v%u = first%u + 32 * part + thread %s;\n", t, v, v, "% 32");
    indent(r);
    put(r, "bool yes = v%u < %V;\n", v, i->in[1]);
    indent(r);
    put(r, "if (yes) {\n");
    r->depth++;
    put_statements_of(r, needed, v);
    indent(r);
    put(r, "yes = %V", x->test[0]);
    for (int n = 1; n < x->n; n++)
        put(r, " && %V", x->test[n]);
    put(r, ";\n");
    r->depth--;
    indent(r);
    put(r, "}\n");
    indent(r);
    put(r, "const u32 vote = %s;\n", r->t.d->vote);
    indent(r);
    put(r, "votes%u = thread %s == part ? vote : votes%u;\n", v, "% 32", v);
    r->depth--;
    indent(r);
    put(r, "}\n");
}

/* The iterations that were voted for, in order. */
static void put_warp_loop(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    const char *t = type_name(r, DC_INDEX, false);
    indent(r);
    put(r, "for (%s first%u = %V; first%u < %V; first%u += %d) {\n", t, v, i->in[0], v, i->in[1], v,
        32 * WARP_VOTES);
    r->depth++;
    put_votes(r, v, &r->warp[v]);
    indent(r);
    put(r, "for (u32 part = 0; part < %d; part++)\n", WARP_VOTES);
    indent(r);
    put(r, "for (u32 vote = %svotes%u, part); vote != 0; vote &= vote - 1) {\n", r->t.d->shuffle,
        v);
    r->depth++;
    indent(r);
    put(r, "const %s v%u = first%u + 32 * part + %s;\n", t, v, v, r->t.d->first_bit);
}

/* At the end of an iteration: the kernel may be ended here. */
static void put_look(render *r, dc_fv opened)
{
    if (r->look == NULL || !r->look[opened])
        return;
    indent(r);
    put(r, "if (*look->flag && look->ask(look->ctx)) return;\n");
}

/* The dc_look, whose address lies in front of the thread's scratch memory. */
static void put_look_at(render *r)
{
    put(r,
        "    struct look { volatile const u8 *flag; int (*ask)(void *); void *ctx; };\n"
        "    const struct look *const look = *(const struct look *const *)((const u8 *)scratch - "
        "%d);\n",
        DC_LOOK_BYTES);
}

/* Wide accesses ------------------------------------------------------------------------------- */

/* An array of all lanes, as they lie in memory. */
static void put_lanes_array(render *r, const char *name, dc_fv v, const dc_finst *i)
{
    indent(r);
    put(r, "%s%s %s%u[%d]%s;\n", r->t.d->aligned, type_name(r, i->type, true), name, v,
        (int)i->lanes, i->op == DC_K_LOAD && i->in[1] != 0 ? " = {0}" : "");
}

/* The test that all lanes stand under, in front of the access; what is not loaded is 0. */
static void put_test(render *r, const dc_finst *i)
{
    const dc_fv mask = i->op == DC_K_LOAD ? i->in[1] : i->in[2];
    indent(r);
    if (mask != 0)
        put(r, "if (%V) ", mask);
}

/* The memory of the access, piece by piece to the array or from it. */
static void put_pieces(render *r, dc_fv v, const char *name, dc_fv array)
{
    const dc_finst *i = at(r, v);
    const dc_buffer *b = &r->t.f->buf.at[i->buf];
    const size_t size = dc_dtype_size((dc_dtype)b->dtype), piece = dc_c_plan_wide(r->t.f, i);
    const char *type = r->t.d->wide(size, piece);
    const char *space = b->scope == DC_SCOPE_GROUP ? r->t.d->pointed : r->t.d->global;
    for (int n = 0; n < (int)(i->lanes * size / piece); n++) {
        put_test(r, i);
        if (i->op == DC_K_LOAD)
            put(r, "((%s *)%s%u)[%d] = ((%sconst %s *)(b%u + %V))[%d];\n", type, name, array, n,
                space, type, i->buf, i->in[0], n);
        else
            put(r, "((%s%s *)(b%u + %V))[%d] = ((const %s *)%s%u)[%d];\n", space, type, i->buf,
                i->in[0], n, type, name, array, n);
    }
}

/* A bool is a byte in memory: its bytes have an array of their own, and so have values that no array holds. */
static void put_wide(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    const bool load = i->op == DC_K_LOAD;
    if (i->type != DC_BOOL && (load || r->t.plan.array[i->in[1]])) {
        if (load)
            put_lanes_array(r, "v", v, i);
        put_pieces(r, v, "v", load ? v : i->in[1]);
        return;
    }
    put_lanes_array(r, "w", v, i);
    if (load) {
        put_pieces(r, v, "w", v);
        indent(r);
        put(r, "bool v%u[%d];\n", v, (int)i->lanes);
    }
    indent(r);
    put(r, "LANES(%d) ", (int)i->lanes);
    if (load)
        put(r, "v%u[l] = w%u[l] != 0;\n", v, v);
    else
        put(r, "w%u[l] = %V;\n", v, i->in[1]);
    if (!load)
        put_pieces(r, v, "w", v);
}

/* Parts of matrices in registers: an array of 4 bytes of each. */
static void put_ldmatrix(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    if (r->t.d->prelude_matrices == NULL)
        dc_c_text_no_rendering(&r->t, i);
    const int count = i->lanes * (int)dc_dtype_size((dc_dtype)i->type) / 4;
    indent(r);
    put(r, "u32 v%u[%d];\n", v, count);
    indent(r);
    put(r, "ldmatrix_x%d%s(v%u, b%u + %V);\n", count, i->imm == 1 ? "_trans" : "", v, i->buf,
        i->in[0]);
    if (i->imm != 2)
        return;
    indent(r);
    put(r, "LANES(%d) v%u[l] = tf32_of_f32(f32_of_bits(v%u[l]));\n", count, v, v);
}

static void put_mma(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    if (r->t.d->prelude_matrices == NULL)
        dc_c_text_no_rendering(&r->t, i);
    const dc_dtype t = (dc_dtype)at(r, i->in[0])->type;
    indent(r);
    put(r, "%s v%u[4];\n", type_name(r, i->type, false), v);
    indent(r);
    put(r, "LANES(4) v%u[l] = %V;\n", v, i->in[2]);
    indent(r);
    put(r, "mma_m16n8k%d_%s(v%u, v%u, v%u);\n", 32 / (int)dc_dtype_size(t),
        t == DC_F32  ? "tf32"
        : t == DC_I8 ? "s8"
                     : dc_dtype_name(t),
        v, i->in[0], i->in[1]);
}

/* Rows are 128 bytes, 8 of them 1024. */
static void put_matrix(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    if (r->t.d->prelude_wgmma == NULL)
        dc_c_text_no_rendering(&r->t, i);
    indent(r);
    put(r, "const u64 v%u = matrix_descriptor(b%u + %V, %l, 1024);\n", v, i->buf, i->in[0],
        i->imm != 0 ? (int64_t)i->imm : (int64_t)16);
}

static void put_wgmma(render *r, const dc_finst *i)
{
    const dc_finst *a = at(r, i->in[1]), *b = at(r, i->in[2]);
    if (r->t.d->prelude_wgmma == NULL)
        dc_c_text_no_rendering(&r->t, i);
    indent(r);
    if ((i->imm & DC_WGMMA_BEGIN) != 0) {
        put(r, "wgmma_fence();\n");
        indent(r);
    }
    put(r, "wgmma(%d, %s, %d, %d, b%u + %V, v%u, v%u);\n", 2 * (int)i->lanes,
        dc_dtype_name((dc_dtype)a->type), a->imm != 0, b->imm != 0, i->buf, i->in[0], i->in[1],
        i->in[2]);
    if ((i->imm & DC_WGMMA_END) == 0)
        return;
    indent(r);
    put(r, "wgmma_commit();\n");
}

static void put_wgmma_wait(render *r, const dc_finst *i)
{
    if (r->t.d->prelude_wgmma == NULL)
        dc_c_text_no_rendering(&r->t, i);
    indent(r);
    put(r, "wgmma_wait(%d, %d, b%u + %V);\n", (int)i->imm, (int)i->lanes, i->buf, i->in[0]);
}

/* What is loaded goes to group memory by itself; where the load is masked, zeros. */
static void put_store_async(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v), *load = at(r, i->in[1]);
    const int bytes = (int)dc_flat_async_bytes(r->t.f, i);
    if (r->t.d->prelude_async == NULL || bytes == 0)
        dc_c_text_no_rendering(&r->t, i);
    dc_fv mask = load->in[1];
    if (mask != 0 && at(r, mask)->op == DC_K_SPLAT)
        mask = at(r, mask)->in[0];
    indent(r);
    put(r, "cp_async%d%s(b%u + %V, b%u + %V", bytes, mask != 0 ? "_zfill" : "", i->buf, i->in[0],
        load->buf, load->in[0]);
    if (mask != 0)
        put(r, ", %V ? %d : 0", mask, bytes);
    put(r, ");\n");
}

static void put_order(render *r, const dc_finst *i)
{
    if (r->t.d->prelude_async == NULL)
        dc_c_text_no_rendering(&r->t, i);
    indent(r);
    if (i->op == DC_K_COMMIT)
        put(r, "cp_async_commit();\n");
    else
        put(r, "cp_async_wait(%d);\n", (int)i->imm);
}

static bool is_warp_loop(const render *r, dc_fv v)
{
    return r->warp != NULL && r->warp[v].n > 0;
}

static void put_end(render *r)
{
    const dc_fv opened = r->open.at[--r->open.n];
    put_look(r, opened);
    for (int n = is_warp_loop(r, opened) ? 2 : 1; n > 0; n--) {
        r->depth--;
        indent(r);
        put(r, "}\n");
    }
}

static void put_alone(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    switch ((int)i->op) {
    case DC_K_LDMATRIX:
        put_ldmatrix(r, v);
        return;
    case DC_K_MMA:
        put_mma(r, v);
        return;
    case DC_K_MATRIX:
        put_matrix(r, v);
        return;
    case DC_K_WGMMA:
        put_wgmma(r, i);
        return;
    case DC_K_WGMMA_WAIT:
        put_wgmma_wait(r, i);
        return;
    case DC_K_STORE_ASYNC:
        put_store_async(r, v);
        return;
    case DC_K_COMMIT:
    case DC_K_WAIT:
        put_order(r, i);
        return;
    case DC_K_LOOP:
        DC_PUSH_IN(&r->j->scratch, r->open, v);
        if (is_warp_loop(r, v))
            put_warp_loop(r, v);
        else
            put_loop(r, v);
        return;
    case DC_K_IF:
        DC_PUSH_IN(&r->j->scratch, r->open, v);
        indent(r);
        put(r, "if (%V) {\n", i->in[0]);
        r->depth++;
        return;
    case DC_K_ROWS:
        DC_PUSH_IN(&r->j->scratch, r->open, v);
        dc_c_tables_choose(&r->t, i, r->depth++);
        return;
    case DC_K_END:
        put_end(r);
        return;
    case DC_K_BARRIER:
        put_barrier(r, i);
        return;
    case DC_K_ANY:
        put_any(r, v);
        return;
    }
    if (r->t.plan.wide[v])
        put_wide(r, v);
    else
        put_statement(r, v);
}

/* The steps from n on that share a loop over lanes; the index behind them. */
static uint32_t put_lane_loop(render *r, uint32_t n)
{
    const dc_cstep *step = r->t.plan.step;
    uint32_t end = n;
    for (; end < r->t.plan.n && step[end].loop == step[n].loop; end++) {
        const dc_fv v = step[end].v;
        if (!r->t.plan.array[v])
            continue;
        indent(r);
        put(r, "%s%s v%u[%d];\n", r->t.plan.stored[v] ? r->t.d->aligned : "",
            type_name(r, at(r, v)->type, false), v, (int)at(r, v)->lanes);
    }
    indent(r);
    if (at(r, step[n].v)->op == DC_K_SCATTER)
        put(r, "for (int l = 0; l < %d; l++) {\n", (int)at(r, step[n].v)->lanes);
    else
        put(r, "LANES(%d) {\n", (int)at(r, step[n].v)->lanes);
    r->depth++;
    for (uint32_t k = n; k < end; k++)
        put_statement(r, step[k].v);
    r->depth--;
    indent(r);
    put(r, "}\n");
    return end;
}

/* Functions ---------------------------------------------------------------------------------- */

static bool has_atoms(const dc_flat *f)
{
    for (uint32_t b = 0; b < f->buf.n; b++)
        if (f->buf.at[b].scope == DC_SCOPE_GROUP && f->buf.at[b].atoms)
            return true;
    return false;
}

/* Of one array for all buffers of a group, which the launch brings; 0: each has its own. */
static size_t dynamic_bytes(const dc_dialect *d, const dc_flat *f)
{
    const size_t bytes = dc_flat_group_bytes(f);
    return d->most_shared > 0 && (bytes > d->most_shared || has_atoms(f)) ? bytes : 0;
}

static void put_shared(render *r, uint32_t n, int64_t count)
{
    const dc_buffer *b = &r->t.f->buf.at[n];
    const char *t = type_name(r, b->dtype, true);
    if (dynamic_bytes(r->t.d, r->t.f) > 0)
        put(r, "    %s *const b%u = (%s *)(shared + %l); /* %s, %l */\n", t, n, t,
            (int64_t)dc_flat_group_offset(r->t.f, n), b->name, count);
    else
        put(r, "    %s%s%s b%u[%l]; /* %s */\n", r->t.d->shared, r->t.d->aligned, t, n, count,
            b->name);
}

static void put_buffer(render *r, uint32_t n)
{
    const dc_buffer *b = &r->t.f->buf.at[n];
    const char *t = type_name(r, b->dtype, true), *global = r->t.d->global;
    const int64_t count = b->count > 0 ? b->count : 1;
    switch ((dc_scope)b->scope) {
    case DC_SCOPE_PARAM:
        if (b->table != 0)
            return; /* where a row is chosen */
        put(r, "    ");
        dc_c_tables_pointer(&r->t, b);
        put(r, "const b%u = (", n);
        dc_c_tables_pointer(&r->t, b);
        put(r, ")");
        dc_c_tables_parameter(&r->t, b, 0);
        put(r, "; /* %s, %l */\n", b->name, b->count);
        return;
    case DC_SCOPE_LOCAL:
        put(r, "    %s b%u[%l] __attribute__((aligned(64))); /* %s */\n", t, n, count, b->name);
        return;
    case DC_SCOPE_GROUP:
        if (r->t.d->shared == NULL)
            break;
        put_shared(r, n, count);
        return;
    case DC_SCOPE_SCRATCH:
        if (!r->t.d->workers)
            break;
        put(r, "    %s%s *const b%u = (%s%s *)((%su8 *)scratch + %l); /* %s, %l */\n", global, t, n,
            global, t, global, (int64_t)b->at, b->name, b->count);
        return;
    case DC_SCOPE_THREAD:
        break;
    }
    DC_BUG("%s: %s has no memory for buffer %s", r->t.f->name, r->t.d->name, b->name);
}

static void put_kernel(render *r)
{
    const dc_mark mark = dc_arena_mark(&r->j->scratch);
    if (!(r->t.f->simt ? r->t.d->groups : r->t.d->workers))
        DC_BUG("%s: kernels of %s are of the other kind", r->t.f->name, r->t.d->name);
    r->t.plan = dc_c_plan_make(&r->j->scratch, r->t.f, r->t.d->wide != NULL);
    r->depth = 1;
    put(r, "\n");
    dc_c_tables_define(&r->t);
    r->t.d->open(r->t.f, r->t.out);
    if (dynamic_bytes(r->t.d, r->t.f) > 0)
        put(r, "    SHARED_DYNAMIC(shared); /* %l bytes */\n",
            (int64_t)dynamic_bytes(r->t.d, r->t.f));
    for (uint32_t n = 0; n < r->t.f->buf.n; n++)
        put_buffer(r, n);
    r->open.at = NULL;
    r->open.n = r->open.cap = 0;
    r->look = r->t.d == &dc_dialect_c11 ? dc_flat_polls_find(r->t.f, &r->j->scratch) : NULL;
    r->warp = r->t.d->vote != NULL ? dc_warp_loops_find(r->t.f, &r->j->scratch) : NULL;
    if (r->look != NULL)
        put_look_at(r);
    for (uint32_t n = 0; n < r->t.plan.n;) {
        if (r->t.plan.step[n].loop != 0)
            n = put_lane_loop(r, n);
        else
            put_alone(r, r->t.plan.step[n++].v);
    }
    put(r, "}\n");
    dc_arena_rewind(&r->j->scratch, mark);
}

static bool uses(const dc_flat *const *kernels, uint32_t n, dc_kop op)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t v = 1; v < kernels[i]->inst.n; v++)
            if (kernels[i]->inst.at[v].op == op)
                return true;
    return false;
}

static void put_instructions(const dc_dialect *d, const dc_flat *const *kernels, uint32_t n,
                             dc_text *out)
{
    const bool matrices = uses(kernels, n, DC_K_LDMATRIX) && d->prelude_matrices != NULL;
    const bool async = uses(kernels, n, DC_K_COMMIT) && d->prelude_async != NULL;
    const bool warpgroups = uses(kernels, n, DC_K_WGMMA) && d->prelude_wgmma != NULL;
    if (matrices || async || warpgroups)
        dc_text_puts(out, d->prelude_shared);
    if (warpgroups)
        dc_text_puts(out, d->prelude_wgmma);
    if (matrices)
        dc_text_puts(out, d->prelude_matrices);
    if (async)
        dc_text_puts(out, d->prelude_async);
}

static bool converts_half(const dc_flat *const *kernels, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t v = 1; v < kernels[i]->inst.n; v++) {
            const dc_finst *c = &kernels[i]->inst.at[v];
            if (c->op == DC_K_CONVERT && (dc_ftype_is_short(c->type) ||
                                          dc_ftype_is_short(kernels[i]->inst.at[c->in[0]].type)))
                return true;
        }
    return false;
}

/* Whether floats become signed integers, and such integers floats. */
static bool truncates(const dc_flat *const *kernels, uint32_t n)
{
    bool to = false, from = false;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t v = 1; v < kernels[i]->inst.n; v++) {
            const dc_finst *c = &kernels[i]->inst.at[v];
            if (c->op != DC_K_CONVERT)
                continue;
            const int operand = kernels[i]->inst.at[c->in[0]].type;
            to |= dc_ftype_is_float(operand) && dc_ftype_is_signed(c->type);
            from |= dc_ftype_is_signed(operand) && dc_ftype_is_float(c->type);
        }
    return to && from;
}

static bool uses_f64(const dc_flat *const *kernels, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t b = 0; b < kernels[i]->buf.n; b++)
            if (kernels[i]->buf.at[b].dtype == DC_F64)
                return true;
        for (uint32_t v = 1; v < kernels[i]->inst.n; v++)
            if (kernels[i]->inst.at[v].type == DC_F64)
                return true;
    }
    return false;
}

static const dc_dialect *dialect_named(const char *name)
{
    static const dc_dialect *const dialects[] = {&dc_dialect_c11, &dc_dialect_opencl,
                                                 &dc_dialect_cuda};
    for (size_t i = 0; i < DC_COUNTOF(dialects); i++)
        if (strcmp(dialects[i]->name, name) == 0)
            return dialects[i];
    return NULL;
}

size_t dc_render_dynamic(const dc_flat *f, const dc_target *target)
{
    const dc_dialect *d = dialect_named(target->dialect);
    return d != NULL && f->simt ? dynamic_bytes(d, f) : 0;
}

dc_status dc_render_c(dc_job *j, const dc_flat *const *kernels, uint32_t n, const dc_target *target,
                      dc_text *out)
{
    render r = {.j = j, .t = {.out = out, .d = dialect_named(target->dialect)}};
    if (r.t.d == NULL)
        DC_BUG("'%s' is no dialect of C", target->dialect);
    if (r.t.d->truncation != NULL && truncates(kernels, n))
        dc_text_puts(out, r.t.d->truncation);
    dc_text_puts(out, r.t.d->prelude);
    dc_text_puts(out, dc_dialect_common);
    if (uses_f64(kernels, n)) {
        dc_text_puts(out, r.t.d->prelude_f64);
        dc_text_puts(out, dc_dialect_common_f64);
    }
    if (converts_half(kernels, n) && r.t.d->prelude_half != NULL)
        dc_text_puts(out, r.t.d->prelude_half);
    put_instructions(r.t.d, kernels, n, out);
    for (uint32_t i = 0; i < n; i++) {
        r.t.f = kernels[i];
        put_kernel(&r);
    }
    return DC_OK;
}
