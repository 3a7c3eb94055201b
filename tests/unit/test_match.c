/*
 * The matcher with bounded work means what Lua's own does: random patterns and subjects, results and messages
 * compared. What takes too long is refused.
 */
#include "vm/match.h"

#include <lualib.h>

#include <stdlib.h>
#include <time.h>

#include "tests/t.h"
#include "tests/unit/lua_run.h"

static const char setup[] =
    "local pieces = { 'a', 'b', 'c', '.', '%a', '%d', '%W', '[ab]', '[^a]', '[a-c]', '[%a_]', "
    "'[]]', '[^]a]',\n"
    "  '[a-]', '(', ')', '()', '*', '+', '-', '?', '^', '$', '%1', '%2', '%bab', '%b()', '%f[%a]', "
    "'%f[^%z]', '%',\n"
    "  '[', ']', '%%', '\\0', '%S', '%x', '%0', '[%', '%f', '%b', 'aa', '(a*', '(.-)', '[%w%s]', "
    "'x', '\\255' }\n"
    "local letters = { 'a', 'b', 'c', 'ab', '(', ')', ' ', '1', '\\0', 'aaa', ']', '-', '%', "
    "'bab', '\\255', 'x' }\n"
    "local function pick(list, most)\n"
    "  local t = {}\n"
    "  for i = 1, math.random(0, most) do t[i] = list[math.random(#list)] end\n"
    "  return table.concat(t)\n"
    "end\n"
    "local swaps = { '<%0>', '%1', '%2%1', 'x', '%', '', '%%', '%9', 5, { a = 'A', ab = true, b = "
    "false, c = 7 },\n"
    "  function(a, b) return b or a and nil end, function() return {} end, { a = {} } }\n"
    "local function same(name, ...)\n"
    "  local a, b = table.pack(pcall(string[name], ...)), table.pack(pcall(safe[name], ...))\n"
    "  local equal = a.n == b.n\n"
    "  for i = 1, a.n do equal = equal and a[i] == b[i] end\n"
    "  if equal then return 1 end\n"
    "  print(name, string.format('%q %q', ...), select(3, ...))\n"
    "  print('', table.unpack(a, 1, a.n))\n"
    "  print('', table.unpack(b, 1, b.n))\n"
    "  return 0\n"
    "end\n"
    "local function all(f, s, p, init)\n"
    "  local t, n = {}, 0\n"
    "  for a, b, c in f(s, p, init) do\n"
    "    n = n + 1\n"
    "    t[#t + 1] = tostring(a) .. ',' .. tostring(b) .. ',' .. tostring(c)\n"
    "    if n > 100 then break end\n"
    "  end\n"
    "  return table.concat(t, ';')\n"
    "end\n"
    "string.all = function(...) return all(string.gmatch, ...) end\n"
    "safe.all = function(...) return all(safe.gmatch, ...) end\n"
    "function compare(n)\n"
    "  local good = 0\n"
    "  for _ = 1, n do\n"
    "    local s, p = pick(letters, 10), pick(pieces, 6)\n"
    "    local init = ({ nil, 1, 2, -1, -3, 0, 30, -30 })[math.random(9)]\n"
    "    good = good + same('find', s, p, init) + same('find', s, p, init, true) + same('match', "
    "s, p, init)\n"
    "      + same('gsub', s, p, swaps[math.random(#swaps)], ({ nil, 0, 1, 2 })[math.random(5)])\n"
    "      + same('all', s, p, init)\n"
    "  end\n"
    "  return good\n"
    "end\n";

static lua_State *open_state(void)
{
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    lua_newtable(L);
    dc_match_register(L);
    lua_setglobal(L, "safe");
    return L;
}

static void test_random(long seed)
{
    enum { MANY = 20000 };
    lua_State *L = open_state();
    printf("seed %ld\n", seed);
    CHECK(lua_run(L, setup));
    lua_getglobal(L, "math");
    lua_getfield(L, -1, "randomseed");
    lua_pushinteger(L, seed);
    lua_call(L, 1, 0);
    lua_getglobal(L, "compare");
    lua_pushinteger(L, MANY);
    if (CHECK(lua_pcall(L, 1, 1, 0) == LUA_OK))
        CHECK_EQ(lua_tointeger(L, -1), 5 * MANY);
    else
        printf("%s\n", lua_tostring(L, -1));
    lua_close(L);
}

/* Each would run for hours, or for minutes, in Lua's own. */
static void test_bounds(void)
{
    static const char *const calls[] = {
        "safe.find(('a'):rep(200), ('a-'):rep(12) .. 'b')",
        "safe.match(('a'):rep(2000), ('.-'):rep(20) .. 'b')",
        "safe.gsub(('a'):rep(100000), '.-.-.-b', '')",
        "safe.find(('a'):rep(100000), '.-b' .. ('.-c'):rep(3))",
        "safe.gsub(('a'):rep(5000), '[' .. ('b'):rep(1000000) .. ']', '')",
        "safe.find(('('):rep(300000), '%b()')",
        "safe.find(('ab'):rep(50000), '(.*)%1x')",
        "for _ in safe.gmatch(('a'):rep(3000), ('a-'):rep(12) .. 'b') do end",
    };
    lua_State *L = open_state();
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char code[300];
        const clock_t before = clock();
        snprintf(code, sizeof code,
                 "local ok, err = pcall(function() %s end)\n"
                 "assert(not ok and err:find('the pattern takes too long', 1, true), err)",
                 calls[i]);
        if (!CHECK(lua_run(L, code)) || !CHECK(clock() - before < 20 * CLOCKS_PER_SEC))
            printf("%s\n", calls[i]);
    }
    /* Much work that is worth it. */
    CHECK(lua_run(
        L, "local s = ('word and word, '):rep(100000)\n"
           "assert(select(2, safe.gsub(s, '%a+', '%0%0')) == 300000)\n"
           "assert(safe.find(s .. 'x', 'x') == #s + 1)\n"
           "assert(safe.find(('a'):rep(1000000), ('a'):rep(500000) .. 'b', 1, true) == nil)"));
    lua_close(L);
}

int main(int argc, char **argv)
{
    test_random(argc > 1 ? atol(argv[1]) : 20261122);
    test_bounds();
    return t_done();
}
