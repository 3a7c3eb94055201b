/*
 * core/runtime/devices.c: devices opened in a context, values copied from one to another, cells that move. Allocations fail
 * (tests/unit/nomem.h); then nothing has changed, and the same succeeds. Names, addresses and counters besides.
 */
#include "core/runtime/devices.h"
#include "core/runtime/lazy.h"

#include "tests/unit/nomem.h"

enum { ELEMENTS = 100 };

static const dc_type type = {.dtype = DC_F32, .rank = 1, .dim = {ELEMENTS}};

static bool broken_device;

static dc_status open_device(dc_rt *r, dc_job *j)
{
    if (broken_device)
        return dc_failf(j, DC_ERR_DEVICE, NULL, "'%s' is broken", r->opt.device);
    dc_rt_set_device(r, dc_host_device_new(), true);
    return DC_OK;
}

/* "b" is another name of "beside". */
static void name_device(const char *name, char *out, size_t size)
{
    snprintf(out, size, "%s", strcmp(name, "b") == 0 ? "beside" : name);
}

static dc_rt *other;
static dc_tensor *tensor, *made;
static dc_cell *cell;
static void *address[2];

static dc_status fill(dc_job *j, dc_storage *s)
{
    float v[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++)
        v[i] = (float)i;
    return s->rt->device->ops->upload(s->rt->device, j, s->mem, v, sizeof v);
}

static dc_status begin_body(dc_job *j, void *ctx)
{
    (void)ctx;
    DC_TRY(dc_rt_on(rt, j, "beside", &other));
    DC_TRY(dc_tensor_new(rt, j, &type, &tensor));
    DC_TRY(fill(j, tensor->store));
    DC_TRY(dc_cell_new(rt, j, &type, "w", true, &cell));
    return dc_cell_write(cell, j, tensor);
}

static void begin(void)
{
    must(dc_protect(job, begin_body, NULL) == DC_OK, "begin");
}

static void close_others(void)
{
    while (rt->next != NULL) {
        dc_rt *o = rt->next;
        rt->next = o->next;
        dc_rt_free_other(o);
    }
    other = NULL;
}

static void end(bool done)
{
    (void)done;
    dc_tensor_release(made);
    dc_tensor_release(tensor);
    dc_cell_release(cell);
    made = tensor = NULL;
    cell = NULL;
    CHECK(other == NULL || other->cell_bytes == 0);
    CHECK_EQ(rt->cell_bytes, 0);
    close_others();
}

/* ---- trials ---------------------------------------------------------------------------------- */

static dc_status open_body(dc_job *j, void *ctx)
{
    (void)ctx;
    return dc_rt_on(rt, j, "beside", &other);
}

static void not_opened(void)
{
    CHECK(rt->next == NULL);
}

static void opened(bool done)
{
    CHECK(!done || (rt->next == other && other->next == NULL && other->first == rt));
    close_others();
}

static dc_status copy_body(dc_job *j, void *ctx)
{
    (void)ctx;
    return dc_tensor_copy_to(other, j, tensor, &made);
}

static void copied(bool done)
{
    if (done) {
        CHECK(made->store->rt == other && made->store->mem != tensor->store->mem);
        same(dc_tensor_mem(made), dc_type_bytes(&type));
    }
    end(done);
}

static dc_status move_body(dc_job *j, void *ctx)
{
    (void)ctx;
    return dc_cell_move(cell, j, other);
}

static dc_status visit_body(dc_job *j, void *ctx)
{
    (void)ctx;
    return dc_cell_visit(cell, j, other);
}

static void not_moved(void)
{
    CHECK(cell->rt == rt && cell->store->rt == rt && cell->left == NULL && cell->moved == 0 &&
          !cell->torn);
    CHECK_EQ(other->cell_bytes, 0);
}

static void moved(bool done)
{
    if (done) {
        CHECK(cell->rt == other && cell->store->rt == other && cell->store->owned);
        CHECK_EQ(other->cell_bytes, cell->store->bytes);
        same(cell->store->mem, dc_type_bytes(&type));
    }
    end(done);
}

static const trial trials[] = {
    {.name = "a device", .body = open_body, .refused = not_opened, .after = opened},
    {.name = "a copy", .before = begin, .body = copy_body, .after = copied},
    {.name = "a cell moves",
     .before = begin,
     .body = move_body,
     .refused = not_moved,
     .after = moved},
    {.name = "a cell visits",
     .before = begin,
     .body = visit_body,
     .refused = not_moved,
     .after = moved},
};

/* ---- what holds ------------------------------------------------------------------------------ */

static dc_status names_body(dc_job *j, void *ctx)
{
    dc_rt *a, *b;
    (void)ctx;
    DC_TRY(dc_rt_on(rt, j, "first", &a));
    CHECK(a == rt && !dc_rt_has_others(rt));
    DC_TRY(dc_rt_on(rt, j, "beside", &a));
    DC_TRY(dc_rt_on(a, j, "b", &b));
    CHECK(a == b && a != rt && dc_rt_has_others(a));
    DC_TRY(dc_rt_on(a, j, "first", &b));
    CHECK(b == rt);
    broken_device = true;
    CHECK_EQ(dc_rt_on(rt, j, "third", &b), DC_E_DEVICE);
    broken_device = false;
    CHECK(rt->next == a && a->next == NULL);
    j->err = (dc_err){0};
    return DC_OK;
}

/* A cell that visits comes back to the memory that it had; what was shown of it stays. */
static dc_status visits_body(dc_job *j, void *ctx)
{
    const dc_type *t = &type;
    (void)ctx;
    dc_tensor *shown = dc_cell_show(cell);
    address[0] = cell->store->mem;
    DC_TRY(dc_cell_visit(cell, j, other));
    address[1] = cell->store->mem;
    for (int i = 0; i < 4; i++) {
        const uint64_t version = cell->version;
        DC_TRY(dc_cell_visit(cell, j, i % 2 == 0 ? rt : other));
        CHECK(cell->store->mem == address[i % 2] && cell->version > version);
    }
    CHECK(cell->moved == 0 &&
          memcmp(cell->store->mem, dc_tensor_mem(tensor), dc_type_bytes(t)) == 0);
    CHECK(memcmp(dc_tensor_mem(shown), dc_tensor_mem(tensor), dc_type_bytes(t)) == 0);
    CHECK(shown->store != cell->store && shown->store->rt == rt);
    dc_tensor_release(shown);
    DC_TRY(dc_cell_move(cell, j, rt)); /* takes what it left there */
    CHECK(cell->store->mem == address[0] && cell->moved == 1 && rt->cells_moved == 1);
    CHECK(cell->left == NULL && other->cell_bytes == 0);
    cell->job = "step";
    CHECK_EQ(dc_cell_move(cell, j, other), DC_E_STATE);
    cell->job = NULL;
    j->err = (dc_err){0};
    CHECK(cell->rt == rt);
    DC_TRY(dc_tensor_copy_to(other, j, tensor, &made));
    return dc_cell_write(cell, j, made); /* of the other device */
}

int main(int argc, char **argv)
{
    const char *bad;
    dc_opts opt;
    dc_opts_init(&opt, &bad);
    opt.check = 2;
    nomem_begin(argc, argv);
    open_world("eval", &opt, "");
    snprintf(rt->device_name, sizeof rt->device_name, "first");
    rt->open_device = open_device;
    rt->name_device = name_device;
    CHECK_EQ(dc_protect(job, names_body, NULL), DC_OK);
    close_others();
    begin();
    CHECK_EQ(dc_protect(job, visits_body, NULL), DC_OK);
    CHECK(memcmp(cell->store->mem, dc_tensor_mem(tensor), dc_type_bytes(&type)) == 0);
    end(true);
    rt->cells_moved = 0;
    for (size_t i = 0; i < DC_COUNTOF(trials); i++)
        try(&trials[i]);
    begin(); /* closing frees what is there */
    dc_tensor_release(tensor);
    dc_cell_release(cell);
    close_world();
    return t_done();
}
