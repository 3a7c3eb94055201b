-- deepc.tokenizers: what the Python packages make of awkward texts (tests/lua/tokenizers, made by
-- scripts/tokenizer_peers.py), batches, streams, special tokens, metadata of GGUF, files that are wrong.
local lu = require "luaunit"
local dc = require "deepc"
local data = require "deepc.data"
local tokenizers = require "deepc.tokenizers"

local folder = (arg[0]:match "^(.*)/tests/[^/]*$" or ".") .. "/tests/lua/tokenizers/"

local function fails(code, text, fn, ...)
  local ok, err = pcall(fn, ...)
  lu.assertFalse(ok, "no error")
  lu.assertStrContains(tostring(err), text)
  lu.assertEquals(err.code, code)
end

local function numbers(s)
  local t = {}
  for i = 1, #s // 4 do
    t[i] = ("<I4"):unpack(s, 4 * i - 3)
  end
  return t
end

-- text, ids, first and last bytes of the tokens, what they are decoded to
local function cases(name)
  local bytes, at = data.read_text(folder .. name .. ".gz"), 1
  return function()
    if at > #bytes then
      return nil
    end
    local text, ids, places, decoded
    text, ids, places, decoded, at = ("<s4s4s4s4"):unpack(bytes, at)
    return text, numbers(ids), numbers(places), decoded
  end
end

TestPeers = {}

local function check(name, tok)
  for text, ids, places, decoded in cases(name) do
    local shown = ("%s: %q"):format(name, text)
    lu.assertEquals(tok:encode(text), ids, shown)
    local again, at = tok:encode(text, { offsets = true })
    lu.assertEquals(again, ids, shown)
    for i = 1, #places // 2 do -- SentencePiece tells none
      local first, last = places[2 * i - 1] + 1, places[2 * i]
      lu.assertTrue(at[i][1] == first and at[i][2] == last or first > last and at[i][1] > at[i][2], shown)
    end
    lu.assertEquals(tok:decode(ids), decoded, shown)
    local stream, pieces = tok:stream(), {}
    for i, id in ipairs(ids) do
      pieces[i] = stream:put(id)
      lu.assertTrue(pieces[i] == "" or utf8.len(pieces[i]) ~= nil)
    end
    lu.assertEquals(table.concat(pieces) .. stream:finish(), decoded, shown)
  end
end

for _, name in ipairs { "gpt2", "roberta", "llama3", "qwen2", "bert", "llama2", "unigram", "t5", "words", "suffix" } do
  TestPeers["test_" .. name] = function()
    check(name .. ".json", tokenizers.load(folder .. name .. ".json"))
  end
end

for _, name in ipairs { "sp_unigram", "sp_bpe", "sp_suffix" } do
  TestPeers["test_" .. name] = function()
    check(name .. ".model", tokenizers.load(folder .. name .. ".model"))
  end
end

-- The only one whose pattern is libpcre2's.
function TestPeers:test_o200k()
  local ok, tok = pcall(tokenizers.load, folder .. "o200k.json")
  if not ok then
    lu.assertStrContains(tostring(tok), "libpcre2-8.so.0")
    lu.skip "libpcre2-8 is missing"
  end
  check("o200k.json", tok)
end

-- Regular expressions cut where those of the package do: at code points at which properties begin or end; random ones.
function TestPeers:test_patterns()
  if not pcall(tokenizers.load, folder .. "o200k.json") then lu.skip "libpcre2-8 is missing" end
  local told = {}
  local compare = assert(loadfile(folder .. "patterns.lua"))()
  local same, differ, refused = compare(folder .. "patterns.gz", function(pattern, why)
    told[#told + 1] = pattern .. ": " .. why
  end)
  lu.assertEquals(told, {})
  lu.assertEquals({ differ, refused }, { 0, 4 }) -- without case, with characters of two letters
  lu.assertTrue(same > 400)
end

TestEncode = {}

local function small()
  return tokenizers.load {
    vocab = { "[PAD]", "[UNK]", "[CLS]", "[SEP]", "to", "be", "##e", "or", "not" }, kind = "bert",
  }
end

function TestEncode:test_special_tokens_pairs_and_places()
  local tok = small()
  lu.assertEquals(tok:encode "To be", { 2, 4, 5, 3 })
  lu.assertEquals(tok:encode("to bee", { special = false }), { 4, 5, 6 })
  lu.assertEquals(tok:encode("to", { pair = "be or" }), { 2, 4, 3, 5, 7, 3 })
  local ids, at = tok:encode("to  bee", { offsets = true })
  lu.assertEquals(ids, { 2, 4, 5, 6, 3 })
  lu.assertEquals(at, { { 1, 0 }, { 1, 2 }, { 5, 6 }, { 7, 7 }, { 1, 0 } })
  lu.assertEquals(tok:encode "[SEP]", { 2, 3, 3 })
  lu.assertEquals(tok:encode("[SEP]", { parse_special = false, special = false }), { 1, 1, 1 })
end

function TestEncode:test_max_shortens()
  local tok = small()
  lu.assertEquals(tok:encode("to be or not", { max = 4 }), { 2, 4, 5, 3 })
  lu.assertEquals(tok:encode("to be or not", { max = 2 }), { 2, 3 })
  lu.assertEquals(tok:encode("to be or not", { max = 3, special = false }), { 4, 5, 7 })
  lu.assertEquals(tok:encode("to be or not", { pair = "be", max = 6 }), { 2, 4, 5, 3, 5, 3 })
  lu.assertEquals(tok:encode("to", { pair = "to be or not", max = 6 }), { 2, 4, 3, 4, 5, 3 })
  fails("DC0101", "max is 1, and 2 special tokens are added", tok.encode, tok, "to", { max = 1 })
end

function TestEncode:test_fields_and_tokens()
  local tok = small()
  lu.assertEquals(#tok, 9)
  lu.assertEquals(tok:id "be", 5)
  lu.assertNil(tok:id "bee")
  lu.assertEquals(tok:token(6), "##e")
  lu.assertNil(tok:token(9))
  lu.assertNil(tok:token(-1))
  lu.assertEquals({ tok.pad, tok.unk }, { 0, 1 })
end

function TestEncode:test_batches()
  local tok = small()
  local ids, mask, types = tok:encode_batch { "to be or", "to", { "be", "not" } }
  lu.assertEquals(ids:totable(), { { 2, 4, 5, 7, 3 }, { 2, 4, 3, 0, 0 }, { 2, 5, 3, 8, 3 } })
  lu.assertEquals(mask:totable()[2], { true, true, true, false, false })
  lu.assertEquals(types:totable(), { { 0, 0, 0, 0, 0 }, { 0, 0, 0, 0, 0 }, { 0, 0, 0, 1, 1 } })
  lu.assertEquals({ ids.dtype, mask.dtype, types.dtype }, { "i32", "bool", "i32" })
  ids, mask = tok:encode_batch({ "to" }, { pad = 5, side = "left", pad_id = 1 })
  lu.assertEquals(ids:totable(), { { 1, 1, 2, 4, 3 } })
  lu.assertEquals(mask:totable(), { { false, false, true, true, true } })
  lu.assertEquals(tok:encode_batch({ "to", "be" }, { pad = false }):totable(), { { 2, 4, 3 }, { 2, 5, 3 } })
  fails("DC0101", "rows have several lengths, and pad is false", tok.encode_batch, tok, { "to", "to be" },
    { pad = false })
  fails("DC0101", "pad is 2, and a row has 3 tokens", tok.encode_batch, tok, { "to" }, { pad = 2 })
  fails("DC0101", "text 2: a text is needed, not the number 1", tok.encode_batch, tok, { "to", 1 })
  fails("DC0101", "a list of texts is needed", tok.encode_batch, tok, {})
  tok = tokenizers.load { vocab = { "a", "b", "ab" }, merges = { "a b" } }
  fails("DC0101", "names no token for it", tok.encode_batch, tok, { "a", "ba" })
  lu.assertEquals(tok:encode_batch({ "a", "ba" }, { pad_id = 2 }):totable(), { { 0, 2 }, { 1, 0 } })
end

function TestEncode:test_decode_takes_tensors_and_refuses_other_ids()
  local tok = small()
  lu.assertEquals(tok:decode(dc.tensor({ 2, 4, 5, 6, 3 }, "i32")), "to bee")
  lu.assertEquals(tok:decode({ 2, 4, 3 }, { skip_special = false }), "[CLS] to [SEP]")
  fails("DC0101", "id 2 is 9: ids are 0 to 8", tok.decode, tok, { 0, 9 })
  fails("DC0101", "id 1 is -1", tok.decode, tok, { -1 })
  fails("DC0101", "ids are a list or a tensor, not the string 'to'", tok.decode, tok, "to")
  local stream = tok:stream()
  fails("DC0101", "id 1 is 99", stream.put, stream, 99)
  lu.assertEquals(stream:put(4) .. stream:put(5), "to be")
end

-- Bytes that are no UTF-8 are tokens of their own where bytes are, else U+FFFD.
function TestEncode:test_any_bytes()
  local tok = tokenizers.load(folder .. "gpt2.json")
  local text = "a\xff\xc3b\xe4\xb8 \xf0\x9f\x98"
  local ids, at = tok:encode(text, { offsets = true })
  for i = 1, #ids do
    lu.assertTrue(at[i][1] <= at[i][2])
  end
  lu.assertEquals(tok:decode(ids), "a\u{FFFD}\u{FFFD}b\u{FFFD} \u{FFFD}")
  local bert = tokenizers.load(folder .. "bert.json")
  lu.assertEquals(bert:encode "a \xe4\xb8 b", bert:encode "a \u{FFFD} b")
end

-- A word of a hundred thousand letters takes no quadratic time.
function TestEncode:test_long_words()
  for _, name in ipairs { "gpt2", "llama2", "unigram", "bert", "qwen2" } do
    local tok, from = tokenizers.load(folder .. name .. ".json"), os.clock()
    lu.assertTrue(#tok:encode(("abcdefghij"):rep(10000)) > 0)
    lu.assertTrue(#tok:encode(("a\u{301}\u{323}"):rep(20000)) > 0)
    lu.assertTrue(#tok:encode("a" .. ("\u{301}\u{323}"):rep(20000)) > 0)
    lu.assertTrue(#tok:encode((" "):rep(100000)) > 0)
    lu.assertTrue(os.clock() - from < 20, name)
  end
end

TestGguf = {}

local function metadata(more)
  local m = {
    ["tokenizer.ggml.model"] = "gpt2", ["tokenizer.ggml.pre"] = "gpt-2",
    ["tokenizer.ggml.tokens"] = { "<s>", "t", "o", "to", "\u{120}", "\u{120}to", "<u>" },
    ["tokenizer.ggml.merges"] = { "t o", "\u{120} to" },
    ["tokenizer.ggml.token_type"] = { 3, 1, 1, 1, 1, 1, 4 },
    ["tokenizer.ggml.bos_token_id"] = 0, ["tokenizer.ggml.eos_token_id"] = 0,
  }
  for key, value in pairs(more or {}) do
    m["tokenizer.ggml." .. key] = value
  end
  return m
end

function TestGguf:test_byte_level()
  local tok = tokenizers.from_gguf(metadata())
  lu.assertEquals(tok:encode "to to<s>t<u>", { 3, 5, 0, 1, 6 })
  lu.assertEquals(tok:encode("<s>", { parse_special = false }), {})
  lu.assertEquals({ tok.bos, tok.eos }, { 0, 0 })
  tok = tokenizers.from_gguf(metadata { add_bos_token = true, add_eos_token = true })
  lu.assertEquals(tok:encode "to", { 0, 3, 0 })
end

function TestGguf:test_scores()
  local tok = tokenizers.from_gguf {
    ["tokenizer.ggml.model"] = "llama",
    ["tokenizer.ggml.tokens"] = { "<unk>", "<s>", "</s>", "<0xC3>", "<0xA9>", "\u{2581}", "t", "o", "\u{2581}to",
      "to" },
    ["tokenizer.ggml.scores"] = { 0, 0, 0, 0, 0, -5, -6, -7, -2, -1 },
    ["tokenizer.ggml.token_type"] = { 2, 3, 3, 6, 6, 1, 1, 1, 1, 1 },
    ["tokenizer.ggml.bos_token_id"] = 1, ["tokenizer.ggml.unknown_token_id"] = 0,
  }
  lu.assertEquals(tok:encode "to", { 1, 8 })
  lu.assertEquals(tok:encode("ot to\u{E9}x", { special = false }), { 5, 7, 6, 8, 3, 4, 0 })
  lu.assertEquals(tok:decode { 1, 8, 3, 4 }, "to\u{E9}")
end

function TestGguf:test_unigram()
  local m = {
    ["tokenizer.ggml.model"] = "t5",
    ["tokenizer.ggml.tokens"] = { "<pad>", "</s>", "<unk>", "\u{2581}", "t", "o", "\u{2581}to", "be" },
    ["tokenizer.ggml.scores"] = { 0, 0, 0, -3, -4, -4, -2, -1 },
    ["tokenizer.ggml.token_type"] = { 3, 3, 2, 1, 1, 1, 1, 4 },
    ["tokenizer.ggml.unknown_token_id"] = 2, ["tokenizer.ggml.eos_token_id"] = 1,
  }
  local tok = tokenizers.from_gguf(m)
  lu.assertEquals(tok:encode "to  otbe</s>x", { 6, 3, 3, 5, 4, 7, 1, 3, 2, 1 })
  lu.assertEquals(tok:decode { 6, 3, 7, 2 }, "to be \u{2047} ")
  m["tokenizer.ggml.remove_extra_whitespaces"] = true
  lu.assertEquals(tokenizers.from_gguf(m):encode " to  ot ", { 6, 3, 5, 4, 1 })
  m["tokenizer.ggml.precompiled_charsmap"] = { 1, 2 }
  fails("DC0802", "the precompiled map of characters is cut off", tokenizers.from_gguf, m)
  m["tokenizer.ggml.precompiled_charsmap"] = { "x" }
  fails("DC0802", "tokenizer.ggml.precompiled_charsmap: byte 1 is the string 'x'", tokenizers.from_gguf, m)
  m["tokenizer.ggml.unknown_token_id"] = nil
  m["tokenizer.ggml.precompiled_charsmap"] = nil
  fails("DC0802", "tokenizer.ggml.unknown_token_id: is missing", tokenizers.from_gguf, m)
end

-- Sums of scores are rounded to floats before they are compared: of equal ones the first stays (sentencepiece 0.2.3).
function TestGguf:test_blanks_that_tie()
  local blank = "\u{2581}"
  local tok = tokenizers.from_gguf {
    ["tokenizer.ggml.model"] = "t5",
    ["tokenizer.ggml.tokens"] = { "<unk>", blank:rep(4), blank:rep(2), blank:rep(3), blank },
    ["tokenizer.ggml.scores"] = { 0, -4 / 3, -2, -3, -1.5 }, ["tokenizer.ggml.token_type"] = { 2, 1, 1, 1, 1 },
    ["tokenizer.ggml.unknown_token_id"] = 0, ["tokenizer.ggml.add_space_prefix"] = false,
    ["tokenizer.ggml.add_eos_token"] = false,
  }
  lu.assertEquals(tok:encode((" "):rep(6)), { 2, 1 })
  lu.assertEquals(tok:encode((" "):rep(11)), { 3, 1, 1 })
end

function TestGguf:test_wordpiece()
  local tok = tokenizers.from_gguf {
    ["tokenizer.ggml.model"] = "bert",
    ["tokenizer.ggml.tokens"] = { "[PAD]", "[UNK]", "[CLS]", "[SEP]", "\u{2581}to", "\u{2581}be", "e" },
    ["tokenizer.ggml.token_type"] = { 3, 2, 3, 3, 1, 1, 1 },
  }
  lu.assertEquals(tok:encode "To bee", { 2, 4, 5, 6, 3 })
end

function TestGguf:test_what_is_wrong_is_named()
  local function wrong(text, more)
    fails("DC0802", text, tokenizers.from_gguf, metadata(more))
  end
  wrong("tokenizer.ggml.model: 'rwkv' is not known", { model = "rwkv" })
  wrong("tokenizer.ggml.pre: 'viking' is not known", { pre = "viking" })
  wrong("tokenizer.ggml.model: a string is needed, not the number 1", { model = 1 })
  wrong("tokenizer.ggml.token_type: 1 kinds for 7 tokens", { token_type = { 1 } })
  wrong("tokenizer.ggml.eos_token_id: an id of 0 to 6 is needed, not 7", { eos_token_id = 7 })
  wrong("tokenizer.ggml.add_bos_token: a boolean is needed, not the number 1", { add_bos_token = 1 })
  wrong("merge 0: 'x' is not in vocab", { merges = { "x o" } })
  wrong("merge 0, 'to', is not two texts with a blank between them", { merges = { "to" } })
  local m = metadata()
  m["tokenizer.ggml.tokens"][3] = 5
  fails("DC0101", "tokens 3 is number, not a text", tokenizers.from_gguf, m)
  m = metadata()
  m["tokenizer.ggml.pre"] = nil
  fails("DC0802", "tokenizer.ggml.pre: is missing", tokenizers.from_gguf, m)
  lu.assertEquals(tokenizers.from_gguf(m, { pre = "gpt-2" }):encode "to", { 3 })
  fails("DC0802", "tokenizer.ggml.model: is missing", tokenizers.from_gguf, {})
  fails("DC0101", "a table of metadata is needed, not nil", tokenizers.from_gguf)
end

TestFiles = {}

local path = os.tmpname()
os.remove(path)
path = path .. ".json"

local function write(text)
  local f <close> = assert(io.open(path, "wb"))
  f:write(text)
end

function TestFiles:tearDown()
  os.remove(path)
end

local function wrong(text, json)
  write(json)
  fails("DC0802", path .. ": " .. text, tokenizers.load, path)
end

local BPE = '"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}'

-- Of the first token the decoder Metaspace drops every mark, unless it never prepends one.
function TestFiles:test_marks_of_the_first_token()
  for scheme, texts in pairs { always = { "a b", "ab ", " a", "ab" }, first = { "a b", "ab ", " a", "ab" },
    never = { "  a b", " a b ", "  a", "a b" } } do
    write(('{"decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "%s", "split": true}, "model": ' ..
      '{"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, "▁▁a": 1, "▁b": 2, "▁a▁": 3, "b▁": 4, "▁": 5, ' ..
      '"▁a": 6, "a▁b": 7}}}'):format(scheme))
    local tok = tokenizers.load(path)
    for i, ids in ipairs { { 1, 2 }, { 3, 4 }, { 5, 6 }, { 7 } } do
      lu.assertEquals(tok:decode(ids), texts[i])
    end
  end
end

-- Added tokens that are normalized are what normalizing leaves of them, but for the id of a text.
function TestFiles:test_added_tokens_that_are_normalized()
  write [[{"normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "WhitespaceSplit"}, "added_tokens": [
    {"id": 2, "content": "Bar", "normalized": true}, {"id": 3, "content": "Zip", "normalized": false},
    {"id": 4, "content": "Sp", "normalized": true, "special": true}, {"id": 5, "content": "ok", "special": true}],
    "model": {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, "a": 1}}}]]
  local tok = tokenizers.load(path)
  local ids = tok:encode "BAR A Bar bar Zip zip SP ok"
  lu.assertEquals(ids, { 2, 1, 2, 2, 3, 0, 4, 5 })
  lu.assertEquals(tok:decode(ids), "bar a bar bar Zip ? sp")
  lu.assertEquals({ tok:id "Bar", tok:token(2), tok:token(3), tok:token(4) }, { 2, "bar", "Zip", "sp" })
  lu.assertNil(tok:id "bar")
end

function TestFiles:test_what_is_wrong_is_named()
  wrong("at byte 0: a value expected, not the end", "")
  wrong("at byte 1: a string expected, not the end", "{")
  wrong("a tokenizer is an object, not a list", "[]")
  wrong("there is no model", "{}")
  wrong("a tokenizer has a field 'version' twice", '{"version": 1, "version": 2}')
  wrong("a tokenizer has a field 'moon', which is not known", '{"moon": 1}')
  wrong("the model 'GPT' is not known", '{"model": {"type": "GPT"}}')
  wrong("vocab of the model is an object, not nothing", '{"model": {"type": "BPE"}}')
  wrong("the model BPE has a field 'moon', which is not known", '{"model": {"type": "BPE", "moon": 1}}')
  wrong("dropout of merges is not known", '{"model": {"type": "BPE", "dropout": 0.1, "vocab": {}, "merges": []}}')
  wrong("the id 0 is that of two tokens, 'a' and 'b'", '{"model": {"type": "BPE", "vocab": {"a": 0, "b": 0}}}')
  wrong("the id of the token 'a' is no whole number, or far above", '{"model": {"type": "BPE", "vocab": {"a": 1e9}}}')
  wrong("merge 0: 'c' is not in vocab", '{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a c"]}}')
  wrong("merge 0 is not two texts", '{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [["a"]]}}')
  wrong("the normalizer 'Shout' is not known", '{"normalizer": {"type": "Shout"}, ' .. BPE .. "}")
  wrong("the pre-tokenizer 'UnicodeScripts' is not known",
    '{"pre_tokenizer": {"type": "UnicodeScripts"}, ' .. BPE .. "}")
  wrong("the decoder 'nothing' is not known", '{"decoder": {}, ' .. BPE .. "}")
  wrong("Digits has a field 'hex', which is not known",
    '{"pre_tokenizer": {"type": "Digits", "hex": true}, ' .. BPE .. "}")
  wrong("individual_digits is true or false, not a number",
    '{"pre_tokenizer": {"type": "Digits", "individual_digits": 1}, ' .. BPE .. "}")
  wrong("behavior is 'Upwards', which is not known",
    '{"pre_tokenizer": {"type": "Split", "pattern": {"String": "a"}, "behavior": "Upwards"}, ' .. BPE .. "}")
  wrong("the normalizer 'SentencePiece' is not known", '{"normalizer": {"type": "SentencePiece"}, ' .. BPE .. "}")
  wrong("the added token 'x' has the id 999999: that is far above",
    '{"added_tokens": [{"id": 999999, "content": "x"}], ' .. BPE .. "}")
  wrong("the id 0 is that of two tokens, 'a' and 'x'", '{"added_tokens": [{"id": 0, "content": "x"}], ' .. BPE .. "}")
  wrong("the token 'a' has two ids, 0 and 3", '{"added_tokens": [{"id": 3, "content": "a"}], ' .. BPE .. "}")
  wrong("the post-processor 'Loud' is not known", '{"post_processor": {"type": "Loud"}, ' .. BPE .. "}")
  wrong("sep of the post-processor has the id 7, and tokens have 0 to 2",
    '{"post_processor": {"type": "BertProcessing", "sep": ["a", 7], "cls": ["a", 0]}, ' .. BPE .. "}")
  wrong("the precompiled map of characters is cut off",
    '{"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAA="}, ' .. BPE .. "}")
  wrong("truncation at the left is not known", '{"truncation": {"max_length": 3, "direction": "Left"}, ' .. BPE .. "}")
  wrong("at byte 65: lists and objects in each other are at most 64 deep", ("["):rep(100))
  wrong("at byte 2: UTF-8 expected, not byte 255", '["\xff"]')
end

function TestFiles:test_a_text_that_no_token_has()
  write '{"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "?"}}'
  local tok = tokenizers.load(path)
  lu.assertEquals(tok:encode "a", { 0 })
  fails("DC0802", "'b' is in no token, and the tokenizer has none for what is unknown", tok.encode, tok, "b")
  lu.assertEquals(tok:encode "a", { 0 })
end

local function write_model(text)
  local f <close> = assert(io.open(path .. ".model", "wb"))
  f:write(text)
end

function TestFiles:test_sentencepiece_files_that_are_wrong()
  local name = path .. ".model"
  local function refused(text, bytes)
    write_model(bytes)
    fails("DC0802", name .. ": " .. text, tokenizers.load, name)
  end
  local piece = "\10\6\10\1a\x18\x02\x15"
  refused("has no pieces", "")
  refused("is no SentencePiece model, or cut off: at byte 0", "\10")
  refused("is no SentencePiece model, or cut off: at byte 0", "\10\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\1")
  refused("is no SentencePiece model, or cut off: at byte 7", piece)
  refused("piece 0 has a kind that is not known", "\10\5\10\1a\x18\7")
  refused("the model WORD is not known", "\10\5\10\1a\x18\2\x12\2\x18\3")
  refused("the id of the unknown piece is 1, which is none of 1", "\10\5\10\1a\x18\2\x12\3\xc0\2\1")
  refused("the score of token 0 is ", "\10\10\10\1a\x15\0\0\xc0\x7f\x18\2")
  local whole = data.read_text(folder .. "sp_unigram.model")
  for cut = 0, #whole - 1, 7 do
    write_model(whole:sub(1, cut))
    local ok, tok = pcall(tokenizers.load, name)
    if ok then
      pcall(tok.encode, tok, "In the beginning")
    else
      lu.assertStrContains(tostring(tok), name)
    end
  end
  os.remove(name)
end

-- Each file cut at many places, and with bits changed: an error or a tokenizer that works.
function TestFiles:test_damaged_files()
  local seed = os.time()
  print("seed " .. seed)
  math.randomseed(seed)
  for _, name in ipairs { "roberta", "bert", "unigram", "suffix" } do
    local text = data.read_text(folder .. name .. ".json")
    for i = 1, 60 do
      local damaged
      if i <= 20 then
        damaged = text:sub(1, math.random(0, #text - 1))
      else
        local at = math.random(1, i <= 40 and math.min(1000, #text) or #text)
        damaged = text:sub(1, at - 1) .. string.char(math.random(32, 126)) .. text:sub(at + 1)
      end
      write(damaged)
      local ok, tok = pcall(tokenizers.load, path)
      if ok then
        pcall(tok.decode, tok, select(2, pcall(tok.encode, tok, "In the beginning\u{E9} <mask>")))
      else
        lu.assertStrContains(tostring(tok), path)
      end
    end
  end
end

function TestFiles:test_vocabularies_beside_merges_and_folders()
  local vocab, merges = path, path .. ".txt"
  write '{"t": 0, "o": 1, "to": 2, "\u{120}": 3, "<|endoftext|>": 4}'
  local f = assert(io.open(merges, "wb"))
  f:write "#version: 0.2\nt o\n"
  f:close()
  local tok = tokenizers.load { vocab = vocab, merges = merges }
  lu.assertEquals(tok:encode "to t<|endoftext|>", { 2, 3, 0, 4 })
  lu.assertEquals(tok.eos, 4)
  os.remove(merges)
  fails("DC0801", "merges", tokenizers.load, { vocab = vocab, merges = "/nowhere/merges.txt" })
  fails("DC0801", "/nowhere: no tokenizer is there", tokenizers.load, "/nowhere")
  fails("DC0801", "/nowhere.json", tokenizers.load, "/nowhere.json")
  fails("DC0101", "a path or a table with a vocabulary is needed, not the number 3", tokenizers.load, 3)
  fails("DC0101", "kind is \"bert\" or \"gpt2\", not 'elmo'", tokenizers.load, { vocab = { "a" }, kind = "elmo" })
  fails("DC0101", "'vocabulary'", tokenizers.load, { vocabulary = {} })
end

function TestFiles:test_calls_that_are_wrong()
  local tok = small()
  fails("DC0101", "a text is needed, not nil", tok.encode, tok)
  fails("DC0101", "a tokenizer is needed, not the string 'to'", tok.encode, "to")
  fails("DC0101", "'offset'", tok.encode, tok, "to", { offset = true })
  fails("DC0101", "offsets is true or false, not the number 1", tok.encode, tok, "to", { offsets = 1 })
  fails("DC0101", "max is a whole number of at least 0, not -1", tok.encode, tok, "to", { max = -1 })
  fails("DC0101", "pair: a text is needed, not the number 2", tok.encode, tok, "to", { pair = 2 })
  fails("DC0101", "an id is a whole number, not the string 'x'", tok.token, tok, "x")
end
