/*
 * The interpreter of the flat form (jit/sim/flat_interp.h): instructions become steps once, then each
 * work item is run by itself, so that what one leaves to the next is noticed; a group of threads is
 * run thread by thread from one barrier or shuffle to the next.
 */
#include "jit/sim/flat_interp_impl.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool dc_fi_fail(fi *m, const fi_step *s, const char *fmt, ...)
{
    char what[200], text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    int n = snprintf(text, sizeof text, "%s: %s, position %" PRIu32,
                     dc_kop_row_of((dc_kop)s->op)->name, what, m->now.group - 1);
    if (m->f->simt)
        snprintf(text + n, sizeof text - (size_t)n, ", thread %" PRIu32, m->now.thread);
    dc_fail(m->j, DC_ERR_BUG, &(dc_fact){.num = {s->line}, .word = {m->f->name, text}});
    return false;
}

/* Decoding ---------------------------------------------------------------------------------- */

/* Constants, lanes and arguments are values before anything runs. */
static bool runs(const dc_finst *i)
{
    return dc_kop_row_of((dc_kop)i->op)->form != DC_KFORM_LEAF;
}

static void place_values(fi *m)
{
    m->at = DC_NEW_ARRAY(&m->j->scratch, uint32_t, m->f->inst.n);
    for (uint32_t n = 0; n < m->f->order.n; n++) {
        m->at[m->f->order.at[n]] = m->nvalue;
        m->nvalue += m->f->inst.at[m->f->order.at[n]].lanes;
    }
}

static fi_kind kind_of(dc_kop op)
{
    switch ((int)op) {
    case DC_K_LOOP:
        return FI_LOOP;
    case DC_K_IF:
        return FI_IF;
    case DC_K_BARRIER:
    case DC_K_SHUFFLE:
    case DC_K_LDMATRIX:
    case DC_K_MMA:
    case DC_K_WGMMA:
    case DC_K_WGMMA_WAIT:
        return FI_MEET;
    }
    return FI_DO;
}

static fi_step step_of(const fi *m, dc_fv v, uint32_t line)
{
    const dc_finst *i = dc_finst_at(m->f, v);
    const bool mem = dc_kop_row_of((dc_kop)i->op)->form == DC_KFORM_MEM;
    fi_step s = {.op = i->op,
                 .kind = (uint8_t)kind_of((dc_kop)i->op),
                 .type = i->type,
                 .lanes = i->lanes,
                 .align = i->align,
                 .out = m->at[v],
                 .buf = i->buf,
                 .imm = i->imm,
                 .mask = UINT64_MAX >> (64 - dc_flat_width(m->f, i->type)),
                 .line = line};
    for (int n = 0; n < 3; n++)
        s.in[n] = i->in[n] != 0 ? m->at[i->in[n]] : 0;
    if (i->in[0] != 0)
        s.from = m->f->inst.at[i->in[0]].type;
    for (int n = 0; i->op == DC_K_WGMMA && n < 2; n++)
        s.matrix[n] = &m->f->inst.at[i->in[n + 1]];
    if (i->op == DC_K_ANY)
        s.imm = m->f->inst.at[i->in[0]].lanes;
    s.masked = mem && i->in[dc_kop_stores((dc_kop)i->op) ? 2 : 1] != 0;
    if ((mem || dc_kop_orders((dc_kop)i->op)) && s.kind == FI_DO)
        s.run = dc_fi_memory_step(&s);
    else if (i->op == DC_K_ROWS)
        s.run = dc_fi_memory_choose;
    else if (s.kind == FI_DO)
        s.run = dc_fi_value_step(m, &s);
    if (s.kind == FI_DO && s.run == NULL)
        DC_BUG("%s of %s has no meaning for its type", dc_kop_row_of((dc_kop)i->op)->name,
               m->f->name);
    return s;
}

/* END of an IF or ROWS is no step, END of a LOOP a jump back. */
static void decode(fi *m)
{
    const dc_flat *f = m->f;
    fi_step *step = DC_NEW_ARRAY(&m->j->scratch, fi_step, f->order.n + 1);
    uint32_t *open = DC_NEW_ARRAY(&m->j->scratch, uint32_t, f->order.n);
    uint32_t depth = 0, n = 0, line = 2;
    place_values(m);
    for (uint32_t k = 0; k < f->order.n; k++) {
        const dc_finst *i = dc_finst_at(f, f->order.at[k]);
        line += i->op != DC_K_CONST && i->op != DC_K_ARG;
        if (i->op == DC_K_END) {
            fi_step *opened = &step[open[--depth]];
            if (opened->kind == FI_LOOP) {
                step[n] = *opened;
                step[n].kind = FI_NEXT;
                step[n++].jump = open[depth] + 1;
            }
            opened->jump = n;
        } else if (runs(i)) {
            step[n] = step_of(m, f->order.at[k], line - 1);
            if (dc_kop_opens((dc_kop)i->op))
                open[depth++] = n;
            n++;
        }
    }
    step[n].kind = FI_HALT;
    m->step = step;
}

/* Threads ----------------------------------------------------------------------------------- */

/* What is the same in every work item. */
static void fill_leaves(const fi *m, uint64_t *v)
{
    for (uint32_t k = 0; k < m->f->order.n; k++) {
        const dc_finst *i = dc_finst_at(m->f, m->f->order.at[k]);
        const uint32_t at = m->at[m->f->order.at[k]];
        if (runs(i) || i->op == DC_K_ARG)
            continue;
        for (uint32_t n = 0; n < i->lanes; n++)
            v[at + n] = dc_flat_canonical(m->f, i->type, i->op == DC_K_LANES ? i->imm * n : i->imm);
    }
}

static void fill_args(const fi *m, uint32_t thread, int64_t item)
{
    const uint64_t value[] = {[DC_KARG_BEGIN] = (uint64_t)item,
                              [DC_KARG_END] = (uint64_t)item + 1,
                              [DC_KARG_GROUP] = (uint64_t)item,
                              [DC_KARG_THREAD] = thread};
    for (uint32_t k = 0; k < m->f->order.n; k++) {
        const dc_finst *i = dc_finst_at(m->f, m->f->order.at[k]);
        if (i->op == DC_K_ARG)
            m->thread[thread].v[m->at[m->f->order.at[k]]] =
                dc_flat_canonical(m->f, DC_INDEX, value[i->imm]);
    }
}

static void open_threads(fi *m, uint32_t threads)
{
    m->thread = DC_NEW_ARRAY(&m->j->scratch, fi_thread, threads);
    for (uint32_t t = 0; t < threads; t++) {
        m->thread[t].v = DC_NEW_ARRAY(&m->j->scratch, uint64_t, m->nvalue);
        m->thread[t].local = dc_arena_alloc(&m->j->scratch, m->local);
        fill_leaves(m, m->thread[t].v);
    }
}

/* Bounds and counters of loops compare with their sign. */
static bool is_below(const fi *m, uint64_t a, uint64_t b)
{
    const int unused = 64 - m->f->index_bits;
    return (int64_t)(a << unused) < (int64_t)(b << unused);
}

/* To the next meeting or the end. */
static bool run_thread(fi *m, fi_thread *t)
{
    uint64_t *v = t->v;
    uint32_t pc = t->pc;
    for (;;) {
        const fi_step *s = &m->step[pc];
        switch ((fi_kind)s->kind) {
        case FI_DO:
            if (!s->run(m, s, v))
                return false;
            pc++;
            break;
        case FI_LOOP:
            v[s->out] = v[s->in[0]];
            pc = is_below(m, v[s->out], v[s->in[1]]) ? pc + 1 : s->jump;
            break;
        case FI_NEXT:
            v[s->out] = (v[s->out] + 1) & s->mask;
            pc = is_below(m, v[s->out], v[s->in[1]]) ? s->jump : pc + 1;
            break;
        case FI_IF:
            pc = v[s->in[0]] != 0 ? pc + 1 : s->jump;
            break;
        case FI_MEET:
        case FI_HALT:
            t->pc = pc;
            return true;
        }
    }
}

/* Meetings ---------------------------------------------------------------------------------- */

void dc_fi_select_thread(fi *m, uint32_t t)
{
    m->now.thread = t;
    m->now.run = m->f->lanes > 0 ? t / (uint32_t)m->f->lanes : t;
}

static bool exchange(fi *m, const fi_step *s, uint32_t threads)
{
    for (uint32_t t = 0; t < threads; t++) {
        const uint64_t lane = m->thread[t].v[s->in[1]];
        dc_fi_select_thread(m, t);
        const uint64_t other = m->now.run * (uint64_t)m->f->lanes + lane;
        if (lane >= (uint64_t)m->f->lanes || other >= threads)
            return dc_fi_fail(m, s, "there is no lane %" PRIu64, lane);
        m->thread[t].v[s->out] = m->thread[other].v[s->in[0]];
    }
    return true;
}

/* Element e of a lane's part of a matrix of 16 bytes in a row, `each` in a lane: its row, its place in k. */
typedef struct fragment {
    uint32_t row, k;
} fragment;

static fragment fragment_of(uint32_t lane, uint32_t e, uint32_t each)
{
    return (fragment){lane / 4, each * (lane % 4) + e % each};
}

/* What 32 lanes from `first` on hold, as matrices. Which elements a lane holds: jit/flat/kops.def. */
static void gather_matrices(const fi *m, const fi_step *s, uint32_t first, uint32_t each,
                            double a[16][32], double b[32][8])
{
    for (uint32_t t = 0; t < 32; t++) {
        const uint64_t *v = m->thread[first + t].v;
        for (uint32_t n = 0; n < 4 * each; n++) {
            const fragment f = fragment_of(t, n, each);
            const uint32_t matrix = n / each;
            a[matrix % 2 * 8 + f.row][matrix / 2 * 4 * each + f.k] =
                dc_value_of((dc_dtype)s->from, v[s->in[0] + n]);
            if (n < 2 * each)
                b[matrix * 4 * each + f.k][f.row] = dc_value_of((dc_dtype)s->from, v[s->in[1] + n]);
        }
    }
}

static uint64_t dot(const fi_step *s, uint64_t start, uint32_t terms, const double *a,
                    const double (*b)[8], uint32_t column)
{
    uint32_t whole = (uint32_t)start;
    float sum = s->type == DC_I32 ? 0 : fi_float(start);
    for (uint32_t k = 0; k < terms; k++) {
        if (s->type == DC_I32)
            whole += (uint32_t)(int32_t)(a[k] * b[k][column]);
        else
            sum += (float)a[k] * (float)b[k][column];
    }
    return s->type == DC_I32 ? (uint64_t)(int64_t)(int32_t)whole : dc_f32_bits(sum);
}

/* One product of matrices for each run of 32 lanes. Terms are added in order, which a machine need not do. */
static void multiply_matrices(fi *m, const fi_step *s, uint32_t threads)
{
    const uint32_t each = 4 / (uint32_t)dc_dtype_size((dc_dtype)s->from);
    for (uint32_t first = 0; first < threads; first += 32) {
        double a[16][32], b[32][8];
        gather_matrices(m, s, first, each, a, b);
        for (uint32_t t = 0; t < 32; t++) {
            uint64_t *v = m->thread[first + t].v;
            for (uint32_t n = 0; n < 4; n++)
                v[s->out + n] = dot(s, v[s->in[2] + n], 8 * each, a[n / 2 * 8 + t / 4],
                                    (const double(*)[8])b, 2 * (t % 4) + n % 2);
        }
    }
}

static bool meet(fi *m, uint32_t threads, bool *halted)
{
    const uint32_t pc = m->thread[0].pc;
    const fi_step *s = &m->step[pc];
    for (uint32_t t = 1; t < threads; t++) {
        const fi_step *other = &m->step[m->thread[t].pc];
        if (other == s)
            continue;
        const bool waits = s->kind != FI_HALT;
        dc_fi_select_thread(m, waits ? t : 0);
        return dc_fi_fail(m, waits ? s : other, "not all threads come by; this one does not");
    }
    *halted = s->kind == FI_HALT;
    for (uint32_t t = 0; t < threads; t++)
        m->thread[t].pc = pc + 1;
    if (*halted)
        return true;
    switch ((int)s->op) {
    case DC_K_SHUFFLE:
        return exchange(m, s, threads);
    case DC_K_LDMATRIX:
        return dc_fi_load_matrices(m, s, threads);
    case DC_K_MMA:
        multiply_matrices(m, s, threads);
        return true;
    case DC_K_WGMMA:
        return dc_fi_multiply_groups(m, s, threads);
    case DC_K_WGMMA_WAIT:
        return true;
    }
    if (s->imm != DC_BARRIER_LANES)
        m->now.epoch++;
    else
        for (uint32_t t = 0; t < threads; t++) /* no more runs than threads */
            m->now.meet[t]++;
    return true;
}

/* Work items -------------------------------------------------------------------------------- */

static bool run_item(fi *m, uint32_t threads, int64_t item)
{
    bool halted = false;
    m->now.group = (uint32_t)item + 1;
    m->now.epoch++;
    dc_fi_memory_spoil(m, threads);
    for (uint32_t t = 0; t < threads; t++) {
        m->thread[t].pc = 0;
        m->thread[t].flight.n = 0;
        m->thread[t].committed = 0;
        fill_args(m, t, item);
    }
    while (!halted) {
        for (uint32_t t = 0; t < threads; t++) {
            dc_fi_select_thread(m, t);
            dc_fi_memory_of(m, &m->thread[t]);
            if (!run_thread(m, &m->thread[t]))
                return false;
        }
        if (!meet(m, threads, &halted))
            return false;
    }
    return true;
}

dc_status dc_flat_run(dc_job *j, const dc_flat *f, void *const *mem, int64_t begin, int64_t end)
{
    const dc_mark mark = dc_arena_mark(&j->scratch);
    const uint32_t threads = f->simt ? f->threads : 1;
    bool ok = true;
    if (begin < 0 || end >= UINT32_MAX)
        return dc_failf(j, DC_ERR_DEVICE, NULL,
                        "%s: positions %" PRId64 " to %" PRId64 " are too many to interpret",
                        f->name, begin, end);
    fi m = {.j = j, .f = f, .now = {.meet = DC_NEW_ARRAY(&j->scratch, uint32_t, threads)}};
    decode(&m);
    dc_fi_memory_open(&m, mem);
    open_threads(&m, threads);
    for (int64_t p = begin; p < end && ok; p++)
        ok = run_item(&m, threads, p);
    dc_arena_rewind(&j->scratch, mark);
    return ok ? DC_OK : DC_E_BUG;
}
