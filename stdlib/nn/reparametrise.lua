-- Weights that are computed from others each time they are read: weight norm, spectral norm.

local dc = require "deepc"
local nn = require "deepc.nn.class"
local _, core = ...

-- The parameter of a layer, and the axis of its outputs.
local function read_weight(op, layer, options)
  core.check_layer(op, layer)
  core.refuse_inside(layer, op .. "()")
  local name = options.name or "weight"
  local cell = type(name) == "string" and rawget(core.fields_of(layer), name) or nil
  if core.cell_kind(cell) ~= "param" then
    core.fail("ARG", op, ("%s has no parameter %s"):format(layer:describe(), core.shown(name)))
  elseif #cell.shape < 2 then
    core.fail("ARG", op, ("%s of %s is %s[%s]; two axes are needed"):format(name, layer:describe(), cell.dtype,
      core.sizes(cell.shape)))
  end
  return name, cell
end

local function axis_of(op, cell, given, usual)
  local axis = given or core.is_linear[cell] and 2 or usual
  if math.type(axis) ~= "integer" or axis < 1 or axis > #cell.shape then
    core.fail("ARG", op, ("axis is %s; axes are 1 to %d"):format(core.shown(axis), #cell.shape))
  end
  return axis
end

local function others(rank, axis)
  local list = {}
  for i = 1, rank do
    list[#list + 1] = i ~= axis and i or nil
  end
  return list
end

-- The layer computes the field from now on.
local function compute(layer, name, f)
  local computed = rawget(layer, "_computed") or {}
  rawset(layer, "_computed", computed)
  layer[name] = nil
  computed[name] = f
  core.restructure(layer)
end

-- ---- weight norm ----

---The weight of a layer as a length for each output times a direction, weight_g * weight_v / |weight_v|, both trained
---(Salimans and Kingma, 2016). The layer itself is changed and returned. torch.nn.utils.weight_norm.
---
---    nn.weight_norm(nn.Linear(8, 4))
---
---Options: name ("weight"), axis, along which each element has a length (that of the outputs: the second one of linear
---layers, else the first).
---
---Errors: DC0101 for a layer without such a parameter, and for options.
---@param layer deepc.nn.Layer
---@param options? { name?: string, axis?: integer }
---@return deepc.nn.Layer
function nn.weight_norm(layer, options)
  local op = "weight_norm"
  core.options(op, options, "name", "axis")
  options = options or {}
  local name, cell = read_weight(op, layer, options)
  local axis = axis_of(op, cell, options.axis, 1)
  local along = { axis = others(#cell.shape, axis), keep = true }
  local function length(v)
    return (v * v):sum(along):sqrt()
  end
  local linear = core.is_linear[cell]
  local v, g = dc.param(cell), dc.param(length(cell))
  core.is_linear[v], core.is_linear[g] = linear, linear
  compute(layer, name, function(self)
    local direction, size = self[name .. "_v"], self[name .. "_g"]
    local narrow, wide, lengths = core.in_f32(direction, size)
    return (narrow(wide * (lengths / length(wide))))
  end)
  layer[name .. "_v"], layer[name .. "_g"] = v, g
  return layer
end

-- ---- spectral norm ----

---The weight of a layer divided by its largest singular value (Miyato et al., 2018), which is found by steps of the
---power method: one whenever the weight is read in training mode, none in evaluation mode. The layer itself is
---changed and returned. torch.nn.utils.spectral_norm.
---
---    nn.spectral_norm(nn.Conv2d(3, 8, 3))
---
---Options: name ("weight"), iterations (1), eps (1e-12), axis of the outputs (the second one of linear layers and
---transposed convolutions, else the first). The parameter is weight_orig, the vectors are states weight_u and weight_v.
---
---Errors: DC0101 for a layer without such a parameter, and for options.
---@param layer deepc.nn.Layer
---@param options? { name?: string, iterations?: integer, eps?: number, axis?: integer }
---@return deepc.nn.Layer
function nn.spectral_norm(layer, options)
  local op = "spectral_norm"
  core.options(op, options, "name", "iterations", "eps", "axis")
  options = options or {}
  local name, cell = read_weight(op, layer, options)
  local transposed = getmetatable(layer).__name:match "ConvTranspose"
  local axis = axis_of(op, cell, options.axis, transposed and 2 or 1)
  local iterations, eps = options.iterations or 1, options.eps or 1e-12
  core.check_size(op, "iterations", iterations)
  core.check_number(op, "eps", eps)
  if iterations > 1000 then
    core.fail("ARG", op, ("iterations are %d; 1000 are the most"):format(iterations))
  end
  local order = { axis, table.unpack(others(#cell.shape, axis)) }
  local function matrix(w)
    return w:permute(order):reshape(w:size(axis), -1)
  end
  local function unit(x)
    return x / (x * x):sum():sqrt():maximum(eps)
  end
  local function product(w, x)
    return w:matmul(x:reshape(-1, 1)):reshape(-1)
  end
  local shape = matrix(cell).shape
  local function vector(n)
    local text = ("%s[%d]"):format(cell.dtype, n)
    return dc.state(text, unit(dc.randn(("f32[%d]"):format(n))):cast(cell.dtype))
  end
  local u0, v0 = vector(shape[1]), vector(shape[2])
  compute(layer, name, function(self)
    local narrow, wide, u, v = core.in_f32(self[name .. "_orig"], self[name .. "_u"], self[name .. "_v"])
    local w = matrix(wide)
    if self.training then
      local still = dc.stop_gradient(w)
      for _ = 1, iterations do
        v = unit(product(still:transpose(), u))
        u = unit(product(still, v))
      end
      self[name .. "_u"]:set(narrow(u))
      self[name .. "_v"]:set(narrow(v))
    end
    local largest = (dc.stop_gradient(u) * product(w, dc.stop_gradient(v))):sum()
    return (narrow(wide / largest))
  end)
  layer[name .. "_orig"], layer[name .. "_u"], layer[name .. "_v"] = cell, u0, v0
  return layer
end
