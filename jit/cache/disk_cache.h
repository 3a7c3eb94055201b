/*
 * The cache on disk: compiled programs and executables by what they were made of.
 *
 * A key is the digest (core/base/blake2.h) of a text that says everything a program depends on but its compiler:
 * kernel text, target, options. An entry holds the key, its toolchain id, and a checksum over all of it. One that
 * does not add up counts as absent, and the program that is compiled instead replaces it; so does one that another
 * compiler made, where there is a compiler; where there is none it is used.
 *
 * Nothing here is a failure: without a folder, without room, without permission to write, programs
 * are compiled. Files are written by a thread of the cache's own, so that no computation waits for a disk.
 *
 * dc_cache_find and dc_cache_store are for any thread, the others for the context's.
 */
#ifndef DC_JIT_CACHE_DISK_CACHE_H
#define DC_JIT_CACHE_DISK_CACHE_H

#include "core/runtime/device.h"

typedef struct dc_cache dc_cache;

typedef struct dc_cache_key {
    uint64_t word[2];
} dc_cache_key;

/* NULL where the settings want none. The folder is opened by the first look-up. */
dc_cache *dc_cache_new(const dc_opts *opt);
void dc_cache_flush(dc_cache *c); /* until everything is written, or cannot be; NULL is fine */
void dc_cache_free(dc_cache *c);  /* the same, and the end */

dc_cache_key dc_cache_key_of(const char *text, size_t n);

/* A toolchain id: the digest of a compiler; all zeros: there is none, or none was needed. */
typedef dc_cache_key dc_cache_maker;

/* Of what dc_device_ops.toolchain says, asked once for the device that the cache is used with. */
dc_cache_maker dc_cache_maker_of(dc_cache *c, dc_job *j, dc_device *d);
bool dc_cache_maker_known(dc_cache_maker m);

/* What was stored, in the scratch arena: by that toolchain, or by anyone where it is none. */
bool dc_cache_find(dc_cache *c, dc_job *j, dc_cache_key key, dc_cache_maker toolchain,
                   const void **data, size_t *bytes);
/* The same for what need not be there: the channel does not call it missing. */
bool dc_cache_find_optional(dc_cache *c, dc_job *j, dc_cache_key key, dc_cache_maker toolchain,
                            const void **data, size_t *bytes);

/* In the place of what is there. Copies the data. */
void dc_cache_store(dc_cache *c, dc_job *j, dc_cache_key key, dc_cache_maker toolchain,
                    const void *data, size_t bytes);

/* For `deepc cache`: what there is; `clear` removes it. Returns a sentence where it cannot be used. */
typedef struct dc_cache_report {
    char path[1024]; /* "" none */
    char why[200];   /* it is not used; "" it is, or will be made */
    uint64_t bytes, most;
    uint32_t files;
} dc_cache_report;

void dc_cache_look(const dc_opts *opt, bool clear, dc_cache_report *out);

#endif
