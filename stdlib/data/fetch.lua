-- Files by URL, and sets that are such files.

local data = require "deepc.data.set"
local dc = require "deepc"
local _, core = ...

---The folder, and those above it that are not there.
local function make_missing(folder)
  if core.file_exists("fetch", folder) then return end
  local parent = folder:match "^(.+)/[^/]*$"
  if parent then make_missing(parent) end
  core.make_folder("fetch", folder)
end

---The path of a file that a URL gives (torch.hub.download_url_to_file): fetched the first time, whole or not at all,
---and kept in `cache`, else in deepc/data of the user's folder for caches. With a `sha256` a file that is there and
---has another is fetched again, and one that was fetched and has another is refused. https and http need libcurl
---(Debian: libcurl4); file:// URLs are copied. A context in a sandbox reaches no network.
---
---    local path = data.fetch("https://example.org/train.csv.gz", { sha256 = digest })
---
---Errors: DC0801 where it cannot be fetched, DC0802 for another checksum, DC0805 where it is not allowed.
---@param url string
---@param options? { sha256?: string, cache?: string, name?: string } name: of the file, else made of the URL
---@return string
function data.fetch(url, options)
  if type(url) ~= "string" or not url:find "^%a+://" then
    core.fail("ARG", "fetch", "a URL is needed, not " .. core.describe(url), "https://, http:// or file://")
  end
  core.options("fetch", options, "sha256", "cache", "name")
  options = options or {}
  for _, key in ipairs { "sha256", "cache", "name" } do
    if options[key] ~= nil and type(options[key]) ~= "string" then
      core.fail("ARG", "fetch", ("%s is a text, not %s"):format(key, core.describe(options[key])))
    end
  end
  local sha256 = options.sha256 and options.sha256:lower()
  if sha256 and (#sha256 ~= 64 or sha256:find "%X") then
    core.fail("ARG", "fetch", ("sha256 is 64 hexadecimal digits, not %s"):format(core.shown(options.sha256)))
  elseif options.name and (options.name:find "/" or options.name:find "^%.*$") then
    core.fail("ARG", "fetch", ("name is that of a file, not %s"):format(core.shown(options.name)))
  end
  local folder = options.cache or core.fetch_folder()
  if folder == "" then
    core.fail("FILE", "fetch", "there is no folder for caches: neither XDG_CACHE_HOME nor HOME",
      "cache = ... names one")
  end
  if options.cache then
    make_missing(folder)
  end
  local last = url:gsub("[?#].*$", ""):match "[^/]*$":gsub("[^%w._-]", "_"):sub(-100)
  local path = folder .. "/" .. (options.name or core.fetch_key(url):sub(1, 12) .. "-" .. last)
  local digest = sha256 and core.fetch_digest(path)
  if sha256 and digest ~= sha256 or not sha256 and not core.file_exists("fetch", path) then
    core.fetch(url, path, sha256)
  end
  return path
end

---CIFAR-10's binary files: images u8[n, 32, 32, 3], labels i32. Each file has records of a label and 3072 bytes,
---planes of red, green and blue.
---
---    data.cifar10 { "data_batch_1.bin", "data_batch_2.bin" }
---
---Errors: DC0801 where they cannot be read, DC0802 where one is no whole number of records.
---@param paths string|string[]
---@return deepc.data.Set
function data.cifar10(paths)
  paths = type(paths) == "string" and { paths } or paths
  if type(paths) ~= "table" or #paths == 0 then
    core.fail("ARG", "cifar10", "a path or a list of paths is needed, not " .. core.describe(paths))
  end
  local images, labels = {}, {}
  for i, path in ipairs(paths) do
    if type(path) ~= "string" then
      core.fail("ARG", "cifar10", ("path %d is %s"):format(i, core.describe(path)))
    end
    local bytes = core.rows_absent("cifar10", path) and ("\0"):rep(3073 * 100) or core.read_file("cifar10", path)
    if #bytes % 3073 ~= 0 or #bytes == 0 then
      core.fail("FORMAT", "cifar10", ("%s: %d bytes are no whole number of records of 3073"):format(path, #bytes))
    end
    local n = #bytes // 3073
    local records = dc.frombytes(bytes, ("u8[%d, 3073]"):format(n))
    labels[i] = records[{ {}, 1 }]:cast "i32"
    images[i] = records[{ {}, { 2, 3073 } }]:reshape(n, 3, 32, 32):permute(1, 3, 4, 2)
  end
  local set = data.set(#images == 1 and images[1] or dc.concat(images, 1),
    #labels == 1 and labels[1] or dc.concat(labels, 1))
  return set
end

---MNIST's files, or those of its relatives: images and labels as idx, plain or gzipped. Images are u8[n, 28, 28],
---labels i32.
---
---    data.mnist("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz")
---
---Errors: as data.idx, data.set.
---@param images string path
---@param labels string path
---@return deepc.data.Set
function data.mnist(images, labels)
  local set = data.set(data.idx(images), data.idx(labels):cast "i32")
  return set
end
