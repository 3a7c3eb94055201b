/*
 * What pickles of torch.save may refer to: what torch.load knows by default (weights_only: PyTorch's
 * torch/_weights_only_unpickler.py), and types of elements.
 */
#include "formats/torch_impl.h"

#include <string.h>

static const dc_torch_dtype dtypes[] = {
    {"float32", "FloatStorage", DC_F32, NULL, 4, false},
    {"float64", "DoubleStorage", DC_F64, NULL, 8, false},
    {"float16", "HalfStorage", DC_F16, NULL, 2, false},
    {"bfloat16", "BFloat16Storage", DC_BF16, NULL, 2, false},
    {"int64", "LongStorage", DC_I64, NULL, 8, false},
    {"int32", "IntStorage", DC_I32, NULL, 4, false},
    {"int16", "ShortStorage", DC_I16, NULL, 2, false},
    {"int8", "CharStorage", DC_I8, NULL, 1, false},
    {"uint8", "ByteStorage", DC_U8, NULL, 1, false},
    {"bool", "BoolStorage", DC_BOOL, NULL, 1, false},
    {"complex64", "ComplexFloatStorage", DC_C64, NULL, 8, false},
    {"complex128", "ComplexDoubleStorage", DC_C128, NULL, 16, false},
    {"uint16", NULL, DC_U16, NULL, 2, false},
    {"uint32", NULL, DC_U32, NULL, 4, false},
    {"uint64", NULL, DC_U64, NULL, 8, false},
    {"float8_e4m3fn", NULL, DC_F8E4M3FN, NULL, 1, false},
    {"float8_e5m2", NULL, DC_F8E5M2, NULL, 1, false},
    {"float8_e4m3fnuz", NULL, DC_F32, "f8_e4m3fnuz", 1, false},
    {"float8_e5m2fnuz", NULL, DC_F32, "f8_e5m2fnuz", 1, false},
    {"float8_e8m0fnu", NULL, DC_F32, "f8_e8m0", 1, false},
    {"quint8", "QUInt8Storage", DC_U8, NULL, 1, true},
    {"qint8", "QInt8Storage", DC_I8, NULL, 1, true},
    {"qint32", "QInt32Storage", DC_I32, NULL, 4, true},
    {"quint4x2", "QUInt4x2Storage", DC_U8, NULL, 1, true},
    {"quint2x4", "QUInt2x4Storage", DC_U8, NULL, 1, true},
};

static const dc_torch_dtype untyped = {"uint8", NULL, DC_U8, NULL, 1, false};

/* Types of elements whose tensors are left out. */
static const char *const unread_dtypes[] = {
    "complex32", "bcomplex32", "float4_e2m1fn_x2",
    "bits8",     "bits16",     "bits1x8",
    "bits2x4",   "bits4x2",    "uint1",
    "uint2",     "uint3",      "uint4",
    "uint5",     "uint6",      "uint7",
    "int1",      "int2",       "int3",
    "int4",      "int5",       "int6",
    "int7",
};

/* Functions that make tensors which are left out, and why. */
static const dc_torch_unread unread_tensors[] = {
    {"torch._utils _rebuild_qtensor", "quantized", "it is quantized"},
    {"torch._utils _rebuild_sparse_tensor", "sparse", "it is sparse"},
    {"torch._utils _rebuild_meta_tensor_no_storage", "meta",
     "it has no elements, on device 'meta'"},
    {"torch._utils _rebuild_wrapper_subclass", "subclass", "it has no elements of its own"},
    {"torch._utils _rebuild_device_tensor_from_numpy", "numpy", "it is made of an array of NumPy"},
};

static const char *const others[] = {
    "collections OrderedDict",
    "collections Counter",
    "builtins bytearray",
    "builtins set",
    "builtins complex",
    "torch._utils _rebuild_tensor",
    "torch._utils _rebuild_tensor_v2",
    "torch._utils _rebuild_tensor_v3",
    "torch._utils _rebuild_parameter",
    "torch._utils _rebuild_parameter_with_state",
    "torch._utils _rebuild_device_tensor_from_cpu_tensor",
    "torch._tensor _rebuild_from_type_v2",
    "torch.nn.parameter Parameter",
    "torch.storage TypedStorage",
    "torch.serialization _get_layout",
    "torch Tensor",
    "torch Size",
    "torch device",
    "torch per_tensor_affine",
    "torch per_tensor_symmetric",
    "torch per_channel_affine",
    "torch per_channel_symmetric",
    "torch per_channel_affine_float_qparams",
    "_codecs encode",
};

/* "torch float32" */
const dc_torch_dtype *dc_torch_dtype_of(const char *global)
{
    for (size_t i = 0; i < DC_COUNTOF(dtypes); i++)
        if (strncmp(global, "torch ", 6) == 0 && strcmp(global + 6, dtypes[i].name) == 0)
            return &dtypes[i];
    return NULL;
}

bool dc_torch_is_unread(const char *global)
{
    for (size_t i = 0; i < DC_COUNTOF(unread_dtypes); i++)
        if (strncmp(global, "torch ", 6) == 0 && strcmp(global + 6, unread_dtypes[i]) == 0)
            return true;
    return false;
}

/* Behind "torch " or "torch.cuda "; NULL: the global is none of these. */
static const char *name_of_class(const char *global)
{
    return strncmp(global, "torch ", 6) == 0         ? global + 6
           : strncmp(global, "torch.cuda ", 11) == 0 ? global + 11
                                                     : NULL;
}

/* "torch FloatStorage" */
const dc_torch_dtype *dc_torch_storage_of(const char *global)
{
    const char *name = name_of_class(global);
    if (strcmp(global, "torch.storage UntypedStorage") == 0 ||
        strcmp(global, "torch UntypedStorage") == 0)
        return &untyped;
    for (size_t i = 0; i < DC_COUNTOF(dtypes) && name != NULL; i++)
        if (dtypes[i].storage != NULL && strcmp(name, dtypes[i].storage) == 0)
            return &dtypes[i];
    return NULL;
}

/* "torch FloatTensor", "torch.cuda.sparse HalfTensor": classes that PyTorch has from its beginnings. */
static bool is_tensor_class(const char *global)
{
    static const char *const modules[] = {"torch", "torch.cuda", "torch.sparse",
                                          "torch.cuda.sparse"};
    const char *name = strchr(global, ' ') + 1, *end = strstr(name, "Tensor");
    bool known = false;
    for (size_t i = 0; i < DC_COUNTOF(modules); i++)
        known |= strlen(modules[i]) + 1 == (size_t)(name - global) &&
                 strncmp(global, modules[i], strlen(modules[i])) == 0;
    for (size_t i = 0; known && end != NULL && i < DC_COUNTOF(dtypes); i++) {
        const char *storage = dtypes[i].storage;
        if (storage != NULL && strcmp(end, "Tensor") == 0 &&
            strlen(storage) - strlen("Storage") == (size_t)(end - name) &&
            strncmp(storage, name, (size_t)(end - name)) == 0)
            return true;
    }
    return false;
}

int64_t dc_torch_storage_size(const char *global)
{
    const dc_torch_dtype *type = dc_torch_storage_of(global);
    return type != NULL ? type->size : 0;
}

/* What it makes is left out; or NULL. */
const dc_torch_unread *dc_torch_find_unread(const char *global)
{
    for (size_t i = 0; i < DC_COUNTOF(unread_tensors); i++)
        if (strcmp(global, unread_tensors[i].global) == 0)
            return &unread_tensors[i];
    return NULL;
}

bool dc_torch_known(const char *global)
{
    for (size_t i = 0; i < DC_COUNTOF(others); i++)
        if (strcmp(global, others[i]) == 0)
            return true;
    return dc_torch_dtype_of(global) != NULL || dc_torch_storage_of(global) != NULL ||
           dc_torch_is_unread(global) || dc_torch_find_unread(global) != NULL ||
           is_tensor_class(global);
}
