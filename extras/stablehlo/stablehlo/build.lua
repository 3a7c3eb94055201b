-- Programs of StableHLO as tables, made operation by operation: what print.lua writes and what the readers give. A
-- builder adds operations to the block that is open; its values have operators and functions, so that what one of
-- deepc's operations means can be written as a formula.

local shapes = require "deepc.stablehlo.shapes"

local build = {}

local elements = { bool = "i1", f8e4m3fn = "f8E4M3FN", f8e5m2 = "f8E5M2", u8 = "ui8", u16 = "ui16", u32 = "ui32",
  u64 = "ui64", c64 = "complex<f32>", c128 = "complex<f64>" }

---The type of a tensor.
function build.type(dtype, shape)
  return { kind = "tensor", dtype = dtype, element = elements[dtype] or dtype, shape = shape or {} }
end

local is_float = { f64 = true, f32 = true, f16 = true, bf16 = true, f8e4m3fn = true, f8e5m2 = true }

function build.is_float(dtype)
  return is_float[dtype] == true
end

function build.is_unsigned(dtype)
  return dtype == "bool" or dtype:sub(1, 1) == "u"
end

---The bits of an element.
function build.width(dtype)
  return dtype == "bool" and 1 or tonumber(dtype:match "^%a+(%d+)")
end

local Value, Builder = {}, {}
Value.__index, Builder.__index = Value, Builder

---A builder of one function. What is made carries `where` and `path`, the Lua line and the layer, as they are then.
---helpers: of private functions that others have made, by name and in order.
function build.new(helpers)
  return setmetatable({ count = 0, taken = {}, ops = {}, known = {}, helpers = helpers or {} }, Builder)
end

-- ---- values --------------------------------------------------------------------------------------

---A value of this type, of a name of its own: the one wished for, with a number behind it where that is taken.
function Builder:value(type, wish)
  local name, n = wish, 0
  while not name or self.taken[name] do
    if wish then
      n = n + 1
      name = ("%s_%d"):format(wish, n)
    else
      name = "%" .. self.count
      self.count = self.count + 1
    end
  end
  self.taken[name] = true
  return setmetatable({ name = name, type = type, dtype = type.dtype, shape = type.shape, w = self }, Value)
end

---Adds an operation; gives its results. types: of these.
function Builder:op(name, operands, types, attributes, regions)
  local op = { name = name:find(".", 1, true) and name or "stablehlo." .. name, operands = {}, operand_types = {},
    results = {}, types = types, attributes = attributes or {}, regions = regions or {}, where = self.where,
    path = self.path }
  for i, v in ipairs(operands) do
    op.operands[i], op.operand_types[i] = v.name, v.type
  end
  local values = {}
  for i, t in ipairs(types) do
    values[i] = self:value(t)
    op.results[i] = values[i].name
  end
  self.ops[#self.ops + 1] = op
  return table.unpack(values)
end

---The same of one result.
function Builder:one(name, operands, dtype, shape, attributes, regions)
  return (self:op(name, operands, { build.type(dtype, shape) }, attributes, regions))
end

---A region of arguments of these types, which body makes of them; what it returns are the results.
function Builder:region(types, body, ending)
  local ops, known = self.ops, self.known
  self.ops, self.known = {}, {}
  local args, region = {}, { args = {}, ops = self.ops }
  for i, t in ipairs(types) do
    args[i] = self:value(t)
    region.args[i] = { name = args[i].name, type = t }
  end
  self:op(ending or "stablehlo.return", { body(table.unpack(args, 1, #types)) }, {})
  self.ops, self.known = ops, known
  return region
end

---A region that combines two scalars of this dtype.
function Builder:combination(name, dtype)
  local scalar, where, path = build.type(dtype), self.where, self.path
  self.where, self.path = nil, nil
  local region = self:region({ scalar, scalar }, function(a, b)
    return self:one(name, { a, b }, dtype, {})
  end)
  self.where, self.path = where, path
  return region
end

---Calls a private function of one value and result of its type, which body makes when it is first called.
function Builder:call(name, x, body)
  name = ("%s_%s"):format(name, table.concat({ x.dtype, table.unpack(x.shape) }, "_"))
  if not self.helpers[name] then
    local w = build.new(self.helpers)
    local arg = w:value(x.type, "%x")
    local y = body(arg)
    w:op("func.return", { y }, {})
    local args = { { name = arg.name, type = x.type, attributes = {} } }
    self.helpers[name] = { name = name, private = true, args = args, results = { { type = y.type, attributes = {} } },
      body = { args = args, ops = w.ops } }
    self.helpers[#self.helpers + 1] = self.helpers[name]
  end
  return (self:op("func.call", { x }, { x.type }, { callee = { symbol = name } }))
end

-- ---- constants -----------------------------------------------------------------------------------

local function key(v)
  if type(v) == "table" then
    return ("bits %d"):format(v.bits)
  end
  return math.type(v) == "float" and string.pack("<d", v) or tostring(v)
end

---A constant of one value everywhere: a number, a bool, or a pattern { bits = }. One of them serves a whole block.
function Builder:const(dtype, shape, v)
  if is_float[dtype] and type(v) == "number" then
    v = v + 0.0
  end
  local name = ("%s %s %s"):format(dtype, table.concat(shape, "x"), key(v))
  if not self.known[name] then
    local t = build.type(dtype, shape)
    self.known[name] = self:op("constant", {}, { t }, { value = { dense = true, type = t, splat = v } })
    self.known[name].splat = v
  end
  return self.known[name]
end

local function like(x, v)
  return getmetatable(v) == Value and v or x.w:const(x.dtype, x.shape, v)
end

-- ---- operators -----------------------------------------------------------------------------------

local function both(a, b)
  if getmetatable(a) == Value then
    return a, like(a, b)
  end
  return like(b, a), b
end

local function binary(name)
  return function(a, b)
    a, b = both(a, b)
    return a.w:one(name, { a, b }, a.dtype, a.shape)
  end
end

for method, name in pairs { __add = "add", __sub = "subtract", __mul = "multiply", __div = "divide", __band = "and",
  __bor = "or", __bxor = "xor", max = "maximum", min = "minimum", power = "power", atan2 = "atan2",
  shift_left = "shift_left", shift_right = "shift_right_logical" } do
  Value[method] = binary(name)
end

for method, name in pairs { __unm = "negate", __bnot = "not", abs = "abs", exp = "exponential",
  expm1 = "exponential_minus_one", log = "log", log1p = "log_plus_one", sqrt = "sqrt", floor = "floor",
  round = "round_nearest_even", sin = "sine", cos = "cosine", tanh = "tanh", logistic = "logistic" } do
  Value[method] = function(x)
    return x.w:one(name, { x }, x.dtype, x.shape)
  end
end

local function compare_type(dtype)
  return is_float[dtype] and "FLOAT" or build.is_unsigned(dtype) and "UNSIGNED" or "SIGNED"
end

---a and b compared: "EQ", "NE", "LT", "LE", "GT" or "GE".
function Value.compare(a, direction, b, kind)
  a, b = both(a, b)
  return a.w:one("compare", { a, b }, "bool", a.shape,
    { comparison_direction = direction, compare_type = kind or compare_type(a.dtype) })
end

for _, direction in ipairs { "EQ", "NE", "LT", "LE", "GT", "GE" } do
  Value[direction:lower()] = function(a, b)
    return a:compare(direction, b)
  end
end

---a where the condition is true, else b; one of both may be a number.
function Value.select(condition, a, b)
  a, b = both(a, b)
  return a.w:one("select", { condition, a, b }, a.dtype, a.shape)
end

function Value.convert(x, dtype)
  return x.dtype == dtype and x or x.w:one("convert", { x }, dtype, x.shape)
end

function Value.bitcast(x, dtype)
  return x.dtype == dtype and x or x.w:one("bitcast_convert", { x }, dtype, x.shape)
end

-- ---- movement ------------------------------------------------------------------------------------

local function same(a, b)
  if #a ~= #b then
    return false
  end
  for i, n in ipairs(a) do
    if b[i] ~= n then
      return false
    end
  end
  return true
end

function Value.reshape(x, shape)
  if same(x.shape, shape) then
    return x
  elseif x.splat ~= nil then
    return x.w:const(x.dtype, shape, x.splat)
  end
  return x.w:one("reshape", { x }, x.dtype, shape)
end

---Axis i of the result is axis perm[i] of x; axes count from 0.
function Value.transpose(x, perm)
  local shape, moves = {}, false
  for i, axis in ipairs(perm) do
    shape[i] = x.shape[axis + 1]
    moves = moves or axis ~= i - 1
  end
  return moves and x.w:one("transpose", { x }, x.dtype, shape, { permutation = perm }) or x
end

---Axis i of x is axis dims[i] of the result.
function Value.spread(x, dims, shape)
  if x.splat ~= nil then
    return x.w:const(x.dtype, shape, x.splat)
  end
  return x.w:one("broadcast_in_dim", { x }, x.dtype, shape, { broadcast_dimensions = dims })
end

build.all = shapes.all

---n elements along an axis from `first` on, the others whole.
function Value.part(x, axis, first, n)
  local start, limit = build.all(#x.shape, 0), table.move(x.shape, 1, #x.shape, 1, {})
  local shape = table.move(x.shape, 1, #x.shape, 1, {})
  start[axis + 1], limit[axis + 1], shape[axis + 1] = first, first + n, n
  return x.w:one("slice", { x }, x.dtype, shape,
    { start_indices = start, limit_indices = limit, strides = build.all(#x.shape, 1) })
end

---The numbers of the elements along an axis.
function Builder:iota(dtype, shape, axis)
  return self:one("iota", {}, dtype, shape, { iota_dimension = axis })
end

---Reduces axes by an operation, from its identity on.
function Value.reduce(x, name, axes, identity)
  local gone, shape = {}, {}
  for _, axis in ipairs(axes) do
    gone[axis] = true
  end
  for i, n in ipairs(x.shape) do
    shape[#shape + 1] = not gone[i - 1] and n or nil
  end
  local init = x.w:const(x.dtype, {}, identity)
  return x.w:one("reduce", { x, init }, x.dtype, shape, { dimensions = axes }, { x.w:combination(name, x.dtype) })
end

return build
