-- Calls inside calls, as scripts make them: finalizers that run in the middle of a call or a trace,
-- functions that call each other, results held over the next call.
local lu = require "luaunit"
local dc = require "deepc"
local check = require "tests.lua.check"

local fails = check.fails

-- Leaves something that calls g when it is collected.
local function litter(g)
  setmetatable({}, { __gc = g })
end

-- Runs body with a collector that is at work all the time.
local function restlessly(body)
  local pause, speed = collectgarbage("setpause", 0), collectgarbage("setstepmul", 10000)
  local ok, err = pcall(body)
  collectgarbage("setpause", pause)
  collectgarbage("setstepmul", speed)
  if not ok then error(err, 0) end
end

TestFinalizers = {}

-- The outer call's arguments are in place when the inner one of the same function comes along.
function TestFinalizers:test_the_same_function_during_a_call()
  local f = dc.fn("f(x: f32[4], s: f32[], c: f32[4]) -> f32[4], f32[]",
    function(x, s, c) return x * s + c, x:sum() end)
  local cell = dc.state("f32[4]", { 1, 2, 3, 4 })
  local inside, met, wrong = false, 0, 0
  local function finalize()
    if not inside then return end
    inside = false
    met = met + 1
    local y, sum = f({ 5, 5, 5, 5 }, 7, { 1, 1, 1, 1 })
    if y:totable()[1] ~= 36 or sum:item() ~= 20 then wrong = wrong + 1 end
    inside = true
  end
  restlessly(function()
    local i = 0
    repeat -- when the collector comes by is its own affair
      i = i + 1
      for _ = 1, 1 + i % 7 do litter(finalize) end
      local x = dc.full("f32[4]", i)
      inside = true
      local y, sum = f(x, 2, cell)
      inside = false
      lu.assertEquals(y:totable(), { 2 * i + 1, 2 * i + 2, 2 * i + 3, 2 * i + 4 })
      lu.assertEquals(sum:item(), 4 * i)
    until i >= 400 and met > 0 or i == 20000
  end)
  lu.assertEquals(wrong, 0)
  lu.assertTrue(met > 0, "no finalizer ran during a call")
end

function TestFinalizers:test_results_that_a_finalizer_holds()
  local f = dc.fn("f(x: f32[2]) -> f32[2]", function(x) return x + 1 end)
  local kept = {}
  restlessly(function()
    for i = 1, 100 do
      litter(function() kept[#kept + 1] = { i, f { i, i } } end)
      lu.assertEquals(f({ 0, i }):totable(), { 1, i + 1 })
    end
  end)
  collectgarbage()
  lu.assertEquals(#kept, 100)
  for _, k in ipairs(kept) do
    lu.assertEquals(k[2]:totable(), { k[1] + 1, k[1] + 1 })
  end
end

-- What a finalizer does while a body is traced is its own: values are computed, cells change now,
-- and nothing of it becomes part of the function.
function TestFinalizers:test_while_another_function_is_traced()
  local w, log = dc.state("f32[2]", 0), dc.state("f32[]", 0)
  local bump = dc.fn("bump(x: f32[2])", function(x)
    log:set(log + 1)
    w:set(w + x)
  end)
  local seen = {}
  local f = dc.fn("f(x: f32[2]) -> f32[2]", function(x)
    litter(function()
      bump { 1, 2 }
      w:set(w + 10)
      seen[#seen + 1] = { (dc.tensor { 1, 2 } * 3):totable(), log:item(), tostring(w) }
    end)
    collectgarbage()
    return x * 2
  end)
  lu.assertEquals(seen, { { { 3, 6 }, 1, tostring(w) } })
  lu.assertEquals(w:totable(), { 11, 12 })
  lu.assertEquals(f({ 1, 2 }):totable(), { 2, 4 })
  lu.assertEquals(w:totable(), { 11, 12 })
  lu.assertEquals(log:item(), 1)
end

function TestFinalizers:test_the_function_being_traced_and_new_ones()
  local f
  local got = {}
  f = dc.fn("f(x: f32[n]) -> f32[n]", function(x)
    if got.made == nil then
      got.made = false
      litter(function()
        got.y = f { 1, 2, 3 }
        got.made = dc.fn("g(v: f32[2]) -> f32[]", function(v)
          collectgarbage()
          return v:sum()
        end)
      end)
      collectgarbage()
    end
    return x + 1
  end)
  lu.assertEquals(f({ 1, 2, 3 }):totable(), { 2, 3, 4 })
  lu.assertEquals(got.y:totable(), { 2, 3, 4 })
  lu.assertEquals(got.made({ 1, 2 }):item(), 3)
  lu.assertEquals(f({ 5, 6, 7 }):totable(), { 6, 7, 8 })
end

-- A traced tensor is of no use to a finalizer; the body goes on as if nothing had been.
function TestFinalizers:test_traced_values_in_a_finalizer()
  local said = {}
  local f = dc.fn("f(x: f32[2]) -> f32[2]", function(x)
    litter(function()
      for _, g in ipairs { function() return x + 1 end, function() return x:totable() end } do
        local _, err = pcall(g)
        said[#said + 1] = tostring(err)
      end
    end)
    collectgarbage()
    return x - 1
  end)
  lu.assertEquals(#said, 2)
  lu.assertStrContains(said[1], "DC0603")
  lu.assertEquals(f({ 1, 2 }):totable(), { 0, 1 })
end

function TestFinalizers:test_an_error_in_a_finalizer()
  local f
  f = dc.fn("f(x: f32[2]) -> f32[2]", function(x)
    litter(function() error "oops" end)
    litter(function() f(1, 2, 3) end)
    collectgarbage()
    return x
  end)
  lu.assertEquals(f({ 1, 2 }):totable(), { 1, 2 })
end

-- Arguments and operands closed by a finalizer in the middle of what uses them.
function TestFinalizers:test_arguments_that_are_closed()
  local f = dc.fn("f(x: f32[2], y: f32[2]) -> f32[2]", function(x, y) return x + y end)
  local inside, closed = nil, 0
  restlessly(function()
    local i = 0
    repeat -- as above
      i = i + 1
      local x = dc.tensor { 1, 2 }
      for _ = 1, 10 + i % 7 do
        litter(function()
          if inside ~= nil then
            inside:close()
            inside = nil
            closed = closed + 1
          end
        end)
      end
      inside = x
      local ok, err = pcall(f, x, x)
      if not ok then lu.assertStrContains(tostring(err), "closed") end
      ok, err = pcall(function() return x * x end)
      if not ok then lu.assertStrContains(tostring(err), "closed") end
      inside = nil
    until i >= 1000 and closed > 0 or i == 20000
  end)
  lu.assertTrue(closed > 0, "nothing was closed in a call")
end

TestNested = {}

function TestNested:test_held_results_survive_the_next_call()
  local w = dc.state("f32[3]", 0)
  local f = dc.fn("f(x: f32[3]) -> f32[3], f32[3]", function(x)
    w:set(w + x)
    return w + 0, x * 2
  end)
  local held = {}
  for i = 1, 10 do
    held[i] = { f { i, 0, 1 } }
  end
  for i = 1, 10 do
    lu.assertEquals(held[i][1]:totable(), { i * (i + 1) / 2, 0, i })
    lu.assertEquals(held[i][2]:totable(), { 2 * i, 0, 2 })
  end
end

function TestNested:test_a_result_as_the_next_argument()
  local f = dc.fn("f(x: f32[3], y: f32[3]) -> f32[3]", function(x, y) return x + y end)
  local a = f({ 1, 1, 1 }, { 0, 0, 0 })
  local b = f(a, a)
  local c = f(b, a)
  lu.assertEquals(a:totable(), { 1, 1, 1 })
  lu.assertEquals(b:totable(), { 2, 2, 2 })
  lu.assertEquals(c:totable(), { 3, 3, 3 })
end

-- Two specialisations and two functions over one cell, in turn and inside each other.
function TestNested:test_functions_that_share_a_cell()
  local w = dc.state("f32[2]", 1)
  local add = dc.fn("add(x: f32[n, 2])", function(x) w:set(w + x:sum(1)) end)
  local double = dc.fn("double() -> f32[2]", function()
    w:set(w * 2)
    add { { 1, 1 } }
    return w
  end)
  add { { 1, 2 } }
  lu.assertEquals(double():totable(), { 5, 7 })
  add { { 1, 0 }, { 1, 0 } }
  lu.assertEquals(w:totable(), { 7, 7 })
  lu.assertEquals(double():totable(), { 15, 15 })
  fails("declared", add, { 1 })
  lu.assertEquals(w:totable(), { 15, 15 })
end

function TestNested:test_a_body_that_calls_itself()
  local f
  f = dc.fn("f(x: f32[n]) -> f32[]", function(x)
    local n = x.shape[1]
    if n == 1 then return x:sum() end
    return x:sum() + f(x[{ { 1, n - 1 } }])
  end)
  lu.assertEquals(f({ 1, 2, 3, 4 }):item(), 10 + 6 + 3 + 1)
end
