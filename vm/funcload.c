/* Function files (formats/fnfile.h) to executables, instances and cells. */
#include "core/base/path.h"
#include "formats/ststore.h"
#include "vm/function.h"

#include <stdio.h>
#include <string.h>

typedef struct loading {
    dc_function *f;
    dc_st_file *file;
    const char *path;
    const dc_function *beside;
    uint32_t
        *value_at; /* by tensor of the file: its number among the values, from 1; 0: none yet */
} loading;

#define REFUSE(...) dc_path_fail(j, DC_ERR_FORMAT, l->path, __VA_ARGS__)

/* ---- values ---------------------------------------------------------------------------------- */

/* The cell of this name that the other function has; NULL: none. */
static dc_cell *shared_cell(const loading *l, const char *name)
{
    for (uint32_t i = 0; l->beside != NULL && i < l->beside->value.n; i++)
        if (l->beside->value.at[i].cell != NULL && strcmp(l->beside->value.at[i].name, name) == 0)
            return l->beside->value.at[i].cell;
    return NULL;
}

static dc_status load_value(loading *l, dc_job *j, const dc_st_tensor *t, dc_fvalue *v,
                            bool is_cell)
{
    dc_function *f = l->f;
    dc_cell *shared = is_cell ? shared_cell(l, t->name) : NULL;
    if (shared != NULL) {
        if (!dc_type_same(&shared->type, &t->type))
            return REFUSE("'%.80s' has another type in the function beside it", t->name);
        v->cell = dc_cell_retain(shared);
        return DC_OK;
    }
    if (is_cell) {
        DC_TRY(dc_cell_new(f->rt, j, &t->type, t->name, true, &v->cell));
        return dc_ststore_read(l->file, j, t, v->cell->store);
    }
    DC_TRY(dc_tensor_new(f->rt, j, &t->type, &v->tensor));
    return dc_ststore_read(l->file, j, t, v->tensor->store);
}

/* The value of this name, read from the file where it is new. *out points into f->value until the next one. */
static dc_status value_of(loading *l, dc_job *j, const char *name, bool is_cell,
                          const dc_type *type, dc_fvalue **out)
{
    dc_function *f = l->f;
    const dc_st_tensor *t = dc_safetensors_find(l->file, name);
    if (t == NULL)
        return REFUSE("there is no tensor '%.80s'", name);
    DC_TRY(dc_safetensors_readable(l->file, j, t));
    if (!dc_type_same(&t->type, type))
        return REFUSE("tensor '%.80s' has another type than its function", name);
    uint32_t n;
    uint32_t *at = &l->value_at[t - dc_safetensors_tensors(l->file, &n)];
    if (*at > 0) {
        *out = &f->value.at[*at - 1];
        if (((*out)->cell != NULL) != is_cell)
            return REFUSE("tensor '%.80s' is of two kinds", name);
        return DC_OK;
    }
    const dc_fvalue v = {.name = dc_arena_strdup(&f->mem, name)};
    DC_PUSH_IN(&f->mem, f->value, v);
    *at = f->value.n;
    *out = &f->value.at[f->value.n - 1];
    return load_value(l, j, t, *out, is_cell);
}

/* ---- variants -------------------------------------------------------------------------------- */

static dc_status build_variant(loading *l, dc_job *j, dc_fvariant *v)
{
    const dc_fnfile_variant *d = &v->file;
    const dc_exec_desc desc = {.fn = d->fn,
                               .name = l->f->name,
                               .nfree = d->narg + d->ncaptured,
                               .nfixed = d->ncaptured,
                               .ncell = d->ncell,
                               .nresult = d->nresult + d->nprinted,
                               .nset = d->nset,
                               .ncheck = d->ncheck,
                               .set = d->set};
    DC_TRY(dc_exec_desc_check(j, &desc, NULL));
    return dc_exec_start(l->f->rt, j, &desc, &v->exec);
}

static void keep_types(dc_function *f, dc_fvariant *v)
{
    const dc_fnfile_variant *d = &v->file;
    v->arg_type = DC_NEW_ARRAY(&f->mem, dc_type, d->narg + 1);
    v->result_type = DC_NEW_ARRAY(&f->mem, dc_type, d->nresult + 1);
    for (uint32_t i = 0; i < d->narg; i++)
        v->arg_type[i] = dc_node_type(d->fn, d->fn->param.at[i]);
    for (uint32_t i = 0; i < d->nresult; i++)
        v->result_type[i] = dc_node_type(d->fn, d->fn->result.at[i]);
}

static dc_status bind(loading *l, dc_job *j, dc_fvariant *v)
{
    dc_function *f = l->f;
    const dc_fnfile_variant *d = &v->file;
    const dc_ref *param = d->fn->param.at;
    v->cell = DC_NEW_ARRAY(&f->mem, dc_cell *, d->ncell);
    v->in = DC_NEW_ARRAY(&f->mem, dc_tensor *, d->narg);
    v->arg = DC_NEW_ARRAY(&f->mem, dc_arg, d->narg + d->ncaptured);
    v->out = DC_NEW_ARRAY(&f->mem, dc_tensor *, d->nresult + d->nprinted);
    v->copy = DC_NEW_ARRAY(&f->mem, void *, d->nresult);
    for (uint32_t i = 0; i < d->narg; i++) {
        if (v->arg_type[i].rank > 0)
            DC_TRY(dc_tensor_new(f->rt, j, &v->arg_type[i], &v->in[i]));
        v->arg[i].tensor = v->in[i];
    }
    for (uint32_t i = 0; i < d->ncaptured + d->ncell; i++) {
        const bool is_cell = i >= d->ncaptured;
        const char *name = is_cell ? d->cell[i - d->ncaptured] : d->captured[i];
        const dc_type t = dc_node_type(d->fn, param[d->narg + i]);
        dc_fvalue *value = NULL;
        DC_TRY(value_of(l, j, name, is_cell, &t, &value));
        if (is_cell)
            v->cell[i - d->ncaptured] = value->cell;
        else
            v->arg[d->narg + i].tensor = value->tensor;
    }
    return DC_OK;
}

/* The same cell twice would be two memories that are one. */
static dc_status check_cells(loading *l, dc_job *j, dc_cell *const *cell, uint32_t n)
{
    const dc_cell *twice = dc_cells_twice(j, cell, n);
    return twice == NULL ? DC_OK : REFUSE("cell '%.80s' is named twice", twice->label);
}

/* What a file gets wrong has its path; other failures are as they are. */
static dc_status blame_file(loading *l, dc_job *j, uint32_t variant, dc_status status)
{
    char why[300];
    if (status != DC_E_TYPE && status != DC_E_VALUE && status != DC_E_FILE)
        return status;
    dc_err_render(&j->err, 0, why, sizeof why);
    dc_err_clear(&j->err);
    return REFUSE("variant %u: %s", variant + 1, why);
}

/* Begins to compile it, on another thread. */
static dc_status start_variant(loading *l, dc_job *j, uint32_t number, const char *text)
{
    dc_fvariant *v = &l->f->variant[number];
    dc_module *module = NULL;
    dc_status status = dc_fnfile_parse(j, &l->f->mem, text, &v->file, &module);
    if (status != DC_OK)
        return blame_file(l, j, number, status);
    dc_module_defer(j, module);
    status = build_variant(l, j, v);
    if (status != DC_OK)
        return blame_file(l, j, number, status);
    keep_types(l->f, v);
    DC_TRY(bind(l, j, v));
    DC_TRY(check_cells(l, j, v->cell, v->file.ncell));
    v->file.fn = NULL;
    dc_job_keep(j, module);
    dc_module_free(module);
    return DC_OK;
}

static dc_status finish_variant(loading *l, dc_job *j, dc_fvariant *v)
{
    DC_TRY(dc_exec_wait(l->f->rt, j, v->exec));
    return dc_inst_new(l->f->rt, j, v->exec, v->cell, &v->inst);
}

/* ---- the file -------------------------------------------------------------------------------- */

static const char *variant_text(const dc_st_file *file, uint32_t number)
{
    char key[40];
    snprintf(key, sizeof key, "variant.%u", number + 1);
    return dc_safetensors_text(file, key);
}

static dc_status read_texts(loading *l, dc_job *j)
{
    dc_function *f = l->f;
    const char *version = dc_safetensors_text(l->file, "deepc.function");
    const char *name = dc_safetensors_text(l->file, "name");
    const char *signature = dc_safetensors_text(l->file, "signature");
    if (version == NULL || name == NULL || signature == NULL)
        return REFUSE("no function is in it; f:export writes such files");
    if (strcmp(version, DC_FNFILE_VERSION) != 0)
        return REFUSE("function files of version '%.20s' are not known", version);
    f->name = dc_arena_strdup(&f->mem, name);
    f->signature = dc_arena_strdup(&f->mem, signature);
    while (variant_text(l->file, f->nvariant) != NULL)
        f->nvariant++;
    if (f->nvariant == 0)
        return REFUSE("the function has no variant");
    f->variant = DC_NEW_ARRAY(&f->mem, dc_fvariant, f->nvariant);
    return DC_OK;
}

dc_status dc_function_read(dc_job *j, dc_function *f, const char *path, const dc_function *beside)
{
    loading l = {.f = f, .path = path, .beside = beside};
    DC_TRY(dc_safetensors_open(j, path, &l.file));
    dc_safetensors_defer(j, l.file);
    uint32_t n;
    dc_safetensors_tensors(l.file, &n);
    l.value_at = DC_NEW_ARRAY(&j->scratch, uint32_t, n + 1);
    DC_TRY(read_texts(&l, j));
    for (uint32_t i = 0; i < f->nvariant; i++)
        DC_TRY(start_variant(&l, j, i, variant_text(l.file, i)));
    for (uint32_t i = 0; i < f->nvariant; i++)
        DC_TRY(finish_variant(&l, j, &f->variant[i]));
    DC_TRY(dc_safetensors_unchanged(l.file, j));
    dc_job_keep(j, l.file);
    dc_safetensors_close(l.file);
    return DC_OK;
}
