/*
 * backends/opencl: failures with their words. Kernels that the device refuses, libraries and devices
 * that are not there, calls of OpenCL that fail, one after the other.
 */
#define _XOPEN_SOURCE 700 /* tests/unit/opencl_run.h */
#include "core/runtime/rt.h"
#include "vm/deepc.h"

#include "tests/unit/hostmem.h"
#include "tests/unit/opencl_run.h"

/* --- failures ----------------------------------------------------------------------------- */

static void refused(ocl *w, const dc_source *src, const char *part)
{
    dc_program *p;
    const int objects = atomic_load(&dc_cl_of(w->d)->objects);
    ocl_forget(w);
    CHECK_EQ(CALL(w, compile, &w->j, src, &p), DC_E_BUILD);
    ocl_check_said(w, part);
    CHECK(atomic_load(&dc_cl_of(w->d)->objects) <= objects + 1); /* what built may be kept */
}

/* A kernel of n buffers. */
static void many_buffers(ocl *w, uint32_t n, dc_text *out)
{
    dc_text_puts(out, "__kernel void k(");
    for (uint32_t i = 0; i < n; i++)
        dc_text_printf(out, "%s__global uchar *b%u, ulong o%u", i > 0 ? ", " : "", i, i);
    if (!w->d->ops->target(w->d)->simt)
        dc_text_puts(out, ", __global uchar *scratch, long first, long last");
    dc_text_puts(out, ") { b0[o0] = 1; }\n");
}

static void test_refusals(ocl *w)
{
    static const char *const k[] = {"k"};
    dc_text text = {0};
    refused(w,
            &(dc_source){"__kernel void k(__global int *a)\n{\n    a[0] = b;\n}\n", "opencl", k, 1},
            "refuses a kernel: 3:12: use of undeclared identifier 'b'");
    refused(w, &(dc_source){"__kernel void other(__global int *a) { a[0] = 1; }\n", "opencl", k, 1},
            "kernel 'k': CL_INVALID_KERNEL_NAME");
    refused(w, &(dc_source){"", "llvm", k, 1}, "not as 'llvm'");
    const size_t most = dc_cl_of(w->d)->limits.max_parameters / 16;
    if (most > 500) {
        T_SKIP("the device takes any number of parameters");
        return;
    }
    many_buffers(w, (uint32_t)most + 1, &text);
    refused(w, &(dc_source){text.s, "opencl", k, 1}, "bytes of parameters, the device takes ");
    dc_text_free(&text);
}

/* A group that is larger than the device runs. */
static void test_large_group(ocl *w, dc_program *p)
{
    const dc_bind sums[] = {{0, 0}};
    dc_command item = ocl_launch(p, STACKED, COUNT, 1, sums);
    dc_recording *r;
    const int objects = atomic_load(&dc_cl_of(w->d)->objects);
    item.threads = 1 << 20;
    CHECK_EQ(CALL(w, record, &w->j, &item, 1, &r), DC_E_BUILD);
    ocl_check_said(w, "kernel 'stacked' needs groups of 1048576 threads");
    CHECK_EQ(atomic_load(&dc_cl_of(w->d)->objects), objects);
}

static void not_opened(uint32_t number, const char *library, const char *target, dc_status status,
                       const char *part)
{
    ocl w;
    ocl_begin(&w, library, target);
    CHECK_EQ(dc_opencl_open(&w.j, number, &w.d), status);
    ocl_check_said(&w, part);
    dc_job_fini(&w.j);
}

static void test_not_opened(void)
{
    not_opened(0, "/nonexistent.so", "", DC_E_DEVICE, "/nonexistent.so");
    not_opened(0, "libm.so.6", "", DC_E_DEVICE, "libm.so.6 has no clGetPlatformIDs");
    not_opened(9999, "", "", DC_E_DEVICE, "no device opencl:9999");
    not_opened(0, "", "avx2", DC_E_VALUE, "DEEPC_TARGET");
}

/* --- calls of OpenCL that fail ------------------------------------------------------------ */

/*
 * The calls below, whose table the test changes, do what they always do until `left` have been made;
 * then one fails. There is one of these at a time.
 */
static struct faults {
    dc_cl_api real;
    int left;
    cl_int error;
} faults;

static bool fails(cl_int *error)
{
    const bool now = faults.left-- == 0;
    *error = now ? faults.error : CL_SUCCESS;
    return now;
}

static cl_mem create_buffer(cl_context context, uint64_t flags, size_t bytes, void *host,
                            cl_int *error)
{
    if (fails(error))
        return NULL;
    return faults.real.CreateBuffer(context, flags, bytes, host, error);
}

static cl_program create_program(cl_context context, cl_uint n, const char **text,
                                 const size_t *length, cl_int *error)
{
    if (fails(error))
        return NULL;
    return faults.real.CreateProgramWithSource(context, n, text, length, error);
}

static cl_int build_program(cl_program program, cl_uint n, const cl_device *device,
                            const char *options, void (*notify)(cl_program, void *), void *arg)
{
    cl_int error;
    return fails(&error) ? error
                         : faults.real.BuildProgram(program, n, device, options, notify, arg);
}

static cl_kernel create_kernel(cl_program program, const char *name, cl_int *error)
{
    if (fails(error))
        return NULL;
    return faults.real.CreateKernel(program, name, error);
}

static cl_int set_arg(cl_kernel kernel, cl_uint i, size_t bytes, const void *value)
{
    cl_int error;
    return fails(&error) ? error : faults.real.SetKernelArg(kernel, i, bytes, value);
}

static cl_int enqueue(cl_queue queue, cl_kernel kernel, cl_uint dims, const size_t *offset,
                      const size_t *global, const size_t *local, cl_uint nwait,
                      const cl_event *wait, cl_event *event)
{
    cl_int error;
    return fails(&error) ? error
                         : faults.real.EnqueueNDRangeKernel(queue, kernel, dims, offset, global,
                                                            local, nwait, wait, event);
}

static cl_int enqueue_copy(cl_queue queue, cl_mem from, cl_mem to, size_t from_at, size_t to_at,
                           size_t bytes, cl_uint nwait, const cl_event *wait, cl_event *event)
{
    cl_int error;
    return fails(&error) ? error
                         : faults.real.EnqueueCopyBuffer(queue, from, to, from_at, to_at, bytes,
                                                         nwait, wait, event);
}

static cl_int read_buffer(cl_queue queue, cl_mem from, cl_uint blocking, size_t at, size_t bytes,
                          void *to, cl_uint nwait, const cl_event *wait, cl_event *event)
{
    cl_int error;
    return fails(&error) ? error
                         : faults.real.EnqueueReadBuffer(queue, from, blocking, at, bytes, to,
                                                         nwait, wait, event);
}

static cl_int finish(cl_queue queue)
{
    cl_int error;
    return fails(&error) ? error : faults.real.Finish(queue);
}

static void begin_faults(ocl *w, int left, cl_int error)
{
    dc_cl_api *fn = &dc_cl_of(w->d)->lib.fn;
    faults.left = left;
    faults.error = error;
    fn->CreateBuffer = create_buffer;
    fn->CreateProgramWithSource = create_program;
    fn->BuildProgram = build_program;
    fn->CreateKernel = create_kernel;
    fn->SetKernelArg = set_arg;
    fn->EnqueueNDRangeKernel = enqueue;
    fn->EnqueueCopyBuffer = enqueue_copy;
    fn->EnqueueReadBuffer = read_buffer;
    fn->Finish = finish;
}

static void end_faults(ocl *w)
{
    dc_cl_of(w->d)->lib.fn = faults.real;
}

/* What a caller holds while it compiles, records and runs; all of it goes at the end. */
typedef struct holding {
    ocl *w;
    dc_program *p;
    dc_recording *r;
    void *mem;
    int32_t out[COUNT];
} holding;

/* The launch goes through the slot `mem`, whose content is copied from its first half. */
static dc_status use_device(dc_job *j, void *arg)
{
    holding *h = arg;
    ocl *w = h->w;
    const dc_bind sums[] = {{0, 0}}, copy[] = {{0, 4096}, {0, 0}}, checked[] = {{0, 8000}};
    const int32_t minus = -1;
    const dc_source src = {ocl_for_workers, "opencl", ocl_entries, 3};
    DC_TRY(CALL(w, compile, j, &src, &h->p));
    const dc_command items[] = {
        ocl_launch(h->p, STACKED, COUNT, 1, sums),
        {.kind = DC_COMMAND_CHECK, .nbind = 1, .bind = checked},
        {.kind = DC_COMMAND_COPY, .nbind = 2, .bind = copy, .bytes = sizeof h->out},
    };
    DC_TRY(CALL(w, alloc, j, 8192, &h->mem));
    DC_TRY(CALL(w, upload, j, (char *)h->mem + 8000, &minus, sizeof minus));
    DC_TRY(CALL(w, record, j, items, 3, &h->r));
    void *const slot[] = {h->mem};
    dc_run_info info = {.deadline_ns = dc_clock_ns() + UINT64_C(60000000000)};
    DC_TRY(CALL(w, run, j, h->r, slot, &info));
    return CALL(w, download, j, h->out, (char *)h->mem + 4096, sizeof h->out);
}

static void give_back(holding *h)
{
    const dc_device_ops *ops = h->w->d->ops;
    ops->recording_free(h->w->d, h->r);
    ops->program_free(h->w->d, h->p);
    ops->release(h->w->d, h->mem);
    dc_cl_programs_close(dc_cl_of(h->w->d));
    CHECK_EQ(atomic_load(&dc_cl_of(h->w->d)->objects), 0);
}

/* Whichever call fails, the failure is a record and nothing stays behind. */
static void test_faults(void)
{
    ocl w;
    dc_status status = DC_E_DEVICE;
    int n = 0;
    if (!ocl_open(&w, "workers"))
        return;
    faults.real = dc_cl_of(w.d)->lib.fn;
    for (; status != DC_OK && n < 100; n++) {
        holding h = {.w = &w};
        char text[300];
        begin_faults(&w, n, CL_OUT_OF_RESOURCES);
        status = dc_protect(&w.j, use_device, &h);
        end_faults(&w);
        dc_err_render(&w.j.err, 0, text, sizeof text);
        if (status == DC_OK)
            CHECK_EQ(h.out[COUNT - 1], 16 * (COUNT - 1) + 120);
        else if (!CHECK(status == DC_E_NOMEM || strstr(text, "CL_OUT_OF_RESOURCES") != NULL))
            printf("call %d: %s\n", n, text);
        ocl_forget(&w);
        give_back(&h);
    }
    CHECK(n > 12 && n < 100);
    ocl_close(&w);
}

/* A run that failed at a parameter is run again, and sets it then. */
static void test_run_again(void)
{
    ocl w;
    holding h = {.w = &w};
    if (!ocl_open(&w, "workers"))
        return;
    faults.real = dc_cl_of(w.d)->lib.fn;
    CHECK_EQ(dc_protect(&w.j, use_device, &h), DC_OK);
    void *moved = ocl_alloc(&w, 8192);
    const int32_t minus = -1;
    ocl_put(&w, (char *)moved + 8000, &minus, sizeof minus);
    void *const slot[] = {moved};
    for (int n = 0; n < 3; n++) { /* buffer, offset, launch */
        begin_faults(&w, n, CL_INVALID_MEM_OBJECT);
        CHECK_EQ(CALL(&w, run, &w.j, h.r, slot, NULL), DC_E_DEVICE);
        end_faults(&w);
        ocl_check_said(&w, n < 2 ? "of kernel 'stacked': CL_INVALID_MEM_OBJECT"
                                 : "a run, at kernel 'stacked': CL_INVALID_MEM_OBJECT");
    }
    CHECK_EQ(CALL(&w, run, &w.j, h.r, slot, NULL), DC_OK);
    memset(h.out, 0, sizeof h.out);
    ocl_get(&w, h.out, (char *)moved + 4096, sizeof h.out);
    CHECK_EQ(h.out[COUNT - 1], 16 * (COUNT - 1) + 120);
    ocl_release(&w, moved);
    give_back(&h);
    ocl_close(&w);
}

/* --- memory that the host refuses --------------------------------------------------------- */

/* While a context opens: it says so, and nothing of it stays. */
static void open_without(hostmem *m, long first, bool alone)
{
    dc_config cfg = DC_CONFIG_INIT;
    dc_rt *rt = NULL;
    cfg.device = "opencl:0";
    cfg.alloc = hostmem_give;
    cfg.alloc_ctx = m;
    if (first > 0)
        hostmem_refuse(m, first, alone);
    const dc_status status = dc_open(&cfg, &rt);
    hostmem_allow(m);
    if (!CHECK(status == DC_OK || strstr(dc_errmsg(rt), "memory") != NULL))
        printf("allocation %ld: %s\n", first, dc_errmsg(rt));
    dc_close(rt);
    if (!CHECK_EQ(m->bytes, 0))
        printf("allocation %ld\n", first);
}

static void test_host_memory(void)
{
    hostmem m = {0};
    open_without(&m, 0, true);
    const long n = m.n;
    CHECK(n > 5);
    for (long first = 1; first <= n; first++)
        for (int alone = 0; alone < 2; alone++)
            open_without(&m, first, alone != 0);
}

/* --- all ---------------------------------------------------------------------------------- */

static void test_form(const char *target)
{
    ocl w;
    if (!ocl_open(&w, target))
        return;
    dc_program *p = strcmp(target, "simt") == 0 ? ocl_compile(&w) : NULL;
    if (p != NULL)
        test_large_group(&w, p);
    w.d->ops->program_free(w.d, p);
    test_refusals(&w);
    ocl_close(&w);
}

static void test_all(void)
{
    test_not_opened();
    test_form("workers");
    test_form("simt");
    test_faults();
    test_run_again();
    test_host_memory();
}

int main(void)
{
    return ocl_main(test_all);
}
