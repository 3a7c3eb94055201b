/*
 * An entry on disk: machine code; for each kernel the struct and then how many bytes that is; how many kernels. So
 * the code stays where it is, at the front.
 */
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

/* ---- entries --------------------------------------------------------------------------------- */

enum { MOST = 64 }; /* needs in an entry */

/* What lies at the end of the n bytes of an entry: a struct and, behind it, its size. */
typedef struct last {
    size_t begin, size;
    dc_cache_key text;
} last;

static bool find_last(const char *entry, size_t n, last *out)
{
    dc_kernel_needs head;
    uint64_t size;
    if (n < sizeof size + sizeof head)
        return false;
    n -= sizeof size;
    memcpy(&size, entry + n, sizeof size);
    if (size < sizeof head || size > n)
        return false;
    memcpy(&head, entry + n - size, sizeof head);
    *out = (last){n - size, size, head.text};
    return head.nparam == (size - sizeof head) / sizeof(dc_need) &&
           needs_bytes(head.nparam) == size;
}

/* How many needs there are, and where they end. */
static bool find_end(const char *entry, size_t n, uint64_t *count, size_t *end)
{
    if (n < sizeof *count)
        return false;
    *end = n - sizeof *count;
    memcpy(count, entry + *end, sizeof *count);
    return *count > 0 && *count <= MOST;
}

static bool find_kernel(const char *entry, size_t n, dc_cache_key text, last *out)
{
    uint64_t count;
    size_t end;
    if (!find_end(entry, n, &count, &end))
        return false;
    for (; count > 0 && find_last(entry, end, out); count--, end = out->begin)
        if (memcmp(&out->text, &text, sizeof text) == 0)
            return true;
    return false;
}

static void put_needs(const dc_kernel_needs *needs, uint64_t count, dc_text *out)
{
    const uint64_t bytes = needs_bytes(needs->nparam);
    dc_text_put(out, (const char *)needs, bytes);
    dc_text_put(out, (const char *)&bytes, sizeof bytes);
    dc_text_put(out, (const char *)&count, sizeof count);
}

void dc_kernel_entry_put(const void *code, size_t n, const dc_kernel_needs *needs, dc_text *out)
{
    dc_text_put(out, code, n);
    put_needs(needs, 1, out);
}

bool dc_kernel_entry_add(const void *entry, size_t n, const dc_kernel_needs *needs, dc_text *out)
{
    uint64_t count;
    size_t end, code;
    last x;
    if (!find_end(entry, n, &count, &end) || !dc_kernel_entry_code(entry, n, &code) ||
        find_kernel(entry, n, needs->text, &x))
        return false;
    if (count == MOST) /* begun anew */
        dc_kernel_entry_put(entry, code, needs, out);
    else {
        dc_text_put(out, entry, end);
        put_needs(needs, count + 1, out);
    }
    return true;
}

bool dc_kernel_entry_code(const void *entry, size_t n, size_t *code)
{
    uint64_t count;
    last x;
    if (!find_end(entry, n, &count, code))
        return false;
    for (; count > 0; count--) {
        if (!find_last(entry, *code, &x))
            return false;
        *code = x.begin;
    }
    return true;
}

dc_kernel_needs *dc_kernel_entry_needs(const void *entry, size_t n, dc_cache_key text)
{
    last x;
    if (!find_kernel(entry, n, text, &x))
        return NULL;
    dc_kernel_needs *out = dc_xalloc(x.size);
    memcpy(out, (const char *)entry + x.begin, x.size);
    return out;
}
