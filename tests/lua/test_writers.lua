-- Every writer of tensors with every dtype: what it writes is read back with the same bits, or it is refused with a
-- reason. That the programs of the formats read it too says scripts/peers formats.
local lu = require "luaunit"
local dc = require "deepc"
local data = require "deepc.data"
local check = require "tests.lua.check"
local program = require "tests.lua.program"

local DTYPES, SIZE = {}, {}
for name in ("bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128"):gmatch "%S+" do
  DTYPES[#DTYPES + 1], SIZE[name] = name, name == "bool" and 1 or tonumber(name:match "%d+") // 8
end

-- Bits of every kind: the least and the largest number, -0, NaN, infinities, denormals and any others.
local function bits_of(dtype, n)
  local size, state, parts = SIZE[dtype], 1, {}
  local ends = { "\x00", "\xff", "\x80", "\x7f", "\x01" }
  for i = 1, n do
    local element = {}
    for k = 1, size do
      state = (state * 1103515245 + 12345) & 0x7fffffff
      element[k] = string.char(state >> 16 & 0xff)
    end
    if i <= #ends then -- the highest byte is such a one, the others are zeros or ones
      local fill = i % 2 == 0 and "\xff" or "\x00"
      element = { fill:rep(size - 1), ends[i] }
    end
    parts[i] = table.concat(element)
  end
  local bytes = table.concat(parts)
  return dtype == "bool" and bytes:gsub(".", function(c) return string.char(c:byte() & 1) end) or bytes
end

local function values(dtype, shape)
  local n = 1
  for _, size in ipairs(shape) do
    n = n * size
  end
  return dc.frombytes(bits_of(dtype, n), ("%s[%s]"):format(dtype, table.concat(shape, ", ")))
end

local function set(words)
  local s = {}
  for word in words:gmatch "%w+" do
    s[word] = true
  end
  return s
end

local function equal_bits(x, y, what)
  lu.assertEquals(y.dtype, x.dtype, what)
  lu.assertEquals(y.shape, x.shape, what)
  lu.assertTrue(x:bytes() == y:bytes(), what)
end

-- NaN is nothing in a table of text, so one is like another.
local function equal_numbers(x, y, what)
  lu.assertEquals(y.dtype, x.dtype, what)
  if not x.dtype:find "f" then
    return equal_bits(x, y, what)
  end
  local a, b = x:cast "f64", y:cast "f64"
  lu.assertTrue((a:ne(a) | a:eq(b)):all():item(), what)
  lu.assertTrue(a:ne(a):eq(b:ne(b)):all():item(), what)
end

local function saved(options)
  return function(path, x)
    dc.save(path, { x = x }, nil, options)
  end, function(path)
    return (dc.load(path).x)
  end
end

local function writer(name, write, read, row)
  row = row or {}
  row.name, row.write, row.read = name, write, read
  return row
end

local save, load = saved()
local save_pieces = saved { pieces = 16 }

local WRITERS = {
  writer("write_npy", data.write_npy, function(path) return data.read_npy(path) end),
  writer("write_npy, dc.load", data.write_npy, function(path) return dc.load(path).value end),
  writer("write_npy, data.rows", data.write_npy, function(path)
    local rows = data.rows(path)
    return dc.stack({ rows:row(1), rows:row(2), rows:row(3) }, 1)
  end),
  writer("write_npz", function(path, x) data.write_npz(path, { x = x }) end, function(path)
    return data.read_npz(path).x
  end),
  writer("write_npz, deflated", function(path, x)
    data.write_npz(path, { x = x }, { compress = true })
  end, load),
  writer("dc.save", save, load, { ending = ".safetensors" }),
  writer("dc.save, pieces", save_pieces, load, { ending = ".safetensors.index.json" }),
  writer("dc.save, GGUF", save, load, { ending = ".gguf", refuses = set "bool u8 u16 u32 u64 c64 c128",
    why = "a type that GGUF does not have" }),
  writer("dc.checkpoint", function(path, x)
    dc.checkpoint(path, { a = { dc.state(x) } }):save()
  end, function(path) return dc.load(path)["a.1"] end),
  writer("write_csv", function(path, x) data.write_csv(path, { x = x }) end, function(path, dtype)
    return data.read_csv(path, { types = { x = dtype } }).x
  end, { shape = { 40 }, refuses = set "c64 c128", why = "which tables of text do not have", equal = equal_numbers }),
  writer("write_csv, a matrix", data.write_csv, function(path, dtype)
    return (data.read_csv(path, { header = false, matrix = true, dtype = dtype }))
  end, { refuses = set "c64 c128", why = "which tables of text do not have", equal = equal_numbers }),
  writer("write_image", data.write_image, function(path) return data.read_image(path) end, {
    shape = { 3, 5, 4 }, ending = ".png", takes = set "u8 u16", why = "pixels are u8 or u16",
  }),
  writer("write_wav", function(path, x) data.write_wav(path, x, 8000, { bits = "f32" }) end,
    function(path) return (data.read_wav(path)) end, { takes = set "f32", why = "samples are f32" }),
}

TestWriters = {}

for _, w in ipairs(WRITERS) do
  TestWriters["test_" .. w.name:gsub("%W+", "_")] = function()
    local path = os.tmpname() .. (w.ending or "")
    for _, dtype in ipairs(DTYPES) do
      local x, what = values(dtype, w.shape or { 3, 5 }), w.name .. ", " .. dtype
      if w.takes and not w.takes[dtype] or w.refuses and w.refuses[dtype] then
        check.fails(w.why, w.write, path, x)
      else
        w.write(path, x)
        local y = w.read(path, dtype);
        (w.equal or equal_bits)(x, y, what)
      end
    end
    os.execute("rm -f " .. program.quote(path) .. "*")
  end
end

-- One file with all of them; what it becomes is told by the name.
function TestWriters:test_convert()
  local dir = os.tmpname()
  os.remove(dir)
  os.execute("mkdir " .. dir)
  local all = {}
  for _, dtype in ipairs(DTYPES) do
    all[dtype] = values(dtype, { 2, 3 })
  end
  dc.save(dir .. "/a.safetensors", all, { epoch = "1" })
  for _, way in ipairs { { "a.safetensors", "b.npz", "PK\3\4" }, { "b.npz", "c.safetensors" } } do
    local text, status = program.run(("convert %s/%s %s/%s"):format(dir, way[1], dir, way[2]), "DEEPC_DEVICE=eval")
    local note = way[3] and "[note] convert: metadata are left out: npz has arrays alone\n" or ""
    lu.assertEquals({ text, status }, { note, 0 })
    local f <close> = assert(io.open(dir .. "/" .. way[2], "rb"))
    lu.assertEquals(f:read(4) == "PK\3\4", way[3] ~= nil)
    local back = dc.load(dir .. "/" .. way[2])
    for dtype, x in pairs(all) do
      equal_bits(x, back[dtype], way[2] .. ", " .. dtype)
    end
  end
  for name, whose in pairs { ["a.npy"] = "NumPy", ["a.pt"] = "PyTorch", ["A.PTH"] = "PyTorch", ["a.h5"] = "HDF5",
      ["a.onnx"] = "ONNX", ["a.ckpt"] = "PyTorch Lightning" } do
    local text, status = program.run(("convert %s/a.safetensors %s/%s"):format(dir, dir, name), "DEEPC_DEVICE=eval")
    lu.assertStrContains(text, "is the name of a file of " .. whose .. ";")
    lu.assertNil(io.open(dir .. "/" .. name))
    lu.assertEquals(status, 1)
  end
  lu.assertErrorMsgContains("a.npz' is the name of a file of NumPy", dc.save, dir .. "/a.npz", all)
  os.execute("rm -r " .. dir)
end
