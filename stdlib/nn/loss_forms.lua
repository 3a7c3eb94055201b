-- More losses: of logarithms of probabilities, of pairs and triples, of classes by margins, of overlaps.
--
-- Each has a loss for each row or element and reduces it as those of losses.lua do.

local dc = require "deepc"
local nn = require "deepc.nn.class"
local _, core = ...

local l = core.losses
local type_of, check_number = l.type_of, core.check_number

local function check_floats(op, what, x, like)
  core.check_tensor(op, x, what)
  if not core.is_float(x.dtype) or like and x.dtype ~= like.dtype then
    core.fail("DTYPE", op, ("%s is %s; %s is needed"):format(what, type_of(x), like and like.dtype or "a float"), nil,
      what, x)
  end
end

local function check_same_shape(op, what, x, about, y)
  if core.sizes(x.shape) ~= core.sizes(y.shape) then
    core.fail("DIMS", op, ("%s is %s, %s %s; losses do not stretch axes"):format(what, type_of(x), about, type_of(y)),
      nil, what, x, about, y)
  end
end

-- Sum of a * b along the last axis, of a shape without it.
local function dot(a, b)
  return ((a * b):sum(-1))
end

-- ---- logarithms of probabilities ----

---Of each row, minus the log probability at its label, from 0; the mean over rows. nn.cross_entropy is this of logits.
---The classes are the last axis. torch.nn.functional.nll_loss.
---
---    nn.nll_loss(dc.zeros("f32[2, 10]"):log_softmax(-1), dc.tensor({ 3, 7 }, "i32"))
---
---`weight` has a factor for each class, by whose sum the mean divides; rows with the label `ignore_index` do not count.
---
---Errors: DC0202 for labels that are no integers, DC0301 for other shapes, DC0701 for a label outside.
---@param log_probs deepc.Tensor f32[rows, classes]
---@param labels deepc.Tensor integers[rows], 0 to classes - 1
---@param options? deepc.nn.LossOptions|{ weight?: deepc.Tensor, ignore_index?: integer }
---@return deepc.Tensor # f32[]
function nn.nll_loss(log_probs, labels, options)
  local op = "nll_loss"
  local classes = l.check_labels(op, log_probs, labels)
  options = l.check_class_options(op, options, classes, false)
  local kept = l.kept_rows(op, log_probs, labels, options)
  local hit = l.hits(op, labels, kept, classes)
  local narrow, wide, weight = core.in_f32(log_probs, options.weight)
  wide = l.only(kept, wide)
  local terms = dc.where(hit, weight and wide * weight or wide, 0)
  local each = weight and dc.where(hit, weight, 0):sum(-1)
  local loss = narrow(l.reduce(-terms:sum(-1), options.reduction, kept, each))
  return loss
end

---target * (log(target) - prediction), where the prediction is the logarithm of a probability, and 0 where the
---target is; the mean over elements. With log_target the target is a logarithm, too. torch.nn.functional.kl_div.
---
---    nn.kl_div(dc.zeros("f32[2, 4]"):log_softmax(-1), dc.full("f32[2, 4]", 0.25), { reduction = "batchmean" })
---
---reduction = "batchmean" divides the sum by the size of the first axis: the divergence of the distributions.
---
---Errors: DC0202 where they are no floats of one dtype, DC0301 where shapes differ; DC0101 for options.
---@param prediction deepc.Tensor floats, logarithms
---@param target deepc.Tensor of the same type
---@param options? { reduction?: "mean"|"batchmean"|"sum"|"none", mask?: deepc.Tensor, log_target?: boolean }
---@return deepc.Tensor # a scalar
function nn.kl_div(prediction, target, options)
  local op = "kl_div"
  local by_batch = options and options.reduction == "batchmean"
  if by_batch then
    core.options(op, options, "reduction", "mask", "log_target")
    options = { reduction = "sum", mask = options.mask, log_target = options.log_target }
  end
  local mask
  options, mask = l.check_loss(op, prediction, target, options, "log_target")
  core.check_flags(op, options, "log_target")
  if by_batch and #prediction.shape == 0 then
    core.fail("DIMS", op, "batchmean needs a first axis", nil, "prediction", prediction)
  end
  local narrow, a, b = core.in_f32(prediction, target)
  a, b = l.only(mask, a), l.only(mask, b)
  local losses
  if options.log_target then
    local some = b:gt(-math.huge)
    b = dc.where(some, b, 0)
    losses = dc.where(some, b:exp() * (b - dc.where(some, a, 0)), 0)
  else
    local some = b:gt(0)
    losses = dc.where(some, b * dc.where(some, b, 1):log(), 0) - b * dc.where(b:ne(0), a, 0)
  end
  local loss = l.reduce(losses, options.reduction, mask)
  loss = narrow(by_batch and loss / prediction:size(1) or loss)
  return loss
end

---exp(prediction) - target * prediction for a prediction of the logarithm of a rate, without the constant of the
---target; with log_input = false prediction - target * log(prediction + eps). full adds Stirling's approximation of
---the constant. torch.nn.functional.poisson_nll_loss.
---
---    nn.poisson_nll_loss(dc.tensor { 0.5, 1 }, dc.tensor { 2, 3 })
---
---Errors: DC0202 where they are no floats of one dtype, DC0301 where shapes differ; DC0101 for options.
---@param prediction deepc.Tensor floats
---@param target deepc.Tensor of the same type
---@param options? { reduction?: string, mask?: deepc.Tensor, log_input?: boolean, full?: boolean, eps?: number } 1e-8
---@return deepc.Tensor # a scalar
function nn.poisson_nll_loss(prediction, target, options)
  local op = "poisson_nll_loss"
  local mask
  options, mask = l.check_loss(op, prediction, target, options, "log_input", "full", "eps")
  core.check_flags(op, options, "log_input", "full")
  check_number(op, "eps", options.eps or 0)
  local narrow, a, b = core.in_f32(prediction, target)
  a, b = l.only(mask, a, 1), l.only(mask, b)
  local losses
  if options.log_input == false then
    losses = a - b * (a + (options.eps or 1e-8)):log()
  else
    losses = a:exp() - b * a
  end
  if options.full then
    local large = b:gt(1)
    local n = dc.where(large, b, 1)
    losses = losses + dc.where(large, n * n:log() - n + (n * (2 * math.pi)):log() * 0.5, 0)
  end
  local loss = narrow(l.reduce(losses, options.reduction, mask))
  return loss
end

---(log(variance) + (prediction - target)^2 / variance) / 2, the variance at least eps; full adds log(2 pi) / 2. The
---variance has the shape of the prediction, or 1 in its place along the last axis, or lacks that axis.
---torch.nn.functional.gaussian_nll_loss.
---
---    nn.gaussian_nll_loss(dc.tensor { 1, 2 }, dc.tensor { 1, 4 }, dc.tensor { 1, 0.5 })
---
---Errors: DC0202 where they are no floats of one dtype, DC0301 where shapes differ; DC0101 for options. Variances
---below 0 count as eps.
---@param prediction deepc.Tensor floats
---@param target deepc.Tensor of the same type
---@param variance deepc.Tensor
---@param options? { reduction?: string, mask?: deepc.Tensor, full?: boolean, eps?: number } eps is 1e-6
---@return deepc.Tensor # a scalar
function nn.gaussian_nll_loss(prediction, target, variance, options)
  local op = "gaussian_nll_loss"
  local mask
  options, mask = l.check_loss(op, prediction, target, options, "full", "eps")
  core.check_flags(op, options, "full")
  local eps = options.eps or 1e-6
  check_number(op, "eps", eps)
  check_floats(op, "variance", variance, prediction)
  local shape, given = prediction.shape, variance.shape
  if #given == #shape - 1 then
    given[#given + 1] = 1
    variance = variance:reshape(given)
  end
  for i = 1, math.max(#shape, #given) do
    if #given ~= #shape or given[i] ~= shape[i] and not (i == #shape and given[i] == 1) then
      core.fail("DIMS", op, ("variance is %s, prediction %s"):format(type_of(variance), type_of(prediction)), nil,
        "variance", variance, "prediction", prediction)
    end
  end
  local narrow, a, b, v = core.in_f32(prediction, target, variance)
  a, b, v = l.only(mask, a), l.only(mask, b), l.only(mask, v, 1)
  -- the limit counts for the value alone: gradients reach the variance, as in PyTorch
  v = v + dc.stop_gradient(v:maximum(eps) - v)
  local off = a - b
  local losses = (v:log() + off * off / v) * 0.5
  losses = options.full and losses + 0.5 * math.log(2 * math.pi) or losses
  local loss = narrow(l.reduce(losses, options.reduction, mask))
  return loss
end

-- ---- pairs and triples ----

---nn.cosine_similarity as a layer of two tensors.
---
---    nn.CosineSimilarity()(dc.tensor { { 1, 0 } }, dc.tensor { { 1, 1 } })
---@class deepc.nn.CosineSimilarity: deepc.nn.Layer
local CosineSimilarity = nn.class "nn.CosineSimilarity"
nn.CosineSimilarity = CosineSimilarity

---@param options? { axis?: deepc.Axis, eps?: number } axis 2, 1e-8
function CosineSimilarity:init(options)
  core.options("nn.CosineSimilarity", options, "axis", "eps")
  self.axis, self.eps = options and options.axis, options and options.eps
end

function CosineSimilarity:forward(a, b)
  local y = nn.cosine_similarity(a, b, { axis = self.axis, eps = self.eps })
  return y
end

-- Numbers of which each says something of a row: the rows of x, without its last axis.
local function check_rows(op, what, x, about, y)
  core.check_tensor(op, x, what)
  local want = core.sizes(y.shape, #y.shape - 1)
  if core.sizes(x.shape) ~= want then
    core.fail("DIMS", op, ("%s is %s; [%s], one for each row of %s, is needed"):format(what, type_of(x), want, about),
      nil, what, x, about, y)
  end
end

local function check_vectors(op, what, x)
  check_floats(op, what, x)
  if #x.shape == 0 then
    core.fail("DIMS", op, ("%s is %s; vectors along the last axis are needed"):format(what, type_of(x)), nil, what, x)
  end
end

---1 - cosine of rows a and b where the target is 1, max(0, cosine - margin) where it is -1; the mean over rows.
---torch.nn.functional.cosine_embedding_loss.
---
---    nn.cosine_embedding_loss(dc.tensor { { 1, 0 } }, dc.tensor { { 1, 1 } }, dc.tensor { -1 })
---
---Errors: DC0202 for dtypes, DC0301 where shapes differ; DC0101 for options.
---@param a deepc.Tensor floats[rows, n]
---@param b deepc.Tensor of the same type
---@param target deepc.Tensor [rows] of 1 and -1
---@param options? { reduction?: string, mask?: deepc.Tensor, margin?: number } margin is 0
---@return deepc.Tensor # a scalar
function nn.cosine_embedding_loss(a, b, target, options)
  local op = "cosine_embedding_loss"
  check_vectors(op, "a", a)
  check_floats(op, "b", b, a)
  check_same_shape(op, "a", a, "b", b)
  check_rows(op, "target", target, "a", a)
  options = l.check_options(op, options, "margin")
  check_number(op, "margin", options.margin or 0)
  local mask = l.counting(op, options, target.shape, a, "a")
  local narrow, x, y = core.in_f32(a, b)
  x, y = l.only(mask, x), l.only(mask, y)
  -- as PyTorch has it: squares are moved away from 0 by a little
  local cosine = dot(x, y) / ((dot(x, x) + 1e-12) * (dot(y, y) + 1e-12)):sqrt()
  local losses = dc.where(target:eq(1), 1 - cosine, l.above_zero(cosine - (options.margin or 0)))
  losses = dc.where(target:eq(1) | target:eq(-1), losses, 0)
  local loss = narrow(l.reduce(losses, options.reduction, mask))
  return loss
end

---max(0, |anchor - positive| - |anchor - negative| + margin) for rows, with the norm of order p; the mean over rows.
---swap takes the smaller of the distances of the negative to the anchor and to the positive (Balntas et al., 2016).
---torch.nn.functional.triplet_margin_loss.
---
---    nn.triplet_margin_loss(dc.zeros "f32[2, 4]", dc.zeros "f32[2, 4]", dc.ones "f32[2, 4]")
---
---Errors: DC0202 for dtypes, DC0301 where shapes differ; DC0101 for options.
---@param anchor deepc.Tensor floats[rows, n]
---@param positive deepc.Tensor of the same type
---@param negative deepc.Tensor of the same type
---@param options? table reduction, mask, margin (1), p (2), eps (1e-6), swap (false)
---@return deepc.Tensor # a scalar
function nn.triplet_margin_loss(anchor, positive, negative, options)
  local op = "triplet_margin_loss"
  check_vectors(op, "anchor", anchor)
  check_floats(op, "positive", positive, anchor)
  check_same_shape(op, "positive", positive, "anchor", anchor)
  check_floats(op, "negative", negative, anchor)
  check_same_shape(op, "negative", negative, "anchor", anchor)
  options = l.check_options(op, options, "margin", "p", "eps", "swap")
  core.check_flags(op, options, "swap")
  local margin, p, eps = options.margin or 1, options.p or 2, options.eps or 1e-6
  check_number(op, "margin", margin)
  core.check_order(op, p)
  check_number(op, "eps", eps)
  local shape = anchor.shape
  local mask = l.counting(op, options, { table.unpack(shape, 1, #shape - 1) }, anchor, "anchor")
  local narrow, a, b, c = core.in_f32(anchor, positive, negative)
  a, b, c = l.only(mask, a), l.only(mask, b), l.only(mask, c)
  local function distance(x, y)
    return core.p_norm(x - y + eps, p, -1)
  end
  local far = distance(a, c)
  far = options.swap and far:minimum(distance(b, c)) or far
  local losses = l.above_zero(distance(a, b) - far + margin)
  local loss = narrow(l.reduce(losses, options.reduction, mask))
  return loss
end

---max(0, -target * (a - b) + margin): the first is to be larger where the target is 1, the second where it is -1.
---torch.nn.functional.margin_ranking_loss.
---
---    nn.margin_ranking_loss(dc.tensor { 1, 2 }, dc.tensor { 2, 1 }, dc.tensor { 1, 1 })
---
---Errors: DC0202 for dtypes, DC0301 where shapes differ; DC0101 for options.
---@param a deepc.Tensor floats
---@param b deepc.Tensor of the same type
---@param target deepc.Tensor of the same type, of 1 and -1
---@param options? { reduction?: string, mask?: deepc.Tensor, margin?: number } margin is 0
---@return deepc.Tensor # a scalar
function nn.margin_ranking_loss(a, b, target, options)
  local op = "margin_ranking_loss"
  local mask
  options, mask = l.check_loss(op, a, target, options, "margin")
  check_floats(op, "b", b, a)
  check_same_shape(op, "a", a, "b", b)
  check_number(op, "margin", options.margin or 0)
  local narrow, x, y, t = core.in_f32(a, b, target)
  x, y, t = l.only(mask, x), l.only(mask, y), l.only(mask, t)
  local losses = l.above_zero(t * (y - x) + (options.margin or 0))
  local loss = narrow(l.reduce(losses, options.reduction, mask))
  return loss
end

---x where the target is 1, max(0, margin - x) where it is -1, for distances x.
---torch.nn.functional.hinge_embedding_loss.
---
---    nn.hinge_embedding_loss(dc.tensor { 0.5, 2 }, dc.tensor { 1, -1 })
---
---Errors: DC0202 for dtypes, DC0301 where shapes differ; DC0101 for options.
---@param prediction deepc.Tensor floats
---@param target deepc.Tensor of the same type, of 1 and -1
---@param options? { reduction?: string, mask?: deepc.Tensor, margin?: number } margin is 1
---@return deepc.Tensor # a scalar
function nn.hinge_embedding_loss(prediction, target, options)
  local op = "hinge_embedding_loss"
  local mask
  options, mask = l.check_loss(op, prediction, target, options, "margin")
  check_number(op, "margin", options.margin or 1)
  local narrow, x, t = core.in_f32(prediction, target)
  x, t = l.only(mask, x), l.only(mask, t)
  local losses = dc.where(t:eq(1), 0, l.above_zero((options.margin or 1) - x)) + dc.where(t:eq(-1), 0, x)
  local loss = narrow(l.reduce(losses, options.reduction, mask))
  return loss
end

---log(1 + exp(-target * prediction)) for targets of 1 and -1, without overflow. torch.nn.functional.soft_margin_loss.
---
---    nn.soft_margin_loss(dc.tensor { 0.5, 2 }, dc.tensor { 1, -1 })
---
---Errors: DC0202 for dtypes, DC0301 where shapes differ; DC0101 for options.
---@param prediction deepc.Tensor floats
---@param target deepc.Tensor of the same type, of 1 and -1
---@param options? deepc.nn.LossOptions
---@return deepc.Tensor # a scalar
function nn.soft_margin_loss(prediction, target, options)
  local op = "soft_margin_loss"
  local mask
  options, mask = l.check_loss(op, prediction, target, options)
  local narrow, x, t = core.in_f32(prediction, target)
  x, t = l.only(mask, x), l.only(mask, t)
  local loss = narrow(l.reduce((-(x * t)):softplus(), options.reduction, mask))
  return loss
end

-- ---- classes by margins ----

---Of each row the sum over other classes of max(0, margin - x[label] + x[i])^p, divided by the number of classes;
---the mean over rows. torch.nn.functional.multi_margin_loss.
---
---    nn.multi_margin_loss(dc.tensor { { 0.1, 0.8, 0.3 } }, dc.tensor({ 1 }, "i32"))
---
---Errors: DC0202 for labels that are no integers, DC0301 for other shapes, DC0701 for a label outside; DC0101 for
---options.
---@param scores deepc.Tensor floats[rows, classes]
---@param labels deepc.Tensor integers[rows]
---@param options? table reduction, mask, p (1, or 2), margin (1), weight (a tensor of a factor for each class)
---@return deepc.Tensor # a scalar
function nn.multi_margin_loss(scores, labels, options)
  local op = "multi_margin_loss"
  local classes = l.check_labels(op, scores, labels)
  options = l.check_options(op, options, "p", "margin", "weight")
  local p, margin = options.p or 1, options.margin or 1
  if p ~= 1 and p ~= 2 then
    core.fail("ARG", op, ("p is 1 or 2, not %s"):format(core.shown(p)))
  end
  check_number(op, "margin", margin)
  l.check_weight(op, options.weight, classes)
  local kept = l.kept_rows(op, scores, labels, options)
  local hit = l.hits(op, labels, kept, classes)
  local narrow, x, weight = core.in_f32(scores, options.weight)
  x = l.only(kept, x)
  local own = dc.where(hit, x, 0):sum { axis = -1, keep = true }
  local off = l.above_zero(margin - own + x)
  off = p == 2 and off * off or off
  off = weight and off * dc.where(hit, weight, 0):sum { axis = -1, keep = true } or off
  local losses = dc.where(hit, 0, off):sum(-1) * (1 / classes)
  local loss = narrow(l.reduce(losses, options.reduction, kept))
  return loss
end

---The mean over classes of -y log(p) - (1 - y) log(1 - p) for p = sigmoid(logit); the mean over rows.
---torch.nn.functional.multilabel_soft_margin_loss.
---
---    nn.multilabel_soft_margin_loss(dc.tensor { { 2, -1 } }, dc.tensor { { 1, 0 } })
---
---Errors: DC0202 for dtypes, DC0301 where shapes differ; DC0101 for options.
---@param logits deepc.Tensor floats[rows, classes]
---@param target deepc.Tensor of the same type, from 0 to 1
---@param options? { reduction?: string, mask?: deepc.Tensor, weight?: deepc.Tensor } a factor for each class
---@return deepc.Tensor # a scalar
function nn.multilabel_soft_margin_loss(logits, target, options)
  local op = "multilabel_soft_margin_loss"
  l.check_pair(op, logits, target)
  options = l.check_options(op, options, "weight")
  check_vectors(op, "logits", logits)
  l.check_weight(op, options.weight, logits:size(-1))
  local mask = l.counting(op, options, { table.unpack(logits.shape, 1, #logits.shape - 1) }, logits, "logits")
  local narrow, x, y, weight = core.in_f32(logits, target, options.weight)
  x, y = l.only(mask, x), l.only(mask, y)
  local terms = y * (-x):softplus() + (1 - y) * x:softplus()
  terms = weight and terms * weight or terms
  local loss = narrow(l.reduce(terms:mean(-1), options.reduction, mask))
  return loss
end

---Of each row the sum over its labels j and the other classes i of max(0, 1 - (x[j] - x[i])), divided by the number of
---classes; the mean over rows. Labels of a row end at the first -1. torch.nn.functional.multilabel_margin_loss.
---
---    nn.multilabel_margin_loss(dc.tensor { { 0.1, 0.2, 0.4 } }, dc.tensor({ { 2, 0, -1 } }, "i32"))
---
---Errors: DC0202 for labels that are no integers, DC0301 where shapes differ, DC0701 for a label outside.
---@param scores deepc.Tensor floats[rows, classes]
---@param labels deepc.Tensor integers[rows, classes]
---@param options? deepc.nn.LossOptions
---@return deepc.Tensor # a scalar
function nn.multilabel_margin_loss(scores, labels, options)
  local op = "multilabel_margin_loss"
  check_vectors(op, "scores", scores)
  core.check_tensor(op, labels, "labels")
  if not labels.dtype:match "^i" then
    core.fail("DTYPE", op, ("labels are %s; integers, -1 behind the last of a row, are needed"):format(type_of(labels)),
      nil, "labels", labels)
  end
  check_same_shape(op, "labels", labels, "scores", scores)
  options = l.check_options(op, options)
  local classes = scores:size(-1)
  local mask = l.counting(op, options, { table.unpack(scores.shape, 1, #scores.shape - 1) }, scores, "scores")
  labels = l.only(mask, labels, -1)
  local there = labels:lt(0):cumsum(-1):eq(0)
  local hit = l.hits(op, labels, there, classes) & there:reshape(l.with_axis(there.shape, 1)) -- [rows, label, class]
  local narrow, x = core.in_f32(scores)
  x = l.only(mask, x)
  local shape = x.shape
  local by_label, by_class = l.with_axis(shape, 1), { table.unpack(shape, 1, #shape - 1) }
  by_class[#by_class + 1], by_class[#by_class + 2] = 1, shape[#shape]
  local own = dc.where(hit, x:reshape(by_class), 0):sum(-1):reshape(by_label)
  local target = hit:any(-2):reshape(by_class) -- is the class a label of the row?
  local off = l.above_zero(1 - own + x:reshape(by_class))
  local counts = there:reshape(by_label) & ~target
  local losses = dc.where(counts, off, 0):sum { -2, -1 } * (1 / classes)
  local loss = narrow(l.reduce(losses, options.reduction, mask))
  return loss
end

-- ---- rare classes, overlaps ----

---nn.cross_entropy or nn.bce_with_logits, times (1 - p)^gamma for the probability p of what is right, so that rows
---that are easy count little (Lin et al., 2017). Labels that are integers are classes of the last axis; a target of
---the type of the logits are probabilities of 0 or 1, as of torchvision.ops.sigmoid_focal_loss.
---
---    nn.focal_loss(dc.zeros "f32[2, 10]", dc.tensor({ 3, 7 }, "i32"))
---
---alpha is a number, the weight of target 1 (that of 0 is 1 - alpha), or a tensor of one for each class; without it all
---count alike.
---
---Errors: as nn.cross_entropy and nn.bce_with_logits; DC0101 for options.
---@param logits deepc.Tensor floats
---@param target deepc.Tensor
---@param options? { reduction?: string, mask?: deepc.Tensor, gamma?: number, alpha?: number|deepc.Tensor } gamma is 2
---@return deepc.Tensor # a scalar
function nn.focal_loss(logits, target, options)
  local op = "focal_loss"
  core.check_tensor(op, logits, "logits")
  core.check_tensor(op, target, "target")
  local gamma, alpha = options and options.gamma or 2, options and options.alpha
  check_number(op, "gamma", gamma)
  if target.dtype:match "^[iu]" then
    local classes = l.check_labels(op, logits, target)
    options = l.check_options(op, options, "gamma", "alpha")
    l.check_weight(op, alpha, classes, "alpha")
    local kept = l.kept_rows(op, logits, target, options)
    local hit = l.hits(op, target, kept, classes)
    local narrow, x, weight = core.in_f32(logits, alpha)
    local log_p = l.only(kept, x):log_softmax(-1)
    local terms = log_p * l.power(1 - log_p:exp(), gamma)
    terms = dc.where(hit, weight and terms * weight or terms, 0)
    local loss = narrow(l.reduce(-terms:sum(-1), options.reduction, kept))
    return loss
  end
  local mask
  options, mask = l.check_loss(op, logits, target, options, "gamma", "alpha")
  if alpha ~= nil then
    check_number(op, "alpha", alpha)
  end
  local narrow, x, y = core.in_f32(logits, target)
  x, y = l.only(mask, x), l.only(mask, y)
  local p = x:sigmoid()
  local wrong = p * (1 - y) + (1 - p) * y
  local losses = (x:maximum(0) - x * y + (-x:abs()):exp():log1p()) * l.power(wrong, gamma)
  losses = alpha and losses * (y * alpha + (1 - y) * (1 - alpha)) or losses
  local loss = narrow(l.reduce(losses, options.reduction, mask))
  return loss
end

---1 - (2 sum(p t) + smooth) / (sum(p) + sum(t) + smooth) for probabilities p and targets t, over all axes from the
---third on: one for each class of each image, [batch, classes], of which the mean is taken (Milletari et al., 2016).
---squared takes squares in the denominator.
---
---    nn.dice_loss(dc.full("f32[2, 3, 4, 4]", 0.5), dc.ones "f32[2, 3, 4, 4]")
---
---Errors: DC0202 for dtypes, DC0301 where shapes differ, DC0302 for fewer than two axes; DC0101 for options.
---@param probabilities deepc.Tensor floats[batch, classes, ...]
---@param target deepc.Tensor of the same type
---@param options? { reduction?: string, mask?: deepc.Tensor, smooth?: number, squared?: boolean } smooth is 1
---@return deepc.Tensor # a scalar
function nn.dice_loss(probabilities, target, options)
  local op = "dice_loss"
  l.check_pair(op, probabilities, target)
  options = l.check_options(op, options, "smooth", "squared")
  core.check_flags(op, options, "squared")
  local smooth = options.smooth or 1
  check_number(op, "smooth", smooth)
  local shape, axes = probabilities.shape, {}
  if #shape < 3 then
    core.fail("DIMS", op, ("probabilities are %s; [batch, classes, ...] is needed"):format(type_of(probabilities)), nil,
      "probabilities", probabilities)
  end
  for i = 3, #shape do
    axes[i - 2] = i
  end
  local mask = l.counting(op, options, { shape[1], shape[2] }, probabilities, "probabilities")
  local narrow, p, t = core.in_f32(probabilities, target)
  p, t = l.only(mask, p, 1), l.only(mask, t, 1)
  local below = options.squared and p * p + t * t or p + t
  local losses = 1 - ((p * t):sum(axes) * 2 + smooth) / (below:sum(axes) + smooth)
  local loss = narrow(l.reduce(losses, options.reduction, mask))
  return loss
end
