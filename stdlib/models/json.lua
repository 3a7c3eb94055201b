-- The JSON of config.json and of indices of sharded files: objects and lists become tables, null becomes json.null.
-- Private to deepc.models.

local _, core = ...

local json = { null = setmetatable({}, { __name = "null", __tostring = function() return "null" end }) }

local DEEPEST = 64
local LARGEST = 16 << 20 -- bytes

local ESCAPES = { ['"'] = '"', ["\\"] = "\\", ["/"] = "/", b = "\b", f = "\f", n = "\n", r = "\r", t = "\t" }
local WORDS = { ["true"] = true, ["false"] = false, null = json.null }

local Reader = {}
Reader.__index = Reader

function Reader:wrong(text)
  core.fail("FORMAT", self.op, ("%s: byte %d of the JSON: %s"):format(self.path, self.at, text))
end

function Reader:blanks()
  self.at = self.text:find("[^ \t\r\n]", self.at) or #self.text + 1
end

-- The four digits of \uXXXX, behind which `at` stands then.
function Reader:unit()
  local digits = self.text:match("^%x%x%x%x", self.at)
  if not digits then
    self:wrong "\\u needs four hexadecimal digits"
  end
  self.at = self.at + 4
  return tonumber(digits, 16)
end

function Reader:escape()
  local c = self.text:sub(self.at, self.at)
  self.at = self.at + 1
  if ESCAPES[c] then
    return ESCAPES[c]
  elseif c ~= "u" then
    self:wrong "an unknown escape in a text"
  end
  local code = self:unit()
  if code >= 0xD800 and code < 0xDC00 and self.text:sub(self.at, self.at + 1) == "\\u" then
    self.at = self.at + 2
    local low = self:unit()
    if low < 0xDC00 or low > 0xDFFF then
      self:wrong "half of a surrogate pair"
    end
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
  elseif code >= 0xD800 and code < 0xE000 then
    self:wrong "half of a surrogate pair"
  end
  return utf8.char(code)
end

function Reader:string()
  local parts = {}
  self.at = self.at + 1
  while true do
    local stop = self.text:find('["\\%c]', self.at)
    if not stop then
      self:wrong "a text does not end"
    end
    parts[#parts + 1] = self.text:sub(self.at, stop - 1)
    local c = self.text:sub(stop, stop)
    self.at = stop + 1
    if c == '"' then
      return table.concat(parts)
    elseif c ~= "\\" then
      self:wrong "a control character in a text"
    end
    parts[#parts + 1] = self:escape()
  end
end

function Reader:number()
  local whole = self.text:match("^-?%d+", self.at)
  local text = whole and whole .. (self.text:match("^%.%d+", self.at + #whole) or "")
  text = text and text .. (self.text:match("^[eE][+-]?%d+", self.at + #text) or "")
  if not text or text:match "^-?0%d" then
    self:wrong "no value that JSON knows"
  end
  self.at = self.at + #text
  return tonumber(text)
end

-- Calls item() for what stands between commas, up to the closing bracket.
function Reader:items(close, depth, item)
  if depth > DEEPEST then
    self:wrong(("more than %d levels"):format(DEEPEST))
  end
  self.at = self.at + 1
  self:blanks()
  if self.text:sub(self.at, self.at) == close then
    self.at = self.at + 1
    return
  end
  while true do
    item()
    self:blanks()
    local c = self.text:sub(self.at, self.at)
    self.at = self.at + 1
    if c == close then
      return
    elseif c ~= "," then
      self.at = self.at - 1
      self:wrong(("',' or '%s' is needed"):format(close))
    end
    self:blanks()
  end
end

function Reader:object(depth)
  local t = {}
  self:items("}", depth, function()
    if self.text:sub(self.at, self.at) ~= '"' then
      self:wrong "a key is a text in quotes"
    end
    local key = self:string()
    self:blanks()
    if self.text:sub(self.at, self.at) ~= ":" then
      self:wrong "':' is needed"
    end
    self.at = self.at + 1
    t[key] = self:value(depth + 1)
  end)
  return t
end

function Reader:list(depth)
  local t, n = {}, 0
  self:items("]", depth, function()
    n = n + 1
    t[n] = self:value(depth + 1)
  end)
  return t
end

function Reader:value(depth)
  self:blanks()
  local c = self.text:sub(self.at, self.at)
  if c == "{" then
    return self:object(depth)
  elseif c == "[" then
    return self:list(depth)
  elseif c == '"' then
    return self:string()
  end
  local word = self.text:match("^%a+", self.at)
  if word == nil then
    return self:number()
  elseif WORDS[word] == nil then
    self:wrong "no value that JSON knows"
  end
  self.at = self.at + #word
  return WORDS[word]
end

-- The object that a text is; path is for errors.
function json.decode(op, path, text)
  local self = setmetatable({ op = op, path = path, text = text, at = 1 }, Reader)
  self:blanks()
  if text:sub(self.at, self.at) ~= "{" then
    self:wrong "an object is needed"
  end
  local t = self:value(1)
  self:blanks()
  if self.at <= #text then
    self:wrong "something stands behind the object"
  end
  return t
end

-- The object in a file.
function json.read(op, path)
  local text = core.read_file(op, path)
  if #text > LARGEST then
    core.fail("FORMAT", op, ("%s: more than %d bytes of JSON"):format(path, LARGEST))
  end
  return json.decode(op, path, text)
end

core.models_json = json
return json
