-- The wire format of protocol buffers, and the records of event files: a length, its CRC, an Event, its CRC
-- (tensorflow/core/util/event.proto, framework/summary.proto, lib/io/record_writer.h).

local _, core = ...

local wire = {}
core.wire = wire

local function varint(n)
  local bytes = {}
  repeat
    local low = n & 0x7f
    n = n >> 7
    bytes[#bytes + 1] = string.char(n ~= 0 and low | 0x80 or low)
  until n == 0
  return table.concat(bytes)
end

local function field(number, kind, text)
  return varint(number << 3 | kind) .. text
end

function wire.int(number, n)
  return field(number, 0, varint(n))
end

function wire.bytes(number, text)
  return field(number, 2, varint(#text) .. text)
end

function wire.double(number, x)
  return field(number, 1, string.pack("<d", x))
end

function wire.float(number, x)
  return field(number, 5, string.pack("<f", x))
end

function wire.doubles(number, list)
  local parts = {}
  for i, x in ipairs(list) do
    parts[i] = string.pack("<d", x)
  end
  return wire.bytes(number, table.concat(parts))
end

-- An entry of a map from texts.
function wire.entry(number, key, value)
  return wire.bytes(number, wire.bytes(1, key) .. wire.bytes(2, value))
end

local function masked(text)
  local c = core.crc32c(text)
  return string.pack("<I4", ((c >> 15 | c << 17) + 0xa282ead8) & 0xffffffff)
end

function wire.record(text)
  local length = string.pack("<I8", #text)
  return length .. masked(length) .. text .. masked(text)
end

return wire
