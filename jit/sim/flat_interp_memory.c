/*
 * Memory of the interpreter of the flat form: buffers, loads and stores, and the detection of races.
 *
 * Shadows. An element that more than one thread or work item can reach, and that one of them may write,
 * has a shadow: its last writer and its last readers. Two touches, one of them a write, race if
 *   - work items or groups differ: nothing orders these, or
 *   - threads of a group differ with no barrier of the group between, nor one of lanes that both
 *     belong to.
 * Parameters that overlap (an update in place) share their shadows. Those that overlap with none
 * that is written have none.
 */
#include "jit/sim/flat_interp_impl.h"

#include <inttypes.h>
#include <string.h>

enum { BASE_ALIGN = 64, SPOILT = 0xff };

/* Races ------------------------------------------------------------------------------------- */

static uint32_t run_of(const fi *m, uint32_t thread)
{
    return m->f->lanes > 0 ? thread / (uint32_t)m->f->lanes : thread;
}

/* Did everything that the mark stands for come before now for certain, or was it this thread? */
static bool is_ordered(const fi *m, const fi_memory *b, const fi_mark *k)
{
    const fi_now *now = &m->now;
    if (k->group == 0)
        return true;
    if (k->spread & FI_GROUPS)
        return false;
    if (k->group != now->group)
        return b->scope != DC_SCOPE_PARAM;
    if (k->epoch != now->epoch)
        return true;
    if ((k->spread & FI_RUNS) || run_of(m, k->thread) != now->run)
        return false;
    return k->meet < now->meet[now->run] || (k->thread == now->thread && !k->many);
}

static void note(const fi *m, fi_mark *k, uint8_t spread)
{
    const fi_now *now = &m->now;
    *k = (fi_mark){.group = now->group,
                   .epoch = now->epoch,
                   .meet = now->meet[now->run],
                   .thread = (uint16_t)now->thread,
                   .spread = spread};
}

static void note_reader(const fi *m, const fi_memory *b, fi_mark *k)
{
    const fi_now *now = &m->now;
    const bool other_group = k->group != now->group;
    if (k->group == 0 || (other_group && b->scope != DC_SCOPE_PARAM))
        note(m, k, 0);
    else if (other_group)
        note(m, k, FI_GROUPS);
    else if (k->epoch != now->epoch)
        note(m, k, k->spread & FI_GROUPS);
    else if (run_of(m, k->thread) != now->run)
        k->spread |= FI_RUNS;
    else if (k->meet < now->meet[now->run])
        note(m, k, k->spread);
    else
        k->many = k->many || k->thread != now->thread;
}

static bool report_race(fi *m, const fi_step *s, uint64_t i, const fi_mark *k, const char *did)
{
    const char *name = m->f->buf.at[s->buf].name;
    if (k->group != m->now.group || (k->spread & FI_GROUPS))
        return dc_fi_fail(m, s, "%s[%" PRIu64 "] races: position %" PRIu32 " %s it too", name, i,
                          k->group - 1, did);
    return dc_fi_fail(m, s, "%s[%" PRIu64 "] races: thread %u %s it too, with no barrier between",
                      name, i, (unsigned)k->thread, did);
}

static bool check_race(fi *m, const fi_step *s, const fi_memory *b, uint64_t i, bool writes)
{
    fi_shadow *x = b->shadow + i * b->units;
    for (uint32_t u = 0; u < b->units; u++) {
        if (!is_ordered(m, b, &x[u].writer))
            return report_race(m, s, i, &x[u].writer, "writes");
        if (writes && !is_ordered(m, b, &x[u].reader))
            return report_race(m, s, i, &x[u].reader, "reads");
        if (writes)
            note(m, &x[u].writer, 0);
        else
            note_reader(m, b, &x[u].reader);
    }
    return true;
}

/* Loads and stores -------------------------------------------------------------------------- */

/* Address of an element, NULL after a failure. */
static inline char *element(fi *m, const fi_step *s, uint64_t i, bool writes)
{
    const fi_memory *b = &m->mem[s->buf];
    i &= UINT64_MAX >> (64 - m->f->index_bits); /* a sum with a lane wraps, too */
    if (i >= b->count) {
        dc_fi_fail(m, s, "%s[%" PRId64 "] is outside the buffer of %" PRIu64 " elements",
                   m->f->buf.at[s->buf].name, (int64_t)i, b->count);
        return NULL;
    }
    if (b->shadow != NULL && !check_race(m, s, b, i, writes))
        return NULL;
    return b->base + i * b->size;
}

static inline uint64_t read_pattern(uint8_t dtype, const char *at)
{
    if (dtype == DC_F32) {
        uint32_t bits;
        memcpy(&bits, at, sizeof bits);
        return bits;
    }
    return dc_bits_load((dc_dtype)dtype, at);
}

static inline void write_pattern(uint8_t dtype, char *at, uint64_t bits)
{
    const uint32_t word = (uint32_t)bits;
    if (dtype == DC_F32)
        memcpy(at, &word, sizeof word);
    else
        dc_bits_store((dc_dtype)dtype, at, bits);
}

/* The first address is as aligned as the instruction says, in memory that is itself. */
static bool check_align(fi *m, const fi_step *s, uint64_t i)
{
    if ((i * m->mem[s->buf].size & (uint64_t)(s->align - 1)) == 0)
        return true;
    return dc_fi_fail(m, s, "%s[%" PRId64 "] is not aligned to %d bytes", m->f->buf.at[s->buf].name,
                      (int64_t)i, (int)s->align);
}

static bool is_on(const fi_step *s, const uint64_t *v, uint32_t mask, int n)
{
    return !s->masked || v[mask + (uint32_t)n] != 0;
}

static bool load_lanes(fi *m, const fi_step *s, uint64_t *v)
{
    const uint64_t first = v[s->in[0]];
    if (!s->masked && !check_align(m, s, first))
        return false;
    for (int n = 0; n < s->lanes; n++) {
        v[s->out + n] = 0;
        if (!is_on(s, v, s->in[1], n))
            continue;
        const char *at = element(m, s, first + s->imm * (uint64_t)n, false);
        if (at == NULL)
            return false;
        v[s->out + n] = read_pattern(s->type, at);
    }
    return true;
}

static bool gather(fi *m, const fi_step *s, uint64_t *v)
{
    for (int n = 0; n < s->lanes; n++) {
        v[s->out + n] = 0;
        if (!is_on(s, v, s->in[1], n))
            continue;
        const char *at = element(m, s, v[s->in[0] + n], false);
        if (at == NULL)
            return false;
        v[s->out + n] = read_pattern(s->type, at);
    }
    return true;
}

static bool store(fi *m, const fi_step *s, uint64_t *v)
{
    const uint64_t first = v[s->in[0]];
    if (!s->masked && !check_align(m, s, first))
        return false;
    for (int n = 0; n < s->lanes; n++) {
        if (!is_on(s, v, s->in[2], n))
            continue;
        char *at = element(m, s, first + s->imm * (uint64_t)n, true);
        if (at == NULL)
            return false;
        write_pattern(s->type, at, v[s->in[1] + n]);
    }
    return true;
}

static bool scatter(fi *m, const fi_step *s, uint64_t *v)
{
    for (int n = 0; n < s->lanes; n++) {
        if (!is_on(s, v, s->in[2], n))
            continue;
        char *at = element(m, s, v[s->in[0] + n], true);
        if (at == NULL)
            return false;
        write_pattern(s->type, at, v[s->in[1] + n]);
    }
    return true;
}

/* One lane, no mask, no more aligned than its type: what most instructions of threads are. */
static bool load_one(fi *m, const fi_step *s, uint64_t *v)
{
    const char *at = element(m, s, v[s->in[0]], false);
    if (at == NULL)
        return false;
    v[s->out] = read_pattern(s->type, at);
    return true;
}

static bool store_one(fi *m, const fi_step *s, uint64_t *v)
{
    char *at = element(m, s, v[s->in[0]], true);
    if (at == NULL)
        return false;
    write_pattern(s->type, at, v[s->in[1]]);
    return true;
}

/*
 * Async stores: as late as they may, at the wait for their group, and never where none waits. Until then the elements are no
 * numbers. They count as written from the beginning and once more at the end, so that what meets them on either side races.
 */
static bool store_async(fi *m, const fi_step *s, uint64_t *v)
{
    fi_thread *t = &m->thread[m->now.thread];
    fi_flight x = {.step = s, .at = v[s->in[0]], .group = t->committed};
    if (!check_align(m, s, x.at))
        return false;
    for (int n = 0; n < s->lanes; n++) {
        char *at = element(m, s, x.at + (uint64_t)n, true);
        if (at == NULL)
            return false;
        memset(at, SPOILT, m->mem[s->buf].size);
        x.value[n] = v[s->in[1] + n];
    }
    DC_PUSH_IN(&m->j->scratch, t->flight, x);
    return true;
}

static bool commit(fi *m, const fi_step *s, uint64_t *v)
{
    DC_UNUSED(s);
    DC_UNUSED(v);
    m->thread[m->now.thread].committed++;
    return true;
}

static bool wait_for(fi *m, const fi_step *s, uint64_t *v)
{
    DC_UNUSED(v);
    fi_thread *t = &m->thread[m->now.thread];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < t->flight.n; i++) {
        const fi_flight x = t->flight.at[i];
        if (x.group + s->imm >= t->committed) {
            t->flight.at[kept++] = x;
            continue;
        }
        for (int n = 0; n < x.step->lanes; n++) {
            char *at = element(m, x.step, x.at + (uint64_t)n, true);
            if (at == NULL)
                return false;
            write_pattern(x.step->type, at, x.value[n]);
        }
    }
    t->flight.n = kept;
    return true;
}

/* Row r of matrix q, whose address lane 8 * q + r has, to the lanes that get elements of it. */
static bool load_row(fi *m, const fi_step *s, uint32_t first, uint32_t q, uint32_t r)
{
    const uint64_t at = m->thread[first + 8 * q + r].v[s->in[0]];
    dc_fi_select_thread(m, first + 8 * q + r);
    if (!check_align(m, s, at))
        return false;
    const uint32_t each = 4 / (uint32_t)m->mem[s->buf].size; /* elements of a lane */
    for (uint32_t e = 0; e < 4 * each; e++) {
        const char *from = element(m, s, at + e, false);
        if (from == NULL)
            return false;
        const uint32_t lane = s->imm == 1 ? 4 * e + r / 2 : 4 * r + e / each;
        const uint32_t which = each * q + (s->imm == 1 ? r % 2 : e % each);
        const uint64_t bits = read_pattern(s->type, from);
        m->thread[first + lane].v[s->out + which] =
            s->imm == 2 ? dc_tf32_bits((uint32_t)bits) : bits;
    }
    return true;
}

bool dc_fi_load_matrices(fi *m, const fi_step *s, uint32_t threads)
{
    for (uint32_t first = 0; first < threads; first += 32)
        for (uint32_t q = 0; q < s->lanes * m->mem[s->buf].size / 4; q++)
            for (uint32_t r = 0; r < 8; r++)
                if (!load_row(m, s, first, q, r))
                    return false;
    return true;
}

/* Where a matrix begins is its value. */
static bool matrix(fi *m, const fi_step *s, uint64_t *v)
{
    DC_UNUSED(m);
    v[s->out] = v[s->in[0]];
    return true;
}

/*
 * Element (row, k) of a matrix in atoms, row being m or n: rows of memory have 64 elements, and in each row pieces of 8
 * stand at their number and that of the row, exclusive or.
 */
static bool read_atoms(fi *m, const fi_step *s, int which, uint64_t start, uint32_t row, uint32_t k,
                       double *out)
{
    const dc_finst *x = s->matrix[which];
    const fi_step at = {.op = x->op, .type = x->type, .lanes = 1, .buf = x->buf, .line = s->line};
    const uint64_t leading = x->imm / 2; /* 2 bytes to an element */
    uint64_t i = start + (x->imm == 0 ? (uint64_t)64 * row + k
                                      : (uint64_t)64 * k + row / 64 * leading + row % 64);
    i ^= (i / 64 % 8) * 8;
    const char *from = element(m, &at, i, false);
    if (from != NULL)
        *out = dc_value_of((dc_dtype)x->type, read_pattern(x->type, from));
    return from != NULL;
}

/* Both operands of one product; lanes share what they read, so that it counts as of the first one of each warp. */
static bool read_operands(fi *m, const fi_step *s, uint32_t first, double (*a)[16], double (*b)[16])
{
    const uint64_t *v = m->thread[first].v;
    for (uint32_t t = first + 1; t < first + 128; t++)
        for (int n = 1; n < 3; n++)
            if (m->thread[t].v[s->in[n]] != v[s->in[n]]) {
                dc_fi_select_thread(m, t);
                return dc_fi_fail(m, s, "this thread has other matrices");
            }
    for (uint32_t warp = 0; warp < 4; warp++) {
        dc_fi_select_thread(m, first + 32 * warp);
        for (uint32_t k = 0; k < 16; k++) {
            for (uint32_t row = 16 * warp; row < 16 * warp + 16; row++)
                if (!read_atoms(m, s, 0, v[s->in[1]], row, k, &a[row][k]))
                    return false;
            for (uint32_t col = 0; col < 2u * s->lanes; col++)
                if (!read_atoms(m, s, 1, v[s->in[2]], col, k, &b[col][k]))
                    return false;
        }
    }
    return true;
}

/* At once, terms in order, though a machine may take until the wait, and another order. */
bool dc_fi_multiply_groups(fi *m, const fi_step *s, uint32_t threads)
{
    static const uint32_t rows = 64, most = 256;
    double(*a)[16] = (double(*)[16])DC_NEW_ARRAY(&m->j->scratch, double, rows * 16);
    double(*b)[16] = (double(*)[16])DC_NEW_ARRAY(&m->j->scratch, double, most * 16);
    for (uint32_t first = 0; first < threads; first += 128) {
        if (!read_operands(m, s, first, a, b))
            return false;
        for (uint32_t t = first; t < first + 128; t++) {
            dc_fi_select_thread(m, t);
            dc_fi_memory_of(m, &m->thread[t]);
            for (uint32_t n = 0; n < s->lanes; n++) {
                const uint32_t row = t % 128 / 32 * 16 + t % 32 / 4 + n / 2 % 2 * 8;
                const uint32_t col = n / 4 * 8 + t % 4 * 2 + n % 2;
                char *at = element(m, s, m->thread[t].v[s->in[0]] + n, true);
                if (at == NULL)
                    return false;
                float sum = fi_float(read_pattern(DC_F32, at));
                for (uint32_t k = 0; k < 16; k++)
                    sum += (float)a[row][k] * (float)b[col][k];
                write_pattern(DC_F32, at, dc_f32_bits(sum));
            }
        }
    }
    return true;
}

bool (*dc_fi_memory_step(const fi_step *s))(fi *m, const fi_step *s, uint64_t *v)
{
    const bool one = s->lanes == 1 && !s->masked && s->align <= dc_dtype_size((dc_dtype)s->type);
    switch ((int)s->op) {
    case DC_K_LOAD:
        return one ? load_one : load_lanes;
    case DC_K_GATHER:
        return gather;
    case DC_K_STORE:
        return one ? store_one : store;
    case DC_K_SCATTER:
        return scatter;
    case DC_K_STORE_ASYNC:
        return store_async;
    case DC_K_COMMIT:
        return commit;
    case DC_K_WAIT:
        return wait_for;
    case DC_K_MATRIX:
        return matrix;
    }
    DC_BUG("%s is no access to memory", dc_kop_row_of((dc_kop)s->op)->name);
}

/* Buffers ----------------------------------------------------------------------------------- */

static size_t memory_bytes(const fi_memory *b)
{
    return (size_t)b->count * b->size;
}

static void *aligned(fi *m, size_t bytes)
{
    const uintptr_t p = (uintptr_t)dc_arena_alloc(&m->j->scratch, bytes + BASE_ALIGN);
    return (void *)dc_align_up(p, BASE_ALIGN);
}

static bool overlaps(const fi_memory *a, const fi_memory *b)
{
    return a->base < b->base + memory_bytes(b) && b->base < a->base + memory_bytes(a);
}

/* The parameters that overlap with parameter n, directly or by others: into in[]. */
static void find_region(const fi *m, uint32_t n, bool *in)
{
    bool more = true;
    memset(in, 0, m->nreach * sizeof *in);
    in[n] = true;
    while (more) {
        more = false;
        for (uint32_t a = 0; a < m->nreach; a++)
            for (uint32_t b = 0; b < m->nreach && !in[a]; b++)
                if (in[b] && overlaps(&m->reach[a].mem, &m->reach[b].mem))
                    in[a] = more = true;
    }
}

/* One array of shadows for all of them, a shadow for each unit of 4 bytes, or of 1 if one needs it. */
static void shadow_region(fi *m, const bool *in)
{
    const fi_memory *first = NULL;
    char *lo = NULL, *hi = NULL;
    uint32_t unit = 4;
    for (uint32_t n = 0; n < m->nreach; n++) {
        fi_memory *b = &m->reach[n].mem;
        if (!in[n])
            continue;
        if (first == NULL || b->base < lo)
            lo = b->base;
        if (first == NULL || b->base + memory_bytes(b) > hi)
            hi = b->base + memory_bytes(b);
        first = first != NULL ? first : b;
        if (b->size % unit != 0 || (uintptr_t)b->base % unit != 0)
            unit = 1;
    }
    fi_shadow *shadow =
        DC_NEW_ARRAY(&m->j->scratch, fi_shadow, ((size_t)(hi - lo) + unit - 1) / unit);
    for (uint32_t n = 0; n < m->nreach; n++) {
        fi_memory *b = &m->reach[n].mem;
        if (!in[n])
            continue;
        b->shadow = shadow + (size_t)(b->base - lo) / unit;
        b->units = b->size / unit;
    }
}

static void shadow_params(fi *m)
{
    bool *in = DC_NEW_ARRAY(&m->j->scratch, bool, m->nreach);
    for (uint32_t n = 0; n < m->nreach; n++) {
        const fi_reach *x = &m->reach[n];
        if (!x->written || x->mem.shadow != NULL || x->mem.count == 0)
            continue;
        find_region(m, n, in);
        shadow_region(m, in);
    }
}

static void open_params(fi *m, void *const *param)
{
    const dc_flat *f = m->f;
    m->reach = DC_NEW_ARRAY(&m->j->scratch, fi_reach, f->nparam);
    m->first = DC_NEW_ARRAY(&m->j->scratch, uint32_t, f->buf.n);
    for (uint32_t n = 0; n < f->buf.n; n++) {
        const dc_buffer *x = &f->buf.at[n];
        m->first[n] = m->nreach;
        for (uint32_t r = 0; r < dc_flat_rows(f, x); r++) {
            fi_reach *to = &m->reach[m->nreach++];
            *to = (fi_reach){m->mem[n], x->mode != DC_MODE_IN};
            to->mem.base = param[x->param + x->step * r];
            to->mem.count = (uint64_t)dc_flat_count(f, x, r);
        }
    }
    shadow_params(m);
    for (uint32_t n = 0; n < f->buf.n; n++)
        if (f->buf.at[n].scope == DC_SCOPE_PARAM)
            m->mem[n] = m->reach[m->first[n]].mem;
}

bool dc_fi_memory_choose(fi *m, const fi_step *s, uint64_t *v)
{
    const uint64_t row = v[s->in[0]];
    const dc_flat *f = m->f;
    if (row >= f->table.at[s->imm].rows)
        return dc_fi_fail(m, s, "table %" PRIu64 " has no row %" PRIu64, s->imm, row);
    for (uint32_t n = 0; n < f->buf.n; n++)
        if (f->buf.at[n].table == s->imm + 1)
            m->mem[n] = m->reach[m->first[n] + row].mem;
    return true;
}

void dc_fi_memory_open(fi *m, void *const *param)
{
    const dc_flat *f = m->f;
    m->mem = DC_NEW_ARRAY(&m->j->scratch, fi_memory, f->buf.n);
    char *scratch = aligned(m, f->scratch);
    for (uint32_t n = 0; n < f->buf.n; n++) {
        const dc_buffer *x = &f->buf.at[n];
        fi_memory *b = &m->mem[n];
        b->count = (uint64_t)x->count;
        b->size = (uint32_t)dc_dtype_size((dc_dtype)x->dtype);
        b->dtype = x->dtype;
        b->scope = x->scope;
        switch ((dc_scope)x->scope) {
        case DC_SCOPE_PARAM:
            break;
        case DC_SCOPE_SCRATCH:
            b->base = scratch + x->at;
            break;
        case DC_SCOPE_GROUP:
            b->base = aligned(m, memory_bytes(b));
            b->shadow = DC_NEW_ARRAY(&m->j->scratch, fi_shadow, b->count);
            b->units = 1;
            break;
        case DC_SCOPE_LOCAL:
            b->at = m->local;
            m->local += dc_align_up(memory_bytes(b), BASE_ALIGN);
            break;
        case DC_SCOPE_THREAD:
            DC_BUG("buffer %s of %s has a scope that the flat form has not", x->name, f->name);
        }
    }
    open_params(m, param);
}

void dc_fi_memory_of(fi *m, const fi_thread *t)
{
    for (uint32_t n = 0; n < m->f->buf.n; n++)
        if (m->mem[n].scope == DC_SCOPE_LOCAL)
            m->mem[n].base = t->local + m->mem[n].at;
}

void dc_fi_memory_spoil(fi *m, uint32_t threads)
{
    for (uint32_t n = 0; n < m->f->buf.n; n++)
        if (m->mem[n].scope == DC_SCOPE_GROUP || m->mem[n].scope == DC_SCOPE_SCRATCH)
            memset(m->mem[n].base, SPOILT, memory_bytes(&m->mem[n]));
    for (uint32_t t = 0; t < threads; t++)
        memset(m->thread[t].local, SPOILT, m->local);
}
