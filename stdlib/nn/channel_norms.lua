-- Normalisation by channels of [batch, channels, ...]: over the batch, over groups of channels, over each image.

local dc = require "deepc"
local nn = require "deepc.nn.class"
local _, core = ...

local AXES = { "length", "height, width", "depth, height, width" }

local function check_number(op, name, v, most)
  if type(v) ~= "number" or not (v >= 0 and v <= (most or math.huge)) then
    core.fail("ARG", op, ("%s is a number from 0 %s, not %s"):format(name, most and "to " .. most or "on",
      core.shown(v)))
  end
end

-- One value for each channel, as a tensor beside one of so many axes.
local function by_channel(t, rank)
  local sizes = { 1, #t }
  for i = 3, rank do
    sizes[i] = 1
  end
  return t:reshape(sizes)
end

-- ---- running values ----

-- Options that BatchNorm and InstanceNorm have; parameters and states.
local function init_running(op, self, channels, options, defaults)
  core.check_size(op, "the number of channels", channels)
  core.options(op, options, "momentum", "eps", "affine", "track_running_stats")
  options = options or {}
  self.channels, self.momentum, self.eps = channels, options.momentum, options.eps or 1e-5
  if self.momentum == nil then
    self.momentum = 0.1
  elseif self.momentum ~= false then
    check_number(op, "momentum", self.momentum, 1)
  end
  check_number(op, "eps", self.eps)
  local t = ("f32[%d]"):format(channels)
  local function chosen(key)
    if options[key] == nil then
      return defaults[key]
    end
    return core.unless_false(op, options, key)
  end
  if chosen "affine" then
    self.weight = dc.param(t, dc.ones(t))
    self.bias = dc.param(t, dc.zeros(t))
  end
  if chosen "track_running_stats" then
    self.running_mean = dc.state(t, dc.zeros(t))
    self.running_var = dc.state(t, dc.ones(t))
    if self.momentum == false then
      self.num_batches_tracked = dc.state "i64[]"
    end
  end
end

-- Moves a running value towards the one seen.
local function move(cell, seen, by)
  local old = cell.dtype == seen.dtype and cell or cell:cast(seen.dtype)
  local new = old * (1 - by) + dc.stop_gradient(seen) * by
  cell:set(new.dtype == cell.dtype and new or new:cast(cell.dtype))
end

-- How far: a part, or so that the running value is the mean of all that was seen.
local function share(self, dtype)
  if self.momentum ~= false then
    return self.momentum
  end
  self.num_batches_tracked:set(self.num_batches_tracked + 1)
  return 1 / self.num_batches_tracked:cast(dtype)
end

-- n / (n - 1), for a variance of n elements.
local function unbiased(n, dtype)
  if core.is_size(n) then
    return n:cast(dtype) / dc.maximum((n - 1):cast(dtype), 1)
  end
  return n / math.max(n - 1, 1)
end

-- y = (x - mean) * rsqrt(var + eps), times weight plus bias, for values that stand by channel.
local function normalise(self, x, mean, var, weight, bias)
  local scale = (var + self.eps):rsqrt()
  if weight then
    scale = scale * by_channel(weight, #x.shape)
  end
  local y = (x - mean) * scale
  if bias then
    y = y + by_channel(bias, #x.shape)
  end
  return y
end

local function describe(self)
  return ("%s %d"):format(getmetatable(self).__name, self.channels)
end

local function check_input(op, self, x, fits, needed)
  core.check_tensor(op, x)
  local shape = x.shape
  if not fits[#shape] or shape[2] ~= self.channels then
    core.fail("DIMS", op, ("x is %s[%s]; %s is needed"):format(x.dtype, core.sizes(shape),
      needed:format(self.channels, self.channels)), nil, "x", x)
  end
end

-- ---- over the batch ----

local function batch_class(n)
  local op = ("nn.BatchNorm%dd"):format(n)
  local class = nn.class(op)
  local fits = { [n + 2] = true, [n == 1 and 2 or n + 2] = true }
  local needed = n == 1 and "[batch, %d] or [batch, %d, length]" or "[batch, %d, " .. AXES[n] .. "]"

  function class:init(channels, options)
    init_running(op, self, channels, options, { affine = true, track_running_stats = true })
  end
  class.describe = describe

  -- Of x for each channel; the running values move.
  local function of_batch(self, x)
    local axes, count = { axis = { 1 }, keep = true }, x:size(1)
    for i = 3, #x.shape do
      axes.axis[i - 1], count = i, count * x:size(i)
    end
    local mean = x:mean(axes)
    local var = (x - mean):square():mean(axes)
    if self.running_mean and self.training then
      local by = share(self, x.dtype)
      move(self.running_mean, mean:reshape(-1), by)
      move(self.running_var, var:reshape(-1) * unbiased(count, x.dtype), by)
    end
    return mean, var
  end

  function class:forward(x)
    check_input(op, self, x, fits, needed)
    local narrow, wide, weight, bias = core.in_f32(x, self.weight, self.bias)
    local mean, var
    if self.training or not self.running_mean then
      mean, var = of_batch(self, wide)
    else
      local _, _, m, v = core.in_f32(x, self.running_mean, self.running_var)
      mean, var = by_channel(m, #x.shape), by_channel(v, #x.shape)
    end
    local y = narrow(normalise(self, wide, mean, var, weight, bias))
    return y
  end
  return class
end

---Each channel brought to mean 0 and variance 1, then times weight plus bias, which are f32[channels]
---(Ioffe and Szegedy, 2015). While training by the mean and variance of the batch, which also move the
---states running_mean and running_var; in evaluation mode by those.
---
---    nn.BatchNorm2d(32)
---
---Options: momentum (0.1, how far a batch moves the running values; false: they are the mean of all batches), eps
---(1e-5), affine (true; false: no weight and no bias), track_running_stats (true; false: no states, by the batch
---always).
---
---Errors: DC0101 for options; when it is called, DC0301 where x is not [batch, channels, height, width].
---@class deepc.nn.BatchNorm2d: deepc.nn.Layer
---@overload fun(channels: integer, options?: table): deepc.nn.BatchNorm2d
nn.BatchNorm2d = batch_class(2)

---nn.BatchNorm2d for vectors, [batch, channels], and sequences, [batch, channels, length].
---
---    nn.BatchNorm1d(32)
---
---Errors: DC0101 for options; when it is called, DC0301 for another x.
---@class deepc.nn.BatchNorm1d: deepc.nn.Layer
---@overload fun(channels: integer, options?: table): deepc.nn.BatchNorm1d
nn.BatchNorm1d = batch_class(1)

---nn.BatchNorm2d for [batch, channels, depth, height, width].
---
---    nn.BatchNorm3d(8)
---
---Errors: DC0101 for options; when it is called, DC0301 for another x.
---@class deepc.nn.BatchNorm3d: deepc.nn.Layer
---@overload fun(channels: integer, options?: table): deepc.nn.BatchNorm3d
nn.BatchNorm3d = batch_class(3)

-- ---- over each image ----

local function instance_class(n)
  local op = ("nn.InstanceNorm%dd"):format(n)
  local class = nn.class(op)
  local fits, needed = { [n + 2] = true }, "[batch, %d, " .. AXES[n] .. "]"

  function class:init(channels, options)
    init_running(op, self, channels, options, { affine = false, track_running_stats = false })
  end
  class.describe = describe

  function class:forward(x)
    check_input(op, self, x, fits, needed)
    local narrow, wide, weight, bias = core.in_f32(x, self.weight, self.bias)
    local mean, var
    if self.training or not self.running_mean then
      local axes, count = { axis = {}, keep = true }, 1
      for i = 3, #x.shape do
        axes.axis[i - 2], count = i, count * x:size(i)
      end
      mean = wide:mean(axes)
      var = (wide - mean):square():mean(axes)
      if self.running_mean and self.training then
        local by = share(self, wide.dtype)
        move(self.running_mean, mean:mean(1):reshape(-1), by)
        move(self.running_var, var:mean(1):reshape(-1) * unbiased(count, wide.dtype), by)
      end
    else
      local _, _, m, v = core.in_f32(x, self.running_mean, self.running_var)
      mean, var = by_channel(m, #x.shape), by_channel(v, #x.shape)
    end
    local y = narrow(normalise(self, wide, mean, var, weight, bias))
    return y
  end
  return class
end

---Each channel of each image brought to mean 0 and variance 1 (Ulyanov, Vedaldi and Lempitsky, 2016).
---
---    nn.InstanceNorm2d(32, { affine = true })
---
---Options: eps (1e-5), affine (false; true: weight and bias, f32[channels]), track_running_stats (false; true: states
---running_mean and running_var, which evaluation mode uses), momentum (0.1).
---
---Errors: DC0101 for options; when it is called, DC0301 where x is not [batch, channels, height, width].
---@class deepc.nn.InstanceNorm2d: deepc.nn.Layer
---@overload fun(channels: integer, options?: table): deepc.nn.InstanceNorm2d
nn.InstanceNorm2d = instance_class(2)

---nn.InstanceNorm2d for [batch, channels, length].
---
---    nn.InstanceNorm1d(32)
---
---Errors: DC0101 for options; when it is called, DC0301 for another x.
---@class deepc.nn.InstanceNorm1d: deepc.nn.Layer
---@overload fun(channels: integer, options?: table): deepc.nn.InstanceNorm1d
nn.InstanceNorm1d = instance_class(1)

---nn.InstanceNorm2d for [batch, channels, depth, height, width].
---
---    nn.InstanceNorm3d(8)
---
---Errors: DC0101 for options; when it is called, DC0301 for another x.
---@class deepc.nn.InstanceNorm3d: deepc.nn.Layer
---@overload fun(channels: integer, options?: table): deepc.nn.InstanceNorm3d
nn.InstanceNorm3d = instance_class(3)

-- ---- over groups of channels ----

local function check_groups(op, x, groups)
  core.check_tensor(op, x)
  core.check_size(op, "the number of groups", groups)
  local shape = x.shape
  if #shape < 2 or core.is_size(shape[2]) or shape[2] % groups ~= 0 then
    core.fail("DIMS", op, ("x is %s[%s]; [batch, channels, ...] with channels in %d groups is needed"):format(x.dtype,
      core.sizes(shape), groups), nil, "x", x)
  end
  return shape
end

---Channels in groups, each brought to mean 0 and variance 1 for each element of the batch, times weight, plus bias, by
---channel (Wu and He, 2018). x is [batch, channels, ...]. torch.nn.functional.group_norm.
---
---    nn.group_norm(dc.zeros "f32[2, 6, 4, 4]", 3)
---
---Errors: DC0301 where the channels do not divide into the groups, or weight or bias are not one number for each.
---@param x deepc.Tensor floats
---@param groups integer
---@param options? { weight?: deepc.Tensor, bias?: deepc.Tensor, eps?: number } eps is 1e-5
---@return deepc.Tensor
function nn.group_norm(x, groups, options)
  local op = "group_norm"
  core.options(op, options, "weight", "bias", "eps")
  options = options or {}
  local eps = options.eps or 1e-5
  check_number(op, "eps", eps)
  local shape = check_groups(op, x, groups)
  for _, name in ipairs { "weight", "bias" } do
    local t = options[name]
    if t ~= nil and (not core.kind(t) or #t.shape ~= 1 or #t ~= shape[2]) then
      core.fail("DIMS", op, ("%s is a tensor of one number for each of %d channels"):format(name, shape[2]), nil,
        name, t)
    end
  end
  local narrow, wide, weight, bias = core.in_f32(x, options.weight, options.bias)
  local batch, channels, spatial, ones = shape[1], shape[2], {}, { shape[1], shape[2] }
  for i = 3, #shape do
    spatial[i - 2], ones[i] = i, 1
  end
  -- Each channel first, then those of a group: between convolutions channels lie side by side, and are a vector.
  local function mean(v)
    if #spatial > 0 then
      v = v:mean { axis = spatial, keep = true }
    end
    local of_group = v:reshape(batch, groups, channels // groups):mean { axis = 3, keep = true }
    return of_group:expand(batch, groups, channels // groups):reshape(ones)
  end
  local centred = wide - mean(wide)
  local y = centred * (mean(centred * centred) + eps):rsqrt()
  local parts = { channels, table.unpack(ones, 3) }
  if weight then
    y = y * weight:reshape(parts)
  end
  if bias then
    y = y + bias:reshape(parts)
  end
  y = narrow(y)
  return y
end

---nn.group_norm with a weight that starts at 1 and a bias that starts at 0, f32[channels].
---
---    nn.GroupNorm(4, 32)
---
---Options: eps (1e-5), affine (true; false: no weight and no bias).
---
---Errors: DC0101 where the channels do not divide into the groups.
---@class deepc.nn.GroupNorm: deepc.nn.Layer
local GroupNorm = nn.class "nn.GroupNorm"
nn.GroupNorm = GroupNorm

---@param groups integer
---@param channels integer
---@param options? { eps?: number, affine?: boolean }
function GroupNorm:init(groups, channels, options)
  local op = "nn.GroupNorm"
  core.check_size(op, "the number of groups", groups)
  core.check_size(op, "the number of channels", channels)
  core.options(op, options, "eps", "affine")
  if channels % groups ~= 0 then
    core.fail("ARG", op, ("%d channels do not divide into %d groups"):format(channels, groups),
      ("groups come first: nn.GroupNorm(%d, %d)"):format(channels, groups))
  end
  self.groups, self.channels, self.eps = groups, channels, options and options.eps or 1e-5
  check_number(op, "eps", self.eps)
  if core.unless_false(op, options, "affine") then
    local t = ("f32[%d]"):format(channels)
    self.weight, self.bias = dc.param(t, dc.ones(t)), dc.param(t, dc.zeros(t))
  end
end

function GroupNorm:describe()
  return ("nn.GroupNorm %d, %d"):format(self.groups, self.channels)
end

function GroupNorm:forward(x)
  check_input("nn.GroupNorm", self, x, { true, true, true, true, true, true, true, true }, "[batch, %d, ...]")
  local y = nn.group_norm(x, self.groups, { weight = self.weight, bias = self.bias, eps = self.eps })
  return y
end

-- ---- over neighbouring channels ----

---x / (k + alpha * mean of squares)^beta, the mean over `size` neighbouring channels, where channels outside count as 0
---(Krizhevsky, Sutskever and Hinton, 2012). torch.nn.functional.local_response_norm.
---
---    nn.local_response_norm(dc.ones "f32[1, 6, 2, 2]", 3)
---
---Errors: DC0301 for fewer than three axes.
---@param x deepc.Tensor floats[batch, channels, ...]
---@param size integer
---@param options? { alpha?: number, beta?: number, k?: number } 1e-4, 0.75, 1
---@return deepc.Tensor
function nn.local_response_norm(x, size, options)
  local op = "local_response_norm"
  core.check_tensor(op, x)
  core.check_size(op, "size", size)
  core.options(op, options, "alpha", "beta", "k")
  options = options or {}
  local shape = x.shape
  if #shape < 3 then
    core.fail("DIMS", op, ("x is %s[%s]; [batch, channels, ...] is needed"):format(x.dtype, core.sizes(shape)), nil,
      "x", x)
  end
  local narrow, wide = core.in_f32(x)
  local squares = (wide * wide):reshape(shape[1], 1, shape[2], -1):pad { [3] = { size // 2, (size - 1) // 2 } }
  local mean = dc.avg_pool2d(squares, { size, 1 }, { stride = 1 }):reshape(shape)
  local y = narrow(wide / (mean * (options.alpha or 1e-4) + (options.k or 1)) ^ (options.beta or 0.75))
  return y
end

---nn.local_response_norm.
---
---    nn.LocalResponseNorm(5)
---@class deepc.nn.LocalResponseNorm: deepc.nn.Layer
local LocalResponseNorm = nn.class "nn.LocalResponseNorm"
nn.LocalResponseNorm = LocalResponseNorm

---@param size integer
---@param options? { alpha?: number, beta?: number, k?: number } 1e-4, 0.75, 1
function LocalResponseNorm:init(size, options)
  core.check_size("nn.LocalResponseNorm", "size", size)
  core.options("nn.LocalResponseNorm", options, "alpha", "beta", "k")
  options = options or {}
  self.size, self.alpha, self.beta, self.k = size, options.alpha or 1e-4, options.beta or 0.75, options.k or 1
end

function LocalResponseNorm:describe()
  return ("nn.LocalResponseNorm %d"):format(self.size)
end

function LocalResponseNorm:forward(x)
  local y = nn.local_response_norm(x, self.size, { alpha = self.alpha, beta = self.beta, k = self.k })
  return y
end
