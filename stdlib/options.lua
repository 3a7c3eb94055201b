-- dc.options: what a script was given on its command line, by a list of what it knows; dc.fail ends it. Their
-- annotations are in api/scripts.lua.
--
-- A row of the list is { name, default, text }, and more by name: type, choices, min, max, required, needs, value
-- (what --help calls it). The default tells the type.

local _, core = ...

local options = {}

local OP = "options"

local function fail(hint, text, ...)
  core.fail("ARG", OP, text:format(...), hint)
end

-- "is 'epochs' meant?", or nil.
local function near(names, name)
  local set = {}
  for _, key in ipairs(names) do
    set[key] = true
  end
  return core.near(set, name)
end

-- ---- types ----

local function as_number(text)
  local n = tonumber(text)
  return n and n == n and n + 0.0 or nil
end

local function as_integer(text)
  return math.tointeger(tonumber(text))
end

local flags = { ["true"] = true, ["yes"] = true, ["1"] = true, ["false"] = false, ["no"] = false, ["0"] = false }

-- type -> how a text is read, what errors call it, what --help calls it
local types = {
  string = { function(text) return text end, "text", "TEXT" },
  number = { as_number, "a number", "X" },
  integer = { as_integer, "an integer", "N" },
  flag = { function(text) return flags[text] end, "true or false" },
}

local type_of_default = { string = "string", boolean = "flag", integer = "integer", float = "number" }

local known_keys = { type = true, choices = true, min = true, max = true, required = true, needs = true,
  value = true }

-- ---- the list ----

local function check_keys(row, name)
  for key in pairs(row) do
    if not known_keys[key] and key ~= 1 and key ~= 2 and key ~= 3 then
      fail("type, choices, min, max, required, needs, value", "'%s' of --%s says nothing", tostring(key), name)
    end
  end
end

local function check_default(o)
  local range = o.min or o.max
  if range and o.type ~= "integer" and o.type ~= "number" then
    fail(nil, "--%s is no number and has bounds", o.name)
  end
  if o.choices and (type(o.choices) ~= "table" or #o.choices == 0 or o.type ~= "string") then
    fail(nil, "choices of --%s are a list of texts", o.name)
  end
end

-- The names of other options, as a list.
local function read_needs(row, name)
  local list = type(row.needs) == "table" and row.needs or { row.needs }
  for i = 1, #list do
    if type(list[i]) ~= "string" then
      fail('needs = "checkpoint"', "what --%s needs is the name of an option, not %s", name, core.describe(list[i]))
    end
  end
  if #list == 0 and next(list) ~= nil then
    fail('needs = { "checkpoint" }', "what --%s needs is a list, not a table of names", name)
  end
  return list
end

local function read_row(row, i)
  local name, default, about = row[1], row[2], row[3]
  if type(name) ~= "string" or not name:match "^%a[%w_-]*$" then
    fail('{ "epochs", 5, "passes over the data" }', "row %d begins with %s, not with the name of an option", i,
      type(name) == "string" and "'" .. name .. "'" or type(name))
  end
  check_keys(row, name)
  local kind = row.type or type_of_default[math.type(default) or type(default)] or default == nil and "string"
  if not types[kind] then
    fail("string, number, integer, flag", "the type of --%s is %s", name, tostring(row.type or type(default)))
  elseif about ~= nil and type(about) ~= "string" then
    fail('{ "epochs", 5, "passes over the data" }', "the text about --%s is a %s", name, type(about))
  end
  if kind == "number" and default then
    default = default + 0.0
  end
  local o = {
    name = name, key = name:gsub("-", "_"), type = kind, default = default, about = about or "",
    choices = row.choices, min = row.min, max = row.max, required = row.required, value = row.value,
    needs = read_needs(row, name),
  }
  check_default(o)
  return o
end

local function check_needs(spec)
  local names = {}
  for i, o in ipairs(spec.rows) do
    names[i] = o.name
  end
  for _, o in ipairs(spec.rows) do
    for _, other in ipairs(o.needs) do
      if other == o.name or not spec.by_name[other] then
        fail(other ~= o.name and near(names, other) or nil, "--%s needs '%s', which is no other option", o.name, other)
      end
    end
  end
end

-- The list as { rows, by_name, about, rest }.
local function read_list(list)
  if type(list) ~= "table" then
    fail('dc.options { { "epochs", 5, "passes over the data" } }', "a list of options is needed, not %s",
      list == nil and "nil" or "a " .. type(list))
  end
  local spec = { rows = {}, by_name = {}, about = list.about, rest = list.rest }
  for key in pairs(list) do
    if math.type(key) ~= "integer" and key ~= "about" and key ~= "rest" then
      fail('{ "' .. tostring(key) .. '", ... }', "'%s' is a name; options are rows in order", tostring(key))
    end
  end
  for i, row in ipairs(list) do
    if type(row) ~= "table" then
      fail('{ "epochs", 5, "passes over the data" }', "row %d is a %s, not a table", i, type(row))
    end
    local o = read_row(row, i)
    if spec.by_name[o.name] or o.name == "help" then
      fail(nil, o.name == "help" and "--help is there already" or "--%s stands in the list twice", o.name)
    end
    spec.rows[i], spec.by_name[o.name] = o, o
  end
  check_needs(spec)
  return spec
end

-- ---- help ----

local function choices_text(list)
  local names = table.move(list, 1, #list, 1, {})
  local last = table.remove(names)
  return #names > 0 and table.concat(names, ", ") .. " or " .. last or last
end

local function help_row(o)
  local left = "--" .. o.name
  if o.type ~= "flag" then
    left = left .. " " .. (o.value or types[o.type][3])
  end
  local about = o.about
  if o.choices then
    about = about .. (about ~= "" and ": " or "") .. choices_text(o.choices)
  end
  if #o.needs > 0 then
    about = ("%s (needs --%s)"):format(about, table.concat(o.needs, ", --"))
  end
  if o.required then
    about = about .. " (required)"
  elseif o.default ~= nil and o.default ~= false and o.default ~= "" then
    local shown = o.type == "number" and core.number("%.14g", o.default) or tostring(o.default)
    about = ("%s (%s)"):format(about, o.type == "flag" and "on; --no-" .. o.name or shown)
  end
  return { left, about }
end

local function program_name(args)
  local name, before = tostring(args[0] or "script.lua"):match "[^/]*$", args[-1]
  if type(before) == "string" and before:sub(1, 1) ~= "-" then
    name = before:match "[^/]*$" .. " " .. name
  end
  return name
end

local function help_text(spec, args)
  local rows, width = {}, 0
  for i, o in ipairs(spec.rows) do
    rows[i] = help_row(o)
  end
  rows[#rows + 1] = { "--help", "this text" }
  for _, row in ipairs(rows) do
    width = math.max(width, #row[1])
  end
  local out = { ("usage: %s [options]%s"):format(program_name(args), spec.rest and " " .. spec.rest or "") }
  if spec.about then
    out[#out + 1] = spec.about
    out[#out + 1] = ""
  end
  for _, row in ipairs(rows) do
    out[#out + 1] = (("  %-" .. width .. "s  %s"):format(row[1], row[2]):gsub("%s+$", ""))
  end
  return table.concat(out, "\n")
end

-- ---- reading ----

local function check_value(o, value)
  if o.min and value < o.min then
    fail(nil, "--%s is at least %s, not %s", o.name, tostring(o.min), tostring(value))
  elseif o.max and value > o.max then
    fail(nil, "--%s is at most %s, not %s", o.name, tostring(o.max), tostring(value))
  end
  for _, choice in ipairs(o.choices or {}) do
    if choice == value then
      return
    end
  end
  if o.choices then
    fail(near(o.choices, value), "--%s is %s, not '%s'", o.name, choices_text(o.choices), value)
  end
end

local function read_value(o, text)
  local kind = types[o.type]
  local value = kind[1](text)
  if value == nil then
    fail(nil, "--%s needs %s, not '%s'", o.name, kind[2], text)
  end
  check_value(o, value)
  return value
end

local function find(spec, name)
  local o = spec.by_name[name]
  if not o then
    local names = {}
    for i, row in ipairs(spec.rows) do
      names[i] = "--" .. row.name
    end
    fail(near(names, "--" .. name) or "--help lists what there is", "unknown option '--%s'", name)
  end
  return o
end

-- Sets the option that stands at args[i]; gives the number of arguments that it took.
local function read_option(spec, values, args, i)
  local name, text = args[i]:match "^%-%-([^=]*)=(.*)$"
  name = name or args[i]:sub(3)
  local off = name:match "^no%-(.+)$"
  if not spec.by_name[name] and off and spec.by_name[off] and spec.by_name[off].type == "flag" then
    if text then
      fail(nil, "--%s takes no value", name)
    end
    values[spec.by_name[off].key] = false
    return 1
  end
  local o = find(spec, name)
  local took = 1
  if not text and o.type == "flag" then
    text = "true"
  elseif not text then
    text, took = args[i + 1], 2
    if text == nil or text:sub(1, 2) == "--" then
      fail(nil, "--%s needs a value", name)
    end
  end
  values[o.key] = read_value(o, text)
  return took
end

local function read_args(spec, args)
  local values, rest, i = {}, {}, 1
  local only_rest = false
  while i <= #args do
    local text = tostring(args[i])
    if only_rest or text:sub(1, 1) ~= "-" or text == "-" then
      rest[#rest + 1] = text
      i = i + 1
    elseif text == "--" then
      only_rest = true
      i = i + 1
    elseif text:sub(1, 2) ~= "--" then
      local meant = spec.by_name[text:sub(2)] and "-" .. text or nil
      fail(meant and meant .. "; names stand behind two dashes" or "--help lists what there is",
        "unknown option '%s'", text)
    else
      i = i + read_option(spec, values, args, i)
    end
  end
  if #rest > 0 and not spec.rest then
    fail("--help lists what there is", "nothing is known of the argument '%s'", rest[1])
  end
  return values, rest
end

-- What was given, and is not a flag taken back, has what it needs: given, or by default.
local function check_given(spec, given, values)
  for _, o in ipairs(spec.rows) do
    for _, other in ipairs(given[o.key] and o.needs or {}) do
      if not values[spec.by_name[other].key] then
        fail(nil, "--%s needs --%s", o.name, other)
      end
    end
  end
end

-- Reading a name that is no option is an error.
local function guard(spec, values)
  local known = {}
  for i, o in ipairs(spec.rows) do
    known[i] = o.key
  end
  return setmetatable(values, {
    __index = function(_, key)
      for _, name in ipairs(known) do
        if name == key then
          return nil
        end
      end
      core.fail("FIELD", nil, ("the options have no '%s'"):format(tostring(key)),
        near(known, tostring(key)) or "they are " .. table.concat(known, ", "))
    end,
  })
end

local function wants_help(args)
  for _, text in ipairs(args) do
    if text == "--" then
      return false
    elseif text == "--help" then
      return true
    end
  end
  return false
end

function options.options(list, args)
  local spec = read_list(list)
  args = args or _G.arg or {}
  if type(args) ~= "table" then
    fail(nil, "arguments are a list, not a %s", type(args))
  end
  if wants_help(args) then
    if core.speaks() then
      print(help_text(spec, args))
    end
    if not (os and os.exit) then
      fail(nil, "--help ends the script, and this state has no os.exit")
    end
    os.exit(0, true)
  end
  local given, rest = read_args(spec, args)
  local values = {}
  for _, o in ipairs(spec.rows) do
    if given[o.key] == nil and o.required and not core.checking() then
      fail(nil, "--%s is required", o.name)
    elseif given[o.key] == nil then
      values[o.key] = o.default
    else
      values[o.key] = given[o.key]
    end
  end
  check_given(spec, given, values)
  return guard(spec, values), rest
end

-- ---- ending ----

function options.fail(sentence)
  if type(sentence) ~= "string" or not sentence:find "%S" then
    core.fail("ARG", "fail", "a sentence is needed, not " .. core.describe(sentence))
  end
  core.stop(sentence)
end

return core.entries(options)
