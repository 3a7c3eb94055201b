-- Programs of StableHLO, which JAX, PyTorch/XLA and TensorFlow export, as typed functions; and typed functions as such
-- programs.
--
--     local stablehlo = require "deepc.stablehlo"
--     local step = stablehlo.load "step.mlir"
--     step:export "again.mlir"

local text = require "deepc.stablehlo.text"
local bytecode = require "deepc.stablehlo.bytecode"
local entry = require "deepc.stablehlo.entry"
local write = require "deepc.stablehlo.write"
local printer = require "deepc.stablehlo.print"
local encode = require "deepc.stablehlo.encode"
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

-- ---- typed functions as programs -------------------------------------------------------------------

local choices = { { "parameters", "arguments", "constants" }, { "captured", "arguments", "constants" },
  { "precision", "default", "high", "highest" } }

local function check_options(op, options)
  core.options(op, options, "parameters", "captured", "precision", "places")
  for _, choice in ipairs(choices) do
    local v, words = options and options[choice[1]], {}
    for i = 2, #choice do
      words[choice[i]] = true
    end
    if v ~= nil and not words[v] then
      fail(op, '%s is one of "%s", not %s', choice[1], table.concat(choice, '", "', 2), core.shown(v))
    end
  end
  return options or {}
end

local function module_of(op, f, sizes, options)
  options = check_options(op, options)
  local module, arguments, results = write.module(op, core.function_graph(f, op, sizes), options)
  return module, arguments, results, options
end

---A typed function as a program of StableHLO, as text: its graph as it was traced, as the function @main, which JAX,
---XLA, IREE and others compile. The second value lists the arguments of the program, in order: { name =, role =,
---dtype =, shape =, value = }, whose role is "argument", "captured", "parameter", "state" or "generator"; all but the
---first have their value, a tensor or a cell. The third one lists the results, { name =, argument =, dtype =,
---shape = }: those of the function, then the new values of the cells that it sets, with the number of the argument that
---they replace.
---
---    local f = dc.fn("f(x: f32[n]) -> f32[]", function(x) return (x * x):sum() end)
---    print(stablehlo.text(f, { n = 3 }))
---
---Options: `parameters = "constants"` writes parameters and states into the program, but for those that the function
---sets; `captured = "arguments"` makes arguments of captured tensors, which are constants otherwise; `precision` is
---"default", "high" or "highest", that of products on devices which have several; `places = false` leaves out the lines
---of the script.
---
---Errors: DC0101 for an operation that StableHLO has none for, with its line, and for sizes that are known at run time;
---what f:check raises.
---@param f deepc.Function
---@param sizes? table<string, any> as f:check takes them; none where one specialisation is there
---@param options? { parameters?: string, captured?: string, precision?: string, places?: boolean }
---@return string
---@return table[] arguments
---@return table[] results
function stablehlo.text(f, sizes, options)
  local module, arguments, results, given = module_of("stablehlo.text", f, sizes, options)
  return printer.module(module, given), arguments, results
end

---The same as a portable artifact, in bytes: MLIR bytecode of StableHLO 1.1.0, which programs with this version or a
---newer one of the dialect read.
---
---    local f = dc.fn("f(x: f32[n]) -> f32[]", function(x) return (x * x):sum() end)
---    stablehlo.bytecode(f, { n = 3 })
---
---Errors: as stablehlo.text.
---@param f deepc.Function
---@param sizes? table<string, any>
---@param options? { parameters?: string, captured?: string, precision?: string, places?: boolean }
---@return string
---@return table[] arguments
---@return table[] results
function stablehlo.bytecode(f, sizes, options)
  local module, arguments, results, given = module_of("stablehlo.bytecode", f, sizes, options)
  return encode.module(module, given), arguments, results
end

---Writes a typed function to a file, as f:export does: as stablehlo.bytecode gives it where its name ends in ".mlirbc",
---else as text. Nothing is written where it fails.
---
---    local twice = dc.fn("twice(x: f32[n]) -> f32[n]", function(x) return x * 2 end)
---    stablehlo.export(twice, os.tmpname() .. ".mlir", { n = 3 })
---
---Errors: as stablehlo.text; DC0801 for the file.
---@param f deepc.Function
---@param path string
---@param sizes? table<string, any>
---@param options? { parameters?: string, captured?: string, precision?: string, places?: boolean }
---@return table[] arguments
---@return table[] results
function stablehlo.export(f, path, sizes, options)
  local module, arguments, results, given = module_of("export", f, sizes, options)
  local bytes = path:find "%.mlirbc$" and encode.module(module, given) or printer.module(module, given) .. "\n"
  core.write_file("export", path, bytes)
  return arguments, results
end

return core.entries(stablehlo)
