/*
 * The plugin for PJRT without memory: the n-th allocation of compiling, pushing, calling and pulling fails, alone or with
 * all that follow. Whoever called gets an error that says so, or the call did without; what there is can be given back,
 * and the same calls work afterwards. Nothing is lost.
 */
#define _GNU_SOURCE /* setenv */
#include "extras/pjrt/pjrt.h"
#include "tests/unit/nomem.h"

const PJRT_Api *GetPjrtApi(void);

static const PJRT_Api *api;
static PJRT_Client *client;

static const char *program =
    "func.func @main(%x: tensor<3xf32>, %z: tensor<2xcomplex<f32>>) -> (tensor<3xf32>, "
    "tensor<2xcomplex<f32>>) {\n"
    "  %0 = stablehlo.add %x, %x : tensor<3xf32>\n"
    "  %1 = stablehlo.negate %z : tensor<2xcomplex<f32>>\n"
    "  return %0, %1 : tensor<3xf32>, tensor<2xcomplex<f32>>\n}\n";

/* Frees the error; false: there was one, which says that memory is missing. */
static bool ok(PJRT_Error *e)
{
    if (e == NULL)
        return true;
    PJRT_Error_GetCode_Args code = {.error = e};
    PJRT_Error_Message_Args text = {.error = e};
    PJRT_Error_Destroy_Args gone = {.error = e};
    api->Error_GetCode(&code);
    api->Error_Message(&text);
    if (!CHECK_EQ(code.code, PJRT_Error_Code_RESOURCE_EXHAUSTED))
        printf("%s\n", text.message);
    api->Error_Destroy(&gone);
    return false;
}

static bool wait_for(PJRT_Event *e)
{
    PJRT_Event_Await_Args await = {.event = e};
    PJRT_Event_Destroy_Args gone = {.event = e};
    const bool good = ok(api->Event_Await(&await));
    api->Event_Destroy(&gone);
    return good;
}

static bool compile(PJRT_LoadedExecutable **out)
{
    PJRT_Program p = {.code = (char *)(uintptr_t)program,
                      .code_size = strlen(program),
                      .format = "mlir",
                      .format_size = 4};
    PJRT_Client_Compile_Args a = {.client = client, .program = &p};
    const bool good = ok(api->Client_Compile(&a));
    *out = good ? a.executable : NULL;
    return good;
}

static PJRT_Buffer *push(PJRT_Buffer_Type type, const void *data, int64_t n)
{
    PJRT_Client_BufferFromHostBuffer_Args a = {
        .client = client, .data = data, .type = type, .dims = &n, .num_dims = 1};
    if (!ok(api->Client_BufferFromHostBuffer(&a)))
        return NULL;
    wait_for(a.done_with_host_buffer);
    return a.buffer;
}

static void drop(PJRT_Buffer *b)
{
    PJRT_Buffer_Destroy_Args a = {.buffer = b};
    api->Buffer_Destroy(&a);
}

static bool pull(PJRT_Buffer *b, void *to, size_t n)
{
    PJRT_Buffer_ToHostBuffer_Args a = {.src = b, .dst = to, .dst_size = n};
    return ok(api->Buffer_ToHostBuffer(&a)) && wait_for(a.event);
}

/* A call with arrays that it makes, whose results come back. */
static bool call(PJRT_LoadedExecutable *f)
{
    const float x[3] = {1, 2, 3}, z[4] = {1, 2, 3, 4};
    float got[4] = {0};
    PJRT_Buffer *in[2] = {push(PJRT_Buffer_Type_F32, x, 3), push(PJRT_Buffer_Type_C64, z, 2)};
    PJRT_Buffer *out[2] = {NULL, NULL}, *const * lists[1] = {in}, **results[1] = {out};
    PJRT_LoadedExecutable_Execute_Args a = {.executable = f,
                                            .argument_lists = lists,
                                            .num_devices = 1,
                                            .num_args = 2,
                                            .output_lists = results};
    bool good = in[0] != NULL && in[1] != NULL && ok(api->LoadedExecutable_Execute(&a));
    if (good) {
        const bool first = pull(out[0], got, sizeof x);
        CHECK(!first || (got[0] == 2 && got[2] == 6));
        good = pull(out[1], got, sizeof z) && first;
        CHECK(!good || (got[0] == -1 && got[3] == -4));
    }
    for (int i = 0; i < 2; i++) {
        drop(in[i]);
        drop(out[i]);
    }
    return good;
}

static bool make(PJRT_LoadedExecutable *unused)
{
    PJRT_LoadedExecutable *f;
    (void)unused;
    if (!compile(&f))
        return false;
    PJRT_LoadedExecutable_Destroy_Args gone = {.executable = f};
    api->LoadedExecutable_Destroy(&gone);
    return true;
}

/* So many allocations that are tried: all where there are few, else spread over them from a random one on. */
static void sweep(const char *what, bool (*once)(PJRT_LoadedExecutable *), PJRT_LoadedExecutable *f)
{
    enum { SHARE = 60 };
    start_failing(LONG_MAX, LONG_MAX);
    CHECK(once(f));
    const long n = mem.n;
    stop_failing();
    const long step = every || n < SHARE ? 1 : n / SHARE;
    printf("%s: %ld allocations, one of %ld\n", what, n, step);
    for (int alone = 0; alone < 2; alone++) {
        for (long i = 1 + (long)rng_below(&dice, (int)step); i <= n; i += step) {
            start_failing(i, alone ? i : LONG_MAX);
            once(f);
            stop_failing();
            CHECK(once(f)); /* with memory again */
        }
    }
}

int main(int argc, char **argv)
{
    nomem_begin(argc, argv);
    setenv("DEEPC_DEVICE", "eval", 1); /* compilers keep memory of their own */
    api = GetPjrtApi();
    PJRT_Client_Create_Args create = {.num_options = 0};
    const long before = mem.blocks;
    if (!CHECK(ok(api->Client_Create(&create))))
        return t_done();
    client = create.client;
    PJRT_LoadedExecutable *f;
    if (CHECK(compile(&f))) {
        CHECK(call(f));
        sweep("call", call, f);
        sweep("compile", make, f);
        PJRT_LoadedExecutable_Destroy_Args gone = {.executable = f};
        api->LoadedExecutable_Destroy(&gone);
    }
    PJRT_Client_Destroy_Args destroy = {.client = client};
    CHECK(ok(api->Client_Destroy(&destroy)));
    CHECK_EQ(mem.blocks, before);
    return t_done();
}
