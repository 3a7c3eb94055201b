-- Values of chat templates: nil is undefined, json.null is none; lists count from 1 here and from 0 there. Filters,
-- tests and methods, with the meaning that Jinja and Python give them.

local json = require "deepc.json"
local _, core = ...

local values = {}

local null = json.null

-- Raised with the line by who runs the template.
local function fail(text, ...)
  error({ jinja_text = text:format(...) }, 0)
end

values.fail = fail

local function kind(x)
  if x == nil then
    return "undefined"
  elseif x == null then
    return "none"
  elseif type(x) == "table" then
    return (#x > 0 or x == json.empty or getmetatable(x) == values.list) and "list"
      or next(x) == nil and "list" or "mapping"
  end
  return type(x)
end

values.kind = kind
values.list = { __name = "list" } -- of lists that were made here, which may be empty

function values.new_list(t)
  return setmetatable(t, values.list)
end

local new_list = values.new_list

function values.truth(x)
  if type(x) == "table" then
    return x ~= null and next(x) ~= nil
  end
  return x ~= nil and x ~= false and x ~= 0 and x ~= ""
end

local truth = values.truth

-- What {{ x }} writes.
function values.text(x)
  local k = kind(x)
  if k == "string" then
    return x
  elseif k == "number" then
    return math.type(x) == "integer" and tostring(x) or json.python(x)
  elseif k == "boolean" then
    return x and "True" or "False"
  elseif k == "undefined" then
    return ""
  elseif k == "none" then
    return "None"
  elseif k == "function" then
    fail "a function is no text"
  end
  fail("a %s is no text: | tojson makes one", k)
end

function values.equal(a, b)
  if type(a) ~= "table" or type(b) ~= "table" or a == b then
    return a == b
  end
  for key, v in pairs(a) do
    if not values.equal(v, b[key]) then
      return false
    end
  end
  for key in pairs(b) do
    if a[key] == nil then
      return false
    end
  end
  return true
end

function values.contains(x, item)
  local k = kind(x)
  if k == "string" then
    if type(item) ~= "string" then
      fail("'in' a string takes a string, not %s", kind(item))
    end
    return x:find(item, 1, true) ~= nil
  elseif k == "list" then
    for _, v in ipairs(x) do
      if values.equal(v, item) then
        return true
      end
    end
    return false
  elseif k == "mapping" then
    return x[item] ~= nil
  end
  fail("'in' takes a string, a list or a mapping, not %s", k)
end

-- ---- texts ----

local function is_ascii(s)
  return not s:find "[\128-\255]"
end

local function ascii_only(s, what)
  if not is_ascii(s) then
    fail("%s of letters that are not ASCII is not known", what)
  end
  return s
end

-- Characters of a text; bytes where it is no UTF-8.
local function characters(s)
  local list = {}
  if is_ascii(s) or not utf8.len(s) then
    for i = 1, #s do
      list[i] = s:sub(i, i)
    end
  else
    for c in s:gmatch(utf8.charpattern) do
      list[#list + 1] = c
    end
  end
  return new_list(list)
end

values.characters = characters

local blanks = {}
for _, code in ipairs { 9, 10, 11, 12, 13, 28, 29, 30, 31, 32, 0x85, 0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f,
  0x3000 } do
  blanks[utf8.char(code)] = true
end
for code = 0x2000, 0x200a do
  blanks[utf8.char(code)] = true
end

-- Without blanks, or characters of `set`, at its ends.
local function strip(s, set, left, right)
  local drop = blanks
  if set ~= nil and set ~= null then
    drop = {}
    for _, c in ipairs(characters(set)) do
      drop[c] = true
    end
  end
  local list = characters(s)
  local from, to = 1, #list
  while left and from <= to and drop[list[from]] do
    from = from + 1
  end
  while right and to >= from and drop[list[to]] do
    to = to - 1
  end
  return table.concat(list, "", from, to)
end

local function replace(s, old, new, count)
  if type(old) ~= "string" or type(new) ~= "string" then
    fail "replace takes two strings"
  end
  local plain = old:gsub("%W", "%%%0")
  if old == "" then
    fail "replace of nothing is not known"
  end
  return (s:gsub(plain, (new:gsub("%%", "%%%%")), count))
end

local function split(s, separator, most)
  local list, at = new_list {}, 1
  if separator == nil or separator == null then
    for word in s:gmatch "%S+" do
      list[#list + 1] = word
    end
    return list
  end
  while not most or most < 0 or #list < most do
    local from, to = s:find(separator, at, true)
    if not from then
      break
    end
    list[#list + 1] = s:sub(at, from - 1)
    at = to + 1
  end
  list[#list + 1] = s:sub(at)
  return list
end

local function title(s)
  return (ascii_only(s, "title"):lower():gsub("%a+", function(word)
    return word:sub(1, 1):upper() .. word:sub(2)
  end))
end

local function capitalize(s)
  return ascii_only(s, "capitalize"):sub(1, 1):upper() .. s:sub(2):lower()
end

local function affix(s, what, at_end)
  local list = type(what) == "table" and what or { what }
  for _, one in ipairs(list) do
    if at_end and (one == "" or s:sub(-#one) == one) or not at_end and s:sub(1, #one) == one then
      return true
    end
  end
  return false
end

values.methods = {
  strip = function(s, set) return strip(s, set, true, true) end,
  lstrip = function(s, set) return strip(s, set, true, false) end,
  rstrip = function(s, set) return strip(s, set, false, true) end,
  upper = function(s) return ascii_only(s, "upper"):upper() end,
  lower = function(s) return ascii_only(s, "lower"):lower() end,
  title = title, capitalize = capitalize, replace = replace, split = split,
  startswith = function(s, what) return affix(s, what, false) end,
  endswith = function(s, what) return affix(s, what, true) end,
  removeprefix = function(s, what) return affix(s, what, false) and s:sub(#what + 1) or s end,
  removesuffix = function(s, what) return affix(s, what, true) and s:sub(1, #s - #what) or s end,
  splitlines = function(s)
    local list = split(s:gsub("\r\n?", "\n"), "\n")
    if list[#list] == "" then
      list[#list] = nil
    end
    return list
  end,
  join = function(s, list)
    local texts = {}
    for i, v in ipairs(list) do
      texts[i] = values.text(v)
    end
    return table.concat(texts, s)
  end,
  count = function(s, what) return select(2, s:gsub(what:gsub("%W", "%%%0"), "")) end,
  find = function(s, what)
    local at = s:find(what, 1, true)
    return at and #characters(s:sub(1, at - 1)) or -1
  end,
}

-- Those that Python has besides: not known here, so not undefined.
values.unknown_methods = {}
for name in ([[casefold center encode expandtabs format format_map index isalnum isalpha isascii isdecimal isdigit
  isidentifier islower isnumeric isprintable isspace istitle isupper ljust partition rfind rindex rjust rpartition
  rsplit swapcase translate zfill]]):gmatch "%a[%a_]*" do
  values.unknown_methods[name] = true
end

-- ---- lists and mappings ----

local function items(x)
  if kind(x) ~= "mapping" and not (kind(x) == "list" and #x == 0) then
    fail("a mapping is needed, not %s", kind(x))
  end
  local list = new_list {}
  for _, key in ipairs(json.keys(x)) do
    list[#list + 1] = new_list { key, x[key] }
  end
  return list
end

-- What a loop goes over.
function values.iterate(x)
  local k = kind(x)
  if k == "list" then
    return x
  elseif k == "mapping" then
    return new_list(json.keys(x))
  elseif k == "string" then
    return characters(x)
  elseif k == "undefined" then
    return new_list {}
  end
  fail("%s cannot be looped over", k)
end

local iterate = values.iterate

values.of_mapping = {
  items = items,
  keys = function(x) return new_list(json.keys(x)) end,
  values = function(x)
    local list = new_list {}
    for i, pair in ipairs(items(x)) do
      list[i] = pair[2]
    end
    return list
  end,
  get = function(x, key, default)
    if x[key] == nil then
      return default == nil and null or default
    end
    return x[key]
  end,
}

local function length(x)
  local k = kind(x)
  if k == "string" then
    return utf8.len(x) or #x
  elseif k == "list" then
    return #x
  elseif k == "mapping" then
    return #json.keys(x)
  elseif k == "undefined" then
    return 0
  end
  fail("%s has no length", k)
end

-- ---- tests ----

local tests = {
  defined = function(x) return x ~= nil end,
  undefined = function(x) return x == nil end,
  none = function(x) return x == null end,
  string = function(x) return type(x) == "string" end,
  number = function(x) return type(x) == "number" end,
  integer = function(x) return math.type(x) == "integer" end,
  float = function(x) return math.type(x) == "float" end,
  boolean = function(x) return type(x) == "boolean" end,
  mapping = function(x) return kind(x) == "mapping" end,
  iterable = function(x) return type(x) == "string" or type(x) == "table" and x ~= null end,
  callable = function(x) return type(x) == "function" end,
  odd = function(x) return x % 2 == 1 end,
  even = function(x) return x % 2 == 0 end,
  divisibleby = function(x, n) return x % n == 0 end,
  equalto = values.equal, eq = values.equal, ["in"] = function(x, list) return values.contains(list, x) end,
  ne = function(x, y) return not values.equal(x, y) end,
  sameas = rawequal,
}
tests["true"] = function(x) return x == true end
tests["false"] = function(x) return x == false end
tests.sequence = tests.iterable
values.tests = tests

-- ---- filters ----

local filters = {}
values.filters = filters

local function attribute(x, name)
  for key in tostring(name):gmatch "[^.]+" do
    x = type(x) == "table" and x[key] or nil
  end
  return x
end

-- Items for which a test holds, of themselves or of one of their attributes.
local function selecting(wanted, of_attribute)
  return function(x, first, second, third)
    local list, name, test, argument = new_list {}, nil, first, second
    if of_attribute then
      name, test, argument = first, second, third
    end
    local holds = test and (tests[test] or fail("the test '%s' is not known", tostring(test))) or truth
    for _, v in ipairs(iterate(x)) do
      local is = v
      if of_attribute then
        is = attribute(v, name)
      end
      if holds(is, argument) == wanted then
        list[#list + 1] = v
      end
    end
    return list
  end
end

filters.select, filters.reject = selecting(true), selecting(false)
filters.selectattr, filters.rejectattr = selecting(true, true), selecting(false, true)

function filters.trim(x, set) return strip(values.text(x), set, true, true) end
function filters.upper(x) return values.methods.upper(values.text(x)) end
function filters.lower(x) return values.methods.lower(values.text(x)) end
function filters.title(x) return title(values.text(x)) end
function filters.capitalize(x) return capitalize(values.text(x)) end
function filters.replace(x, old, new, count) return replace(values.text(x), old, new, count) end
function filters.string(x) return values.text(x) end
function filters.safe(x) return x end
function filters.length(x) return length(x) end
filters.count = filters.length
function filters.first(x) return iterate(x)[1] end
function filters.items(x) return x == nil and new_list {} or items(x) end
function filters.list(x) return new_list(table.move(iterate(x), 1, #iterate(x), 1, {})) end
function filters.abs(x) return math.abs(x) end

function filters.last(x)
  local list = iterate(x)
  return list[#list]
end

function filters.join(x, separator, name)
  local list = new_list {}
  for i, v in ipairs(iterate(x)) do
    if name then
      v = attribute(v, name)
    end
    list[i] = v == nil and "" or v
  end
  return values.methods.join(separator or "", list)
end

function filters.default(x, other, also_false)
  if x == nil or also_false and not truth(x) then
    return other == nil and "" or other
  end
  return x
end
filters.d = filters.default

function filters.int(x, other)
  local n = tonumber(x)
  return n and (math.tointeger(n) or n >= 0 and math.floor(n) or math.ceil(n)) or other or 0
end

function filters.float(x, other) return (tonumber(x) or other or 0) + 0.0 end

function filters.reverse(x)
  local list, from = new_list {}, iterate(x)
  for i = #from, 1, -1 do
    list[#list + 1] = from[i]
  end
  return type(x) == "string" and table.concat(list) or list
end

function filters.unique(x)
  local list = new_list {}
  for _, v in ipairs(iterate(x)) do
    if not values.contains(list, v) then
      list[#list + 1] = v
    end
  end
  return list
end

-- map("upper"), or map(attribute = "name")
function filters.map(x, name, ...)
  local list = new_list {}
  if type(name) == "table" then
    for i, v in ipairs(iterate(x)) do
      local own = attribute(v, name.attribute)
      list[i] = own == nil and (name.default or "") or own
    end
    return list
  end
  local filter = filters[name] or fail("the filter '%s' is not known", tostring(name))
  for i, v in ipairs(iterate(x)) do
    list[i] = filter(v, ...)
  end
  return list
end

function filters.indent(x, width, first)
  local s = (" "):rep(width or 4)
  local text = values.text(x):gsub("\n([^\n])", function(c) return "\n" .. s .. c end)
  return first and s .. text or text
end

function filters.tojson(x, indent)
  if x == nil then
    fail "what is undefined is no JSON"
  end
  return json.python(x, function(what)
    fail("%s is no JSON", what)
  end, indent)
end

function filters.dictsort(x) return items(x) end

-- Arguments that have names, in the order of the places that they stand for.
values.names = {
  tojson = { "indent" }, join = { "d", "attribute" }, default = { "default_value", "boolean" },
  indent = { "width", "first" }, trim = { "chars" }, replace = { "old", "new", "count" }, int = { "default" },
}

core.jinja_values = values

return values
