-- Values that are compared with what is selected among them: argmax, gradients of maxima and of pools. Each finds what
-- was selected, in whatever kernels the value is needed, and whatever of it was read before.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"

local shapes = { { 3, 7 }, { 8, 64 }, { 5, 300 }, { 96, 130 } }

local function draw(shape, dtype)
  local list = {}
  for i = 1, 3 do
    list[i] = dc.randn(("f32[%d, %d]"):format(shape[1], shape[2]), { seed = 10 * i + shape[2] }):cast(dtype)
  end
  return list
end

local function total(x) return x:cast "f32":sum():item() end

-- A product that is contracted with a sum in one place is needed by itself in another.
local function typed(shape, dtype, body)
  local types = {}
  for i, name in ipairs { "a", "b", "c" } do
    types[i] = ("%s: %s[%d, %d]"):format(name, dtype, shape[1], shape[2])
  end
  return dc.fn(("f(%s)"):format(table.concat(types, ", ")), body)(table.unpack(draw(shape, dtype)))
end

TestSelected = {}

function TestSelected:test_argmax()
  for _, dtype in ipairs { "f32", "f16", "bf16", "f64" } do
    for _, shape in ipairs(shapes) do
      local row, all, low, x = typed(shape, dtype, function(a, b, c)
        local m = a * b
        local x = m + c
        return x:argmax(2), x:reshape(-1):argmax(1), x:argmin(1), x, x:tanh() * m, m, x:max(2)
      end)
      lu.assertEquals(row:totable(), x:argmax(2):totable(), dtype)
      lu.assertEquals(all:item(), x:reshape(-1):argmax(1):item(), dtype)
      lu.assertEquals(low:totable(), x:argmin(1):totable(), dtype)
    end
  end
end

function TestSelected:test_gradients_of_maxima()
  for _, dtype in ipairs { "f32", "f16", "bf16", "f64" } do
    for _, shape in ipairs(shapes) do
      local rows, columns = shape[1], shape[2]
      local of_rows, of_all, running, lowest = typed(shape, dtype, function(a, b, c)
        local m = a * b
        local x = m + c
        return dc.grad(x:max(2):sum(), c), dc.grad(x:max(), c), dc.grad(x:cummax(2):sum(), c),
          dc.grad(x:min(1):sum(), c), x:tanh() * m, m, x:max(2), x:max()
      end)
      lu.assertEquals(total(of_rows), rows, dtype)
      lu.assertEquals(total(of_all), 1, dtype)
      lu.assertAlmostEquals(total(running) / (rows * columns), 1, 0.01, dtype)
      lu.assertEquals(total(lowest), columns, dtype)
    end
  end
end

-- Rows of which several elements are the largest share its gradient, as before.
function TestSelected:test_ties()
  local f = dc.fn("f(a: f32[2, 4], b: f32[2, 4]) -> f32[2, 4], f32[2, 4]", function(a, b)
    local x = a * b + a
    return dc.grad(x:max(2):sum(), x), x:sin() * (a * b)
  end)
  lu.assertEquals((f({ { 1, 2, 2, 0 }, { 3, 3, 3, 3 } }, { { 1, 1, 1, 1 }, { 2, 2, 2, 2 } })):totable(),
    { { 0, 0.5, 0.5, 0 }, { 0.25, 0.25, 0.25, 0.25 } })
end

function TestSelected:test_pools()
  local f = dc.fn("f(x: f32[2, 3, 8, 8], s: f32[3, 1, 1]) -> f32[2, 3, 8, 8], f32[2, 3, 8, 8]", function(x, s)
    local m = x * s
    local y = m + 0.3
    return dc.grad(nn.MaxPool2d(2)(y):sum(), y), y:sigmoid() * m
  end)
  local g = f(dc.randn("f32[2, 3, 8, 8]", { seed = 1 }), dc.randn("f32[3, 1, 1]", { seed = 2 }))
  lu.assertEquals(total(g), 2 * 3 * 16)
end

-- Outside of functions: reading a maximum, or what it is of, changes no gradient.
function TestSelected:test_what_was_read_before()
  local maxima = {
    function(y) return y:max(2) end, function(y) return y:max() end, function(y) return y:cummax(2) end,
    function(y) return y:reshape(1, 1, 8, 64):min(4) end,
    function(y) return nn.MaxPool2d(2)(y:reshape(1, 1, 8, 64)) end,
  }
  local w = dc.param("f32[8, 64]", dc.randn("f32[8, 64]", { seed = 1 }))
  for n, select in ipairs(maxima) do
    for _, read in ipairs { "", "p", "y", "py", "yp", "later" } do
      local y = w * 0.7 + 0.3
      local p = select(y)
      for what in read:gmatch "[py]" do
        local _ = tostring(what == "p" and p or y)
      end
      local g = dc.grad(p:sum(), w)
      if read == "later" then
        local _ = tostring(p) .. tostring(y)
      end
      lu.assertAlmostEquals(g:sum():item() / 0.7, #p:reshape(-1), 1e-3, ("%d, %s read"):format(n, read))
    end
  end
end
