-- What functions of tensors that are written in Lua have in common: how operands, axes and options are read.
--
-- The table of internals gets them, so whoever needs one says require "deepc.operands".

local _, core = ...

-- ---- operands ----

local function is_layer(v)
  local mt = type(v) == "table" and getmetatable(v)
  return mt and mt._is_layer == true
end

-- Refuses what is no tensor; `what` names it where there are several.
function core.check_tensor(op, x, what)
  if core.kind(x) then
    return
  end
  local hint = type(x) == "table" and (is_layer(x) and "calling a layer gives a tensor: layer(x)"
    or "dc.tensor(values) makes one of a table of numbers") or nil
  core.fail("ARG", op, (what and "%s: a tensor is needed, not %s" or "%sa tensor is needed, not %s"):format(
    what or "", core.describe(x)), hint)
end

-- Whether a `for` begins with this call of its iterator, whose arguments these are; not where it goes on, nor where a
-- script calls the iterator itself.
function core.begins(...)
  return select("#", ...) == 2 and select(2, ...) == nil
end

local of_dtype = {}
for _, t in ipairs(core.dtypes()) do
  of_dtype[t.name] = t
end

-- Is this the name of a dtype of floats, of complex numbers, of integers? Not of what is no name of a dtype.
function core.is_float(dtype)
  local t = of_dtype[dtype]
  return t ~= nil and t.kind == "float"
end

function core.is_complex(dtype)
  local t = of_dtype[dtype]
  return t ~= nil and t.kind == "complex"
end

function core.is_integer(dtype)
  local t = of_dtype[dtype]
  return t ~= nil and t.kind == "integer"
end
local is_float = core.is_float

-- Of floats that are stored alone, and computed with as f32?
function core.is_short(dtype)
  return is_float(dtype) and of_dtype[dtype].bits < 32
end
local is_short = core.is_short

-- Refuses what is no tensor of floats.
function core.check_floats(op, x, what)
  core.check_tensor(op, x, what)
  if not is_float(x.dtype) then
    core.fail("DTYPE", op, ("%s is %s, floats are needed"):format(what or "x", core.describe(x)), ':cast "f32"',
      what or "x", x)
  end
end

local whole = {
  i8 = "i32", u8 = "i32", i16 = "i32", u16 = "i32", i32 = "i32", u32 = "above", i64 = "both", u64 = "above",
}

-- Counts of any integer dtype as i32, those beyond it as the nearest there is; nil for other dtypes.
function core.counts_of(x)
  local beyond = whole[x.dtype]
  if beyond == "both" then
    x = x:clamp(-2147483648, 2147483647)
  elseif beyond == "above" then
    x = x:clamp(nil, 2147483647)
  end
  return beyond and (x.dtype == "i32" and x or x:cast "i32")
end

local function same(x) return x end

-- For functions of several steps, which are rounded once, at their end: what brings the result back, and the operands,
-- as f32 where they are floats of 16 bits. Operands of several float types are left to the step that refuses them.
function core.in_f32(x, ...)
  local dtype, list = x.dtype, table.pack(x, ...)
  local wide = is_short(dtype)
  for i = 2, list.n do
    wide = wide and not (core.kind(list[i]) and is_float(list[i].dtype) and list[i].dtype ~= dtype)
  end
  if not wide then
    return same, x, ...
  end
  for i = 1, list.n do
    if core.kind(list[i]) and list[i].dtype == dtype then
      list[i] = list[i]:cast "f32"
    end
  end
  return function(y) return (y:cast(dtype)) end, table.unpack(list, 1, list.n)
end

-- ---- messages ----

-- The first names of a list, for a message: 'a', 'b', 'c' and 2 more.
function core.quoted_names(names)
  local list = {}
  for i = 1, math.min(#names, 3) do
    list[i] = "'" .. names[i] .. "'"
  end
  return table.concat(list, ", ") .. (#names > 3 and (" and %d more"):format(#names - 3) or "")
end

-- ---- sizes ----

-- The sizes of a shape, the first n of them or all, as text: "64, 784".
function core.sizes(shape, n)
  local list = {}
  for i = 1, n or #shape do
    list[i] = tostring(shape[i])
  end
  return table.concat(list, ", ")
end

function core.check_size(op, what, n)
  if math.type(n) ~= "integer" or n < 1 then
    local list = type(n) == "table" and not core.kind(n) and getmetatable(n) == nil and type(n[1]) == "number"
    core.fail("ARG", op, ("%s is a positive integer, not %s"):format(what, core.shown(n)),
      list and ("arguments in parentheses: %s(%s)"):format(op, core.sizes(n)) or nil)
  end
end

-- ---- options ----

-- An option that is true unless it is given as false.
function core.unless_false(op, options, key)
  local v = options and options[key]
  if v ~= nil and type(v) ~= "boolean" then
    core.fail("ARG", op, ("%s is true or false, not %s"):format(key, core.shown(v)))
  end
  return v ~= false
end

return {}
