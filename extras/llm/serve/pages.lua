-- Keys and values in pages (Kwon et al., 2023): a state for each layer holds pages of some tokens each, and a text has
-- a list of the pages that its tokens are in, wherever these are.

local dc = require "deepc"
local nn = require "deepc.nn"
require "deepc.models.decoder"
local _, core = ...

-- ---- a layer ----

-- What core.attend asks for keys and values: those of some texts in the pages of a layer. keys [pages * heads *
-- features * size], values [pages * size, heads, features], of integers scales f32[2, heads, pages * size].
local Layer = {}
Layer.__index = Layer

-- Writes keys and values [batch, time, heads, features] of new tokens to their rows; those of all pages of each text,
-- as blocks (models/cache.lua).
function Layer:add(k, v)
  local at, size, rows, pages = self.at, self.size, self.texts.rows, self.texts.pages
  local b, _, heads, d = table.unpack(k.shape)
  local one, keys, values = {}, k, v
  if at.scales then
    local key_scale, value_scale
    keys, key_scale = core.kept_rows(k)
    values, value_scale = core.kept_rows(v)
    local scales = dc.stack({ key_scale, value_scale }, 1):permute(1, 4, 2, 3):reshape(2, heads, -1)
    at.scales:set(at.scales:put(rows:reshape(-1), scales, 3))
    one = at.scales:reshape(2, heads, -1, size):take(pages, 3):permute(1, 3, 2, 4, 5):reshape(2, b, heads, -1)
  end
  keys, values = keys:cast(at.keys.dtype), values:cast(at.keys.dtype)
  at.keys:set(at.keys:put(core.key_elements(rows // size, rows % size, k, size), keys:reshape(-1), 1))
  at.values:set(at.values:put(rows:reshape(-1), values:reshape(-1, heads, d), 1))
  return { before = self.texts.before, key_scale = one[1], value_scale = one[2],
    keys = at.keys:reshape(-1, heads, d, size):take(pages, 1):transpose(2, 3),
    values = at.values:reshape(-1, size, heads, d):take(pages, 1):permute(1, 4, 2, 3, 5) }
end

-- ---- some texts ----

-- A cache of some texts, inside of typed functions: pages i32[batch, n], before i32[batch], how many tokens there are,
-- rows i32[batch, time], where the new ones go.
local Texts = nn.class "serve.Texts"
core.add_cache_class(Texts)

function Texts:init(pool, pages, before, rows)
  self.net, self.pool, self.pages, self.before, self.rows = pool.net, pool, pages, before, rows
end

function Texts:describe()
  return "serve.Texts"
end

-- What core.decoder_call returns for this cache.
function Texts:view(options)
  local layers = {}
  for i, at in ipairs(self.pool.layers) do
    layers[i] = setmetatable({ at = at, size = self.pool.size, texts = self }, Layer)
  end
  return { last = options.last, layers = layers, before = self.before }
end

-- ---- all pages ----

local Pool = {}
Pool.__index = Pool

-- Pages for a model, each of `size` tokens, whose keys and values are kept as a dtype. Page 0 is for what belongs to no
-- text.
function core.new_pages(net, count, size, dtype)
  local heads, d, layers, there = net.config.kv_heads, net.config.head_dim, {}, { device = core.device_of(net) }
  for i = 1, net.config.layers do
    layers[i] = { keys = dc.state(("%s[%d]"):format(dtype, count * heads * d * size), nil, there),
      values = dc.state(("%s[%d, %d, %d]"):format(dtype, count * size, heads, d), nil, there),
      scales = dtype == "i8" and dc.state(("f32[2, %d, %d]"):format(heads, count * size), nil, there) or nil }
  end
  return setmetatable({ net = net, size = size, count = count, layers = layers }, Pool)
end

-- A typed function that forgets what is in a page. Values that are no numbers are not to meet weights of 0 where a text
-- has not filled the page. Nil where they are integers, whose scales no mask lets through.
function Pool:forgetting()
  if self.layers[1].scales then
    return nil
  end
  local _, heads, d = table.unpack(self.layers[1].values.shape)
  local zeros = ("%s[%d, %d, %d]"):format(self.layers[1].values.dtype, self.size, heads, d)
  return dc.fn("forget(page: i32[])", function(page)
    for _, at in ipairs(self.layers) do
      at.values:set(at.values:put(dc.iota(self.size) + page * self.size, dc.zeros(zeros), 1))
    end
  end)
end

-- Some texts as a cache, for the time of a trace.
function Pool:texts(pages, before, rows)
  return Texts(self, pages, before, rows)
end
