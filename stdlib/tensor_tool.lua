-- deepc inspect FILE, deepc convert A B: what the program does with files of tensors (vm/program/main.c).

local dc = require "deepc"
local _, core = ...
require "deepc.files" -- core.loading, core.saving, core.cells

local tool = {}

-- ---- texts ----

local function human(bytes)
  local units, i = { "bytes", "KiB", "MiB", "GiB", "TiB" }, 1
  while bytes >= 1024 and i < #units do
    bytes, i = bytes / 1024, i + 1
  end
  return (i == 1 and "%d %s" or "%.1f %s"):format(bytes, units[i])
end

local function count(n, word)
  return ("%d %s%s"):format(n, word, n == 1 and "" or "s")
end

local MOST = 60 -- bytes of a text

-- In quotes, on one line, of bounded length.
local function shown(s)
  local cut = #s > MOST and utf8.offset(s:sub(1, MOST), -1) or #s + 1
  local text = core.foreign((s:sub(1, cut - 1):gsub('["\\]', "\\%0")))
  return '"' .. text .. (cut <= #s and '..." (' .. count(#s, "byte") .. ")" or '"')
end

local show_value

local function show_list(list, kind)
  local parts, n = {}, #list
  for i = 1, math.min(n, n > 8 and 3 or 8) do
    parts[i] = show_value(list[i])
  end
  local text = "{" .. table.concat(parts, ", ") .. (n > #parts and ", ...}" or "}")
  return n > #parts and ("%d of %s: %s"):format(n, kind, text) or text
end

function show_value(v, kind)
  if type(v) == "string" then
    return shown(v)
  elseif type(v) == "table" then
    return show_list(v, kind and kind:match "^list of (.*)" or "list")
  elseif math.type(v) == "float" then
    return ("%.7g"):format(v)
  end
  return tostring(v)
end

-- Numbers in names count as numbers: "2.weight" comes before "10.weight".
local function natural(name)
  return (name:gsub("%d+", function(digits) return #digits < 12 and ("%012d"):format(digits) or digits end))
end

local function sorted(names)
  local keys = {}
  for _, name in ipairs(names) do
    keys[name] = natural(name)
  end
  table.sort(names, function(a, b)
    if keys[a] == keys[b] then
      return a < b
    end
    return keys[a] < keys[b]
  end)
  return names
end

-- Rows in columns; the last one is not padded.
local function print_table(rows)
  local width = {}
  for _, row in ipairs(rows) do
    for i, text in ipairs(row) do
      width[i] = math.max(width[i] or 0, utf8.len(text) or #text)
    end
  end
  for _, row in ipairs(rows) do
    local line = {}
    for i, text in ipairs(row) do
      line[i] = i == #row and text or text .. (" "):rep(width[i] - (utf8.len(text) or #text))
    end
    print("  " .. table.concat(line, "  "))
  end
end

-- ---- failures ----

-- Runs f; a failure ends the program with its sentence.
local function try(f, ...)
  local results = table.pack(pcall(f, ...))
  if not results[1] then
    local err = results[2]
    local text = tostring(err):gsub("\n  %[DC.*", "")
    dc.fail((text:gsub("^%(?[%w/ ]*%.?l?u?a?%)?:%d+: ", "")))
  end
  return table.unpack(results, 2, results.n)
end

-- ---- deepc inspect ----

local function elements(shape)
  local n = 1
  for _, size in ipairs(shape) do
    n = n * size
  end
  return n
end

local function inspect(path)
  path = try(core.rank_files.find, path, "load")
  local file <close> = try(core.file_open, path)
  local names, metadata = core.file_list(file)
  local kinds = core.file_kinds(file)
  local rows, totals, order, bytes_all, elements_all = { { "name", "type", "sizes", "bytes" } }, {}, {}, 0, 0
  for _, name in ipairs(sorted(names)) do
    local format, shape, bytes, dtype, _, asks, parts = core.file_about(file, name)
    local n, total = elements(shape), totals[format] or { 0, 0, 0 }
    local left_out = not dtype and " (not read)" or asks and " (read with cast = true)" or ""
    rows[#rows + 1] = { core.foreign(name), format, "[" .. table.concat(shape, ", ") .. "]",
      (bytes and ("%d"):format(bytes) or "?") .. (parts > 0 and (", in %d parts"):format(parts) or "") .. left_out }
    if not totals[format] then
      totals[format], order[#order + 1] = total, format
    end
    total[1], total[2], total[3] = total[1] + 1, total[2] + n, total[3] + (bytes or 0)
    bytes_all, elements_all = bytes_all + (bytes or 0), elements_all + n
  end
  print(("%s: %s, %s, %s, %s"):format(core.foreign(path), core.file_format(file), count(#names, "tensor"),
    count(elements_all, "element"), human(bytes_all)))
  if #names > 0 then
    print()
    print_table(rows)
  end
  local keys = {}
  for key in pairs(metadata) do
    keys[#keys + 1] = key
  end
  if #keys > 0 then
    print("\nmetadata")
    local list = {}
    for i, key in ipairs(sorted(keys)) do
      list[i] = { core.foreign(key), kinds[key], show_value(metadata[key], kinds[key]) }
    end
    print_table(list)
  end
  local notes = core.file_notes(file)
  if #notes > 0 then
    print "\nnot read as they are"
    for _, note in ipairs(notes) do
      print("  " .. core.foreign(note))
    end
  end
  if #order > 0 then
    print("\nby type")
    local list = {}
    table.sort(order)
    for i, format in ipairs(order) do
      local t = totals[format]
      list[i] = { format, count(t[1], "tensor"), count(t[2], "element"), human(t[3]) }
    end
    print_table(list)
  end
end

-- Files that hold no tensors alone, and the modules that know them.
local programs = { mlir = "deepc.stablehlo.command", mlirbc = "deepc.stablehlo.command" }

function tool.inspect(args)
  local _, paths = dc.options({ about = "What is in files of tensors: names, types, sizes, metadata.",
    rest = "FILE..." }, args)
  if #paths == 0 then
    dc.fail "inspect: a file is needed: deepc inspect model.safetensors"
  end
  for i, path in ipairs(paths) do
    if i > 1 then
      print()
    end
    local module = programs[path:match "%.(%w+)$"]
    if module then
      local found, command = pcall(require, module)
      if not found then
        dc.fail(("inspect: %s is read by %s, which this build has not"):format(path, module))
      end
      try(command.inspect_file, path)
    else
      inspect(path)
    end
  end
end

-- ---- deepc convert ----

local TYPES = { "f32", "f16", "bf16", "q8_0", "q4_0" }

local function renamed(pattern)
  if not pattern then
    return nil
  end
  local from, to = pattern:match "^(.-)=(.*)$"
  if not from or from == "" then
    dc.fail(("convert: --rename '%s' has no PATTERN=TEXT"):format(pattern))
  end
  return function(name)
    return (try(string.gsub, name, from, to))
  end
end

-- As a file keeps them: safetensors texts alone, GGUF with the types they had.
local function kept_metadata(metadata, kinds, is_gguf)
  local kept, keys = {}, {}
  for key in pairs(metadata) do
    keys[#keys + 1] = key
  end
  for _, key in ipairs(sorted(keys)) do
    local kind, value = kinds[key], metadata[key]
    if is_gguf then
      local plain = kind and kind:match "^list of (.*)" or kind
      kept[key] = plain ~= "list" and { type = plain, value = value } or value
    elseif type(value) ~= "table" then
      kept[key] = math.type(value) == "float" and ("%.17g"):format(value) or tostring(value)
    else
      core.note(("convert: metadata '%s' is left out: safetensors has texts alone"):format(key))
    end
  end
  kept["general.alignment"] = nil
  return kept
end

-- What files say of names, under their new ones.
local function keep_ours(kept, ours, rename)
  for key, value in pairs(ours) do
    local name = key:match "^deepc%.linear:(.*)$"
    if key ~= "deepc.ranks" then
      kept[name and rename and "deepc.linear:" .. rename(name) or key] = value
    end
  end
end

local function convert(from, to, options)
  from = try(core.rank_files.find, from, "load")
  local is_gguf, is_npz, rename = to:find "%.gguf$" ~= nil, to:find "%.npz$" ~= nil, renamed(options.rename)
  if not is_npz then
    try(core.saving.check_name, "convert", to)
  end
  if options.type and not is_gguf and options.type:find "^q" then
    dc.fail(("convert: %s is for GGUF files, whose names end with .gguf"):format(options.type))
  end
  local file <close> = try(core.file_open, from)
  local cast = not is_gguf and options.type or true
  local choice, metadata, ours = try(core.loading.read, from, file, { rename = rename })
  local tensors = try(core.loading.take_all, file, choice, { cast = cast, scaled = from })
  if is_npz then
    if next(metadata) ~= nil then
      core.note "convert: metadata are left out: npz has arrays alone"
    end
    try(require "deepc.data".write_npz, to, tensors)
    return
  end
  local kept = kept_metadata(metadata, core.file_kinds(file), is_gguf)
  keep_ours(kept, ours, rename)
  local list = try(core.cells.collect, "convert", tensors)
  if is_gguf then
    try(core.saving.write_gguf, to, list, kept, options.type)
  else
    try(core.saving.write, to, list, kept)
  end
end

function tool.convert(args)
  local options, paths = dc.options({ rest = "FROM TO",
    about = "Writes the tensors of a file as another one: GGUF where its name ends with .gguf, NumPy's with .npz,"
      .. " else safetensors.",
    { "type", nil, "of floats; in GGUF of those of two axes and more", choices = TYPES },
    { "rename", nil, "names that match get the text instead (string.gsub)", value = "PATTERN=TEXT" } }, args)
  if #paths ~= 2 then
    dc.fail "convert: two files are needed: deepc convert model.gguf model.safetensors"
  end
  convert(paths[1], paths[2], options)
end

return tool
