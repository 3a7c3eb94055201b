-- What a tokenizer does, wherever it is from.

local dc = require "deepc"
local _, core = ...

---Tokenizers: texts become numbers of tokens, as models were trained with, and back.
---
---    local tokenizers = require "deepc.tokenizers"
---@class deepc.tokenizers
local tokenizers = {}

---A tokenizer. `#tokenizer` is the largest id and one. Ids count from 0, as they do in files and in embeddings.
---@class deepc.tokenizers.Tokenizer
---@field bos? integer the id of the token that begins a text, where its file says so
---@field eos? integer of the one that ends it
---@field pad? integer of the one that fills up rows of a batch
---@field unk? integer of the one for what is in no token
---@field max? integer how many tokens its file allows; encode shortens where it is told to alone
local Tokenizer = {}
Tokenizer.__index = Tokenizer

-- The one of a description, and of a vocabulary beside it; ids: bos, eos, pad, unk.
core.new_tokenizer = function(op, name, json, list, ids)
  local c = core.tokenizer_new(op, name, json, list)
  local about = core.tokenizer_about(c)
  local t = { _c = c, _size = about.size, _left = about.pad_left, unk = about.unknown, pad = about.pad,
    max = about.max }
  for key, id in pairs(ids or {}) do
    t[key] = id
  end
  return setmetatable(t, Tokenizer)
end

local function check(op, t)
  if getmetatable(t) ~= Tokenizer then
    core.fail("ARG", op, "a tokenizer is needed, not " .. core.describe(t),
      ("with a colon: tokenizer:%s(...)"):format(op))
  end
end

core.check_tokenizer = check

local function check_text(op, text, what)
  if type(text) ~= "string" then
    core.fail("ARG", op, ("%s is needed, not %s"):format(what or "a text", core.describe(text)))
  end
  return text
end

local function check_flag(op, options, key, default)
  local v = options[key]
  if v == nil then
    return default
  elseif type(v) ~= "boolean" then
    core.fail("ARG", op, ("%s is true or false, not %s"):format(key, core.describe(v)))
  end
  return v
end

local function check_max(op, v)
  if v ~= nil and (math.type(v) ~= "integer" or v < 0 or v > 0x7fffffff) then
    core.fail("ARG", op, ("max is a whole number of at least 0, not %s"):format(core.shown(v)))
  end
  return v
end

function Tokenizer:__len()
  return self._size
end

---The ids of a text's tokens, from 0 (tokenizers.Tokenizer.encode). `special = false` leaves out the tokens that the
---tokenizer puts around a text; `pair` is a second text behind it; `max` shortens, special tokens included, the longer
---of two texts first. Special tokens that stand in the text itself, such as `<|im_end|>`, are those tokens, as in the
---Python packages; with `parse_special = false`, for text of others, they are text like any other. With
---`offsets = true` a second list has the place of each token in the text (in `pair`, for its tokens): { first, last },
---as text:sub takes them; { 1, 0 } for those that were added.
---
---Any bytes are a text: a byte that is no UTF-8 keeps its own token where the tokenizer works on bytes, else U+FFFD
---stands for it.
---
---    local tok = tokenizers.load { vocab = { "[UNK]", "[CLS]", "[SEP]", "to", "be", "##e" }, kind = "bert" }
---    tok:encode "To be"
---    tok:encode("to be", { special = false, offsets = true })
---
---Errors: DC0101 for options, DC0802 for a text of characters that no token has, where there is no token for what is
---unknown.
---@param text string
---@param options? { special?: boolean, pair?: string, max?: integer, offsets?: boolean, parse_special?: boolean }
---@return integer[]
---@return integer[][]? # places, with offsets
function Tokenizer:encode(text, options)
  check("encode", self)
  check_text("encode", text)
  core.options("encode", options, "special", "pair", "max", "offsets", "parse_special")
  options = options or {}
  if options.pair ~= nil then
    check_text("encode", options.pair, "pair: a text")
  end
  local offsets = check_flag("encode", options, "offsets", false)
  local ids, first, last = core.tokenizer_encode(self._c, text, options.pair, {
    special = check_flag("encode", options, "special", true),
    parse_special = check_flag("encode", options, "parse_special", true),
    max = check_max("encode", options.max), offsets = offsets,
  })
  if not offsets then
    return ids
  end
  for i = 1, #ids do
    first[i] = { first[i], last[i] }
    if first[i][2] == 0 then
      first[i][1] = 1
    end
  end
  return ids, first
end

---How a batch is filled up, and what of encode holds for each text.
---@class deepc.tokenizers.BatchOptions
---@field pad? boolean|integer
---@field pad_id? integer
---@field side? "left"|"right"
---@field max? integer
---@field special? boolean
---@field parse_special? boolean

-- Rows of one length: n bytes a token, `fill` for those that are missing.
local function filled(rows, lengths, t, fill, left)
  for i, row in ipairs(rows) do
    local rest = fill:rep(t - lengths[i])
    rows[i] = left and rest .. row or row .. rest
  end
  return table.concat(rows)
end

local function check_batch(options)
  local side, pad = options.side, options.pad
  if side ~= nil and side ~= "left" and side ~= "right" then
    core.fail("ARG", "encode_batch", ('side is "left" or "right", not %s'):format(core.shown(side)))
  elseif pad ~= nil and type(pad) ~= "boolean" and (math.type(pad) ~= "integer" or pad < 1) then
    core.fail("ARG", "encode_batch", ("pad is true, false or a length of rows, not %s"):format(core.shown(pad)))
  end
end

---A batch of texts, ready for a model: ids i32[n, t]; a mask bool[n, t], true where a token is and false where it is
---filled up; types i32[n, t], 0 for the text and 1 for its pair. Rows are filled to the longest one, or to `pad`
---tokens, with the tokenizer's pad, or `pad_id`, at the side that its file says, or `side`; `pad = false` refuses rows
---of several lengths. A text may be two: { text, pair }.
---
---    local tok = tokenizers.load { vocab = { "[PAD]", "[UNK]", "[CLS]", "[SEP]", "to", "be" }, kind = "bert" }
---    local ids, mask, types = tok:encode_batch({ "to be", "be" })
---
---Errors: as encode; DC0101 where rows have to be filled and no token is known for it.
---@param texts (string|string[])[]
---@param options? deepc.tokenizers.BatchOptions
---@return deepc.Tensor # ids, i32[n, t]
---@return deepc.Tensor # mask, bool[n, t]
---@return deepc.Tensor # types, i32[n, t]
function Tokenizer:encode_batch(texts, options)
  local op = "encode_batch"
  check(op, self)
  core.options(op, options, "pad", "pad_id", "side", "max", "special", "parse_special")
  options = options or {}
  check_batch(options)
  if type(texts) ~= "table" or #texts == 0 then
    core.fail("ARG", op, "a list of texts is needed, not " .. core.describe(texts))
  end
  local how = { special = check_flag(op, options, "special", true), max = check_max(op, options.max),
    parse_special = check_flag(op, options, "parse_special", true) }
  local ids, types, lengths, t, different = {}, {}, {}, 0, false
  for i, text in ipairs(texts) do
    local one, pair = text, nil
    if type(text) == "table" then
      one, pair = check_text(op, text[1], ("text %d: a text"):format(i)),
        check_text(op, text[2], ("text %d: the second of two texts"):format(i))
    end
    check_text(op, one, ("text %d: a text"):format(i))
    ids[i], types[i], lengths[i] = core.tokenizer_encode(self._c, one, pair, how, true)
    t = math.max(t, lengths[i])
    different = different or lengths[i] ~= lengths[1]
  end
  if math.type(options.pad) == "integer" then
    if options.pad < t then
      core.fail("ARG", op, ("pad is %d, and a row has %d tokens"):format(options.pad, t), "max = n shortens texts")
    end
    different = different or t < options.pad
    t = options.pad
  end
  local pad = options.pad_id or self.pad
  if different and options.pad == false then
    core.fail("ARG", op, "rows have several lengths, and pad is false")
  elseif different and (math.type(pad) ~= "integer" or pad < 0 or pad >= self._size) then
    core.fail("ARG", op, pad == nil and "rows have to be filled up, and the tokenizer names no token for it"
      or ("pad_id is an id of 0 to %d, not %s"):format(self._size - 1, core.shown(pad)), "pad_id = tokenizer.eos")
  end
  local n, left = #texts, (options.side or self._left and "left" or "right") == "left"
  local mask = {}
  for i = 1, n do
    mask[i] = ("\1"):rep(lengths[i])
  end
  local shape = ("[%d, %d]"):format(n, t)
  return dc.frombytes(filled(ids, lengths, t, ("<i4"):pack(pad or 0), left), "i32" .. shape),
    dc.frombytes(filled(mask, lengths, t, "\0", left), "bool" .. shape),
    dc.frombytes(filled(types, lengths, t, ("<i4"):pack(0), left), "i32" .. shape)
end

local function list_of(op, ids)
  local list = core.kind(ids) == "tensor" and ids:flatten():totable() or ids
  if type(list) ~= "table" then
    core.fail("ARG", op, "ids are a list or a tensor, not " .. core.describe(ids))
  end
  return list
end

---The text of ids, a list or a tensor (tokenizers.Tokenizer.decode): special tokens are left out unless
---`skip_special = false`. Bytes that are no UTF-8, as where a character is cut off, become U+FFFD.
---
---    local tok = tokenizers.load { vocab = { "[UNK]", "[CLS]", "[SEP]", "to", "be", "##e" }, kind = "bert" }
---    tok:decode { 1, 3, 4, 2 }
---
---Errors: DC0101 for an id that no token has.
---@param ids integer[]|deepc.Tensor
---@param options? { skip_special?: boolean }
---@return string
function Tokenizer:decode(ids, options)
  check("decode", self)
  core.options("decode", options, "skip_special")
  local text = core.tokenizer_decode(self._c, list_of("decode", ids),
    check_flag("decode", options or {}, "skip_special", true))
  return text
end

---The id of a token as the file spells it, or nil (tokenizers.Tokenizer.token_to_id).
---
---    tokenizers.load({ vocab = { "[UNK]", "to", "be" }, kind = "bert" }):id "be"
---@param token string
---@return integer?
function Tokenizer:id(token)
  check("id", self)
  local id = core.tokenizer_id(self._c, check_text("id", token, "a token"))
  return id
end

---The token of an id as the file spells it, or nil (tokenizers.Tokenizer.id_to_token).
---
---    tokenizers.load({ vocab = { "[UNK]", "to", "be" }, kind = "bert" }):token(2)
---@param id integer
---@return string?
function Tokenizer:token(id)
  check("token", self)
  if math.type(id) ~= "integer" then
    core.fail("ARG", "token", "an id is a whole number, not " .. core.describe(id))
  end
  local token = core.tokenizer_token(self._c, id)
  return token
end

---Decodes ids one by one, as a model makes them.
---@class deepc.tokenizers.Stream
local Stream = {}
Stream.__index = Stream

---The text of ids that come one by one (tokenizers.decoders.DecodeStream): what stands of it each time, "" where a
---character is not complete yet.
---
---    local tok = tokenizers.load { vocab = { "[UNK]", "to", "be" }, kind = "bert" }
---    local stream = tok:stream()
---    for _, id in ipairs { 1, 2 } do print(stream:put(id)) end
---    print(stream:finish())
---
---Errors: as decode.
---@param options? { skip_special?: boolean }
---@return deepc.tokenizers.Stream
function Tokenizer:stream(options)
  check("stream", self)
  core.options("stream", options, "skip_special")
  return setmetatable({ _tokenizer = self, _ids = {}, _text = "", _from = 0,
    _skip = check_flag("stream", options or {}, "skip_special", true) }, Stream)
end

local function check_stream(op, s)
  if getmetatable(s) ~= Stream then
    core.fail("ARG", op, "a stream is needed, not " .. core.describe(s), ("with a colon: stream:%s(...)"):format(op))
  end
end

-- What is new of the text of the ids that are kept: decoders look at what is before a token, so some are kept.
local function new_text(s, all)
  local text = core.tokenizer_decode(s._tokenizer._c, s._ids, s._skip)
  if #text <= #s._text or not all and text:sub(-3) == "\u{FFFD}" then
    return ""
  end
  local new = text:sub(#s._text + 1)
  local kept = table.move(s._ids, s._from + 1, #s._ids, 1, {})
  local of_kept = core.tokenizer_decode(s._tokenizer._c, kept, s._skip)
  if of_kept ~= "" then -- else they say nothing of what comes next
    s._ids, s._text = kept, of_kept
  else
    s._text = text
  end
  s._from = #s._ids
  return new
end

---What the next id adds to the text; "" while a character is not complete.
---
---    tokenizers.load({ vocab = { "[UNK]", "to", "be" }, kind = "bert" }):stream():put(1)
---
---Errors: as Tokenizer:decode.
---@param id integer
---@return string
function Stream:put(id)
  check_stream("put", self)
  local n = #self._ids
  self._ids[n + 1] = id
  local ok, text = pcall(new_text, self, false)
  if not ok then
    self._ids[n + 1] = nil
    error(text, 0)
  end
  return text
end

---What is left: bytes of a character that did not become complete, as U+FFFD. The stream is empty afterwards.
---
---    tokenizers.load({ vocab = { "[UNK]", "to", "be" }, kind = "bert" }):stream():finish()
---@return string
function Stream:finish()
  check_stream("finish", self)
  local text = new_text(self, true)
  self._ids, self._text, self._from = {}, "", 0
  return text
end

core.tokenizer_class = Tokenizer -- chat.lua adds to it
core.entries(Stream)

return tokenizers
