/*
 * Batches of the rows of a data set, gathered on other threads while the script works on those before
 * them. Internals for stdlib/data:
 *
 *   batches(parts, order or nil, n, size, last, start [, place, places])
 *                                                        of n rows in that order, `start` batches left out; parts: a list of
 *                                                        tensors and rows of files. Of every batch the share at a place of
 *                                                        so many, from 0, of which size, and what "keep" leaves, is a multiple
 *   batch_next(batches)      a value of each part and, with last = "pad", a mask, on loan; nil behind the last batch
 *   batch_close(batches)     before the end; again is fine
 *   give_back(x)             ends a loan
 *
 * Memory is planned when the loop begins: two stretches of batches, each with tensors of its own.
 * While the script goes through one, tasks (core/runtime/work.h) fill the other. A tensor of a stretch is
 * filled again only while the stretch alone refers to its memory; if something else does (an expression
 * that was not computed yet), the memory is left to it and the stretch allocates another. So a loop allocates
 * nothing while it runs unless batches are kept, or their rows differ in length.
 *
 * A task touches three things: the rows, whose memory is read-only meanwhile (a store that a cell or
 * an instance owns is left first), the order, and memory of its stretch. Rows that are read or decoded
 * (formats/rows.h) are filled by several tasks at once, each with a share of the rows of every batch, on threads of
 * their own. What fails there is done once more on the context's thread, which tells why.
 *
 * Ranks that share the batches have the same order each; rows of other shares are not touched.
 *
 * Devices whose memory is not the host's are the context's thread's alone. There the rows stay where they are, and a
 * batch is one launch that gathers them (dsl/modules/batch_gather.h), or one copy where they are in order; it is given to the
 * device behind the step before, which nothing waits for. Where nothing is compiled, rows are gathered from a copy of
 * the data on the host and a batch is an upload. Rows of files are filled ahead into memory of the host, and uploaded.
 */
#include "core/base/extent.h"
#include "core/base/spans.h"
#include "core/runtime/devices.h"
#include "core/runtime/outcome.h"
#include "core/runtime/work.h"
#include "dsl/base/binding.h"
#include "dsl/base/interrupt.h"
#include "dsl/base/run.h"
#include "dsl/modules/batch_gather.h"
#include "dsl/modules/modules.h"
#include "dsl/modules/orders.h"
#include "dsl/ops/ops.h"
#include "jit/jit.h"

#include <inttypes.h>
#include <string.h>

enum { PARTS = DC_GATHER_PARTS, STRETCH_BYTES = 1 << 20, MOST = 16, MOST_TASKS = 8 };

typedef enum last_rows { LAST_DROP, LAST_KEEP, LAST_PAD } last_rows;

/* What of a data set has one value in each batch: a tensor, or rows that are read. */
typedef struct part {
    dc_tensor *t;
    dc_rows *rows;
    dc_type type;
    const char *mem; /* of t, or a copy of it on the host */
    void *copy;
    size_t row; /* bytes, of the longest */
} part;

/* A value of a batch. */
typedef struct piece {
    dc_tensor *t; /* NULL where memory of the host is filled for the device */
    void *mem;
    size_t room; /* bytes at mem, where it is no tensor's */
    dc_type type;
} piece;

struct stretch;

typedef struct share {
    struct stretch *s;
    int number;
    bool whole; /* the task came to its end */
    dc_task task;
} share;

typedef struct stretch {
    struct dc_batches *b;
    piece *slot; /* `per` batches of pieces */
    int64_t first;
    int n;        /* batches in it */
    bool filling; /* it has been begun, and not been waited for */
    share share[MOST_TASKS];
} stretch;

typedef struct dc_batches {
    dc_dsl *d;
    dc_rt *rt;                  /* of the device of its tensors, and of its batches */
    struct dc_batches **holder; /* the userdata's pointer to it */
    struct dc_batches *next, *prev;
    part part[PARTS];
    int nparts;
    bool reads;      /* a part is rows that are read */
    bool staged;     /* they are, and the device has its own memory */
    dc_order *order; /* which it holds; NULL: as they are */
    last_rows last;
    int64_t n, count;      /* rows of all shares; batches */
    int64_t size, whole;   /* rows of a batch, of the share here and of all */
    int64_t place, places; /* of the share here; how many there are */
    int64_t start, at;     /* the first batch; the next one */
    int per, ntasks;       /* batches of a stretch, tasks that fill it */
    stretch stretch[2];
    piece tail[PARTS]; /* LAST_KEEP: the smaller batch at the end, if there is one */
    bool has_tail;
    dc_tensor *full, *rest; /* LAST_PAD: masks of all batches but the last; of that */
    piece there[PARTS];     /* the batch at hand, on devices that are not the host */
    dc_tensor *there_order; /* and the order; NULL: the rows are in order, or gathered here */
} dc_batches;

typedef struct holder { /* the userdata */
    dc_uhead head;
    dc_batches *b; /* NULL: closed */
} holder;

/* ---- gathering ------------------------------------------------------------------------------- */

/* Rows of all shares of a batch. */
static int64_t whole_of(const dc_batches *b, int64_t batch)
{
    return dc_min_i64(b->whole, b->n - batch * b->whole);
}

/* Where the share begins: of a batch that is filled up all are as large but for what is not there. */
static int64_t first_of(const dc_batches *b, int64_t batch)
{
    const int64_t size = b->last == LAST_PAD ? b->size : whole_of(b, batch) / b->places;
    return dc_min_i64(batch * b->whole + b->place * size, b->n);
}

static int64_t rows_of(const dc_batches *b, int64_t batch)
{
    const int64_t size = b->last == LAST_PAD ? b->size : whole_of(b, batch) / b->places;
    return dc_min_i64(size, b->n - first_of(b, batch));
}

static int64_t row_at(const dc_batches *b, int64_t i)
{
    return b->order != NULL ? (int64_t)b->order->at[i] : i;
}

/* Rows lo..hi-1 of a batch, read into its value. Runs of rows that follow each other are read at once. */
static dc_status read_rows(const dc_batches *b, dc_job *j, const part *p, int64_t first, int64_t lo,
                           int64_t hi, const piece *to)
{
    const bool ragged = p->rows->length != NULL;
    const int64_t length = ragged ? to->type.dim[1] : 0;
    size_t row = p->row;
    for (int64_t i = lo, n; i < hi; i += n) {
        const int64_t from = row_at(b, first + i);
        for (n = 1; i + n < hi && row_at(b, first + i + n) == from + n;)
            n++;
        if (ragged)
            row = p->row / (size_t)p->type.dim[1] * (size_t)length;
        DC_TRY(dc_job_ended(j));
        DC_TRY(p->rows->get(p->rows, j, from, n, length, (char *)to->mem + (size_t)i * row));
    }
    return DC_OK;
}

static dc_status copy_rows_here(const dc_batches *b, dc_job *j, const part *p, int64_t first,
                                int64_t lo, int64_t hi, char *to)
{
    const size_t row = p->row;
    if (b->order == NULL)
        return dc_host_copy(NULL, j, to + (size_t)lo * row, p->mem + (size_t)(first + lo) * row,
                            (size_t)(hi - lo) * row);
    for (int64_t i = lo; i < hi; i++) {
        DC_TRY(dc_job_ended(j));
        DC_TRY(dc_host_copy(NULL, j, to + (size_t)i * row, p->mem + b->order->at[first + i] * row,
                            row));
    }
    return DC_OK;
}

/* One of `shares` parts of the rows, on the host: any thread. With a job of NULL it is not interrupted. */
static dc_status gather(const dc_batches *b, dc_job *j, int number, int64_t batch, const piece *to,
                        int which, int shares)
{
    const part *p = &b->part[number];
    const int64_t first = first_of(b, batch), count = rows_of(b, batch);
    const int64_t lo = count * which / shares, hi = count * (which + 1) / shares;
    if (p->rows != NULL)
        DC_TRY(read_rows(b, j, p, first, lo, hi, to));
    else
        DC_TRY(copy_rows_here(b, j, p, first, lo, hi, to->mem));
    if (b->last == LAST_PAD && which == shares - 1 && count < b->size) {
        const size_t row = dc_type_bytes(&to->type) / (size_t)b->size;
        memset((char *)to->mem + (size_t)count * row, 0, (size_t)(b->size - count) * row);
    }
    return DC_OK;
}

/* Where batch i of a stretch goes. */
static piece *slot_of(dc_batches *b, stretch *s, int i)
{
    return b->has_tail && s->first + i == b->count - 1 ? b->tail : &s->slot[i * b->nparts];
}

static dc_status fill_share(dc_batches *b, stretch *s, dc_job *j, int which, int shares)
{
    static const dc_span_name name = {.kind = DC_SPAN_DATA, .text = "batch"};
    for (int i = 0; i < s->n; i++) {
        const uint64_t begun = dc_span_begin(j->log);
        DC_TRY(dc_job_ended(j));
        for (int k = 0; k < b->nparts; k++)
            DC_TRY(gather(b, j, k, s->first + i, &slot_of(b, s, i)[k], which, shares));
        dc_span_end_of(j->log, begun, &name, s->first + i + 1);
    }
    return DC_OK;
}

/* Told to stop, or failing, it leaves `whole` false. */
static dc_status fill_share_body(dc_job *j, void *arg)
{
    share *a = arg;
    dc_batches *b = a->s->b;
    j->folders = b->d->rt->job.folders;
    DC_TRY(fill_share(b, a->s, j, a->number, b->ntasks));
    a->whole = true;
    return DC_OK;
}

static void settled(void *arg)
{
    DC_UNUSED(arg);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Of a value with so many rows of the batch, and with room for others where it is filled up. */
static dc_type type_of_batch(const dc_batches *b, int number, int64_t batch)
{
    const part *p = &b->part[number];
    const int64_t rows = rows_of(b, batch);
    dc_type type = p->type;
    if (p->rows != NULL && p->rows->length != NULL)
        type.dim[1] = dc_rows_length(p->rows, b->order != NULL ? b->order->at : NULL,
                                     batch * b->whole, whole_of(b, batch)); /* one for all shares */
    type.dim[0] = b->last == LAST_PAD ? b->size : rows;
    type.name[0] = NULL;
    return type;
}

static bool is_ours_alone(const dc_tensor *t)
{
    return t->refs == 1 && t->store->shown == t && t->next == NULL;
}

static dc_status ready_tensor(dc_batches *b, dc_job *j, piece *p)
{
    dc_tensor *t = p->t;
    if (t == NULL || !is_ours_alone(t) || !dc_type_same(&t->type, &p->type)) {
        p->t = NULL;
        dc_tensor_release(t);
        DC_TRY(dc_tensor_new(b->rt, j, &p->type, &p->t));
    }
    p->mem = dc_tensor_mem(p->t);
    return DC_OK;
}

static dc_status ready_staged(dc_job *j, piece *p, const part *of, int64_t size)
{
    const size_t want = (size_t)size * of->row;
    if (p->room >= want && p->mem != NULL)
        return DC_OK;
    dc_xfree(p->mem);
    p->room = want;
    p->mem = dc_try_realloc(NULL, want + 1);
    return p->mem != NULL ? DC_OK : dc_fail_memory(j, want);
}

/* Values that may be written, for a batch. */
static dc_status ready_slot(dc_batches *b, dc_job *j, piece *slot, int64_t batch)
{
    for (int i = 0; i < b->nparts; i++) {
        slot[i].type = type_of_batch(b, i, batch);
        DC_TRY(b->staged ? ready_staged(j, &slot[i], &b->part[i], b->size)
                         : ready_tensor(b, j, &slot[i]));
    }
    return DC_OK;
}

static dc_status make_mask(dc_batches *b, dc_job *j, int64_t ones, dc_tensor **out)
{
    dc_device *dev = b->rt->device;
    const dc_type type = dc_type_make(DC_F32, 1, &b->size);
    float *v = dc_arena_alloc(&j->scratch, (size_t)b->size * sizeof *v);
    for (int64_t i = 0; i < ones; i++)
        v[i] = 1;
    DC_TRY(dc_tensor_new(b->rt, j, &type, out));
    return dev->ops->upload(dev, j, dc_tensor_mem(*out), v, (size_t)b->size * sizeof *v);
}

/* ---- on a device that is not the host -------------------------------------------------------- */

static bool is_there(const dc_batches *b)
{
    return !b->rt->device->ops->host;
}

static dc_gather_form form_of(const dc_batches *b, int64_t batch)
{
    const int64_t rows = rows_of(b, batch);
    dc_gather_form f = {.from = b->part[0].type.dim[0],
                        .rows = rows,
                        .n = b->nparts,
                        .room = b->last == LAST_PAD ? b->size : rows};
    for (int i = 0; i < b->nparts; i++)
        f.row[i] = b->part[i].row;
    return f;
}

/* The data come to the host, once for the loop. */
static dc_status fetch_rows(dc_batches *b, dc_job *j, part *p)
{
    dc_device *dev = b->rt->device;
    const size_t bytes = (size_t)p->type.dim[0] * p->row;
    if (p->copy != NULL || bytes == 0)
        return DC_OK;
    void *copy = dc_try_alloc(bytes);
    if (copy == NULL)
        return dc_fail_memory(j, bytes);
    dc_job_defer(j, dc_xfree, copy);
    DC_TRY(dc_job_settle(j, copy, dev->ops->download(dev, j, copy, dc_tensor_mem(p->t), bytes)));
    p->mem = p->copy = copy;
    return DC_OK;
}

/* Gathered here, and one upload. */
static dc_status send_rows(dc_batches *b, dc_job *j, int number, int64_t batch, piece *to)
{
    dc_device *dev = b->rt->device;
    const size_t bytes = dc_type_bytes(&to->type);
    const dc_mark mark = dc_arena_mark(&j->scratch);
    const piece staged = {.mem = dc_arena_alloc(&j->scratch, bytes), .type = to->type};
    DC_TRY(fetch_rows(b, j, &b->part[number]));
    DC_TRY(gather(b, j, number, batch, &staged, 0, 1));
    const dc_status status = dev->ops->upload(dev, j, to->mem, staged.mem, bytes);
    dc_arena_rewind(&j->scratch, mark);
    return status;
}

/* Rows in order: the device copies them. */
static dc_status copy_rows(const dc_batches *b, dc_job *j, const part *p, int64_t batch, char *to)
{
    dc_device *dev = b->rt->device;
    const size_t row = p->row, bytes = (size_t)rows_of(b, batch) * row;
    const size_t left = b->last == LAST_PAD ? (size_t)b->size * row - bytes : 0;
    if (bytes > 0)
        DC_TRY(dev->ops->copy(dev, j, to, p->mem + (size_t)first_of(b, batch) * row, bytes));
    return left == 0
               ? DC_OK
               : dev->ops->upload(dev, j, to + bytes, dc_arena_alloc(&j->scratch, left), left);
}

static dc_status move_rows(dc_batches *b, dc_job *j, int64_t batch)
{
    const bool copied = b->order == NULL && b->rt->device->ops->copy != NULL;
    DC_TRY(ready_slot(b, j, b->there, batch));
    for (int i = 0; i < b->nparts; i++)
        DC_TRY(copied ? copy_rows(b, j, &b->part[i], batch, b->there[i].mem)
                      : send_rows(b, j, i, batch, &b->there[i]));
    return DC_OK;
}

static dc_status next_there(dc_batches *b, dc_job *j, int64_t batch)
{
    dc_type type[PARTS];
    dc_tensor *from[PARTS], *out[PARTS] = {NULL};
    const dc_gather_form form = form_of(b, batch);
    if (b->there_order == NULL || form.rows == 0)
        return move_rows(b, j, batch);
    for (int i = 0; i < b->nparts; i++) {
        type[i] = type_of_batch(b, i, batch);
        from[i] = b->part[i].t;
        dc_tensor_release(b->there[i].t);
        b->there[i].t = NULL;
    }
    DC_TRY(dc_gather_rows(b->d, j, &form, from, b->there_order, first_of(b, batch), type, out));
    for (int i = 0; i < b->nparts; i++)
        b->there[i].t = out[i];
    if (out[0] != NULL)
        return DC_OK;
    dc_tensor_release(b->there_order); /* the interpreter would do it: by way of the host */
    b->there_order = NULL;
    return move_rows(b, j, batch);
}

/* What was filled on the host becomes tensors of the device. */
static dc_status send_staged(dc_batches *b, dc_job *j, const piece *slot)
{
    dc_device *dev = b->rt->device;
    for (int i = 0; i < b->nparts; i++) {
        piece *to = &b->there[i];
        to->type = slot[i].type;
        DC_TRY(ready_tensor(b, j, to));
        DC_TRY(dev->ops->upload(dev, j, to->mem, slot[i].mem, dc_type_bytes(&to->type)));
    }
    return DC_OK;
}

/* The order goes there, and what gathers begins to be compiled. */
static dc_status begin_there(dc_batches *b, dc_job *j)
{
    if (b->order == NULL || b->count == b->start || b->rt != b->d->rt)
        return DC_OK;
    for (int i = 0; i < b->nparts; i++)
        if (b->part[i].row == 0 || b->part[i].type.dim[0] != b->part[0].type.dim[0])
            return DC_OK;
    DC_TRY(dc_gather_order(b->d->rt, j, b->order->at, b->n, &b->there_order));
    for (int last = 1; last >= 0 && b->there_order != NULL; last--) {
        const dc_gather_form form = form_of(b, last ? b->count - 1 : b->start);
        if (form.rows > 0)
            DC_TRY(dc_gather_start(b->d, j, &form));
    }
    return DC_OK;
}

/* ---- stretches ------------------------------------------------------------------------------- */

static dc_work *work_of(const dc_batches *b)
{
    return b->reads ? b->d->loader : b->d->rt->work;
}

/* Begins to fill a stretch with the batches from `first` on, as many as are left. */
static dc_status begin_stretch(dc_batches *b, dc_job *j, stretch *s, int64_t first)
{
    s->first = first;
    s->n = (int)dc_max_i64(0, dc_min_i64(b->per, b->count - first));
    for (int i = 0; i < s->n; i++)
        DC_TRY(ready_slot(b, j, slot_of(b, s, i), first + i));
    if (s->n == 0)
        return DC_OK;
    s->filling = true;
    for (int i = 0; i < b->ntasks; i++) {
        s->share[i].whole = false;
        dc_work_add(work_of(b), &s->share[i].task);
        dc_work_queue(work_of(b), &s->share[i].task);
    }
    return DC_OK;
}

static dc_status end_share(dc_batches *b, dc_job *j, share *a)
{
    dc_work *w = work_of(b);
    if (a->task.listed) {
        if (!dc_work_await(w, &a->task, true, j->cancel))
            DC_TRY(dc_job_ended(j));
        dc_work_finish(w, &a->task);
    }
    if (!a->whole) /* the threads were stopped; or it failed, and fails again */
        DC_TRY(fill_share(b, a->s, j, a->number, b->ntasks));
    a->whole = true;
    return DC_OK;
}

static dc_status end_stretch(dc_batches *b, dc_job *j, stretch *s)
{
    if (!s->filling)
        return DC_OK;
    const uint64_t begun = dc_span_begin(j->log);
    for (int i = 0; i < b->ntasks; i++)
        DC_TRY(end_share(b, j, &s->share[i]));
    dc_span_end(j->log, begun, DC_SPAN_WAIT, "wait for batches");
    s->filling = false;
    return DC_OK;
}

/* The slot of the next batch. */
static dc_status advance(dc_batches *b, dc_job *j, piece **out)
{
    const int64_t k = b->at - b->start;
    if (is_there(b) && !b->staged) {
        DC_TRY(next_there(b, j, b->at));
        *out = b->there;
        b->at++;
        return DC_OK;
    }
    stretch *s = &b->stretch[k / b->per % 2], *other = &b->stretch[1 - k / b->per % 2];
    if (k % b->per == 0) {
        DC_TRY(end_stretch(b, j, s));
        if (!other->filling)
            DC_TRY(begin_stretch(b, j, other, b->at + b->per));
    }
    *out = slot_of(b, s, (int)(k % b->per));
    if (b->staged) {
        DC_TRY(send_staged(b, j, *out));
        *out = b->there;
    }
    b->at++;
    return DC_OK;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void release_slot(const dc_batches *b, piece *slot)
{
    for (int i = 0; slot != NULL && i < b->nparts; i++) {
        dc_tensor_release(slot[i].t);
        if (slot[i].room > 0)
            dc_xfree(slot[i].mem);
    }
}

static void close_stretch(dc_batches *b, stretch *s)
{
    for (int i = 0; i < b->ntasks; i++) {
        dc_task *t = &s->share[i].task;
        if (t->listed && !dc_work_drop(work_of(b), t) && t->listed)
            dc_work_finish(work_of(b), t); /* it has been told to stop */
    }
    for (int i = 0; s->slot != NULL && i < b->per; i++)
        release_slot(b, &s->slot[i * b->nparts]);
    dc_xfree(s->slot);
}

static void close_batches(dc_batches *b)
{
    if (b == NULL || dc_dsl_gone(b->d))
        return;
    for (int i = 0; i < 2; i++)
        close_stretch(b, &b->stretch[i]);
    release_slot(b, b->tail);
    release_slot(b, b->there);
    for (int i = 0; i < b->nparts; i++) {
        dc_tensor_release(b->part[i].t);
        dc_rows_free(b->part[i].rows);
        dc_xfree(b->part[i].copy);
    }
    dc_tensor_release(b->there_order);
    dc_tensor_release(b->full);
    dc_tensor_release(b->rest);
    if (b->order != NULL)
        dc_udata_release(b->order);
    if (b->prev != NULL)
        b->prev->next = b->next;
    else if (b->d->batches == b)
        b->d->batches = b->next;
    if (b->next != NULL)
        b->next->prev = b->prev;
    dc_xfree(b);
}

static void close_holder(void *node)
{
    holder *h = node;
    dc_batches *b = h->b;
    h->b = NULL;
    close_batches(b);
}

const dc_utype dc_batches_type = {.name = "deepc.batches", .drop = close_holder};

/* Userdata of the script stay where they are, and show nothing. */
void dc_batches_close_all(dc_dsl *d)
{
    while (d->batches != NULL) {
        dc_batches *b = d->batches;
        *b->holder = NULL;
        close_batches(b);
    }
    if (!dc_dsl_gone(d))
        dc_work_free(d->loader);
    d->loader = NULL;
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
    dc_rt *rt;
    dc_tensor *from[PARTS];
    dc_rows *rows[PARTS];
    int nparts;
    dc_order *order;
    last_rows last;
    int64_t n, whole, start, place, places;
} opening;

/* Memory of rows that stays as it is, and what a row is. */
static dc_status take_rows(dc_batches *b, dc_job *j, part *p, dc_tensor *t)
{
    DC_TRY(dc_outcome_settle(t->store, j));
    p->type = t->type;
    p->row = dc_dtype_size((dc_dtype)t->type.dtype);
    for (int i = 1; i < t->type.rank; i++)
        p->row *= (size_t)t->type.dim[i];
    if (t->store->rt != b->rt) /* made by rule */
        DC_TRY(dc_tensor_copy_to(b->rt, j, t, &p->t));
    else
        p->t = dc_tensor_retain(t);
    t = p->t;
    if (t->store->owned) /* by a cell, which is written where it is */
        DC_TRY(dc_storage_evict(t->store, j));
    p->mem = dc_tensor_mem(t);
    return b->staged ? fetch_rows(b, j, p) : DC_OK;
}

static dc_status take_parts(dc_batches *b, dc_job *j, const opening *a)
{
    b->nparts = a->nparts; /* what was not taken yet is nothing */
    for (int i = 0; i < a->nparts; i++)
        b->reads |= a->rows[i] != NULL;
    b->staged = b->reads && is_there(b);
    for (int i = 0; i < a->nparts; i++) {
        part *p = &b->part[i];
        if (a->rows[i] == NULL) {
            DC_TRY(take_rows(b, j, p, a->from[i]));
            continue;
        }
        p->rows = dc_rows_share(a->rows[i]);
        p->type = p->rows->type;
        p->row = p->rows->row;
    }
    return DC_OK;
}

/* The bytes of a batch, with those of its mask. */
static dc_status size_batch(const dc_batches *b, dc_job *j, size_t *bytes)
{
    int64_t row = b->last == LAST_PAD ? sizeof(float) : 0, all;
    bool fits = true;
    for (int i = 0; i < b->nparts && fits; i++)
        fits = b->part[i].row <= INT64_MAX && dc_add_ok(row, (int64_t)b->part[i].row, &row);
    if (!fits || !dc_mul_ok(row, b->size, &all) || dc_extent_is(b->size))
        return dc_failf(j, DC_ERR_ARG, "batches",
                        "a batch of %" PRId64 " rows is too large to address", b->size);
    *bytes = (size_t)all;
    return DC_OK;
}

/* How many batches are filled at once, by how many tasks. */
static void plan_stretches(dc_batches *b, size_t bytes)
{
    b->per = (int)dc_max_i64(1, dc_min_i64(MOST, (int64_t)(STRETCH_BYTES / (bytes + 1))));
    b->per = (int)dc_max_i64(1, dc_min_i64(b->per, (b->count - b->start + 1) / 2));
    b->ntasks = b->reads ? (int)dc_max_i64(1, dc_min_i64(MOST_TASKS, b->size)) : 1;
    for (int i = 0; i < 2; i++) {
        b->stretch[i].b = b;
        b->stretch[i].slot = dc_xalloc((size_t)(b->per * b->nparts + 1) * sizeof(piece));
        for (int k = 0; k < b->ntasks; k++) {
            share *s = &b->stretch[i].share[k];
            *s = (share){.s = &b->stretch[i], .number = k};
            s->task = (dc_task){
                .body = fill_share_body, .settle = settled, .arg = s, .opt = &b->d->rt->opt};
        }
    }
}

static dc_status open_batches_body(dc_job *j, void *arg)
{
    const opening *a = arg;
    dc_batches *b = dc_xalloc(sizeof *b);
    size_t bytes = 0;
    *b = (dc_batches){.d = a->d,
                      .rt = a->rt != NULL ? a->rt : a->d->rt,
                      .order = a->order,
                      .last = a->last,
                      .n = a->n};
    b->whole = a->whole;
    b->place = a->place;
    b->places = a->places;
    b->size = a->whole / a->places;
    a->h->b = b; /* which closes it, whatever happens */
    b->holder = &a->h->b;
    if (b->order != NULL)
        dc_udata_hold(b->order);
    link_batches(b);
    DC_TRY(dc_jit_open(a->d->rt, j)); /* for its threads */
    DC_TRY(take_parts(b, j, a));
    DC_TRY(size_batch(b, j, &bytes));
    if (b->reads && a->d->loader == NULL)
        a->d->loader = dc_work_new(&a->d->rt->log, "deepc data", MOST_TASKS);
    const int64_t rest = b->n % b->whole;
    b->count = b->n / b->whole + (rest > 0 && b->last != LAST_DROP);
    b->start = b->at = dc_min_i64(a->start, b->count);
    b->has_tail = rest > 0 && b->last == LAST_KEEP && (!is_there(b) || b->staged);
    plan_stretches(b, bytes);
    if (b->last == LAST_PAD) {
        DC_TRY(make_mask(b, j, b->size, &b->full));
        DC_TRY(make_mask(b, j, b->count > 0 ? rows_of(b, b->count - 1) : b->size, &b->rest));
    }
    return is_there(b) && !b->staged ? begin_there(b, j)
                                     : begin_stretch(b, j, &b->stretch[0], b->start);
}

/* What a try that failed has made. */
static void undo_open(void *arg)
{
    const opening *a = arg;
    close_holder(a->h);
}

/* ---- bindings -------------------------------------------------------------------------------- */

/* All tensors but those made by rule are of one device. */
static void take_device(lua_State *L, dc_dsl *d, opening *a, const dc_handle *h)
{
    dc_rt *rt = dc_handle_rt(h);
    if (dc_handle_roams(h) || rt == a->rt)
        return;
    if (a->rt != NULL)
        dc_error_raisef(L, d, DC_ERR_DEVICES, "batches",
                        "a tensor of the set is on %s, another one on %s", a->rt->device_name,
                        rt->device_name);
    a->rt = rt;
}

/* Part i of the list at 1, which has the rows that are asked for. */
static void read_part(lua_State *L, dc_dsl *d, opening *a, int i, int64_t rows)
{
    lua_rawgeti(L, 1, i + 1);
    const dc_rows_holder *r = dc_udata_test(L, -1, &dc_rows_type);
    const dc_type *type;
    if (r != NULL) {
        luaL_argcheck(L, r->rows != NULL, 1, "closed");
        a->rows[i] = r->rows;
        type = &r->rows->type;
    } else {
        dc_handle *h = dc_handle_check(L, d, -1, "batches");
        const bool is_tensor = h->kind == DC_HANDLE_VALUE || h->kind == DC_HANDLE_LAZY;
        luaL_argcheck(L, is_tensor && dc_handle_type(h)->rank > 0, 1,
                      "a tensor with rows is needed");
        type = dc_handle_type(h);
        take_device(L, d, a, h);
        a->from[i] = dc_handle_realize(L, d, h);
    }
    luaL_argcheck(L, rows <= type->dim[0], 1, "fewer rows");
    lua_pop(L, 1);
}

static int l_batches(lua_State *L)
{
    static const char *const words[] = {"drop", "keep", "pad", NULL};
    static const last_rows lasts[] = {LAST_DROP, LAST_KEEP, LAST_PAD};
    dc_dsl *d = dc_dsl_of(L);
    lua_settop(L, 8);
    luaL_checktype(L, 1, LUA_TTABLE);
    opening a = {.d = d, .n = luaL_checkinteger(L, 3), .whole = luaL_checkinteger(L, 4)};
    a.order = lua_isnil(L, 2) ? NULL : dc_udata_check(L, 2, &dc_order_type);
    a.last = lasts[luaL_checkoption(L, 5, "drop", words)];
    a.start = luaL_optinteger(L, 6, 0);
    a.place = luaL_optinteger(L, 7, 0);
    a.places = luaL_optinteger(L, 8, 1);
    a.nparts = (int)lua_rawlen(L, 1);
    luaL_argcheck(L, a.nparts > 0 && a.nparts <= PARTS, 1, "parts");
    luaL_argcheck(L, a.n >= 0 && (a.order == NULL || a.order->n >= a.n), 3, "rows outside");
    luaL_argcheck(L, a.whole > 0 && a.start >= 0, 4, "sizes");
    luaL_argcheck(L, a.place >= 0 && a.place < a.places && a.whole % a.places == 0, 7, "places");
    luaL_argcheck(L, a.last != LAST_KEEP || a.n % a.whole % a.places == 0, 8, "shares of the rest");
    if (a.last == LAST_KEEP && a.places == 1) /* of more rows than there are: all of them */
        a.whole = dc_min_i64(a.whole, dc_max_i64(a.n, 1));
    const int64_t rows = a.order != NULL ? a.order->most + 1 : a.n;
    dc_collector_step(L, d);
    for (int i = 0; i < a.nparts; i++)
        read_part(L, d, &a, i, rows);
    a.h = dc_udata_new(L, &dc_batches_type, sizeof *a.h, 1);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    for (int i = 0; i < a.nparts; i++) /* realized: nothing of the script runs here */
        read_part(L, d, &a, i, rows);
    const dc_run_made made = {.undo = undo_open};
    dc_error_check(L, d, dc_run_again(L, d, open_batches_body, &a, &made));
    return 1;
}

typedef struct taking {
    holder *h;
    piece *slot;
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
    const int n = a.h->b->nparts;
    dc_handle *loan[PARTS];
    luaL_checkstack(L, n + 4, "a batch");
    for (int i = 0; i < n; i++)
        loan[i] = new_loan(L, d);
    dc_handle *mask = a.h->b != NULL && a.h->b->full != NULL ? new_loan(L, d) : NULL;
    if (a.h->b == NULL) /* a finalizer has closed it */
        return 0;
    dc_error_check(L, d, dc_run_again(L, d, next_batch_body, &a, NULL));
    if (a.slot == NULL)
        return 0;
    for (int i = 0; i < n; i++)
        dc_handle_fill(loan[i], dc_tensor_retain(a.slot[i].t));
    if (mask != NULL)
        dc_handle_fill(mask, dc_tensor_retain(a.is_last ? a.h->b->rest : a.h->b->full));
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

static const dc_binding bindings[] = {
    {"batches", l_batches, DC_ANY, DC_IN_LIBRARY},
    {"batch_next", l_next, DC_ANY, DC_IN_LIBRARY},
    {"batch_close", l_close, DC_ANY, DC_IN_LIBRARY},
    {"give_back", l_give_back, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_batches_bindings = DC_BINDINGS(bindings);
