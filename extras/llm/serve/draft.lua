-- A small model guesses some tokens of each text, and the large one looks at all of them in one call. What is kept has
-- the distribution of the large model alone (Leviathan et al., 2023): a guess that was drawn with probability q, and
-- that the large model gives p, is kept with probability p / q; in place of the first one that is not, a token is drawn
-- of what p has more than q. The likeliest tokens are those of the large model.

local dc = require "deepc"
require "deepc.serve.choose"
local _, core = ...

local token_or_nan, NEVER = core.token_or_nan, -1e30

-- ---- distributions ----

-- Probabilities of tokens in the order of the vocabulary, by the settings of rows.
local function distribution(z, how)
  if how.top_k then
    local sorted = z:sort { axis = 2, descending = true }
    local kept = core.likeliest_among(sorted, how):gt(0):sum(2)
    z = dc.where(z:ge(sorted:gather((kept - 1):reshape(-1, 1), 2)), z, NEVER)
    return z:softmax(2)
  end
  local p = core.likeliest_among(z, { min_p = how.min_p })
  return p / p:sum { axis = 2, keep = true }
end

-- Settings of texts for n rows of each.
local function repeated(how, n)
  local all = {}
  for _, key in ipairs { "temperature", "min_p", "top_k", "top_p" } do
    local v = how[key]
    all[key] = v and v:reshape(-1, 1):expand(v.shape[1], n):reshape(-1)
  end
  return all
end

-- A guess for each text, and the distribution that it was drawn of.
local function guess(logits, u, how)
  local cold, warm = core.warmed_logits(logits, how)
  local q = distribution(warm, how)
  return dc.where(how.temperature:gt(0), core.draw_place(q, u):cast "i32", cold:argmax(2)), q
end

-- How many guesses are kept, and the token behind them, -1 where its logits are NaN. logits [batch, n + 1, vocab],
-- guesses [batch, n], q a list of n [batch, vocab], u [batch, n] and v [batch] numbers from 0 to below 1.
local function judge(logits, guesses, q, u, v, how)
  local batch, n, vocab = guesses.shape[1], guesses.shape[2], logits.shape[3]
  local cold, warm = core.warmed_logits(logits:reshape(batch * (n + 1), vocab), repeated(how, n + 1))
  local best = cold:argmax(2):reshape(batch, n + 1)
  local p = distribution(warm, repeated(how, n + 1)):reshape(batch, n + 1, vocab)
  local guessed = guesses:reshape(batch, n, 1)
  local drawn = dc.stack(q, 2)
  local of_p = p[{ {}, { 1, n } }]:gather(guessed, 3):reshape(batch, n)
  local of_q = drawn:gather(guessed, 3):reshape(batch, n)
  local kept = dc.where(how.temperature:gt(0):reshape(batch, 1), (u * of_q):lt(of_p),
    guesses:eq(best[{ {}, { 1, n } }]))
  local count = kept:cumprod(2):sum { axis = 2, dtype = "i32" }
  local here = dc.iota(n + 1):reshape(1, -1):eq(count:reshape(batch, 1))
  local function at(x)
    return dc.where(here:reshape(batch, n + 1, 1), x, 0):sum(2)
  end
  local whole = at(p)
  local rest = (whole - at(dc.concat({ drawn, dc.zeros(("f32[%d, 1, %d]"):format(batch, vocab)) }, 2))):maximum(0)
  rest = dc.where(rest:sum { axis = 2, keep = true }:gt(0), rest, whole)
  local token = dc.where(how.temperature:gt(0), core.draw_place(rest, v):cast "i32",
    dc.where(here, best, 0):sum(2):cast "i32")
  return count, dc.where((here & logits:ne(logits):any(3)):any(2), -1, token)
end

-- The same where all take the likeliest.
local function compare(logits, guesses)
  local batch, n = guesses.shape[1], guesses.shape[2]
  local best = token_or_nan(logits, logits:cast("f32"):argmax(3))
  local count = guesses:eq(best[{ {}, { 1, n } }]):cumprod(2):sum { axis = 2, dtype = "i32" }
  local here = dc.iota(n + 1):reshape(1, -1):eq(count:reshape(batch, 1))
  return count, dc.where(here, best, 0):sum(2):cast "i32"
end

-- ---- functions ----

local Draft = {}
Draft.__index = Draft

-- Guesses of `net`, n at a time, for texts that a chooser draws for; calls: the functions of that model.
function core.new_draft(net, n, calls, chooser)
  return setmetatable({ net = net, count = n, calls = calls, chooser = chooser, made = {}, guessed = 0, kept = 0 },
    Draft)
end

local makers = {}

function makers.guess(d, batch, record)
  local vocab = d.chooser.vocab
  return dc.fn(("guess(logits: %s[%d, %d], u: f32[%d], how: %s) -> i32[%d], f32[%d, %d]"):format(d.net.dtype, batch,
    vocab, batch, record, batch, batch, vocab), function(logits, u, how)
    local token, q = guess(logits, u, how)
    return token, q
  end)
end

function makers.likeliest(d, batch)
  return dc.fn(("likeliest(logits: %s[%d, %d]) -> i32[%d]"):format(d.net.dtype, batch, d.chooser.vocab, batch),
    function(logits) return logits:cast("f32"):argmax(2) end)
end

-- The type of what is judged.
local function judged(d, batch)
  return ("logits: %s[%d, %d, %d], guesses: i32[%d, %d]"):format(d.chooser.dtype, batch, d.count + 1, d.chooser.vocab,
    batch, d.count)
end

function makers.judge(d, batch, record)
  return dc.fn(("judge(%s, q: {f32[%d, %d]}, u: f32[%d, %d], v: f32[%d], how: %s) -> i32[%d], i32[%d]"):format(
    judged(d, batch), batch, d.chooser.vocab, batch, d.count, batch, record, batch, batch),
    function(logits, guesses, q, u, v, how)
      local count, token = judge(logits, guesses, q, u, v, how)
      return count, token
    end)
end

function makers.compare(d, batch)
  return dc.fn(("compare(%s) -> i32[%d], i32[%d]"):format(judged(d, batch), batch, batch), function(logits, guesses)
    local count, token = compare(logits, guesses)
    return count, token
  end)
end

function Draft:get(name, batch, needs)
  local record, key = self.chooser:record(batch, needs)
  key = name .. batch .. key
  self.made[key] = self.made[key] or makers[name](self, batch, record)
  return self.made[key]
end

-- n numbers from 0 to below 1 for each text of a batch.
local function draws(texts, batch, n)
  local list = {}
  for i = 1, batch * n do
    local t = texts[(i - 1) // n + 1]
    list[i] = t and t.random() or 0
  end
  return (core.anywhere(dc.tensor(list)))
end

-- Chooses the guesses that are next; their distributions, nil where all are the likeliest.
function Draft:guess(logits, texts, needs)
  local batch, ids, q = logits.shape[1]
  if needs.warm then
    ids, q = self:get("guess", batch, needs)(logits, draws(texts, batch, 1),
      self.chooser:settings(batch, texts, needs))
  else
    ids = self:get("likeliest", batch, needs)(logits)
  end
  local list = ids:totable()
  for i, t in ipairs(texts) do
    table.insert(t.guess, list[i])
  end
  return q
end

-- Calls all functions for a batch twice, with a text of no matter; calls: those of the large model.
function Draft:try(calls, batch, t)
  local needs, guessed = core.sampling_needs { t }, self.guessed
  self.calls:try_read()
  local logits, verified = self.calls:try_guess(batch), calls:try_write(batch, self.count + 1)
  for _ = 1, 2 do
    local q = {}
    t.guess = {}
    for i = 1, self.count do
      q[i] = self:guess(logits, { t }, needs)
    end
    self:judge(verified, { t }, q, needs)
  end
  self.guessed = guessed
end

-- How many guesses of each text are kept, and the tokens behind them, as lists.
function Draft:judge(logits, texts, q, needs)
  local batch, n, list = logits.shape[1], self.count, {}
  for i = 1, batch do
    for k = 1, n do
      list[#list + 1] = texts[i] and texts[i].guess[k] or 0
    end
  end
  local guesses = core.anywhere(dc.frombytes(core.pack_numbers(list), ("i32[%d, %d]"):format(batch, n)))
  local count, token
  if needs.warm then
    count, token = self:get("judge", batch, needs)(logits, guesses, q, draws(texts, batch, n):reshape(batch, n),
      draws(texts, batch, 1), self.chooser:settings(batch, texts, needs))
  else
    count, token = self:get("compare", batch, needs)(logits, guesses)
  end
  self.guessed = self.guessed + n * #texts
  return count:totable(), token:totable()
end
