-- Values as JSON: what descriptions of tokenizers are put together from, and the filter tojson of chat templates.

local _, core = ...

local json = {}

local escapes = { ['"'] = '\\"', ["\\"] = "\\\\", ["\b"] = "\\b", ["\f"] = "\\f", ["\n"] = "\\n", ["\r"] = "\\r",
  ["\t"] = "\\t" }

function json.text(s)
  return '"' .. s:gsub('[%c"\\]', function(c)
    return escapes[c] or c == "\127" and c or ("\\u%04x"):format(c:byte())
  end) .. '"'
end

local function number(x)
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

-- Keys of an object in the order of their bytes.
local function sorted(t)
  local keys = {}
  for key in pairs(t) do
    keys[#keys + 1] = key
  end
  table.sort(keys, function(a, b)
    return tostring(a) < tostring(b)
  end)
  return keys
end

json.keys = sorted

-- fail(text) is called for what JSON does not have. indent: a number of blanks, or nil for one line.
local function write(x, fail, indent, level)
  local kind = type(x)
  if kind == "string" then
    return json.text(x)
  elseif kind == "number" then
    return number(x)
  elseif kind == "boolean" then
    return tostring(x)
  elseif kind == "nil" or x == json.null then
    return "null"
  elseif kind ~= "table" then
    return fail(core.describe(x))
  elseif level > 64 then
    return fail "a table that is nested more than 64 deep"
  end
  local parts, list = {}, #x > 0 or next(x) == nil and x == json.empty
  if list then
    for i, v in ipairs(x) do
      parts[i] = write(v, fail, indent, level + 1)
    end
  else
    for i, key in ipairs(sorted(x)) do
      parts[i] = json.text(tostring(key)) .. ": " .. write(x[key], fail, indent, level + 1)
    end
  end
  local open, close = list and "[" or "{", list and "]" or "}"
  if #parts == 0 or not indent then
    return open .. table.concat(parts, ", ") .. close
  end
  local line = "\n" .. (" "):rep(indent * (level + 1))
  return open .. line .. table.concat(parts, "," .. line) .. "\n" .. (" "):rep(indent * level) .. close
end

json.null = setmetatable({}, { __name = "null" })
json.empty = setmetatable({}, { __name = "an empty list" }) -- {} is an object

function json.write(x, fail, indent)
  return write(x, fail, indent, 0)
end

-- Of what has no functions or the like in it.
function json.of(x)
  return write(x, error, nil, 0)
end

return json
