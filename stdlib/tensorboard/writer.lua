-- The writer of event files: what is logged at a step, as records, kept for a while and appended.

local dc = require "deepc"
local _, core = ...
require "deepc.operands"
require "deepc.pictures"
require "deepc.ending"
require "deepc.wall"
local wire = require "deepc.tensorboard.wire"

local int, bytes, double, float, doubles = wire.int, wire.bytes, wire.double, wire.float, wire.doubles

---Files for TensorBoard (`pip install tensorboard; tensorboard --logdir runs`), as PyTorch's SummaryWriter writes them.
---
---    local tensorboard = require "deepc.tensorboard"
---    local log = tensorboard.writer(os.tmpname() .. ".run")
---    log:scalar("loss", 0.5, 1)
---    log:close()
---@class deepc.tensorboard
local tensorboard = {}

---Writes what TensorBoard shows. Events are kept until there are 64 of them, for 10 seconds, and until :flush or
---:close; the end of the script writes them, too, but not in a sandbox, which has to have a clock. Of several ranks the
---first one writes; the others do nothing, and may call it just the same.
---@class deepc.tensorboard.Writer
---@field folder string
---@field path string? of the file; nil where another rank writes
local Writer = {}

local meta = { __name = "tensorboard.Writer", __index = Writer }

local MOST, SECONDS = 64, 10 -- of events that wait

local opened = 0

-- Fractions of seconds from a clock that goes on by itself, seconds from that of the wall, which may be set.
local function now(self)
  local at, wall = self.started + core.clock() - self.clock, core.wall_time("tensorboard", "an event")
  if math.abs(wall - at) > 2 then
    self.started, self.clock = wall + 0.0, core.clock()
    at = self.started
  end
  return at
end

local function write(self)
  if #self.waiting > 0 then
    core.append_file("tensorboard", self.path, -1, table.concat(self.waiting))
    self.waiting = {} -- where it cannot be written they wait for the next attempt
  end
end

local function finish(self)
  if not self.closed then
    self.closed = true
    write(self)
  end
end

local function add(self, body)
  if not self.path then
    return
  end
  local waiting = self.waiting
  self.since = #waiting > 0 and self.since or core.clock()
  waiting[#waiting + 1] = wire.record(double(1, now(self)) .. body)
  if #waiting >= MOST or core.clock() - self.since >= SECONDS then
    write(self)
  end
end

-- With the folders above it: runs/1. Of these a sandbox may write some alone.
local function make_folders(op, folder)
  for at in folder:gmatch "()/" do
    local above = folder:sub(1, at - 1)
    if above ~= "" and above:sub(-1) ~= "/" and pcall(core.file_exists, op, above, "write") then
      core.make_folder(op, above)
    end
  end
  core.make_folder(op, folder)
end

-- A file of its own, also beside those of other runs within this second.
local function new_path(op, folder, started)
  local path
  repeat
    opened = opened + 1
    path = ("%s/events.out.tfevents.%010d.deepc.%d"):format(folder, math.tointeger(started), opened)
  until not core.file_exists(op, path, "write")
  return path
end

local function new(op, folder, purge)
  local started = core.wall_time(op, "every event") + 0.0
  local self = setmetatable({ folder = folder, started = started, clock = core.clock(), waiting = {}, told = {},
    below = {}, purge = purge }, meta)
  core.at_end(self, finish)
  if core.speaks() then
    make_folders(op, folder)
    self.path = new_path(op, folder, self.started)
    add(self, bytes(3, "brain.Event:2"))
    if purge then
      add(self, int(2, purge) .. bytes(7, int(1, 1))) -- a session that starts
    end
    write(self)
  end
  return self
end

---A writer into a folder, which is a run for TensorBoard and is made if it is not there. Each writer makes a file of
---its own, which TensorBoard reads together with the others there. Where training goes on from a step, `purge_step`
---hides what earlier files have from there on.
---
---    local log = tensorboard.writer(os.tmpname() .. ".run")
---    log:scalar("loss", 0.5, 1)
---    log:close()
---
---Errors: DC0801 where the folder or the file cannot be written.
---@param folder string
---@param options? { purge_step?: integer }
---@return deepc.tensorboard.Writer
function tensorboard.writer(folder, options)
  local op = "tensorboard.writer"
  core.refuse_tracing(op)
  core.options(op, options, "purge_step")
  if type(folder) ~= "string" or folder == "" then
    core.fail("ARG", op, ("the name of a folder is needed, not %s"):format(core.describe(folder)))
  end
  local purge = options and options.purge_step
  if purge ~= nil and math.type(purge) ~= "integer" then
    core.fail("ARG", op, ("purge_step is an integer, not %s"):format(core.shown(purge)))
  end
  return (new(op, folder, purge))
end

local function check(op, self, tag, step)
  if getmetatable(self) ~= meta then
    core.fail("ARG", op, "a writer is needed, not " .. core.describe(self), ("with a colon: log:%s(...)"):format(op))
  elseif self.closed then
    core.fail("ARG", op, "the writer is closed")
  elseif tag ~= false and (type(tag) ~= "string" or tag == "") then
    core.fail("ARG", op, ("a tag is needed, not %s"):format(tag == "" and "an empty text" or core.describe(tag)),
      ('log:%s("loss", x, step)'):format(op))
  elseif tag and not utf8.len(tag) then
    core.fail("ARG", op, "the tag is not UTF-8")
  elseif step ~= nil and math.type(step) ~= "integer" then
    core.fail("ARG", op, ("step is an integer, not %s"):format(core.shown(step)))
  end
  core.refuse_tracing(op)
end

local function summary(self, step, tag, body)
  add(self, int(2, step or 0) .. bytes(5, bytes(1, bytes(1, tag) .. body)))
end

-- Said once for each tag of an operation.
local function tell(self, op, tag, text)
  local key = op .. " " .. tag
  if not self.told[key] and self.path then
    self.told[key] = true
    core.note(("tensorboard: '%s': %s"):format(tag, text))
  end
end

local function number_of(op, value)
  if core.kind(value) then
    value = value:item()
  end
  if type(value) ~= "number" then
    core.fail("ARG", op, ("a number is needed, not %s"):format(core.describe(value)))
  end
  return value
end

---A number at a step.
---
---    log:scalar("loss", loss, step)
---
---Errors: DC0101 for what is no number.
---@param tag string
---@param value number|deepc.Tensor
---@param step integer
function Writer:scalar(tag, value, step)
  check("scalar", self, tag, step)
  summary(self, step, tag, float(2, number_of("scalar", value)))
end

-- The writer of a folder below this one.
local function writer_below(self, name)
  local w = self.below[name]
  if not w then
    w = new("scalars", self.folder .. "/" .. name, self.purge)
    self.below[name] = w
  end
  return w
end

---Numbers by name, as curves of one chart: each name is a run of its own, in a folder below this one, in which the tag
---has the number.
---
---    log:scalars("loss", { train = 0.5, test = 0.7 }, step)
---
---Errors: DC0101 for what is no number, and for names that are no names of folders.
---@param tag string
---@param values table<string, number|deepc.Tensor>
---@param step integer
function Writer:scalars(tag, values, step)
  local op = "scalars"
  check(op, self, tag, step)
  if type(values) ~= "table" then
    core.fail("ARG", op, "numbers by name are needed, not " .. core.describe(values),
      'log:scalars("loss", { train = a, test = b }, step)')
  end
  local names, numbers = {}, {}
  for name, value in pairs(values) do
    if type(name) ~= "string" or not name:find "^[%w_%-][%w_%-. ]*$" then
      core.fail("ARG", op, ("a name has letters, digits, '_', '-', '.' and blanks, unlike %s"):format(core.shown(name)))
    end
    names[#names + 1], numbers[name] = name, number_of(op, value)
  end
  table.sort(names)
  for _, name in ipairs(names) do
    summary(writer_below(self, name), step, tag, float(2, numbers[name]))
  end
end

local function values_of(op, x)
  if core.kind(x) then
    return x
  elseif type(x) ~= "table" then
    core.fail("ARG", op, ("a tensor or a list of numbers is needed, not %s"):format(core.describe(x)))
  end
  for i, v in ipairs(x) do
    if type(v) ~= "number" then
      core.fail("ARG", op, ("value %d of the list is %s, no number"):format(i, core.describe(v)))
    end
  end
  return dc.tensor(x, ("f64[%d]"):format(#x))
end

---How values are distributed: weights or gradients at a step, in `bins` equal intervals from the least to the largest.
---NaN and infinities are in none; how many there were is the number `tag/not_finite` at this step, and what is
---returned. A note tells it once for each tag.
---
---    log:histogram("weight", net.weight, step)
---
---Errors: DC0101 for what is no tensor and no list, DC0202 for complex numbers.
---@param tag string
---@param values deepc.Tensor|number[]
---@param step integer
---@param options? { bins?: integer } 64
---@return integer # how many values were not finite
function Writer:histogram(tag, values, step, options)
  local op = "histogram"
  check(op, self, tag, step)
  core.options(op, options, "bins")
  local bins = options and options.bins or 64
  core.check_size(op, "bins", bins)
  if bins > 65536 then
    core.fail("ARG", op, ("bins are at most 65536, not %d"):format(bins))
  end
  local s = core.statistics(op, values_of(op, values), bins)
  local width, limits = (s.high / 2 - s.low / 2) / bins * 2, {}
  for i = 1, bins do
    limits[i] = s.low + width * i
  end
  limits[bins] = math.max(s.high, limits[bins] < math.huge and limits[bins] or s.high)
  summary(self, step, tag, bytes(5, double(1, s.low) .. double(2, s.high) .. double(3, s.n) .. double(4, s.sum)
    .. double(5, s.squares) .. doubles(6, limits) .. doubles(7, s)))
  local strange = s.nan + s.above + s.below
  if strange > 0 then
    summary(self, step, tag .. "/not_finite", float(2, strange))
    tell(self, op, tag, ("NaN: %d, infinite: %d, of %d values; they are in no interval"):format(s.nan,
      s.above + s.below, s.n + strange))
  end
  return strange
end

---An image, or a batch of images as a grid: u8, bool, or floats of which 0 is black and 1 white. [h, w], [h, w, c] or
---[c, h, w] with 1, 3 or 4 channels, or a batch of these; `layout` says which axis is which where the shape does not.
---Floats outside of the range are cut off, with a note; a pixel of NaN is magenta, of an infinity red, of one below
---zero blue.
---
---    log:image("input", dc.rand "f32[8, 8, 3]", step)
---
---Errors: DC0301 for other shapes, DC0202 for other integers, DC0101 for options.
---@param tag string
---@param image deepc.Tensor
---@param step integer
---@param options? { layout?: "HW"|"HWC"|"CHW"|"NHW"|"NHWC"|"NCHW", range?: number[]|"auto", columns?: integer }
function Writer:image(tag, image, step, options)
  local op = "image"
  check(op, self, tag, step)
  core.options(op, options, "layout", "range", "columns")
  local range = options and options.range
  if core.kind(image) and range == nil and image.dtype:find "^[iu]" and image.dtype ~= "u8" then
    core.fail("DTYPE", op, ("pixels are u8, bool, or floats from 0 to 1, not %s"):format(image.dtype),
      ':cast "u8", or range = { low, high }', "image", image)
  end
  local p = core.picture_of(op, image, options, { 0, 1 })
  if range == nil and core.is_float(image.dtype) then
    local s = core.statistics(op, image, 0)
    if s.low < -0.01 or s.high > 1.01 then
      tell(self, op, tag, ('values are from %s to %s, of which 0 to 1 is shown; range = "auto" shows all'):format(
        core.number("%.4g", s.low), core.number("%.4g", s.high)))
    end
  end
  local size = { height = p.h, width = p.w, columns = core.grid_columns(op, p.n, options and options.columns),
    gap = p.n > 1 and 2 or 0, channels = p.c }
  local pixels, width, height, nan, above, below = core.paint(op, image, p, size)
  if nan + above + below > 0 then
    if p.c == 1 then -- those have colours
      size.channels = 3
      pixels = core.paint(op, image, p, size)
    end
    tell(self, op, tag, ("NaN: %d, infinite: %d of its values"):format(nan, above + below))
  end
  summary(self, step, tag, bytes(4, int(1, height) .. int(2, width) .. int(3, size.channels)
    .. bytes(4, core.png_encode(pixels, width, height, size.channels))))
end

---A text, which TensorBoard shows as Markdown.
---
---    log:text("settings", "lr = 1e-3", 0)
---
---Errors: DC0101 for what is no text.
---@param tag string
---@param text string
---@param step integer
function Writer:text(tag, text, step)
  check("text", self, tag, step)
  if type(text) ~= "string" then
    core.fail("ARG", "text", ("a text is needed, not %s"):format(core.describe(text)))
  elseif not utf8.len(text) then
    core.fail("ARG", "text", "the text is not UTF-8")
  end
  local tensor = int(1, 7) .. bytes(2, bytes(2, int(1, 1))) .. bytes(8, text) -- DT_STRING[1]
  summary(self, step, tag, bytes(9, bytes(1, bytes(1, "text"))) .. bytes(8, tensor))
end

---Writes what is kept to the file.
---
---    log:flush()
---
---Errors: DC0801 where it cannot be written.
function Writer:flush()
  check("flush", self, false)
  write(self)
  for _, w in pairs(self.below) do
    write(w)
  end
end

---Writes what is kept, and ends.
---
---    log:close()
function Writer:close()
  check("close", self, false)
  self:flush()
  self.closed = true
end

meta.__close = function(self)
  if not self.closed then
    self:close()
  end
end

-- In a sandbox nothing has a finalizer: what waits there is written by :flush and :close.
if pcall(setmetatable, {}, { __gc = function() end }) then
  meta.__gc = function(self)
    local ok, err = pcall(finish, self)
    if not ok then
      core.lost(err)
    end
  end
end

-- What the other files need.

core.tensorboard = { Writer = Writer, check = check, add = add, summary = summary, flush = write }

return tensorboard
