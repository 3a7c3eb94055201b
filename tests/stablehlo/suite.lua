-- Programs of StableHLO's own suite, each of which holds its inputs and what is expected:
--
--   deepc tests/stablehlo/suite.lua FOLDER [PATTERN [compiled]]
--
-- Prints each program that is not read, not supported or wrong, then a line per family that is not whole, then
-- "N passed, N failed". The checks are the suite's: equal, within 3 units of the last place, within 1e-3.
local dc = require "deepc"
local text = require "deepc.stablehlo.text"
local translate = require "deepc.stablehlo.translate"

local folder, pattern, how = arg[1], arg[2] or "", arg[3]

-- ---- checks --------------------------------------------------------------------------------------

local codes = { f64 = "<i8", f32 = "<i4", f16 = "<i2", bf16 = "<i2", f8e4m3fn = "<i1", f8e5m2 = "<i1", c64 = "<i4",
  c128 = "<i8" }

local function bits_of(x)
  local code, bytes, out = codes[x.dtype], x:bytes(), {}
  local size = string.packsize(code)
  for i = 1, #bytes // size do
    out[i] = code:unpack(bytes, (i - 1) * size + 1)
  end
  return out, size
end

-- Numbers, complex ones as two.
local function values_of(x)
  if x.dtype:find "^c" then
    x = dc.stack({ x:real(), x:imag() }, #x.shape + 1)
  elseif x.dtype == "bool" then
    x = x:cast "u8"
  elseif x.dtype == "u64" then
    x = x:cast "i64"
  end
  local list = x:reshape(-1):totable()
  return list
end

local function is_float(x)
  return codes[x.dtype] ~= nil
end

local function distance(a, b, size)
  local least = size == 8 and math.mininteger or -(1 << (8 * size - 1))
  a, b = a < 0 and least - a or a, b < 0 and least - b or b
  return math.abs(a - b)
end

local function each(x, y, same)
  if x.dtype ~= y.dtype or #x.shape ~= #y.shape then
    return ("%s and %s"):format(x.dtype, y.dtype)
  end
  local a, b = values_of(x), values_of(y)
  local p, q, size
  if is_float(x) then
    p, size = bits_of(x)
    q = bits_of(y)
  end
  for i, v in ipairs(b) do
    if not same(a[i], v, p and distance(p[i], q[i], size)) then
      return ("element %d is %s, expected %s"):format(i, a[i], v)
    end
  end
end

local function is_equal(a, b) return a == b end

local function is_close(a, b, ulp)
  if a == b or a ~= a and b ~= b then
    return true
  end
  return a == a and b == b and math.abs(a) ~= math.huge and math.abs(b) ~= math.huge and ulp and ulp <= 3
end

local function is_near(tolerance)
  return function(a, b)
    return a == b or a ~= a and b ~= b or math.abs(a - b) <= tolerance
  end
end

-- The checks of a program: { x, y, same } in options.found.
local function note(o, x, y, same)
  local found = o.run.options.found
  found[#found + 1] = { x, y, same }
end

local function check(same)
  return function(o, x, y)
    note(o, x, y, same)
  end
end

local custom = { ["check.expect_eq"] = check(is_equal), ["check.expect_close"] = check(is_close),
  ["check.expect_almost_eq"] = check(is_near(1e-3)), ["check.eq"] = check(is_near(1e-4)) }

local function with_constant(same)
  return function(o, x)
    note(o, x, translate.constant(o.attributes.value), same)
  end
end

translate.rows["check.expect_eq_const"] = with_constant(is_equal)
translate.rows["check.expect_almost_eq_const"] = with_constant(is_near(1e-4))
translate.rows["check.expect_eq"] = custom["check.expect_eq"]
translate.rows["check.expect_almost_eq"] = function(o, x, y)
  note(o, x, y, is_near(o.attributes.tolerance or 1e-4))
end
translate.rows["check.expect_close"] = function(o, x, y)
  local most = o.attributes.max_ulp_difference or 1
  note(o, x, y, function(a, b, ulp)
    return a == b or a ~= a and b ~= b or ulp and ulp <= most
  end)
end

-- ---- programs ------------------------------------------------------------------------------------

local function call(module, f, constants)
  local found = {}
  translate.call(module, f, {}, { custom = custom, constants = constants, found = found })
  return found
end

-- Constants are made outside of the typed function: inside they would be folded.
local function compiled(module, f, eager)
  local tensors, results = {}, {}
  local function constants(op)
    tensors[op] = tensors[op] or translate.constant(op.attributes.value)
    return tensors[op]
  end
  call(module, f, constants)
  for i, c in ipairs(eager) do
    for k = 1, 2 do
      results[2 * i - 2 + k] = ("%s[%s]"):format(c[k].dtype, table.concat(c[k].shape, ", "))
    end
  end
  local g = dc.fn("main() -> " .. table.concat(results, ", "), function()
    local out = {}
    for i, c in ipairs(call(module, f, constants)) do
      out[2 * i - 1], out[2 * i] = c[1], c[2]
    end
    return table.unpack(out)
  end)
  local values = { g() }
  for i, c in ipairs(eager) do
    c[1], c[2] = values[2 * i - 1], values[2 * i]
  end
end

local function run(module, f)
  local checks = call(module, f)
  if how == "compiled" then
    compiled(module, f, checks)
  end
  for _, c in ipairs(checks) do
    local wrong = each(c[1], c[2], c[3])
    if wrong then
      error(wrong, 0)
    end
  end
  if #checks == 0 then
    error("nothing is checked", 0)
  end
end

local function first_line(err)
  return tostring(err):match "^[^\n]*"
end

local function run_all(source, name, report)
  local ok, module = pcall(text.read, source, name)
  if not ok then
    report(false, module)
    return
  end
  module.name = name
  for _, entry in ipairs(module.functions.main and { "main" } or module.order) do
    local f = module.functions[entry]
    if f.body and #f.args == 0 and not f.private then
      local list = translate.unsupported(module, f)
      if list[1] then
        report(false, ("%s: %s is not supported"):format(list[1].op.name, list[1].what))
      else
        local done, err = pcall(run, module, f)
        report(done, err)
      end
    end
  end
end

local families, order, passed, failed = {}, {}, 0, 0

local endings = { "%.mlir$", "_[%d_]+$", "_b?float%d.*$", "_u?int%d.*$", "_complex%d.*$", "_bool.*$", "__.*$",
  "_shape.*$", "_dtypes.*$" }

local function family_of(name)
  for _, ending in ipairs(endings) do
    name = name:gsub(ending, "")
  end
  return name
end

local p <close> = assert(io.popen(("ls '%s'"):format(folder)))
for name in p:lines() do
  if name:find "%.mlir$" and name:find(pattern) then
    local file <close> = assert(io.open(folder .. "/" .. name))
    local key = family_of(name)
    if not families[key] then
      families[key] = { 0, 0 }
      order[#order + 1] = key
    end
    for _, part in ipairs(text.split(file:read "a")) do
      run_all(part, name, function(ok, err)
        local counts = families[key]
        if ok then
          passed, counts[1] = passed + 1, counts[1] + 1
        else
          failed, counts[2] = failed + 1, counts[2] + 1
          print(("%s: %s"):format(name, first_line(err)))
        end
      end)
    end
    collectgarbage()
  end
end
for _, key in ipairs(order) do
  if families[key][2] > 0 then
    print(("family %s: %d passed, %d failed"):format(key, families[key][1], families[key][2]))
  end
end
print(("%d passed, %d failed"):format(passed, failed))
