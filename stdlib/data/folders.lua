-- Files of folders, and sets of them. No result depends on the order in which a file system gives names.

local data = require "deepc.data.set"
local dc = require "deepc"
local _, core = ...

local longest_pattern = 1000

-- The patterns as a list.
local function read_patterns(op, pattern)
  local list = type(pattern) == "table" and pattern or { pattern == nil and "*" or pattern }
  if #list == 0 then
    core.fail("ARG", op, "a list of patterns is empty", '"*.png", or { "*.png", "*.jpg" }')
  end
  for i = 1, #list do
    local text = list[i]
    if type(text) ~= "string" or text == "" or #text > longest_pattern then
      core.fail("ARG", op, ("a pattern is a text such as \"*.png\", not %s"):format(type(text) == "string"
        and #text > longest_pattern and ("one of %d bytes"):format(#text) or core.describe(text)))
    elseif text:find "[/%z]" then
      core.fail("ARG", op, ("the pattern '%s' is one of paths; it is compared with the name of each file"):format(text),
        "{ recursive = true } looks into the folders in it")
    end
  end
  return list
end

local function check_folder(op, folder)
  if type(folder) ~= "string" or folder == "" then
    core.fail("ARG", op, "the path of a folder is needed, not " .. core.describe(folder))
  end
  return folder:match "^(/*[^/].-)/*$" or "/"
end

local function joined(folder, name)
  return (folder == "/" and "" or folder) .. "/" .. name
end

-- Iterates over what is in a folder: "f" or "d", its name; and what tells it from other folders.
local function entries(op, folder)
  local text, id = core.folder_list(op, folder)
  return text:gmatch "(.)(%Z+)%z", id
end

-- Names that begin with a dot are hidden: they count where the pattern begins with one.
local function matches(patterns, name)
  for _, pattern in ipairs(patterns) do
    if (name:sub(1, 1) ~= "." or pattern:sub(1, 1) == ".") and core.folder_match(pattern, name) then
      return true
    end
  end
  return false
end

-- Adds the files below a folder to `list`; `seen` has the folders that were read, to which links may lead again. Says
-- whether there are folders in it.
local function collect(op, folder, patterns, recursive, seen, list)
  local next_entry, id = entries(op, folder)
  local folders = false
  if seen[id] then
    return false
  end
  seen[id] = true
  for kind, name in next_entry do
    if kind == "f" and matches(patterns, name) then
      list[#list + 1] = joined(folder, name)
    elseif kind == "d" and name:sub(1, 1) ~= "." then
      folders = true
      if recursive then
        collect(op, joined(folder, name), patterns, recursive, seen, list)
      end
    end
  end
  return folders
end

local function files_of(op, folder, patterns, recursive)
  local list = {}
  local folders = collect(op, folder, patterns, recursive, {}, list)
  if #list == 0 then
    core.fail("FILE", op, ("%s: no file %s it has the form %s"):format(folder, recursive and "below" or "in",
      table.concat(patterns, ", ")), folders and not recursive and "{ recursive = true } looks into the folders in it"
      or nil)
  end
  return list
end

-- For deepc check, where the folder is not here: paths that are not here either.
local function made_up(folder)
  local list = {}
  for i = 1, 509 do
    list[i] = joined(folder, tostring(i))
  end
  return list
end

---The paths of the files in a folder whose names have the form of a pattern, or of one in a list (glob.glob,
---os.listdir, pathlib.Path.rglob): `*` is any text, `?` a character, `[a-z]` and `[!a-z]` one of a set. Sorted by the
---bytes of the names, folder by folder, on every file system alike. With `recursive` those in the folders below, too,
---links included, each folder once, where it comes first. Names that begin with a dot are left out unless the pattern
---begins with one.
---
---    local paths = data.files("sounds", "*.wav")
---    local paths = data.files("photos", { "*.jpg", "*.png" }, { recursive = true })
---
---Errors: DC0801 where a folder cannot be read, and where there is no such file.
---@param folder string
---@param pattern? string|string[] "*"
---@param options? { recursive?: boolean }
---@return string[]
function data.files(folder, pattern, options)
  folder = check_folder("files", folder)
  core.options("files", options, "recursive")
  local recursive = options and options.recursive
  if recursive ~= nil and type(recursive) ~= "boolean" then
    core.fail("ARG", "files", "recursive is true or false, not " .. core.describe(recursive))
  end
  local patterns = read_patterns("files", pattern)
  if core.rows_absent("files", folder) then
    return made_up(folder)
  end
  local list = files_of("files", folder, patterns, recursive)
  return list
end

-- Paths, labels and names of classes.
local function class_files(op, folder, patterns)
  local paths, labels, classes = {}, {}, {}
  if core.rows_absent(op, folder) then
    return made_up(folder), (dc.iota(509) % 10):cast "i32", { "1", "2", "3", "4", "5", "6", "7", "8", "9", "10" }
  end
  for kind, name in entries(op, folder) do
    if kind == "d" and name:sub(1, 1) ~= "." then
      for _, path in ipairs(files_of(op, joined(folder, name), patterns, true)) do
        paths[#paths + 1], labels[#labels + 1] = path, #classes
      end
      classes[#classes + 1] = name
    end
  end
  if #classes == 0 then
    core.fail("FILE", op, ("%s: there is no folder in it, and each is a class"):format(folder))
  end
  return paths, dc.tensor(labels, "i32"), classes
end

---Files of classes, each of which is a folder (torchvision.datasets.DatasetFolder): their paths, a label for each,
---i32[n], and the names of the classes. A label counts the folders, sorted by name, from 0; files below them in
---folders of their own count too.
---
---    local paths, labels, classes = data.class_files("sounds", "*.wav")
---    local set = data.set(data.sounds(paths), labels)
---
---Errors: DC0801 as data.files, where there is no folder, and where one has no such file.
---@param folder string
---@param pattern? string|string[] "*"
---@return string[] paths
---@return deepc.Tensor labels
---@return string[] classes
function data.class_files(folder, pattern)
  folder = check_folder("class_files", folder)
  local paths, labels, classes = class_files("class_files", folder, read_patterns("class_files", pattern))
  return paths, labels, classes
end

local image_patterns = { "*.[pP][nN][gG]", "*.[jJ][pP][gG]", "*.[jJ][pP][eE][gG]" }

---Images of classes, each of which is a folder (torchvision.datasets.ImageFolder): a set of images, as data.images
---reads them, and labels, i32; and the names of the classes, sorted. Without a pattern all that are named as PNG or
---JPEG.
---
---    local set, classes = data.image_folder("photos", { size = { 64, 64 }, fit = "crop", channels = 3 })
---
---Errors: DC0801 as data.class_files; those of data.images.
---@param folder string
---@param options? { size?: integer[], fit?: "exact"|"stretch"|"crop", channels?: integer, pattern?: string|string[] }
---@return deepc.data.Set
---@return string[] classes
function data.image_folder(folder, options)
  local op = "image_folder"
  folder = check_folder(op, folder)
  core.options(op, options, "size", "fit", "channels", "pattern")
  options = options or {}
  local patterns = options.pattern == nil and image_patterns or read_patterns(op, options.pattern)
  local paths, labels, classes = class_files(op, folder, patterns)
  local images = data.images(paths, { size = options.size, fit = options.fit, channels = options.channels })
  return data.set(images, labels), classes
end
