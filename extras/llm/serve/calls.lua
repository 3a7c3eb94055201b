-- Typed functions of a model that is served: a part of one prompt, and one token for each of several texts. There are
-- as many as there are sizes of batches, whatever comes and goes.

local dc = require "deepc"
require "deepc.serve.pages"
local _, core = ...

-- ---- arguments ----

-- Bytes of whole numbers.
local function pack(list)
  local parts = {}
  for i, n in ipairs(list) do
    parts[i] = ("<i4"):pack(n)
  end
  return table.concat(parts)
end

core.pack_numbers = pack

-- Tokens first to last of a text as the arguments of a call with `batch` rows: rows of nothing where texts are missing,
-- which write to page 0. texts: { tokens, pages, guess, tokens behind those }, from: the first token of each that is
-- new, n: how many.
local function arguments(size, batch, texts, from, n)
  local ids, rows, before, lists, longest = {}, {}, {}, {}, 1
  for i, text in ipairs(texts) do
    local pages = text.pages
    local last = from[i] + n - 1
    longest = math.max(longest, (last - 1) // size + 1)
    before[i] = from[i] - 1
    for place = before[i], last - 1 do
      ids[#ids + 1] = text.tokens[place + 1] or text.guess[place + 1 - #text.tokens]
      rows[#rows + 1] = pages[place // size + 1] * size + place % size
    end
  end
  for i = 1, batch do
    local pages = texts[i] and texts[i].pages or {}
    local row = pack { table.unpack(pages, 1, math.min(#pages, longest)) }
    lists[i] = row .. ("\0"):rep(4 * longest - #row)
    before[i] = before[i] or 0
  end
  for i = #ids + 1, batch * n do
    ids[i], rows[i] = 0, 0
  end
  local shape = ("i32[%d, %d]"):format(batch, n)
  local function numbers(text, type)
    return (core.anywhere(dc.frombytes(text, type)))
  end
  return numbers(pack(ids), shape), numbers(table.concat(lists), ("i32[%d, %d]"):format(batch, longest)),
    numbers(pack(before), ("i32[%d]"):format(batch)), numbers(pack(rows), shape)
end

core.call_arguments = arguments

-- ---- functions ----

local Calls = {}
Calls.__index = Calls

-- Functions of a model over its pool; most: pages of a text, chunk: tokens of a prompt that are read at once.
function core.new_calls(net, pool, most, chunk)
  return setmetatable({ net = net, pool = pool, most = most, chunk = chunk, made = {}, forget = pool:forgetting() },
    Calls)
end

-- Forgets what is in a page.
function Calls:clear(page)
  if self.forget then
    self.forget(page)
  end
end

-- The typed function of a name for a batch of n tokens each, a size or a bounded dim; last: logits of the last token
-- alone.
function Calls:get(name, batch, n, last)
  local key = name .. batch .. n
  if not self.made[key] then
    local net, pool = self.net, self.pool
    local inner = n:match "[%w_]+$"
    inner = n:find "<=" and "n" or inner
    self.made[key] = dc.fn(("%s(ids: i32[%d, %s], pages: i32[%d, 1 <= p <= %d], before: i32[%d], rows: i32[%d, %s]) "
      .. "-> %s[%d, %s%d]"):format(name, batch, n, batch, self.most, batch, batch, inner, net.dtype, batch,
      last and "" or inner .. ", ", net.config.vocab_size),
      function(ids, pages, before, rows)
        local logits = net(ids, { cache = pool:texts(pages, before, rows), last = last })
        return logits
      end)
  end
  return self.made[key]
end

local function chunk_of(self)
  return ("1 <= n <= %d"):format(self.chunk)
end

-- Calls a function twice with rows of nothing: it is compiled, and traced again, as a second call does. Its logits.
local function try(self, name, batch, n, last)
  local f, logits = self:get(name, batch, n, last), nil
  for _ = 1, 2 do
    logits = f(arguments(self.pool.size, batch, {}, {}, tonumber(n) or 1))
  end
  return logits
end

-- The same of what reads prompts.
function Calls:try_read()
  try(self, "read", 1, chunk_of(self), true)
end

-- And of what writes tokens; n of them, with guesses. Whatever is chosen of logits like these.
function Calls:try_write(batch, n)
  if n > 1 then
    return try(self, "verify", batch, tostring(n), false)
  end
  return try(self, "write", batch, "1", true)
end

-- And of what guesses.
function Calls:try_guess(batch)
  try(self, "pair", batch, "2", true)
  return try(self, "write", batch, "1", true)
end

-- Reads n tokens of one text from `from` on; logits behind the last one.
function Calls:read(text, from, n)
  return self:get("read", 1, chunk_of(self), true), arguments(self.pool.size, 1, { text }, { from }, n)
end

-- The last token of each text, in a batch.
function Calls:write(texts, batch)
  local from = {}
  for i, text in ipairs(texts) do
    from[i] = #text.tokens
  end
  return self:get("write", batch, "1", true), arguments(self.pool.size, batch, texts, from, 1)
end

-- Of a draft: what the next guess is made of. The first one reads two tokens, since the last guess of before may have
-- been kept, which the draft has not read.
function Calls:guess(texts, batch)
  local from, first = {}, #texts[1].guess == 0
  for i, text in ipairs(texts) do
    from[i] = first and #text.tokens - 1 or #text.tokens + #text.guess
  end
  local f = first and self:get("pair", batch, "2", true) or self:get("write", batch, "1", true)
  return f, arguments(self.pool.size, batch, texts, from, first and 2 or 1)
end

-- The last token of each text and the n guesses behind it; logits behind all of them.
function Calls:verify(texts, batch, n)
  local from = {}
  for i, text in ipairs(texts) do
    from[i] = #text.tokens
  end
  return self:get("verify", batch, tostring(n + 1), false), arguments(self.pool.size, batch, texts, from, n + 1)
end
