/* What the files of this folder share. */
#ifndef DC_BACKENDS_CPU_CPU_IMPL_H
#define DC_BACKENDS_CPU_CPU_IMPL_H

#include "backends/cpu/cc.h"
#include "backends/cpu/huge_chunks.h"
#include "backends/cpu/llvm.h"
#include "backends/cpu/loader.h"
#include "backends/cpu/pool.h"
#include "backends/cpu/server.h"
#include "core/runtime/device.h"

/* Address space of which [mem, mem + open) can be used; the mapping begins at `base`. */
typedef struct dc_reservation {
    void *base, *mem;
    size_t size, open;
} dc_reservation;

typedef struct dc_cpu {
    dc_device device; /* first */
    dc_target target;
    int64_t cores;        /* that it has as said by DEEPC_MACHINE; 0: those there are */
    const char *llvm_cpu; /* what LLVM makes code for; NULL: the host with all it has */
    char llvm_path[sizeof((dc_opts *)0)->llvm];
    _Atomic(dc_llvm *) llvm; /* opened by the first compilation, on whatever thread */
    dc_servers *servers; /* LLVM in processes of their own; NULL: in ours */
    dc_cpu_pool *pool; /* runs launches */
    bool split_all;    /* DEEPC_CHECK=2: split whatever can be */
    DC_VEC(dc_reservation) reserved;
    dc_chunks chunks;
    size_t asked; /* bytes of pieces before there were chunks */
    dc_cc cc;      /* of `cpu:cc` */
} dc_cpu;

typedef void (*dc_cpu_kernel)(void *const *buf, const void *block, void *scratch, int64_t begin,
                          int64_t end);

struct dc_program {
    uint32_t nentry;
    dc_cpu_kernel *entry;
    dc_image *image; /* of `cpu`: code of LLVM, mapped by our loader */
    void *library;   /* of `cpu:cc`: what dlopen gave */
};

/*
 * host.c: what the machine is, and the target that `set` makes of it: "avx512", "avx2", "baseline",
 * "native", or "" where the name of the device says none. choose() is told what the machine has: 4, 3
 * or 1, of x86-64-vN.
 */
dc_status dc_host_detect(dc_job *j, const char *set, dc_cpu *cpu);
dc_status dc_host_choose(dc_job *j, const char *set, int machine, dc_cpu *cpu);
/* Those that this machine has, or the one that is pretended, in words. */
const char *dc_host_sets(const dc_opts *opt, char *out, size_t size);

/* cpu_memory.c */
dc_status dc_cpu_alloc(dc_device *d, dc_job *j, size_t bytes, void **out);
dc_status dc_cpu_reserve(dc_device *d, dc_job *j, size_t bytes, void **out);
dc_status dc_cpu_commit(dc_device *d, dc_job *j, void *mem, size_t bytes);
void dc_cpu_release(dc_device *d, void *mem);

/* cpu_record.c */
dc_status dc_cpu_record(dc_device *d, dc_job *j, const dc_command *item, uint32_t n,
                        dc_recording **out);
void dc_cpu_recording_free(dc_device *d, dc_recording *r);
dc_status dc_cpu_run(dc_device *d, dc_job *j, dc_recording *r, void *const *slot,
                     dc_run_info *info);

#endif
