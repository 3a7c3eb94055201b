-- Data sets whose rows a function gives one after the other.

local data = require "deepc.data.set"
local dc = require "deepc"
local _, core = ...

---Rows that a function gives one after the other.
---@class deepc.data.Stream
---@field epoch integer the one that was begun last, from 1; 0 before
local Stream = {}
Stream.__index = Stream

---A set of rows that come one after the other, from a generator, a line of a file, a decoder of one's own
---(torch.utils.data.IterableDataset). `source(epoch)` gives an iterator, each call of which gives the values of a row:
---tensors, numbers, tables of numbers; nothing at the end.
---
---    data.stream(function() local i = 0 return function() i = i + 1 if i <= 8 then return i, i * i end end end)
---
---Errors: DC0101 for what is no function.
---@param source fun(epoch: integer): fun(): any
---@return deepc.data.Stream
function data.stream(source)
  if not core.control_callable(source) then
    core.fail("ARG", "stream", "a function is needed that gives an iterator, not " .. core.describe(source))
  end
  return setmetatable({ epoch = 0, _turn = 0, _source = source }, Stream)
end

local lasts = { drop = true, keep = true }

local function check_self(op, stream)
  if getmetatable(stream) ~= Stream then
    core.fail("ARG", op, "a stream is needed, not " .. core.describe(stream),
      ("with a colon: stream:%s(...)"):format(op))
  end
end

local function check_options(stream, o)
  check_self("batches", stream)
  if type(o) ~= "table" then
    core.fail("ARG", "batches", "options are a table", "batches { size = 64 }")
  end
  core.options("batches", o, "size", "last", "shuffle", "seed", "epoch", "collate", "map", "over")
  if math.type(o.size) ~= "integer" or o.size < 1 then
    core.fail("ARG", "batches", ("size is a positive integer, not %s"):format(core.shown(o.size)))
  elseif o.last ~= nil and not lasts[o.last] then
    core.fail("ARG", "batches", ('last is "drop" or "keep", not %s'):format(core.shown(o.last)))
  end
  core.check_integer("batches", o, "shuffle", 1)
  core.check_integer("batches", o, "seed")
  core.check_integer("batches", o, "epoch")
  for _, key in ipairs { "collate", "map" } do
    if o[key] ~= nil and not core.control_callable(o[key]) then
      core.fail("ARG", "batches", ("%s is a function, not %s"):format(key, core.describe(o[key])))
    end
  end
end

-- Values of several rows side by side: tensors stacked, numbers and tables as tensors.
local function collate(rows)
  local values = {}
  for k = 1, rows[1].n do
    local list = {}
    for i, row in ipairs(rows) do
      if row.n ~= rows[1].n then
        core.fail("DIMS", "batches", ("a row has %d values, the first of the batch %d"):format(row.n, rows[1].n))
      end
      list[i] = row[k]
    end
    local first = list[1]
    if core.kind(first) then
      values[k] = dc.stack(list, 1)
    elseif type(first) == "number" or type(first) == "table" then
      local leaf = first
      while type(leaf) == "table" do
        leaf = leaf[1]
      end
      values[k] = dc.tensor(list, math.type(leaf) == "integer" and "i32" or "f32")
    else
      values[k] = list
    end
  end
  return table.unpack(values, 1, rows[1].n)
end

-- Rows of the source in a window of `shuffle` rows: each time one of them by chance.
local function shuffled(next_row, window, seed, epoch)
  local held, at, over = {}, 0, false
  return function()
    while not over and #held < window do
      local row = next_row()
      over = row == nil
      held[#held + 1] = row
    end
    if #held == 0 then
      return nil
    end
    at = at + 1
    local i = core.order_pick(seed, epoch, at, #held) + 1
    local row = held[i]
    held[i] = held[#held]
    held[#held] = nil
    return row
  end
end

local settings = { "size", "shuffle", "seed" }

local function leave_out(stream, now)
  local from = stream._restored
  if not from then
    return 0
  end
  for _, key in ipairs(settings) do
    if from[key] ~= now[key] then
      core.fail("ARG", "batches", ("the restored position is of %s = %s, not %s"):format(key, core.shown(from[key]),
        core.shown(now[key])))
    end
  end
  return from.epoch == now.epoch and from.batch or 0
end

---Iterates over batches of `size` rows: tensors are stacked, numbers and tables of numbers made tensors (i32 and
---f32), other values are lists; or what `collate(rows)` makes of a list of rows, each a list of its values. `shuffle
---= n` gives rows by chance out of the next n. `last` says what becomes of the rest: "drop" or "keep", the usual
---one. Each `for` over what is returned is an epoch of its own, which asks the source anew.
---
---    local s = data.stream(function() local i = 0 return function() i = i + 1 if i <= 8 then return i end end end)
---    for x in s:batches { size = 4, shuffle = 8 } do print(x) end
---
---Ranks along an axis of the mesh share each batch, as those of a set do (`over`): every rank runs through all rows,
---and collates and maps its own. They say `last = "drop"`, since what is left at the end may not divide.
---
---Errors: DC0101 for options, DC0301 for rows that do not go together, DC0313 where ranks cannot share a batch equally.
---@param options table size, last, shuffle, seed, epoch, collate, map, over
---@return fun(): any
function Stream:batches(options)
  check_options(self, options)
  local place, places, over = core.share_of_batches(options)
  if places > 1 and options.last ~= "drop" then
    core.fail("SHARDING", "batches", ("nobody knows whether %d ranks along '%s' can share the last rows equally")
      :format(places, over), 'last = "drop" leaves out what fills no batch')
  end
  local size, last, window, map, pack = options.size, options.last, options.shuffle, options.map,
    options.collate or collate
  local share, epoch, seed = size // places, options.epoch, options.seed
  local now, next_row, ended, fresh, turn
  local function make_ready()
    now = { epoch = epoch or self.epoch + 1, size = size, shuffle = window or 0, seed = seed or core.seed() }
    now.batch = leave_out(self, now)
    core.agree_on_batches(places, now)
    local source = self._source(now.epoch)
    if not core.control_callable(source) then
      core.fail("ARG", "batches", "the source gives an iterator, not " .. core.describe(source))
    end
    local function row()
      local values = table.pack(source())
      if values[1] ~= nil then
        return values
      end
    end
    next_row = window and shuffled(row, window, now.seed, now.epoch) or row
    ended, fresh, turn = false, true, self._turn
  end
  local function next_rows() -- of all ranks; those of this one
    local rows, n = {}, 0
    while not ended and n < size do
      local values = next_row()
      ended = values == nil
      if not ended then
        rows[#rows + 1] = n // share == place and values or nil
        n = n + 1
      end
    end
    return n > 0 and (n == size or last ~= "drop") and rows or nil
  end
  local function begin()
    self.epoch, self._turn, self._last, self._inside, self._restored = now.epoch, self._turn + 1, now, true, nil
    fresh = false
    for _ = 1, now.batch do
      next_rows()
    end
  end
  make_ready()
  return function(...)
    if core.begins(...) and not fresh or fresh and turn ~= self._turn then
      make_ready()
    end
    if fresh then
      begin()
    end
    local rows = next_rows()
    if not rows then
      if self._last == now then
        self._inside = false
      end
      return nil
    end
    now.batch = now.batch + 1
    if map then
      return map(pack(rows))
    end
    return pack(rows)
  end
end

---Where its batches stand, as of a set: rows before that are asked for again and left out when it goes on.
---
---    local s = data.stream(function() return function() end end)
---    s:restore(s:position())
---@return table<string, integer>
function Stream:position()
  check_self("position", self)
  local position = {}
  for key, value in pairs(self._restored or self._last or { epoch = self.epoch }) do
    position[key] = value
  end
  if not self._inside and not self._restored then
    position.batch = -1
  end
  return position
end

---Goes on from a position.
---
---    local s = data.stream(function() return function() end end)
---    s:restore(s:position())
---
---Errors: DC0101 for what is no position.
---@param position table<string, integer> of stream:position()
function Stream:restore(position)
  check_self("restore", self)
  local epoch = type(position) == "table" and math.tointeger(position.epoch)
  local batch = epoch and math.tointeger(position.batch)
  if not batch or epoch < 0 or batch < -1 then
    core.fail("ARG", "restore", "a position is needed, which stream:position() gives")
  end
  local inside, from = batch >= 0, {}
  for key, value in pairs(position) do
    from[key] = value
  end
  self._last, self._inside, self._turn = nil, false, self._turn + 1
  self._restored = inside and from or nil
  self.epoch = inside and epoch - 1 or epoch
end

core.entries(Stream)
