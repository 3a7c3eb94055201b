-- Many slices, and many values joined: gradients and results are right however the parts lie, and what is
-- launched, compiled and moved grows with their number, not with its square.
local lu = require "luaunit"
local dc = require "deepc"
local check = require "tests.lua.check"

local device = os.getenv "DEEPC_DEVICE" or "cpu"
local on_eval = device == "eval"

TestSlices = {}

-- The gradient of the sum of n * part(n)^2 is 2 x n summed over the parts that an element is in. A part: { first
-- row, last row, step, first column, last column, step }.
local function squares(rows, columns, parts, name)
  local weight = {}
  for i = 1, rows do
    weight[i] = {}
    for k = 1, columns do
      weight[i][k] = 0
    end
  end
  for n, p in ipairs(parts) do
    for i = p[1], p[2], p[3] do
      for k = p[4], p[5], p[6] do
        weight[i][k] = weight[i][k] + 2 * n
      end
    end
  end
  local f = dc.fn(("f(x: f32[%d, %d]) -> f32[%d, %d]"):format(rows, columns, rows, columns), function(x)
    local loss = 0
    for n, p in ipairs(parts) do
      loss = loss + x[{ { p[1], p[2], p[3] }, { p[4], p[5], p[6] } }]:square():sum() * n
    end
    return dc.grad(loss, x)
  end)
  local x = dc.rand(("f32[%d, %d]"):format(rows, columns))
  check.close(f(x):totable(), (x * dc.tensor(weight)):totable(), 1e-3, name)
  return f:info()[1]
end

local function parts(n, make)
  local p = {}
  for i = 1, n do
    p[i] = make(i)
  end
  return p
end

function TestSlices:test_gradients()
  squares(20, 6, parts(20, function(i) return { i, i, 1, 1, 6, 1 } end), "rows")
  squares(6, 20, parts(20, function(i) return { 1, 6, 1, i, i, 1 } end), "columns")
  squares(6, 20, parts(20, function(i) return { 1, 6, 1, 21 - i, 21 - i, 1 } end), "columns from the end")
  squares(6, 40, parts(12, function(i) return { 1, 6, 1, 3 * i, 3 * i + 1, 1 } end), "columns with gaps")
  squares(6, 40, parts(10, function(i) return { 1, 6, 1, i, 40, 10 } end), "steps")
  squares(6, 40, parts(9, function(i) return { 1, 6, 1, i, 40, 10 } end), "steps, one left out")
  squares(6, 40, parts(38, function(i) return { 1, 6, 1, i, i + 2, 1 } end), "windows")
  squares(6, 20, parts(20, function(i) return { 1, 6, 1, 1, i, 1 } end), "all that came before")
  squares(20, 20, parts(20, function(i) return { i, i, 1, i, i, 1 } end), "a diagonal")
  squares(24, 20, parts(20, function(i) return { i, i + 3, 2, i, i, 1 } end), "steps down a diagonal")
  squares(12, 20, parts(20, function(i)
    return { 3 * (i % 4) + 1, 3 * (i % 4) + 3, 1, 4 * (i // 4 % 5) + 1, 4 * (i // 4 % 5) + 4, 1 }
  end), "tiles")
  squares(12, 20, parts(20, function(i)
    return { 3 * (i % 4) + 1, 3 * (i % 4) + 2, 1, 4 * (i // 4 % 5) + 1, 4 * (i // 4 % 5) + 3, 1 }
  end), "tiles with gaps")
end

local types = { "f32", "f16", "bf16", "f64", "i32", "u8", "i64", "bool" }

-- n parts of x, which differ in size, joined again along each axis.
function TestSlices:test_concat()
  for _, t in ipairs(types) do
    for axis = 1, 3 do
      local f = dc.fn(("f(x: %s[15, 15, 15]) -> %s[15, 15, 15]"):format(t, t), function(x)
        local p = { x:split({ 1, 2, 1, 1, 2, 1, 1, 2, 1, 1, 1, 1 }, axis) }
        for i = 1, #p do
          p[i] = p[i]:flip(axis % 3 + 1)
        end
        return dc.concat(p, axis)
      end)
      local x = (dc.rand "f32[15, 15, 15]" * 3):cast(t)
      lu.assertEquals(f(x):totable(), x:flip(axis % 3 + 1):totable(), t .. " along axis " .. axis)
    end
  end
end

function TestSlices:test_stack()
  for axis = 1, 3 do
    local f = dc.fn("f(x: f32[5, 7]) -> f32[" .. ({ "11, 5, 7", "5, 11, 7", "5, 7, 11" })[axis] .. "]", function(x)
      local p = {}
      for i = 1, 11 do
        p[i] = i == 3 and x or x * i
      end
      p[7] = p[2]
      return dc.stack(p, axis)
    end)
    local x = dc.rand "f32[5, 7]"
    local y = f(x)
    for i = 1, 11 do
      local part = y:slice { [axis] = { i, i } }:reshape(5, 7)
      lu.assertEquals(part:totable(), (i == 3 and x or x * (i == 7 and 2 or i)):totable())
    end
  end
end

-- A zero keeps its sign where values are only put beside each other, and sums of gradients begin with +0.
function TestSlices:test_signs_of_zeros()
  local f = dc.fn("f(x: f32[12]) -> f32[12], f32[12]", function(x)
    local p, loss = { x:split(12) }, 0
    for i = 1, 12 do
      loss = loss + (p[i] * -0.0):sum()
    end
    return dc.concat(p), dc.grad(loss, x)
  end)
  local joined, grad = f(-dc.zeros "f32[12]")
  for i = 1, 12 do
    lu.assertEquals(1 / joined[i]:item(), -math.huge)
    lu.assertEquals(1 / grad[i]:item(), math.huge)
  end
end

-- A join of what products and rows give, read whole, in part, and set.
function TestSlices:test_join_between_kernels()
  local state = dc.state "f32[4, 48]"
  local f = dc.fn("f(x: f32[4, 4]) -> f32[4, 48], f32[4]", function(x)
    local p, y = {}, x
    for i = 1, 12 do
      y = i % 2 == 0 and y:matmul(x):tanh() or y:softmax(2)
      p[i] = y
    end
    local all = dc.concat(p, 2)
    local mean = (state * 0.5):sum(2)
    state:set(all * 1)
    return all:exp():log(), mean + all[{ {}, 5 }]
  end)
  local x = dc.rand "f32[4, 4]"
  local p, y = {}, x
  for i = 1, 12 do
    y = i % 2 == 0 and y:matmul(x):tanh() or y:softmax(2)
    p[i] = y
  end
  local want, before = dc.concat(p, 2), dc.zeros "f32[4]"
  for _ = 1, 2 do
    local got, column = f(x)
    check.close(got:totable(), want:totable(), 1e-5)
    check.close(column:totable(), (before + want[{ {}, 5 }]):totable(), 1e-5)
    check.close(state:totable(), want:totable(), 1e-5)
    before = want:sum(2) * 0.5
  end
end

local function recurrence(x, T)
  local h = dc.zeros "f32[16]"
  for i = 1, T do
    h = (h + x[{ {}, i }]):tanh()
  end
  return h:sum()
end

local function windows(x, T)
  local loss = 0
  for i = 1, T - 2 do
    loss = loss + x[{ {}, { i, i + 2 } }]:tanh():sum()
  end
  return loss
end

-- Of T steps: nodes, launches, and letters of all kernels, which is how much there is to compile and to run.
local function gradient(loss, T)
  local f = dc.fn(("f(x: f32[16, %d]) -> f32[16, %d]"):format(T, T), function(x) return dc.grad(loss(x, T), x) end)
  f(dc.rand(("f32[16, %d]"):format(T)))
  local info, letters = f:info()[1], 0
  for n = 1, #f:kernels() do
    letters = letters + #f:source(n, "text")
  end
  return info, letters
end

function TestSlices:test_gradients_are_linear()
  if on_eval then
    lu.skip "the interpreter has no kernels"
  end
  for _, loss in ipairs { recurrence, windows } do
    local small, less = gradient(loss, 64)
    local large, more = gradient(loss, 256)
    lu.assertTrue(large.nodes < 5 * small.nodes)
    lu.assertTrue(large.launches < 5 * small.launches)
    lu.assertTrue(more < 2 * less, more .. " beside " .. less)
  end
end

-- Numbers in which the pieces differ are memory: 20 pieces are a few kernels (where a number is 1 there is no product).
function TestSlices:test_kernels_do_not_depend_on_numbers()
  for t, margin in pairs { f32 = 1e-5, f64 = 1e-12, f16 = 0.02, bf16 = 0.1 } do
    local f = dc.fn(("f(x: %s[7], s: %s[]) -> %s[20, 7]"):format(t, t, t), function(x, s)
      local p = {}
      for i = 1, 20 do
        p[i] = ((x * (i / 4)):tanh() + i / 80) * s
      end
      return dc.stack(p, 1)
    end)
    local x = dc.rand "f32[7]":cast(t)
    for s = 2, 4 do
      local y = f(x, s)
      for i = 1, 20 do
        check.close(y[i]:totable(), (((x * (i / 4)):tanh() + i / 80) * s):totable(), margin, t)
      end
    end
    if not on_eval then
      lu.assertTrue(f:info()[1].kernels <= 8, t .. ": " .. f:info()[1].kernels)
      lu.assertStrContains(f:plan(), "constants")
    end
  end
end

-- Sums with three axes each, of which several are one kernel: more axes than an operation has.
function TestSlices:test_many_sums_in_one_kernel()
  local T = 24
  local f = dc.fn(("f(x: f32[4, %d, 8]) -> f32[]"):format(T), function(x)
    local loss = 0
    for i = 1, T - 2 do
      loss = loss + x[{ {}, { i, i + 2 } }]:square():sum()
    end
    return loss
  end)
  local x, want = dc.rand(("f32[4, %d, 8]"):format(T)), 0
  for i = 1, T - 2 do
    want = want + x[{ {}, { i, i + 2 } }]:square():sum():item()
  end
  lu.assertAlmostEquals(f(x):item(), want, want * 1e-5)
end

-- Where a slice begins is part of an address: the steps of a loop written out are kernels of a few kinds, of twice
-- as many steps the same.
local function steps(T, width)
  local w = dc.rand(("f32[%d, %d]"):format(width, width)) * 0.1
  local f = dc.fn(("f(x: f32[4, %d, %d]) -> f32[4, %d]"):format(T, width, width), function(x)
    local h = dc.zeros(("f32[4, %d]"):format(width))
    for i = 1, T do
      h = (h:matmul(w) + x[{ {}, i }]):tanh()
    end
    return h
  end)
  local x = dc.rand(("f32[4, %d, %d]"):format(T, width))
  local h = dc.zeros(("f32[4, %d]"):format(width))
  for i = 1, T do
    h = (h:matmul(w) + x[{ {}, i }]):tanh()
  end
  check.close(f(x):totable(), h:totable(), 1e-5)
  return f
end

function TestSlices:test_kernels_do_not_depend_on_where_slices_begin()
  for _, width in ipairs { 16, 17 } do
    local small, large = steps(20, width), steps(40, width)
    lu.assertEquals(large:info()[1].kernels, small:info()[1].kernels)
    if not on_eval then
      lu.assertStrContains(large:plan(), ("x+%d"):format(4 * 5 * width))
    end
  end
end
