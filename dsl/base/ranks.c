#include "dsl/base/ranks.h"

#include "core/runtime/entry.h"
#include "core/signature/signature.h"
#include "dsl/base/args.h"
#include "dsl/base/error.h"
#include "dsl/base/place.h"
#include "dsl/base/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* On a thread of the world: another rank has failed, and the script is not waiting for it. */
static void end_script(void *rt)
{
    dc_entry_ask(rt, 0);
}

/* Kinds of devices differ in which exchanges are made together, and when. */
static dc_status agree_on_kind(dc_job *j, dc_rt *rt)
{
    char kind[sizeof rt->device_name];
    const bool simulated = strncmp(rt->device_name, "sim:", 4) == 0;
    snprintf(kind, sizeof kind, "%.*s",
             (int)(simulated ? strlen(rt->device_name) : strcspn(rt->device_name, ":")),
             rt->device_name);
    return dc_world_agree(rt->world, j, "the kind of device", dc_hash_bytes(0, kind, strlen(kind)),
                          kind);
}

static dc_status open_body(dc_job *j, void *arg)
{
    dc_rt *rt = arg;
    DC_TRY(rt->open_world(rt, j, &rt->world));
    rt->job.world = rt->world;
    const dc_device_ops *ops = rt->device->ops;
    const bool others = dc_world_size(rt->world) > 1;
    DC_TRY(dc_world_open_direct(rt->world, j,
                                others && ops->direct != NULL && ops->direct(rt->device, j)));
    dc_world_alarm(rt->world, end_script, rt);
    return others ? agree_on_kind(j, rt) : DC_OK;
}

dc_world *dc_ranks_world(lua_State *L, dc_dsl *d)
{
    dc_rt *rt = d->rt;
    if (rt->world == NULL && rt->open_world != NULL) {
        dc_run(L, d, open_body, rt);
        if (rt->world == NULL)
            rt->open_world = NULL; /* there are no others */
    }
    return rt->world;
}

void dc_ranks_leave(dc_dsl *d)
{
    if (d->rt->world != NULL && !dc_rt_forked(d->rt))
        dc_world_alarm(d->rt->world, NULL, NULL);
}

void dc_ranks_exit(lua_State *L, dc_dsl *d)
{
    char text[120];
    dc_world *w = d->rt->world;
    const bool boolean = lua_isboolean(L, 1);
    const int64_t status = boolean ? !lua_toboolean(L, 1) : lua_tointeger(L, 1);
    if (w == NULL || dc_rt_forked(d->rt))
        return;
    if (status == 0) {
        dc_world_finish(w);
        return;
    }
    const dc_place here = dc_place_find(L, d);
    snprintf(text, sizeof text, "%s%sos.exit with status %" PRId64,
             here.where != NULL ? here.where : "", here.where != NULL ? ": " : "", status);
    dc_world_fail(w, text);
}

/* ---- axes of the mesh -------------------------------------------------------------------------- */

const dc_mesh *dc_ranks_mesh(lua_State *L, dc_dsl *d, const char *op)
{
    if (d->rt->mesh == NULL)
        dc_error_raisef(L, d, DC_ERR_SHARDING, op,
                        "there is no mesh yet: dc.mesh { data = dc.world().size }");
    return d->rt->mesh;
}

static const char *push_axes(lua_State *L, const dc_mesh *m)
{
    lua_pushstring(L, "");
    for (uint32_t a = 0; a < m->naxis; a++) {
        lua_pushfstring(L, "%s%s", a > 0 ? ", " : "", m->name[a]);
        lua_concat(L, 2);
    }
    return lua_tostring(L, -1);
}

int dc_ranks_axis(lua_State *L, dc_dsl *d, const char *op, const char *name)
{
    const dc_mesh *m = dc_ranks_mesh(L, d, op);
    for (uint32_t a = 0; a < m->naxis; a++)
        if (strcmp(m->name[a], name) == 0)
            return (int)a;
    dc_error_raisef(L, d, DC_ERR_SHARDING, op, "the mesh has no axis '%.40s', it has %s", name,
                    push_axes(L, m));
}

uint32_t dc_ranks_mask(lua_State *L, dc_dsl *d, int idx, const char *op)
{
    const dc_mesh *m = dc_ranks_mesh(L, d, op);
    uint32_t mask = 0;
    if (lua_isnoneornil(L, idx))
        return (1u << m->naxis) - 1;
    const char *text = dc_args_text(L, d, idx, op);
    for (;;) {
        const size_t n = strcspn(text, "+");
        char name[80];
        snprintf(name, sizeof name, "%.*s", (int)(n < 79 ? n : 79), text);
        mask |= 1u << dc_ranks_axis(L, d, op, name);
        if (text[n] == '\0')
            return mask;
        text += n + 1;
    }
}

/* ---- types ------------------------------------------------------------------------------------- */

bool dc_ranks_splits(lua_State *L, int idx)
{
    return lua_type(L, idx) == LUA_TSTRING && strchr(lua_tostring(L, idx), '@') != NULL;
}

typedef struct reading {
    dc_dsl *d;
    const char *text;
    const dc_mesh *mesh;
    dc_type *whole;
    dc_sharding *s;
    char why[200];
} reading;

static void resolve(reading *a, const dc_sig *sig)
{
    const dc_sig_type *t = sig->nparam == 1 ? sig->param[0].type : NULL;
    const char *name;
    bool twice;
    dc_sig_bind b;
    dc_sig_begin(sig, &b);
    if (t == NULL || t->kind != DC_SHAPE_TENSOR)
        snprintf(a->why, sizeof a->why, "one type is needed");
    else if (!dc_sig_resolve(&b, t, a->whole))
        snprintf(a->why, sizeof a->why, "sizes are numbers here");
    else if (!dc_sig_sharding(t, 0, a->mesh, a->s, &name, &twice))
        snprintf(a->why, sizeof a->why,
                 twice ? "axis '%.60s' of the mesh splits two axes"
                       : "the mesh has no axis '%.60s'",
                 name);
}

static dc_status read_body(dc_job *j, void *arg)
{
    reading *a = arg;
    dc_sig sig;
    const size_t room = strlen(a->text) + 8;
    char *text = dc_arena_alloc(&j->scratch, room);
    snprintf(text, room, "(x: %s)", a->text);
    DC_TRY(dc_sig_parse(j, a->d->rt->names, text, &sig));
    resolve(a, &sig);
    dc_sig_fini(&sig);
    return DC_OK;
}

void dc_ranks_type(lua_State *L, dc_dsl *d, int idx, const char *op, dc_type *whole, dc_sharding *s)
{
    reading a = {.d = d, .text = dc_args_text(L, d, idx, op), .whole = whole, .s = s};
    a.mesh = dc_ranks_mesh(L, d, op);
    if (dc_run_once(d, read_body, &a) != DC_OK)
        dc_error_raise(L, d, &(dc_blame){.op = op});
    if (a.why[0] != '\0')
        dc_error_raisef(L, d, DC_ERR_SHARDING, op, "'%.80s': %s", a.text, a.why);
}

void dc_ranks_check(lua_State *L, dc_dsl *d, const char *op, const dc_type *whole,
                    const dc_sharding *s, dc_type *part)
{
    const dc_mesh *m = dc_ranks_mesh(L, d, op);
    char text[DC_TYPE_TEXT + 120];
    int axis;
    if (dc_sharding_part(s, m, whole, part, &axis))
        return;
    dc_sharding_why_not(s, m, whole, axis, text, sizeof text);
    dc_error_raisef(L, d, DC_ERR_SHARDING, op, "%s", text);
}

void dc_ranks_part(lua_State *L, dc_dsl *d, const char *op, const dc_type *whole,
                   const dc_sharding *s, dc_type *part, int64_t *start)
{
    const dc_mesh *m = dc_ranks_mesh(L, d, op);
    const dc_world *w = dc_ranks_world(L, d);
    int64_t place = w != NULL ? dc_world_rank(w) : 0, at[DC_MESH_AXES];
    dc_ranks_check(L, d, op, whole, s, part);
    for (uint32_t a = m->naxis; a-- > 0;) {
        at[a] = place % m->size[a];
        place /= m->size[a];
    }
    for (int k = 0; k < whole->rank; k++) {
        int64_t number = 0;
        for (uint32_t a = 0; a < m->naxis; a++)
            if (s->dim[a] == k + 1)
                number = number * m->size[a] + at[a];
        start[k] = number * part->dim[k];
    }
}
