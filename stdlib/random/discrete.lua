-- Draws of whole numbers: counts, classes, orders.

local dc = require "deepc"
local random = require "deepc.random.continuous"
local _, core = ...

local draws = core.draws
local read, param, as_tensor, stream = draws.read, draws.param, draws.as_tensor, draws.stream
local describe = core.describe

local function fail(row, op, text, ...)
  core.fail(row, op, text:format(...))
end

-- ---- counts ----

---How often one has to try until something of probability p happens, from 1 on (torch.Tensor.geometric_,
---np.random.geometric; torch.distributions.Geometric counts the failures, one less).
---
---    random.geometric("i32[3]", { p = 0.25 })
---
---Errors: DC0101 for options and for a type of bool, DC0301 for a tensor that does not stretch.
---@param type deepc.Type|deepc.Tensor of numbers
---@param options { p: number|deepc.Tensor, seed?: integer } above 0, up to 1
---@return deepc.Tensor
function random.geometric(type, options)
  local d = read("geometric", type, options, "number", "p")
  local p = as_tensor(d, param(d, "p", nil, 0, 1, true))
  local tries = (draws.exponential(d.like, d, 0) / -((-p):log1p())):floor() + 1
  local y = d.finish(tries)
  return y
end

-- log k! less what Stirling's formula has, (k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2: a series in 1 / (k + 1).
local function stirling_rest(k)
  local r = 1 / (k + 1)
  local s = r * r
  return r * (1 / 12 - s * (1 / 360 - s * (1 / 1260)))
end

-- The number of steps after which so few are left that a uniform number does not tell them from 0.
local STEPS = 40

-- Less than a step of uniform numbers. Sums of probabilities that are rounded may stay below 1, so the last one of more
-- than that is the last one drawn; in front of the mean all are more.
local least = { f32 = 2.0 ^ -26, f64 = 2.0 ^ -55 }

-- How many of the sums of the probabilities from 0 on are below a uniform number; next(k) is the ratio of number k to
-- the one before it. So many steps are enough for a mean of 10.
local function by_inversion(u, first, next)
  local term, sum = first, first
  local count = u:ge(sum):cast(u.dtype)
  for k = 1, STEPS do
    term = term * next(k)
    sum = sum + term
    count = count + (u:ge(sum) & term:gt(least[u.dtype])):cast(u.dtype)
  end
  return count
end

-- A mean from here on is drawn by rejection, one below it by inversion.
local LARGE = 10

-- Inversion where the mean is small, rejection where it is large; of a number one of both.
local function by_size(mean, small, large)
  if not core.kind(mean) then
    return (mean < LARGE and small or large)()
  end
  return dc.where(mean:lt(LARGE), small(), large())
end

-- Numbers of a mean below and from LARGE on, so that neither way meets those that are not its own.
local function bounded(mean, below)
  if not core.kind(mean) then
    return mean
  end
  return below and mean:minimum(LARGE) or mean:maximum(LARGE)
end

-- Hörmann (1993), PTRS: of mean 10 one in four is refused, of larger ones fewer.
local function poisson_large(d, mean)
  local like = draws.proposals(d, 17)
  mean = as_tensor(d, mean)
  local b = mean:sqrt() * 2.53 + 0.931
  local a = b * 0.02483 - 0.059
  local u, e = dc.rand(like, stream(d.options, 1)) - 0.5, draws.exponential(like, d, 2)
  local us = 0.5 - u:abs()
  local k = ((a * 2 / us + b) * u + mean + 0.43):floor()
  local positive = k:maximum(0)
  local far = positive + 1 - mean
  local log_p = far - (positive + 0.5) * (far / mean):log1p() - mean:log() * 0.5 - 0.5 * math.log(2 * math.pi) -
    stirling_rest(positive)
  local bound = (1.1239 + 1.1328 / (b - 3.4)):log() - (a / (us * us) + b):log()
  local good = us:gt(0) & k:ge(0) & (bound - e):le(log_p)
  local base = mean:floor() -- the mode, where none is good
  return draws.first_good(good, k - base, d.wide) + base
end

local function poisson_small(d, mean)
  local u = dc.rand(d.like, stream(d.options, 0))
  local first = as_tensor(d, -mean):exp()
  return by_inversion(u, first, function(k) return mean * (1 / k) end)
end

---Numbers of events that come at a rate: of probability rate^k exp(-rate) / k! (torch.poisson, np.random.poisson;
---Hörmann, 1993). Computed in f32 unless the type is f64, so whole numbers are exact up to 16777216.
---
---    random.poisson("i32[3]", { rate = 4 })     random.poisson(dc.ones "f32[3]", { rate = dc.tensor { 1, 10, 100 } })
---
---Errors: DC0101 for options and for a type of bool, DC0301 for a tensor that does not stretch.
---@param type deepc.Type|deepc.Tensor of numbers
---@param options? { rate?: number|deepc.Tensor, seed?: integer } 1; above 0, of tensors 0 too
---@return deepc.Tensor
function random.poisson(type, options)
  local d = read("poisson", type, options, "number", "rate")
  local rate = param(d, "rate", 1, 0, nil, true)
  local y = d.finish(by_size(rate, function() return poisson_small(d, bounded(rate, true)) end,
    function() return poisson_large(d, bounded(rate, false)) end))
  return y
end

-- ---- trials ----

-- How many trials: a number from 0 on, or a tensor of numbers; as floats.
local function read_trials(d)
  local n = d.options.n
  if n == nil then
    fail("ARG", d.op, "n is needed: { n = ... }")
  elseif core.kind(n) then
    if n.dtype:match "^[iu]" then
      d.options = setmetatable({ n = n:cast(d.wide) }, { __index = d.options })
    end
    return (param(d, "n", nil, nil, nil, true))
  elseif math.type(n) == nil or n % 1 ~= 0 or n < 0 or n == math.huge then
    fail("ARG", d.op, "n is a whole number from 0 on, or a tensor of such, not %s", core.shown(n))
  end
  return n
end

-- The rarer outcome of a trial, and whether it is the other one.
local function read_share(d)
  local p = d.options.p
  if p ~= nil and not core.kind(p) and (type(p) ~= "number" or not (p >= 0 and p <= 1)) then
    fail("ARG", d.op, "p is a number from 0 to 1, or a tensor of such, not %s", core.shown(p))
  end
  p = param(d, "p", nil, nil, nil, true)
  if not core.kind(p) then
    return math.min(p, 1 - p), p > 0.5
  end
  return p:minimum(1 - p), p:gt(0.5)
end

local function binomial_small(d, n, p)
  local u = dc.rand(d.like, stream(d.options, 0))
  n, p = as_tensor(d, n), as_tensor(d, p)
  local first, odds = ((-p):log1p() * n):exp(), p / (1 - p)
  return by_inversion(u, first, function(k) return (n - (k - 1)):maximum(0) * odds * (1 / k) end)
end

-- log of the probability of k successes in n trials but for what no k changes, by Stirling's formula for k + 1 and
-- n - k + 1, each beside what is expected.
local function binomial_log(n, p, k)
  local function part(x, expected)
    local far = x + 1 - expected
    return far - (x + 0.5) * (far / expected):log1p() - stirling_rest(x)
  end
  return part(k, (n + 1) * p) + part(n - k, (n + 1) * (1 - p))
end

-- Hörmann (1993), BTRS: of mean 10 three in ten are refused, of larger ones fewer.
local function binomial_large(d, n, p)
  local like = draws.proposals(d, 18)
  n, p = as_tensor(d, n), as_tensor(d, p)
  local deviation = (n * p * (1 - p)):sqrt()
  local b = deviation * 2.53 + 1.15
  local a = b * 0.0248 + p * 0.01 - 0.0873
  local base = ((n + 1) * p):floor() -- the mode, where none is good
  local u, e = dc.rand(like, stream(d.options, 1)) - 0.5, draws.exponential(like, d, 2)
  local us = 0.5 - u:abs()
  local k = ((a * 2 / us + b) * u + n * p + 0.5):floor()
  local inside = k:maximum(0):minimum(n)
  local log_p = binomial_log(n, p, inside) - binomial_log(n, p, base)
  local bound = ((5.1 / b + 2.83) * deviation):log() - (a / (us * us) + b):log()
  local good = us:gt(0) & k:eq(inside) & (bound - e):le(log_p)
  return draws.first_good(good, k - base, d.wide) + base
end

---How many of n trials succeed, each with probability p (torch.distributions.Binomial, np.random.binomial; Hörmann,
---1993). The time does not depend on n. Computed in f32 unless the type is f64, so whole numbers are exact up to
---16777216.
---
---    random.binomial("i32[3]", { n = 10, p = 0.25 })
---    random.binomial("f32[2, 3]", { n = dc.tensor { 1, 10, 1000 }, p = 0.5 })
---
---Errors: DC0101 for options and for a type of bool, DC0301 for a tensor that does not stretch.
---@param type deepc.Type|deepc.Tensor of numbers
---@param options { n: integer|deepc.Tensor, p: number|deepc.Tensor, seed?: integer }
---@return deepc.Tensor
function random.binomial(type, options)
  local d = read("binomial", type, options, "number", "n", "p")
  local n = read_trials(d)
  local p, turned = read_share(d)
  local mean = n * p
  local small_n, small_p, large_n, large_p = n, p, n, p
  if core.kind(mean) then -- neither way meets what is the other's
    local is_small = mean:lt(LARGE)
    small_p, large_p = dc.where(is_small, p, 0), dc.where(is_small, 0.5, p)
    small_n, large_n = dc.where(is_small, n, 0), dc.where(is_small, 4 * LARGE, n)
  end
  local count = by_size(mean, function() return binomial_small(d, small_n, small_p) end,
    function() return binomial_large(d, large_n, large_p) end)
  if core.kind(turned) then
    count = dc.where(turned, n - count, count)
  elseif turned then
    count = n - count
  end
  local y = d.finish(count)
  return y
end

-- ---- classes ----

-- The weights as floats, and their last axis.
local function check_weights(op, x, what)
  core.check_tensor(op, x, what)
  if #x.shape == 0 or x.shape[#x.shape] == 0 then
    core.fail("DIMS", op, ("%s is %s; an axis of classes is needed"):format(what, describe(x)), nil, what, x)
  elseif x.dtype == "bool" then
    core.fail("DTYPE", op, ("%s is %s; numbers are needed"):format(what, describe(x)), nil, what, x)
  end
  return x:cast(x.dtype == "f64" and "f64" or "f32")
end

---A class, from 0, for each row of logits: with the probabilities of their softmax along an axis
---(torch.distributions.Categorical, jax.random.categorical; Gumbel, 1954). A logit of -inf is never drawn.
---
---    random.categorical(dc.tensor { { 0, 1, 2 } })
---
---Errors: DC0103 for the axis, DC0301 where it has no element, DC0101 for options.
---@param logits deepc.Tensor floats
---@param options? { axis?: deepc.Axis, seed?: integer } the last axis
---@return deepc.Tensor # i32, without the axis
function random.categorical(logits, options)
  local op = "categorical"
  core.options(op, options, "axis", "seed")
  options = options or {}
  core.check_floats(op, logits, "logits")
  local axis = core.control_axis(logits, options.axis == nil and -1 or options.axis, op)
  if logits.shape[axis] == 0 then
    core.fail("DIMS", op, ("axis %d of %s has no class"):format(axis, describe(logits)), nil, "logits", logits)
  end
  local wide = dc.stop_gradient(check_weights(op, logits, "logits"))
  local race = core.random_exponential(wide, stream(options, 0))
  local y = (wide - race:log()):argmax(axis)
  return y
end

-- Of each class when it comes: an exponential number over its weight, so that class i is the first one in proportion to
-- its weight, and so on among those that are left (Efraimidis and Spirakis, 2006). What has no weight never comes.
local function arrivals(weights, like, options)
  local positive = weights:gt(0)
  local race = core.random_exponential(like, stream(options, 0)) / dc.where(positive, weights, 1)
  return dc.where(positive, race, math.huge)
end

-- A class that never came becomes one outside of all, which is told when the numbers are used.
local function told(op, weights, first, at)
  local found = dc.where(first:lt(math.huge), at, weights.shape[#weights.shape])
  core.check_index(found, weights, -1, op)
  return found
end

-- n classes for each row: the first ones whose sum of the weights up to them is above a uniform part of the sum of all.
-- One without weight has the sum of the one before it, so it is never the first; without any weight there is none. In
-- f64: sums of f32 would hide small weights behind large ones, and a uniform f32 has but 2^24 values.
local function by_sums(op, weights, n, options)
  weights = weights:cast "f64"
  local positive = weights:gt(0)
  local sums = dc.where(positive, dc.where(positive, weights, 0):cumsum(-1), 0):cummax(-1)
  local all = sums:max { axis = -1, keep = true }
  local shape = { table.unpack(weights.shape) }
  shape[#shape] = n
  local at = sums:searchsorted(dc.rand(all:expand(shape), stream(options, 0)) * all, { right = true })
  core.check_index(at, weights, -1, op)
  return at
end

---n classes, from 0, for each row of weights, which need not have the sum 1 (torch.multinomial,
---np.random.Generator.choice). Without replacement no class comes twice, and those in front are the first ones drawn;
---rows that have fewer weights above 0 than that are an error of the call. np.random.multinomial, which counts, is
---x:one_hot(classes):sum(-2) of them.
---
---    random.multinomial(dc.tensor { 0.5, 0.25, 0.25 }, 8, { replacement = true })
---
---Errors: DC0101 for n and options, DC0301 for more than there are classes, DC0701 for rows with too few weights.
---@param weights deepc.Tensor floats, or integers; what is not above 0 is never drawn
---@param n integer
---@param options? { replacement?: boolean, seed?: integer } false
---@return deepc.Tensor # i32[..., n]
function random.multinomial(weights, n, options)
  local op = "multinomial"
  core.options(op, options, "replacement", "seed")
  options = options or {}
  core.check_size(op, "n", n)
  local wide = dc.stop_gradient(check_weights(op, weights, "weights"))
  local again = options.replacement ~= nil and core.unless_false(op, options, "replacement")
  local classes = weights.shape[#weights.shape]
  if not again and not core.is_size(classes) and n > classes then
    core.fail("DIMS", op, ("%d of %d classes without replacement"):format(n, classes), "{ replacement = true }",
      "weights", weights)
  end
  local y
  if again then
    y = by_sums(op, wide, n, options)
  else
    local first, at = arrivals(wide, wide, options):top_k(n, { largest = false })
    y = told(op, weights, first, at)
  end
  return y
end

-- ---- orders ----

---The numbers from 0 to n - 1 in a random order (torch.randperm, np.random.permutation).
---
---    random.permutation(5)
---
---Errors: DC0101 for n and options.
---@param n integer
---@param options? { seed?: integer }
---@return deepc.Tensor # i32[n]
function random.permutation(n, options)
  local op = "permutation"
  core.options(op, options, "seed")
  if not core.is_size(n) and (math.type(n) ~= "integer" or n < 0) then
    fail("ARG", op, "how many numbers is an integer from 0 on, not %s", core.shown(n))
  end
  local like = dc.iota(n)
  local seed = options and options.seed
  local high = dc.randint(like:cast "i64", { low = 0, high = 2 ^ 32 - 1 | 0, seed = stream({ seed = seed }, 1).seed })
  local low = dc.randint(like:cast "i64", { low = 0, high = 2 ^ 31 | 0, seed = stream({ seed = seed }, 2).seed })
  local y = (high * (2 ^ 31 | 0) + low):argsort(1)
  return y
end

---The parts of x along an axis in a random order (np.random.shuffle, jax.random.permutation): all in the same one.
---
---    random.shuffle(dc.iota "i32[5, 2]")
---
---Errors: DC0103 for the axis, DC0101 for options.
---@param x deepc.Tensor
---@param options? { axis?: deepc.Axis, seed?: integer } 1
---@return deepc.Tensor
function random.shuffle(x, options)
  local op = "shuffle"
  core.options(op, options, "axis", "seed")
  core.check_tensor(op, x)
  options = options or {}
  local axis = core.control_axis(x, options.axis == nil and 1 or options.axis, op)
  local order = random.permutation(x.shape[axis], { seed = options.seed })
  local y = core.pick(op, x, order, axis, 0)
  return y
end

return random
