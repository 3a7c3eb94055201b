/*
 * What a test asks the stand-in for CUDA, in the same process: entries of its libcuda.so.1 besides
 * those of the driver, found by dlsym.
 */
#ifndef DC_TESTS_CUDA_STANDIN_API_H
#define DC_TESTS_CUDA_STANDIN_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How often an entry was called so far, "cuGraphLaunch"; "*": all of them. */
uint64_t cuda_standin_calls(const char *entry);
uint64_t cuda_standin_kernels(void); /* kernels run */

/* Misuse found so far; take_wrong gives the oldest that was not taken, or NULL, and forgets it. */
unsigned cuda_standin_wrong(void);
const char *cuda_standin_take_wrong(void);

/* Sets the environment variable CUDA_STANDIN_name, at once. */
void cuda_standin_set(const char *name, const char *value);

/*
 * For the stand-in for NCCL: something in the order of a stream that is asked again and again until it answers true; and, while
 * it is asked, bytes from or to memory of the device.
 */
int cuda_standin_exchange(void *stream, bool (*exchange)(int on, void *data), void *data);
bool cuda_standin_move(int on, void *to, const void *from, size_t bytes);

/* Allocated at this time */
size_t cuda_standin_bytes(int device);

/* Traffic of launches while CUDA_STANDIN_TRAFFIC=1 (engine.h): of the last kernel named `entry`. */
typedef struct cuda_traffic {
    int line; /* of the text; 0: unknown */
    bool store, shared;
    unsigned bytes;        /* of an access of a lane */
    uint64_t requests;     /* accesses of warps */
    uint64_t units, least; /* sectors of 32 bytes, or passes of the banks; were they all full */
    uint64_t moved;        /* bytes that lanes asked for */
} cuda_traffic;
size_t cuda_standin_traffic(const char *entry, const cuda_traffic **rows);

#endif
