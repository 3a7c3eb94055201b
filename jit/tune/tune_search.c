/*
 * The search for one kernel (jit/tune/tune_impl.h), over the knobs that its rules offer:
 *
 *   descend   coordinate descent: one knob after the other takes each of its values, the others stay as in the best
 *             schedule so far. Offers come in the order of the rules' models, the likely ones first.
 *   wander    two or three knobs of the best schedule at a time take any of their values, until many in a row were no
 *             better: sizes of tiles and packing depend on each other.
 *   confirm   the best is measured against the rules' schedule once more, with more samples.
 *
 * Samples of two schedules alternate, so that both see the same machine. The search compares the least ones, since what
 * disturbs a measurement only adds to it; of the best schedule the least of all its samples, so that nobody takes its
 * place by luck. In the end medians are compared: the difference has to be larger than two standard errors, and samples
 * are added until that is decided either way.
 */
#include "jit/tune/tune_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    FEW = 7, /* samples to compare with the best so far */
    MOST = 4 * DC_TUNE_SAMPLES,
    ROUNDS = 3,         /* over all knobs */
    IN_VAIN = 16,       /* batches of combinations in a row */
    BATCH = 4,          /* schedules that are compiled at a time */
    SAMPLE_NS = 200000, /* of launches that are timed together */
    MOST_REPEATS = 64,
    LEAST_GAIN = 50 /* 1 part of so many, at least */
};

void dc_tuner_free(void *what)
{
    dc_tuner *t = what;
    for (uint32_t i = 0; i < t->trial.n; i++)
        dc_trial_drop(t, t->trial.at[i]);
    DC_VEC_FREE(t->trial);
    dc_tune_memory_free(&t->memory);
    dc_arena_free(&t->mem);
}

/* ---- measuring --------------------------------------------------------------------------------- */

typedef struct samples {
    uint64_t ns[MOST];
    uint32_t n;
} samples;

static int by_size(const void *x, const void *y)
{
    const uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return (a > b) - (a < b);
}

typedef struct summary {
    uint64_t median, spread, least; /* spread: half the distance of the quartiles */
    uint32_t n;
} summary;

static summary summary_of(const samples *of)
{
    samples s = *of;
    qsort(s.ns, s.n, sizeof *s.ns, by_size);
    return (summary){s.ns[s.n / 2], (s.ns[s.n * 3 / 4] - s.ns[s.n / 4]) / 2, s.ns[0], s.n};
}

/* n more samples of each, in turns. */
static dc_status take_samples(dc_tuner *t, dc_trial *than, dc_trial *x, uint32_t n, samples *old,
                              samples *new)
{
    for (uint32_t i = 0; i < n; i++) {
        DC_TRY(dc_trial_sample(t, than, &old->ns[old->n++]));
        DC_TRY(dc_trial_sample(t, x, &new->ns[new->n++]));
    }
    return DC_OK;
}

/* Fewer samples where x is clearly slower. */
static dc_status measure(dc_tuner *t, dc_trial *than, dc_trial *x, summary *a, summary *b)
{
    samples old = {.n = 0}, new = {.n = 0};
    DC_TRY(take_samples(t, than, x, 2, &old, &new));
    if (summary_of(&new).least <= summary_of(&old).least * 3 / 2)
        DC_TRY(take_samples(t, than, x, FEW - 2, &old, &new));
    *a = summary_of(&old);
    *b = summary_of(&new);
    return DC_OK;
}

static bool is_less(summary than, summary x, double spreads)
{
    const uint64_t spread = than.spread > x.spread ? than.spread : x.spread;
    const uint64_t least = than.median / LEAST_GAIN, most = (uint64_t)(spreads * (double)spread);
    return x.median + (most > least ? most : least) < than.median;
}

/* Two standard errors of a median of n samples, in its spread: 2 * 1.25 * spread / 0.674 / sqrt(n). */
static double two_errors(uint32_t n)
{
    return 3.7 / sqrt(n);
}

/* ---- trials ------------------------------------------------------------------------------------ */

typedef struct search {
    dc_tuner *t;
    dc_trial *rules, *best;
    uint64_t best_ns;       /* the least of its samples */
    uint64_t deadline, end; /* of the search, of the confirmation */
    uint64_t random;
    uint64_t spent, steps; /* on batches, and how many */
    uint64_t compile_ns;   /* of the rules' schedule */
    uint64_t trial_ns; /* what comparing and timing a schedule takes, one as fast as the rules' */
    uint32_t tried;
    bool late;
} search;

/* Is there no time for another batch, by those before? The first one takes as long as two schedules, by the rules' one. */
static bool is_late(search *s)
{
    const uint64_t each = s->steps > 0 ? s->spent / s->steps : 2 * (s->trial_ns + s->compile_ns);
    s->late = s->late || dc_clock_ns() + each > s->deadline;
    return s->late;
}

/* Does it compute what the rules' schedule does? That one has run on set 0. */
static dc_status is_right(search *s, const dc_trial *x, bool *right)
{
    dc_tuner *t = s->t;
    uint64_t ns;
    const int64_t terms = x->reassociates || s->rules->reassociates ? t->terms : 0;
    DC_TRY(dc_tune_memory_fill(&t->memory, t->j, 0, 1, false));
    DC_TRY(dc_trial_launch(t, s->rules, 0, &ns));
    DC_TRY(dc_trial_launch(t, x, 1, &ns));
    DC_TRY(dc_tune_memory_same(&t->memory, t->j, terms, right));
    if (!*right)
        dc_logf(t->j->log, DC_CH_NOTE, "tune: a schedule of %s computes something else: not used",
                t->name);
    return DC_OK;
}

static void log_trial(const search *s, const dc_trial *x, summary new, bool faster)
{
    dc_log *log = s->t->j->log;
    char text[160];
    size_t n = 0;
    if (!dc_log_on(log, DC_CH_TUNE))
        return;
    text[0] = '\0';
    for (int k = 0; k < DC_KNOB__COUNT && n + 32 < sizeof text; k++)
        if (x->knobs.value[k] != 0)
            n += (size_t)snprintf(text + n, sizeof text - n, " %s %d", dc_knob_name((dc_knob)k),
                                  x->knobs.value[k]);
    dc_logf(log, DC_CH_TUNE, "%s:%s: %.1f us, the best %.1f us%s", s->t->name, text,
            (double)new.least / 1e3, (double)s->best_ns / 1e3, faster ? ", faster" : "");
}

static dc_status try_one(search *s, dc_trial *x)
{
    bool right;
    summary old, new;
    if (x->program == NULL)
        return DC_OK;
    DC_TRY(is_right(s, x, &right));
    if (!right)
        return DC_OK;
    DC_TRY(measure(s->t, s->best, x, &old, &new));
    s->tried++;
    s->best_ns = old.least < s->best_ns ? old.least : s->best_ns;
    const bool faster = new.least + new.least / LEAST_GAIN < s->best_ns;
    log_trial(s, x, new, faster);
    if (faster) {
        s->best = x;
        s->best_ns = new.least;
    }
    return DC_OK;
}

static dc_status try_batch(search *s, dc_trial *const *x, uint32_t n)
{
    const uint64_t begun = dc_clock_ns();
    DC_TRY(dc_trial_compile(s->t, x, n));
    for (uint32_t i = 0; i < n && (i == 0 || dc_clock_ns() + s->trial_ns < s->deadline); i++)
        DC_TRY(try_one(s, x[i]));
    for (uint32_t i = 0; i < n; i++)
        if (x[i] != s->best)
            dc_trial_drop(s->t, x[i]);
    s->spent += dc_clock_ns() - begun;
    s->steps++;
    return DC_OK;
}

/* Every value of a knob, the others as in the best schedule; a batch may change which that is. */
static dc_status try_knob(search *s, dc_knob knob)
{
    const dc_trial *from = s->best;
    const dc_knob_offer *o = &from->space.offer[knob];
    dc_trial *batch[BATCH];
    uint32_t n = 0;
    for (int i = -1; i < o->n; i++) { /* -1: the rule's own value */
        dc_knobs knobs = from->knobs;
        knobs.value[knob] = i < 0 ? 0 : o->value[i];
        if (knobs.value[knob] == from->knobs.value[knob])
            continue;
        DC_TRY(dc_trial_make(s->t, &knobs, &batch[n]));
        n += batch[n] != NULL;
        if (n < BATCH)
            continue;
        if (is_late(s))
            return DC_OK;
        DC_TRY(try_batch(s, batch, n));
        n = 0;
    }
    return n > 0 && !is_late(s) ? try_batch(s, batch, n) : DC_OK;
}

static dc_status descend(search *s)
{
    const dc_trial *before = NULL;
    for (int round = 0; round < ROUNDS && before != s->best; round++) {
        before = s->best;
        for (int k = 0; k < DC_KNOB__COUNT; k++) {
            const dc_trial *old = s->best;
            const int knob = (k + 1) % DC_KNOB__COUNT; /* lanes last: they change all the others */
            if (is_late(s))
                return DC_OK;
            DC_TRY(try_knob(s, (dc_knob)knob));
            if (old != s->best && old != s->rules)
                dc_trial_drop(s->t, (dc_trial *)(uintptr_t)old);
        }
    }
    return DC_OK;
}

static uint32_t below(search *s, uint32_t n)
{
    s->random = dc_hash_mix(s->random, n);
    return (uint32_t)(s->random >> 32) % n;
}

/* The same ones each time: which they are depends on what is found meanwhile alone. */
static void change_some(search *s, dc_knobs *knobs)
{
    const dc_knob_space *space = &s->best->space;
    *knobs = s->best->knobs;
    for (uint32_t left = 2 + below(s, 2), tries = 0; left > 0 && tries < 64; tries++) {
        const uint32_t k = below(s, DC_KNOB__COUNT);
        const dc_knob_offer *o = &space->offer[k];
        if (o->n == 0)
            continue;
        const uint32_t value = below(s, o->n + 1u);
        knobs->value[k] = value < o->n ? o->value[value] : 0;
        left--;
    }
}

static dc_status wander(search *s)
{
    const dc_trial *best = s->best;
    for (int in_vain = 0; in_vain < IN_VAIN && !is_late(s); in_vain++) {
        dc_trial *batch[BATCH];
        uint32_t n = 0;
        for (int tries = 0; n < BATCH && tries < 2 * BATCH; tries++) {
            dc_knobs knobs;
            change_some(s, &knobs);
            DC_TRY(dc_trial_make(s->t, &knobs, &batch[n]));
            n += batch[n] != NULL;
        }
        if (n > 0)
            DC_TRY(try_batch(s, batch, n));
        if (best == s->best)
            continue;
        if (best != s->rules)
            dc_trial_drop(s->t, (dc_trial *)(uintptr_t)best);
        best = s->best;
        in_vain = 0;
    }
    return DC_OK;
}

/* ---- the whole --------------------------------------------------------------------------------- */

/* Launches of a sample: as many as take a time that a clock can tell. */
static dc_status choose_repeats(search *s, uint64_t *launch_ns)
{
    dc_tuner *t = s->t;
    uint64_t ns = 0;
    *launch_ns = UINT64_MAX;
    for (int i = 0; i < 3 && (i < 2 || ns < SAMPLE_NS * 100); i++) { /* the first one is cold */
        DC_TRY(dc_trial_launch(t, s->rules, (uint32_t)i % t->memory.nset, &ns));
        *launch_ns = ns < *launch_ns ? ns : *launch_ns;
    }
    const uint64_t n = SAMPLE_NS / (*launch_ns + 1) + 1;
    t->repeats = (uint32_t)(n < MOST_REPEATS ? n : MOST_REPEATS);
    if (t->memory.cold && t->repeats < t->memory.nset) /* so that all sets are gone through */
        t->repeats = t->memory.nset;
    return DC_OK;
}

/* The best against the rules'. */
static dc_status confirm(search *s, dc_tune_row *row)
{
    samples old = {.n = 0}, new = {.n = 0};
    const uint64_t begun = dc_clock_ns();
    uint64_t each = 0;
    bool open = true;
    while (open && old.n + DC_TUNE_SAMPLES <= MOST && dc_clock_ns() + each <= s->end) {
        DC_TRY(take_samples(s->t, s->rules, s->best, DC_TUNE_SAMPLES, &old, &new));
        const summary a = summary_of(&old), b = summary_of(&new);
        each = (dc_clock_ns() - begun) / (old.n / DC_TUNE_SAMPLES);
        row->rules_ns = a.median;
        row->best_ns = b.median;
        row->tuned = s->best != s->rules && is_less(a, b, two_errors(b.n));
        open = !row->tuned && b.median < a.median && s->best != s->rules;
    }
    if (row->tuned)
        return DC_OK;
    s->best = s->rules;
    row->best_ns = row->rules_ns;
    return DC_OK;
}

static dc_status begin(search *s, uint64_t *launch_ns)
{
    dc_tuner *t = s->t;
    DC_TRY(dc_trial_make(t, &(dc_knobs){{0}}, &s->rules));
    s->best = s->rules;
    const uint64_t begun = dc_clock_ns();
    DC_TRY(dc_trial_compile(t, &s->rules, 1));
    s->compile_ns = dc_clock_ns() - begun;
    if (s->rules->program == NULL)
        return dc_failf(t->j, DC_ERR_BUILD, NULL, "the rules' schedule of %s does not compile",
                        t->name);
    return choose_repeats(s, launch_ns);
}

dc_status dc_tune_search(dc_tuner *t, uint64_t deadline, dc_tune_row *row, const dc_trial **best)
{
    search *s = DC_NEW(&t->mem, search);
    uint64_t launch_ns = 0;
    *s = (search){.t = t, .best_ns = UINT64_MAX};
    DC_TRY(begin(s, &launch_ns));
    const uint64_t sample = launch_ns * t->repeats, now = dc_clock_ns();
    const uint64_t confirming = 2 * DC_TUNE_SAMPLES * sample;
    row->rules_ns = row->best_ns = launch_ns;
    *best = s->rules;
    if (now + 2 * confirming > deadline) {
        row->why = "no time left";
        return DC_OK;
    }
    s->deadline = deadline - confirming;
    s->trial_ns = 2 * (FEW + 1) * sample;
    s->end = deadline;
    DC_TRY(descend(s));
    DC_TRY(wander(s));
    DC_TRY(confirm(s, row));
    row->tried = s->tried;
    row->why = s->late ? "the time was over" : NULL;
    *best = s->best;
    return DC_OK;
}
