-- Chats as texts: a list of messages by the template of a model.

require "deepc.tokenizers.class"
local jinja = require "deepc.tokenizers.jinja"
local json = require "deepc.json"
local _, core = ...

local OP = "chat"
local Tokenizer = core.tokenizer_class

-- Several templates have names: the one for tools where there are some, else the default.
local function choose(template, tools)
  if type(template) ~= "table" then
    return template
  end
  local by_name = {}
  for key, one in pairs(template) do
    if type(one) == "table" then
      by_name[one.name or key] = one.template
    else
      by_name[key] = one
    end
  end
  return tools and by_name.tool_use or by_name.default
end

local function check_messages(messages)
  if type(messages) ~= "table" or #messages == 0 and next(messages) ~= nil then
    core.fail("ARG", OP, "a list of messages is needed, not " .. core.describe(messages),
      '{ { role = "user", content = "hello" } }')
  end
  for i, m in ipairs(messages) do
    if type(m) ~= "table" or type(m.role) ~= "string" then
      core.fail("ARG", OP, ("message %d has no role"):format(i), '{ role = "user", content = "hello" }')
    end
  end
end

local function variables_of(tokenizer, messages, options)
  local v = {}
  for _, key in ipairs { "bos", "eos", "pad", "unk" } do
    local name, id = key .. "_token", tokenizer[key]
    v[name] = tokenizer._tokens and tokenizer._tokens[name] or id and core.tokenizer_token(tokenizer._c, id) or nil
  end
  for key, value in pairs(options.variables or {}) do
    v[key] = value
  end
  v.messages = messages
  v.add_generation_prompt = options.add_generation_prompt or false
  v.tools, v.documents = options.tools or json.null, options.documents or json.null -- as there, none and defined
  return v
end

local function stop(err)
  if type(err) == "table" and err.jinja_raised then
    core.fail("ARG", OP, "the template refuses: " .. err.jinja_raised)
  elseif type(err) == "table" and (err.jinja or err.jinja_text) then
    core.fail("FORMAT", OP, "the chat template, " .. (err.jinja or err.jinja_text))
  end
  error(err, 0)
end

---A chat as the text that a model was trained on (transformers.PreTrainedTokenizer.apply_chat_template), by the
---template of the tokenizer's files, in Jinja, or by `template`. `add_generation_prompt` ends it where an answer
---begins. Tokens of the template stand in the text: encode it with `special = false`. `variables` are others that a
---template asks for.
---
---    local tok = tokenizers.load { vocab = { "[UNK]" }, kind = "bert" }
---    tok:chat({ { role = "user", content = "Hello" } }, {
---      template = "{% for m in messages %}{{ m.role ~ ': ' ~ m.content }}\n{% endfor %}",
---    })
---
---Errors: DC0101 where there is no template, or it refuses the messages; DC0802 where it uses what is not known of
---Jinja, by its name, and for what fails in it, with the line.
---@param messages table[] each with role and content
---@param options? deepc.tokenizers.ChatOptions
---@return string
function Tokenizer:chat(messages, options)
  core.check_tokenizer(OP, self)
  core.options(OP, options, "add_generation_prompt", "template", "tools", "documents", "variables")
  options = options or {}
  check_messages(messages)
  if options.variables ~= nil and type(options.variables) ~= "table" then
    core.fail("ARG", OP, "variables is a table, not " .. core.describe(options.variables))
  end
  local source = options.template or choose(self._template, options.tools)
  if type(source) ~= "string" then
    core.fail("ARG", OP, source == nil and "the tokenizer has no chat template"
      or "template is a text, not " .. core.describe(source), 'template = "{% for m in messages %} ... {% endfor %}"')
  end
  if self._compiled_of ~= source then
    local ok, compiled = pcall(jinja.compile, source)
    if not ok then
      stop(compiled)
    end
    self._compiled, self._compiled_of = compiled, source
  end
  local ok, text = pcall(self._compiled, variables_of(self, messages, options))
  if not ok then
    stop(text)
  end
  return text
end

---What a chat is made with.
---@class deepc.tokenizers.ChatOptions
---@field add_generation_prompt? boolean
---@field template? string Jinja, instead of the tokenizer's
---@field tools? table[]
---@field documents? table[]
---@field variables? table<string, any>

core.entries(Tokenizer)
