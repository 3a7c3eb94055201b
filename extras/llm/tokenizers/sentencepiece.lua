-- SentencePiece's files: a message of protocol buffers with pieces, what the model is, how texts are normalized.

local json = require "deepc.json"
local _, core = ...

local NORMAL, CONTROL, BYTE = 1, 3, 6 -- kinds of pieces
local UNIGRAM, BPE = 1, 2
local names = { "UNIGRAM", "BPE", "WORD", "CHAR" }

-- ---- protocol buffers ----

-- A number in groups of seven bits; nil where it is cut off or longer than 64.
local function varint(s, at, stop)
  local n, shift = 0, 0
  while at < stop and shift < 64 do
    local byte = s:byte(at)
    n = n | (byte & 127) << shift
    at = at + 1
    if byte < 128 then
      return n, at
    end
    shift = shift + 7
  end
end

local sizes = { [1] = 8, [5] = 4 }

-- Fields of a message from `at` to before `stop`: number, value; of texts and messages the first byte and the one
-- behind.
local function fields(s, at, stop, fail)
  return function()
    if at >= stop then
      return nil
    end
    local tag, next_at = varint(s, at, stop)
    local kind, value, last = tag and tag & 7, nil, nil
    if kind == 0 then
      value, next_at = varint(s, next_at, stop)
    elseif kind == 2 then
      value, next_at = varint(s, next_at, stop)
      if value then
        value, last = next_at, value >= 0 and value <= stop - next_at and next_at + value
        next_at = last
      end
    elseif kind and sizes[kind] then
      value, next_at = next_at, next_at + sizes[kind]
    end
    if not value or not next_at or next_at > stop then
      fail(("is no SentencePiece model, or cut off: at byte %d"):format(at - 1))
    end
    at = next_at
    return tag >> 3, value, last
  end
end

-- ---- its parts ----

local function read_piece(s, at, stop, fail)
  local text, score, kind = "", 0.0, NORMAL
  for field, value, last in fields(s, at, stop, fail) do
    if field == 1 and last then
      text = s:sub(value, last - 1)
    elseif field == 2 and not last then
      score = ("<f"):unpack(s, value)
    elseif field == 3 and not last then
      kind = value
    end
  end
  return text, score, kind
end

local function read_normalizer(s, at, stop, fail)
  local n = { charsmap = "", add_dummy_prefix = true, remove_extra_whitespaces = true, escape_whitespaces = true }
  for field, value, last in fields(s, at, stop, fail) do
    if field == 2 and last then
      n.charsmap = s:sub(value, last - 1)
    elseif field == 3 then
      n.add_dummy_prefix = value ~= 0
    elseif field == 4 then
      n.remove_extra_whitespaces = value ~= 0
    elseif field == 5 then
      n.escape_whitespaces = value ~= 0
    end
  end
  return n
end

local function read_trainer(s, at, stop, fail)
  local t = { kind = UNIGRAM, unk = 0, bos = 1, eos = 2, pad = -1, surface = " \u{2047} " }
  local ids = { [40] = "unk", [41] = "bos", [42] = "eos", [43] = "pad" }
  for field, value, last in fields(s, at, stop, fail) do
    if field == 3 then
      t.kind = value
    elseif field == 24 then
      t.suffix = value ~= 0
    elseif field == 35 then
      t.fallback = value ~= 0
    elseif field == 44 and last then
      t.surface = s:sub(value, last - 1)
    elseif ids[field] then
      t[ids[field]] = value
    end
  end
  return t
end

local function read_model(s, fail)
  local m = { pieces = {}, scores = {}, kinds = {} }
  local spans = {}
  for field, value, last in fields(s, 1, #s + 1, fail) do
    if field == 1 and last then
      local i = #m.pieces + 1
      m.pieces[i], m.scores[i], m.kinds[i] = read_piece(s, value, last, fail)
      if math.type(m.kinds[i]) ~= "integer" or m.kinds[i] < NORMAL or m.kinds[i] > BYTE then
        fail(("piece %d has a kind that is not known"):format(i - 1))
      end
    elseif field <= 5 and last then
      spans[field] = { value, last }
    end
  end
  local function part(field, read)
    local span = spans[field] or { 1, 1 }
    return read(s, span[1], span[2], fail)
  end
  m.trainer, m.normalizer = part(2, read_trainer), part(3, read_normalizer)
  if part(5, read_normalizer).charsmap ~= "" then
    fail "has a denormalizer, which is not known"
  elseif m.trainer.kind ~= UNIGRAM and m.trainer.kind ~= BPE then
    fail(("the model %s is not known"):format(names[m.trainer.kind] or tostring(m.trainer.kind)))
  elseif #m.pieces == 0 then
    fail "has no pieces"
  end
  return m
end

-- ---- its description ----

-- m: pieces, scores, kinds, trainer, normalizer, and of GGUF post.
local function description(m)
  local n, added = m.normalizer, {}
  for i, kind in ipairs(m.kinds) do
    if kind == CONTROL then
      added[#added + 1] = { id = i - 1, content = m.pieces[i], special = true, normalized = false }
    end
  end
  local unknown = m.pieces[m.trainer.unk + 1]
  local model = { type = "Unigram", unk_id = m.trainer.unk, byte_fallback = m.trainer.fallback or false,
    as_float = true, types = m.kinds }
  if m.trainer.kind == BPE then
    model = { type = "BPE", by_score = true, fuse_unk = true, byte_fallback = m.trainer.fallback or false,
      unk_token = unknown, types = m.kinds }
  end
  return json.python {
    normalizer = { type = "SentencePiece", add_dummy_prefix = n.add_dummy_prefix,
      remove_extra_whitespaces = n.remove_extra_whitespaces, escape_whitespaces = n.escape_whitespaces,
      treat_whitespace_as_suffix = m.trainer.suffix or false },
    model = model, post_processor = m.post, added_tokens = #added > 0 and added or json.empty,
    decoder = { type = "SentencePiece", unknown = unknown or "", surface = m.trainer.surface,
      strip = n.add_dummy_prefix or n.remove_extra_whitespaces, all = n.remove_extra_whitespaces },
  }
end

core.sentencepiece_description = description

-- The tokenizer of a file. As in the package, its special tokens are not found in texts, and none are put around them.
core.sentencepiece = function(op, path)
  local function fail(text)
    core.fail("FORMAT", op, path .. ": " .. text)
  end
  local m = read_model(core.read_file(op, path), fail)
  local ids = {}
  for _, key in ipairs { "unk", "bos", "eos", "pad" } do
    local id = m.trainer[key]
    if id >= 0 and id < #m.pieces and m.kinds[id + 1] ~= NORMAL then
      ids[key] = id
    end
  end
  if not ids.unk then
    fail(("the id of the unknown piece is %d, which is none of %d"):format(m.trainer.unk, #m.pieces))
  end
  return core.new_tokenizer(op, path, description(m), { tokens = m.pieces, scores = m.scores, sentencepiece = true,
    charsmap = m.normalizer.charsmap ~= "" and m.normalizer.charsmap or nil }, ids)
end
