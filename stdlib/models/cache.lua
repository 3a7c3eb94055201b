-- Caches of keys and values: as numbers of a model, of other floats, or as 8-bit integers with a scale for each token
-- and head.

local dc = require "deepc"
local nn = require "deepc.nn"
require "deepc.models.base"
local _, core = ...

-- ---- what numbers are kept as ----

local KEPT = { i8 = true, f16 = true, bf16 = true, f32 = true }

-- What keys and values of a model are kept as, by an option of this name: the model's own dtype without it.
function core.read_kept_dtype(op, name, dtype, net)
  if dtype == nil then
    return net.dtype
  elseif type(dtype) ~= "string" or not KEPT[dtype] and dtype ~= net.dtype then
    core.fail("ARG", op, ('%s is "i8", "f16", "bf16" or "f32", not %s'):format(name, core.shown(dtype)),
      "without it keys and values have the model's dtype")
  end
  return dtype
end

local MOST = (1 << 31) - 1

-- Numbers of elements of so many tokens, of one layer, are i32 where they are kept as integers.
function core.check_kept(op, dtype, net, tokens)
  local c = net.config
  if dtype == "i8" and tokens * c.kv_heads * c.head_dim > MOST then
    core.fail("ARG", op, ("%d tokens with %d heads of %d features are more than %d integers of a layer"):format(tokens,
      c.kv_heads, c.head_dim, MOST))
  end
end

local LARGEST = 127

-- Rows of features as integers, and what one of each row is, f32[...]: at most half of that is lost of any number. A
-- row of zeros has the scale 0; one with an infinity or NaN has no finite scale, so that what is made of it is NaN.
function core.kept_rows(x)
  x = x:cast "f32"
  local scale = x:abs():max { axis = -1, keep = true } / LARGEST
  local rows = (x / dc.where(scale:gt(0), scale, 1)):round():clamp(-LARGEST, LARGEST):cast "i8"
  local sizes = scale.shape
  sizes[#sizes] = nil
  return rows, scale:reshape(sizes)
end

-- ---- a layer of integers ----

local BLOCK = 32 -- tokens whose features lie side by side

-- What attention reads of keys and values: those of blocks of `size` tokens each. Behind the last token that is there
-- they are of no token, or of one that is forgotten.
--
-- keys          [batch, heads, blocks, features, size]
-- values        [batch, heads, blocks, size, features]
-- key_scale, value_scale   [batch, heads, blocks * size]: what one of each row is
-- before        how many tokens there were: a number, or i32[batch] where each text has its own

-- Numbers of elements of keys that lie by blocks, in the order of k [batch, time, heads, features]: block i32[...,
-- time], in which block of all a token is, place, where in it.
function core.key_elements(block, place, k, size)
  local heads, d = k.shape[3], k.shape[4]
  local feature = dc.iota(heads * d):reshape(heads, d)
  local from = (block * (heads * d * size) + place):reshape(k.shape[1], -1, 1, 1)
  return (from + feature * size):reshape(-1)
end

-- The first n blocks along the third axis of what has as many as there is room for. A call with more does not run,
-- which its trace cannot know.
local function first_blocks(x, n)
  local room = x:size(3)
  local most = select(2, core.size_range(n))
  return (most > room and x:pad { [3] = { 0, most - room } } or x)[{ {}, {}, { 1, n } }]
end

-- Keys and values of a layer: keys i8[batch * blocks * heads * features * BLOCK], values i8[batch, heads,
-- blocks * BLOCK, features], scales f32[2, batch, heads, blocks * BLOCK].
local Integers = {}
Integers.__index = Integers

function Integers:read(before, total)
  local at, scales = self.at, self.at.scales
  local _, b, heads, rows = table.unpack(scales.shape)
  local blocks, n, d = rows // BLOCK, (total + BLOCK - 1) // BLOCK, at.values.shape[4]
  local one = first_blocks(scales:reshape(2 * b, heads, blocks, BLOCK), n):reshape(2, b, heads, n * BLOCK)
  return { before = before, key_scale = one[1], value_scale = one[2],
    keys = first_blocks(at.keys:reshape(b, blocks, heads, d, BLOCK):transpose(2, 3), n),
    values = first_blocks(at.values:reshape(b, heads, blocks, BLOCK, d), n) }
end

function Integers:add(k, v)
  local at, before, b, n = self.at, self.before, k.shape[1], k.shape[2]
  local place, blocks = dc.iota(n) + before, at.scales:size(4) // BLOCK
  local keys, key_scale = core.kept_rows(k)
  local values, value_scale = core.kept_rows(v)
  local elements = core.key_elements(dc.iota(b):reshape(b, 1) * blocks + place // BLOCK, place % BLOCK, k, BLOCK)
  at.keys:set(at.keys:put(elements, keys:reshape(-1), 1))
  at.values:set(at.values:put(place, values:transpose(2, 3), 3))
  at.scales:set(at.scales:put(place, dc.stack({ key_scale, value_scale }, 1):transpose(3, 4), 4))
  return self:read(before, before + n)
end

-- Adds keys and values [batch, time, heads, features] to those of a layer: all of both then, [batch, heads, time,
-- features], and how many were there before: a number, or i32[batch] where each text has its own; or, of integers, a
-- table as above. What a cache has for a layer is a state that grows, or an object whose method `add` does that.
function core.remember(past, k, v)
  if not core.kind(past) then
    return past:add(k, v)
  end
  local before = past:size(1)
  local both = dc.stack({ k, v }, 1):permute(3, 1, 2, 4, 5)
  past:set(dc.concat({ past, both.dtype == past.dtype and both or both:cast(past.dtype) }, 1))
  return past[{ {}, 1 }]:permute(2, 3, 1, 4), past[{ {}, 2 }]:permute(2, 3, 1, 4), before
end

-- ---- caches ----

---What a model keeps of the tokens that it has read: a state for each layer that grows with them, `[time, 2, batch,
---heads, features]`, keys and values side by side. Of integers there are states of fixed size, in blocks of tokens, and
---one that counts these. `net:cache` makes one.
---@class deepc.models.Cache: deepc.nn.Layer
local Cache = nn.class "models.Cache"

-- net: whose it is; dtype: of what is kept; ahead: how many tokens a step may add; padded: the place of the first
-- token of each text is a state, since texts begin with padding.
function Cache:init(net, room, batch, dtype, ahead, padded)
  local c = net.config
  local heads, d = c.kv_heads, c.head_dim
  local blocks = (room + ahead - 1) // BLOCK + 1
  self.room, self.batch, self.kept, self.layers = room, batch, dtype, {}
  self.count = dtype == "i8" and dc.state(("i8[0 <= t <= %d]"):format(room)) or nil
  for i = 1, c.layers do
    if self.count then
      local scales = dc.state(("f32[2, %d, %d, %d]"):format(batch, heads, blocks * BLOCK))
      core.keeps_dtype[scales] = true
      self.layers[i] = { keys = dc.state(("i8[%d]"):format(batch * blocks * heads * d * BLOCK)),
        values = dc.state(("i8[%d, %d, %d, %d]"):format(batch, heads, blocks * BLOCK, d)), scales = scales }
    else
      self.layers[i] = dc.state(("%s[0 <= t <= %d, 2, %d, %d, %d]"):format(dtype, room, batch, heads, d))
    end
  end
  self.start = padded and dc.state(("i32[%d]"):format(batch)) or nil
end

function Cache:describe()
  return ("models.Cache %d tokens, batch %d, %s"):format(self.room, self.batch, self.kept)
end

---How many tokens it holds.
---
---    cache:length()
---@return integer
function Cache:length()
  return (self.count or self.layers[1]):size(1)
end

---Forgets tokens from the end, down to n of them: all where n is 0.
---
---    cache:keep(0)
---
---Errors: DC0101 where there are fewer.
---@param n integer
---@return deepc.models.Cache # itself
function Cache:keep(n)
  core.refuse_inside(self, "keep()")
  if math.type(n) ~= "integer" or n < 0 or n > self:length() then
    core.fail("ARG", "keep", ("%s tokens of %d"):format(core.shown(n), self:length()))
  end
  if self.start and n == 0 then
    self.start:set(dc.zeros(self.start))
  end
  for _, state in ipairs(self.count and { self.count } or self.layers) do
    local sizes = state.shape
    sizes[1] = 0
    state:set(n > 0 and state[{ { 1, n } }] or dc.zeros(("%s[%s]"):format(state.dtype, table.concat(sizes, ", "))))
  end
  return self
end

core.method_entries(Cache, "length", "keep")

-- Whether it fits a model.
function core.fits_cache(cache, net)
  local first = getmetatable(cache) == Cache and #cache.layers == net.config.layers and cache.layers[1]
  return first and (cache.count and first.values:size(4) or first:size(5)) == net.config.head_dim
end

-- How many tokens there are, where n more are added, and what core.remember takes for each layer.
function core.open_cache(cache, n)
  local before = cache:length()
  if not cache.count then
    return before, cache.layers
  end
  local layers = {}
  for i, at in ipairs(cache.layers) do
    layers[i] = setmetatable({ at = at, before = before }, Integers)
  end
  cache.count:set(dc.concat({ cache.count, dc.zeros(dc.iota(n)):cast "i8" }, 1))
  return before, layers
end

-- Classes of caches.
local caches = { [Cache] = true }

function core.is_cache(v)
  return type(v) == "table" and caches[getmetatable(v)] == true
end

function core.add_cache_class(class)
  caches[class] = true
end

core.Cache = Cache
