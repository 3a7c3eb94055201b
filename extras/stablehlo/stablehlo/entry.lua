-- A function of a module that was read as a typed function of deepc.

local dc = require "deepc"
local elements = require "deepc.stablehlo.elements"
local translate = require "deepc.stablehlo.translate"
local _, core = ...

local entry = {}

local function fail(op, format, ...)
  core.fail("ARG", op, format:format(...))
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
  for i, gap in ipairs(translate.unsupported(module, f)) do
    lines[i] = ("%s: %s is not supported"):format(translate.place_of(module.name, gap.op), gap.what)
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

local function used_values(region, used)
  for _, op in ipairs(region.ops) do
    for _, name in ipairs(op.operands) do
      used[name] = true
    end
    for _, inner in ipairs(op.regions) do
      used_values(inner, used)
    end
  end
  return used
end

local MOST_ARGUMENTS, MOST_RESULTS = 32, 8 -- of a typed function; more of them are one record

-- The names of the arguments, where Lua takes them; else arg0, arg1 ... A program keeps arguments that it does not use:
-- those begin with an underline, so that nothing is noted of them; fields of records need none. For callers that know
-- no names, all begin with one.
local function names_of(f, unnamed)
  local names, taken, used = {}, {}, used_values(f.body, {})
  for i, a in ipairs(f.args) do
    local prefix = (unnamed or not used[a.name] and #f.args <= MOST_ARGUMENTS) and "_" or ""
    local name = a.name:match "^%%([%a_][%w_]*)$"
    if not name or not load("local " .. name) then
      name = "arg" .. i - 1
    end
    while taken[prefix .. name] do
      name = name .. "_" .. i - 1
    end
    names[i], taken[prefix .. name] = prefix .. name, true
  end
  return names
end

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
  return ("%s(%s) -> %s"):format((f.name:gsub("[^%w_]", "_"):gsub("^%d", "_%0")), args,
    results[1] and table.concat(results, ", ") or "()")
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

---Function `options.entry` of a module as a typed function; the parameters that its constants are; and `entry`, the
---function of the module, with `arguments` and `results`, the names of fields where all of them are one record.
---@param module table
---@param options table entry, parameters, custom, as stablehlo.load has them; unnamed: no note tells of an argument
---@return deepc.Function
---@return deepc.Tensor[] parameters
---@return table
function entry.typed(module, options)
  local op = "stablehlo.load"
  local f = entry_of(op, module, options.entry)
  check_supported(op, module, f)
  local made, parameters = make_constants(module, f, options.parameters)
  local settings = { custom = options.custom, constants = function(o) return made[o] end }
  local names = names_of(f, options.unnamed)
  local body = body_of(f, names, function(args)
    return { translate.call(module, f, args, settings) }
  end)
  local many, results = #names > MOST_ARGUMENTS, #f.results > MOST_RESULTS and result_names(#f.results) or nil
  return dc.fn(signature(op, f, names), with_names(many and { "args" } or names, body)), parameters,
    { entry = f, arguments = many and names or nil, results = results }
end

---A function of tensors which gives tensors, of a typed function that may have records.
---@param typed function
---@param about table entry, and the names of fields, as entry.typed gives them
---@return function
function entry.of_lists(typed, about)
  local names, fields = about.arguments, about.results
  local nargs, nresults = #about.entry.args, #about.entry.results
  if not names and not fields then
    return typed
  end
  return function(...)
    local given, list = {}, {}
    for i = 1, names and nargs or 0 do
      given[names[i]] = (select(i, ...))
    end
    if not fields then
      return typed(given)
    end
    local out = names and typed(given) or typed(...)
    for i = 1, nresults do
      list[i] = out[fields[i]]
    end
    return table.unpack(list, 1, nresults)
  end
end

return entry
