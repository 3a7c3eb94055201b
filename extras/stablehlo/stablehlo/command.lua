-- deepc run MODEL ARGS, and what deepc inspect tells of a program of StableHLO.

local dc = require "deepc"
local elements = require "deepc.stablehlo.elements"
local entry = require "deepc.stablehlo.entry"
local stablehlo = require "deepc.stablehlo"
local translate = require "deepc.stablehlo.translate"
local _, core = ...

local command = {}

-- The text of an error without the place in this script, which says nothing to who runs it.
local function try(f, ...)
  local results = table.pack(pcall(f, ...))
  if results[1] then
    return table.unpack(results, 2, results.n)
  end
  local text = tostring(results[2]):gsub("^deepc/stablehlo/command%.lua:%d+: ", "")
  dc.fail(text)
end

local function plain_type(t)
  return t.kind == "tensor" and (t.dtype and elements.type_text(t) or ("%s[%s]"):format(t.element,
    table.concat(t.shape, ", "))) or t.kind
end

-- ---- run -----------------------------------------------------------------------------------------

-- An argument: the name of an array of NumPy, or numbers as Lua writes them.
local function argument(text, a)
  if text:find "%.npy$" then
    return (require "deepc.data".read_npy(text))
  end
  local chunk = load("return " .. text, "=argument", "t", {})
  local ok, value = pcall(chunk or error)
  if not ok or value == nil then
    dc.fail(("run: argument '%s' is no array.npy, and no number or table of numbers as in {1, 2}"):format(text))
  end
  return dc.tensor(value, elements.type_text(a.type))
end

local function usage_of(f, about)
  local list = {}
  for i, a in ipairs(f.args) do
    list[i] = plain_type(a.type)
  end
  return ("%s takes %d argument%s: %s"):format(about, #list, #list == 1 and "" or "s", table.concat(list, ", "))
end

local function save(path, results)
  if not path:find "%.npz$" then
    dc.fail(("run: --out '%s': the name of an archive ends with .npz"):format(path))
  end
  local arrays = {}
  for i, x in ipairs(results) do
    arrays["result" .. i] = x
  end
  try(require "deepc.data".write_npz, path, arrays)
end

function command.run(args)
  local options, rest = dc.options({
    about = "Runs a program of StableHLO, text or bytecode: each argument is an array.npy, a number or {1, 2, 3}.",
    rest = "MODEL [ARG...]",
    { "entry", "main", "the function that is run", value = "NAME" },
    { "out", nil, "writes the results as result1, result2 ... instead of printing them", value = "FILE.npz" },
    { "times", 1, "how often it is called; says how long the last call took where it is more than 1", min = 1 },
  }, args)
  if #rest == 0 then
    dc.fail "run: a program is needed: deepc run model.mlir x.npy"
  end
  local module = try(stablehlo.read, rest[1])
  local typed, _, about = try(entry.typed, module, { entry = options.entry, unnamed = true })
  local f = about.entry
  if #rest - 1 ~= #f.args then
    dc.fail(("run: %s, and %d %s given"):format(usage_of(f, core.foreign(rest[1])), #rest - 1,
      #rest == 2 and "is" or "are"))
  end
  local call, given = entry.of_lists(typed, about), {}
  for i, a in ipairs(f.args) do
    given[i] = try(argument, rest[i + 1], a)
  end
  local results
  for _ = 1, options.times do
    local begun = dc.clock()
    results = { try(call, table.unpack(given, 1, #f.args)) }
    if options.times > 1 and results[1] then
      results[1]:bytes() -- which waits for it
    end
    results.took = dc.clock() - begun
  end
  if options.times > 1 then
    print(("%.3f ms"):format(1000 * results.took))
  end
  if options.out then
    save(options.out, results)
    return
  end
  for _, x in ipairs(results) do
    print(x)
  end
end

-- ---- inspect -------------------------------------------------------------------------------------

local function print_function(f)
  local args, results = {}, {}
  for i, a in ipairs(f.args) do
    args[i] = ("%s: %s"):format(core.foreign(a.name), plain_type(a.type))
  end
  for i, r in ipairs(f.results) do
    results[i] = plain_type(r.type)
  end
  print(("  @%s(%s) -> %s"):format(core.foreign(f.name), table.concat(args, ", "),
    #results == 1 and results[1] or "(" .. table.concat(results, ", ") .. ")"))
end

local function count_operations(module, f)
  local counts, names = {}, {}
  translate.each(module, f, function(op)
    if not counts[op.name] then
      names[#names + 1] = op.name
    end
    counts[op.name] = (counts[op.name] or 0) + 1
  end)
  table.sort(names, function(a, b)
    return counts[a] > counts[b] or counts[a] == counts[b] and a < b
  end)
  return counts, names
end

---Prints what a program is: functions with their types, how many of each operation, and what deepc has not.
---@param path string
function command.inspect_file(path)
  local module = stablehlo.read(path)
  print(("%s: StableHLO, %d function%s"):format(core.foreign(path), #module.order, #module.order == 1 and "" or "s"))
  for _, name in ipairs(module.order) do
    print_function(module.functions[name])
  end
  local f = module.functions.main or module.functions[module.order[1]]
  if not f or not f.body then
    return
  end
  local counts, names = count_operations(module, f)
  print(("\noperations of @%s and what it calls"):format(core.foreign(f.name)))
  for _, name in ipairs(names) do
    print(("  %6d  %s"):format(counts[name], core.foreign(name)))
  end
  local gaps = translate.unsupported(module, f)
  if #gaps > 0 then
    print "\nnot supported"
    for _, gap in ipairs(gaps) do
      print(("  line %d: %s: %s"):format(gap.op.line or 0, core.foreign(gap.op.name), core.foreign(gap.what)))
    end
  end
end

return command
