/*
 * The plugin for PJRT as a program such as JAX calls it: programs, buffers, calls, events, errors;
 * odd calls are refused.
 */
#include "tests/t.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "extras/pjrt/pjrt.h"

const PJRT_Api *GetPjrtApi(void);

static const PJRT_Api *api;
static PJRT_Client *client;

static const char *program =
    "module @jit_f {\n"
    "  func.func public @main(%x: tensor<2x3xf32>, %y: tensor<3xf32>) -> (tensor<2x3xf32>, "
    "tensor<f32>) {\n"
    "    %0 = stablehlo.broadcast_in_dim %y, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>\n"
    "    %1 = stablehlo.add %x, %0 : tensor<2x3xf32>\n"
    "    %zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "    %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [0, 1]\n"
    "      : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32>\n"
    "    return %1, %2 : tensor<2x3xf32>, tensor<f32>\n"
    "  }\n"
    "}\n";

/* ---- what a caller does ---------------------------------------------------------------------- */

static bool fails(PJRT_Error *e, PJRT_Error_Code code, const char *words)
{
    if (!CHECK(e != NULL))
        return false;
    PJRT_Error_GetCode_Args c = {.error = e};
    PJRT_Error_Message_Args m = {.error = e};
    PJRT_Error_Destroy_Args d = {.error = e};
    CHECK(api->Error_GetCode(&c) == NULL);
    api->Error_Message(&m);
    CHECK_EQ(c.code, code);
    const bool said = strstr(m.message, words) != NULL && strlen(m.message) == m.message_size;
    if (!CHECK(said))
        printf("'%s' is not in: %s\n", words, m.message);
    api->Error_Destroy(&d);
    return said;
}

static bool works(PJRT_Error *e)
{
    if (e == NULL)
        return CHECK(true);
    PJRT_Error_Message_Args m = {.error = e};
    PJRT_Error_Destroy_Args d = {.error = e};
    api->Error_Message(&m);
    printf("%s\n", m.message);
    api->Error_Destroy(&d);
    return CHECK(false);
}

static PJRT_Error *wait_for(PJRT_Event *e)
{
    PJRT_Event_Await_Args a = {.event = e};
    PJRT_Event_Destroy_Args d = {.event = e};
    PJRT_Error *error = api->Event_Await(&a);
    api->Event_Destroy(&d);
    return error;
}

static PJRT_Client_BufferFromHostBuffer_Args host_array(PJRT_Buffer_Type type, const void *data,
                                                        size_t rank, const int64_t *dims)
{
    return (PJRT_Client_BufferFromHostBuffer_Args){
        .client = client, .data = data, .type = type, .dims = dims, .num_dims = rank};
}

static PJRT_Buffer *push(PJRT_Client_BufferFromHostBuffer_Args a)
{
    if (!works(api->Client_BufferFromHostBuffer(&a)))
        return NULL;
    works(wait_for(a.done_with_host_buffer));
    return a.buffer;
}

static void drop(PJRT_Buffer *b)
{
    PJRT_Buffer_Destroy_Args a = {.buffer = b};
    api->Buffer_Destroy(&a);
}

static size_t pull(PJRT_Buffer *b, void *to, size_t room)
{
    PJRT_Buffer_ToHostBuffer_Args a = {.src = b};
    if (!works(api->Buffer_ToHostBuffer(&a)) || !CHECK(a.dst_size <= room))
        return 0;
    a.dst = to;
    if (works(api->Buffer_ToHostBuffer(&a)))
        works(wait_for(a.event));
    return a.dst_size;
}

static PJRT_Error *compile(const char *text, PJRT_LoadedExecutable **out)
{
    PJRT_Program p = {.code = (char *)(uintptr_t)text,
                      .code_size = strlen(text),
                      .format = "mlir",
                      .format_size = 4};
    PJRT_Client_Compile_Args a = {.client = client, .program = &p};
    PJRT_Error *e = api->Client_Compile(&a);
    *out = a.executable;
    return e;
}

static void unload(PJRT_LoadedExecutable *f)
{
    PJRT_LoadedExecutable_Destroy_Args a = {.executable = f};
    api->LoadedExecutable_Destroy(&a);
}

static PJRT_Error *execute(PJRT_LoadedExecutable *f, size_t n, PJRT_Buffer **in, PJRT_Buffer **out,
                           PJRT_Event **done)
{
    PJRT_Buffer *const *lists[1] = {in};
    PJRT_Buffer **results[1] = {out};
    PJRT_LoadedExecutable_Execute_Args a = {.executable = f,
                                            .argument_lists = lists,
                                            .num_devices = 1,
                                            .num_args = n,
                                            .output_lists = results,
                                            .device_complete_events = done};
    return api->LoadedExecutable_Execute(&a);
}

/* ---- clients --------------------------------------------------------------------------------- */

static void test_client(void)
{
    PJRT_Client_PlatformName_Args name = {.client = client};
    PJRT_Client_Devices_Args devices = {.client = client};
    works(api->Client_PlatformName(&name));
    CHECK(name.platform_name_size == 5 && memcmp(name.platform_name, "deepc", 5) == 0);
    works(api->Client_Devices(&devices));
    CHECK_EQ(devices.num_devices, 1);
    PJRT_Device_GetDescription_Args about = {.device = devices.devices[0]};
    works(api->Device_GetDescription(&about));
    PJRT_DeviceDescription_Kind_Args kind = {.device_description = about.device_description};
    works(api->DeviceDescription_Kind(&kind));
    CHECK(kind.device_kind_size > 0);
    PJRT_Client_LookupDevice_Args second = {.client = client, .id = 1};
    fails(api->Client_LookupDevice(&second), PJRT_Error_Code_INVALID_ARGUMENT, "no device 1");
    PJRT_Device_MemoryStats_Args memory = {.device = devices.devices[0]};
    works(api->Device_MemoryStats(&memory));
    CHECK(memory.bytes_in_use >= 0 && memory.peak_bytes_in_use_is_set);
    fails(api->Client_DmaMap(NULL), PJRT_Error_Code_UNIMPLEMENTED, "no PJRT_Client_DmaMap");

    PJRT_NamedValue options[] = {
        {.name = "device", .name_size = 6, .string_value = "abacus", .value_size = 6}};
    PJRT_Client_Create_Args other = {.create_options = options, .num_options = 1};
    fails(api->Client_Create(&other), PJRT_Error_Code_FAILED_PRECONDITION, "abacus");
    options[0].name = "colour";
    fails(api->Client_Create(&other), PJRT_Error_Code_INVALID_ARGUMENT, "no option colour");
}

/* ---- buffers --------------------------------------------------------------------------------- */

static void test_strides(void)
{
    const int32_t data[6] = {1, 2, 3, 4, 5, 6};
    const int64_t dims[2] = {3, 2}, turned[2] = {4, 12}, back[2] = {-8, -4}, still[2] = {0, 4};
    const struct {
        const int64_t *strides;
        int from;
        int32_t want[6];
    } rows[] = {{turned, 0, {1, 4, 2, 5, 3, 6}},
                {back, 5, {6, 5, 4, 3, 2, 1}},
                {still, 0, {1, 2, 1, 2, 1, 2}}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        PJRT_Client_BufferFromHostBuffer_Args a =
            host_array(PJRT_Buffer_Type_S32, data + rows[i].from, 2, dims);
        int32_t got[6] = {0};
        a.byte_strides = rows[i].strides;
        a.num_byte_strides = 2;
        PJRT_Buffer *b = push(a);
        CHECK_EQ(pull(b, got, sizeof got), sizeof got);
        CHECK(memcmp(got, rows[i].want, sizeof got) == 0);
        drop(b);
    }
}

static void test_buffers(void)
{
    const int64_t none[2] = {0, 4}, many[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1},
                  huge[3] = {1 << 30, 1 << 30, 1 << 30};
    const double number = 2.5;
    char got[8];
    PJRT_Buffer *b = push(host_array(PJRT_Buffer_Type_F32, NULL, 2, none));
    CHECK_EQ(pull(b, got, 0), 0);
    drop(b);
    b = push(host_array(PJRT_Buffer_Type_F64, &number, 0, NULL));
    CHECK_EQ(pull(b, got, 8), 8);
    CHECK(memcmp(got, &number, 8) == 0);
    PJRT_Buffer_ToHostBuffer_Args small = {.src = b, .dst = got, .dst_size = 7};
    fails(api->Buffer_ToHostBuffer(&small), PJRT_Error_Code_INVALID_ARGUMENT,
          "7 bytes are too few for 8");
    PJRT_Buffer_UnsafePointer_Args at = {.buffer = b};
    works(api->Buffer_UnsafePointer(&at));
    CHECK(memcmp((const void *)at.buffer_pointer, &number, 8) == 0);
    PJRT_Buffer_CopyToMemory_Args copy = {.buffer = b};
    PJRT_Buffer_Memory_Args memory = {.buffer = b};
    works(api->Buffer_Memory(&memory));
    copy.dst_memory = memory.memory;
    works(api->Buffer_CopyToMemory(&copy));

    PJRT_Buffer_Delete_Args delete = {.buffer = b};
    PJRT_Buffer_IsDeleted_Args deleted = {.buffer = b};
    works(api->Buffer_Delete(&delete));
    works(api->Buffer_IsDeleted(&deleted));
    CHECK(deleted.is_deleted);
    small.dst_size = 8;
    fails(api->Buffer_ToHostBuffer(&small), PJRT_Error_Code_INVALID_ARGUMENT, "deleted");
    fails(api->Buffer_UnsafePointer(&at), PJRT_Error_Code_INVALID_ARGUMENT, "deleted");
    drop(b);
    CHECK_EQ(pull(copy.dst_buffer, got, 8), 8); /* the copy stays */
    drop(copy.dst_buffer);

    PJRT_Client_BufferFromHostBuffer_Args a = host_array(PJRT_Buffer_Type_F32, got, 9, many);
    fails(api->Client_BufferFromHostBuffer(&a), PJRT_Error_Code_UNIMPLEMENTED, "9 axes");
    a = host_array(PJRT_Buffer_Type_C64, got, 8, many);
    fails(api->Client_BufferFromHostBuffer(&a), PJRT_Error_Code_UNIMPLEMENTED, "8 axes");
    a = host_array(PJRT_Buffer_Type_F32, got, 3, huge);
    fails(api->Client_BufferFromHostBuffer(&a), PJRT_Error_Code_INVALID_ARGUMENT, "no size");
    a = host_array((PJRT_Buffer_Type)99, got, 0, NULL);
    fails(api->Client_BufferFromHostBuffer(&a), PJRT_Error_Code_UNIMPLEMENTED, "type 99");
}

/* ---- programs -------------------------------------------------------------------------------- */

static void test_program(PJRT_LoadedExecutable *f)
{
    PJRT_LoadedExecutable_GetExecutable_Args get = {.loaded_executable = f};
    works(api->LoadedExecutable_GetExecutable(&get));
    PJRT_Executable *p = get.executable;
    PJRT_Executable_NumOutputs_Args n = {.executable = p};
    PJRT_Executable_OutputDimensions_Args dims = {.executable = p};
    PJRT_Executable_OutputElementTypes_Args types = {.executable = p};
    works(api->Executable_NumOutputs(&n));
    works(api->Executable_OutputDimensions(&dims));
    works(api->Executable_OutputElementTypes(&types));
    CHECK_EQ(n.num_outputs, 2);
    CHECK_EQ(dims.dim_sizes[0], 2);
    CHECK_EQ(dims.dim_sizes[1], 0);
    CHECK(dims.dims[0] == 2 && dims.dims[1] == 3);
    CHECK_EQ(types.output_types[1], PJRT_Buffer_Type_F32);
    PJRT_Executable_Serialize_Args s = {.executable = p};
    works(api->Executable_Serialize(&s));
    PJRT_Executable_Destroy_Args gone = {.executable = p};
    api->Executable_Destroy(&gone);
    PJRT_Executable_DeserializeAndLoad_Args again = {.client = client,
                                                     .serialized_executable = s.serialized_bytes,
                                                     .serialized_executable_size =
                                                         s.serialized_bytes_size};
    works(api->Executable_DeserializeAndLoad(&again));
    s.serialized_executable_deleter(s.serialized_executable);
    unload(again.loaded_executable);
}

static void test_call(PJRT_LoadedExecutable *f)
{
    const float x[6] = {1, 2, 3, 4, 5, 6}, y[3] = {10, 20, 30};
    const int64_t dims[2] = {2, 3};
    PJRT_Buffer *in[2] = {push(host_array(PJRT_Buffer_Type_F32, x, 2, dims)),
                          push(host_array(PJRT_Buffer_Type_F32, y, 1, dims + 1))};
    PJRT_Buffer *out[2];
    PJRT_Event *done;
    float got[6], sum;
    for (int round = 0; round < 5; round++) { /* the first waits in the queue, later ones may not */
        if (!works(execute(f, 2, in, out, &done)))
            return;
        PJRT_Buffer *next[2] = {out[0], in[1]}, *then[2];
        works(execute(f, 2, next, then, NULL)); /* of what may not be there yet */
        drop(out[0]);
        CHECK_EQ(pull(then[0], got, sizeof got), sizeof got);
        CHECK(got[0] == 21 && got[5] == 66);
        CHECK_EQ(pull(out[1], &sum, sizeof sum), sizeof sum);
        CHECK_NEAR(sum, 141, 0);
        works(wait_for(done));
        drop(out[1]);
        drop(then[0]);
        drop(then[1]);
    }
    fails(execute(f, 1, in, out, NULL), PJRT_Error_Code_INVALID_ARGUMENT, "2 arguments");
    PJRT_Buffer *wrong[2] = {in[1], in[0]};
    fails(execute(f, 2, wrong, out, NULL), PJRT_Error_Code_INVALID_ARGUMENT,
          "argument 0 has another type or shape");
    PJRT_Buffer_Delete_Args delete = {.buffer = in[1]};
    works(api->Buffer_Delete(&delete));
    fails(execute(f, 2, in, out, NULL), PJRT_Error_Code_INVALID_ARGUMENT, "argument 1 was deleted");
    drop(in[0]);
    drop(in[1]);
}

static void test_complex(void)
{
    PJRT_LoadedExecutable *f;
    const float z[4] = {1, 2, 3, -4};
    const int64_t dims[1] = {2};
    float got[4];
    if (!works(compile("func.func @main(%z: tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>> {\n"
                       "  %0 = stablehlo.multiply %z, %z : tensor<2xcomplex<f32>>\n"
                       "  return %0 : tensor<2xcomplex<f32>>\n}",
                       &f)))
        return;
    PJRT_Buffer *in[1] = {push(host_array(PJRT_Buffer_Type_C64, z, 1, dims))}, *out[1];
    if (works(execute(f, 1, in, out, NULL))) {
        CHECK_EQ(pull(out[0], got, sizeof got), sizeof got);
        CHECK(got[0] == -3 && got[1] == 4 && got[2] == -7 && got[3] == -24);
        drop(out[0]);
    }
    drop(in[0]);
    unload(f);
}

static void test_bad_programs(void)
{
    PJRT_LoadedExecutable *f;
    fails(compile("func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
                  "  %0 = stablehlo.magic %x : tensor<2xf32>\n  return %0 : tensor<2xf32>\n}",
                  &f),
          PJRT_Error_Code_UNIMPLEMENTED, "stablehlo.magic");
    fails(
        compile(
            "func.func @main(%x: tensor<2xf32>) -> tensor<3xf32> {\n  return %x : tensor<2xf32>\n}",
            &f),
        PJRT_Error_Code_INVALID_ARGUMENT, "stablehlo:");
    fails(compile("ML\xefR\x06", &f), PJRT_Error_Code_INVALID_ARGUMENT, "the data end");
    fails(compile("", &f), PJRT_Error_Code_INVALID_ARGUMENT, "stablehlo");
    PJRT_Program p = {
        .code = (char *)(uintptr_t)program, .code_size = 1, .format = "hlo", .format_size = 3};
    PJRT_Client_Compile_Args a = {.client = client, .program = &p};
    fails(api->Client_Compile(&a), PJRT_Error_Code_UNIMPLEMENTED, "hlo");
}

/* ---- threads, and what outlives what --------------------------------------------------------- */

static void count_ready(PJRT_Error *e, void *arg)
{
    PJRT_Error_Destroy_Args d = {.error = e};
    if (e == NULL)
        __atomic_fetch_add((int *)arg, 1, __ATOMIC_SEQ_CST);
    else
        api->Error_Destroy(&d);
}

static void *call_often(void *arg)
{
    PJRT_LoadedExecutable *f = arg;
    const float x[6] = {0}, y[3] = {1, 1, 1};
    const int64_t dims[2] = {2, 3};
    int ready = 0;
    for (int i = 0; i < 50; i++) {
        PJRT_Buffer *in[2] = {push(host_array(PJRT_Buffer_Type_F32, x, 2, dims)),
                              push(host_array(PJRT_Buffer_Type_F32, y, 1, dims + 1))};
        PJRT_Buffer *out[2];
        PJRT_Event *done;
        float sum;
        if (!works(execute(f, 2, in, out, &done)))
            break;
        PJRT_Event_OnReady_Args when = {.event = done, .callback = count_ready, .user_arg = &ready};
        works(api->Event_OnReady(&when));
        drop(in[0]); /* while the call may be under way */
        drop(in[1]);
        drop(out[0]);
        pull(out[1], &sum, sizeof sum);
        CHECK_NEAR(sum, 6, 0);
        works(wait_for(done));
        drop(out[1]);
    }
    CHECK_EQ(ready, 50);
    return NULL;
}

static void test_threads(PJRT_LoadedExecutable *f)
{
    pthread_t thread[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&thread[i], NULL, call_often, f);
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
}

enum { MANY = 40 }; /* more than the queue holds */
typedef struct many_calls {
    PJRT_LoadedExecutable *f;
    PJRT_Buffer *in[2], *out[MANY][2];
    PJRT_Event *done[MANY];
    int begun;
} many_calls;

static void begin_many(PJRT_Error *e, void *arg)
{
    many_calls *m = arg;
    works(e);
    for (int i = 0; i < MANY; i++)
        works(execute(m->f, 2, m->in, m->out[i], &m->done[i]));
    __atomic_store_n(&m->begun, 1, __ATOMIC_SEQ_CST);
}

static void test_calls_in_callbacks(void)
{
    many_calls m = {.begun = 0};
    const float x[6] = {0}, y[3] = {1, 1, 1};
    const int64_t dims[2] = {2, 3};
    PJRT_Buffer *out[2];
    PJRT_Event *done;
    if (!works(compile(program, &m.f)))
        return;
    m.in[0] = push(host_array(PJRT_Buffer_Type_F32, x, 2, dims));
    m.in[1] = push(host_array(PJRT_Buffer_Type_F32, y, 1, dims + 1));
    if (!works(execute(m.f, 2, m.in, out, &done)))
        return;
    PJRT_Event_OnReady_Args when = {.event = done, .callback = begin_many, .user_arg = &m};
    works(api->Event_OnReady(&when));
    works(wait_for(done));
    while (!__atomic_load_n(&m.begun, __ATOMIC_SEQ_CST))
        sched_yield();
    for (int i = 0; i < MANY; i++) {
        float sum = 0;
        pull(m.out[i][1], &sum, sizeof sum);
        CHECK_NEAR(sum, 6, 0);
        works(wait_for(m.done[i]));
        drop(m.out[i][0]);
        drop(m.out[i][1]);
    }
    drop(out[0]);
    drop(out[1]);
    drop(m.in[0]);
    drop(m.in[1]);
    unload(m.f);
}

int main(void)
{
    api = GetPjrtApi();
    CHECK_EQ(api->struct_size, sizeof *api);
    CHECK_EQ(api->version.minor_version, PJRT_API_MINOR);
    PJRT_Plugin_Attributes_Args about = {.attributes = NULL};
    works(api->Plugin_Attributes(&about));
    CHECK_EQ(about.num_attributes, 2);
    PJRT_Client_Create_Args create = {.num_options = 0};
    if (!works(api->Client_Create(&create)))
        return t_done();
    client = create.client;
    test_client();
    test_strides();
    test_buffers();
    PJRT_LoadedExecutable *f;
    if (works(compile(program, &f))) {
        test_program(f);
        test_call(f);
        test_threads(f);
    }
    test_calls_in_callbacks();
    test_complex();
    test_bad_programs();
    const float number = 1;
    PJRT_Buffer *late = push(host_array(PJRT_Buffer_Type_F32, &number, 0, NULL));
    PJRT_Client_Destroy_Args destroy = {.client = client};
    works(api->Client_Destroy(&destroy));
    drop(late); /* and the program: they hold the context */
    unload(f);
    return t_done();
}
