-- dc.save, dc.load, dc.checkpoint: what a model is made of, by name, to a safetensors file and back.
-- Their annotations are in api/scripts.lua.
--
-- What is saved becomes a list of entries { name, value, also }: a cell that stands in several places has
-- one tensor in the file, under its first name; the others are metadata. Keys of metadata that begin with
-- "deepc." are ours:
--
--   deepc.alias:NAME      the name of the tensor that NAME shares
--   deepc.linear:NAME     "in, out": the weight of a linear layer, its axes in this order; or "out, in"
--   deepc.linear          the same of all of them, for files that other programs write
--   deepc.checkpoint      "1", in checkpoints
--   deepc.version         of deepc
--   deepc.schedules       what dc.stats().schedules said
--   deepc.value:NAME      a value given to checkpoint:save
--   deepc.data:PART:KEY   where a data set stands

local dc = require "deepc"
local _, core = ...

local files = {}

local OURS = "^deepc%."

-- ---- what is saved ----

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

local function plain(v)
  return type(v) == "table" and getmetatable(v) == nil
end

local describe = core.describe

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
    elseif not plain(value) then
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
local function collect(op, what)
  local c = { op = op, list = {}, entry_of = {}, taken = {} }
  if core.kind(what) then
    core.fail("ARG", op, "a tensor alone has no name", "{ x = x } gives it one")
  elseif lists_cells(what) then
    add_cells(c, "", what)
  elseif plain(what) then
    add_table(c, "", what, {})
  else
    core.fail("ARG", op, ("a layer, an optimiser or a table is needed, not %s"):format(describe(what)))
  end
  return c.list
end

-- ---- saving ----

local function check_path(op, path)
  if type(path) ~= "string" then
    core.fail("ARG", op, ("a path is needed, not %s"):format(describe(path)))
  end
end

local function check_metadata(metadata)
  if metadata ~= nil and not plain(metadata) then
    core.fail("ARG", "save", ("metadata is a table of texts, not %s"):format(describe(metadata)))
  end
  for key, text in pairs(metadata or {}) do
    if type(key) ~= "string" or type(text) ~= "string" then
      core.fail("ARG", "save", ("metadata '%s' is %s; keys and values are texts"):format(
        tostring(key), describe(text)), "tostring(x) makes one; dc.checkpoint keeps numbers")
    elseif key:find(OURS) then
      core.fail("ARG", "save", ("metadata '%s': names that begin with 'deepc.' are kept"):format(key))
    end
  end
end

local function is_linear(value)
  return core.is_linear ~= nil and core.is_linear[value] == true
end

-- Metadata as two lists, the names of shared cells among it.
local function write(path, list, metadata)
  local names, values, keys, texts = {}, {}, {}, {}
  local function text(key, value)
    keys[#keys + 1], texts[#keys + 1] = key, value
  end
  for i, entry in ipairs(list) do
    names[i], values[i] = entry.name, entry.value
    if is_linear(entry.value) then
      text("deepc.linear:" .. entry.name, "in, out")
    end
    for _, name in ipairs(entry.also) do
      text("deepc.alias:" .. name, entry.name)
    end
  end
  for key, value in pairs(metadata) do
    text(key, value)
  end
  core.file_save(path, names, values, keys, texts)
end

function files.save(path, what, metadata)
  core.refuse_tracing("dc.save")
  check_path("save", path)
  check_metadata(metadata)
  write(path, collect("save", what), metadata or {})
end

-- ---- loading ----

-- What the file says besides tensors: names to the names they share, and the script's own texts.
local function read_metadata(all)
  local aliases, metadata, ours = {}, {}, {}
  for key, text in pairs(all) do
    local alias = key:match "^deepc%.alias:(.*)$"
    if alias then
      aliases[alias] = text
    elseif key:find(OURS) then
      ours[key] = text
    else
      metadata[key] = text
    end
  end
  return aliases, metadata, ours
end

local function quoted(names)
  local list = {}
  for i = 1, math.min(#names, 3) do
    list[i] = "'" .. names[i] .. "'"
  end
  return table.concat(list, ", ") .. (#names > 3 and (" and %d more"):format(#names - 3) or "")
end

-- What may be meant where names of the model are missing and others are there.
local function hint_for(missing, unexpected)
  local name, set = missing[1], {}
  if not name then
    return nil
  end
  for _, other in ipairs(unexpected) do
    set[other] = true
    local suffix = "." .. name
    if other:sub(-#suffix) == suffix then
      return ("names in the file begin with '%s'"):format(other:sub(1, -#name - 1))
    end
    suffix = "." .. other
    if name:sub(-#suffix) == suffix then
      return ("the file has '%s'; it was saved of a part of this"):format(other)
    end
  end
  return core.near(set, name)
end

local function refuse_names(path, missing, unexpected, partial)
  local texts = {}
  if #missing > 0 then
    texts[1] = "has no tensor " .. quoted(missing)
  end
  if #unexpected > 0 then
    texts[#texts + 1] = ("%s %s no place in what is loaded into"):format(quoted(unexpected),
      #unexpected == 1 and "has" or "have")
  end
  local hint = hint_for(missing, unexpected)
  if #missing == 0 and partial == nil then
    hint = "{ partial = true } leaves out what has no place"
  end
  core.fail("MISFIT", "load", ("%s: %s"):format(path, table.concat(texts, "; ")), hint)
end

-- The name in the file of an entry's tensor; nil if it has none.
local function name_in(entry, there, aliases)
  for i = 0, #entry.also do
    local name = i == 0 and entry.name or entry.also[i]
    if there[name] then
      return name
    elseif aliases[name] and there[aliases[name]] then
      return aliases[name]
    end
  end
end

-- ---- layouts of linear layers ----
--
-- PyTorch keeps their weights as [outputs, inputs]. What is not square shows which it is, the rest follows; where
-- nothing shows it, the caller has to say.

local LAYOUTS = { ["in, out"] = true, ["out, in"] = true }

local function check_linear(into, linear)
  if linear == nil then
    return nil
  elseif not LAYOUTS[linear] then
    core.fail("ARG", "load", ("linear is %s"):format(describe(linear)),
      'linear = "out, in" in files of PyTorch, or "in, out"')
  elseif into == nil then
    core.fail("ARG", "load", "linear is for loading into layers; dc.load(path) gives tensors as the file has them")
  end
  return linear
end

-- "in, out", "out, in", "square", or nil where the sizes are others.
local function layout_of(there, here)
  if #there ~= 2 or #here ~= 2 then
    return nil
  elseif there[1] == here[1] and there[2] == here[2] then
    return here[1] ~= here[2] and "in, out" or here[1] > 1 and "square" or nil
  end
  return there[1] == here[2] and there[2] == here[1] and "out, in" or nil
end

local function sizes_text(shape)
  return ("[%d, %d]"):format(shape[1], shape[2])
end

local function refuse_layout(path, name, shape, text, hint)
  core.fail("MISFIT", "load", ("%s: tensor '%s' is %s: %s"):format(path, name, sizes_text(shape), text), hint)
end

-- Matrices of a script's own layers, in a file of [out, in]: their orientation cannot be known.
local function tell_unknown(file, from, cells, ours)
  for i, name in ipairs(from) do
    local known = core.is_linear ~= nil and core.is_linear[cells[i]] ~= nil
    if not known and core.kind(cells[i]) == "param" and not ours["deepc.linear:" .. name]
      and layout_of(core.file_shape(file, name), cells[i].shape) == "square" then
      core.note(("load: '%s' is square and of no nn.Linear: taken as it is; linear layers of this file are [out, in]")
        :format(name))
    end
  end
end

-- Which of the weights, by position, are turned: `from` are names in the file, `ours` says what the file says of them.
local function find_turned(path, file, from, cells, ours, linear)
  local turned, shapes, seen, first = {}, {}, {}, nil
  for i, name in ipairs(from) do
    local said = ours["deepc.linear:" .. name] or ours["deepc.linear"]
    if is_linear(cells[i]) and said then
      turned[i] = said == "out, in"
    elseif is_linear(cells[i]) then
      local shape = core.file_shape(file, name)
      local layout = layout_of(shape, cells[i].shape)
      shapes[i] = shape
      first = first or layout == "square" and i or nil
      if layout and layout ~= "square" then
        seen[layout] = seen[layout] or i
        turned[i] = layout == "out, in"
      end
    end
  end
  local a, b = seen["in, out"], seen["out, in"]
  local other = linear and seen[linear == "in, out" and "out, in" or "in, out"]
  if other then
    refuse_layout(path, from[other], shapes[other], ("the other way round than linear = %q"):format(linear))
  elseif a and b and first then
    refuse_layout(path, from[first], shapes[first],
      ("the file has '%s' as [in, out], as it is here, and '%s' as [out, in]"):format(from[a], from[b]),
      "dc.load with { linear = ..., partial = true } of a part at a time")
  elseif first and not (linear or a or b) then
    refuse_layout(path, from[first], shapes[first],
      "a linear layer keeps [in, out] here, PyTorch [out, in], and the file does not say which this is",
      '{ linear = "out, in" } for files of PyTorch, { linear = "in, out" } for what is as it is here')
  end
  linear = linear or (b and "out, in") or "in, out"
  if linear == "out, in" then
    tell_unknown(file, from, cells, ours)
  end
  for i in pairs(shapes) do
    if turned[i] == nil then
      turned[i] = linear == "out, in" and layout_of(shapes[i], cells[i].shape) == "square"
    end
  end
  return turned
end

-- PyTorch's norms count batches, which ours do only where that is the weight of a batch.
local function is_count_of_batches(name, used)
  local path = name:match "^(.*)num_batches_tracked$"
  return path ~= nil and used[path .. "running_mean"] == true
end

-- Names in a file that counts the parts of lists from 0.
local function count_from_zero(list)
  local function name_there(name)
    return (("." .. name):gsub("%.(%d+)%f[.\0]", function(n) return (".%d"):format(tonumber(n) - 1) end):sub(2))
  end
  for _, entry in ipairs(list) do
    entry.name = name_there(entry.name)
    for i, name in ipairs(entry.also) do
      entry.also[i] = name_there(name)
    end
  end
end

-- Names in the file and cells that belong together; the names of cells without a tensor. partial: nil where
-- it was not asked for, false where it cannot be.
local function match(path, list, names, aliases, partial)
  local there, used, from, cells, missing, unexpected = {}, {}, {}, {}, {}, {}
  for _, name in ipairs(names) do
    there[name] = true
  end
  for _, entry in ipairs(list) do
    local name = name_in(entry, there, aliases)
    if core.kind(entry.value) == "tensor" then
      core.fail("ARG", "load", ("'%s' is a tensor, which does not change"):format(entry.name),
        "dc.param and dc.state make cells; dc.load(path) gives tensors")
    elseif name then
      from[#from + 1], cells[#cells + 1], used[name] = name, entry.value, true
    else
      missing[#missing + 1] = entry.name
    end
  end
  for _, name in ipairs(names) do
    if not used[name] and not is_count_of_batches(name, used) then
      unexpected[#unexpected + 1] = name
    end
  end
  if not partial and #missing + #unexpected > 0 then
    refuse_names(path, missing, unexpected, partial)
  end
  return from, cells, missing
end

-- Without those of a dtype that is not read, which a line tells.
local function take_all(file, names, aliases, unread)
  local tensors = {}
  for _, name in ipairs(names) do
    if not unread[name] then
      tensors[name] = core.file_take(file, name)
    else
      core.note(("load: tensor '%s' is left out: dtype '%s' is not read"):format(name, unread[name]))
    end
  end
  for alias, name in pairs(aliases) do
    tensors[alias] = tensors[alias] or tensors[name]
  end
  return tensors
end

function files.load(path, into, options)
  core.refuse_tracing("dc.load")
  check_path("load", path)
  core.options("load", options, "partial", "linear", "first")
  local first = options and options.first
  local linear = check_linear(into, options and options.linear)
  local list = into ~= nil and collect("load", into)
  if first ~= nil and first ~= 0 and first ~= 1 then
    core.fail("ARG", "load", ("first is 0 or 1, not %s"):format(core.shown(first)),
      "first = 0 where the file counts the parts of lists from 0, as those of PyTorch do")
  elseif first == 0 and list then
    count_from_zero(list)
  end
  local file <close> = core.file_open(path)
  if not file then
    return {}, {}
  end
  local names, all, unread = core.file_list(file)
  local aliases, metadata, ours = read_metadata(all)
  if not list then
    return take_all(file, names, aliases, unread), metadata, next(unread) and unread or nil
  end
  local from, cells, missing = match(path, list, names, aliases, options and options.partial or nil)
  core.file_put(file, from, cells, find_turned(path, file, from, cells, ours, linear))
  return metadata, missing
end

-- ---- checkpoints ----

-- Numbers, booleans and texts as metadata, so that exactly the same come back.
local function encode(v)
  if math.type(v) == "integer" then
    return ("%d"):format(v)
  elseif type(v) == "number" then
    return core.number("%a", v)
  elseif type(v) == "boolean" then
    return tostring(v)
  elseif type(v) == "string" then
    return '"' .. v
  end
end

local special = { ["true"] = true, ["false"] = false, inf = math.huge, ["-inf"] = -math.huge }

-- ok, value
local function decode(text)
  if text:sub(1, 1) == '"' then
    return true, text:sub(2)
  elseif special[text] ~= nil then
    return true, special[text]
  elseif text == "nan" or text == "-nan" then
    return true, 0 / 0
  end
  local n = tonumber(text)
  return n ~= nil, n
end

local function is_data(v)
  local ok, method = pcall(function()
    return type(v) == "table" and getmetatable(v) ~= nil and v.position
  end)
  return ok and type(method) == "function"
end

---@class deepc.Checkpoint
local Checkpoint = {}
Checkpoint.__index = Checkpoint

-- What goes into tensors, and the data sets by name.
local function split(parts)
  local saved, sets = {}, {}
  for name, part in pairs(parts) do
    if type(name) ~= "string" or name:find(OURS) or name == "deepc" or name:find(":", 1, true) then
      core.fail("ARG", "checkpoint", ("'%s' is no name for a part"):format(tostring(name)),
        "{ model = net, optimizer = opt, data = train }")
    elseif is_data(part) then
      sets[name] = part
    else
      saved[name] = part
    end
  end
  saved["deepc.generator"] = dc.generator()
  return saved, sets
end

function files.checkpoint(path, parts)
  check_path("checkpoint", path)
  if not plain(parts) then
    core.fail("ARG", "checkpoint", ("a table of parts is needed, not %s"):format(describe(parts)),
      "{ model = net, optimizer = opt, data = train }")
  end
  local saved = split(parts)
  collect("checkpoint", saved)
  return setmetatable({ path = path, parts = parts }, Checkpoint)
end

local function check_self(op, self)
  if getmetatable(self) ~= Checkpoint then
    core.fail("ARG", op, "a checkpoint is needed, not " .. describe(self), ("with a colon: ckpt:%s(...)"):format(op))
  end
end

function Checkpoint:save(values)
  check_self("save", self)
  core.refuse_tracing("checkpoint:save")
  local saved, sets = split(self.parts)
  local metadata = { ["deepc.checkpoint"] = "1", ["deepc.version"] = dc._VERSION,
    ["deepc.schedules"] = dc.stats().schedules }
  if values ~= nil and not plain(values) then
    core.fail("ARG", "save", ("values are a table, not %s"):format(describe(values)))
  end
  for name, value in pairs(values or {}) do
    local text = encode(value)
    if type(name) ~= "string" or not text then
      core.fail("ARG", "save", ("value '%s' is %s; numbers, booleans and texts are kept"):format(
        tostring(name), describe(value)), core.kind(value) and "x:item() gives a number" or nil)
    end
    metadata["deepc.value:" .. name] = text
  end
  for name, set in pairs(sets) do
    for key, value in pairs(set:position()) do
      metadata[("deepc.data:%s:%s"):format(name, key)] = encode(value)
    end
  end
  write(self.path, collect("save", saved), metadata)
end

-- Values and positions in metadata of ours.
local function read_state(path, ours)
  local values, positions = {}, {}
  if ours["deepc.checkpoint"] ~= "1" then
    core.fail("FORMAT", "load", ("%s: is no checkpoint"):format(path), "dc.load(path) reads other files")
  end
  for key, text in pairs(ours) do
    local name = key:match "^deepc%.value:(.*)$"
    local part, field = key:match "^deepc%.data:([^:]*):(.*)$"
    local ok, value = decode(text)
    if (name or part) and not ok then
      core.fail("FORMAT", "load", ("%s: '%s' is '%s'"):format(path, key, text:sub(1, 40)))
    elseif name then
      values[name] = value
    elseif part then
      positions[part] = positions[part] or {}
      positions[part][field] = value
    end
  end
  return values, positions
end

-- Data sets of the file and of the script are the same, of as many rows.
local function check_sets(path, sets, positions)
  for name, set in pairs(sets) do
    local position = positions[name]
    if not position then
      core.fail("MISFIT", "load", ("%s: has no position of '%s'"):format(path, name))
    elseif math.type(position.epoch) ~= "integer" or math.type(position.batch) ~= "integer" then
      core.fail("FORMAT", "load", ("%s: the position of '%s' is damaged"):format(path, name))
    elseif position.rows and position.rows ~= #set then
      core.fail("MISFIT", "load", ("%s: '%s' had %s rows, not %d"):format(path, name,
        tostring(position.rows), #set))
    end
  end
  for name in pairs(positions) do
    if not sets[name] then
      core.fail("MISFIT", "load", ("%s: has the position of a data set '%s'"):format(path, name))
    end
  end
end

-- Training goes on with the same bits only by the same schedules.
local function compare_schedules(path, ours)
  local then_by, now_by = ours["deepc.schedules"], dc.stats().schedules
  if then_by and then_by ~= now_by then
    core.note(("load: %s was written with other schedules (%s) than those of now (%s): %s"):format(path, then_by,
      now_by, "results may differ in their last bits"))
  end
end

function Checkpoint:load()
  check_self("load", self)
  core.refuse_tracing("checkpoint:load")
  if not core.file_exists("load", self.path) then
    return nil
  end
  local saved, sets = split(self.parts)
  local list = collect("load", saved)
  local file <close> = core.file_open(self.path)
  local names, all = core.file_list(file)
  local aliases, _, ours = read_metadata(all)
  local values, positions = read_state(self.path, ours)
  check_sets(self.path, sets, positions)
  local from, cells = match(self.path, list, names, aliases, false)
  core.file_put(file, from, cells)
  for name, set in pairs(sets) do
    set:restore(positions[name])
  end
  compare_schedules(self.path, ours)
  return values
end

core.entries(Checkpoint)

return core.entries(files)
