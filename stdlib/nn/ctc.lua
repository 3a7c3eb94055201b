-- Connectionist temporal classification: the probability of a short text in all its places along a long sequence, by
-- a loop over the sequence in logarithms.

local dc = require "deepc"
local nn = require "deepc.nn.class"
local _, core = ...

local l = core.losses
local type_of = l.type_of

local NEVER = -1e30 -- the logarithm of what cannot be: finite, so that differences of two are no NaN

-- ---- losses of sequences ----

local function check_integers(op, what, x, shape, about, y)
  core.check_tensor(op, x, what)
  if not x.dtype:match "^[iu]" then
    core.fail("DTYPE", op, ("%s are %s; integers are needed"):format(what, type_of(x)), nil, what, x)
  elseif core.sizes(x.shape) ~= core.sizes(shape) then
    core.fail("DIMS", op, ("%s are %s; [%s] is needed, for %s of %s"):format(what, type_of(x), core.sizes(shape), about,
      type_of(y)), nil, what, x, about, y)
  end
end

-- x one or two places later along the last axis.
local function later(x, by)
  local n = x:size(2)
  local padded = x:pad({ [2] = { by, 0 } }, NEVER)
  return padded[{ {}, { 1, n } }]
end

-- log(exp(a) + exp(b) + exp(c))
local function add_up(a, b, c)
  local most = dc.stop_gradient(dc.maximum(dc.maximum(a, b), c))
  return most + ((a - most):exp() + (b - most):exp() + (c - most):exp()):log()
end

-- Labels with blanks before, between and behind them, i32[batch, 2 n + 1], and where a blank may be left out: at a
-- label that is another than the one before.
local function with_blanks(labels, blank)
  local b, n = table.unpack(labels.shape)
  local other = labels:ne(labels:pad({ [2] = { 1, 0 } }, -1)[{ {}, { 1, n } }])
  local both = dc.stack({ dc.full(labels, blank), labels }, 3):reshape(b, 2 * n):pad({ [2] = { 0, 1 } }, blank)
  local skips = dc.stack({ dc.zeros(other), other }, 3):reshape(b, 2 * n):pad { [2] = { 0, 1 } }
  return both, skips
end

-- Minus the log probability for each element of the batch. What is behind a sequence is not looked at, and a logarithm
-- of 0 is NEVER, too.
local function negative_log(log_probs, labels, input_lengths, target_lengths, blank)
  local time, batch, classes = table.unpack(log_probs.shape)
  local states, skips = with_blanks(labels, blank)
  local n = states:size(2)
  if input_lengths then
    local within = dc.iota(time):reshape(-1, 1):lt(input_lengths:reshape(1, -1))
    log_probs = dc.where(within:reshape(time, batch, 1), log_probs, 0)
  end
  local at = (states + dc.iota(batch):reshape(-1, 1) * classes):reshape(-1)
  local emitted = log_probs:reshape(time, batch * classes):take(at, 2):reshape(time, batch, n):maximum(NEVER)
  local place = dc.iota(n):reshape(1, -1)
  local start = dc.where(place:eq(0), dc.zeros(emitted[1]), NEVER)
  local last = dc.scan(function(alpha, element, i)
    local skipped = dc.where(skips, later(alpha, 2), NEVER)
    local moved = add_up(alpha, later(alpha, 1), skipped) + element
    return input_lengths and dc.where(i:lt(input_lengths):reshape(-1, 1), moved, alpha) or moved
  end, start, emitted)
  local final = target_lengths:reshape(-1, 1) * 2
  return -dc.where(place:eq(final) | place:eq(final - 1), last, NEVER):logsumexp(2)
end

---Minus the logarithm of the probability that a sequence of classes, repeated ones as one and blanks left out, is a
---text (Graves et al., 2006). log_probs are logarithms of probabilities, [time, batch, classes], targets the texts,
---integers [batch, length]; lengths are how much of each counts, integers[batch], all of it without. Without an axis
---for the batch, [time, classes] and [length]. torch.nn.functional.ctc_loss.
---
---    local log_probs = dc.zeros("f32[20, 2, 5]"):log_softmax(-1)
---    nn.ctc_loss(log_probs, dc.tensor({ { 1, 2, 3 }, { 4, 4, 0 } }, "i32"), nil, dc.tensor({ 3, 2 }, "i32"))
---
---reduction = "mean" divides each loss by the length of its text before it takes the mean. A text that does not fit its
---sequence has the loss inf, or with zero_infinity 0, and no gradient. The gradient is that for log_probs as they are;
---PyTorch's differs by their exponentials, which log_softmax takes out again.
---
---Errors: DC0202 for dtypes, DC0301 for other sizes, DC0701 for a label or a length outside; DC0101 for options.
---@param log_probs deepc.Tensor floats[time, batch, classes]
---@param targets deepc.Tensor integers[batch, length]
---@param input_lengths? deepc.Tensor integers[batch]
---@param target_lengths? deepc.Tensor integers[batch]
---@param options? table blank (0), reduction ("mean"), zero_infinity (false), mask (bool[batch])
---@return deepc.Tensor # a scalar
function nn.ctc_loss(log_probs, targets, input_lengths, target_lengths, options)
  local op = "ctc_loss"
  options = l.check_options(op, options, "blank", "zero_infinity")
  core.check_flags(op, options, "zero_infinity")
  core.check_tensor(op, log_probs, "log_probs")
  if not core.is_float(log_probs.dtype) then
    core.fail("DTYPE", op, ("log_probs are %s; floats are needed"):format(type_of(log_probs)), nil, "log_probs",
      log_probs)
  elseif #log_probs.shape ~= 3 and #log_probs.shape ~= 2 then
    core.fail("DIMS", op, ("log_probs are %s; [time, batch, classes] is needed"):format(type_of(log_probs)), nil,
      "log_probs", log_probs)
  end
  local batched, shape = #log_probs.shape == 3, log_probs.shape
  core.check_tensor(op, targets, "targets")
  if batched and #targets.shape == 1 then
    core.fail("DIMS", op, ("targets are %s; texts in rows, [batch, length], are needed"):format(type_of(targets)),
      "rows are filled up to the longest; target_lengths tells how much of each counts", "targets", targets)
  end
  local batch = batched and shape[2] or 1
  local size = targets.shape[#targets.shape] or 0
  check_integers(op, "targets", targets, batched and { batch, size } or { size }, "log_probs", log_probs)
  local one_each = batched and { batch } or {}
  if input_lengths ~= nil then
    check_integers(op, "input lengths", input_lengths, one_each, "log_probs", log_probs)
  end
  if target_lengths ~= nil then
    check_integers(op, "target lengths", target_lengths, one_each, "log_probs", log_probs)
  end
  local mask = l.counting(op, options, one_each, log_probs, "log_probs")
  mask = mask and mask:reshape(batch)
  local classes, blank = shape[#shape], options.blank or 0
  if math.type(blank) ~= "integer" or blank < 0 or blank >= classes then
    core.fail("ARG", op, ("blank is %s; the classes are 0 to %d"):format(core.shown(blank), classes - 1))
  end
  targets = targets:cast("i32"):reshape(batch, size)
  if input_lengths then
    input_lengths = l.only(mask, input_lengths:cast("i32"):reshape(batch))
    core.check_length(input_lengths, shape[1], op)
  end
  if target_lengths then
    target_lengths = l.only(mask, target_lengths:cast("i32"):reshape(batch))
    core.check_length(target_lengths, size, op)
    targets = dc.where(dc.iota(size):reshape(1, -1):lt(target_lengths:reshape(-1, 1)), targets, blank)
  else
    target_lengths = (dc.zeros "i32[]" + size):expand(batch)
  end
  if size ~= 0 then
    core.check_class(targets, classes, op)
  end
  local narrow, wide = core.in_f32(log_probs)
  wide = wide:reshape(shape[1], batch, classes)
  wide = mask and dc.where(mask:reshape(1, batch, 1), wide, 0) or wide
  local losses = negative_log(wide, targets, input_lengths, target_lengths, blank)
  local never = losses:gt(-NEVER / 2)
  losses = dc.where(never, options.zero_infinity and 0 or math.huge, losses)
  if (options.reduction or "mean") == "mean" then
    losses = losses / target_lengths:maximum(1):cast(losses.dtype)
  elseif not batched then
    losses, mask = losses:reshape {}, mask and mask:reshape {}
  end
  local loss = narrow(l.reduce(losses, options.reduction, mask))
  return loss
end
