-- Metrics of classes: what was predicted against labels, which count from 0.

local dc = require "deepc"
local metrics = require "deepc.metrics.class"
require "deepc.operands"
local _, core = ...

local class = core.metrics
local tensor, same_shape, read_mask, count = class.tensor, class.same_shape, class.read_mask, class.count

local function is_float(x)
  return core.is_float(x.dtype)
end

local function refuse(op, predicted, labels, hint)
  core.fail("DIMS", op, ("predictions are %s, labels %s; scores [..., classes] or integers [...] are needed"):format(
    core.describe(predicted), core.describe(labels)), hint, "predictions", predicted, "labels", labels)
end

local function check_labels(op, labels)
  tensor(op, "labels", labels)
  if is_float(labels) then
    core.fail("DTYPE", op, ("labels are %s; class numbers are integers from 0"):format(core.describe(labels)),
      'labels:cast "i32"', "labels", labels)
  end
  return labels.dtype == "i32" and labels or (labels:cast "i32")
end

-- Has x the axes of labels, and one more for classes?
local function has_classes(x, labels)
  local fits = #x.shape == #labels.shape + 1
  for i, size in ipairs(labels.shape) do
    fits = fits and x.shape[i] == size
  end
  return fits
end

local function check_scores(op, scores, labels)
  tensor(op, "scores", scores)
  if not is_float(scores) or not has_classes(scores, labels) then
    core.fail("DIMS", op, ("scores are %s, labels %s; floats [..., classes] and integers [...] are needed"):format(
      core.describe(scores), core.describe(labels)), nil, "scores", scores, "labels", labels)
  end
end

-- Numbers of classes: of scores the largest, integers as they are.
local function read_pair(op, predicted, labels)
  labels = check_labels(op, labels)
  tensor(op, "predictions", predicted)
  if not is_float(predicted) then
    if not same_shape(predicted, labels) then
      refuse(op, predicted, labels)
    end
    return predicted.dtype == "i32" and predicted or predicted:cast "i32", labels
  elseif not has_classes(predicted, labels) then
    refuse(op, predicted, labels, same_shape(predicted, labels) and
      'x:gt(0.5):cast "i32" makes classes of probabilities' or nil)
  end
  return predicted:argmax(-1), labels
end

-- ---- accuracy ----

local function hits_of(op, predicted, labels, top)
  if not top then
    local a, b = read_pair(op, predicted, labels)
    return a:eq(b), b
  end
  labels = check_labels(op, labels)
  check_scores(op, predicted, labels)
  local classes = predicted.shape[#predicted.shape]
  if top > classes then
    core.fail("ARG", op, ("top is %d, there are %d classes"):format(top, classes), nil, "scores", predicted)
  end
  core.check_class(labels, classes, op)
  local column = labels.shape
  column[#column + 1] = 1
  local number, label = dc.iota(classes), labels:reshape(column)
  local own = dc.where(number:eq(label), predicted, 0):sum { axis = -1, keep = true }
  local before = predicted:gt(own) | (predicted:eq(own) & number:gt(label)) -- of equal scores the last class is first
  return before:sum(-1):lt(top), labels
end

local function accuracy_stats(op, predicted, labels, options, top)
  local hits, rows = hits_of(op, predicted, labels, top)
  local mask = read_mask(op, options.mask, rows, "labels")
  return { correct = (mask and hits & mask or hits):sum(), count = count(rows, mask) }
end

local function ratio(a, b)
  return a:cast "f32" / b:cast "f32"
end

local function accuracy_of(sums)
  return ratio(sums.correct, sums.count)
end

---The part of rows whose class was predicted (sklearn.metrics.accuracy_score): of scores [..., classes] the class
---with the largest, integers are classes. Rows where `mask` is false or 0 do not count.
---
---    metrics.accuracy(dc.tensor { { 0.1, 0.9 }, { 0.8, 0.2 } }, dc.tensor({ 1, 1 }, "i32"))
---
---Errors: DC0301 where shapes do not fit, DC0202 for labels that are no integers.
---@param predicted deepc.Tensor scores[..., classes] or integers[...]
---@param labels deepc.Tensor integers[...]
---@param options? { mask?: deepc.Tensor }
---@return deepc.Tensor # f32[], NaN of no rows
function metrics.accuracy(predicted, labels, options)
  options = class.options("accuracy", options, "mask")
  return (accuracy_of(accuracy_stats("accuracy", predicted, labels, options)))
end

local function check_top(op, k)
  if math.type(k) ~= "integer" or k < 1 then
    core.fail("ARG", op, ("k is a positive integer, not %s"):format(core.shown(k)))
  end
end

---The part of rows whose label is among the k classes with the largest scores
---(sklearn.metrics.top_k_accuracy_score; of equal scores the last class is first, as there).
---
---    metrics.top_k_accuracy(dc.tensor { { 0.5, 0.3, 0.2 } }, dc.tensor({ 1 }, "i32"), 2)
---
---Errors: DC0301 where shapes do not fit, DC0101 for a k beyond the classes, DC0701 for a label outside.
---@param scores deepc.Tensor floats[..., classes]
---@param labels deepc.Tensor integers[...]
---@param k integer
---@param options? { mask?: deepc.Tensor }
---@return deepc.Tensor # f32[]
function metrics.top_k_accuracy(scores, labels, k, options)
  check_top("top_k_accuracy", k)
  options = class.options("top_k_accuracy", options, "mask")
  return (accuracy_of(accuracy_stats("top_k_accuracy", scores, labels, options, k)))
end

---Accuracy over batches; with `top` = k that of the k best classes.
---
---    metrics.Accuracy { top = 5 }
---@class deepc.metrics.Accuracy: deepc.metrics.Metric
---@overload fun(options?: { top?: integer }): deepc.metrics.Accuracy
metrics.Accuracy = class.new { name = "metrics.Accuracy",
  make = function(own, options)
    own.top = class.options("metrics.Accuracy", options, "top").top
    if own.top then
      check_top("metrics.Accuracy", own.top)
    end
    return { { "correct", "i32[]" }, { "count", "i32[]" } }
  end,
  stats = function(own, predicted, labels, options)
    options = class.options("update", options, "mask")
    return accuracy_stats("update", predicted, labels, options, own.top)
  end,
  result = accuracy_of }

-- ---- confusion ----

local function check_classes(op, classes)
  if math.type(classes) ~= "integer" or classes < 1 then
    core.fail("ARG", op, ("classes is a positive integer, not %s"):format(core.shown(classes)))
  end
end

-- i32[classes, classes]: a product of rows that have one 1 each, exact in f32 up to 2^24 rows.
local function confusion(op, predicted, labels, classes, options)
  local a, b = read_pair(op, predicted, labels)
  local mask = read_mask(op, options.mask, b, "labels")
  a, b = a:reshape(-1), b:reshape(-1)
  if mask then
    mask = mask:reshape(-1)
    a, b = dc.where(mask, a, 0), dc.where(mask, b, 0)
  end
  core.check_class(b, classes, op)
  core.check_class(a, classes, op)
  local numbers = dc.iota(classes)
  local truth = b:reshape(-1, 1):eq(numbers):cast "f32"
  if mask then
    truth = truth * mask:cast("f32"):reshape(-1, 1)
  end
  return truth:transpose():matmul(a:reshape(-1, 1):eq(numbers):cast "f32"):cast "i32"
end

---How often class j was predicted for label i, at [i, j] (sklearn.metrics.confusion_matrix).
---
---    metrics.confusion_matrix(dc.tensor({ 0, 1, 1 }, "i32"), dc.tensor({ 0, 1, 0 }, "i32"), 2)
---
---Errors: DC0301 where shapes do not fit, DC0701 for a class outside.
---@param predicted deepc.Tensor scores[..., classes] or integers[...]
---@param labels deepc.Tensor integers[...]
---@param classes integer
---@param options? { mask?: deepc.Tensor }
---@return deepc.Tensor # i32[classes, classes]
function metrics.confusion_matrix(predicted, labels, classes, options)
  check_classes("confusion_matrix", classes)
  options = class.options("confusion_matrix", options, "mask")
  return (confusion("confusion_matrix", predicted, labels, classes, options))
end

local averages = { macro = true, micro = true, weighted = true, none = true, binary = true }

local function check_average(op, average, classes)
  average = average == nil and "macro" or average
  if not averages[average] then
    core.fail("ARG", op, ('average is "macro", "micro", "weighted", "binary" or "none", not %s'):format(
      core.shown(average)))
  elseif average == "binary" and classes ~= 2 then
    core.fail("ARG", op, ('average = "binary" is of class 1 of 2, there are %d classes'):format(classes))
  end
  return average
end

-- a / b, 0 where b is 0.
local function safe(a, b)
  return dc.where(b:gt(0), a / dc.where(b:gt(0), b, 1), 0)
end

-- From true positives, and what else was predicted and what else was there; f32[classes] each.
local scores = {
  precision = function(tp, fp) return safe(tp, tp + fp) end,
  recall = function(tp, _, fn) return safe(tp, tp + fn) end,
  f1 = function(tp, fp, fn) return safe(2 * tp, 2 * tp + fp + fn) end,
  iou = function(tp, fp, fn) return safe(tp, tp + fp + fn) end,
}

local function score(matrix, kind, average)
  local m = matrix:cast "f32"
  local tp = dc.einsum("i i -> i", m)
  local predicted, there = m:sum(1), m:sum(2)
  if average == "micro" then
    tp, predicted, there = tp:sum(), predicted:sum(), there:sum()
    return scores[kind](tp, predicted - tp, there - tp)
  end
  local each = scores[kind](tp, predicted - tp, there - tp)
  if average == "none" then
    return each
  elseif average == "binary" then
    return each[2]
  elseif average == "weighted" then
    return safe((each * there):sum(), there:sum())
  end
  local used = (predicted + there):gt(0) -- as scikit-learn, which knows the classes that occur alone
  return safe(dc.where(used, each, 0):sum(), used:cast("f32"):sum())
end

local function one_batch(kind, predicted, labels, classes, options)
  check_classes(kind, classes)
  options = class.options(kind, options, "mask", "average")
  local average = check_average(kind, options.average, classes)
  return (score(confusion(kind, predicted, labels, classes, options), kind, average))
end

---The part of what was predicted that is right (sklearn.metrics.precision_score, zero where nothing was
---predicted): the mean over the classes that occur, `average = "micro"` over all rows, `"weighted"` by how often
---labels occur, `"binary"` of class 1, `"none"` for each class.
---
---    metrics.precision(dc.tensor({ 0, 1, 1 }, "i32"), dc.tensor({ 0, 1, 0 }, "i32"), 2, { average = "binary" })
---
---Errors: as metrics.confusion_matrix; DC0101 for options.
---@param predicted deepc.Tensor scores[..., classes] or integers[...]
---@param labels deepc.Tensor integers[...]
---@param classes integer
---@param options? { mask?: deepc.Tensor, average?: "macro"|"micro"|"weighted"|"binary"|"none" }
---@return deepc.Tensor # f32[], or f32[classes]
function metrics.precision(predicted, labels, classes, options)
  return (one_batch("precision", predicted, labels, classes, options))
end

---The part of what is there that was found (sklearn.metrics.recall_score); averages as metrics.precision.
---
---    metrics.recall(dc.tensor({ 0, 1, 1 }, "i32"), dc.tensor({ 0, 1, 0 }, "i32"), 2)
---
---Errors: as metrics.precision.
---@param predicted deepc.Tensor scores[..., classes] or integers[...]
---@param labels deepc.Tensor integers[...]
---@param classes integer
---@param options? { mask?: deepc.Tensor, average?: "macro"|"micro"|"weighted"|"binary"|"none" }
---@return deepc.Tensor # f32[], or f32[classes]
function metrics.recall(predicted, labels, classes, options)
  return (one_batch("recall", predicted, labels, classes, options))
end

---The harmonic mean of precision and recall (sklearn.metrics.f1_score); averages as metrics.precision.
---
---    metrics.f1(dc.tensor({ 0, 1, 1 }, "i32"), dc.tensor({ 0, 1, 0 }, "i32"), 2)
---
---Errors: as metrics.precision.
---@param predicted deepc.Tensor scores[..., classes] or integers[...]
---@param labels deepc.Tensor integers[...]
---@param classes integer
---@param options? { mask?: deepc.Tensor, average?: "macro"|"micro"|"weighted"|"binary"|"none" }
---@return deepc.Tensor # f32[], or f32[classes]
function metrics.f1(predicted, labels, classes, options)
  return (one_batch("f1", predicted, labels, classes, options))
end

---Intersection over union of what was predicted and what is there, for each class
---(sklearn.metrics.jaccard_score); averages as metrics.precision. Of images [n, h, w] of classes the
---usual mean IoU.
---
---    metrics.iou(dc.tensor({ 0, 1, 1 }, "i32"), dc.tensor({ 0, 1, 0 }, "i32"), 2)
---
---Errors: as metrics.precision.
---@param predicted deepc.Tensor scores[..., classes] or integers[...]
---@param labels deepc.Tensor integers[...]
---@param classes integer
---@param options? { mask?: deepc.Tensor, average?: "macro"|"micro"|"weighted"|"binary"|"none" }
---@return deepc.Tensor # f32[], or f32[classes]
function metrics.iou(predicted, labels, classes, options)
  return (one_batch("iou", predicted, labels, classes, options))
end

---A confusion matrix over batches, and what follows from it.
---
---    metrics.ConfusionMatrix(10)
---@class deepc.metrics.ConfusionMatrix: deepc.metrics.Metric
---@overload fun(classes: integer): deepc.metrics.ConfusionMatrix
local ConfusionMatrix = {}

metrics.ConfusionMatrix = class.new { name = "metrics.ConfusionMatrix", methods = ConfusionMatrix,
  make = function(own, classes)
    check_classes("metrics.ConfusionMatrix", classes)
    own.classes = classes
    return { { "matrix", ("i32[%d, %d]"):format(classes, classes) } }
  end,
  stats = function(own, predicted, labels, options)
    options = class.options("update", options, "mask")
    return { matrix = confusion("update", predicted, labels, own.classes, options) }
  end,
  result = function(sums) return sums.matrix end }

local function of_matrix(kind, self, average)
  local own = class.check_self(kind, self)
  return (score(own.sums.matrix[1] * 1, kind, check_average(kind, average, own.classes)))
end

---Precision over all batches; `average` as in metrics.precision.
---
---    print(metrics.ConfusionMatrix(3):precision "micro")
---@param average? "macro"|"micro"|"weighted"|"binary"|"none"
---@return deepc.Tensor
function ConfusionMatrix:precision(average)
  return (of_matrix("precision", self, average))
end

---Recall over all batches.
---
---    print(metrics.ConfusionMatrix(3):recall())
---@param average? "macro"|"micro"|"weighted"|"binary"|"none"
---@return deepc.Tensor
function ConfusionMatrix:recall(average)
  return (of_matrix("recall", self, average))
end

---F1 over all batches.
---
---    print(metrics.ConfusionMatrix(3):f1 "weighted")
---@param average? "macro"|"micro"|"weighted"|"binary"|"none"
---@return deepc.Tensor
function ConfusionMatrix:f1(average)
  return (of_matrix("f1", self, average))
end

---Intersection over union over all batches.
---
---    print(metrics.ConfusionMatrix(3):iou())
---@param average? "macro"|"micro"|"weighted"|"binary"|"none"
---@return deepc.Tensor
function ConfusionMatrix:iou(average)
  return (of_matrix("iou", self, average))
end

---The part of rows whose class was predicted, over all batches.
---
---    print(metrics.ConfusionMatrix(3):accuracy())
---@return deepc.Tensor
function ConfusionMatrix:accuracy()
  local m = class.check_self("accuracy", self).sums.matrix[1]:cast "f32"
  return dc.einsum("i i ->", m) / m:sum()
end
