-- The next tokens of several texts out of logits, each by its own settings: what models.generate draws for one.

local dc = require "deepc"
require "deepc.models.sampling"
local _, core = ...

local token_or_nan, NEVER = core.token_or_nan, -1e30

-- ---- what counts ----

-- Logits of tokens that were there, made less likely; how: ids [batch, n], vocab where a row has fewer, and written
-- [batch, n], 1 for those that the model wrote.
local function penalise(logits, how)
  local batch, vocab = table.unpack(logits.shape)
  local room = dc.zeros(("f32[%d, %d]"):format(batch, vocab + 1))
  local function each(p)
    return p:reshape(batch, 1)
  end
  local seen = room:scatter(how.ids, dc.ones(how.written), 2, { reduce = "max" })[{ {}, { 1, vocab } }]
  local counts = room:scatter(how.ids, how.written, 2, { reduce = "add" })[{ {}, { 1, vocab } }]
  logits = core.penalised(logits, seen:gt(0), each(how.repetition))
  return logits - counts * each(how.frequency) - counts:minimum(1) * each(how.presence)
end

-- Probabilities along rows, which descend where top_k or top_p is given; how: top_k, top_p and min_p of each row.
local function among(z, how)
  local batch = z.shape[1]
  if how.top_k then
    z = dc.where(dc.iota(z.shape[2]):reshape(1, -1):lt(how.top_k:reshape(batch, 1)), z, NEVER)
  end
  return core.likely(z, how.top_p and how.top_p:reshape(batch, 1), how.min_p:reshape(batch, 1))
end

core.likeliest_among = among

-- Logits as they are drawn from: f32, with masks, penalties and temperatures.
local function warmed(logits, how)
  logits = logits:cast "f32"
  if how.ids then
    logits = penalise(logits, how)
  end
  if how.allowed then
    logits = dc.where(how.allowed, logits, NEVER)
  end
  if not how.temperature then
    return logits
  end
  local t = how.temperature:reshape(-1, 1)
  return logits, logits / dc.where(t:gt(0), t, 1)
end

core.warmed_logits = warmed

local function sample(logits, u, how)
  local cold, warm = warmed(logits, how)
  local best = cold:argmax(2)
  if not warm then
    return best
  end
  local token = core.draw_place(among(warm, { min_p = how.min_p }), u)
  if how.top_k then
    local order = warm:argsort { axis = 2, descending = true }
    local place = core.draw_place(among(warm:gather(order, 2), how), u)
    local some = how.top_k:lt(warm.shape[2]) | how.top_p:le(1)
    token = dc.where(some, order:gather(place:reshape(-1, 1), 2):reshape(-1), token)
  end
  return dc.where(how.temperature:gt(0), token:cast "i32", best)
end

-- ---- functions ----

-- Fields of the record `how`, by what a batch needs.
local FIELDS = {
  warm = { "temperature: f32[B]", "min_p: f32[B]" },
  sorted = { "top_k: i32[B]", "top_p: f32[B]" },
  penalties = { "ids: i32[B, 1 <= m <= M]", "written: f32[B, m]", "repetition: f32[B]", "frequency: f32[B]",
    "presence: f32[B]" },
  masks = { "allowed: bool[B, V]" },
}
local NEEDS = { "warm", "sorted", "penalties", "masks" }

local Chooser = {}
Chooser.__index = Chooser

-- Chooses tokens of a vocabulary for texts of `most` tokens at most.
function core.new_chooser(vocab, dtype, most)
  return setmetatable({ vocab = vocab, dtype = dtype, most = most, made = {} }, Chooser)
end

-- What the settings of some texts need, by the names in NEEDS.
local function needs_of(texts)
  local needs = {}
  for _, text in ipairs(texts) do
    local s = text.sampling
    needs.warm = needs.warm or s.temperature > 0
    needs.sorted = needs.sorted or s.temperature > 0 and (s.top_k or s.top_p) ~= nil
    needs.penalties = needs.penalties or text.penalised
    needs.masks = needs.masks or text.allowed ~= nil
  end
  return needs
end

core.sampling_needs = needs_of

-- The type of `how`, and its name.
function Chooser:record(batch, needs)
  local parts, name = {}, ""
  for _, need in ipairs(NEEDS) do
    for _, field in ipairs(needs[need] and FIELDS[need] or {}) do
      parts[#parts + 1] = field
    end
    name = name .. (needs[need] and need or "-")
  end
  return ("{ %s }"):format(table.concat(parts, ", ")):gsub("%f[%w][BMV]%f[%W]",
    { B = batch, M = self.most, V = self.vocab }), name
end

local function floats(batch, texts, default, get)
  local list = {}
  for i = 1, batch do
    list[i] = texts[i] and get(texts[i]) or default
  end
  return (core.anywhere(dc.tensor(list)))
end

-- Tokens of texts, each once for each time that it is there, filled up with the first number that is no token.
local function occurrences(self, how, batch, texts)
  local longest, ids, written = 1, {}, {}
  for _, text in ipairs(texts) do
    longest = math.max(longest, text.penalised and #text.tokens or 1)
  end
  for i = 1, batch do
    local text = texts[i]
    local list = text and text.penalised and text.tokens or {}
    local prompt = text and text.prompt or 0
    ids[i] = core.pack_numbers(list) .. ("<i4"):pack(self.vocab):rep(longest - #list)
    local own = math.max(#list - prompt, 0)
    written[i] = ("<f"):pack(0):rep(#list - own) .. ("<f"):pack(1):rep(own) .. ("<f"):pack(0):rep(longest - #list)
  end
  local shape = ("[%d, %d]"):format(batch, longest)
  how.ids = core.anywhere(dc.frombytes(table.concat(ids), "i32" .. shape))
  how.written = core.anywhere(dc.frombytes(table.concat(written), "f32" .. shape))
end

-- What a batch is drawn by.
function Chooser:settings(batch, texts, needs)
  local how = {}
  if needs.warm then
    how.temperature = floats(batch, texts, 0, function(t) return t.sampling.temperature end)
    how.min_p = floats(batch, texts, 0, function(t) return t.sampling.min_p end)
  end
  if needs.sorted then
    local k = {}
    for i = 1, batch do
      k[i] = texts[i] and texts[i].sampling.top_k or self.vocab
    end
    how.top_k = core.anywhere(dc.tensor(k, "i32"))
    how.top_p = floats(batch, texts, 2, function(t) return t.sampling.top_p end)
  end
  if needs.penalties then
    occurrences(self, how, batch, texts)
    how.repetition = floats(batch, texts, 1, function(t) return t.sampling.penalty end)
    how.frequency = floats(batch, texts, 0, function(t) return t.frequency end)
    how.presence = floats(batch, texts, 0, function(t) return t.presence end)
  end
  if needs.masks then
    local all, rows = ("\1"):rep(self.vocab), {}
    for i = 1, batch do
      rows[i] = texts[i] and texts[i].allowed or all
    end
    how.allowed = core.anywhere(dc.frombytes(table.concat(rows), ("bool[%d, %d]"):format(batch, self.vocab)))
  end
  return how
end

-- The typed function for a batch with such needs.
function Chooser:get(batch, needs)
  local record, name = self:record(batch, needs)
  local key = batch .. name
  if not self.made[key] then
    if name == "----" then
      self.made[key] = dc.fn(("likeliest(logits: %s[%d, %d]) -> i32[%d]"):format(self.dtype, batch, self.vocab, batch),
        function(logits) return token_or_nan(logits, logits:cast("f32"):argmax(2)) end)
    else
      self.made[key] = dc.fn(("choose(logits: %s[%d, %d], u: f32[%d], how: %s) -> i32[%d]"):format(self.dtype, batch,
        self.vocab, batch, record, batch), function(logits, u, how)
        local token = token_or_nan(logits, sample(logits, u, how))
        return token
      end)
    end
  end
  return self.made[key], name == "----"
end

-- One token for each text, as a list, -1 where logits are NaN. logits [batch, vocab], of which the first rows are those
-- of the texts.
function Chooser:choose(logits, texts)
  local batch, needs = logits.shape[1], needs_of(texts)
  local f, plain = self:get(batch, needs)
  if plain then
    return f(logits):totable()
  end
  local u = floats(batch, texts, 0, function(t) return t.u end)
  return f(logits, u, self:settings(batch, texts, needs)):totable()
end
