/*
 * Batches of the rows of a data set, gathered on another thread while the script works on those before
 * them. Internals for stdlib/data.lua:
 *
 *   order(n, seed, epoch)    a shuffled order of 0..n-1
 *   batches(x, y, order or nil, n, size, last, start)   of rows 0..n-1 in that order, `start` left out
 *   batch_next(batches)      x, y and, with last = "pad", a mask, on loan; nil behind the last one
 *   batch_close(batches)     before the end; again is fine
 *   give_back(x)             ends a loan
 *
 * Memory is planned when the loop begins: two stretches of batches, each with tensors of its own.
 * While the script goes through one, a task (core/runtime/work.h) fills the other. A tensor of a stretch is
 * filled again only while the stretch alone refers to its memory; if something else does (an expression
 * that was not computed yet), the memory is left to it and the stretch allocates another. So a loop allocates
 * nothing while it runs unless batches are kept.
 *
 * The task touches three things: the rows, whose memory is read-only meanwhile (a store that a cell or
 * an instance owns is left first), the order, and memory of its stretch.
 *
 * Devices whose memory is not the host's are the context's thread's alone. There the rows stay where they are, and a
 * batch is one launch that gathers them (dsl/batch_gather.h), or one copy where they are in order; it is given to the
 * device behind the step before, which nothing waits for. Where nothing is compiled, rows are gathered from a copy of
 * the data on the host and a batch is an upload.
 */
#include "core/runtime/work.h"
#include "dsl/base/binding.h"
#include "dsl/base/interrupt.h"
#include "dsl/base/run.h"
#include "dsl/batch_gather.h"
#include "dsl/internals.h"
#include "dsl/ops/ops.h"
#include "jit/jit.h"
#include "core/runtime/outcome.h"

#include <string.h>

enum { PARTS = DC_GATHER_PARTS, STRETCH_BYTES = 1 << 20, MOST = 16 };

const dc_utype dc_order_type = {"deepc.order"};
const dc_utype dc_batches_type = {"deepc.batches"};

typedef struct shuffled {
    dc_uhead head;
    int64_t n;
    uint32_t at[];
} shuffled;

typedef enum last_rows { LAST_DROP, LAST_KEEP, LAST_PAD } last_rows;

/* One batch of a stretch. */
typedef struct slot {
    dc_tensor *t[PARTS];
    void *mem[PARTS]; /* of t, for the task */
} slot;

typedef struct stretch {
    struct dc_batches *b;
    slot slot[MOST];
    int64_t first;
    int n;        /* batches in it */
    bool filling; /* it has been begun, and not been waited for */
    bool whole;   /* the task came to its end */
    dc_task task;
} stretch;

typedef struct dc_batches {
    dc_dsl *d;
    struct dc_batches **holder; /* the userdata's pointer to it */
    struct dc_batches *next, *prev;
    dc_tensor *from[PARTS];
    const char *rows[PARTS]; /* memory of from, or a copy of it on the host */
    size_t row[PARTS];       /* bytes */
    const shuffled *order;   /* kept alive by the userdata; NULL: as they are */
    last_rows last;
    int64_t n, size, count; /* rows; of a batch; batches */
    int64_t start, at;      /* the first batch; the next one */
    int per;                /* batches of a stretch */
    stretch stretch[2];
    slot tail;              /* LAST_KEEP: the smaller batch at the end, if there is one */
    dc_tensor *full, *part; /* LAST_PAD: masks of all batches but the last; of that */
    slot there;             /* the batch at hand, on devices that are not the host */
    dc_tensor *there_order; /* and the order; NULL: the rows are in order, or gathered here */
    void *copy[PARTS];      /* what `rows` are then */
} dc_batches;

typedef struct holder { /* the userdata */
    dc_uhead head;
    dc_batches *b; /* NULL: closed */
} holder;

/* ---- orders ---------------------------------------------------------------------------------- */

/* Fisher and Yates, with bits of (seed, epoch). A 32-bit number times the range picks. */
static int l_order(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    const int64_t n = luaL_checkinteger(L, 1);
    const uint64_t seed = (uint64_t)luaL_checkinteger(L, 2),
                   epoch = (uint64_t)luaL_checkinteger(L, 3);
    luaL_argcheck(L, n >= 0 && n < UINT32_MAX, 1, "too many rows");
    shuffled *s = dc_udata_new(L, &dc_order_type, sizeof *s + (size_t)n * sizeof s->at[0], 0);
    s->n = n;
    uint32_t looks = 0;
    for (int64_t i = 0; i < n; i++) {
        dc_interrupt_poll_often(L, d, &looks);
        s->at[i] = (uint32_t)i;
    }
    for (int64_t i = n - 1; i > 0; i--) {
        dc_interrupt_poll_often(L, d, &looks);
        const uint64_t bits = dc_rand_bits(seed, epoch, (uint64_t)i);
        const int64_t k = (int64_t)(bits * (uint64_t)(i + 1) >> 32);
        const uint32_t other = s->at[k];
        s->at[k] = s->at[i];
        s->at[i] = other;
    }
    return 1;
}

/* ---- gathering ------------------------------------------------------------------------------- */

static int64_t rows_of(const dc_batches *b, int64_t batch)
{
    return dc_min_i64(b->size, b->n - batch * b->size);
}

/* Rows on the host: any thread. With a job of NULL it is not interrupted. */
static dc_status gather(const dc_batches *b, dc_job *j, int part, int64_t batch, char *to)
{
    const size_t row = b->row[part];
    const int64_t first = batch * b->size, count = rows_of(b, batch);
    const char *rows = b->rows[part];
    if (b->order == NULL)
        DC_TRY(dc_host_copy(NULL, j, to, rows + (size_t)first * row, (size_t)count * row));
    for (int64_t i = 0; b->order != NULL && i < count; i++) {
        DC_TRY(dc_job_ended(j));
        DC_TRY(
            dc_host_copy(NULL, j, to + (size_t)i * row, rows + b->order->at[first + i] * row, row));
    }
    if (b->last == LAST_PAD)
        memset(to + (size_t)count * row, 0, (size_t)(b->size - count) * row);
    return DC_OK;
}

/* Where batch i of a stretch goes. */
static slot *slot_of(dc_batches *b, stretch *s, int i)
{
    const bool is_tail = b->tail.t[0] != NULL && s->first + i == b->count - 1;
    return is_tail ? &b->tail : &s->slot[i];
}

/* Told to stop, it leaves `whole` false. */
static dc_status fill_here(dc_batches *b, stretch *s, dc_job *j)
{
    for (int i = 0; i < s->n; i++) {
        DC_TRY(dc_job_ended(j));
        for (int part = 0; part < PARTS; part++)
            DC_TRY(gather(b, j, part, s->first + i, slot_of(b, s, i)->mem[part]));
    }
    s->whole = true;
    return DC_OK;
}

static dc_status fill_stretch_body(dc_job *j, void *arg)
{
    stretch *s = arg;
    return fill_here(s->b, s, j);
}

static void settled(void *arg)
{
    DC_UNUSED(arg);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static dc_type type_of_batch(const dc_tensor *from, int64_t rows)
{
    dc_type type = from->type;
    type.dim[0] = rows;
    type.name[0] = NULL;
    return type;
}

static bool is_ours_alone(const dc_tensor *t)
{
    return t->refs == 1 && t->store->shown == t && t->next == NULL;
}

/* Tensors that may be written. */
static dc_status ready_slot(dc_batches *b, dc_job *j, slot *s, int64_t rows)
{
    for (int part = 0; part < PARTS; part++) {
        const dc_type type = type_of_batch(b->from[part], rows);
        dc_tensor *t = s->t[part];
        if (t == NULL || !is_ours_alone(t) || !dc_type_same(&t->type, &type)) {
            s->t[part] = NULL;
            dc_tensor_release(t);
            DC_TRY(dc_tensor_new(b->d->rt, j, &type, &s->t[part]));
        }
        s->mem[part] = dc_tensor_mem(s->t[part]);
    }
    return DC_OK;
}

static dc_status make_mask(dc_batches *b, dc_job *j, int64_t ones, dc_tensor **out)
{
    dc_device *dev = b->d->rt->device;
    const dc_type type = dc_type_make(DC_F32, 1, &b->size);
    float *v = dc_arena_alloc(&j->scratch, (size_t)b->size * sizeof *v);
    for (int64_t i = 0; i < ones; i++)
        v[i] = 1;
    DC_TRY(dc_tensor_new(b->d->rt, j, &type, out));
    return dev->ops->upload(dev, j, dc_tensor_mem(*out), v, (size_t)b->size * sizeof *v);
}

/* ---- on a device that is not the host -------------------------------------------------------- */

static bool is_there(const dc_batches *b)
{
    return !b->d->rt->device->ops->host;
}

static dc_gather_form form_of(const dc_batches *b, int64_t batch)
{
    const int64_t rows = rows_of(b, batch);
    return (dc_gather_form){.from = b->from[0]->type.dim[0],
                            .rows = rows,
                            .room = b->last == LAST_PAD ? b->size : rows,
                            .row = {b->row[0], b->row[1]}};
}

/* The data come to the host, once for the loop. */
static dc_status fetch_rows(dc_batches *b, dc_job *j, int part)
{
    dc_device *dev = b->d->rt->device;
    const size_t bytes = (size_t)b->n * b->row[part];
    if (b->copy[part] != NULL || bytes == 0)
        return DC_OK;
    void *copy = dc_try_alloc(bytes);
    if (copy == NULL)
        return dc_fail_memory(j, bytes);
    dc_job_defer(j, dc_xfree, copy);
    DC_TRY(dc_job_settle(j, copy,
                         dev->ops->download(dev, j, copy, dc_tensor_mem(b->from[part]), bytes)));
    b->rows[part] = b->copy[part] = copy;
    return DC_OK;
}

/* Gathered here, and one upload. */
static dc_status send_rows(dc_batches *b, dc_job *j, int part, int64_t batch, char *to)
{
    dc_device *dev = b->d->rt->device;
    const int64_t rows = b->last == LAST_PAD ? b->size : rows_of(b, batch);
    const size_t bytes = (size_t)rows * b->row[part];
    const dc_mark mark = dc_arena_mark(&j->scratch);
    char *staged = dc_arena_alloc(&j->scratch, bytes);
    DC_TRY(fetch_rows(b, j, part));
    DC_TRY(gather(b, j, part, batch, staged));
    const dc_status status = dev->ops->upload(dev, j, to, staged, bytes);
    dc_arena_rewind(&j->scratch, mark);
    return status;
}

/* Rows in order: the device copies them. */
static dc_status copy_rows(const dc_batches *b, dc_job *j, int part, int64_t batch, char *to)
{
    dc_device *dev = b->d->rt->device;
    const size_t row = b->row[part], bytes = (size_t)rows_of(b, batch) * row;
    const size_t left = b->last == LAST_PAD ? (size_t)b->size * row - bytes : 0;
    if (bytes > 0)
        DC_TRY(dev->ops->copy(dev, j, to, b->rows[part] + (size_t)(batch * b->size) * row, bytes));
    return left == 0
               ? DC_OK
               : dev->ops->upload(dev, j, to + bytes, dc_arena_alloc(&j->scratch, left), left);
}

static dc_status move_rows(dc_batches *b, dc_job *j, int64_t batch)
{
    slot *s = &b->there;
    const bool copied = b->order == NULL && b->d->rt->device->ops->copy != NULL;
    DC_TRY(ready_slot(b, j, s, b->last == LAST_PAD ? b->size : rows_of(b, batch)));
    for (int part = 0; part < PARTS; part++)
        DC_TRY(copied ? copy_rows(b, j, part, batch, s->mem[part])
                      : send_rows(b, j, part, batch, s->mem[part]));
    return DC_OK;
}

static dc_status next_there(dc_batches *b, dc_job *j, int64_t batch)
{
    slot *s = &b->there;
    dc_type type[PARTS];
    if (b->there_order == NULL)
        return move_rows(b, j, batch);
    const dc_gather_form form = form_of(b, batch);
    for (int part = 0; part < PARTS; part++) {
        type[part] = type_of_batch(b->from[part], form.room);
        dc_tensor_release(s->t[part]);
        s->t[part] = NULL;
    }
    DC_TRY(dc_gather_rows(b->d, j, &form, b->from, b->there_order, batch * b->size, type, s->t));
    if (s->t[0] != NULL)
        return DC_OK;
    dc_tensor_release(b->there_order); /* the interpreter would do it: by way of the host */
    b->there_order = NULL;
    return move_rows(b, j, batch);
}

/* The order goes there, and what gathers begins to be compiled. */
static dc_status begin_there(dc_batches *b, dc_job *j)
{
    if (b->order == NULL || b->count == b->start || b->row[0] == 0 || b->row[1] == 0)
        return DC_OK;
    DC_TRY(dc_gather_order(b->d->rt, j, b->order->at, b->n, &b->there_order));
    for (int last = 1; last >= 0 && b->there_order != NULL; last--) {
        const dc_gather_form form = form_of(b, last ? b->count - 1 : b->start);
        DC_TRY(dc_gather_start(b->d, j, &form));
    }
    return DC_OK;
}

/* ---- stretches ------------------------------------------------------------------------------- */

/* Begins to fill a stretch with the batches from `first` on, as many as are left. */
static dc_status begin_stretch(dc_batches *b, dc_job *j, stretch *s, int64_t first)
{
    dc_rt *rt = b->d->rt;
    s->first = first;
    s->n = (int)dc_max_i64(0, dc_min_i64(b->per, b->count - first));
    for (int i = 0; i < s->n; i++) {
        slot *to = slot_of(b, s, i);
        DC_TRY(ready_slot(b, j, to, to == &b->tail ? rows_of(b, first + i) : b->size));
    }
    if (s->n == 0)
        return DC_OK;
    s->filling = true;
    s->whole = false;
    dc_work_add(rt->work, &s->task);
    dc_work_queue(rt->work, &s->task);
    return DC_OK;
}

static dc_status end_stretch(dc_batches *b, dc_job *j, stretch *s)
{
    dc_rt *rt = b->d->rt;
    if (!s->filling)
        return DC_OK;
    if (s->task.listed) {
        if (!dc_work_await(rt->work, &s->task, true, j->cancel))
            DC_TRY(dc_job_ended(j));
        dc_work_finish(rt->work, &s->task);
    }
    if (!s->whole) /* the threads were stopped */
        DC_TRY(fill_here(b, s, j));
    s->filling = false;
    return DC_OK;
}

/* The slot of the next batch. */
static dc_status advance(dc_batches *b, dc_job *j, slot **out)
{
    const int64_t k = b->at - b->start;
    if (is_there(b)) {
        DC_TRY(next_there(b, j, b->at));
        *out = &b->there;
        b->at++;
        return DC_OK;
    }
    stretch *s = &b->stretch[k / b->per % 2], *other = &b->stretch[1 - k / b->per % 2];
    if (k % b->per == 0) {
        DC_TRY(end_stretch(b, j, s));
        DC_TRY(begin_stretch(b, j, other, b->at + b->per));
    }
    *out = slot_of(b, s, (int)(k % b->per));
    b->at++;
    return DC_OK;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void release_slot(slot *s)
{
    for (int part = 0; part < PARTS; part++)
        dc_tensor_release(s->t[part]);
}

static void close_stretch(dc_batches *b, stretch *s)
{
    dc_work *w = b->d->rt->work;
    if (s->task.listed && !dc_work_drop(w, &s->task) && s->task.listed)
        dc_work_finish(w, &s->task); /* it has been told to stop */
    for (int i = 0; i < MOST; i++)
        release_slot(&s->slot[i]);
}

static void close_batches(dc_batches *b)
{
    if (b == NULL || dc_dsl_gone(b->d))
        return;
    for (int i = 0; i < 2; i++)
        close_stretch(b, &b->stretch[i]);
    release_slot(&b->tail);
    release_slot(&b->there);
    for (int part = 0; part < PARTS; part++) {
        dc_tensor_release(b->from[part]);
        dc_xfree(b->copy[part]);
    }
    dc_tensor_release(b->there_order);
    dc_tensor_release(b->full);
    dc_tensor_release(b->part);
    if (b->prev != NULL)
        b->prev->next = b->next;
    else if (b->d->batches == b)
        b->d->batches = b->next;
    if (b->next != NULL)
        b->next->prev = b->prev;
    dc_xfree(b);
}

static void close_holder(holder *h)
{
    dc_batches *b = h->b;
    h->b = NULL;
    close_batches(b);
}

/* Userdata of the script stay where they are, and show nothing. */
void dc_batches_close_all(dc_dsl *d)
{
    while (d->batches != NULL) {
        dc_batches *b = d->batches;
        *b->holder = NULL;
        close_batches(b);
    }
}

static void link_batches(dc_batches *b)
{
    b->next = b->d->batches;
    if (b->next != NULL)
        b->next->prev = b;
    b->d->batches = b;
}

typedef struct opening {
    holder *h;
    dc_dsl *d;
    dc_tensor *from[PARTS];
    const shuffled *order;
    last_rows last;
    int64_t n, size, start;
} opening;

/* Memory of rows that stays as it is, and what a row is. */
static dc_status take_rows(dc_batches *b, dc_job *j, int part, dc_tensor *t)
{
    DC_TRY(dc_outcome_settle(t->store, j));
    b->row[part] = dc_dtype_size((dc_dtype)t->type.dtype);
    for (int i = 1; i < t->type.rank; i++)
        b->row[part] *= (size_t)t->type.dim[i];
    b->from[part] = dc_tensor_retain(t);
    if (t->store->owned) /* by a cell, which is written where it is */
        DC_TRY(dc_storage_evict(t->store, j));
    b->rows[part] = dc_tensor_mem(t);
    return DC_OK;
}

static dc_status open_batches_body(dc_job *j, void *arg)
{
    const opening *a = arg;
    dc_batches *b = dc_xalloc(sizeof *b);
    *b = (dc_batches){.d = a->d, .order = a->order, .last = a->last, .n = a->n, .size = a->size};
    a->h->b = b; /* which closes it, whatever happens */
    b->holder = &a->h->b;
    link_batches(b);
    DC_TRY(dc_jit_open(a->d->rt, j)); /* for its threads */
    for (int part = 0; part < PARTS; part++)
        DC_TRY(take_rows(b, j, part, a->from[part]));
    const int64_t rest = b->n % b->size;
    b->count = b->n / b->size + (rest > 0 && b->last != LAST_DROP);
    b->start = b->at = dc_min_i64(a->start, b->count);
    const size_t bytes = (b->row[0] + b->row[1]) * (size_t)b->size + 1;
    b->per = (int)dc_max_i64(1, dc_min_i64(MOST, (int64_t)(STRETCH_BYTES / bytes)));
    b->per = (int)dc_max_i64(1, dc_min_i64(b->per, (b->count - b->start + 1) / 2));
    for (int i = 0; i < 2; i++) {
        b->stretch[i].b = b;
        b->stretch[i].task = (dc_task){.body = fill_stretch_body,
                                       .settle = settled,
                                       .arg = &b->stretch[i],
                                       .opt = &a->d->rt->opt};
    }
    if (rest > 0 && b->last == LAST_KEEP && !is_there(b))
        DC_TRY(ready_slot(b, j, &b->tail, rest));
    if (b->last == LAST_PAD) {
        DC_TRY(make_mask(b, j, b->size, &b->full));
        DC_TRY(make_mask(b, j, rest > 0 ? rest : b->size, &b->part));
    }
    return is_there(b) ? begin_there(b, j) : begin_stretch(b, j, &b->stretch[0], b->start);
}

/* What a try that failed has made. */
static void undo_open(void *arg)
{
    const opening *a = arg;
    close_holder(a->h);
}

/* ---- bindings -------------------------------------------------------------------------------- */

static dc_tensor *rows_at(lua_State *L, dc_dsl *d, int idx, int64_t n)
{
    dc_handle *h = dc_handle_check(L, d, idx, "batches");
    const bool is_tensor = h->kind == DC_HANDLE_VALUE || h->kind == DC_HANDLE_LAZY;
    luaL_argcheck(L, is_tensor && dc_handle_type(h)->rank > 0, idx, "a tensor with rows is needed");
    luaL_argcheck(L, n <= dc_handle_type(h)->dim[0], idx, "fewer rows");
    return dc_handle_realize(L, d, h);
}

static int l_batches(lua_State *L)
{
    static const char *const words[] = {"drop", "keep", "pad", NULL};
    static const last_rows lasts[] = {LAST_DROP, LAST_KEEP, LAST_PAD};
    dc_dsl *d = dc_dsl_of(L);
    lua_settop(L, 7);
    opening a = {.d = d, .n = luaL_checkinteger(L, 4), .size = luaL_checkinteger(L, 5)};
    a.order = lua_isnil(L, 3) ? NULL : dc_udata_check(L, 3, &dc_order_type);
    a.last = lasts[luaL_checkoption(L, 6, "drop", words)];
    a.start = luaL_optinteger(L, 7, 0);
    luaL_argcheck(L, a.n >= 0 && (a.order == NULL || a.order->n >= a.n), 4, "rows outside");
    luaL_argcheck(L, a.size > 0 && a.start >= 0, 5, "sizes");
    dc_collector_step(L, d);
    rows_at(L, d, 1, a.n);
    rows_at(L, d, 2, a.n);
    a.h = dc_udata_new(L, &dc_batches_type, sizeof *a.h, 1);
    lua_pushvalue(L, 3);
    lua_setiuservalue(L, -2, 1);
    for (int part = 0; part < PARTS; part++) /* realized: nothing of the script runs here */
        a.from[part] = rows_at(L, d, part + 1, a.n);
    const dc_run_made made = {.undo = undo_open};
    dc_error_check(L, d, dc_run_again(L, d, open_batches_body, &a, &made));
    return 1;
}

typedef struct taking {
    holder *h;
    slot *slot;
    bool is_last;
} taking;

static dc_status next_batch_body(dc_job *j, void *arg)
{
    taking *a = arg;
    dc_batches *b = a->h->b;
    if (b == NULL) /* closed by a finalizer, between two tries */
        return DC_OK;
    a->is_last = b->at == b->count - 1;
    return advance(b, j, &a->slot);
}

static dc_handle *new_loan(lua_State *L, dc_dsl *d)
{
    dc_handle *h = dc_handle_new(L, d);
    h->origin = dc_place_intern(d, "a batch");
    h->loan = true;
    return h;
}

static int l_next(lua_State *L)
{
    dc_dsl *d = dc_dsl_of(L);
    taking a = {.h = dc_udata_check(L, 1, &dc_batches_type)};
    lua_settop(L, 1);
    if (a.h->b == NULL)
        return 0;
    if (a.h->b->at == a.h->b->count) {
        close_holder(a.h);
        return 0;
    }
    dc_handle *x = new_loan(L, d), *y = new_loan(L, d);
    dc_handle *mask = a.h->b != NULL && a.h->b->full != NULL ? new_loan(L, d) : NULL;
    if (a.h->b == NULL) /* a finalizer has closed it */
        return 0;
    dc_error_check(L, d, dc_run_again(L, d, next_batch_body, &a, NULL));
    if (a.slot == NULL)
        return 0;
    dc_handle_fill(x, dc_tensor_retain(a.slot->t[0]));
    dc_handle_fill(y, dc_tensor_retain(a.slot->t[1]));
    if (mask != NULL)
        dc_handle_fill(mask, dc_tensor_retain(a.is_last ? a.h->b->part : a.h->b->full));
    return lua_gettop(L) - 1;
}

static int l_close(lua_State *L)
{
    close_holder(dc_udata_check(L, 1, &dc_batches_type));
    return 0;
}

static int l_give_back(lua_State *L)
{
    dc_handle *h = dc_handle_test(L, 1);
    if (h != NULL && h->loan)
        dc_handle_close(h);
    return 0;
}

static const dc_binding of_batches[] = {
    {"__gc", l_close, DC_ANY, DC_IN_META},
};

const dc_bindings dc_batches_methods = DC_BINDINGS(of_batches);

static const dc_binding bindings[] = {
    {"order", l_order, DC_ANY, DC_IN_LIBRARY},
    {"batches", l_batches, DC_ANY, DC_IN_LIBRARY},
    {"batch_next", l_next, DC_ANY, DC_IN_LIBRARY},
    {"batch_close", l_close, DC_ANY, DC_IN_LIBRARY},
    {"give_back", l_give_back, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_batches_bindings = DC_BINDINGS(bindings);
