-- What is done with a network as a whole: another dtype, a function for each layer.

local dc = require "deepc"
require "deepc.nn.class"
local _, core = ...

local Layer = core.Layer

-- ---- whole networks ----

-- Public methods of a class of layers, which refuse more arguments than they have parameters.
function core.method_entries(class, ...)
  local methods = {}
  for _, name in ipairs { ... } do
    methods[name] = rawget(class, name)
  end
  for name, method in pairs(core.entries(methods)) do
    class[name] = method
  end
end

-- True for states of floats whose dtype belongs to what they mean.
core.keeps_dtype = setmetatable({}, { __mode = "k" })

-- A cell of another dtype with the value of this one.
local function converted(cell, dtype)
  local kind = core.cell_kind(cell)
  local new = (kind == "param" and dc.param or dc.state)(cell:cast(dtype))
  if core.kind(cell) == "state" and kind == "param" then
    core.trainable(new, false)
  end
  core.is_linear[new] = core.is_linear[cell]
  return new
end

-- Puts converted cells in the places of those of floats below t; each cell becomes one, wherever it stands.
local function convert(t, path, dtype, cells, seen)
  seen[t] = true
  local fields = core.fields_of(t)
  for _, key in ipairs(core.part_keys(fields)) do
    local part, at = rawget(fields, key), path .. "." .. key
    local kind = core.cell_kind(part)
    if kind and core.is_float(part.dtype) and part.dtype ~= dtype and not core.keeps_dtype[part] then
      if kind == "growing" then
        core.fail("DTYPE", "cast", ("%s is a state that grows; its dtype is that which it was made with"):format(at))
      end
      cells[part] = cells[part] or converted(part, dtype)
      core.forget_paths(part, at)
      rawset(fields, key, cells[part])
    elseif type(part) == "table" and not seen[part] and (core.is_layer(part) or not getmetatable(part)) then
      convert(part, at, dtype, cells, seen)
    end
  end
end

-- Calls swap(layer, path) for each layer of a class below t, and puts what it returns in its place. Paths are those of
-- the first place of a layer.
function core.replace_layers(t, path, class, swap, seen)
  seen[t] = true
  local fields = core.fields_of(t)
  for _, key in ipairs(core.part_keys(fields)) do
    local part, at = rawget(fields, key), path == "" and tostring(key) or path .. "." .. key
    if type(part) == "table" and getmetatable(part) == class then
      seen[part] = seen[part] or swap(part, at) or part
      if seen[part] ~= part then
        t[key] = seen[part]
      end
    elseif type(part) == "table" and not seen[part] and (core.is_layer(part) or not getmetatable(part)) then
      core.replace_layers(part, at, class, swap, seen)
    end
  end
end

-- Parts of plain tables have changed, which layers do not see by themselves.
function core.renew_paths(net)
  local path = rawget(net, "_path")
  if path then
    core.assign_paths(net, path)
  else
    core.path_of(net) -- gives one to all below, too
  end
  core.each_layer(net, core.restructure)
end

---Parameters and states of floats in another dtype, for this layer and all below: they are other cells then, with the
---values converted, so optimisers are made afterwards. What goes in is not converted: a network of bf16 is given bf16.
---torch.nn.Module.to(dtype).
---
---    nn.Linear(4, 2):cast "bf16"
---
---Errors: DC0101 for another dtype than f16, bf16, f32 and f64, DC0202 for a state that grows.
---@param dtype deepc.Dtype "f16", "bf16", "f32" or "f64"
---@return deepc.nn.Layer # itself
function Layer:cast(dtype)
  core.check_layer("cast", self)
  if type(dtype) ~= "string" or not core.is_float(dtype) then
    core.fail("ARG", "cast", ('a layer is "f16", "bf16", "f32" or "f64", not %s'):format(core.shown(dtype)))
  end
  core.refuse_inside(self, "cast()")
  local path, cells = core.path_of(self), {}
  convert(self, path, dtype, cells, {})
  if next(cells) then
    core.assign_paths(self, path)
    core.each_layer(self, core.restructure)
  end
  return self
end

---Parameters and states of this layer and of all below lie on that device from now on. They are the same cells with
---the same values; functions that read them are compiled anew. Tensors that a layer keeps besides stay where they are.
---torch.nn.Module.to(device).
---
---    local net = nn.Linear(4, 2):to "eval"
---    print(net(dc.ones("f32[1, 4]"):to "eval").device) --> eval
---
---Errors: DC0101 where no device is named, DC1002 for one that is not there, DC1001 where it has too little memory:
---some cells have been moved then.
---@param device string "cpu", "opencl:0"
---@return deepc.nn.Layer # itself
function Layer:to(device)
  core.check_layer("to", self)
  if type(device) ~= "string" or core.is_float(device) then
    core.fail("ARG", "to", ("the name of a device is needed, not %s"):format(core.shown(device)),
      core.is_float(device) and (':cast "%s" gives a layer another dtype'):format(device) or nil)
  end
  core.refuse_inside(self, "to()")
  for _, named in ipairs(self:named_cells()) do
    named[2]:move(device)
  end
  return self
end

-- The device of a layer: that of its first cell.
function core.device_of(net)
  local first = net:named_cells()[1]
  return first and first[2].device or dc.device()
end

---Calls a function with each layer below and then with this one; layers that stand in several places once. Parameters
---can be set in it. torch.nn.Module.apply.
---
---    nn.Sequential({ nn.Linear(4, 4), nn.ReLU() }):apply(function(layer)
---      if layer.bias then layer.bias:set(nn.init.zeros(layer.bias)) end
---    end)
---
---Errors: DC0101 for what cannot be called.
---@param f fun(layer: deepc.nn.Layer)
---@return deepc.nn.Layer # itself
function Layer:apply(f)
  core.check_layer("apply", self)
  if not core.control_callable(f) then
    core.fail("ARG", "apply", "a function is needed, not " .. core.describe(f),
      "net:apply(function(layer) ... end); opt:apply(gradients) is that of an optimiser")
  end
  local function visit(part, seen)
    seen[part] = true
    local fields = core.fields_of(part)
    for _, key in ipairs(core.part_keys(fields)) do
      local below = rawget(fields, key)
      if type(below) == "table" and not seen[below] and (core.is_layer(below) or not getmetatable(below)) then
        visit(below, seen)
      end
    end
    if core.is_layer(part) then
      f(part)
    end
  end
  visit(self, {})
  return self
end
