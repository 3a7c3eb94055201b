/*
 * Clients, devices and memories of the plugin: a context, its lua_State, and the thread of calls
 * that nobody waits for.
 */
#include <lauxlib.h>
#include <lualib.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extras/pjrt/plugin.h"

/* ---- who uses the context -------------------------------------------------------------------- */

static PJRT_Error_Code code_of(lua_State *L)
{
    PJRT_Error_Code code = PJRT_Error_Code_INVALID_ARGUMENT;
    if (lua_type(L, -1) != LUA_TTABLE)
        return PJRT_Error_Code_INTERNAL;
    lua_pushliteral(L, "code");
    if (lua_rawget(L, -2) == LUA_TSTRING &&
        (strcmp(lua_tostring(L, -1), "DC1001") == 0 || strcmp(lua_tostring(L, -1), "DC1006") == 0))
        code = PJRT_Error_Code_RESOURCE_EXHAUSTED;
    lua_pop(L, 1);
    return code;
}

PJRT_Error *dc_pjrt_protected(PJRT_Client *c, lua_CFunction f, void *arg)
{
    lua_State *L = c->L;
    char text[8000];
    lua_pushcfunction(L, f);
    lua_pushlightuserdata(L, arg);
    const int status = lua_pcall(L, 1, 0, 0);
    if (status == LUA_OK)
        return NULL;
    dc_error_text(L, -1, text, sizeof text);
    PJRT_Error_Code code = status == LUA_ERRMEM ? PJRT_Error_Code_RESOURCE_EXHAUSTED : code_of(L);
    if (strstr(text, "is not supported") != NULL)
        code = PJRT_Error_Code_UNIMPLEMENTED;
    lua_settop(L, 0);
    return dc_pjrt_error(code, "%s", text);
}

void dc_pjrt_push_host(lua_State *L, const char *name)
{
    lua_getglobal(L, "require");
    lua_pushliteral(L, "deepc.pjrt.host");
    lua_call(L, 1, 1);
    lua_getfield(L, -1, name);
    lua_remove(L, -2);
}

/* One that cannot be closed is left to the collector: its reference is given up before. */
static int close_value(lua_State *L)
{
    dc_pjrt_value *v = lua_touserdata(L, 1);
    lua_rawgeti(L, LUA_REGISTRYINDEX, v->ref);
    luaL_unref(L, LUA_REGISTRYINDEX, v->ref);
    v->ref = LUA_NOREF;
    lua_getfield(L, -1, "close");
    lua_insert(L, -2);
    lua_call(L, 1, 0);
    return 0;
}

void dc_pjrt_client_drop(PJRT_Client *c, dc_pjrt_value *v)
{
    pthread_mutex_lock(&c->queue_lock);
    v->next = c->dropped;
    c->dropped = v;
    pthread_mutex_unlock(&c->queue_lock);
}

static void close_dropped(PJRT_Client *c)
{
    pthread_mutex_lock(&c->queue_lock);
    dc_pjrt_value *list = c->dropped;
    c->dropped = NULL;
    pthread_mutex_unlock(&c->queue_lock);
    while (list != NULL) {
        dc_pjrt_value *v = list;
        list = v->next;
        if (v->ref != LUA_NOREF)
            dc_pjrt_error_free(dc_pjrt_protected(c, close_value, v));
        if (v->ref != LUA_NOREF) { /* there was no memory for the call: another time */
            dc_pjrt_client_drop(c, v);
            continue;
        }
        free(v->block);
        free(v);
    }
}

void dc_pjrt_client_enter(PJRT_Client *c)
{
    pthread_mutex_lock(&c->state);
    close_dropped(c);
}

/*
 * Lua's collector is stopped: what has memory is closed when its last user lets go, so going
 * through all that there is for each few megabytes of results, as for scripts, would find nothing.
 * What Lua itself allocates is collected whole when it has doubled.
 */
void dc_pjrt_client_leave(PJRT_Client *c)
{
    const int now = lua_gc(c->L, LUA_GCCOUNT);
    if (now > 2 * c->kilobytes + 4096) {
        lua_gc(c->L, LUA_GCCOLLECT);
        c->kilobytes = lua_gc(c->L, LUA_GCCOUNT);
    }
    pthread_mutex_unlock(&c->state);
}

bool dc_pjrt_client_try(PJRT_Client *c)
{
    if (pthread_mutex_trylock(&c->state) != 0)
        return false;
    pthread_mutex_lock(&c->queue_lock);
    const bool idle = c->first == NULL && !c->busy;
    pthread_mutex_unlock(&c->queue_lock);
    if (idle)
        close_dropped(c);
    else
        pthread_mutex_unlock(&c->state);
    return idle;
}

/* ---- the queue ------------------------------------------------------------------------------- */

enum { QUEUED_MOST = 32 };

void dc_pjrt_client_queue(PJRT_Client *c, dc_pjrt_call *call)
{
    pthread_mutex_lock(&c->queue_lock);
    const bool own = pthread_equal(pthread_self(), c->worker); /* in a callback */
    while (!own && c->waiting >= QUEUED_MOST)
        pthread_cond_wait(&c->taken, &c->queue_lock);
    c->waiting++;
    *c->last = call;
    c->last = dc_pjrt_call_next(call);
    pthread_cond_signal(&c->queued);
    pthread_mutex_unlock(&c->queue_lock);
}

static dc_pjrt_call *next_call(PJRT_Client *c)
{
    pthread_mutex_lock(&c->queue_lock);
    c->busy = false;
    while (c->first == NULL && !c->closing)
        pthread_cond_wait(&c->queued, &c->queue_lock);
    dc_pjrt_call *call = c->first;
    if (call != NULL) {
        c->first = *dc_pjrt_call_next(call);
        if (c->first == NULL)
            c->last = &c->first;
        c->busy = true;
        c->waiting--;
        pthread_cond_signal(&c->taken);
    }
    pthread_mutex_unlock(&c->queue_lock);
    return call;
}

static void *work(void *arg)
{
    PJRT_Client *c = arg;
    for (dc_pjrt_call *call; (call = next_call(c)) != NULL;) {
        dc_pjrt_client_enter(c);
        dc_pjrt_call_run(call); /* leaves */
    }
    return NULL;
}

/* ---- making and closing ---------------------------------------------------------------------- */

static void print_log(void *ctx, const char *channel, const char *text, size_t n)
{
    (void)ctx;
    (void)channel;
    fwrite(text, 1, n, stderr);
}

static int describe(lua_State *L)
{
    PJRT_Client *c = lua_touserdata(L, 1);
    lua_settop(L, 0);
    luaL_openlibs(L);
    dc_pjrt_push_host(L, "describe");
    lua_call(L, 0, 2);
    snprintf(c->device.description.text, sizeof c->device.description.text, "%s",
             lua_tostring(L, -2));
    c->reads_memory = lua_toboolean(L, -1);
    return 0;
}

static PJRT_Error *open_context(PJRT_Client *c, const char *device)
{
    dc_config cfg = DC_CONFIG_INIT;
    cfg.device = device;
    cfg.log = print_log;
    dc_status s = dc_open(&cfg, &c->ctx);
    if (s != DC_OK)
        return dc_pjrt_error(PJRT_Error_Code_FAILED_PRECONDITION, "deepc: %s", dc_errmsg(c->ctx));
    c->L = luaL_newstate();
    if (c->L == NULL)
        return dc_pjrt_no_memory();
    s = dc_attach(c->L, c->ctx);
    if (s != DC_OK)
        return dc_pjrt_error(PJRT_Error_Code_INTERNAL, "deepc: %s", dc_errmsg(c->ctx));
    c->ctx = NULL; /* the state's */
    PJRT_Error *e = dc_pjrt_protected(c, describe, c);
    lua_gc(c->L, LUA_GCSTOP);
    c->kilobytes = lua_gc(c->L, LUA_GCCOUNT);
    return e;
}

static void free_client(PJRT_Client *c)
{
    if (c->L != NULL)
        lua_close(c->L);
    dc_close(c->ctx);
    while (c->dropped != NULL) {
        dc_pjrt_value *v = c->dropped;
        c->dropped = v->next;
        free(v->block);
        free(v);
    }
    pthread_mutex_destroy(&c->state);
    pthread_mutex_destroy(&c->queue_lock);
    pthread_cond_destroy(&c->queued);
    pthread_cond_destroy(&c->taken);
    free(c);
}

PJRT_Client *dc_pjrt_client_retain(PJRT_Client *c)
{
    atomic_fetch_add(&c->users, 1);
    return c;
}

void dc_pjrt_client_release(PJRT_Client *c)
{
    if (atomic_fetch_sub(&c->users, 1) == 1)
        free_client(c);
}

static PJRT_Error *read_options(const PJRT_Client_Create_Args *a, char *device, size_t n)
{
    for (size_t i = 0; i < a->num_options; i++) {
        const PJRT_NamedValue *o = &a->create_options[i];
        if (o->name_size != strlen("device") || memcmp(o->name, "device", o->name_size) != 0 ||
            o->type != PJRT_NamedValue_kString || o->value_size >= n)
            return dc_pjrt_error(
                PJRT_Error_Code_INVALID_ARGUMENT,
                "deepc: no option %.*s of a client; there is device, a string such as \"cpu\"",
                (int)o->name_size, o->name);
        memcpy(device, o->string_value, o->value_size);
        device[o->value_size] = '\0';
    }
    return NULL;
}

PJRT_Error *dc_pjrt_Client_Create(PJRT_Client_Create_Args *a)
{
    char device[100] = "";
    PJRT_Error *e = read_options(a, device, sizeof device);
    if (e != NULL)
        return e;
    PJRT_Client *c = calloc(1, sizeof *c);
    if (c == NULL)
        return dc_pjrt_no_memory();
    atomic_init(&c->users, 1);
    c->last = &c->first;
    c->device.client = c->memory.client = c->device.description.client = c;
    c->devices[0] = &c->device;
    c->memories[0] = &c->memory;
    snprintf(c->platform_version, sizeof c->platform_version, "deepc %s", DC_VERSION);
    pthread_mutex_init(&c->state, NULL);
    pthread_mutex_init(&c->queue_lock, NULL);
    pthread_cond_init(&c->queued, NULL);
    pthread_cond_init(&c->taken, NULL);
    e = open_context(c, device[0] != '\0' ? device : NULL);
    if (e == NULL && pthread_create(&c->worker, NULL, work, c) != 0)
        e = dc_pjrt_error(PJRT_Error_Code_RESOURCE_EXHAUSTED, "deepc: no thread can be started");
    if (e != NULL) {
        free_client(c);
        return e;
    }
    a->client = c;
    return NULL;
}

/* What was begun comes to its end; what is left of the caller's keeps the context. */
PJRT_Error *dc_pjrt_Client_Destroy(PJRT_Client_Destroy_Args *a)
{
    PJRT_Client *c = a->client;
    if (c == NULL)
        return NULL;
    pthread_mutex_lock(&c->queue_lock);
    c->closing = true;
    pthread_cond_signal(&c->queued);
    pthread_mutex_unlock(&c->queue_lock);
    pthread_join(c->worker, NULL);
    dc_pjrt_client_release(c);
    return NULL;
}

/* ---- what is told ---------------------------------------------------------------------------- */

PJRT_Error *dc_pjrt_Client_PlatformName(PJRT_Client_PlatformName_Args *a)
{
    return TEXT(a, platform_name, "deepc");
}

PJRT_Error *dc_pjrt_Client_PlatformVersion(PJRT_Client_PlatformVersion_Args *a)
{
    return TEXT(a, platform_version, a->client->platform_version);
}

PJRT_Error *dc_pjrt_Client_ProcessIndex(PJRT_Client_ProcessIndex_Args *a)
{
    a->process_index = 0;
    return NULL;
}

PJRT_Error *dc_pjrt_Client_Devices(PJRT_Client_Devices_Args *a)
{
    a->devices = a->client->devices;
    a->num_devices = 1;
    return NULL;
}

PJRT_Error *dc_pjrt_Client_AddressableDevices(PJRT_Client_AddressableDevices_Args *a)
{
    a->addressable_devices = a->client->devices;
    a->num_addressable_devices = 1;
    return NULL;
}

static PJRT_Error *find_device(PJRT_Client *c, int id, PJRT_Device **out)
{
    if (id != 0)
        return dc_pjrt_error(PJRT_Error_Code_INVALID_ARGUMENT, "deepc: no device %d", id);
    *out = &c->device;
    return NULL;
}

PJRT_Error *dc_pjrt_Client_LookupDevice(PJRT_Client_LookupDevice_Args *a)
{
    return find_device(a->client, a->id, &a->device);
}

PJRT_Error *dc_pjrt_Client_LookupAddressableDevice(PJRT_Client_LookupAddressableDevice_Args *a)
{
    return find_device(a->client, a->local_hardware_id, &a->addressable_device);
}

PJRT_Error *dc_pjrt_Client_AddressableMemories(PJRT_Client_AddressableMemories_Args *a)
{
    a->addressable_memories = a->client->memories;
    a->num_addressable_memories = 1;
    return NULL;
}

PJRT_Error *dc_pjrt_Client_DefaultDeviceAssignment(PJRT_Client_DefaultDeviceAssignment_Args *a)
{
    if (a->num_replicas != 1 || a->num_partitions != 1 || a->default_assignment_size < 1)
        return dc_pjrt_error(PJRT_Error_Code_INVALID_ARGUMENT,
                             "deepc: there is one device, not %d replicas of %d partitions",
                             a->num_replicas, a->num_partitions);
    a->default_assignment[0] = 0;
    return NULL;
}

PJRT_Error *dc_pjrt_DeviceDescription_Id(PJRT_DeviceDescription_Id_Args *a)
{
    a->id = 0;
    return NULL;
}

PJRT_Error *dc_pjrt_DeviceDescription_ProcessIndex(PJRT_DeviceDescription_ProcessIndex_Args *a)
{
    a->process_index = 0;
    return NULL;
}

PJRT_Error *dc_pjrt_DeviceDescription_Attributes(PJRT_DeviceDescription_Attributes_Args *a)
{
    a->attributes = NULL;
    a->num_attributes = 0;
    return NULL;
}

PJRT_Error *dc_pjrt_DeviceDescription_Kind(PJRT_DeviceDescription_Kind_Args *a)
{
    return TEXT(a, device_kind, a->device_description->text);
}

PJRT_Error *dc_pjrt_DeviceDescription_DebugString(PJRT_DeviceDescription_DebugString_Args *a)
{
    return TEXT(a, debug_string, a->device_description->text);
}

PJRT_Error *dc_pjrt_DeviceDescription_ToString(PJRT_DeviceDescription_ToString_Args *a)
{
    return TEXT(a, to_string, "DeepcDevice(id=0)");
}

PJRT_Error *dc_pjrt_Device_GetDescription(PJRT_Device_GetDescription_Args *a)
{
    a->device_description = &a->device->description;
    return NULL;
}

PJRT_Error *dc_pjrt_Device_IsAddressable(PJRT_Device_IsAddressable_Args *a)
{
    a->is_addressable = true;
    return NULL;
}

PJRT_Error *dc_pjrt_Device_LocalHardwareId(PJRT_Device_LocalHardwareId_Args *a)
{
    a->local_hardware_id = 0;
    return NULL;
}

PJRT_Error *dc_pjrt_Device_AddressableMemories(PJRT_Device_AddressableMemories_Args *a)
{
    a->memories = a->device->client->memories;
    a->num_memories = 1;
    return NULL;
}

PJRT_Error *dc_pjrt_Device_DefaultMemory(PJRT_Device_DefaultMemory_Args *a)
{
    a->memory = &a->device->client->memory;
    return NULL;
}

static int measure_memory(lua_State *L)
{
    PJRT_Device_MemoryStats_Args *a = lua_touserdata(L, 1);
    dc_pjrt_push_host(L, "memory");
    lua_call(L, 0, 2);
    a->bytes_in_use = lua_tointeger(L, -2);
    a->peak_bytes_in_use = lua_tointeger(L, -1);
    return 0;
}

PJRT_Error *dc_pjrt_Device_MemoryStats(PJRT_Device_MemoryStats_Args *a)
{
    dc_pjrt_client_enter(a->device->client);
    PJRT_Error *e = dc_pjrt_protected(a->device->client, measure_memory, a);
    dc_pjrt_client_leave(a->device->client);
    a->peak_bytes_in_use_is_set = true;
    for (size_t i = 0; i < sizeof a->unknown / sizeof a->unknown[0]; i++)
        if (offsetof(PJRT_Device_MemoryStats_Args, unknown[i]) < a->struct_size)
            a->unknown[i].is_set = false; /* of a later version than the caller's there is none */
    return e;
}

PJRT_Error *dc_pjrt_Memory_Id(PJRT_Memory_Id_Args *a)
{
    a->id = 0;
    return NULL;
}

PJRT_Error *dc_pjrt_Memory_Kind(PJRT_Memory_Kind_Args *a)
{
    return TEXT(a, kind, "device");
}

PJRT_Error *dc_pjrt_Memory_Kind_Id(PJRT_Memory_Kind_Id_Args *a)
{
    a->kind_id = 0;
    return NULL;
}

PJRT_Error *dc_pjrt_Memory_DebugString(PJRT_Memory_DebugString_Args *a)
{
    return TEXT(a, debug_string, "memory of deepc's device");
}

PJRT_Error *dc_pjrt_Memory_ToString(PJRT_Memory_ToString_Args *a)
{
    return TEXT(a, to_string, "DeepcMemory(id=0)");
}

PJRT_Error *dc_pjrt_Memory_AddressableByDevices(PJRT_Memory_AddressableByDevices_Args *a)
{
    a->devices = a->memory->client->devices;
    a->num_devices = 1;
    return NULL;
}
