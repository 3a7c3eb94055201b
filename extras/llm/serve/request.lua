-- What is asked of a server: options checked, the text that comes out, where it stops.

local dc = require "deepc"
require "deepc.models.generate"
local _, core = ...

---What was asked of a server, and what has come of it.
---@class deepc.serve.Request
---@field done boolean whether it has ended
---@field reason? string "stop", "length", "cancelled" or "error", once it has ended
---@field error? any what a callback or a mask raised
---@field ids integer[] the tokens that were written
---@field prompt_tokens integer how many tokens the prompt has
---@field reused_tokens integer how many of them were read by others before
local Request = {}
Request.__index = Request

-- ---- options ----

local OPTIONS = { "prompt", "max_tokens", "temperature", "top_k", "top_p", "min_p", "repetition_penalty",
  "frequency_penalty", "presence_penalty", "stop", "seed", "on_token", "on_done", "mask" }
local known = {}
for _, name in ipairs(OPTIONS) do
  known[name] = true
end

local function check_names(op, options)
  if type(options) ~= "table" or core.kind(options) or getmetatable(options) then
    core.fail("ARG", op, "options are a table, not " .. core.describe(options), "server:submit { prompt = \"...\" }")
  end
  for key in pairs(options) do
    if not known[key] then
      core.fail("ARG", op, "there is no option " .. core.shown(key), core.near(known, key))
    end
  end
end

-- Ids of a prompt, a text or a list.
local function read_prompt(op, server, prompt)
  local ids = prompt
  if type(prompt) == "string" then
    if not server.tokenizer then
      core.fail("ARG", op, "the prompt is a text, and the server has no tokenizer",
        "serve.new(net, tokenizer), or a list of ids")
    end
    ids = server.tokenizer:encode(prompt)
  elseif core.kind(prompt) == "tensor" and #prompt.shape == 1 then
    ids = prompt:totable()
  elseif type(prompt) ~= "table" or core.kind(prompt) or getmetatable(prompt) then
    core.fail("ARG", op, "prompt is a text or a list of ids, not " .. core.describe(prompt))
  end
  local list, vocab = {}, server.net.config.vocab_size
  for i = 1, #ids do
    local id = ids[i]
    if math.type(id) ~= "integer" or id < 0 or id >= vocab then
      core.fail("ARG", op, ("token %d of the prompt is %s; ids are whole numbers from 0 to %d"):format(i,
        core.shown(id), vocab - 1))
    end
    list[i] = id
  end
  if #list == 0 then
    core.fail("ARG", op, "the prompt has no tokens")
  end
  return list
end

-- Texts and tokens that end a text.
local function read_stop(op, server, stop)
  local tokens, texts, longest = {}, {}, 0
  for id in pairs(server.stop) do
    tokens[id] = true
  end
  if stop ~= nil and (type(stop) ~= "table" or core.kind(stop)) then
    stop = { stop }
  end
  for _, v in ipairs(stop or {}) do
    if math.type(v) == "integer" then
      tokens[v] = true
    elseif type(v) == "string" and v ~= "" and utf8.len(v) then
      if not server.tokenizer then
        core.fail("ARG", op, "stop is a text, and the server has no tokenizer", "serve.new(net, tokenizer)")
      end
      texts[#texts + 1], longest = v, math.max(longest, #v)
    else
      core.fail("ARG", op, ("stop has %s; texts in UTF-8 and tokens are known"):format(core.shown(v)))
    end
  end
  return tokens, texts
end

local function check_number(op, options, key, low, high)
  local v = options[key]
  if v ~= nil and (type(v) ~= "number" or not (v >= low and v <= high)) then
    core.fail("ARG", op, ("%s is a number from %s to %s, not %s"):format(key, low, high, core.shown(v)))
  end
  return v or 0
end

local function check_functions(op, options)
  for _, key in ipairs { "on_token", "on_done" } do
    local v = options[key]
    if v ~= nil and not core.control_callable(v) then
      core.fail("ARG", op, ("%s is a function, not %s"):format(key, core.describe(v)))
    end
  end
end

-- How many tokens are written at most, behind a prompt of n.
local function read_length(op, server, max, n)
  local room = server.context
  if max ~= nil then
    core.check_size(op, "max_tokens", max)
  end
  local wanted = max or math.max(math.min(128, room - n), 1)
  if n + wanted > room then
    core.fail("ARG", op, ("the prompt has %d tokens, and up to %d are written; the server takes %d of both"):format(n,
      wanted, room), "context = n of serve.new, max_tokens of the request")
  end
  return wanted
end

-- By what the tokens of a text are chosen: the beginning of what core.new_request makes.
function core.read_choice(op, options, vocab)
  local t = { sampling = core.read_sampling(op, options, vocab),
    frequency = check_number(op, options, "frequency_penalty", -100, 100),
    presence = check_number(op, options, "presence_penalty", -100, 100) }
  t.penalised = t.sampling.penalty ~= nil or t.frequency ~= 0 or t.presence ~= 0
  return t
end

-- A text to be written, for a server: its tokens, the pages that they are in, and by what it is written. `tokens` are
-- those of the prompt and those that were written; `cached` of them are in pages, `drafted` as a draft reads them;
-- `named` pages hold `content` that others may share.
function core.new_request(op, server, options)
  check_names(op, options)
  check_functions(op, options)
  local tokens, t = read_prompt(op, server, options.prompt), core.read_choice(op, options, server.net.config.vocab_size)
  local seed = options.seed
  if seed ~= nil and math.type(seed) ~= "integer" then
    core.fail("ARG", op, ("seed is a whole number, not %s"):format(core.shown(seed)))
  end
  t.tokens, t.prompt, t.max = tokens, #tokens, read_length(op, server, options.max_tokens, #tokens)
  t.on_token, t.on_done = options.on_token, options.on_done
  t.pages, t.cached, t.drafted, t.named, t.content = {}, 0, 0, 0, 0
  t.pending, t.parts = "", {}
  t.mask = core.read_mask(op, server, options.mask)
  t.stop, t.stop_texts = read_stop(op, server, options.stop)
  t.stream = server.tokenizer and server.tokenizer:stream() or nil
  if seed == nil then
    seed = t.sampling.temperature > 0 and dc.randint("i32[]", { high = 1 << 30 }):item() or 0
  end
  t.random = core.uniform(seed)
  t.request = setmetatable({ done = false, ids = {}, prompt_tokens = #tokens, reused_tokens = 0, _text = t,
    _server = server }, Request)
  return t
end

-- ---- texts ----

-- Where the first of some texts stands in `s`; else how many bytes at its end may be the beginning of one.
local function find_stop(s, texts)
  local first, held = nil, 0
  for _, text in ipairs(texts) do
    local at = s:find(text, 1, true)
    first = at and math.min(at, first or at) or first
    for n = math.min(#text - 1, #s), held + 1, -1 do
      if s:sub(-n) == text:sub(1, n) then
        held = n
        break
      end
    end
  end
  return first, held
end

-- New text, without what may be the beginning of a stop, unless it is the last; whether a stop is there.
local function put(t, new, last)
  local s = t.pending .. new
  local at, held = find_stop(s, t.stop_texts)
  if at then
    s, t.pending = s:sub(1, at - 1), ""
  else
    held = last and 0 or held
    s, t.pending = s:sub(1, #s - held), s:sub(#s - held + 1)
  end
  if s ~= "" then
    t.parts[#t.parts + 1] = s
  end
  return s, at ~= nil
end

-- Runs a function of the script; false and the error where it raises one, which ends this request alone. Where the run
-- as a whole is to end, so does this.
local function guarded(f, ...)
  local ok, result = pcall(f, ...)
  if not ok and core.ends_run(result) then
    error(result, 0)
  end
  return ok, result
end

-- Whether an error is that of an interrupt.
function core.ends_run(err)
  return type(err) == "table" and err.code == "DC0708"
end

core.guarded_call = guarded

-- Ends a text.
local function finish(t, reason, err)
  local r = t.request
  if r.done then
    return
  end
  r.done, r.reason, r.error = true, reason, err
  if t.on_done then
    local ok, why = guarded(t.on_done, r)
    if not ok and r.error == nil then
      r.reason, r.error = "error", why
    end
  end
end

core.finish_text = finish

-- Calls on_token; false where the text has ended by it.
local function tell(t, text, id)
  if not t.on_token then
    return true
  end
  local ok, result = guarded(t.on_token, text, id)
  if not ok then
    finish(t, "error", result)
  elseif result == false then
    finish(t, "cancelled")
  end
  return not t.request.done
end

-- Ends a text whose tokens are all there; id: its last token, nil where on_token knows it.
local function end_of(t, text, id, reason)
  local rest = t.stream and reason ~= "text" and put(t, t.stream:finish(), true) or ""
  text = text .. rest
  if (id or text ~= "") and not tell(t, text, id) then
    return
  end
  finish(t, reason == "text" and "stop" or reason)
end

-- Adds a token that was chosen; whether the text goes on.
function core.add_token(t, id)
  local r = t.request
  if r.done then
    return false
  elseif id < 0 then
    finish(t, "error", select(2, pcall(core.fail, "ARG", "serve", core.nan_logits:format(#r.ids + 1))))
    return false
  elseif t.stop[id] then
    end_of(t, "", nil, "stop")
    return false
  end
  t.tokens[#t.tokens + 1] = id
  r.ids[#r.ids + 1] = id
  local text, stopped = "", false
  if t.stream and r._server.tokenizer:token(id) then -- models may have more tokens than tokenizers
    text, stopped = put(t, t.stream:put(id))
  end
  if stopped then
    end_of(t, text, id, "text")
  elseif core.mask_token(t, id) then
    end_of(t, text, id, "stop")
  elseif #r.ids >= t.max then
    end_of(t, text, id, "length")
  else
    tell(t, text, id)
  end
  return not r.done
end

-- ---- methods ----

local function check(op, r)
  if getmetatable(r) ~= Request then
    core.fail("ARG", op, "a request is needed, not " .. core.describe(r), ("with a colon: request:%s()"):format(op))
  end
end

---The text that was written so far, without what may become a stop.
---
---    print(server:submit({ prompt = "to be", max_tokens = 3 }):text())
---
---Errors: DC0101 where the server has no tokenizer.
---@return string
function Request:text()
  check("text", self)
  if not self._text.stream then
    core.fail("ARG", "text", "the server has no tokenizer", "request.ids has the tokens")
  end
  return table.concat(self._text.parts)
end

---Ends it: nothing more is written. What has ended stays as it is.
---
---    server:submit({ prompt = { 1, 2 } }):cancel()
function Request:cancel()
  check("cancel", self)
  finish(self._text, "cancelled")
end

core.entries(Request)
core.Request = Request
