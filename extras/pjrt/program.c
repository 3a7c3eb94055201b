/* Executables of the plugin: programs of StableHLO as typed functions, and calls of them. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include <lauxlib.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "extras/pjrt/plugin.h"

/* Calls that took less the last time are made where they are asked for. */
enum { FAST_NS = 200 * 1000 };

struct PJRT_Executable {
    atomic_int users;
    PJRT_Client *client;
    char *code; /* as it came; what is serialized, too */
    size_t size;
    char fingerprint[36], name[200];
    int ref; /* of the function, in Lua's registry */
    size_t narg, nout;
    dc_pjrt_shape *arg, *out;
    bool *donated;              /* by argument */
    PJRT_Buffer_Type *out_type; /* as the interface tells of results */
    int64_t *out_dims;
    size_t *out_rank, *kind_size;
    const char **kind;
    atomic_llong last_ns;
};

struct PJRT_LoadedExecutable {
    PJRT_Executable *program;
    bool deleted;
};

static int unref_program(lua_State *L)
{
    const PJRT_Executable *p = lua_touserdata(L, 1);
    luaL_unref(L, LUA_REGISTRYINDEX, p->ref);
    return 0;
}

static void release_program(PJRT_Executable *p)
{
    if (p == NULL || atomic_fetch_sub(&p->users, 1) != 1)
        return;
    if (p->ref != LUA_NOREF) {
        dc_pjrt_client_enter(p->client);
        dc_pjrt_error_free(dc_pjrt_protected(p->client, unref_program, p));
        dc_pjrt_client_leave(p->client);
    }
    dc_pjrt_client_release(p->client);
    free(p->code);
    free(p->arg);
    free(p->donated);
    free(p->out);
    free(p->out_type);
    free(p->out_dims);
    free(p->out_rank);
    free(p->kind_size);
    free(p->kind);
    free(p);
}

static PJRT_Executable *retain_program(PJRT_Executable *p)
{
    atomic_fetch_add(&p->users, 1);
    return p;
}

/* ---- compilation ----------------------------------------------------------------------------- */

/* A list of tables { dtype, size, ... } at the top of the stack. */
static dc_pjrt_shape *read_shapes(lua_State *L, size_t *n)
{
    *n = lua_rawlen(L, -1);
    dc_pjrt_shape *list = calloc(*n + 1, sizeof *list);
    for (size_t i = 0; list != NULL && i < *n; i++) {
        dc_pjrt_shape *s = &list[i];
        lua_rawgeti(L, -1, (lua_Integer)i + 1);
        s->rank = (int)lua_rawlen(L, -1) - 1;
        lua_rawgeti(L, -1, 1);
        s->type = dc_pjrt_type_of(lua_tostring(L, -1));
        lua_pop(L, 1);
        for (int k = 0; k < s->rank && k < DC_PJRT_RANK; k++) {
            lua_rawgeti(L, -1, k + 2);
            s->dim[k] = lua_tointeger(L, -1);
            lua_pop(L, 1);
        }
        lua_pop(L, 1);
    }
    return list;
}

static int compile_in_lua(lua_State *L)
{
    PJRT_Executable *p = lua_touserdata(L, 1);
    lua_settop(L, 0);
    dc_pjrt_push_host(L, "compile");
    lua_pushlstring(L, p->code, p->size);
    lua_call(L, 1, 1);
    lua_getfield(L, -1, "name");
    snprintf(p->name, sizeof p->name, "%s", lua_tostring(L, -1));
    lua_pop(L, 1);
    lua_getfield(L, -1, "arguments");
    p->arg = read_shapes(L, &p->narg);
    lua_pop(L, 1);
    lua_getfield(L, -1, "donated");
    p->donated = calloc(p->narg + 1, sizeof *p->donated);
    for (size_t i = 0; p->donated != NULL && i < p->narg; i++) {
        lua_rawgeti(L, -1, (lua_Integer)i + 1);
        p->donated[i] = lua_toboolean(L, -1);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    lua_getfield(L, -1, "results");
    p->out = read_shapes(L, &p->nout);
    lua_pop(L, 1);
    lua_getfield(L, -1, "call");
    p->ref = luaL_ref(L, LUA_REGISTRYINDEX);
    return 0;
}

static bool check_shapes(dc_pjrt_shape *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        dc_array as;
        if (list[i].rank > DC_PJRT_RANK || !dc_pjrt_shape_array(&list[i], &as) ||
            !dc_pjrt_shape_measure(&list[i]))
            return false;
    }
    return true;
}

static bool describe_results(PJRT_Executable *p)
{
    size_t dims = 1;
    for (size_t i = 0; i < p->nout; i++)
        dims += (size_t)p->out[i].rank;
    p->out_type = calloc(p->nout + 1, sizeof *p->out_type);
    p->out_dims = calloc(dims, sizeof *p->out_dims);
    p->out_rank = calloc(p->nout + 1, sizeof *p->out_rank);
    p->kind = calloc(p->nout + 1, sizeof *p->kind);
    p->kind_size = calloc(p->nout + 1, sizeof *p->kind_size);
    if (p->out_type == NULL || p->out_dims == NULL || p->out_rank == NULL || p->kind == NULL ||
        p->kind_size == NULL)
        return false;
    int64_t *d = p->out_dims;
    for (size_t i = 0; i < p->nout; i++) {
        p->out_type[i] = p->out[i].type;
        p->out_rank[i] = (size_t)p->out[i].rank;
        for (int k = 0; k < p->out[i].rank; k++)
            *d++ = p->out[i].dim[k];
        p->kind[i] = "device";
        p->kind_size[i] = strlen(p->kind[i]);
    }
    return true;
}

/* FNV-1a of 64 bits from two starts: names a program for caches of the caller's. */
static void fingerprint(PJRT_Executable *p)
{
    uint64_t a = 0xcbf29ce484222325, b = 0x84222325cbf29ce4;
    for (size_t i = 0; i < p->size; i++) {
        a = (a ^ (unsigned char)p->code[i]) * 0x100000001b3;
        b = (b ^ (unsigned char)p->code[i]) * 0x100000001b3;
    }
    snprintf(p->fingerprint, sizeof p->fingerprint, "%016" PRIx64 "%016" PRIx64, a, b);
}

static PJRT_Error *compile(PJRT_Client *c, const char *code, size_t size,
                           PJRT_LoadedExecutable **out)
{
    PJRT_LoadedExecutable *l = calloc(1, sizeof *l);
    PJRT_Executable *p = calloc(1, sizeof *p);
    PJRT_Error *e = NULL;
    if (p != NULL) {
        atomic_init(&p->users, 1);
        p->client = dc_pjrt_client_retain(c);
        p->ref = LUA_NOREF;
        p->code = malloc(size + 1);
    }
    if (l == NULL || p == NULL || p->code == NULL) {
        e = dc_pjrt_no_memory();
        goto failed;
    }
    memcpy(p->code, code, size);
    p->size = size;
    fingerprint(p);
    atomic_init(&p->last_ns, FAST_NS);
    dc_pjrt_client_enter(c);
    e = dc_pjrt_protected(c, compile_in_lua, p);
    dc_pjrt_client_leave(c);
    if (e != NULL)
        goto failed;
    if (p->arg == NULL || p->donated == NULL || p->out == NULL) {
        e = dc_pjrt_no_memory();
        goto failed;
    }
    if (!check_shapes(p->arg, p->narg) || !check_shapes(p->out, p->nout)) {
        e = dc_pjrt_error(PJRT_Error_Code_UNIMPLEMENTED,
                          "deepc: %s: arguments and results of more than %d axes are not supported",
                          p->name, DC_PJRT_RANK);
        goto failed;
    }
    if (!describe_results(p)) {
        e = dc_pjrt_no_memory();
        goto failed;
    }
    l->program = p;
    *out = l;
    return NULL;
failed:
    release_program(p);
    free(l);
    return e;
}

PJRT_Error *dc_pjrt_Client_Compile(PJRT_Client_Compile_Args *a)
{
    const PJRT_Program *p = a->program;
    if (p->format_size != strlen("mlir") || memcmp(p->format, "mlir", p->format_size) != 0)
        return dc_pjrt_error(PJRT_Error_Code_UNIMPLEMENTED,
                             "deepc: a program in the format %.*s is not supported, only mlir",
                             (int)p->format_size, p->format);
    return compile(a->client, p->code, p->code_size, &a->executable);
}

PJRT_Error *dc_pjrt_Executable_DeserializeAndLoad(PJRT_Executable_DeserializeAndLoad_Args *a)
{
    return compile(a->client, a->serialized_executable, a->serialized_executable_size,
                   &a->loaded_executable);
}

/* ---- what is told ---------------------------------------------------------------------------- */

PJRT_Error *dc_pjrt_Executable_Destroy(PJRT_Executable_Destroy_Args *a)
{
    release_program(a->executable);
    return NULL;
}

PJRT_Error *dc_pjrt_Executable_Name(PJRT_Executable_Name_Args *a)
{
    return TEXT(a, executable_name, a->executable->name);
}

PJRT_Error *dc_pjrt_Executable_NumReplicas(PJRT_Executable_NumReplicas_Args *a)
{
    a->num_replicas = 1;
    return NULL;
}

PJRT_Error *dc_pjrt_Executable_NumPartitions(PJRT_Executable_NumPartitions_Args *a)
{
    a->num_partitions = 1;
    return NULL;
}

PJRT_Error *dc_pjrt_Executable_NumOutputs(PJRT_Executable_NumOutputs_Args *a)
{
    a->num_outputs = a->executable->nout;
    return NULL;
}

/* Code is made at the first call, and shared by programs. */
PJRT_Error *
dc_pjrt_Executable_SizeOfGeneratedCodeInBytes(PJRT_Executable_SizeOfGeneratedCodeInBytes_Args *a)
{
    a->size_in_bytes = 0;
    return NULL;
}

static int64_t bytes_of(const dc_pjrt_shape *list, size_t n)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += (int64_t)list[i].bytes;
    return bytes;
}

PJRT_Error *
dc_pjrt_Executable_GetCompiledMemoryStats(PJRT_Executable_GetCompiledMemoryStats_Args *a)
{
    const PJRT_Executable *p = a->executable;
    a->generated_code_size_in_bytes = a->alias_size_in_bytes = a->temp_size_in_bytes = 0;
    a->argument_size_in_bytes = bytes_of(p->arg, p->narg);
    a->output_size_in_bytes = bytes_of(p->out, p->nout);
    for (size_t i = 0; i < sizeof a->others / sizeof a->others[0]; i++)
        if (offsetof(PJRT_Executable_GetCompiledMemoryStats_Args, others[i]) < a->struct_size)
            a->others[i] = 0;
    return NULL;
}

PJRT_Error *dc_pjrt_Executable_OutputElementTypes(PJRT_Executable_OutputElementTypes_Args *a)
{
    a->output_types = a->executable->out_type;
    a->num_output_types = a->executable->nout;
    return NULL;
}

PJRT_Error *dc_pjrt_Executable_OutputDimensions(PJRT_Executable_OutputDimensions_Args *a)
{
    a->num_outputs = a->executable->nout;
    a->dims = a->executable->out_dims;
    a->dim_sizes = a->executable->out_rank;
    return NULL;
}

PJRT_Error *dc_pjrt_Executable_OutputMemoryKinds(PJRT_Executable_OutputMemoryKinds_Args *a)
{
    a->num_outputs = a->executable->nout;
    a->memory_kinds = a->executable->kind;
    a->memory_kind_sizes = a->executable->kind_size;
    return NULL;
}

PJRT_Error *dc_pjrt_Executable_OptimizedProgram(PJRT_Executable_OptimizedProgram_Args *a)
{
    (void)a;
    return dc_pjrt_error(PJRT_Error_Code_UNIMPLEMENTED,
                         "deepc: what it compiled has no text in HLO");
}

PJRT_Error *dc_pjrt_Executable_Fingerprint(PJRT_Executable_Fingerprint_Args *a)
{
    return TEXT(a, executable_fingerprint, a->executable->fingerprint);
}

static void release_serialized(PJRT_SerializedExecutable *s)
{
    release_program((PJRT_Executable *)s);
}

PJRT_Error *dc_pjrt_Executable_Serialize(PJRT_Executable_Serialize_Args *a)
{
    PJRT_Executable *p = retain_program((PJRT_Executable *)(uintptr_t)a->executable);
    a->serialized_bytes = p->code;
    a->serialized_bytes_size = p->size;
    a->serialized_executable = (PJRT_SerializedExecutable *)p;
    a->serialized_executable_deleter = release_serialized;
    return NULL;
}

PJRT_Error *dc_pjrt_LoadedExecutable_Destroy(PJRT_LoadedExecutable_Destroy_Args *a)
{
    if (a->executable != NULL)
        release_program(a->executable->program);
    free(a->executable);
    return NULL;
}

PJRT_Error *dc_pjrt_LoadedExecutable_GetExecutable(PJRT_LoadedExecutable_GetExecutable_Args *a)
{
    a->executable = retain_program(a->loaded_executable->program);
    return NULL;
}

PJRT_Error *
dc_pjrt_LoadedExecutable_AddressableDevices(PJRT_LoadedExecutable_AddressableDevices_Args *a)
{
    a->addressable_devices = a->executable->program->client->devices;
    a->num_addressable_devices = 1;
    return NULL;
}

PJRT_Error *dc_pjrt_LoadedExecutable_Delete(PJRT_LoadedExecutable_Delete_Args *a)
{
    a->executable->deleted = true;
    return NULL;
}

PJRT_Error *dc_pjrt_LoadedExecutable_IsDeleted(PJRT_LoadedExecutable_IsDeleted_Args *a)
{
    a->is_deleted = a->executable->deleted;
    return NULL;
}

PJRT_Error *dc_pjrt_LoadedExecutable_Fingerprint(PJRT_LoadedExecutable_Fingerprint_Args *a)
{
    return TEXT(a, executable_fingerprint, a->executable->program->fingerprint);
}

static void keep_assignment(PJRT_DeviceAssignmentSerialized *a)
{
    (void)a;
}

/* A protocol buffer: one replica, one computation, on device 0. */
PJRT_Error *
dc_pjrt_LoadedExecutable_GetDeviceAssignment(PJRT_LoadedExecutable_GetDeviceAssignment_Args *a)
{
    static const char bytes[] = {8, 1, 16, 1, 0x1a, 3, 0x0a, 1, 0};
    a->serialized_bytes = bytes;
    a->serialized_bytes_size = sizeof bytes;
    a->serialized_device_assignment = NULL;
    a->serialized_device_assignment_deleter = keep_assignment;
    return NULL;
}

/* ---- calls ----------------------------------------------------------------------------------- */

struct dc_pjrt_call {
    PJRT_Executable *program;
    PJRT_Event *done;
    dc_pjrt_call *next;
    dc_pjrt_value *value[]; /* arguments, then results */
};

dc_pjrt_call **dc_pjrt_call_next(dc_pjrt_call *call)
{
    return &call->next;
}

static void free_block(void *block)
{
    free(block);
}

static void push_from_host(lua_State *L, dc_pjrt_value *v, const dc_pjrt_shape *s)
{
    dc_array as;
    dc_pjrt_shape_array(s, &as);
    as.data = v->block;
    if (v->client->reads_memory && v->bytes > 0) {
        const dc_status status = dc_push_array(L, &as, free_block, v->block);
        if (status != DC_OK)
            luaL_error(L, "an array cannot be taken (%d)", (int)status);
        v->block = NULL;
    } else {
        dc_pjrt_push_host(L, "from_bytes");
        lua_pushlstring(L, v->block, v->bytes);
        lua_pushstring(L, dc_pjrt_type_name(s->type));
        for (int i = 0; i < s->rank; i++)
            lua_pushinteger(L, s->dim[i]);
        lua_call(L, 2 + s->rank, 1);
    }
    lua_pushvalue(L, -1);
    v->ref = luaL_ref(L, LUA_REGISTRYINDEX);
}

static void keep_result(lua_State *L, dc_pjrt_value *v, const dc_pjrt_shape *s)
{
    dc_array as;
    if (dc_to_array(L, -1, &as) != DC_OK || as.bytes != s->bytes)
        luaL_error(L, "a result of %d bytes where %d are declared", (int)as.bytes, (int)s->bytes);
    if (v->client->reads_memory)
        v->at = as.data != NULL ? as.data : "";
    v->ref = luaL_ref(L, LUA_REGISTRYINDEX);
}

static int call_in_lua(lua_State *L)
{
    dc_pjrt_call *call = lua_touserdata(L, 1);
    PJRT_Executable *p = call->program;
    lua_settop(L, 0);
    luaL_checkstack(L, (int)(p->narg + p->nout) + 20, "too many arguments");
    lua_rawgeti(L, LUA_REGISTRYINDEX, p->ref);
    for (size_t i = 0; i < p->narg; i++) {
        if (call->value[i]->ref != LUA_NOREF)
            lua_rawgeti(L, LUA_REGISTRYINDEX, call->value[i]->ref);
        else
            push_from_host(L, call->value[i], &p->arg[i]);
    }
    lua_call(L, (int)p->narg, (int)p->nout);
    for (size_t i = p->nout; i-- > 0;)
        keep_result(L, call->value[p->narg + i], &p->out[i]);
    return 0;
}

static long long now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void free_call(dc_pjrt_call *call)
{
    for (size_t i = 0; i < call->program->narg + call->program->nout; i++)
        dc_pjrt_value_release(call->value[i]);
    dc_pjrt_event_release(call->done);
    release_program(call->program);
    free(call);
}

/* Arguments are there, as they come from calls before this one; one may have failed. */
static PJRT_Error *error_of_arguments(const dc_pjrt_call *call)
{
    PJRT_Error *e = NULL;
    for (size_t i = 0; e == NULL && i < call->program->narg; i++)
        e = dc_pjrt_event_wait(call->value[i]->ready);
    return e;
}

void dc_pjrt_call_run(dc_pjrt_call *call)
{
    PJRT_Client *c = call->program->client;
    PJRT_Error *e = error_of_arguments(call);
    const long long begun = now_ns();
    if (e == NULL)
        e = dc_pjrt_protected(c, call_in_lua, call);
    atomic_store(&call->program->last_ns, now_ns() - begun);
    dc_pjrt_client_leave(c);
    dc_pjrt_event_set(call->done, e);
    free_call(call);
}

static PJRT_Error *check_arguments(const PJRT_LoadedExecutable_Execute_Args *a)
{
    const PJRT_Executable *p = a->executable->program;
    if (a->executable->deleted)
        return dc_pjrt_error(PJRT_Error_Code_INVALID_ARGUMENT, "deepc: %s was deleted", p->name);
    if (a->num_devices != 1 || a->num_args != p->narg)
        return dc_pjrt_error(PJRT_Error_Code_INVALID_ARGUMENT,
                             "deepc: %s has %zu arguments and one device, not %zu and %zu", p->name,
                             p->narg, a->num_args, a->num_devices);
    for (size_t i = 0; i < p->narg; i++) {
        const PJRT_Buffer *b = a->argument_lists[0][i];
        bool same = b->shape.type == p->arg[i].type && b->shape.rank == p->arg[i].rank;
        for (int k = 0; same && k < b->shape.rank; k++)
            same = b->shape.dim[k] == p->arg[i].dim[k];
        if (!same || b->client != p->client)
            return dc_pjrt_error(PJRT_Error_Code_INVALID_ARGUMENT, "deepc: %s: argument %zu %s",
                                 p->name, i,
                                 !same ? "has another type or shape than the program's"
                                       : "is of another client");
    }
    return NULL;
}

/* The call has the values of its arguments from here on, whoever deletes the buffers. */
static PJRT_Error *new_call(const PJRT_LoadedExecutable_Execute_Args *a, dc_pjrt_call **out)
{
    PJRT_Executable *p = a->executable->program;
    dc_pjrt_call *call = calloc(1, sizeof *call + (p->narg + p->nout) * sizeof call->value[0]);
    if (call == NULL)
        return dc_pjrt_no_memory();
    call->program = retain_program(p);
    call->done = dc_pjrt_event_new();
    bool made = call->done != NULL;
    for (size_t i = 0; i < p->narg; i++) {
        call->value[i] = dc_pjrt_buffer_value(a->argument_lists[0][i]);
        if (call->value[i] == NULL) {
            free_call(call);
            return dc_pjrt_error(PJRT_Error_Code_INVALID_ARGUMENT,
                                 "deepc: %s: argument %zu was deleted or donated", p->name, i);
        }
    }
    for (size_t i = 0; i < p->nout; i++) {
        dc_pjrt_value *v = dc_pjrt_value_new(p->client, p->out[i].bytes, call->done);
        call->value[p->narg + i] = v;
        PJRT_Buffer *b = v != NULL ? dc_pjrt_buffer_new(&p->out[i], dc_pjrt_value_retain(v)) : NULL;
        a->output_lists[0][i] = b;
        made = made && b != NULL;
    }
    if (made) {
        *out = call;
        return NULL;
    }
    for (size_t i = 0; i < p->nout; i++) {
        PJRT_Buffer_Destroy_Args gone = {.buffer = a->output_lists[0][i]};
        dc_pjrt_Buffer_Destroy(&gone);
        a->output_lists[0][i] = NULL;
    }
    free_call(call);
    return dc_pjrt_no_memory();
}

static bool is_kept(const PJRT_ExecuteOptions *o, size_t argument)
{
    for (size_t i = 0; o != NULL && i < o->num_non_donatable_input_indices; i++)
        if (o->non_donatable_input_indices[i] == (int64_t)argument)
            return true;
    return false;
}

/* The call has the values; their memory is free as soon as it ends. */
static void take_donated(const PJRT_LoadedExecutable_Execute_Args *a)
{
    const PJRT_Executable *p = a->executable->program;
    for (size_t i = 0; i < p->narg; i++) {
        if (!p->donated[i] || is_kept(a->options, i))
            continue;
        PJRT_Buffer_Delete_Args gone = {.buffer = a->argument_lists[0][i]};
        dc_pjrt_Buffer_Delete(&gone);
    }
}

PJRT_Error *dc_pjrt_LoadedExecutable_Execute(PJRT_LoadedExecutable_Execute_Args *a)
{
    PJRT_Executable *p = a->executable->program;
    dc_pjrt_call *call = NULL;
    PJRT_Error *e = check_arguments(a);
    if (e == NULL)
        e = new_call(a, &call);
    if (e != NULL)
        return e;
    take_donated(a);
    if (a->device_complete_events != NULL)
        a->device_complete_events[0] = dc_pjrt_event_retain(call->done);
    if (atomic_load(&p->last_ns) < FAST_NS && dc_pjrt_client_try(p->client))
        dc_pjrt_call_run(call);
    else
        dc_pjrt_client_queue(p->client, call);
    return NULL;
}
