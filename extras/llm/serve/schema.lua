-- Schemas of JSON as trees of regular expressions: what has a fixed form. Fields are written in one order, those that
-- are required first, in the order of `required`, then the others by their names.

require "deepc.serve.regex"
local json = require "deepc.json"
local _, core = ...

local DEEPEST = 32
local LONGEST = 10000 -- of strings and lists

-- ---- trees ----

local function set(...)
  return { kind = "set", ranges = { ... } }
end

local function sequence(...)
  return { kind = "sequence", list = { ... } }
end

local function either(list)
  return { kind = "either", list = list }
end

local function times(of, low, high)
  return { kind = "times", of = of, low = low, high = high }
end

-- A text as it stands.
local function literal(text)
  local list = {}
  for _, code in utf8.codes(text) do
    list[#list + 1] = set { code, code }
  end
  return { kind = "sequence", list = list }
end

local SPACE = times(set({ 9, 10 }, { 32, 32 }), 0, 16)
local DIGIT, HEX = set { 48, 57 }, set({ 48, 57 }, { 65, 70 }, { 97, 102 })
local INTEGER = sequence(times(literal "-", 0, 1), either { literal "0", sequence(set { 49, 57 }, times(DIGIT, 0)) })
local NUMBER = sequence(INTEGER, times(sequence(literal ".", times(DIGIT, 1)), 0, 1),
  times(sequence(set({ 69, 69 }, { 101, 101 }), times(set({ 43, 43 }, { 45, 45 }), 0, 1), times(DIGIT, 1)), 0, 1))
local ESCAPES = { kind = "set", ranges = {} }
for _, code in utf8.codes '"\\/bfnrt' do
  table.insert(ESCAPES.ranges, { code, code })
end
local LETTER = either { set({ 32, 33 }, { 35, 91 }, { 93, 0x10FFFF }), sequence(literal "\\",
  either { ESCAPES, sequence(literal "u", times(HEX, 4, 4)) }) }

-- ---- schemas ----

local Reader = {}
Reader.__index = Reader

function Reader:fail(path, text, hint)
  core.fail("ARG", self.op, ("%s %s"):format(path, text), hint)
end

-- What says nothing about values.
local NOTES = { title = true, description = true, default = true, examples = true, ["$schema"] = true, ["$id"] = true,
  ["$comment"] = true }

local KNOWN = {
  string = { minLength = true, maxLength = true, pattern = true },
  array = { items = true, minItems = true, maxItems = true },
  object = { properties = true, required = true, additionalProperties = true },
  number = {}, integer = {}, boolean = {}, null = {},
  any = { enum = true, const = true, anyOf = true, oneOf = true },
}

-- Refuses keywords that are not followed here.
function Reader:check(path, schema, kind)
  local keys = {}
  for key in pairs(schema) do
    keys[#keys + 1] = tostring(key)
  end
  table.sort(keys)
  for _, key in ipairs(keys) do
    if key ~= "type" and not NOTES[key] and not (KNOWN[kind] or KNOWN.any)[key] then
      self:fail(path .. "." .. key, "is not known here", "texts would not follow it")
    end
  end
end

local function is_table(v)
  return type(v) == "table" and not core.kind(v) and getmetatable(v) == nil
end

-- Two bounds, the first of which is 0 without one.
function Reader:bounds(path, schema, low, high)
  local bounds = {}
  for i, key in ipairs { low, high } do
    local v = schema[key]
    if v ~= nil and (math.type(v) ~= "integer" or v < 0 or v > LONGEST) then
      self:fail(path .. "." .. key, ("is %s; a whole number from 0 to %d is needed"):format(core.shown(v), LONGEST))
    end
    bounds[i] = v
  end
  if bounds[1] and bounds[2] and bounds[2] < bounds[1] then
    self:fail(path, ("has %s = %d below %s = %d"):format(high, bounds[2], low, bounds[1]))
  end
  return bounds[1] or 0, bounds[2]
end

local makers = {}

function makers.boolean()
  return either { literal "true", literal "false" }
end

function makers.null()
  return literal "null"
end

function makers.integer()
  return INTEGER
end

function makers.number()
  return NUMBER
end

function makers.string(r, path, schema)
  local low, high = r:bounds(path, schema, "minLength", "maxLength")
  local inner = times(LETTER, low, high)
  if schema.pattern ~= nil then
    if schema.minLength or schema.maxLength then
      r:fail(path, "has a pattern and lengths; one of both is known")
    end
    inner = core.regex_tree(r.op, schema.pattern)
  end
  return sequence(literal '"', inner, literal '"')
end

function makers.array(r, path, schema, depth)
  local low, high = r:bounds(path, schema, "minItems", "maxItems")
  if schema.items == nil then
    r:fail(path .. ".items", "is missing")
  end
  local item = r:read(path .. ".items", schema.items, depth + 1)
  local open, close = sequence(literal "[", SPACE), sequence(SPACE, literal "]")
  if high == 0 then
    return sequence(open, close)
  end
  local more = times(sequence(SPACE, literal ",", SPACE, item), math.max(low - 1, 0), high and high - 1)
  local all = sequence(item, more)
  return sequence(open, low == 0 and times(all, 0, 1) or all, close)
end

-- Names of fields in the order in which they are written; how many of them are required.
function Reader:names(path, schema)
  local names, required = {}, {}
  for i, name in ipairs(is_table(schema.required) and schema.required or {}) do
    if type(name) ~= "string" or schema.properties[name] == nil then
      self:fail(("%s.required[%d]"):format(path, i), ("is %s, which is none of its properties"):format(
        core.shown(name)))
    elseif not required[name] then
      names[#names + 1], required[name] = name, true
    end
  end
  local rest = {}
  for name in pairs(schema.properties) do
    if type(name) ~= "string" or not utf8.len(name) then
      self:fail(path .. ".properties", ("has %s; names are texts in UTF-8"):format(core.shown(name)))
    end
    rest[#rest + 1] = not required[name] and name or nil
  end
  table.sort(rest)
  local n = #names
  return table.move(rest, 1, #rest, n + 1, names), n
end

function makers.object(r, path, schema, depth)
  if not is_table(schema.properties) then
    r:fail(path .. ".properties", "is missing", "serve.json(tokenizer, { object = true }) takes any object")
  elseif schema.additionalProperties then
    r:fail(path .. ".additionalProperties", "is not known here", "texts would not follow it")
  end
  local names, required = r:names(path, schema)
  local comma, members = sequence(SPACE, literal ",", SPACE), {}
  for i, name in ipairs(names) do
    members[i] = sequence(literal(json.text(name)), literal ":", SPACE,
      r:read(("%s.properties.%s"):format(path, name), schema.properties[name], depth + 1))
  end
  -- those behind a member that is there
  local function behind(first)
    local list = {}
    for i = first, #members do
      local one = sequence(comma, members[i])
      list[#list + 1] = i <= required and one or times(one, 0, 1)
    end
    return { kind = "sequence", list = list }
  end
  local ways = {}
  for i = 1, required > 0 and 1 or #members do
    ways[i] = sequence(members[i], behind(i + 1))
  end
  local all = #ways > 0 and either(ways) or sequence()
  return sequence(literal "{", SPACE, required == 0 and times(all, 0, 1) or all, SPACE, literal "}")
end

-- A value as it stands.
function Reader:constant(path, v)
  local kind = type(v)
  local finite = kind == "number" and v == v and math.abs(v) < math.huge
  if finite or kind == "boolean" or kind == "string" and utf8.len(v) then
    return literal(json.python(v))
  end
  self:fail(path, ("is %s; texts, numbers and bools are known"):format(core.shown(v)))
end

-- One of several.
function Reader:choice(path, list, read)
  if not is_table(list) or #list == 0 then
    self:fail(path, "is a list of at least one")
  end
  local ways = {}
  for i, v in ipairs(list) do
    ways[i] = read(("%s[%d]"):format(path, i), v)
  end
  return either(ways)
end

function Reader:read(path, schema, depth)
  if not is_table(schema) then
    self:fail(path, ("is %s; a table is needed"):format(core.shown(schema)))
  elseif depth > DEEPEST then
    self:fail(path:sub(1, 60) .. "...", ("is more than %d schemas deep"):format(DEEPEST))
  end
  local function constant(at, v) return self:constant(at, v) end
  local kind = schema.type
  if schema.const ~= nil then
    self:check(path, schema)
    return constant(path .. ".const", schema.const)
  elseif schema.enum ~= nil then
    self:check(path, schema)
    return self:choice(path .. ".enum", schema.enum, constant)
  end
  for _, key in ipairs { "anyOf", "oneOf" } do
    if schema[key] ~= nil then
      self:check(path, schema)
      return self:choice(path .. "." .. key, schema[key], function(at, one) return self:read(at, one, depth + 1) end)
    end
  end
  if type(kind) ~= "string" or not makers[kind] then
    self:fail(path .. ".type", ("is %s; known are array, boolean, integer, null, number, object, string"):format(
      core.shown(kind)))
  end
  self:check(path, schema, kind)
  return makers[kind](self, path, schema, depth)
end

-- The machine of the values of a schema.
function core.schema_machine(op, schema)
  local tree = setmetatable({ op = op }, Reader):read("schema", schema, 1)
  return core.tree_machine(op, "schema", tree)
end
