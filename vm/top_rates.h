/* Rates of what a monitor counts, between its last two answers, and tables in some order. */
#ifndef DC_VM_TOP_RATES_H
#define DC_VM_TOP_RATES_H

#include "vm/top_draw.h"

typedef struct dc_top_row {
    const dc_top_count *of;
    double rate;         /* times in a second */
    double each;         /* seconds */
    double share;        /* of the time that passed */
    double flops, bytes; /* in a second that it ran */
} dc_top_row;

typedef struct dc_top_rates {
    double seconds;                 /* between the two; 0: there are no two */
    double rounds, calls, launches; /* in a second */
    double cpu;                     /* processors used */
    const char *
        step; /* what counts as a step: NULL, rounds of loops; else the function that took most time */
    double steps;
} dc_top_rates;

void dc_top_rates_of(const dc_top_client *c, dc_top_rates *out);
/* Rows of functions or kernels; returns how many there are. */
uint32_t dc_top_rows(const dc_top_client *c, bool kernels, dc_top_sort sort,
                     dc_top_row row[DC_MONITOR_KERNELS]);

#endif
