-- Which tokens may come next: what a function of the script says, or a grammar, which is a machine that reads bytes,
-- run over the bytes of all tokens.

local serve = require "deepc.serve.server"
require "deepc.serve.vocabulary"
require "deepc.serve.regex"
require "deepc.serve.json"
require "deepc.serve.schema"
local _, core = ...

local MOST_ROWS = 256 -- that a grammar keeps

-- ---- grammars ----

---What a text has to be, over the tokens of a tokenizer: serve.regex and serve.json make one, `mask` of a request takes
---it.
---@class deepc.serve.Grammar
local Grammar = {}
Grammar.__index = Grammar

local function new_grammar(tokenizer, machine)
  return setmetatable({ _tokenizer = tokenizer, _machine = machine, _vocabularies = core.vocabularies_of(tokenizer),
    _rows = { [true] = {}, [false] = {} }, _count = 0 }, Grammar)
end

-- Tokens that may follow in a state, a byte 1 or 0 for each; nil where none may. Texts in order: where one fails,
-- those that begin in the same way are passed over.
local function walk(machine, v, state)
  local row, any, i, n = {}, false, 1, #v.texts
  for id = 1, v.size do
    row[id] = "\0"
  end
  local states = { [0] = state }
  while i <= n do
    local text, k = v.texts[i], v.common[i]
    local at = states[k]
    while at and k < #text do
      k = k + 1
      at = machine:step(at, text:byte(k))
      states[k] = at
    end
    if at then
      for _, id in ipairs(v.ids[i]) do
        row[id + 1] = "\1"
      end
      any = true
      i = i + 1
    else
      repeat
        i = i + 1
      until i > n or v.common[i] < k
    end
  end
  return any and table.concat(row) or nil
end

-- The row of a state, which is kept for the next time.
local function row_of(g, state, first)
  local row = g._rows[first][state]
  if row == nil then
    if g._count >= MOST_ROWS then
      g._rows, g._count = { [true] = {}, [false] = {} }, 0
    end
    row = walk(g._machine, g._vocabularies[first], state) or false
    g._rows[first][state], g._count = row, g._count + 1
  end
  return row
end

-- The state behind a token.
local function after_token(g, state, id, first)
  local text = g._vocabularies[first].of[id] or ""
  for i = 1, #text do
    state = state and g._machine:step(state, text:byte(i))
  end
  return state
end

local function check(op, g)
  if getmetatable(g) ~= Grammar then
    core.fail("ARG", op, "a grammar is needed, not " .. core.describe(g), ("with a colon: grammar:%s(...)"):format(op))
  end
end

---Whether a whole text is one of the grammar.
---
---    local tok = tokenizers.load { vocab = { "[UNK]", "to", "be" }, kind = "bert" }
---    print(serve.regex(tok, "to( be)*"):accepts "to be be")
---@param text string
---@return boolean
function Grammar:accepts(text)
  check("accepts", self)
  if type(text) ~= "string" then
    core.fail("ARG", "accepts", "a text is needed, not " .. core.describe(text))
  end
  local machine, state = self._machine, self._machine.start
  for i = 1, #text do
    state = machine:step(state, text:byte(i))
    if not state then
      return false
    end
  end
  return machine:accepts(state)
end

core.entries(Grammar)

---Texts that a regular expression matches as a whole: `mask` of server:submit. Known are literals, `.`, sets with
---ranges, `\d \w \s` and their complements, `\n \t \r \xhh \uhhhh`, groups, `|`, `* + ?` and `{m,n}`; a character of
---UTF-8 is one. States of the expression are made as texts reach them, and so are the tokens that may follow in each.
---
---    local tok = tokenizers.load { vocab = { "[UNK]", "yes", "no" }, kind = "bert" }
---    local grammar = serve.regex(tok, "yes|no")
---
---Errors: DC0101 for what is no expression, or more than is known.
---@param tokenizer deepc.tokenizers.Tokenizer
---@param pattern string
---@return deepc.serve.Grammar
function serve.regex(tokenizer, pattern)
  local op = "serve.regex"
  core.check_tokenizer(op, tokenizer)
  return new_grammar(tokenizer, core.tree_machine(op, "pattern", core.regex_tree(op, pattern)))
end

---Texts that are JSON (RFC 8259): one value, of at most 64 lists and objects in each other, with at most 32 blanks in a
---row. object = true: an object. schema: values of a JSON Schema as a table, of which are known: type, with properties
---and required of objects, items, minItems and maxItems of lists, minLength and maxLength or pattern of texts; enum,
---const, anyOf and oneOf. Fields are written in one order, those that are required first, as `required` has them, then
---the others by their names.
---
---    local tok = tokenizers.load { vocab = { "[UNK]", "true", "false" }, kind = "bert" }
---    print(serve.json(tok):accepts "[1, 2, {}]")
---    local person = serve.json(tok, { schema = { type = "object", required = { "name", "age" },
---      properties = { name = { type = "string" }, age = { type = "integer" } } } })
---
---Errors: DC0101 for options, for a schema that says what is not followed here.
---@param tokenizer deepc.tokenizers.Tokenizer
---@param options? { object?: boolean, schema?: table }
---@return deepc.serve.Grammar
function serve.json(tokenizer, options)
  local op = "serve.json"
  core.check_tokenizer(op, tokenizer)
  core.options(op, options, "object", "schema")
  core.check_flags(op, options or {}, "object")
  if options and options.schema ~= nil then
    return new_grammar(tokenizer, core.schema_machine(op, options.schema))
  end
  return new_grammar(tokenizer, core.json_machine(options and options.object))
end

-- ---- masks of requests ----

-- What `mask` of a request is: a function, or a grammar.
function core.read_mask(op, server, mask)
  if mask == nil then
    return nil
  elseif getmetatable(mask) == Grammar then
    if mask._tokenizer ~= server.tokenizer then
      core.fail("ARG", op, "mask is a grammar of another tokenizer than that of the server")
    end
    return { grammar = mask, state = mask._machine.start }
  elseif core.control_callable(mask) then
    return { call = mask }
  end
  core.fail("ARG", op, "mask is a function of the ids so far, or a grammar, not " .. core.describe(mask),
    "serve.regex(tokenizer, pattern) makes a grammar")
end

-- A list of ids as a row.
local function row_of_list(list, vocab)
  local ids, parts, last = {}, {}, -1
  for i, id in ipairs(list) do
    if math.type(id) ~= "integer" or id < 0 or id >= vocab then
      core.fail("ARG", "mask", ("id %d is %s; ids are whole numbers from 0 to %d"):format(i, core.shown(id), vocab - 1))
    end
    ids[i] = id
  end
  table.sort(ids)
  for _, id in ipairs(ids) do
    if id > last then
      parts[#parts + 1] = ("\0"):rep(id - last - 1) .. "\1"
      last = id
    end
  end
  return table.concat(parts) .. ("\0"):rep(vocab - last - 1)
end

-- What a function returned as a row; nil where all may follow.
local function row_of_result(v, vocab)
  if v == nil then
    return nil
  elseif core.kind(v) == "tensor" then
    if v.dtype ~= "bool" and v.dtype ~= "u8" or #v.shape ~= 1 or v.shape[1] ~= vocab then
      core.fail("ARG", "mask", ("%s[%s] was returned; bool[%d] or u8[%d] is needed"):format(v.dtype,
        core.sizes(v.shape), vocab, vocab))
    end
    return (v.dtype == "u8" and v:ne(0) or v):bytes()
  elseif type(v) ~= "table" or core.kind(v) then
    core.fail("ARG", "mask", "a list of ids, a tensor or nil is needed, not " .. core.describe(v))
  end
  return row_of_list(v, vocab)
end

-- The row of a grammar, with tokens that end texts where it may end.
local function row_of_grammar(t, vocab)
  local g, state = t.mask.grammar, t.mask.state
  local row = row_of(g, state, #t.request.ids == 0)
  if g._machine:accepts(state) then
    row = row or ("\0"):rep(vocab)
    row = row .. ("\0"):rep(vocab - #row)
    for id in pairs(t.stop) do
      if id >= 0 and id < vocab then
        row = row:sub(1, id) .. "\1" .. row:sub(id + 2)
      end
    end
  end
  return row and row:sub(1, vocab) .. ("\0"):rep(vocab - #row) or ""
end

-- Which tokens may follow in a text; fails where none may.
local function allowed(t, vocab)
  local row
  if t.mask.grammar then
    row = row_of_grammar(t, vocab)
  else
    row = row_of_result(t.mask.call(t.request.ids), vocab)
  end
  if row and not row:find("\1", 1, true) then
    core.fail("ARG", "mask", ("no token may follow behind %d that were written"):format(#t.request.ids))
  end
  return row
end

-- Asks for the masks of texts, before their next tokens are chosen. An error ends its text.
function core.ask_masks(texts, vocab)
  for _, t in ipairs(texts) do
    t.allowed = nil
    if t.mask and not t.request.done then
      local ok, row = core.guarded_call(allowed, t, vocab)
      if ok then
        t.allowed = row
      else
        core.finish_text(t, "error", row)
      end
    end
  end
end

-- Tells a grammar of a token; whether the text is whole, and nothing may follow.
function core.mask_token(t, id)
  local m = t.mask
  if not m or not m.grammar then
    return false
  end
  m.state = after_token(m.grammar, m.state, id, #t.request.ids == 1)
  return m.state == nil or m.grammar._machine:is_last(m.state)
end
