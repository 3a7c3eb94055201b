-- Data sets: files to tensors, and batches of their rows in order or shuffled.

local dc = require "deepc"
local _, core = ...
require "deepc.operands"

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

---Rows of some tensors that belong together. `#set` is their number.
---@class deepc.data.Set
---@field x deepc.Tensor the first of its values, where they have no names
---@field y deepc.Tensor the second
---@field epoch integer the one that was begun last, from 1; 0 before
local Set = {}
Set.__index = Set

-- Of iterators: how many rows each value has.
core.batch_sizes = setmetatable({}, { __mode = "k" })

---Rows that do not lie in a tensor: of a file, decoded from many, or of several lengths. They stand in a set as
---tensors do. `#rows` is their number.
---@class deepc.data.Rows
---@field dtype string "f32"
---@field shape integer[] sizes of the axes; where rows differ in length, axis 2 has the largest
local Rows = {}

function Rows.__index(rows, key)
  if key == "shape" then
    return { table.unpack(rawget(rows, "_shape")) }
  end
  return Rows[key]
end

function Rows:__len()
  return self._shape[1]
end

core.rows_class = Rows

-- Rows of what C has made of a source.
core.new_rows = function(source)
  local dtype, shape, ragged = core.rows_type(source)
  return setmetatable({ dtype = dtype, _shape = shape, _ragged = ragged, _source = source }, Rows)
end

core.is_rows = function(x)
  return getmetatable(x) == Rows
end

---One of them, as a tensor; from 1.
---
---    data.ragged { { 1, 2 }, { 3 } }:row(1)
---
---Errors: DC0101 where there is no such row.
---@param i integer
---@return deepc.Tensor
function Rows:row(i)
  if not core.is_rows(self) then
    core.fail("ARG", "row", "rows are needed, not " .. core.describe(self), "with a colon: rows:row(i)")
  end
  if math.type(i) ~= "integer" or i < 1 or i > #self then
    core.fail("ARG", "row", ("row %s of %d rows"):format(core.shown(i), #self))
  end
  local t = core.rows_get(self._source, i)
  return t
end

local most_parts = 16

local function check_rows(name, t)
  if core.is_rows(t) then
    return
  elseif core.kind(t) ~= "tensor" then
    core.fail("ARG", "data.set", ("%s: a tensor is needed, not %s"):format(name,
      core.kind(t) and "a cell" or core.describe(t)), core.kind(t) and ":clone() gives the values of a cell"
      or type(t) == "table" and "dc.tensor(values) makes one of a table of numbers" or nil)
  elseif #t.shape == 0 then
    core.fail("DIMS", "data.set", ("%s is %s[], which has no rows"):format(name, t.dtype), nil, name, t)
  end
end

-- A set of parts, which have as many rows; names of NULL: they are values in this order.
local function new_set(parts, names)
  local shown = {}
  if #parts == 0 then
    core.fail("ARG", "data.set", "a tensor is needed")
  elseif #parts > most_parts then
    core.fail("ARG", "data.set", ("%d values in a row, %d are the most"):format(#parts, most_parts))
  end
  for i, part in ipairs(parts) do
    shown[i] = names and names[i] or #parts <= 2 and ({ "x", "y" })[i] or "value " .. i
    check_rows(shown[i], part)
  end
  for i, part in ipairs(parts) do
    if #part ~= #parts[1] then
      core.fail("DIMS", "data.set", #parts == 2 and not names and ("%d rows against %d"):format(#parts[1], #part)
        or ("%s has %d rows, %s %d"):format(shown[i], #part, shown[1], #parts[1]), nil, shown[1],
        core.kind(parts[1]) and parts[1] or nil, shown[i], core.kind(part) and part or nil)
    end
  end
  local set = setmetatable({ epoch = 0, _turn = 0, _parts = parts, _names = names, _count = #parts[1] }, Set)
  for i, part in ipairs(parts) do
    if names and Set[names[i]] == nil and rawget(set, names[i]) == nil then
      set[names[i]] = part
    elseif not names and i <= 2 then
      set[i == 1 and "x" or "y"] = part
    end
  end
  return set
end

core.new_set = new_set

---Rows of tensors that belong together: x and y, or any number (torch.utils.data.TensorDataset). Batches have a
---value for each. With one table of values by name, batches are such tables: arguments of a typed function that
---takes a record. In the place of a tensor may stand rows of a file (data.rows), of images, sounds or of several
---lengths (data.ragged).
---
---    data.set(dc.zeros "f32[130, 2]", dc.iota(130))
---    data.set(dc.zeros "f32[130, 2]", dc.iota(130), dc.ones "f32[130]")
---    data.set { image = dc.zeros "u8[130, 8, 8]", label = dc.iota(130) }
---
---Errors: DC0301 where their numbers of rows differ.
---@param x deepc.Tensor|deepc.data.Rows|table<string, deepc.Tensor|deepc.data.Rows>
---@param ... deepc.Tensor|deepc.data.Rows
---@return deepc.data.Set
function data.set(x, ...)
  local others = table.pack(...)
  if type(x) == "table" and getmetatable(x) == nil and others.n == 0 and next(x) ~= nil and #x == 0 then
    local names, parts = {}, {}
    for name in pairs(x) do
      if type(name) ~= "string" then
        core.fail("ARG", "data.set", ("names are texts, not %s"):format(core.describe(name)))
      end
      names[#names + 1] = name
    end
    table.sort(names)
    for i, name in ipairs(names) do
      parts[i] = x[name]
    end
    return new_set(parts, names)
  end
  check_rows(others.n > 1 and "value 1" or "x", x)
  local parts = { x }
  for i = 1, others.n do
    check_rows(others.n == 1 and "y" or "value " .. i + 1, others[i])
    parts[i + 1] = others[i]
  end
  return new_set(parts)
end

-- What `for x in set do` calls.
function Set:__call()
  core.fail("ARG", nil, "a data set gives its rows in batches", "for x, y in set:batches { size = 64 } do")
end

function Set:__len()
  return self._count
end

local lasts = { drop = true, keep = true, pad = true }

local function check_self(op, set, arguments)
  if getmetatable(set) ~= Set then
    core.fail("ARG", op, "a set is needed, not " .. core.describe(set), ("with a colon: set:%s(%s)"):format(op,
      arguments or ""))
  end
end

core.check_set = check_self

local MOST_ROWS = 0xffffffff -- of an order (dsl/modules/orders.c)

local function check_integer(op, o, key, least)
  if o[key] ~= nil and (not math.tointeger(o[key]) or least and o[key] < least) then
    core.fail("ARG", op, ("%s is %s, not %s"):format(key, least == 1 and "a positive integer" or "an integer",
      core.shown(o[key])))
  end
end

core.check_integer = check_integer

-- ---- ranks ----

-- Which share of every batch is this rank's, from 0, how many there are, along which axes of the mesh.
function core.share_of_batches(o)
  local over = o.over
  if over == nil then
    for _, name in ipairs(core.mesh_axes() or {}) do
      over = name == "data" and name or over
    end
  elseif over and type(over) ~= "string" then
    core.fail("ARG", "batches", ("over names an axis of the mesh, not %s"):format(core.describe(over)),
      'over = "data"; over = false: each rank gets whole batches')
  end
  if not over then
    return 0, 1
  end
  local place, places = core.mesh_group("batches", over)
  if o.size % places ~= 0 then
    core.fail("SHARDING", "batches", ("a batch of %d rows: %d ranks along '%s' cannot share it equally"):format(o.size,
      places, over), ("size is that of the whole batch, of which a rank gets 1/%d"):format(places))
  end
  return place, places, over
end

-- Ranks that share batches have said the same: settings and, where it is known, the order of the rows.
function core.agree_on_batches(places, now, order)
  if places > 1 then
    local text = {}
    for _, key in ipairs { "rows", "size", "shuffle", "seed", "epoch", "batch", "last" } do
      text[#text + 1] = now[key] ~= nil and ("%s = %s"):format(key, core.shown(now[key])) or nil
    end
    core.agree("batches", table.concat(text, "\n"), 0)
    if order then
      local digest = core.order_digest(order)
      core.agree("batches", ("an order of rows, %016x"):format(digest))
    end
  end
end

local function check_draws(set, o)
  if o.weights ~= nil then
    if core.kind(o.weights) ~= "tensor" or #o.weights.shape ~= 1 or #o.weights ~= #set then
      core.fail("ARG", "batches", ("weights are a tensor with a number for each of %d rows, not %s"):format(#set,
        core.describe(o.weights)))
    elseif o.shuffle ~= nil then
      core.fail("ARG", "batches", "weights draw rows: shuffle says nothing besides")
    end
  end
  if o.balance ~= nil and (o.weights ~= nil or o.shuffle ~= nil) then
    core.fail("ARG", "batches", "balance draws rows: weights and shuffle say nothing besides")
  end
  for _, key in ipairs { "draws", "replacement" } do
    if o[key] ~= nil and not (o.weights or o.balance) then
      core.fail("ARG", "batches", key .. " is for rows that are drawn: weights = ... or balance = ...")
    end
  end
  if o.group ~= nil and not (core.is_rows(o.group) and o.group._ragged) then
    core.fail("ARG", "batches", "group is rows of several lengths, which data.ragged makes, not " ..
      core.describe(o.group))
  end
  if o.map ~= nil and not core.control_callable(o.map) then
    core.fail("ARG", "batches", "map is a function, not " .. core.describe(o.map))
  end
end

local function check_options(set, o)
  check_self("batches", set, "options")
  if type(o) ~= "table" then
    core.fail("ARG", "batches", "options are a table", "batches { size = 64, shuffle = true }")
  end
  core.options("batches", o, "size", "shuffle", "seed", "epoch", "last", "weights", "balance", "draws", "replacement",
    "group", "map", "over")
  if math.type(o.size) ~= "integer" or o.size < 1 then
    core.fail("ARG", "batches", ("size is a positive integer, not %s"):format(core.shown(o.size)))
  end
  for _, key in ipairs { "shuffle", "replacement" } do
    if o[key] ~= nil and type(o[key]) ~= "boolean" then
      core.fail("ARG", "batches", ("%s is true or false, not %s"):format(key, core.describe(o[key])),
        key == "shuffle" and math.type(o.shuffle) == "integer" and ("shuffle = true, seed = %d"):format(o.shuffle)
        or nil)
    end
  end
  check_integer("batches", o, "seed")
  check_integer("batches", o, "epoch")
  check_integer("batches", o, "draws", 1)
  if (o.draws or 1) >= MOST_ROWS then
    core.fail("ARG", "batches", ("draws is %d, which is more than %d rows"):format(o.draws, MOST_ROWS - 1))
  end
  if o.last ~= nil and not lasts[o.last] then
    core.fail("ARG", "batches", ('last is "drop", "keep" or "pad", not %s'):format(core.shown(o.last)))
  end
  check_draws(set, o)
end

-- One weight for each row: how rare its label is among them.
local function balanced(set, labels)
  if core.kind(labels) ~= "tensor" or #labels.shape ~= 1 or #labels ~= #set or labels.dtype:find "f" then
    core.fail("ARG", "batches", ("balance is a tensor with a label for each of %d rows, not %s"):format(#set,
      core.describe(labels)))
  end
  local list, counts, weights = labels:totable(), {}, {}
  for _, label in ipairs(list) do
    counts[label] = (counts[label] or 0) + 1
  end
  for i, label in ipairs(list) do
    weights[i] = 1 / counts[label]
  end
  return dc.tensor(weights, "f64")
end

-- The order of an epoch, and how many rows it has.
local function order_of(set, o, now)
  local base, n = set._rows, #set
  if o.weights or o.balance then
    local weights = o.weights or balanced(set, o.balance)
    return core.order_weighted(weights, base, now.rows, now.seed, now.epoch, o.replacement ~= false), now.rows
  elseif o.group then
    if #o.group ~= #set._parts[1] then
      core.fail("DIMS", "batches", ("group has %d rows, the set's values %d"):format(#o.group, #set._parts[1]))
    end
    return core.order_grouped(n, base, o.group._source, o.size, now.seed, now.epoch, now.shuffle), n
  elseif now.shuffle then
    return core.order(n, now.seed, now.epoch, base), n
  end
  return base, n
end

-- What a position has to agree with, in the order in which differences are told.
local settings = { "rows", "size", "shuffle", "seed", "last" }

-- Where a restored position says to go on: how many batches to leave out.
local function leave_out(set, now)
  local from = set._restored
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

-- A loop over batches: called by `for`, closed by it, also where it is left early. Each `for` is an epoch. The first is
-- made ready when the batches are asked for, and made anew if the set has begun another one or was restored since.
local Loop = {}
Loop.__index = Loop

-- Whether the next `for` makes an epoch ready, of all rows or of those that a restored position leaves.
local function is_stale(loop)
  return loop.over or loop.fresh and loop.turn ~= loop.set._turn
end

-- How many batches the epoch has, or the next one where this is over.
function Loop:__len()
  if not is_stale(self) then
    return self.count
  end
  local restored, epoch = self.set._restored, self.options.epoch or self.set.epoch + 1
  return self.whole - (restored and restored.epoch == epoch and restored.batch or 0)
end

local function give_back(loop)
  local given = loop.given
  for i = 1, given.n do
    core.give_back(given[i])
    given[i] = nil
  end
  given.n = 0
end

function Loop:__close()
  give_back(self)
  core.batch_close(self.batches)
  self.over = true
  if self.set._loop == self then
    self.set._loop = nil
  end
end

-- Values as the script gets them: by name, mapped.
local function shown(loop, ...)
  local names, map = loop.set._names, loop.map
  if names then
    local record = {}
    for i, name in ipairs(names) do
      record[name] = (select(i, ...))
    end
    if map then
      return map(record, (select(#names + 1, ...)))
    end
    return record, (select(#names + 1, ...))
  elseif map then
    return map(...)
  end
  return ...
end

local function keep(loop, ...)
  local given, n = loop.given, select("#", ...)
  if n == 0 then
    loop:__close()
    return nil
  end
  for i = 1, n do
    given[i] = (select(i, ...))
  end
  given.n = n
  loop.now.batch = loop.now.batch + 1
  return shown(loop, ...)
end

local made_up = false

-- Is a file that deepc check comes to not here? Then the number of its rows is made up.
function core.rows_absent(op, path)
  local absent = core.absent(op, path)
  made_up = made_up or absent
  return absent
end

-- Makes the next epoch ready: its order, and the first batches on other threads.
local function make_ready(loop)
  local set, options = loop.set, loop.options
  local now = {
    epoch = options.epoch or set.epoch + 1, batch = 0, rows = options.draws or #set, size = options.size,
    shuffle = options.shuffle and true or false, seed = options.seed or core.seed(), last = options.last or "drop",
  }
  now.batch = leave_out(set, now)
  local order, n = order_of(set, options, now)
  core.agree_on_batches(loop.places, now, order)
  if core.checking() then
    n = math.min(n, now.size) -- one is as good as all
  end
  local parts = {}
  for i, part in ipairs(set._parts) do
    parts[i] = core.is_rows(part) and part._source or part
  end
  loop.whole = (now.last == "drop" and n or n + now.size - 1) // now.size
  loop.count = math.max(loop.whole - now.batch, 0)
  loop.batches = core.batches(parts, order, n, now.size, now.last, now.batch, loop.place, loop.places)
  loop.now, loop.turn, loop.fresh, loop.over = now, set._turn, true, false
end

-- The epoch that is ready is what the set is in from now on.
local function begin(loop)
  local set, now = loop.set, loop.now
  set.epoch, set._turn = now.epoch, set._turn + 1
  set._loop, set._last, set._restored = loop, now, nil
  loop.fresh = false
end

function Loop:__call(...)
  give_back(self)
  if core.begins(...) and not self.fresh or self.fresh and is_stale(self) then
    self:__close()
    make_ready(self)
  end
  if self.fresh then
    begin(self)
  end
  return keep(self, core.batch_next(self.batches))
end

---Iterates over batches, each with a value for every tensor of the set, on loan until the next batch, which is
---gathered meanwhile; rows of files are read and decoded on other threads. Shuffled orders depend on the seed and on
---the epoch: how often one was begun, or the option. Where the rows are no whole number of batches, `last`
---says what becomes of the rest: "drop" leaves it out, "keep" makes a smaller batch of it, "pad" fills it up with
---zeros and gives a mask behind the values, f32[size], with 1 for rows that are there and 0 for those that are not.
---"drop" with fewer rows than one batch is an error, since nothing would be left. `#` of what is returned first is
---the number of batches. Each `for` over that is an epoch of its own, so it may be made before the loop over epochs.
---
---    for x, y in set:batches { size = 64, shuffle = true, last = "drop" } do print(x, y) end
---    for x, y, mask in set:batches { size = 64, last = "pad" } do print(x, y, mask) end
---    for x in set:batches { size = 65, balance = dc.iota(130) % 2, draws = 130 } do print(x) end
---    for x, y in set:batches { size = 65, map = function(x, y) return x:cast "f32" / 255, y end } do print(x, y) end
---
---`weights`, a number for each row, draws rows with these probabilities, `draws` of them (as many as there are),
---again and again or with `replacement = false` once each (torch.utils.data.WeightedRandomSampler); `balance`,
---labels for the rows, draws each label as often. `group`, rows of several lengths, puts rows of about one length
---together. `map` is called with the values of each batch, and gives those that the loop gets.
---
---Ranks along an axis of the mesh, `over`, share each batch: `size` is that of the whole one, of which each gets an
---equal part, the first rank the first rows. It is "data" where the mesh has such an axis; with `over = false` each
---rank gets whole batches. Ranks that differ along other axes get the same rows. All of them ask for the batches
---together, with the same options.
---
---Errors: DC0101 for options, DC0107 for a batch that is used once the next one is there, DC0313 where ranks cannot
---share a batch equally.
---@param options table size, shuffle, seed, epoch, last, weights, balance, draws, replacement, group, map, over
---@return fun(): deepc.Tensor?, deepc.Tensor?, deepc.Tensor?
function Set:batches(options)
  check_options(self, options)
  local place, places, over = core.share_of_batches(options)
  local n, size = options.draws or #self, options.size
  if n % size ~= 0 and not options.last and not made_up then
    core.fail("ARG", "batches", ("%d rows are no whole number of batches of %d"):format(n, size),
      'last = "drop" leaves the rest out, "keep" makes a smaller batch of it, "pad" fills it up')
  elseif n > 0 and n < size and options.last == "drop" then -- a loop that nothing goes through looks like training
    core.fail("ARG", "batches",
      ('%d rows are less than a batch of %d, and last = "drop" leaves them out'):format(n, size),
      'a smaller size; last = "keep" makes a smaller batch of them, "pad" fills one up')
  end
  if options.last == "keep" and n % size % places ~= 0 then
    core.fail("SHARDING", "batches", ("%d rows leave a last batch of %d: %d ranks along '%s' cannot share it equally")
      :format(n, n % size, places, over), 'last = "drop" leaves it out, "pad" fills it up')
  end
  local own = {}
  for key, value in pairs(options) do
    own[key] = value
  end
  local loop = setmetatable({ set = self, options = own, map = own.map, given = { n = 0 }, place = place,
    places = places }, Loop)
  make_ready(loop)
  core.batch_sizes[loop] = size -- for dc.progress
  return loop, nil, nil, loop
end

-- Some of its rows, as a set of its own.
local function subset(set, order)
  local other = new_set(set._parts, set._names)
  other._rows, other._count = order, core.order_count(order)
  return other
end

---Some of its rows, as a set: positions from 1, in this order (torch.utils.data.Subset). Nothing is copied.
---
---    set:rows { 1, 3, 5 }
---
---Errors: DC0101 for what is no row.
---@param list integer[]|deepc.Tensor numbers from 1
---@return deepc.data.Set
function Set:rows(list)
  check_self("rows", self, "list")
  list = core.kind(list) == "tensor" and list:totable() or list
  if type(list) ~= "table" then
    core.fail("ARG", "rows", "a list of rows is needed, not " .. core.describe(list))
  end
  for _, i in ipairs(list) do
    if math.type(i) ~= "integer" or i < 1 or i > #self then
      core.fail("ARG", "rows", ("row %s of %d rows"):format(core.shown(i), #self))
    end
  end
  if not self._rows then
    return subset(self, core.order_list(list))
  end
  local parts = {}
  for k, i in ipairs(list) do
    parts[k] = core.order_row(self._rows, i)
  end
  return subset(self, core.order_list(parts))
end

-- Sizes of parts: whole numbers, or shares of all rows, of which what is left over goes to the first ones.
local function sizes_of(n, sizes)
  local total, shares = 0, false
  if type(sizes) ~= "table" or #sizes == 0 then
    core.fail("ARG", "random_split", "sizes are a list, not " .. core.describe(sizes), "{ 0.8, 0.2 }, or { 800, 200 }")
  end
  for _, v in ipairs(sizes) do
    if type(v) ~= "number" or v < 0 then
      core.fail("ARG", "random_split", ("a size is a number from 0 on, not %s"):format(core.shown(v)))
    end
    shares = shares or math.type(v) == "float"
    total = total + v
  end
  if shares and math.abs(total - 1) > 1e-6 or not shares and total ~= n then
    core.fail("ARG", "random_split", shares and ("shares are %s together, not 1"):format(core.number("%.6g", total))
      or ("sizes are %d together, of %d rows"):format(total, n))
  end
  local list, rest = {}, n
  for i, v in ipairs(sizes) do
    list[i] = shares and math.floor(v * n + 1e-9) or v
    rest = rest - list[i]
  end
  for i = 1, rest do
    list[(i - 1) % #list + 1] = list[(i - 1) % #list + 1] + 1
  end
  return list
end

local function check_seed(op, options)
  core.options(op, options, "seed")
  check_integer(op, options or {}, "seed")
  return options and options.seed or core.seed()
end

---Sets of rows drawn at random, each row in one of them (torch.utils.data.random_split): numbers of rows, or shares of
---all. Which rows depends on the seed alone.
---
---    local train, valid = set:random_split({ 0.8, 0.2 }, { seed = 1 })
---
---Errors: DC0101 where the sizes are not all rows together.
---@param sizes number[]
---@param options? { seed?: integer } the context's seed
---@return deepc.data.Set ...
function Set:random_split(sizes, options)
  check_self("random_split", self, "sizes")
  local list = sizes_of(#self, sizes)
  local order, sets, first = core.order(#self, check_seed("random_split", options), 0, self._rows), {}, 0
  for i, n in ipairs(list) do
    sets[i] = subset(self, core.order_part(order, #self, first, n))
    first = first + n
  end
  return table.unpack(sets)
end

---Iterates over k ways to leave a part of the rows out (sklearn.model_selection.KFold): a number from 1 to k, the
---set to train on, the set to test with. Each row is in one of the sets to test with. Which rows depends on the seed
---alone.
---
---    for i, train, test in set:k_fold(5, { seed = 1 }) do print(i, #train, #test) end
---
---Errors: DC0101 where k is not from 2 to the number of rows.
---@param k integer
---@param options? { seed?: integer } the context's seed
---@return fun(): integer?, deepc.data.Set?, deepc.data.Set?
function Set:k_fold(k, options)
  check_self("k_fold", self, "k")
  local n = #self
  if math.type(k) ~= "integer" or k < 2 or k > n then
    core.fail("ARG", "k_fold", ("k is an integer from 2 to the %d rows, not %s"):format(n, core.shown(k)))
  end
  local order, i = core.order(n, check_seed("k_fold", options), 0, self._rows), 0
  return function(...)
    i = core.begins(...) and 1 or i + 1
    if i > k then
      return nil
    end
    local first, behind = (i - 1) * n // k, i * n // k
    local before = core.order_part(order, n, 0, first)
    return i, subset(self, core.order_joined(before, core.order_part(order, n, behind, n - behind))),
      subset(self, core.order_part(order, n, first, behind - first))
  end
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
  self._loop, self._last, self._turn = nil, nil, self._turn + 1
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
