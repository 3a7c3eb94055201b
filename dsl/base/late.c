#include "dsl/base/late.h"

#include "core/runtime/outcome.h"
#include "dsl/base/error.h"
#include "dsl/base/run.h"

typedef struct asking {
    dc_rt *rt;
    bool wait;
    dc_outcome *stopped;
} asking;

static dc_status ask_body(dc_job *j, void *arg)
{
    asking *a = arg;
    for (dc_rt *rt = a->rt; rt != NULL && a->stopped == NULL; rt = rt->next) {
        DC_TRY(dc_outcomes_ask(rt, j, a->wait));
        a->stopped = dc_outcomes_stopped(rt);
    }
    return DC_OK;
}

void dc_late_check(lua_State *L, dc_dsl *d, bool wait)
{
    asking a = {.rt = d->rt, .wait = wait};
    const dc_rt *rt = d->rt;
    while (rt != NULL && rt->outcomes == NULL)
        rt = rt->next;
    if (rt == NULL)
        return;
    dc_error_check(L, d, dc_run_once(d, ask_body, &a));
    if (a.stopped == NULL)
        return;
    if (a.stopped->owner != NULL)
        d->raise_late(L, d, a.stopped);
    const dc_fact f = {.word = {a.stopped->name}};
    dc_error_fact(L, d, DC_ERR_NO_RESULT, &f, NULL);
}
