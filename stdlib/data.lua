-- Data sets: files to tensors, and batches of their rows in order or shuffled.

local _, core = ...

---Data sets.
---
---    local data = require "deepc.data"
---@class deepc.data
local data = {}

---An idx file (MNIST and its relatives), plain or gzipped, as a u8 tensor.
---
---    data.idx "train-images-idx3-ubyte.gz"
---
---Errors: DC0801 where it cannot be read, DC0802 where it is damaged.
---@param path string
---@return deepc.Tensor # u8
function data.idx(path)
  local t = core.idx(path)
  return t
end

---Rows of x, and of y, the values that belong to them. `#set` is their number.
---@class deepc.data.Set
---@field x deepc.Tensor
---@field y deepc.Tensor
---@field epoch integer how often batches were asked for
local Set = {}
Set.__index = Set

-- Of iterators: how many values they give, and of how many rows each.
core.lengths = setmetatable({}, { __mode = "k" })

---Rows of x with the rows of y that belong to them.
---
---    data.set(dc.zeros "f32[130, 2]", dc.iota(130))
---
---Errors: DC0301 where their numbers of rows differ.
---@param x deepc.Tensor
---@param y deepc.Tensor
---@return deepc.data.Set
function data.set(x, y)
  if core.kind(x) ~= "tensor" or core.kind(y) ~= "tensor" then
    core.fail("ARG", "data.set", "two tensors are needed")
  end
  if #x ~= #y then
    core.fail("DIMS", "data.set", ("%d rows against %d"):format(#x, #y), nil, "x", x, "y", y)
  end
  return setmetatable({ x = x, y = y, epoch = 0 }, Set)
end

function Set:__len()
  return #self.x
end

local function check_options(o)
  if type(o) ~= "table" then
    core.fail("ARG", "batches", "options are a table", "batches { size = 64, shuffle = true }")
  end
  core.options("batches", o, "size", "shuffle", "seed", "epoch", "last")
  if math.type(o.size) ~= "integer" or o.size < 1 then
    core.fail("ARG", "batches", ("size is a positive integer, not %s"):format(tostring(o.size)))
  end
  for _, key in ipairs { "seed", "epoch" } do
    if o[key] ~= nil and not math.tointeger(o[key]) then
      core.fail("ARG", "batches", ("%s is an integer, not %s"):format(key, tostring(o[key])))
    end
  end
  if o.last ~= nil and o.last ~= "drop" and o.last ~= "keep" then
    core.fail("ARG", "batches", ('last is "drop" or "keep", not %s'):format(tostring(o.last)))
  end
end

---Iterates over pairs of batches, on loan until the next pair. Shuffled orders depend on the seed and
---on the epoch: how often batches were asked for, or the option. A last batch of another size is an
---error unless `last` says whether to drop or keep it.
---
---    for x, y in set:batches { size = 64, shuffle = true, last = "drop" } do print(x, y) end
---@param options { size: integer, shuffle?: boolean, seed?: integer, epoch?: integer, last?: "drop"|"keep" }
---@return fun(): deepc.Tensor?, deepc.Tensor?
function Set:batches(options)
  check_options(options)
  local n, size = #self, options.size
  if n % size ~= 0 and not options.last then
    core.fail("ARG", "batches", ("%d rows are no whole number of batches of %d"):format(n, size),
      'last = "drop" leaves the rest out, "keep" makes a smaller batch of it')
  end
  self.epoch = self.epoch + 1
  local order = options.shuffle
      and core.order(n, options.seed or core.seed(), options.epoch or self.epoch)
    or nil
  if core.checking() then
    n = math.min(n, size) -- one is as good as all
  end
  local at, x, y = 0, nil, nil
  local function next_batch()
    core.give_back(x)
    core.give_back(y)
    x, y = nil, nil
    local count = math.min(size, n - at)
    if count < size and (count <= 0 or options.last ~= "keep") then
      return nil
    end
    x, y = core.gather(self.x, order, at, count), core.gather(self.y, order, at, count)
    at = at + count
    return x, y
  end
  local batches = options.last == "keep" and (n + size - 1) // size or n // size
  core.lengths[next_batch] = { batches, size } -- for dc.progress
  return next_batch
end

-- The file as it is, or gzipped.
local function either(path)
  for _, name in ipairs { path, path .. ".gz" } do
    local file = io and io.open(name, "rb")
    if file then
      file:close()
      return name
    end
  end
  return io and core.fail("FILE", "fashion_mnist", ("there is no %s, nor with .gz"):format(path),
    "Debian's package dataset-fashion-mnist has it; { dir = ... } for another place") or path .. ".gz"
end

---Fashion-MNIST (Debian: dataset-fashion-mnist): 60,000 rows to train on, 10,000 to test with.
---Images are u8[28, 28], labels i32. The files may be gzipped or not.
---
---    local train, test = data.fashion_mnist()
---
---Errors: DC0801 where they cannot be read.
---@param options? { dir?: string } where the files are
---@return deepc.data.Set # to train
---@return deepc.data.Set # to test
function data.fashion_mnist(options)
  core.options("fashion_mnist", options, "dir")
  local dir = options and options.dir or "/usr/share/datasets/fashion-mnist"
  local function read(part)
    local images = data.idx(either(("%s/%s-images-idx3-ubyte"):format(dir, part)))
    local labels = data.idx(either(("%s/%s-labels-idx1-ubyte"):format(dir, part)))
    local set = data.set(images, labels:cast "i32")
    return set
  end
  local train = read "train"
  return train, read "t10k"
end

core.entries(Set)

return core.module("deepc.data", data)
