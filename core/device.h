/*
 * The only door to a machine. A backend fills in dc_device_ops; it sees text, sizes and pointers.
 *
 * A device compiles kernel text to a program, and records a list of items to something that can be
 * run again and again. Items name memory by slot and offset; run() receives the base address of
 * every slot, so a recording never changes while arguments move from call to call. One slot is the
 * argument block (per-call scalars).
 */
#ifndef DC_CORE_DEVICE_H
#define DC_CORE_DEVICE_H

#include "core/job.h"

typedef struct dc_device dc_device;
typedef struct dc_program dc_program;
typedef struct dc_recording dc_recording;

/* What schedules and renderers know of a device. */
typedef struct dc_target {
    char name[64];       /* "cpu", then what keys need: "x86-64 znver5" */
    char triple[64];     /* of the compiler */
    char features[512];  /* of the compiler: "+avx512f,..." */
    int vector_bytes;    /* 64 with AVX-512, 32 with AVX2, else 16 */
    int vector_registers;
    size_t l1, l2;       /* bytes of data cache of one core */
} dc_target;

typedef enum dc_item_kind {
    DC_ITEM_LAUNCH, /* run entry `entry` of program for blocks 0..grid-1 */
    DC_ITEM_COPY,   /* bytes from bind[1] to bind[0] */
    DC_ITEM_CHECK   /* bind[0] is an i32: if >= 0, the run stops and reports this item */
} dc_item_kind;

typedef struct dc_bind {
    uint32_t slot;
    size_t offset;
} dc_bind;

typedef struct dc_item {
    dc_item_kind kind;
    dc_program *program;
    uint32_t entry; /* index into dc_source.entry */
    int64_t grid;
    size_t scratch; /* bytes per worker */
    uint32_t nbind;
    const dc_bind *bind; /* buffers in the order of the kernel's parameters */
    size_t bytes;        /* of a copy */
    const char *label;   /* name of the kernel, for the profile */
} dc_item;

/*
 * Kernel text. Every entry is
 *   void entry(void *const *buf, const void *block, void *scratch, int64_t begin, int64_t end)
 * and runs grid positions begin to end - 1; `block` is the argument block.
 */
typedef struct dc_source {
    const char *text;
    const char *dialect; /* "llvm" */
    const char *const *entry;
    uint32_t nentry;
} dc_source;

typedef struct dc_run_info {
    int32_t fault_item;   /* out: the CHECK item that stopped the run, or -1 */
    int64_t fault_value;  /* out: what it read */
    uint64_t *nanoseconds; /* in: NULL, or one counter per item to add to */
} dc_run_info;

typedef struct dc_device_ops {
    const char *name;
    void (*free)(dc_device *d);
    const dc_target *(*target)(const dc_device *d);
    /* NOMEM is a status here. Memory is aligned to 64 bytes and not cleared. */
    dc_status (*alloc)(dc_device *d, dc_job *j, size_t bytes, void **out);
    void (*release)(dc_device *d, void *mem);
    dc_status (*upload)(dc_device *d, dc_job *j, void *to, const void *from, size_t bytes);
    dc_status (*download)(dc_device *d, dc_job *j, void *to, const void *from, size_t bytes);
    /* BUILD or DEVICE with the compiler's words on failure. */
    dc_status (*compile)(dc_device *d, dc_job *j, const dc_source *src, dc_program **out);
    void (*program_free)(dc_device *d, dc_program *p);
    /* Items are copied. */
    dc_status (*record)(dc_device *d, dc_job *j, const dc_item *item, uint32_t n, dc_recording **out);
    void (*recording_free)(dc_device *d, dc_recording *r);
    dc_status (*run)(dc_device *d, dc_job *j, const dc_recording *r, void *const *slot,
                     dc_run_info *info);
    /* Between two places of this device; NULL: callers go through the host. */
    dc_status (*copy)(dc_device *d, dc_job *j, void *to, const void *from, size_t bytes);
} dc_device_ops;

struct dc_device {
    const dc_device_ops *ops;
};

#endif
