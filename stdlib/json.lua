-- Values as JSON for programs: one line, keys in order. Descriptions of tokenizers, whose blanks count, are in
-- tokenizers/json.lua.
--
-- A text may have any bytes: what is no UTF-8 becomes U+FFFD. Neither `<` nor `&` is ever written, so that no text ends
-- an element of a page that the JSON stands in. nan and infinities are null.

local json = {}

json.null = setmetatable({}, { __name = "null" })

local List = {}

---@param t table
---@return table # t, which is a list also where it is empty
function json.list(t)
  return setmetatable(t, List)
end

local escapes = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }

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

local function text_of(s)
  if not utf8.len(s) then
    s = repair(s)
  end
  return '"' .. s:gsub('[%c"\\<&\127]', escape) .. '"'
end

local function number_of(v)
  if v ~= v or v == math.huge or v == -math.huge then
    return "null"
  end
  local whole = math.tointeger(v)
  return whole and ("%d"):format(whole) or (("%.17g"):format(v):gsub(",", "."))
end

local write

local function write_list(out, list, empty)
  out[#out + 1] = "["
  for i, v in ipairs(list) do
    if i > 1 then
      out[#out + 1] = ","
    end
    write(out, v, empty)
  end
  out[#out + 1] = "]"
end

-- Of a list with holes keys are numbers.
local function before(a, b)
  if type(a) ~= type(b) then
    return type(a) == "number"
  end
  return a < b
end

local function write_object(out, t, empty)
  local keys = {}
  for key in pairs(t) do
    keys[#keys + 1] = key
  end
  table.sort(keys, before)
  out[#out + 1] = "{"
  for i, key in ipairs(keys) do
    out[#out + 1] = (i > 1 and "," or "") .. text_of(tostring(key)) .. ":"
    write(out, t[key], empty)
  end
  out[#out + 1] = "}"
end

function write(out, v, empty)
  local kind = type(v)
  if v == json.null then
    out[#out + 1] = "null"
  elseif kind == "table" then
    local list = v[1] ~= nil or getmetatable(v) == List or empty == "list" and next(v) == nil
    local how = list and write_list or write_object
    how(out, v, empty)
  elseif kind == "number" then
    out[#out + 1] = number_of(v)
  elseif kind == "boolean" then
    out[#out + 1] = tostring(v)
  else
    out[#out + 1] = text_of(v)
  end
end

---A table with an element 1, or of json.list, is a list, another one an object; empty ones are lists where `empty` is
---"list".
---@param v any
---@param empty? "list"
---@return string
function json.write(v, empty)
  local out = {}
  write(out, v, empty)
  local text = table.concat(out)
  return text
end

return json
