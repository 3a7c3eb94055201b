-- Losses: functions of what a network gives and what it should give.
--
-- Each computes one loss per row or element and then reduces them the same way: a mask leaves rows out,
-- and the mean is over those that are in. Floats of 16 bits are f32 on the way, and rounded once, at the end.

local dc = require "deepc"
local nn = require "deepc.nn.class"
local _, core = ...
require "deepc.distances"

-- ---- losses ----

---How losses become one number. `mask` has the shape of the losses, or of their first axes; where it is
---false, or 0, nothing counts, whatever is there, NaN and infinities too: the mean is over the rest, 0 if there is
---none, and gradients are 0 there.
---@alias deepc.nn.LossOptions { reduction?: "mean"|"sum"|"none", mask?: deepc.Tensor }

---Those of cross_entropy besides.
---@alias deepc.nn.ClassOptions { label_smoothing?: number, weight?: deepc.Tensor, ignore_index?: integer }

local reductions = { mean = true, sum = true, none = true }

local function type_of(t)
  return ("%s[%s]"):format(t.dtype, core.sizes(t.shape))
end

-- The options, none as an empty table.
local function check_options(op, options, ...)
  core.options(op, options, "reduction", "mask", ...)
  options = options or {}
  if options.reduction ~= nil and not reductions[options.reduction] then
    core.fail("ARG", op, ('reduction is "mean", "sum" or "none", not %s'):format(core.shown(options.reduction)))
  end
  local mask = options.mask
  if mask ~= nil and not core.kind(mask) then
    core.check_tensor(op, mask, "mask")
  end
  return options
end

-- The mask as bools, with axes of size 1 for those that it lacks.
local function stretch_mask(op, mask, shape, about, what)
  local sizes = mask.shape
  local fits = #sizes <= #shape
  for i = 1, #sizes do
    fits = fits and sizes[i] == shape[i]
  end
  if not fits then
    core.fail("DIMS", op, ("mask is %s; one value for each loss, or each row, of [%s] is needed"):format(type_of(mask),
      core.sizes(shape)), nil, "mask", mask, what, about)
  end
  for i = #sizes + 1, #shape do
    sizes[i] = 1
  end
  mask = mask:reshape(sizes)
  return mask.dtype == "bool" and mask or (mask:ne(0))
end

-- Which losses of a shape count, as bools with as many axes; nil where all do.
local function counting(op, options, shape, about, what)
  return options.mask and stretch_mask(op, options.mask, shape, about, what) or nil
end

-- An operand x of losses where they count, and `instead` (0) elsewhere. What is left out of the result alone would be
-- multiplied by 0 in gradients, which NaN and infinities survive. x may have more axes than the losses, behind theirs.
local function only(mask, x, instead)
  if not mask then
    return x
  end
  local shape = mask.shape
  for i = #shape + 1, #x.shape do
    shape[i] = 1
  end
  return dc.where(mask:reshape(shape), x, instead or 0)
end

-- losses(a, b), which are 0 outside the mask, as their gradients are. Inside typed functions the mask is applied once,
-- to the losses, and once to each gradient, which costs less than to operands and losses.
local function where_counting(mask, losses, a, b)
  if not mask then
    return losses(a, b)
  elseif not core.tracing() then
    return only(mask, losses(only(mask, a), only(mask, b)))
  end
  return dc.custom_grad(function(x, y, m) return only(m, losses(x, y)) end, function(dy, _, x, y, m)
    local dx, dt = table.unpack(dc.grad((losses(x, y) * dy):sum(), { x, y }))
    return only(m, dx), only(m, dt), nil
  end)(a, b, mask)
end

-- The losses as the option says; they are 0 outside the mask. `weight` is what each counts in the mean, 1 unless given.
local function reduce_zeros(losses, how, mask, weight)
  how = how or "mean"
  if how == "none" then
    return losses
  elseif how == "sum" then
    return (losses:sum())
  elseif weight then
    return losses:sum() / (mask and dc.where(mask, weight, 0) or weight):sum()
  elseif mask then
    return losses:sum() / dc.where(mask, dc.ones(losses), 0):sum():maximum(1)
  end
  return (losses:mean())
end

-- The same of losses that may be anything outside the mask.
local function reduce(losses, how, mask, weight)
  return reduce_zeros(only(mask, losses), how, mask, weight)
end

local function check_pair(op, prediction, target)
  core.check_tensor(op, prediction, "prediction")
  core.check_tensor(op, target, "target")
  if not core.is_float(prediction.dtype) then
    core.fail("DTYPE", op, ("prediction is %s, floats are needed"):format(type_of(prediction)), nil, "prediction",
      prediction)
  elseif prediction.dtype ~= target.dtype then
    core.fail("DTYPE", op, ("prediction is %s, target %s"):format(type_of(prediction), type_of(target)),
      ('target:cast "%s"'):format(prediction.dtype), "prediction", prediction, "target", target)
  end
  local a, b = core.sizes(prediction.shape), core.sizes(target.shape)
  if a ~= b then
    local same_count = prediction:reshape(-1).shape[1] == target:reshape(-1).shape[1]
    core.fail("DIMS", op, ("prediction is %s, target %s; losses do not stretch axes"):format(type_of(prediction),
      type_of(target)), same_count and ("target:reshape(%s)"):format(a) or nil, "prediction", prediction, "target",
      target)
  end
end

-- Of a loss for each element: the options, and where losses count.
local function check_loss(op, prediction, target, options, ...)
  check_pair(op, prediction, target)
  options = check_options(op, options, ...)
  return options, counting(op, options, prediction.shape, prediction, "prediction")
end

-- ---- losses of classes ----

-- What may be meant by labels that are floats.
local function hint_of_labels(logits, labels)
  if logits.dtype:match "^[iu]" then
    return "logits come first: nn.cross_entropy(logits, labels)"
  elseif #labels.shape == #logits.shape then
    return "labels:argmax(-1) gives the numbers of classes, of a row for each"
  end
  return ('dc.tensor(t, "i32[%s]")'):format(core.sizes(labels.shape))
end

-- Where logits of shape a do not fit labels of shape b: what would make them fit, or nil.
local function hint_of_shapes(a, b)
  if #b == #a and b[#b] == 1 then
    return ("labels:reshape(%s)"):format(table.concat(b, ", ", 1, #b - 1))
  elseif #b == #a and b[#b] == a[#a] then
    return "one of each row? labels:argmax(-1) gives the numbers of classes; floats are probabilities"
  elseif #b ~= #a - 1 or #b < 2 or a[1] ~= b[1] then
    return nil
  end
  local order = { 1 }
  for i = 3, #a do -- classes as axis 2, as images have their channels
    if a[i] ~= b[i - 1] then
      return nil
    end
    order[#order + 1] = i
  end
  order[#order + 1] = 2
  return ("classes are the last axis: logits:permute(%s)"):format(table.concat(order, ", "))
end

local function check_labels(op, logits, labels)
  core.check_tensor(op, logits, "logits")
  core.check_tensor(op, labels, "labels")
  if not labels.dtype:match "^[iu]" then
    core.fail("DTYPE", op, ("labels are %s; class numbers are integers from 0"):format(type_of(labels)),
      hint_of_labels(logits, labels), "labels", labels)
  end
  local a, b = logits.shape, labels.shape
  local rows, classes = core.sizes(a, math.max(#a - 1, 0)), a[#a]
  if #b ~= #a - 1 or #b == 0 or rows ~= core.sizes(b) or classes == 0 then
    core.fail("DIMS", op, ("logits are %s, labels %s; f32[rows, classes] and integers[rows] are needed")
      :format(type_of(logits), type_of(labels)), hint_of_shapes(a, b), "logits", logits, "labels", labels)
  end
  return classes
end

-- A factor for each class, or none.
local function check_weight(op, weight, classes, what)
  if weight ~= nil and (not core.kind(weight) or #weight.shape ~= 1 or #weight ~= classes) then
    core.fail("DIMS", op, ("%s is a tensor of one number for each of %s classes"):format(what or "weight",
      tostring(classes)), nil, what or "weight", weight)
  end
end

local function check_class_options(op, options, classes, smooths)
  if smooths == false then
    options = check_options(op, options, "weight", "ignore_index")
  else
    options = check_options(op, options, "weight", "label_smoothing", "ignore_index")
  end
  local weight, smoothing, ignored = options.weight, options.label_smoothing, options.ignore_index
  check_weight(op, weight, classes)
  if smoothing ~= nil and (type(smoothing) ~= "number" or not (smoothing >= 0 and smoothing <= 1)) then
    core.fail("ARG", op, ("label_smoothing is a number from 0 to 1, not %s"):format(core.shown(smoothing)))
  end
  if ignored ~= nil and math.type(ignored) ~= "integer" then
    core.fail("ARG", op, ("ignore_index is an integer, not %s"):format(core.shown(ignored)))
  end
  return options
end

-- Where rows count: not those with the ignored label, nor those outside the mask. nil: everywhere.
local function kept_rows(op, logits, labels, options)
  local mask = counting(op, options, labels.shape, logits, "logits")
  local kept = options.ignore_index and labels:ne(options.ignore_index) or nil
  if mask then
    mask = mask:expand(labels.shape)
    return kept and mask & kept or mask
  end
  return kept
end

-- A shape with one more axis behind it.
local function with_axis(shape, size)
  local list = { table.unpack(shape) }
  list[#list + 1] = size
  return list
end

-- bool[..., classes]: which class the label is. Labels that are not kept are not looked at, and count as 0.
local function hits(op, labels, kept, classes)
  local safe = kept and dc.where(kept, labels, 0) or labels
  core.check_class(safe, classes, op)
  return dc.iota(classes):eq(safe:cast("i32"):reshape(with_axis(safe.shape, 1)))
end

-- Targets that are a probability for each class.
local function soft_cross_entropy(op, logits, target, options)
  check_pair(op, logits, target)
  local classes = logits:size(-1)
  options = check_class_options(op, options, classes)
  if options.ignore_index ~= nil then
    core.fail("ARG", op, "ignore_index is for labels that are integers; targets are probabilities here", "a mask")
  end
  local smoothing = options.label_smoothing or 0
  local mask = counting(op, options, { table.unpack(logits.shape, 1, #logits.shape - 1) }, logits, "logits")
  local narrow, wide, y, weight = core.in_f32(logits, target, options.weight)
  wide, y = only(mask, wide), only(mask, y)
  if smoothing > 0 then
    y = y * (1 - smoothing) + smoothing / classes
  end
  local terms = wide:log_softmax(-1) * (weight and y * weight or y)
  return (narrow(reduce(-terms:sum(-1), options.reduction, mask)))
end

---Of each row, -log softmax(logits) at its label, from 0; the mean over rows. Logits may have more axes:
---the last is the classes', the others are those of the labels.
---
---    nn.cross_entropy(dc.zeros "f32[2, 10]", dc.tensor({ 3, 7 }, "i32"))
---
---`label_smoothing` = e mixes the label with the uniform distribution, (1 - e) and e (Szegedy et al.,
---2016); `weight` has a factor for each class, by whose sum the mean divides; rows with the label
---`ignore_index` do not count. Labels of the type of the logits are probabilities of all classes: -sum(p log softmax).
---
---Errors: DC0202 for labels that are no integers, DC0301 for other shapes, DC0701 for a label outside.
---@param logits deepc.Tensor f32[rows, classes]
---@param labels deepc.Tensor integers[rows], 0 to classes - 1; or floats[rows, classes]
---@param options? deepc.nn.LossOptions|deepc.nn.ClassOptions
---@return deepc.Tensor # f32[]
function nn.cross_entropy(logits, labels, options)
  local op = "cross_entropy"
  if core.softmax_of and rawequal(core.softmax_of[1], logits) and logits ~= nil then
    core.softmax_of = nil
    core.note "cross_entropy: its softmax is taken of what nn.Softmax gave: logits are what comes before that layer"
  end
  if core.kind(logits) and core.kind(labels) and #labels.shape == #logits.shape and #logits.shape > 0
    and labels.dtype == logits.dtype and core.is_float(labels.dtype) then
    local loss = soft_cross_entropy(op, logits, labels, options)
    return loss
  end
  local classes = check_labels(op, logits, labels)
  options = check_class_options(op, options, classes)
  local kept = kept_rows(op, logits, labels, options)
  local hit = hits(op, labels, kept, classes)
  local narrow, wide, weight = core.in_f32(logits, options.weight)
  local terms = only(kept, wide):log_softmax(-1)
  if weight then
    terms = terms * weight
  end
  local rest = (options.label_smoothing or 0) / classes
  terms = dc.where(hit, rest > 0 and terms * (1 - classes * rest + rest) or terms, rest > 0 and terms * rest or 0)
  if not kept and not weight and (options.reduction or "mean") == "mean" then
    local rows = labels:reshape(-1).shape[1]
    local loss = narrow(core.is_size(rows) and -terms:sum() / rows or terms:sum() * (-1 / rows))
    return loss
  end
  local each = weight and dc.where(hit, weight, 0):sum(-1)
  local loss = narrow(reduce(-terms:sum(-1), options.reduction, kept, each))
  return loss
end

-- max(x, 0) - x y + log(1 + exp(-|x|))
local function of_logits(x, y)
  return x:maximum(0) - x * y + (-x:abs()):exp():log1p()
end

---Binary cross entropy of probabilities sigmoid(logits): -y log(p) - (1 - y) log(1 - p), computed as
---max(x, 0) - x y + log(1 + exp(-|x|)), which neither overflows nor loses small numbers; the mean over
---elements. `pos_weight` multiplies the term of y = 1.
---
---    nn.bce_with_logits(dc.tensor { 2, -1 }, dc.tensor { 1, 0 })
---
---Errors: DC0202 where they are no floats of one dtype, DC0301 where shapes differ, or that of the mask;
---DC0101 for options.
---@param logits deepc.Tensor floats
---@param target deepc.Tensor of the same type, from 0 to 1
---@param options? { reduction?: "mean"|"sum"|"none", mask?: deepc.Tensor, pos_weight?: deepc.Operand }
---@return deepc.Tensor # a scalar
function nn.bce_with_logits(logits, target, options)
  local op = "bce_with_logits"
  local mask
  options, mask = check_loss(op, logits, target, options, "pos_weight")
  local narrow, x, y, positive = core.in_f32(logits, target, options.pos_weight)
  local losses
  if positive == nil then
    losses = where_counting(mask, of_logits, x, y)
  else
    x, y = only(mask, x), only(mask, y)
    local low = (-x:abs()):exp():log1p() -- log(1 + exp(-|x|))
    losses = only(mask, (1 - y) * x + (1 + (positive - 1) * y) * (low + (-x):maximum(0)))
  end
  local loss = narrow(reduce_zeros(losses, options.reduction, mask))
  return loss
end

-- Max(x, 0), whose derivative at 0 is 0.
local function above_zero(x)
  return dc.where(x:gt(0), x, 0)
end

-- x^n for x from 0 on and n not below 0, whose derivative at 0 is finite.
local function power(x, n)
  if n == 0 then
    return 1
  elseif n == 1 then
    return x
  end
  return n == 2 and x * x or core.power(x, n)
end

-- What other files with losses need.
core.losses = { type_of = type_of, check_options = check_options, check_pair = check_pair, check_loss = check_loss,
  check_labels = check_labels, check_weight = check_weight, check_class_options = check_class_options,
  counting = counting, only = only, kept_rows = kept_rows, hits = hits, reduce = reduce, with_axis = with_axis,
  above_zero = above_zero, power = power }

-- -log(p) and -log(1 - p), no larger than 100.
local function two_logs(p)
  return (-p:log()):minimum(100), (-(-p):log1p()):minimum(100)
end

-- The first where y is 1, the second where it is 0, in between parts of both; 0 outside the mask.
local function minus_logs(p, y, mask)
  local one, other = two_logs(p)
  return only(mask, y * one + (1 - y) * other)
end

-- Inside typed functions its slope is written by hand: one division, and no logarithm. Where p is 0 or 1 the slope is 0
-- where p is right, as PyTorch has it, and steep where it is wrong.
local traced_logs -- made when it is first wanted: a script may have taken dc apart before it requires this module

local function slope_of_logs(dy, _, p, y, mask)
  local variance, one, other = p * (1 - p), two_logs(p)
  local slope = (p - y) / dc.where(variance:eq(0), 1e-12, variance)
  return only(mask, dy * slope), only(mask, dy * (one - other)), nil
end

-- Elsewhere, what it differentiates to is chosen: a line where p is 0 or 1, of that slope.
local function lazy_logs(p, y)
  local none, all = p:eq(0), p:eq(1)
  local q = dc.where(none | all, 0.5, p)
  local losses = minus_logs(q, y)
  return dc.where(none, y * (100 - p * 1e12), dc.where(all, (1 - y) * (100 - (1 - p) * 1e12), losses))
end

---Binary cross entropy of probabilities: -y log(p) - (1 - y) log(1 - p), logarithms no smaller than -100; the mean over
---elements. nn.bce_with_logits takes what comes before the sigmoid, and loses no digits.
---torch.nn.functional.binary_cross_entropy.
---
---    nn.bce_loss(dc.tensor { 0.9, 0.2 }, dc.tensor { 1, 0 })
---
---Errors: DC0202 where they are no floats of one dtype, DC0301 where shapes differ, or that of the mask;
---DC0101 for options.
---@param probabilities deepc.Tensor floats, from 0 to 1
---@param target deepc.Tensor of the same type
---@param options? deepc.nn.LossOptions
---@return deepc.Tensor # a scalar
function nn.bce_loss(probabilities, target, options)
  local op = "bce_loss"
  local mask
  options, mask = check_loss(op, probabilities, target, options)
  local narrow, p, y = core.in_f32(probabilities, target)
  local losses
  if core.tracing() then
    traced_logs = traced_logs or dc.custom_grad(minus_logs, slope_of_logs)
    losses = traced_logs(p, y, mask)
  else
    losses = lazy_logs(only(mask, p), only(mask, y))
  end
  local loss = narrow(reduce_zeros(losses, options.reduction, mask))
  return loss
end

-- ---- losses of numbers ----

---The mean of (prediction - target)^2 over elements.
---
---    nn.mse_loss(dc.tensor { 1, 2 }, dc.tensor { 1, 4 })
---
---Errors: DC0202 where they are no floats of one dtype, DC0301 where shapes differ, or that of the mask;
---DC0101 for options.
---@param prediction deepc.Tensor floats
---@param target deepc.Tensor of the same type
---@param options? deepc.nn.LossOptions
---@return deepc.Tensor # a scalar
function nn.mse_loss(prediction, target, options)
  local mask
  options, mask = check_loss("mse_loss", prediction, target, options)
  local narrow, a, b = core.in_f32(prediction, target)
  local off = only(mask, a - b)
  local loss = narrow(reduce_zeros(off * off, options.reduction, mask))
  return loss
end

---The mean of |prediction - target| over elements.
---
---    nn.l1_loss(dc.tensor { 1, 2 }, dc.tensor { 1, 4 })
---
---Errors: DC0202 where they are no floats of one dtype, DC0301 where shapes differ, or that of the mask;
---DC0101 for options.
---@param prediction deepc.Tensor floats
---@param target deepc.Tensor of the same type
---@param options? deepc.nn.LossOptions
---@return deepc.Tensor # a scalar
function nn.l1_loss(prediction, target, options)
  local mask
  options, mask = check_loss("l1_loss", prediction, target, options)
  local narrow, a, b = core.in_f32(prediction, target)
  local loss = narrow(reduce_zeros(only(mask, a - b):abs(), options.reduction, mask))
  return loss
end

---The mean of a loss that is d^2 / 2 for distances d up to delta and delta (d - delta / 2) beyond: rows
---far off pull no harder than others (Huber, 1964).
---
---    nn.huber_loss(dc.tensor { 1, 2 }, dc.tensor { 1, 4 }, { delta = 0.5 })
---
---Errors: DC0202 where they are no floats of one dtype, DC0301 where shapes differ, or that of the mask;
---DC0101 for options.
---@param prediction deepc.Tensor floats
---@param target deepc.Tensor of the same type
---@param options? { reduction?: "mean"|"sum"|"none", mask?: deepc.Tensor, delta?: number } delta is 1
---@return deepc.Tensor # a scalar
function nn.huber_loss(prediction, target, options)
  local op = "huber_loss"
  local mask
  options, mask = check_loss(op, prediction, target, options, "delta")
  local delta = options.delta or 1
  if type(delta) ~= "number" or delta ~= delta or delta <= 0 then
    core.fail("ARG", op, ("delta is a positive number, not %s"):format(core.shown(delta)))
  end
  local narrow, a, b = core.in_f32(prediction, target)
  local losses = where_counting(mask, function(x, y)
    local d = (x - y):abs()
    local near = d:minimum(delta)
    return near * (d - near * 0.5)
  end, a, b)
  local loss = narrow(reduce_zeros(losses, options.reduction, mask))
  return loss
end

---d^2 / (2 beta) for distances d below beta and d - beta / 2 beyond; the mean. nn.huber_loss is beta times this, and
---beta of 0 is nn.l1_loss. torch.nn.functional.smooth_l1_loss.
---
---    nn.smooth_l1_loss(dc.tensor { 1, 2 }, dc.tensor { 1, 4 })
---
---Errors: DC0202 where they are no floats of one dtype, DC0301 where shapes differ, or that of the mask;
---DC0101 for options.
---@param prediction deepc.Tensor floats
---@param target deepc.Tensor of the same type
---@param options? { reduction?: "mean"|"sum"|"none", mask?: deepc.Tensor, beta?: number } beta is 1
---@return deepc.Tensor # a scalar
function nn.smooth_l1_loss(prediction, target, options)
  local op = "smooth_l1_loss"
  local mask
  options, mask = check_loss(op, prediction, target, options, "beta")
  local beta = options.beta or 1
  if type(beta) ~= "number" or beta ~= beta or beta < 0 then
    core.fail("ARG", op, ("beta is a number from 0, not %s"):format(core.shown(beta)))
  end
  local narrow, a, b = core.in_f32(prediction, target)
  local d = only(mask, a - b):abs()
  local losses = beta == 0 and d or dc.where(d:lt(beta), d * d * (0.5 / beta), d - 0.5 * beta)
  local loss = narrow(reduce_zeros(losses, options.reduction, mask))
  return loss
end
