#include "dsl/modules/batch_gather.h"

#include "jit/jit.h"

#include <string.h>

enum { PARTS = DC_GATHER_PARTS, KEPT = 8 };

/* A program, in the list of the state: the last used first. */
typedef struct dc_gather {
    dc_gather_form form;
    dc_exec *exec;
    dc_inst *inst; /* NULL before the first batch */
    struct dc_gather *next;
} dc_gather;

/* ---- programs -------------------------------------------------------------------------------- */

static void free_gather(void *what)
{
    dc_gather *g = what;
    dc_inst_free(g->inst);
    dc_exec_release(g->exec);
    dc_xfree(g);
}

/* As integers, whatever the elements are: so programs are shared, and every device can. */
static dc_type words_of(size_t row, int64_t rows)
{
    const bool whole = row % sizeof(int32_t) == 0;
    const int64_t dim[] = {rows, (int64_t)(whole ? row / sizeof(int32_t) : row)};
    return dc_type_make(whole ? DC_I32 : DC_U8, 2, dim);
}

/* f(x, y ..., order) -> rows of x, rows of y ... */
static void write_graph(dc_func *f, const dc_gather_form *form)
{
    const int64_t lo[] = {0, 0}, step[] = {1, 1};
    const dc_type order = dc_type_make(DC_I32, 1, &form->rows);
    dc_ref in[PARTS];
    for (int part = 0; part < form->n; part++) {
        const dc_type t = words_of(form->row[part], form->from);
        in[part] = dc_graph_param(f, &t, part == 0 ? "x" : part == 1 ? "y" : "z");
    }
    const dc_ref at = dc_graph_param(f, &order, "order");
    for (int part = 0; part < form->n; part++) {
        const dc_type t = words_of(form->row[part], form->room);
        dc_ref r = dc_graph_gather(f, in[part], at, 0, 0);
        if (form->room > form->rows)
            r = dc_graph_pad(f, r, lo, step, t.dim, 0);
        DC_PUSH(f->result, r);
    }
}

static void free_module(void *m)
{
    dc_module_free(m);
}

static dc_status start(dc_rt *rt, dc_job *j, const dc_gather_form *form, dc_exec **out)
{
    bool anywhere[PARTS + 1] = {0};
    dc_module *m = dc_module_new();
    dc_job_defer(j, free_module, m);
    dc_func *f = dc_func_new(m, "batches");
    anywhere[form->n] = true;
    write_graph(f, form);
    const dc_exec_desc desc = {.fn = f,
                               .name = "batches",
                               .nfree = (uint32_t)form->n + 1,
                               .nresult = (uint32_t)form->n,
                               .anywhere = anywhere};
    const dc_status status = dc_exec_start(rt, j, &desc, out);
    dc_job_keep(j, m);
    dc_module_free(m);
    return status;
}

static bool same_form(const dc_gather_form *a, const dc_gather_form *b)
{
    return a->from == b->from && a->rows == b->rows && a->room == b->room && a->n == b->n &&
           memcmp(a->row, b->row, (size_t)a->n * sizeof a->row[0]) == 0;
}

/* NULL, or the program, which is now the first. */
static dc_gather *find(dc_dsl *d, const dc_gather_form *form)
{
    for (dc_gather **at = &d->gathers; *at != NULL; at = &(*at)->next) {
        dc_gather *g = *at;
        if (!same_form(&g->form, form))
            continue;
        *at = g->next;
        g->next = d->gathers;
        return d->gathers = g;
    }
    return NULL;
}

static void drop_oldest(dc_dsl *d)
{
    dc_gather **at = &d->gathers;
    for (int n = 0; *at != NULL && n < KEPT; n++)
        at = &(*at)->next;
    if (*at != NULL)
        free_gather(*at);
    *at = NULL;
}

dc_status dc_gather_start(dc_dsl *d, dc_job *j, const dc_gather_form *form)
{
    if (find(d, form) != NULL)
        return DC_OK;
    dc_gather *g = dc_xalloc(sizeof *g);
    g->form = *form;
    dc_job_defer(j, free_gather, g);
    DC_TRY(dc_job_settle(j, g, start(d->rt, j, form, &g->exec)));
    g->next = d->gathers;
    d->gathers = g;
    drop_oldest(d);
    return DC_OK;
}

void dc_gather_close_all(dc_dsl *d)
{
    for (dc_gather *g; (g = d->gathers) != NULL;) {
        d->gathers = g->next;
        free_gather(g);
    }
}

/* ---- calls ----------------------------------------------------------------------------------- */

dc_status dc_gather_order(dc_rt *rt, dc_job *j, const uint32_t *at, int64_t n, dc_tensor **out)
{
    const dc_type type = dc_type_make(DC_I32, 1, &n);
    if (n == 0 || n > INT32_MAX)
        return DC_OK;
    DC_TRY(dc_tensor_new(rt, j, &type, out));
    return rt->device->ops->upload(rt->device, j, dc_tensor_mem(*out), at, dc_type_bytes(&type));
}

static dc_status call(dc_gather *g, dc_job *j, dc_tensor *const from[PARTS], const dc_tensor *order,
                      int64_t first, dc_tensor *out[PARTS])
{
    const int n = g->form.n;
    const dc_type numbers = dc_type_make(DC_I32, 1, &g->form.rows);
    dc_arg arg[PARTS + 1];
    dc_tensor *seen[PARTS + 1];
    dc_fault none;
    for (int part = 0; part < n; part++) {
        const dc_type t = words_of(g->form.row[part], g->form.from);
        seen[part] = dc_tensor_part(from[part], &t, 0);
        dc_tensor_defer(j, seen[part]);
    }
    seen[n] = dc_tensor_window(order, &numbers, (size_t)first * sizeof(int32_t));
    dc_tensor_defer(j, seen[n]);
    for (int i = 0; i <= n; i++)
        arg[i] = (dc_arg){.tensor = seen[i]};
    const dc_status status = dc_inst_call(g->inst, j, arg, out, &none);
    for (int i = n; i >= 0; i--) {
        dc_job_keep(j, seen[i]);
        dc_tensor_release(seen[i]);
    }
    return status;
}

dc_status dc_gather_rows(dc_dsl *d, dc_job *j, const dc_gather_form *form,
                         dc_tensor *const from[PARTS], const dc_tensor *order, int64_t first,
                         const dc_type type[PARTS], dc_tensor *out[PARTS])
{
    dc_exec_info info;
    dc_tensor *words[PARTS];
    DC_TRY(dc_gather_start(d, j, form)); /* others may have taken its place */
    dc_gather *g = d->gathers;
    DC_TRY(dc_exec_wait(d->rt, j, g->exec));
    dc_exec_info_of(g->exec, &info);
    if (info.interpreted)
        return DC_OK;
    if (g->inst == NULL)
        DC_TRY(dc_inst_new(d->rt, j, g->exec, NULL, &g->inst));
    DC_TRY(call(g, j, from, order, first, words));
    for (int part = 0; part < form->n; part++)
        dc_tensor_defer(j, words[part]);
    for (int part = 0; part < form->n; part++)
        out[part] = dc_tensor_part(words[part], &type[part], 0);
    for (int part = form->n - 1; part >= 0; part--) {
        dc_job_keep(j, words[part]);
        dc_tensor_release(words[part]);
    }
    return DC_OK;
}
