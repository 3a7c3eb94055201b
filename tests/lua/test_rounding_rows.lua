-- Reductions, norms and losses of several steps are rounded once, at their end, in each float dtype: outside of typed
-- functions and in a kernel they are next to what Lua computes with its doubles, for long rows, and for numbers whose
-- squares and sums the dtype does not hold. Gradients are compared with those of f64.
local lu = require "luaunit"
local dc, nn = require "deepc", require "deepc.nn"

local UNIT = { f16 = 2 ^ -10, bf16 = 2 ^ -7, f32 = 2 ^ -23, f64 = 2 ^ -52 }
local STEP = { f16 = 2 ^ -23, bf16 = 2 ^ -23, f32 = 2 ^ -23, f64 = 2 ^ -52 }
local LEAST = { f16 = 2 ^ -24, bf16 = 2 ^ -133, f32 = 2 ^ -149, f64 = 2 ^ -1074 } -- between the smallest numbers
local MOST = { f16 = 65504, bf16 = 3.3e38, f32 = 3.4e38, f64 = 1.7e308 }
local SIZES = { f16 = { 2 ^ -9, 1, 250, 20000 }, bf16 = { 1e-15, 1, 1e15 }, f32 = { 1e-15, 1, 1e15 },
  f64 = { 1e-100, 1, 1e100 } }
local DTYPES = { "f16", "bf16", "f32", "f64" }

-- ---- exactly ----

local function sum_of(row, f)
  local sum = 0
  for i, x in ipairs(row) do
    sum = sum + (f and f(x, i) or not f and x)
  end
  return sum
end

local function each(row, f)
  local list = {}
  for i, x in ipairs(row) do
    list[i] = f(x, i)
  end
  return list
end

local function mean_of(row, f) return sum_of(row, f) / #row end

local function var_of(row)
  local mean = mean_of(row)
  return mean_of(row, function(x) return (x - mean) ^ 2 end), mean
end

local function logsumexp_of(row)
  local top = math.max(table.unpack(row))
  return top + math.log(sum_of(row, function(x) return math.exp(x - top) end))
end

local function log_softmax_of(row)
  local top = math.max(table.unpack(row))
  local rest = math.log(sum_of(row, function(x) return math.exp(x - top) end))
  return each(row, function(x) return x - top - rest end)
end

local function log1p_exp(x) -- log(1 + exp(-|x|))
  local e = math.exp(-math.abs(x))
  return e < 1e-5 and e - e * e / 2 or math.log(1 + e)
end

-- name = { what is computed of x and y, rows of one shape; exactly, of one row of each; a number for each row? }
local COMPOSITES = {
  mean = { function(x) return x:mean(-1) end, function(row) return mean_of(row) end },
  var = { function(x) return x:var(-1) end, function(row)
    local var = var_of(row)
    return var
  end },
  std = { function(x) return x:std(-1) end, function(row) return var_of(row) ^ 0.5 end },
  norm = { function(x) return x:norm(-1) end, function(row)
    return sum_of(row, function(x) return x * x end) ^ 0.5
  end },
  logsumexp = { function(x) return x:logsumexp(-1) end, logsumexp_of },
  softmax = { function(x) return x:softmax(-1) end, function(row) return each(log_softmax_of(row), math.exp) end },
  log_softmax = { function(x) return x:log_softmax(-1) end, log_softmax_of },
  avg_pool = { function(x) return dc.avg_pool1d(x:reshape(2, 1, -1), 7, { stride = 3 }):reshape(2, -1) end,
    function(row)
      local list = {}
      for i = 1, #row - 6, 3 do
        list[#list + 1] = mean_of({ table.unpack(row, i, i + 6) })
      end
      return list
    end },
  layer_norm = { function(x, y) return nn.layer_norm(x, x:size(-1), { weight = y[1], bias = y[2], eps = 0 }) end,
    function(row, _, y)
      local var, mean = var_of(row)
      return each(row, function(x, i) return (x - mean) / var ^ 0.5 * y[1][i] + y[2][i] end)
    end },
  rms_norm = { function(x, y) return nn.rms_norm(x, x:size(-1), { weight = y[1], eps = 0 }) end,
    function(row, _, y)
      local root = mean_of(row, function(x) return x * x end) ^ 0.5
      return each(row, function(x, i) return x / root * y[1][i] end)
    end },
}

-- Of all rows: a number.
local LOSSES = {
  mse_loss = { function(x, y) return nn.mse_loss(x, y) end, function(x, y) return (x - y) ^ 2 end },
  l1_loss = { function(x, y) return nn.l1_loss(x, y) end, function(x, y) return math.abs(x - y) end },
  huber_loss = { function(x, y) return nn.huber_loss(x, y, { delta = 0.25 }) end, function(x, y)
    local d = math.abs(x - y)
    local near = math.min(d, 0.25)
    return near * (d - near / 2)
  end },
  bce_with_logits = { function(x, y) return nn.bce_with_logits(x, y) end,
    function(x, y) return math.max(x, 0) - x * y + log1p_exp(x) end },
  bce_weighted = { function(x, y) return nn.bce_with_logits(x, y, { pos_weight = 3 }) end,
    function(x, y) return (1 - y) * x + (1 + 2 * y) * (log1p_exp(x) + math.max(-x, 0)) end },
}

-- Labels are those that the test makes: row i has label i.
local CLASSES = {
  cross_entropy = {},
  smoothed = { label_smoothing = 0.125 },
  summed = { reduction = "sum" },
  ignoring = { ignore_index = 1 },
}

local function cross_entropy_of(rows, options)
  local sum, count, e = 0, 0, options.label_smoothing or 0
  for i, row in ipairs(rows) do
    if options.ignore_index ~= i then
      local terms = log_softmax_of(row)
      sum, count = sum - (1 - e) * terms[i + 1] - e * mean_of(terms), count + 1
    end
  end
  return options.reduction == "sum" and sum or sum / count
end

-- ---- as computed ----

local function rows_of(dtype, n, size, phase)
  local t = {}
  for i = 1, 2 do
    t[i] = {}
    for k = 1, n do
      t[i][k] = size * (math.sin(k * (phase + i)) + (k % 13 == 0 and 2 or 0.25)) / 3
    end
  end
  return dc.tensor(t, dtype)
end

local function traced(name, like, f)
  local t, n = like.dtype, like:size(2)
  return dc.fn(("%s(x: %s[2, %d], y: %s[2, %d])"):format(name, t, n, t, n), function(x, y) return f(x, y) end)
end

local function flat(t)
  t = t:reshape(-1):totable()
  return t
end

-- slack: errors of steps, as a part of `large`, beside the rounding of the result.
local function check(what, got, exact, t, large, slack)
  lu.assertEquals(#got, #exact)
  for i, want in ipairs(exact) do
    local bound = UNIT[t] / 2 * math.abs(want) + slack * STEP[t] * large + LEAST[t]
    if math.abs(want) + bound < MOST[t] and (got[i] ~= got[i] or math.abs(got[i] - want) > bound) then
      lu.fail(("%s of %s, element %d: %.9g, exactly %.9g; %.3g off, %.3g allowed"):format(what, t, i, got[i], want,
        math.abs(got[i] - want), bound))
    end
  end
end

local function largest(list)
  local most = 0
  for _, x in ipairs(list) do
    most = math.max(most, math.abs(x))
  end
  return most
end

-- f, lazily and compiled, beside the numbers `exact`. `within` is how large its steps get.
local function check_both(name, f, x, y, exact, within)
  within = math.max(within, largest(exact))
  local slack = 16 + x:size(2) / 2 -- additions that follow one another
  check(name .. ", lazy", flat(f(x, y)), exact, x.dtype, within, slack)
  check(name .. ", compiled", flat(traced("f", x, f)(x, y)), exact, x.dtype, within, slack)
end

-- The gradient for x of what f makes, weighted, beside that of f64.
local function check_gradient(name, f, x, y)
  local function gradient(a, b)
    local made = f(a, b)
    local weights = (dc.iota(made.shape[#made.shape] or 1) % 5 * 2 - 3):cast(a.dtype)
    return (dc.grad((made:reshape(-1, #weights) * weights):sum(), a))
  end
  local exact = flat(traced("g", x:cast "f64", gradient)(x:cast "f64", y:cast "f64"))
  check(name .. "'s gradient, compiled", flat(traced("g", x, gradient)(x, y)), exact, x.dtype, largest(exact), 64)
  local watched = x:watch()
  check(name .. "'s gradient, lazy", flat(gradient(watched, y)), exact, x.dtype, largest(exact), 64)
end

local function each_case(n, body)
  for _, t in ipairs(DTYPES) do
    for _, size in ipairs(SIZES[t]) do
      local x, y = rows_of(t, n, size, 1), rows_of(t, n, 1, 3)
      body(t, size, x, y, x:totable(), y:totable())
    end
  end
end

TestRoundingRows = {}

function TestRoundingRows:test_composites_along_long_rows()
  each_case(1500, function(_, size, x, y, a, b)
    for name, row in pairs(COMPOSITES) do
      local exact = {}
      for i = 1, 2 do
        local made = row[2](a[i], b[i], b)
        table.move(type(made) == "table" and made or { made }, 1, type(made) == "table" and #made or 1, #exact + 1,
          exact)
      end
      local within = (name == "softmax" or name == "rms_norm" or name == "layer_norm") and 1 or size
      check_both(("%s of numbers like %g"):format(name, size), row[1], x, y, exact, within)
    end
  end)
end

function TestRoundingRows:test_losses()
  each_case(300, function(_, size, x, y, a, b)
    for name, row in pairs(LOSSES) do
      local exact = (sum_of(a[1], function(v, i) return row[2](v, b[1][i]) end)
        + sum_of(a[2], function(v, i) return row[2](v, b[2][i]) end)) / 600
      check_both(("%s of numbers like %g"):format(name, size), row[1], x, y, { exact }, size)
    end
    local labels = dc.tensor({ 1, 2 }, "i32")
    for name, options in pairs(CLASSES) do
      check_both(("%s of numbers like %g"):format(name, size),
        function(u) return nn.cross_entropy(u, labels, options) end, x, y, { cross_entropy_of(a, options) }, size)
    end
  end)
end

function TestRoundingRows:test_gradients()
  for _, t in ipairs(DTYPES) do
    for _, size in ipairs { 0.5, 40 } do
      local x, y = rows_of(t, 300, size, 1), rows_of(t, 300, 1, 3)
      for name, row in pairs(COMPOSITES) do
        check_gradient(name, row[1], x, y)
      end
      for name, row in pairs(LOSSES) do
        check_gradient(name, row[1], x, y)
      end
    end
  end
end

function TestRoundingRows:test_activations_with_a_number()
  for _, t in ipairs(DTYPES) do
    local x = dc.tensor({ { -3.3, -0.7, -0.01, 0.2, 5 }, { -8, -1, -0.5, 1, 100 } }, t)
    local a = flat(x)
    check_both("elu", function(u) return nn.elu(u, 1.3) end, x, x,
      each(a, function(v) return v > 0 and v or 1.3 * (math.exp(v) - 1) end), 1)
    check_both("leaky_relu", function(u) return nn.leaky_relu(u, 0.3) end, x, x,
      each(a, function(v) return v > 0 and v or 0.3 * v end), 1)
  end
end

function TestRoundingRows:test_float_types_do_not_mix()
  for _, pair in ipairs { { "f16", "f32" }, { "f16", "bf16" }, { "bf16", "f64" } } do
    local x, y = dc.ones(pair[1] .. "[2, 4]"), dc.ones(pair[2] .. "[4]")
    for _, f in ipairs { function() return x ^ y end, function() return x % y end,
      function() return nn.layer_norm(x, 4, { weight = y }) end,
      function() return nn.rms_norm(x, 4, { weight = y }) end,
      function() return nn.cross_entropy(x, dc.tensor({ 1, 2 }, "i32"), { weight = y }) end } do
      lu.assertErrorMsgContains("DC0201", f)
    end
  end
end
