/*
 * Types, constants and entries of the CUDA driver API that the stand-in has, under NVIDIA's names and
 * with its layouts (CUDA 13.0); declared here because no header of the toolkit is part of the project.
 */
#ifndef DC_TESTS_CUDA_CUDA_DRIVER_H
#define DC_TESTS_CUDA_CUDA_DRIVER_H

#include <stddef.h>

typedef int CUresult, CUdevice, CUdevice_attribute, CUfunction_attribute, CUmemorytype;
typedef unsigned long long CUdeviceptr, CUmemGenericAllocationHandle;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUarray_st *CUarray;
typedef void (*CUhostFn)(void *data);
typedef struct CUuuid {
    char bytes[16];
} CUuuid;

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_DEINITIALIZED = 4,
    CUDA_ERROR_DEVICE_UNAVAILABLE = 46,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_IMAGE = 200,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_MAP_FAILED = 205,
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    CUDA_ERROR_ECC_UNCORRECTABLE = 214,
    CUDA_ERROR_INVALID_PTX = 218,
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
    CUDA_ERROR_OPERATING_SYSTEM = 304,
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_ILLEGAL_ADDRESS = 700,
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
    CUDA_ERROR_LAUNCH_TIMEOUT = 702,
    CUDA_ERROR_MISALIGNED_ADDRESS = 716,
    CUDA_ERROR_LAUNCH_FAILED = 719,
    CUDA_ERROR_NOT_PERMITTED = 800,
    CUDA_ERROR_NOT_SUPPORTED = 801,
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
    CUDA_ERROR_UNKNOWN = 999,
};

enum {
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X = 2,
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X = 5,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
    CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10,
    CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK = 12,
    CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT = 17,
    CU_DEVICE_ATTRIBUTE_INTEGRATED = 18,
    CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY = 19,
    CU_DEVICE_ATTRIBUTE_COMPUTE_MODE = 20,
    CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS = 31,
    CU_DEVICE_ATTRIBUTE_ECC_ENABLED = 32,
    CU_DEVICE_ATTRIBUTE_PCI_BUS_ID = 33,
    CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID = 34,
    CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36,
    CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37,
    CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
    CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT = 40,
    CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
    CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID = 50,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
    CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
    CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY = 83,
    CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH = 95,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
    CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR = 106,
    CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK = 111,
    CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115,
};

enum {
    CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
    CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
    CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES = 2,
    CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
    CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
    CU_FUNC_ATTRIBUTE_PTX_VERSION = 5,
    CU_FUNC_ATTRIBUTE_BINARY_VERSION = 6,
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
    CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 9,
};

enum {
    CU_STREAM_NON_BLOCKING = 1,
    CU_EVENT_BLOCKING_SYNC = 1,
    CU_EVENT_DISABLE_TIMING = 2,
    CU_MEMHOSTALLOC_PORTABLE = 1,
    CU_MEMHOSTALLOC_DEVICEMAP = 2,
    CU_MEMHOSTALLOC_WRITECOMBINED = 4,
    CU_MEMORYTYPE_HOST = 1,
    CU_MEMORYTYPE_DEVICE = 2,
    CU_MEMORYTYPE_UNIFIED = 4,
    CU_MEM_LOCATION_TYPE_DEVICE = 1,
    CU_MEM_ALLOCATION_TYPE_PINNED = 1,
    CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3,
    CU_GET_PROC_ADDRESS_SUCCESS = 0,
    CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1,
};

typedef struct CUmemLocation {
    int type, id;
} CUmemLocation;

typedef struct CUmemAllocationProp {
    int type, requestedHandleTypes;
    CUmemLocation location;
    void *win32HandleMetaData;
    struct {
        unsigned char compressionType, gpuDirectRDMACapable;
        unsigned short usage;
        unsigned char reserved[4];
    } allocFlags;
} CUmemAllocationProp;

typedef struct CUmemPoolProps {
    int allocType, handleTypes;
    CUmemLocation location;
    void *win32SecurityAttributes;
    size_t maxSize;
    unsigned short usage;
    unsigned char reserved[54];
} CUmemPoolProps;

typedef struct CUmemAccessDesc {
    CUmemLocation location;
    int flags;
} CUmemAccessDesc;

typedef struct CUDA_KERNEL_NODE_PARAMS {
    CUfunction func;
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    void **kernelParams, **extra;
    void *kern;
    CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS;

typedef struct CUDA_MEMCPY3D {
    size_t srcXInBytes, srcY, srcZ, srcLOD;
    CUmemorytype srcMemoryType;
    const void *srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    void *reserved0;
    size_t srcPitch, srcHeight;
    size_t dstXInBytes, dstY, dstZ, dstLOD;
    CUmemorytype dstMemoryType;
    void *dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    void *reserved1;
    size_t dstPitch, dstHeight;
    size_t WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D;

typedef struct CUDA_MEMSET_NODE_PARAMS {
    CUdeviceptr dst;
    size_t pitch;
    unsigned value, elementSize;
    size_t width, height;
} CUDA_MEMSET_NODE_PARAMS;

/* clang-format off */
/* Library and devices */
CUresult cuInit(unsigned flags);
CUresult cuDriverGetVersion(int *version);
CUresult cuGetErrorName(CUresult e, const char **text);
CUresult cuGetErrorString(CUresult e, const char **text);
CUresult cuGetProcAddress_v2(const char *name, void **entry, int version, unsigned long long flags, int *status);
CUresult cuDeviceGetCount(int *n);
CUresult cuDeviceGet(CUdevice *d, int ordinal);
CUresult cuDeviceGetName(char *name, int room, CUdevice d);
CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice d);
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute a, CUdevice d);
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice d);
CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice d);
CUresult cuDeviceGetPCIBusId(char *id, int room, CUdevice d);
CUresult cuDeviceCanAccessPeer(int *yes, CUdevice d, CUdevice peer);
/* Contexts */
CUresult cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice d);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice d);
CUresult cuDevicePrimaryCtxGetState(CUdevice d, unsigned *flags, int *active);
CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice d, unsigned flags);
CUresult cuCtxGetCurrent(CUcontext *ctx);
CUresult cuCtxSetCurrent(CUcontext ctx);
CUresult cuCtxPushCurrent_v2(CUcontext ctx);
CUresult cuCtxPopCurrent_v2(CUcontext *ctx);
CUresult cuCtxGetDevice(CUdevice *d);
CUresult cuCtxSynchronize(void);
/* Modules and functions */
CUresult cuModuleLoadData(CUmodule *m, const void *image);
CUresult cuModuleLoadDataEx(CUmodule *m, const void *image, unsigned n, int *options, void **values);
CUresult cuModuleUnload(CUmodule m);
CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name);
CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute a, int value);
CUresult cuFuncGetParamInfo(CUfunction f, size_t i, size_t *offset, size_t *bytes);
CUresult cuFuncGetAttribute(int *value, CUfunction_attribute a, CUfunction f);
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, CUfunction f, int threads, size_t dynamic);
/* Memory */
CUresult cuMemGetInfo_v2(size_t *left, size_t *all);
CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t bytes);
CUresult cuMemFree_v2(CUdeviceptr p);
CUresult cuMemAllocAsync(CUdeviceptr *p, size_t bytes, CUstream s);
CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props);
CUresult cuMemPoolDestroy(CUmemoryPool pool);
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int which, void *value);
CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *p, size_t bytes, CUmemoryPool pool, CUstream s);
CUresult cuMemFreeAsync(CUdeviceptr p, CUstream s);
CUresult cuMemHostAlloc(void **p, size_t bytes, unsigned flags);
CUresult cuMemAllocHost_v2(void **p, size_t bytes);
CUresult cuMemFreeHost(void *p);
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *p, void *host, unsigned flags);
CUresult cuMemGetAddressRange_v2(CUdeviceptr *begin, size_t *bytes, CUdeviceptr p);
CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *prop, int option);
CUresult cuMemAddressReserve(CUdeviceptr *p, size_t bytes, size_t align, CUdeviceptr at, unsigned long long flags);
CUresult cuMemAddressFree(CUdeviceptr p, size_t bytes);
CUresult cuMemCreate(CUmemGenericAllocationHandle *h, size_t bytes, const CUmemAllocationProp *prop, unsigned long long flags);
CUresult cuMemRelease(CUmemGenericAllocationHandle h);
CUresult cuMemMap(CUdeviceptr p, size_t bytes, size_t offset, CUmemGenericAllocationHandle h, unsigned long long flags);
CUresult cuMemUnmap(CUdeviceptr p, size_t bytes);
CUresult cuMemSetAccess(CUdeviceptr p, size_t bytes, const CUmemAccessDesc *desc, size_t n);
/* Copies and fills */
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t n);
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t n);
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t n);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t n, CUstream s);
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t n, CUstream s);
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s);
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s);
CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char v, size_t n);
CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned v, size_t n);
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char v, size_t n, CUstream s);
CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short v, size_t n, CUstream s);
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned v, size_t n, CUstream s);
/* Streams, events, launches */
CUresult cuStreamCreate(CUstream *s, unsigned flags);
CUresult cuStreamCreateWithPriority(CUstream *s, unsigned flags, int priority);
CUresult cuStreamDestroy_v2(CUstream s);
CUresult cuStreamGetCtx(CUstream s, CUcontext *ctx);
CUresult cuStreamSynchronize(CUstream s);
CUresult cuStreamQuery(CUstream s);
CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags);
CUresult cuEventCreate(CUevent *e, unsigned flags);
CUresult cuEventDestroy_v2(CUevent e);
CUresult cuEventRecord(CUevent e, CUstream s);
CUresult cuEventSynchronize(CUevent e);
CUresult cuEventQuery(CUevent e);
CUresult cuEventElapsedTime(float *ms, CUevent a, CUevent b);
CUresult cuEventElapsedTime_v2(float *ms, CUevent a, CUevent b);
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned dynamic, CUstream s, void **argument, void **extra);
CUresult cuLaunchHostFunc(CUstream s, CUhostFn fn, void *data);
/* Graphs */
CUresult cuGraphCreate(CUgraph *g, unsigned flags);
CUresult cuGraphDestroy(CUgraph g);
CUresult cuGraphAddKernelNode_v2(CUgraphNode *x, CUgraph g, const CUgraphNode *dep, size_t n, const CUDA_KERNEL_NODE_PARAMS *p);
CUresult cuGraphAddMemcpyNode(CUgraphNode *x, CUgraph g, const CUgraphNode *dep, size_t n, const CUDA_MEMCPY3D *p, CUcontext ctx);
CUresult cuGraphAddMemsetNode(CUgraphNode *x, CUgraph g, const CUgraphNode *dep, size_t n, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx);
CUresult cuGraphAddEmptyNode(CUgraphNode *x, CUgraph g, const CUgraphNode *dep, size_t n);
CUresult cuGraphAddEventRecordNode(CUgraphNode *x, CUgraph g, const CUgraphNode *dep, size_t n, CUevent e);
CUresult cuGraphAddEventWaitNode(CUgraphNode *x, CUgraph g, const CUgraphNode *dep, size_t n, CUevent e);
CUresult cuGraphAddDependencies(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t n);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *e, CUgraph g, unsigned long long flags);
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec e, CUgraphNode x, const CUDA_KERNEL_NODE_PARAMS *p);
CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec e, CUgraphNode x, const CUDA_MEMCPY3D *p, CUcontext ctx);
CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec e, CUgraphNode x, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx);
CUresult cuGraphUpload(CUgraphExec e, CUstream s);
CUresult cuGraphLaunch(CUgraphExec e, CUstream s);
CUresult cuGraphExecDestroy(CUgraphExec e);

#endif
