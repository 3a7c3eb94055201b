-- Losses beside the same formulas in Lua's doubles, and their gradients beside central differences of these.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local data = require "deepc.data"
local check = require "tests.lua.check"

local fails = check.fails

local function map(x, f, ...)
  if type(x) ~= "table" then
    return f(x, ...)
  end
  local y, rest = {}, table.pack(...)
  for i = 1, #x do
    local at = {}
    for k = 1, rest.n do
      at[k] = rest[k][i]
    end
    y[i] = map(x[i], f, table.unpack(at, 1, rest.n))
  end
  return y
end

local function flat(x, list)
  list = list or {}
  for _, v in ipairs(type(x) == "table" and x or { x }) do
    if type(v) == "table" then
      flat(v, list)
    else
      list[#list + 1] = v
    end
  end
  return list
end

local function close(got, want, tolerance, what)
  got, want = flat(got), flat(want)
  lu.assertEquals(#got, #want)
  for i = 1, #want do
    lu.assertAlmostEquals(got[i], want[i], (tolerance or 2e-6) * math.max(1, math.abs(want[i])), what)
  end
end

local function sum(x)
  local s = 0
  for _, v in ipairs(flat(x)) do
    s = s + v
  end
  return s
end

local P = { { 0.5, -2, 3 }, { 1.25, 0, -0.75 } }
local T = { { 1, -2.5, 0 }, { 0.25, 0.5, -1 } }

-- name -> the loss of an element in doubles, and options
local each = {
  mse_loss = { function(a, b) return (a - b) ^ 2 end },
  l1_loss = { function(a, b) return math.abs(a - b) end },
  huber_loss = { function(a, b)
    local d = math.abs(a - b)
    return d <= 0.8 and d * d / 2 or 0.8 * (d - 0.4)
  end, { delta = 0.8 } },
  bce_with_logits = { function(x, y)
    local p = 1 / (1 + math.exp(-x))
    return -y * math.log(p) - (1 - y) * math.log(1 - p)
  end },
}

local function with(options, more)
  local t = {}
  for _, from in ipairs { options or {}, more } do
    for key, v in pairs(from) do
      t[key] = v
    end
  end
  return t
end

TestElements = {}

function TestElements:test_values_and_reductions()
  for name, row in pairs(each) do
    local p, t = dc.tensor(P), dc.tensor(T)
    local want = map(P, row[1], T)
    close(nn[name](p, t, row[2]):item(), sum(want) / 6, nil, name)
    close(nn[name](p, t, with(row[2], { reduction = "mean" })):item(), sum(want) / 6, nil, name)
    close(nn[name](p, t, with(row[2], { reduction = "sum" })):item(), sum(want), nil, name)
    close(nn[name](p, t, with(row[2], { reduction = "none" })):totable(), want, nil, name)
  end
end

function TestElements:test_masks_of_rows_and_of_elements()
  for name, row in pairs(each) do
    local p, t = dc.tensor(P), dc.tensor(T)
    local want = map(P, row[1], T)
    local rows = dc.tensor({ false, true }, "bool")
    local some = dc.tensor({ { true, false, true }, { false, false, true } }, "bool")
    close(nn[name](p, t, with(row[2], { mask = rows })):item(), sum(want[2]) / 3, nil, name)
    close(nn[name](p, t, with(row[2], { mask = rows:cast "f32" })):item(), sum(want[2]) / 3, nil, name)
    close(nn[name](p, t, with(row[2], { mask = some })):item(), (want[1][1] + want[1][3] + want[2][3]) / 3, nil, name)
    close(nn[name](p, t, with(row[2], { mask = rows, reduction = "sum" })):item(), sum(want[2]), nil, name)
    close(nn[name](p, t, with(row[2], { mask = rows, reduction = "none" })):totable(), { { 0, 0, 0 }, want[2] }, nil,
      name)
    lu.assertEquals(nn[name](p, t, with(row[2], { mask = dc.zeros "bool[2]" })):item(), 0)
  end
end

function TestElements:test_gradients()
  local step = 1e-5
  for name, row in pairs(each) do
    local f = dc.fn("f(p: f32[2, 3], t: f32[2, 3], m: bool[2]) -> f32[2, 3]", function(p, t, m)
      return dc.grad(nn[name](p, t, with(row[2], { mask = m })), p)
    end)
    local want = map(P, function(a, b)
      return (row[1](a + step, b) - row[1](a - step, b)) / (2 * step)
    end, T)
    close(f(P, T, dc.ones "bool[2]"):totable(), map(want, function(g) return g / 6 end), 1e-5, name)
    close(f(P, T, dc.tensor({ true, false }, "bool")):totable(), { map(want[1], function(g) return g / 3 end),
      { 0, 0, 0 } }, 1e-5, name)
  end
end

function TestElements:test_other_floats()
  for _, dtype in ipairs { "f64", "f16", "bf16" } do
    local p, t = dc.tensor(P, dtype), dc.tensor(T, dtype)
    for name, row in pairs(each) do
      local loss = nn[name](p, t, row[2])
      lu.assertEquals(loss.dtype, dtype)
      close(loss:item(), sum(map(P, row[1], T)) / 6, dtype == "f64" and 1e-14 or dtype == "f16" and 4e-3 or 3e-2, name)
    end
  end
end

function TestElements:test_bce_far_out()
  local x = dc.tensor { -200, 200, -200, 200, -30 }
  local loss = nn.bce_with_logits(x, dc.tensor { 0, 1, 1, 0, 0 }, { reduction = "none" }):totable()
  close(loss, { 0, 0, 200, 200, math.exp(-30) })
  lu.assertAlmostEquals(loss[5] / math.exp(-30), 1, 1e-5)
  local f = dc.fn("f(x: f32[5], y: f32[5]) -> f32[5]", function(x, y) -- luacheck: ignore 431
    return dc.grad(nn.bce_with_logits(x, y, { reduction = "sum" }), x)
  end)
  close(f(x, { 0, 1, 1, 0, 0 }):totable(), { 0, 0, -1, 1, 0 })
end

function TestElements:test_bce_weighs_the_positive()
  local w = 2.5
  local want = map(P, function(x, y)
    local p = 1 / (1 + math.exp(-x))
    return -w * y * math.log(p) - (1 - y) * math.log(1 - p)
  end, T)
  close(nn.bce_with_logits(dc.tensor(P), dc.tensor(T), { pos_weight = w }):item(), sum(want) / 6)
  local by_column = nn.bce_with_logits(dc.tensor(P), dc.tensor(T), { pos_weight = dc.tensor { 1, w, 1 },
    reduction = "none" }):totable()
  close(by_column[1][2], want[1][2])
end

function TestElements:test_wrong_arguments()
  local p = dc.zeros "f32[4, 3]"
  fails("mse_loss: prediction is f32[4, 3], target f32[4]", nn.mse_loss, p, dc.zeros "f32[4]")
  fails("losses do not stretch axes", nn.l1_loss, p, dc.zeros "f32[4, 1]")
  fails("prediction is f32[4, 3], target i32[4, 3]", nn.mse_loss, p, dc.zeros "i32[4, 3]")
  fails("prediction is i32[3], floats are needed", nn.huber_loss, dc.zeros "i32[3]", dc.zeros "i32[3]")
  fails("mse_loss: target: a tensor is needed, not the number 1", nn.mse_loss, p, 1)
  fails("reduction is \"mean\", \"sum\" or \"none\", not 'avg'", nn.mse_loss, p, p, { reduction = "avg" })
  fails("mse_loss: mask: a tensor is needed, not a table", nn.mse_loss, p, p, { mask = { true } })
  fails("mask is bool[3]; one value for each loss, or each row, of [4, 3]", nn.mse_loss, p, p,
    { mask = dc.ones "bool[3]" })
  fails("unknown option 'delta'", nn.mse_loss, p, p, { delta = 1 })
  fails("delta is a positive number, not 0", nn.huber_loss, p, p, { delta = 0 })
end

TestClasses = {}

local L = { { 1, 2, 3 }, { 0, -1, 0.5 }, { 4, 0, 1 } }
local Y = { 2, 0, 1 }
local W = { 0.5, 2, 1.5 }

-- The loss of every row: q is the distribution wanted, weights of the classes.
local function rows_of(logits, labels, smoothing, weight)
  local list = {}
  for r, row in ipairs(logits) do
    local top = math.max(table.unpack(row))
    local z, loss = 0, 0
    for _, x in ipairs(row) do
      z = z + math.exp(x - top)
    end
    for c, x in ipairs(row) do
      local q = (c - 1 == labels[r] and 1 - smoothing or 0) + smoothing / #row
      loss = loss - q * (weight and weight[c] or 1) * (x - top - math.log(z))
    end
    list[r] = loss
  end
  return list
end

local function labels_of(list)
  return dc.tensor(list or Y, "i32")
end

function TestClasses:test_values()
  local x, y, w = dc.tensor(L), labels_of(), dc.tensor(W)
  for _, smoothing in ipairs { 0, 0.1, 1 } do
    local plain, weighted = rows_of(L, Y, smoothing), rows_of(L, Y, smoothing, W)
    close(nn.cross_entropy(x, y, { label_smoothing = smoothing }):item(), sum(plain) / 3)
    close(nn.cross_entropy(x, y, { label_smoothing = smoothing, reduction = "sum" }):item(), sum(plain))
    close(nn.cross_entropy(x, y, { label_smoothing = smoothing, reduction = "none" }):totable(), plain)
    close(nn.cross_entropy(x, y, { label_smoothing = smoothing, weight = w }):item(), sum(weighted) / 4)
    close(nn.cross_entropy(x, y, { label_smoothing = smoothing, weight = w, reduction = "none" }):totable(), weighted)
  end
end

function TestClasses:test_rows_that_do_not_count()
  local x, w = dc.tensor(L), dc.tensor(W)
  local plain, weighted = rows_of(L, Y, 0.1), rows_of(L, Y, 0.1, W)
  local options = { label_smoothing = 0.1, mask = dc.tensor({ true, false, true }, "bool") }
  local outside = labels_of { 2, 7, 1 } -- of a row that is left out
  close(nn.cross_entropy(x, outside, options):item(), (plain[1] + plain[3]) / 2)
  close(nn.cross_entropy(x, outside, with(options, { weight = w })):item(), (weighted[1] + weighted[3]) / 3.5)
  close(nn.cross_entropy(x, outside, with(options, { reduction = "none" })):totable(), { plain[1], 0, plain[3] })
  options = { label_smoothing = 0.1, ignore_index = -100 }
  close(nn.cross_entropy(x, labels_of { 2, -100, 1 }, options):item(), (plain[1] + plain[3]) / 2)
  close(nn.cross_entropy(x, labels_of { -100, -100, 1 }, with(options, { reduction = "sum" })):item(), plain[3])
  lu.assertEquals(nn.cross_entropy(x, labels_of { -100, -100, -100 }, options):item(), 0)
  options.mask = dc.tensor({ true, true, false }, "bool")
  close(nn.cross_entropy(x, labels_of { 2, -100, 1 }, options):item(), plain[1])
  fails("class 3 outside 0..2 at row 1", nn.cross_entropy, x, labels_of { 3, -100, 1 }, options)
end

function TestClasses:test_more_axes()
  local x = dc.tensor { L, { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } } }
  local y = dc.tensor({ Y, { 0, 0, 0 } }, "i32")
  local first, second = rows_of(L, Y, 0), rows_of({ { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } }, { 0, 0, 0 }, 0)
  close(nn.cross_entropy(x, y):item(), (sum(first) + sum(second)) / 6)
  close(nn.cross_entropy(x, y, { mask = dc.tensor({ false, true }, "bool") }):item(), sum(second) / 3)
  close(nn.cross_entropy(x, y, { mask = dc.tensor({ { true, false, true }, { true, true, true } }, "bool") }):item(),
    (sum(first) - first[2] + sum(second)) / 5)
  fails("class 5 outside 0..2", nn.cross_entropy, x, dc.tensor({ { 0, 0, 0 }, { 0, 5, 0 } }, "i32"))
end

function TestClasses:test_gradient()
  local function by_hand(options)
    local g, step = {}, 1e-5
    for r = 1, 3 do
      g[r] = {}
      for c = 1, 3 do
        local function at(x)
          local logits = map(L, function(v) return v end)
          logits[r][c] = logits[r][c] + x
          return sum(rows_of(logits, Y, options.smoothing, options.weight)) / options.count
        end
        g[r][c] = (at(step) - at(-step)) / (2 * step)
      end
    end
    return g
  end
  local f = dc.fn("f(x: f32[3, 3], y: i32[3]) -> f32[3, 3], f32[3, 3]", function(x, y)
    local plain = dc.grad(nn.cross_entropy(x, y), x)
    local all = nn.cross_entropy(x, y, { label_smoothing = 0.2, weight = dc.tensor(W) })
    return plain, dc.grad(all, x)
  end)
  local plain, all = f(L, labels_of())
  close(plain:totable(), by_hand { smoothing = 0, count = 3 }, 1e-5)
  close(all:totable(), by_hand { smoothing = 0.2, weight = W, count = 4 }, 1e-5)
end

-- A batch that is padded trains as the batch without padding.
function TestClasses:test_a_padded_batch()
  local function train(rows, mask)
    dc.seed(4)
    local net = nn.Linear(3, 3)
    local opt = optim.SGD(net:parameters(), { lr = 0.1 })
    local x, y = { table.unpack(L, 1, rows) }, { table.unpack(Y, 1, rows) }
    for _ = rows + 1, mask and 3 or 0 do
      x[#x + 1], y[#y + 1] = { 9, 9, 9 }, 0
    end
    local signature = ("step(x: f32[%d, 3], y: i32[%d], m?: bool[%d]) -> f32[]"):format(#x, #x, #x)
    local step = dc.fn(signature, function(x, y, m) -- luacheck: ignore 431
      local loss = nn.cross_entropy(net(x), y, { mask = m })
      opt:step(loss)
      return loss
    end)
    local loss = step(x, labels_of(y), mask)
    return loss:item(), net.weight:totable()
  end
  local loss, weight = train(2)
  local padded, padded_weight = train(2, dc.tensor({ true, true, false }, "bool"))
  close(padded, loss)
  close(padded_weight, weight)
end

function TestClasses:test_wrong_options()
  local x, y = dc.zeros "f32[4, 3]", dc.zeros "i32[4]"
  fails("label_smoothing is a number from 0 to 1, not 2", nn.cross_entropy, x, y, { label_smoothing = 2 })
  fails("weight is a tensor of one number for each of 3 classes", nn.cross_entropy, x, y, { weight = dc.ones "f32[4]" })
  fails("ignore_index is an integer, not 0.5", nn.cross_entropy, x, y, { ignore_index = 0.5 })
  fails("mask is bool[3]", nn.cross_entropy, x, y, { mask = dc.ones "bool[3]" })
  fails("unknown option 'smoothing'", nn.cross_entropy, x, y, { smoothing = 0.1 })
end

-- The mask that batches give with last = "pad".
function TestClasses:test_the_mask_of_padded_batches()
  local set = data.set(dc.tensor(L), labels_of())
  local plain, seen = rows_of(L, Y, 0), {}
  for x, y, mask in set:batches { size = 2, last = "pad" } do
    seen[#seen + 1] = nn.cross_entropy(x, y, { mask = mask }):item()
  end
  close(seen, { (plain[1] + plain[2]) / 2, plain[3] })
end
