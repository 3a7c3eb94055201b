/*
 * Typed functions whose values ranks have parts of (core/transform/partition.h). Types in a signature are those of whole
 * values; a caller gives its part and gets its part. What was traced is partitioned before it is compiled, and all ranks
 * say then that they have the same.
 */
#include "core/base/bits.h"
#include "core/base/extent.h"
#include "core/base/number.h"
#include "core/ir/control.h"
#include "core/ir/exchange.h"
#include "core/transform/partition.h"
#include "dsl/base/place.h"
#include "dsl/fn/fn.h"

#include <stdio.h>
#include <string.h>

/* ---- the mesh ---------------------------------------------------------------------------------- */

static const dc_mesh *mesh_of(const dc_fn *fn)
{
    return fn->d->rt->mesh;
}

/* How a tensor of a declared type lies, of so many axes. */
static bool sharding_of(const dc_fn *fn, const dc_sig_type *t, int rank, dc_sharding *out)
{
    const char *name;
    bool twice;
    *out = (dc_sharding){0};
    return t == NULL || mesh_of(fn) == NULL ||
           dc_sig_sharding(t, t->rest >= 0 ? rank - t->ndim + 1 : 0, mesh_of(fn), out, &name,
                           &twice);
}

static void list_axes(const dc_mesh *m, char *out, size_t room)
{
    size_t n = 0;
    out[0] = '\0';
    for (uint32_t a = 0; a < m->naxis && n < room; a++)
        n += (size_t)snprintf(out + n, room - n, "%s%s", a > 0 ? ", " : "", m->name[a]);
}

static void check_type(lua_State *L, dc_dsl *d, const dc_fn *fn, const dc_sig_type *t)
{
    dc_sharding s;
    const char *name = NULL;
    bool twice;
    char axes[300], text[DC_TYPE_TEXT];
    if (t->kind == DC_SHAPE_LIST)
        check_type(L, d, fn, t->of);
    for (int i = 0; i < t->nfield; i++)
        check_type(L, d, fn, t->field[i].type);
    if (t->kind != DC_SHAPE_TENSOR || dc_sig_sharding(t, 0, d->rt->mesh, &s, &name, &twice))
        return;
    dc_sig_type_print(&fn->sig, NULL, t, text, sizeof text);
    list_axes(d->rt->mesh, axes, sizeof axes);
    if (twice)
        dc_error_raisef(L, d, DC_ERR_SHARDING, "fn",
                        "%.200s: axis '%.40s' of the mesh splits two axes", text, name);
    dc_error_raisef(L, d, DC_ERR_SHARDING, "fn", "%.200s: the mesh has no axis '%.40s', it has %s",
                    text, name, axes);
}

void dc_fn_check_mesh(lua_State *L, dc_dsl *d, dc_fn *fn)
{
    fn->split = dc_sig_any_split(&fn->sig);
    if (!fn->split)
        return;
    if (d->rt->mesh == NULL)
        dc_error_raisef(L, d, DC_ERR_SHARDING, "fn",
                        "types split axes with '@', and there is no mesh yet: dc.mesh { data = "
                        "dc.world().size }");
    for (int i = 0; i < fn->sig.nparam; i++)
        if (fn->sig.param[i].type != NULL)
            check_type(L, d, fn, fn->sig.param[i].type);
    for (int i = 0; i < fn->sig.nresult; i++)
        check_type(L, d, fn, fn->sig.result[i]);
}

void dc_fn_whole(const dc_fn *fn, const dc_sig_type *declared, dc_type *t)
{
    dc_sharding s;
    if (!fn->split || declared == NULL || !sharding_of(fn, declared, t->rank, &s))
        return;
    for (int k = 0; k < t->rank; k++)
        t->dim[k] *= dc_sharding_parts(&s, mesh_of(fn), k);
}

void dc_fn_part(const dc_fn *fn, const dc_sig_type *declared, dc_type *t)
{
    dc_sharding s;
    if (!fn->split || declared == NULL || !sharding_of(fn, declared, t->rank, &s))
        return;
    for (int k = 0; k < t->rank; k++)
        t->dim[k] /= dc_sharding_parts(&s, mesh_of(fn), k);
}

bool dc_fn_sharding(const dc_fn *fn, const dc_sig_type *declared, int rank, dc_sharding *out)
{
    return fn->split && sharding_of(fn, declared, rank, out) && !dc_sharding_whole(out);
}

/* ---- partitioning ------------------------------------------------------------------------------ */

bool dc_spec_is_split(const dc_fn *fn, const dc_trace *t)
{
    bool is = fn->split;
    for (uint32_t i = 0; i < t->cell.n; i++)
        is |= t->cell.at[i].cell->split != NULL;
    return is && mesh_of(fn) != NULL;
}

static dc_status check_divides(dc_job *j, const dc_fn *fn, const dc_sharding *s, const dc_type *t,
                               const char *what, const char *label)
{
    dc_type part;
    int axis;
    char text[DC_TYPE_TEXT + 120];
    if (dc_sharding_part(s, mesh_of(fn), t, &part, &axis))
        return DC_OK;
    dc_sharding_why_not(s, mesh_of(fn), t, axis, text, sizeof text);
    return dc_failf(j, DC_ERR_SHARDING, fn->name, "%s '%.80s' is %s", what, label, text);
}

/* Of the parameters of the traced function: arguments, sizes, captured tensors, cells. */
static dc_status param_shardings(dc_job *j, const dc_fn *fn, const dc_spec *s,
                                 const dc_exec_desc *desc, dc_sharding *out)
{
    const dc_trace *t = s->trace;
    for (uint32_t i = 0; i < desc->fn->param.n; i++) {
        const dc_type type = dc_node_type(desc->fn, desc->fn->param.at[i]);
        const char *label = desc->fn->label.at[i];
        out[i] = (dc_sharding){0};
        if (i < t->arg.n)
            sharding_of(fn, s->declared.at[i], type.rank, &out[i]);
        if (i >= desc->nfree && t->cell.at[i - desc->nfree].cell->split != NULL)
            out[i] = t->cell.at[i - desc->nfree].cell->split->s;
        DC_TRY(check_divides(j, fn, &out[i], &type, i < t->arg.n ? "argument" : "the cell", label));
    }
    return DC_OK;
}

static dc_status result_shardings(dc_job *j, const dc_fn *fn, const dc_spec *s,
                                  const dc_exec_desc *desc, dc_sharding *out)
{
    const dc_trace *t = s->trace;
    for (uint32_t i = 0; i < desc->fn->result.n; i++) {
        const dc_type type = dc_node_type(desc->fn, desc->fn->result.at[i]);
        char label[20];
        out[i] = (dc_sharding){0};
        if (i < t->result.n - t->print.n)
            sharding_of(fn, s->out_declared[i], type.rank, &out[i]);
        if (i >= desc->nresult && i < desc->nresult + desc->nset) {
            const dc_cell *c = t->cell.at[desc->set[i - desc->nresult]].cell;
            out[i] = c->split != NULL ? c->split->s : out[i];
        }
        snprintf(label, sizeof label, "%u", i + 1);
        DC_TRY(check_divides(j, fn, &out[i], &type, "result", label));
    }
    return DC_OK;
}

/* Names of arguments and captured tensors that all ranks have whole, in their order; NULL: in parts. */
static void keep_whole(dc_spec *s, const dc_exec_desc *desc, const dc_sharding *param)
{
    const uint32_t nleaf = s->trace->arg.n;
    s->whole.n = 0;
    for (uint32_t i = 0; i < desc->nfree; i++) {
        const char *label = desc->fn->label.at[i];
        if (i >= nleaf && i < nleaf + s->size.n)
            continue;
        label = dc_name_intern_text(s->d->rt->names, label != NULL ? label : "a captured tensor");
        DC_PUSH(s->whole, dc_sharding_whole(&param[i]) ? label : NULL);
    }
}

static void keep_exchanges(dc_spec *s, const dc_partition *p)
{
    dc_names *names = s->d->rt->names;
    for (uint32_t i = 0; i < p->step.n; i++) {
        const dc_partition_step *x = &p->step.at[i];
        DC_PUSH(s->exchange, *x);
        s->exchange.at[i].where = x->where != NULL ? dc_name_intern_text(names, x->where) : NULL;
    }
}

/* All ranks of the mesh have the same to do, or none begins. */
static dc_status agree(dc_job *j, const dc_fn *fn, const dc_spec *s, const dc_func *f)
{
    dc_world *w = fn->d->rt->world;
    char what[120], text[DC_SIG_TEXT + 80];
    if (w == NULL || fn->d->rt->check)
        return DC_OK;
    const int n = dc_sig_print(&fn->sig, &s->key.bind, text, DC_SIG_TEXT);
    if (n >= 0 && (size_t)n < DC_SIG_TEXT)
        snprintf(text + n, sizeof text - (size_t)n, ", %u operations", f->node.n - 1);
    snprintf(what, sizeof what, "what '%.60s' computes", fn->name);
    return dc_world_agree(w, j, what, dc_func_hash(f), text);
}

/* How often the body of a node is computed, as far as that is known. */
static int64_t times_in(const dc_node *n, int64_t times)
{
    int64_t all = times;
    if (n->op != DC_OP_LOOP || dc_loop_of(n).n == INT32_MAX)
        return times;
    return dc_mul_ok(times, dc_loop_of(n).n, &all) ? all : INT64_MAX;
}

/* What f, or a body of it, exchanges by itself, each so many times. */
static void keep_written(dc_job *j, dc_spec *s, const dc_func *f, int64_t times)
{
    const bool *live = dc_func_live(f, &j->scratch);
    for (dc_ref r = 1; r < f->node.n; r++) {
        const dc_node *n = dc_node_at(f, r);
        for (int i = 0; live[r] && i < dc_node_bodies(n); i++)
            keep_written(j, s, dc_body_at(f->module, n->attr[i]), times_in(n, times));
        if (!live[r] || !dc_op_is((dc_op)n->op, DC_CLASS_COM) || n->op == DC_OP_ARRIVED)
            continue;
        const dc_exchange_attr x = dc_exchange_read(n->attr);
        const dc_type t = dc_node_type(f, n->op == DC_OP_RECV ? r : n->in[0]);
        const char *where = n->origin != 0 ? f->origins.at[n->origin].where : NULL;
        const dc_partition_step one = {
            .op = (dc_op)n->op,
            .mask = x.group.mask,
            .type = t,
            .bytes = dc_exchange_bytes((dc_op)n->op, &x, &t),
            .times = times,
            .written = true,
            .where = where != NULL ? dc_name_intern_text(s->d->rt->names, where) : NULL};
        DC_PUSH(s->exchange, one);
    }
}

/* Of a function without values in parts. */
void dc_spec_note_exchanges(dc_job *j, dc_spec *s, const dc_func *f)
{
    keep_written(j, s, f, 1);
}

static bool is_sized(const dc_type *t)
{
    bool any = false;
    for (int k = 0; k < t->rank; k++)
        any |= dc_extent_is(t->dim[k]);
    return any;
}

static uint32_t sized_axes(const dc_func *f)
{
    uint32_t mask = 0;
    for (dc_ref r = 1; r < f->node.n; r++) {
        const dc_node *n = dc_node_at(f, r);
        if (!dc_op_is((dc_op)n->op, DC_CLASS_COM) || n->nattr == 0)
            continue;
        const dc_type t = dc_node_type(f, n->in[0]);
        mask |= is_sized(&t) ? dc_exchange_read(n->attr).group.mask : 0;
    }
    return mask;
}

uint32_t dc_fn_sized_axes(const dc_func *f)
{
    uint32_t mask = sized_axes(f);
    for (uint32_t i = 0; i < f->module->body.n; i++)
        mask |= sized_axes(f->module->body.at[i].fn);
    return mask;
}

dc_status dc_spec_partition(dc_job *j, const dc_fn *fn, dc_spec *s, dc_exec_desc *desc)
{
    dc_sharding *param = DC_NEW_ARRAY(&j->scratch, dc_sharding, desc->fn->param.n + 1);
    dc_sharding *result = DC_NEW_ARRAY(&j->scratch, dc_sharding, desc->fn->result.n + 1);
    dc_partition p = {.mesh = mesh_of(fn),
                      .param = param,
                      .result = result,
                      .before = s->trace->arg.n + s->size.n,
                      .strict = fn->strict,
                      .wide = fn->wide};
    dc_func *f;
    DC_TRY(param_shardings(j, fn, s, desc, param));
    DC_TRY(result_shardings(j, fn, s, desc, result));
    DC_TRY(dc_partition_func(j, desc->fn, &p, &f));
    DC_TRY(agree(j, fn, s, f));
    keep_exchanges(s, &p);
    keep_whole(s, desc, param);
    s->nplace = p.mesh->naxis;
    desc->fn = f;
    desc->nfree += s->nplace;
    return DC_OK;
}

/* ---- calls ------------------------------------------------------------------------------------- */

void dc_spec_set_places(dc_spec *s)
{
    const dc_rt *rt = s->d->rt;
    int64_t place = rt->world != NULL ? dc_world_rank(rt->world) : 0;
    for (uint32_t a = s->nplace; a-- > 0;) {
        s->arg[s->nleaf + s->size.n + a] = (dc_arg){.bits = (uint64_t)(place % rt->mesh->size[a])};
        place /= rt->mesh->size[a];
    }
}

/* ---- what is told ------------------------------------------------------------------------------ */

static void push_exchange(lua_State *L, const dc_mesh *m, const dc_partition_step *x)
{
    char type[DC_TYPE_TEXT];
    dc_type_print(&x->type, type, sizeof type);
    lua_newtable(L);
    lua_pushstring(L, dc_op_row_of(x->op)->name);
    lua_setfield(L, -2, "op");
    lua_pushstring(L, type);
    lua_setfield(L, -2, "type");
    lua_newtable(L);
    for (uint32_t a = 0; a < m->naxis; a++)
        if (x->mask >> a & 1) {
            lua_pushstring(L, m->name[a]);
            lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
        }
    lua_setfield(L, -2, "over");
    lua_pushnumber(L, x->bytes);
    lua_setfield(L, -2, "bytes");
    lua_pushinteger(L, x->times);
    lua_setfield(L, -2, "times");
    lua_pushboolean(L, x->written);
    lua_setfield(L, -2, "written");
    lua_pushstring(L, x->where);
    lua_setfield(L, -2, "where");
}

void dc_fn_push_exchanges_of(lua_State *L, const dc_spec *s)
{
    lua_newtable(L);
    for (uint32_t k = 0; k < s->exchange.n; k++) {
        push_exchange(L, s->d->rt->mesh, &s->exchange.at[k]);
        lua_rawseti(L, -2, (lua_Integer)k + 1);
    }
}

/* f:exchanges(): { { op, over, type, bytes, times, written, where }, ... } of all specialisations */
int dc_fn_push_exchanges(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_fn_check(L, 1);
    dc_fn_push_specs(L, 1);
    const int list = lua_gettop(L), n = (int)lua_rawlen(L, list);
    lua_newtable(L);
    const int out = lua_gettop(L);
    for (int i = 1; i <= n; i++) {
        lua_rawgeti(L, list, i);
        const dc_spec *s = dc_spec_at(L, -1);
        for (uint32_t k = 0; k < s->exchange.n; k++) {
            push_exchange(L, d->rt->mesh, &s->exchange.at[k]);
            lua_rawseti(L, out, (lua_Integer)lua_rawlen(L, out) + 1);
        }
        lua_settop(L, out);
    }
    return 1;
}
