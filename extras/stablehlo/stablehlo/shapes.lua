-- What several tables of operations need: axes, types, what the body of a region is.

local dc = require "deepc"
local elements = require "deepc.stablehlo.elements"

local shapes = {}

---A list of n equal elements.
function shapes.all(n, v)
  local list = {}
  for i = 1, n do
    list[i] = v
  end
  return list
end

function shapes.text(shape)
  return "[" .. table.concat(shape, ", ") .. "]"
end

function shapes.reshape(x, shape)
  return x:reshape(shapes.text(shape))
end

---Where each of a list of numbers stands in it, from 1.
function shapes.places(list)
  local at = {}
  for i, v in ipairs(list or {}) do
    at[v] = i
  end
  return at
end

function shapes.equal(a, b)
  if #a ~= #b then
    return false
  end
  for i = 1, #a do
    if a[i] ~= b[i] then
      return false
    end
  end
  return true
end

---x of rank r as a part of shape: axis i of x is axis dims[i] (from 0), the others repeat it.
function shapes.spread(x, dims, shape)
  local order, sizes = {}, {}
  for i, d in ipairs(dims) do
    order[i] = { d, i }
  end
  table.sort(order, function(a, b) return a[1] < b[1] end)
  for i = 1, #shape do
    sizes[i] = 1
  end
  local perm, moved = {}, false
  for i, pair in ipairs(order) do
    perm[i] = pair[2]
    moved = moved or pair[2] ~= i
    sizes[pair[1] + 1] = x.shape[pair[2]]
  end
  x = moved and x:permute(table.unpack(perm)) or x
  x = shapes.reshape(x, sizes)
  return shapes.equal(sizes, shape) and x or x:expand(table.unpack(shape))
end

---Positions along axis (from 0) of a shape, of that whole shape.
function shapes.positions(dtype, shape, axis)
  return dc.iota(dtype .. shapes.text(shape), axis + 1)
end

function shapes.full(x, shape, value)
  return dc.full(x.dtype .. shapes.text(shape), value)
end

-- ---- parts and padding ---------------------------------------------------------------------------

---Elements first[i], first[i] + step[i] ... (from 0) below limit[i] of each axis.
function shapes.slice(x, first, limit, step)
  local ranges, any = {}, false
  for i, size in ipairs(x.shape) do
    local s = step and step[i] or 1
    if first[i] ~= 0 or limit[i] ~= size or s ~= 1 then
      any = true
      local n = (limit[i] - first[i] + s - 1) // s
      ranges[i] = n == 0 and { first[i] + 1, first[i] } or { first[i] + 1, first[i] + (n - 1) * s + 1, s }
    end
  end
  return any and x:slice(ranges) or x
end

-- Elements of axis i (from 1) k + 1 apart.
local function dilate(x, i, k, fill)
  local n = x.shape[i]
  if k == 0 or n < 2 then
    return x
  end
  local shape = table.pack(table.unpack(x.shape))
  table.insert(shape, i + 1, 1)
  x = shapes.reshape(x, shape):pad({ [i + 1] = { 0, k } }, fill)
  table.remove(shape, i + 1)
  shape[i] = n * (k + 1)
  return shapes.reshape(x, shape):slice { [i] = { 1, n * (k + 1) - k } }
end

-- With numbers of elements before and after each axis, which may be negative, and between its elements.
local function pad(x, low, high, interior, fill)
  local grow, cut, any_grow, any_cut = {}, {}, false, false
  for i = 1, #low do
    x = interior and dilate(x, i, interior[i], fill) or x
    if low[i] > 0 or high[i] > 0 then
      grow[i] = { math.max(low[i], 0), math.max(high[i], 0) }
      any_grow = true
    end
  end
  x = any_grow and x:pad(grow, fill) or x
  for i = 1, #low do
    if low[i] < 0 or high[i] < 0 then
      cut[i] = { 1 + math.max(-low[i], 0), x.shape[i] - math.max(-high[i], 0) }
      any_cut = true
    end
  end
  return any_cut and x:slice(cut) or x
end

---pad of any value, a scalar tensor whose number may be known.
function shapes.pad(x, low, high, interior, value, number)
  if number ~= nil and (x.dtype ~= "u64" or value == nil) then
    return pad(x, low, high, interior, number)
  end
  local inside = pad(shapes.full({ dtype = "bool" }, x.shape, true), low, high, interior, false)
  return dc.where(inside, pad(x, low, high, interior, x.dtype ~= "bool" and 0), value)
end

-- ---- order of floats ------------------------------------------------------------------------------

shapes.has_pattern = { f64 = "i64", f32 = "i32", f16 = "i16", bf16 = "i16" }

-- A float as an integer of the same order in which -0 is below 0 and each NaN beyond the infinity of its sign.
function shapes.in_total_order(x)
  local dtype = shapes.has_pattern[x.dtype]
  local bits = x:bitcast(dtype)
  local most = dtype == "i64" and math.maxinteger or (1 << (tonumber(dtype:sub(2)) - 1)) - 1
  return dc.where(bits:lt(0), bits:bit_xor(most), bits)
end

-- ---- bodies --------------------------------------------------------------------------------------

local commutes = { add = true, multiply = true, maximum = true, minimum = true, ["and"] = true, ["or"] = true,
  xor = true }

---What a region of two scalars gives: the name of an operation of both, "first", "second", or nil.
function shapes.body(region)
  local a, b = region.args[1].name, region.args[2].name
  local ops = region.ops
  local last = ops[#ops]
  if #region.args ~= 2 or not last then
    return nil
  elseif #ops == 1 then
    return last.operands[1] == a and "first" or last.operands[1] == b and "second" or nil
  elseif #ops ~= 2 or last.operands[1] ~= ops[1].results[1] or #ops[1].operands ~= 2 then
    return nil
  end
  local name = ops[1].name:match "^stablehlo%.(.*)$"
  local x, y = ops[1].operands[1], ops[1].operands[2]
  if x == a and y == b or commutes[name] and x == b and y == a then
    return name
  end
  return nil
end

---The same; of bool, whose sum is or and whose product is and, "maximum" or "minimum".
function shapes.combination(region, dtype)
  local name = shapes.body(region)
  if dtype == "bool" then
    local logic = { add = "maximum", ["or"] = "maximum", multiply = "minimum", ["and"] = "minimum" }
    return logic[name] or name
  end
  return name
end

---The method that reduces an axis by an operation.
shapes.reductions = { add = "sum", multiply = "prod", maximum = "max", minimum = "min" }

---Both, combined by one of these; of bool maximum is or, minimum is and.
function shapes.combine(name, a, b)
  if name == "add" then
    return a + b
  elseif name == "multiply" then
    return a * b
  elseif a.dtype == "bool" then
    return name == "maximum" and a | b or a & b
  end
  return name == "maximum" and dc.maximum(a, b) or dc.minimum(a, b)
end

local least = { i8 = -128, i16 = -32768, i32 = -2147483648, i64 = math.mininteger, u8 = 0, u16 = 0, u32 = 0,
  bool = false }
local most = { i8 = 127, i16 = 32767, i32 = 2147483647, i64 = math.maxinteger, u8 = 255, u16 = 65535, u32 = 4294967295,
  bool = true }

---Is v what `name` leaves everything as with?
function shapes.is_identity(name, dtype, v)
  if v == nil or elements.is_complex(dtype) then
    return false
  elseif name == "add" then
    return v == 0
  elseif name == "multiply" then
    return v == 1
  elseif name == "maximum" then
    return v == (least[dtype] == nil and -math.huge or least[dtype])
  elseif name == "minimum" then
    return v == (most[dtype] == nil and math.huge or most[dtype])
  end
  return false
end

return shapes
