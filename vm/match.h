/*
 * Lua's patterns with bounded work. Lua's own matcher backtracks in C, where no hook is called: a pattern of
 * a dozen `a-` against 200 letters runs for hours. This one means the same, counts its steps, and raises when
 * they are used up: a subject of n bytes has DC_MATCH_STEPS + 64 n of them in each call. On the way it ends where
 * an interruption is wanted.
 */
#ifndef DC_VM_MATCH_H
#define DC_VM_MATCH_H

#include <lua.h>

#include <stdbool.h>
#include <stddef.h>

enum { DC_MATCH_STEPS = 1 << 24 };

enum { DC_MATCH_CAPTURES = 32 };

typedef struct dc_match {
    lua_State *L;
    const char *begin, *end; /* of the subject */
    const char *stop;        /* the end of the pattern */
    size_t left;             /* steps */
    size_t look;             /* where so many are left an interruption is looked for */
    int depth;               /* of the recursion that is left */
    int level;               /* captures, those that are open included */
    struct {
        const char *at;
        ptrdiff_t length; /* or OPEN, POSITION */
    } capture[DC_MATCH_CAPTURES];
} dc_match;

void dc_match_begin(dc_match *m, lua_State *L, const char *s, size_t n, const char *pattern,
                    size_t length);

/* Matches the pattern at p against the subject from s on; its end, or NULL. Forgets captures of before. */
const char *dc_match_at(dc_match *m, const char *s, const char *p);

/* Pushes the captures of a match; where there are none, all of it (if `whole`). Returns how many. */
int dc_match_push(dc_match *m, const char *from, const char *to, bool whole);

/* Pushes capture i, counted from 0; of a pattern without captures 0 is all of it. */
void dc_match_push_one(dc_match *m, int i, const char *from, const char *to);

/* Counts n steps; raises where there are none left. */
void dc_match_spend(dc_match *m, size_t n);

/* find, match, gmatch, gsub into the table on top. */
void dc_match_register(lua_State *L);

#endif
