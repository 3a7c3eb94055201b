/*
 * The C family (jit/render/render_c.h): functions, statements, loops; expressions are those of jit/render/c_expr.c.
 * Passes leave ids in order, so equal kernels have equal text.
 */
#include "jit/render/render_c.h"

#include "core/runtime/halt.h"
#include "jit/flat/flat_polls.h"
#include "jit/render/c_expr.h"

#include <inttypes.h>
#include <string.h>

typedef struct render {
    dc_job *j;
    dc_c_text t;
    int depth;
    const bool *look;   /* loops of the kernel that ask whether it is to end; or NULL */
    DC_VEC(dc_fv) open; /* LOOP or IF of each open scope */
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
    put(r, "%s;\n", barrier);
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

/* Bounds compare as signed numbers, so that loops over nothing may end anywhere. */
static void put_loop(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    const char *t = type_name(r, DC_INDEX, false);
    const bool fixed = at(r, i->in[0])->op == DC_K_CONST && at(r, i->in[1])->op == DC_K_CONST;
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

static void put_alone(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    switch ((int)i->op) {
    case DC_K_LOOP:
        DC_PUSH_IN(&r->j->scratch, r->open, v);
        put_loop(r, v);
        return;
    case DC_K_IF:
        DC_PUSH_IN(&r->j->scratch, r->open, v);
        indent(r);
        put(r, "if (%V) {\n", i->in[0]);
        r->depth++;
        return;
    case DC_K_END:
        put_look(r, r->open.at[--r->open.n]);
        r->depth--;
        indent(r);
        put(r, "}\n");
        return;
    case DC_K_BARRIER:
        put_barrier(r, i);
        return;
    case DC_K_ANY:
        put_any(r, v);
        return;
    }
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
        put(r, "%s v%u[%d];\n", type_name(r, at(r, v)->type, false), v, (int)at(r, v)->lanes);
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

static void put_parameter(render *r, uint32_t number)
{
    for (const char *p = r->t.d->param; *p != '\0'; p++) {
        if (*p == '#')
            put(r, "%u", number);
        else
            put(r, (const char[]){*p, '\0'});
    }
}

static void put_buffer(render *r, uint32_t n)
{
    const dc_buffer *b = &r->t.f->buf.at[n];
    const char *t = type_name(r, b->dtype, true), *global = r->t.d->global;
    const char *only = b->mode == DC_MODE_IN ? "const " : "";
    const int64_t count = b->count > 0 ? b->count : 1;
    switch ((dc_scope)b->scope) {
    case DC_SCOPE_PARAM:
        put(r, "    %s%s%s *const b%u = (%s%s%s *)", global, only, t, n, global, only, t);
        put_parameter(r, b->param);
        put(r, "; /* %s, %l */\n", b->name, b->count);
        return;
    case DC_SCOPE_LOCAL:
        put(r, "    %s b%u[%l] __attribute__((aligned(64))); /* %s */\n", t, n, count, b->name);
        return;
    case DC_SCOPE_GROUP:
        if (r->t.d->shared == NULL)
            break;
        put(r, "    %s%s b%u[%l]; /* %s */\n", r->t.d->shared, t, n, count, b->name);
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
    r->t.plan = dc_c_plan_make(&r->j->scratch, r->t.f);
    r->depth = 1;
    put(r, "\n");
    r->t.d->open(r->t.f, r->t.out);
    for (uint32_t n = 0; n < r->t.f->buf.n; n++)
        put_buffer(r, n);
    r->open.at = NULL;
    r->open.n = r->open.cap = 0;
    r->look = r->t.d == &dc_dialect_c11 ? dc_flat_polls_find(r->t.f, &r->j->scratch) : NULL;
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

dc_status dc_render_c(dc_job *j, const dc_flat *const *kernels, uint32_t n, const dc_target *target,
                      dc_text *out)
{
    static const dc_dialect *const dialects[] = {&dc_dialect_c11, &dc_dialect_opencl,
                                                 &dc_dialect_cuda};
    render r = {.j = j, .t.out = out};
    for (size_t i = 0; i < DC_COUNTOF(dialects); i++)
        if (strcmp(dialects[i]->name, target->dialect) == 0)
            r.t.d = dialects[i];
    if (r.t.d == NULL)
        DC_BUG("'%s' is no dialect of C", target->dialect);
    dc_text_puts(out, r.t.d->prelude);
    dc_text_puts(out, dc_dialect_common);
    if (uses_f64(kernels, n)) {
        dc_text_puts(out, r.t.d->prelude_f64);
        dc_text_puts(out, dc_dialect_common_f64);
    }
    for (uint32_t i = 0; i < n; i++) {
        r.t.f = kernels[i];
        put_kernel(&r);
    }
    return DC_OK;
}
