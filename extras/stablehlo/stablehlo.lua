-- Programs of StableHLO, which JAX, PyTorch/XLA and TensorFlow export, as typed functions.
--
--     local stablehlo = require "deepc.stablehlo"
--     local step = stablehlo.load "step.mlir"

local text = require "deepc.stablehlo.text"
local bytecode = require "deepc.stablehlo.bytecode"
local entry = require "deepc.stablehlo.entry"
local _, core = ...

local stablehlo = {}

local function fail(op, format, ...)
  core.fail("ARG", op, format:format(...))
end

-- A program has several lines or begins with its first word; anything else is the name of a file.
local function is_program(s)
  return s:find "\n" ~= nil or s:find "^%s*module%f[%W]" ~= nil or s:find "^%s*func%f[%W]" ~= nil or bytecode.is(s)
end

---Reads a program, as text or as bytecode (a portable artifact), from a string or a file. What it holds is
---`functions`, by name, and `order`, a list of the names; each has `args`, `results` and a `body` of operations.
---
---    stablehlo.read("func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }").order[1]
---
---Errors: DC0101 with the line and column where the text is none, DC0801 where the file cannot be read.
---@param program string a program, or the name of its file
---@return table
function stablehlo.read(program)
  local op = "stablehlo.read"
  if type(program) ~= "string" then
    fail(op, "a program or the name of its file is needed, not %s", core.describe(program))
  end
  local name, source = "stablehlo", program
  if not is_program(program) then
    name, source = program, core.read_file(op, program)
  end
  local ok, module = pcall(bytecode.is(source) and bytecode.read or text.read, source, name)
  if not ok then
    if type(module) == "string" then
      fail(op, "%s", module)
    end
    error(module, 0) -- an interruption, or what memory says
  end
  module.name = name
  return module
end

---A function of a program as a typed function: it computes on any device, is differentiated and exported as others.
---What is not supported is told, operation by operation, before anything is computed.
---
---    local f = stablehlo.load [[
---      func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
---        %0 = stablehlo.tanh %x : tensor<3xf32>
---        return %0 : tensor<3xf32>
---      }]]
---    print(f { 0, 1, 2 })
---
---More than 32 arguments are one record with their names, f { arg0 = x, ... }; more than 8 results are one, of result1,
---result2 ...
---
---`entry` is the name of the function, "main" unless given. With `parameters = n`, constants of floats with at least n
---elements are parameters, which can be trained; the second value lists them. `custom` has functions for the targets of
---custom calls, by name: f(o, x, y) gets the attributes of the call as o.attributes, and its operands.
---
---Errors: as stablehlo.read; DC0101 where the program has no such function, or needs what is not supported.
---@param program string|table a program, the name of its file, or what stablehlo.read gave
---@param options? { entry?: string, parameters?: integer, custom?: table<string, function> }
---@return deepc.Function
---@return deepc.Tensor[] parameters
function stablehlo.load(program, options)
  core.options("stablehlo.load", options, "entry", "parameters", "custom")
  local is_module = type(program) == "table" and type(program.functions) == "table"
  local f, parameters = entry.typed(is_module and program or stablehlo.read(program), options or {})
  return f, parameters
end

return core.entries(stablehlo)
