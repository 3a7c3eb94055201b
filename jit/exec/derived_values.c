#include "jit/exec/derived_values.h"

enum { ALWAYS = 64 << 20 };

/* ---- which are kept -------------------------------------------------------------------------- */

static void unlink_inst(dc_inst *i)
{
    dc_rt *rt = i->rt;
    if (i->newer != NULL)
        i->newer->older = i->older;
    else
        rt->derived = i->older;
    if (i->older != NULL)
        i->older->newer = i->newer;
    i->newer = i->older = NULL;
}

static void link_inst(dc_inst *i)
{
    dc_rt *rt = i->rt;
    i->older = rt->derived;
    if (i->older != NULL)
        i->older->newer = i;
    rt->derived = i;
}

void dc_derived_drop(dc_inst *i)
{
    dc_derived_forget(i);
    if (i->derived == NULL)
        return;
    unlink_inst(i);
    i->rt->derived_bytes -= i->derived->bytes;
    dc_storage_disown(i->derived);
    i->derived = NULL;
}

/* Those of idle instances, the longest unused first, until no more than `most` bytes are left. */
static void drop_idle(dc_rt *rt, size_t most)
{
    dc_inst *i = rt->derived;
    while (i != NULL && i->older != NULL)
        i = i->older;
    while (i != NULL && rt->derived_bytes > most) {
        dc_inst *newer = i->newer;
        if (i->state == DC_INST_FREE)
            dc_derived_drop(i);
        i = newer;
    }
}

/* What dc_storage_new calls when memory is short. */
static void give_back(dc_rt *rt)
{
    drop_idle(rt, 0);
}

/* Nothing where there is no memory. */
static void take(dc_inst *i, dc_job *j)
{
    dc_rt *rt = i->rt;
    const size_t bytes = i->exec->info.derived_bytes, most = 2 * rt->cell_bytes + ALWAYS;
    const dc_err before = j->err;
    drop_idle(rt, bytes < most ? most - bytes : 0);
    rt->give_back = give_back;
    if (dc_storage_new(rt, j, bytes, &i->derived) != DC_OK) {
        i->derived = NULL;
        j->err = before;
        return;
    }
    i->derived->owned = true;
    rt->derived_bytes += bytes;
    link_inst(i);
}

size_t dc_derived_in_arena(const dc_inst *i)
{
    return i->derived == NULL ? i->exec->info.derived_bytes : 0;
}

/* ---- whether they are right ------------------------------------------------------------------ */

/* Notes what the prologue would read now. False: it is what it has read. */
static bool look(dc_inst *i, const dc_arg *arg)
{
    const dc_exec *e = i->exec;
    bool changed = false;
    for (uint32_t p = e->desc.nfree - e->desc.nfixed; p < e->desc.nfree; p++)
        if (e->derived_from[p] && i->seen_tensor[p] != arg[p].tensor) {
            dc_tensor_release(i->seen_tensor[p]);
            i->seen_tensor[p] =
                dc_tensor_retain((dc_tensor *)(uintptr_t)arg[p].tensor); /* its count */
            changed = true;
        }
    for (uint32_t c = 0; c < e->desc.ncell; c++)
        if (e->derived_from[e->desc.nfree + c] && i->seen_version[c] != i->cell[c]->version) {
            i->seen_version[c] = i->cell[c]->version;
            changed = true;
        }
    return changed;
}

static void prepare(dc_inst *i)
{
    i->seen_tensor = DC_NEW_ARRAY(&i->mem, dc_tensor *, i->exec->desc.nfree);
    i->seen_version = DC_NEW_ARRAY(&i->mem, uint64_t, i->exec->desc.ncell);
}

bool dc_derived_begin(dc_inst *i, dc_job *j, const dc_arg *arg)
{
    if (!dc_derived_any(i))
        return false;
    if (i->seen_version == NULL)
        prepare(i);
    if (i->derived == NULL)
        take(i, j);
    else if (i->rt->derived != i) {
        unlink_inst(i);
        link_inst(i);
    }
    if (look(i, arg) || i->derived == NULL)
        i->derived_right = false;
    return !i->derived_right;
}

void dc_derived_done(dc_inst *i)
{
    i->derived_right = i->derived != NULL;
    i->exec->profile.prologues++;
    i->rt->first->stats.prologues++;
    i->rt->first->stats.launches += i->exec->info.prologue_launches;
}

void dc_derived_forget(dc_inst *i)
{
    i->derived_right = false;
}
