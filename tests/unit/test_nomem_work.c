/*
 * Out of memory (tests/unit/nomem.h tells how) where test_nomem_jit does not look: compilations on
 * other threads, executables out of commands, the simulated devices, schedules from a file, reports of
 * bugs.
 *
 * The order of allocations is that of the threads, so which one fails is not the same in each run;
 * what must hold does not depend on it.
 */
#define _POSIX_C_SOURCE 200809L /* mkdtemp */
#include "jit/compile/bug_report.h"
#include "jit/exec/exec_commands.h"
#include "jit/schedule/schedule_file.h"

#include <dirent.h>
#include <unistd.h>

#include "tests/unit/nomem.h"
#include "tests/unit/trainstep.h"

enum { N = 8 };

static trainstep step;
static dc_exec *exec;
static dc_inst *inst;

/* ---- compilations on other threads ----------------------------------------------------------- */

static void make_step(void)
{
    must(dc_protect(job, trainstep_make, &step) == DC_OK, "the step");
}

static dc_status do_exec(dc_job *j, void *ctx)
{
    const dc_exec_desc d = trainstep_desc(&step);
    (void)ctx;
    if (exec == NULL)
        DC_TRY(dc_exec_start(rt, j, &d, &exec));
    return dc_exec_wait(rt, j, exec);
}

static void after_exec(bool done)
{
    if (done) {
        dc_exec_info info;
        dc_exec_info_of(exec, &info);
        CHECK(!info.interpreted);
        same(&info.launches, sizeof info.launches);
        same(&info.kernels, sizeof info.kernels);
        same(&info.arena_bytes, sizeof info.arena_bytes);
    }
    dc_exec_release(exec);
    exec = NULL;
    dc_module_free(step.module);
}

/* One has been begun, another is queued behind it; neither is waited for. */
static dc_status do_forsake(dc_job *j, void *ctx)
{
    for (int i = 0; i < 2; i++) {
        dc_exec_release(exec);
        exec = NULL;
        const dc_status status = do_exec(j, ctx);
        if (status != DC_OK)
            return status;
    }
    return DC_OK;
}

/* ---- commands ----------------------------------------------------------------------------------- */

static const float *values(void)
{
    static const float x[N] = {1, 2, 3, 4, 5, 6, 7, 8};
    return x;
}

static dc_tensor *argument, *out[1];

/* x to the arena and, three times, from there to the result; a check that finds nothing. */
static dc_status do_items(dc_job *j, void *ctx)
{
    static const dc_type type[] = {{.dtype = DC_F32, .rank = 1, .dim = {N}}};
    static const dc_bind in[] = {{DC_SLOT_ARENA, 0}, {DC_SLOT_FIRST, 0}};
    static const dc_bind around[] = {{DC_SLOT_FIRST + 1, 0}, {DC_SLOT_ARENA, 0}};
    static const dc_command command[] = {
        {.kind = DC_COMMAND_COPY, .nbind = 2, .bind = in, .bytes = N * 4, .label = "in"},
        {.kind = DC_COMMAND_LOOP, .grid = 3, .nbody = 1, .label = "loop"},
        {.kind = DC_COMMAND_COPY, .nbind = 2, .bind = around, .bytes = N * 4, .label = "out"},
    };
    const dc_command_list d = {.name = "commands",
                               .nfree = 1,
                               .nresult = 1,
                               .param = type,
                               .result = type,
                               .ncommand = DC_COUNTOF(command),
                               .command = command,
                               .arena_bytes = 64};
    const dc_arg arg = {.tensor = argument};
    dc_fault fault;
    (void)ctx;
    if (exec == NULL)
        DC_TRY(dc_exec_from_commands(rt, j, &d, &exec));
    if (inst == NULL)
        DC_TRY(dc_inst_new(rt, j, exec, NULL, &inst));
    return dc_inst_call(inst, j, &arg, out, &fault);
}

static void make_argument(void)
{
    const dc_type type = {.dtype = DC_F32, .rank = 1, .dim = {N}};
    must(dc_tensor_new(rt, job, &type, &argument) == DC_OK, "a tensor");
    memcpy(dc_tensor_mem(argument), values(), N * sizeof(float));
}

static void after_items(bool done)
{
    CHECK((out[0] != NULL) == done);
    if (done)
        CHECK(memcmp(dc_tensor_mem(out[0]), values(), N * sizeof(float)) == 0);
    dc_tensor_release(out[0]);
    out[0] = NULL;
    dc_inst_free(inst);
    inst = NULL;
    dc_exec_release(exec);
    exec = NULL;
    dc_tensor_release(argument);
}

/* ---- a file with schedules ------------------------------------------------------------------- */

static char folder[] = "/tmp/deepc-test-nomem-XXXXXX", path[64];
static dc_schedule_file *file;

static dc_status do_schedules(dc_job *j, void *ctx)
{
    (void)ctx;
    return dc_schedule_file_read(j, path, &file);
}

static void after_schedules(bool done)
{
    uint32_t n = 0;
    if (done && CHECK(dc_schedule_file_find(file, "b", &n) != NULL))
        CHECK_EQ(n, 2);
    if (done)
        dc_schedule_file_free(file);
    file = NULL;
}

static void write_schedules(void)
{
    FILE *f = fopen(path, "w");
    must(f != NULL, path);
    fputs("schedule a # first\n  split i 32\nschedule b\n  split i 4\n  unroll i.i\n", f);
    fclose(f);
}

/* ---- reports of bugs ------------------------------------------------------------------------- */

static char told[300];

static void hear_bug(void *ctx, const char *name)
{
    (void)ctx;
    snprintf(told, sizeof told, "%s", name != NULL ? name : "");
}

/* As dc_protect does it when a promise was broken. */
static dc_status do_report(dc_job *j, void *ctx)
{
    (void)ctx;
    j->about = exec;
    dc_fail(j, DC_ERR_BUG, &(dc_fact){.num = {1}, .word = {"here", "1 is not 2"}});
    dc_bug_report(j, rt);
    return DC_OK;
}

/* With less memory there is less in the file, or none; never a failure. */
static void test_report(void)
{
    open_world("sim:cpu", &(dc_opts){.opt = 2}, "");
    rt->on_bug = hear_bug;
    make_step();
    must(dc_protect(job, do_exec, NULL) == DC_OK, "an executable");
    snprintf(rt->opt.dump, sizeof rt->opt.dump, "%s", folder);
    bool failed = true;
    int files = 0;
    for (int n = 1; failed; n++) {
        start_failing(n, LONG_MAX);
        CHECK_EQ(dc_protect(job, do_report, NULL), DC_OK);
        failed = stop_failing();
        CHECK(told[0] == '\0' || strstr(job->err.hint, told) != NULL);
        files += told[0] != '\0';
        if (told[0] != '\0')
            CHECK(unlink(told) == 0);
    }
    CHECK(files > 1 && told[0] != '\0');
    after_exec(false);
    close_world();
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Files of DEEPC_DUMP that are not renamed yet are `.deepc-*`. */
static void empty_folder(void)
{
    DIR *d = opendir(folder);
    int written = 0;
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        char name[400];
        snprintf(name, sizeof name, "%s/%s", folder, e->d_name);
        CHECK(strncmp(e->d_name, ".deepc", 6) != 0);
        if (e->d_name[0] != '.')
            written += unlink(name) == 0;
    }
    if (d != NULL)
        closedir(d);
    CHECK(written > 1);
}

/* dump: or NULL, the folder for DEEPC_DUMP. */
static void test_world(const char *device, const char *dump, int most)
{
    dc_opts opt = {.opt = 2};
    const trial trials[] = {
        {.name = "  in the background",
         .before = make_step,
         .body = do_exec,
         .after = after_exec,
         .most = most},
        {.name = "  and again",
         .before = make_step,
         .body = do_forsake,
         .after = after_exec,
         .most = most / 2},
        {.name = "  commands",
         .before = make_argument,
         .body = do_items,
         .after = after_items,
         .evicts = true}, /* what is made stays for the next attempt */
        {.name = "  schedules", .body = do_schedules, .after = after_schedules},
    };
    printf("%s\n", device);
    snprintf(opt.dump, sizeof opt.dump, "%s", dump != NULL ? dump : "");
    open_world(device, &opt, "");
    for (size_t i = 0; i < DC_COUNTOF(trials); i++)
        try(&trials[i]);
    close_world();
}

int main(int argc, char **argv)
{
    nomem_begin(argc, argv);
    must(mkdtemp(folder) != NULL, folder);
    snprintf(path, sizeof path, "%s/schedules", folder);
    write_schedules();
    test_world("sim:cpu", NULL, 200);
    test_world("sim:cuda", folder, 60);
    test_report();
    empty_folder();
    CHECK(rmdir(folder) == 0);
    CHECK_EQ(mem.blocks, 0);
    return t_done();
}
