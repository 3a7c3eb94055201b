-- What a model is made of, by name: for dc.save, dc.load and dc.checkpoint.
--
-- What is saved or loaded into becomes a list of entries { name, value, also }: a cell that stands in several places
-- has one entry, under its first name; the others are in `also`. The table of internals gets the functions as `cells`.

local _, core = ...

local cells = {}

local describe = core.describe

local function before(a, b)
  if type(a) ~= type(b) then
    return type(a) == "number"
  end
  return a < b
end

-- Layers, optimisers: whatever lists its cells.
local function lists_cells(v)
  local ok, method = pcall(function()
    return getmetatable(v) ~= nil and v.named_cells
  end)
  return ok and type(method) == "function"
end

function cells.plain(v)
  return type(v) == "table" and getmetatable(v) == nil
end

local function add(c, name, value)
  local entry = c.entry_of[value]
  if c.taken[name] then
    core.fail("ARG", c.op, ("two values have the name '%s'"):format(name))
  end
  c.taken[name] = true
  if entry then
    entry.also[#entry.also + 1] = name
  else
    entry = { name = name, value = value, also = {} }
    c.entry_of[value] = entry
    c.list[#c.list + 1] = entry
  end
end

local function add_cells(c, prefix, object)
  for _, named in ipairs(object:named_cells()) do
    add(c, prefix .. named[1], named[2])
    for _, name in ipairs(named.also or {}) do
      add(c, prefix .. name, named[2])
    end
  end
end

local function sorted_keys(c, prefix, t)
  local keys = {}
  for key in next, t do
    if type(key) ~= "string" and math.type(key) ~= "integer" then
      core.fail("ARG", c.op, ("a key at '%s' is %s; names and whole numbers are needed"):format(
        prefix, describe(key)))
    end
    keys[#keys + 1] = key
  end
  table.sort(keys, before)
  return keys
end

local function add_table(c, prefix, t, above)
  above[t] = true
  for _, key in ipairs(sorted_keys(c, prefix, t)) do
    local value, name = t[key], prefix .. key
    if core.kind(value) then
      add(c, name, value)
    elseif lists_cells(value) then
      add_cells(c, name .. ".", value)
    elseif not cells.plain(value) then
      core.fail("ARG", c.op, ("'%s' is %s"):format(name, describe(value)),
        "tensors, cells, layers, optimisers and tables of these have a place in a file; texts are metadata")
    elseif above[value] then
      core.fail("ARG", c.op, ("the table '%s' contains itself"):format(name))
    else
      add_table(c, name .. ".", value, above)
    end
  end
  above[t] = nil
end

-- The entries of a layer, an optimiser or a table.
function cells.collect(op, what)
  local c = { op = op, list = {}, entry_of = {}, taken = {} }
  if core.kind(what) then
    core.fail("ARG", op, "a tensor alone has no name", "{ x = x } gives it one")
  elseif lists_cells(what) then
    add_cells(c, "", what)
  elseif cells.plain(what) then
    add_table(c, "", what, {})
  else
    core.fail("ARG", op, ("a layer, an optimiser or a table is needed, not %s"):format(describe(what)))
  end
  return c.list
end

function cells.check_path(op, path)
  if type(path) ~= "string" then
    core.fail("ARG", op, ("a path is needed, not %s"):format(describe(path)))
  end
end

function cells.check_alone(op, options)
  local alone = options.alone
  if alone ~= nil and type(alone) ~= "boolean" then
    core.fail("ARG", op, ("alone is true or false, not %s"):format(describe(alone)))
  end
  return alone
end

function cells.is_linear(value)
  return core.is_linear ~= nil and core.is_linear[value] == true
end

core.cells = cells

return {}
