-- Metrics of scores of two classes: how well they put the rows of class 1 before the others.

local dc = require "deepc"
local metrics = require "deepc.metrics.class"
require "deepc.operands"
local _, core = ...

local class = core.metrics
local tensor, same_shape, wide, read_mask = class.tensor, class.same_shape, class.wide, class.read_mask

local function flat(x)
  return (x:reshape(-1):rename { false })
end

-- Scores, and rows of class 1 and of class 0 as f32, each [n].
local function read_pair(op, scores, labels, options)
  tensor(op, "scores", scores)
  tensor(op, "labels", labels)
  if not core.is_float(scores.dtype) then
    core.fail("DTYPE", op, ("scores are %s, floats are needed"):format(core.describe(scores)), nil, "scores", scores)
  elseif core.is_float(labels.dtype) then
    core.fail("DTYPE", op, ("labels are %s; they are 0 or 1, integers or bool"):format(core.describe(labels)),
      'labels:cast "i32"', "labels", labels)
  elseif not same_shape(scores, labels) then
    core.fail("DIMS", op, ("scores are %s, labels %s; shapes are the same"):format(core.describe(scores),
      core.describe(labels)), #scores.shape == #labels.shape + 1 and "scores[{ {}, 2 }] are those of class 1" or nil,
      "scores", scores, "labels", labels)
  end
  local mask = read_mask(op, options.mask, labels, "labels")
  if labels.dtype ~= "bool" then
    core.check_class(mask and dc.where(mask, labels, 0) or labels, 2, op)
    labels = labels:ne(0)
  end
  local yes, no = labels, ~labels
  if mask then
    yes, no = yes & mask, no & mask
  end
  return flat(wide(scores)), flat(yes):cast "f32", flat(no):cast "f32"
end

-- Rows in the order of their scores; where those of equal scores begin in it, and end.
local function in_order(scores, yes, no)
  local order = scores:argsort()
  local sorted = scores:take(order, 1)
  local first, last = sorted:searchsorted(sorted), sorted:searchsorted(sorted, { right = true })
  return yes:take(order, 1), no:take(order, 1), first, last
end

-- How much of the rows lies in front of each place from 0 to n: exact up to 2^24 rows.
local function in_front(rows, places)
  return dc.concat({ dc.zeros "f32[1]", rows:cumsum(1) }, 1):take(places, 1)
end

---The probability that a row of class 1 has a larger score than one of class 0, equal scores counting half: the
---area under the receiver operating characteristic (sklearn.metrics.roc_auc_score). Exact, by sorting.
---
---    metrics.roc_auc(dc.tensor { 0.1, 0.4, 0.35, 0.8 }, dc.tensor({ 0, 0, 1, 1 }, "i32"))
---
---Errors: DC0301 where shapes differ, DC0202 for dtypes, DC0701 for a label that is neither 0 nor 1.
---@param scores deepc.Tensor floats
---@param labels deepc.Tensor 0 or 1, of the same shape
---@param options? { mask?: deepc.Tensor }
---@return deepc.Tensor # f32[], NaN where one class has no row
function metrics.roc_auc(scores, labels, options)
  local s, all_yes, all_no = read_pair("roc_auc", scores, labels, class.options("roc_auc", options, "mask"))
  local yes, no, first, last = in_order(s, all_yes, all_no)
  return (yes * (in_front(no, first) + in_front(no, last)) * 0.5):sum() / yes:sum() / no:sum()
end

---The mean over rows of class 1 of the precision among the rows with scores as large
---(sklearn.metrics.average_precision_score). Exact, by sorting.
---
---    metrics.average_precision(dc.tensor { 0.1, 0.4, 0.35, 0.8 }, dc.tensor({ 0, 0, 1, 1 }, "i32"))
---
---Errors: as metrics.roc_auc.
---@param scores deepc.Tensor floats
---@param labels deepc.Tensor 0 or 1, of the same shape
---@param options? { mask?: deepc.Tensor }
---@return deepc.Tensor # f32[], NaN where class 1 has no row
function metrics.average_precision(scores, labels, options)
  local s, all_yes, all_no = read_pair("average_precision", scores, labels,
    class.options("average_precision", options, "mask"))
  local yes, no, first = in_order(s, all_yes, all_no)
  local found = yes:sum() - in_front(yes, first)
  local all = found + no:sum() - in_front(no, first)
  return (yes * found / all:maximum(1)):sum() / yes:sum()
end

-- ---- over batches ----

local function histogram(place, rows, n)
  return (place:reshape(-1, 1):eq(dc.iota(n)):cast "f32" * rows:reshape(-1, 1)):sum(1):cast "i32"
end

---Areas under curves over batches, by thresholds: scores from 0 to 1 are counted in so many equal intervals, in which
---they are equal. `:result()` is the area under the receiver operating characteristic, `:average_precision()`
---that under precision and recall. Scores outside count as 0 or 1: logits need a sigmoid.
---
---    metrics.AUC { thresholds = 200 }
---@class deepc.metrics.AUC: deepc.metrics.Metric
---@overload fun(options?: { thresholds?: integer }): deepc.metrics.AUC
local AUC = {}

-- Rows of both classes, and those of class 1 in intervals above each.
local function curves(sums)
  local yes, no = sums.yes:cast "f32", sums.no:cast "f32"
  return yes, no, yes:cumsum { axis = 1, reverse = true } - yes
end

metrics.AUC = class.new { name = "metrics.AUC", methods = AUC,
  make = function(own, options)
    own.n = class.options("metrics.AUC", options, "thresholds").thresholds or 1000
    if math.type(own.n) ~= "integer" or own.n < 2 then
      core.fail("ARG", "metrics.AUC", ("thresholds is an integer from 2, not %s"):format(core.shown(own.n)))
    end
    return { { "yes", ("i32[%d]"):format(own.n) }, { "no", ("i32[%d]"):format(own.n) } }
  end,
  stats = function(own, scores, labels, options)
    local s, yes, no = read_pair("update", scores, labels, class.options("update", options, "mask"))
    local place = (s * own.n):floor():clamp(0, own.n - 1):cast "i32"
    return { yes = histogram(place, yes, own.n), no = histogram(place, no, own.n) }
  end,
  result = function(sums)
    local yes, no, above = curves(sums)
    return (no * (above + yes * 0.5)):sum() / yes:sum() / no:sum()
  end }

---The area under precision and recall over all batches.
---
---    print(metrics.AUC():average_precision())
---@return deepc.Tensor
function AUC:average_precision()
  local own = class.check_self("average_precision", self)
  local yes, no, above = curves(class.sums(own))
  local found = above + yes
  local all = no:cumsum { axis = 1, reverse = true } + found
  return (yes * found / all:maximum(1)):sum() / yes:sum()
end
