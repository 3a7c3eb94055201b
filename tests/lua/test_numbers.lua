-- dc.check_numbers: the operation that makes an infinity or NaN is named, and nothing has changed.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"

local function failure(f, ...)
  local ok, err = pcall(f, ...)
  lu.assertFalse(ok)
  lu.assertEquals(err.code, "DC0702", tostring(err))
  return err
end

-- The place so many lines behind the caller's.
local function line_here(more)
  local here = debug.getinfo(2, "Sl")
  return ("%s:%d"):format(here.short_src, here.currentline + more)
end

TestNumbers = {}

function TestNumbers:setUp()
  self.before = dc.check_numbers(true)
end

function TestNumbers:tearDown()
  dc.check_numbers(self.before)
end

function TestNumbers:test_it_tells_whether_it_was_on()
  lu.assertTrue(dc.check_numbers())
  lu.assertTrue(dc.check_numbers(false))
  lu.assertFalse(dc.check_numbers(true))
  lu.assertTrue(dc.check_numbers())
end

function TestNumbers:test_line_operation_and_operands()
  local line = line_here(2)
  local f = dc.fn("f(x: f32[2, 3]) -> f32[]", function(x)
    local y = (x - 1):log()
    return (y * 2):sum()
  end)
  lu.assertEquals(f({ { 2, 2, 2 }, { 2, 2, 2 } }):item(), 0)
  local err = failure(f, { { 2, 2, 2 }, { 2, 1, 1 } })
  lu.assertEquals(err.op, "log")
  lu.assertEquals(err.at, line)
  lu.assertStrContains(err.message, "-inf at [2, 2], 2 of 6 elements, of f32[2, 3] of 0 to 1; call 2 of 'f'")
  lu.assertEquals(f({ { 2, 2, 2 }, { 2, 2, 2 } }):item(), 0)
end

function TestNumbers:test_cells_have_their_old_values()
  dc.seed(3)
  local net = nn.Sequential { nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1) }
  local opt = optim.Adam(net:parameters(), { lr = 1e-2 })
  local step = dc.fn("step(x: f32[8, 4], y: f32[8, 1], k: f32[]) -> f32[]", function(x, y, k)
    local loss = ((net(x) * k - y) ^ 2):mean()
    opt:step(loss)
    return loss
  end)
  local x, y = dc.ones "f32[8, 4]", dc.ones "f32[8, 1]"
  for _ = 1, 3 do step(x, y, 1) end
  local function state()
    local all = {}
    for _, named in ipairs(opt:named_cells()) do all[named[1]] = named[2]:totable() end
    for _, named in ipairs(net:named_cells()) do all["net." .. named[1]] = named[2]:totable() end
    return all
  end
  local before = state()
  local err = failure(step, x, y, 1e38)
  lu.assertNotNil(err.at)
  lu.assertEquals(state(), before)
  local good = step(x, y, 1):item() -- as if the other call had not been: the generator, too
  lu.assertTrue(good == good and good < math.huge)
end

function TestNumbers:test_layer_and_gradient()
  local net = nn.Sequential { nn.Linear(2, 2), nn.Linear(2, 1) }
  net[1].weight:set(1e20)
  net[2].weight:set(1e20)
  local f = dc.fn("f(x: f32[1, 2]) -> f32[]", function(x) return net(x):sum() end)
  local err = failure(f, { { 1, 1 } })
  lu.assertStrContains(err.path, "net.2 (nn.Linear 2 -> 1)")
  local line = line_here(2)
  local slope = dc.fn("slope(x: f32[2]) -> f32[2]", function(x)
    local length = (x * x):sum():sqrt()
    return dc.grad(length, { x })[1]
  end)
  err = failure(slope, { 0, 0 })
  lu.assertEquals(err.at, line)
end

function TestNumbers:test_what_no_operation_makes()
  local mask = dc.tensor({ { true, false, true }, { true, true, true } }, "bool")
  local f = dc.fn("f(x: f32[2, 3]) -> f32[2, 3], f32[2, 3]", function(x)
    local masked = x + dc.where(mask, 0, -math.huge)
    return masked:softmax(2), masked
  end)
  lu.assertEquals(f({ { 1, 1, 1 }, { 0, 0, 0 } }):totable()[1], { 0.5, 0, 0.5 })
  local g = dc.fn("g(x: f32[2]) -> f32[2]", function(x) return x * 2 end)
  lu.assertEquals(g({ 1, math.huge }):totable(), { 2, math.huge })
  local nan = g({ 1, 0 / 0 }):totable()[2]
  lu.assertTrue(nan ~= nan)
  failure(g, { 1, 3e38 })                                 -- of a finite one, now
  lu.assertEquals((dc.tensor { 1, math.huge } * 2):totable(), { 2, math.huge })
end

function TestNumbers:test_what_is_taken_out_again()
  local f = dc.fn("f(x: f32[2]) -> f32[2]", function(x) return dc.where(x:gt(0), x:log(), 0) end)
  lu.assertEquals(f({ 0, 1 }):totable(), { 0, 0 })
end

function TestNumbers:test_nan_of_infinities()
  local f = dc.fn("f(x: f32[2]) -> f32[2]", function(x) return x - x:max() end)
  local err = failure(f, { -math.huge, -math.huge })
  lu.assertEquals(err.op, "sub")
end

function TestNumbers:test_outside_typed_functions()
  local a = dc.tensor { 1, 0 }
  local b = a + 1
  local c, line = b / a, line_here(0)
  local err = failure(function() return c:sum():item() end)
  lu.assertEquals({ err.op, err.at }, { "div", line })
  lu.assertEquals(b:totable(), { 2, 1 })
  local large = dc.zeros "f32[100000]" -- compiled
  err = failure(function() return ((large + 2) / large):sum():item() end)
  lu.assertEquals(err.op, "div")
  -- the same structure on another line
  local other
  other, line = (a + 1) / a, line_here(0)
  lu.assertEquals(failure(function() return other:sum():item() end).at, line)
end

function TestNumbers:test_dtypes()
  for _, row in ipairs { { "f16", 300 }, { "bf16", 1e20 }, { "f32", 1e20 }, { "f64", 1e200 } } do
    local t, x = row[1], row[2]
    local f = dc.fn(("f(v: %s[3]) -> %s[3]"):format(t, t), function(v) return v * v end)
    local err = failure(f, dc.tensor({ 1, x, 2 }, t))
    lu.assertEquals(err.op, "mul")
    lu.assertStrContains(err.message, "inf at 2, 1 of 3 elements")
  end
end

-- The operation in the body is told, and the first element where it made one.
function TestNumbers:test_in_loops_and_branches()
  local line = line_here(3)
  local f = dc.fn("f(xs: f32[200]) -> f32[]", function(xs)
    return (dc.scan(function(c, x)
      return c + x:log()
    end, 0, xs))
  end)
  local x = dc.ones "f32[200]"
  lu.assertEquals(f(x):item(), 0)
  local err = failure(f, x:put({ 151 }, 0))
  lu.assertEquals({ err.op, err.at }, { "log", line })
  lu.assertStrContains(err.message, "element 150 of a loop")
  -- what comes in by an operand was made before
  local g = dc.fn("g(xs: f32[200], k: f32[]) -> f32[]", function(xs, k)
    local y = 1 / k
    return (dc.scan(function(c, e) return c + e * y end, 0, xs, { reverse = true }))
  end)
  lu.assertEquals(failure(g, x, 0).op, "div")
  -- nested, on a side, at the second element of the outer loop
  local h = dc.fn("h(xs: f32[100, 100]) -> f32[100]", function(xs)
    return dc.map(function(row)
      return dc.cond(row:min():gt(0), function() return row:sum() end, function()
        return (dc.scan(function(c, e) return c + e:sqrt() end, 0, row))
      end)
    end, xs)
  end)
  lu.assertEquals(h(dc.ones "f32[100, 100]"):totable()[2], 100)
  err = failure(h, dc.ones "f32[100, 100]":put({ 2, 7 }, -1))
  lu.assertEquals(err.op, "sqrt")
  lu.assertStrContains(err.message, "element 1 of a loop")
  -- an infinity that the body takes out again
  local max = dc.fn("max(xs: f32[200]) -> f32[]", function(xs)
    return (dc.scan(function(c, e) return c:maximum((e / 0):minimum(e)) end, -1 / 0, xs))
  end)
  lu.assertEquals(max(x):item(), 1)
end

function TestNumbers:test_in_slices()
  local total = dc.state "f32[]"
  local f = dc.fn("f(x: f32[2]) -> f32[2]", function(x)
    total:set(total + 1)
    return x:log()
  end)
  local job = f:start { 1, 0 }
  lu.assertEquals(failure(function() return job:result() end).op, "log")
  lu.assertEquals(total:item(), 0)
  lu.assertEquals(f({ 1, 1 }):totable(), { 0, 0 })
  lu.assertEquals(total:item(), 1)
end

function TestNumbers:test_off_it_costs_no_interpreter()
  dc.check_numbers(false)
  local f = dc.fn("f(x: f32[2]) -> f32[2]", function(x) return x:log() end)
  local before = dc.stats().interpreted
  f { 0, 1 }
  lu.assertEquals(dc.stats().interpreted, before)
end
