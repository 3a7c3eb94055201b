-- Typed functions and what is read again of the programs that they are written as: both forms of a program are the same
-- one, and the results are equal. For tests/lua/test_stablehlo_out.lua and random.lua.
local dc = require "deepc"
local stablehlo = require "deepc.stablehlo"
local text = require "deepc.stablehlo.text"

local again = {}

local function same(got, want, what)
  if got ~= want then
    error(("%s: %s, and %s is wanted"):format(what, got, want), 0)
  end
end

-- ---- results ---------------------------------------------------------------------------------------

local function numbers(x)
  if x.dtype:find "^c" then
    x = dc.stack({ x:real(), x:imag() }, #x.shape + 1)
  elseif x.dtype == "bool" or x.dtype == "u64" then
    x = x:cast "i64"
  end
  return x:reshape(-1):totable()
end

local function check_near(name, want, got, near)
  want, got = numbers(want), numbers(got)
  same(#got, #want, name)
  for i, a in ipairs(want) do
    local b = got[i]
    if not (a == b or a ~= a and b ~= b or math.abs(a - b) <= near * math.max(1, math.abs(a))) then
      error(("%s: element %d is %s, and %s in what was read again"):format(name, i, a, b), 0)
    end
  end
end

local function copy(x, t)
  return dc.frombytes(x:bytes(), ("%s[%s]"):format(t.dtype, table.concat(t.shape, ", ")))
end

-- The results of a program for these arguments, as a list.
local function call(source, inputs, results)
  local f = stablehlo.load(source)
  local out
  if #inputs > 32 then
    local record = {}
    for i, a in ipairs(text.read(source, "test").functions.main.args) do
      local name = a.name:match "^%%([%a_][%w_]*)$"
      record[name and load("local " .. name) and name or "arg" .. i - 1] = inputs[i]
    end
    out = { f(record) }
  else
    out = { f(table.unpack(inputs)) }
  end
  if results > 8 then
    for i = results, 1, -1 do
      out[i] = out[1]["result" .. i]
    end
  end
  return out
end

-- ---- both forms ------------------------------------------------------------------------------------

local check_region

-- What both forms have: numbers of f32 may have more digits in bytes, patterns may be numbers there.
local function check_value(a, b, what)
  if type(a) == "table" and type(b) == "table" then
    for k, v in pairs(a) do
      if b[k] ~= nil then
        check_value(v, b[k], what .. " " .. k)
      end
    end
  elseif a == a and type(a) == type(b)
    and not (math.type(a) == "float" and string.pack("<f", a) == string.pack("<f", b)) then
    same(b, a, what)
  end
end

local function check_type(a, b, what)
  same(b.element, a.element, what)
  same(table.concat(b.shape, "x"), table.concat(a.shape, "x"), what)
end

local function check_op(a, b, names)
  same(b.name, a.name, "operation")
  same(#b.operands, #a.operands, a.name)
  for i, operand in ipairs(a.operands) do
    same(b.operands[i], names[operand], a.name)
  end
  for i, t in ipairs(a.types) do
    names[a.results[i]] = b.results[i]
    check_type(t, b.types[i], a.name)
  end
  check_value(a.attributes, b.attributes, a.name)
  for i, region in ipairs(a.regions) do
    check_region(region, b.regions[i], names)
  end
end

function check_region(a, b, names)
  same(#b.args, #a.args, "arguments")
  same(#b.ops, #a.ops, "operations")
  for i, arg in ipairs(a.args) do
    names[arg.name] = b.args[i].name
    check_type(arg.type, b.args[i].type, arg.name)
  end
  for i, op in ipairs(a.ops) do
    check_op(op, b.ops[i], names)
  end
end

-- Of the text and of the artifact the same operations on the same values are read.
local function check_program(source, artifact)
  local a, b = stablehlo.read(source), stablehlo.read(artifact)
  same(table.concat(b.order, " "), table.concat(a.order, " "), "functions")
  for _, name in ipairs(a.order) do
    local f, g = a.functions[name], b.functions[name]
    check_region(f.body, g.body, {})
    for i, arg in ipairs(f.args) do
      check_value(arg.attributes, g.args[i].attributes, arg.name)
    end
    check_value(f.results, g.results, name)
  end
end

---Calls f and what its program gives, for which cells have the values of before; raises where both differ. What is
---behind `near` goes to stablehlo.text, whose results are returned.
function again.compare(name, f, args, near, ...)
  local source, arguments, results = stablehlo.text(f, ...)
  local inputs = {}
  for i, a in ipairs(arguments) do
    inputs[i] = a.value and copy(a.value, a) or args[i]
  end
  check_program(source, (stablehlo.bytecode(f, ...)))
  local got, want = call(source, inputs, #results), { f(table.unpack(args)) }
  for i, r in ipairs(results) do
    check_near(("%s, %s"):format(name, r.name), r.argument and arguments[r.argument].value or want[i], got[i], near)
  end
  return source, arguments, results
end

return again
