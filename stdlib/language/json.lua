-- Values as JSON, on one line, keys in order. A table is an object, unless json.list made it or it has an element 1.

local json = {}

json.null = setmetatable({}, { __name = "null" })

local List = {}

---@param t table
---@return table # t, which is a list also where it is empty
function json.list(t)
  return setmetatable(t, List)
end

local escapes = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }

-- Bytes that are no UTF-8 become U+FFFD.
local function valid(s)
  local parts, at = {}, 1
  while at <= #s do
    local _, bad = utf8.len(s, at)
    parts[#parts + 1] = s:sub(at, (bad or #s + 1) - 1)
    if not bad then
      break
    end
    parts[#parts + 1] = "\u{fffd}"
    at = bad + 1
  end
  return table.concat(parts)
end

local function text(s)
  if not utf8.len(s) then
    s = valid(s)
  end
  return '"' .. s:gsub('[%c"\\]', function(c)
    return escapes[c] or ("\\u%04x"):format(c:byte())
  end) .. '"'
end

local function write(x, out)
  local kind = type(x)
  if kind == "string" then
    out[#out + 1] = text(x)
  elseif kind == "number" then
    out[#out + 1] = math.type(x) == "integer" and ("%d"):format(x) or ("%.17g"):format(x)
  elseif kind ~= "table" then
    out[#out + 1] = tostring(x)
  elseif x == json.null then
    out[#out + 1] = "null"
  elseif x[1] ~= nil or getmetatable(x) == List then
    out[#out + 1] = "["
    for i, v in ipairs(x) do
      out[#out + 1] = i > 1 and "," or nil
      write(v, out)
    end
    out[#out + 1] = "]"
  else
    local keys = {}
    for k in pairs(x) do
      keys[#keys + 1] = k
    end
    table.sort(keys)
    out[#out + 1] = "{"
    for i, k in ipairs(keys) do
      out[#out + 1] = (i > 1 and "," or "") .. text(k) .. ":"
      write(x[k], out)
    end
    out[#out + 1] = "}"
  end
end

---@return string
function json.write(x)
  local out = {}
  write(x, out)
  return table.concat(out)
end

return json
