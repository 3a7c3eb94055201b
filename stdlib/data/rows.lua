-- Rows of data sets that do not lie in a tensor.

local data = require "deepc.data.set"
local dc = require "deepc"
local _, core = ...

---Rows of an array in a file, which need not fit into memory: read for each batch, on other threads (numpy.memmap).
---The file is an .npy file; a .safetensors file, with the `name` of a tensor; or bytes, with their `type` from byte
---`at` on.
---
---    local x = data.rows "x.npy"
---    local x = data.rows("set.safetensors", { name = "x" })
---    local x = data.rows("set.bin", { type = "u8[60000, 28, 28]", at = 16 })
---
---Errors: DC0801 where it cannot be read, DC0802 where it is damaged.
---@param path string
---@param options? { name?: string, type?: deepc.Type, at?: integer }
---@return deepc.data.Rows
function data.rows(path, options)
  if type(path) ~= "string" then
    core.fail("ARG", "rows", "a path is needed, not " .. core.describe(path))
  end
  core.options("rows", options, "name", "type", "at")
  options = options or {}
  core.check_integer("rows", options, "at")
  local source
  if options.type ~= nil then
    source = core.rows_raw(path, options.type, options.at or 0)
  elseif options.name ~= nil or path:find "%.safetensors$" then
    if type(options.name) ~= "string" then
      core.fail("ARG", "rows", "name = ... says which tensor of the file")
    end
    source = core.rows_safetensors(path, options.name)
  else
    source = core.rows_npy(path)
  end
  return core.new_rows(source)
end

local function check_bounds(bounds)
  if bounds == nil then
    return {}
  end
  local list, last = math.type(bounds) == "integer" and { bounds } or bounds, 0
  if type(list) ~= "table" or #list == 0 then
    core.fail("ARG", "ragged", "to is a length or a list of lengths, not " .. core.describe(bounds))
  end
  for _, n in ipairs(list) do
    if math.type(n) ~= "integer" or n <= last then
      core.fail("ARG", "ragged", ("to is a list of growing lengths, %s is not above %d"):format(core.shown(n), last))
    end
    last = n
  end
  return list
end

-- Values of lists of lists one behind the other, as a tensor.
local function joined(list, dtype)
  local values, lengths = {}, {}
  for i, row in ipairs(list) do
    if type(row) ~= "table" then
      core.fail("ARG", "ragged", ("row %d: a table is needed, not %s"):format(i, core.describe(row)))
    end
    lengths[i] = #row
    table.move(row, 1, #row, #values + 1, values)
  end
  if #values == 0 then
    return dc.zeros(dtype .. "[0]"), lengths
  end
  return dc.tensor(values, dtype), lengths
end

-- Of a list of tensors.
local function concatenated(list)
  local lengths, some = {}, {}
  for i, row in ipairs(list) do
    if core.kind(row) ~= "tensor" or #row.shape == 0 then
      core.fail("ARG", "ragged", ("row %d: a tensor with an axis is needed, not %s"):format(i, core.describe(row)))
    end
    lengths[i] = #row
    if #row > 0 or #some == 0 and i == #list then
      some[#some + 1] = row
    end
  end
  return #some == 1 and some[1] or dc.concat(some, 1), lengths
end

---Rows of several lengths, for a set: a list of tensors, or of tables of numbers, whose first axis differs; or their
---`values` one behind the other and the `lengths`. A batch of them is as long as its longest row, or the next of the
---lengths `to`, filled up with `pad` (torch.nn.utils.rnn.pad_sequence): an argument such as i32[b, t <= 512].
---`:lengths()` are the lengths, for the set. `group = rows` of set:batches puts rows of about one length into a
---batch.
---
---    data.ragged { { 7, 2, 1 }, { 4 }, { 5, 5 } }
---    data.ragged({ { 7, 2, 1 }, { 4 } }, { dtype = "i32", pad = -1, to = { 4, 8 } })
---    data.ragged { values = dc.iota(6), lengths = { 3, 1, 2 } }
---
---Errors: DC0301 where lengths and values do not agree, DC0101.
---@param list table
---@param options? { dtype?: string, pad?: number, to?: integer|integer[] } i32 for tables of integers; 0; the longest
---@return deepc.data.Rows
function data.ragged(list, options)
  core.options("ragged", options, "dtype", "pad", "to")
  options = options or {}
  if type(list) ~= "table" or #list == 0 and not list.values then
    core.fail("ARG", "ragged", "a list of rows is needed, not " .. core.describe(list))
  end
  local bounds = check_bounds(options.to)
  local values, lengths
  if list.values then
    values, lengths = list.values, list.lengths
    if core.kind(values) ~= "tensor" or #values.shape == 0 then
      core.fail("ARG", "ragged", "values: a tensor with an axis is needed, not " .. core.describe(values))
    end
    lengths = core.kind(lengths) == "tensor" and lengths:totable() or lengths
    if type(lengths) ~= "table" then
      core.fail("ARG", "ragged", "lengths: a list is needed, not " .. core.describe(lengths))
    end
  elseif core.kind(list[1]) then
    values, lengths = concatenated(list)
  else
    local dtype = options.dtype
    if not dtype then
      local first = list[1][1] or list[#list][1]
      dtype = math.type(first) == "float" and "f32" or "i32"
    end
    values, lengths = joined(list, dtype)
  end
  local total = 0
  for i, n in ipairs(lengths) do
    if math.type(n) ~= "integer" or n < 0 then
      core.fail("ARG", "ragged", ("length %d is %s"):format(i, core.shown(n)))
    elseif bounds[#bounds] and n > bounds[#bounds] then
      core.fail("ARG", "ragged", ("row %d has %d places, the largest length of to is %d"):format(i, n, bounds[#bounds]))
    end
    total = total + n
  end
  if total ~= #values then
    core.fail("DIMS", "ragged", ("lengths are %d together, values %d"):format(total, #values))
  elseif #values.shape > 7 then
    core.fail("DIMS", "ragged", ("values have %d axes, 7 are the most"):format(#values.shape))
  end
  local rows = core.new_rows(core.rows_ragged(values, lengths, options.pad or 0, bounds))
  rows._lengths = lengths
  return rows
end

local Rows = core.rows_class

---The lengths of rows that data.ragged has made, i32; of sounds how many frames each file has, at most those of a
---row: what is behind them is silence. Of sounds the header of each file is read, once.
---
---    data.ragged({ { 1, 2 }, { 3 } }):lengths()
---
---Errors: DC0101 for rows of one length; those of data.read_wav.
---@return deepc.Tensor
function Rows:lengths()
  local lengths = core.is_rows(self) and (rawget(self, "_lengths") or core.rows_lengths(self._source))
  if not lengths then
    core.fail("ARG", "lengths", "rows of several lengths are needed, which data.ragged or data.sounds makes")
  end
  self._lengths = lengths
  local t = #lengths > 0 and dc.tensor(lengths, "i32") or dc.zeros "i32[0]"
  return t
end

core.entries(Rows)
