-- Metrics of numbers: means, squares, distances, the part of the variance that is explained.

local dc = require "deepc"
local metrics = require "deepc.metrics.class"
local _, core = ...

local class = core.metrics
local tensor, same_shape, wide, read_mask, count = class.tensor, class.same_shape, class.wide, class.read_mask,
  class.count

local function read_pair(op, predicted, target)
  tensor(op, "predictions", predicted)
  tensor(op, "targets", target)
  if predicted.dtype ~= target.dtype then
    core.fail("DTYPE", op, ("predictions are %s, targets %s"):format(core.describe(predicted),
      core.describe(target)), ('target:cast "%s"'):format(predicted.dtype), "predictions", predicted,
      "targets", target)
  elseif not same_shape(predicted, target) then
    core.fail("DIMS", op, ("predictions are %s, targets %s; shapes are the same"):format(core.describe(predicted),
      core.describe(target)), nil, "predictions", predicted, "targets", target)
  end
  return wide(predicted), wide(target)
end

local function masked(x, mask)
  return mask and dc.where(mask, x, 0) or x
end

-- Sums over batches are f32, whatever their terms are.
local function narrow(x)
  return x.dtype == "f32" and x or x:cast "f32"
end

-- ---- means ----

local function mean_stats(op, x, options)
  tensor(op, "values", x)
  local mask = read_mask(op, options.mask, x, "values")
  return { sum = masked(wide(x), mask):sum(), count = count(x, mask) }
end

local function mean_of(sums)
  return sums.sum / sums.count:cast(sums.sum.dtype)
end

---The mean over batches, each element counting once: `update(x, nil, { mask = m })` leaves elements out. A loss
---that is the mean of a batch counts as one value.
---
---    local loss = metrics.Mean()
---    loss:update(dc.tensor { 1, 2, 6 })
---    print(loss:result())
---@class deepc.metrics.Mean: deepc.metrics.Metric
---@overload fun(): deepc.metrics.Mean
metrics.Mean = class.new { name = "metrics.Mean", sums = { { "sum", "f32[]" }, { "count", "i32[]" } },
  stats = function(_, x, nothing, options)
    if nothing ~= nil then
      core.fail("ARG", "update", "a mean takes values alone, not " .. core.describe(nothing),
        "mean:update(x, nil, { mask = m })")
    end
    local stats = mean_stats("update", x, class.options("update", options, "mask"))
    return { sum = narrow(stats.sum), count = stats.count }
  end,
  result = mean_of }

---A running average of a value, a = d a + (1 - d) x, without the bias of its start (Kingma and Ba, 2015): what
---progress bars show of a loss.
---
---    local loss = metrics.RunningAverage(0.9)
---    loss:update(dc.tensor(3))
---    print(loss:result())
---@class deepc.metrics.RunningAverage: deepc.metrics.Metric
---@overload fun(decay?: number): deepc.metrics.RunningAverage
metrics.RunningAverage = class.new { name = "metrics.RunningAverage",
  make = function(own, decay)
    own.decay = decay == nil and 0.98 or decay
    if type(own.decay) ~= "number" or not (own.decay >= 0 and own.decay < 1) then
      core.fail("ARG", "metrics.RunningAverage", ("decay is %s; it is 0 or more, and below 1"):format(
        core.shown(own.decay)))
    end
    return { { "sum", "f32[]" }, { "weight", "f32[]" } }
  end,
  stats = function(own, x, nothing)
    tensor("update", "value", x)
    if nothing ~= nil or #x.shape > 0 then
      core.fail("ARG", "update", ("a running average takes one number, not %s"):format(
        core.describe(nothing ~= nil and nothing or x)), "average:update(x:mean())")
    end
    local function step(name, v) -- what is added to the old value
      local old = own.sums[name][1] + own.sums[name][2]
      return (v - old) * (1 - own.decay)
    end
    return { sum = step("sum", narrow(wide(x))), weight = step("weight", 1) }
  end,
  result = function(sums) return sums.sum / sums.weight end }

-- ---- errors ----

local terms = {
  mse = function(a, b) return (a - b) * (a - b) end,
  mae = function(a, b) return (a - b):abs() end,
}

local function error_stats(op, kind, predicted, target, options)
  local a, b = read_pair(op, predicted, target)
  local mask = read_mask(op, options.mask, b, "targets")
  return { sum = terms[kind](masked(a, mask), masked(b, mask)):sum(), count = count(b, mask) }
end

local function over_batches(name, kind)
  return class.new { name = name, sums = { { "sum", "f32[]" }, { "count", "i32[]" } },
    stats = function(_, predicted, target, options)
      local stats = error_stats("update", kind, predicted, target, class.options("update", options, "mask"))
      return { sum = narrow(stats.sum), count = stats.count }
    end,
    result = mean_of }
end

---The mean of (prediction - target)^2 (sklearn.metrics.mean_squared_error).
---
---    metrics.mse(dc.tensor { 1, 2 }, dc.tensor { 1, 4 })
---
---Errors: DC0202 where dtypes differ, DC0301 where shapes do.
---@param predicted deepc.Tensor
---@param target deepc.Tensor of the same type
---@param options? { mask?: deepc.Tensor }
---@return deepc.Tensor # a scalar
function metrics.mse(predicted, target, options)
  return (mean_of(error_stats("mse", "mse", predicted, target, class.options("mse", options, "mask"))))
end

---The mean of |prediction - target| (sklearn.metrics.mean_absolute_error).
---
---    metrics.mae(dc.tensor { 1, 2 }, dc.tensor { 1, 4 })
---
---Errors: DC0202 where dtypes differ, DC0301 where shapes do.
---@param predicted deepc.Tensor
---@param target deepc.Tensor of the same type
---@param options? { mask?: deepc.Tensor }
---@return deepc.Tensor # a scalar
function metrics.mae(predicted, target, options)
  return (mean_of(error_stats("mae", "mae", predicted, target, class.options("mae", options, "mask"))))
end

---The mean squared error over batches.
---
---    metrics.MSE()
---@class deepc.metrics.MSE: deepc.metrics.Metric
---@overload fun(): deepc.metrics.MSE
metrics.MSE = over_batches("metrics.MSE", "mse")

---The mean absolute error over batches.
---
---    metrics.MAE()
---@class deepc.metrics.MAE: deepc.metrics.Metric
---@overload fun(): deepc.metrics.MAE
metrics.MAE = over_batches("metrics.MAE", "mae")

-- ---- explained variance ----

-- Squares round the mean of the batch, which do not cancel as sums of squares would.
local function variance_stats(op, predicted, target, options)
  local a, b = read_pair(op, predicted, target)
  local mask = read_mask(op, options.mask, b, "targets")
  a, b = masked(a, mask), masked(b, mask)
  local n = count(b, mask):cast(b.dtype)
  local mean = b:sum() / n:maximum(1)
  local off, rest = masked(b - mean, mask), a - b
  return { n = n, mean = mean, squares = (off * off):sum(), rest = (rest * rest):sum() }
end

local function r2_of(s)
  return 1 - s.rest / s.squares
end

---The part of the variance of targets that predictions explain, 1 - sum (p - t)^2 / sum (t - mean)^2
---(sklearn.metrics.r2_score).
---
---    metrics.r2(dc.tensor { 1, 2, 4 }, dc.tensor { 1, 2, 3 })
---
---Errors: DC0202 where dtypes differ, DC0301 where shapes do.
---@param predicted deepc.Tensor
---@param target deepc.Tensor of the same type
---@param options? { mask?: deepc.Tensor }
---@return deepc.Tensor # a scalar
function metrics.r2(predicted, target, options)
  return (r2_of(variance_stats("r2", predicted, target, class.options("r2", options, "mask"))))
end

---metrics.r2 over batches.
---
---    metrics.R2()
---@class deepc.metrics.R2: deepc.metrics.Metric
---@overload fun(): deepc.metrics.R2
metrics.R2 = class.new { name = "metrics.R2",
  sums = { { "n", "f32[]" }, { "mean", "f32[]" }, { "squares", "f32[]" }, { "rest", "f32[]" } },
  -- Squares round two means become squares round the common one (Chan, Golub and LeVeque, 1983).
  stats = function(own, predicted, target, options)
    local s = variance_stats("update", predicted, target, class.options("update", options, "mask"))
    local before, mean = own.sums.n[1] + own.sums.n[2], own.sums.mean[1] + own.sums.mean[2]
    local n = narrow(s.n)
    local share = n / (before + n):maximum(1)
    local off = narrow(s.mean) - mean
    return { n = n, mean = off * share, squares = narrow(s.squares) + off * off * before * share,
      rest = narrow(s.rest) }
  end,
  result = r2_of }
