-- Chat templates: what transformers makes of some (tests/lua/tokenizers/chats.gz, of scripts/tokenizer_peers.py), and
-- templates that are wrong or ask for what is not known.
local lu = require "luaunit"
local data = require "deepc.data"
local tokenizers = require "deepc.tokenizers"

local folder = (arg[0]:match "^(.*)/tests/[^/]*$" or ".") .. "/tests/lua/tokenizers/"

local function fails(code, text, fn, ...)
  local ok, err = pcall(fn, ...)
  lu.assertFalse(ok, "no error")
  lu.assertStrContains(tostring(err), text)
  lu.assertEquals(err.code, code)
end

local tok = tokenizers.load { vocab = { "[UNK]", "<s>", "</s>" }, kind = "bert" }
local hello = { { role = "user", content = "hello" } }

local function chat(template, messages, variables)
  local text = tok:chat(messages or hello, { template = template, variables = variables })
  return text
end

TestChat = {}

function TestChat:test_as_the_package()
  local templates, cases = load(data.read_text(folder .. "chats.gz"), "=chats", "t", {})()
  lu.assertTrue(#cases > 40)
  for _, case in ipairs(cases) do
    local ok, text = pcall(tok.chat, tok, case.messages, {
      template = templates[case.name], tools = case.tools, add_generation_prompt = case.prompt,
      variables = { bos_token = "<s>", eos_token = "</s>" },
    })
    if case.text then
      lu.assertTrue(ok, tostring(text))
      lu.assertEquals(text, case.text, case.name)
    else
      lu.assertFalse(ok, case.name)
      lu.assertStrContains(tostring(text), "the template refuses: " .. case.error)
    end
  end
end

function TestChat:test_templates_of_files()
  local t = tokenizers.from_gguf {
    ["tokenizer.ggml.model"] = "gpt2", ["tokenizer.ggml.pre"] = "gpt-2", ["tokenizer.ggml.tokens"] = { "<s>", "h" },
    ["tokenizer.ggml.merges"] = {}, ["tokenizer.ggml.bos_token_id"] = 0,
    ["tokenizer.ggml.token_type"] = { 3, 1 },
    ["tokenizer.chat_template"] = "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}",
  }
  lu.assertEquals(t:chat { { role = "user", content = "h" } }, "<s>h")
  lu.assertEquals(t:encode(t:chat { { role = "user", content = "h" } }, { special = false }), { 0, 1 })
end

function TestChat:test_what_is_not_known_is_named()
  local function wrong(text, template, ...)
    fails("DC0802", "chat: the chat template, " .. text, chat, template, ...)
  end
  wrong("line 1: the block 'include' is not known", "{% include 'x' %}")
  wrong("line 2: the filter 'xmlattr' is not known", "\n{{ messages | xmlattr }}")
  wrong("line 1: the test 'shiny' is not known", "{{ messages is shiny }}")
  wrong("line 1: the method 'zfill' of strings is not known", "{{ 'a'.zfill(3) }}")
  wrong("line 1: 'cycler' is no function that is known", "{{ cycler('a') }}")
  wrong("line 1: the filter 'tojson' has no argument 'sort_keys' that is known", "{{ 1 | tojson(sort_keys=true) }}")
  wrong("line 1: '*' before an argument is not known", "{{ range(*messages) }}")
  wrong("line 1: 'recursive' is not known", "{% for m in messages recursive %}{% endfor %}")
  wrong("line 1: upper of letters that are not ASCII is not known", "{{ '\u{E9}' | upper }}")
  wrong("line 1: '%}' is missing", "{% if true")
  wrong("line 1: 'endif' is missing", "{% if true %}")
  wrong("line 1: 'endfor' is missing", "{% for m in messages %}")
  wrong("line 1: the block 'endif' is not known", "{% endif %}")
  wrong("line 1: a value expected, not 'the end'", "{{ 1 + }}")
  wrong("line 1: '}}' is missing", "{{ 'a }}")
  wrong("line 3: what is undefined has no 'b'", "{{ a }}\n\n{{ a.b }}")
  wrong("line 1: a list is no text", "{{ [1] }}")
  wrong("line 1: '+' takes two numbers, strings or lists, not string and number", "{{ 'a' + 1 }}")
  wrong("line 1: '<' takes two numbers or two strings", "{{ 'a' < 1 }}")
  wrong("line 1: division by zero", "{{ 1 // 0 }}")
  wrong("line 1: number cannot be looped over", "{% for i in 3 %}{% endfor %}")
  wrong("line 1: an item of the loop has 1 parts, 2 names are given", "{% for a, b in [[1]] %}{% endfor %}")
  wrong("line 1: 'm' calls itself more than 50 times", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}")
  wrong("line 1: a text that is too long", "{{ 'aaaaaaaaaa' * 100000000 }}")
  wrong("line 1: range takes whole numbers, for at most a million", "{{ range(10000000) | length }}")
  wrong("line 1: expressions in each other are at most 100 deep",
    "{{ " .. ("("):rep(200) .. "1" .. (")"):rep(200) .. " }}")
  wrong("line 1: more than 67108864 bytes are written",
    "{% for i in range(100000) %}{{ 'aaaaaaaaaa' * 1000 }}{% endfor %}")
end

function TestChat:test_calls_that_are_wrong()
  fails("DC0101", "the tokenizer has no chat template", tok.chat, tok, hello)
  fails("DC0101", "a list of messages is needed, not the string 'hello'", tok.chat, tok, "hello")
  fails("DC0101", "a list of messages is needed", tok.chat, tok, { role = "user", content = "hello" })
  fails("DC0101", "message 2 has no role", tok.chat, tok, { hello[1], { content = "x" } })
  fails("DC0101", "template is a text, not the number 1", tok.chat, tok, hello, { template = 1 })
  fails("DC0101", "variables is a table, not the number 1", tok.chat, tok, hello, { template = "", variables = 1 })
  fails("DC0101", "'templates'", tok.chat, tok, hello, { templates = "" })
  fails("DC0101", "the template refuses: no", chat, "{{ raise_exception('no') }}")
end

-- Any text is a template or a sentence.
function TestChat:test_random_templates()
  local seed = os.time()
  print("seed " .. seed)
  math.randomseed(seed)
  local parts = {
    "{{", "}}", "{%", "%}", "{#", "#}", "-", " ", "\n", "if", "for", "in", "endif", "endfor", "set", "=", "x", "m",
    "messages", ".", "role", "[", "]", "(", ")", "'", "|", "trim", "tojson", "0", "1", "+", "~", "is", "not", "none",
    ":", ",", "else", "macro", "loop", "endmacro", "{", "}", "a",
  }
  for _ = 1, 3000 do
    local t = {}
    for i = 1, math.random(1, 20) do
      t[i] = parts[math.random(#parts)] .. (math.random(2) == 1 and " " or "")
    end
    local source = table.concat(t)
    local ok, err = pcall(chat, source)
    lu.assertTrue(ok or type(err) == "table" and err.code ~= nil, source .. ": " .. tostring(err))
  end
end
