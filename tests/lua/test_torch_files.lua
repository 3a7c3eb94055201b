-- dc.load of what torch.save writes; pickles that are wrong.
local lu = require "luaunit"
local dc = require "deepc"
local data = require "deepc.data"
local nn = require "deepc.nn"
local check = require "tests.lua.check"
local program = require "tests.lua.program"

local fails = check.fails

local dir

local function at(name)
  return dir .. "/" .. name
end

local function write(path, bytes)
  local f <close> = assert(io.open(path, "wb"))
  f:write(bytes)
end

local Base = {}

function Base:setUp()
  dir = os.tmpname()
  os.remove(dir)
  os.execute("mkdir " .. dir)
end

function Base:tearDown()
  os.execute("rm -rf " .. dir)
end

local FILES = { "tests/lua/tensors/torch.pt", "tests/lua/tensors/torch_legacy.pt" }

TestTorch = { setUp = Base.setUp, tearDown = Base.tearDown }

function TestTorch:test_tables_and_tensors()
  local want = dc.load "tests/lua/tensors/torch.safetensors"
  for _, path in ipairs(FILES) do
    local t, metadata, told = dc.load(path)
    lu.assertNil(told)
    lu.assertEquals({ t.e4.dtype, t.e4:cast "f32":totable() }, { "f8e4m3fn", { 1.5, -2, 0.0625 } })
    t.e4 = nil
    for name, v in pairs(want) do
      lu.assertEquals({ t.tensors[name].dtype, t.tensors[name].shape }, { v.dtype, v.shape }, name)
      lu.assertEquals(t.tensors[name]:bytes(), v:bytes(), name)
    end
    t.tensors = nil
    lu.assertEquals(t.list[4].b:totable(), { 1, 1 })
    t.list[4] = nil
    lu.assertEquals(t, { epoch = 5, lr = 0.5, name = "xé", flag = true, list = { 1, 2.5, "a" }, pair = { 1, 2 },
      neg = -70000, big = 1 << 40, device = "cpu", dtype = "torch.float32", size = { 2, 3 }, state = { [0] = 1.5 } })
    lu.assertEquals({ metadata.epoch, metadata["list.2"], metadata["state.0"] }, { 5, 2.5, 1.5 })
    lu.assertEquals(dc.load(path, nil, { cast = true }).e4:totable(), { 1.5, -2, 0.0625 })
  end
end

function TestTorch:test_a_part_under_other_names()
  local path = FILES[1]
  local t = dc.load(path, nil, { only = { "tensors.f32", "list.4.b" } })
  lu.assertEquals(t.tensors.f32.shape, { 3, 4 })
  lu.assertNil(t.tensors.f64)
  lu.assertEquals(t.epoch, 5)
  t = dc.load(path, nil, { rename = function(name) return name:match "^tensors%.(f%d+)$" end })
  local names = {}
  for name in pairs(t) do
    names[#names + 1] = name
  end
  table.sort(names)
  lu.assertEquals(names, { "f16", "f32", "f64" })
  local cells = { t = dc.state "f64[6, 4]", half_t = dc.state "f32[4, 3]", e4 = dc.state "f16[3]" }
  dc.load(path, cells, { partial = true, rename = function(name) return (name:gsub("^tensors%.", "")) end })
  local want = dc.load "tests/lua/tensors/torch.safetensors"
  lu.assertTrue(cells.t:eq(want.t:cast "f64"):all():item())
  lu.assertTrue(cells.half_t:eq(want.half_t:cast "f32"):all():item())
  lu.assertEquals(cells.e4:totable(), { 1.5, -2, 0.0625 })
end

-- ---- pickles by hand, in an archive by hand ----

local function crc32(s)
  local crc = 0xffffffff
  for i = 1, #s do
    crc = crc ~ s:byte(i)
    for _ = 1, 8 do
      crc = crc >> 1 ~ (crc & 1) * 0xedb88320
    end
  end
  return crc ~ 0xffffffff
end

-- Names, bytes, and what these are deflated, if they are.
local function zip(entries)
  local parts, directory, offset = {}, {}, 0
  for _, e in ipairs(entries) do
    local name, bytes = e[1], e[2]
    local packed = e[3] or bytes
    local common = string.pack("<I2I2I2I2I2I4I4I4I2I2", 20, e.flags or 0, e.method or e[3] and 8 or 0, 0, 0x21,
      crc32(bytes), #packed, #bytes, #name, 0)
    local head = "PK\3\4" .. common .. name
    parts[#parts + 1] = head .. packed
    directory[#directory + 1] = "PK\1\2" .. string.pack("<I2", 20) .. common ..
      string.pack("<I2I2I2I4I4", 0, 0, 0, 0, offset) .. name
    offset = offset + #head + #packed
  end
  local all = table.concat(directory)
  return table.concat(parts) .. all .. "PK\5\6" ..
    string.pack("<I2I2I2I2I4I4I2", 0, 0, #entries, #entries, #all, offset, 0)
end

local function text(s)
  return "X" .. string.pack("<s4", s)
end

local function int(n)
  return "J" .. string.pack("<i4", n)
end

local function tuple(...)
  return "(" .. table.concat { ... } .. "t"
end

local function storage(key, count, type, view)
  return tuple(text "storage", "ctorch\n" .. (type or "FloatStorage") .. "\n", text(key or "0"), text "cpu",
    int(count or 4), view or "") .. "Q"
end

-- A tensor of two rows and two columns, unless something is said.
local function tensor(o)
  o = o or {}
  return "ctorch._utils\n_rebuild_tensor_v2\n" .. tuple(o.storage or storage(), int(o.offset or 0),
    o.sizes or tuple(int(2), int(2)), o.strides or tuple(int(2), int(1)), "\x89", "}", o.metadata or "") .. "R"
end

local function dict(...)
  return "}(" .. table.concat { ... } .. "u"
end

local function ordered(...)
  return "ccollections\nOrderedDict\n" .. tuple(...) .. "R"
end

local function call(global, ...)
  return "c" .. global:gsub(" ", "\n") .. "\n" .. tuple(...) .. "R"
end

local function file(pickle, more)
  local entries = { { "a/data.pkl", "\x80\2" .. pickle .. "." }, { "a/data/0", string.pack("<ffff", 1, 2, 3, 4) } }
  for _, e in ipairs(more or {}) do
    entries[#entries + 1] = e
  end
  return zip(entries)
end

TestPickles = { setUp = Base.setUp, tearDown = Base.tearDown }

function TestPickles:test_good()
  local shared = dict(text "x", tensor())
  write(at "a", file(dict(text "w", tensor(), text "t", tensor { strides = tuple(int(1), int(2)) },
    text "row", tensor { offset = 1, sizes = tuple(int(2)), strides = tuple(int(2)) },
    text "one", tensor { offset = 3, sizes = ")", strides = ")" }, text "n", "K\7", text "l", "](K\1\x88Ne",
    text "s", shared .. "q\5", text "again", "h\5")))
  local t = dc.load(at "a")
  lu.assertEquals(t.w:totable(), { { 1, 2 }, { 3, 4 } })
  lu.assertEquals(t.t:totable(), { { 1, 3 }, { 2, 4 } })
  lu.assertEquals(t.row:totable(), { 2, 4 })
  lu.assertEquals(t.one:item(), 4)
  lu.assertEquals({ t.n, t.l }, { 7, { 1, true } })
  lu.assertTrue(t.again == t.s)
  local cells = { s = { x = dc.state "f32[2, 2]" }, again = { x = dc.state "f32[2, 2]" } }
  dc.load(at "a", cells, { partial = true })
  lu.assertEquals(cells.again.x:totable(), { { 1, 2 }, { 3, 4 } })
end

function TestPickles:test_floats_of_8_bits()
  local function v3(dtype)
    return call("torch._utils _rebuild_tensor_v3", storage("1", 4, "UntypedStorage"), int(0), tuple(int(4)),
      tuple(int(1)), "\x89", ordered(), "ctorch\n" .. dtype .. "\n", "}")
  end
  local bytes = "\x38\xc0\x7b\x01"
  write(at "a", file(dict(text "e4", v3 "float8_e4m3fn", text "e5", v3 "float8_e5m2"), { { "a/data/1", bytes } }))
  dc.save(at "b", (dc.load(at "a")))
  for _, t in ipairs { (dc.load(at "a")), (dc.load(at "b")) } do
    lu.assertEquals({ t.e4.dtype, t.e5.dtype, t.e4:bytes(), t.e5:bytes() }, { "f8e4m3fn", "f8e5m2", bytes, bytes })
    lu.assertEquals(t.e4:cast "f64":totable(), { 1, -2, 352, 2.0 ^ -9 })
    lu.assertEquals(t.e5:cast "f64":totable(), { 0.5, -2, 57344, 2.0 ^ -16 })
  end
end

-- The values of a file, and what is noted of it.
local function values(bytes, options)
  write(at "a", bytes)
  local script = program.script(('dc = require "deepc" dc.load(%q)'):format(at "a"))
  local notes = program.run(script, "DEEPC_DEVICE=eval"):gsub("%[note%] load: ", "")
  os.remove(script)
  local t, metadata, told = dc.load(at "a", nil, options)
  return t, notes, told, metadata
end

-- Conjugates and negatives that are only noted, elements that several places of a tensor share.
function TestPickles:test_views()
  local neg, conj = dict(text "neg", "\x88"), dict(text "conj", "\x88", text "neg", "\x89")
  local whole = storage("0", 2, "LongStorage")
  local complex = { storage = storage("0", 2, "ComplexFloatStorage"), sizes = tuple(int(2)), strides = tuple(int(1)) }
  local function z(metadata)
    return tensor { storage = complex.storage, sizes = complex.sizes, strides = complex.strides, metadata = metadata }
  end
  local t, notes = values(file(dict(text "neg", tensor { metadata = neg }, text "c", z(), text "conj", z(conj),
    text "both", z(dict(text "neg", "\x88", text "conj", "\x88")), text "turned", tensor {
      storage = complex.storage, sizes = tuple(int(2), int(1)), strides = tuple(int(1), int(2)), metadata = conj },
    text "whole", tensor { storage = whole, sizes = tuple(int(1)), strides = tuple(int(1)), metadata = neg },
    text "row", tensor { sizes = tuple(int(2), int(3)), strides = tuple(int(1), int(0)) },
    text "slid", tensor { sizes = tuple(int(3), int(2)), strides = tuple(int(1), int(1)) },
    text "one", tensor { offset = 3, sizes = tuple(int(3)), strides = tuple(int(0)) },
    text "part", tensor { storage = storage("0", 4, nil, tuple(text "1", int(1), int(3))), sizes = tuple(int(3)),
      strides = tuple(int(1)) })))
  lu.assertEquals(notes, "")
  lu.assertEquals(t.neg:totable(), { { -1, -2 }, { -3, -4 } })
  local function parts(x)
    return dc.view_as_real(x):totable()
  end
  lu.assertEquals(parts(t.c), { { 1, 2 }, { 3, 4 } })
  lu.assertEquals(parts(t.conj), { { 1, -2 }, { 3, -4 } })
  lu.assertEquals(parts(t.both), { { -1, 2 }, { -3, 4 } })
  lu.assertEquals(parts(t.turned), { { { 1, -2 } }, { { 3, -4 } } })
  lu.assertEquals(t.whole:item(), -string.unpack("<i8", string.pack("<ff", 1, 2)))
  lu.assertEquals(t.row:totable(), { { 1, 1, 1 }, { 2, 2, 2 } })
  lu.assertEquals(t.slid:totable(), { { 1, 2 }, { 2, 3 }, { 3, 4 } })
  lu.assertEquals({ t.one:totable(), t.part:totable() }, { { 4, 4, 4 }, { 2, 3, 4 } })
end

-- Whatever torch.load reads by default is a value here, or a note.
function TestPickles:test_values()
  local latin = call("_codecs encode", text "a\xc3\xbf\0", text "latin1")
  local function real(x)
    return "G" .. string.pack(">d", x)
  end
  local t, notes = values(file(dict(
    text "pairs", ordered("](" .. tuple(text "x", "K\1") .. "](" .. text "y" .. "K\2ee"),
    text "copy", ordered(dict(text "x", "K\3")),
    text "counter", call("collections Counter", dict(text "l", "K\2")),
    text "set", call("__builtin__ set", "](K\1K\2e"),
    text "bytes", latin,
    text "array", call("__builtin__ bytearray", latin),
    text "same", call("builtins bytearray", text "\xc3\xbe", text "latin-1"),
    text "none", call "builtins bytearray",
    text "z", call("__builtin__ complex", real(1), real(2)),
    text "\0", "K\7",
    text "a\0b", tensor(),
    text "long", "\x8a\9" .. ("\0"):rep(8) .. "\1",
    text "minus", "\x8a\9" .. ("\xff"):rep(8) .. "\xfe",
    real(0.5), text "half",
    "\x88", text "yes",
    "N", text "no",
    tuple "K\1", text "no",
    text "device", call("torch device", text "cuda", "K\1"),
    text "layout", call("torch.serialization _get_layout", text "torch.strided"),
    text "size", call "torch Size",
    text "row", storage(),
    text "class", "ctorch.cuda\nHalfTensor\n",
    text "old", call "torch FloatTensor")))
  lu.assertEquals(notes, [[
'z' is left out: a complex number
'long' is a number of more than 64 bits, and is rounded
'minus' is a number of more than 64 bits, and is rounded
3 more values are left out or changed; deepc inspect lists them
]])
  lu.assertEquals({ t["a\0b"]:totable(), t.row:totable() }, { { { 1, 2 }, { 3, 4 } }, { 1, 2, 3, 4 } })
  t["a\0b"], t.row = nil, nil
  lu.assertEquals(t, { pairs = { x = 1, y = 2 }, copy = { x = 3 }, counter = { l = 2 }, set = { 1, 2 },
    bytes = "a\xff\0", array = "a\xff\0", same = "\xfe", none = "", ["\0"] = 7, long = 2.0 ^ 64, minus = -2.0 ^ 64,
    [0.5] = "half", [true] = "yes", device = "cuda:1", layout = "torch.strided", size = {},
    class = "torch.cuda.HalfTensor" })
  local inspected = program.run("inspect " .. program.quote(at "a"), "DEEPC_DEVICE=eval")
  lu.assertStrContains(inspected, "\nnot read as they are\n  'z' is left out: a complex number\n")
  lu.assertStrContains(inspected, "  'old' is left out: what torch.FloatTensor makes\n")
  lu.assertStrContains(inspected, [[
  '' has a key that is no text, number or truth value: what it stands for is left out
]])
end

-- Tensors that are left out; the file is read all the same.
function TestPickles:test_left_out()
  local function rebuild(name, ...)
    return call("torch._utils _rebuild_" .. name, ...)
  end
  local long = ("n"):rep(5000)
  local t, notes, told = values(file(dict(text "w", tensor(),
    text "q", rebuild("qtensor", storage("0", 16, "QUInt8Storage"), int(0), tuple(), tuple()),
    text "s", rebuild("sparse_tensor", call("torch.serialization _get_layout", text "torch.sparse_coo"), tuple()),
    text "m", rebuild("meta_tensor_no_storage", "ctorch\nfloat32\n", tuple(), tuple(), "\x89"),
    text "u", rebuild("tensor_v3", storage("0", 16, "UntypedStorage"), int(0), tuple(int(4)), tuple(int(1)), "\x89",
      ordered(), "ctorch\nuint4\n", "}"),
    text "axes", tensor { sizes = "(" .. int(1):rep(9) .. "t", strides = "(" .. int(1):rep(9) .. "t" },
    text "e", tensor { sizes = tuple(int(1 << 20), int(1 << 20)), strides = tuple(int(0), int(0)) },
    text "same", rebuild("device_tensor_from_cpu_tensor", tensor(), "ctorch\nfloat32\n", text "xla:0", "\x89"),
    text "cast", rebuild("device_tensor_from_cpu_tensor", tensor(), "ctorch\nfloat16\n", text "xla:0", "\x89"),
    text(long), "N", text "deep", ("("):rep(70) .. ("t"):rep(70))))
  lu.assertEquals(t.w:totable(), { { 1, 2 }, { 3, 4 } })
  lu.assertEquals(t.same:totable(), { { 1, 2 }, { 3, 4 } })
  lu.assertEquals(told, { q = "quantized", s = "sparse", m = "meta", u = "uint4", axes = "float32", e = "float32",
    cast = "float32" })
  lu.assertStrContains(notes, "' is left out: its name has more than 4096 bytes\n'deep.1.1.1.")
  lu.assertStrContains(notes, [[
tensor 'axes' is left out: it has 9 axes, 8 is the most
tensor 'cast' is left out: it is to be converted to another type
tensor 'e' is left out: it repeats what lies there, 4398046511104 bytes in a file of ]])
  lu.assertStrContains(notes, "\n4 more tensors are left out; the third result has their names and types\n")
  lu.assertEquals(dc.load(at "a", nil, { only = { "w" } }).w.shape, { 2, 2 })
  fails("tensor 'e' is not read: it repeats what lies there", dc.load, at "a", { e = dc.state "f32[1]" },
    { partial = true })
  t = values(file "](K\1q\1h\1e")
  lu.assertEquals(t, { 1, 1 })
  t, notes = values(file "]q\1(K\1h\1e") -- a list in itself
  lu.assertEquals(t[1], 1)
  lu.assertStrContains(notes, "...' is left out: values are nested more than 64 deep\n")
end

-- What two ways lead to the same name, each is a tensor.
function TestPickles:test_names()
  local t, notes, _, metadata = values(file(dict(text "a", dict(text "b", tensor(), text "n", "K\1"), text "a.b",
    tensor { sizes = tuple(int(1)), strides = tuple(int(1)) }, text "a.b#2", tensor(), text "1", "K\2", "K\1", "K\3",
    text "a.n", "K\4")))
  lu.assertEquals(notes, "")
  lu.assertEquals({ t.a.b.shape, t["a.b"].shape, t["a.b#2"].shape }, { { 2, 2 }, { 1 }, { 2, 2 } })
  lu.assertEquals({ t.a.n, t["a.n"], t["1"], t[1] }, { 1, 4, 2, 3 })
  lu.assertEquals(metadata, { ["1"] = 2, ["1#2"] = 3, ["a.n"] = 1, ["a.n#2"] = 4 })
end

-- Archives of machines with the other order, and those that another program packed anew.
function TestPickles:test_archives()
  local swapped = string.pack(">ffff", 1, 2, 3, 4)
  local complex = storage("0", 2, "ComplexFloatStorage")
  local pickle = "\x80\2" .. dict(text "w", tensor(), text "c", tensor { storage = complex, sizes = tuple(int(2)),
    strides = tuple(int(1)) }, text "b", tensor { storage = storage("0", 16, "ByteStorage") }) .. "."
  local t = values(zip { { "a/data.pkl", pickle }, { "a/data/0", swapped }, { "a/byteorder", "big" } })
  lu.assertEquals(t.w:totable(), { { 1, 2 }, { 3, 4 } })
  lu.assertEquals(dc.view_as_real(t.c):totable(), { { 1, 2 }, { 3, 4 } })
  lu.assertEquals(t.b:totable(), { { 0x3f, 0x80 }, { 0, 0 } })
  local bytes = string.pack("<ffff", 1, 2, 3, 4)
  local stored = "\1" .. string.pack("<I2I2", #bytes, ~#bytes & 0xffff) .. bytes
  local packed = { "a/data/0", bytes, stored }
  pickle = "\x80\2" .. dict(text "w", tensor(), text "t", tensor { strides = tuple(int(1), int(2)) },
    text "row", tensor { offset = 1, sizes = tuple(int(2)), strides = tuple(int(2)) }) .. "."
  t = values(zip { { "a/data.pkl", pickle }, packed })
  lu.assertEquals({ t.w:totable(), t.t:totable() }, { { { 1, 2 }, { 3, 4 } }, { { 1, 3 }, { 2, 4 } } })
  lu.assertEquals(t.row:totable(), { 2, 4 })
end

function TestPickles:test_wrong()
  local function w(o)
    return file(dict(text "w", tensor(o)))
  end
  local function global(name)
    return ("the pickle refers to '%s', and nothing of a file is run; in Python, "):format(name) ..
      "torch.save(model.state_dict(), path) writes tensors alone"
  end
  local cases = {
    { file(dict(text "w", "cos\nsystem\n" .. tuple(text "true") .. "R")),
      global "os.system" },
    { file(text "os" .. text "system" .. "\x93"),
      global "os.system" },
    { file "cbuiltins\neval\n",
      global "builtins.eval" },
    { file "ctorch\nFloatStorage",  "truncated: the file ends within a pickle" },
    { file "\x80\1", "a pickle of protocol 1, 2 to 5 are read" },
    { file "I3\n", "the pickle has the opcode 0x49, which is not read" },
    { file "t", "the pickle is damaged: at byte 3 its stack has not what is wanted" },
    { file "K\1a", "the pickle is damaged: at byte 5 its stack has not what is wanted" },
    { file "K\1K\2", "the pickle is damaged: at byte 7 its stack has not what is wanted" },
    { file "}(K\1u", "the pickle is damaged: at byte 7 its stack has not what is wanted" },
    { file "](K\1e(K\1K\2u", "the pickle is damaged: at byte 13 its stack has not what is wanted" },
    { file "h\3", "the pickle is damaged: number 3 of its memo is not set" },
    { file "Nr\255\255\255\255", "the pickle is damaged: number 4294967295 of its memo" },
    { file("X" .. string.pack("<I4", 1 << 31) .. "abc"), "truncated: the file ends within a pickle" },
    { file("\x8d" .. string.pack("<I8", -1) .. "abc"), "truncated: the file ends within a pickle" },
    { file(ordered(int(3))), "the pickle makes an OrderedDict of other values" },
    { file(ordered("](" .. tuple(text "a") .. "e")), "the pickle makes an OrderedDict of other values" },
    { file("ccollections\nCounter\n" .. tuple("](" .. tuple(text "a", "N") .. "e") .. "R"),
      "the pickle makes a Counter of other values" },
    { file("](ccollections\nOrderedDict\nq\1" .. dict(("NN"):rep(50)) .. "q\0" .. ("h\1h\0\x85R"):rep(40) .. "e"),
      "the pickle makes tables of more values than it has" },
    { file("]q\0" .. ("0](h\0h\0eq\0"):rep(40)), "values are nested in more ways than there are values" },
    { file(dict(text "w", "ctorch._utils\n_rebuild_tensor_v2\n)R")), "tensor 'w' is no tensor" },
    { file(dict(text "w", "ctorch._utils\n_rebuild_parameter\n(Nt" .. "R")), "tensor 'w' is a parameter of no tensor" },
    { w { storage = "NQ" }, "tensor 'w' has a storage that is none of torch.save's" },
    { w { storage = tuple(text "module", "N", text "0", "N", int(1)) .. "Q" },
      "tensor 'w' has a storage that is none of torch.save's" },
    { w { storage = storage "7" }, "has no storage '7'" },
    { w { storage = storage("0", 4, nil, tuple(text "1", int(3), int(2))) },
      "tensor 'w' has a storage that is no part of the one it is a view of" },
    { w { storage = storage("0", 4, nil, tuple(text "1", int(1), int(3))) },
      "tensor 'w' has its last element at 3 of a storage of 3" },
    { w { storage = storage("0", 5) }, "tensor 'w' has a storage of 5 elements of 4 bytes in 16 bytes" },
    { w { storage = storage("0", -1) }, "tensor 'w' has a storage of -1 elements of 4 bytes in 16 bytes" },
    { w { storage = storage("0", 4, "float32") }, "tensor 'w' has a storage that is none of torch.save's" },
    { w { offset = 1 }, "tensor 'w' has its last element at 4 of a storage of 4" },
    { w { offset = -1 }, "tensor 'w' has its last element at 2 of a storage of 4" },
    { w { sizes = tuple(int(2)) }, "tensor 'w' has sizes and strides that do not belong together" },
    { w { sizes = tuple(int(2), int(-2)) }, "tensor 'w' has a size or a stride that is no whole number from 0 on" },
    { w { sizes = tuple(int(2), "N") }, "tensor 'w' has a size or a stride that is no whole number from 0 on" },
    { w { strides = tuple(int(-1), int(1)) }, "tensor 'w' has a size or a stride that is no whole number from 0 on" },
    { w { sizes = "(" .. int(0x7fffffff):rep(4) .. "t", strides = "(" .. int(1):rep(4) .. "t" },
      "tensor 'w' is too large to address" },
    { w { sizes = tuple("\x8a\8" .. string.pack("<i8", 1 << 62), int(1)) }, "tensor 'w' is too large to address" },
    { file "N.N", "bytes follow the pickle" },
    { zip { { "a/b", "x" } }, "no PyTorch file: the archive has no 'data.pkl'" },
    { "PK\3\4" .. ("x"):rep(100), "not an archive of PyTorch or NumPy: no directory of an archive at its end" },
    { "\x80\2}q\1.", "a pickle that torch.save of PyTorch did not write" },
  }
  for _, case in ipairs(cases) do
    write(at "a", case[1])
    local ok, err = pcall(dc.load, at "a")
    lu.assertFalse(ok, case[2])
    lu.assertEquals(tostring(err):gsub("\n.*", ""):gsub("^[^ ]*: ", ""):gsub(dir, "DIR"), "DIR/a: " .. case[2])
  end
  fails("the pickle refers to 'torch.nn.modules.linear.Linear', and nothing of a file is run", dc.load,
    "tests/lua/tensors/torch_module.pt")
  local bytes = file(dict(text "w", tensor { storage = storage("0", 16, "BoolStorage") }))
  write(at "a", bytes)
  lu.assertEquals(dc.load(at "a").w:totable(), { { false, false }, { true, true } }) -- the bytes 0 0 0x80 0x3f
end

function TestPickles:test_linear_layers_of_pytorch()
  local linear = dict(text "0.weight", tensor { sizes = tuple(int(1), int(4)), strides = tuple(int(4), int(1)) },
    text "0.bias", tensor { sizes = tuple(int(1)), strides = tuple(int(1)) })
  write(at "a", file(linear))
  local net = nn.Sequential { nn.Linear(4, 1) }
  dc.load(at "a", net, { first = 0 })
  lu.assertEquals(net[1].weight:totable(), { { 1 }, { 2 }, { 3 }, { 4 } })
end

-- As transformers writes large models without safetensors.
function TestPickles:test_several_files()
  write(at "pytorch_model-00001-of-00002.bin", file(dict(text "a.w", tensor { strides = tuple(int(1), int(2)) })))
  write(at "pytorch_model-00002-of-00002.bin", file(dict(text "b.w", tensor(), text "more", tensor())))
  write(at "pytorch_model.bin.index.json", '{"metadata": {"total_size": 32}, "weight_map": {' ..
    '"a.w": "pytorch_model-00001-of-00002.bin", "b.w": "pytorch_model-00002-of-00002.bin"}}')
  local t, metadata = dc.load(dir)
  lu.assertEquals(metadata, { total_size = 32 })
  lu.assertEquals(t["a.w"]:totable(), { { 1, 3 }, { 2, 4 } })
  lu.assertEquals({ t["b.w"]:totable(), t.more }, { { { 1, 2 }, { 3, 4 } } })
  local cells = { a = { w = dc.state "f64[2, 2]" }, b = { w = dc.state "f32[2, 2]" } }
  dc.load(dir, cells)
  lu.assertEquals(cells.a.w:totable(), { { 1, 3 }, { 2, 4 } })
  write(at "pytorch_model-00002-of-00002.bin", '{"weight_map": {"b.w": "pytorch_model.bin.index.json"}}')
  fails("not a safetensors file", dc.load, dir)
end

-- ---- arrays of NumPy ----

TestNumpy = { setUp = Base.setUp, tearDown = Base.tearDown }

local function npy(descr, fortran, shape, bytes)
  descr = descr:find "^%[" and descr or "'" .. descr .. "'"
  local header = ("{'descr': %s, 'fortran_order': %s, 'shape': (%s), }\n"):format(descr, fortran, shape)
  return "\x93NUMPY\1\0" .. string.pack("<s2", header) .. bytes
end

function TestNumpy:test_arrays()
  local rows = string.pack("<ffffff", 1, 2, 3, 4, 5, 6)
  write(at "a.npz", zip { { "x.npy", npy("<f4", "False", "2, 3", rows) }, { "note", "?" },
    { "y.npy", npy("<f4", "True", "2, 3", rows) }, { "z.npy", npy(">i2", "False", "2,", "\0\1\0\2") },
    { "b.npy", npy("|b1", "False", "2,", "\0\1") } })
  local t, metadata = dc.load(at "a.npz")
  lu.assertEquals(metadata, {})
  lu.assertEquals(t.x:totable(), { { 1, 2, 3 }, { 4, 5, 6 } })
  lu.assertEquals(t.y:totable(), { { 1, 3, 5 }, { 2, 4, 6 } })
  lu.assertEquals({ t.z.dtype, t.z:totable(), t.b:totable() }, { "i16", { 1, 2 }, { false, true } })
  local cells = { x = dc.state "f64[2, 3]", y = dc.state "f32[2, 3]" }
  dc.load(at "a.npz", cells, { partial = true })
  lu.assertEquals(cells.y:totable(), { { 1, 3, 5 }, { 2, 4, 6 } })
  lu.assertEquals(cells.x:totable(), { { 1, 2, 3 }, { 4, 5, 6 } })
  write(at "a.npy", npy("<f4", "False", "3, 2", rows))
  lu.assertEquals(dc.load(at "a.npy").value:totable(), { { 1, 2 }, { 3, 4 }, { 5, 6 } })
end

-- What a deflated entry has behind its stream is in no value of the file.
function TestNumpy:test_bytes_behind_a_deflated_entry()
  local bytes = npy("<f4", "False", "2,", string.pack("<ff", 1, 2))
  local stored = "\1" .. string.pack("<I2I2", #bytes, ~#bytes & 0xffff) .. bytes -- as a block that is not packed
  write(at "a.npz", zip { { "x.npy", bytes, stored } })
  lu.assertEquals(dc.load(at "a.npz").x:totable(), { 1, 2 })
  for _, behind in ipairs { "x", ("\0"):rep(100000) } do
    write(at "a.npz", zip { { "x.npy", bytes, stored .. behind } })
    local ok, err = pcall(dc.load, at "a.npz")
    lu.assertFalse(ok)
    lu.assertStrContains(tostring(err), "'x.npy': bytes follow the deflated data")
  end
end

-- Arrays that are none of ours are left out of an archive, not the archive.
function TestNumpy:test_left_out()
  local x = { "x.npy", npy("<f4", "False", "2,", string.pack("<ff", 1, 2)) }
  local function method(n, flags)
    local e = { "m.npy", x[2], x[2] }
    e.method, e.flags = n, flags
    return e
  end
  write(at "a", zip { { "t.npy", npy("<U2", "False", "1,", ("x\0\0\0"):rep(2)) },
    { "r.npy", npy("[('a', '<f4'), ('b', '<i8', (2,))]", "False", "0,", "") },
    { "o.npy", npy("|O", "False", "1,", "\x80") }, { "axes.npy", npy("|u1", "False", ("1,"):rep(9), "1") },
    { "c.npy", npy("<c8", "False", ("1,"):rep(8), ("\0"):rep(8)) }, method(93), x })
  local t, _, told = dc.load(at "a")
  lu.assertEquals(told, { t = "<U2", r = "records", o = "|O", axes = "|u1", c = "<c8", m = "packed" })
  lu.assertEquals(t.x:totable(), { 1, 2 })
  t = data.read_npz(at "a")
  lu.assertEquals((next(t)), "x")
  lu.assertNil(next(t, "x"))
  fails("'t.npy': elements are '<U2', which is not read", data.read_npz, at "a", { "t" })
  fails("'m.npy' is packed by method 93, which is not known", data.read_npz, at "a", { "m" })
  fails("tensor 't' is not read: elements are '<U2', which is not read", dc.load, at "a", { t = dc.state "f32[1]" },
    { partial = true })
  write(at "a", zip { method(0, 1), x })
  lu.assertEquals((next((dc.load(at "a")))), "x")
  fails("'m.npy' is encrypted", data.read_npz, at "a", { "m" })
  write(at "a", zip {})
  lu.assertEquals(dc.load(at "a"), {})
  write(at "a", x[2] .. x[2])
  lu.assertEquals({ dc.load(at "a").value:totable(), data.read_npy(at "a"):totable() }, { { 1, 2 }, { 1, 2 } })
end

-- What Python's zipfile made of x.npy by these methods.
local PACKED = {
  { 12, 0, "bzip2 needs libbz2",
    "425a6839314159265359f23ba906000025dfe0601040e41414c1034220af45dc0a40000800200054451934d1820308c4323d" ..
    "4229e29a069ea340193434645a2664b1ca26b0101483857119948abd8c7dd40048ab6fdbb5de718c244922d43ab8b40a6c4a" ..
    "c0440838adefb47f177245385090f23ba906" },
  { 14, 2, "LZMA needs liblzma",
    "090405005d0000800000499386a4ded382796a25cd3ed390f9aa06900cca84b796519ddf912bcf4a1ca71c5fdf035c2c368f" ..
    "0b29b6eba05567f5cdfebdf295c15d657939c18b00d966104e446619bfc3f8f9d47d7f87fef30780" },
}

function TestNumpy:test_bzip2_and_lzma()
  local bytes = npy("<f4", "False", "2,", string.pack("<ff", 1, 2))
  for _, p in ipairs(PACKED) do
    local packed = p[4]:gsub("%x%x", function(hex) return string.char(tonumber(hex, 16)) end)
    local function archive(stream, what)
      return zip { { "x.npy", what or bytes, stream, method = p[1], flags = p[2] } }
    end
    write(at "a", archive(packed))
    local ok, t = pcall(data.read_npz, at "a", { "x" })
    if not ok and tostring(t):find(p[3], 1, true) then
      lu.assertEquals(t.code, "DC0801")
    else
      lu.assertTrue(ok, t)
      lu.assertEquals({ t.x:totable(), dc.load(at "a").x:totable() }, { { 1, 2 }, { 1, 2 } })
      for n = 0, #packed - 1 do -- cut off anywhere
        write(at "a", archive(packed:sub(1, n)))
        lu.assertFalse(pcall(data.read_npz, at "a", { "x" }), n)
      end
      write(at "a", archive(packed .. "x"))
      fails("'x.npy': bytes follow the packed data", data.read_npz, at "a", { "x" })
      write(at "a", archive(packed, bytes:sub(1, -2) .. "?"))
      fails("'x.npy': the data differ from the archive's checksum", data.read_npz, at "a", { "x" })
      write(at "a", archive("????" .. packed:sub(5)))
      fails("'x.npy': the packed data is damaged", data.read_npz, at "a", { "x" })
    end
  end
end

function TestNumpy:test_wrong()
  local cases = {
    { npy("<f4", "False", "3,", "12345678"), "'value' has 8 bytes of data, not 12" },
    { npy("|O", "False", "3,", "12345678"), "elements are objects of Python, which are not read" },
    { zip { { "x.npy", "no" } }, "'x.npy': not an npy file" },
    { zip { { "x.npy", npy("<f4", "False", "1,", "1234") }, { "x.npy", npy("<f4", "False", "1,", "1234") } },
      "tensor 'x' occurs twice" },
  }
  for _, case in ipairs(cases) do
    write(at "a", case[1])
    local ok, err = pcall(dc.load, at "a")
    lu.assertFalse(ok)
    lu.assertEquals(tostring(err):gsub("\n.*", ""):gsub("^[^ ]*: ", ""):gsub(dir, "DIR"), "DIR/a: " .. case[2])
  end
end
