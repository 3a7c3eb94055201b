-- What the plugin for PJRT asks of Lua: programs of StableHLO as functions of lists of tensors. Complex numbers in them
-- are real ones with an axis of two behind the others, as the memory of both sides has them.

local dc = require "deepc"
local entry = require "deepc.stablehlo.entry"
local stablehlo = require "deepc.stablehlo"

local host = {}

local part_of = { c64 = "f32", c128 = "f64" }

local function parts_text(t)
  local part = part_of[t.dtype]
  local shape = table.concat(t.shape, ", ")
  return ("%s[%s%s]"):format(part or t.dtype, shape, part and (#t.shape > 0 and ", 2" or "2") or "")
end

local function has_complex(list)
  for _, v in ipairs(list) do
    if part_of[v.type.dtype] then
      return true
    end
  end
  return false
end

-- A typed function of real numbers round one of complex ones; all arguments are one record, and so are all results.
local function of_parts(f, call)
  local args, results = {}, {}
  for i, v in ipairs(f.args) do
    args[i] = ("a%d: %s"):format(i, parts_text(v.type))
  end
  for i, v in ipairs(f.results) do
    results[i] = ("r%d: %s"):format(i, parts_text(v.type))
  end
  local function body(record)
    local list, out = {}, {}
    for i, v in ipairs(f.args) do
      local x = record["a" .. i]
      list[i] = part_of[v.type.dtype] and x:view_as_complex() or x
    end
    local values = { call(table.unpack(list, 1, #f.args)) }
    for i, v in ipairs(f.results) do
      out["r" .. i] = part_of[v.type.dtype] and values[i]:view_as_real() or values[i]
    end
    return out
  end
  if #args == 0 then
    return dc.fn(("main() -> {%s}"):format(table.concat(results, ", ")), function() return body {} end)
  end
  return dc.fn(("main(record: {%s}) -> {%s}"):format(table.concat(args, ", "), table.concat(results, ", ")),
    body)
end

local function numbered(letter, n)
  local names = {}
  for i = 1, n do
    names[i] = letter .. i
  end
  return names
end

local function shapes_of(list)
  local out = {}
  for i, v in ipairs(list) do
    out[i] = { v.type.dtype, table.unpack(v.type.shape) }
  end
  return out
end

-- By number of an argument: whether the program may use its memory for a result, so that the caller has it no more.
local function donated(args)
  local out = {}
  for i, a in ipairs(args) do
    local at = a.attributes or {}
    out[i] = at["tf.aliasing_output"] ~= nil or at["jax.buffer_donor"] ~= nil
  end
  return out
end

---A program as a table: `call`, a function of tensors which gives tensors; `arguments` and `results`, lists of
---{ dtype, size, ... }; `donated`; `name`.
---@param code string
---@return table
function host.compile(code)
  local module = stablehlo.read(code)
  local typed, _, about = entry.typed(module, { unnamed = true })
  local f = about.entry
  local call = entry.of_lists(typed, about)
  if has_complex(f.args) or has_complex(f.results) then
    call = entry.of_lists(of_parts(f, call), { entry = f, results = numbered("r", #f.results),
      arguments = #f.args > 0 and numbered("a", #f.args) or nil })
  end
  return { call = call, arguments = shapes_of(f.args), results = shapes_of(f.results), donated = donated(f.args),
    name = module.symbol or f.name }
end

---A tensor of the bytes of its elements.
---@param bytes string
---@param dtype string
---@param ... integer # the shape
---@return deepc.Tensor
function host.from_bytes(bytes, dtype, ...)
  return dc.frombytes(bytes, parts_text { dtype = dtype, shape = { ... } })
end

---What the device is called, and whether the host can read its memory.
---@return string
---@return boolean
function host.describe()
  local name = dc.device()
  local kind = name:match "^%a+"
  return name, kind == "cpu" or kind == "eval" or kind == "sim"
end

---Bytes of tensors, now and at most.
---@return integer
---@return integer
function host.memory()
  local stats = dc.stats()
  return stats.bytes_live, stats.bytes_peak
end

return host
