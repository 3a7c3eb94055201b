-- Normalisation over the last axes: mean, centred squares and root in their plain form, which fusion
-- makes one kernel of.

local dc = require "deepc"
local nn = require "deepc.nn.class"
local _, core = ...

-- ---- normalisation ----

local function check_eps(op, eps)
  if type(eps) ~= "number" or eps ~= eps or eps < 0 then
    core.fail("ARG", op, ("eps is a number from 0, not %s"):format(core.shown(eps)))
  end
end

-- The last n axes of x, which have the sizes wanted.
local function last_axes(op, x, sizes)
  core.check_tensor(op, x)
  local shape, axes = x.shape, {}
  local fits = #sizes <= #shape
  for i, size in ipairs(sizes) do
    axes[i] = i - #sizes - 1
    fits = fits and shape[#shape + axes[i] + 1] == size
  end
  if not fits then
    core.fail("DIMS", op, ("the last axes are [%s], x is %s[%s]"):format(core.sizes(sizes), x.dtype,
      core.sizes(shape)), nil, "x", x)
  end
  return axes
end

-- A list of sizes out of one, or a list; known: none of them when the function runs only.
local function read_sizes(op, sizes, known)
  local list = type(sizes) == "table" and not core.kind(sizes) and sizes or { sizes }
  for i = 1, math.max(#list, 1) do
    if known or not core.is_size(list[i]) then
      core.check_size(op, "the size of an axis", list[i])
    end
  end
  return { table.unpack(list) }
end

local function affine(y, weight, bias)
  if weight then
    y = y * weight
  end
  if bias then
    y = y + bias
  end
  return y
end

---(x - mean) / sqrt(variance + eps) over the last axes, times weight, plus bias (Ba, Kiros and Hinton, 2016).
---
---    nn.layer_norm(dc.tensor { { 1, 2, 3 } }, 3)
---
---Errors: DC0301 where the last axes of x have other sizes.
---@param x deepc.Tensor floats
---@param sizes integer|integer[] of the last axes
---@param options? { weight?: deepc.Tensor, bias?: deepc.Tensor, eps?: number } eps is 1e-5
---@return deepc.Tensor
function nn.layer_norm(x, sizes, options)
  local op = "layer_norm"
  core.options(op, options, "weight", "bias", "eps")
  options = options or {}
  local eps = options.eps or 1e-5
  check_eps(op, eps)
  local axes = { axis = last_axes(op, x, read_sizes(op, sizes)), keep = true }
  local narrow, wide, weight, bias = core.in_f32(x, options.weight, options.bias)
  local centred = wide - wide:mean(axes)
  local variance = (centred * centred):mean(axes)
  local y = narrow(affine(centred * (variance + eps):rsqrt(), weight, bias))
  return y
end

-- What is added to the mean of squares unless something else is said, as in PyTorch: the distance from 1 to the next
-- number of the type that is computed in.
local machine_eps = { f32 = 2.0 ^ -23, f64 = 2.0 ^ -52 }

---x / sqrt(mean of squares + eps) over the last axes, times weight (Zhang and Sennrich, 2019).
---
---    nn.rms_norm(dc.tensor { { 1, 2, 3 } }, 3)
---
---Errors: DC0301 where the last axes of x have other sizes.
---@param x deepc.Tensor floats
---@param sizes integer|integer[] of the last axes
---@param options? { weight?: deepc.Tensor, eps?: number } eps is 2^-23, 2^-52 of f64
---@return deepc.Tensor
function nn.rms_norm(x, sizes, options)
  local op = "rms_norm"
  core.options(op, options, "weight", "eps")
  options = options or {}
  local axes = { axis = last_axes(op, x, read_sizes(op, sizes)), keep = true }
  local narrow, wide, weight = core.in_f32(x, options.weight)
  local eps = options.eps or machine_eps[wide.dtype] or 0
  check_eps(op, eps)
  local y = narrow(affine(wide * ((wide * wide):mean(axes) + eps):rsqrt(), weight))
  return y
end

local function start(layer, op, sizes, eps)
  layer.sizes = read_sizes(op, sizes, true)
  layer.eps = eps
  check_eps(op, eps or 0)
  return ("f32[%s]"):format(table.concat(layer.sizes, ", "))
end

---nn.layer_norm over the last axes, with a weight that starts at 1 and a bias that starts at 0.
---
---    nn.LayerNorm(128)
---@class deepc.nn.LayerNorm: deepc.nn.Layer
local LayerNorm = nn.class "nn.LayerNorm"
nn.LayerNorm = LayerNorm

---@param sizes integer|integer[] of the last axes
---@param options? { eps?: number, affine?: boolean, bias?: boolean } 1e-5; affine = false has no parameters
function LayerNorm:init(sizes, options)
  core.options("nn.LayerNorm", options, "eps", "affine", "bias")
  options = options or {}
  local type_text = start(self, "nn.LayerNorm", sizes, options.eps or 1e-5)
  if core.unless_false("nn.LayerNorm", options, "affine") then
    self.weight = dc.param(type_text, dc.ones(type_text))
    self.bias = core.unless_false("nn.LayerNorm", options, "bias") and dc.param(type_text) or nil
  end
end

function LayerNorm:describe()
  return "nn.LayerNorm " .. table.concat(self.sizes, ", ")
end

function LayerNorm:forward(x)
  local y = nn.layer_norm(x, self.sizes, { weight = self.weight, bias = self.bias, eps = self.eps })
  return y
end

---nn.rms_norm over the last axes, with a weight that starts at 1.
---
---    nn.RMSNorm(128)
---@class deepc.nn.RMSNorm: deepc.nn.Layer
local RMSNorm = nn.class "nn.RMSNorm"
nn.RMSNorm = RMSNorm

---@param sizes integer|integer[] of the last axes
---@param options? { eps?: number, affine?: boolean } 2^-23, 2^-52 of f64; affine = false has no parameters
function RMSNorm:init(sizes, options)
  core.options("nn.RMSNorm", options, "eps", "affine")
  options = options or {}
  local type_text = start(self, "nn.RMSNorm", sizes, options.eps)
  if core.unless_false("nn.RMSNorm", options, "affine") then
    self.weight = dc.param(type_text, dc.ones(type_text))
  end
end

function RMSNorm:describe()
  return "nn.RMSNorm " .. table.concat(self.sizes, ", ")
end

function RMSNorm:forward(x)
  local y = nn.rms_norm(x, self.sizes, { weight = self.weight, eps = self.eps })
  return y
end
