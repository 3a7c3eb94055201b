-- PNG images as text, without compression: a few rows for an event file.

local _, core = ...

local png = {}
core.png = png

-- CRC-32 with a reflected polynomial: 0xEDB88320 of PNG and zlib, 0x82F63B78 (Castagnoli) of event files.
local function crc_table(polynomial)
  local t = {}
  for i = 0, 255 do
    local c = i
    for _ = 1, 8 do
      c = c & 1 == 1 and (c >> 1) ~ polynomial or c >> 1
    end
    t[i] = c
  end
  return t
end

local function crc(t, text)
  local c = 0xffffffff
  for i = 1, #text, 4096 do
    local bytes = { text:byte(i, math.min(i + 4095, #text)) }
    for k = 1, #bytes do
      c = t[(c ~ bytes[k]) & 0xff] ~ (c >> 8)
    end
  end
  return c ~ 0xffffffff
end

local ieee, castagnoli = crc_table(0xEDB88320), crc_table(0x82F63B78)

function png.crc32c(text)
  return crc(castagnoli, text)
end

local function adler32(text)
  local a, b = 1, 0
  for i = 1, #text, 4096 do
    local bytes = { text:byte(i, math.min(i + 4095, #text)) }
    for k = 1, #bytes do
      a = a + bytes[k]
      b = b + a
    end
    a, b = a % 65521, b % 65521
  end
  return b << 16 | a
end

-- zlib's format (RFC 1950) of stored blocks (RFC 1951).
local function stored(text)
  local parts = { "\x78\x01" }
  for i = 1, math.max(#text, 1), 65535 do
    local block = text:sub(i, i + 65534)
    parts[#parts + 1] = string.pack("<BI2I2", i + 65535 > #text and 1 or 0, #block, ~#block & 0xffff)
    parts[#parts + 1] = block
  end
  parts[#parts + 1] = string.pack(">I4", adler32(text))
  return table.concat(parts)
end

local function chunk(kind, text)
  return string.pack(">I4", #text) .. kind .. text .. string.pack(">I4", crc(ieee, kind .. text))
end

local colour = { [1] = 0, [3] = 2, [4] = 6 }

-- rows: texts of width * channels bytes; channels are 1, 3 or 4.
function png.encode(rows, width, channels)
  local data = "\0" .. table.concat(rows, "\0")
  return "\x89PNG\r\n\x1a\n" .. chunk("IHDR", string.pack(">I4I4BBBBB", width, #rows, 8, colour[channels], 0, 0, 0))
    .. chunk("IDAT", stored(data)) .. chunk("IEND", "")
end

return png
