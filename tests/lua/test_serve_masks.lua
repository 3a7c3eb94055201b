-- Which tokens a server may write: by functions, by regular expressions, as JSON.
local lu = require "luaunit"
local dc = require "deepc"
local models = require "deepc.models"
local serve = require "deepc.serve"
local tokenizers = require "deepc.tokenizers"
local check = require "tests.lua.check"

local fails = check.fails

local folder = (arg[0]:match "^(.*)/tests/[^/]*$" or ".") .. "/tests/lua/tokenizers/"
local tok = tokenizers.load(folder .. "gpt2.json")

local made

local function talker()
  if not made then
    dc.seed(4)
    made = models.llama { vocab_size = #tok + 3, hidden_size = 16, intermediate_size = 24, num_hidden_layers = 1,
      num_attention_heads = 2, initializer_range = 0.5, max_position_embeddings = 256 }
  end
  return made:eval()
end

TestGrammars = {}

local function expect(grammar, yes, no)
  for _, text in ipairs(yes) do
    lu.assertTrue(grammar:accepts(text), text)
  end
  for _, text in ipairs(no) do
    lu.assertFalse(grammar:accepts(text), text)
  end
end

function TestGrammars:test_regex()
  local function of(pattern, yes, no)
    expect(serve.regex(tok, pattern), yes, no)
  end
  of("", { "" }, { "a" })
  of("yes|no", { "yes", "no" }, { "", "ye", "yesno", "Yes" })
  of("^a*b+c?$", { "b", "aabbc" }, { "a", "abcc", "ba" })
  of("(ab){2,3}", { "abab", "ababab" }, { "ab", "abababab", "aba" })
  of("x{2}y{1,}", { "xxy", "xxyyy" }, { "xy", "xx" })
  of("[a-cx-]+[^a-c]", { "abx-d", "xé" }, { "aba", "d" })
  of("[]]|[^]]", { "]", "a" }, { "" })
  of("\\d{3}-\\d{4}", { "555-0123" }, { "5550123", "55-0123" })
  of("\\w+\\s\\S", { "ab_9 é", "a\n." }, { "a  ", "é a" })
  of("\\(\\.\\*\\)\\x41\\u00e9\\\\", { "(.*)Aé\\" }, { "(a*)Aé\\" })
  of("\\$$", { "$" }, { "" })
  of(".", { "a", "é", "€", "😀", "\u{10FFFF}" }, { "\n", "", "ab", "\xc3", "\xed\xa0\x80", "\xff" })
  of("[à-é]", { "à", "é" }, { "ß", "ê", "a" })
  of("[ࠀ-𐀁]", { "ࠀ", "€", "\u{FFFF}", "𐀀", "𐀁" }, { "߿", "𐀂", "\xed\xa0\x80" })
  of("(?:a|)(|b)*?", { "", "a", "ab", "bb" }, { "ba" })
  of("(){1000}{1000}", { "" }, { "a" })
  of("(a*)*", { "", "aaa" }, { "b" })
end

function TestGrammars:test_wrong_patterns()
  local function wrong(text, pattern)
    fails(text, serve.regex, tok, pattern)
  end
  wrong("serve.regex: pattern 'a(b', character 4: a ')' is missing", "a(b")
  wrong("pattern '[ab', character 4: a ']' is missing", "[ab")
  wrong("pattern 'a)b', character 2: a ')' without its '('", "a)b")
  wrong("pattern '*a', character 1: nothing is there for '*' to repeat", "*a")
  wrong("{3,2} is no number of times", "a{3,2}")
  wrong("{} is no number of times", "a{}")
  wrong("a '}' is missing", "a{1")
  wrong("a range begins behind its end", "[b-a]")
  wrong("\\q is not known", "\\q")
  wrong("\\b is not known", "\\bword")
  wrong("2 hexadecimal digits are needed behind \\x", "\\x4")
  wrong("it ends in a backslash", "a\\")
  wrong("of groups with a '?', (?:...) alone is known", "(?=a)")
  wrong("'^' inside of a pattern", "a^")
  wrong("more than 200 groups in each other", ("("):rep(300))
  wrong("the pattern is too large: more than 50000 bytes and branches", "(a{1000}){1000}")
  wrong("a pattern is a text in UTF-8, not the string '\\xff'", "\xff")
  wrong("a pattern is a text in UTF-8, not nil", nil)
  fails("serve.regex: a tokenizer is needed, not the string 'a'", serve.regex, "a", "a")
end

function TestGrammars:test_json()
  expect(serve.json(tok), {
    "0", "-1.5e+10", "12", "1E5", '"a\\n\\u00e9 é😀"', "true", "false", "null", "[]", "[ ]", "{}",
    ' {"a": [1, 2.5, {"b" : null}], "c":""}', "[[[]],{}]", '{"a":0,"b":-0.1}', '"\\\\"', "[true , 1]" },
    { "", "01", "-", "1.", "1e", "+1", "tru", "nul", '"a', '"\n"', '"\\q"', '"\\u12g4"', "[", "[1,]", "[,1]", "{a:1}",
    '{"a"}', '{"a":}', '{"a":1,}', '{"a" 1}', "[1 2]", "{]", "[}", "1 ", "[] ", '"\xff"', '"\xed\xa0\x80"',
    '{"a":1]', ("["):rep(65) .. ("]"):rep(65) })
  expect(serve.json(tok), { "[" .. (" "):rep(32) .. "1 ,\t2\n]", '{\n\n"a" :\r1 }' }, { "[" .. (" "):rep(33) .. "1]" })
  expect(serve.json(tok, { object = true }), { "{}", '{"a":[]}' }, { "[]", "1", "" })
  fails("object is true or false", serve.json, tok, { object = 1 })
end

function TestGrammars:test_schemas()
  local function of(schema, yes, no)
    expect(serve.json(tok, { schema = schema }), yes, no)
  end
  of({ type = "string" }, { '""', '"a\\n\\u00e9é"' }, { '"a', '"\n"', "a", '"\\q"' })
  of({ type = "string", minLength = 2, maxLength = 3 }, { '"ab"', '"é\\t€"' }, { '"a"', '"abcd"' })
  of({ type = "string", pattern = "^\\d{4}-\\d\\d$" }, { '"2026-11"' }, { '"2026"' })
  of({ type = "integer", description = "how many" }, { "0", "-12" }, { "01", "1.5", "" })
  of({ type = "number" }, { "0.5", "-1e9", "3" }, { ".5", "1." })
  of({ type = "boolean" }, { "true", "false" }, { "null" })
  of({ type = "null" }, { "null" }, { "0" })
  of({ enum = { "red", "gr\"een", 3, true, 0.5 } }, { '"red"', '"gr\\"een"', "3", "true", "0.5" }, { "red", "false" })
  of({ const = "x" }, { '"x"' }, { '"y"' })
  of({ anyOf = { { type = "integer" }, { type = "null" } } }, { "7", "null" }, { "x" })
  of({ type = "array", items = { type = "integer" } }, { "[]", "[ 1,\n2 ]" }, { "[1,]", "1" })
  of({ type = "array", items = { type = "integer" }, minItems = 2, maxItems = 3 }, { "[1,2]", "[1,2,3]" },
    { "[]", "[1]", "[1,2,3,4]" })
  of({ type = "array", items = { type = "null" }, maxItems = 0 }, { "[]" }, { "[null]" })
  of({ type = "object", properties = {} }, { "{}", "{ }" }, { '{"a":1}' })
  local integer = { type = "integer" }
  of({ type = "object", required = { "b", "a" }, properties = { a = integer, b = integer, c = integer, d = integer } },
    { '{"b":1,"a":2}', '{ "b": 1, "a": 2, "d": 4}', '{"b":1,"a":2,"c":3,"d":4}' },
    { '{"a":2,"b":1}', '{"b":1}', '{"b":1,"a":2,"d":3,"c":4}', '{"b":1,"a":2,}' })
  of({ type = "object", properties = { a = integer, b = integer, c = integer } },
    { "{}", '{"a":1}', '{"b":1}', '{"a":1,"c":2}', '{"a":1,"b":2,"c":3}' },
    { '{,"b":1}', '{"a":1 "b":2}', '{"b":1,"a":2}' })
end

function TestGrammars:test_wrong_schemas()
  local function wrong(text, schema)
    fails("serve.json: " .. text, serve.json, tok, { schema = schema })
  end
  wrong("schema is 3; a table is needed", 3)
  wrong("schema.type is nil; known are array, boolean, integer, null, number, object, string", {})
  wrong("schema.type is 'text'", { type = "text" })
  wrong("schema.minimum is not known here", { type = "integer", minimum = 3 })
  wrong("schema.properties.a.format is not known here",
    { type = "object", properties = { a = { type = "string", format = "date" } } })
  wrong("schema.additionalProperties is not known here",
    { type = "object", properties = {}, additionalProperties = true })
  wrong("schema.properties is missing", { type = "object" })
  wrong("schema.required[1] is 'b', which is none of its properties",
    { type = "object", properties = { a = { type = "null" } }, required = { "b" } })
  wrong("schema.items is missing", { type = "array" })
  wrong("schema.items is true; a table is needed", { type = "array", items = true })
  wrong("schema.maxItems is -1; a whole number from 0 to 10000 is needed",
    { type = "array", items = { type = "null" }, maxItems = -1 })
  wrong("schema has maxLength = 1 below minLength = 2", { type = "string", minLength = 2, maxLength = 1 })
  wrong("schema has a pattern and lengths", { type = "string", minLength = 2, pattern = "a" })
  wrong("pattern '(', character 2: a ')' is missing", { type = "string", pattern = "(" })
  wrong("schema.enum is a list of at least one", { enum = {} })
  wrong("schema.enum[1] is a table; texts, numbers and bools are known", { enum = { {} } })
  wrong("schema.anyOf[2].type is nil", { anyOf = { { type = "null" }, {} } })
  local cyclic = { type = "array" }
  cyclic.items = cyclic
  wrong("schema.items.items", cyclic)
  wrong("the schema is too large", { type = "string", minLength = 10000 })
end

TestMasks = {}

-- Random texts, all of the grammar.
function TestMasks:test_texts()
  local server = serve.new(talker(), tok, { slots = 4, tokens = 1024 })
  local grammars = { serve.regex(tok, "(yes|no|maybe)(, (yes|no)){2,4}"), serve.regex(tok, "[à-é€😀]{3,5}!"),
    serve.json(tok), serve.regex(tok, "\\d{1,3}(\\.\\d+)?"), serve.json(tok, { schema = { type = "array", maxItems = 2,
      items = { enum = { "to", "be", 3 } } } }) }
  local requests = {}
  for i = 1, 15 do
    local grammar = grammars[i % #grammars + 1]
    requests[i] = server:submit { prompt = { i }, max_tokens = 60, temperature = 1.5, seed = i, mask = grammar }
  end
  local free = { prompt = { 5, 6 }, max_tokens = 10, temperature = 0.9, seed = 3 }
  local beside = server:submit(free)
  server:run()
  local ended = 0
  for i, r in ipairs(requests) do
    lu.assertNil(r.error)
    if r.reason == "stop" then
      ended = ended + 1
      lu.assertTrue(grammars[i % #grammars + 1]:accepts(r:text()), r:text())
    end
  end
  lu.assertTrue(ended >= 6, ended)
  lu.assertEquals(beside.ids, models.generate(talker(), { 5, 6 }, { max = 10, temperature = 0.9, seed = 3, stop = {} }))
end

-- No token is left out: the same texts as by a list of all tokens that match.
function TestMasks:test_whole_vocabulary()
  local server = serve.new(talker(), tok, { slots = 4, tokens = 512 })
  for _, set in ipairs { "a-z ,.", "A-Z0-9", "e", " " } do
    local allowed = { tok.eos }
    for id = 0, #tok - 1 do
      allowed[#allowed + 1] = tok:decode({ id }):find("^[" .. set .. "]+$") and id or nil
    end
    local pairs_of = {}
    for seed = 1, 3 do
      pairs_of[seed] = {}
      for i, mask in ipairs { serve.regex(tok, "[" .. set .. "]*"), function() return allowed end } do
        pairs_of[seed][i] = server:submit { prompt = { 2 }, max_tokens = 16, temperature = 1.5, seed = seed,
          mask = mask }
      end
    end
    server:run()
    for _, pair in ipairs(pairs_of) do
      lu.assertNil(pair[1].error)
      lu.assertTrue(#pair[1].ids > 0)
      lu.assertEquals(pair[1].ids, pair[2].ids)
    end
  end
end

function TestMasks:test_functions()
  local server = serve.new(talker(), tok, { slots = 4, tokens = 512 })
  local vocab = #tok + 3
  local seen = {}
  local listed = server:submit { prompt = { 1 }, max_tokens = 4, mask = function(ids)
    seen[#seen + 1] = #ids
    return { 7 + #ids, 7 + #ids }
  end }
  local tensors = server:submit { prompt = { 1 }, max_tokens = 3, mask = function(ids)
    local row = dc.iota(vocab):eq(9 + #ids)
    return #ids == 1 and row or row:cast "u8" * 3
  end }
  local free = server:submit { prompt = { 4, 1 }, max_tokens = 5, mask = function() end }
  server:run()
  lu.assertEquals(listed.ids, { 7, 8, 9, 10 })
  lu.assertEquals(seen, { 0, 1, 2, 3 })
  lu.assertEquals(tensors.ids, { 9, 10, 11 })
  lu.assertEquals(free.ids, models.generate(talker(), { 4, 1 }, { max = 5, stop = {} }))
end

function TestMasks:test_mistakes()
  local server = serve.new(talker(), tok, { slots = 4, tokens = 512 })
  local vocab = #tok + 3
  local function ends(text, mask)
    local r = server:submit { prompt = { 1 }, max_tokens = 4, mask = mask }
    local beside = server:submit { prompt = { 2 }, max_tokens = 2 }
    server:run()
    lu.assertEquals({ r.reason, beside.reason }, { "error", "length" })
    lu.assertStrContains(tostring(r.error), text)
  end
  ends("mask: no token may follow behind 0 that were written", function() return {} end)
  ends("mask: no token may follow behind 1 that were written", function(ids) return #ids == 0 and { 3 } or {} end)
  ends(("mask: id 2 is %d; ids are whole numbers from 0 to %d"):format(vocab, vocab - 1),
    function() return { 1, vocab } end)
  ends(("mask: f32[2] was returned; bool[%d] or u8[%d] is needed"):format(vocab, vocab),
    function() return dc.ones "f32[2]" end)
  ends("mask: a list of ids, a tensor or nil is needed, not the number 3", function() return 3 end)
  ends("wrong here", function() error "wrong here" end)
  fails("submit: mask is a function of the ids so far, or a grammar, not the number 3", server.submit, server,
    { prompt = { 1 }, mask = 3 })
  local other = tokenizers.load { vocab = { "[UNK]", "to" }, kind = "bert" }
  fails("mask is a grammar of another tokenizer", server.submit, server,
    { prompt = { 1 }, mask = serve.regex(other, "to") })
end

-- Tokens of several kinds of vocabularies, whose bytes are those of texts.
function TestMasks:test_vocabularies()
  for _, name in ipairs { "llama2.json", "sp_bpe.model", "bert.json", "unigram.json" } do
    local t = tokenizers.load(folder .. name)
    dc.seed(1)
    local model = models.llama { vocab_size = #t, hidden_size = 8, intermediate_size = 8, num_hidden_layers = 1,
      num_attention_heads = 1, initializer_range = 0.5 }
    local server = serve.new(model, t, { slots = 2, tokens = 256 })
    local grammar = serve.regex(t, "[a-z ]{8,12}")
    for seed = 1, 3 do
      local r = server:submit { prompt = { 5 }, max_tokens = 20, temperature = 1, seed = seed, mask = grammar }
      server:run()
      lu.assertNil(r.error)
      local text = r:text()
      lu.assertTrue(text:find "^[a-z ]+$" ~= nil, name .. ": " .. text)
    end
  end
end
