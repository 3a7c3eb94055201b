/*
 * Texts of others as they are shown: names out of files, of devices, ranks and the environment, words of compilers. What
 * would steer a terminal or change the order of what stands round it is escaped: control characters as \n, \x1b,
 * \u{9b}; marks of direction, separators of lines as \u{202e}; bytes that are no UTF-8 as \xff. All else stays, so that
 * what has been escaped does not change.
 *
 * The one place that knows this. It is applied where a text leaves: to records of failures (err_text.c), lines of logs
 * (log.c), what the program prints (vm/program/say.h), and by scripts of ours as core.foreign.
 */
#ifndef DC_CORE_BASE_SHOWN_H
#define DC_CORE_BASE_SHOWN_H

#include "core/base/base.h"

enum { DC_SHOWN_PIECE = 12 };

/*
 * The first character of n > 0 bytes as it is shown, *m bytes in `piece`; how many bytes it is. `lines`: line feeds and
 * tabulators stay.
 */
size_t dc_shown_next(const char *text, size_t n, bool lines, char piece[DC_SHOWN_PIECE], size_t *m);

/* The text as it is shown, as much as there is room for, without half characters. Returns what snprintf would. */
size_t dc_shown_put(char *out, size_t size, const char *text, size_t n, bool lines);

/* Is it shown as it is? */
bool dc_shown_is_plain(const char *text, size_t n, bool lines);

/* A name, shortened: for sentences. */
typedef struct dc_shown_name {
    char s[64];
} dc_shown_name;

dc_shown_name dc_show_name(const char *name);

#endif
