/*
 * backends/opencl: programs as bytes. They come back as the same kernels without a build; what is damaged, cut or made up
 * is refused and never reaches the driver.
 */
#define _XOPEN_SOURCE 700 /* tests/unit/opencl_run.h */
#include "tests/unit/opencl_run.h"

static dc_source source_of(const ocl *w)
{
    const bool simt = w->d->ops->target(w->d)->simt;
    return (dc_source){simt ? ocl_for_groups : ocl_for_workers, "opencl", ocl_entries, 3};
}

/* c = a * 3 + b */
static void test_runs(ocl *w, dc_program *p)
{
    const dc_bind bind[] = {{0, 0}, {1, 0}, {2, 0}, {3, 0}};
    const dc_command item = ocl_launch(p, AXPY, COUNT, 4, bind);
    float a[COUNT], b[COUNT], c[COUNT], three = 3;
    char *at[4];
    void *slot[4];
    for (int i = 0; i < COUNT; i++) {
        a[i] = (float)i;
        b[i] = 100;
        c[i] = 0;
    }
    for (int i = 0; i < 4; i++)
        slot[i] = at[i] = ocl_alloc(w, sizeof a);
    ocl_put(w, at[0], a, sizeof a);
    ocl_put(w, at[1], b, sizeof b);
    ocl_put(w, at[2], &three, sizeof three);
    dc_recording *r = ocl_record(w, &item, 1);
    CHECK_EQ(CALL(w, run, &w->j, r, slot, NULL), DC_OK);
    ocl_get(w, c, at[3], sizeof c);
    for (int i = 0; i < COUNT; i++)
        CHECK(c[i] == (float)i * 3 + 100);
    w->d->ops->recording_free(w->d, r);
    for (int i = 0; i < 4; i++)
        ocl_release(w, at[i]);
}

static void refused(ocl *w, const void *object, size_t bytes)
{
    dc_source src = source_of(w);
    dc_program *p = NULL;
    const unsigned loads = atomic_load(&dc_cl_of(w->d)->loads);
    const int objects = atomic_load(&dc_cl_of(w->d)->objects);
    src.text = NULL;
    CHECK_EQ(dc_cl_load(w->d, &w->j, &src, object, bytes, &p), DC_E_BUILD);
    ocl_check_said(w, "a kept program is damaged");
    CHECK_EQ(atomic_load(&dc_cl_of(w->d)->loads), loads);
    CHECK_EQ(atomic_load(&dc_cl_of(w->d)->objects), objects);
}

static void test_damage(ocl *w, const void *object, size_t bytes)
{
    unsigned char *other = malloc(bytes + 1);
    const size_t at[] = {0, 7, 8, 15, 16, 23, 24, 25, bytes / 2, bytes - 9, bytes - 1};
    const size_t cut[] = {0, 1, 8, 23, 24, 25, bytes / 2, bytes - 1};
    for (size_t i = 0; i < DC_COUNTOF(at); i++) {
        memcpy(other, object, bytes);
        other[at[i]] ^= 0x10;
        refused(w, other, bytes);
    }
    memcpy(other, object, bytes);
    other[bytes] = 0;
    refused(w, other, bytes + 1);
    for (size_t i = 0; i < DC_COUNTOF(cut); i++)
        refused(w, object, cut[i]);
    memset(other, 0, bytes);
    refused(w, other, bytes);
    free(other);
}

/* The object of one device is loaded by another one, as of another process. */
static void test_form(const char *target)
{
    ocl w, other;
    const void *object = NULL;
    size_t bytes = 0;
    dc_program *p = NULL, *again = NULL;
    dc_text from = {0}, to = {0};
    if (!ocl_open(&w, target))
        return;
    const dc_source src = source_of(&w);
    dc_source bare = src;
    bare.text = NULL;
    CHECK_EQ(dc_cl_translate(w.d, &w.j, &src, &object, &bytes), DC_OK);
    CHECK(bytes > 1000);
    CHECK_EQ(dc_cl_load(w.d, &w.j, &src, object, bytes, &p), DC_OK);
    CHECK_EQ(atomic_load(&dc_cl_of(w.d)->builds), 1); /* and what was built is used */
    CHECK_EQ(atomic_load(&dc_cl_of(w.d)->loads), 0);
    test_runs(&w, p);
    if (ocl_open(&other, target)) {
        CHECK_EQ(dc_cl_load(other.d, &other.j, &bare, object, bytes, &again), DC_OK);
        CHECK_EQ(atomic_load(&dc_cl_of(other.d)->builds), 0);
        CHECK_EQ(atomic_load(&dc_cl_of(other.d)->loads), 1);
        test_runs(&other, again);
        CHECK(dc_cl_toolchain(w.d, &from) && dc_cl_toolchain(other.d, &to));
        CHECK(strcmp(from.s, to.s) == 0);
        CHECK(strstr(from.s, ".so") != NULL);
        dc_cl_program_free(other.d, again);
        ocl_close(&other);
    }
    test_damage(&w, object, bytes);
    dc_text_free(&from);
    dc_text_free(&to);
    dc_cl_program_free(w.d, p);
    ocl_close(&w);
}

static void test(void)
{
    test_form("workers");
    test_form("simt");
}

int main(void)
{
    return ocl_main(test);
}
