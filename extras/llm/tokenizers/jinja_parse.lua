-- Chat templates: texts in Jinja to trees. The part of the language that such templates use; the rest is refused by
-- its name.
--
-- A node is a list: its kind, its line, its parts. Blocks are lists of nodes.

local jinja = {}

local function fail(line, text, ...)
  error({ jinja = ("line %d: %s"):format(line, text:format(...)) }, 0)
end

jinja.fail = fail

-- ---- pieces: text and tags ----

local function lines_in(s)
  return select(2, s:gsub("\n", ""))
end

-- The end of a tag from `at` on; strings, and mappings with their braces, are passed over.
local function end_of(source, at, close, line)
  local i, braces = at, 0
  while i <= #source do
    local c = source:sub(i, i)
    if c == "'" or c == '"' then
      local k = i + 1
      while k <= #source and source:sub(k, k) ~= c do
        k = k + (source:sub(k, k) == "\\" and 2 or 1)
      end
      i = k + 1
    elseif braces == 0 and source:sub(i, i + 1) == close then
      return i
    else
      braces = math.max(0, braces + (c == "{" and 1 or c == "}" and -1 or 0))
      i = i + 1
    end
  end
  fail(line, "'%s' is missing", close)
end

-- As the packages set it up: the newline behind a block goes, and blanks before one that begins a line (trim_blocks,
-- lstrip_blocks); "-" takes away all blanks, "+" leaves them.
local function pieces(source)
  source = source:gsub("\r\n?", "\n"):gsub("\n$", "", 1)
  local list, at, line = {}, 1, 1
  local closes = { ["{{"] = "}}", ["{%"] = "%}", ["{#"] = "#}" }
  local strip = false -- of the text that comes
  local function text(s, open, sign)
    local own = s
    if strip == "all" then
      own = own:gsub("^%s+", "")
    elseif strip == "line" then
      own = own:gsub("^\n", "")
    end
    if sign == "-" then
      own = own:gsub("%s+$", "")
    elseif open and open ~= "{{" and sign ~= "+" then
      local head = own:match "^(.*\n)[ \t]*$"
      if head then
        own = head
      elseif own:find "^[ \t]*$" and (at == 1 or strip == "line" and s:find "^\n") then
        own = ""
      end
    end
    if own ~= "" then
      list[#list + 1] = { "text", line, own }
    end
    line = line + lines_in(s)
  end
  while true do
    local open_at, _, open = source:find("({[{%%#])", at)
    if not open_at then
      text(source:sub(at))
      return list
    end
    local sign = source:sub(open_at + 2, open_at + 2):match "[-+]" or ""
    text(source:sub(at, open_at - 1), open, sign)
    local from = open_at + 2 + #sign
    local stop = open ~= "{#" and end_of(source, from, closes[open], line)
      or source:find("#}", from, true) or fail(line, "'#}' is missing")
    local inner = source:sub(from, stop - 1)
    local last = inner:sub(-1)
    strip = open ~= "{{" and "line" or false
    if last == "-" or last == "+" then
      inner = inner:sub(1, -2)
      strip = last == "-" and "all" or false
    end
    if open ~= "{#" then
      list[#list + 1] = { open == "{{" and "print" or "block", line, inner }
    end
    line = line + lines_in(source:sub(open_at, stop + 1))
    at = stop + 2
  end
end

-- ---- words of an expression ----

local escapes = { n = "\n", t = "\t", r = "\r", ["\\"] = "\\", ["'"] = "'", ['"'] = '"', ["\n"] = "" }

local function unescape(s, line)
  return (s:gsub("\\(.)", function(c)
    return escapes[c] or c ~= "x" and c ~= "u" and "\\" .. c or fail(line, "\\%s in a string is not known", c)
  end))
end

local signs = { "==", "!=", "<=", ">=", "//", "**", "(", ")", "[", "]", "{", "}", ",", ".", ":", "|", "~", "+", "-",
  "*", "/", "%", "<", ">", "=" }

local function sign_at(s, at)
  for _, sign in ipairs(signs) do
    if s:sub(at, at + #sign - 1) == sign then
      return sign
    end
  end
end

local function words(s, line)
  local list, at = {}, 1
  while true do
    local blank = s:match("^%s+", at)
    if blank then
      line, at = line + lines_in(blank), at + #blank
    end
    if at > #s then
      list[#list + 1] = { "end", line, "the end" }
      return list
    end
    local name, number = s:match("^[%a_][%w_]*", at), s:match("^%d[%d_]*%.?%d*", at)
    local quote = s:match("^['\"]", at)
    if name then
      list[#list + 1] = { "name", line, name }
      at = at + #name
    elseif number then
      list[#list + 1] = { "number", line, tonumber((number:gsub("_", ""))) }
      at = at + #number
    elseif quote then
      local stop = at + 1
      while s:sub(stop, stop) ~= quote do
        if stop > #s then
          fail(line, "a string has no end")
        end
        stop = stop + (s:sub(stop, stop) == "\\" and 2 or 1)
      end
      list[#list + 1] = { "string", line, unescape(s:sub(at + 1, stop - 1), line) }
      line, at = line + lines_in(s:sub(at, stop)), stop + 1
    else
      local sign = sign_at(s, at) or fail(line, "'%s' is not known", s:sub(at, at))
      list[#list + 1] = { sign, line, sign }
      at = at + #sign
    end
  end
end

-- ---- expressions ----

local Reader = {}
Reader.__index = Reader

local function reader(s, line)
  return setmetatable({ words = words(s, line), at = 1, depth = 0 }, Reader)
end

function Reader:now()
  return self.words[self.at]
end

function Reader:line()
  return self:now()[2]
end

function Reader:is(kind, text)
  local w = self:now()
  return w[1] == kind and (text == nil or w[3] == text)
end

function Reader:accept(kind, text)
  if self:is(kind, text) then
    self.at = self.at + 1
    return self.words[self.at - 1][3]
  end
end

function Reader:expect(kind, text)
  local w = self:now()
  return self:accept(kind, text) or fail(w[2], "'%s' expected, not '%s'", text or kind, tostring(w[3]))
end

function Reader:finish()
  if not self:is "end" then
    fail(self:line(), "'%s' is not expected", tostring(self:now()[3]))
  end
end

local function binary(next_level, operators)
  return function(self)
    local left = next_level(self)
    while operators[self:now()[1]] do
      local line, op = self:line(), self:now()[1]
      self.at = self.at + 1
      left = { "binary", line, op, left, next_level(self) }
    end
    return left
  end
end

-- Arguments between parentheses: { positions, names }.
function Reader:arguments()
  local list, named = {}, {}
  while not self:accept ")" do
    local w, then_ = self:now(), self.words[self.at + 1]
    if w[1] == "name" and then_[1] == "=" then
      self.at = self.at + 2
      named[w[3]] = self:expression()
    elseif w[1] == "*" or w[1] == "**" then
      fail(w[2], "'%s' before an argument is not known", w[1])
    else
      list[#list + 1] = self:expression()
    end
    if not self:is ")" then
      self:expect ","
    end
  end
  return { list, named }
end

local constants = { ["true"] = { true }, ["True"] = { true }, ["false"] = { false }, ["False"] = { false },
  none = {}, None = {} }

function Reader:list(close)
  local items, comma = {}, false
  while not self:accept(close) do
    items[#items + 1] = self:expression()
    comma = self:accept ","
    if not comma and not self:is(close) then
      self:expect ","
    end
  end
  return items, comma
end

function Reader:primary()
  local w = self:now()
  self.at = self.at + 1
  if w[1] == "name" then
    local constant = constants[w[3]]
    if constant then
      return constant[1] == nil and { "none", w[2] } or { "constant", w[2], constant[1] }
    end
    return { "name", w[2], w[3] }
  elseif w[1] == "string" then
    local s = w[3]
    while self:is "string" do
      s = s .. self:accept "string"
    end
    return { "constant", w[2], s }
  elseif w[1] == "number" then
    return { "constant", w[2], w[3] }
  elseif w[1] == "(" then
    local items, comma = self:list ")"
    return #items == 1 and not comma and items[1] or { "list", w[2], items }
  elseif w[1] == "[" then
    return { "list", w[2], (self:list "]") }
  elseif w[1] == "{" then
    local keys, values = {}, {}
    while not self:accept "}" do
      keys[#keys + 1] = self:expression()
      self:expect ":"
      values[#values + 1] = self:expression()
      if not self:is "}" then
        self:expect ","
      end
    end
    return { "dict", w[2], keys, values }
  end
  fail(w[2], "a value expected, not '%s'", tostring(w[3]))
end

-- [i] or [from:to:step]
function Reader:subscript(value)
  local line, parts, k, slice = self:line(), {}, 1, false
  while not self:accept "]" do
    if self:accept ":" then
      slice, k = true, k + 1
    else
      parts[k] = self:expression()
    end
  end
  if slice then
    return { "slice", line, value, parts[1], parts[2], parts[3] }
  elseif not parts[1] then
    fail(line, "a position expected, not ']'")
  end
  return { "item", line, value, parts[1] }
end

function Reader:postfix(value)
  while true do
    local line = self:line()
    if self:accept "." then
      value = self:is "number" and { "item", line, value, { "constant", line, self:accept "number" } }
        or { "attribute", line, value, self:expect "name" }
    elseif self:accept "[" then
      value = self:subscript(value)
    elseif self:accept "(" then
      value = { "call", line, value, self:arguments() }
    else
      return value
    end
  end
end

local ends_test = { ["else"] = true, ["or"] = true, ["and"] = true, ["is"] = true, ["if"] = true, ["in"] = true,
  ["not"] = true }

-- Behind a value: | filter, is test.
function Reader:filters(value)
  while true do
    local line = self:line()
    if self:accept "|" then
      local name = self:expect "name"
      value = { "filter", line, name, value, self:accept "(" and self:arguments() or { {}, {} } }
    elseif self:accept("name", "is") then
      local negated = self:accept("name", "not")
      local name = self:expect "name"
      local arguments = { {}, {} }
      if self:accept "(" then
        arguments = self:arguments()
      elseif self:is "string" or self:is "number" or self:is "[" or self:is "name" and not ends_test[self:now()[3]] then
        arguments[1][1] = self:postfix(self:primary())
      end
      value = { "test", line, name, value, arguments }
      value = negated and { "not", line, value } or value
    else
      return value
    end
  end
end

function Reader:unary(plain)
  local line = self:line()
  local value = self:accept "-" and { "negative", line, self:unary(true) } or self:accept "+" and self:unary(true)
    or self:postfix(self:primary())
  return plain and value or self:filters(value)
end

function Reader:power()
  local left = self:unary()
  while self:is "**" do
    local line = self:line()
    self.at = self.at + 1
    left = { "binary", line, "**", left, self:unary() }
  end
  return left
end

local product = binary(Reader.power, { ["*"] = true, ["/"] = true, ["//"] = true, ["%"] = true })
local concatenation = binary(product, { ["~"] = true })
local sum = binary(concatenation, { ["+"] = true, ["-"] = true })

local comparisons = { ["=="] = true, ["!="] = true, ["<"] = true, [">"] = true, ["<="] = true, [">="] = true }

function Reader:comparison()
  local left, all = sum(self), nil
  while true do
    local line, op = self:line(), self:now()[1]
    if comparisons[op] then
      self.at = self.at + 1
    elseif self:accept("name", "in") then
      op = "in"
    elseif self:is("name", "not") and self.words[self.at + 1][3] == "in" then
      self.at, op = self.at + 2, "not in"
    else
      return all or left
    end
    local right = sum(self)
    local one = { "binary", line, op, left, right }
    all = all and { "and", line, all, one } or one
    left = right
  end
end

function Reader:negation()
  local line = self:line()
  if self:accept("name", "not") then
    return { "not", line, self:negation() }
  end
  return self:comparison()
end

function Reader:conjunction()
  local left = self:negation()
  while self:is("name", "and") do
    local line = self:line()
    self.at = self.at + 1
    left = { "and", line, left, self:negation() }
  end
  return left
end

function Reader:disjunction()
  local left = self:conjunction()
  while self:is("name", "or") do
    local line = self:line()
    self.at = self.at + 1
    left = { "or", line, left, self:conjunction() }
  end
  return left
end

function Reader:expression()
  self.depth = self.depth + 1
  if self.depth > 100 then
    fail(self:line(), "expressions in each other are at most 100 deep")
  end
  local value = self:disjunction()
  while self:is("name", "if") do
    local line = self:line()
    self.at = self.at + 1
    local condition, otherwise = self:disjunction(), nil
    if self:accept("name", "else") then
      otherwise = self:expression()
    end
    value = { "choice", line, condition, value, otherwise }
  end
  self.depth = self.depth - 1
  return value
end

-- a, b, c: a tuple where there is a comma
function Reader:values()
  local line, items = self:line(), { self:expression() }
  while self:accept "," do
    items[#items + 1] = self:expression()
  end
  return #items == 1 and items[1] or { "list", line, items }
end

-- ---- blocks ----

local Parser = {}
Parser.__index = Parser

-- Nodes up to a block of one of these names; that one's name and words.
function Parser:block(line, ...)
  local list, stops = {}, {}
  for _, name in ipairs { ... } do
    stops[name] = true
  end
  self.depth = self.depth + 1
  if self.depth > 100 then
    fail(line, "blocks in each other are at most 100 deep")
  end
  while true do
    local piece = self.pieces[self.at]
    self.at = self.at + 1
    if not piece then
      if stops["end"] then
        return list
      end
      fail(line, "'%s' is missing", (...))
    elseif piece[1] == "text" then
      list[#list + 1] = piece
    else
      local r = reader(piece[3], piece[2])
      if piece[1] == "print" then
        list[#list + 1] = { "print", piece[2], r:values() }
        r:finish()
      else
        local name = r:expect "name"
        if stops[name] then
          self.depth = self.depth - 1
          return list, name, r
        end
        local parse = self["parse_" .. name] or fail(piece[2], "the block '%s' is not known", name)
        list[#list + 1] = parse(self, r, piece[2])
      end
    end
  end
end

function Parser:parse_if(r, line)
  local arms, otherwise = {}, nil
  local condition = r:values()
  r:finish()
  repeat
    local body, name, rest = self:block(line, "endif", "elif", "else")
    arms[#arms + 1] = { condition, body }
    if name == "elif" then
      condition = rest:values()
    elseif name == "else" then
      rest:finish()
      otherwise, name, rest = self:block(line, "endif")
    end
    rest:finish()
  until name == "endif"
  return { "if", line, arms, otherwise }
end

local function targets(r)
  local names = {}
  local close = r:accept "("
  repeat
    names[#names + 1] = r:expect "name"
  until not r:accept ","
  if close then
    r:expect ")"
  end
  return names
end

function Parser:parse_for(r, line)
  local names, condition, otherwise = targets(r), nil, nil
  r:expect("name", "in")
  local values = r:disjunction()
  if r:accept("name", "if") then
    condition = r:expression()
  end
  if r:is("name", "recursive") then
    fail(line, "'recursive' is not known")
  end
  r:finish()
  local body, name, rest = self:block(line, "endfor", "else")
  rest:finish()
  if name == "else" then
    local _, last
    otherwise, _, last = self:block(line, "endfor")
    last:finish()
  end
  return { "for", line, names, values, condition, body, otherwise }
end

function Parser:parse_set(r, line)
  local names = targets(r)
  local field = #names == 1 and r:accept "." and r:expect "name" or nil
  if r:accept "=" then
    local value = r:values()
    r:finish()
    return { "set", line, names, field, value }
  end
  r:finish()
  local body, _, rest = self:block(line, "endset")
  rest:finish()
  return { "set_block", line, names[1], body }
end

function Parser:parse_macro(r, line)
  local name, names, defaults = r:expect "name", {}, {}
  r:expect "("
  while not r:accept ")" do
    names[#names + 1] = r:expect "name"
    if r:accept "=" then
      defaults[#names] = r:expression()
    end
    if not r:is ")" then
      r:expect ","
    end
  end
  r:finish()
  local body, _, rest = self:block(line, "endmacro")
  if rest:is "name" then
    rest:expect("name", name)
  end
  rest:finish()
  return { "macro", line, name, names, defaults, body }
end

function Parser:parse_break(r, line)
  r:finish()
  return { "break", line, self ~= nil }
end

function Parser:parse_continue(r, line)
  r:finish()
  return { "continue", line, self ~= nil }
end

-- What the packages mark as made by the model.
function Parser:parse_generation(r, line)
  r:finish()
  local body, _, rest = self:block(line, "endgeneration")
  rest:finish()
  return { "if", line, { { { "constant", line, true }, body } } }
end

-- The tree of a template: a list of nodes.
function jinja.parse(source)
  local p = setmetatable({ pieces = pieces(source), at = 1, depth = 0 }, Parser)
  return (p:block(1, "end"))
end

return jinja
