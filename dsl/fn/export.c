/*
 * f:export(path [, sizes ...]): a typed function as a file that hosts call without Lua (formats/fnfile.h,
 * vm/function.c). One variant for each of the sizes; without sizes, for each specialisation that is there.
 */
#include "core/base/ptrmap.h"
#include "dsl/base/args.h"
#include "dsl/base/run.h"
#include "dsl/fn/fn.h"
#include "formats/fnfile.h"
#include "formats/ststore.h"

#include <stdio.h>
#include <string.h>

/* A tensor of the file: what a cell holds, or what was captured. */
typedef struct part {
    const char *name;
    dc_type type;
    dc_st_memory mem;
} part;

typedef struct exporting {
    dc_dsl *d;
    const dc_fn *fn;
    const char *path;
    dc_spec **spec;
    uint32_t nspec;
    dc_names *names;
    dc_ptrmap taken, part_of; /* names to where they are in `given`; cells and tensors to parts */
    /* in the job's scratch memory */
    DC_VEC(part) parts;
    DC_VEC(uint32_t) given; /* by name taken: the last number that was put behind it */
    dc_text *text;          /* by specialisation */
} exporting;

/* ---- names ----------------------------------------------------------------------------------- */

/* The wish on one line, or with a number where it is taken: the next after the last one given. */
static const char *free_name(exporting *e, dc_job *j, const char *wish)
{
    char *line = dc_arena_strdup(&j->scratch, wish);
    for (char *c = line; *c != '\0'; c++)
        *c = (unsigned char)*c < ' ' ? ' ' : *c;
    const char *name = dc_name_intern_text(e->names, line), *free = name;
    uint32_t at, other;
    if (!dc_ptrmap_find(&e->taken, name, &at)) {
        at = e->given.n;
        DC_PUSH_IN(&j->scratch, e->given, 1);
        dc_ptrmap_add(&e->taken, name, at);
        return name;
    }
    do {
        const char *numbered = dc_arena_printf(&j->scratch, "%s#%u", name, ++e->given.at[at]);
        free = dc_name_intern_text(e->names, numbered);
    } while (dc_ptrmap_find(&e->taken, free, &other));
    DC_PUSH_IN(&j->scratch, e->given, 1);
    dc_ptrmap_add(&e->taken, free, e->given.n - 1);
    return free;
}

static const char *unique_name(exporting *e, dc_job *j, const void *what, const char *wish,
                               const dc_type *type, dc_st_memory mem)
{
    uint32_t at;
    if (dc_ptrmap_find(&e->part_of, what, &at))
        return e->parts.at[at].name;
    part p = {free_name(e, j, wish), *type, mem};
    memset(p.type.name, 0, sizeof p.type.name);
    DC_PUSH_IN(&j->scratch, e->parts, p);
    dc_ptrmap_add(&e->part_of, what, e->parts.n - 1);
    return p.name;
}

/* ---- variants -------------------------------------------------------------------------------- */

static void describe_checks(const dc_trace *t, dc_job *j, dc_fnfile_variant *v)
{
    v->ncheck = t->check.n;
    v->check = DC_NEW_ARRAY(&j->scratch, dc_fnfile_check, v->ncheck);
    for (uint32_t i = 0; i < v->ncheck; i++) {
        const dc_trace_check *c = &t->check.at[i];
        const char *role = dc_fnfile_role(c->id);
        v->check[i] = (dc_fnfile_check){.position = c->id == DC_ERR_POSITION,
                                        .axis = c->axis,
                                        .classes = c->classes,
                                        .type = c->type,
                                        .op = c->op,
                                        .role = role != NULL ? role : c->role};
    }
}

static void describe_values(exporting *e, dc_job *j, const dc_spec *s, dc_fnfile_variant *v)
{
    const dc_trace *t = s->trace;
    dc_arena *a = &j->scratch;
    v->arg = DC_NEW_ARRAY(a, const char *, v->narg);
    v->captured = DC_NEW_ARRAY(a, const char *, v->ncaptured);
    v->cell = DC_NEW_ARRAY(a, const char *, v->ncell);
    for (uint32_t i = 0; i < v->narg; i++)
        v->arg[i] = v->fn->label.at[i] != NULL ? v->fn->label.at[i] : "";
    for (uint32_t i = 0; i < v->ncell; i++) {
        const dc_cell *c = t->cell.at[i].cell;
        const char *wish = c->label != NULL ? c->label : c->trainable ? "parameter" : "state";
        v->cell[i] =
            unique_name(e, j, c, wish, &c->type, (dc_st_memory){c->rt->device, c->store->mem});
    }
    for (uint32_t i = 0; i < v->ncaptured; i++) {
        const dc_tensor *x = t->captured.at[i].tensor;
        v->captured[i] = unique_name(e, j, x, "captured", &x->type,
                                     (dc_st_memory){x->store->rt->device, dc_tensor_mem(x)});
    }
}

static void describe_spec(exporting *e, dc_job *j, const dc_spec *s, dc_text *out)
{
    const dc_exec_desc *d = dc_exec_desc_of(s->exec);
    dc_fnfile_variant v = {.narg = s->nleaf,
                           .ncaptured = d->nfree - s->nleaf,
                           .ncell = d->ncell,
                           .nresult = s->nresult,
                           .nprinted = d->nresult - s->nresult,
                           .nset = d->nset,
                           .fn = d->fn};
    v.set = DC_NEW_ARRAY(&j->scratch, uint32_t, v.nset);
    memcpy(v.set, d->set, v.nset * sizeof *v.set);
    describe_values(e, j, s, &v);
    describe_checks(s->trace, j, &v);
    dc_fnfile_print(&v, out);
}

/* A caller in C gives tensors alone: they have to tell which variant is meant. */
static dc_status check_apart(const exporting *e, dc_job *j, uint32_t n)
{
    const dc_exec_desc *d = dc_exec_desc_of(e->spec[n]->exec);
    for (uint32_t i = 0; i < n; i++) {
        const dc_exec_desc *other = dc_exec_desc_of(e->spec[i]->exec);
        bool same = e->spec[i]->nleaf == e->spec[n]->nleaf;
        for (uint32_t k = 0; same && k < e->spec[n]->nleaf; k++) {
            const dc_type a = dc_node_type(d->fn, d->fn->param.at[k]);
            const dc_type b = dc_node_type(other->fn, other->fn->param.at[k]);
            same = dc_type_same(&a, &b);
        }
        if (same)
            return dc_failf(j, DC_ERR_ARG, "export",
                            "specialisations %u and %u of '%s' have the same types of arguments: "
                            "export each to a file of its own, by its sizes and static values",
                            i + 1, n + 1, e->fn->name);
    }
    return DC_OK;
}

/* ---- the file -------------------------------------------------------------------------------- */

static void free_all(void *what)
{
    exporting *e = what;
    for (uint32_t i = 0; i < e->nspec; i++)
        dc_text_free(&e->text[i]);
    dc_names_free(e->names);
    dc_ptrmap_free(&e->taken);
    dc_ptrmap_free(&e->part_of);
}

static dc_status write_file(exporting *e, dc_job *j)
{
    dc_arena *a = &j->scratch;
    dc_st_item *item = DC_NEW_ARRAY(a, dc_st_item, e->parts.n);
    dc_st_memory *mem = DC_NEW_ARRAY(a, dc_st_memory, e->parts.n);
    dc_st_text *text = DC_NEW_ARRAY(a, dc_st_text, e->nspec + 4);
    char *signature = dc_arena_alloc(a, 4000);
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->parts.n; i++) {
        item[i] = (dc_st_item){e->parts.at[i].name, e->parts.at[i].type, NULL};
        mem[i] = e->parts.at[i].mem;
    }
    dc_sig_print(&e->fn->sig, NULL, signature, 4000);
    text[n++] = (dc_st_text){"deepc.function", DC_FNFILE_VERSION};
    text[n++] = (dc_st_text){"name", e->fn->name};
    text[n++] = (dc_st_text){"signature", signature};
    for (uint32_t i = 0; i < e->nspec; i++)
        text[n++] = (dc_st_text){dc_arena_printf(a, "variant.%u", i + 1), e->text[i].s};
    return dc_ststore_write(j, e->path, item, mem, e->parts.n, text, n);
}

/* Hosts call it alone. */
static dc_status check_ranks(const exporting *e, dc_job *j, const dc_spec *s)
{
    const dc_func *f = dc_exec_desc_of(s->exec)->fn;
    bool shared = s->nplace > 0;
    for (dc_ref r = 1; r < f->node.n; r++)
        shared |= dc_op_is((dc_op)dc_node_at(f, r)->op, DC_CLASS_COM);
    if (!shared)
        return DC_OK;
    return dc_failf(j, DC_ERR_SHARDING, "export",
                    "hosts call functions of files alone, and ranks share what '%s' computes",
                    e->fn->name);
}

/* Begins anew where it is run again (dc_run_again). */
static dc_status export_body(dc_job *j, void *arg)
{
    exporting *e = arg;
    *e = (exporting){.d = e->d, .fn = e->fn, .path = e->path, .spec = e->spec, .nspec = e->nspec};
    e->text = DC_NEW_ARRAY(&j->scratch, dc_text, e->nspec);
    dc_job_defer(j, free_all, e);
    e->names = dc_names_new();
    free_name(e, j, "__metadata__");
    for (uint32_t i = 0; i < e->nspec; i++) {
        dc_spec *s = e->spec[i];
        DC_TRY(dc_spec_ready(e->d, j, s)); /* captured tensors have values then */
        DC_TRY(check_ranks(e, j, s));
        DC_TRY(check_apart(e, j, i));
        for (uint32_t c = 0; c < s->trace->cell.n; c++)
            DC_TRY(dc_cell_check(s->trace->cell.at[c].cell, j, "export", true));
        describe_spec(e, j, s, &e->text[i]);
    }
    return e->d->rt->check ? DC_OK : write_file(e, j);
}

/* ---- the binding ----------------------------------------------------------------------------- */

/* Is the same function, for another device, among the first n of the list? */
static bool is_elsewhere_too(lua_State *L, int list, int n, const dc_spec *s)
{
    bool found = false;
    for (int i = 1; i <= n && !found; i++) {
        lua_rawgeti(L, list, i);
        const dc_spec *other = dc_spec_at(L, -1);
        found = other->rt != s->rt && dc_fn_same_key(&other->key, &s->key);
        lua_pop(L, 1);
    }
    return found;
}

void dc_fn_push_meant(lua_State *L, dc_dsl *d, dc_fn *fn, int first, const char *op)
{
    const int top = lua_gettop(L);
    if (dc_trace_here(L, d) != NULL)
        dc_error_fact(L, d, DC_ERR_FORBIDDEN, &(dc_fact){.word = {op, dc_trace_here(L, d)->name}},
                      NULL);
    lua_newtable(L);
    const int list = lua_gettop(L);
    for (int idx = first; idx <= top; idx++) {
        dc_fn_key key;
        dc_fn_key_of(L, d, fn, idx, op, &key);
        dc_fn_find(L, d, fn, &key, true);
        lua_rawseti(L, list, idx - first + 1);
        lua_settop(L, list);
    }
    if (top >= first)
        return;
    dc_fn_push_specs(L, 1);
    for (int i = 1, n = (int)lua_rawlen(L, -1), kept = 0; i <= n; i++) {
        lua_rawgeti(L, list + 1, i);
        dc_spec *s = dc_spec_at(L, -1);
        if (dc_fn_still_holds(s) && !is_elsewhere_too(L, list, kept, s))
            lua_rawseti(L, list, ++kept);
        lua_settop(L, list + 1);
    }
    lua_settop(L, list);
}

static const char *bounded_name(const dc_fn *fn)
{
    int v = 0;
    while (v + 1 < fn->sig.nvar && fn->sig.most[v] < 0)
        v++;
    return fn->sig.var[v];
}

void dc_fn_check_fixed(lua_State *L, dc_dsl *d, const dc_fn *fn, const dc_spec *s, const char *op)
{
    if (dc_spec_grows(s, false))
        dc_error_raisef(L, d, DC_ERR_ARG, op,
                        "files hold functions of fixed sizes; '%s' has a state that grows",
                        fn->name);
    if (s->size.n > 0)
        dc_error_raisef(L, d, DC_ERR_ARG, op,
                        "files hold functions of fixed sizes; f:export(path, { %s = 64 }) "
                        "those of a bounded dim",
                        bounded_name(fn));
}

/* Files of other languages are written by modules, which not each build has: their functions `export`. */
static const struct {
    const char *ending, *module;
} writers[] = {
    {".mlir", "deepc.stablehlo"},
    {".mlirbc", "deepc.stablehlo"},
};

static const char *module_of(const char *path)
{
    const size_t n = strlen(path);
    for (size_t i = 0; i < DC_COUNTOF(writers); i++) {
        const size_t m = strlen(writers[i].ending);
        if (n >= m && strcmp(path + n - m, writers[i].ending) == 0)
            return writers[i].module;
    }
    return NULL;
}

static int export_by(lua_State *L, dc_dsl *d, const char *module, const char *path)
{
    if (!dc_binding_provides(L, module))
        dc_error_raisef(L, d, DC_ERR_ARG, "export",
                        "'%s' is written by the module %s, which this build of deepc does not have",
                        path, module);
    dc_binding_require(L, module);
    lua_getfield(L, -1, "export");
    lua_replace(L, -2);
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 0);
    return 0;
}

int dc_fn_export(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    dc_fn *fn = dc_fn_check(L, 1);
    exporting e = {.d = d, .fn = fn};
    luaL_checkstack(L, 16, "export");
    e.path = dc_args_text(L, d, 2, "export");
    const char *module = module_of(e.path);
    if (module != NULL)
        return export_by(L, d, module, e.path);
    dc_fn_push_meant(L, d, fn, 3, "export");
    e.nspec = (uint32_t)lua_rawlen(L, -1);
    if (e.nspec == 0)
        dc_error_raisef(
            L, d, DC_ERR_ARG, "export",
            "'%s' was compiled for no sizes yet; f:export(path, { batch = 1 }) gives them",
            fn->name);
    const int list = lua_gettop(L);
    e.spec = lua_newuserdatauv(L, e.nspec * sizeof *e.spec, 0);
    for (uint32_t i = 0; i < e.nspec; i++) {
        lua_rawgeti(L, list, (lua_Integer)i + 1);
        e.spec[i] = dc_spec_at(L, -1);
        dc_fn_check_fixed(L, d, fn, e.spec[i], "export");
        lua_pop(L, 1);
    }
    dc_error_check(L, d, dc_run_again(L, d, export_body, &e, NULL));
    return 0;
}
