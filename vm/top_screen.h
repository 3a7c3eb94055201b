/*
 * The terminal of `deepc top`: a screen of its own, keys without Enter, its size. However it ends, but by SIGKILL, the terminal
 * is as it was. Signals are read like keys, so nothing of it is a variable of the file.
 */
#ifndef DC_VM_TOP_SCREEN_H
#define DC_VM_TOP_SCREEN_H

#include "core/base/vec.h"

#include <signal.h>
#include <termios.h>

typedef enum dc_top_key {
    DC_TOP_NONE, /* the time is over */
    DC_TOP_QUIT,
    DC_TOP_SORT,
    DC_TOP_PAUSE,
    DC_TOP_KERNELS,
    DC_TOP_UP,
    DC_TOP_DOWN,
    DC_TOP_PAGE_UP,
    DC_TOP_PAGE_DOWN,
    DC_TOP_NEXT,
    DC_TOP_REDRAW /* another size, or it was in the background */
} dc_top_key;

typedef struct dc_top_screen {
    struct termios before;
    sigset_t mask; /* before */
    int signals;   /* a descriptor */
    int ended_by;  /* signal that ended it; 0: a key */
    uint32_t columns, rows;
} dc_top_screen;

/* Are both ends of the program a terminal that can move its cursor? */
bool dc_top_screen_is_there(void);
bool dc_top_screen_open(dc_top_screen *s);
/* Then the signal that ended it, if one did, does what it does. */
void dc_top_screen_close(dc_top_screen *s);
/* The next key within so many milliseconds. */
dc_top_key dc_top_screen_wait(dc_top_screen *s, int ms);
/* Lines that end in '\n'. false: the terminal is gone. */
bool dc_top_screen_show(const dc_text *frame);

/* The size of a terminal, else 80 by 24. */
void dc_top_screen_size(uint32_t *columns, uint32_t *rows);

#endif
