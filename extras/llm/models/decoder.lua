-- What models that write texts have in common: attention to what was before, steps.

local dc = require "deepc"
require "deepc.models.cache"
local _, core = ...

-- What a score becomes that does not count.
local NEVER = -1e30

-- ---- attention ----

-- Scores of some queries with keys: scaled, bounded, in f32 where q has 16 bits.
local function finish(score, o)
  score = score * o.scale
  return o.cap and (score / o.cap):tanh() * o.cap or score
end

-- What is computed in for queries of a dtype.
local WIDE = { f16 = "f32", bf16 = "f32", f32 = "f32", f64 = "f64" }

local function cast(x, dtype)
  return x.dtype == dtype and x or x:cast(dtype)
end

-- Which keys count for one query of each text, bool[..., times]; what is behind it belongs to no token.
local function counting_for_one(total, before, o, b)
  local key = dc.iota(total)
  if core.kind(before) == "tensor" then
    before = before:reshape(b, 1, 1, 1)
  end
  local counts = key:le(before)
  if o.window then
    counts = counts & key:gt(before - o.window)
  end
  if o.start then
    counts = counts & key:ge(o.start:reshape(b, 1, 1, 1))
  end
  return counts
end

-- What one of each row is, [batch, heads, times], where it is integers: x times that, of other dims.
local function scaled(x, scale, ...)
  return scale and x * cast(scale, x.dtype):reshape(...) or x
end

-- One query for each text, over blocks of keys and values: sums of products element by element, which read states
-- where they stand. Those of a block have few terms, and are of all queries that share its keys: what one of each row
-- is comes behind sums over keys, and before those over values.
local function attend_one(q, p, o)
  local b, heads, d = q.shape[1], q.shape[3], q.shape[4]
  local _, kv, blocks, _, size = table.unpack(p.keys.shape)
  local groups, wide, total = heads // kv, WIDE[q.dtype], blocks * size
  local score = (cast(q, wide):reshape(b, kv, groups, 1, d, 1)
    * cast(p.keys, wide):reshape(b, kv, 1, blocks, d, size)):sum(5):reshape(b, kv, groups, total)
  local counts = counting_for_one(total, p.before, o, b)
  score = dc.where(counts, finish(scaled(score, p.key_scale, b, kv, 1, total), o), NEVER)
  local each = (score - score:max { axis = -1, keep = true }):exp() -- divided by their sum at the end
  local weights = p.value_scale and dc.where(counts, scaled(each, p.value_scale, b, kv, 1, total), 0) or each
  weights = weights:reshape(b, kv, groups, blocks, size):permute(1, 2, 4, 3, 5):reshape(b, kv, blocks, groups, size, 1)
  local y = (weights * cast(p.values, wide):reshape(b, kv, blocks, 1, size, d)):sum(5):sum(3)
  return cast(y / each:sum { axis = -1, keep = true }, q.dtype):reshape(b, 1, heads * d)
end

-- Which keys count for which queries, bool[..., time, 1, times]: for all heads that share keys.
local function counting(n, total, before, o)
  local key, query = dc.iota(total):reshape(1, 1, -1), dc.iota(n):reshape(-1, 1, 1)
  if core.kind(before) == "tensor" then
    before = before:reshape(-1, 1, 1, 1, 1)
  end
  query = before and query + before or query
  local counts
  if o.causal ~= false then
    counts = key:le(query)
  end
  if o.window then
    local near = (query - key):lt(o.window)
    counts = counts and counts & near or near
  end
  if o.mask then
    local shown = o.mask:reshape(o.mask.shape[1], 1, 1, 1, o.mask.shape[2])
    counts = counts and counts & shown or shown
  end
  if o.start then
    local begun = key:ge(o.start:reshape(-1, 1, 1, 1, 1))
    counts = counts and counts & begun or begun
  end
  return counts
end

-- Keys and values by blocks as rows, [batch, heads, time, features].
local function rows_of_keys(p)
  local b, kv, blocks, d, size = table.unpack(p.keys.shape)
  return p.keys:transpose(4, 5):reshape(b, kv, blocks * size, d)
end

local function rows_of_values(p)
  local b, kv, blocks, size, d = table.unpack(p.values.shape)
  return p.values:reshape(b, kv, blocks * size, d)
end

-- q [batch, time, heads, features], k and v [batch, time, kv heads, features]; the result [batch, time, heads *
-- features]. o: scale; cap, of scores; window, how many keys back count; past, what a cache has for the layer: an
-- object whose method `add` adds keys and values and returns blocks of all of them (models/cache.lua); mask,
-- bool[batch, time]; causal, true unless it is false.
-- start: i32[batch], the first key of each text that counts.
function core.attend(q, k, v, o)
  local b, n, heads, d = table.unpack(q.shape)
  local past = o.past and o.past:add(k, v)
  if past and n == 1 then
    return attend_one(q, past, o)
  elseif past then
    k, v = rows_of_keys(past), rows_of_values(past)
  else
    k, v, past = k:permute(1, 3, 2, 4), v:permute(1, 3, 2, 4), {}
  end
  local kv, total = k.shape[2], k.shape[3]
  local groups, wide = heads // kv, WIDE[q.dtype]
  local inner = k.dtype == q.dtype and q.dtype or wide -- of products
  local rows = q:reshape(b, n, kv, groups, d):permute(1, 3, 2, 4, 5):reshape(b, kv, n * groups, d)
  local score = cast(cast(rows, inner):matmul(cast(k, inner):transpose()), wide)
  score = scaled(score, past.key_scale, b, kv, 1, total)
  score = finish(score, o):reshape(b, kv, n, groups, total)
  local counts = counting(n, total, past.before, o)
  score = counts and dc.where(counts, score, NEVER) or score
  local weights = score:softmax(-1)
  if past.value_scale then
    weights = dc.where(counts, scaled(weights, past.value_scale, b, kv, 1, 1, total), 0)
  end
  local y = cast(cast(weights:reshape(b, kv, n * groups, total), inner):matmul(cast(v, inner)), q.dtype)
  return y:reshape(b, kv, n, groups, d):permute(1, 3, 2, 4, 5):reshape(b, n, heads * d)
end

-- ---- steps ----

local CHUNK = 128 -- tokens that are read at once

---A model that writes texts: called with ids it gives logits for the token behind each of them.
---
---    local logits = net(ids)                              -- [batch, time, vocab_size]
---
---ids are integers [batch, time]. Options of a call: mask, [batch, time], bools or numbers, false or 0 where a token is
---padding, at the end of texts; cache, of which the model reads what was before, and to which it adds; last = true, for
---the logits of the last token alone, [batch, vocab_size].
---@class deepc.models.Decoder: deepc.nn.Layer
local Decoder = {}

---Room for the keys and values of so many tokens. One cache is for one text, or for a batch of texts of one length.
---
---    local cache = net:cache(2048)
---    local small = net:cache(2048, { dtype = "i8" })
---
---Options: batch (1); padded (false; true: texts of a batch may have several lengths, those that are shorter with
---padding in front, which net:step is told); dtype, what keys and values are kept as ("i8", "f16", "bf16", "f32"; the
---model's own): "i8" are integers with a scale for each token and head, the largest number of its features / 127, by
---which they are rounded.
---
---Errors: DC0101 for sizes and dtypes, DC1001 where memory is out.
---@param room integer tokens
---@param options? { batch?: integer, padded?: boolean, dtype?: string }
---@return deepc.models.Cache
function Decoder:cache(room, options)
  local op = "cache"
  core.check_layer(op, self)
  core.options(op, options, "batch", "padded", "dtype")
  core.check_flags(op, options or {}, "padded")
  local batch, padded = options and options.batch or 1, options and options.padded
  core.check_size(op, "the number of tokens", room)
  core.check_size(op, "batch", batch)
  local dtype = core.read_kept_dtype(op, "dtype", options and options.dtype, self)
  core.refuse_inside(self, "cache()")
  local most = self.config.positions
  if self.config.learned_positions and room > most then
    core.fail("ARG", op, ("%d tokens; the model has %d positions"):format(room, most))
  elseif padded and self.decode then
    core.fail("ARG", op, ("%s takes no padding in front"):format(self:describe()))
  end
  core.check_kept(op, self, batch * (room + 2 * CHUNK))
  local cache = core.Cache(self, room, batch, dtype, math.min(CHUNK, room), padded)
  return (cache:to(core.device_of(self)))
end

-- Typed functions of a cache, by it: for several tokens and for one.
local compiled = setmetatable({}, { __mode = "k" })

-- Logits of the last token; of a model that reads something else besides, the cache has that.
local function last_logits(net, ids, cache)
  local options = { cache = cache, last = true }
  if net.decode then
    return (net:decode(ids, options))
  end
  return (net(ids, options))
end

-- So long, in seconds, it may take to know whether code is in the cache on disk.
local LOOKING = 0.5

local function make_function(net, cache, kind)
  local function body(ids)
    local logits = last_logits(net, ids, cache)
    return logits
  end
  local n = kind == "write" and "1" or ("1 <= n <= %d"):format(math.min(CHUNK, cache.room))
  return dc.fn(("%s(ids: i32[%d, %s]) -> %s[%d, %d]"):format(kind, cache.batch, n, net.dtype, cache.batch,
    net.config.vocab_size), body)
end

-- The function for several tokens, "read", or for one, "write". The other one is traced when it is needed, and now
-- where this one has to be compiled, so that both are compiled side by side.
local function function_of(net, cache, kind)
  local made = compiled[cache]
  if not made or made.net ~= net then
    made = { net = net }
    compiled[cache] = made
  end
  if not made[kind] then
    local other = kind == "read" and "write" or "read"
    made[kind] = make_function(net, cache, kind)
    if not made[other] and not core.found(made[kind], LOOKING) then
      made[other] = make_function(net, cache, other)
    end
  end
  return made[kind]
end

local function check_room(op, cache, n)
  if cache:length() + n > cache.room then
    core.fail("ARG", op, ("the cache has room for %d tokens: %d are there, %d more are given"):format(cache.room,
      cache:length(), n), "net:cache(n) makes a larger one, cache:keep(n) forgets")
  end
end

-- Where the texts of a cache begin.
local function set_padding(op, cache, padding, n)
  if type(padding) ~= "table" or core.kind(padding) or #padding ~= cache.batch then
    core.fail("ARG", op, ("padding is a list of %d numbers, not %s"):format(cache.batch, core.describe(padding)))
  elseif not cache.start or cache:length() > 0 then
    core.fail("ARG", op, cache.start and "padding is for the first tokens of a cache"
      or "the cache takes no padding", "net:cache(n, { batch = 2, padded = true })")
  end
  for i, count in ipairs(padding) do
    if math.type(count) ~= "integer" or count < 0 or count >= n then
      core.fail("ARG", op, ("padding of text %d is %s; a whole number from 0 to %d is needed"):format(i,
        core.shown(count), n - 1))
    end
  end
  cache.start:set(dc.tensor(padding, "i32"))
end

-- Tokens as i32[batch, time]; lists, of one text or of several.
local function read_ids(op, ids, batch)
  if type(ids) == "table" and not core.kind(ids) then
    ids = core.anywhere(dc.tensor(type(ids[1]) == "table" and ids or { ids }, "i32"))
  end
  core.check_ids(op, ids)
  if ids.shape[1] ~= batch then
    core.fail("DIMS", op, ("ids are %s[%s], the cache is for a batch of %d"):format(ids.dtype, core.sizes(ids.shape),
      batch), nil, "ids", ids)
  end
  return ids.dtype == "i32" and ids or ids:cast "i32"
end

core.read_token_ids = read_ids

---Reads tokens behind those that a cache has: a prompt of any length, or one token. One compilation serves all prompts,
---and one all single tokens, whose time is that of the tokens before them.
---
---    local logits = net:step({ 3, 1, 4 }, cache)
---    logits = net:step({ logits[1]:argmax(1):item() }, cache)
---
---Options: padding, a list of how many tokens in front of each text are padding, for a cache that is padded and empty.
---
---Errors: DC0101 where the cache has too little room, and for padding, DC0301 for another batch.
---@param ids deepc.Tensor|integer[]|integer[][] integers [batch, time]
---@param cache deepc.models.Cache
---@param options? { padding?: integer[] }
---@return deepc.Tensor # logits of the last token, [batch, vocab_size]
function Decoder:step(ids, cache, options)
  local op = "step"
  core.check_layer(op, self)
  core.options(op, options, "padding")
  if not core.is_cache(cache) then
    core.fail("ARG", op, "a cache is needed, not " .. core.describe(cache), "net:cache(2048) makes one")
  end
  ids = read_ids(op, ids, cache.batch)
  if core.tracing() then
    local logits = last_logits(self, ids, cache)
    return logits
  end
  local n, logits = ids.shape[2], nil
  check_room(op, cache, n)
  if options and options.padding ~= nil then
    set_padding(op, cache, options.padding, n)
  end
  for first = 1, n, CHUNK do
    local part = ids[{ {}, { first, math.min(first + CHUNK - 1, n) } }]
    logits = function_of(self, cache, part.shape[2] == 1 and "write" or "read")(part)
  end
  return logits
end

core.entries(Decoder)

-- Places of n tokens for each text: integers [n], or [batch, n] where texts differ. o as of core.decoder_call.
function core.token_positions(n, o)
  local positions, before = dc.iota(n), o.before
  if core.kind(before) == "tensor" then
    return positions:reshape(1, -1) + before:reshape(-1, 1)
  end
  return before and positions + before or positions
end

-- Options of a call, checked; ids and a cache fit. A cache with a method `view` says itself what layers read of it.
function core.decoder_call(op, net, ids, options)
  core.check_ids(op, ids)
  core.options(op, options, "mask", "cache", "last")
  options = options or {}
  core.check_flags(op, options, "last")
  local cache = options.cache
  if cache ~= nil and not core.is_cache(cache) then
    core.fail("ARG", op, "cache is no cache, but " .. core.describe(cache), "net:cache(2048) makes one")
  elseif cache and cache.view and cache.net == net then
    return cache:view(options)
  elseif cache and not core.fits_cache(cache, net) then
    core.fail("ARG", op, "the cache is of another model")
  elseif cache and options.mask ~= nil then
    core.fail("ARG", op, "a mask and a cache do not go together", "texts of a batch have one length there")
  end
  local mask = options.mask ~= nil and core.check_token_mask(op, options.mask, ids) or nil
  local o = { mask = mask, last = options.last, layers = {}, start = cache and cache.start }
  if cache then
    o.before, o.layers = core.open_cache(cache, ids.shape[2])
  end
  return o
end

-- Gives a class the methods of Decoder.
function core.make_decoder(class)
  for name, method in pairs(Decoder) do
    class[name] = method
  end
  return class
end

core.Decoder = Decoder
