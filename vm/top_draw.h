/* What `deepc top` shows, as lines of so many columns. */
#ifndef DC_VM_TOP_DRAW_H
#define DC_VM_TOP_DRAW_H

#include "core/base/vec.h"
#include "vm/top_client.h"

typedef enum dc_top_sort {
    DC_TOP_BY_TIME,
    DC_TOP_BY_RATE,
    DC_TOP_BY_EACH,
    DC_TOP_BY_NAME
} dc_top_sort;

typedef struct dc_top_look {
    uint32_t columns, rows; /* rows 0: as many as there are, nothing is left out, no line of keys */
    bool colour, unicode, paused, kernels;
    dc_top_sort sort;
    uint32_t selected; /* which of the ranks is shown */
    uint32_t
        scroll; /* lines of the tables above the first that is shown; made smaller where there are less */
} dc_top_look;

const char *dc_top_sort_name(dc_top_sort s);

/* Adds the frame: lines that end in '\n', sequences of the terminal in them where there is colour. Unwinds without memory. */
void dc_top_draw(dc_text *t, const dc_top_clients *all, dc_top_look *look);
/* One line about one of them, for logs. */
void dc_top_draw_line(dc_text *t, const dc_top_client *c);

/* What it is at: "in step for 12.0 s", "waits for rank 1 in all_reduce, train.lua:12 for 3.0 s". */
void dc_top_print_state(dc_text *t, const dc_top_snapshot *s);
/* The command without the path of the program. */
const char *dc_top_command(const dc_top_snapshot *s);
/* "1:02:03" */
void dc_top_print_time(dc_text *t, double seconds);

#endif
