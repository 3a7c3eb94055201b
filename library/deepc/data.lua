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
---@field epoch integer the one that batches were asked for last, from 1; 0 before
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

---Iterates over pairs of batches, on loan until the next pair, which is gathered meanwhile. Shuffled
---orders depend on the seed and on the epoch: how often batches were asked for, or the option. Where the
---rows are no whole number of batches, `last` says what becomes of the rest: "drop" leaves it out, "keep"
---makes a smaller batch of it, "pad" fills it up with zeros and gives a mask with each pair, f32[size],
---with 1 for rows that are there and 0 for those that are not. "drop" with fewer rows than one batch is an
---error, since nothing would be left. `#` of what is returned first is the number of batches.
---
---    for x, y in set:batches { size = 64, shuffle = true, last = "drop" } do print(x, y) end
---    for x, y, mask in set:batches { size = 64, last = "pad" } do print(x, y, mask) end
---
---Errors: DC0101 for options, DC0107 for a batch that is used once the next one is there.
---@param options { size: integer, shuffle?: boolean, seed?: integer, epoch?: integer, last?: "drop"|"keep"|"pad" }
---@return fun(): deepc.Tensor?, deepc.Tensor?, deepc.Tensor?
function Set:batches(options) end

---Where its batches stand, as a table of numbers, texts and booleans: the epoch, how many batches of it
---have been given out, and what they depend on. Between epochs all of them.
---
---    set:restore(set:position())
---@return table<string, integer|boolean|string>
function Set:position() end

---Goes on from a position: the next batches are those behind it, in the order that they had. In the
---middle of an epoch `epoch` is then the one before, so that `for epoch = set.epoch + 1, epochs do` goes
---on as well.
---
---Errors: DC0101 for what is no position.
---@param position table<string, integer|boolean|string> of set:position(), of a set of as many rows
function Set:restore(position) end

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
