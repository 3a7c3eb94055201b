/*
 * What every file may use: statuses, assertions, checked arithmetic on sizes, attributes.
 *
 * Three kinds of failure, three vocabularies:
 *   dc_fail (core/base/err.h)  the user or the world: a record, returned as a status
 *   DC_ASSERT             cheap internal promise, checked in development builds
 *   DC_BUG                a branch that cannot happen; stays on in release
 */
#ifndef DC_CORE_BASE_BASE_H
#define DC_CORE_BASE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DC_MAX_RANK 8

#define DC_COUNTOF(a) (sizeof(a) / sizeof((a)[0]))
#define DC_UNUSED(x)  ((void)(x))

#if defined(__GNUC__)
#define DC_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define DC_NORETURN     __attribute__((noreturn))
#else
#define DC_PRINTF(f, a)
#define DC_NORETURN
#endif

/* Marks a symbol that leaves libdeepc; everything else is hidden. */
#define DC_API __attribute__((visibility("default")))

typedef enum dc_status {
    DC_OK,
    DC_E_TYPE,   /* types, shapes, axes or names do not fit */
    DC_E_VALUE,  /* a value is outside what is allowed */
    DC_E_STATE,  /* not possible now: while tracing, after closing ... */
    DC_E_FILE,   /* a file is missing, damaged or of another kind */
    DC_E_NOMEM,  /* no memory, for metadata or for tensors */
    DC_E_DEVICE, /* a device is absent or failed */
    DC_E_BUILD,  /* a kernel did not compile */
    DC_E_BUG,    /* a promise of ours was broken; the context can only be closed */
    DC_E_STOPPED /* the host, or a deadline, ended it */
} dc_status;

/* Leave the function when the call fails. Nothing may be owned at that point. */
#define DC_TRY(call)                    \
    do {                                \
        dc_status try_status_ = (call); \
        if (try_status_ != DC_OK)       \
            return try_status_;         \
    } while (0)

/*
 * Unwinds to the recovery point of the running entry (core/base/job.h); where there is none, as in a
 * unit test, prints the sentence and stops the process.
 */
DC_NORETURN void dc_bug_at(const char *file, int line, const char *fmt, ...) DC_PRINTF(3, 4);
#define DC_BUG(...) dc_bug_at(__FILE__, __LINE__, __VA_ARGS__)

#ifdef NDEBUG
#define DC_ASSERT(cond, ...) ((void)sizeof(cond))
#else
#define DC_ASSERT(cond, ...)     \
    do {                         \
        if (!(cond))             \
            DC_BUG(__VA_ARGS__); \
    } while (0)
#endif

static inline bool dc_mul_ok(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool dc_add_ok(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

/* Of numbers from 0 on; of 0 and a it is a. */
static inline int64_t dc_gcd_i64(int64_t a, int64_t b)
{
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static inline int64_t dc_min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t dc_max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline size_t dc_align_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* Bits of a float and back, without breaking aliasing rules. */
static inline uint32_t dc_f32_bits(float x)
{
    union {
        float f;
        uint32_t u;
    } v = {.f = x};
    return v.u;
}

static inline float dc_bits_f32(uint32_t u)
{
    union {
        uint32_t u;
        float f;
    } v = {.u = u};
    return v.f;
}

/* 64-bit mixing for hash tables. */
static inline uint64_t dc_hash_mix(uint64_t h, uint64_t v)
{
    h ^= v + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
    h *= 0xff51afd7ed558ccdu;
    return h ^ (h >> 32);
}

/* Goes on from h with n bytes, FNV-1a. */
static inline uint64_t dc_hash_bytes(uint64_t h, const void *bytes, size_t n)
{
    const unsigned char *b = bytes;
    for (size_t i = 0; i < n; i++)
        h = (h ^ b[i]) * 0x100000001b3u;
    return h;
}

uint64_t dc_clock_ns(void); /* of a clock that never goes back */

#endif
