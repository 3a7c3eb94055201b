-- dc.load: tensors of a file by name, or into cells. Its annotation is in api/scripts.lua.
--
-- What is wanted of a file is a choice { names, from }: our names in order, and for each of them, and for the names
-- that share its tensor, the file's name. The table of internals gets what checkpoints need as `loading`.

local _, core = ...
require "deepc.cells"
require "deepc.float8"
require "deepc.operands"
require "deepc.origins"
require "deepc.rank_files"

local cells_of, files, loading, float8, ranks = core.cells, {}, {}, core.float8, core.rank_files
local describe = core.describe

-- ---- what is in a file ----

-- What the file says besides tensors: names to the names they share, the script's own metadata, and ours.
local function read_metadata(all)
  local aliases, metadata, ours = {}, {}, {}
  for key, value in pairs(all) do
    local alias = type(value) == "string" and key:match "^deepc%.alias:(.*)$"
    if alias then
      aliases[alias] = value
    elseif type(value) == "string" and key:find "^deepc%." then
      ours[key] = value
    else
      metadata[key] = value
    end
  end
  return aliases, metadata, ours
end

-- Our name of a tensor; nil where it is left out.
local function our_name(name, options)
  local only, rename = options.only, options.rename
  if type(only) == "function" and not only(name) or type(only) == "table" and not only[name] then
    return nil
  elseif not rename then
    return name
  end
  local ours = rename(name)
  if ours ~= nil and type(ours) ~= "string" then
    core.fail("ARG", "load", ("rename gives %s for '%s'; a name or nil is needed"):format(describe(ours), name))
  end
  return ours
end

local function choose(path, names, aliases, options)
  local choice = { names = {}, from = {} }
  for _, name in ipairs(names) do
    local ours = our_name(name, options)
    if ours and choice.from[ours] then
      core.fail("ARG", "load", ("%s: rename gives '%s' to both '%s' and '%s'"):format(path, ours, choice.from[ours],
        name))
    elseif ours then
      choice.names[#choice.names + 1], choice.from[ours] = ours, name
    end
  end
  local taken = {}
  for _, name in pairs(choice.from) do
    taken[name] = true
  end
  for alias, name in pairs(aliases) do
    local ours = taken[name] and our_name(alias, options)
    if ours and not choice.from[ours] then
      choice.from[ours] = name
    end
  end
  return choice
end

local NOTES = 3 -- of what is left out

-- Values of the file that have no meaning here.
local function tell_notes(file)
  local notes = core.file_notes(file)
  for i = 1, math.min(NOTES, #notes) do
    core.note("load: " .. notes[i])
  end
  if #notes > NOTES then
    core.note(("load: %d more values are left out or changed; deepc inspect lists them"):format(#notes - NOTES))
  end
end

-- Names, metadata of the script's, and metadata of ours.
function loading.read(path, file, options)
  tell_notes(file)
  local names, all = core.file_list(file)
  local aliases, metadata, ours = read_metadata(all)
  local there = {}
  for _, name in ipairs(names) do
    there[name] = true
  end
  for alias, name in pairs(aliases) do
    aliases[alias] = there[name] and name or nil
    there[alias] = true
  end
  for _, name in ipairs(options.wanted or {}) do
    if not there[name] then
      core.fail("MISFIT", "load", ("%s: has no tensor '%s', which `only` asks for"):format(path, name),
        core.near(there, name))
    end
  end
  return choose(path, names, aliases, options), metadata, ours
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
    texts[1] = "has no tensor " .. core.quoted_names(missing)
  end
  if #unexpected > 0 then
    texts[#texts + 1] = ("%s %s no place in what is loaded into"):format(core.quoted_names(unexpected),
      #unexpected == 1 and "has" or "have")
  end
  local hint = hint_for(missing, unexpected)
  if #missing == 0 and partial == nil then
    hint = "{ partial = true } leaves out what has no place"
  end
  core.fail("MISFIT", "load", ("%s: %s"):format(path, table.concat(texts, "; ")), hint)
end

-- ---- layouts of linear layers ----
--
-- PyTorch keeps their weights as [outputs, inputs]. What is not square shows which it is, the rest follows; where
-- nothing shows it, the caller has to say.

local LAYOUTS = { ["in, out"] = true, ["out, in"] = true }

local function check_linear(into, linear)
  if linear == nil then
    return
  elseif not LAYOUTS[linear] then
    core.fail("ARG", "load", ("linear is %s"):format(describe(linear)),
      'linear = "out, in" in files of PyTorch, or "in, out"')
  elseif into == nil then
    core.fail("ARG", "load", "linear is for loading into layers; dc.load(path) gives tensors as the file has them")
  end
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

-- Of a cell in parts the sizes of all of them.
local function whole_shape(cell)
  return (core.cell_split(cell)) or cell.shape
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
      and layout_of(core.file_shape(file, name), whole_shape(cells[i])) == "square" then
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
    if cells_of.is_linear(cells[i]) and said then
      turned[i] = said == "out, in"
    elseif cells_of.is_linear(cells[i]) then
      local shape = core.file_shape(file, name)
      local layout = layout_of(shape, whole_shape(cells[i]))
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
      turned[i] = linear == "out, in" and layout_of(shapes[i], whole_shape(cells[i])) == "square"
    end
  end
  return turned
end

-- PyTorch's norms count batches, which ours do only where that is the weight of a batch.
local function is_count_of_batches(name, choice, used)
  local path = name:match "^(.*)num_batches_tracked$"
  local mean = path and choice.from[path .. "running_mean"]
  return mean ~= nil and used[mean] == true
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
-- it was not asked for, false where it cannot be. beside: whose scales names of the file are, that need no place.
function loading.match(path, list, choice, partial, beside)
  local used, from, cells, missing, unexpected = {}, {}, {}, {}, {}
  for _, entry in ipairs(list) do
    local name = choice.from[entry.name]
    for i = 1, name and 0 or #entry.also do
      name = name or choice.from[entry.also[i]]
    end
    if core.kind(entry.value) == "tensor" then
      core.fail("ARG", "load", ("'%s' is a tensor, which does not change"):format(entry.name),
        "dc.param and dc.state make cells; dc.load(path) gives tensors")
    elseif name then
      from[#from + 1], cells[#cells + 1], used[name] = name, entry.value, true
    else
      missing[#missing + 1] = entry.name
    end
  end
  for _, ours in ipairs(choice.names) do
    local name = choice.from[ours]
    if not used[name] and not is_count_of_batches(ours, choice, used) and not used[beside[name]] then
      unexpected[#unexpected + 1] = ours
    end
  end
  if not partial and #missing + #unexpected > 0 then
    refuse_names(path, missing, unexpected, partial)
  end
  return from, cells, missing
end

-- ---- floats of 8 bits ----

-- How cells are read: which are turned, and codes of floats of 8 bits as they are.
function loading.forms(cells, turned)
  local forms = {}
  for i, cell in ipairs(cells) do
    forms[i] = float8.of[cell] or turned and turned[i] or false
  end
  return forms
end

-- Of the cells, by number, which become floats: the name of their scale. Codes need theirs as a cell.
local function find_scales(path, file, from, cells, scales)
  local read, of = {}, {}
  for _, name in ipairs(from) do
    read[name] = true
  end
  for i, name in ipairs(from) do
    local scale = scales[name]
    if scale and not float8.of[cells[i]] and core.cell_split(cells[i]) then
      core.fail("MISFIT", "load", ("%s: '%s' has a scale, and goes into a part of a cell"):format(path, name),
        "load into the whole cell first, then dc.shard")
    elseif scale and not float8.of[cells[i]] then
      float8.check_scale("load", path, file, name, scale)
      of[i] = scale
    elseif scale and not read[scale] then
      core.fail("MISFIT", "load", ("%s: '%s' has the scale '%s', which is read nowhere"):format(path, name, scale))
    end
  end
  return of
end

local function apply_scales(file, cells, turned, scales)
  for i, cell in ipairs(cells) do
    if scales[i] then
      float8.scale_cell(cell, turned[i], core.file_take(file, { scales[i] }, { false })[1])
    end
  end
end

-- The file's names of what is read, each true.
local function names_of(choice)
  local has = {}
  for _, name in pairs(choice.from) do
    has[name] = true
  end
  return has
end

-- Tensors are read as they stand in the file, without their scales, which are others.
local function tell_scales(file, choice, o, hows, names)
  local told, scales = 0, (o.packed or o.scaled) and {} or float8.scales(file, names_of(choice))
  for i, name in ipairs(names) do
    if hows[i] ~= "packed" and scales[name] then
      told = told + 1
      if told == 1 then
        core.note(("load: tensor '%s' has the scale '%s', which it is not multiplied by; it is where cells are loaded")
          :format(name, scales[name]))
      end
    end
  end
  if told > 1 then
    core.note(("load: so have %d more"):format(told - 1))
  end
end

-- Floats of 8 bits among tensors times their scales, which are taken out.
local function scale_tensors(path, file, choice, tensors)
  local has = names_of(choice)
  local scales = float8.scales(file, has)
  local beside = float8.beside(file, has, scales)
  for ours, name in pairs(choice.from) do
    local x, scale = tensors[ours], scales[name]
    if x and scale then
      float8.check_scale("load", path, file, name, scale)
      local y = float8.scaled(x, core.file_take(file, { scale }, { false })[1])
      tensors[ours] = x.dtype:find "^f8" and y or y:cast(x.dtype)
    elseif beside[name] then
      tensors[ours] = nil
    end
  end
end

-- ---- options ----

local function check_function(options, name, allowed)
  local v = options[name]
  if v ~= nil and type(v) ~= "function" and not (allowed and cells_of.plain(v)) then
    core.fail("ARG", "load", ("%s is %s%s, not %s"):format(name, allowed and "a list of names or " or "",
      "a function", describe(v)))
  end
end

-- A list of names as a set; the list stays in `wanted`.
local function read_only(o)
  local set = {}
  for i, name in ipairs(o.only) do
    if type(name) ~= "string" then
      core.fail("ARG", "load", ("only[%d] is %s; names of tensors are needed"):format(i, describe(name)))
    end
    set[name] = true
  end
  if next(o.only) ~= nil and #o.only == 0 then
    core.fail("ARG", "load", "only is a table without a list of names", 'only = { "w", "b" }')
  end
  o.only, o.wanted = set, o.only
end

local function read_options(into, options)
  core.options("load", options, "partial", "linear", "first", "only", "rename", "cast", "packed", "progress",
    "alone")
  local o = {}
  for name, value in pairs(options or {}) do
    o[name] = value
  end
  check_linear(into, o.linear)
  cells_of.check_alone("load", o)
  if o.first ~= nil and o.first ~= 0 and o.first ~= 1 then
    core.fail("ARG", "load", ("first is 0 or 1, not %s"):format(core.shown(o.first)),
      "first = 0 where the file counts the parts of lists from 0, as those of PyTorch do")
  elseif o.packed and into ~= nil then
    core.fail("ARG", "load", "packed is for dc.load(path) without cells, which have no packed elements")
  elseif type(o.cast) == "string" and (into ~= nil or not core.is_float(o.cast)) or
    o.cast ~= nil and type(o.cast) ~= "string" and type(o.cast) ~= "boolean" then
    core.fail("ARG", "load", ("cast is %s"):format(describe(o.cast)), into ~= nil
      and "cast = true rounds to the dtypes of the cells" or 'cast = true, or a float dtype, cast = "f32"')
  end
  check_function(o, "only", true)
  check_function(o, "rename")
  check_function(o, "progress")
  if type(o.only) == "table" then
    read_only(o)
  end
  return o
end

-- ---- tensors ----

-- How a tensor is to be read - nil: not at all; false: as it is - what is told of it, or nil, and a note.
local function how_to_take(file, name, o)
  local format, shape, _, dtype, packing, asks, _, why = core.file_about(file, name)
  local is_float8 = dtype and dtype:find "^f8" ~= nil
  if packing and o.packed and not is_float8 then
    return "packed", { type = packing, shape = shape }
  elseif not dtype or asks and not o.cast then
    return nil, format, ("load: tensor '%s' is left out: %s"):format(name, why or ("dtype '%s' is not read%s"):format(
      format, asks and "; { cast = true } makes f32 of it" or ""))
  end
  if is_float8 and o.cast == true then
    return "f32"
  end
  return core.is_float(dtype) and type(o.cast) == "string" and o.cast or false
end

local function bytes_of(file, names)
  local total = 0
  for _, name in ipairs(names) do
    local _, _, bytes = core.file_about(file, name)
    total = total + (bytes or 0)
  end
  return total
end

-- The file's names that are read, how, and what is told by our names.
local function choose_ways(file, choice, o)
  local names, hows, told, left_out = {}, {}, {}, 0
  for _, ours in ipairs(choice.names) do
    local name = choice.from[ours]
    local how, about, note = how_to_take(file, name, o)
    told[ours] = about
    left_out = left_out + (note and 1 or 0)
    if note and left_out <= NOTES then
      core.note(note)
    end
    if how ~= nil then
      names[#names + 1], hows[#hows + 1] = name, how
    end
  end
  if left_out > NOTES then
    core.note(("load: %d more tensors are left out; the third result has their names and types"):format(
      left_out - NOTES))
  end
  return names, hows, told
end

local PART = 16 << 20 -- bytes between two calls of a script's function

-- Calls f with the first and the last of parts of a list, and the script's function with the bytes that are done.
local function in_parts(file, names, progress, f)
  local total, done, first, part = progress and bytes_of(file, names) or 0, 0, 1, 0
  for i = 1, progress and #names or 0 do
    part = part + bytes_of(file, { names[i] })
    if part >= PART or i == #names then
      f(first, i)
      done, first, part = done + part, i + 1, 0
      progress(done, total)
    end
  end
  if not progress or #names == 0 then
    f(1, #names)
  end
end

-- scaled: a path; floats of 8 bits are multiplied by their scales.
function loading.take_all(file, choice, o)
  local tensors, by_name, names, hows, told = {}, {}, choose_ways(file, choice, o)
  tell_scales(file, choice, o, hows, names)
  in_parts(file, names, o.progress, function(first, last)
    local some = core.file_take(file, table.move(names, first, last, 1, {}), table.move(hows, first, last, 1, {}))
    for i, t in ipairs(some) do
      by_name[names[first + i - 1]] = t
    end
  end)
  for ours, name in pairs(choice.from) do
    tensors[ours] = by_name[name]
  end
  if o.scaled then
    scale_tensors(o.scaled, file, choice, tensors)
  end
  return tensors, next(told) and told or nil
end

-- ---- cells ----

local function load(path, list, o)
  local file <close> = core.file_open(path)
  if not file then
    return {}, {}
  end
  local choice, metadata, ours = loading.read(path, file, o)
  if math.type(metadata["split.count"]) == "integer" and metadata["split.count"] > 1 then
    core.note(("load: %s is one of %d files, and has the tensors of this one alone"):format(path,
      metadata["split.count"]))
  end
  if not list then
    local tensors, told = loading.take_all(file, choice, o)
    return not o.rename and core.file_tree(file, tensors) or tensors, metadata, told
  end
  local has = {}
  for _, name in ipairs((core.file_list(file, 0))) do
    has[name] = true
  end
  local scales = float8.scales(file, has)
  local from, cells, missing = loading.match(path, list, choice, o.partial or nil, float8.beside(file, has, scales))
  local turned = find_turned(path, file, from, cells, ours, o.linear)
  local forms = loading.forms(cells, turned)
  scales = find_scales(path, file, from, cells, scales)
  in_parts(file, from, o.progress, function(first, last) -- cells are torn until all are read, or where progress fails
    core.file_put(file, from, cells, forms, o.cast, first, last)
  end)
  apply_scales(file, cells, turned, scales)
  return metadata, missing
end

local function end_span(moment, name)
  if moment then
    core.span_end(moment, name, true)
  end
end

function files.load(path, into, options)
  core.refuse_tracing("dc.load")
  local moment, name = core.span_begin(), "load " .. tostring(path)
  cells_of.check_path("load", path)
  path = core.path_to_load("load", path)
  local o = read_options(into, options)
  local list = into ~= nil and cells_of.collect("load", into)
  if o.first == 0 and list then
    count_from_zero(list)
  end
  path = ranks.find(path, "load")
  if list and not o.alone then
    local metadata, missing = ranks.all("load", load, path, list, o)
    end_span(moment, name)
    return metadata, missing
  end
  local tensors, metadata, told = load(path, list, o)
  end_span(moment, name)
  return tensors, metadata, told
end

core.loading = loading

return core.entries(files)
