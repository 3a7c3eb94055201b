/*
 * The PJRT C API, version 0.90, as far as extras/pjrt has it: how a program such as JAX and a
 * runtime meet in one process. The names are the interface's own; it is described in xla/pjrt/c of
 * the repository openxla/xla. A caller of another minor version has the same layout with more or
 * fewer members at the end, and says in struct_size how many.
 *
 * Each function takes a record, writes the members behind "out" and returns NULL, or an error that
 * the caller frees. The table is in the order of pjrt.def.
 */
#ifndef DC_EXTRAS_PJRT_PJRT_H
#define DC_EXTRAS_PJRT_PJRT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PJRT_API_MAJOR = 0, PJRT_API_MINOR = 90 };

typedef struct PJRT_Error PJRT_Error;
typedef struct PJRT_Event PJRT_Event;
typedef struct PJRT_Client PJRT_Client;
typedef struct PJRT_Device PJRT_Device;
typedef struct PJRT_Memory PJRT_Memory;
typedef struct PJRT_DeviceDescription PJRT_DeviceDescription;
typedef struct PJRT_Executable PJRT_Executable;
typedef struct PJRT_LoadedExecutable PJRT_LoadedExecutable;
typedef struct PJRT_Buffer PJRT_Buffer;

typedef enum PJRT_Error_Code {
    PJRT_Error_Code_INVALID_ARGUMENT = 3,
    PJRT_Error_Code_NOT_FOUND = 5,
    PJRT_Error_Code_RESOURCE_EXHAUSTED = 8,
    PJRT_Error_Code_FAILED_PRECONDITION = 9,
    PJRT_Error_Code_UNIMPLEMENTED = 12,
    PJRT_Error_Code_INTERNAL = 13
} PJRT_Error_Code;

typedef enum PJRT_Buffer_Type {
    PJRT_Buffer_Type_INVALID,
    PJRT_Buffer_Type_PRED,
    PJRT_Buffer_Type_S8,
    PJRT_Buffer_Type_S16,
    PJRT_Buffer_Type_S32,
    PJRT_Buffer_Type_S64,
    PJRT_Buffer_Type_U8,
    PJRT_Buffer_Type_U16,
    PJRT_Buffer_Type_U32,
    PJRT_Buffer_Type_U64,
    PJRT_Buffer_Type_F16,
    PJRT_Buffer_Type_F32,
    PJRT_Buffer_Type_F64,
    PJRT_Buffer_Type_BF16,
    PJRT_Buffer_Type_C64,
    PJRT_Buffer_Type_C128,
    PJRT_Buffer_Type_F8E5M2,
    PJRT_Buffer_Type_F8E4M3FN
} PJRT_Buffer_Type;

typedef enum PJRT_NamedValue_Type {
    PJRT_NamedValue_kString,
    PJRT_NamedValue_kInt64,
    PJRT_NamedValue_kInt64List,
    PJRT_NamedValue_kFloat,
    PJRT_NamedValue_kBool
} PJRT_NamedValue_Type;

#define PJRT_HEAD                                                                              \
    size_t struct_size;                                                                        \
    void *extension_start

typedef struct PJRT_NamedValue {
    PJRT_HEAD;
    const char *name;
    size_t name_size;
    PJRT_NamedValue_Type type;
    union {
        const char *string_value;
        int64_t int64_value;
        const int64_t *int64_array_value;
        float float_value;
        bool bool_value;
    };
    size_t value_size;
} PJRT_NamedValue;

/* A record of arguments: what stands behind the head. */
#define PJRT_ARGS(name, ...)                                                                   \
    typedef struct PJRT_##name##_Args {                                                        \
        PJRT_HEAD;                                                                             \
        __VA_ARGS__                                                                            \
    } PJRT_##name##_Args;

/* ---- errors and events ----------------------------------------------------------------------- */

PJRT_ARGS(Error_Destroy, PJRT_Error *error;)
PJRT_ARGS(Error_Message, const PJRT_Error *error; /* out */ const char *message;
          size_t message_size;)
PJRT_ARGS(Error_GetCode, const PJRT_Error *error; /* out */ PJRT_Error_Code code;)
typedef struct PJRT_Plugin_Initialize_Args {
    PJRT_HEAD;
} PJRT_Plugin_Initialize_Args;
PJRT_ARGS(Plugin_Attributes, /* out */ const PJRT_NamedValue *attributes; size_t num_attributes;)

PJRT_ARGS(Event_Destroy, PJRT_Event *event;)
PJRT_ARGS(Event_IsReady, PJRT_Event *event; /* out */ bool is_ready;)
PJRT_ARGS(Event_Error, PJRT_Event *event;)
PJRT_ARGS(Event_Await, PJRT_Event *event;)
typedef void (*PJRT_Event_OnReadyCallback)(PJRT_Error *error, void *user_arg);
PJRT_ARGS(Event_OnReady, PJRT_Event *event; PJRT_Event_OnReadyCallback callback; void *user_arg;)

/* ---- clients, devices, memories -------------------------------------------------------------- */

PJRT_ARGS(Client_Create, const PJRT_NamedValue *create_options; size_t num_options;
          void *kv_get_callback, *kv_get_user_arg, *kv_put_callback, *kv_put_user_arg;
          /* out */ PJRT_Client *client;)
PJRT_ARGS(Client_Destroy, PJRT_Client *client;)
PJRT_ARGS(Client_PlatformName, PJRT_Client *client; /* out */ const char *platform_name;
          size_t platform_name_size;)
PJRT_ARGS(Client_ProcessIndex, PJRT_Client *client; /* out */ int process_index;)
PJRT_ARGS(Client_PlatformVersion, PJRT_Client *client; /* out */ const char *platform_version;
          size_t platform_version_size;)
PJRT_ARGS(Client_Devices, PJRT_Client *client; /* out */ PJRT_Device *const *devices;
          size_t num_devices;)
PJRT_ARGS(Client_AddressableDevices, PJRT_Client *client;
          /* out */ PJRT_Device *const *addressable_devices; size_t num_addressable_devices;)
PJRT_ARGS(Client_LookupDevice, PJRT_Client *client; int id; /* out */ PJRT_Device *device;)
PJRT_ARGS(Client_LookupAddressableDevice, PJRT_Client *client; int local_hardware_id;
          /* out */ PJRT_Device *addressable_device;)
PJRT_ARGS(Client_AddressableMemories, PJRT_Client *client;
          /* out */ PJRT_Memory *const *addressable_memories; size_t num_addressable_memories;)
PJRT_ARGS(Client_DefaultDeviceAssignment, PJRT_Client *client; int num_replicas;
          int num_partitions; size_t default_assignment_size; int *default_assignment;)

PJRT_ARGS(DeviceDescription_Id, PJRT_DeviceDescription *device_description; /* out */ int id;)
PJRT_ARGS(DeviceDescription_ProcessIndex, PJRT_DeviceDescription *device_description;
          /* out */ int process_index;)
PJRT_ARGS(DeviceDescription_Attributes, PJRT_DeviceDescription *device_description;
          /* out */ size_t num_attributes; const PJRT_NamedValue *attributes;)
PJRT_ARGS(DeviceDescription_Kind, PJRT_DeviceDescription *device_description;
          /* out */ const char *device_kind; size_t device_kind_size;)
PJRT_ARGS(DeviceDescription_DebugString, PJRT_DeviceDescription *device_description;
          /* out */ const char *debug_string; size_t debug_string_size;)
PJRT_ARGS(DeviceDescription_ToString, PJRT_DeviceDescription *device_description;
          /* out */ const char *to_string; size_t to_string_size;)

PJRT_ARGS(Device_GetDescription, PJRT_Device *device;
          /* out */ PJRT_DeviceDescription *device_description;)
PJRT_ARGS(Device_IsAddressable, PJRT_Device *device; /* out */ bool is_addressable;)
PJRT_ARGS(Device_LocalHardwareId, PJRT_Device *device; /* out */ int local_hardware_id;)
PJRT_ARGS(Device_AddressableMemories, PJRT_Device *device; /* out */ PJRT_Memory *const *memories;
          size_t num_memories;)
PJRT_ARGS(Device_DefaultMemory, PJRT_Device *device; /* out */ PJRT_Memory *memory;)
/* Most members have a flag behind them that says whether they are known. */
PJRT_ARGS(Device_MemoryStats, PJRT_Device *device; /* out */ int64_t bytes_in_use;
          int64_t peak_bytes_in_use; bool peak_bytes_in_use_is_set; struct {
              int64_t value;
              bool is_set;
          } unknown[9];)

PJRT_ARGS(Memory_Id, PJRT_Memory *memory; /* out */ int id;)
PJRT_ARGS(Memory_Kind, PJRT_Memory *memory; /* out */ const char *kind; size_t kind_size;)
PJRT_ARGS(Memory_Kind_Id, PJRT_Memory *memory; /* out */ int kind_id;)
PJRT_ARGS(Memory_DebugString, PJRT_Memory *memory; /* out */ const char *debug_string;
          size_t debug_string_size;)
PJRT_ARGS(Memory_ToString, PJRT_Memory *memory; /* out */ const char *to_string;
          size_t to_string_size;)
PJRT_ARGS(Memory_AddressableByDevices, PJRT_Memory *memory; /* out */ PJRT_Device *const *devices;
          size_t num_devices;)

/* ---- executables ----------------------------------------------------------------------------- */

typedef struct PJRT_Program {
    PJRT_HEAD;
    char *code;
    size_t code_size;
    const char *format;
    size_t format_size;
} PJRT_Program;

typedef struct PJRT_DeviceAssignmentSerialized PJRT_DeviceAssignmentSerialized;
typedef struct PJRT_SerializedExecutable PJRT_SerializedExecutable;

PJRT_ARGS(Client_Compile, PJRT_Client *client; const PJRT_Program *program;
          const char *compile_options; size_t compile_options_size;
          /* out */ PJRT_LoadedExecutable *executable;)
PJRT_ARGS(Executable_DeserializeAndLoad, PJRT_Client *client; const char *serialized_executable;
          size_t serialized_executable_size; /* out */ PJRT_LoadedExecutable *loaded_executable;)

PJRT_ARGS(Executable_Destroy, PJRT_Executable *executable;)
PJRT_ARGS(Executable_Name, PJRT_Executable *executable; /* out */ const char *executable_name;
          size_t executable_name_size;)
PJRT_ARGS(Executable_NumReplicas, PJRT_Executable *executable; /* out */ size_t num_replicas;)
PJRT_ARGS(Executable_NumPartitions, PJRT_Executable *executable; /* out */ size_t num_partitions;)
PJRT_ARGS(Executable_NumOutputs, PJRT_Executable *executable; /* out */ size_t num_outputs;)
PJRT_ARGS(Executable_SizeOfGeneratedCodeInBytes, PJRT_Executable *executable;
          /* out */ int64_t size_in_bytes;)
PJRT_ARGS(Executable_Fingerprint, PJRT_Executable *executable;
          /* out */ const char *executable_fingerprint; size_t executable_fingerprint_size;)
/* Behind the five members come those of the host, which has none of its own. */
PJRT_ARGS(Executable_GetCompiledMemoryStats, PJRT_Executable *executable;
          /* out */ int64_t generated_code_size_in_bytes; int64_t argument_size_in_bytes;
          int64_t output_size_in_bytes; int64_t alias_size_in_bytes; int64_t temp_size_in_bytes;
          int64_t others[7];)
PJRT_ARGS(Executable_OutputElementTypes, PJRT_Executable *executable;
          /* out */ PJRT_Buffer_Type *output_types; size_t num_output_types;)
/* dims has the sizes of all results one behind the other, dim_sizes how many are of each. */
PJRT_ARGS(Executable_OutputDimensions, PJRT_Executable *executable; /* out */ size_t num_outputs;
          const int64_t *dims; const size_t *dim_sizes;)
PJRT_ARGS(Executable_OutputMemoryKinds, PJRT_Executable *executable; /* out */ size_t num_outputs;
          const char *const *memory_kinds; const size_t *memory_kind_sizes;)
/* Called twice: without program->code for the size, then with room for it. */
PJRT_ARGS(Executable_OptimizedProgram, PJRT_Executable *executable; PJRT_Program *program;)
PJRT_ARGS(Executable_Serialize, const PJRT_Executable *executable;
          /* out */ const char *serialized_bytes; size_t serialized_bytes_size;
          PJRT_SerializedExecutable *serialized_executable;
          void (*serialized_executable_deleter)(PJRT_SerializedExecutable *s);)

PJRT_ARGS(LoadedExecutable_Destroy, PJRT_LoadedExecutable *executable;)
PJRT_ARGS(LoadedExecutable_GetExecutable, PJRT_LoadedExecutable *loaded_executable;
          /* out */ PJRT_Executable *executable;)
PJRT_ARGS(LoadedExecutable_AddressableDevices, PJRT_LoadedExecutable *executable;
          /* out */ PJRT_Device *const *addressable_devices; size_t num_addressable_devices;)
PJRT_ARGS(LoadedExecutable_Delete, PJRT_LoadedExecutable *executable;)
PJRT_ARGS(LoadedExecutable_IsDeleted, PJRT_LoadedExecutable *executable; /* out */ bool is_deleted;)
PJRT_ARGS(LoadedExecutable_Fingerprint, PJRT_LoadedExecutable *executable;
          /* out */ const char *executable_fingerprint; size_t executable_fingerprint_size;)
PJRT_ARGS(LoadedExecutable_GetDeviceAssignment, PJRT_LoadedExecutable *executable;
          /* out */ const char *serialized_bytes; size_t serialized_bytes_size;
          PJRT_DeviceAssignmentSerialized *serialized_device_assignment;
          void (*serialized_device_assignment_deleter)(PJRT_DeviceAssignmentSerialized *a);)
typedef struct PJRT_ExecuteOptions {
    PJRT_HEAD;
    void *send_callbacks, *recv_callbacks;
    size_t num_send_ops, num_recv_ops;
    int launch_id;
    const int64_t *non_donatable_input_indices;
    size_t num_non_donatable_input_indices;
} PJRT_ExecuteOptions;
/* Lists by device and number; the caller has room for the results, which are its own afterwards. */
PJRT_ARGS(LoadedExecutable_Execute, PJRT_LoadedExecutable *executable;
          const PJRT_ExecuteOptions *options;
          PJRT_Buffer *const *const *argument_lists; size_t num_devices; size_t num_args;
          PJRT_Buffer **const *output_lists; PJRT_Event **device_complete_events;
          PJRT_Device *execute_device;)

/* ---- buffers --------------------------------------------------------------------------------- */

/* Strides are in bytes, may be 0 or negative; none: elements side by side, the last axis first. */
PJRT_ARGS(Client_BufferFromHostBuffer, PJRT_Client *client; const void *data; PJRT_Buffer_Type type;
          const int64_t *dims; size_t num_dims; const int64_t *byte_strides;
          size_t num_byte_strides; int host_buffer_semantics; PJRT_Device *device;
          PJRT_Memory *memory; void *device_layout; /* out */ PJRT_Event *done_with_host_buffer;
          PJRT_Buffer *buffer;)
PJRT_ARGS(Buffer_Destroy, PJRT_Buffer *buffer;)
PJRT_ARGS(Buffer_ElementType, PJRT_Buffer *buffer; /* out */ PJRT_Buffer_Type type;)
PJRT_ARGS(Buffer_Dimensions, PJRT_Buffer *buffer; /* out */ const int64_t *dims; size_t num_dims;)
PJRT_ARGS(Buffer_UnpaddedDimensions, PJRT_Buffer *buffer; /* out */ const int64_t *unpadded_dims;
          size_t num_dims;)
PJRT_ARGS(Buffer_DynamicDimensionIndices, PJRT_Buffer *buffer;
          /* out */ const size_t *dynamic_dim_indices; size_t num_dynamic_dims;)
PJRT_ARGS(Buffer_OnDeviceSizeInBytes, PJRT_Buffer *buffer;
          /* out */ size_t on_device_size_in_bytes;)
PJRT_ARGS(Buffer_Device, PJRT_Buffer *buffer; /* out */ PJRT_Device *device;)
PJRT_ARGS(Buffer_Memory, PJRT_Buffer *buffer; /* out */ PJRT_Memory *memory;)
PJRT_ARGS(Buffer_Delete, PJRT_Buffer *buffer;)
PJRT_ARGS(Buffer_IsDeleted, PJRT_Buffer *buffer; /* out */ bool is_deleted;)
PJRT_ARGS(Buffer_CopyToDevice, PJRT_Buffer *buffer; PJRT_Device *dst_device;
          /* out */ PJRT_Buffer *dst_buffer;)
PJRT_ARGS(Buffer_CopyToMemory, PJRT_Buffer *buffer; PJRT_Memory *dst_memory;
          /* out */ PJRT_Buffer *dst_buffer;)
/* Without dst the size is told; strides of host_layout are in bytes. */
typedef struct PJRT_Layout {
    PJRT_HEAD;
    union {
        struct {
            PJRT_HEAD;
            const int64_t *minor_to_major;
            size_t minor_to_major_size;
            const int64_t *tile_dims;
            const size_t *tile_dim_sizes;
            size_t num_tiles;
        } tiled;
        struct {
            PJRT_HEAD;
            const int64_t *byte_strides;
            size_t num_byte_strides;
        } strides;
    };
    enum { PJRT_TILED, PJRT_STRIDES } type;
} PJRT_Layout;
PJRT_ARGS(Buffer_ToHostBuffer, PJRT_Buffer *src; const PJRT_Layout *host_layout; void *dst;
          size_t dst_size; /* out */ PJRT_Event *event;)
PJRT_ARGS(Buffer_IsOnCpu, PJRT_Buffer *buffer; /* out */ bool is_on_cpu;)
PJRT_ARGS(Buffer_ReadyEvent, PJRT_Buffer *buffer; /* out */ PJRT_Event *event;)
PJRT_ARGS(Buffer_UnsafePointer, PJRT_Buffer *buffer; /* out */ uintptr_t buffer_pointer;)
PJRT_ARGS(Buffer_IncreaseExternalReferenceCount, PJRT_Buffer *buffer;)
PJRT_ARGS(Buffer_DecreaseExternalReferenceCount, PJRT_Buffer *buffer;)
PJRT_ARGS(Buffer_OpaqueDeviceMemoryDataPointer, PJRT_Buffer *buffer;
          /* out */ void *device_memory_ptr;)

/* ---- the table ------------------------------------------------------------------------------- */

typedef struct PJRT_Api {
    PJRT_HEAD;
    struct {
        PJRT_HEAD;
        int major_version, minor_version;
    } version;
#define FN(name) PJRT_Error *(*name)(PJRT_##name##_Args * a);
#define GAP(name) PJRT_Error *(*name)(void *a);
#include "extras/pjrt/pjrt.def"
} PJRT_Api;

#endif
