/* The one symbol of libdeepc_pjrt.so: the table of functions, and what is said of the plugin. */
#include "extras/pjrt/plugin.h"

#define FN(name)
#define GAP(name)                                                                        \
    static PJRT_Error *no_##name(void *a)                                                \
    {                                                                                    \
        (void)a;                                                                         \
        return dc_pjrt_error(PJRT_Error_Code_UNIMPLEMENTED, "deepc has no PJRT_" #name); \
    }
#include "extras/pjrt/pjrt.def"

PJRT_Error *dc_pjrt_Plugin_Initialize(PJRT_Plugin_Initialize_Args *a)
{
    (void)a;
    return NULL;
}

/*
 * The version of StableHLO that callers are to write. The readers know later ones; with this one
 * nothing of what JAX makes is spelled out that has an operation of its own.
 */
PJRT_Error *dc_pjrt_Plugin_Attributes(PJRT_Plugin_Attributes_Args *a)
{
    static const int64_t version[] = {1, 13, 0}, least[] = {0, 9, 0};
    static const PJRT_NamedValue attributes[] = {
        {.struct_size = sizeof attributes[0],
         .name = "stablehlo_current_version",
         .name_size = 25,
         .type = PJRT_NamedValue_kInt64List,
         .int64_array_value = version,
         .value_size = 3},
        {.struct_size = sizeof attributes[0],
         .name = "stablehlo_minimum_version",
         .name_size = 25,
         .type = PJRT_NamedValue_kInt64List,
         .int64_array_value = least,
         .value_size = 3},
    };
    a->attributes = attributes;
    a->num_attributes = sizeof attributes / sizeof attributes[0];
    return NULL;
}

const PJRT_Api *GetPjrtApi(void);

__attribute__((visibility("default"))) const PJRT_Api *GetPjrtApi(void)
{
    static const PJRT_Api api = {
        .struct_size = sizeof api,
        .version = {.struct_size = sizeof api.version,
                    .major_version = PJRT_API_MAJOR,
                    .minor_version = PJRT_API_MINOR},
#define FN(name)  .name = dc_pjrt_##name,
#define GAP(name) .name = no_##name,
#include "extras/pjrt/pjrt.def"
    };
    return &api;
}
