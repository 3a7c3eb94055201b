-- A server: which texts wait, which have pages, and what is computed next. Its steps are parts of prompts and single
-- tokens of all texts that are written, in turns, so texts come and go between any two of them (Yu et al., 2022).

require "deepc.serve.book"
require "deepc.serve.calls"
require "deepc.serve.choose"
require "deepc.serve.draft"
require "deepc.serve.request"
local _, core = ...

---Language models that many texts are written by at once, in steps that a host calls.
---
---    local serve = require "deepc.serve"
---@class deepc.serve
local serve = {}

---Writes texts for whoever asks. serve.new makes one.
---@class deepc.serve.Server
local Server = {}
Server.__index = Server

-- ---- options ----

local SIZES = { slots = 8, page = 16, chunk = 64, queue = 1024 }

local function read_sizes(op, options, net)
  local o = {}
  for _, key in ipairs { "slots", "page", "chunk", "queue" } do -- of several wrong ones the first is told
    o[key] = options[key] == nil and SIZES[key] or options[key]
    core.check_size(op, key, o[key])
  end
  o.tokens = options.tokens == nil and o.slots * 512 or options.tokens
  core.check_size(op, "tokens", o.tokens)
  o.pages = (o.tokens - 1) // o.page + 1
  local positions = net.config.positions
  local most = math.min(o.pages * o.page, positions)
  o.context = options.context == nil and most or options.context
  core.check_size(op, "context", o.context)
  if o.context > most then
    core.fail("ARG", op, ("context is %d; the model has %d positions, and there is room for %d tokens"):format(
      o.context, positions, o.pages * o.page), "tokens = n makes more room")
  end
  return o
end

local function check_model(op, what, net)
  if not core.is_layer(net) or not net.step or not net.cache then
    core.fail("ARG", op, ("%s: a model that writes is needed, not %s"):format(what, core.describe(net)),
      "models.load(path)")
  elseif not net.config.head_dim or net.decode then
    core.fail("ARG", op, ("%s: %s keeps something else than keys and values of tokens"):format(what, net:describe()))
  end
end

-- The model that guesses, and how many tokens at once.
local function read_draft(op, options, net, context)
  local draft, n = options.draft, options.draft_tokens == nil and 4 or options.draft_tokens
  core.check_size(op, "draft_tokens", n)
  if draft == nil then
    return nil
  end
  check_model(op, "draft", draft)
  if draft.config.vocab_size ~= net.config.vocab_size then
    core.fail("ARG", op, ("draft: it has %d tokens, the model that it guesses for has %d"):format(
      draft.config.vocab_size, net.config.vocab_size))
  elseif draft.config.positions < context then
    core.fail("ARG", op, ("draft: it has %d positions, and the context is %d"):format(draft.config.positions, context),
      "context = n of serve.new")
  end
  return draft, n
end

-- Tokens that end every text.
local function stop_tokens(net, tokenizer)
  local set = {}
  for _, id in ipairs(net.config.stop or {}) do
    set[id] = true
  end
  if tokenizer and tokenizer.eos then
    set[tokenizer.eos] = true
  end
  return set
end

-- Sizes of batches: 1, 2, 4 and so on, and that of all slots.
local function batch_sizes(slots)
  local sizes, n = {}, 1
  while n < slots do
    sizes[#sizes + 1] = n
    n = 2 * n
  end
  sizes[#sizes + 1] = slots
  return sizes
end

-- ---- servers ----

---A server of a model. Texts share its weights: a step writes a token of each. Keys and values are in pages of a pool
---that is made here, so memory does not grow (Kwon et al., 2023); beginnings of prompts that were read before are not
---read again.
---
---    local models, serve = require "deepc.models", require "deepc.serve"
---    local net = models.llama { vocab_size = 100, hidden_size = 16, intermediate_size = 32, num_hidden_layers = 1,
---      num_attention_heads = 2 }
---    local server = serve.new(net:eval(), nil, { slots = 4, tokens = 1024 })
---    local request = server:submit { prompt = { 3, 1, 4 }, max_tokens = 8 }
---    server:run()
---    print(#request.ids, request.reason)
---
---Options: slots (8), texts that are written at once; tokens (512 for each slot), those of all texts for which there is
---room; context, the most tokens of one text, prompt and all (as many as the model has positions and there is room
---for); chunk (64), tokens of a prompt that are read at once; queue (1024), requests that may wait; page (16), tokens
---of a page; reuse (true), whether pages of texts that have ended are kept for others that begin in the same way;
---draft, a smaller model with the same tokens, which guesses draft_tokens (4) of each text that the model then looks at
---in one call (Leviathan et al., 2023): texts have the distribution of the model alone, and are its own where the
---likeliest token is taken; cache, what keys and values are kept as, of the draft as well ("i8", "f16", "bf16", "f32",
---as net:cache has it; the model's own dtype). Models are put into evaluation mode.
---
---Errors: DC0101 for options and for what is no model with a cache of keys and values, DC1001 where memory is out.
---@param net deepc.models.Decoder
---@param tokenizer? deepc.tokenizers.Tokenizer without one there are ids and no texts
---@param options? table see above
---@return deepc.serve.Server
function serve.new(net, tokenizer, options)
  local op = "serve.new"
  core.refuse_tracing(op)
  core.options(op, options, "slots", "tokens", "context", "chunk", "queue", "page", "reuse", "draft", "draft_tokens",
    "cache")
  check_model(op, "the first argument", net)
  if tokenizer ~= nil then
    core.check_tokenizer(op, tokenizer)
  end
  local o = read_sizes(op, options or {}, net)
  local draft, guesses = read_draft(op, options or {}, net, o.context)
  local function calls_of(model)
    local dtype = core.read_kept_dtype(op, "cache", options and options.cache, model)
    core.check_kept(op, model, (o.pages + 1) * o.page)
    return core.new_calls(model, core.new_pages(model:eval(), o.pages + 1, o.page, dtype),
      (o.context - 1) // o.page + 1, o.chunk)
  end
  local chooser = core.new_chooser(net.config.vocab_size, net.dtype, o.context)
  return setmetatable({ net = net, tokenizer = tokenizer, context = o.context, slots = o.slots, chunk = o.chunk,
    limit = o.queue, pages = o.pages, preempted = 0, stop = stop_tokens(net, tokenizer),
    sizes = batch_sizes(o.slots), waiting = {}, running = {},
    budget = o.chunk, book = core.new_book(o.pages + 1, o.page, core.unless_false(op, options, "reuse")),
    unclean = {}, calls = calls_of(net), chooser = chooser,
    draft = draft and core.new_draft(draft, guesses, calls_of(draft), chooser) }, Server)
end

-- ---- pages ----

-- A page for a text; one that another wrote to is cleared before the next call. Nil where none is left.
local function take(self)
  local page, written = self.book:take()
  if written then
    table.insert(self.unclean, page)
  end
  return page
end

local function clear(self, page)
  self.calls:clear(page)
  if self.draft then
    self.draft.calls:clear(page)
  end
end

-- Clears what was taken. Where that fails the rest is left for the next time.
local function clear_pages(self)
  while #self.unclean > 0 do
    clear(self, self.unclean[#self.unclean])
    table.remove(self.unclean)
  end
end

-- Gives the pages of a text back, those at its end first: beginnings are found longer.
local function give_back(self, t)
  for i = #t.pages, 1, -1 do
    self.book:release(t.pages[i])
  end
  t.pages, t.cached, t.drafted, t.named, t.content = {}, 0, 0, 0, 0
end

-- Names whole pages whose tokens have been read, by the draft as well where there is one.
local function name_pages(self, t)
  local size, read = self.book.size, self.draft and math.min(t.cached, t.drafted) or t.cached
  while (t.named + 1) * size <= read do
    t.content = self.book:know(t.pages[t.named + 1], t.content, t.tokens, t.named * size + 1)
    t.named = t.named + 1
  end
end

-- Tokens of a prompt that others had read. Where a text had to wait again, they may be its own.
local function count_reused(t, n)
  if not t.waited then
    t.request.reused_tokens = math.min(t.request.reused_tokens + n, t.prompt)
  end
end

-- Takes pages for all tokens of a waiting text and one more; false where there are too few.
local function admit(self, t)
  local book = self.book
  local shared, content = book:find(0, t.tokens, 1, #t.tokens - 1)
  local needed = #t.tokens // book.size + 1 - #shared
  if needed + book:count_idle(shared) > book:left() then
    return false
  end
  for _, page in ipairs(shared) do
    book:share(page)
  end
  t.pages, t.named, t.content, t.cached = shared, #shared, content, #shared * book.size
  t.drafted = t.cached
  count_reused(t, #shared * book.size)
  for _ = 1, needed do
    t.pages[#t.pages + 1] = take(self)
  end
  return true
end

-- Takes over what others have read since a text was admitted: of several that begin in the same way one is read.
local function adopt(self, t)
  local book = self.book
  if t.named * book.size ~= t.cached then -- inside of a page
    return
  end
  local shared, content = book:find(t.content, t.tokens, t.cached + 1, #t.tokens - 1)
  for i, page in ipairs(shared) do
    book:share(page)
    book:release(t.pages[t.named + i])
    t.pages[t.named + i] = page
  end
  t.named, t.content, t.cached = t.named + #shared, content, t.cached + #shared * book.size
  t.drafted = math.max(t.drafted, #shared > 0 and t.cached or 0)
  count_reused(t, #shared * book.size)
end

-- Puts the text that came last back to the front of those that wait: what it wrote is read again.
local function preempt(self)
  local t = table.remove(self.running)
  t.waited = true
  give_back(self, t)
  table.insert(self.waiting, 1, t)
  self.preempted = self.preempted + 1
  return t
end

-- Takes pages for the last token of a text that runs and n - 1 more, from those that came later where none are left;
-- false where the text itself was the last.
local function reserve(self, t, n)
  local pages = (#t.tokens + n - 2) // self.book.size + 1
  while #t.pages < pages do
    local page = take(self)
    if page then
      t.pages[#t.pages + 1] = page
    elseif preempt(self) == t then
      return false
    end
  end
  return true
end

-- ---- what is done next ----

-- Drops texts that have ended.
local function sweep(self)
  local function keep_open(list)
    local open = {}
    for _, t in ipairs(list) do
      if not t.request.done then
        open[#open + 1] = t
      elseif #t.pages > 0 then
        give_back(self, t)
      end
    end
    return open
  end
  self.running, self.waiting = keep_open(self.running), keep_open(self.waiting)
  while #self.running < self.slots and self.waiting[1] and admit(self, self.waiting[1]) do
    self.running[#self.running + 1] = table.remove(self.waiting, 1)
  end
end

-- Starts a typed function in slices, or calls it; `after` gets its results.
local function launch(self, sliced, after, f, ...)
  clear_pages(self)
  if sliced then
    self.job = { job = f:start(...), after = after }
  else
    after(f(...))
  end
end

-- Chooses tokens for texts behind which logits stand. A number that was drawn stays where that fails.
local function choose(self, logits, texts)
  for _, t in ipairs(texts) do
    t.u = t.u or t.random()
  end
  core.ask_masks(texts, self.net.config.vocab_size)
  local ids = self.chooser:choose(logits, texts)
  for i, t in ipairs(texts) do
    t.u = nil
    core.add_token(t, ids[i])
  end
end

-- Reads a part of a prompt.
local function read(self, t, sliced)
  local n = math.min(#t.tokens - t.cached, self.chunk)
  self.budget = self.budget - n
  launch(self, sliced, function(logits)
    t.cached = t.cached + n
    name_pages(self, t)
    if t.cached == #t.tokens and not t.request.done then
      choose(self, logits, { t })
    end
  end, self.calls:read(t, t.cached + 1, n))
end

-- Has the draft read a part of a text.
local function read_draft_part(self, t, sliced)
  local n = math.min(#t.tokens - 1 - t.drafted, self.chunk)
  self.budget = self.budget - n
  launch(self, sliced, function()
    t.drafted = t.drafted + n
    name_pages(self, t)
  end, self.draft.calls:read(t, t.drafted + 1, n))
end

local function batch_for(self, texts)
  for _, size in ipairs(self.sizes) do
    if size >= #texts then
      return size
    end
  end
end

-- Writes a token of each of some texts, of which all tokens but the last were read.
local function write(self, texts, sliced)
  launch(self, sliced, function(logits)
    for _, t in ipairs(texts) do
      t.cached = #t.tokens
      name_pages(self, t)
    end
    choose(self, logits, texts)
  end, self.calls:write(texts, batch_for(self, texts)))
end

-- Adds the guesses of a text that are kept, and the token behind them.
local function keep(self, t, count, token)
  local guess, before, going = t.guess, #t.tokens, not t.request.done
  t.guess = nil
  for i = 1, count do
    going = going and core.add_token(t, guess[i])
  end
  self.draft.kept = self.draft.kept + count
  t.drafted = before + math.min(count, self.draft.count - 1)
  t.cached = before + count
  if going then
    core.add_token(t, token)
    name_pages(self, t)
  end
end

-- Writes some tokens of each of some texts: the draft guesses, and the model looks at all guesses in one call.
local function speculate(self, texts, sliced)
  local draft, batch, needs, q = self.draft, batch_for(self, texts), core.sampling_needs(texts), {}
  for _, t in ipairs(texts) do
    t.guess = {}
  end
  local function verify()
    launch(self, sliced, function(logits)
      local counts, tokens = draft:judge(logits, texts, q, needs)
      for i, t in ipairs(texts) do
        keep(self, t, counts[i], tokens[i])
      end
    end, self.calls:verify(texts, batch, draft.count))
  end
  local function guess()
    launch(self, sliced, function(logits)
      q[#q + 1] = draft:guess(logits, texts, needs)
      if #texts[1].guess < draft.count then
        guess()
      else
        verify()
      end
    end, draft.calls:guess(texts, batch))
  end
  guess()
end

-- Whether guesses are made for a text: not where a mask or a penalty depends on each token, nor at the end of the room.
local function is_drafted(self, t)
  return self.draft and not t.mask and not t.penalised and #t.tokens >= 2
    and #t.tokens + self.draft.count <= self.context
end

-- Texts by what they need next: one whose prompt is to be read, one that the draft is to read, those whose next token
-- is due, those for which guesses are made. Pages are taken for these.
local function sort_out(self)
  local unread, behind, ready, drafted, i = nil, nil, {}, {}, 1
  while i <= #self.running do -- which becomes shorter at its end where pages run out
    local t = self.running[i]
    local ahead = is_drafted(self, t)
    if not unread and #t.tokens - t.cached > 1 then
      adopt(self, t)
    end
    if #t.tokens - t.cached > 1 then
      unread = unread or t
    elseif ahead and #t.tokens - t.drafted > 2 then
      behind = behind or t
    elseif reserve(self, t, ahead and self.draft.count + 1 or 1) then
      table.insert(ahead and drafted or ready, t)
    end
    i = i + 1
  end
  return unread, behind, ready, drafted
end

-- One call of the model. Texts that are written wait for no more than a chunk of prompts at a time.
local function work(self, sliced)
  sweep(self)
  local unread, behind, ready, drafted = sort_out(self)
  local idle = #ready == 0 and #drafted == 0
  if unread and (self.budget > 0 or idle) then
    read(self, unread, sliced)
  elseif behind and (self.budget > 0 or idle) then
    read_draft_part(self, behind, sliced)
  elseif not idle then
    self.guessing = #drafted > 0 and not (self.guessing and #ready > 0)
    self.budget = self.chunk
    if self.guessing then
      speculate(self, drafted, sliced)
    else
      write(self, ready, sliced)
    end
  end
end

-- ---- methods ----

local function enter(self, op)
  if getmetatable(self) ~= Server then
    core.fail("ARG", op, "a server is needed, not " .. core.describe(self), ("with a colon: server:%s(...)"):format(op))
  end
  core.refuse_tracing(op)
end

-- Whether texts are left.
local function is_busy(self)
  for _, list in ipairs { self.running, self.waiting } do
    for _, t in ipairs(list) do
      if not t.request.done then
        return true
      end
    end
  end
  return self.job ~= nil
end

-- Work until a time, or one call where there is none; until nothing is left with `all`.
local function advance(self, op, deadline, all)
  if self.busy then
    core.fail("ARG", op, "the server is called by one of its own callbacks")
  end
  self.busy = true
  local ok, err = pcall(function()
    repeat
      if self.job then
        local left = deadline and math.max((deadline - core.clock()) * 1000, 0) or nil
        local running = self.job
        if not left or running.job:poll { ms = left } then
          self.job = nil
          running.after(running.job:result())
        end
      else
        work(self, deadline ~= nil)
      end
    until not is_busy(self) or not all and (not deadline or core.clock() >= deadline)
  end)
  self.busy = false
  if not ok then
    error(err, 0)
  end
  sweep(self)
  return is_busy(self)
end

---Asks for a text: it waits until there is room, and is written while the server's steps go on.
---
---    local request = server:submit { prompt = { 3, 1, 2 }, max_tokens = 20, temperature = 0.8, top_p = 0.95, seed = 1,
---      on_token = function(text, id) print(id) end }
---
---Options: prompt, a text or a list of ids; max_tokens (128, or what the context has room for); temperature, top_k,
---top_p, min_p, repetition_penalty as models.generate has them; frequency_penalty, by which a logit is smaller for each
---time that the token was written, and presence_penalty, for being there (0); stop, texts, which are not part of what
---is written, and tokens, besides those of the model and the tokenizer; seed, of the draws: the same tokens whatever
---else is written; mask, a function of the list of ids that were written, which returns the ids that may follow as a
---list, as a bool or u8 tensor of the vocabulary, or nil for all, or a grammar of serve.regex or serve.json, at whose
---end the text ends; on_token(text, id), called with each token and the text that it completes, whole characters, ""
---where there is none yet, and once with the rest and no id where a stop leaves some: false ends the text;
---on_done(request), called at the end. What a callback raises ends this request with the reason "error", and no other;
---so do logits that are NaN.
---
---Errors: DC0101 for options, for a prompt and max_tokens beyond the context, and where the queue is full.
---@param options table see above
---@return deepc.serve.Request
function Server:submit(options)
  local op = "submit"
  enter(self, op)
  local t = core.new_request(op, self, options)
  if #self.waiting >= self.limit then
    core.fail("ARG", op, ("%d requests wait, which is the most"):format(self.limit),
      "server:step() makes room; queue = n of serve.new")
  end
  self.waiting[#self.waiting + 1] = t
  return t.request
end

---Does what is next: one call of the model, or so much as there is time for. With a time calls are cut in slices, so a
---host that draws pictures stays awake. Callbacks are called from here.
---
---    while server:step(5) do end
---
---Errors: DC0101 inside of a callback; what the model raises, where memory is out: requests stay as they are.
---@param milliseconds? number
---@return boolean # is something left to do?
function Server:step(milliseconds)
  local op = "step"
  enter(self, op)
  if milliseconds ~= nil and (type(milliseconds) ~= "number" or milliseconds < 0 or milliseconds ~= milliseconds) then
    core.fail("ARG", op, "a number of milliseconds is needed, not " .. core.shown(milliseconds))
  end
  local more = advance(self, op, milliseconds and core.clock() + milliseconds / 1000, false)
  return more
end

---Goes on until all requests have ended.
---
---    server:run()
---
---Errors: as server:step.
function Server:run()
  enter(self, "run")
  while is_busy(self) do
    advance(self, "run", nil, true)
  end
end

---Compiles what is needed, which else happens when it is called first: after it no step waits. Options are those by
---which requests choose tokens, temperature to presence_penalty, where some do: they need functions of their own.
---
---    server:prepare():prepare { temperature = 0.8, top_p = 0.9 }
---
---Errors: DC0101 for options, and between the slices of a call.
---@param options? table
---@return deepc.serve.Server # itself
function Server:prepare(options)
  local op = "prepare"
  enter(self, op)
  core.options(op, options, "temperature", "top_k", "top_p", "min_p", "repetition_penalty", "frequency_penalty",
    "presence_penalty")
  if self.job or self.busy then
    core.fail("ARG", op, "a call of the model is under way", "server:prepare() before the first step")
  end
  local t = core.read_choice(op, options or {}, self.net.config.vocab_size)
  t.tokens, t.prompt, t.u, t.random, t.guess = { 0 }, 1, 0, function() return 0 end, {}
  for _ = 1, 2 do
    clear(self, 0)
  end
  self.calls:try_read()
  for _, batch in ipairs(self.sizes) do
    local logits = self.calls:try_write(batch, 1)
    for _ = 1, 2 do
      self.chooser:choose(logits, { t })
    end
    if self.draft and not t.penalised then
      self.draft:try(self.calls, batch, t)
    end
  end
  return self
end

---Numbers of what goes on: running, waiting, texts; pages, of the pool, pages_left, that can be taken; preempted, how
---often a text had to wait again since pages ran out; guessed, kept, tokens of a draft.
---
---    print(server:stats().waiting)
---@return { [string]: integer }
function Server:stats()
  enter(self, "stats")
  return { running = #self.running, waiting = #self.waiting, pages = self.pages, pages_left = self.book:left(),
    preempted = self.preempted, guessed = self.draft and self.draft.guessed or 0,
    kept = self.draft and self.draft.kept or 0 }
end

core.entries(Server)
core.serve = serve

return serve
