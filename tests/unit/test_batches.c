/*
 * Loops over batches, which are gathered on another thread: to the end, left early, by an error, never
 * ended, beside compilations and calls; and the state closed in the middle of one. For the thread
 * sanitizer too (scripts/tsan).
 */
#include "core/base/base.h"
#include "vm/deepc.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "tests/t.h"
#include "tests/unit/lua_run.h"

static const char setup[] =
    "dc, data = require 'deepc', require 'deepc.data'\n"
    "local n = dc.iota 'i32[3000]'\n"
    "set = data.set((n:cast 'f32' * 2):reshape(3000, 1):expand(3000, 50), n)\n"
    "step = dc.fn('step(x: f32[n, 50], y: i32[n]) -> f32[]', function(x, y)\n"
    "  return (x:sum(2) / 50 - y:cast 'f32' * 2):abs():sum()\n"
    "end)\n"
    "function run(options, most)\n"
    "  local count = 0\n"
    "  for x, y in set:batches(options) do\n"
    "    local off <close> = step(x, y)\n"
    "    assert(off:item() == 0, 'rows and labels were taken apart')\n"
    "    count = count + 1\n"
    "    if count == most then return count end\n"
    "  end\n"
    "  return count\n"
    "end\n";

static const char loops[] =
    "for seed = 1, 3 do\n"
    "  assert(run { size = 10, shuffle = true, seed = seed } == 300)\n"
    "  assert(run { size = 7, shuffle = true, seed = seed, last = 'keep' } == 429)\n"
    "  assert(run { size = 7, seed = seed, last = 'pad' } == 429)\n"
    "end\n"
    "for most = 1, 40 do\n"
    "  assert(run({ size = 10, shuffle = true }, most) == most)\n"
    "end\n"
    "for stop = 1, 20 do\n"
    "  local ok = pcall(function()\n"
    "    for x in set:batches { size = 5 } do\n"
    "      stop = stop - 1\n"
    "      if stop == 0 then error 'enough' end\n"
    "    end\n"
    "  end)\n"
    "  assert(not ok)\n"
    "end\n"
    "for _ = 1, 50 do set:batches { size = 10, shuffle = true } end\n" /* none is begun */
    "collectgarbage()\n";

/* Two loops at once over one set; rows that expressions keep. */
static const char together[] =
    "local sum, kept = 0, {}\n"
    "for x, y in set:batches { size = 10, shuffle = true, seed = 1 } do\n"
    "  for u, v in set:batches { size = 1500 } do sum = sum + v:sum():item() / 300 end\n"
    "  kept[#kept + 1] = { x * 1, y * 2 }\n"
    "end\n"
    "assert(math.abs(sum - 2999 * 1500) < 1, sum)\n"
    "for _, xy in ipairs(kept) do\n"
    "  assert((xy[1]:sum(2) / 50 - xy[2]:cast 'f32'):abs():sum():item() == 0)\n"
    "end\n";

/* Left in the middle, by the script's end. */
static const char open_end[] = "next_batch = set:batches { size = 4, shuffle = true }\n"
                               "local x, y = next_batch()\n"
                               "step(x, y)\n"
                               "lazy = x * 1\n"
                               "next_batch()\n";

static void test_in_a_state(void)
{
    dc_rt *ctx;
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    if (!CHECK_EQ(dc_open(NULL, &ctx), DC_OK) || !CHECK_EQ(dc_attach(L, ctx), DC_OK))
        return;
    CHECK(lua_run(L, setup));
    CHECK(lua_run(L, loops));
    CHECK(lua_run(L, together));
    CHECK(lua_run(L, open_end));
    lua_close(L); /* and with it the context */
}

int main(void)
{
    for (int i = 0; i < 3; i++)
        test_in_a_state();
    return t_done();
}
