-- Where elements of a sequence stand: angles by which pairs of features are turned, waves that are added.

local dc = require "deepc"
local nn = require "deepc.nn.class"
local _, core = ...

local function check_base(op, base)
  core.check_number(op, "base", base)
  if base <= 0 then
    core.fail("ARG", op, ("base is a positive number, not %s"):format(base))
  end
end

local MOST = 1 << 20 -- features

local function check_pairs(op, size)
  core.check_size(op, "the size", size)
  if size % 2 ~= 0 or size > MOST then
    core.fail("ARG", op, ("the size is %d; an even number%s is needed"):format(size,
      size > MOST and (", %d at most,"):format(MOST) or ""))
  end
end

-- base^(-2 i / size) for i from 0 to size / 2 - 1.
local function frequencies(size, base, dtype)
  local list = {}
  for i = 1, size // 2 do
    list[i] = base ^ (-2 * (i - 1) / size)
  end
  return (core.anywhere(dc.tensor(list, ("%s[%d]"):format(dtype, size // 2))))
end

-- ---- rotary positions ----

-- Angles as [time, size / 2], or [batch, 1 ..., time, size / 2] where positions are given for each element of the
-- batch.
local function angles(op, x, size, o)
  local shape, positions = x.shape, o.positions
  local n = #shape
  if positions == nil then
    positions = dc.iota(shape[n - 1])
  else
    core.check_tensor(op, positions, "positions")
    local p = positions.shape
    if not positions.dtype:match "^[iu]" then
      core.fail("DTYPE", op, ("positions are %s[%s]; integers are needed"):format(positions.dtype, core.sizes(p)), nil,
        "positions", positions)
    elseif #p > 2 or #p < 1 or p[#p] ~= shape[n - 1] or #p == 2 and (n < 3 or p[1] ~= shape[1] and p[1] ~= 1) then
      core.fail("DIMS", op, ("positions are %s[%s], x is %s[%s]; [time] or [batch, time] is needed"):format(
        positions.dtype, core.sizes(p), x.dtype, core.sizes(shape)), nil, "positions", positions, "x", x)
    end
    if #p == 2 then
      local sizes = { p[1] }
      for i = 2, n - 2 do
        sizes[i] = 1
      end
      sizes[n - 1] = p[2]
      positions = positions:reshape(sizes)
    end
  end
  if o.offset ~= nil then
    positions = positions + o.offset
  end
  local sizes = positions.shape
  sizes[#sizes + 1] = 1
  return positions:cast(x.dtype):reshape(sizes) * frequencies(size, o.base or 10000, x.dtype) * (o.scale or 1)
end

local function turn_halves(x, c, s)
  local a, b = x:split(2, -1)
  return dc.concat({ a * c - b * s, b * c + a * s }, -1)
end

local function turn_pairs(x, c, s)
  local shape = x.shape
  local sizes = { table.unpack(shape) }
  sizes[#sizes], sizes[#sizes + 1] = shape[#shape] // 2, 2
  local two, at = x:reshape(sizes), {}
  for i = 1, #shape do
    at[i] = {}
  end
  local function side(k)
    at[#shape + 1] = k
    return two[at]
  end
  local a, b = side(1), side(2)
  return dc.stack({ a * c - b * s, b * c + a * s }, #sizes):reshape(shape)
end

---Pairs of features turned by angles that grow with the position, position * base^(-2 i / size) for pair i (Su et al.,
---2021), so that products of queries and keys depend on how far apart they are. x is [..., time, size].
---
---    nn.rotary(dc.ones "f32[2, 4, 10, 8]")
---
---Options: base (10000), interleaved (false: feature i and i + size / 2 are a pair, as in GPT-NeoX and LLaMA's files of
---Hugging Face; true: features 2 i and 2 i + 1, as in the paper), positions (integers [time] or [batch, time], 0, 1,
---2 ... without), offset (an integer or i32[] that is added to them), scale (1, of positions), size (the last axis;
---fewer: the features behind stay as they are).
---
---Errors: DC0301 for positions of other sizes or an odd size, DC0202 for dtypes, DC0101 for options.
---@param x deepc.Tensor floats
---@param options? table see above
---@return deepc.Tensor
function nn.rotary(x, options)
  local op = "rotary"
  core.options(op, options, "base", "interleaved", "positions", "offset", "scale", "size")
  options = options or {}
  core.check_tensor(op, x)
  core.check_flags(op, options, "interleaved")
  check_base(op, options.base or 10000)
  core.check_number(op, "scale", options.scale or 1)
  local shape = x.shape
  local all = shape[#shape]
  local size = options.size or all
  if #shape < 2 or not core.is_float(x.dtype) then
    core.fail("DIMS", op, ("x is %s[%s]; floats [..., time, size] are needed"):format(x.dtype, core.sizes(shape)), nil,
      "x", x)
  elseif math.type(size) ~= "integer" or size < 2 or size % 2 ~= 0 or size > all then
    core.fail("DIMS", op, ("%s of %s features are turned; an even number of them is needed"):format(tostring(size),
      tostring(all)), nil, "x", x)
  end
  local narrow, wide = core.in_f32(x)
  local rest
  if size < all then
    wide, rest = wide:split({ size, all - size }, -1)
  end
  local angle = angles(op, wide, size, options)
  local y = (options.interleaved and turn_pairs or turn_halves)(wide, angle:cos(), angle:sin())
  y = narrow(rest and dc.concat({ y, rest }, -1) or y)
  return y
end

---nn.rotary as a layer: y = layer(x, positions), for queries and keys, [..., time, features].
---
---    nn.RotaryEmbedding(64)(dc.ones "f32[2, 4, 10, 64]")
---
---Options: base (10000), interleaved (false), scale (1), as of nn.rotary.
---
---Errors: DC0101 for sizes and options; when it is called, as nn.rotary.
---@class deepc.nn.RotaryEmbedding: deepc.nn.Layer
local RotaryEmbedding = nn.class "nn.RotaryEmbedding"
nn.RotaryEmbedding = RotaryEmbedding

---@param size integer features that are turned, the first ones of a head
---@param options? { base?: number, interleaved?: boolean, scale?: number }
function RotaryEmbedding:init(size, options)
  local op = "nn.RotaryEmbedding"
  check_pairs(op, size)
  core.options(op, options, "base", "interleaved", "scale")
  options = options or {}
  core.check_flags(op, options, "interleaved")
  self.size, self.base, self.interleaved = size, options.base or 10000, options.interleaved or false
  self.scale = options.scale or 1
  check_base(op, self.base)
  core.check_number(op, "scale", self.scale)
end

function RotaryEmbedding:describe()
  return ("nn.RotaryEmbedding %d"):format(self.size)
end

function RotaryEmbedding:forward(x, positions)
  local y = nn.rotary(x, { base = self.base, interleaved = self.interleaved, scale = self.scale, size = self.size,
    positions = positions })
  return y
end

-- ---- waves ----

---f32[count, size] of sin(position * f) and cos(position * f) in turn, f = base^(-2 i / size) for pair i (Vaswani et
---al., 2017).
---
---    nn.sinusoidal_positions(100, 16)
---
---Errors: DC0101 for sizes.
---@param count integer of positions
---@param size integer of features, even
---@param options? { base?: number } 10000
---@return deepc.Tensor
function nn.sinusoidal_positions(count, size, options)
  local op = "sinusoidal_positions"
  core.options(op, options, "base")
  if not core.is_size(count) then
    core.check_size(op, "the number of positions", count)
  end
  check_pairs(op, size)
  local base = options and options.base or 10000
  check_base(op, base)
  local angle = dc.iota(count):cast("f32"):reshape(-1, 1) * frequencies(size, base, "f32")
  local y = dc.stack({ angle:sin(), angle:cos() }, 3):reshape(count, size)
  return y
end

---x plus nn.sinusoidal_positions, for x of [time, batch, size] or [time, size].
---
---    nn.SinusoidalPositions(16, { batch_first = true })
---
---Options: base (10000), dropout (0), batch_first (false; true: [batch, time, size]).
---
---Errors: DC0101 for the size and options; when it is called, DC0301 for another x.
---@class deepc.nn.SinusoidalPositions: deepc.nn.Layer
local SinusoidalPositions = nn.class "nn.SinusoidalPositions"
nn.SinusoidalPositions = SinusoidalPositions

---@param size integer
---@param options? { base?: number, dropout?: number, batch_first?: boolean }
function SinusoidalPositions:init(size, options)
  local op = "nn.SinusoidalPositions"
  check_pairs(op, size)
  core.options(op, options, "base", "dropout", "batch_first")
  options = options or {}
  core.check_flags(op, options, "batch_first")
  core.check_probability(op, "dropout", options.dropout)
  self.size, self.base, self.batch_first = size, options.base or 10000, options.batch_first or false
  check_base(op, self.base)
  self.dropout = options.dropout or 0
end

function SinusoidalPositions:describe()
  return ("nn.SinusoidalPositions %d"):format(self.size)
end

function SinusoidalPositions:forward(x)
  local op = "nn.SinusoidalPositions"
  core.check_tensor(op, x)
  local shape = x.shape
  local batched = #shape == 3
  if #shape ~= 2 and not batched or shape[#shape] ~= self.size then
    core.fail("DIMS", op, ("x is %s[%s]; [%s, %d] is needed"):format(x.dtype, core.sizes(shape),
      self.batch_first and "batch, time" or "time, batch", self.size), nil, "x", x)
  end
  local waves = nn.sinusoidal_positions(batched and self.batch_first and shape[2] or shape[1], self.size,
    { base = self.base })
  if batched and not self.batch_first then
    waves = waves:reshape(shape[1], 1, self.size)
  end
  local y = x + waves:cast(x.dtype)
  if self.training and self.dropout > 0 then
    y = core.drop(y, self.dropout)
  end
  return y
end
