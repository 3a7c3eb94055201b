-- dc.scope: what it frees, what it keeps, and what use of a freed tensor is told.
local lu = require "luaunit"
local dc = require "deepc"

local function live()
  collectgarbage()
  collectgarbage()
  return dc.stats().bytes_live
end

-- Makes a tensor that stays reachable, so that only the scope frees it.
local held = {}
local function make(n)
  held[#held + 1] = dc.tensor { n, n }
  return held[#held]
end

local function is_closed(t)
  return tostring(t) == "(closed tensor)"
end

TestScope = {}

function TestScope:setUp()
  held = {}
end

function TestScope:test_frees_what_was_made_since()
  local before = make(1)
  local inside
  do
    local s <close> = dc.scope()
    inside = make(2)
    lu.assertStrMatches(tostring(s), "scope %(open, made at [^\n]*test_scope%.lua:%d+%)")
  end
  lu.assertTrue(is_closed(inside))
  lu.assertFalse(is_closed(before))
end

function TestScope:test_the_bytes_come_back()
  local before = live()
  do
    local s <close> = dc.scope()
    held.a = dc.full("f32[1000]", 2)
    held.b = held.a * 2
    lu.assertEquals(held.b:sum():item(), 4000)
    lu.assertTrue(s ~= nil)
  end
  lu.assertEquals(live(), before)
end

function TestScope:test_keep()
  local a, b, c
  do
    local s <close> = dc.scope()
    a, b, c = make(1), make(2), make(3)
    local x, y = s:keep(a, { list = { b } })
    lu.assertTrue(rawequal(x, a) and rawequal(y.list[1], b))
  end
  lu.assertEquals(a:totable(), { 1, 1 })
  lu.assertEquals(b:totable(), { 2, 2 })
  lu.assertTrue(is_closed(c))
end

function TestScope:test_keep_follows_cycles_once()
  local t = {}
  do
    local s <close> = dc.scope()
    t.self, t.x = t, make(1)
    s:keep(t)
  end
  lu.assertEquals(t.x:totable(), { 1, 1 })
end

function TestScope:test_close_returns_what_it_keeps()
  local function f()
    local s <close> = dc.scope()
    local a, b = make(1), make(2)
    return s:close(a + b)
  end
  lu.assertEquals(f():totable(), { 3, 3 })
  lu.assertTrue(is_closed(held[1]) and is_closed(held[2]))
end

function TestScope:test_cells_stay()
  local p
  do
    local s <close> = dc.scope()
    p = dc.param("f32[2]", make(5))
    lu.assertEquals(#p, 2)
    lu.assertTrue(s ~= nil)
  end
  lu.assertEquals(p:totable(), { 5, 5 })
end

function TestScope:test_use_after()
  local line = debug.getinfo(1, "l").currentline + 1
  local s = dc.scope()
  local x = make(1)
  s:close()
  local _, err = pcall(function() return x + 1 end)
  local first, second = tostring(err):match "test_scope%.lua:(%d+): .*test_scope%.lua:(%d+)"
  lu.assertEquals({ tonumber(first), tonumber(second) }, { line + 3, line })
  lu.assertEquals(tostring(err):gsub("[^%s]*test_scope%.lua:%d+", "AT"),
    "AT: add: the tensor was closed by its scope at AT\n  hint: s:keep(x) keeps one\n"
      .. "  [DC0107; deepc explain DC0107]")
end

function TestScope:test_nested()
  local a, b, c
  do
    local outer <close> = dc.scope()
    do
      local inner <close> = dc.scope()
      a, b = make(1), make(2)
      inner:keep(a)
    end
    lu.assertTrue(is_closed(b))
    lu.assertFalse(is_closed(a))
    c = make(3)
    do
      local inner <close> = dc.scope()
      local d = make(4)
      outer:keep(c, d) -- past both
      lu.assertTrue(inner ~= nil)
    end
  end
  lu.assertTrue(is_closed(a))
  lu.assertEquals(c:totable(), { 3, 3 })
  lu.assertEquals(held[4]:totable(), { 4, 4 })
end

function TestScope:test_closing_the_outer_one_closes_the_inner()
  local outer, inner = dc.scope(), dc.scope()
  local x = make(1)
  outer:close()
  lu.assertTrue(is_closed(x))
  lu.assertStrContains(tostring(inner), "scope (closed")
  lu.assertFalse(is_closed(make(2)))
  inner:close()
end

function TestScope:test_an_error_closes()
  local ok, err = pcall(function()
    local s <close> = dc.scope()
    make(1)
    error("stop " .. tostring(s ~= nil), 0)
  end)
  lu.assertFalse(ok)
  lu.assertEquals(err, "stop true")
  lu.assertTrue(is_closed(held[1]))
  lu.assertFalse(is_closed(make(2)))
end

TestScopeCall = {}

function TestScopeCall:setUp()
  held = {}
end

function TestScopeCall:test_keeps_its_results()
  local y, list, n = dc.scope(function(k)
    local a = make(k)
    return a * 2, { make(7) }, k
  end, 3)
  lu.assertEquals(y:totable(), { 6, 6 })
  lu.assertEquals(list[1]:totable(), { 7, 7 })
  lu.assertEquals(n, 3)
  lu.assertTrue(is_closed(held[1]))
  lu.assertEquals(select("#", dc.scope(function() end)), 0)
end

function TestScopeCall:test_an_error_closes_and_goes_on()
  local ok, err = pcall(dc.scope, function()
    make(1)
    error("stop", 0)
  end)
  lu.assertFalse(ok)
  lu.assertEquals(err, "stop")
  lu.assertTrue(is_closed(held[1]))
end

function TestScopeCall:test_may_yield()
  local step = coroutine.wrap(function()
    return dc.scope(function()
      local a = make(1)
      coroutine.yield()
      return a + make(2)
    end)
  end)
  step()
  local outside = make(5) -- of another coroutine, while the scope is open
  lu.assertEquals(step():totable(), { 3, 3 })
  lu.assertTrue(is_closed(held[1]))
  lu.assertEquals(outside:totable(), { 5, 5 })
end

function TestScopeCall:test_an_abandoned_coroutine_frees_nothing_of_others()
  do
    local step = coroutine.wrap(function()
      local s <close> = dc.scope()
      make(1)
      coroutine.yield(s)
    end)
    step()
  end
  collectgarbage()
  collectgarbage()
  lu.assertFalse(is_closed(make(2)))
end

TestScopeMistakes = {}

local function message(f, ...)
  local ok, err = pcall(f, ...)
  lu.assertFalse(ok)
  return (tostring(err):gsub("^[^\n]-test_scope%.lua:%d+: ", ""))
end

function TestScopeMistakes:test_texts()
  local s = dc.scope()
  lu.assertEquals(message(dc.scope, 3),
    "scope: a function is needed, or nothing, not the number 3\n  [DC0101; deepc explain DC0101]")
  lu.assertStrContains(message(s.keep, dc.tensor(1)), "keep: a scope is needed, not f32[]; s:keep(x) has a colon\n")
  lu.assertEquals(message(function() return s.free end), "a scope has no 'free'\n  [DC0110; deepc explain DC0110]")
  s:close()
  s:close()
  lu.assertEquals(message(s.keep, s, dc.tensor(1)), "keep: the scope is closed\n  [DC0107; deepc explain DC0107]")
end
