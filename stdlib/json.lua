-- Values as JSON, in one of two forms. Keys of objects are in order in both.
--
--   write    for programs and pages: one line. A text may have any bytes: what is no UTF-8 becomes U+FFFD. Neither `<`
--            nor `&` is ever written, so that no text ends an element of a page. nan and infinities are null.
--   python   as Python's json.dumps writes it, for descriptions of tokenizers and chat templates, whose blanks count.

local _, core = ...

local json = {}

json.null = setmetatable({}, { __name = "null" })
json.empty = setmetatable({}, { __name = "an empty list" }) -- {} is an object

local List = {}

---@param t table
---@return table # t, which `write` takes for a list also where it is empty
function json.list(t)
  return setmetatable(t, List)
end

local DEEPEST = 64

-- ---- texts and numbers ----

local escapes = { ['"'] = '\\"', ["\\"] = "\\\\", ["\b"] = "\\b", ["\f"] = "\\f", ["\n"] = "\\n", ["\r"] = "\\r",
  ["\t"] = "\\t" }

local function escape(c)
  return escapes[c] or ("\\u%04x"):format(c:byte())
end

-- What is valid stays, each other byte becomes U+FFFD.
local function repair(s)
  local parts, at = {}, 1
  while at <= #s do
    local _, bad = utf8.len(s, at)
    parts[#parts + 1] = s:sub(at, (bad or #s + 1) - 1)
    if bad then
      parts[#parts + 1] = "\u{FFFD}"
    end
    at = (bad or #s) + 1
  end
  return table.concat(parts)
end

local function plain_text(s)
  return '"' .. (utf8.len(s) and s or repair(s)):gsub('[%c"\\<&\127]', escape) .. '"'
end

local function plain_number(v)
  if v ~= v or v == math.huge or v == -math.huge then
    return "null"
  end
  local whole = math.tointeger(v)
  return whole and ("%d"):format(whole) or core.number("%.17g", v)
end

-- As Python writes it.
function json.text(s)
  return '"' .. s:gsub('[%c"\\]', function(c) return c == "\127" and c or escape(c) end) .. '"'
end

local function python_number(x)
  if math.type(x) == "integer" then
    return tostring(x)
  elseif x ~= x or x == math.huge or x == -math.huge then
    return x ~= x and "NaN" or x > 0 and "Infinity" or "-Infinity"
  end
  for digits = 1, 17 do
    local s = core.number(("%%.%dg"):format(digits), x)
    if tonumber(s) == x then
      return s:find "[.e]" and s or s .. ".0"
    end
  end
end

-- ---- values ----

-- Of a list with holes keys are numbers, which come first.
local function before(a, b)
  local first, second = type(a) == "number", type(b) == "number"
  if first ~= second then
    return first
  end
  return first and a < b or not first and tostring(a) < tostring(b)
end

---Keys of an object in order.
function json.keys(t)
  local keys = {}
  for key in pairs(t) do
    keys[#keys + 1] = key
  end
  table.sort(keys, before)
  return keys
end

local write

local function write_table(out, x, form, level)
  local list = form.is_list(x)
  local keys = list and x or json.keys(x)
  local line = form.indent and "\n" .. (" "):rep(form.indent * (level + 1)) or ""
  local between = "," .. (form.indent and line or form.blank)
  out[#out + 1] = list and "[" or "{"
  for i, key in ipairs(keys) do
    out[#out + 1] = i > 1 and between or line
    if not list then
      out[#out + 1] = form.text(tostring(key)) .. ":" .. form.blank
      key = x[key]
    end
    write(out, key, form, level + 1)
  end
  out[#out + 1] = (keys[1] ~= nil and line:sub(1, -1 - (form.indent or 0)) or "") .. (list and "]" or "}")
end

-- form: text, number, is_list; what stands behind a comma and a colon; indent, a number of blanks, or nil for one line;
-- fail(text), called for what JSON does not have.
function write(out, x, form, level)
  local kind = type(x)
  if kind == "string" then
    out[#out + 1] = form.text(x)
  elseif kind == "number" then
    out[#out + 1] = form.number(x)
  elseif kind == "boolean" then
    out[#out + 1] = tostring(x)
  elseif kind == "nil" or x == json.null then
    out[#out + 1] = "null"
  elseif kind ~= "table" then
    form.fail(core.describe(x))
  elseif level > DEEPEST then
    form.fail(("a table that is nested more than %d deep"):format(DEEPEST))
  else
    write_table(out, x, form, level)
  end
end

local function text_of(x, form)
  local out = {}
  write(out, x, form, 0)
  return table.concat(out)
end

local function is_plain_list(t)
  return t[1] ~= nil or getmetatable(t) == List
end

local function is_list_too(t)
  return is_plain_list(t) or next(t) == nil
end

---A table with an element 1, or of json.list, is a list, another one an object; empty ones are lists where `empty` is
---"list".
---@param v any
---@param empty? "list"
---@return string
function json.write(v, empty)
  return text_of(v, { text = plain_text, number = plain_number, blank = "", fail = error,
    is_list = empty == "list" and is_list_too or is_plain_list })
end

local function is_python_list(t)
  return #t > 0 or t == json.empty
end

---fail(text) is called for what JSON does not have; `indent` is a number of blanks, or nil for one line.
---@return string
function json.python(x, fail, indent)
  return text_of(x, { text = json.text, number = python_number, blank = " ", fail = fail or error, indent = indent,
    is_list = is_python_list })
end

return json
