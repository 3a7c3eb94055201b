-- What xla.lua and xla_example.lua have in common: a program with its inputs and what deepc computes of them, as files.
local json = require "deepc.json"
local stablehlo = require "deepc.stablehlo"

local function write(path, bytes)
  local f <close> = assert(io.open(path, "wb"))
  f:write(bytes)
end

local function types(list)
  local out = {}
  for i, a in ipairs(list) do
    out[i] = { dtype = a.dtype, shape = a.shape, name = a.name }
  end
  return out
end

-- Writes PATH.mlir, PATH.mlirbc, PATH.json and PATH.bin for the only specialisation of f. flat: the tensors among the
-- arguments; args: the arguments.
return function(path, name, f, flat, args, near)
  local source, arguments, results = stablehlo.text(f)
  local bytes = {}
  for i, a in ipairs(arguments) do
    bytes[i] = (a.value or flat[i]):bytes()
  end
  local out = { f(table.unpack(args)) }
  for i, r in ipairs(results) do
    bytes[#bytes + 1] = (r.argument and arguments[r.argument].value or out[i]):bytes()
  end
  write(path .. ".mlir", source)
  write(path .. ".mlirbc", (stablehlo.bytecode(f)))
  write(path .. ".bin", table.concat(bytes))
  write(path .. ".json", json.write { name = name, near = near, inputs = types(arguments), results = types(results) })
end
