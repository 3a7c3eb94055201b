-- Images, sounds, and lists of their files.

local data = require "deepc.data.set"
local dc = require "deepc"
local _, core = ...

local function check_path(op, path)
  if type(path) ~= "string" then
    core.fail("ARG", op, "a path is needed, not " .. core.describe(path))
  end
end

local function check_paths(op, paths)
  if type(paths) ~= "table" or #paths == 0 then
    core.fail("ARG", op, "a list of paths is needed, not " .. core.describe(paths))
  end
  for i, path in ipairs(paths) do
    if type(path) ~= "string" then
      core.fail("ARG", op, ("path %d is %s"):format(i, core.describe(path)))
    end
  end
end

local function check_number(op, o, key, least, most)
  local v = o[key]
  if v ~= nil and (math.type(v) ~= "integer" or v < least or v > most) then
    core.fail("ARG", op, ("%s is an integer from %d to %d, not %s"):format(key, least, most, core.shown(v)))
  end
  return v or 0
end

-- ---- images ----

---An image, u8[height, width, channels] (torchvision.io.read_image, PIL.Image.open): PNG of every colour type and
---depth, or JPEG, for which Debian's libturbojpeg0 is needed. Channels are 1 for grey, 3 for red, green and blue,
---one more with alpha; palettes become colours, 16 bits are u16. With `channels` it is converted, 16 bits become 8.
---
---    data.read_image "cat.png"
---    data.read_image("cat.jpg", { channels = 3 })
---
---Errors: DC0801 where it cannot be read or the library is missing, DC0802 where it is damaged.
---@param path string
---@param options? { channels?: integer } 1 to 4
---@return deepc.Tensor
function data.read_image(path, options)
  check_path("read_image", path)
  core.options("read_image", options, "channels")
  local t = core.image_read(path, check_number("read_image", options or {}, "channels", 1, 4))
  return t
end

---Writes an image, whole or not at all: u8 or u16 [height, width] or with 1 to 4 channels, as PNG; u8 with 1 or 3, as
---JPEG, where the name ends in .jpg or .jpeg.
---
---    data.write_image("grey.png", dc.zeros "u8[8, 8]")
---    data.write_image("red.jpg", dc.zeros "u8[8, 8, 3]", { quality = 95 })
---
---Errors: DC0801 where it cannot be written, DC0202 and DC0301 for other tensors.
---@param path string
---@param image deepc.Tensor
---@param options? { quality?: integer } of JPEG, 1 to 100; 90
function data.write_image(path, image, options)
  check_path("write_image", path)
  core.options("write_image", options, "quality")
  if not core.kind(image) then
    core.fail("ARG", "write_image", "a tensor is needed, not " .. core.describe(image))
  end
  local jpeg = path:lower():find "%.jpe?g$" ~= nil
  if not jpeg and not path:lower():find "%.png$" then
    core.fail("ARG", "write_image", ("%s: a name that ends in .png, .jpg or .jpeg is needed"):format(path))
  end
  local shape, dtype = image.shape, image.dtype
  local channels = #shape == 3 and shape[3] or #shape == 2 and 1 or 0
  if dtype ~= "u8" and (dtype ~= "u16" or jpeg) then
    core.fail("DTYPE", "write_image", ("pixels are u8%s, not %s"):format(jpeg and "" or " or u16", dtype),
      ':cast "u8" of values from 0 to 255', "of", image)
  elseif channels < 1 or channels > 4 or jpeg and channels ~= 1 and channels ~= 3 or shape[1] * shape[2] == 0 then
    core.fail("DIMS", "write_image", ("an image is [height, width] or with %s channels"):format(jpeg and "1 or 3"
      or "1 to 4"), nil, "of", image)
  end
  local quality = check_number("write_image", options or {}, "quality", 1, 100)
  core.image_write(path, image, jpeg and (quality > 0 and quality or 90) or 0)
end

local fits = { exact = true, stretch = true, crop = true }

---Images of files, for a set: u8[n, height, width, channels], decoded for each batch by several threads
---(torchvision.datasets.ImageFolder). Without a size all have that of the first; `fit` "stretch" or "crop", the
---middle of the same proportions, resamples those of other sizes.
---
---    data.images({ "a.jpg", "b.png" }, { size = { 224, 224 }, fit = "crop", channels = 3 })
---
---Errors: as data.read_image, of the batch that a file is in.
---@param paths string[]
---@param options? { size?: integer[], fit?: "exact"|"stretch"|"crop", channels?: integer }
---@return deepc.data.Rows
function data.images(paths, options)
  check_paths("images", paths)
  core.options("images", options, "size", "fit", "channels")
  options = options or {}
  local size = options.size or { 0, 0 }
  if type(size) ~= "table" or #size ~= 2 or math.type(size[1]) ~= "integer" or math.type(size[2]) ~= "integer"
    or options.size and (size[1] < 1 or size[2] < 1 or size[1] > 65536 or size[2] > 65536) then
    core.fail("ARG", "images", "size is { height, width }, not " .. core.describe(options.size))
  elseif options.fit ~= nil and not fits[options.fit] then
    core.fail("ARG", "images", ('fit is "exact", "stretch" or "crop", not %s'):format(core.shown(options.fit)))
  end
  local channels = check_number("images", options, "channels", 1, 4)
  if options.size and channels > 0 and core.rows_absent("images", paths[1]) then
    return dc.zeros(("u8[%d, %d, %d, %d]"):format(#paths, size[1], size[2], channels))
  end
  return core.new_rows(core.rows_images(paths, options.fit or "exact", size[1], size[2], channels))
end

-- ---- sounds ----

---A sound of a WAV file, f32[frames, channels] from -1 to 1, and its rate (torchaudio.load, soundfile.read): whole
---numbers of up to 32 bits, floats of 32 and 64, A-law and mu-law, the extensible header; RF64, RIFX, and files of
---programs that wrote to a pipe and did not know the length.
---
---    local samples, rate = data.read_wav "a.wav"
---
---Errors: DC0801 where it cannot be read, DC0802 where it is damaged.
---@param path string
---@return deepc.Tensor samples
---@return integer rate
function data.read_wav(path)
  check_path("read_wav", path)
  local samples, rate = core.wav_read(path)
  return samples, rate
end

---A sound of a file, f32[frames, channels] from -1 to 1, and its rate (torchaudio.load, soundfile.read): WAV as
---data.read_wav; FLAC and Ogg, which has Vorbis or Opus, for which Debian's libsndfile1 is needed.
---
---    local samples, rate = data.read_sound "a.flac"
---
---Errors: DC0801 where it cannot be read or the library is missing, DC0802 where it is damaged.
---@param path string
---@return deepc.Tensor samples
---@return integer rate
function data.read_sound(path)
  check_path("read_sound", path)
  local samples, rate = core.sound_read(path)
  return samples, rate
end

local widths = { [8] = true, [16] = true, [24] = true, [32] = true, f32 = true, f64 = true }

---Writes a sound as a WAV file, whole or not at all: f32[frames] or f32[frames, channels] from -1 to 1; what is
---beyond is clamped in whole numbers.
---
---    data.write_wav("a.wav", dc.zeros "f32[8000, 1]", 8000)
---    data.write_wav("a.wav", dc.zeros "f32[8000]", 8000, { bits = 24 })
---
---Errors: DC0801 where it cannot be written, DC0202 and DC0301 for other tensors.
---@param path string
---@param samples deepc.Tensor
---@param rate integer frames in a second
---@param options? { bits?: 8|16|24|32|"f32"|"f64" } 16
function data.write_wav(path, samples, rate, options)
  check_path("write_wav", path)
  core.options("write_wav", options, "bits")
  if not core.kind(samples) then
    core.fail("ARG", "write_wav", "a tensor is needed, not " .. core.describe(samples))
  elseif math.type(rate) ~= "integer" or rate < 1 or rate > 10000000 then
    core.fail("ARG", "write_wav", "the rate is a number of frames in a second, not " .. core.shown(rate))
  end
  local bits = options and options.bits or 16
  if not widths[bits] then
    core.fail("ARG", "write_wav", ('bits are 8, 16, 24, 32, "f32" or "f64", not %s'):format(core.shown(bits)))
  elseif samples.dtype ~= "f32" then
    core.fail("DTYPE", "write_wav", ("samples are f32, not %s"):format(samples.dtype), ':cast "f32"', "of", samples)
  end
  local shape = samples.shape
  if #shape == 1 then
    samples, shape = samples:reshape(shape[1], 1), { shape[1], 1 }
  end
  if #shape ~= 2 or shape[2] < 1 or shape[2] > 64 then
    core.fail("DIMS", "write_wav", "a sound is [frames] or [frames, channels], with 1 to 64 channels", nil, "of",
      samples)
  end
  local is_float = type(bits) == "string"
  core.wav_write(path, samples, rate, is_float and tonumber(bits:sub(2)) or bits, is_float)
end

---Sounds of files, for a set: f32[n, frames, channels], read for each batch by several threads; longer ones are cut
---off, silence is put behind shorter ones. Without numbers all have those of the first. And their rate.
---`rows:lengths()` are their frames without that silence.
---
---    data.sounds({ "a.wav", "b.wav" }, { frames = 16000 })
---
---Errors: as data.read_sound, of the batch that a file is in; DC0802 for other channels or another rate.
---@param paths string[]
---@param options? { frames?: integer, channels?: integer, rate?: integer }
---@return deepc.data.Rows
---@return integer rate
function data.sounds(paths, options)
  check_paths("sounds", paths)
  core.options("sounds", options, "frames", "channels", "rate")
  options = options or {}
  local frames = check_number("sounds", options, "frames", 1, 1 << 40)
  local channels = check_number("sounds", options, "channels", 1, 64)
  local hertz = check_number("sounds", options, "rate", 1, 10000000)
  if frames > 0 and channels > 0 and core.rows_absent("sounds", paths[1]) then
    return dc.zeros(("f32[%d, %d, %d]"):format(#paths, frames, channels)), hertz > 0 and hertz or 16000
  end
  local source, rate = core.rows_sounds(paths, frames, channels, hertz)
  return core.new_rows(source), rate
end

-- ---- bytes and sheets ----

---The bytes of a file as a tensor (numpy.fromfile), as dc.frombytes makes one; unpacked where it is gzipped.
---
---    data.read_bytes("set.bin", "u8")
---
---Errors: DC0801 where it cannot be read, DC0101 for another number of bytes.
---@param path string
---@param type deepc.Type or the name of a dtype
---@return deepc.Tensor
function data.read_bytes(path, type)
  check_path("read_bytes", path)
  if type ~= nil and core.rows_absent("read_bytes", path) then
    local given = tostring(type)
    return dc.zeros(given:find("[", 1, true) and given or given .. "[997]")
  end
  local t = dc.frombytes(core.read_file("read_bytes", path), type)
  return t
end

---Images that stand side by side on a sheet, in rows from the top left on: u8[n, height, width, channels], or
---without the last axis where the sheet is grey. OpenCV's digits.png (Debian: opencv-doc) has 5000 of { 20, 20 },
---500 of each digit.
---
---    data.read_sheet("digits.png", { 20, 20 })
---
---Errors: as data.read_image; DC0301 where the sheet is no whole number of them.
---@param path string
---@param size integer[] height and width
---@return deepc.Tensor
function data.read_sheet(path, size)
  if type(size) ~= "table" or math.type(size[1]) ~= "integer" or math.type(size[2]) ~= "integer" or size[1] < 1
    or size[2] < 1 then
    core.fail("ARG", "read_sheet", "the size is { height, width }, not " .. core.describe(size))
  end
  local sheet = data.read_image(path)
  local shape = sheet.shape
  if shape[1] % size[1] ~= 0 or shape[2] % size[2] ~= 0 then
    core.fail("DIMS", "read_sheet", ("a sheet of %d x %d is no whole number of images of %d x %d"):format(shape[1],
      shape[2], size[1], size[2]), nil, "of", sheet)
  end
  local down, across, c = shape[1] // size[1], shape[2] // size[2], shape[3]
  local t = sheet:reshape(down, size[1], across, size[2], c):permute(1, 3, 2, 4, 5)
  t = c == 1 and t:reshape(down * across, size[1], size[2]) or t:reshape(down * across, size[1], size[2], c)
  return t
end
