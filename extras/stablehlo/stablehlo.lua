-- Programs of StableHLO, which JAX, PyTorch/XLA and TensorFlow export, as typed functions.
--
--     local stablehlo = require "deepc.stablehlo"
--     local step = stablehlo.load "step.mlir"

local dc = require "deepc"
local text = require "deepc.stablehlo.text"
local bytecode = require "deepc.stablehlo.bytecode"
local elements = require "deepc.stablehlo.elements"
local translate = require "deepc.stablehlo.translate"
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

local function entry_of(op, module, name)
  local f = module.functions[name or "main"]
  if not f and not name and #module.order == 1 then
    f = module.functions[module.order[1]]
  end
  if not f or not f.body then
    fail(op, "%s has no function @%s; it has %s", module.name, name or "main",
      #module.order > 0 and "@" .. table.concat(module.order, ", @") or "none")
  end
  return f
end

local function check_supported(op, module, f)
  local lines = {}
  for i, entry in ipairs(translate.unsupported(module, f)) do
    lines[i] = ("%s:%d: %s: %s is not supported"):format(module.name, entry.op.line or 0, entry.op.name, entry.what)
  end
  if lines[1] then
    fail(op, "%s", table.concat(lines, "; "))
  end
end

local function types_of(op, f, list, what)
  local out = {}
  for i, v in ipairs(list) do
    if v.type.kind ~= "tensor" then
      fail(op, "@%s: %s %d is no tensor", f.name, what, i)
    end
    out[i] = elements.type_text(v.type)
  end
  return out
end

-- The names of the arguments, where Lua takes them; else arg0, arg1 ...
local function names_of(f)
  local names, taken = {}, {}
  for i, a in ipairs(f.args) do
    local name = a.name:match "^%%([%a_][%w_]*)$"
    if not name or taken[name] or not load("local " .. name) then
      name = "arg" .. i - 1
    end
    names[i], taken[name] = name, true
  end
  return names
end

local MOST_ARGUMENTS, MOST_RESULTS = 32, 8 -- of a typed function; more of them are one record

local function record(names, types)
  local fields = {}
  for i, t in ipairs(types) do
    fields[i] = ("%s: %s"):format(names[i], t)
  end
  return fields
end

local function result_names(n)
  local names = {}
  for i = 1, n do
    names[i] = "result" .. i
  end
  return names
end

local function signature(op, f, names)
  local args = table.concat(record(names, types_of(op, f, f.args, "argument")), ", ")
  local results = types_of(op, f, f.results, "result")
  if #f.args > MOST_ARGUMENTS then
    args = ("args: {%s}"):format(args)
  end
  if #results > MOST_RESULTS then
    results = { ("{%s}"):format(table.concat(record(result_names(#results), results), ", ")) }
  end
  return ("%s(%s) -> %s"):format((f.name:gsub("[^%w_]", "_"):gsub("^%d", "_%0")), args, table.concat(results, ", "))
end

-- call(list) gives a list of results; as the signature has it, in records.
local function body_of(f, names, call)
  return function(...)
    local args = { ... }
    if #f.args > MOST_ARGUMENTS then
      for i, name in ipairs(names) do
        args[i] = (...)[name]
      end
    end
    local out = call(args)
    if #f.results <= MOST_RESULTS then
      return table.unpack(out, 1, #f.results)
    end
    local fields = {}
    for i, name in ipairs(result_names(#f.results)) do
      fields[name] = out[i]
    end
    return fields
  end
end

-- Constants of several values are tensors that the function captures; floats of more than `most` elements parameters.
local function make_constants(module, f, most)
  local made, parameters = {}, {}
  translate.each(module, f, function(op)
    local a = op.name == "stablehlo.constant" and op.attributes.value
    if a and a.dense and not a.elided and a.splat == nil then
      local x = elements.tensor(a)
      if most and a.type.dtype:find "^b?f%d" and elements.count(a.type.shape) >= most then
        x = dc.param(x)
        parameters[#parameters + 1] = x
      end
      made[op] = x
    end
  end)
  return made, parameters
end

-- A typed function takes a body whose parameters are those of its signature: one that calls f.
local function with_names(names, f)
  local list = table.concat(names, ", ")
  return load(("local f = ... return function(%s) return f(%s) end"):format(list, list), "=stablehlo")(f)
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
---@param program string a program, or the name of its file
---@param options? { entry?: string, parameters?: integer, custom?: table<string, function> }
---@return deepc.Function
---@return deepc.Tensor[] parameters
function stablehlo.load(program, options)
  local op = "stablehlo.load"
  core.options(op, options, "entry", "parameters", "custom")
  options = options or {}
  local module = stablehlo.read(program)
  local f = entry_of(op, module, options.entry)
  check_supported(op, module, f)
  local made, parameters = make_constants(module, f, options.parameters)
  local settings = { custom = options.custom, constants = function(o) return made[o] end }
  local names = names_of(f)
  local body = body_of(f, names, function(args)
    return { translate.call(module, f, args, settings) }
  end)
  return dc.fn(signature(op, f, names), with_names(#names > MOST_ARGUMENTS and { "args" } or names, body)), parameters
end

return core.entries(stablehlo)
