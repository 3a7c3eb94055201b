/*
 * LLVM IR (jit/render/render_llvm.h): modules, functions, blocks. What computes is written by
 * jit/render/llvm_expr.c, what touches memory by jit/render/llvm_memory.c.
 *
 * Blocks are l<n> (loop), t<n> (latch), d<n> (done) by the id of the LOOP or IF. Passes leave ids in
 * order, so equal kernels have equal text.
 */
#include "jit/render/render_llvm.h"

#include "core/runtime/halt.h"
#include "jit/flat/flat_polls.h"
#include "jit/render/llvm_expr.h"
#include "jit/render/llvm_memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MOST_TRIPS = 1 << 20 };

typedef struct render {
    dc_llvm_text t;
    char block[24];   /* the one being written */
    bool nontemporal; /* some kernel stores past the caches */
    const bool *look; /* loops of the kernel that ask whether it is to end; or NULL */
} render;

static const dc_finst *at(const render *r, dc_fv v)
{
    return dc_lltext_at(&r->t, v);
}

/* Structure ---------------------------------------------------------------------------------- */

static void begin_block(render *r, char letter, dc_fv v)
{
    snprintf(r->block, sizeof r->block, "%c%" PRIu32, letter, v);
    dc_text_printf(r->t.out, "%s:\n", r->block);
}

/* Loops of constant bounds run at least once: flattening leaves out the others. */
static void put_loop(render *r, dc_fv v)
{
    const dc_finst *i = at(r, v);
    const dc_llname t = dc_llvm_text_type(&r->t, DC_INDEX, 1);
    char from[24];
    memcpy(from, r->block, sizeof from);
    if (at(r, i->in[0])->op != DC_K_CONST || at(r, i->in[1])->op != DC_K_CONST) {
        dc_llvm_text_line(&r->t, "%%v%u.any = icmp slt %T, %V", v, i->in[0], i->in[1]);
        dc_llvm_text_line(&r->t, "br i1 %%v%u.any, label %%l%u, label %%d%u", v, v, v);
    } else {
        dc_llvm_text_line(&r->t, "br label %%l%u", v);
    }
    begin_block(r, 'l', v);
    dc_llvm_text_line(&r->t, "%%v%u = phi %s [ %V, %%%s ], [ %%v%u.next, %%t%u ]", v, t.s, i->in[0],
                      from, v, v);
}

static void put_if(render *r, dc_fv v)
{
    dc_llvm_text_line(&r->t, "br %T, label %%l%u, label %%d%u", at(r, v)->in[0], v, v);
    begin_block(r, 'l', v);
}

/*
 * How often a loop goes round: without it LLVM takes deeper loops for hotter ones, and keeps constants of an
 * epilogue in registers while the sums of the long loop before it go to memory and back.
 */
static void put_trips(render *r, const dc_finst *loop)
{
    const dc_finst *from = at(r, loop->in[0]), *to = at(r, loop->in[1]);
    if (from->op != DC_K_CONST || to->op != DC_K_CONST)
        return;
    const uint64_t again = to->imm - from->imm - 1;
    dc_text_printf(r->t.out, ", !prof !{!\"branch_weights\", i32 %d, i32 1}",
                   (int)(again < MOST_TRIPS ? again : MOST_TRIPS));
}

/* At the end of an iteration: the kernel may be ended here. */
static void put_look(render *r, dc_fv loop)
{
    dc_llvm_text_line(&r->t, "%%v%u.flag = load atomic i8, ptr %%look.flag monotonic, align 1",
                      loop);
    dc_llvm_text_line(&r->t, "%%v%u.set = icmp ne i8 %%v%u.flag, 0", loop, loop);
    dc_llvm_text_line(&r->t, "br i1 %%v%u.set, label %%a%u, label %%t%u", loop, loop, loop);
    begin_block(r, 'a', loop);
    dc_llvm_text_line(&r->t, "%%v%u.told = call i32 %%look.ask(ptr %%look.ctx)", loop);
    dc_llvm_text_line(&r->t, "%%v%u.over = icmp ne i32 %%v%u.told, 0", loop, loop);
    dc_llvm_text_line(&r->t, "br i1 %%v%u.over, label %%halt, label %%t%u", loop, loop);
}

static void put_end(render *r, dc_fv opened)
{
    const dc_finst *i = at(r, opened);
    if (i->op == DC_K_IF) {
        dc_llvm_text_line(&r->t, "br label %%d%u", opened);
    } else {
        const dc_llname t = dc_llvm_text_type(&r->t, DC_INDEX, 1);
        if (r->look != NULL && r->look[opened])
            put_look(r, opened);
        else
            dc_llvm_text_line(&r->t, "br label %%t%u", opened);
        begin_block(r, 't', opened);
        dc_llvm_text_line(&r->t, "%%v%u.next = add nuw nsw %s %%v%u, 1", opened, t.s, opened);
        dc_llvm_text_line(&r->t, "%%v%u.more = icmp slt %s %%v%u.next, %V", opened, t.s, opened,
                          i->in[1]);
        dc_text_printf(r->t.out,
                       "  br i1 %%v%" PRIu32 ".more, label %%l%" PRIu32 ", label %%d%" PRIu32,
                       opened, opened, opened);
        put_trips(r, i);
        dc_text_puts(r->t.out, "\n");
    }
    begin_block(r, 'd', opened);
}

static void put_inst(render *r, dc_fv v)
{
    switch ((dc_kform)dc_kop_row_of((dc_kop)at(r, v)->op)->form) {
    case DC_KFORM_LEAF:
        return;
    case DC_KFORM_MEM:
        dc_llvm_memory_put(&r->t, v);
        return;
    case DC_KFORM_SAME:
    case DC_KFORM_TEST:
    case DC_KFORM_PICK:
    case DC_KFORM_CONV:
    case DC_KFORM_LANE:
        dc_llvm_expr_put(&r->t, v);
        return;
    case DC_KFORM_CTRL:
        break;
    }
    DC_BUG("structure is not written here");
}

/* Functions ---------------------------------------------------------------------------------- */

static void put_buffers(render *r)
{
    for (uint32_t n = 0; n < r->t.f->buf.n; n++) {
        const dc_buffer *b = &r->t.f->buf.at[n];
        if (b->scope == DC_SCOPE_LOCAL) {
            dc_llvm_text_line(&r->t, "%%b%u = alloca [%l x %s], align 64", n,
                              b->count > 0 ? b->count : 1,
                              dc_llvm_text_scalar(&r->t, b->dtype, true));
            continue;
        }
        if (b->scope == DC_SCOPE_SCRATCH) {
            dc_llvm_text_line(&r->t, "%%b%u = getelementptr inbounds i8, ptr %%scratch, i64 %l", n,
                              (int64_t)b->at);
            continue;
        }
        dc_llvm_text_line(&r->t, "%%b%u.p = getelementptr inbounds ptr, ptr %%buf, i64 %u", n,
                          b->param);
        dc_llvm_text_line(&r->t, "%%b%u = load ptr, ptr %%b%u.p, align 8", n, n);
    }
}

static void put_body(render *r)
{
    dc_fv *open = DC_NEW_ARRAY(&r->t.j->scratch, dc_fv, r->t.f->order.n);
    uint32_t depth = 0;
    for (uint32_t n = 0; n < r->t.f->order.n; n++) {
        const dc_fv v = r->t.f->order.at[n];
        const dc_kop op = (dc_kop)at(r, v)->op;
        if (op == DC_K_END) {
            put_end(r, open[--depth]);
        } else if (op == DC_K_LOOP || op == DC_K_IF) {
            open[depth++] = v;
            if (op == DC_K_LOOP)
                put_loop(r, v);
            else
                put_if(r, v);
        } else {
            put_inst(r, v);
        }
    }
}

/* On x86 stores past the caches are ordered with no others. */
static void put_fence(render *r, const dc_target *target)
{
    bool nontemporal = false;
    for (uint32_t n = 0; n < r->t.f->buf.n; n++)
        nontemporal |= r->t.f->buf.at[n].nontemporal;
    r->nontemporal |= nontemporal;
    if (!nontemporal || strncmp(target->triple, "x86_64", 6) != 0)
        return;
    dc_llvm_text_line(&r->t, "call void @llvm.x86.sse.sfence()");
    dc_llvm_text_declare(&r->t, "void @llvm.x86.sse.sfence()");
}

/* The dc_look, whose address lies in front of the thread's scratch memory. */
static void put_look_at(render *r)
{
    static const char *const member[] = {"flag", "ask", "ctx"};
    dc_llvm_text_line(&r->t, "%%look.p = getelementptr i8, ptr %%scratch, i64 %l",
                      (int64_t)-DC_LOOK_BYTES);
    dc_llvm_text_line(&r->t, "%%look = load ptr, ptr %%look.p, align 8");
    for (int i = 0; i < 3; i++) {
        dc_llvm_text_line(&r->t, "%%look.%s.p = getelementptr i8, ptr %%look, i64 %l", member[i],
                          (int64_t)(8 * i));
        dc_llvm_text_line(&r->t, "%%look.%s = load ptr, ptr %%look.%s.p, align 8", member[i],
                          member[i]);
    }
}

static void put_kernel(render *r, const dc_target *target)
{
    const dc_mark mark = dc_arena_mark(&r->t.j->scratch);
    dc_text_printf(r->t.out,
                   "\ndefine void @\"%s\"(ptr %%buf, ptr %%block, ptr %%scratch, i64 %%begin, "
                   "i64 %%end) #0 {\n",
                   r->t.f->name);
    snprintf(r->block, sizeof r->block, "entry");
    dc_text_puts(r->t.out, "entry:\n");
    put_buffers(r);
    r->look = dc_flat_polls_find(r->t.f, &r->t.j->scratch);
    if (r->look != NULL)
        put_look_at(r);
    put_body(r);
    if (r->look != NULL)
        dc_text_puts(r->t.out, "  br label %halt\nhalt:\n");
    put_fence(r, target);
    dc_text_puts(r->t.out, "  ret void\n}\n");
    dc_arena_rewind(&r->t.j->scratch, mark);
}

dc_status dc_render_llvm(dc_job *j, const dc_flat *const *kernels, uint32_t n,
                         const dc_target *target, dc_text *out)
{
    render *r = DC_NEW(&j->scratch, render);
    r->t.j = j;
    r->t.out = out;
    r->t.vector_bytes = target->vector_bytes;
    dc_job_defer_text(j, &r->t.declared);
    if (target->triple[0] != '\0')
        dc_text_printf(out, "target triple = \"%s\"\n", target->triple);
    for (uint32_t i = 0; i < n; i++) {
        r->t.f = kernels[i];
        put_kernel(r, target);
    }
    dc_text_puts(out, "\n");
    if (r->t.declared.s != NULL)
        dc_text_puts(out, r->t.declared.s);
    dc_text_printf(
        out, "\nattributes #0 = { nounwind \"no-builtins\" \"prefer-vector-width\"=\"%d\" }\n",
        target->vector_bytes * 8);
    if (r->nontemporal)
        dc_text_puts(out, "!0 = !{i32 1}\n");
    dc_job_text_end(j, &r->t.declared);
    return DC_OK;
}
