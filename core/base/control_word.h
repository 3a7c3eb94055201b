/* The processor's control word for floats: how it rounds, and what it does with denormal numbers. */
#ifndef DC_CORE_BASE_CONTROL_WORD_H
#define DC_CORE_BASE_CONTROL_WORD_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#if defined(__x86_64__)

enum {
    DC_CONTROL_FLUSH = 0x8040,   /* results (FTZ), and operands (DAZ) */
    DC_CONTROL_DENORMALS = 0x12, /* what operations have set: a denormal operand, an underflow */
    DC_CONTROL_FLAGS = 0x3f
};

static inline uint64_t dc_control_word(void)
{
    return _mm_getcsr() & ~(uint64_t)DC_CONTROL_FLAGS;
}

static inline void dc_set_control_word(uint64_t wanted)
{
    if (dc_control_word() != wanted)
        _mm_setcsr((unsigned)wanted);
}

/* Have operations of this thread met denormal numbers since this was asked last? */
static inline bool dc_control_denormals(void)
{
    const unsigned word = _mm_getcsr();
    if ((word & DC_CONTROL_DENORMALS) != 0)
        _mm_setcsr(word & ~(unsigned)DC_CONTROL_DENORMALS);
    return (word & DC_CONTROL_DENORMALS) != 0;
}

#elif defined(__aarch64__)

enum { DC_CONTROL_FLUSH = 1 << 24 }; /* FZ */

static inline uint64_t dc_control_word(void)
{
    uint64_t word;
    __asm__ volatile("mrs %0, fpcr" : "=r"(word));
    return word;
}

static inline void dc_set_control_word(uint64_t wanted)
{
    if (dc_control_word() != wanted)
        __asm__ volatile("msr fpcr, %0" : : "r"(wanted));
}

static inline bool dc_control_denormals(void)
{
    uint64_t flags;
    const uint64_t met = 1 << 7 | 1 << 3; /* IDC, UFC */
    __asm__ volatile("mrs %0, fpsr" : "=r"(flags));
    if ((flags & met) != 0)
        __asm__ volatile("msr fpsr, %0" : : "r"(flags & ~met));
    return (flags & met) != 0;
}

#else

enum { DC_CONTROL_FLUSH = 0 };

static inline uint64_t dc_control_word(void)
{
    return 0;
}

static inline void dc_set_control_word(uint64_t wanted)
{
    (void)wanted;
}

static inline bool dc_control_denormals(void)
{
    return false;
}

#endif

#endif
