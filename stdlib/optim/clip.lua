-- Bounds of gradients: by element, by unit, by the norm of all together, in this order.

local dc = require "deepc"
local _, core = ...

local class = core.optim
local as = class.as

-- The gradients that are there, every element within the bound.
local function clip_values(own, grads)
  local list, bound = {}, own.hyper.clip_value
  for i = 1, #own.params do
    local g = grads[i] or false
    if g and bound then
      local b = as(bound, g.dtype)
      g = g:minimum(b):maximum(-b)
    end
    list[i] = g
  end
  return list
end

-- The axes that belong to one unit: those of inputs of a linear layer, of all but the outputs of a kernel; and the
-- parts of complex numbers.
local function axes_of_unit(p)
  local axes = {}
  for axis = 1, #p.shape do
    if core.is_linear and core.is_linear[p] then
      axes[#axes + 1] = axis < #p.shape and axis or nil
    elseif #p.shape == 1 or axis > 1 then
      axes[#axes + 1] = axis
    end
  end
  axes[#axes + 1] = class.is_complex(p) and #p.shape + 1 or nil
  return axes
end

local function unit_norm(x, axes)
  return #axes > 0 and (x * x):sum({ axis = axes, keep = true }):sqrt() or x:abs()
end

-- Units whose gradient is larger than so many times their weights are brought down to that. Weights count
-- 1e-3 at least, so that those that begin with 0 are trained.
local function clip_units(own, grads)
  local limit = own.hyper.clip_adaptive
  for i, p in ipairs(own.params) do
    local g = grads[i]
    if g then
      local dtype, axes = class.working_dtype(p), axes_of_unit(p)
      local wide = as(g, dtype)
      local most = as(limit, dtype) * unit_norm(as(class.parts(p), dtype), axes):maximum(1e-3)
      local norm = unit_norm(wide, axes):maximum(1e-6)
      grads[i] = dc.where(norm:gt(most), wide * (most / norm), wide)
    end
  end
end

-- All of them times the factor that brings their common norm down to the limit; and that norm.
local function clip_norm(own, grads)
  local limit, total = own.hyper.clip_norm, nil
  for _, g in ipairs(grads) do
    if g then
      g = as(g, own.dtype)
      local squares = (g * g):sum()
      total = total and total + squares or squares
    end
  end
  local norm = total and total:sqrt() or dc.zeros(own.dtype .. "[]")
  local factor = (limit / (norm + 1e-6)):minimum(1)
  for i, g in ipairs(grads) do
    grads[i] = g and g * as(factor, g.dtype)
  end
  return grads, norm
end

function class.clip(own, grads)
  grads = clip_values(own, grads)
  if own.hyper.clip_adaptive then
    clip_units(own, grads)
  end
  if own.hyper.clip_norm then
    return clip_norm(own, grads)
  end
  return grads
end

