/* As bytes: the struct, then how many bytes that is; so machine code in front stays where it is. */
#include "jit/cache/kernel_needs.h"

#include <string.h>

static size_t needs_bytes(uint64_t nparam)
{
    return sizeof(dc_kernel_needs) + nparam * sizeof(dc_need);
}

static void note_access(const dc_flat *f, uint32_t buf, bool stores, dc_kernel_needs *out)
{
    const dc_buffer *b = &f->buf.at[buf];
    if (b->scope != DC_SCOPE_PARAM)
        return;
    for (uint32_t r = 0; r < dc_flat_rows(f, b); r++) {
        dc_need *n = &out->param[b->param + b->step * r];
        n->bytes = (uint64_t)dc_flat_count(f, b, r) * dc_dtype_size((dc_dtype)b->dtype);
        n->written = n->written || stores;
    }
}

dc_kernel_needs *dc_kernel_needs_of(const dc_flat *f, dc_cache_key text)
{
    dc_kernel_needs *out = dc_xalloc(needs_bytes(f->nparam));
    out->positions = (uint64_t)f->positions;
    out->threads = f->threads;
    out->scratch = f->scratch;
    out->text = text;
    out->nparam = f->nparam;
    for (uint32_t b = 0; b < f->buf.n; b++)
        for (uint32_t r = 0; r < dc_flat_rows(f, &f->buf.at[b]); r++)
            out->param[f->buf.at[b].param + f->buf.at[b].step * r].align =
                f->buf.at[b].align > 0 ? f->buf.at[b].align : DC_BUFFER_ALIGN;
    for (uint32_t i = 0; i < f->order.n; i++) {
        const dc_finst *x = dc_finst_at(f, f->order.at[i]);
        if (dc_kop_loads((dc_kop)x->op) || dc_kop_stores((dc_kop)x->op))
            note_access(f, x->buf, dc_kop_stores((dc_kop)x->op), out);
    }
    return out;
}

void dc_kernel_needs_put(const dc_kernel_needs *needs, dc_text *out)
{
    const uint64_t bytes = needs_bytes(needs->nparam);
    dc_text_put(out, (const char *)needs, bytes);
    dc_text_put(out, (const char *)&bytes, sizeof bytes);
}

dc_kernel_needs *dc_kernel_needs_take(const void *bytes, size_t n, size_t *rest)
{
    const char *at = bytes;
    dc_kernel_needs head;
    uint64_t size;
    if (n < sizeof size + sizeof head)
        return NULL;
    n -= sizeof size;
    memcpy(&size, at + n, sizeof size);
    if (size < sizeof head || size > n)
        return NULL;
    *rest = n - size;
    memcpy(&head, at + *rest, sizeof head);
    if (head.nparam != (size - sizeof head) / sizeof(dc_need) || needs_bytes(head.nparam) != size)
        return NULL;
    dc_kernel_needs *out = dc_xalloc(size);
    memcpy(out, at + *rest, size);
    return out;
}
