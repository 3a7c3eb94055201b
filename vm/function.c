/*
 * Functions that a host loads and calls without Lua (deepc.h). A call copies the arguments to memory that the
 * function has for them, runs the instance and copies the results; where the device is the host, results for
 * which the caller gave no memory are shown where they are. A call on the device binds what is given where it stands.
 */
#include "vm/function.h"

#include "core/runtime/entry.h"

#include <stdio.h>
#include <string.h>

#define ORDER(id, number) _Static_assert(DC_##id == (number), "element types are in vm/deepc.h too")
ORDER(BOOL, 0);
ORDER(I8, 1);
ORDER(I16, 2);
ORDER(I32, 3);
ORDER(I64, 4);
ORDER(U8, 5);
ORDER(U16, 6);
ORDER(U32, 7);
ORDER(U64, 8);
ORDER(F16, 9);
ORDER(BF16, 10);
ORDER(F32, 11);
ORDER(F64, 12);
ORDER(F8E4M3FN, 13);
ORDER(F8E5M2, 14);
_Static_assert(DC_DTYPE__COUNT == 15 && DC_MAX_RANK == 8, "element types are in vm/deepc.h too");

/* ---- life ------------------------------------------------------------------------------------ */

static uint32_t count_results(const dc_fvariant *v)
{
    return v->out != NULL ? v->file.nresult + v->file.nprinted : 0;
}

static void release_all(dc_tensor **t, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        dc_tensor_release(t[i]);
        t[i] = NULL;
    }
}

static void release_results(dc_fvariant *v)
{
    release_all(v->out, count_results(v));
}

static void free_variant(dc_fvariant *v)
{
    release_results(v);
    dc_inst_free(v->inst);
    dc_exec_release(v->exec);
    for (uint32_t i = 0; v->in != NULL && i < v->file.narg; i++)
        dc_tensor_release(v->in[i]);
    for (uint32_t i = 0; v->copy != NULL && i < v->file.nresult; i++)
        dc_xfree(v->copy[i]);
}

void dc_unload(dc_function *f)
{
    if (f == NULL || dc_rt_forked(f->rt) || dc_job_elsewhere(&f->rt->job))
        return;
    for (uint32_t i = 0; f->variant != NULL && i < f->nvariant; i++)
        free_variant(&f->variant[i]);
    for (uint32_t i = 0; i < f->value.n; i++) {
        dc_cell_release(f->value.at[i].cell);
        dc_tensor_release(f->value.at[i].tensor);
    }
    if (f->prev != NULL)
        f->prev->next = f->next;
    else
        f->rt->functions = f->next;
    if (f->next != NULL)
        f->next->prev = f->prev;
    dc_arena_free(&f->mem);
    dc_xfree(f);
}

typedef struct loading {
    dc_rt *rt;
    const char *path;
    const dc_function *beside;
    dc_function **out;
    dc_function *f;
} loading;

static dc_status load_body(dc_job *j, void *arg)
{
    loading *a = arg;
    DC_TRY(dc_rt_check(a->rt, j, NULL));
    if (a->path == NULL || a->out == NULL)
        return dc_failf(j, DC_ERR_ARG, NULL, "%s is needed, not NULL",
                        a->path == NULL ? "a path" : "a place for the function");
    if (a->beside != NULL && a->beside->rt != a->rt)
        return dc_failf(j, DC_ERR_ARG, NULL, "'%s' is of another context", a->beside->name);
    if (a->rt->opt.memory != 0) /* what waits in the pool is room for the file */
        dc_pool_drain(a->rt);
    dc_function *f = a->f = dc_xalloc(sizeof *f);
    f->rt = a->rt;
    f->next = a->rt->functions;
    if (f->next != NULL)
        f->next->prev = f;
    a->rt->functions = f;
    return dc_function_read(j, f, a->path, a->beside);
}

/* An entry of the host. */
static dc_status run_entry(dc_rt *rt, dc_status (*body)(dc_job *, void *), void *arg)
{
    dc_entry e;
    dc_status status = dc_entry_begin(rt, &e, rt->call_ms);
    if (status != DC_OK)
        return status;
    status = dc_rt_told(rt, dc_protect(&rt->job, body, arg));
    dc_entry_end(rt, &e);
    return status;
}

dc_status dc_load_beside(dc_rt *rt, const char *path, const dc_function *beside, dc_function **out)
{
    loading a = {.rt = rt, .path = path, .beside = beside, .out = out};
    if (out != NULL)
        *out = NULL;
    bool first;
    if (rt == NULL || !dc_job_enter(&rt->job, &first))
        return DC_E_STATE;
    rt->job.folders = NULL; /* those bind scripts, not the host */
    const dc_status status = run_entry(rt, load_body, &a);
    rt->job.folders = rt->folders;
    if (status == DC_OK)
        *out = a.f;
    else
        dc_unload(a.f);
    dc_job_leave(&rt->job, first);
    return status;
}

dc_status dc_load(dc_rt *rt, const char *path, dc_function **out)
{
    return dc_load_beside(rt, path, NULL, out);
}

/* ---- types ----------------------------------------------------------------------------------- */

static void describe(const dc_type *t, dc_array *out)
{
    if (out == NULL)
        return;
    *out = (dc_array){.dtype = (dc_dtype)t->dtype, .rank = t->rank, .bytes = dc_type_bytes(t)};
    for (int i = 0; i < t->rank; i++)
        out->dim[i] = t->dim[i];
}

static bool is_of(const dc_array *x, const dc_type *t)
{
    if (x->dtype != (dc_dtype)t->dtype || x->rank != t->rank)
        return false;
    for (int i = 0; i < t->rank; i++)
        if (x->dim[i] != t->dim[i])
            return false;
    return true;
}

/* "f32[1, 4], i32[]", as far as there is room. */
static void print_given(const dc_array *in, size_t n, char *out, size_t room)
{
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; i < n && at < room; i++) {
        char text[DC_TYPE_TEXT] = "no type";
        dc_type t = {.dtype = (uint8_t)in[i].dtype};
        if ((unsigned)in[i].dtype < DC_DTYPE__COUNT && in[i].rank >= 0 &&
            in[i].rank <= DC_MAX_RANK) {
            t.rank = (uint8_t)in[i].rank;
            memcpy(t.dim, in[i].dim, sizeof t.dim);
            dc_type_print(&t, text, sizeof text);
        }
        const int m = snprintf(out + at, room - at, "%s%s", i > 0 ? ", " : "", text);
        at += m > 0 ? (size_t)m : 0;
    }
}

static void print_types(const dc_type *t, size_t n, char *out, size_t room)
{
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; i < n && at < room; i++) {
        char text[DC_TYPE_TEXT];
        dc_type_print(&t[i], text, sizeof text);
        const int m = snprintf(out + at, room - at, "%s%s", i > 0 ? ", " : "", text);
        at += m > 0 ? (size_t)m : 0;
    }
}

/* ---- calls ----------------------------------------------------------------------------------- */

typedef struct calling {
    dc_function *f;
    const dc_array *in;
    dc_array *out;
    size_t nin, nout;
} calling;

/* The first thing that is said of a call. */
static dc_status check_pointers(dc_job *j, const calling *a)
{
    if ((a->in == NULL && a->nin > 0) || (a->out == NULL && a->nout > 0))
        return dc_failf(j, DC_ERR_ARG, a->f->name, "%zu %s are given as NULL",
                        a->in == NULL && a->nin > 0 ? a->nin : a->nout,
                        a->in == NULL && a->nin > 0 ? "arguments" : "results");
    return DC_OK;
}

static bool takes_arguments(const dc_fvariant *v, const calling *a)
{
    bool same = v->file.narg == a->nin;
    for (size_t i = 0; same && i < a->nin; i++)
        same = is_of(&a->in[i], &v->arg_type[i]);
    return same;
}

static dc_status fail_no_variant(dc_job *j, const calling *a)
{
    const dc_function *f = a->f;
    char given[120], known[240];
    size_t at = 0;
    print_given(a->in, a->nin, given, sizeof given);
    known[0] = '\0';
    for (uint32_t i = 0; i < f->nvariant && at < sizeof known; i++) {
        char types[120];
        print_types(f->variant[i].arg_type, f->variant[i].file.narg, types, sizeof types);
        const int m = snprintf(known + at, sizeof known - at, "%s(%s)", i > 0 ? ", " : "", types);
        at += m > 0 ? (size_t)m : 0;
    }
    return dc_failf(j, DC_ERR_ARG_KIND, f->name,
                    "no variant for arguments (%s); it was exported for %s", given, known);
}

static dc_status find_variant(dc_job *j, const calling *a, dc_fvariant **out)
{
    dc_function *f = a->f;
    for (uint32_t i = 0; i < f->nvariant; i++)
        if (takes_arguments(&f->variant[i], a)) {
            *out = &f->variant[i];
            return DC_OK;
        }
    return fail_no_variant(j, a);
}

/* How much memory there is, to read or to fill. */
static size_t held(const dc_array *a)
{
    return a->data != NULL ? a->bytes : 0;
}

static dc_status check_room(dc_job *j, const calling *a, const dc_fvariant *v)
{
    const dc_function *f = a->f;
    if (a->nout != v->file.nresult)
        return dc_failf(j, DC_ERR_ARG, f->name, "%zu results are asked for, it has %u", a->nout,
                        v->file.nresult);
    for (size_t i = 0; i < a->nin; i++)
        if (held(&a->in[i]) < dc_type_bytes(&v->arg_type[i]))
            return dc_failf(j, DC_ERR_ARG, f->name, "argument '%s' has %zu bytes, %zu are needed",
                            v->file.arg[i], held(&a->in[i]), dc_type_bytes(&v->arg_type[i]));
    for (size_t i = 0; i < a->nout; i++)
        if (a->out[i].data != NULL && a->out[i].bytes < dc_type_bytes(&v->result_type[i]))
            return dc_failf(j, DC_ERR_ARG, f->name,
                            "result %zu has room for %zu bytes, %zu are needed", i + 1,
                            a->out[i].bytes, dc_type_bytes(&v->result_type[i]));
    return DC_OK;
}

static dc_status take_arguments(dc_job *j, const calling *a, dc_fvariant *v)
{
    dc_device *dev = a->f->rt->device;
    for (size_t i = 0; i < a->nin; i++) {
        const dc_type *t = &v->arg_type[i];
        if (t->rank == 0)
            v->arg[i].bits = dc_bits_load((dc_dtype)t->dtype, a->in[i].data);
        else if (dc_type_bytes(t) > 0)
            DC_TRY(
                dev->ops->upload(dev, j, dc_tensor_mem(v->in[i]), a->in[i].data, dc_type_bytes(t)));
    }
    return DC_OK;
}

/* Where a result is shown for which the caller gave no memory. */
static dc_status show_result(dc_job *j, dc_fvariant *v, size_t i, dc_device *dev, void **at)
{
    const size_t bytes = dc_type_bytes(&v->result_type[i]);
    *at = dc_tensor_mem(v->out[i]);
    if (dev->ops->host)
        return DC_OK;
    if (v->copy[i] == NULL)
        v->copy[i] = dc_xalloc(bytes);
    *at = v->copy[i];
    return dev->ops->download(dev, j, *at, dc_tensor_mem(v->out[i]), bytes);
}

static dc_status give_results(dc_job *j, const calling *a, dc_fvariant *v)
{
    dc_device *dev = a->f->rt->device;
    if (dev->ops->finish != NULL)
        DC_TRY(dev->ops->finish(dev, j));
    for (size_t i = 0; i < a->nout; i++) {
        void *at = a->out[i].data;
        const size_t bytes = dc_type_bytes(&v->result_type[i]);
        describe(&v->result_type[i], &a->out[i]);
        if (at == NULL)
            DC_TRY(show_result(j, v, i, dev, &at));
        else if (bytes > 0)
            DC_TRY(dev->ops->download(dev, j, at, dc_tensor_mem(v->out[i]), bytes));
        a->out[i].data = at;
    }
    return DC_OK;
}

/* The sentence of a check that failed, as scripts read it. */
static dc_status fail_check(dc_job *j, const dc_fvariant *v, const dc_fault *fault)
{
    const dc_fnfile_check *c = &v->file.check[fault->check];
    const dc_err_id id = dc_fnfile_failure(c);
    char where[120];
    if (dc_fnfile_role(id) != NULL)
        dc_type_matrix(&c->type, fault->position, where, sizeof where);
    else
        dc_type_position(&c->type, fault->position, where, sizeof where);
    return dc_fail(j, id,
                   &(dc_fact){.op = c->op,
                              .axis = {c->axis},
                              .num = {fault->value, c->classes - 1, fault->position + 1},
                              .word = {where}});
}

static dc_status call_body(dc_job *j, void *arg)
{
    const calling *a = arg;
    dc_fvariant *v = NULL;
    dc_fault fault;
    DC_TRY(dc_rt_check(a->f->rt, j, a->f->name));
    DC_TRY(check_pointers(j, a));
    DC_TRY(find_variant(j, a, &v));
    DC_TRY(check_room(j, a, v));
    release_results(v);
    DC_TRY(take_arguments(j, a, v));
    const dc_status status = dc_inst_call(v->inst, j, v->arg, v->out, &fault);
    if (status != DC_OK)
        return fault.check >= 0 ? fail_check(j, v, &fault) : status;
    return give_results(j, a, v);
}

dc_status dc_call(dc_function *f, const dc_array *in, size_t nin, dc_array *out, size_t nout)
{
    calling a = {f, in, out, nin, nout};
    return f != NULL ? run_entry(f->rt, call_body, &a) : DC_E_STATE;
}

/* ---- calls on the device --------------------------------------------------------------------- */

static dc_status check_addresses(dc_job *j, const calling *a, const dc_fvariant *v)
{
    for (size_t i = 0; i < a->nin; i++)
        if ((uintptr_t)a->in[i].data % DC_ALIGN != 0)
            return dc_failf(j, DC_ERR_ARG, a->f->name,
                            "argument '%s' begins at %p, a multiple of %d is needed",
                            v->file.arg[i], a->in[i].data, DC_ALIGN);
    return DC_OK;
}

/* Tensors for the time of the call over what is given. */
static dc_arg *bind_addresses(dc_job *j, const calling *a, const dc_fvariant *v)
{
    const dc_exec_desc *d = dc_exec_desc_of(v->exec);
    dc_arg *arg = DC_NEW_ARRAY(&j->scratch, dc_arg, d->nfree);
    for (uint32_t i = 0; i < d->nfree; i++)
        arg[i] = v->arg[i];
    for (size_t i = 0; i < a->nin; i++) {
        dc_storage *s = DC_NEW(&j->scratch, dc_storage);
        dc_tensor *t = DC_NEW(&j->scratch, dc_tensor);
        *s = (dc_storage){.rt = a->f->rt,
                          .mem = a->in[i].data,
                          .bytes = dc_type_bytes(&v->arg_type[i]),
                          .shown = t,
                          .owned = true,
                          .foreign = true};
        *t = (dc_tensor){.refs = 1, .type = v->arg_type[i], .store = s};
        arg[i] = (dc_arg){.tensor = t};
    }
    return arg;
}

static dc_status leave_results(dc_job *j, const calling *a, const dc_fvariant *v)
{
    dc_device *dev = a->f->rt->device;
    for (size_t i = 0; i < a->nout; i++) {
        void *at = a->out[i].data, *mem = dc_tensor_mem(v->out[i]);
        const size_t bytes = dc_type_bytes(&v->result_type[i]);
        describe(&v->result_type[i], &a->out[i]);
        if (at != NULL && bytes > 0)
            DC_TRY(dev->ops->copy(dev, j, at, mem, bytes));
        a->out[i].data = at != NULL ? at : mem;
    }
    return DC_OK;
}

typedef struct old_results {
    dc_tensor **t;
    uint32_t n;
} old_results;

static void release_old(void *arg)
{
    const old_results *o = arg;
    release_all(o->t, o->n);
}

/* Results of the call before may be arguments of this one: they go afterwards. */
static dc_status call_with_old(dc_job *j, const calling *a, dc_fvariant *v)
{
    dc_fault fault;
    const uint32_t n = count_results(v);
    old_results *old = DC_NEW_ARRAY(&j->scratch, old_results, 1); /* this frame may be unwound */
    *old = (old_results){DC_NEW_ARRAY(&j->scratch, dc_tensor *, n), n};
    const dc_arg *arg = bind_addresses(j, a, v);
    for (uint32_t i = 0; i < n; i++) {
        old->t[i] = v->out[i];
        v->out[i] = NULL;
    }
    dc_job_defer(j, release_old, old);
    const dc_status status = dc_inst_call(v->inst, j, arg, v->out, &fault);
    dc_job_keep(j, old);
    release_old(old);
    if (status != DC_OK)
        return fault.check >= 0 ? fail_check(j, v, &fault) : status;
    return leave_results(j, a, v);
}

static dc_status call_device_body(dc_job *j, void *arg)
{
    const calling *a = arg;
    const dc_device_ops *ops = a->f->rt->device->ops;
    dc_fvariant *v = NULL;
    DC_TRY(dc_rt_check(a->f->rt, j, a->f->name));
    if ((!ops->host && !ops->shares) || ops->copy == NULL)
        return dc_failf(j, DC_ERR_ARG, a->f->name,
                        "addresses of '%s' are its own: dc_call takes memory of the host",
                        a->f->rt->opt.device);
    DC_TRY(check_pointers(j, a));
    DC_TRY(find_variant(j, a, &v));
    DC_TRY(check_room(j, a, v));
    DC_TRY(check_addresses(j, a, v));
    return call_with_old(j, a, v);
}

dc_status dc_call_device(dc_function *f, const dc_array *in, size_t nin, dc_array *out, size_t nout)
{
    calling a = {f, in, out, nin, nout};
    return f != NULL ? run_entry(f->rt, call_device_body, &a) : DC_E_STATE;
}

/* ---- what there is --------------------------------------------------------------------------- */

const char *dc_function_signature(const dc_function *f)
{
    return f != NULL ? f->signature : "";
}

size_t dc_function_variants(const dc_function *f)
{
    return f != NULL ? f->nvariant : 0;
}

bool dc_function_argument(const dc_function *f, size_t variant, size_t number, const char **name,
                          dc_array *out)
{
    if (variant >= dc_function_variants(f) || number >= f->variant[variant].file.narg)
        return false;
    if (name != NULL)
        *name = f->variant[variant].file.arg[number];
    describe(&f->variant[variant].arg_type[number], out);
    return true;
}

bool dc_function_result(const dc_function *f, size_t variant, size_t number, dc_array *out)
{
    if (variant >= dc_function_variants(f) || number >= f->variant[variant].file.nresult)
        return false;
    describe(&f->variant[variant].result_type[number], out);
    return true;
}

/* ---- parameters and states ------------------------------------------------------------------- */

bool dc_function_cell(const dc_function *f, size_t number, const char **name, dc_array *out)
{
    for (uint32_t i = 0; f != NULL && i < f->value.n; i++) {
        const dc_fvalue *v = &f->value.at[i];
        if (v->cell == NULL || number-- > 0)
            continue;
        if (name != NULL)
            *name = v->name;
        describe(&v->cell->type, out);
        return true;
    }
    return false;
}

typedef struct moving {
    dc_function *f;
    const char *name;
    const dc_array *in;
    dc_array *out;
} moving;

static dc_status find_cell(dc_job *j, const moving *m, dc_cell **out)
{
    DC_TRY(dc_rt_check(m->f->rt, j, m->f->name));
    if (m->name == NULL || (m->in == NULL && m->out == NULL))
        return dc_failf(j, DC_ERR_ARG, m->f->name, "%s is needed, not NULL",
                        m->name == NULL ? "a name" : "a tensor");
    for (uint32_t i = 0; i < m->f->value.n; i++)
        if (m->f->value.at[i].cell != NULL && strcmp(m->f->value.at[i].name, m->name) == 0) {
            *out = m->f->value.at[i].cell;
            return dc_cell_check(*out, j, m->f->name, m->in == NULL);
        }
    return dc_failf(j, DC_ERR_ARG, m->f->name, "no parameter or state is called '%.80s'", m->name);
}

static dc_status get_body(dc_job *j, void *arg)
{
    const moving *m = arg;
    dc_device *dev = m->f->rt->device;
    dc_cell *c = NULL;
    DC_TRY(find_cell(j, m, &c));
    const size_t bytes = dc_type_bytes(&c->type);
    void *at = m->out->data;
    if (held(m->out) < bytes)
        return dc_failf(j, DC_ERR_ARG, m->f->name, "'%.80s' has %zu bytes, there is room for %zu",
                        m->name, bytes, held(m->out));
    if (dev->ops->finish != NULL)
        DC_TRY(dev->ops->finish(dev, j));
    describe(&c->type, m->out);
    m->out->data = at;
    return bytes > 0 ? dev->ops->download(dev, j, at, c->store->mem, bytes) : DC_OK;
}

static dc_status set_body(dc_job *j, void *arg)
{
    const moving *m = arg;
    dc_device *dev = m->f->rt->device;
    dc_cell *c = NULL;
    char given[120], wanted[DC_TYPE_TEXT];
    DC_TRY(find_cell(j, m, &c));
    const size_t bytes = dc_type_bytes(&c->type);
    if (!is_of(m->in, &c->type) || held(m->in) < bytes) {
        print_given(m->in, 1, given, sizeof given);
        dc_type_print(&c->type, wanted, sizeof wanted);
        return dc_failf(j, DC_ERR_ARG_KIND, m->f->name, "'%.80s' is %s, not %s with %zu bytes",
                        m->name, wanted, given, held(m->in));
    }
    DC_TRY(dc_storage_evict(c->store, j));
    if (dev->ops->finish != NULL)
        DC_TRY(dev->ops->finish(dev, j));
    const dc_status status =
        bytes > 0 ? dev->ops->upload(dev, j, c->store->mem, m->in->data, bytes) : DC_OK;
    dc_cell_written(c, status != DC_OK); /* of what goes in pieces, some may have arrived */
    return status;
}

/* No entry: what was asked for while nothing ran does not end it. */
static dc_status move(dc_function *f, dc_status (*body)(dc_job *, void *), void *arg)
{
    dc_job *j = &f->rt->job;
    bool first;
    if (!dc_job_enter(j, &first))
        return DC_E_STATE;
    const atomic_bool *cancel = dc_job_heed(j, NULL);
    const dc_status status = dc_protect(j, body, arg);
    dc_job_heed(j, cancel);
    dc_job_leave(j, first);
    return status;
}

dc_status dc_function_get(dc_function *f, const char *name, dc_array *out)
{
    moving m = {.f = f, .name = name, .out = out};
    return f != NULL ? move(f, get_body, &m) : DC_E_STATE;
}

dc_status dc_function_set(dc_function *f, const char *name, const dc_array *value)
{
    moving m = {.f = f, .name = name, .in = value};
    return f != NULL ? move(f, set_body, &m) : DC_E_STATE;
}
