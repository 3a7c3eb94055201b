-- Tokenizers of the metadata of GGUF files, as llama.cpp has them.

local tokenizers = require "deepc.tokenizers.class"
local json = require "deepc.json"
local _, core = ...

local OP = "from_gguf"
local KEY = "tokenizer.ggml."

local NORMAL, CONTROL, USER = 1, 3, 4 -- kinds of tokens

-- ---- pre-tokenizers of byte-level BPE ----

local function split(regex)
  return { type = "Split", pattern = { Regex = regex }, behavior = "Isolated", invert = false }
end

local function bytes(regex)
  return { type = "ByteLevel", add_prefix_space = false, trim_offsets = false, use_regex = regex }
end

local function sequence(...)
  return { type = "Sequence", pretokenizers = { ... } }
end

local CONTRACTIONS = [[(?i:'s|'t|'re|'ve|'m|'ll|'d)]]

local function cl100k(numbers)
  return sequence(split(CONTRACTIONS .. [[|[^\r\n\p{L}\p{N}]?\p{L}+|]] .. numbers
    .. [[| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+]]), bytes(false))
end

local UPPER, LOWER = "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]", "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"

local function o200k(contractions, numbers)
  local before = [[[^\r\n\p{L}\p{N}]?]]
  return sequence(split(before .. UPPER .. "*" .. LOWER .. "+" .. contractions .. "|" .. before .. UPPER .. "+" .. LOWER
    .. "*" .. contractions .. "|" .. numbers .. [[| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+]]), bytes(false))
end

local gpt2 = function() return bytes(true) end
local digits = function() return sequence({ type = "Digits", individual_digits = true }, bytes(true)) end
local llama3 = function() return cl100k [[\p{N}{1,3}]] end
local qwen2 = function() return cl100k [[\p{N}]] end
local gpt4o = function() return o200k(CONTRACTIONS .. "?", [[\p{N}{1,3}]]) end
local tekken = function() return o200k("", [[\p{N}]]) end

-- tokenizer.ggml.pre -> how a text is cut
local pre_tokenizers = {
  ["gpt-2"] = gpt2, ["phi-2"] = gpt2, ["jina-es"] = gpt2, ["jina-de"] = gpt2, ["jina-v2-es"] = gpt2,
  ["jina-v2-de"] = gpt2, mpt = gpt2, olmo = gpt2, jais = gpt2, ["modern-bert"] = gpt2,
  smollm = digits, starcoder = digits, refact = digits, ["command-r"] = digits, codeshell = digits, exaone = digits,
  ["llama-bpe"] = llama3, ["llama-v3"] = llama3, llama3 = llama3, ["smaug-bpe"] = llama3, dbrx = llama3,
  ["falcon3"] = llama3, ["glm4"] = llama3, ["chatglm-bpe"] = llama3,
  qwen2 = qwen2, stablelm2 = qwen2, ["deepseek-r1-qwen"] = qwen2, megrez = qwen2, hunyuan = qwen2,
  ["gpt-4o"] = gpt4o, llama4 = gpt4o, tekken = tekken,
}

-- Those that put the first token in front unless the file says otherwise, and take whole words that are tokens.
local begins = { ["llama-bpe"] = true, ["llama-v3"] = true, llama3 = true, falcon3 = true, tekken = true }

-- ---- fields ----

local function fail(key, text, hint)
  core.fail("FORMAT", OP, KEY .. key .. ": " .. text, hint)
end

local function field(metadata, key, kind)
  local v = metadata[KEY .. key]
  if v ~= nil and type(v) ~= kind then
    fail(key, ("a %s is needed, not %s"):format(kind, core.describe(v)))
  end
  return v
end

local function list(metadata, key)
  local v = field(metadata, key, "table")
  return v or fail(key, "is missing")
end

local function id(metadata, key, n)
  local v = metadata[KEY .. key]
  if v == nil then
    return nil
  end
  local whole = math.tointeger(v)
  if not whole or whole < 0 or whole >= n then
    fail(key, ("an id of 0 to %d is needed, not %s"):format(n - 1, core.shown(v)))
  end
  return whole
end

local function flag(metadata, key, default)
  local v = field(metadata, key, "boolean")
  if v == nil then
    return default
  end
  return v
end

-- Tokens that are found in texts before anything else: special ones, and those that the user defined.
local function added_tokens(metadata, tokens)
  local kinds, added = field(metadata, "token_type", "table"), {}
  if not kinds then
    return json.empty
  elseif #kinds ~= #tokens then
    fail("token_type", ("%d kinds for %d tokens"):format(#kinds, #tokens))
  end
  for i, kind in ipairs(kinds) do
    local token = tokens[i]
    if (kind == CONTROL or kind == USER) and type(token) == "string" and token ~= "" then
      added[#added + 1] = { id = i - 1, content = token, special = kind == CONTROL, normalized = false }
    end
  end
  return #added > 0 and added or json.empty
end

-- bos in front of a text, eos behind it.
local function template(tokens, ids, bos, eos)
  local names, special = {}, {}
  local function part(which)
    local name = tokens[ids[which] + 1]
    names[name] = { id = name, ids = { ids[which] }, tokens = { name } }
    return { SpecialToken = { id = name, type_id = 0 } }
  end
  local function around(...)
    local parts = {}
    for _, sequence_id in ipairs { ... } do
      if bos and ids.bos then
        parts[#parts + 1] = part "bos"
      end
      parts[#parts + 1] = { Sequence = { id = sequence_id, type_id = 0 } }
      if eos and ids.eos then
        parts[#parts + 1] = part "eos"
      end
    end
    return parts
  end
  special.type, special.single, special.pair = "TemplateProcessing", around "A", around("A", "B")
  special.special_tokens = names
  return special
end

-- ---- models ----

local models = {}

function models.gpt2(metadata, options, tokens, ids)
  local pre = options.pre or field(metadata, "pre", "string")
  local cut = pre_tokenizers[pre]
  if pre == nil then
    fail("pre", "is missing: it says how texts are cut", 'tokenizers.from_gguf(metadata, { pre = "gpt-2" })')
  elseif not cut then
    fail("pre", ("%s is not known"):format(core.shown(pre)))
  end
  return {
    pre_tokenizer = cut(), decoder = bytes(true),
    model = { type = "BPE", ignore_merges = begins[pre] or false },
    added_tokens = added_tokens(metadata, tokens),
    post_processor = template(tokens, ids, flag(metadata, "add_bos_token", begins[pre] or false),
      flag(metadata, "add_eos_token", false)),
  }, { tokens = tokens, merges = list(metadata, "merges") }
end

-- SentencePiece's BPE: the best score first, bytes for what has no token.
function models.llama(metadata, _, tokens, ids)
  local prefix = flag(metadata, "add_space_prefix", true)
  local space = { type = "Replace", pattern = { String = " " }, content = "\u{2581}" }
  local steps = { { type = "Replace", pattern = { String = "\u{2581}" }, content = " " }, { type = "ByteFallback" },
    { type = "Fuse" } }
  if prefix then
    steps[4] = { type = "Strip", content = " ", start = 1, stop = 0 }
  end
  return {
    normalizer = prefix and { type = "Sequence", normalizers = { { type = "Prepend", prepend = "\u{2581}" }, space } }
      or space,
    model = { type = "BPE", by_score = true, byte_fallback = true, unk_token = ids.unk and tokens[ids.unk + 1] or nil },
    decoder = { type = "Sequence", decoders = steps },
    added_tokens = added_tokens(metadata, tokens),
    post_processor = template(tokens, ids, flag(metadata, "add_bos_token", true),
      flag(metadata, "add_eos_token", false)),
  }, { tokens = tokens, scores = list(metadata, "scores") }
end

-- WordPiece: GGUF marks the tokens that begin a word, its own files those that continue one.
function models.bert(metadata, _, tokens, ids)
  local kinds, own = field(metadata, "token_type", "table") or {}, {}
  for i, token in ipairs(tokens) do
    if type(token) ~= "string" then
      fail("tokens", ("token %d is %s, not a text"):format(i - 1, core.describe(token)))
    end
    local word = token:match "^\u{2581}(.+)$"
    local special = kinds[i] ~= nil and kinds[i] ~= NORMAL or token:find "^%[.+%]$"
    own[i] = word or special and token or "##" .. token
  end
  local t = core.bert_tokenizer(OP, own, true)
  for key, value in pairs(ids) do
    t[key] = value
  end
  return t
end

-- SentencePiece's unigram model, of T5 and XLM-R.
function models.t5(metadata, _, tokens, ids)
  local map = metadata[KEY .. "precompiled_charsmap"]
  if type(map) == "table" then
    local parts = {}
    for i, byte in ipairs(map) do
      parts[i] = math.tointeger(byte) and string.char(byte & 255)
        or fail("precompiled_charsmap", ("byte %d is %s"):format(i, core.describe(byte)))
    end
    map = table.concat(parts)
  elseif map ~= nil and type(map) ~= "string" then
    fail("precompiled_charsmap", "bytes are needed, not " .. core.describe(map))
  end
  local kinds, scores = list(metadata, "token_type"), list(metadata, "scores")
  if #kinds ~= #tokens or not ids.unk then
    fail(ids.unk and "token_type" or "unknown_token_id", ids.unk and ("%d kinds for %d tokens"):format(#kinds, #tokens)
      or "is missing")
  end
  return core.sentencepiece_description {
    pieces = tokens, kinds = kinds, trainer = { kind = 1, unk = ids.unk, surface = " \u{2047} " },
    normalizer = { add_dummy_prefix = flag(metadata, "add_space_prefix", true), escape_whitespaces = true,
      remove_extra_whitespaces = flag(metadata, "remove_extra_whitespaces", false) },
    post = template(tokens, ids, flag(metadata, "add_bos_token", false), flag(metadata, "add_eos_token", true)),
  }, { tokens = tokens, scores = scores, sentencepiece = true, find_special = true, charsmap = map }
end

---A tokenizer of the metadata of a GGUF file: a table of its keys, `tokenizer.ggml.model` ("gpt2": byte-level BPE, cut
---as `tokenizer.ggml.pre` says; "llama": SentencePiece's BPE; "t5": its unigram model; "bert": WordPiece), tokens,
---token_type, merges or scores, the ids of special tokens, `tokenizer.chat_template`. Special tokens and those that
---the user defined are found in texts. `pre` stands in for a missing tokenizer.ggml.pre.
---
---    tokenizers.from_gguf {
---      ["tokenizer.ggml.model"] = "gpt2", ["tokenizer.ggml.pre"] = "gpt-2",
---      ["tokenizer.ggml.tokens"] = { "t", "o", "to" }, ["tokenizer.ggml.merges"] = { "t o" },
---    }
---
---Errors: DC0802 for a key that is missing or wrong, or asks for what is not known.
---@param metadata table<string, any>
---@param options? { pre?: string }
---@return deepc.tokenizers.Tokenizer
function tokenizers.from_gguf(metadata, options)
  if type(metadata) ~= "table" then
    core.fail("ARG", OP, "a table of metadata is needed, not " .. core.describe(metadata))
  end
  core.options(OP, options, "pre")
  local model = field(metadata, "model", "string")
  if model == nil then
    fail("model", "is missing: the metadata has no tokenizer")
  elseif not models[model] then
    fail("model", ("%s is not known"):format(core.shown(model)), '"gpt2", "llama", "t5" and "bert" are')
  end
  local tokens = list(metadata, "tokens")
  local ids = { bos = id(metadata, "bos_token_id", #tokens), eos = id(metadata, "eos_token_id", #tokens),
    unk = id(metadata, "unknown_token_id", #tokens), pad = id(metadata, "padding_token_id", #tokens) }
  local description, vocab = models[model](metadata, options or {}, tokens, ids)
  if vocab then
    description = type(description) == "string" and description or json.python(description)
    description = core.new_tokenizer(OP, "metadata", description, vocab, ids)
  end
  local t = description
  t._template = metadata["tokenizer.chat_template"]
  return t
end

