-- dc.save, dc.checkpoint: what a model is made of, by name, to a file; dc.load is in load.lua.
-- Their annotations are in api/scripts.lua.
--
-- A cell that stands in several places has one tensor in the file, under its first name; the others are metadata. Keys
-- of metadata that begin with "deepc." are ours:
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
require "deepc.cells"
require "deepc.load"
require "deepc.gguf"
require "deepc.rank_files"

local cells, loading, float8, ranks = core.cells, core.loading, core.float8, core.rank_files
local collect, check_path, is_linear, plain = cells.collect, cells.check_path, cells.is_linear, cells.plain
local describe = core.describe

local files = {}

local OURS = "^deepc%."

-- ---- saving ----

local function check_metadata(metadata, typed)
  if metadata ~= nil and not plain(metadata) then
    core.fail("ARG", "save", ("metadata is a table of texts, not %s"):format(describe(metadata)))
  end
  for key, text in pairs(metadata or {}) do
    if type(key) ~= "string" or type(text) ~= "string" and not typed then
      core.fail("ARG", "save", ("metadata '%s' is %s; keys and values are texts"):format(
        tostring(key), describe(text)), "tostring(x) makes one; dc.checkpoint keeps numbers")
    elseif key:find(OURS) then
      core.fail("ARG", "save", ("metadata '%s': names that begin with 'deepc.' are kept"):format(key))
    end
  end
end

-- Names, values and metadata, the names of shared cells among them; what codes of floats of 8 bits are called.
local function items(list, metadata)
  local names, values, all, as = {}, {}, {}, {}
  for i, entry in ipairs(list) do
    names[i], values[i] = entry.name, entry.value
    local float = float8.of[entry.value]
    if is_linear(entry.value) or float then
      all["deepc.linear:" .. entry.name] = float and "out, in" or "in, out"
    end
    as[entry.name] = float8.names[float]
    for _, name in ipairs(entry.also) do
      all["deepc.alias:" .. name] = entry.name
    end
  end
  for key, value in pairs(metadata) do
    all[key] = value
  end
  return names, values, all, as
end

-- By this rank alone, or by all of them.
local function write_tensors(path, list, metadata, piece, alone)
  local names, values, all, as = items(list, metadata)
  if not alone and ranks.are_many() then
    ranks.write(path, list, all, as)
    return
  end
  local keys, texts = {}, {}
  for key, text in pairs(all) do
    keys[#keys + 1], texts[#keys + 1] = key, text
  end
  ranks.replace(path, function()
    core.file_save(path, names, values, keys, texts, piece, as)
  end)
end

local function write(path, ...)
  local moment = core.span_begin()
  write_tensors(path, ...)
  if moment then
    core.span_end(moment, "save " .. path, true)
  end
end

-- The first rank writes what all have.
local function write_gguf(path, list, metadata, type, alone)
  local names, values, all = items(list, metadata)
  local function write_it()
    local types = core.gguf.types(names, values, type)
    local count, entries = core.gguf.entries(all)
    core.gguf_save(path, names, values, types, count, entries)
  end
  if alone or not ranks.are_many() then
    write_it()
    return
  end
  ranks.together("save", function()
    ranks.check_whole(list, "GGUF files hold whole values: dc.whole(cell), or a set of safetensors files")
    if core.world() == 0 then
      write_it()
    end
  end)
end

core.saving = { write = write, write_gguf = write_gguf }

local INDEX = "%.safetensors%.index%.json$"

-- Whose names they are that end so. A checkpoint is read by dc.checkpoint alone, and may have any name.
local OTHERS = {
  npz = "NumPy", npy = "NumPy", pt = "PyTorch", pth = "PyTorch", ckpt = "PyTorch Lightning", h5 = "HDF5", hdf5 = "HDF5",
  keras = "Keras", onnx = "ONNX", tflite = "TensorFlow Lite", pb = "TensorFlow", msgpack = "Flax", mlmodel = "Core ML",
  pkl = "Python", pickle = "Python", csv = "text", json = "text",
}
local WRITERS = {
  npz = "data.write_npz writes these", npy = "data.write_npy writes these", csv = "data.write_csv writes these",
}

function core.saving.check_name(op, path)
  local ending = path:lower():match "%.(%w+)$"
  local whose = OTHERS[ending]
  if whose and not path:find(INDEX) then
    core.fail("ARG", op, ("'%s' is the name of a file of %s; what is written is safetensors, or GGUF for a name that"
      .. " ends with .gguf"):format(path, whose), WRITERS[ending])
  end
end

-- The bytes of a file of several; nil: there is one.
local function check_pieces(path, metadata, pieces)
  if pieces == nil then
    return nil
  elseif math.type(pieces) ~= "integer" or pieces < 1 then
    core.fail("ARG", "save", ("pieces is %s; a number of bytes is needed"):format(describe(pieces)), "pieces = 2 << 30")
  elseif not path:find(INDEX) then
    core.fail("ARG", "save", ("'%s' is no name of an index"):format(path),
      '"model.safetensors.index.json" is one, whose pieces are model-00001-of-00003.safetensors and so on')
  elseif metadata and metadata.total_size ~= nil then
    core.fail("ARG", "save", "metadata 'total_size': an index has its own")
  end
  return pieces
end

function files.save(path, what, metadata, options)
  core.refuse_tracing("dc.save")
  check_path("save", path)
  core.saving.check_name("save", path)
  core.options("save", options, "pieces", "type", "alone")
  local o, is_gguf = options or {}, path:find "%.gguf$" ~= nil
  check_metadata(metadata, is_gguf)
  if o.type ~= nil and not is_gguf then
    core.fail("ARG", "save", "type is for GGUF files, whose names end with .gguf", "x:cast \"f16\" before dc.save")
  end
  local pieces, alone = check_pieces(path, metadata, o.pieces), cells.check_alone("save", o)
  local list = collect("save", what)
  for _, entry in ipairs(is_gguf and {} or list) do
    if entry.value.dtype == "c128" then
      core.note(("save: '%s' is c128, for which safetensors has no name: other programs do not read the file")
        :format(entry.name))
      break
    end
  end
  if alone then
    ranks.check_whole(list, "without alone = true all ranks write their parts")
  elseif pieces and ranks.are_many() then
    core.fail("ARG", "save", "pieces is for one process: of several ranks each writes a file",
      "alone = true, where one rank has all")
  end
  if is_gguf then
    write_gguf(path, list, metadata or {}, o.type, alone)
  else
    write(path, list, metadata or {}, pieces, alone)
  end
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
  core.steady() -- what is computed behind it does not depend on what the process has computed before
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

local function load(self, path)
  local saved, sets = split(self.parts)
  local list = collect("load", saved)
  local file <close> = core.file_open(path)
  local choice, _, ours = loading.read(path, file, {})
  local values, positions = read_state(path, ours)
  check_sets(path, sets, positions)
  local from, into = loading.match(path, list, choice, false, {})
  core.file_put(file, from, into, loading.forms(into))
  return values, sets, positions, ours
end

function Checkpoint:load()
  check_self("load", self)
  core.refuse_tracing("checkpoint:load")
  local path = ranks.find(self.path, "load")
  local there = core.file_exists("load", path)
  core.agree("a checkpoint", ("%s %s"):format(path, there and "is there" or "is not there"), 0)
  if not there then
    return nil
  end
  local values, sets, positions, ours = ranks.all("load", load, self, path)
  for name, set in pairs(sets) do
    set:restore(positions[name])
  end
  compare_schedules(path, ours)
  return values
end

core.entries(Checkpoint)

return core.entries(files)
