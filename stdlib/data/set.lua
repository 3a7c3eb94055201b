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
---@field epoch integer the one that batches were asked for last, from 1; 0 before
local Set = {}
Set.__index = Set

-- Of iterators: how many values they give, and of how many rows each.
core.lengths = setmetatable({}, { __mode = "k" })

local function check_rows(name, t)
  if core.kind(t) ~= "tensor" then
    core.fail("ARG", "data.set", ("%s: a tensor is needed, not %s"):format(name,
      core.kind(t) and "a cell" or core.describe(t)), core.kind(t) and ":clone() gives the values of a cell"
      or type(t) == "table" and "dc.tensor(values) makes one of a table of numbers" or nil)
  elseif #t.shape == 0 then
    core.fail("DIMS", "data.set", ("%s is %s[], which has no rows"):format(name, t.dtype), nil, name, t)
  end
end

---Rows of x with the rows of y that belong to them.
---
---    data.set(dc.zeros "f32[130, 2]", dc.iota(130))
---
---Errors: DC0301 where their numbers of rows differ.
---@param x deepc.Tensor
---@param y deepc.Tensor
---@return deepc.data.Set
function data.set(x, y)
  check_rows("x", x)
  check_rows("y", y)
  if #x ~= #y then
    core.fail("DIMS", "data.set", ("%d rows against %d"):format(#x, #y), nil, "x", x, "y", y)
  end
  return setmetatable({ x = x, y = y, epoch = 0 }, Set)
end

function Set:__len()
  return #self.x
end

local lasts = { drop = true, keep = true, pad = true }

local function check_self(op, set, arguments)
  if getmetatable(set) ~= Set then
    core.fail("ARG", op, "a set is needed, not " .. core.describe(set), ("with a colon: set:%s(%s)"):format(op,
      arguments or ""))
  end
end

local function check_options(set, o)
  check_self("batches", set, "options")
  if type(o) ~= "table" then
    core.fail("ARG", "batches", "options are a table", "batches { size = 64, shuffle = true }")
  end
  core.options("batches", o, "size", "shuffle", "seed", "epoch", "last")
  if math.type(o.size) ~= "integer" or o.size < 1 then
    core.fail("ARG", "batches", ("size is a positive integer, not %s"):format(core.shown(o.size)))
  end
  if o.shuffle ~= nil and type(o.shuffle) ~= "boolean" then
    core.fail("ARG", "batches", ("shuffle is true or false, not %s"):format(core.describe(o.shuffle)),
      math.type(o.shuffle) == "integer" and ("shuffle = true, seed = %d"):format(o.shuffle) or nil)
  end
  for _, key in ipairs { "seed", "epoch" } do
    if o[key] ~= nil and not math.tointeger(o[key]) then
      core.fail("ARG", "batches", ("%s is an integer, not %s"):format(key, core.shown(o[key])))
    end
  end
  if o.last ~= nil and not lasts[o.last] then
    core.fail("ARG", "batches", ('last is "drop", "keep" or "pad", not %s'):format(core.shown(o.last)))
  end
end

-- What a position has to agree with, in the order in which differences are told.
local settings = { "rows", "size", "shuffle", "seed", "last" }

-- Where a restored position says to go on: how many batches to leave out.
local function leave_out(set, now)
  local from = set._restored
  set._restored = nil
  if not from then
    return 0
  end
  for _, key in ipairs(settings) do
    if from[key] ~= now[key] then
      core.fail("ARG", "batches", ("the restored position is of %s = %s, not %s"):format(key,
        core.shown(from[key]), core.shown(now[key])))
    end
  end
  local most = (now.last == "drop" and now.rows or now.rows + now.size - 1) // now.size
  if from.batch > most then
    core.fail("ARG", "batches", ("the restored position is behind %d batches, there are %d"):format(from.batch, most))
  end
  return from.epoch == now.epoch and from.batch or 0
end

-- A loop over batches: called by `for`, closed by it, also where it is left early.
local Loop = {}
Loop.__index = Loop

function Loop:__len()
  return self.count
end

local function give_back(loop)
  core.give_back(loop.x)
  core.give_back(loop.y)
  core.give_back(loop.mask)
  loop.x, loop.y, loop.mask = nil, nil, nil
end

function Loop:__close()
  give_back(self)
  core.batch_close(self.batches)
  if self.set._loop == self then
    self.set._loop = nil
  end
end

function Loop:__call()
  give_back(self)
  local x, y, mask = core.batch_next(self.batches)
  self.x, self.y, self.mask = x, y, mask
  if not x then
    self:__close()
    return nil
  end
  self.now.batch = self.now.batch + 1
  return x, y, mask
end

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
function Set:batches(options)
  check_options(self, options)
  local n, size = #self, options.size
  if n % size ~= 0 and not options.last then
    core.fail("ARG", "batches", ("%d rows are no whole number of batches of %d"):format(n, size),
      'last = "drop" leaves the rest out, "keep" makes a smaller batch of it, "pad" fills it up')
  elseif n > 0 and n < size and options.last == "drop" then -- a loop that nothing goes through looks like training
    core.fail("ARG", "batches",
      ('%d rows are less than a batch of %d, and last = "drop" leaves them out'):format(n, size),
      'a smaller size; last = "keep" makes a smaller batch of them, "pad" fills one up')
  end
  local now = {
    epoch = options.epoch or self.epoch + 1, batch = 0, rows = n, size = size,
    shuffle = options.shuffle and true or false, seed = options.seed or core.seed(), last = options.last or "drop",
  }
  now.batch = leave_out(self, now)
  local order = now.shuffle and core.order(n, now.seed, now.epoch) or nil
  if core.checking() then
    n = math.min(n, size) -- one is as good as all
  end
  local loop = setmetatable({
    set = self, now = now, count = math.max((now.last == "drop" and n or n + size - 1) // size - now.batch, 0),
    batches = core.batches(self.x, self.y, order, n, size, now.last, now.batch),
  }, Loop)
  self.epoch = now.epoch
  self._loop, self._last = loop, now
  core.lengths[loop] = { loop.count, size } -- for dc.progress
  return loop, nil, nil, loop
end

---Where its batches stand, as a table of numbers, texts and booleans: the epoch, how many batches of it
---have been given out, and what they depend on. Between epochs all of them.
---
---    set:restore(set:position())
---@return table<string, integer|boolean|string>
function Set:position()
  check_self("position", self)
  local now = self._restored or self._last or { epoch = self.epoch }
  local position = {}
  for key, value in pairs(now) do
    position[key] = value
  end
  if not self._loop and not self._restored then
    position.batch = -1 -- the epoch is over
  end
  return position
end

---Goes on from a position: the next batches are those behind it, in the order that they had. In the
---middle of an epoch `epoch` is then the one before, so that `for epoch = set.epoch + 1, epochs do` goes
---on as well.
---
---Errors: DC0101 for what is no position.
---@param position table<string, integer|boolean|string> of set:position(), of a set of as many rows
function Set:restore(position)
  check_self("restore", self, "position")
  local epoch = type(position) == "table" and math.tointeger(position.epoch)
  local batch = epoch and math.tointeger(position.batch)
  if not batch or epoch < 0 or batch < -1 then
    core.fail("ARG", "restore", "a position is needed, which set:position() gives")
  end
  local inside = position.batch >= 0 and position.rows ~= nil
  local from = {}
  for key, value in pairs(position) do
    from[key] = value
  end
  self._loop, self._last = nil, nil
  self._restored = inside and from or nil
  self.epoch = inside and from.epoch - 1 or from.epoch
end

-- The file as it is, or gzipped.
local function either(path)
  for _, name in ipairs { path, path .. ".gz" } do
    if core.file_exists("fashion_mnist", name) then
      return name
    end
  end
  core.fail("FILE", "fashion_mnist", ("there is no %s, nor with .gz"):format(path),
    "Debian's package dataset-fashion-mnist has it; { dir = ... } for another place")
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

return data
