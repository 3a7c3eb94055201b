-- The graph of a typed function (dsl/fn/fngraph.c) as a program of StableHLO: each operation of core/ir/ops.def is a
-- row of the tables in write_*.lua: a function of a builder (build.lua), a node and its operands that gives the result.

local build = require "deepc.stablehlo.build"
local _, core = ...

local write = { rows = {} }
local rows = write.rows

for _, name in ipairs { "simple", "special", "moving", "control", "linear" } do
  for op, row in pairs(require("deepc.stablehlo.write_" .. name)) do
    rows[op] = row
  end
end

-- ---- what results depend on ------------------------------------------------------------------------

local function wanted_results(graph)
  local list, results = {}, graph["function"].results
  for i = 1, #graph.results do
    list[i] = results[i]
  end
  local sets = #graph.results + graph.printed
  for i = 1, #graph.sets do
    list[#list + 1] = results[sets + i]
  end
  return list
end

-- Which nodes these results depend on: operands stand before their users.
local function live_nodes(g, results)
  local live = {}
  for _, r in ipairs(results) do
    live[r] = true
  end
  for r = #g.nodes, 1, -1 do
    if live[r] then
      for _, a in ipairs(g.nodes[r].operands) do
        live[a] = true
      end
    end
  end
  return live
end

local bodies_of = { loop = 1, branch = 2 } -- so many attributes name bodies

local function check_rows(op, graph, g, results, seen)
  local live = live_nodes(g, results)
  for r, n in ipairs(g.nodes) do
    if live[r] and n.op ~= "param" and not rows[n.op] then
      core.fail("ARG", op, ("%s: StableHLO has no operation for '%s'"):format(n.where or graph.name, n.op))
    end
    for i = 1, live[r] and bodies_of[n.op] or 0 do
      local body = n.attributes[i]
      if not seen[body] then
        seen[body] = true
        check_rows(op, graph, graph.bodies[body], graph.bodies[body].results, seen)
      end
    end
  end
end

-- ---- graphs ----------------------------------------------------------------------------------------

local Writer = {}

-- The results of graph g, of a function or a body, for these values of its parameters.
function Writer:graph(g, params, results)
  local live, values, where, path = live_nodes(g, results), {}, self.where, self.path
  for i, r in ipairs(g.parameters) do
    values[r] = params[i]
  end
  for r, n in ipairs(g.nodes) do
    if live[r] and n.op ~= "param" then
      local operands = {}
      for i, a in ipairs(n.operands) do
        operands[i] = values[a]
      end
      self.where, self.path = n.where or where, n.path
      values[r] = rows[n.op](self, n, table.unpack(operands, 1, #n.operands))
    end
  end
  self.where, self.path = where, path
  local out = {}
  for i, r in ipairs(results) do
    out[i] = values[r]
  end
  return out
end

-- The same of a body that a loop or branch names.
function Writer:body(number, params)
  local g = self.bodies[number]
  return self:graph(g, params, g.results)
end

-- ---- functions -------------------------------------------------------------------------------------

local complex_of = { f32 = "c64", f64 = "c128" }
local word = "^[%a_$.-][%w_$.-]*$"

-- The name of a value in text: the label, with other characters than names have as "_".
local function value_name(label)
  local name = label:gsub("[^%w_$.-]", "_"):gsub("_+$", "")
  return name:find(word) and "%" .. name or nil
end

local function outside_type(n, complex)
  if not complex then
    return build.type(n.dtype, n.shape)
  end
  return build.type(complex_of[n.dtype], table.move(n.shape, 1, #n.shape - 1, 1, {}))
end

-- A complex value is a pair of real ones along a last axis inside.
local function parts_of(w, x, n)
  local list, one = {}, table.move(n.shape, 1, #n.shape, 1, {})
  one[#one] = 1
  for i, part in ipairs { "real", "imag" } do
    list[i] = w:one(part, { x }, n.dtype, x.shape):reshape(one)
  end
  return w:one("concatenate", list, n.dtype, n.shape, { dimension = #n.shape - 1 })
end

local function joined(w, x, n)
  local t, list = outside_type(n, true), {}
  for i = 1, 2 do
    list[i] = x:part(#n.shape - 1, i - 1, 1):reshape(t.shape)
  end
  return w:one("complex", list, t.dtype, t.shape)
end

local function constant(w, n, value)
  local t = build.type(n.dtype, n.shape)
  return (w:op("constant", {}, { t }, { value = { dense = true, type = t, bytes = value:bytes() } }))
end

-- Is the parameter an argument of the program? Else it is a constant.
local function is_argument(graph, i, options)
  local v = graph.values[i]
  if v.role == "argument" or graph.set_by[i] then
    return true
  elseif v.role == "captured" then
    return options.captured == "arguments"
  end
  return options.parameters ~= "constants"
end

local function label_of(graph, i)
  local v, label = graph.values[i], graph["function"].labels[i]
  return v.label or (label ~= "" and label) or v.role
end

-- Cells may have one label: the second one gets "#2".
local function unique(taken, label)
  local name, n = label, 1
  while taken[name] do
    n = n + 1
    name = ("%s#%d"):format(label, n)
  end
  taken[name] = true
  return name
end

-- What the program calls each parameter: arguments { name, role, type, value }.
local function make_parameters(w, graph, f, options)
  local g, params, list, taken = graph["function"], {}, {}, {}
  for i, r in ipairs(g.parameters) do
    if is_argument(graph, i, options) then
      local n, v = g.nodes[r], graph.values[i]
      local label, t = unique(taken, label_of(graph, i)), outside_type(n, v.complex)
      local x = w:value(t, value_name(label))
      f.args[#f.args + 1] = { name = x.name, type = t, attributes = {}, label = label }
      graph.name_of[i] = label
      list[#list + 1] = { name = label, role = v.role, value = v.value, dtype = t.dtype, shape = t.shape }
      graph.argument_of[i] = #f.args
      params[i] = { x }
    end
  end
  for i, r in ipairs(g.parameters) do
    local n = g.nodes[r]
    if not params[i] then
      params[i] = constant(w, n, graph.values[i].value)
    else
      params[i] = graph.values[i].complex and parts_of(w, params[i][1], n) or params[i][1]
    end
  end
  return params, list
end

-- New values of cells take the place of the arguments that were the old ones.
local function make_results(w, graph, f, values, nodes)
  local out, list = {}, {}
  for i, x in ipairs(values) do
    local set = graph.sets[i - #graph.results]
    local complex = set and graph.values[set].complex or not set and graph.results[i].complex
    local n = nodes[i]
    out[i] = complex and joined(w, x, n) or x
    local label = set and graph.name_of[set] or "result" .. i
    f.results[i] = { type = out[i].type, attributes = { ["jax.result_info"] = label } }
    list[i] = { name = label, argument = set and graph.argument_of[set], dtype = out[i].dtype, shape = out[i].shape }
    if set then
      f.args[graph.argument_of[set]].attributes["tf.aliasing_output"] = { integer = i - 1, element = "i32" }
    end
  end
  return out, list
end

---The module of a typed function's graph, as the readers give one, and lists of what its arguments and results are.
---op: who asks, for errors. options: parameters, captured = "arguments" or "constants"; precision.
function write.module(op, graph, options)
  local g, results = graph["function"], wanted_results(graph)
  check_rows(op, graph, g, results, {})
  graph.argument_of, graph.name_of, graph.set_by = {}, {}, {}
  for i, set in ipairs(graph.sets) do
    graph.set_by[set] = i
  end
  local w = build.new()
  for name, method in pairs(Writer) do
    w[name] = method
  end
  w.bodies, w.precision = graph.bodies, options.precision and options.precision:upper()
  local f = { name = "main", args = {}, results = {}, where = graph.where }
  w.where = graph.where
  local params, arguments = make_parameters(w, graph, f, options)
  local nodes = {}
  for i, r in ipairs(results) do
    nodes[i] = g.nodes[r]
  end
  local out, list = make_results(w, graph, f, w:graph(g, params, results), nodes)
  w:op("func.return", out, {})
  f.body = { args = f.args, ops = w.ops }
  local module = { name = graph.name:gsub("[^%w_$.]", "_"), functions = { main = f }, order = { "main" },
    attributes = {} }
  for _, helper in ipairs(w.helpers) do
    module.functions[helper.name] = helper
    module.order[#module.order + 1] = helper.name
  end
  return module, arguments, list
end

return write
