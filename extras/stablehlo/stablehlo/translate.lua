-- Functions of StableHLO as operations of deepc: each of its operations is a row of the tables in *_ops.lua, a function
-- of a context and the operands, which gives the results. Traced in a typed function they make its graph; outside they
-- compute.
--
-- The region of a reduction, a sort or a scatter is a function of scalars. All of its operations are element-wise, so
-- it is called with whole tensors as well ("lifted"); then results have other shapes than the program says.

local elements = require "deepc.stablehlo.elements"
local _, core = ...

local translate = { rows = {} }
local rows = translate.rows

for _, name in ipairs { "simple", "moving", "windows", "regions", "special", "random" } do
  for op, row in pairs(require("deepc.stablehlo." .. name .. "_ops")) do
    rows[op] = row
  end
end

-- ---- one operation -------------------------------------------------------------------------------

-- What a row gets: `op`, `attributes`, `types` of the results, and these.
local Context = {}
Context.__index = Context

---The number that all elements of an operand are, where that is known.
function Context:number(x)
  return self.run.known[x]
end

---The elements of an operand as a list of numbers, where it is a constant that the program holds.
function Context:list(x)
  return self.run.lists[x]
end

---The type of result i, as deepc writes it.
function Context:type_text(i)
  return elements.type_text(self.types[i or 1])
end

function Context:fail(format, ...)
  self.run:fail(self.op, format:format(...))
end

---Region i as a function of its arguments; lifted: of tensors in the place of scalars.
function Context:region(i, lifted)
  local region, run, env = self.op.regions[i], self.run, self.env
  return function(...)
    return run:region(region, env, { ... }, lifted or self.lifted)
  end
end

---A function of the module, called with these values.
function Context:call(name, ...)
  local f = self.run.module.functions[name]
  if not f or not f.body then
    self:fail("there is no function @%s", name)
  end
  return self.run:func(f, { ... }, self.lifted)
end

-- ---- regions and functions -----------------------------------------------------------------------

local Run = {}
Run.__index = Run

---Where an operation stands: a line and a column of text, the place that an artifact says it is from.
---@param name string of the module
---@param op table
---@return string
function translate.place_of(name, op)
  if op.where then
    return ("%s: %s: %s"):format(name, op.where, op.name)
  end
  return ("%s:%d:%d: %s"):format(name, op.line or 0, op.column or 0, op.name)
end

function Run:fail(op, message)
  core.fail("ARG", "stablehlo.load", ("%s: %s"):format(translate.place_of(self.name, op), message))
end

local function differs(x, t)
  if x.dtype ~= t.dtype or #x.shape ~= #t.shape then
    return true
  end
  for i, size in ipairs(t.shape) do
    if x.shape[i] ~= size then
      return true
    end
  end
  return false
end

function Run:check(op, x, i)
  local t = op.types[i]
  if t.kind == "tensor" and differs(x, t) then
    self:fail(op, ("result %d is %s[%s], and %s is declared"):format(i, x.dtype, table.concat(x.shape, ", "),
      elements.type_text(t)))
  end
end

function Run:keep(op, env, lifted, ...)
  for i, name in ipairs(op.results) do
    local x = select(i, ...)
    if x == nil then
      self:fail(op, ("result %d is missing"):format(i))
    end
    if not lifted then
      self:check(op, x, i)
    end
    env[name] = x
  end
end

function Run:one(op, env, lifted)
  local row = rows[op.name]
  if not row then
    self:fail(op, "this operation is not supported")
  end
  local operands = {}
  for i, name in ipairs(op.operands) do
    operands[i] = env[name]
    if operands[i] == nil then
      self:fail(op, ("%s has no value here"):format(name))
    end
  end
  local before = self.current
  self.current = op
  local context = setmetatable({ run = self, op = op, env = env, lifted = lifted, attributes = op.attributes,
    types = op.types }, Context)
  self:keep(op, env, lifted, row(context, table.unpack(operands, 1, #op.operands)))
  self.current = before
end

function Run:values(op, env)
  local out = {}
  for i, name in ipairs(op.operands) do
    out[i] = env[name]
  end
  return table.unpack(out, 1, #op.operands)
end

-- look(env), if given, is called with the values of the region.
function Run:region(region, outer, args, lifted, look)
  local env = setmetatable({}, { __index = outer })
  for i, a in ipairs(region.args) do
    env[a.name] = args[i]
  end
  local last = #region.ops
  for i = 1, last - 1 do
    self:one(region.ops[i], env, lifted)
  end
  if look then
    look(env)
  end
  if last == 0 then
    return
  end
  return self:values(region.ops[last], env)
end

function Run:func(f, args, lifted)
  self.depth = self.depth + 1
  if self.depth > 100 then
    core.fail("ARG", "stablehlo.load", ("%s:%d: @%s: functions call each other without an end"):format(self.name,
      f.line or 0, f.name))
  end
  local results = table.pack(self:region(f.body, nil, args, lifted))
  self.depth = self.depth - 1
  return table.unpack(results, 1, results.n)
end

local of_lua <const> = { "attempt to ", "bad argument ", "invalid value " }

local function is_of_lua(err)
  for _, words in ipairs(of_lua) do
    if type(err) == "string" and err:find(words, 1, true) then
      return true
    end
  end
  return false
end

-- What an operation raises, with its place: the first line of an error of deepc about values, without the line of the
-- script; an error of Lua in a row, which means that operands or attributes are not those of the operation.
-- Interruptions and the like pass as they are.
local function place(run, err)
  local op = run.current
  if op and type(err) == "table" and tostring(err.code):find "^DC0[1-5]" and err.op ~= "stablehlo.load" then
    local line, at = tostring(err):match "^[^\n]*", tostring(err.at) .. ": "
    run:fail(op, line:sub(1, #at) == at and line:sub(#at + 1) or line)
  elseif op and is_of_lua(err) then
    run:fail(op, "its operands or attributes are not those of this operation: " .. err:match "^[^\n]*")
  end
  error(err, 0)
end

---Calls function f of a module with tensors; `options.custom` has functions by the names of custom calls.
function translate.call(module, f, args, options)
  local run = setmetatable({ module = module, name = module.name or "stablehlo", depth = 0, known = {}, lists = {},
    options = options or {} }, Run)
  local results = table.pack(pcall(run.func, run, f, args))
  if not results[1] then
    place(run, results[2])
  end
  return table.unpack(results, 2, results.n)
end

-- ---- what is not supported ------------------------------------------------------------------------

local function add(list, seen, key, op, what)
  if not seen[key] then
    seen[key] = true
    list[#list + 1] = { op = op, what = what }
  end
end

local function check_types(list, seen, op, types)
  for _, t in ipairs(types) do
    if t.kind == "tensor" then
      if not t.dtype then
        add(list, seen, "type " .. t.element, op, ("element type %s"):format(t.element))
      end
      for _, size in ipairs(t.shape) do
        if size < 0 then
          add(list, seen, "dynamic", op, "a size that is not known")
        end
      end
    end
  end
end

---Calls visit(op) for each operation of f and of all functions that it calls, regions included; the ends of regions
---are none.
function translate.each(module, f, visit)
  local seen = {}
  local each_function
  local function each_region(region)
    for i, op in ipairs(region.ops) do
      if i < #region.ops or op.name ~= "func.return" and op.name ~= "stablehlo.return" then
        visit(op)
      end
      for _, inner in ipairs(op.regions) do
        each_region(inner)
      end
      local callee = op.attributes.callee or op.attributes.decomposition
      each_function(type(callee) == "table" and module.functions[callee.symbol])
    end
  end
  function each_function(g)
    if g and g.body and not seen[g] then
      seen[g] = true
      each_region(g.body)
    end
  end
  each_function(f)
end

---What function f needs and deepc has not: a list of { op =, what = }.
function translate.unsupported(module, f)
  local list, seen = {}, {}
  for _, a in ipairs(f.args) do
    check_types(list, seen, { name = "argument " .. a.name, line = f.line, column = f.column }, { a.type })
  end
  translate.each(module, f, function(op)
    if not rows[op.name] then
      add(list, seen, op.name, op, "this operation")
    end
    check_types(list, seen, op, op.types)
  end)
  return list
end

---The tensor of a constant that was read.
translate.constant = elements.tensor

return translate
