-- States whose first axis grows.
local lu = require "luaunit"
local dc = require "deepc"

TestGrowing = {}

local function refused(text, f, ...)
  local ok, err = pcall(f, ...)
  lu.assertFalse(ok)
  lu.assertStrContains(tostring(err), text)
end

local function appender(cache)
  return dc.fn("add(x: f32[n <= 16, 4]) -> f32[4]", function(x)
    cache:set(dc.concat({ cache, x }, 1))
    return cache:sum(1)
  end)
end

function TestGrowing:testGrowsByConcat()
  local cache = dc.state "f32[0 <= t <= 40, 4]"
  local add, n = appender(cache), 0
  local read = dc.fn("read() -> f32[4], f32[k, 4]", function() return cache:sum(1), cache * 2 end)
  for _, k in ipairs { 3, 1, 16, 5, 15 } do
    n = n + k
    lu.assertEquals(add(dc.full(("f32[%d, 4]"):format(k), k)):totable()[1], cache:sum(1):totable()[1])
    lu.assertEquals(#cache, n)
    local sum, twice = read()
    lu.assertEquals(twice:totable(), (cache * 2):totable())
    lu.assertEquals(sum:totable(), cache:sum(1):totable())
  end
  lu.assertEquals(#add:info(), 1)
  local before = cache:totable()
  refused("41 rows: a size from 0 to 40", add, dc.ones "f32[1, 4]")
  lu.assertEquals(cache:totable(), before)
  cache:set(dc.ones "f32[2, 4]")
  lu.assertEquals(read():totable(), { 2, 2, 2, 2 })
  lu.assertEquals(add(dc.ones "f32[1, 4]"):totable(), { 3, 3, 3, 3 })
end

function TestGrowing:testWindow()
  local w = dc.state("f32[3 <= t <= 4, 2]", { { 1, 2 }, { 3, 4 }, { 5, 6 } })
  local slide = dc.fn("slide(x: f32[n <= 4, 2]) -> f32[2]", function(x)
    w:set(dc.concat({ w, x }, 1)[{ { -4, -1 } }])
    return w:sum(1)
  end)
  lu.assertEquals(slide { { 7, 8 } }:totable(), { 16, 20 })
  lu.assertEquals(slide { { 1, 1 }, { 1, 1 }, { 2, 2 } }:totable(), { 11, 12 })
  lu.assertEquals(w:totable(), { { 7, 8 }, { 1, 1 }, { 1, 1 }, { 2, 2 } })
end

function TestGrowing:testSeveral()
  local a, b = dc.state "f32[0 <= t <= 8]", dc.state "f32[0 <= t <= 4]"
  refused("", dc.fn, "both() -> f32[n]", function() return a + b end)
  local f = dc.fn("f(x: f32[n <= 4]) -> f32[]", function(x)
    a:set(dc.concat({ a, x }, 1))
    b:set(x)
    return a:sum() + b:sum() * 10
  end)
  lu.assertEquals(f { 1, 2 }:item(), 33)
  lu.assertEquals(f { 1, 2, 3 }:item(), 69)
  lu.assertEquals({ #a, #b }, { 5, 3 })
  refused("9 rows", f, { 1, 2, 3, 4 })
  lu.assertEquals({ #a, #b }, { 5, 3 })
end

function TestGrowing:testLoopsPutAndGradient()
  local c, p = dc.state "f32[0 <= t <= 8]", dc.param("f32[]", 2)
  local f = dc.fn("f() -> f32[], f32[], f32[]", function()
    local s = dc.scan(function(s, v) return s * 0.5 + v, v end, dc.zeros "f32[]", c)
    local n = dc.fori(#c, function(_, k) return k + c:sum() end, dc.zeros "f32[]")
    return s, n, dc.grad((c * p):sum(), p)
  end)
  c:set { 1, 2, 3 }
  local s, n, g = f()
  lu.assertEquals({ s:item(), n:item(), g:item() }, { 4.25, 18, 6 })
  c:set { 4 }
  s, n, g = f()
  lu.assertEquals({ s:item(), n:item(), g:item() }, { 4, 4, 4 })
  local one = dc.state("f32[t <= 8]", { 5, 6 })
  local put = dc.fn("put(x: f32[])", function(x) one:set(one:put({ -1 }, x)) end)
  put(9)
  lu.assertEquals(one:totable(), { 5, 9 })
  refused("", dc.fn, "short(x: f32[])", function(x) c:set(c:put({ 3 }, x)) end)
end

function TestGrowing:testFile()
  local path = os.tmpname()
  local a, b = dc.state("f32[t <= 8]", { 1, 2, 3 }), dc.state "f32[t <= 8]"
  local small = dc.state "f32[t <= 2]"
  dc.save(path, { a = a })
  dc.load(path, { a = b })
  lu.assertEquals(b:totable(), { 1, 2, 3 })
  small:set { 7, 8 }
  refused("axis 1 has from 1 to 2", dc.load, path, { a = small })
  lu.assertEquals(small:totable(), { 7, 8 })
  os.remove(path)
end

-- A state of which only the size is used goes with a call, too.
function TestGrowing:testSizeAlone()
  local c = dc.state("f32[0 <= t <= 8]", { 1, 2, 3 })
  local f = dc.fn("f() -> f32[k], f32[]", function()
    local twice = dc.fori(2, function(_, a) return a + dc.iota(c:size(1)):sum { dtype = "i32" } end, dc.zeros "i32[]")
    return dc.iota(#c):cast "f32", twice / 2
  end)
  local i, half = f()
  lu.assertEquals({ i:totable(), half:item() }, { { 0, 1, 2 }, 3 })
  c:set { 1 }
  i, half = f()
  lu.assertEquals({ i:totable(), half:item() }, { { 0 }, 0 })
end

function TestGrowing:testTwiceInACall()
  local c = dc.state("f32[0 <= t <= 8]", { 1 })
  local f = dc.fn("f(x: f32[n <= 3]) -> f32[], f32[]", function(x)
    c:set(dc.concat({ c, x }, 1))
    local a = c:sum()
    c:set(dc.concat({ c, x * 10, c }, 1))
    return a, c:sum()
  end)
  local a, b = f { 2 }
  lu.assertEquals({ a:item(), b:item(), c:totable() }, { 3, 26, { 1, 2, 20, 1, 2 } })
  refused("13 rows: a size from 0 to 8", f, { 1 })
  lu.assertEquals(c:totable(), { 1, 2, 20, 1, 2 })
  local g = dc.fn("g(x: f32[n <= 20]) -> f32[]", function(x) -- more than there is room for, for a while
    c:set(dc.concat({ c, x }, 1))
    c:set(c[{ { -1, -1 } }])
    return c:sum()
  end)
  lu.assertEquals({ g(dc.full("f32[20]", 7)):item(), c:totable() }, { 7, { 7 } })
end

function TestGrowing:testTwoFunctions()
  local c = dc.state "f32[1 <= t <= 8]"
  local add = dc.fn("add(x: f32[n <= 4])", function(x) c:set(dc.concat({ c, x }, 1)) end)
  local drop = dc.fn("drop(k: f32[]) -> f32[m]", function(k)
    c:set(c[{ { 2, -1 } }] * k)
    return c
  end)
  add { 1, 2, 3 }
  lu.assertEquals(drop(2):totable(), { 2, 4, 6 })
  add { 5 }
  lu.assertEquals(drop(1):totable(), { 4, 6, 5 })
  drop(1)
  drop(1)
  refused("0 rows: a size from 1 to 8", drop, 1)
  lu.assertEquals(c:totable(), { 5 })
end

function TestGrowing:testSwap()
  local a, b = dc.state("f32[0 <= t <= 4]", { 1, 2 }), dc.state("f32[0 <= t <= 6]", { 3, 4, 5 })
  local swap = dc.fn("swap()", function()
    local x = a * 1
    a:set(b)
    b:set(x)
  end)
  swap()
  lu.assertEquals({ a:totable(), b:totable() }, { { 3, 4, 5 }, { 1, 2 } })
  b:set { 1, 2, 3, 4, 5 }
  refused("5 rows", swap)
  lu.assertEquals({ a:totable(), b:totable() }, { { 3, 4, 5 }, { 1, 2, 3, 4, 5 } })
end

function TestGrowing:testArguments()
  local c = dc.state("f32[0 <= t <= 8]", { 1, 2 })
  local inner = dc.fn("inner(x: f32[n], y: f32[n]) -> f32[n]", function(x, y) return x + y * 2 end)
  local f = dc.fn("f() -> f32[k], f32[k]", function()
    local y = inner(c, c)
    c:set(c * 3)
    return y, inner(c, c)
  end)
  local before, after = f()
  lu.assertEquals({ before:totable(), after:totable(), c:totable() }, { { 3, 6 }, { 9, 18 }, { 3, 6 } })
  lu.assertEquals(inner(c, c):totable(), { 9, 18 })
  local join = dc.fn("join(x: f32[n <= 8], y: f32[m <= 4]) -> f32[]", function(x, y)
    c:set(dc.concat({ x, y }, 1))
    return c:sum()
  end)
  lu.assertEquals({ join(c, { 5 }):item(), join(c, c):item(), #c }, { 14, 28, 6 })
  refused("m = 6", join, c, c)
end

function TestGrowing:testBranchAndMap()
  local c = dc.state("f32[0 <= t <= 8]", { 1, 2, 3 })
  local f = dc.fn("f(p: bool[], x: f32[4]) -> f32[], f32[4]", function(p, x)
    dc.cond(p, function()
      c:set(c * 2)
      return c:sum()
    end, function() return c:max() end)
    return c:sum(), dc.vmap(function(v) return (v * c):sum() end)(x)
  end)
  local sum, each = f(true, { 1, 2, 3, 4 })
  lu.assertEquals({ sum:item(), each:totable() }, { 12, { 12, 24, 36, 48 } })
  c:set { 1 }
  lu.assertEquals(f(false, { 1, 2, 3, 4 }):item(), 1)
end

-- What was read before keeps its value, whatever the state becomes.
function TestGrowing:testViews()
  local m = dc.state("f32[0 <= t <= 8, 2]", { { 1, 2 }, { 3, 4 }, { 5, 6 } })
  local first, all, two = m[1], m * 1, m[{ { 2, 3 } }]
  local add = dc.fn("add(x: f32[n <= 3, 2])", function(x) m:set(dc.concat({ m, x }, 1)) end)
  add { { 9, 9 } }
  local grown = m:clone()
  m:set { { 0, 0 } }
  lu.assertEquals({ first:totable(), #all, two:totable() }, { { 1, 2 }, 3, { { 3, 4 }, { 5, 6 } } })
  lu.assertEquals({ grown:totable()[4], m:totable(), m.shape }, { { 9, 9 }, { { 0, 0 } }, { 1, 2 } })
  local c = dc.state("f32[0 <= t <= 8]", { 1, 2, 3, 4 })
  c:set(c[{ { 2, 3 } }])
  lu.assertEquals(c:totable(), { 2, 3 })
  c:set(c[{ { 1, 1 } }])
  lu.assertEquals({ c:totable(), tostring(c) }, { { 2 }, "  2.0\nstate f32[1]" })
  c:set(5)
  lu.assertEquals(c:totable(), { 5 })
end

-- An expression is about the value that the state had, and so is its gradient.
function TestGrowing:testLazyGradient()
  local c = dc.state("f32[0 <= t <= 8]", { 1, 2, 3 })
  local loss = (c * c):sum()
  c:set { 4 }
  lu.assertEquals({ dc.grad(loss, c):totable(), loss:item() }, { { 2, 4, 6 }, 14 })
  lu.assertEquals(dc.grad((c * c):sum(), c):totable(), { 8 })
end

-- A check that fails, and an error in Lua, change nothing.
function TestGrowing:testFailedCalls()
  local c = dc.state("f32[0 <= t <= 8]", { 1, 2 })
  local f = dc.fn("f(x: f32[n <= 3], p: i32[]) -> f32[]", function(x, p)
    c:set(dc.concat({ c, x }, 1))
    return c:take(p:reshape(1), 1)[1]
  end)
  lu.assertEquals(f({ 3 }, 2):item(), 3)
  refused("index 9 outside 0..3", f, { 3 }, 9)
  lu.assertEquals(c:totable(), { 1, 2, 3 })
  lu.assertEquals(f({ 4 }, 3):item(), 4)
end

-- Rows that are added are written where they belong; the others stay where they are.
function TestGrowing:testInPlace()
  if os.getenv "DEEPC_DEVICE" == "eval" then
    return
  end
  local c = dc.state "f32[0 <= t <= 512, 64]"
  local add = dc.fn("add(x: f32[n <= 16, 64]) -> f32[64]", function(x)
    c:set(dc.concat({ c, x }, 1))
    return c:sum(1)
  end)
  local put = dc.fn("put(p: i32[], row: f32[64])", function(p, row) c:set(c:put(p, row)) end)
  add(dc.ones "f32[2, 64]")
  put(1, dc.full("f32[64]", 3))
  lu.assertEquals(add(dc.ones "f32[1, 64]"):totable()[64], 5)
  lu.assertStrContains(add:explain(), "what changes alone")
  lu.assertStrContains(put:explain(), "what changes alone")
  refused("outside 0..2", put, 3, dc.ones "f32[64]")
end

-- Variables of states that are gone are used again: there are 65536.
function TestGrowing:testManyStates()
  for i = 1, 70000 do
    local s <close> = dc.state "f32[0 <= t <= 8]"
    if i % 10000 == 0 then
      local f = dc.fn("f(x: f32[n <= 2]) -> f32[]", function(x)
        s:set(dc.concat({ s, x }, 1))
        return s:sum()
      end)
      lu.assertEquals({ f({ i }):item(), #s }, { i, 1 })
    end
  end
end

function TestGrowing:testMadeInside()
  local f = dc.fn("f(x: f32[n <= 2]) -> f32[k]", function(x)
    local s = dc.state "f32[0 <= t <= 4]"
    s:set(dc.concat({ s, x }, 1))
    return s
  end)
  f { 1 }
  lu.assertEquals(f({ 2, 3 }):totable(), { 1, 2, 3 })
  refused("5 rows", f, { 3, 4 })
  local g = dc.fn("g(x: f32[n]) -> f32[]", function(x)
    return dc.state(#x == 1 and "f32[1 <= t <= 4]" or "f32[0 <= t <= 4]"):sum() + x:sum()
  end)
  g { 1 }
  refused("another range of sizes", g, { 1, 2 })
end

-- A finalizer in the middle of a body sees what the state is, not what it becomes.
function TestGrowing:testFinalizer()
  local c = dc.state("f32[0 <= t <= 8]", { 1, 2 })
  local f = dc.fn("f(x: f32[n <= 3]) -> f32[k]", function(x)
    c:set(dc.concat({ c, x }, 1))
    setmetatable({}, { __gc = function() rawset(_G, "seen", { #c, c.shape[1], c:sum():item() }) end })
    collectgarbage()
    return c
  end)
  lu.assertEquals(rawget(_G, "seen"), { 2, 2, 3 })
  lu.assertEquals(f({ 3 }):totable(), { 1, 2, 3 })
  rawset(_G, "seen", nil)
end

function TestGrowing:testTypes()
  local a, b = dc.state "i32[0 <= t <= 4, 3]", dc.state "bool[0 <= t <= 4]"
  local h = dc.state("f16[rows <= 5, 2]", 2)
  local f = dc.fn("f(x: i32[n <= 2, 3]) -> i32[3]", function(x)
    a:set(dc.concat({ a, x }, 1))
    b:set(a:sum(2):gt(5))
    h:set(dc.concat({ h, a[{ {}, { 1, 2 } }]:cast "f16" }, 1))
    return a:sum { axis = 1, dtype = "i32" }
  end)
  f { { 1, 2, 3 } }
  lu.assertEquals(f({ { 4, 5, 6 } }):totable(), { 5, 7, 9 })
  lu.assertEquals({ b:totable(), h:totable() }, { { true, true }, { { 2, 2 }, { 1, 2 }, { 1, 2 }, { 4, 5 } } })
end

function TestGrowing:testDeclarations()
  lu.assertEquals(dc.state("f32[t<=8]", 5):totable(), { 5 })
  lu.assertEquals(#dc.state("f32[2 <= t <= 8]", dc.iota "f32[7]"), 7)
  lu.assertEquals(dc.state("f32[0 <= t <= 8, 2]", {}).shape, { 0, 2 })
  refused("numbers", dc.state, "f32[t <= 8, t]")
  refused("numbers", dc.state, "f32[t <= 8, n]")
  refused("one type", dc.state, "{f32[t <= 3]}")
  refused("no size from 5 to 4", dc.state, "f32[5 <= t <= 4]")
  refused("9 rows", dc.state, "f32[2 <= t <= 8]", dc.ones "f32[9]")
  refused("1 rows", dc.state, "f32[2 <= t <= 8]", { 1 })
  refused("was set to i32[3]", dc.state, "f32[2 <= t <= 8]", dc.ones "i32[3]")
end

function TestGrowing:testWays()
  local c = dc.state "f32[0 <= t <= 8]"
  local f = dc.fn("f(x: f32[n <= 3])", function(x) c:set(dc.concat({ c, x }, 1)) end)
  refused("not started as a job", f.start, f, { 1 })
  refused("'f' has a state that grows", f.export, f, os.tmpname())
  dc.check_numbers(true)
  refused("do not look at functions with a state that grows", f, { 1 })
  dc.check_numbers(false)
  lu.assertEquals(#c, 0)
end

function TestGrowing:testRefused()
  refused("only the first axis", dc.state, "f32[4, t <= 3]")
  refused("only the first axis", dc.state, "f32[t <= 3, s <= 3]")
  refused("fixed sizes", dc.param, "f32[t <= 3]")
  local c = dc.state "f32[t <= 3, 2]"
  refused("4 rows", c.set, c, dc.ones "f32[4, 2]")
  refused("0 rows", c.set, c, dc.ones "f32[0, 2]")
  refused("", c.set, c, dc.ones "f32[2, 3]")
  refused("4 rows", dc.fn, "f()", function() c:set(dc.ones "f32[4, 2]") end)
  refused("", dc.fn, "f()", function() c:set(dc.ones "f32[2, 3]") end)
  refused("", dc.fn, "f()", function()
    dc.fori(3, function(_, k) c:set(dc.concat({ c, c }, 1)); return k end, dc.zeros "f32[]")
  end)
  lu.assertEquals(#c, 1)
end


-- What a state is set to and gives back are two values: each is right, also where the other is changed afterwards.
function TestGrowing:testIsReturned()
  local function start()
    local s = dc.state "f32[1 <= t <= 1000, 2]"
    s:set(dc.iota("f32[3, 2]", 1))
    return s
  end
  local x = dc.ones "f32[2]"
  local put, joined, looped, twice = start(), start(), start(), start()
  local by_put = dc.fn("put(a: f32[2])", function(a)
    put:set(put:put({ 1 }, a))
    return put
  end)
  local by_concat = dc.fn("joined(a: f32[2])", function(a)
    joined:set(dc.concat({ joined, a:reshape(1, 2) }, 1))
    local y = joined * 1
    joined:set(joined:put({ 1 }, 9))
    return y, joined, joined
  end)
  local by_loop = dc.fn("looped(a: f32[2])", function(a)
    dc.fori(3, function(_, c)
      looped:set(looped:put({ 1 }, looped[1] + a))
      return c
    end, a)
    return looped, looped:sum(1)
  end)
  local by_half = dc.fn("half(a: f32[2])", function(a)
    twice:set(twice * 0.5 + a)
    return twice, twice
  end)
  local y = by_put(x)
  by_put(x * 7)
  lu.assertEquals(y:totable(), { { 1, 1 }, { 1, 1 }, { 2, 2 } })
  lu.assertEquals(put:totable(), { { 7, 7 }, { 1, 1 }, { 2, 2 } })
  local a, b, c = by_concat(x)
  by_concat(x * 5)
  lu.assertEquals(a:totable(), { { 0, 0 }, { 1, 1 }, { 2, 2 }, { 1, 1 } })
  lu.assertEquals(b:totable(), { { 9, 9 }, { 1, 1 }, { 2, 2 }, { 1, 1 } })
  lu.assertEquals(c:totable(), b:totable())
  lu.assertEquals(joined:totable(), { { 9, 9 }, { 1, 1 }, { 2, 2 }, { 1, 1 }, { 5, 5 } })
  local d, sum = by_loop(x)
  lu.assertEquals({ d:totable(), sum:totable() }, { { { 3, 3 }, { 1, 1 }, { 2, 2 } }, { 6, 6 } })
  local e, g = by_half(x)
  by_half(x)
  lu.assertEquals(e:totable(), { { 1, 1 }, { 1.5, 1.5 }, { 2, 2 } })
  lu.assertEquals(g:totable(), e:totable())
end
