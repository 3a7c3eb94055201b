-- Margins around images as layers, and what convolutions with padding_mode share with them.

local nn = require "deepc.nn.class"
local _, core = ...

local WORDS = { "one", "two", "three" }
local DIMS = { "length", "height, width", "depth, height, width" }

-- Margins { before, after } of n dims, which are the last axes of x, by axis.
function core.image_margins(op, x, list, n)
  core.check_tensor(op, x)
  local rank, margins = #x.shape, {}
  if rank ~= n + 2 then
    core.fail("DIMS", op, ("x is %s[%s]; [batch, channels, %s] is needed"):format(x.dtype, core.sizes(x.shape),
      DIMS[n]), nil, "x", x)
  end
  for i = 1, n do
    margins[2 + i] = type(list[i]) == "table" and list[i] or { list[i], list[i] }
  end
  return margins
end

local function set_padding(op, self, padding, n)
  self.padding = core.padding_of(op, padding, n)
  if self.padding == "same" then
    core.fail("ARG", op, ("padding is a number or a list of %s"):format(WORDS[n]))
  end
end

local function padding_class(name, n, mode)
  local op = ("nn.%s%dd"):format(name, n)
  local class = nn.class(op)

  function class:init(padding)
    set_padding(op, self, padding, n)
  end

  function class:forward(x)
    local y = x:pad(core.image_margins(op, x, self.padding, n), { mode = mode })
    return y
  end
  return class
end

local function constant_class(n)
  local op = ("nn.ConstantPad%dd"):format(n)
  local class = nn.class(op)

  function class:init(padding, value)
    set_padding(op, self, padding, n)
    if type(value or 0) ~= "number" then
      core.fail("ARG", op, ("the value is a number, not %s"):format(core.shown(value)))
    end
    self.value = value or 0
  end

  function class:forward(x)
    local y = x:pad(core.image_margins(op, x, self.padding, n), self.value)
    return y
  end
  return class
end

---Zeros around images: x is [batch, channels, height, width].
---
---    nn.ZeroPad2d(1)     nn.ZeroPad2d { { 0, 1 }, 2 }
---
---Argument: a number for all sides, or a list with one entry for each dim, height first, a number or { before, after }.
---(torch.nn.ZeroPad2d takes one list of left, right, top, bottom.)
---
---Errors: DC0101 for the padding; when it is called, DC0301 for images of another rank.
---@class deepc.nn.ZeroPad2d: deepc.nn.Layer
---@overload fun(padding: integer|table): deepc.nn.ZeroPad2d
nn.ZeroPad2d = padding_class("ZeroPad", 2, "constant")

---nn.ZeroPad2d for one dim.
---
---    nn.ZeroPad1d(2)
---@class deepc.nn.ZeroPad1d: deepc.nn.Layer
---@overload fun(padding: integer|table): deepc.nn.ZeroPad1d
nn.ZeroPad1d = padding_class("ZeroPad", 1, "constant")

---nn.ZeroPad2d for three dims.
---
---    nn.ZeroPad3d(1)
---@class deepc.nn.ZeroPad3d: deepc.nn.Layer
---@overload fun(padding: integer|table): deepc.nn.ZeroPad3d
nn.ZeroPad3d = padding_class("ZeroPad", 3, "constant")

---A number around images, with the padding of nn.ZeroPad2d.
---
---    nn.ConstantPad2d(1, -1)
---
---Errors: DC0101 for the padding and the value; when it is called, DC0301 for images of another rank.
---@class deepc.nn.ConstantPad2d: deepc.nn.Layer
---@overload fun(padding: integer|table, value?: number): deepc.nn.ConstantPad2d
nn.ConstantPad2d = constant_class(2)

---nn.ConstantPad2d for one dim.
---
---    nn.ConstantPad1d(2, -1)
---@class deepc.nn.ConstantPad1d: deepc.nn.Layer
---@overload fun(padding: integer|table, value?: number): deepc.nn.ConstantPad1d
nn.ConstantPad1d = constant_class(1)

---nn.ConstantPad2d for three dims.
---
---    nn.ConstantPad3d(1, -1)
---@class deepc.nn.ConstantPad3d: deepc.nn.Layer
---@overload fun(padding: integer|table, value?: number): deepc.nn.ConstantPad3d
nn.ConstantPad3d = constant_class(3)

---Images continued backwards from their last pixel on, which is not repeated; the padding is that of nn.ZeroPad2d.
---
---    nn.ReflectionPad2d(1)
---
---Errors: DC0101 for the padding; when it is called, DC0301 for a dim with no more elements than the margin has.
---@class deepc.nn.ReflectionPad2d: deepc.nn.Layer
---@overload fun(padding: integer|table): deepc.nn.ReflectionPad2d
nn.ReflectionPad2d = padding_class("ReflectionPad", 2, "reflect")

---nn.ReflectionPad2d for one dim.
---
---    nn.ReflectionPad1d(2)
---@class deepc.nn.ReflectionPad1d: deepc.nn.Layer
---@overload fun(padding: integer|table): deepc.nn.ReflectionPad1d
nn.ReflectionPad1d = padding_class("ReflectionPad", 1, "reflect")

---nn.ReflectionPad2d for three dims.
---
---    nn.ReflectionPad3d(1)
---@class deepc.nn.ReflectionPad3d: deepc.nn.Layer
---@overload fun(padding: integer|table): deepc.nn.ReflectionPad3d
nn.ReflectionPad3d = padding_class("ReflectionPad", 3, "reflect")

---The last pixels of images again and again; the padding is that of nn.ZeroPad2d.
---
---    nn.ReplicationPad2d(1)
---
---Errors: DC0101 for the padding; when it is called, DC0301 for images of another rank.
---@class deepc.nn.ReplicationPad2d: deepc.nn.Layer
---@overload fun(padding: integer|table): deepc.nn.ReplicationPad2d
nn.ReplicationPad2d = padding_class("ReplicationPad", 2, "replicate")

---nn.ReplicationPad2d for one dim.
---
---    nn.ReplicationPad1d(2)
---@class deepc.nn.ReplicationPad1d: deepc.nn.Layer
---@overload fun(padding: integer|table): deepc.nn.ReplicationPad1d
nn.ReplicationPad1d = padding_class("ReplicationPad", 1, "replicate")

---nn.ReplicationPad2d for three dims.
---
---    nn.ReplicationPad3d(1)
---@class deepc.nn.ReplicationPad3d: deepc.nn.Layer
---@overload fun(padding: integer|table): deepc.nn.ReplicationPad3d
nn.ReplicationPad3d = padding_class("ReplicationPad", 3, "replicate")

---Images continued at their other end; the padding is that of nn.ZeroPad2d.
---
---    nn.CircularPad2d(1)
---
---Errors: DC0101 for the padding; when it is called, DC0301 for a dim with fewer elements than the margin has.
---@class deepc.nn.CircularPad2d: deepc.nn.Layer
---@overload fun(padding: integer|table): deepc.nn.CircularPad2d
nn.CircularPad2d = padding_class("CircularPad", 2, "circular")

---nn.CircularPad2d for one dim.
---
---    nn.CircularPad1d(2)
---@class deepc.nn.CircularPad1d: deepc.nn.Layer
---@overload fun(padding: integer|table): deepc.nn.CircularPad1d
nn.CircularPad1d = padding_class("CircularPad", 1, "circular")

---nn.CircularPad2d for three dims.
---
---    nn.CircularPad3d(1)
---@class deepc.nn.CircularPad3d: deepc.nn.Layer
---@overload fun(padding: integer|table): deepc.nn.CircularPad3d
nn.CircularPad3d = padding_class("CircularPad", 3, "circular")
