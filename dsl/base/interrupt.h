/*
 * Interruptions: Lua code that ends where the host or Ctrl-C asks for it (dsl/base/interrupt.c).
 */
#ifndef DC_DSL_BASE_INTERRUPT_H
#define DC_DSL_BASE_INTERRUPT_H

#include "dsl/base/state.h"

void dc_interrupt_open(lua_State *L, dc_dsl *d);
void dc_interrupt_arm(void *d); /* in a signal handler too: dc_rt.stop_lua */
/* lua_sethook for hooks of others: one that was armed is put over it again. */
void dc_interrupt_sethook(lua_State *L, dc_dsl *d, lua_Hook hook, int mask, int count);
/* The hook of L; where an interruption has put its own there, the one that it put away. */
lua_Hook dc_interrupt_below(lua_State *L, dc_dsl *d, int *mask, int *count);

/* Raises where an interruption is requested. */
void dc_interrupt_poll(lua_State *L, dc_dsl *d);
/* The same for a persistent one: in functions that C calls often, and at each step of what may be many. */
static inline void dc_interrupt_look(lua_State *L, dc_dsl *d)
{
    if (d->rt != NULL && atomic_load_explicit(&d->rt->insist, memory_order_relaxed))
        dc_interrupt_poll(L, d);
}
/* The same in one of some thousand calls, for loops over elements; *n counts them. */
static inline void dc_interrupt_poll_often(lua_State *L, dc_dsl *d, uint32_t *n)
{
    if (++*n % 4096 == 0)
        dc_interrupt_poll(L, d);
}
/* The failure at hand is about to be raised: where it is an end, it says whose, and Lua will look. */
void dc_interrupt_told(lua_State *L, dc_dsl *d);
/* The error value on top is about to be raised: a persistent interruption raises it again. */
void dc_interrupt_raised(lua_State *L, dc_dsl *d);
/* What runs from now on, in place of `from`. */
void dc_interrupt_switch(dc_dsl *d, lua_State *from, lua_State *to);
/* Is the value the error of an interruption? Pushes nothing. */
bool dc_interrupt_is_end(lua_State *L, int idx);

/* ---- between interrupt_arm.c and interrupt.c ---- */

/* Does anything ask for an end? */
bool dc_interrupt_wanted(const dc_dsl *d);
/* Guards hooks and dc_dsl.running. Unlocking arms what runs where an end was asked for meanwhile. */
void dc_interrupt_lock(dc_dsl *d);
void dc_interrupt_unlock(dc_dsl *d);
/* Arms `own`, or what runs (NULL), where an end is asked for; and gives L the hook back that was replaced. */
void dc_interrupt_arm_in(dc_dsl *d, lua_State *own);
void dc_interrupt_put_back(lua_State *L, dc_dsl *d);
/* Raises the error value of the end that is insisted on, if there is one already. */
void dc_interrupt_raise_again(lua_State *L, const dc_dsl *d);

/* coroutine.c: functions of Lua's libraries in the table of globals, replaced. */
void dc_coroutine_open(lua_State *L, dc_dsl *d, int globals);

#endif
