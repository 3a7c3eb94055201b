-- Tokenizers of files: tokenizer.json, a folder with one, vocab.txt of BERT, vocab.json and merges.txt.

local tokenizers = require "deepc.tokenizers.class"
local json = require "deepc.json"
local _, core = ...

local OP = "load"

local function lines(text)
  local list = {}
  for line in (text:sub(-1) == "\n" and text or text .. "\n"):gmatch "(.-)\r?\n" do
    list[#list + 1] = line
  end
  if list[#list] == "" then
    list[#list] = nil
  end
  return list
end

core.text_lines = lines

local function numbers_of(list)
  local ids = {}
  for i, token in ipairs(list) do
    ids[token] = ids[token] or i - 1
  end
  return ids
end

-- ---- BERT ----

-- Around a text: [CLS] text [SEP] pair [SEP], as far as the vocabulary has them.
local function bert(name, list, lowercase)
  local ids, added = numbers_of(list), {}
  for _, token in ipairs { "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]" } do
    if ids[token] then
      added[#added + 1] = { id = ids[token], content = token, special = true, normalized = false }
    end
  end
  local post
  if ids["[CLS]"] and ids["[SEP]"] then
    post = { type = "BertProcessing", sep = { "[SEP]", ids["[SEP]"] }, cls = { "[CLS]", ids["[CLS]"] } }
  end
  local description = json.python {
    normalizer = { type = "BertNormalizer", lowercase = lowercase },
    pre_tokenizer = { type = "BertPreTokenizer" },
    model = { type = "WordPiece", unk_token = "[UNK]", continuing_subword_prefix = "##",
      max_input_chars_per_word = 100 },
    decoder = { type = "WordPiece", prefix = "##", cleanup = true },
    added_tokens = #added > 0 and added or json.empty,
    post_processor = post,
  }
  return core.new_tokenizer(OP, name, description, { tokens = list }, { pad = ids["[PAD]"], unk = ids["[UNK]"] })
end

core.bert_tokenizer = bert

-- ---- GPT-2 ----

local function merges_of(name, merges)
  if type(merges) == "table" then
    return merges
  end
  local list = lines(core.read_file(OP, name))
  if list[1] and list[1]:find "^#version" then
    table.remove(list, 1)
  end
  return list
end

-- The text of an object stands in the description as it is; it was read once, so that it is one.
local function gpt2(vocab, merges, special)
  local text = type(vocab) == "string" and core.read_file(OP, vocab) or nil
  local name, list, ids = type(vocab) == "string" and vocab or "vocab", nil
  if text then
    ids = core.json_read(OP, name, text)
  else
    list, ids = vocab, numbers_of(vocab)
  end
  local added = {}
  for i, token in ipairs(special or { ids["<|endoftext|>"] and "<|endoftext|>" }) do
    if not ids[token] then
      core.fail("ARG", OP, ("special token %d, %s, is not in the vocabulary"):format(i, core.shown(token)))
    end
    added[i] = { id = ids[token], content = token, special = true, normalized = false }
  end
  local bytes = { type = "ByteLevel", add_prefix_space = false, trim_offsets = true, use_regex = true }
  local rest = json.python { pre_tokenizer = bytes, decoder = bytes, added_tokens = #added > 0 and added or json.empty }
  local description = ('%s, "model": {"type": "BPE"%s}}'):format(rest:sub(1, -2),
    text and ', "vocab": ' .. text or "")
  return core.new_tokenizer(OP, name, description, { tokens = list, merges = merges_of(merges, merges) },
    { eos = ids["<|endoftext|>"], bos = ids["<|endoftext|>"] })
end

-- ---- folders ----

-- A token of tokenizer_config.json: a text, or a table with its content.
local function token_of(config, key)
  local v = config[key]
  if type(v) == "table" then
    v = v.content
  end
  return type(v) == "string" and v or nil
end

-- bos, eos, pad, unk and the chat template that a folder's tokenizer_config.json names.
local function configure(tokenizer, folder)
  local path = folder .. "/tokenizer_config.json"
  if not core.file_exists(OP, path) then
    return tokenizer
  end
  local config = core.json_read(OP, path, core.read_file(OP, path))
  if type(config) ~= "table" then
    core.fail("FORMAT", OP, path .. ": an object is needed")
  end
  tokenizer._tokens = {}
  for _, key in ipairs { "bos", "eos", "pad", "unk" } do
    local token = token_of(config, key .. "_token")
    if token then
      tokenizer[key] = tokenizer:id(token) or tokenizer[key]
      tokenizer._tokens[key .. "_token"] = token
    end
  end
  tokenizer._template = config.chat_template
  local own = folder .. "/chat_template.jinja"
  if core.file_exists(OP, own) then
    tokenizer._template = core.read_file(OP, own)
  end
  return tokenizer
end

local function of_json(path)
  return core.new_tokenizer(OP, path, core.read_file(OP, path))
end

local function of_vocab(path, lowercase)
  return bert(path, lines(core.read_file(OP, path)), lowercase)
end

-- Does a folder's configuration say that letters keep their case?
local function keeps_case(folder)
  local path = folder .. "/tokenizer_config.json"
  local config = core.file_exists(OP, path) and core.json_read(OP, path, core.read_file(OP, path))
  return type(config) == "table" and config.do_lower_case == false
end

local function of_folder(folder)
  local function has(name)
    return core.file_exists(OP, folder .. "/" .. name)
  end
  if has "tokenizer.json" then
    return configure(of_json(folder .. "/tokenizer.json"), folder)
  elseif has "tokenizer.model" then
    return configure(core.sentencepiece(OP, folder .. "/tokenizer.model"), folder)
  elseif has "vocab.json" and has "merges.txt" then
    return configure(gpt2(folder .. "/vocab.json", folder .. "/merges.txt"), folder)
  elseif has "vocab.txt" then
    return configure(of_vocab(folder .. "/vocab.txt", not keeps_case(folder)), folder)
  end
  core.fail("FILE", OP, folder .. ": no tokenizer is there",
    "tokenizer.json, tokenizer.model, vocab.json with merges.txt, or vocab.txt")
end

local function of_table(source)
  core.options(OP, source, "vocab", "merges", "kind", "lowercase", "special")
  local vocab, merges, kind = source.vocab, source.merges, source.kind
  if type(vocab) ~= "string" and type(vocab) ~= "table" then
    core.fail("ARG", OP, "vocab is a path or a list of tokens, not " .. core.describe(vocab))
  elseif kind ~= nil and kind ~= "bert" and kind ~= "gpt2" then
    core.fail("ARG", OP, ('kind is "bert" or "gpt2", not %s'):format(core.shown(kind)))
  elseif source.lowercase ~= nil and type(source.lowercase) ~= "boolean" then
    core.fail("ARG", OP, "lowercase is true or false, not " .. core.describe(source.lowercase))
  elseif source.special ~= nil and type(source.special) ~= "table" then
    core.fail("ARG", OP, "special is a list of tokens, not " .. core.describe(source.special))
  end
  if (kind or merges ~= nil and "gpt2" or "bert") == "bert" then
    local list = type(vocab) == "string" and lines(core.read_file(OP, vocab)) or vocab
    return bert(type(vocab) == "string" and vocab or "vocab", list, source.lowercase ~= false)
  elseif type(merges) ~= "string" and type(merges) ~= "table" then
    core.fail("ARG", OP, "merges is a path or a list of merges, not " .. core.describe(merges))
  end
  return gpt2(vocab, merges, source.special)
end

---Tokens and merges, as paths or as lists.
---@class deepc.tokenizers.Vocabulary
---@field vocab string|string[]
---@field merges? string|string[]
---@field kind? "bert"|"gpt2"
---@field lowercase? boolean
---@field special? string[]

---A tokenizer of a file: Hugging Face's tokenizer.json, SentencePiece's .model (needs nothing else; it adds no special
---tokens), or BERT's vocab.txt, one token a line. Or of a folder, with what
---its tokenizer_config.json says of special tokens and of chats. Or of a vocabulary and merges as GPT-2 has them,
---{ vocab = "vocab.json", merges = "merges.txt" }, and of lists of tokens: kind = "bert" (WordPiece, [CLS] and [SEP]
---around a text, letters in lower case unless lowercase = false) or "gpt2" (byte-level BPE, with merges; special: those
---of its tokens that are).
---
---    tokenizers.load { vocab = { "[UNK]", "[CLS]", "[SEP]", "to", "be" }, kind = "bert" }
---    tokenizers.load { vocab = { "t", "o", "to", "\u{120}" }, merges = { "t o" } }
---
---Errors: DC0801 where a file cannot be read, DC0802 where it is damaged or asks for what is not known, by its name.
---@param source string|deepc.tokenizers.Vocabulary
---@return deepc.tokenizers.Tokenizer
function tokenizers.load(source)
  if type(source) == "table" and not core.kind(source) then
    local t = of_table(source)
    return t
  elseif type(source) ~= "string" then
    core.fail("ARG", OP, "a path or a table with a vocabulary is needed, not " .. core.describe(source))
  end
  local t
  if source:find "%.json$" then
    t = of_json(source)
  elseif source:find "%.txt$" then
    t = of_vocab(source, true)
  elseif source:find "%.model$" then
    t = core.sentencepiece(OP, source)
  else
    t = of_folder((source:gsub("/+$", "")))
  end
  return t
end
