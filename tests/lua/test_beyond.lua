-- Numbers beyond every size, among them those that are codes of sizes known at run time (core/base/extent.h): where
-- a script gives a size, a place or a count they are an error of deepc's or taken for what they are, and the context
-- goes on.
local lu = require "luaunit"
local dc, nn, data = require "deepc", require "deepc.nn", require "deepc.data"

local CODE = 1 << 62
local numbers = {
  1 << 40, 1 << 60, 1 << 61, (1 << 61) + 1, CODE - 1, CODE, CODE + 1, CODE + 2, CODE + 8, CODE + (1 << 40),
  math.maxinteger, -(1 << 61), -CODE, -CODE - 1, math.mininteger,
}

local function bounded(body)
  return function(b)
    return dc.fn("f(x: f32[n <= 8])", function(x) return body(x, b) end)(dc.ones "f32[3]")
  end
end

local function batches(options)
  return function(b)
    local o, set = { size = b }, data.set(dc.zeros "f32[10, 2]", dc.iota(10))
    for k, v in pairs(options) do
      o[k] = v
    end
    local rows = 0
    for x in set:batches(o) do
      rows = rows + x.shape[1]
    end
    return rows
  end
end

local x, image = dc.iota "f32[8, 3]", dc.ones "f32[1, 1, 6, 6]"

local uses = {
  index = function(b) return x[b] end,
  range = function(b) return x[{ { 1, b } }] end,
  range_from = function(b) return x[{ { b, 1 } }] end,
  put = function(b) return x:put({ { 1, b } }, 7) end,
  slice = function(b) return dc.zeros "f32[batch=32, 7]":slice { batch = { b, 16 } } end,
  take = function(b) return x:take({ b, 1 }, 1) end,
  axis = function(b) return x:sum(b) end,
  permute = function(b) return x:permute(2, b) end,
  reshape = function(b) return x:reshape(b) end,
  reshape_empty = function(b) return dc.zeros "f32[0]":reshape(b, 0) end,
  expand = function(b) return dc.ones "f32[1]":expand(b) end,
  tile = function(b) return x:tile(b) end,
  pad = function(b) return x:pad { { 0, b } } end,
  reflect = function(b) return nn.ReflectionPad2d(b)(image) end,
  split = function(b) return x:split(b, 1) end,
  split_sizes = function(b) return x:split({ b, 1 }, 1) end,
  one_hot = function(b) return dc.iota(3):one_hot(b) end,
  top_k = function(b) return x:top_k(b) end,
  unfold = function(b) return nn.unfold(image, 2, { stride = b }) end,
  stride = function(b) return image:max_pool2d(2, { stride = b }) end,
  zeros = function(b) return dc.zeros(("f32[%d]"):format(b)) end,
  zeros_empty = function(b) return dc.zeros(("f32[%d, 0]"):format(b)) end,
  product = function(b) return dc.zeros(("f32[2*%d]"):format(b >> 1)) end,
  iota = function(b) return dc.iota(b) end,
  fori = function(b) return dc.fori(b, function(_, y) return y + 1 end, x) end,
  signature = function(b)
    return dc.fn(("f(x: f32[%d]) -> f32[]"):format(b), function(y) return y:sum() end):check()
  end,
  size = function(b) return dc.fn("f(x: f32[n]) -> f32[n]", function(y) return y * 2 end, { n = b }) end,
  check = function(b) return dc.fn("f(x: f32[n]) -> f32[n]", function(y) return y / dc.dim "n" end):check { n = b } end,
  embedding = function(b) return nn.Embedding(b, 2) end,
  ragged = function(b)
    local rows = 0
    for y in data.set(data.ragged({ { 7, 8 }, { 9 } }, { to = b })):batches { size = 2 } do
      rows = rows + y.shape[1]
    end
    return rows
  end,
  keep = batches { last = "keep" },
  drop = batches { last = "drop" },
  mask = batches { last = "pad" },
  draws = function(b) return batches { weights = dc.ones "f32[10]", draws = b } (4) end,
  bounded_index = bounded(function(y, b) return y[b] end),
  bounded_range = bounded(function(y, b) return y[{ { 1, b } }] end),
  bounded_sum = bounded(function(y, b) return y:expand(dc.dim "n" + b, dc.dim "n") end),
  bounded_roll = bounded(function(y, b) return y:roll(b, 1) end),
  bounded_one_hot = bounded(function(y, b) return y:cast "i32":one_hot(b) end),
}

TestBeyond = {}

for name, use in pairs(uses) do
  TestBeyond["test_" .. name] = function()
    for _, b in ipairs(numbers) do
      local ok, result = pcall(use, b)
      if not ok then
        lu.assertNotNil(type(result) == "table" and result.code, ("%s %d: %s"):format(name, b, tostring(result)))
        lu.assertNotEquals(result.code, "DC1009", ("%s %d: %s"):format(name, b, tostring(result)))
      end
      lu.assertEquals(dc.ones "f32[2]":sum():item(), 2)
    end
  end
end

-- What one batch of all rows is asked for as has them all, and no index beyond an axis is taken for the axis.
function TestBeyond:test_values()
  for _, b in ipairs { 10, 11, 1 << 40, CODE + 1, math.maxinteger } do
    lu.assertEquals(uses.keep(b), 10)
  end
  for _, b in ipairs { CODE + 3, CODE + 8 } do
    local ok, e = pcall(uses.bounded_index, b)
    lu.assertFalse(ok)
    lu.assertEquals(e.code, "DC0106")
  end
  lu.assertEquals(dc.iota "f32[4]"[{ { 1, 4, math.maxinteger } }]:totable(), { 0 })
end
