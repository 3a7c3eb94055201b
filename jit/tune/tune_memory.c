/*
 * Memory for launches of a kernel that is timed (jit/tune/tune_impl.h), filled with what real memory may hold: floats from
 * 0.25 to 1, so that sums do not cancel, roots and logarithms are numbers and no product vanishes; integers that choose
 * elements lie in the range that the kernel reads; sizes known at run time are no less than their bounds.
 */
#include "core/base/bits.h"
#include "jit/base/tuning.h"
#include "jit/tune/tune_impl.h"

#include <math.h>
#include <string.h>

enum {
    BLOCK = 1 << 18,          /* bytes that are made, uploaded or compared at a time */
    ELEMENTS = BLOCK / 8 - 7, /* of a block, of whatever type: no multiple of a row */
    MOST_SETS = 16
};
#define MOST_BYTES ((size_t)1 << 30)

/* ---- parameters ------------------------------------------------------------------------------ */

/* Does it say from where on elements are not needed? */
static bool is_limit(const dc_stmt *first, uint32_t buf)
{
    for (const dc_stmt *s = first; s != NULL; s = s->next) {
        if (s->kind == DC_STMT_LOOP && is_limit(s->body, buf))
            return true;
        for (uint32_t i = 0; i < s->nlimit; i++)
            if (s->limit[i].buf == buf)
                return true;
    }
    return false;
}

static void find_range(const dc_kernel *k, dc_job *j, uint32_t buf, dc_tune_param *p)
{
    p->lo = 0;
    p->hi = p->dtype == DC_BOOL ? 1 : 7;
    for (uint32_t a = 0; a < k->atom.n; a++) {
        const dc_atom_node *x = &k->atom.at[a];
        if (x->kind != DC_ATOM_VALUE || x->lo > x->hi)
            continue;
        const bool *part = dc_vx_parts(k, &j->scratch, x->value);
        for (dc_vx v = 1; v <= x->value; v++)
            if (part[v] && k->vx.at[v].kind == DC_VX_LOAD && k->vx.at[v].buf == buf) {
                p->lo = dc_max_i64(x->lo, 0);
                p->hi = dc_max_i64(x->hi, p->lo);
            }
    }
    if (p->hi - p->lo > INT32_MAX)
        p->hi = p->lo + 255;
    if (is_limit(k->root, buf)) /* all of them are: results can be compared */
        p->lo = p->hi = INT32_MAX;
}

/* Its own memory, or that of a parameter before it which the launch binds to the same place. */
static void place(dc_tune_memory *m, uint32_t p, const dc_command *command)
{
    dc_tune_param *x = &m->param[p];
    for (uint32_t q = 0; command != NULL && q < p; q++) {
        const dc_bind a = command->bind[p], b = command->bind[q];
        if (a.slot != b.slot || a.offset != b.offset || m->param[q].bytes != x->bytes)
            continue;
        dc_tune_param *other = &m->param[q];
        x->at = other->at;
        x->kept = other->kept = x->kept || other->kept || x->written || other->written;
        x->written = other->written = x->written || other->written;
        return;
    }
    x->at = m->set_bytes;
    m->set_bytes += dc_align_up(x->bytes, DC_ALIGN) + DC_ALIGN;
}

static void read_params(dc_tune_memory *m, dc_job *j, const dc_kernel *k, const dc_command *command)
{
    m->nparam = k->nparam;
    m->param = DC_NEW_ARRAY(&j->scratch, dc_tune_param, k->nparam);
    for (uint32_t b = 0; b < k->buf.n; b++) {
        const dc_buffer *from = &k->buf.at[b];
        if (from->scope != DC_SCOPE_PARAM)
            continue;
        dc_tune_param *p = &m->param[from->param];
        *p = (dc_tune_param){.dtype = (dc_dtype)from->dtype,
                             .count = from->count,
                             .bytes = (size_t)from->count * dc_dtype_size((dc_dtype)from->dtype),
                             .written = from->mode != DC_MODE_IN,
                             .kept = from->mode == DC_MODE_INOUT};
        find_range(k, j, b, p);
        m->cold = m->cold || from->uncached;
    }
    for (uint32_t p = 0; p < m->nparam; p++)
        place(m, p, command != NULL && command->nbind == m->nparam ? command : NULL);
    for (uint32_t p = 0; p < m->nparam; p++)
        m->kept = m->kept || m->param[p].kept;
}

/*
 * Two sets at least, to compare results. Where the plan found that some operand is in no cache when the kernel begins
 * (dc_buffer.uncached), as many as the last-level cache does not hold.
 */
static uint32_t sets_of(const dc_tune_memory *m, const dc_target *t)
{
    const size_t each = m->set_bytes > 0 ? m->set_bytes : 1;
    size_t n = m->cold ? 2 * t->l3 / each + 1 : 2;
    if (n > MOST_SETS)
        n = MOST_SETS;
    if (n * each > MOST_BYTES)
        n = MOST_BYTES / each;
    return n < 2 ? 2 : (uint32_t)n;
}

dc_status dc_tune_memory_make(dc_tune_memory *m, dc_job *j, const dc_kernel *k, const dc_target *t,
                              const dc_command *command)
{
    read_params(m, j, k, command);
    m->nset = sets_of(m, t);
    m->block = dc_xalloc(BLOCK);
    DC_TRY(dc_storage_new(m->rt, j, m->nset * m->set_bytes + DC_ALIGN, &m->store));
    return dc_tune_memory_fill(m, j, 0, m->nset - 1, true);
}

void dc_tune_memory_free(dc_tune_memory *m)
{
    if (m->store != NULL)
        dc_storage_free(m->store);
    dc_xfree(m->block);
    m->store = NULL;
    m->block = NULL;
}

/* ---- what is in it ----------------------------------------------------------------------------- */

static void make_block(const dc_tune_memory *m, uint32_t param)
{
    const dc_tune_param *p = &m->param[param];
    const size_t size = dc_dtype_size(p->dtype);
    const int64_t n = dc_min_i64(p->count, ELEMENTS);
    uint64_t h = param;
    for (int64_t i = 0; i < n; i++) {
        h = dc_hash_mix(h + 1, (uint64_t)i);
        const uint64_t bits =
            dc_dtype_is_float(p->dtype)
                ? dc_bits_of(p->dtype, 0.25 + (double)(h >> 40) * 0x0.cp-24)
                : dc_bits_canonical(p->dtype,
                                    (uint64_t)p->lo + (h >> 8) % (uint64_t)(p->hi - p->lo + 1));
        dc_bits_store(p->dtype, m->block + (size_t)i * size, bits);
    }
}

static char *at(const dc_tune_memory *m, uint32_t set, const dc_tune_param *p)
{
    return (char *)m->store->mem + set * m->set_bytes + p->at;
}

dc_status dc_tune_memory_fill(const dc_tune_memory *m, dc_job *j, uint32_t first, uint32_t last,
                              bool all)
{
    const dc_device_ops *ops = m->rt->device->ops;
    for (uint32_t n = 0; n < m->nparam; n++) {
        const dc_tune_param *p = &m->param[n];
        const size_t each = ELEMENTS * dc_dtype_size(p->dtype);
        if (!all && !p->written)
            continue;
        make_block(m, n);
        for (uint32_t set = first; set <= last; set++)
            for (size_t done = 0; done < p->bytes; done += each) {
                const size_t left = p->bytes - done;
                DC_TRY(ops->upload(m->rt->device, j, at(m, set, p) + done, m->block,
                                   left < each ? left : each));
            }
    }
    return DC_OK;
}

/* ---- comparing --------------------------------------------------------------------------------- */

/* Of numbers that two orders of summation give: relative to the largest of them, since terms are all positive. */
static double bound_of(dc_dtype t, int64_t terms)
{
    const double unit = ldexp(1, -1 - dc_dtype_fraction(t));
    const double sum = t == DC_F64 ? unit : 0x1p-24;
    return 2 * unit + 2 * (double)terms * sum;
}

typedef struct comparison {
    double most, apart; /* the largest number, the largest difference of two */
    bool differs;       /* in a way that no order of summation explains */
} comparison;

static void compare(dc_dtype t, const char *a, const char *b, size_t bytes, comparison *c)
{
    const size_t size = dc_dtype_size(t);
    if (memcmp(a, b, bytes) == 0 && c->apart == 0)
        return;
    for (size_t i = 0; i < bytes && !c->differs; i += size) {
        const uint64_t x = dc_bits_load(t, a + i), y = dc_bits_load(t, b + i);
        const double v = dc_value_of(t, x), w = dc_value_of(t, y);
        if (isfinite(v))
            c->most = fmax(c->most, fabs(v));
        if (x == y || (isnan(v) && isnan(w)))
            continue;
        if (!dc_dtype_is_float(t) || !isfinite(v) || !isfinite(w))
            c->differs = true;
        else
            c->apart = fmax(c->apart, fabs(v - w));
    }
}

/* Twice, so that the largest number of all is known where there is a difference. */
static dc_status compare_param(const dc_tune_memory *m, dc_job *j, const dc_tune_param *p,
                               comparison *c)
{
    const dc_device_ops *ops = m->rt->device->ops;
    const size_t half = BLOCK / 2;
    for (int round = 0; round < 2 && !c->differs; round++) {
        for (size_t done = 0; done < p->bytes; done += half) {
            const size_t left = p->bytes - done, n = left < half ? left : half;
            DC_TRY(ops->download(m->rt->device, j, m->block, at(m, 0, p) + done, n));
            DC_TRY(ops->download(m->rt->device, j, m->block + half, at(m, 1, p) + done, n));
            compare(p->dtype, m->block, m->block + half, n, c);
        }
        if (c->apart == 0)
            break;
    }
    return DC_OK;
}

dc_status dc_tune_memory_same(const dc_tune_memory *m, dc_job *j, int64_t terms, bool *same)
{
    *same = true;
    for (uint32_t n = 0; n < m->nparam && *same; n++) {
        const dc_tune_param *p = &m->param[n];
        comparison c = {.most = 0};
        if (!p->written)
            continue;
        DC_TRY(compare_param(m, j, p, &c));
        *same = !c.differs &&
                (c.apart == 0 || (terms > 0 && c.apart <= bound_of(p->dtype, terms) * c.most));
    }
    return DC_OK;
}
