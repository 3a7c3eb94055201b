/*
 * Batches on a device whose memory is not the host's: the CPU behind a shim that says so and counts. Rows are gathered
 * there, by one call for each batch, and where nothing compiles by one upload.
 */
#include "core/runtime/rt.h"
#include "vm/deepc.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "tests/t.h"
#include "tests/unit/lua_run.h"
#include "tests/unit/world.h"

/* Rows of 50 numbers, of 3 bytes, of one number; labels. `run` takes a loop apart into rows and looks at each. */
static const char setup[] = "dc, data = require 'deepc', require 'deepc.data'\n"
                            "local n = dc.iota 'i32[300]'\n"
                            "local wide = (n:cast 'f32' * 2):reshape(300, 1):expand(300, 50)\n"
                            "local bytes = (n % 100):cast 'u8':reshape(300, 1):expand(300, 3)\n"
                            "sets = { wide = data.set(wide, n), bytes = data.set(bytes, n), one = "
                            "data.set(n:cast 'i64', n) }\n"
                            "for _, set in pairs(sets) do set.x:totable(); set.y:totable() end\n"
                            "local function number(name, x)\n"
                            "  return name == 'bytes' and x:cast 'i32':max(2) or name == 'wide' "
                            "and (x:mean(2) / 2):cast 'i32' or x:cast 'i32'\n"
                            "end\n"
                            "function run(name, options)\n"
                            "  local seen, rows = {}, 0\n"
                            "  for x, y, mask in sets[name]:batches(options) do\n"
                            "    local label = y:totable()\n"
                            "    local got = number(name, x):totable()\n"
                            "    mask = mask and mask:totable()\n"
                            "    for i = 1, #label do\n"
                            "      if mask and mask[i] == 0 then\n"
                            "        assert(label[i] == 0 and got[i] == 0)\n"
                            "      else\n"
                            "        assert(got[i] == (name == 'bytes' and label[i] % 100 or "
                            "label[i]), 'rows and labels were taken apart')\n"
                            "        assert(not seen[label[i]])\n"
                            "        seen[label[i]] = true\n"
                            "        rows = rows + 1\n"
                            "      end\n"
                            "    end\n"
                            "  end\n"
                            "  return rows\n"
                            "end\n";

static const char loops[] =
    "for name in pairs(sets) do\n"
    "  for _, shuffle in ipairs { true, false } do\n"
    "    assert(run(name, { size = 60, shuffle = shuffle }) == 300)\n"
    "    assert(run(name, { size = 70, shuffle = shuffle, last = 'drop' }) == 280)\n"
    "    assert(run(name, { size = 70, shuffle = shuffle, last = 'keep' }) == 300)\n"
    "    assert(run(name, { size = 70, shuffle = shuffle, last = 'pad' }) == 300)\n"
    "    assert(run(name, { size = 1000, shuffle = shuffle, last = 'pad' }) == 300)\n"
    "  end\n"
    "end\n";

static const char no_rows[] = "local set = data.set(dc.zeros 'f32[10, 0]', dc.iota 'i32[10]')\n"
                              "local n = 0\n"
                              "for x, y in set:batches { size = 4, shuffle = true, last = 'keep' } "
                              "do n = n + x.shape[1] end\n"
                              "assert(n == 10)\n";

/* Batches are kept, and two loops run at once. */
static const char together[] =
    "local kept = {}\n"
    "for x, y in sets.wide:batches { size = 10, shuffle = true, seed = 1 } do\n"
    "  for u, v in sets.wide:batches { size = 10, shuffle = true, seed = 2 } do\n"
    "    assert((u:sum(2) / 100 - v:cast 'f32'):abs():sum():item() == 0)\n"
    "    break\n"
    "  end\n"
    "  kept[#kept + 1] = { x * 1, y * 2 }\n"
    "end\n"
    "for _, xy in ipairs(kept) do\n"
    "  assert((xy[1]:sum(2) / 50 - xy[2]:cast 'f32'):abs():sum():item() == 0)\n"
    "end\n";

/* A loop of so many batches that does nothing with them. */
static const char epoch[] = "for x, y in sets.wide:batches { size = 10, shuffle = true } do end\n";
static const char in_order[] = "for x, y in sets.wide:batches { size = 10 } do end\n";
enum { BATCHES = 30 };

typedef struct far {
    dc_rt *ctx;
    shim *dev;
    lua_State *L;
} far;

static bool open_far(far *f, const char *compile)
{
    dc_config cfg = DC_CONFIG_INIT;
    cfg.device = "cpu";
    cfg.compile = compile;
    f->L = luaL_newstate();
    luaL_openlibs(f->L);
    if (!CHECK_EQ(dc_open(&cfg, &f->ctx), DC_OK))
        return false;
    f->dev = shim_new(f->ctx->device);
    f->dev->ops.host = false;
    f->ctx->device = &f->dev->base;
    return CHECK_EQ(dc_attach(f->L, f->ctx), DC_OK) && CHECK(lua_run(f->L, setup));
}

static void test_counts(void)
{
    far f;
    if (!open_far(&f, NULL))
        return;
    CHECK(lua_run(f.L, epoch));
    const uint64_t runs = f.dev->runs, uploads = f.dev->uploads, downloads = f.dev->downloads,
                   copies = f.dev->copies, compiles = f.ctx->stats.compiles,
                   allocs = f.ctx->stats.allocs;
    CHECK(lua_run(f.L, epoch));
    CHECK_EQ(f.dev->runs, runs + BATCHES);
    CHECK_EQ(f.dev->uploads, uploads + 1); /* the order */
    CHECK_EQ(f.dev->copies, copies);
    CHECK_EQ(f.dev->downloads, downloads);
    CHECK_EQ(f.ctx->stats.compiles, compiles);
    CHECK_EQ(f.ctx->stats.allocs, allocs);
    CHECK(lua_run(f.L, in_order));
    CHECK_EQ(f.dev->runs, runs + BATCHES);
    CHECK_EQ(f.dev->copies, copies + 2 * BATCHES);
    lua_close(f.L);
}

/* Nothing compiles: the data come once, a batch is an upload. */
static void test_staged(void)
{
    far f;
    if (!open_far(&f, "off"))
        return;
    const uint64_t uploads = f.dev->uploads, downloads = f.dev->downloads, copies = f.dev->copies;
    CHECK(lua_run(f.L, epoch));
    CHECK_EQ(f.dev->runs, 0);
    CHECK_EQ(f.dev->uploads, uploads + 1 + 2 * BATCHES);
    CHECK_EQ(f.dev->downloads, downloads + 2);
    CHECK_EQ(f.dev->copies, copies);
    CHECK(lua_run(f.L, loops));
    CHECK(lua_run(f.L, together));
    lua_close(f.L);
}

/* A batch that fails is asked for again. */
static void test_failures(void)
{
    static const char fails[] =
        "local next = sets.wide:batches { size = 10, shuffle = true, seed = 3 }\n"
        "return pcall(next)\n";
    far f;
    if (!open_far(&f, NULL))
        return;
    CHECK(lua_run(f.L, "again = sets.wide:batches { size = 150, shuffle = true, seed = 3 }\n"
                       "again()\n"));
    f.dev->fail_run = true;
    CHECK(lua_run(f.L, "ok, why = pcall(again)\n"
                       "assert(not ok and tostring(why):find 'the fan stopped', why)\n"));
    f.dev->fail_run = false;
    CHECK(lua_run(f.L, "local x, y = again()\n"
                       "assert(#y:totable() == 150 and again() == nil)\n"));
    f.dev->fail_upload = true;
    CHECK(luaL_dostring(f.L, fails) != LUA_OK); /* the order does not arrive */
    f.dev->fail_upload = false;
    lua_settop(f.L, 0);
    CHECK(lua_run(f.L, loops));
    lua_close(f.L);
}

int main(void)
{
    far f;
    if (open_far(&f, NULL)) {
        CHECK(lua_run(f.L, loops));
        CHECK(lua_run(f.L, no_rows));
        CHECK(lua_run(f.L, together));
        lua_close(f.L);
    }
    test_counts();
    test_staged();
    test_failures();
    return t_done();
}
