-- JSON of tables, texts, numbers and booleans, that may stand inside a page.
--
-- A text may have any bytes: what is no UTF-8 becomes U+FFFD. Neither `<` nor `&` is ever written, so that no text ends
-- the element that the JSON stands in. A list is a table with [1], or an empty one; nan and infinities are null.

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
  return '"' .. s:gsub('[%c"\\<>&\127]', escape) .. '"'
end

local function number_of(v)
  if v ~= v or v == math.huge or v == -math.huge then
    return "null"
  end
  local whole = math.tointeger(v)
  return whole and ("%d"):format(whole) or (("%.17g"):format(v):gsub(",", "."))
end

local write

local function write_list(out, list)
  out[#out + 1] = "["
  for i, v in ipairs(list) do
    if i > 1 then
      out[#out + 1] = ","
    end
    write(out, v)
  end
  out[#out + 1] = "]"
end

local function write_object(out, t)
  local keys = {}
  for key in pairs(t) do
    keys[#keys + 1] = key
  end
  table.sort(keys)
  out[#out + 1] = "{"
  for i, key in ipairs(keys) do
    out[#out + 1] = (i > 1 and "," or "") .. text_of(key) .. ":"
    write(out, t[key])
  end
  out[#out + 1] = "}"
end

function write(out, v)
  local kind = type(v)
  if kind == "table" then
    if next(v) == nil or v[1] ~= nil then
      write_list(out, v)
    else
      write_object(out, v)
    end
  elseif kind == "number" then
    out[#out + 1] = number_of(v)
  elseif kind == "boolean" then
    out[#out + 1] = tostring(v)
  else
    out[#out + 1] = text_of(v)
  end
end

---@param v table
---@return string
return function(v)
  local out = {}
  write(out, v)
  local text = table.concat(out)
  return text
end
