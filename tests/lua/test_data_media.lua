-- Images and sounds, read, written and decoded for batches.
local lu = require "luaunit"
local dc = require "deepc"
local data = require "deepc.data"
local check = require "tests.lua.check"

local fails = check.fails
local images, sounds = "tests/fuzz/corpus/image/", "tests/fuzz/corpus/wav/"

-- What tests/fuzz/corpus/image has: (7x + 13y + 50c) % m.
local function pixels(channels, m)
  local y, x, c = dc.iota("i32[7, 9, 4]", 1), dc.iota("i32[7, 9, 4]", 2), dc.iota("i32[7, 9, 4]", 3)
  return ((x * 7 + y * 13 + c * 50) % m)[{ {}, {}, { 1, channels } }]
end

local function same(name, want)
  local got = data.read_image(images .. name)
  lu.assertEquals(got.shape, want.shape, name)
  lu.assertTrue(got:cast "i32":eq(want):all():item(), name)
end

local has_jpeg = pcall(data.read_image, images .. "jpeg-l")

TestImages = {}

function TestImages:setUp()
  self.path = os.tmpname()
end

function TestImages:tearDown()
  os.remove(self.path)
  os.remove(self.path .. ".png")
  os.remove(self.path .. ".jpg")
end

function TestImages:test_every_kind_of_png()
  for bits, scale in pairs { 255, 85, [4] = 17, [8] = 1 } do
    same("grey" .. bits, pixels(1, 2 ^ bits // 1 | 0) * scale)
  end
  same("grey16", pixels(1, 256) * 257)
  same("greya8", pixels(2, 256))
  same("rgb8", pixels(3, 256))
  same("rgb8-interlaced", pixels(3, 256))
  same("grey2-interlaced", pixels(1, 4) * 85)
  same("rgba8", pixels(4, 256))
  same("rgb16", pixels(3, 256) * 257)
  same("rgba16", pixels(4, 256) * 257)
  local i = pixels(1, 16)
  same("palette4", dc.concat({ i * 16, 255 - i, i }, 3))
  same("palette8-alpha", dc.concat({ i * 16, 255 - i, i,
    dc.where(i:eq(0), 0, dc.where(i:eq(1), 128, dc.full("i32[7, 9, 1]", 255))) }, 3))
  local key = data.read_image(images .. "rgb8-key")
  lu.assertEquals(key[{ 1, 2 }]:totable(), { 7, 57, 107, 0 }) -- the transparent colour
  lu.assertEquals(key[{ 1, 1, 4 }]:item(), 255)
end

function TestImages:test_channels()
  lu.assertEquals(data.read_image(images .. "grey8", { channels = 3 })[{ 2, 3 }]:totable(), { 27, 27, 27 })
  lu.assertEquals(data.read_image(images .. "rgb8", { channels = 4 })[{ 1, 2 }]:totable(), { 7, 57, 107, 255 })
  local grey = data.read_image(images .. "rgb8", { channels = 1 })[{ 1, 2, 1 }]:item()
  lu.assertEquals(grey, (7 * 19595 + 57 * 38470 + 107 * 7471 + 32768) // 65536) -- ITU-R 601, as Pillow's "L"
  lu.assertEquals(data.read_image(images .. "rgb16", { channels = 4 }).dtype, "u8")
end

function TestImages:test_written()
  local x = pixels(3, 256):cast "u8"
  data.write_image(self.path .. ".png", x)
  lu.assertTrue(data.read_image(self.path .. ".png"):eq(x):all():item())
  local wide = dc.iota "u16[3, 5]" * 300
  data.write_image(self.path .. ".png", wide)
  lu.assertTrue(data.read_image(self.path .. ".png"):reshape(3, 5):eq(wide):all():item())
  fails("a name that ends in .png, .jpg or .jpeg is needed", data.write_image, self.path .. ".gif", x)
  fails("pixels are u8 or u16, not f32", data.write_image, self.path .. ".png", dc.zeros "f32[2, 2]")
  fails("an image is [height, width] or with 1 to 4 channels", data.write_image, self.path .. ".png", dc.zeros "u8[2]")
end

-- Four inks, as Pillow mixes them: its file, rows of two colours.
function TestImages:test_inks()
  if not has_jpeg then
    return lu.skip "libturbojpeg is not installed (Debian: libturbojpeg0)"
  end
  local x = data.read_image(images .. "cmyk.jpg")
  lu.assertEquals(x.shape, { 8, 8, 3 })
  check.close(x[{ 1, 1 }]:totable(), { 190, 49, 216 }, 2)
  check.close(x[{ 8, 8 }]:totable(), { 127, 127, 127 }, 2)
end

function TestImages:test_jpeg()
  if not has_jpeg then
    return lu.skip "libturbojpeg is not installed (Debian: libturbojpeg0)"
  end
  local x = (dc.iota("i32[32, 48, 3]", 2) * 4 + dc.iota("i32[32, 48, 3]", 3) * 20):cast "u8"
  data.write_image(self.path .. ".jpg", x, { quality = 95 })
  local y = data.read_image(self.path .. ".jpg")
  lu.assertEquals(y.shape, { 32, 48, 3 })
  lu.assertTrue((y:cast "i32" - x:cast "i32"):abs():max():item() <= 8)
  fails("or with 1 or 3 channels", data.write_image, self.path .. ".jpg", dc.zeros "u8[2, 2, 4]")
end

function TestImages:test_batches_of_files()
  local files = {}
  for i = 1, 20 do
    files[i] = images .. (i % 2 == 0 and "rgb8" or "grey8")
  end
  local rows = data.images(files, { channels = 3 })
  lu.assertEquals(rows.shape, { 20, 7, 9, 3 })
  local rgb, grey = pixels(3, 256):cast "u8", data.read_image(images .. "grey8", { channels = 3 })
  local seen = 0
  for x, n in data.set(rows, dc.iota(20)):batches { size = 6, shuffle = true, last = "keep" } do
    for i, number in ipairs(n:totable()) do
      lu.assertTrue(x[i]:eq(number % 2 == 1 and rgb or grey):all():item())
      seen = seen + 1
    end
  end
  lu.assertEquals(seen, 20)
  local small = data.images(files, { size = { 4, 4 }, fit = "crop", channels = 1 })
  lu.assertEquals(small.shape, { 20, 4, 4, 1 })
  lu.assertTrue(small:row(1):cast "f32":mean():item() > 20)
  fails("has 7 x 9 pixels, height and width are to be 8 x 8", function()
    return data.images(files, { size = { 8, 8 } }):row(1)
  end)
  files[7] = "/nonexistent/x.png"
  fails("/nonexistent/x.png: No such file", function()
    for _ in data.set(data.images(files, { channels = 3 })):batches { size = 5 } do end -- luacheck: ignore
  end)
end

function TestImages:test_resampled()
  local x = (dc.iota("i32[40, 60, 1]", 1) * 6):cast "u8" -- a ramp stays one
  data.write_image(self.path .. ".png", x)
  local half = data.images({ self.path .. ".png" }, { size = { 20, 30 }, fit = "stretch" }):row(1)
  local column = half[{ {}, 10, 1 }]:totable()
  for i = 2, 19 do
    lu.assertEquals(column[i], 12 * (i - 1) + 3)
  end
  local whole = data.images({ self.path .. ".png" }, { size = { 40, 40 }, fit = "crop" }):row(1)
  lu.assertTrue(whole:eq(x[{ {}, { 11, 50 } }]):all():item())
end

function TestImages:test_sheet()
  data.write_image(self.path .. ".png", dc.iota("i32[4, 6]", 2):cast "u8")
  local t = data.read_sheet(self.path .. ".png", { 2, 3 })
  lu.assertEquals(t:totable()[2], { { 3, 4, 5 }, { 3, 4, 5 } })
  lu.assertEquals(t.shape, { 4, 2, 3 })
  fails("no whole number of images of 3 x 3", data.read_sheet, self.path .. ".png", { 3, 3 })
end

TestSounds = {}
TestSounds.setUp, TestSounds.tearDown = TestImages.setUp, TestImages.tearDown

function TestSounds:test_read()
  local cases = {
    u8 = { 8000, { { 0 }, { 127 / 128 }, { -1 }, { -0.5 } } },
    i16 = { 44100, { { 0, 32767 / 32768 }, { -1, 1 / 32768 } } }, i24 = { 48000, { { 0.5 }, { 8388607 / 8388608 } } },
    ["i32-ext"] = { 16000, { { -1 }, { 0.5 } } }, f32 = { 16000, { { 0.5 }, { -2 } } }, f64 = { 16000, { { 0.25 } } },
  }
  for name, want in pairs(cases) do
    local x, rate = data.read_wav(sounds .. name)
    lu.assertEquals(rate, want[1], name)
    lu.assertEquals(x:totable(), want[2], name)
  end
end

-- A WAV file by hand: its format, what is in front of the samples, and these.
local function wav(o, bytes)
  local big = o.name == "RIFX"
  local order = big and ">" or "<"
  local size = (o.bits + 7) // 8
  local format = string.pack(order .. "I2I2I4I4I2I2", o.kind or 1, 1, 8000, 8000 * size, size, o.bits)
  local function chunk(name, body, length)
    return name .. string.pack(order .. "I4", length or #body) .. body
  end
  return (o.name or "RIFF") .. string.pack(order .. "I4", 0) .. "WAVE" .. (o.before or "") .. chunk("fmt ", format)
    .. chunk("data", bytes, o.length)
end

-- What libsndfile reads, too: fewer bits, streams of unknown length, large files, the other order, A-law and mu-law.
function TestSounds:test_forms()
  local function read(o, bytes)
    local f <close> = assert(io.open(self.path, "wb"))
    f:write(wav(o, bytes))
    f:close()
    return data.read_wav(self.path):reshape(-1):totable()
  end
  local two, want = string.pack("<i2i2", 0x7ff0, -0x8000), { 0x7ff0 / 0x8000, -1 }
  lu.assertEquals(read({ bits = 12 }, two), want)
  lu.assertEquals(read({ bits = 20 }, string.pack("<i3i3", 0x400000, -0x400000)), { 0.5, -0.5 })
  lu.assertEquals(read({ bits = 16, length = 0xffffffff }, two), want)
  lu.assertEquals(read({ bits = 16, length = 0x7ffff000 }, two .. "x"), want)
  fails("truncated: got 4 of 1000 bytes of samples", read, { bits = 16, length = 1000 }, two)
  local large = "ds64" .. string.pack("<I4I8I8I8I4", 28, 0, 4, 2, 0)
  lu.assertEquals(read({ name = "RF64", bits = 16, before = large, length = 0xffffffff }, two .. "more"), want)
  lu.assertEquals(read({ name = "RF64", bits = 16, length = 4 }, two), want)
  fails("the WAV file has no samples", read, { name = "RF64", bits = 16, before = "ds64" }, two)
  fails("bytes of samples", read, { name = "RF64", bits = 16, before = "ds64" ..
    string.pack("<I4I8I8I8I4", 28, 0, -1, 2, 0), length = 0xffffffff }, two)
  lu.assertEquals(read({ name = "RIFX", bits = 16 }, string.pack(">i2i2", 0x7ff0, -0x8000)), want)
  lu.assertEquals(read({ name = "RIFX", bits = 32, kind = 3 }, string.pack(">ff", 0.5, -2)), { 0.5, -2 })
  lu.assertEquals(read({ bits = 8, kind = 6 }, "\xd5\x55\xaa\x2a"), { 8 / 32768, -8 / 32768, 32256 / 32768,
    -32256 / 32768 })
  lu.assertEquals(read({ bits = 8, kind = 7 }, "\xff\x80\x00"), { 0, 32124 / 32768, -32124 / 32768 })
end

function TestSounds:test_written()
  local x = dc.rand("f32[100, 2]", { low = -1, high = 1, seed = 1 })
  for bits, step in pairs { [8] = 2 ^ -7, [16] = 2 ^ -15, [24] = 2 ^ -23, [32] = 2 ^ -23, f32 = 0, f64 = 0 } do
    data.write_wav(self.path, x, 22050, { bits = bits })
    local y, rate = data.read_wav(self.path)
    lu.assertEquals(rate, 22050)
    lu.assertTrue((y - x):abs():max():item() <= step, tostring(bits))
  end
  data.write_wav(self.path, dc.tensor { 2, -2, 0 }, 8000)
  lu.assertEquals(data.read_wav(self.path):totable(), { { 32767 / 32768 }, { -1 }, { 0 } })
  fails('bits are 8, 16, 24, 32, "f32" or "f64", not 12', data.write_wav, self.path, x, 8000, { bits = 12 })
  fails("samples are f32, not i32", data.write_wav, self.path, dc.iota(3), 8000)
end

function TestSounds:test_batches()
  local rows, rate = data.sounds({ sounds .. "f32", sounds .. "i32-ext", sounds .. "f32" }, { frames = 3 })
  lu.assertEquals(rate, 16000)
  for x in data.set(rows):batches { size = 3 } do
    lu.assertEquals(x:totable(), { { { 0.5 }, { -2 }, { 0 } }, { { -1 }, { 0.5 }, { 0 } }, { { 0.5 }, { -2 }, { 0 } } })
  end
  fails("has 1 channel at 8000 Hz, 1 at 16000 Hz are wanted", function()
    return data.sounds({ sounds .. "f32", sounds .. "u8" }):row(2)
  end)
end

function TestSounds:test_lengths()
  local n = { 5, 1, 9, 0, 7 }
  local paths = {}
  for i, frames in ipairs(n) do
    paths[i] = self.path .. i
    data.write_wav(paths[i], dc.full(("f32[%d, 2]"):format(frames), 0.5), 8000)
  end
  local rows = data.sounds(paths, { frames = 7 })
  lu.assertEquals(rows:lengths().dtype, "i32")
  lu.assertEquals(rows:lengths():totable(), { 5, 1, 7, 0, 7 })
  lu.assertEquals(data.sounds(paths):lengths():totable(), { 5, 1, 5, 0, 5 }) -- as long as the first
  for x, frames in data.set(rows, rows:lengths()):batches { size = 5, shuffle = true, seed = 1 } do
    lu.assertEquals(x:abs():gt(0):all(3):sum(2):totable(), frames:totable())
  end
  os.remove(paths[3])
  lu.assertEquals(rows:lengths():totable(), { 5, 1, 7, 0, 7 }) -- the files were read once
  lu.assertEquals(fails("No such file", function() return data.sounds(paths):lengths() end).code, "DC0801")
  for _, path in ipairs(paths) do
    os.remove(path)
  end
  fails("which data.ragged or data.sounds makes", function()
    return data.images({ images .. "rgb8" }):lengths()
  end)
end

-- tests/lua/sounds has what libsndfile 1.2 wrote of (37 t % 2000 - 1000 + 3 c) / 2^15, of
-- (99991 t % 200000 - 100000) / 2^23 and of sin(2 pi 440 t / 8000) / 2.
local missing = select(2, pcall(data.read_sound, "tests/lua/sounds/ramp16.flac"))
missing = type(missing) == "table" and missing.code == "DC0801" and tostring(missing) or nil

local function sound(name)
  return "tests/lua/sounds/" .. name
end

function TestSounds:test_wav_by_the_other_name()
  local x, rate = data.read_sound(sounds .. "i16")
  lu.assertEquals(rate, 44100)
  lu.assertEquals(x:totable(), { { 0, 32767 / 32768 }, { -1, 1 / 32768 } })
  lu.assertEquals(fails("not a WAV, FLAC or Ogg file", data.read_sound, images .. "rgb8").code, "DC0802")
  lu.assertEquals(fails("No such file", data.read_sound, "/nonexistent").code, "DC0801")
  fails("read_sound: a path is needed, not nil", data.read_sound)
end

function TestSounds:test_without_the_library()
  if not missing then
    return lu.skip "libsndfile is installed"
  end
  lu.assertStrContains(missing,
    "ramp16.flac: FLAC needs libsndfile (libsndfile.so.1; Debian: apt-get install libsndfile1)")
  lu.assertEquals(fails("tone.ogg: Ogg needs libsndfile", data.read_sound, sound "tone.ogg").code, "DC0801")
end

function TestSounds:test_flac_and_ogg()
  if missing then
    return lu.skip "libsndfile is not installed (Debian: libsndfile1)"
  end
  local x, rate = data.read_sound(sound "ramp16.flac")
  local t, c = dc.iota("f32[100, 2]", 1), dc.iota("f32[100, 2]", 2)
  lu.assertEquals({ rate, x.shape }, { 16000, { 100, 2 } })
  lu.assertTrue(x:eq(((t * 37) % 2000 - 1000 + c * 3) / 32768):all():item())
  x, rate = data.read_sound(sound "ramp24.flac")
  t = dc.iota("f64[50, 1]", 1)
  lu.assertEquals({ rate, x.shape }, { 48000, { 50, 1 } })
  lu.assertTrue(x:cast("f64"):eq(((t * 99991) % 200000 - 100000) / 8388608):all():item())
  x, rate = data.read_sound(sound "tone.ogg")
  lu.assertEquals({ rate, x.shape }, { 8000, { 1000, 1 } })
  local tone = (dc.iota "f32[1000]" * (2 * math.pi * 440 / 8000)):sin() / 2
  lu.assertTrue((x:reshape(1000) - tone):abs():max():item() < 0.05)
end

function TestSounds:test_flac_of_batches()
  if missing then
    return lu.skip "libsndfile is not installed (Debian: libsndfile1)"
  end
  local paths = {}
  for i = 1, 12 do
    paths[i] = i % 2 == 0 and sound "ramp16.flac" or self.path
  end
  data.write_wav(self.path, dc.full("f32[30, 2]", 0.25), 16000)
  local rows = data.sounds(paths, { frames = 60 })
  lu.assertEquals(rows:lengths():totable(), { 30, 60, 30, 60, 30, 60, 30, 60, 30, 60, 30, 60 })
  local flac = data.read_sound(sound "ramp16.flac")[{ { 1, 60 } }]
  for x, n in data.set(rows, dc.iota(12)):batches { size = 4, shuffle = true } do
    for i, number in ipairs(n:totable()) do
      local want = number % 2 == 1 and flac or dc.concat({ dc.full("f32[30, 2]", 0.25), dc.zeros "f32[30, 2]" }, 1)
      lu.assertTrue(x[i]:eq(want):all():item())
    end
  end
  lu.assertEquals(data.sounds { sound "ramp16.flac" }.shape, { 1, 100, 2 })
  fails("has 1 channel at 8000 Hz, 2 at 16000 Hz are wanted", function()
    return data.sounds({ self.path, sound "tone.ogg" }):row(2)
  end)
end

-- Cut off or changed anywhere: a result or an error of ours, never more than the file holds.
function TestSounds:test_damaged()
  if missing then
    return lu.skip "libsndfile is not installed (Debian: libsndfile1)"
  end
  for _, name in ipairs { "ramp16.flac", "tone.ogg" } do
    local bytes = check.read(sound(name))
    local function try(text)
      local f <close> = assert(io.open(self.path, "wb"))
      f:write(text)
      f:close()
      local ok, err = pcall(data.read_sound, self.path)
      lu.assertTrue(ok or err.code == "DC0802", tostring(err))
      pcall(function() return data.sounds({ self.path }, { frames = 100, channels = 1, rate = 8000 }):row(1) end)
      return ok
    end
    lu.assertFalse(try(bytes:sub(1, #bytes // 2)), name)
    for n = 4, #bytes - 1, #bytes // 40 + 1 do
      try(bytes:sub(1, n))
      try(bytes:sub(1, n) .. string.char(~bytes:byte(n + 1) & 255) .. bytes:sub(n + 2))
    end
  end
  -- FLAC that declares 2^36 - 1 frames
  local bytes = check.read(sound "ramp16.flac")
  local f <close> = assert(io.open(self.path, "wb"))
  f:write(bytes:sub(1, 21), string.char(bytes:byte(22) | 15), "\255\255\255\255", bytes:sub(27))
  f:close()
  fails("frames are declared, more than", data.read_sound, self.path)
end

function TestSounds:test_bytes()
  lu.assertEquals(data.read_bytes(sounds .. "u8", "u8"):totable()[1], ("R"):byte())
  fails("No such file", data.read_bytes, "/nonexistent", "u8")
end
