#include "core/runtime/outcome.h"

#include "core/base/arena.h"

#include <stdio.h>

static void release(dc_outcome *o)
{
    if (--o->refs > 0)
        return;
    o->drop(o->about);
    o->next = o->rt->spare_outcomes;
    o->rt->spare_outcomes = o;
}

void dc_outcomes_room(dc_rt *rt)
{
    if (rt->spare_outcomes == NULL)
        rt->spare_outcomes = dc_xalloc(sizeof *rt->spare_outcomes);
}

dc_outcome *dc_outcome_new(dc_rt *rt, uint64_t ticket, const char *name, void *owner, void *about,
                           void (*drop)(void *about))
{
    dc_outcomes_room(rt);
    dc_outcome *o = rt->spare_outcomes, **end = &rt->outcomes;
    rt->spare_outcomes = o->next;
    *o = (dc_outcome){
        .refs = 1, .rt = rt, .ticket = ticket, .owner = owner, .about = about, .drop = drop};
    snprintf(o->name, sizeof o->name, "%s", name);
    while (*end != NULL)
        end = &(*end)->next;
    *end = o;
    return o;
}

void dc_outcome_attach(dc_outcome *o, dc_storage *s)
{
    dc_outcome *before = s->outcome;
    if (o != NULL)
        o->refs++;
    s->outcome = o;
    if (before != NULL)
        release(before);
}

static dc_status ask(dc_outcome *o, dc_job *j, bool wait)
{
    dc_device *d = o->rt->device;
    dc_run_info info = {.fault_command = -1};
    bool known = false;
    DC_TRY(d->ops->answer(d, j, o->ticket, wait, &known, &info));
    if (!known)
        return DC_OK;
    o->state = info.fault_command < 0 ? DC_OUTCOME_RIGHT : DC_OUTCOME_STOPPED;
    o->command = info.fault_command;
    o->value = info.fault_value;
    o->bits = info.fault_bits;
    return DC_OK;
}

/* Those that nobody has to be told of any more. One that was stopped stays for as long as a storage names it. */
static void forget_known(dc_rt *rt)
{
    for (dc_outcome **at = &rt->outcomes; *at != NULL;) {
        dc_outcome *o = *at;
        const bool stays = o->state == DC_OUTCOME_OPEN ||
                           (o->state == DC_OUTCOME_STOPPED && (!o->told || o->refs > 1));
        if (stays) {
            at = &o->next;
            continue;
        }
        *at = o->next;
        release(o);
    }
}

dc_status dc_outcomes_ask(dc_rt *rt, dc_job *j, bool wait)
{
    bool known = false;
    for (dc_outcome *o = rt->outcomes; o != NULL; o = o->next) {
        if (o->state == DC_OUTCOME_OPEN)
            DC_TRY(ask(o, j, wait));
        if (o->state == DC_OUTCOME_OPEN)
            break;
        known = true;
    }
    if (known)
        forget_known(rt);
    return DC_OK;
}

dc_status dc_outcome_settle(dc_storage *s, dc_job *j)
{
    if (s->outcome == NULL)
        return DC_OK;
    DC_TRY(dc_outcomes_ask(s->rt, j, true));
    if (s->outcome->state == DC_OUTCOME_STOPPED)
        return dc_fail(j, DC_ERR_NO_RESULT, &(dc_fact){.word = {s->outcome->name}});
    dc_outcome_attach(NULL, s);
    return DC_OK;
}

dc_outcome *dc_outcomes_stopped(dc_rt *rt)
{
    dc_outcome *o = rt->outcomes;
    while (o != NULL && (o->state != DC_OUTCOME_STOPPED || o->told))
        o = o->next;
    if (o != NULL)
        o->told = true;
    return o;
}

void dc_outcomes_disown(dc_rt *rt, const void *owner)
{
    for (dc_outcome *o = rt->outcomes; o != NULL; o = o->next)
        if (o->owner == owner)
            o->owner = NULL;
}

static void free_list(dc_outcome *o)
{
    while (o != NULL) {
        dc_outcome *next = o->next;
        dc_xfree(o);
        o = next;
    }
}

void dc_outcomes_free(dc_rt *rt)
{
    while (rt->outcomes != NULL) {
        dc_outcome *o = rt->outcomes;
        rt->outcomes = o->next;
        release(o);
    }
    free_list(rt->spare_outcomes);
    rt->spare_outcomes = NULL;
}
