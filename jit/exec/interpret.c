#include "jit/exec/interpret.h"

#include "core/base/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

dc_eval_mode dc_interpret_mode(const dc_job *j)
{
    return dc_opts_math(j->opt, "strict") ? DC_EVAL_STRICT : DC_EVAL_ROUND;
}

/* The value of parameter p, on the host. Numbers of the argument block may not have come to the device yet. */
static dc_status read_param(dc_inst *i, dc_job *j, uint32_t p, const void **out)
{
    const dc_exec *e = i->exec;
    dc_device *d = i->rt->device;
    const size_t bytes = dc_type_bytes(&e->param[p]);
    const void *mem = i->slot[DC_SLOT_FIRST + p];
    if (i->rt->interpret) { /* device memory is the host's */
        *out = mem;
        return DC_OK;
    }
    const uintptr_t in_block = (uintptr_t)mem - (uintptr_t)i->block->mem;
    if (in_block < e->block_bytes) {
        *out = (const char *)i->staging + in_block;
        return DC_OK;
    }
    void *host = dc_arena_alloc(&j->scratch, bytes);
    *out = host;
    return bytes > 0 ? d->ops->download(d, j, host, mem, bytes) : DC_OK;
}

dc_status dc_interpret_params(dc_inst *i, dc_job *j, const void ***out)
{
    const dc_func *fn = i->exec->desc.fn;
    *out = DC_NEW_ARRAY(&j->scratch, const void *, fn->param.n);
    for (uint32_t p = 0; p < fn->param.n; p++)
        DC_TRY(read_param(i, j, p, &(*out)[p]));
    return DC_OK;
}

dc_status dc_interpret_run(dc_inst *i, dc_job *j, void ***out)
{
    const dc_exec *e = i->exec;
    const dc_func *fn = e->desc.fn;
    const void **param;
    void **result = DC_NEW_ARRAY(&j->scratch, void *, fn->result.n);
    DC_TRY(dc_interpret_params(i, j, &param));
    for (uint32_t r = 0; r < fn->result.n; r++)
        result[r] = dc_arena_alloc(&j->scratch, dc_type_bytes(&e->result[r]));
    DC_TRY(dc_eval(j, fn, dc_interpret_mode(j), param, result));
    *out = result;
    return DC_OK;
}

int64_t dc_interpret_value(const dc_exec *e, uint32_t check, const void *at)
{
    const dc_type *t = &e->result[e->desc.nresult + e->desc.nset + 2 * check + 1];
    return (int64_t)dc_bits_load((dc_dtype)t->dtype, at);
}

void dc_interpret_fault(const dc_exec *e, void *const *result, dc_fault *fault)
{
    void *const *check = result + e->desc.nresult + e->desc.nset;
    *fault = (dc_fault){.check = -1};
    for (uint32_t c = 0; c < e->desc.ncheck; c++) {
        const int32_t *position = check[2 * c];
        if (*position >= 0) {
            *fault = (dc_fault){(int32_t)c, *position, dc_interpret_value(e, c, check[2 * c + 1])};
            return;
        }
    }
}

/* Ended as a launch is that writes (core/runtime/halt.h), with a little time for what is short. */
static dc_status upload_pieces(dc_inst *i, dc_job *j, char *to, const char *from, size_t bytes)
{
    dc_device *d = i->rt->device;
    for (size_t at = 0, n; at < bytes; at += n) {
        n = dc_piece_of(bytes - at);
        if (at > 0 && i->endable && dc_halt_now(&i->halt, UINT32_MAX))
            return dc_fail(j, DC_ERR_INTERRUPTED, NULL);
        DC_TRY(d->ops->upload(d, j, to + at, from + at, n));
    }
    return DC_OK;
}

dc_status dc_interpret_store(dc_inst *i, dc_job *j, void *const *result)
{
    const dc_exec *e = i->exec;
    for (uint32_t r = 0; r < e->desc.nresult + e->desc.nset; r++) {
        const size_t bytes = dc_type_bytes(&e->result[r]);
        const bool is_result = r < e->desc.nresult;
        dc_storage *to =
            is_result ? i->result[r]->store : i->cell[e->desc.set[r - e->desc.nresult]]->store;
        DC_TRY(upload_pieces(i, j, to->mem, result[r], bytes));
    }
    return DC_OK;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static double relative(double difference, double size)
{
    if (isnan(difference))
        return INFINITY;
    return difference == 0.0 ? 0.0 : difference / size;
}

static double abs_difference(double a, double b)
{
    return a == b || (isnan(a) && isnan(b)) ? 0.0 : fabs(a - b);
}

/* Largest |difference| over the largest magnitude of what the interpreter has. */
static double distance(const dc_type *t, const void *expect, const void *got)
{
    const size_t size = dc_dtype_size((dc_dtype)t->dtype);
    double most = 0.0, largest = 0.0;
    for (int64_t i = 0; i < dc_type_count(t); i++) {
        const size_t at = (size_t)i * size;
        const double a = dc_value_of((dc_dtype)t->dtype,
                                     dc_bits_load((dc_dtype)t->dtype, (const char *)expect + at));
        const double b = dc_value_of((dc_dtype)t->dtype,
                                     dc_bits_load((dc_dtype)t->dtype, (const char *)got + at));
        const double difference = abs_difference(a, b);
        most = isnan(difference) ? INFINITY : fmax(most, difference);
        if (isfinite(a))
            largest = fmax(largest, fabs(a));
    }
    return relative(most, largest);
}

static void say(dc_comparison *c, const char *fmt, ...) DC_PRINTF(2, 3);

/* A log line is cut, too. */
static void say(dc_comparison *c, const char *fmt, ...)
{
    const size_t room = sizeof c->line - c->n;
    va_list ap;
    va_start(ap, fmt);
    const int n = dc_number_vformat(c->line + c->n, room, fmt, ap);
    va_end(ap);
    c->n += (size_t)n < room ? (size_t)n : room - 1;
}

static void compare_scalar(dc_inst *i, uint32_t r, dc_comparison *c)
{
    const double a = (double)*(const float *)c->expect[r], b = (double)*(const float *)c->got;
    const double by = relative(abs_difference(a, b), fmax(fabs(a), fabs(b)));
    say(c, " result %u eval %a %s %a (%.3g)", r + 1, a, i->rt->device->ops->name, b, by);
    if (by > i->rt->first->stats.compare_max)
        i->rt->first->stats.compare_max = by;
}

static dc_status compare_value(dc_inst *i, dc_job *j, uint32_t r, dc_comparison *c)
{
    const dc_exec *e = i->exec;
    dc_device *d = i->rt->device;
    const dc_type *t = &e->result[r];
    const size_t bytes = dc_type_bytes(t);
    const bool is_result = r < e->desc.nresult;
    const uint32_t s = is_result ? r : e->desc.set[r - e->desc.nresult];
    const dc_storage *at = is_result ? i->result[s]->store : i->cell[s]->store;
    if (bytes == 0)
        return DC_OK;
    DC_TRY(d->ops->download(d, j, c->got, at->mem, bytes));
    if (is_result && t->rank == 0 && t->dtype == DC_F32) {
        compare_scalar(i, r, c);
        return DC_OK;
    }
    const char *label = is_result ? "result" : i->cell[s]->label;
    const double by = distance(t, c->expect[r], c->got);
    if (is_result || label == NULL)
        say(c, " %s %u (%.3g)", is_result ? "result" : "cell", s + 1, by);
    else
        say(c, " %s (%.3g)", label, by);
    return DC_OK;
}

dc_status dc_interpret_begin(dc_inst *i, dc_job *j, dc_comparison **out)
{
    const dc_exec *e = i->exec;
    dc_comparison *c = DC_NEW(&j->scratch, dc_comparison);
    size_t largest = 0;
    for (uint32_t r = 0; r < e->desc.nresult + e->desc.nset; r++)
        largest = dc_type_bytes(&e->result[r]) > largest ? dc_type_bytes(&e->result[r]) : largest;
    c->got = dc_arena_alloc(&j->scratch, largest);
    DC_TRY(dc_interpret_run(i, j, &c->expect));
    *out = c;
    return DC_OK;
}

dc_status dc_interpret_compare(dc_inst *i, dc_job *j, dc_comparison *c, const dc_fault *got)
{
    const dc_exec *e = i->exec;
    dc_fault want;
    dc_interpret_fault(e, c->expect, &want);
    say(c, "%s call %" PRIu64 ":", e->desc.name, i->calls);
    if (want.check >= 0 || got->check >= 0)
        say(c, " check eval %d at %" PRId64 ", %s %d at %" PRId64, want.check, want.position,
            i->rt->device->ops->name, got->check, got->position);
    else
        for (uint32_t r = 0; r < e->desc.nresult + e->desc.nset; r++)
            DC_TRY(compare_value(i, j, r, c));
    const dc_err before = j->err; /* the log sink may use the context, and fail */
    dc_logf(j->log, DC_CH_COMPARE, "%s", c->line);
    j->err = before;
    return DC_OK;
}
