-- Caches of keys and values: floats of a model's dtype, other floats, or 8-bit integers with a scale for each token and
-- head.

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

-- Elements of a layer, of so many tokens, are counted by i32.
function core.check_kept(op, net, tokens)
  local c = net.config
  if tokens * c.kv_heads * c.head_dim > MOST then
    core.fail("ARG", op, ("%d tokens with %d heads of %d features are more than %d elements of a layer"):format(tokens,
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

-- ---- a layer ----

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

-- Keys and values of a layer: keys [batch * blocks * heads * features * BLOCK], values [batch, heads, blocks * BLOCK,
-- features], of integers scales f32[2, batch, heads, blocks * BLOCK].
local Blocks = {}
Blocks.__index = Blocks

function Blocks:read(before, total)
  local at = self.at
  local b, heads, rows, d = table.unpack(at.values.shape)
  local blocks, n, one = rows // BLOCK, (total + BLOCK - 1) // BLOCK, {}
  if at.scales then
    one = first_blocks(at.scales:reshape(2 * b, heads, blocks, BLOCK), n):reshape(2, b, heads, n * BLOCK)
  end
  return { before = before, key_scale = one[1], value_scale = one[2],
    keys = first_blocks(at.keys:reshape(b, blocks, heads, d, BLOCK):transpose(2, 3), n),
    values = first_blocks(at.values:reshape(b, heads, blocks, BLOCK, d), n) }
end

-- Floats of forgotten tokens, which may be no numbers, are not to meet weights of 0 in the last block: behind those
-- that are written BLOCK rows are zeros. One token more needs one such row more.
local function with_zeros(place, values)
  local n, sizes = values.shape[3], values.shape
  sizes[3] = n == 1 and 1 or BLOCK
  local zeros = dc.zeros(("%s[%s]"):format(values.dtype, core.sizes(sizes)))
  local behind = n == 1 and place + BLOCK or dc.iota(BLOCK) + (place[{ { 1, 1 } }] + n)
  return dc.concat({ place, behind }, 1), dc.concat({ values, zeros }, 3)
end

function Blocks:add(k, v)
  local at, before, b, n = self.at, self.before, k.shape[1], k.shape[2]
  local place, blocks = dc.iota(n) + before, at.values:size(3) // BLOCK
  local elements = core.key_elements(dc.iota(b):reshape(b, 1) * blocks + place // BLOCK, place % BLOCK, k, BLOCK)
  local keys, values, to = k, v:transpose(2, 3), place
  if at.scales then
    local key_scale, value_scale
    keys, key_scale = core.kept_rows(k)
    values, value_scale = core.kept_rows(values)
    local scales = dc.stack({ key_scale:transpose(2, 3), value_scale }, 1)
    at.scales:set(at.scales:put(place, scales, 4))
  else
    keys, values = keys:cast(at.keys.dtype), values:cast(at.keys.dtype)
    to, values = with_zeros(place, values)
  end
  at.keys:set(at.keys:put(elements, keys:reshape(-1), 1))
  at.values:set(at.values:put(to, values, 3))
  return self:read(before, before + n)
end

-- ---- caches ----

---What a model keeps of the tokens that it has read: for each layer keys and values, in states that lie by blocks of 32
---tokens and have all the room, and one that grows and counts tokens. `net:cache` makes one.
---@class deepc.models.Cache: deepc.nn.Layer
local Cache = nn.class "models.Cache"

-- net: whose it is; dtype: of what is kept; ahead: how many tokens a step may add; padded: the place of the first
-- token of each text is a state, since texts begin with padding.
function Cache:init(net, room, batch, dtype, ahead, padded)
  local c = net.config
  local heads, d = c.kv_heads, c.head_dim
  local behind = dtype == "i8" and 0 or BLOCK
  local blocks = (room + ahead + behind - 1) // BLOCK + 1
  self.room, self.batch, self.kept, self.layers = room, batch, dtype, {}
  self.count = dc.state(("i8[0 <= t <= %d]"):format(room))
  for i = 1, c.layers do
    local at = { keys = dc.state(("%s[%d]"):format(dtype, batch * blocks * heads * d * BLOCK)),
      values = dc.state(("%s[%d, %d, %d, %d]"):format(dtype, batch, heads, blocks * BLOCK, d)) }
    if dtype == "i8" then
      at.scales = dc.state(("f32[2, %d, %d, %d]"):format(batch, heads, blocks * BLOCK))
      core.keeps_dtype[at.scales] = true
    end
    self.layers[i] = at
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
  return self.count:size(1)
end

-- A typed function that puts zeros behind so many tokens, by cache: see with_zeros.
local cleared = setmetatable({}, { __mode = "k" })

local function clearing(cache)
  local b, heads, _, d = table.unpack(cache.layers[1].values.shape)
  local rows, layers = ("%s[%d, %d, %d, %d]"):format(cache.kept, b, heads, BLOCK, d), cache.layers
  cleared[cache] = cleared[cache] or dc.fn("forget(n: i32[])", function(n)
    for _, at in ipairs(layers) do
      at.values:set(at.values:put(dc.iota(BLOCK) + n, dc.zeros(rows), 3))
    end
  end)
  return cleared[cache]
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
  if n < self:length() then
    self.count:set(dc.zeros(("i8[%d]"):format(n)))
    if not self.layers[1].scales then
      clearing(self)(n)
    end
  end
  return self
end

core.method_entries(Cache, "length", "keep")

-- Whether it fits a model.
function core.fits_cache(cache, net)
  local first = getmetatable(cache) == Cache and #cache.layers == net.config.layers and cache.layers[1]
  return first and first.values:size(4) == net.config.head_dim
end

-- How many tokens there are, where n more are added, and what core.attend takes for each layer.
function core.open_cache(cache, n)
  local before = cache:length()
  local layers = {}
  for i, at in ipairs(cache.layers) do
    layers[i] = setmetatable({ at = at, before = before }, Blocks)
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
