/*
 * jit/exec/exec_bounds.c: an executable on disk whose words were changed and whose checksum is right again is refused,
 * or it stays inside of its memory. Every word of it is changed, in several ways.
 *
 *   test_forged [seed [changes of each word]]
 */
#define _GNU_SOURCE
#include "jit/cache/disk_cache.h"
#include "jit/exec/exec_pack.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/t.h"
#include "tests/unit/rng.h"
#include "tests/unit/world.h"

/* Temporaries, a launch after others, a cell that is set and one that is not, a copy, a check, a derived value. */
static const char text[] = "func f(%1: f32[40, 7] \"x\", %2: i32[4] \"y\", %3: f32[] \"lr\", "
                           "%4: f32[7] \"w\", %5: f32[40, 7] \"still\") {\n"
                           "  %6 = exp %1 : f32[40, 7]\n"
                           "  %7 = sum %6 {2} : f32[40]\n"
                           "  %8 = sum %6 {1} : f32[7]\n"
                           "  %9 = add %8, %4 : f32[7]\n"
                           "  %10 = sum %7 {1} : f32[]\n"
                           "  %11 = mul %10, %3 : f32[]\n"
                           "  %12 = max %2 {1} : i32[]\n"
                           "  %13 = exp %5 : f32[40, 7]\n"
                           "  %14 = sum %13 {2} : f32[40]\n"
                           "  %15 = add %14, %7 : f32[40]\n"
                           "  return %15, %11, %4, %9, %12, %12\n"
                           "}\n";

enum { HEADER = 64, WORD = 8 };

static char folder[200];
static dc_opts opt;
static dc_job job;
static uint32_t spilled;

typedef struct outcome {
    float result[40 + 1 + 7 + 7];
    dc_status status;
    bool whole;
} outcome;

static void take(float *to, const dc_tensor *x, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = value_at(x, i);
}

static dc_tensor *matrix(world *w)
{
    const dc_type type = dc_type_make(DC_F32, 2, (int64_t[]){40, 7});
    dc_tensor *x;
    CHECK(dc_tensor_new(w->rt, w->j, &type, &x) == DC_OK);
    float *at = dc_tensor_mem(x);
    for (int k = 0; k < 280; k++)
        at[k] = (float)(k % 50) / 100;
    return x;
}

static void build_and_call(outcome *o)
{
    const signature s = {.nfree = 3, .nresult = 3, .nset = 1, .set = {0}, .ncheck = 1};
    const dc_type still = dc_type_make(DC_F32, 2, (int64_t[]){40, 7});
    world w;
    world_open(&w, ON_CPU, &opt, "cache");
    w.dev->spilled = &spilled;
    w.dev->no_space = true;
    *o = (outcome){.status = DC_OK};
    dc_exec *e = world_build(&w, text, &s);
    dc_tensor *x = matrix(&w), *y = world_tensor(&w, DC_I32, 4, -9), *init = matrix(&w), *out[3];
    dc_cell *kept = NULL;
    CHECK(dc_cell_new(w.rt, w.j, &still, "still", true, &kept) == DC_OK);
    CHECK(dc_cell_write(kept, w.j, init) == DC_OK);
    dc_cell *cell[2] = {world_cell(&w, 7, 1, "w"), kept};
    dc_inst *i = world_bind(&w, e, cell);
    o->whole = w.said.s != NULL && strstr(w.said.s, "found whole") != NULL;
    dc_fault fault;
    const dc_arg arg[3] = {given(x), given(y), number(0.5f)};
    for (int round = 0; round < 2 && o->status == DC_OK; round++) {
        o->status = dc_inst_call(i, w.j, arg, out, &fault);
        if (o->status != DC_OK)
            break;
        take(o->result, out[0], 40);
        take(o->result + 40, out[1], 1);
        take(o->result + 41, out[2], 7);
        for (int k = 0; k < 7; k++)
            o->result[48 + k] = cell_at(cell[0], k);
        world_release(out, 3);
    }
    w.j->err = (dc_err){0};
    dc_inst_free(i);
    dc_exec_release(e);
    dc_cell_release(cell[0]);
    dc_cell_release(cell[1]);
    world_release(&x, 1);
    world_release(&y, 1);
    world_release(&init, 1);
    world_close(&w);
}

/* ---- files ----------------------------------------------------------------------------------- */

typedef struct entry {
    dc_cache_key key;
    char *data;
    size_t n;
} entry;

static bool read_entry(const char *name, entry *out)
{
    char path[600], word[17] = "";
    for (int i = 0; i < 2; i++) {
        memcpy(word, name + 16 * i, 16);
        out->key.word[i] = strtoull(word, NULL, 16);
    }
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    out->data = malloc(1 << 20);
    CHECK(f != NULL && fread(out->data, 1, HEADER, f) == HEADER);
    out->n = fread(out->data, 1, 1 << 20, f);
    fclose(f);
    return memcmp(out->data, "\177ELF", 4) != 0;
}

/* The entry that is no kernel. */
static entry find_executable(void)
{
    entry found = {.n = 0}, one;
    DIR *d = opendir(folder);
    for (const struct dirent *f; (f = readdir(d)) != NULL;) {
        if (f->d_name[0] == '.')
            continue;
        if (read_entry(f->d_name, &one))
            found = one;
        else
            free(one.data);
    }
    closedir(d);
    return found;
}

static void write_entry(const entry *x)
{
    static const dc_cache_maker no_toolchain;
    dc_cache *c = dc_cache_new(&opt);
    dc_cache_store(c, &job, x->key, no_toolchain, x->data, x->n);
    dc_cache_free(c);
}

static void remove_all(void)
{
    char path[600];
    DIR *d = opendir(folder);
    for (const struct dirent *f; (f = readdir(d)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", folder, f->d_name);
        if (f->d_name[0] != '.' && unlink(path) != 0)
            rmdir(path);
    }
    closedir(d);
    rmdir(folder);
}

/* ---- changes --------------------------------------------------------------------------------- */

static uint64_t changed(rng *r, uint64_t v, int way)
{
    static const uint64_t round[] = {0,          1,       4,          64,         4096,
                                     40 * 7 * 4, 1 << 20, 1ull << 40, UINT64_MAX, INT64_MAX};
    switch (way) {
    case 0:
        return v + (rng_below(r, 2) ? 1 : UINT64_MAX);
    case 1:
        return v + (uint64_t)(64 * (1 + rng_below(r, 64)));
    case 2:
        return round[rng_below(r, (int)DC_COUNTOF(round))];
    default:
        return (uint64_t)rng_below(r, 16);
    }
}

static long refused, same, other, failed;

static void try_entry(const entry *x, const outcome *want)
{
    outcome o;
    write_entry(x);
    build_and_call(&o);
    refused += !o.whole;
    failed += o.status != DC_OK;
    const bool equal = memcmp(o.result, want->result, sizeof o.result) == 0;
    CHECK(o.whole || (equal && o.status == DC_OK));
    same += o.whole && equal;
    other += o.whole && !equal;
}

int main(int argc, char **argv)
{
    rng r = {rng_seed(argc, argv, 1)};
    const int ways = argc > 2 ? (int)strtol(argv[2], NULL, 0) : 1;
    const char *bad, *tmp = getenv("TMPDIR");
    outcome cold, warm;
    dc_opts_init(&opt, &bad);
    dc_job_init(&job, &opt, NULL);
    snprintf(folder, sizeof folder, "%s/deepc-forged-XXXXXX", tmp != NULL ? tmp : "/tmp");
    CHECK(mkdtemp(folder) != NULL);
    snprintf(opt.cache, sizeof opt.cache, "%s", folder);
    build_and_call(&cold);
    build_and_call(&warm);
    CHECK(cold.status == DC_OK && warm.whole && !cold.whole);
    CHECK(memcmp(cold.result, warm.result, sizeof cold.result) == 0);
    entry e = find_executable();
    CHECK(e.n > 500);
    for (size_t i = 0; i + WORD <= e.n; i += WORD)
        for (int way = 0; way < ways; way++) {
            uint64_t before, now;
            memcpy(&before, e.data + i, WORD);
            now = changed(&r, before, rng_below(&r, 4));
            memcpy(e.data + i, &now, WORD);
            try_entry(&e, &cold);
            memcpy(e.data + i, &before, WORD);
        }
    printf(
        "%ld refused, %ld with the same results, %ld with others, %ld calls failed; %u spilled\n",
        refused, same, other, failed, spilled);
    CHECK_EQ(spilled, 0);
    CHECK(refused > 50);
    free(e.data);
    remove_all();
    dc_job_fini(&job);
    return t_done();
}
