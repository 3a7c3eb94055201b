-- dc.save, dc.load and dc.checkpoint where there are several ranks.
--
-- What ranks save is a set of safetensors files and an index, as large models have: for a path `run.safetensors` the
-- files run-00001-of-00004.safetensors and so on, and run.safetensors.index.json. Each rank writes a file. Of a value
-- that several ranks have one writes it, the one that has least to write. A cell in parts is in the files in parts:
--
--   NAME@0,128            a tensor: the part of NAME that begins at [0, 128]; all parts are equal in size
--   deepc.whole:NAME      metadata, of the index and of each file that has a part: "784,256", the sizes of the whole
--   deepc.ranks           metadata of the index: how many ranks have written the set
--
-- formats/shards.c makes one tensor of the parts, so whoever reads such a set knows nothing of them.
--
-- The index is the set: files get names that the set of before does not have, and when all are on the disk, rank 0
-- replaces the index. Until then the old set is what it was; afterwards its files are removed. A file of one process at
-- the same path is older than an index, or it would have removed it.

local _, core = ...

local sets = {}

local ENDING = "%.safetensors$"
local MOST_INDEX = 1 << 28 -- bytes; what is longer is none

-- ---- names ----

-- Where the index is, and what the names of the files begin with.
local function names_of(path)
  local base = path:match "^(.*)%.index%.json$" or path
  return base .. ".index.json", (base:gsub(ENDING, ""))
end

local function file_name(stem, generation, i, n)
  return ("%s%s-%05d-of-%05d.safetensors"):format(stem, generation > 0 and "." .. generation or "", i, n)
end

local function folder_of(path)
  return path:match "^(.*/)[^/]*$" or ""
end

-- The set that is there: its files by path; nil where there is none, or none that ranks have written, unless any does.
local function find(index, op, any)
  local ok, there = pcall(core.file_exists, op, index)
  if not ok or not there then
    return nil
  end
  local read, text = pcall(core.read_file, op, index, MOST_INDEX)
  if not read or not any and not text:find('"deepc.ranks"', 1, true) then
    return nil
  end
  local files, folder = {}, folder_of(index)
  for name in text:gmatch '"([^"/]*%.safetensors)"' do
    files[folder .. name] = true
  end
  return files
end

-- Files of a set that is none any more. What cannot be removed is in nobody's way.
local function remove(files, stem, kept)
  for path in pairs(files or {}) do
    local rest = path:sub(1, #stem) == stem and path:sub(#stem + 1)
    if rest and rest:match "^%.?%d*%-%d%d%d%d%d+%-of%-%d%d%d%d%d+%.safetensors$" and not kept[path] then
      pcall(core.file_remove, "save", path)
    end
  end
end

---The index of a set that ranks have written for this path; else the path.
function sets.find(path, op)
  local index = names_of(path)
  return index ~= path and find(index, op) and index or path
end

---One process has written a file: no set is older.
function sets.replace(path, write)
  local index, stem = names_of(path)
  local old = find(index, "save")
  write()
  if old then
    if index ~= path then
      core.file_remove("save", index)
    end
    remove(old, stem, index == path and find(index, "save", true) or {}) -- of several pieces
  end
end

-- ---- all ranks ----

local function first_line(err)
  local text = tostring(err):match "^[^\n]*"
  return (text:gsub("^%(?[%w/_.-]*%)?:%d+: ", ""))
end

---Are there several ranks, each of which does its part?
function sets.are_many()
  if core.plans() then
    return false
  end
  local _, size = core.world()
  return size > 1
end

---Calls f on every rank. What fails on one is an error on all, and what rank 0 gives, a text, is given to all. undo is
---called where all know that one has failed.
function sets.together(op, f, undo)
  local rank = core.world()
  local ok, result = pcall(f)
  local known, failed, why = pcall(core.outcome, op, not ok and first_line(result) or nil)
  if known and failed and undo then
    undo()
  end
  if not ok then
    error(result, 0)
  elseif not known then
    error(failed, 0)
  elseif failed then
    core.fail("WORLD", op, ("rank %d has failed: %s"):format(failed, why))
  end
  local _, said = core.outcome(op, rank == 0 and (result or "") or nil)
  return said
end

---What f(...) gives. Where there are several ranks, an error of one is an error on all.
function sets.all(op, f, ...)
  if not sets.are_many() then
    return f(...)
  end
  local arguments, results = table.pack(...), nil
  sets.together(op, function()
    results = table.pack(f(table.unpack(arguments, 1, arguments.n)))
  end)
  return table.unpack(results, 1, results.n)
end

-- ---- who writes what ----

local function bytes_of(dtype, dims)
  local n = math.max((tonumber(dtype:match "%d+$") or 8) // 8, 1)
  for _, size in ipairs(dims) do
    n = n * size
  end
  return n
end

-- Where each rank is in the mesh, by axis.
local function places(world)
  local names, sizes = core.mesh_axes()
  local list = {}
  for rank = 0, world - 1 do
    local place, rest = {}, rank
    for i = #(names or {}), 1, -1 do
      place[names[i]], rest = rest % sizes[i], rest // sizes[i]
    end
    list[rank] = place
  end
  local size_of = {}
  for i, name in ipairs(names or {}) do
    size_of[name] = sizes[i]
  end
  return list, size_of
end

-- Where the part of a rank begins: axes of the mesh that split an axis count in their order, the first one slowest.
local function start_of(place, size_of, axes, dims)
  local start = {}
  for k, names in ipairs(axes) do
    local number = 0
    for _, name in ipairs(names) do
      number = number * size_of[name] + place[name]
    end
    start[k] = number * dims[k]
  end
  return start
end

local function is_whole(whole, dims)
  for k, size in ipairs(whole) do
    if size ~= dims[k] then
      return false
    end
  end
  return true
end

-- The tensors that entries become: { name, entry, rank, bytes, whole }, the same list on all ranks; a line for each
-- entry.
local function plan(list, world)
  local place, size_of = places(world)
  local out, load, text = {}, {}, {}
  for rank = 0, world - 1 do
    load[rank] = 0
  end
  local function add(name, entry, bytes, ranks, whole)
    local best = ranks[1]
    for _, rank in ipairs(ranks) do
      best = load[rank] < load[best] and rank or best
    end
    load[best] = load[best] + bytes
    out[#out + 1] = { name = name, entry = entry, rank = best, bytes = bytes, whole = whole }
  end
  local everyone = {}
  for rank = 0, world - 1 do
    everyone[#everyone + 1] = rank
  end
  for _, entry in ipairs(list) do
    local dims, dtype = entry.value.shape, entry.value.dtype
    local bytes = bytes_of(dtype, dims)
    local whole, _, axes = core.cell_split(entry.value)
    local split = {}
    if not whole or is_whole(whole, dims) then
      add(entry.name, entry, bytes, everyone)
    else
      local order, at = {}, {}
      for rank = 0, world - 1 do
        local start = table.concat(start_of(place[rank], size_of, axes, dims), ",")
        if not at[start] then
          at[start], order[#order + 1] = {}, start
        end
        table.insert(at[start], rank)
      end
      for _, start in ipairs(order) do
        add(entry.name .. "@" .. start, entry, bytes, at[start], table.concat(whole, ","))
      end
      for k, names in ipairs(axes) do
        split[k] = table.concat(names, "+")
      end
    end
    text[#text + 1] = ("%s: %s[%s]%s"):format(entry.name, dtype, table.concat(whole or dims, ", "),
      #split > 0 and " split by [" .. table.concat(split, ", ") .. "]" or "")
  end
  return out, text
end

-- All ranks are about to save the same. A few lines at a time, since no more of them are told.
local function agree_on(path, lines)
  core.agree("what is saved", ("%s\n%d values"):format(path, #lines), 0)
  for i = 1, #lines, 8 do
    core.agree("what is saved", table.concat(lines, "\n", i, math.min(i + 7, #lines)), 0)
  end
end

-- ---- the index ----

local escapes = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }

local function quoted(text)
  if not utf8.len(text) then
    core.fail("ARG", "save", "a name or a text of metadata is not UTF-8")
  end
  return '"' .. text:gsub('[%c"\\]', function(c)
    return escapes[c] or ("\\u%04x"):format(c:byte())
  end) .. '"'
end

local function object(pairs_of)
  local lines = {}
  for i, pair in ipairs(pairs_of) do
    lines[i] = ("    %s: %s"):format(quoted(pair[1]), math.type(pair[2]) and ("%d"):format(pair[2]) or quoted(pair[2]))
  end
  return #lines > 0 and "{\n" .. table.concat(lines, ",\n") .. "\n  }" or "{}"
end

local function by_key(a, b)
  return a[1] < b[1]
end

local function index_text(tensors, file_of, metadata, world)
  local about, map, total = {}, {}, 0
  for _, t in ipairs(tensors) do
    total = total + t.bytes
    map[#map + 1] = { t.name, file_of[t.rank]:match "[^/]*$" }
  end
  for key, value in pairs(metadata) do
    about[#about + 1] = { key, value }
  end
  about[#about + 1] = { "deepc.ranks", ("%d"):format(world) }
  table.sort(about, by_key)
  table.sort(map, by_key)
  table.insert(about, 1, { "total_size", total })
  return ('{\n  "metadata": %s,\n  "weight_map": %s\n}\n'):format(object(about), object(map))
end

-- ---- saving ----

-- The files of the ranks that write any, by rank.
local function name_files(tensors, stem, generation)
  local ranks, has, file_of = {}, {}, {}
  for _, t in ipairs(tensors) do
    if not has[t.rank] then
      has[t.rank] = true
      ranks[#ranks + 1] = t.rank
    end
  end
  table.sort(ranks)
  for i, rank in ipairs(ranks) do
    file_of[rank] = file_name(stem, generation, i, #ranks)
  end
  return file_of
end

-- So that no file has the name of one of the old set.
local function free_generation(old, stem)
  local taken = {}
  for path in pairs(old or {}) do
    if path:sub(1, #stem) == stem then
      taken[tonumber(path:sub(#stem + 1):match "^%.(%d+)%-" or 0)] = true
    end
  end
  local generation = 0
  while taken[generation] do
    generation = generation + 1
  end
  return generation
end

local function write_own(path, tensors, rank, as)
  local names, values, keys, texts, seen = {}, {}, {}, {}, {}
  local forms = {}
  for _, t in ipairs(tensors) do
    if t.rank == rank then
      names[#names + 1], values[#values + 1] = t.name, t.entry.value
      forms[t.name] = as[t.entry.name]
      if t.whole and not seen[t.entry] then
        seen[t.entry] = true
        keys[#keys + 1], texts[#texts + 1] = "deepc.whole:" .. t.entry.name, t.whole
      end
    end
  end
  core.file_save(path, names, values, keys, texts, nil, forms)
end

-- Rank 0: all files are there, then the index is.
local function write_index(index, tensors, file_of, metadata, world)
  for rank, file in pairs(file_of) do
    if not core.file_exists("save", file) then
      core.fail("FILE", "save", ("%s, which rank %d has written, is not here"):format(file, rank),
        "ranks on several hosts need a folder that all of them share")
    end
  end
  core.write_file("save", index, index_text(tensors, file_of, metadata, world))
end

-- Where the index cannot be written, the files go, unless it has them all the same.
local function commit(path, index, tensors, file_of, metadata, world)
  local ok, err = pcall(write_index, index, tensors, file_of, metadata, world)
  if not ok then
    local used = find(index, "save", true) or {}
    for _, file in pairs(file_of) do
      if not used[file] then
        pcall(core.file_remove, "save", file)
      end
    end
    error(err, 0)
  end
  if path ~= index then
    pcall(core.file_remove, "save", path) -- what one process has written is older
  end
end

---What all ranks save: entries as cells.collect gives them, metadata, what u8 of a name is called.
function sets.write(path, list, metadata, as)
  local rank, world = core.world()
  local index, stem = names_of(path)
  local tensors, lines = plan(list, world)
  agree_on(path, lines)
  local old
  local generation = math.tointeger(sets.together("save", function()
    old = rank == 0 and find(index, "save")
    return ("%d"):format(free_generation(old, stem))
  end))
  local file_of = name_files(tensors, stem, generation)
  for _, t in ipairs(tensors) do
    metadata["deepc.whole:" .. t.entry.name] = t.whole
  end
  sets.together("save", function()
    if file_of[rank] then
      write_own(file_of[rank], tensors, rank, as)
    end
  end, function()
    if file_of[rank] then
      pcall(core.file_remove, "save", file_of[rank])
    end
  end)
  sets.together("save", function()
    if rank == 0 then
      commit(path, index, tensors, file_of, metadata, world)
      local kept = {}
      for _, file in pairs(file_of) do
        kept[file] = true
      end
      remove(old, stem, kept)
    end
  end)
end

---What has to be whole, since one rank writes it.
function sets.check_whole(list, hint)
  for _, entry in ipairs(list) do
    local whole = core.cell_split(entry.value)
    if whole and not is_whole(whole, entry.value.shape) then
      core.fail("ARG", "save", ("'%s' is a part of [%s]"):format(entry.name, table.concat(whole, ", ")), hint)
    end
  end
end

core.rank_files = sets

return {}
