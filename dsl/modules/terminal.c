/*
 * What dc.progress asks of the world: is stderr a terminal, how wide is it, what time is it.
 *
 *   terminal()    its number of columns, 80 if it does not tell, or nil where stderr is no terminal
 *   clock()       seconds of a clock that never goes back
 *   setting()     DEEPC_PROGRESS: "auto", "bar", "lines" or "off"
 *   run_log()     DEEPC_LOG; nil where there is none, and under `deepc check` and `deepc plan`
 *   speaks()      is it rank 0, which alone shows what all ranks do?
 *   sleep(s)      waits so many seconds, or until the script is to end
 */
#define _DEFAULT_SOURCE
#include "dsl/base/binding.h"
#include "dsl/base/interrupt.h"
#include "dsl/modules/modules.h"

#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static int l_terminal(lua_State *L)
{
    struct winsize size = {0};
    if (!isatty(STDERR_FILENO))
        return 0;
    const bool told = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    lua_pushinteger(L, told ? size.ws_col : 80);
    return 1;
}

static int l_clock(lua_State *L)
{
    lua_pushnumber(L, (lua_Number)dc_clock_ns() * 1e-9);
    return 1;
}

static int l_setting(lua_State *L)
{
    lua_pushstring(L, dc_dsl_of(L)->rt->opt.progress);
    return 1;
}

static int l_run_log(lua_State *L)
{
    const dc_rt *rt = dc_dsl_of(L)->rt;
    if (rt->opt.run_log[0] == '\0' || rt->check || rt->planned != NULL)
        return 0;
    lua_pushstring(L, rt->opt.run_log);
    return 1;
}

/* In short pieces: who wants the script to end does not wait for it. */
static int l_sleep(lua_State *L)
{
    enum { PIECE_NS = 10000000 };
    dc_dsl *d = dc_dsl_of(L);
    const lua_Number s = luaL_checknumber(L, 1);
    luaL_argcheck(L, s >= 0 && s < 1e6, 1, "seconds");
    const uint64_t end = dc_clock_ns() + (uint64_t)(s * 1e9);
    for (uint64_t now = dc_clock_ns(); now < end; now = dc_clock_ns()) {
        const uint64_t left = end - now;
        nanosleep(&(struct timespec){0, (long)(left < PIECE_NS ? left : PIECE_NS)}, NULL);
        dc_interrupt_poll(L, d);
    }
    return 0;
}

/* The world is not opened for that. */
static int l_speaks(lua_State *L)
{
    const dc_rt *rt = dc_dsl_of(L)->rt;
    lua_pushboolean(L, (rt->world != NULL ? dc_world_rank(rt->world) : rt->launched) == 0);
    return 1;
}

static const dc_binding bindings[] = {
    {"terminal", l_terminal, DC_ANY, DC_IN_LIBRARY},
    {"clock", l_clock, 0, DC_IN_MODULE},
    {"clock", l_clock, DC_ANY, DC_IN_LIBRARY},
    {"setting", l_setting, DC_ANY, DC_IN_LIBRARY},
    {"run_log", l_run_log, DC_ANY, DC_IN_LIBRARY},
    {"sleep", l_sleep, DC_ANY, DC_IN_LIBRARY},
    {"speaks", l_speaks, DC_ANY, DC_IN_LIBRARY},
};

const dc_bindings dc_terminal_bindings = DC_BINDINGS(bindings);
