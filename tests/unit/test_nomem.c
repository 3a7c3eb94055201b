/* Out of memory in core/, formats/ and when contexts are opened; tests/unit/nomem.h tells how. */
#define _GNU_SOURCE
#include "core/autodiff/grad.h"
#include "core/base/extent.h"
#include "core/eval/eval.h"
#include "core/ir/gtext.h"
#include "core/ir/simplify.h"
#include "core/signature/signature.h"
#include "formats/idx.h"
#include "formats/safetensors.h"
#include "formats/tensor_file.h"
#include "vm/deepc.h"

#include <unistd.h>
#include <zlib.h>

#include "tests/unit/nomem.h"
#include "tests/unit/trainstep.h"

static trainstep step;

/* ---- graphs ---- */

static void release_step(void *what)
{
    dc_module_free(what);
    step.module = NULL;
}

static dc_status do_build(dc_job *j, void *ctx)
{
    (void)ctx;
    step.module = dc_module_new();
    dc_job_defer(j, release_step, step.module);
    DC_TRY(trainstep_build(j, &step));
    dc_job_keep(j, step.module);
    return DC_OK;
}

static void same_func(const dc_func *f)
{
    const uint64_t hash = dc_func_hash(f);
    same(&hash, sizeof hash);
    CHECK_EQ(dc_func_check(job, f), DC_OK);
}

static void after_build(bool done)
{
    CHECK((step.module != NULL) == done);
    if (done)
        same_func(step.fn);
    release_step(step.module);
}

static void make_step(void)
{
    must(dc_protect(job, do_build, NULL) == DC_OK, "the step");
}

/* Arrays are full; the retry adds another parameter, so half of the first would show. */
static int asked;

static void make_params(void)
{
    step.module = dc_module_new();
    step.fn = dc_func_new(step.module, "f");
    for (int i = 0; i < 8; i++) {
        const char *const where[8] = {NULL, "a:1", "a:2", "a:3", "a:4", "a:5", "a:6", "a:7"};
        dc_func_from(step.fn, where[i], NULL);
        dc_graph_param(step.fn, &(dc_type){.dtype = DC_F32, .rank = 1, .dim = {i}}, "first");
    }
    CHECK(step.fn->param.n == step.fn->param.cap && step.fn->origins.n == step.fn->origins.cap);
    asked = 0;
}

static dc_status do_param(dc_job *j, void *ctx)
{
    const bool second = asked++ == 1;
    (void)j;
    (void)ctx;
    dc_func_from(step.fn, second ? "b.lua:2" : "a.lua:1", NULL);
    dc_graph_param(step.fn, &(dc_type){.dtype = second ? DC_F32 : DC_I32},
                   second ? "whole" : "half");
    return DC_OK;
}

static void after_param(bool done)
{
    const dc_func *f = step.fn;
    CHECK_EQ(f->label.n, f->param.n);
    CHECK_EQ(f->param.n, done ? 9 : 8);
    if (done) {
        CHECK_STR(f->label.at[8], asked == 2 ? "whole" : "half");
        CHECK_EQ(dc_node_at(f, f->param.at[8])->dtype, asked == 2 ? DC_F32 : DC_I32);
    }
    CHECK_EQ(dc_func_check(job, f), DC_OK);
    release_step(step.module);
}

static void make_forward(void)
{
    step.module = dc_module_new();
    must(trainstep_forward(job, &step) == DC_OK, "forward");
}

static dc_status do_grad(dc_job *j, void *ctx)
{
    const dc_ref wrt[STEP_NCELL] = {step.param[3].ref, step.param[4].ref};
    (void)ctx;
    return dc_grad(j, step.fn, step.loss, wrt, STEP_NCELL, step.grad);
}

static void after_grad(bool done)
{
    for (int i = 0; i < STEP_NCELL && done; i++)
        DC_PUSH(step.fn->result, step.grad[i]);
    CHECK_EQ(dc_func_check(job, step.fn), DC_OK);
    if (done)
        same_func(step.fn);
    release_step(step.module);
}

/* A loop that a limit may end, with a product and a branch in it. */
static const char looping[] = "body 0(%1: f32[2]) {\n"
                              "  %2 = sin %1 : f32[2]\n"
                              "  return %2\n"
                              "}\n"
                              "body 1(%1: f32[2]) {\n"
                              "  %2 = exp %1 : f32[2]\n"
                              "  return %2\n"
                              "}\n"
                              "body 2(%1: i32[], %2: f32[2, 2], %3: f32[2], %4: f32[2]) {\n"
                              "  %5 = dot %3, %2 {0, 1, 0, 0} : f32[2]\n"
                              "  %6 = add %5, %4 : f32[2]\n"
                              "  %7 = const {1} : i32[]\n"
                              "  %8 = lt %1, %7 : bool[]\n"
                              "  %9 = branch %8, %6 {0, 1} : bool[0]\n"
                              "  %10 = pick %9 {0} : f32[2]\n"
                              "  return %10, %5\n"
                              "}\n"
                              "func f(%1: i32[], %2: f32[2, 2], %3: f32[2], %4: f32[3, 2]) {\n"
                              "  %5 = loop %1, %2, %3, %4, %4 {2, 3, 2, 1, 1, 1, 1} : bool[0]\n"
                              "  %6 = pick %5 {1} : f32[3, 2]\n"
                              "  %7 = sum %6 {3} : f32[]\n"
                              "  return %7\n"
                              "}\n";

static void make_loop(void)
{
    must(dc_module_parse(job, looping, &step.module) == DC_OK, "a loop");
    step.fn = step.module->func.at[0];
}

static dc_status do_grad_loop(dc_job *j, void *ctx)
{
    (void)ctx;
    return dc_grad(j, step.fn, step.fn->result.at[0], &step.fn->param.at[1], STEP_NCELL, step.grad);
}

static dc_func *simple;

static dc_status do_simplify(dc_job *j, void *ctx)
{
    (void)j;
    (void)ctx;
    simple = dc_simplify(step.fn);
    return DC_OK;
}

static void after_simplify(bool done)
{
    same_func(step.fn);
    if (done)
        same_func(simple);
    release_step(step.module);
}

static char result[STEP_RESULTS][256];

static dc_status do_eval(dc_job *j, void *ctx)
{
    void *results[STEP_RESULTS];
    (void)ctx;
    for (int i = 0; i < STEP_RESULTS; i++)
        results[i] = result[i];
    DC_TRY(dc_eval(j, step.fn, DC_EVAL_STRICT, trainstep_value, results));
    return dc_eval(j, step.fn, DC_EVAL_ROUND, trainstep_value, results);
}

static void after_eval(bool done)
{
    for (int i = 0; i < STEP_RESULTS && done; i++)
        same(result[i], trainstep_bytes[i]);
    release_step(step.module);
}

/* ---- text ---- */

static dc_text text;

static dc_status do_print(dc_job *j, void *ctx)
{
    (void)j;
    (void)ctx;
    text.n = 0;
    dc_module_print(step.module, &text);
    return DC_OK;
}

static void after_print(bool done)
{
    if (done)
        same(text.s, text.n);
    dc_text_free(&text);
    release_step(step.module);
}

static dc_module *parsed;

static void make_text(void)
{
    make_step();
    dc_module_print(step.module, &text);
    release_step(step.module);
}

static dc_status do_parse(dc_job *j, void *ctx)
{
    (void)ctx;
    return dc_module_parse(j, text.s, &parsed);
}

static void after_parse(bool done)
{
    CHECK((parsed != NULL) == done);
    if (done) {
        text.n = 0;
        dc_module_print(parsed, &text);
        same(text.s, text.n);
    }
    dc_module_free(parsed);
    parsed = NULL;
    dc_text_free(&text);
}

static dc_names *names;

static void make_names(void)
{
    names = dc_names_new();
}

static dc_sig whole;

static dc_status do_signature(dc_job *j, void *ctx)
{
    (void)ctx;
    return dc_sig_parse(j, names,
                        "f(x: f32[batch, 2*n + 1, ...], p?: {w: f32[n], v: {f32[m=n//2]}}, k)"
                        " -> f32[batch, class=3], {a: f32[m - 1]}",
                        &whole);
}

static void after_signature(bool done)
{
    char words[DC_SIG_TEXT];
    CHECK((whole.arena.top != NULL) == done);
    if (done) {
        dc_sig_print(&whole, NULL, words, sizeof words);
        same(words, strlen(words));
    }
    dc_sig_fini(&whole);
    dc_names_free(names);
}

/* ---- stores ---- */

static const dc_type small = {.dtype = DC_F32, .rank = 2, .dim = {6, 3}};
static const float values[18] = {1, 2, 3}, zeros[18];

static dc_tensor *tensor[3];
static dc_cell *cell;

static void release_all(void)
{
    for (int i = 0; i < 3; i++) {
        dc_tensor_release(tensor[i]);
        tensor[i] = NULL;
    }
    dc_cell_release(cell);
    cell = NULL;
}

static dc_status do_tensor(dc_job *j, void *ctx)
{
    (void)ctx;
    return dc_tensor_new(rt, j, &small, &tensor[0]);
}

static void after_tensor(bool done)
{
    CHECK((tensor[0] != NULL) == done);
    release_all();
}

static dc_status do_cell(dc_job *j, void *ctx)
{
    (void)ctx;
    return dc_cell_new(rt, j, &small, "net.1.weight", true, &cell);
}

static void after_cell(bool done)
{
    CHECK((cell != NULL) == done);
    if (done) {
        CHECK_EQ(memcmp(cell->store->mem, zeros, sizeof zeros), 0);
        CHECK_STR(cell->label, "net.1.weight");
    }
    release_all();
}

/* A cell whose old value two tensors show, and a new value. */
static void make_shown(void)
{
    must(dc_cell_new(rt, job, &small, NULL, true, &cell) == DC_OK, "a cell");
    tensor[0] = dc_cell_show(cell);
    tensor[1] = dc_cell_show(cell);
    must(dc_tensor_new(rt, job, &small, &tensor[2]) == DC_OK, "a tensor");
    memcpy(dc_tensor_mem(tensor[2]), values, sizeof values);
}

static dc_status do_write(dc_job *j, void *ctx)
{
    (void)ctx;
    return dc_cell_write(cell, j, tensor[2]);
}

static dc_status do_evict(dc_job *j, void *ctx)
{
    (void)ctx;
    return dc_storage_evict(cell->store, j);
}

static dc_status do_show(dc_job *j, void *ctx)
{
    (void)j;
    (void)ctx;
    dc_cell_label(cell, "seen");
    dc_tensor_release(dc_cell_show(cell));
    return DC_OK;
}

static void not_written(void)
{
    CHECK_EQ(memcmp(cell->store->mem, zeros, sizeof zeros), 0);
    CHECK(!cell->torn);
}

static void still_shown(void)
{
    CHECK(tensor[0]->store == cell->store && tensor[1]->store == cell->store);
    not_written();
}

static void after_write(bool done)
{
    if (done)
        same(cell->store->mem, sizeof values);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(memcmp(dc_tensor_mem(tensor[i]), zeros, sizeof zeros), 0);
    release_all();
}

/* A cell with values, laid out the other way round, while a tensor shows it. */
static void make_laid_out(void)
{
    must(dc_cell_new(rt, job, &small, NULL, true, &cell) == DC_OK, "a cell");
    must(dc_tensor_new(rt, job, &small, &tensor[0]) == DC_OK, "a tensor");
    memcpy(dc_tensor_mem(tensor[0]), values, sizeof values);
    must(dc_cell_write(cell, job, tensor[0]) == DC_OK, "a value");
    tensor[1] = dc_cell_show(cell);
}

static dc_status do_relayout(dc_job *j, void *ctx)
{
    const dc_cell_layout turned = {.turned = true, .axis = {1, 0}};
    (void)ctx;
    return dc_cell_relayout(cell, j, &turned);
}

static void not_laid_out(void)
{
    CHECK(!cell->layout.turned);
    CHECK_EQ(memcmp(cell->store->mem, values, sizeof values), 0);
}

static void after_relayout(bool done)
{
    const float *got = cell->store->mem;
    for (int i = 0; i < 6 && done; i++)
        for (int k = 0; k < 3; k++)
            CHECK(got[6 * k + i] == values[3 * i + k]);
    CHECK_EQ(cell->layout.turned, done);
    CHECK_EQ(memcmp(dc_tensor_mem(tensor[1]), values, sizeof values), 0);
    release_all();
}

/* ---- sizes known at run time ---- */

static struct {
    dc_extents *table;
    int64_t code;
} ninth;

/* Lists are full; a variable without a code would be found by the retry. */
static void make_sizes(void)
{
    static const char *const name[8] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    ninth.table = dc_extents_new();
    for (int i = 0; i < 8; i++)
        dc_extent_var(ninth.table, name[i], 0, 9);
}

static dc_status do_size(dc_job *j, void *ctx)
{
    static const char *const name = "i";
    (void)j;
    (void)ctx;
    ninth.code = dc_extent_var(ninth.table, name, 0, 9);
    CHECK(dc_extent_is(ninth.code) && dc_extent_known(ninth.table, ninth.code));
    CHECK_EQ(dc_extent_bound(ninth.code), 9);
    return DC_OK;
}

static void after_size(bool done)
{
    (void)done;
    dc_extents_free(ninth.table);
}

/* Copies go through the host then. */
static void take_away_copy(void)
{
    static dc_device_ops ops;
    ops = *rt->device->ops;
    ops.copy = NULL;
    rt->device->ops = &ops;
}

static void try_core(void)
{
    static const trial trials[] = {
        {.name = "build", .body = do_build, .after = after_build},
        {.name = "parameter", .before = make_params, .body = do_param, .after = after_param},
        {.name = "grad", .before = make_forward, .body = do_grad, .after = after_grad},
        {.name = "grad of a loop", .before = make_loop, .body = do_grad_loop, .after = after_grad},
        {.name = "simplify", .before = make_step, .body = do_simplify, .after = after_simplify},
        {.name = "eval", .before = make_step, .body = do_eval, .after = after_eval},
        {.name = "print", .before = make_step, .body = do_print, .after = after_print},
        {.name = "parse", .before = make_text, .body = do_parse, .after = after_parse},
        {.name = "signature", .before = make_names, .body = do_signature, .after = after_signature},
        {.name = "size", .before = make_sizes, .body = do_size, .after = after_size},
        {.name = "tensor", .body = do_tensor, .after = after_tensor},
        {.name = "cell", .body = do_cell, .after = after_cell},
        {"write", make_shown, do_write, not_written, after_write, 0, false, true, false},
        {"evict", make_shown, do_evict, still_shown, after_write, 0, false, false, false},
        {"relayout", make_laid_out, do_relayout, not_laid_out, after_relayout, 0, false, true,
         false},
        {"show", make_shown, do_show, still_shown, after_write, 0, false, false, false},
    };
    for (int other = 0; other < 2; other++) {
        open_world("eval", &(dc_opts){.opt = 2, .check = other ? 2 : 0}, "");
        if (other)
            take_away_copy();
        for (size_t i = 0; i < DC_COUNTOF(trials); i++)
            try(&trials[i]);
        close_world();
    }
}

/* Memory that waits in the pool is given back before a tensor is refused. */
static void test_pool_helps(void)
{
    const dc_type large = {.dtype = DC_F32, .rank = 2, .dim = {64, 64}};
    open_world("eval", &(dc_opts){.opt = 2}, "");
    must(dc_tensor_new(rt, job, &small, &tensor[0]) == DC_OK, "a tensor");
    release_all();
    dc_pool_drain(rt); /* the job's list is there from now on */
    const long blocks = mem.blocks;
    must(dc_tensor_new(rt, job, &large, &tensor[0]) == DC_OK, "a tensor");
    release_all();
    CHECK(mem.blocks > blocks); /* it waits */
    start_failing(2, 2);        /* store, memory; the tensor is one that was let go */
    CHECK_EQ(dc_tensor_new(rt, job, &small, &tensor[0]), DC_OK);
    CHECK(stop_failing());
    CHECK_EQ(job->err.status, DC_OK);
    release_all();
    dc_pool_drain(rt);
    CHECK_EQ(mem.blocks, blocks);
    close_world();
}

/* A failure that was to be worked round is not what the caller hears of. */
static dc_status do_recover(dc_job *j, void *ctx)
{
    (void)ctx;
    dc_failf(j, DC_ERR_BUILD, NULL, "no compiler");
    dc_arena_alloc(&j->scratch, 100);
    return DC_OK;
}

static void test_record(void)
{
    char words[100];
    open_world("eval", &(dc_opts){.opt = 2}, "");
    start_failing(1, 1);
    CHECK_EQ(dc_protect(job, do_recover, NULL), DC_E_NOMEM);
    CHECK(stop_failing());
    CHECK_EQ(job->err.id, DC_ERR_NOMEM);
    dc_err_render(&job->err, 1, words, sizeof words);
    CHECK_STR(words, "out of memory");
    close_world();
}

/* ---- files, contexts ---- */

static char path[] = "/tmp/test_nomem.XXXXXX";
static dc_type file_type;
static void *file_data;

static void write_file(bool zipped)
{
    static const unsigned char idx[] = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 10, 20, 30, 40, 50, 60};
    gzFile f = gzopen(path, zipped ? "wb" : "wbT");
    must(f != NULL && gzwrite(f, idx, sizeof idx) == (int)sizeof idx && gzclose(f) == Z_OK, path);
}

static dc_status do_idx(dc_job *j, void *ctx)
{
    (void)ctx;
    return dc_idx_read(j, path, &file_type, &file_data);
}

static void after_idx(bool done)
{
    CHECK((file_data != NULL) == done);
    if (done)
        same(file_data, 6);
    dc_xfree(file_data);
    file_data = NULL;
}

static dc_st_file *st_file;
static const float st_data[] = {1, 2, 3, 4, 5, 6};

static dc_status fetch_data(dc_job *j, void *ctx, uint32_t item, size_t from, size_t n,
                            const void **bytes)
{
    (void)j;
    (void)ctx;
    (void)item;
    (void)n;
    *bytes = (const char *)st_data + from;
    return DC_OK;
}

static dc_status do_st_write(dc_job *j, void *ctx)
{
    (void)ctx;
    const dc_st_item item[] = {{"b", dc_type_make(DC_F32, 2, (int64_t[]){2, 3}), NULL},
                               {"a", dc_type_make(DC_F32, 1, (int64_t[]){3}), NULL}};
    const dc_st_text words[] = {{"z", "1"}, {"k", "2"}};
    return dc_safetensors_write(j, path, item, 2, words, 2, fetch_data, NULL);
}

static dc_status do_st_read(dc_job *j, void *ctx)
{
    (void)ctx;
    float room[6];
    DC_TRY(dc_safetensors_open(j, path, &st_file));
    DC_TRY(
        dc_safetensors_read(st_file, j, dc_safetensors_find(st_file, "b"), 0, sizeof room, room));
    same(room, sizeof room);
    return DC_OK;
}

static void after_st_read(bool done)
{
    CHECK((st_file != NULL) == done);
    dc_safetensors_close(st_file);
    st_file = NULL;
}

/* All elements of all tensors. */
static const char *tensor_path;

static dc_status do_tensor_file(dc_job *j, void *ctx)
{
    (void)ctx;
    char room[1 << 12];
    dc_tensor_file *f;
    uint64_t hash = 0;
    uint32_t n;
    DC_TRY(dc_tensor_file_open(j, tensor_path, &f));
    dc_tensor_file_defer(j, f);
    const dc_file_tensor *t = dc_tensor_file_list(f, &n);
    for (uint32_t i = 0; i < n; i++) {
        const size_t bytes = dc_type_bytes(&t[i].type);
        const dc_file_read read = {&t[i], 0, (size_t)dc_type_count(&t[i].type),
                                   (dc_dtype)t[i].type.dtype, room};
        if (bytes <= sizeof room)
            DC_TRY(dc_tensor_file_read(f, j, &read, 1));
        if (bytes <= sizeof room)
            hash = dc_hash_bytes(hash, room, bytes);
    }
    same(&hash, sizeof hash);
    return DC_OK;
}

static void after_tensor_file(bool done)
{
    (void)done;
}

static void try_tensor_files(void)
{
    static const char *const file[] = {
        "tests/lua/tensors/quantised.gguf",  "tests/lua/tensors/torch.pt",
        "tests/lua/tensors/torch_legacy.pt", "tests/fuzz/corpus/npy/deflated-npz",
        "tests/fuzz/corpus/npy/fortran-npy", "tests/lua/tensors/torch.safetensors",
    };
    for (size_t i = 0; i < DC_COUNTOF(file); i++) {
        tensor_path = file[i];
        try(&(trial){.name = file[i], .body = do_tensor_file, .after = after_tensor_file});
    }
}

/* What was there stays until all of the new one is. */
static void after_st_write(bool done)
{
    char start[3] = "";
    FILE *f = fopen(path, "rb");
    if (CHECK(f != NULL)) {
        const size_t n = fread(start, 1, 2, f);
        fclose(f);
        CHECK(n == 2 && (memcmp(start, "ol", 2) != 0 || !done));
    }
}

static void write_old(void)
{
    FILE *f = fopen(path, "wb");
    must(f != NULL && fputs("old", f) >= 0 && fclose(f) == 0, path);
}

static const char *open_device;
static dc_rt *opened;

static dc_status do_open(dc_job *j, void *ctx)
{
    dc_config cfg = DC_CONFIG_INIT;
    (void)j;
    (void)ctx;
    dc_close(opened); /* of the attempt that failed */
    cfg.device = open_device;
    cfg.log = hear;
    return dc_open(&cfg, &opened);
}

static void check_words(void)
{
    CHECK_STR(dc_errmsg(opened), "out of memory");
}

static void after_open(bool done)
{
    if (done)
        CHECK(opened->device != NULL && !opened->broken);
    start_failing(1, LONG_MAX);
    dc_close(opened); /* needs none */
    CHECK(!stop_failing());
    opened = NULL;
}

static void try_files(void)
{
    open_world("eval", &(dc_opts){.opt = 2}, "");
    const int fd = mkstemp(path);
    must(fd >= 0, path);
    close(fd);
    for (int zipped = 0; zipped < 2; zipped++) {
        write_file(zipped);
        try(&(trial){.name = zipped ? "idx, gzip" : "idx", .body = do_idx, .after = after_idx});
    }
    write_old();
    try(&(trial){.name = "safetensors, writing", .body = do_st_write, .after = after_st_write});
    try(&(trial){.name = "safetensors, reading", .body = do_st_read, .after = after_st_read});
    try_tensor_files();
    unlink(path);
    close_world();
}

static void try_open(void)
{
    const char *const devices[] = {"eval", "cpu"};
    for (int i = 0; i < 2; i++) {
        open_device = devices[i];
        try(&(trial){.name = i ? "open cpu" : "open eval",
                     .body = do_open,
                     .refused = check_words,
                     .after = after_open,
                     .bare = true});
    }
}

int main(int argc, char **argv)
{
    nomem_begin(argc, argv);
    try_core();
    test_pool_helps();
    test_record();
    try_files();
    try_open();
    CHECK_EQ(mem.blocks, 0);
    return t_done();
}
