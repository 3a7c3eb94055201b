-- Event files for TensorBoard: records of a length, its CRC, an Event in the wire format of protocol buffers, its CRC
-- (tensorflow/core/util/event.proto, framework/summary.proto, lib/io/record_writer.h).

local train = require "deepc.train.class"
local _, core = ...
require "deepc.train.png"

local png = core.png

-- ---- the wire format ----

local function varint(n)
  local bytes = {}
  repeat
    local low = n & 0x7f
    n = n >> 7
    bytes[#bytes + 1] = string.char(n ~= 0 and low | 0x80 or low)
  until n == 0
  return table.concat(bytes)
end

local function field(number, wire, text)
  return varint(number << 3 | wire) .. text
end

local function int(number, n)
  return field(number, 0, varint(n))
end

local function bytes(number, text)
  return field(number, 2, varint(#text) .. text)
end

local function double(number, x)
  return field(number, 1, string.pack("<d", x))
end

local function float(number, x)
  return field(number, 5, string.pack("<f", x))
end

local function doubles(number, list)
  local parts = {}
  for i, x in ipairs(list) do
    parts[i] = string.pack("<d", x)
  end
  return bytes(number, table.concat(parts))
end

local function masked(text)
  local c = png.crc32c(text)
  return string.pack("<I4", ((c >> 15 | c << 17) + 0xa282ead8) & 0xffffffff)
end

local function record(text)
  local length = string.pack("<I8", #text)
  return length .. masked(length) .. text .. masked(text)
end

-- ---- the writer ----

---Writes event files that TensorBoard reads (as PyTorch's SummaryWriter). What is written is kept until :flush,
---:close, or 64 events.
---@class deepc.train.Events
---@field path string of the file
local Events = {}

local meta = { __name = "train.Events", __index = Events }

local opened = 0

local function now(self)
  return self.started + core.clock() - self.clock
end

local function add(self, body)
  self.waiting[#self.waiting + 1] = record(double(1, now(self)) .. body)
  if #self.waiting >= 64 then
    self:flush()
  end
end

---A writer of events into a folder, which is made if it is not there. Each writer makes a file of its own, which
---TensorBoard reads together with the others there. Where training goes on from a step, `purge_step` hides what earlier
---files have from there on.
---
---    local events = train.events(os.tmpname() .. ".events")
---    events:scalar("loss", 0.5, 1)
---    events:close()
---
---Errors: DC0801 where the folder or the file cannot be written.
---@param folder string
---@param options? { purge_step?: integer }
---@return deepc.train.Events
function train.events(folder, options)
  local op = "train.events"
  core.refuse_tracing(op)
  core.options(op, options, "purge_step")
  if type(folder) ~= "string" then
    core.fail("ARG", op, ("the name of a folder is needed, not %s"):format(core.describe(folder)))
  end
  local purge = options and options.purge_step
  if purge ~= nil and math.type(purge) ~= "integer" then
    core.fail("ARG", op, ("purge_step is an integer, not %s"):format(core.shown(purge)))
  end
  core.make_folder(op, folder)
  opened = opened + 1
  local self = setmetatable({ started = os.time() + 0.0, clock = core.clock(), waiting = {} }, meta)
  local number = opened
  repeat -- a file of its own, also beside those of other runs within this second
    self.path = ("%s/events.out.tfevents.%010d.deepc.%d"):format(folder, math.tointeger(self.started), number)
    number = number + 1
  until not core.file_exists(op, self.path)
  add(self, bytes(3, "brain.Event:2"))
  if purge then
    add(self, int(2, purge) .. bytes(7, int(1, 1))) -- a session that starts
  end
  self:flush()
  return self
end

local function check(op, self, tag, step)
  if getmetatable(self) ~= meta then
    core.fail("ARG", op, "events are needed, not " .. core.describe(self), ("with a colon: events:%s(...)"):format(op))
  elseif self.closed then
    core.fail("ARG", op, "the events were closed")
  elseif tag ~= nil and type(tag) ~= "string" then
    core.fail("ARG", op, ("a tag is needed, not %s"):format(core.describe(tag)),
      ('events:%s("loss", x, step)'):format(op))
  elseif step ~= nil and math.type(step) ~= "integer" then
    core.fail("ARG", op, ("step is an integer, not %s"):format(core.shown(step)))
  end
end

local function summary(self, step, tag, body)
  add(self, int(2, step or 0) .. bytes(5, bytes(1, bytes(1, tag) .. body)))
end

---A number at a step.
---
---    events:scalar("loss", loss, step)
---
---Errors: DC0101 for what is no number.
---@param tag string
---@param value number|deepc.Tensor
---@param step integer
function Events:scalar(tag, value, step)
  check("scalar", self, tag, step)
  if core.kind(value) then
    value = value:item()
  end
  if type(value) ~= "number" then
    core.fail("ARG", "scalar", ("a number is needed, not %s"):format(core.describe(value)))
  end
  summary(self, step, tag, float(2, value))
end

local function flat_numbers(op, x)
  if core.kind(x) then
    x = x:reshape(-1):totable()
  elseif type(x) ~= "table" then
    core.fail("ARG", op, ("a tensor or a list of numbers is needed, not %s"):format(core.describe(x)))
  end
  return x
end

---How numbers are distributed: weights or gradients at a step, in `bins` equal intervals.
---
---    events:histogram("weight", net.weight, step)
---
---Errors: DC0101 for what is no tensor and no list.
---@param tag string
---@param values deepc.Tensor|number[]
---@param step integer
---@param options? { bins?: integer } 64
function Events:histogram(tag, values, step, options)
  local op = "histogram"
  check(op, self, tag, step)
  core.options(op, options, "bins")
  local bins = options and options.bins or 64
  core.check_size(op, "bins", bins)
  local list, low, high, sum, squares, n = flat_numbers(op, values), math.huge, -math.huge, 0.0, 0.0, 0
  for _, x in ipairs(list) do
    if x == x and x > -math.huge and x < math.huge then
      low, high, sum, squares, n = math.min(low, x), math.max(high, x), sum + x, squares + x * x, n + 1
    end
  end
  if n == 0 then
    low, high = 0, 0
  end
  local width = high > low and (high - low) / bins or 1
  local limits, counts = {}, {}
  for i = 1, bins do
    limits[i], counts[i] = low + width * i, 0
  end
  limits[bins] = math.max(limits[bins], high)
  for _, x in ipairs(list) do
    if x >= low and x <= high and n > 0 then
      local i = math.min(math.floor((x - low) / width) + 1, bins)
      counts[i] = counts[i] + 1
    end
  end
  summary(self, step, tag, bytes(5, double(1, low) .. double(2, high) .. double(3, n) .. double(4, sum)
    .. double(5, squares) .. doubles(6, limits) .. doubles(7, counts)))
end

-- Rows of bytes of an image [h, w], [channels, h, w], or with the channels last.
local function pixels(op, image, layout)
  local x, shape = image, image.shape
  if #shape == 2 then
    x = x:reshape(shape[1], shape[2], 1)
  elseif #shape == 3 and layout == "CHW" then
    x = x:permute(2, 3, 1)
  end
  shape = x.shape
  local channels = shape[3]
  if #shape ~= 3 or channels ~= 1 and channels ~= 3 and channels ~= 4 then
    core.fail("DIMS", op, ("the image is %s; [h, w] or [1, 3 or 4 channels, h, w] is needed"):format(
      core.describe(image)), 'layout = "HWC" where channels are the last axis', "image", image)
  end
  if x.dtype:match "^b?f%d" then
    x = (x:cast "f32" * 255 + 0.5):floor():clamp(0, 255)
  end
  local rows = {}
  for i, row in ipairs(x:cast("u8"):reshape(shape[1], shape[2] * channels):totable()) do
    local parts = {}
    for k = 1, #row, 128 do
      parts[#parts + 1] = string.char(table.unpack(row, k, math.min(k + 127, #row)))
    end
    rows[i] = table.concat(parts)
  end
  return rows, shape[2], channels
end

local layouts = { CHW = true, HWC = true }

---An image: u8, or floats from 0 to 1, [h, w] or [channels, h, w].
---
---    events:image("input", dc.rand "f32[3, 8, 8]", step)
---
---Errors: DC0301 for other shapes, DC0101 for options.
---@param tag string
---@param image deepc.Tensor
---@param step integer
---@param options? { layout?: "CHW"|"HWC" }
function Events:image(tag, image, step, options)
  local op = "image"
  check(op, self, tag, step)
  core.options(op, options, "layout")
  local layout = options and options.layout or "CHW"
  if not layouts[layout] then
    core.fail("ARG", op, ('layout is "CHW" or "HWC", not %s'):format(core.shown(layout)))
  elseif not core.kind(image) then
    core.fail("ARG", op, ("an image is needed, a tensor, not %s"):format(core.describe(image)))
  end
  local rows, width, channels = pixels(op, image, layout)
  summary(self, step, tag, bytes(4, int(1, #rows) .. int(2, width) .. int(3, channels)
    .. bytes(4, png.encode(rows, width, channels))))
end

---A text, which TensorBoard shows as Markdown.
---
---    events:text("settings", "lr = 1e-3", 0)
---
---Errors: DC0101 for what is no text.
---@param tag string
---@param text string
---@param step integer
function Events:text(tag, text, step)
  check("text", self, tag, step)
  if type(text) ~= "string" then
    core.fail("ARG", "text", ("a text is needed, not %s"):format(core.describe(text)))
  end
  local tensor = int(1, 7) .. bytes(2, bytes(2, int(1, 1))) .. bytes(8, text) -- DT_STRING[1]
  summary(self, step, tag, bytes(9, bytes(1, bytes(1, "text"))) .. bytes(8, tensor))
end

---Writes what is kept to the file.
---
---    events:flush()
---
---Errors: DC0801 where it cannot be written.
function Events:flush()
  check("flush", self)
  if #self.waiting > 0 then
    core.append_file("train.events", self.path, -1, table.concat(self.waiting))
    self.waiting = {}
  end
end

---Writes what is kept, and ends.
---
---    events:close()
function Events:close()
  check("close", self)
  self:flush()
  self.closed = true
end

meta.__close = function(self)
  if not self.closed then
    self:close()
  end
end

core.entries(Events)
