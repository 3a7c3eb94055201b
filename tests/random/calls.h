/*
 * One function run in two ways on one device, call after call: with every value an argument or a result,
 * and with some parameters as cells that it sets.
 *
 * Both run the same kernels, so every bit must agree; the one without cells agrees with the interpreter
 * within the bound of tests/unit/graphgen.h. Each call starts from the values that the one before left, so
 * bounds are those of one call. Between calls results are held or let go, cells are shown and written, and
 * arguments of the next call are the old value of a cell or an earlier result: what is held must never change.
 */
#ifndef DC_TESTS_CALLS_H
#define DC_TESTS_CALLS_H

#include "core/ir/gtext.h"
#include "jit/cache/disk_cache.h"
#include "jit/compile/compile_job.h"

#include <math.h>

#include "tests/random/suite.h"
#include "tests/unit/commands_text.h"

enum { CALLS = 4, CALLS_HELD = 64 };

typedef struct calls_held { /* a tensor, and what it must show for good */
    dc_tensor *tensor;
    void *bytes;
} calls_held;

typedef struct calls {
    suite *s;
    dc_rt *rt;
    dc_job *j;
    rng rnd;
    uint64_t seed; /* that makes it again */
    bool print;    /* the function when something is wrong */
    bool any; /* arguments may be anything of their type; else they are refilled for each call */
    dc_func *f;
    dc_exec_desc plain, donating;
    /* Puts other values into param[i], such as a script could have. */
    void (*refill)(struct calls *b, uint32_t i);
    dc_type *type;        /* by parameter */
    void **param;         /* what the next call starts from */
    dc_type *result_type; /* results and new values */
    void **result;        /* of the plain run */
    /*
     * Memory of cells is laid out anew: the kernels are not those of the plain run, and round elsewhere. Then
     * these are what the interpreter has, and how far off a result may be.
     */
    bool laid_out;
    double **value, **bound;
    dc_cell **cell;
    calls_held held[CALLS_HELD];
    int nheld;
} calls;

typedef struct calls_totals {
    uint64_t donated, denied, laid_out; /* cells; functions */
    long compared, bounded;             /* elements; those that must be right to three digits */
} calls_totals;

static inline bool calls_chance(calls *b, int percent)
{
    return rng_below(&b->rnd, 100) < percent;
}

static inline void *calls_room(calls *b, const dc_type *t)
{
    return dc_arena_alloc(&b->j->scratch, dc_type_bytes(t) + 1);
}

/* Room for the parameters of b->f, to be filled. */
static inline void calls_params(calls *b)
{
    const dc_func *f = b->f;
    dc_arena *a = &b->j->scratch;
    b->type = DC_NEW_ARRAY(a, dc_type, f->param.n + 1);
    b->param = DC_NEW_ARRAY(a, void *, f->param.n + 1);
    b->cell = DC_NEW_ARRAY(a, dc_cell *, f->param.n + 1);
    for (uint32_t i = 0; i < f->param.n; i++) {
        b->type[i] = dc_node_type(f, f->param.at[i]);
        b->param[i] = calls_room(b, &b->type[i]);
    }
}

static inline void calls_make_results(calls *b)
{
    const dc_func *f = b->f;
    b->result_type = DC_NEW_ARRAY(&b->j->scratch, dc_type, f->result.n + 1);
    b->result = DC_NEW_ARRAY(&b->j->scratch, void *, f->result.n + 1);
    for (uint32_t i = 0; i < f->result.n; i++) {
        b->result_type[i] = dc_node_type(f, f->result.at[i]);
        b->result[i] = calls_room(b, &b->result_type[i]);
    }
}

/* Memory of the device -------------------------------------------------------------------------- */

static inline dc_status calls_upload(calls *b, const dc_type *t, const void *bytes, dc_tensor **out)
{
    DC_TRY(dc_tensor_new(b->rt, b->j, t, out));
    if (dc_type_bytes(t) == 0)
        return DC_OK;
    return b->rt->device->ops->upload(b->rt->device, b->j, dc_tensor_mem(*out), bytes,
                                      dc_type_bytes(t));
}

static inline dc_status calls_download(calls *b, const dc_storage *from, const dc_type *t,
                                       void *out)
{
    if (dc_type_bytes(t) == 0)
        return DC_OK;
    return b->rt->device->ops->download(b->rt->device, b->j, out, from->mem, dc_type_bytes(t));
}

/* The same bits, but for those of a NaN, whose sign is up to how a compiler orders operands. */
static inline bool calls_same(const dc_type *t, const char *got, const char *want)
{
    const dc_dtype dtype = (dc_dtype)t->dtype;
    const size_t size = dc_dtype_size(dtype), n = dc_type_bytes(t);
    if (memcmp(got, want, n) == 0)
        return true;
    for (size_t i = 0; i < n; i += size)
        if (memcmp(got + i, want + i, size) != 0 &&
            !(dc_dtype_is_float(dtype) && isnan(dc_value_of(dtype, dc_bits_load(dtype, got + i))) &&
              isnan(dc_value_of(dtype, dc_bits_load(dtype, want + i)))))
            return false;
    return true;
}

/* Does the device's memory hold these bytes? Says what does not. */
static inline dc_status calls_expect(calls *b, const dc_storage *got, const dc_type *t,
                                     const void *want, const char *what, uint32_t number)
{
    const dc_mark mark = dc_arena_mark(&b->j->scratch);
    char *bytes = calls_room(b, t);
    DC_TRY(calls_download(b, got, t, bytes));
    if (!CHECK(calls_same(t, bytes, want)))
        printf("%s: function %llu: %s %u differs\n", b->s->device, (unsigned long long)b->seed,
               what, number);
    dc_arena_rewind(&b->j->scratch, mark);
    return DC_OK;
}

static inline dc_status calls_make_cells(calls *b)
{
    const uint32_t nfree = b->donating.nfree;
    for (uint32_t c = 0; c < b->donating.ncell; c++) {
        dc_tensor *value;
        DC_TRY(calls_upload(b, &b->type[nfree + c], b->param[nfree + c], &value));
        DC_TRY(dc_cell_new(b->rt, b->j, &b->type[nfree + c], NULL, false, &b->cell[c]));
        DC_TRY(dc_cell_write(b->cell[c], b->j, value));
        dc_tensor_release(value);
    }
    return DC_OK;
}

/* What is held ------------------------------------------------------------------------------------ */

/* Takes the reference. With no room left an earlier one goes. */
static inline void calls_hold(calls *b, dc_tensor *t, const void *bytes)
{
    calls_held *h = &b->held[b->nheld < CALLS_HELD ? b->nheld++ : rng_below(&b->rnd, CALLS_HELD)];
    dc_tensor_release(h->tensor);
    h->tensor = t;
    h->bytes = calls_room(b, &t->type);
    memcpy(h->bytes, bytes, dc_type_bytes(&t->type));
}

static inline dc_status calls_check_held(calls *b)
{
    for (int i = 0; i < b->nheld; i++)
        DC_TRY(calls_expect(b, b->held[i].tensor->store, &b->held[i].tensor->type, b->held[i].bytes,
                            "held tensor", (uint32_t)i));
    return DC_OK;
}

static inline void calls_let_go(calls *b)
{
    for (int i = 0; i < b->nheld; i++)
        dc_tensor_release(b->held[i].tensor);
    b->nheld = 0;
    memset(b->held, 0, sizeof b->held);
}

/* Something held of this type, or NULL. */
static inline const calls_held *calls_held_of_type(calls *b, const dc_type *t)
{
    const int first = b->nheld > 0 ? rng_below(&b->rnd, b->nheld) : 0;
    for (int i = 0; i < b->nheld; i++) {
        const calls_held *h = &b->held[(first + i) % b->nheld];
        if (dc_type_same(&h->tensor->type, t))
            return h;
    }
    return NULL;
}

/* Between calls: some cells are shown, some are written from outside. */
static inline dc_status calls_use_cells(calls *b)
{
    const uint32_t nfree = b->donating.nfree;
    for (uint32_t c = 0; c < b->donating.ncell; c++) {
        const dc_type *t = &b->type[nfree + c];
        dc_tensor *value;
        if (calls_chance(b, 40))
            calls_hold(b, dc_cell_show(b->cell[c]), b->param[nfree + c]);
        if (!calls_chance(b, 10))
            continue;
        b->refill(b, nfree + c);
        DC_TRY(calls_upload(b, t, b->param[nfree + c], &value));
        DC_TRY(dc_cell_write(b->cell[c], b->j, value));
        dc_tensor_release(value);
    }
    return DC_OK;
}

/* Calls ------------------------------------------------------------------------------------------ */

/* Fresh copies of everything. */
static inline dc_status calls_call_plain(calls *b, dc_inst *inst)
{
    dc_arg *arg = DC_NEW_ARRAY(&b->j->scratch, dc_arg, b->plain.nfree + 1);
    dc_tensor **in = DC_NEW_ARRAY(&b->j->scratch, dc_tensor *, b->plain.nfree + 1);
    dc_tensor **out = DC_NEW_ARRAY(&b->j->scratch, dc_tensor *, b->plain.nresult + 1);
    dc_fault fault;
    for (uint32_t i = 0; i < b->plain.nfree; i++) {
        DC_TRY(calls_upload(b, &b->type[i], b->param[i], &in[i]));
        arg[i] = (dc_arg){.tensor = in[i]};
    }
    DC_TRY(dc_inst_call(inst, b->j, arg, out, &fault));
    for (uint32_t i = 0; i < b->plain.nresult; i++) {
        DC_TRY(calls_download(b, out[i]->store, &b->result_type[i], b->result[i]));
        dc_tensor_release(out[i]);
    }
    for (uint32_t i = 0; i < b->plain.nfree; i++)
        dc_tensor_release(in[i]);
    return DC_OK;
}

/* Free arguments: something held, whatever it shows, or new values. */
static inline dc_status calls_choose_args(calls *b, dc_tensor **in)
{
    for (uint32_t i = 0; i < b->donating.nfree; i++) {
        const dc_type *t = &b->type[i];
        const calls_held *h = b->any && calls_chance(b, 60) ? calls_held_of_type(b, t) : NULL;
        if (!b->any)
            b->refill(b, i);
        if (h != NULL) {
            memcpy(b->param[i], h->bytes, dc_type_bytes(t));
            in[i] = dc_tensor_retain(h->tensor);
        } else {
            DC_TRY(calls_upload(b, t, b->param[i], &in[i]));
        }
    }
    return DC_OK;
}

/* Takes what there is, within its bound, for what is expected from now on. */
static inline dc_status calls_accept(calls *b, const dc_storage *got, uint32_t r)
{
    const dc_type *t = &b->result_type[r];
    DC_TRY(calls_download(b, got, t, b->result[r]));
    if (!CHECK(graphgen_differs((dc_dtype)t->dtype, b->result[r], b->value[r], b->bound[r],
                                dc_type_count(t), 1) < 0))
        printf("%s: function %llu: result %u is out of its bound where cells are laid out\n",
               b->s->device, (unsigned long long)b->seed, r);
    return DC_OK;
}

static inline dc_status calls_accept_cells(calls *b)
{
    const dc_exec_desc *d = &b->donating;
    for (uint32_t c = 0; c < d->ncell; c++)
        DC_TRY(dc_cell_check(b->cell[c], b->j, NULL, true));
    for (uint32_t i = 0; i < d->nset && b->laid_out; i++)
        DC_TRY(calls_accept(b, b->cell[d->set[i]]->store, d->nresult + i));
    return DC_OK;
}

static inline dc_status calls_call_donating(calls *b, dc_inst *inst, dc_tensor **in)
{
    const dc_exec_desc *d = &b->donating;
    dc_arg *arg = DC_NEW_ARRAY(&b->j->scratch, dc_arg, d->nfree + 1);
    dc_tensor **out = DC_NEW_ARRAY(&b->j->scratch, dc_tensor *, d->nresult + 1);
    dc_fault fault;
    for (uint32_t i = 0; i < d->nfree; i++)
        arg[i] = (dc_arg){.tensor = in[i]};
    DC_TRY(dc_inst_call(inst, b->j, arg, out, &fault));
    for (uint32_t i = 0; i < d->nfree; i++)
        dc_tensor_release(in[i]);
    for (uint32_t i = 0; i < d->nresult; i++) {
        if (b->laid_out)
            DC_TRY(calls_accept(b, out[i]->store, i));
        DC_TRY(calls_expect(b, out[i]->store, &b->result_type[i], b->result[i], "result", i));
        if (calls_chance(b, 50))
            calls_hold(b, out[i], b->result[i]);
        else
            dc_tensor_release(out[i]);
    }
    return DC_OK;
}

/* The plain run's new values are what the cells hold now, and the next call starts from. */
static inline dc_status calls_carry_over(calls *b)
{
    const dc_exec_desc *d = &b->donating;
    for (uint32_t i = 0; i < d->nset; i++) {
        const uint32_t p = d->nfree + b->donating.set[i];
        memcpy(b->param[p], b->result[d->nresult + i], dc_type_bytes(&b->type[p]));
    }
    for (uint32_t c = 0; c < d->ncell; c++)
        DC_TRY(calls_expect(b, b->cell[c]->store, &b->type[d->nfree + c], b->param[d->nfree + c],
                            "cell", c));
    return DC_OK;
}

/* The plain run against the interpreter. */
static inline dc_status calls_check_values(calls *b, calls_totals *all)
{
    const uint32_t n = b->f->result.n;
    double **value = b->value = DC_NEW_ARRAY(&b->j->scratch, double *, n + 1);
    double **bound = b->bound = DC_NEW_ARRAY(&b->j->scratch, double *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        const int64_t count = dc_type_count(&b->result_type[i]);
        value[i] = DC_NEW_ARRAY(&b->j->scratch, double, count + 1);
        bound[i] = DC_NEW_ARRAY(&b->j->scratch, double, count + 1);
    }
    DC_TRY(graphgen_bound(b->j, b->f, (const void *const *)b->param, value, bound));
    for (uint32_t i = 0; i < n; i++) {
        const dc_type *t = &b->result_type[i];
        const int64_t count = dc_type_count(t);
        all->compared += (long)count;
        for (int64_t k = 0; k < count; k++)
            all->bounded += bound[i][k] <= 1e-3 * (1 + fabs(value[i][k]));
        if (!CHECK(graphgen_differs((dc_dtype)t->dtype, b->result[i], value[i], bound[i], count,
                                    1) < 0))
            printf("%s: function %llu: result %u is out of its bound\n", b->s->device,
                   (unsigned long long)b->seed, i);
    }
    return DC_OK;
}

static inline dc_status calls_run_calls(calls *b, dc_inst *plain, dc_inst *donating,
                                        calls_totals *all)
{
    dc_tensor **in = DC_NEW_ARRAY(&b->j->scratch, dc_tensor *, b->donating.nfree + 1);
    for (int n = 0; n < CALLS; n++) {
        DC_TRY(calls_use_cells(b));
        DC_TRY(calls_choose_args(b, in));
        DC_TRY(calls_call_plain(b, plain));
        DC_TRY(calls_check_values(b, all));
        DC_TRY(calls_call_donating(b, donating, in));
        DC_TRY(calls_accept_cells(b));
        DC_TRY(calls_carry_over(b));
        DC_TRY(calls_check_held(b));
    }
    return DC_OK;
}

/* Where kernels are kept on disk: made again of what is there, the same in every respect. */
static inline dc_status calls_build(calls *b, const dc_exec_desc *d, dc_exec **out)
{
    dc_text plan[2] = {{0}, {0}};
    DC_TRY(dc_exec_build(b->rt, b->j, d, out));
    if (b->rt->jit == NULL || b->rt->jit->cache == NULL)
        return DC_OK;
    commands_text(*out, &plan[0]);
    dc_exec_release(*out);
    dc_cache_flush(b->rt->jit->cache);
    const dc_status status = dc_exec_build(b->rt, b->j, d, out);
    if (status == DC_OK) {
        commands_text(*out, &plan[1]);
        if (plan[0].s != NULL)
            CHECK_STR(plan[1].s, plan[0].s);
    }
    for (int i = 0; i < 2; i++)
        dc_text_free(&plan[i]);
    return status;
}

static inline dc_status calls_run_both(calls *b, calls_totals *all)
{
    dc_exec *e[2];
    dc_inst *inst[2];
    dc_exec_info info;
    DC_TRY(calls_build(b, &b->plain, &e[0]));
    DC_TRY(calls_build(b, &b->donating, &e[1]));
    dc_exec_info_of(e[1], &info);
    CHECK(info.interpreted == b->s->interpret);
    all->donated += info.donated;
    all->denied += info.denied;
    for (uint32_t c = 0; c < b->donating.ncell; c++)
        b->laid_out = b->laid_out || dc_exec_layout(e[1], c)->turned;
    all->laid_out += b->laid_out;
    DC_TRY(calls_make_cells(b));
    DC_TRY(dc_inst_new(b->rt, b->j, e[0], NULL, &inst[0]));
    DC_TRY(dc_inst_new(b->rt, b->j, e[1], b->cell, &inst[1]));
    DC_TRY(calls_run_calls(b, inst[0], inst[1], all));
    calls_let_go(b);
    for (int i = 0; i < 2; i++) {
        dc_inst_free(inst[i]);
        dc_exec_release(e[i]);
    }
    for (uint32_t c = 0; c < b->donating.ncell; c++)
        dc_cell_release(b->cell[c]);
    return DC_OK;
}

/* The function too, where it is small enough to read. */
static inline void calls_print_function(const calls *b)
{
    const dc_exec_desc *d = &b->donating;
    dc_text text = {0};
    printf("%s: function %llu, %u free, %u cells, %u results, set are", b->s->device,
           (unsigned long long)b->seed, d->nfree, d->ncell, d->nresult);
    for (uint32_t i = 0; i < d->nset; i++)
        printf(" %u", d->set[i]);
    if (b->print)
        dc_func_print(b->f, &text);
    printf("\n%s\n", text.s != NULL ? text.s : "");
    dc_text_free(&text);
}

/* Once `plain` and `donating` are described. Everything is in the job's scratch. */
static inline dc_status calls_run(calls *b, calls_totals *all)
{
    const long failed = t_failed;
    calls_make_results(b);
    const dc_status status = calls_run_both(b, all);
    if (status != DC_OK || t_failed > failed)
        calls_print_function(b);
    return status;
}

#endif
