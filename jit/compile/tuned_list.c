#include "jit/compile/tuned_list.h"

#include "jit/cache/build_id.h"
#include "jit/compile/program_build.h"
#include "jit/exec/exec_task.h"
#include "jit/moves/move.h"

/* Times are those of one target, one compiler's options and one version of the stages and rules. */
static void open_store(dc_tuned_store *s, dc_job *j, const dc_env *env)
{
    const char *depends = dc_program_depends(env, j);
    dc_text *text = dc_job_text(j);
    dc_text_puts(text, "schedules\n");
    const bool known = dc_build_id_put(text) && depends != NULL;
    dc_text_printf(text, "\n%s", depends != NULL ? depends : "");
    dc_tuned_store_open(s, known ? env->cache : NULL, j, dc_cache_key_of(text->s, text->n));
    dc_job_text_end(j, text);
}

const dc_tuned *dc_tuned_list(dc_rt *rt, dc_job *j, const dc_env *env)
{
    if (rt->jit->tuned == NULL)
        rt->jit->tuned = dc_tuned_store_new();
    if (!rt->jit->tuned->opened)
        open_store(rt->jit->tuned, j, env);
    return env->opt.opt < 2 || dc_skips(env->skip, DC_STAGE_tuned) ? NULL : rt->jit->tuned->newest;
}

/* What a kernel has beside its text. */
static dc_status as_lowered(dc_job *j, const char *nest, dc_kernel **k)
{
    dc_kernel *again;
    DC_TRY(dc_nest_parse(j, nest, &again));
    memcpy(again->name, (*k)->name, sizeof again->name);
    again->flops = (*k)->flops;
    again->bytes = (*k)->bytes;
    dc_kernel_free(*k);
    *k = again;
    return DC_OK;
}

dc_status dc_tuned_apply(dc_job *j, const dc_tuned *list, const char *nest, dc_kernel **k, bool *is)
{
    const char *why = "";
    const dc_tuned *e = list != NULL ? dc_tuned_find(list, dc_tuned_key(nest)) : NULL;
    *is = e != NULL && e->kind == DC_TUNED_MOVES;
    for (uint32_t i = 0; *is && i < e->nmove; i++)
        if (!dc_move_apply_text(*k, e->move[i], &why)) {
            dc_logf(j->log, DC_CH_KERNEL, "%s: '%s' was stored and does not apply: %s", (*k)->name,
                    e->move[i], why);
            *is = false;
            DC_TRY(as_lowered(j, nest, k));
        }
    return DC_OK;
}
