-- Metrics: what is common to functions of one batch and to sums over many.
--
-- A metric is two functions: statistics of a batch that add up, and the result for their sums. Over batches the sums
-- are states, so they stay on the device, and an update may stand in a typed function; nothing is read before the
-- script reads a result.

local dc = require "deepc"
local _, core = ...

---Metrics: functions of one batch, and classes that go over many of them without reading anything back.
---
---    local metrics = require "deepc.metrics"
---    local accuracy = metrics.Accuracy()
---    accuracy:update(dc.tensor { { 0.1, 0.9 }, { 0.8, 0.2 } }, dc.tensor({ 1, 1 }, "i32"))
---    print(accuracy:result())
---@class deepc.metrics
local metrics = {}

-- What the other files need; no part of the module.
local class = {}
core.metrics = class

---What metrics over batches have in common.
---@class deepc.metrics.Metric
local Metric = {}

-- ---- checks ----

local function check_self(op, self)
  if type(self) ~= "table" or not rawget(self, "_own") or not getmetatable(self)._is_metric then
    core.fail("ARG", op, "a metric is needed, not " .. core.describe(self), ("with a colon: metric:%s(...)"):format(op))
  end
  return rawget(self, "_own")
end

local function tensor(op, what, x)
  if not core.kind(x) then
    core.fail("ARG", op, ("%s: a tensor is needed, not %s"):format(what, core.describe(x)),
      type(x) == "table" and "dc.tensor(values) makes one of a table of numbers" or nil)
  end
  return x
end

local function same_shape(a, b)
  local x, y = a.shape, b.shape
  for i = 1, math.max(#x, #y) do
    if x[i] ~= y[i] then
      return false
    end
  end
  return true
end

-- Floats are computed with in f32, or f64.
local function wide(x)
  if x.dtype == "f64" or x.dtype == "f32" then
    return x
  end
  return (x:cast "f32")
end

-- The mask as bools of the shape of rows; nil without one.
local function read_mask(op, mask, rows, what)
  if mask == nil then
    return nil
  end
  tensor(op, "mask", mask)
  if not same_shape(mask, rows) then
    core.fail("DIMS", op, ("mask is %s, %s %s; one value for each row is needed"):format(core.describe(mask), what,
      core.describe(rows)), nil, "mask", mask, what, rows)
  end
  return mask.dtype == "bool" and mask or (mask:ne(0))
end

-- How many rows there are, an i32[].
local function count(rows, mask)
  return ((mask or dc.ones(rows:eq(rows))):sum())
end

-- Is it a table of settings, with these and no others?
function class.options(op, options, ...)
  core.options(op, options, ...)
  return options or {}
end

class.tensor, class.same_shape, class.wide, class.read_mask, class.count = tensor, same_shape, wide, read_mask, count
class.check_self = check_self

-- ---- over batches ----

-- Sums of floats are kept as two numbers, what is added and what rounding left (Knuth's TwoSum), so that a million of
-- batches lose no more than one.
local function add_to(cells, x)
  local sum, rest = cells[1], cells[2]
  if not rest then
    sum:set(sum + x)
    return
  end
  local y = x + rest
  local total = sum + y
  local taken = total - sum
  rest:set((sum - (total - taken)) + (y - taken))
  sum:set(total)
end

local function new_cells(own, name, t)
  local float = t:match "^f"
  local cells = { dc.state(t), float and dc.state(t) or nil }
  for i, cell in ipairs(cells) do
    local path = name .. (i == 2 and ".rest" or "")
    core.label(cell, own.name .. "." .. path)
    own.cells[#own.cells + 1] = { path, cell }
  end
  return cells
end

-- A class of metrics over batches. `spec` has its `name`, the types of its `sums` by name in a list
-- { name, type }, or make(own, argument) that reads the argument of the constructor and returns such a list,
-- stats(own, a, b, options), a table of what is added to each sum, and result(sums, own).
function class.new(spec)
  local methods = spec.methods or {}
  local meta = { __name = spec.name, _versioned = true, _is_metric = true }
  function meta.__index(_, key)
    local v = methods[key]
    if v == nil then
      v = Metric[key]
    end
    return v
  end
  function meta.__newindex(_, key)
    core.fail("FIELD", nil, ("%s has no setting '%s'"):format(spec.name, tostring(key)))
  end
  function meta.__tostring()
    return spec.name
  end
  local function new(argument)
    local own = { name = spec.name:match "[^.]+$", cells = {}, sums = {}, spec = spec }
    own.order = spec.make and spec.make(own, argument) or spec.sums
    for _, entry in ipairs(own.order) do
      own.sums[entry[1]] = new_cells(own, entry[1], entry[2])
    end
    return setmetatable({ _own = own }, meta)
  end
  return setmetatable(methods, { __index = Metric,
    __call = spec.make and function(_, argument) return new(argument) end or function(_) return new() end })
end

-- The sums as they are now, by name.
function class.sums(own)
  local list = {}
  for _, entry in ipairs(own.order) do
    list[entry[1]] = own.sums[entry[1]][1] * 1
  end
  return list
end

---Takes a batch into the metric: inside a typed function, where it is a part of the graph, or outside.
---The arguments are those of the function of the same name: `metrics.Accuracy` takes what
---`metrics.accuracy` takes.
---
---    accuracy:update(net(x), labels)
---
---Errors: those of the function.
---@param a deepc.Tensor
---@param b? deepc.Tensor
---@param options? table
function Metric:update(a, b, options)
  local own = check_self("update", self)
  local stats = own.spec.stats(own, a, b, options)
  for _, entry in ipairs(own.order) do
    add_to(own.sums[entry[1]], stats[entry[1]])
  end
end

---The value over all batches since the last reset: a tensor, read when the script reads it; NaN where there
---was none.
---
---    print(accuracy:result())
---@return deepc.Tensor
function Metric:result()
  local own = check_self("result", self)
  return (own.spec.result(class.sums(own), own))
end

---Begins anew.
---
---    accuracy:reset()
function Metric:reset()
  local own = check_self("reset", self)
  for _, entry in ipairs(own.cells) do
    entry[2]:set(dc.zeros(entry[2]))
  end
end

---Its states lie on that device from now on, with their values; see net:to.
---
---    accuracy:to "eval"
---
---Errors: DC1002 for a device that is not there, DC0604 in a typed function.
---@param device string "cpu", "opencl:0"
---@return deepc.metrics.Metric # itself
function Metric:to(device)
  for _, entry in ipairs(check_self("to", self).cells) do
    entry[2]:move(device)
  end
  return self
end

---What is saved of it.
---
---    for _, named in ipairs(accuracy:named_cells()) do print(named[1], named[2].dtype) end
---@return table[] # { name, cell }
function Metric:named_cells()
  local own = check_self("named_cells", self)
  local list = {}
  for i, entry in ipairs(own.cells) do
    list[i] = { entry[1], entry[2] }
  end
  return list
end

class.Metric = core.entries(Metric)

return metrics
