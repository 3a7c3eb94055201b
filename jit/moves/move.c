/*
 * Schedule moves on the nest form (jit/moves/moves.def): their table, and how one is applied: on a copy of
 * the tree, which becomes the kernel's if the move fits.
 */
#include "jit/moves/move_impl.h"
#include "jit/nest/nest_traffic.h"

#include <string.h>

typedef struct move_row {
    const char *name, *args;
    bool (*apply)(dc_nest_edit *v, const dc_move *m);
    dc_move_effect effect;
} move_row;

static const move_row rows[] = {
#define MOVE(id, name, function, args, effect, meaning) \
    [DC_MOVE_##id] = {name, args, dc_move_##function, DC_MOVE_##effect},
#include "jit/moves/moves.def"
};

const char *dc_move_name(dc_move_kind kind)
{
    return rows[kind].name;
}

const char *dc_move_args(dc_move_kind kind)
{
    return rows[kind].args;
}

dc_move_effect dc_move_effect_of(dc_move_kind kind)
{
    return rows[kind].effect;
}

bool dc_move_reassociates(dc_move_kind kind)
{
    return rows[kind].effect == DC_MOVE_REASSOCIATES;
}

dc_move_state dc_move_save(dc_kernel *k, dc_arena *tmp)
{
    dc_move_state s = {.root = k->root, .naxis = k->axis.n, .nbuf = k->buf.n, .nmoves = k->moves.n};
    s.axis = DC_NEW_ARRAY(tmp, dc_axis, s.naxis);
    s.buf = DC_NEW_ARRAY(tmp, dc_buffer, s.nbuf);
    if (s.naxis > 0)
        memcpy(s.axis, k->axis.at, s.naxis * sizeof *s.axis);
    if (s.nbuf > 0)
        memcpy(s.buf, k->buf.at, s.nbuf * sizeof *s.buf);
    return s;
}

/* Axes made meanwhile stay, without a name: index expressions know their extents by number. */
void dc_move_restore(dc_kernel *k, const dc_move_state *s)
{
    k->root = s->root;
    k->buf.n = s->nbuf;
    k->moves.n = s->nmoves;
    for (uint32_t i = s->naxis; i < k->axis.n; i++)
        k->axis.at[i].name = "";
    if (s->naxis > 0)
        memcpy(k->axis.at, s->axis, s->naxis * sizeof *s->axis);
    if (s->nbuf > 0)
        memcpy(k->buf.at, s->buf, s->nbuf * sizeof *s->buf);
}

/* Loops and buffers that others make do not inherit what moves of memory traffic say of theirs. */
static bool is_in_order(dc_nest_edit *v, const dc_move *m)
{
    return rows[m->kind].effect == DC_MOVE_TRAFFIC || !dc_nest_has_traffic(v->k) ||
           dc_nest_refuse(v, "%s comes before moves of memory traffic", rows[m->kind].name);
}

bool dc_move_apply(dc_kernel *k, const dc_move *m, const char **why)
{
    dc_job *j = dc_job_here();
    dc_arena own = {0};
    dc_nest_edit v = {.k = k, .tmp = j != NULL ? &j->scratch : &own};
    const dc_mark mark = dc_arena_mark(v.tmp);
    const dc_move_state before = dc_move_save(k, v.tmp);
    if (k->naive == NULL)
        k->naive = k->root;
    k->root = dc_stmt_copy(k, k->root);
    const bool done = is_in_order(&v, m) && rows[m->kind].apply(&v, m) &&
                      dc_move_check_nesting(&v) && dc_move_settle_scopes(&v, m) &&
                      dc_move_check_independence(&v);
    if (!done)
        dc_move_restore(k, &before);
    dc_arena_rewind(v.tmp, mark);
    dc_arena_free(&own);
    *why = done ? "" : v.why;
    DC_ASSERT(done || v.why != NULL, "%s was refused without a reason", rows[m->kind].name);
    if (!done)
        return false;
    dc_move *kept = DC_NEW(&k->arena, dc_move);
    *kept = *m;
    DC_PUSH_IN(&k->arena, k->moves, kept);
    return true;
}

bool dc_move_apply_text(dc_kernel *k, const char *text, const char **why)
{
    dc_move m;
    return dc_move_parse(k, text, &m, why) && dc_move_apply(k, &m, why);
}
