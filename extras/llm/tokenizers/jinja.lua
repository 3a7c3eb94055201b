-- Chat templates: trees of jinja_parse become functions of variables, and run.

local jinja = require "deepc.tokenizers.jinja_parse"
local values = require "deepc.tokenizers.jinja_values"
local json = require "deepc.json"
require "deepc.wall"
local _, core = ...

local truth, text, kind, new_list = values.truth, values.text, values.kind, values.new_list

local MOST_BYTES = 64 << 20 -- that a template writes

local compile, compile_block

-- What fails while it runs gets the line of its node.
local function at_line(line, f, ...)
  local result = table.pack(pcall(f, ...))
  if result[1] then
    return table.unpack(result, 2, result.n)
  end
  local err = result[2]
  if type(err) == "table" and err.jinja_text then
    jinja.fail(line, "%s", err.jinja_text)
  elseif type(err) == "string" then
    jinja.fail(line, "%s", (err:gsub("^=?[%w_/.]+:%d+: ", "")))
  end
  error(err, 0)
end

-- ---- expressions: functions of the scope ----

local nodes = {}

function nodes.constant(_, value)
  return function() return value end
end

function nodes.none()
  return function() return json.null end
end

function nodes.name(_, name)
  return function(scope) return scope[name] end
end

local function compile_list(list)
  local fs = {}
  for i, node in ipairs(list) do
    fs[i] = compile(node)
  end
  return fs
end

function nodes.list(_, items)
  local fs = compile_list(items)
  return function(scope)
    local list = {}
    for i, f in ipairs(fs) do
      local v = f(scope)
      list[i] = v == nil and json.null or v
    end
    return new_list(list)
  end
end

function nodes.dict(_, keys, items)
  local ks, vs = compile_list(keys), compile_list(items)
  return function(scope)
    local t = {}
    for i, k in ipairs(ks) do
      t[k(scope)] = vs[i](scope)
    end
    return t
  end
end

-- A method with its object, or what a mapping has.
local function get(line, x, key, is_attribute)
  local k = kind(x)
  if k == "string" and type(key) == "string" then
    local method = values.methods[key]
    if not method and values.unknown_methods[key] then
      jinja.fail(line, "the method '%s' of strings is not known", key)
    end
    return method and function(...) return method(x, ...) end
  elseif k == "string" and math.type(key) == "integer" then
    local list = values.characters(x)
    return list[key < 0 and #list + key + 1 or key + 1]
  elseif k == "undefined" or k == "none" then
    jinja.fail(line, "%s has no '%s'", k == "none" and "none" or "what is undefined", tostring(key))
  elseif type(x) ~= "table" then
    return nil
  elseif math.type(key) == "integer" and k == "list" then
    return x[key < 0 and #x + key + 1 or key + 1]
  elseif x[key] ~= nil then
    return x[key]
  end
  local method = is_attribute and k ~= "list" and values.of_mapping[key] or is_attribute and next(x) == nil
    and values.of_mapping[key]
  if method then
    return function(...) return method(x, ...) end
  end
end

function nodes.attribute(line, value, name)
  local f = compile(value)
  return function(scope) return get(line, f(scope), name, true) end
end

function nodes.item(line, value, key)
  local f, k = compile(value), compile(key)
  return function(scope)
    local x, position = f(scope), k(scope)
    if position == nil then
      jinja.fail(line, "the position is undefined")
    end
    return get(line, x, position, type(x) ~= "table")
  end
end

function nodes.slice(line, value, from, to, step)
  local f = compile(value)
  local parts = { from and compile(from), to and compile(to), step and compile(step) }
  return function(scope)
    local x = f(scope)
    local list = at_line(line, values.iterate, x)
    local n, by = #list, parts[3] and parts[3](scope) or 1
    if math.type(by) ~= "integer" or by == 0 then
      jinja.fail(line, "a step is a whole number other than 0")
    end
    local function place(part, default)
      local i = part and part(scope)
      if i == nil or i == json.null then
        return default
      end
      i = i < 0 and n + i or i
      return by > 0 and math.max(0, math.min(n, i)) or math.max(-1, math.min(n - 1, i))
    end
    local out = {}
    local first, last = place(parts[1], by > 0 and 0 or n - 1), place(parts[2], by > 0 and n or -1)
    for i = first, last - (by > 0 and 1 or -1), by do
      out[#out + 1] = list[i + 1]
    end
    return type(x) == "string" and table.concat(out) or new_list(out)
  end
end

nodes["not"] = function(_, value)
  local f = compile(value)
  return function(scope) return not truth(f(scope)) end
end

nodes["and"] = function(_, a, b)
  local f, g = compile(a), compile(b)
  return function(scope)
    local x = f(scope)
    if truth(x) then
      return g(scope)
    end
    return x
  end
end

nodes["or"] = function(_, a, b)
  local f, g = compile(a), compile(b)
  return function(scope)
    local x = f(scope)
    if truth(x) then
      return x
    end
    return g(scope)
  end
end

function nodes.choice(_, condition, a, b)
  local c, f, g = compile(condition), compile(a), b and compile(b)
  return function(scope)
    if truth(c(scope)) then
      return f(scope)
    end
    return g and g(scope)
  end
end

function nodes.negative(line, value)
  local f = compile(value)
  return function(scope)
    local x = f(scope)
    return type(x) == "number" and -x or jinja.fail(line, "'-' takes a number, not %s", kind(x))
  end
end

local operators = {
  ["=="] = values.equal,
  ["!="] = function(a, b) return not values.equal(a, b) end,
  ["in"] = function(a, b) return values.contains(b, a) end,
  ["not in"] = function(a, b) return not values.contains(b, a) end,
  ["~"] = function(a, b) return text(a) .. text(b) end,
}

operators["+"] = function(a, b)
  if type(a) == "string" and type(b) == "string" then
    return a .. b
  elseif kind(a) == "list" and kind(b) == "list" then
    return new_list(table.move(b, 1, #b, #a + 1, table.move(a, 1, #a, 1, {})))
  elseif type(a) ~= "number" or type(b) ~= "number" then
    values.fail("'+' takes two numbers, strings or lists, not %s and %s", kind(a), kind(b))
  end
  return a + b
end

local function of_numbers(op, f)
  operators[op] = function(a, b)
    if type(a) ~= "number" or type(b) ~= "number" then
      values.fail("'%s' takes two numbers, not %s and %s", op, kind(a), kind(b))
    end
    return f(a, b)
  end
end

of_numbers("-", function(a, b) return a - b end)
of_numbers("/", function(a, b) return a / b end)
of_numbers("**", function(a, b) return math.tointeger(a ^ b) or a ^ b end)

local function divisor(b)
  return b ~= 0 and b or values.fail "division by zero"
end

of_numbers("//", function(a, b) return a // divisor(b) end)

operators["*"] = function(a, b)
  if type(a) == "string" and math.type(b) == "integer" then
    return #a * b <= MOST_BYTES and a:rep(b) or values.fail "a text that is too long"
  elseif type(a) ~= "number" or type(b) ~= "number" then
    values.fail("'*' takes two numbers, not %s and %s", kind(a), kind(b))
  end
  return a * b
end

operators["%"] = function(a, b)
  if type(a) ~= "number" or type(b) ~= "number" then
    values.fail("'%%' takes two numbers, not %s and %s", kind(a), kind(b))
  end
  return a % divisor(b)
end

local function ordered(op, f)
  operators[op] = function(a, b)
    if type(a) ~= type(b) or type(a) ~= "number" and type(a) ~= "string" then
      values.fail("'%s' takes two numbers or two strings, not %s and %s", op, kind(a), kind(b))
    end
    return f(a, b)
  end
end

ordered("<", function(a, b) return a < b end)
ordered(">", function(a, b) return a > b end)
ordered("<=", function(a, b) return a <= b end)
ordered(">=", function(a, b) return a >= b end)

function nodes.binary(line, op, a, b)
  local f, g, operator = compile(a), compile(b), operators[op]
  return function(scope)
    local x, y = f(scope), g(scope)
    return at_line(line, operator, x, y)
  end
end

-- Arguments as a list with n; those with names at the places that `names` has for them.
local function compile_arguments(line, arguments, names, what)
  local list, named = compile_list(arguments[1]), {}
  for name, node in pairs(arguments[2]) do
    local place
    for i, known in ipairs(names or {}) do
      place = known == name and i or place
    end
    if not place then
      jinja.fail(line, "%s has no argument '%s' that is known", what, name)
    end
    named[#named + 1] = { place, compile(node) }
  end
  return function(scope)
    local out = { n = #list }
    for i, f in ipairs(list) do
      out[i] = f(scope)
    end
    for _, pair in ipairs(named) do
      out[pair[1]] = pair[2](scope)
      out.n = math.max(out.n, pair[1])
    end
    return out
  end
end

function nodes.filter(line, name, value, arguments)
  local filter = values.filters[name] or jinja.fail(line, "the filter '%s' is not known", name)
  local f, options = compile(value), nil
  if name == "map" and next(arguments[2]) ~= nil then -- by attribute
    options = nodes.dict(line, { { "constant", line, "attribute" }, { "constant", line, "default" } },
      { arguments[2].attribute or { "none", line }, arguments[2].default or { "name", line, "" } })
    arguments = { {}, {} }
  end
  local args = compile_arguments(line, arguments, values.names[name], "the filter '" .. name .. "'")
  return function(scope)
    local x, a = f(scope), args(scope)
    if options then
      return at_line(line, filter, x, options(scope))
    end
    return at_line(line, filter, x, table.unpack(a, 1, a.n))
  end
end

function nodes.test(line, name, value, arguments)
  local test = values.tests[name] or jinja.fail(line, "the test '%s' is not known", name)
  local f, args = compile(value), compile_arguments(line, arguments, nil, "the test '" .. name .. "'")
  return function(scope)
    local x, a = f(scope), args(scope)
    return at_line(line, test, x, table.unpack(a, 1, a.n))
  end
end

-- Functions of templates take a list with n, and a table of what has names; methods take values.
local callable = {}

function nodes.call(line, value, arguments)
  local f, list, named = compile(value), compile_list(arguments[1]), {}
  for name, node in pairs(arguments[2]) do
    named[name] = compile(node)
  end
  local what = value[1] == "name" and value[3] or value[1] == "attribute" and value[4] or "the value"
  return function(scope)
    local x, out, names = f(scope), { n = #list }, {}
    for i, g in ipairs(list) do
      out[i] = g(scope)
    end
    for name, g in pairs(named) do
      names[name] = g(scope)
    end
    if getmetatable(x) == callable then
      return at_line(line, x.call, out, names)
    elseif type(x) ~= "function" then
      jinja.fail(line, "'%s' is no function that is known", what)
    elseif next(names) ~= nil then
      jinja.fail(line, "'%s' has no argument '%s' that is known", what, (next(names)))
    end
    return at_line(line, x, table.unpack(out, 1, out.n))
  end
end

-- ---- blocks: functions of the scope and of what is written; they return "break" or "continue" ----

local function new_scope(parent)
  return setmetatable({}, { __index = parent })
end

local function write(out, s)
  out.bytes = out.bytes + #s
  if out.bytes > MOST_BYTES then
    values.fail("more than %d bytes are written", MOST_BYTES)
  end
  out[#out + 1] = s
end

function nodes.text(_, s)
  return function(_, out) write(out, s) end
end

function nodes.print(line, value)
  local f = compile(value)
  return function(scope, out)
    local x = f(scope)
    at_line(line, write, out, at_line(line, text, x))
  end
end

nodes["if"] = function(_, arms, otherwise)
  local conditions, bodies = {}, {}
  for i, arm in ipairs(arms) do
    conditions[i], bodies[i] = compile(arm[1]), compile_block(arm[2])
  end
  local last = otherwise and compile_block(otherwise)
  return function(scope, out)
    for i, condition in ipairs(conditions) do
      if truth(condition(scope)) then
        return bodies[i](scope, out)
      end
    end
    return last and last(scope, out)
  end
end

nodes["break"] = function() return function() return "break" end end
nodes["continue"] = function() return function() return "continue" end end

-- The loop's names, of one item or of its parts.
local function bind(line, scope, names, item)
  if #names == 1 then
    scope[names[1]] = item
    return
  elseif kind(item) ~= "list" or #item ~= #names then
    jinja.fail(line, "an item of the loop has %s parts, %d names are given",
      kind(item) == "list" and tostring(#item) or "no", #names)
  end
  for i, name in ipairs(names) do
    scope[name] = item[i]
  end
end

local function loop_of(list, i)
  local n = #list
  return { index = i, index0 = i - 1, revindex = n - i + 1, revindex0 = n - i, first = i == 1, last = i == n,
    length = n, previtem = list[i - 1], nextitem = list[i + 1] }
end

nodes["for"] = function(line, names, source, condition, body, otherwise)
  local f, c, b = compile(source), condition and compile(condition), compile_block(body)
  local none = otherwise and compile_block(otherwise)
  return function(scope, out)
    local list = at_line(line, values.iterate, f(scope))
    if c then
      local kept = {}
      for _, item in ipairs(list) do
        local inner = new_scope(scope)
        bind(line, inner, names, item)
        if truth(c(inner)) then
          kept[#kept + 1] = item
        end
      end
      list = kept
    end
    for i, item in ipairs(list) do
      local inner = new_scope(scope)
      bind(line, inner, names, item)
      inner.loop = loop_of(list, i)
      if b(inner, out) == "break" then
        break
      end
    end
    return #list == 0 and none and none(scope, out) or nil
  end
end

function nodes.set(line, names, field, value)
  local f = compile(value)
  return function(scope)
    local x = f(scope)
    if not field then
      if x == nil then
        x = json.null
      end
      bind(line, scope, names, x)
      return
    end
    local space = scope[names[1]]
    if getmetatable(space) ~= values.namespace then
      jinja.fail(line, "'%s' is no namespace", names[1])
    end
    space[field] = x
  end
end

function nodes.set_block(_, name, body)
  local b = compile_block(body)
  return function(scope)
    local out = { bytes = 0 }
    b(scope, out)
    scope[name] = table.concat(out)
  end
end

function nodes.macro(line, name, names, defaults, body)
  local b, ds = compile_block(body), {}
  for i, node in pairs(defaults) do
    ds[i] = compile(node)
  end
  return function(scope)
    local depth = 0
    scope[name] = setmetatable({ call = function(list, named)
      local inner, out = new_scope(scope), { bytes = 0 }
      if list.n > #names then
        values.fail("'%s' takes %d arguments, %d are given", name, #names, list.n)
      end
      for i, key in ipairs(names) do
        local v = list[i]
        if v == nil then
          v = named[key]
        end
        if v == nil and ds[i] then
          v = ds[i](scope)
        end
        inner[key] = v
      end
      depth = depth + 1
      if depth > 50 then
        jinja.fail(line, "'%s' calls itself more than 50 times", name)
      end
      b(inner, out)
      depth = depth - 1
      return table.concat(out)
    end }, callable)
  end
end

function compile_block(list)
  local fs = {}
  for i, node in ipairs(list) do
    fs[i] = compile(node)
  end
  return function(scope, out)
    for _, f in ipairs(fs) do
      local ends = f(scope, out)
      if ends == "break" or ends == "continue" then
        return ends
      end
    end
  end
end

function compile(node)
  return nodes[node[1]](node[2], table.unpack(node, 3, 8))
end

-- ---- functions of templates ----

values.namespace = { __name = "namespace" }

local functions = {}

function functions.namespace(list, named)
  local space = setmetatable({}, values.namespace)
  for key, v in pairs(list[1] or {}) do
    space[key] = v
  end
  for key, v in pairs(named) do
    space[key] = v
  end
  return space
end

function functions.dict(_, named)
  return named
end

function functions.range(list)
  local from, to, step = list[1], list[2], list[3] or 1
  if list.n == 1 then
    from, to = 0, list[1]
  end
  if math.type(from) ~= "integer" or math.type(to) ~= "integer" or math.type(step) ~= "integer" or step == 0
    or (to - from) // step > 1000000 then
    values.fail "range takes whole numbers, for at most a million"
  end
  local out = {}
  for i = from, to - (step > 0 and 1 or -1), step do
    out[#out + 1] = i
  end
  return new_list(out)
end

function functions.strftime_now(list)
  local format = list[1]
  if type(format) ~= "string" or format:find "^!?%*t" then
    values.fail "strftime_now takes a format, as '%Y-%m-%d'"
  end
  return core.wall_date(format)
    or values.fail "strftime_now has the time of day, and there is no clock here"
end

function functions.raise_exception(list)
  error({ jinja_raised = text(list[1]) }, 0)
end

local globals = {}
for name, f in pairs(functions) do
  globals[name] = setmetatable({ call = f }, callable)
end

-- A template as a function of its variables, which returns the text. Fails with a table: jinja, what is wrong and
-- where, or jinja_raised, what the template says itself.
function jinja.compile(source)
  local block = compile_block(jinja.parse(source))
  return function(variables)
    local out, scope = { bytes = 0 }, new_scope(globals)
    for key, v in pairs(variables) do
      scope[key] = v
    end
    block(scope, out)
    return table.concat(out)
  end
end

return jinja
