/*
 * Trials (jit/tune/tune_impl.h): a schedule by knobs becomes a program of the device, which is launched on the tuner's
 * memory. Programs are neither in the context's table nor in the cache on disk: most of them are thrown away.
 */
#include "core/runtime/split.h"
#include "jit/cache/tuned_schedules.h"
#include "jit/flat/flatten.h"
#include "jit/moves/move.h"
#include "jit/render/render.h"
#include "jit/render/render_c.h"
#include "jit/tune/tune_impl.h"

#include <stdio.h>

static const char *const entry[] = {"entry0"};
enum { SLOT = 1 }; /* of the memory; the one before is the argument block */

/* ---- schedules --------------------------------------------------------------------------------- */

static void free_kernel(void *k)
{
    dc_kernel_free(k);
}

static void free_flat(void *f)
{
    dc_flat_free(f);
}

static void keep_moves(dc_tuner *t, dc_trial *x, const dc_kernel *k)
{
    dc_text *text = dc_job_text(t->j);
    x->nmove = k->moves.n;
    x->move = DC_NEW_ARRAY(&t->mem, const char *, x->nmove);
    for (uint32_t m = 0; m < x->nmove; m++) {
        x->move[m] = dc_move_text(k, k->moves.at[m], &t->mem);
        x->reassociates = x->reassociates || dc_move_reassociates(k->moves.at[m]->kind);
        dc_text_printf(text, "%s\n", x->move[m]);
    }
    x->key = dc_cache_key_of(text->s != NULL ? text->s : "", text->n);
    dc_job_text_end(t->j, text);
}

static bool is_new(const dc_tuner *t, const dc_trial *x)
{
    for (uint32_t i = 0; i < t->trial.n; i++)
        if (t->trial.at[i]->key.word[0] == x->key.word[0] &&
            t->trial.at[i]->key.word[1] == x->key.word[1])
            return false;
    return true;
}

static dc_status render(dc_tuner *t, dc_trial *x, dc_kernel *k)
{
    dc_flat *f;
    DC_TRY(dc_flatten_for(t->j, k, t->target, t->skip_passes, &f));
    dc_job_defer(t->j, free_flat, f);
    snprintf(f->name, sizeof f->name, "%s", entry[0]);
    const dc_status s = dc_render(t->j, (const dc_flat *const *)&f, 1, t->target, &x->text);
    x->scratch = f->scratch;
    x->shared = dc_render_dynamic(f, t->target);
    dc_job_keep(t->j, f);
    dc_flat_free(f);
    return s;
}

static dc_status make(dc_tuner *t, const dc_knobs *knobs, dc_kernel *k, dc_trial **out)
{
    dc_trial *x = DC_NEW(&t->mem, dc_trial);
    *x = (dc_trial){.knobs = *knobs};
    snprintf(k->name, sizeof k->name, "%s", t->name);
    DC_TRY(dc_schedule_search(t->j, k, t->target, knobs, &x->space));
    keep_moves(t, x, k);
    if (t->trial.n > 0 && (!x->space.complete || !is_new(t, x)))
        return DC_OK;
    DC_PUSH(t->trial, x); /* from here on the tuner's, to be freed with it */
    DC_TRY(dc_nest_check(t->j, k));
    x->launch = dc_nest_launch(k);
    DC_TRY(render(t, x, k));
    *out = x;
    return DC_OK;
}

/* A schedule that a target has no room for, say, is no failure but of the rules' own. */
static dc_status forgive(dc_tuner *t, dc_status s)
{
    if (s == DC_OK || t->trial.n <= 1 || s == DC_E_NOMEM || t->j->err.id == DC_ERR_INTERRUPTED)
        return s;
    dc_err_clear(&t->j->err);
    return DC_OK;
}

dc_status dc_trial_make(dc_tuner *t, const dc_knobs *knobs, dc_trial **out)
{
    const dc_mark mark = dc_arena_mark(&t->j->scratch);
    dc_kernel *k;
    *out = NULL;
    DC_TRY(dc_nest_parse(t->j, t->nest, &k));
    dc_job_defer(t->j, free_kernel, k);
    const dc_status s = make(t, knobs, k, out);
    dc_job_keep(t->j, k);
    dc_kernel_free(k);
    dc_arena_rewind(&t->j->scratch, mark);
    return forgive(t, s);
}

/* ---- programs ---------------------------------------------------------------------------------- */

typedef struct batch {
    const dc_tuner *t;
    dc_trial *const *trial;
} batch;

static dc_status compile_piece(dc_job *j, void *ctx, uint32_t piece)
{
    const batch *b = ctx;
    dc_device *d = b->t->rt->device;
    dc_trial *x = b->trial[piece];
    const dc_source src = {
        .text = x->text.s, .dialect = b->t->target->dialect, .entry = entry, .nentry = 1};
    DC_TRY(dc_job_ended(j));
    const dc_status s = d->ops->compile(d, j, &src, &x->program);
    if (s == DC_OK || s == DC_E_NOMEM || j->err.id == DC_ERR_INTERRUPTED)
        return s;
    dc_err_clear(&j->err);
    x->program = NULL;
    return DC_OK;
}

dc_status dc_trial_compile(dc_tuner *t, dc_trial *const *trial, uint32_t n)
{
    batch b = {t, trial};
    const dc_status s = dc_split(t->j, n, compile_piece, &b);
    for (uint32_t i = 0; i < n; i++)
        dc_text_free(&trial[i]->text);
    return s;
}

void dc_trial_drop(dc_tuner *t, dc_trial *x)
{
    const dc_device_ops *ops = t->rt->device->ops;
    if (x->recording != NULL)
        ops->recording_free(t->rt->device, x->recording);
    if (x->program != NULL)
        ops->program_free(t->rt->device, x->program);
    x->recording = NULL;
    x->program = NULL;
    dc_text_free(&x->text);
}

/* ---- launches ---------------------------------------------------------------------------------- */

/* n launches, one after the other, on the sets from `first` on. */
static dc_status record(dc_tuner *t, const dc_trial *x, uint32_t first, uint32_t n,
                        dc_recording **out)
{
    const dc_mark mark = dc_arena_mark(&t->j->scratch);
    const dc_tune_memory *m = &t->memory;
    dc_command *command = DC_NEW_ARRAY(&t->j->scratch, dc_command, n);
    uint32_t *before = DC_NEW_ARRAY(&t->j->scratch, uint32_t, n);
    for (uint32_t i = 0; i < n; i++) {
        dc_bind *bind = DC_NEW_ARRAY(&t->j->scratch, dc_bind, m->nparam);
        for (uint32_t p = 0; p < m->nparam; p++)
            bind[p] = (dc_bind){SLOT, (first + i) % m->nset * m->set_bytes + m->param[p].at};
        before[i] = i - 1;
        command[i] = (dc_command){.kind = DC_COMMAND_LAUNCH,
                                  .program = x->program,
                                  .grid = x->launch.positions,
                                  .threads = x->launch.threads,
                                  .shared = x->shared,
                                  .scratch = x->scratch,
                                  .cost_ns = t->cost_ns,
                                  .nbind = m->nparam,
                                  .bind = bind,
                                  .label = t->name,
                                  .ndep = i > 0,
                                  .dep = &before[i]};
    }
    const dc_status s = t->rt->device->ops->record(t->rt->device, t->j, command, n, out);
    dc_arena_rewind(&t->j->scratch, mark);
    return s;
}

/* Ends in the middle of a launch where the job is to end: nothing of it is kept. */
static dc_status run(dc_tuner *t, dc_recording *r, uint32_t n, uint64_t *ns)
{
    dc_device *d = t->rt->device;
    void *const slot[] = {t->memory.store->mem, t->memory.store->mem}; /* no argument is a number */
    dc_halt halt = {.asked = t->j->cancel, .insist = &t->rt->first->insist, .whole = n};
    dc_run_info info = {.fault_command = -1, .halt = t->j->cancel != NULL ? &halt : NULL};
    DC_TRY(dc_job_ended(t->j));
    const uint64_t begun = dc_clock_ns();
    DC_TRY(d->ops->run(d, t->j, r, slot, &info));
    if (d->ops->finish != NULL)
        DC_TRY(d->ops->finish(d, t->j));
    *ns = dc_clock_ns() - begun;
    return dc_job_ended(t->j);
}

typedef struct owned_recording {
    dc_device *device;
    dc_recording *r;
} owned_recording;

static void free_recording(void *what)
{
    const owned_recording *o = what;
    o->device->ops->recording_free(o->device, o->r);
}

dc_status dc_trial_launch(dc_tuner *t, const dc_trial *x, uint32_t set, uint64_t *ns)
{
    const dc_mark mark = dc_arena_mark(&t->j->scratch);
    owned_recording *o = DC_NEW(&t->j->scratch, owned_recording);
    o->device = t->rt->device;
    DC_TRY(record(t, x, set, 1, &o->r));
    dc_job_defer(t->j, free_recording, o);
    const dc_status s = run(t, o->r, 1, ns);
    dc_job_keep(t->j, o);
    free_recording(o);
    dc_arena_rewind(&t->j->scratch, mark);
    return s;
}

dc_status dc_trial_sample(dc_tuner *t, dc_trial *x, uint64_t *ns)
{
    if (x->recording == NULL)
        DC_TRY(record(t, x, 0, t->repeats, &x->recording));
    if (t->memory.kept)
        DC_TRY(dc_tune_memory_fill(&t->memory, t->j, 0, t->memory.nset - 1, false));
    DC_TRY(run(t, x->recording, t->repeats, ns));
    *ns = *ns / t->repeats + 1;
    return DC_OK;
}
