-- Draws of floats, over dc.rand and dc.randn: what those promise about seeds and loops holds for them.
--
-- Each is a graph of a fixed size. Where numbers are proposed and refused, all proposals are drawn at once, along an
-- axis of their own, and the first good one is taken: a loop until all are good would draw for everybody as long as for
-- the slowest, could not be one kernel, and with a seed would need other numbers in each iteration. So many are drawn
-- that none is good with a probability of 1e-9 or less; then the mode takes its place.

local dc = require "deepc"
local _, core = ...
require "deepc.operands"
require "deepc.random.slopes"

---Draws from distributions. The first argument is a type, or a tensor that stands for its type; parameters are numbers,
---or tensors that stretch to it. `seed` gives the same numbers always, as for dc.rand; without, they come from the
---generator. Where parameters are tensors, draws of gamma, beta, dirichlet, chi2, student_t and those with loc, scale,
---rate, mean and std have gradients for them, as the rsample of PyTorch; of concentrations and df first ones alone
---(Figurnov, Mohamed and Mnih, 2018), second ones are NaN. Counts have none.
---
---    local random = require "deepc.random"
---    print(random.gamma("f32[3]", { concentration = 2, seed = 1 }).shape[1])
---@class deepc.random
local random = {}

local describe = core.describe

local function fail(row, op, text, ...)
  core.fail(row, op, text:format(...))
end

-- ---- arguments ----

-- The numbers of stream k of a seed; of the generator they are the next.
local function stream(options, k)
  local seed = options.seed
  if seed == nil or k == 0 then
    return { seed = seed }
  end
  seed = seed + k * -7046029254386353131 -- a step of splitmix64 (Steele et al., 2014)
  seed = (seed ~ seed >> 30) * -4658895280553007687
  seed = (seed ~ seed >> 27) * -7723592293110705685
  return { seed = seed ~ seed >> 31 }
end

-- What is drawn: `like` is zeros of the type in which it is computed; `finish` makes the result of it.
local function read(op, of, options, kind, ...)
  core.options(op, options, "seed", ...)
  options = options or {}
  if options.seed ~= nil and math.type(options.seed) ~= "integer" then
    fail("ARG", op, "seed is an integer, not %s", core.shown(options.seed))
  elseif type(of) ~= "string" and not core.kind(of) then
    fail("ARG", op, 'a type such as "f32[3]" or a tensor is needed, not %s', describe(of))
  end
  local zeros = dc.zeros(of)
  local dtype = zeros.dtype
  if not core.is_float(dtype) and (kind == "float" or dtype == "bool") then
    core.fail("DTYPE", op, ("%s: %s is needed"):format(describe(zeros), kind == "float" and "a float" or "a number"))
  end
  local wide = dtype == "f64" and "f64" or "f32"
  local d = { op = op, options = options, like = zeros:cast(wide), dtype = dtype, wide = wide }
  function d.finish(y)
    return (y:cast(dtype))
  end
  return d
end

local function stretches(from, to)
  for k = 1, #from do
    local size = from[#from + 1 - k]
    if k > #to or size ~= 1 and tostring(size) ~= tostring(to[#to + 1 - k]) then
      return false
    end
  end
  return true
end

-- A parameter: a number within the bounds, or a tensor that stretches to what is drawn. fixed: without a gradient.
local function param(d, name, normal, least, most, fixed)
  local v = d.options[name]
  if v == nil then
    v = normal
  end
  if v == nil then
    fail("ARG", d.op, "%s is needed: { %s = ... }", name, name)
  elseif core.kind(v) then
    core.check_floats(d.op, v, name)
    if not stretches(v.shape, d.like.shape) then
      core.fail("DIMS", d.op, ("%s is %s, which does not stretch to [%s]"):format(name, describe(v),
        core.sizes(d.like.shape)), nil, name, v)
    end
    v = v:cast(d.wide)
    return fixed and dc.stop_gradient(v) or v
  elseif type(v) ~= "number" or v ~= v or least and v <= least or most and v > most then
    fail("ARG", d.op, "%s is a number%s%s, or a tensor of such, not %s", name, least and " above " .. least or "",
      most and " up to " .. most or "", core.shown(v))
  end
  return v
end

local function as_tensor(d, v)
  return core.kind(v) and v or dc.full(d.like, v)
end

-- ---- draws that others are made of ----

-- Exponential of rate 1: the same bits on every device.
local function exponential(like, d, k)
  return core.random_exponential(like, stream(d.options, k))
end

-- -1 and 1.
local function sign(d, k)
  return dc.randint(d.like:cast "i32", { low = 0, high = 2, seed = stream(d.options, k).seed }):cast(d.wide) * 2 - 1
end

-- So many proposals of each element, along a new first axis.
local function proposals(d, n)
  local one, all = { 1, table.unpack(d.like.shape) }, { n, table.unpack(d.like.shape) }
  return d.like:reshape(one):expand(all)
end

-- The first proposal that is good, 0 where none is.
local function first_good(good, value, wide)
  local at = good:cast("i32"):argmax(1)
  local shape = { good.shape[1] }
  for k = 1, #at.shape do
    shape[k + 1] = 1
  end
  local chosen = dc.iota(shape[1]):reshape(shape):eq(at) & good
  return dc.where(chosen, value, dc.zeros(wide .. "[]")):sum(1)
end

-- Marsaglia and Tsang (2000): d (1 + t)^3 for a normal t, refused with at most 0.05; of concentrations below 1 that of
-- one more, times u ^ (1 / concentration). Returns d, t, and what the logarithm has besides.
local function gamma_parts(d, a, k)
  local small = a:lt(1)
  local scale = dc.where(small, a + 1, a) - 1 / 3
  local width = (scale * 9):rsqrt()
  local like = proposals(d, 8)
  local z = dc.randn(like, stream(d.options, k))
  local t = z * width
  local e = exponential(like, d, k + 1)
  local safe = t:maximum(-0.999)
  local log_ratio = z * z * 0.5 + scale * ((safe:log1p() - safe) * 3 - safe * safe * (safe + 3))
  local good = t:gt(-0.999) & (-e):lt(log_ratio)
  return scale, first_good(good, t, d.wide), dc.where(small, -exponential(d.like, d, k + 2) / a, 0)
end

-- A draw, and its logarithm, which is finite where the value itself is too small for its type. Of a tensor both have
-- gradients for it.
local function gamma_draw(d, concentration, k)
  local a = as_tensor(d, concentration)
  local scale, t, more = gamma_parts(d, dc.stop_gradient(a), k)
  local root = t + 1
  local x, log_x = scale * (root * root * root) * more:exp(), scale:log() + t:log1p() * 3 + more
  if not core.kind(concentration) then
    return x, log_x
  end
  x, log_x, a = dc.stop_gradient(x), dc.stop_gradient(log_x), a:expand(d.like.shape)
  local slope = core.gamma_log_slope(dc.stop_gradient(a), x, log_x)
  slope = core.with_slope(d.op, slope, a, slope * (0 / 0)) -- no second derivative is known, and it is not 0
  return core.with_slope(d.op, x, a, slope * x), core.with_slope(d.op, log_x, a, slope)
end

-- ---- distributions of floats ----

---Exponential numbers: of density rate exp(-rate x) (torch.distributions.Exponential, np.random.exponential, whose
---scale is 1 / rate).
---
---    random.exponential("f32[3]", { rate = 2 })
---
---Errors: DC0202 for a dtype that is no float, DC0101 for options, DC0301 for a tensor that does not stretch.
---@param type deepc.Type|deepc.Tensor
---@param options? { rate?: number|deepc.Tensor, seed?: integer } 1
---@return deepc.Tensor
function random.exponential(type, options)
  local d = read("exponential", type, options, "float", "rate")
  local y = d.finish(exponential(d.like, d, 0) / param(d, "rate", 1, 0))
  return y
end

---Laplace numbers: of density exp(-|x - loc| / scale) / (2 scale) (torch.distributions.Laplace, np.random.laplace).
---
---    random.laplace("f32[3]", { loc = 1, scale = 2 })
---
---Errors: as random.exponential.
---@param type deepc.Type|deepc.Tensor
---@param options? { loc?: number|deepc.Tensor, scale?: number|deepc.Tensor, seed?: integer } 0, 1
---@return deepc.Tensor
function random.laplace(type, options)
  local d = read("laplace", type, options, "float", "loc", "scale")
  local scale, loc = param(d, "scale", 1, 0), param(d, "loc", 0)
  local y = d.finish(sign(d, 1) * exponential(d.like, d, 0) * scale + loc)
  return y
end

---Gumbel numbers: loc - scale log(-log(u)) (torch.distributions.Gumbel, np.random.gumbel). The largest of logits with
---such numbers added is a draw of their softmax: random.categorical.
---
---    random.gumbel "f32[3]"
---
---Errors: as random.exponential.
---@param type deepc.Type|deepc.Tensor
---@param options? { loc?: number|deepc.Tensor, scale?: number|deepc.Tensor, seed?: integer } 0, 1
---@return deepc.Tensor
function random.gumbel(type, options)
  local d = read("gumbel", type, options, "float", "loc", "scale")
  local scale, loc = param(d, "scale", 1, 0), param(d, "loc", 0)
  local y = d.finish(loc - exponential(d.like, d, 0):log() * scale)
  return y
end

---Cauchy numbers: loc + scale tan(pi (u - 1/2)) (torch.distributions.Cauchy, np.random.standard_cauchy).
---
---    random.cauchy "f32[3]"
---
---Errors: as random.exponential.
---@param type deepc.Type|deepc.Tensor
---@param options? { loc?: number|deepc.Tensor, scale?: number|deepc.Tensor, seed?: integer } 0, 1
---@return deepc.Tensor
function random.cauchy(type, options)
  local d = read("cauchy", type, options, "float", "loc", "scale")
  local scale, loc = param(d, "scale", 1, 0), param(d, "loc", 0)
  local y = d.finish(((dc.rand(d.like, stream(d.options, 0)) - 0.5) * math.pi):tan() * scale + loc)
  return y
end

---Numbers whose logarithm is normal (torch.distributions.LogNormal, np.random.lognormal).
---
---    random.log_normal("f32[3]", { mean = 0, std = 0.5 })
---
---Errors: as random.exponential.
---@param type deepc.Type|deepc.Tensor
---@param options? { mean?: number|deepc.Tensor, std?: number|deepc.Tensor, seed?: integer } of the logarithm: 0, 1
---@return deepc.Tensor
function random.log_normal(type, options)
  local d = read("log_normal", type, options, "float", "mean", "std")
  local std, mean = param(d, "std", 1, 0), param(d, "mean", 0)
  local y = d.finish((dc.randn(d.like, stream(d.options, 0)) * std + mean):exp())
  return y
end

---Gamma numbers: of density proportional to x^(concentration - 1) exp(-rate x) (torch.distributions.Gamma,
---np.random.gamma, whose shape is the concentration and scale 1 / rate; Marsaglia and Tsang, 2000).
---
---    random.gamma("f32[3]", { concentration = 2, rate = 0.5 })
---
---Errors: as random.exponential.
---@param type deepc.Type|deepc.Tensor
---@param options { concentration: number|deepc.Tensor, rate?: number|deepc.Tensor, seed?: integer } rate is 1
---@return deepc.Tensor
function random.gamma(type, options)
  local d = read("gamma", type, options, "float", "concentration", "rate")
  local rate = param(d, "rate", 1, 0)
  local x = gamma_draw(d, param(d, "concentration", nil, 0), 1)
  local y = d.finish(x / rate)
  return y
end

---Beta numbers, from 0 to 1: of density proportional to x^(alpha - 1) (1 - x)^(beta - 1) (torch.distributions.Beta,
---np.random.beta).
---
---    random.beta("f32[3]", { alpha = 2, beta = 0.5 })
---
---Errors: as random.exponential.
---@param type deepc.Type|deepc.Tensor
---@param options { alpha: number|deepc.Tensor, beta: number|deepc.Tensor, seed?: integer }
---@return deepc.Tensor
function random.beta(type, options)
  local d = read("beta", type, options, "float", "alpha", "beta")
  local _, a = gamma_draw(d, param(d, "alpha", nil, 0), 1)
  local _, b = gamma_draw(d, param(d, "beta", nil, 0), 4)
  local y = d.finish((a - b):sigmoid())
  return y
end

---Numbers from 0 to 1 with the sum 1 along the last axis: of density proportional to the product of
---x_i^(concentration_i - 1) (torch.distributions.Dirichlet, np.random.dirichlet).
---
---    random.dirichlet("f32[5, 3]", { concentration = dc.tensor { 1, 2, 3 } })
---
---Errors: as random.exponential.
---@param type deepc.Type|deepc.Tensor
---@param options? { concentration?: number|deepc.Tensor, seed?: integer } 1
---@return deepc.Tensor
function random.dirichlet(type, options)
  local d = read("dirichlet", type, options, "float", "concentration")
  if #d.like.shape == 0 then
    fail("ARG", d.op, "a scalar has no last axis")
  end
  local _, logs = gamma_draw(d, param(d, "concentration", 1, 0), 1)
  local y = d.finish(logs:softmax(-1))
  return y
end

---Sums of the squares of df normal numbers (torch.distributions.Chi2, np.random.chisquare).
---
---    random.chi2("f32[3]", { df = 4 })
---
---Errors: as random.exponential.
---@param type deepc.Type|deepc.Tensor
---@param options { df: number|deepc.Tensor, seed?: integer }
---@return deepc.Tensor
function random.chi2(type, options)
  local d = read("chi2", type, options, "float", "df")
  local x = gamma_draw(d, param(d, "df", nil, 0) * 0.5, 1)
  local y = d.finish(x * 2)
  return y
end

---Numbers of Student's t with df degrees of freedom, times scale, plus loc (torch.distributions.StudentT,
---np.random.standard_t).
---
---    random.student_t("f32[3]", { df = 3 })
---
---Errors: as random.exponential.
---@param type deepc.Type|deepc.Tensor
---@param options { df: number|deepc.Tensor, loc?: number|deepc.Tensor, scale?: number|deepc.Tensor, seed?: integer }
---@return deepc.Tensor
function random.student_t(type, options)
  local d = read("student_t", type, options, "float", "df", "loc", "scale")
  local half = param(d, "df", nil, 0) * 0.5
  local scale, loc = param(d, "scale", 1, 0), param(d, "loc", 0)
  local _, log_x = gamma_draw(d, half, 1)
  local wide = ((as_tensor(d, half):log() - log_x) * 0.5):exp()
  local y = d.finish(dc.randn(d.like, stream(d.options, 0)) * wide * scale + loc)
  return y
end

-- ---- truncated normal ----

---@class deepc.random.TruncatedOptions
---@field mean? number|deepc.Tensor 0
---@field std? number|deepc.Tensor 1
---@field low? number|deepc.Tensor no bound
---@field high? number|deepc.Tensor no bound
---@field seed? integer

-- The integral of f from low to high by Simpson's rule.
local function integral(f, low, high)
  local n, sum = 400, 0
  local step = (high - low) / n
  for i = 0, n do
    sum = sum + ((i == 0 or i == n) and 1 or i % 2 == 1 and 4 or 2) * f(low + i * step)
  end
  return sum * step / 3
end

local function bell(x)
  return math.exp(-x * x / 2)
end

-- Around 0, the numbers that are refused are the fewer of those of normal and of uniform proposals.
local function truncated_middle(low, high)
  local share = integral(bell, math.max(low, -12), math.min(high, 12))
  local normal, uniform = share / math.sqrt(2 * math.pi), share / (high - low)
  if normal >= uniform then
    return normal, function(d, like)
      local z = dc.randn(like, stream(d.options, 0))
      return z:ge(low) & z:le(high), z
    end
  end
  return uniform, function(d, like)
    local z = dc.rand(like, stream(d.options, 0)) * (high - low) + low
    return (-exponential(like, d, 1)):lt(z * z * -0.5), z
  end
end

-- Above 0: exponential proposals (Robert, 1995), or uniform ones; what is beyond low.
local function truncated_tail(low, high)
  local rate = (low + math.sqrt(low * low + 4)) / 2
  local top = math.min(high - low, 40 / rate)
  local by_rate = integral(function(x)
    return rate * math.exp(-rate * x) * bell(x + low - rate)
  end, 0, top)
  local uniform = integral(function(x) return math.exp(-x * (low + x / 2)) end, 0, top) / (high - low)
  if by_rate >= uniform then
    return by_rate, function(d, like)
      local x = exponential(like, d, 0) / rate
      local far = x + (low - rate)
      return x:le(high - low) & (-exponential(like, d, 1)):lt(far * far * -0.5), x
    end
  end
  return uniform, function(d, like)
    local x = dc.rand(like, stream(d.options, 0)) * (high - low)
    return (-exponential(like, d, 1)):lt(-x * (low + x * 0.5)), x
  end
end

-- The same with bounds that differ by element, of the standard normal: both ways for all of them. Where 0 is between
-- them proposals are normal or, of a narrow range, uniform; above 0 they are exponential, cut at the upper bound
-- (Robert, 1995). At worst half of them are refused.
local function truncated_by_element(d, a, b)
  local turned = b:le(0)
  a, b = dc.where(turned, -b, a), dc.where(turned, -a, b)
  local like = proposals(d, 31)
  local u, e = dc.rand(like, stream(d.options, 1)), -exponential(like, d, 2)
  local beyond, narrow = a:ge(0), (b - a):lt(math.sqrt(2 * math.pi))
  local normal = dc.randn(like, stream(d.options, 0))
  local even = u * dc.where(narrow, b - a, 1) + dc.where(narrow, a, 0)
  local middle = dc.where(narrow, even, normal)
  local base = dc.where(beyond, a, 0)
  local rate = ((base * base + 4):sqrt() + base) * 0.5
  local step = -((((base - b) * rate):expm1() * u):log1p()) / rate
  local far, nearest = step + (base - rate), (b - rate):minimum(0)
  local good = dc.where(beyond, e:lt((nearest * nearest - far * far) * 0.5),
    dc.where(narrow, e:lt(even * even * -0.5), normal:ge(a) & normal:le(b)))
  local y = first_good(good, dc.where(beyond, step, middle), d.wide) + base
  return dc.where(a:lt(b), dc.where(turned, -y, y), 0 / 0)
end

---Normal numbers from low to high alone (nn.init.trunc_normal_ of PyTorch, scipy.stats.truncnorm, whose bounds are
---those of the standard normal; Robert, 1995). Without gradients. Of tensors NaN where low is not below high.
---
---    random.truncated_normal("f32[3]", { low = -2, high = 2 })
---    random.truncated_normal("f32[3]", { low = dc.tensor { -1, 0, 5 } })
---
---Errors: DC0202 for a dtype that is no float, DC0101 for options, DC0301 for a tensor that does not stretch.
---@param type deepc.Type|deepc.Tensor
---@param options? deepc.random.TruncatedOptions
---@return deepc.Tensor
function random.truncated_normal(type, options)
  local d = read("truncated_normal", type, options, "float", "mean", "std", "low", "high")
  local o = d.options
  if core.kind(o.mean) or core.kind(o.std) or core.kind(o.low) or core.kind(o.high) then
    local mean, std = param(d, "mean", 0, nil, nil, true), param(d, "std", 1, 0, nil, true)
    local low, high = param(d, "low", -math.huge, nil, nil, true), param(d, "high", math.huge, nil, nil, true)
    low, high = as_tensor(d, low), as_tensor(d, high)
    local z = truncated_by_element(d, (low - mean) / std, (high - mean) / std)
    local y = d.finish((z * std + mean):maximum(low):minimum(high))
    return y
  end
  local mean, std, low, high = o.mean or 0, o.std or 1, o.low or -math.huge, o.high or math.huge
  for name, v in pairs { mean = mean, std = std, low = low, high = high } do
    if math.type(v) == nil or v ~= v or name == "std" and v <= 0 then
      fail("ARG", d.op, "%s is a number%s, not %s", name, name == "std" and " above 0" or "", core.shown(v))
    end
  end
  if low >= high then
    fail("ARG", d.op, "low is %s, high %s; nothing is between them", core.shown(low), core.shown(high))
  end
  local a, b = (low - mean) / std, (high - mean) / std
  local side = b <= 0 and -1 or 1
  if side < 0 then
    a, b = -b, -a
  end
  local base = math.max(a, 0)
  local share, propose = (a < 0 and truncated_middle or truncated_tail)(a, b)
  local count = share > 0.999 and 4 or math.ceil(-23 / math.log(1 - share))
  local good, value = propose(d, proposals(d, count))
  local y = first_good(good, value, d.wide)
  y = d.finish(((y + base) * (side * std) + mean):clamp(low, high))
  return y
end

core.draws = {
  read = read, param = param, as_tensor = as_tensor, stream = stream, exponential = exponential, proposals = proposals,
  first_good = first_good,
}

return random
