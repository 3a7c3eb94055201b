-- The next token out of logits: a typed function, so that logits stay where they were computed.

local dc = require "deepc"
require "deepc.models.base"
local _, core = ...

-- Logits of tokens that have been there, made less likely (Keskar et al., 2019).
local function penalised(logits, seen, penalty)
  return dc.where(seen, dc.where(logits:gt(0), logits / penalty, logits * penalty), logits)
end

core.penalised = penalised

-- The first place where sums of probabilities along a row are more than u of their sum.
local function draw(p, u)
  local sums = p:cumsum(2)
  local last = sums[{ {}, -1 }]
  return sums:le((u * last):reshape(-1, 1)):sum(2):minimum(p.shape[2] - 1)
end

core.draw_place = draw

-- Probabilities of logits f32[batch, n], 0 where they do not count: where likelier ones of a descending row have top_p
-- together, or one is less likely than min_p times the likeliest. top_p, min_p: f32[], f32[batch, 1] or nil.
local function likely(logits, top_p, min_p)
  local p = logits:softmax(2)
  if top_p then
    p = dc.where((p:cumsum(2) - p):lt(top_p), p, 0)
  end
  if min_p then
    p = dc.where(p:ge(p:max { axis = 2, keep = true } * min_p), p, 0)
  end
  return p
end

core.likely = likely

-- What of `logits`, f32[batch, n], counts, by `o`: top_k, a number that the graph is made for; top_p and min_p, f32[].
-- Probabilities, and the tokens that they belong to, nil where all are there in order.
local function kept(logits, o)
  local order
  if o.top_k then
    logits, order = logits:top_k(o.top_k)
  elseif o.top_p then
    order = logits:argsort { axis = 2, descending = true }
    logits = logits:gather(order, 2)
  end
  return likely(logits, o.top_p, o.min_p), order
end

-- Tokens along the last axis of logits, or -1 where a row has a NaN: nothing can be chosen of it.
local function token_or_nan(logits, tokens)
  return dc.where(logits:ne(logits):any(-1), -1, tokens:cast "i32")
end

core.token_or_nan = token_or_nan
core.nan_logits = "token %d cannot be chosen: the model's logits are NaN"

-- Tokens i32[batch]. u: f32[batch], numbers from 0 to below 1.
local function sample(logits, u, o)
  logits = logits:cast "f32"
  if o.seen then
    logits = penalised(logits, o.seen, o.penalty)
  end
  if not o.temperature then
    return logits:argmax(2)
  end
  local p, order = kept(logits / o.temperature, o)
  local place = draw(p, u)
  if order then
    place = order:gather(place:reshape(-1, 1), 2):reshape(-1)
  end
  return place:cast "i32"
end

local function check(op, options, key, low, high, whole)
  local v = options[key]
  if v ~= nil and (type(v) ~= "number" or not (v >= low and v <= high) or whole and math.type(v) ~= "integer") then
    core.fail("ARG", op, ("%s is %s from %s to %s, not %s"):format(key, whole and "a whole number" or "a number",
      low, high == math.huge and "infinity" or high, core.shown(v)))
  end
  return v
end

-- What options say of the choice of tokens.
function core.read_sampling(op, options, vocab)
  local s = {
    temperature = check(op, options, "temperature", 0, 1e4), top_k = check(op, options, "top_k", 0, 1 << 30, true),
    top_p = check(op, options, "top_p", 0, 1), min_p = check(op, options, "min_p", 0, 1),
    penalty = check(op, options, "repetition_penalty", 1e-3, 1e3),
  }
  s.top_k = s.top_k and s.top_k > 0 and math.min(s.top_k, vocab) or nil
  s.top_p = s.top_p and s.top_p < 1 and math.max(s.top_p, 1e-9) or nil -- of 0 the likeliest is left
  s.min_p = s.min_p and s.min_p > 0 and s.min_p or nil
  s.penalty = s.penalty and s.penalty ~= 1 and s.penalty or nil
  s.temperature = (s.temperature or (s.top_k or s.top_p or s.min_p) and 1) or 0
  return s
end

-- Marks tokens of texts, integers [batch, time], as seen.
local function marked(seen, ids)
  local hits = ids:reshape(ids.shape[1], ids.shape[2], 1):eq(dc.iota(seen.shape[2]):reshape(1, 1, -1))
  return seen | hits:any(2)
end

-- A chooser: choose(logits, u) gives i32[batch], -1 for logits of NaN; read(ids) tells it of tokens that were there.
-- dtype is that of logits, device the one that they are on.
function core.sampler(s, batch, vocab, dtype, device)
  local seen = s.penalty and dc.state(("bool[%d, %d]"):format(batch, vocab), nil, { device = device }) or nil
  local warm = s.temperature > 0
  local pick = dc.fn(("sample(logits: %s[%d, %d], u: f32[%d], temperature: f32[], top_p: f32[], min_p: f32[], penalty: "
    .. "f32[]) -> i32[%d]"):format(dtype, batch, vocab, batch, batch),
    function(logits, u, temperature, top_p, min_p, penalty)
      local token = token_or_nan(logits, sample(logits, u, { temperature = warm and temperature or nil,
        top_k = warm and s.top_k or nil, top_p = s.top_p and top_p, min_p = s.min_p and min_p, seen = seen,
        penalty = penalty }))
      if seen then
        seen:set(marked(seen, token:reshape(batch, 1)))
      end
      return token
    end)
  local chooser = {}
  function chooser.choose(logits, u)
    return pick(logits, u, s.temperature, s.top_p or 1, s.min_p or 0, s.penalty or 1)
  end
  function chooser.read(ids)
    if seen then
      seen:set(marked(seen, ids))
    end
  end
  return chooser
end
