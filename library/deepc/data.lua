---@meta deepc.data

-- Made by scripts/reference from stdlib/data.lua.

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
function data.idx(path) end

---Rows of x, and of y, the values that belong to them. `#set` is their number.
---@class deepc.data.Set
---@field x deepc.Tensor
---@field y deepc.Tensor
---@field epoch integer how often batches were asked for
local Set = {}

---Rows of x with the rows of y that belong to them.
---
---    data.set(dc.zeros "f32[130, 2]", dc.iota(130))
---
---Errors: DC0301 where their numbers of rows differ.
---@param x deepc.Tensor
---@param y deepc.Tensor
---@return deepc.data.Set
function data.set(x, y) end

---Iterates over pairs of batches, on loan until the next pair. Shuffled orders depend on the seed and
---on the epoch: how often batches were asked for, or the option. A last batch of another size is an
---error unless `last` says whether to drop or keep it.
---
---    for x, y in set:batches { size = 64, shuffle = true, last = "drop" } do print(x, y) end
---@param options { size: integer, shuffle?: boolean, seed?: integer, epoch?: integer, last?: "drop"|"keep" }
---@return fun(): deepc.Tensor?, deepc.Tensor?
function Set:batches(options) end

---Fashion-MNIST (Debian: dataset-fashion-mnist): 60,000 rows to train on, 10,000 to test with.
---Images are u8[28, 28], labels i32. The files may be gzipped or not.
---
---    local train, test = data.fashion_mnist()
---
---Errors: DC0801 where they cannot be read.
---@param options? { dir?: string } where the files are
---@return deepc.data.Set # to train
---@return deepc.data.Set # to test
function data.fashion_mnist(options) end

return data
