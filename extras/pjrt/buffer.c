/* Values and buffers of the plugin, and how they come from the host and go to it. */
#include <stdlib.h>
#include <string.h>

#include "extras/pjrt/plugin.h"

/* ---- types ----------------------------------------------------------------------------------- */

typedef struct type_row {
    PJRT_Buffer_Type type;
    const char *name;
    dc_dtype part; /* of a complex number both parts */
    size_t size;
    bool complex;
} type_row;

static const type_row type_rows[] = {
    {PJRT_Buffer_Type_PRED, "bool", DC_BOOL, 1, false},
    {PJRT_Buffer_Type_S8, "i8", DC_I8, 1, false},
    {PJRT_Buffer_Type_S16, "i16", DC_I16, 2, false},
    {PJRT_Buffer_Type_S32, "i32", DC_I32, 4, false},
    {PJRT_Buffer_Type_S64, "i64", DC_I64, 8, false},
    {PJRT_Buffer_Type_U8, "u8", DC_U8, 1, false},
    {PJRT_Buffer_Type_U16, "u16", DC_U16, 2, false},
    {PJRT_Buffer_Type_U32, "u32", DC_U32, 4, false},
    {PJRT_Buffer_Type_U64, "u64", DC_U64, 8, false},
    {PJRT_Buffer_Type_F16, "f16", DC_F16, 2, false},
    {PJRT_Buffer_Type_F32, "f32", DC_F32, 4, false},
    {PJRT_Buffer_Type_F64, "f64", DC_F64, 8, false},
    {PJRT_Buffer_Type_BF16, "bf16", DC_BF16, 2, false},
    {PJRT_Buffer_Type_C64, "c64", DC_F32, 8, true},
    {PJRT_Buffer_Type_C128, "c128", DC_F64, 16, true},
    {PJRT_Buffer_Type_F8E5M2, "f8e5m2", DC_F8E5M2, 1, false},
    {PJRT_Buffer_Type_F8E4M3FN, "f8e4m3fn", DC_F8E4M3FN, 1, false},
};
enum { TYPES = sizeof type_rows / sizeof type_rows[0] };

static const type_row *row_of(PJRT_Buffer_Type t)
{
    for (int i = 0; i < TYPES; i++)
        if (type_rows[i].type == t)
            return &type_rows[i];
    return NULL;
}

const char *dc_pjrt_type_name(PJRT_Buffer_Type t)
{
    const type_row *r = row_of(t);
    return r != NULL ? r->name : NULL;
}

PJRT_Buffer_Type dc_pjrt_type_of(const char *name)
{
    for (int i = 0; i < TYPES; i++)
        if (strcmp(type_rows[i].name, name) == 0)
            return type_rows[i].type;
    return PJRT_Buffer_Type_INVALID;
}

bool dc_pjrt_shape_measure(dc_pjrt_shape *s)
{
    const type_row *r = row_of(s->type);
    if (r == NULL)
        return false;
    bool empty = false;
    for (int i = 0; i < s->rank; i++)
        empty = empty || s->dim[i] == 0;
    s->bytes = empty ? 0 : r->size;
    for (int i = 0; i < s->rank && !empty; i++) {
        if (s->dim[i] < 0 || s->bytes > ((size_t)1 << 62) / (size_t)s->dim[i])
            return false;
        s->bytes *= (size_t)s->dim[i];
    }
    return true;
}

bool dc_pjrt_shape_array(const dc_pjrt_shape *s, dc_array *out)
{
    const type_row *r = row_of(s->type);
    if (r == NULL || s->rank + (r->complex ? 1 : 0) > DC_PJRT_RANK)
        return false;
    *out = (dc_array){.dtype = r->part, .rank = s->rank, .bytes = s->bytes};
    for (int i = 0; i < s->rank; i++)
        out->dim[i] = s->dim[i];
    if (r->complex)
        out->dim[out->rank++] = 2;
    return true;
}

/* ---- values ---------------------------------------------------------------------------------- */

dc_pjrt_value *dc_pjrt_value_new(PJRT_Client *c, size_t bytes, PJRT_Event *ready)
{
    dc_pjrt_value *v = ready != NULL ? calloc(1, sizeof *v) : NULL;
    if (v == NULL)
        return NULL;
    atomic_init(&v->users, 1);
    v->client = dc_pjrt_client_retain(c);
    v->ready = dc_pjrt_event_retain(ready);
    v->ref = LUA_NOREF;
    v->bytes = bytes;
    return v;
}

dc_pjrt_value *dc_pjrt_value_retain(dc_pjrt_value *v)
{
    atomic_fetch_add(&v->users, 1);
    return v;
}

void dc_pjrt_value_release(dc_pjrt_value *v)
{
    if (v == NULL || atomic_fetch_sub(&v->users, 1) != 1)
        return;
    PJRT_Client *c = v->client;
    dc_pjrt_event_release(v->ready);
    v->ready = NULL;
    dc_pjrt_client_drop(c, v);
    if (dc_pjrt_client_try(c))
        dc_pjrt_client_leave(c);
    dc_pjrt_client_release(c);
}

/* ---- buffers --------------------------------------------------------------------------------- */

PJRT_Buffer *dc_pjrt_buffer_new(const dc_pjrt_shape *shape, dc_pjrt_value *v)
{
    PJRT_Buffer *b = v != NULL ? calloc(1, sizeof *b) : NULL;
    if (b == NULL) {
        dc_pjrt_value_release(v);
        return NULL;
    }
    b->shape = *shape;
    b->value = v;
    b->client = v->client;
    atomic_init(&b->users, 1);
    return b;
}

/* Copies elements that lie at strides, of which the last axes may be side by side. */
static void copy_strided(char *to, const char *from, const dc_pjrt_shape *s, const int64_t *stride,
                         int axis, size_t size)
{
    if (axis == s->rank) {
        memcpy(to, from, size);
        return;
    }
    size_t inner = size;
    bool dense = true;
    for (int i = s->rank - 1; i >= axis; i--) {
        dense = dense && (stride[i] == (int64_t)inner || s->dim[i] == 1);
        inner *= (size_t)s->dim[i];
    }
    if (dense) {
        memcpy(to, from, inner);
        return;
    }
    inner /= (size_t)s->dim[axis];
    for (int64_t i = 0; i < s->dim[axis]; i++)
        copy_strided(to + (size_t)i * inner, from + i * stride[axis], s, stride, axis + 1, size);
}

static PJRT_Error *read_shape(const PJRT_Client_BufferFromHostBuffer_Args *a, dc_pjrt_shape *s)
{
    dc_array as;
    if (dc_pjrt_type_name(a->type) == NULL)
        return dc_pjrt_error(PJRT_Error_Code_UNIMPLEMENTED,
                             "deepc: arrays with elements of PJRT's type %d are not supported",
                             (int)a->type);
    *s = (dc_pjrt_shape){.type = a->type,
                         .rank = a->num_dims > DC_PJRT_RANK ? -1 : (int)a->num_dims};
    for (int i = 0; i < s->rank; i++)
        s->dim[i] = a->dims[i];
    if (s->rank < 0 || !dc_pjrt_shape_array(s, &as))
        return dc_pjrt_error(
            PJRT_Error_Code_UNIMPLEMENTED,
            "deepc: an array of %zu axes is not supported, %d are the most (complex ones %d)",
            a->num_dims, DC_PJRT_RANK, DC_PJRT_RANK - 1);
    if (!dc_pjrt_shape_measure(s))
        return dc_pjrt_error(PJRT_Error_Code_INVALID_ARGUMENT,
                             "deepc: an array of no size that there can be");
    if (a->num_byte_strides != 0 && a->num_byte_strides != a->num_dims)
        return dc_pjrt_error(PJRT_Error_Code_INVALID_ARGUMENT, "deepc: %zu strides of %zu axes",
                             a->num_byte_strides, a->num_dims);
    return NULL;
}

PJRT_Error *dc_pjrt_Client_BufferFromHostBuffer(PJRT_Client_BufferFromHostBuffer_Args *a)
{
    dc_pjrt_shape s;
    PJRT_Error *e = read_shape(a, &s);
    if (e != NULL)
        return e;
    PJRT_Event *ready = dc_pjrt_event_done();
    dc_pjrt_value *v = dc_pjrt_value_new(a->client, s.bytes, ready);
    dc_pjrt_event_release(ready);
    if (v != NULL)
        v->at = v->block = aligned_alloc(64, (s.bytes + 64) / 64 * 64);
    if (v == NULL || v->block == NULL) {
        dc_pjrt_value_release(v);
        return dc_pjrt_no_memory();
    }
    if (s.bytes > 0 && a->num_byte_strides > 0)
        copy_strided(v->block, a->data, &s, a->byte_strides, 0, row_of(s.type)->size);
    else if (s.bytes > 0)
        memcpy(v->block, a->data, s.bytes);
    a->buffer = dc_pjrt_buffer_new(&s, v);
    if (a->buffer == NULL)
        return dc_pjrt_no_memory();
    a->done_with_host_buffer = dc_pjrt_event_done();
    return NULL;
}

dc_pjrt_value *dc_pjrt_buffer_value(const PJRT_Buffer *b)
{
    pthread_mutex_lock(&b->client->queue_lock);
    dc_pjrt_value *v = b->value != NULL ? dc_pjrt_value_retain(b->value) : NULL;
    pthread_mutex_unlock(&b->client->queue_lock);
    return v;
}

/* The caller releases the value; NULL with an error. */
static PJRT_Error *value_of(const PJRT_Buffer *b, dc_pjrt_value **out)
{
    *out = dc_pjrt_buffer_value(b);
    return *out != NULL ? NULL
                        : dc_pjrt_error(PJRT_Error_Code_INVALID_ARGUMENT,
                                        "deepc: the array was deleted or donated");
}

/* ---- to the host ----------------------------------------------------------------------------- */

typedef struct copying {
    dc_pjrt_value *value;
    void *dst;
    size_t from, bytes;
    PJRT_Event *done;
} copying;

static int copy_from_device(lua_State *L)
{
    const copying *a = lua_touserdata(L, 1);
    size_t n;
    lua_rawgeti(L, LUA_REGISTRYINDEX, a->value->ref);
    lua_getfield(L, -1, "tobytes");
    lua_insert(L, -2);
    lua_call(L, 1, 1);
    const char *bytes = lua_tolstring(L, -1, &n);
    if (a->from + a->bytes <= n)
        memcpy(a->dst, bytes + a->from, a->bytes);
    return 0;
}

static void copy_ready(PJRT_Error *error, void *arg)
{
    copying *a = arg;
    if (error == NULL && a->value->at != NULL) {
        memcpy(a->dst, (const char *)a->value->at + a->from, a->bytes);
    } else if (error == NULL && a->bytes > 0) {
        dc_pjrt_client_enter(a->value->client);
        error = dc_pjrt_protected(a->value->client, copy_from_device, a);
        dc_pjrt_client_leave(a->value->client);
    }
    dc_pjrt_event_set(a->done, error);
    dc_pjrt_event_release(a->done);
    dc_pjrt_value_release(a->value);
    free(a);
}

static PJRT_Error *copy_to_host(dc_pjrt_value *v, void *dst, size_t from, size_t bytes,
                                PJRT_Event **event)
{
    copying *a = malloc(sizeof *a);
    PJRT_Event *done = a != NULL ? dc_pjrt_event_new() : NULL;
    if (done == NULL) {
        free(a);
        return dc_pjrt_no_memory();
    }
    *a = (copying){dc_pjrt_value_retain(v), dst, from, bytes, dc_pjrt_event_retain(done)};
    *event = done;
    if (dc_pjrt_event_when(v->ready, copy_ready, a))
        return NULL;
    dc_pjrt_event_release(done);
    dc_pjrt_event_release(done);
    dc_pjrt_value_release(v);
    free(a);
    return dc_pjrt_no_memory();
}

/* Elements side by side, the last axis first, are what there is. */
static bool is_dense(const PJRT_Layout *l, const dc_pjrt_shape *s)
{
    if (l == NULL)
        return true;
    int64_t stride = s->rank > 0 || s->bytes > 0 ? (int64_t)row_of(s->type)->size : 0;
    if (l->type == PJRT_TILED) {
        bool dense = l->tiled.num_tiles == 0 && l->tiled.minor_to_major_size == (size_t)s->rank;
        for (int i = 0; dense && i < s->rank; i++)
            dense = l->tiled.minor_to_major[i] == s->rank - 1 - i;
        return dense;
    }
    bool dense = l->strides.num_byte_strides == (size_t)s->rank;
    for (int i = s->rank - 1; dense && i >= 0; i--) {
        dense = s->dim[i] <= 1 || l->strides.byte_strides[i] == stride;
        stride *= s->dim[i];
    }
    return dense;
}

PJRT_Error *dc_pjrt_Buffer_ToHostBuffer(PJRT_Buffer_ToHostBuffer_Args *a)
{
    dc_pjrt_value *v;
    PJRT_Error *e = value_of(a->src, &v);
    if (e != NULL)
        return e;
    if (!is_dense(a->host_layout, &a->src->shape))
        e = dc_pjrt_error(PJRT_Error_Code_UNIMPLEMENTED,
                          "deepc: a copy to the host with this layout is not supported");
    else if (a->dst == NULL)
        a->dst_size = v->bytes;
    else if (a->dst_size < v->bytes)
        e = dc_pjrt_error(PJRT_Error_Code_INVALID_ARGUMENT, "deepc: %zu bytes are too few for %zu",
                          a->dst_size, v->bytes);
    else
        e = copy_to_host(v, a->dst, 0, v->bytes, &a->event);
    dc_pjrt_value_release(v);
    return e;
}

/* ---- what is told ---------------------------------------------------------------------------- */

PJRT_Error *dc_pjrt_Buffer_ElementType(PJRT_Buffer_ElementType_Args *a)
{
    a->type = a->buffer->shape.type;
    return NULL;
}

PJRT_Error *dc_pjrt_Buffer_Dimensions(PJRT_Buffer_Dimensions_Args *a)
{
    a->dims = a->buffer->shape.dim;
    a->num_dims = (size_t)a->buffer->shape.rank;
    return NULL;
}

PJRT_Error *dc_pjrt_Buffer_UnpaddedDimensions(PJRT_Buffer_UnpaddedDimensions_Args *a)
{
    a->unpadded_dims = a->buffer->shape.dim;
    a->num_dims = (size_t)a->buffer->shape.rank;
    return NULL;
}

PJRT_Error *dc_pjrt_Buffer_DynamicDimensionIndices(PJRT_Buffer_DynamicDimensionIndices_Args *a)
{
    a->dynamic_dim_indices = NULL;
    a->num_dynamic_dims = 0;
    return NULL;
}

PJRT_Error *dc_pjrt_Buffer_OnDeviceSizeInBytes(PJRT_Buffer_OnDeviceSizeInBytes_Args *a)
{
    a->on_device_size_in_bytes = a->buffer->shape.bytes;
    return NULL;
}

PJRT_Error *dc_pjrt_Buffer_Device(PJRT_Buffer_Device_Args *a)
{
    a->device = &a->buffer->client->device;
    return NULL;
}

PJRT_Error *dc_pjrt_Buffer_Memory(PJRT_Buffer_Memory_Args *a)
{
    a->memory = &a->buffer->client->memory;
    return NULL;
}

PJRT_Error *dc_pjrt_Buffer_IsOnCpu(PJRT_Buffer_IsOnCpu_Args *a)
{
    a->is_on_cpu = a->buffer->client->reads_memory;
    return NULL;
}

PJRT_Error *dc_pjrt_Buffer_IsDeleted(PJRT_Buffer_IsDeleted_Args *a)
{
    dc_pjrt_value *v = dc_pjrt_buffer_value(a->buffer);
    a->is_deleted = v == NULL;
    dc_pjrt_value_release(v);
    return NULL;
}

PJRT_Error *dc_pjrt_Buffer_ReadyEvent(PJRT_Buffer_ReadyEvent_Args *a)
{
    dc_pjrt_value *v;
    PJRT_Error *e = value_of(a->buffer, &v);
    if (e == NULL)
        a->event = dc_pjrt_event_retain(v->ready);
    dc_pjrt_value_release(v);
    return e;
}

/* ---- the end of a buffer --------------------------------------------------------------------- */

PJRT_Error *dc_pjrt_Buffer_Delete(PJRT_Buffer_Delete_Args *a)
{
    PJRT_Client *c = a->buffer->client;
    pthread_mutex_lock(&c->queue_lock);
    dc_pjrt_value *v = a->buffer->value;
    a->buffer->value = NULL;
    pthread_mutex_unlock(&c->queue_lock);
    dc_pjrt_value_release(v);
    return NULL;
}

static void drop_buffer(PJRT_Buffer *b)
{
    if (b == NULL || atomic_fetch_sub(&b->users, 1) != 1)
        return;
    dc_pjrt_value_release(b->value);
    free(b);
}

PJRT_Error *dc_pjrt_Buffer_Destroy(PJRT_Buffer_Destroy_Args *a)
{
    drop_buffer(a->buffer);
    return NULL;
}

PJRT_Error *
dc_pjrt_Buffer_IncreaseExternalReferenceCount(PJRT_Buffer_IncreaseExternalReferenceCount_Args *a)
{
    atomic_fetch_add(&a->buffer->users, 1);
    return NULL;
}

PJRT_Error *
dc_pjrt_Buffer_DecreaseExternalReferenceCount(PJRT_Buffer_DecreaseExternalReferenceCount_Args *a)
{
    drop_buffer(a->buffer);
    return NULL;
}

/* ---- the elements where they are ------------------------------------------------------------- */

static PJRT_Error *find_elements(const PJRT_Buffer *b, const void **at)
{
    dc_pjrt_value *v;
    PJRT_Error *e = value_of(b, &v);
    if (e == NULL)
        e = dc_pjrt_event_wait(v->ready);
    if (e == NULL && v->at == NULL)
        e = dc_pjrt_error(PJRT_Error_Code_UNIMPLEMENTED,
                          "deepc: a pointer to memory of this device is not supported");
    if (e == NULL)
        *at = v->at;
    dc_pjrt_value_release(v);
    return e;
}

PJRT_Error *dc_pjrt_Buffer_UnsafePointer(PJRT_Buffer_UnsafePointer_Args *a)
{
    const void *at = NULL;
    PJRT_Error *e = find_elements(a->buffer, &at);
    a->buffer_pointer = (uintptr_t)at;
    return e;
}

PJRT_Error *
dc_pjrt_Buffer_OpaqueDeviceMemoryDataPointer(PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args *a)
{
    const void *at = NULL;
    PJRT_Error *e = find_elements(a->buffer, &at);
    a->device_memory_ptr = (void *)(uintptr_t)at;
    return e;
}

/* Elements do not change, so a copy on the same device is the same value. */
static PJRT_Error *share(const PJRT_Buffer *b, PJRT_Client *to, PJRT_Buffer **out)
{
    dc_pjrt_value *v;
    PJRT_Error *e = value_of(b, &v);
    if (e != NULL)
        return e;
    if (to != b->client) {
        dc_pjrt_value_release(v);
        return dc_pjrt_error(PJRT_Error_Code_UNIMPLEMENTED,
                             "deepc: a copy to another device is not supported");
    }
    *out = dc_pjrt_buffer_new(&b->shape, v);
    return *out != NULL ? NULL : dc_pjrt_no_memory();
}

PJRT_Error *dc_pjrt_Buffer_CopyToDevice(PJRT_Buffer_CopyToDevice_Args *a)
{
    return share(a->buffer, a->dst_device->client, &a->dst_buffer);
}

PJRT_Error *dc_pjrt_Buffer_CopyToMemory(PJRT_Buffer_CopyToMemory_Args *a)
{
    return share(a->buffer, a->dst_memory->client, &a->dst_buffer);
}
