/* The clock of dc_clock_ns (core/base/base.h). */
#define _POSIX_C_SOURCE 200809L
#include "core/base/base.h"

#include <time.h>

uint64_t dc_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
