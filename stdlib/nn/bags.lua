-- Rows of a table put together by bags: nn.EmbeddingBag.

local dc = require "deepc"
local nn = require "deepc.nn.class"
local _, core = ...

local MODES = { sum = true, mean = true, max = true }

---The sum, mean or largest of the rows of a table, for each bag of integers: [bags, size] of integers[bags, n], or of
---integers[n] with offsets, integers[bags], where each bag begins. The table starts normal, with a standard
---deviation of 1. torch.nn.EmbeddingBag.
---
---    nn.EmbeddingBag(100, 8)(dc.tensor({ { 1, 2 }, { 3, 3 } }, "i32"))
---    local bag = nn.EmbeddingBag(100, 8, { mode = "sum" })
---    bag(dc.tensor({ 1, 2, 3 }, "i32"), { offsets = dc.tensor({ 0, 2 }, "i32") })
---
---Options: mode ("mean", "sum" or "max"), padding_idx, a row that does not count. Options of a call: offsets, which
---begin with 0 and grow; per_sample_weights, a factor for each integer, of mode "sum". An empty bag gives zeros.
---
---Errors: DC0101 for sizes and options; when it is called, DC0701 for an integer outside, DC0301 where sizes differ.
---@class deepc.nn.EmbeddingBag: deepc.nn.Layer
local EmbeddingBag = nn.class "nn.EmbeddingBag"
nn.EmbeddingBag = EmbeddingBag

---@param count integer how many rows there are; integers count from 0
---@param size integer of a row
---@param options? { mode?: "mean"|"sum"|"max", padding_idx?: integer }
function EmbeddingBag:init(count, size, options)
  local op = "nn.EmbeddingBag"
  core.check_size(op, "the number of rows", count)
  core.check_size(op, "the size of a row", size)
  core.options(op, options, "mode", "padding_idx")
  self.count, self.size, self.mode = count, size, options and options.mode or "mean"
  if not MODES[self.mode] then
    core.fail("ARG", op, ('mode is "mean", "sum" or "max", not %s'):format(core.shown(self.mode)))
  end
  self.padding_idx = core.padding_index(op, options and options.padding_idx, count)
  self.weight = core.embedding_weight(count, size, self.padding_idx)
end

function EmbeddingBag:describe()
  return ("nn.EmbeddingBag %d -> %d, %s"):format(self.count, self.size, self.mode)
end

local function type_of(t)
  return ("%s[%s]"):format(t.dtype, core.sizes(t.shape))
end

-- The number of the bag of each of n integers; -1 before the first one.
local function bag_numbers(op, n, offsets)
  core.check_tensor(op, offsets, "offsets")
  if #offsets.shape ~= 1 or not offsets.dtype:match "^[iu]" then
    core.fail("DIMS", op, ("offsets are %s; integers[bags] are needed"):format(type_of(offsets)), nil, "offsets",
      offsets)
  end
  return dc.iota(n):reshape(-1, 1):ge(offsets:cast("i32"):reshape(1, -1)):sum(2) - 1
end

-- Rows [..., n, size] put together along n where they count; kept broadcasts to [..., n].
local function combine(mode, rows, kept)
  if mode == "max" then
    local y = kept and dc.where(kept:reshape(core.losses.with_axis(kept.shape, 1)), rows, -math.huge) or rows
    y = y:max(-2)
    return kept and dc.where(kept:any(-1):reshape(core.losses.with_axis(y:sum(-1).shape, 1)), y, 0) or y
  end
  local y = core.losses.only(kept, rows):sum(-2)
  if mode == "sum" then
    return y
  elseif not kept then
    return y / rows:size(-2)
  end
  return y / kept:cast(rows.dtype):sum { axis = -1, keep = true }:maximum(1)
end

-- Bags that begin at offsets. What does not count is a bag of its own behind them.
local function by_offsets(self, rows, positions, kept, offsets)
  local numbers, bags = bag_numbers("nn.EmbeddingBag", #positions, offsets), #offsets
  numbers = kept and dc.where(kept, numbers, bags) or numbers
  local y = dc["segment_" .. self.mode](rows, numbers, kept and bags + 1 or bags, { fill = 0 })
  return kept and y[{ { 1, bags } }] or y
end

function EmbeddingBag:forward(positions, options)
  local op = "nn.EmbeddingBag"
  core.check_tensor(op, positions, "positions")
  core.options(op, options, "offsets", "per_sample_weights")
  local offsets, factors = options and options.offsets, options and options.per_sample_weights
  local shape = positions.shape
  if not positions.dtype:match "^[iu]" or #shape ~= (offsets and 1 or 2) then
    core.fail("DIMS", op, ("positions are %s; integers[%s] are needed"):format(type_of(positions),
      offsets and "n" or "bags, n"), not offsets and "[n] with offsets of the bags" or nil, "positions", positions)
  elseif factors ~= nil and self.mode ~= "sum" then
    core.fail("ARG", op, ('per_sample_weights are for mode "sum", not "%s"'):format(self.mode))
  elseif factors ~= nil and (not core.kind(factors) or core.sizes(factors.shape) ~= core.sizes(shape)) then
    core.fail("DIMS", op, ("per_sample_weights are one number for each of %s"):format(type_of(positions)), nil,
      "weights", factors)
  end
  local rows = dc.take(self.weight, positions, 1)
  local narrow, wide, weights = core.in_f32(rows, factors)
  local kept = self.padding_idx and positions:ne(self.padding_idx) or nil
  if weights then
    wide = core.losses.only(kept, wide) * weights:reshape(core.losses.with_axis(shape, 1))
  end
  local y = narrow(offsets and by_offsets(self, wide, positions, kept, offsets) or combine(self.mode, wide, kept))
  return y
end
