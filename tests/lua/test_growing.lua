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
  refused("", dc.load, path, { a = small })
  os.remove(path)
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

