-- Keys and values in pages (Kwon et al., 2023): a state for each layer holds pages of some tokens each, and a text has
-- a list of the pages that its tokens are in, wherever these are.

local dc = require "deepc"
local nn = require "deepc.nn"
require "deepc.models.decoder"
local _, core = ...

-- ---- a layer ----

-- What core.attend asks for keys and values: those of some texts in the pages of a layer.
local Layer = {}
Layer.__index = Layer

-- Writes keys and values [batch, time, heads, features] of new tokens to their rows; those of all pages of each text.
function Layer:add(k, v)
  local pool, texts = self.pool, self.texts
  local _, _, heads, features = table.unpack(pool.state.shape)
  local b, size, state = k.shape[1], pool.size, pool.state
  state:set(state:put(texts.rows:reshape(-1), dc.stack({ k, v }, 3):reshape(-1, 2, heads, features), 1))
  local all = state:reshape(-1, size, 2, heads, features):take(texts.pages, 1):reshape(b, -1, 2, heads, features)
  return all[{ {}, {}, 1 }]:permute(1, 3, 2, 4), all[{ {}, {}, 2 }]:permute(1, 3, 2, 4), texts.before
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
  for i, state in ipairs(self.pool.layers) do
    layers[i] = setmetatable({ pool = { state = state, size = self.pool.size }, texts = self }, Layer)
  end
  return { last = options.last, layers = layers, before = self.before }
end

-- ---- all pages ----

local Pool = {}
Pool.__index = Pool

-- Pages for a model, each of `size` tokens. Page 0 is for what belongs to no text.
function core.new_pages(net, count, size)
  local c, layers = net.config, {}
  for i = 1, c.layers do
    layers[i] = dc.state(("%s[%d, 2, %d, %d]"):format(net.dtype, count * size, c.kv_heads, c.head_dim))
  end
  return setmetatable({ net = net, size = size, count = count, layers = layers }, Pool)
end

-- Some texts as a cache, for the time of a trace.
function Pool:texts(pages, before, rows)
  return Texts(self, pages, before, rows)
end
