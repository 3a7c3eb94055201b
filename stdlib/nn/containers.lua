-- Layers made of layers, and layers that drop or shape what they are given.

local dc = require "deepc"
local nn = require "deepc.nn.class"
local _, core = ...

local function check_part(op, what, part)
  if type(part) == "table" and rawget(part, "_is_layer") then
    core.fail("ARG", op, ("%s is the class %s, not a layer"):format(what, part.__name),
      part.__name .. "(...) makes one")
  elseif not core.control_callable(part) then
    core.fail("ARG", op, ("%s is %s, not a layer"):format(what, core.describe(part)))
  end
end

-- ---- layers beside each other ----

---layer(x) + x, or + shortcut(x), a layer that gives x the size of the sum (He et al., 2016).
---
---    nn.Residual(nn.Sequential { nn.Linear(8, 8), nn.ReLU() })
---    nn.Residual(nn.Conv2d(8, 16, 3, { padding = 1 }), nn.Conv2d(8, 16, 1))
---
---Errors: DC0101 for what is no layer; when it is called, DC0301 where sizes differ.
---@class deepc.nn.Residual: deepc.nn.Layer
local Residual = nn.class "nn.Residual"
nn.Residual = Residual

---@param layer deepc.nn.Layer|function
---@param shortcut? deepc.nn.Layer|function
function Residual:init(layer, shortcut)
  check_part("nn.Residual", "the layer", layer)
  if shortcut ~= nil then
    check_part("nn.Residual", "the shortcut", shortcut)
  end
  self.layer, self.shortcut = layer, shortcut
end

function Residual:forward(x)
  core.check_tensor("nn.Residual", x)
  local y, by = self.layer(x), self.shortcut and self.shortcut(x) or x
  core.check_tensor("nn.Residual", y, "what the layer returns")
  if core.sizes(y.shape) ~= core.sizes(by.shape) then
    core.fail("DIMS", "nn.Residual", ("the layer makes %s[%s], what is added is %s[%s]"):format(y.dtype,
      core.sizes(y.shape), by.dtype, core.sizes(by.shape)), "nn.Residual(layer, shortcut), a layer of the same result",
      "left", y, "right", by)
  end
  y = y + by
  return y
end

---Layers that are all given the same, and what they return, together: joined along an axis, added, or as a table.
---
---    nn.Parallel({ nn.Linear(8, 4), nn.Linear(8, 2) })(dc.ones "f32[3, 8]")
---    nn.Parallel({ a = nn.Linear(8, 4), b = nn.ReLU() }, { combine = "table" })
---
---Options: combine ("concat", "sum" or "table"), axis (of "concat": the last one). Parts with names are called in
---the order of their names.
---
---Errors: DC0101 for what is no layer and for options; when it is called, as dc.concat and +.
---@class deepc.nn.Parallel: deepc.nn.Layer
local Parallel = nn.class "nn.Parallel"
nn.Parallel = Parallel

local COMBINE = { concat = true, sum = true, table = true }

---@param parts table layers or functions, a list or by names
---@param options? { combine?: "concat"|"sum"|"table", axis?: deepc.Axis }
function Parallel:init(parts, options)
  local op = "nn.Parallel"
  if type(parts) ~= "table" or core.is_layer(parts) or getmetatable(parts) then
    core.fail("ARG", op, "a table of layers is needed, not " .. core.describe(parts),
      "nn.Parallel { nn.Linear(8, 4), nn.Linear(8, 2) }")
  end
  core.options(op, options, "combine", "axis")
  self.combine, self.axis = options and options.combine or "concat", options and options.axis or -1
  if not COMBINE[self.combine] then
    core.fail("ARG", op, ('combine is "concat", "sum" or "table", not %s'):format(core.shown(self.combine)))
  end
  local own, order = {}, {}
  for key, part in next, parts do
    if type(key) ~= "string" and math.type(key) ~= "integer" then
      core.fail("ARG", op, ("a key is %s; names or whole numbers are needed"):format(core.describe(key)))
    end
    check_part(op, ("part %s"):format(key), part)
    own[key], order[#order + 1] = part, key
  end
  if #order == 0 then
    core.fail("ARG", op, "there are no parts")
  end
  table.sort(order, function(a, b)
    if type(a) ~= type(b) then
      return type(a) == "number"
    end
    return a < b
  end)
  self.parts, self.order = own, order
end

function Parallel:describe()
  return ("nn.Parallel %d, %s"):format(#self.order, self.combine)
end

function Parallel:forward(x)
  local results, list = {}, {}
  for i, key in ipairs(self.order) do
    local y = self.parts[key](x)
    results[key], list[i] = y, y
  end
  if self.combine == "table" then
    return results
  end
  for i, y in ipairs(list) do
    core.check_tensor("nn.Parallel", y, ("what part %s returns"):format(self.order[i]))
  end
  local y = list[1]
  if self.combine == "concat" then
    y = dc.concat(list, self.axis)
    return y
  end
  for i = 2, #list do
    y = y + list[i]
  end
  return y
end

---An axis as several: the inverse of nn.Flatten. torch.nn.Unflatten.
---
---    nn.Unflatten(2, { 16, 7, 7 })
---
---Errors: DC0101 for sizes; when it is called, DC0103 for the axis, DC0304 where sizes do not fit.
---@class deepc.nn.Unflatten: deepc.nn.Layer
local Unflatten = nn.class "nn.Unflatten"
nn.Unflatten = Unflatten

---@param axis integer
---@param sizes integer[] one may be -1
function Unflatten:init(axis, sizes)
  local op = "nn.Unflatten"
  if math.type(axis) ~= "integer" then
    core.fail("ARG", op, ("an axis is an integer, not %s"):format(core.shown(axis)))
  elseif type(sizes) ~= "table" or #sizes == 0 or #sizes > 8 then
    core.fail("ARG", op, "a list of sizes is needed, not " .. core.describe(sizes), "nn.Unflatten(2, { 16, 7, 7 })")
  end
  self.axis, self.sizes = axis, { table.unpack(sizes, 1, #sizes) }
  for i, n in ipairs(self.sizes) do
    if n ~= -1 then
      core.check_size(op, ("size %d"):format(i), n)
    end
  end
end

function Unflatten:describe()
  return ("nn.Unflatten %d, %s"):format(self.axis, table.concat(self.sizes, ", "))
end

function Unflatten:forward(x)
  core.check_tensor("nn.Unflatten", x)
  local shape, at = x.shape, self.axis
  at = at < 0 and at + #shape + 1 or at
  local _ = x:size(self.axis) -- an axis that x lacks is told
  local sizes = { table.unpack(shape, 1, at - 1) }
  for _, n in ipairs(self.sizes) do
    sizes[#sizes + 1] = n
  end
  for i = at + 1, #shape do
    sizes[#sizes + 1] = shape[i]
  end
  local y = x:reshape(sizes)
  return y
end

-- ---- dropout of whole channels ----

local function channel_dropout(n)
  local name = ("nn.Dropout%dd"):format(n)
  local class = nn.class(name)

  function class:init(p)
    core.check_probability(name, "p", p)
    self.p = p == nil and 0.5 or p
  end

  function class:describe()
    return ("%s %s"):format(name, core.number("%g", self.p))
  end

  function class:forward(x)
    core.check_tensor(name, x)
    if #x.shape ~= n + 2 then
      core.fail("DIMS", name, ("x is %s[%s]; [batch, channels] and %d axes behind are needed"):format(x.dtype,
        core.sizes(x.shape), n), nil, "x", x)
    elseif not self.training or self.p == 0 then
      return x
    end
    local narrow, wide = core.in_f32(x)
    local sizes = { wide.shape[1], wide.shape[2], 1, 1, 1 }
    local kept = core.drop(dc.ones("f32[1, 1]"):expand(sizes[1], sizes[2]), self.p)
    local y = narrow(wide * kept:cast(wide.dtype):reshape { table.unpack(sizes, 1, n + 2) })
    return y
  end
  return class
end

---While training, whole channels of [batch, channels, height, width] become 0 with probability p, the others are
---multiplied by 1 / (1 - p) (Tompson et al., 2015); in evaluation mode x itself.
---
---    nn.Dropout2d(0.2)
---
---Errors: DC0101 for p; when it is called, DC0301 for another number of axes.
---@class deepc.nn.Dropout2d: deepc.nn.Layer
---@overload fun(p?: number): deepc.nn.Dropout2d
nn.Dropout2d = channel_dropout(2)

---nn.Dropout2d for [batch, channels, length].
---
---    nn.Dropout1d(0.2)
---@class deepc.nn.Dropout1d: deepc.nn.Layer
---@overload fun(p?: number): deepc.nn.Dropout1d
nn.Dropout1d = channel_dropout(1)

---nn.Dropout2d for [batch, channels, depth, height, width].
---
---    nn.Dropout3d(0.2)
---@class deepc.nn.Dropout3d: deepc.nn.Layer
---@overload fun(p?: number): deepc.nn.Dropout3d
nn.Dropout3d = channel_dropout(3)

---Dropout beside nn.SELU: while training, elements become what SELU gives far below 0 with probability p, and all are
---scaled so that mean and variance stay (Klambauer et al., 2017).
---
---    nn.AlphaDropout(0.1)
---
---Errors: DC0101 for p.
---@class deepc.nn.AlphaDropout: deepc.nn.Layer
local AlphaDropout = nn.class "nn.AlphaDropout"
nn.AlphaDropout = AlphaDropout

local LOWEST = -1.7580993408473766 -- of SELU

---@param p? number 0.5, from 0 to below 1
function AlphaDropout:init(p)
  core.check_probability("nn.AlphaDropout", "p", p)
  self.p = p == nil and 0.5 or p
end

function AlphaDropout:describe()
  return "nn.AlphaDropout " .. core.number("%g", self.p)
end

function AlphaDropout:forward(x)
  core.check_tensor("nn.AlphaDropout", x)
  if not self.training or self.p == 0 then
    return x
  end
  local p = self.p
  local narrow, wide = core.in_f32(x)
  local scale = ((1 - p) * (1 + p * LOWEST ^ 2)) ^ -0.5
  local drawn = dc.rand(wide.dtype == "f32" and wide or wide:cast "f32")
  local y = narrow(dc.where(drawn:ge(p), wide, LOWEST) * scale - scale * p * LOWEST)
  return y
end
