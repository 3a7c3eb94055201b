-- dc.load of files of other programs: GGUF, conversions, a part of a file, other names.
local lu = require "luaunit"
local dc = require "deepc"
local check = require "tests.lua.check"

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

local function whole_message(...)
  local ok, err = pcall(...)
  lu.assertFalse(ok)
  return (tostring(err):gsub("\n.*", ""):gsub("^[^ ]*: ", ""):gsub(dir, "DIR"))
end

-- ---- GGUF, written here by hand ----

local function text(s)
  return string.pack("<s8", s)
end

local KIND = { u8 = { 0, "<B" }, i8 = { 1, "<b" }, u16 = { 2, "<I2" }, i16 = { 3, "<i2" }, u32 = { 4, "<I4" },
  i32 = { 5, "<i4" }, f32 = { 6, "<f" }, bool = { 7, "<B" }, text = { 8, "<s8" }, u64 = { 10, "<I8" },
  i64 = { 11, "<i8" }, f64 = { 12, "<d" } }

local function one(kind, v)
  return string.pack(KIND[kind][2], v)
end

local function list(kind, values)
  local parts = {}
  for i, v in ipairs(values) do
    parts[i] = one(kind, v)
  end
  return string.pack("<I4I8", KIND[kind][1], #values) .. table.concat(parts)
end

-- entries: { key, kind, value } or { key, { kind }, values }; tensors: { name, sizes as the file has them, number of
-- the type, bytes }.
local function gguf(entries, tensors, version)
  local head = { "GGUF", string.pack("<I4I8I8", version or 3, #tensors, #entries) }
  for _, e in ipairs(entries) do
    local listed = type(e[2]) == "table"
    head[#head + 1] = text(e[1]) .. (listed and string.pack("<I4", 9) .. list(e[2][1], e[3])
      or string.pack("<I4", KIND[e[2]][1]) .. one(e[2], e[3]))
  end
  local data = ""
  for _, t in ipairs(tensors) do
    data = data .. ("\0"):rep(-#data % 32)
    head[#head + 1] = text(t[1]) .. string.pack("<I4", #t[2])
    for _, size in ipairs(t[2]) do
      head[#head + 1] = string.pack("<I8", size)
    end
    head[#head + 1] = string.pack("<I4I8", t[3], #data)
    data = data .. t[4]
  end
  local bytes = table.concat(head)
  return bytes .. ("\0"):rep(-#bytes % 32) .. data
end

TestGguf = { setUp = Base.setUp, tearDown = Base.tearDown }

function TestGguf:test_metadata_and_tensors()
  local entries = { { "u8", "u8", 200 }, { "i8", "i8", -3 }, { "u16", "u16", 65535 }, { "i16", "i16", -300 },
    { "u32", "u32", 4000000000 }, { "i32", "i32", -5 }, { "f32", "f32", 0.5 }, { "bool", "bool", 1 },
    { "text", "text", "Zoë\0\n" }, { "u64", "u64", 1 << 62 }, { "i64", "i64", -1 << 60 }, { "f64", "f64", 0.1 },
    { "texts", { "text" }, { "a", "", "b" } }, { "bools", { "bool" }, { 0, 1 } }, { "floats", { "f32" }, { 1, 0.5 } },
    { "none", { "i32" }, {} } }
  local floats = string.pack("<ffffff", 1, 2, 3, 4, 5, 6)
  for version = 2, 3 do
    write(at "a", gguf(entries, { { "w", { 3, 2 }, 0, floats }, { "i", { 2 }, 27, string.pack("<i8i8", 7, -8) },
      { "s", {}, 0, string.pack("<f", 9) } }, version))
    local t, metadata, told = dc.load(at "a")
    lu.assertNil(told)
    lu.assertEquals(t.w:totable(), { { 1, 2, 3 }, { 4, 5, 6 } })
    lu.assertEquals(t.i.dtype, "i64")
    lu.assertEquals(t.i:totable(), { 7, -8 })
    lu.assertEquals(t.s:item(), 9)
    lu.assertEquals(metadata, { u8 = 200, i8 = -3, u16 = 65535, i16 = -300, u32 = 4000000000, i32 = -5, f32 = 0.5,
      bool = true, text = "Zoë\0\n", u64 = 1 << 62, i64 = -1 << 60, f64 = 0.1, texts = { "a", "", "b" },
      bools = { false, true }, floats = { 1, 0.5 }, none = {} })
    lu.assertEquals(math.type(metadata.u8), "integer")
    lu.assertEquals(math.type(metadata.floats[1]), "float")
  end
end

function TestGguf:test_quantised_types_have_the_bits_of_the_package_gguf()
  local want = dc.load "tests/lua/tensors/quantised.safetensors"
  local got, _, told = dc.load "tests/lua/tensors/quantised.gguf"
  lu.assertNil(told)
  for name, t in pairs(want) do
    lu.assertEquals(got[name].shape, { 2, 256 })
    lu.assertTrue(got[name]:eq(t):all():item(), name)
  end
  local halves = dc.load("tests/lua/tensors/quantised.gguf", nil, { cast = "bf16", only = { "q6_k" } })
  lu.assertEquals(halves.q6_k.dtype, "bf16")
  lu.assertTrue(halves.q6_k:eq(want.q6_k:cast "bf16"):all():item())
end

function TestGguf:test_packed()
  local t, _, told = dc.load("tests/lua/tensors/quantised.gguf", nil, { packed = true, only = { "q4_1", "q6_k" } })
  lu.assertEquals(told, { q4_1 = { type = "q4_1", shape = { 2, 256 } }, q6_k = { type = "q6_k", shape = { 2, 256 } } })
  lu.assertEquals({ t.q4_1.dtype, t.q4_1.shape }, { "u8", { 2, 160 } })
  lu.assertEquals({ t.q6_k.dtype, t.q6_k.shape }, { "u8", { 2, 210 } })
  local bytes = check.read "tests/lua/tensors/quantised.gguf"
  local from = bytes:find(t.q4_1:bytes(), 1, true)
  lu.assertNotNil(from)
end

function TestGguf:test_types_that_are_not_read_refuse_their_tensor_alone()
  write(at "a", gguf({}, { { "a", { 2 }, 0, string.pack("<ff", 1, 2) }, { "b", { 256 }, 23, ("x"):rep(136) },
    { "c", { 2 }, 99, "xx" } }))
  local t, _, told = dc.load(at "a")
  lu.assertEquals(t.a:totable(), { 1, 2 })
  lu.assertEquals(told, { b = "IQ4_XS", c = "type 99" })
  fails("tensor 'b' has dtype 'IQ4_XS', which is not read", dc.load, at "a", { b = dc.param "f32[256]" },
    { partial = true })
end

function TestGguf:test_files_that_are_wrong()
  local good = gguf({ { "k", "u32", 7 }, { "l", { "text" }, { "abc" } } }, { { "w", { 2, 2 }, 0, ("x"):rep(16) } })
  local function changed(from, bytes)
    return good:sub(1, from - 1) .. bytes .. good:sub(from + #bytes)
  end
  local key = good:find("k", 1, true) + 1   -- the type of k
  local l = good:find("l", 9, true) + 1     -- of l, the type of its elements, their number
  local w = good:find("w", 1, true) + 1     -- the axes of w
  local wrong = {
    { "GGUF", "truncated: the file ends within its first 24 bytes" },
    { changed(5, string.pack("<I4", 1)), "GGUF version 1, 2 and 3 are read" },
    { changed(5, string.pack(">I4", 3)), "a GGUF file of big-endian numbers, which are not read" },
    { changed(9, string.pack("<I8", -1)), "18446744073709551615 tensors and 2 metadata in a file of 144 bytes" },
    { changed(17, string.pack("<I8", 1 << 40)), "1 tensors and 1099511627776 metadata in a file of 144 bytes" },
    { changed(25, string.pack("<I8", 1 << 60)), "truncated: the file ends within metadata" },
    { changed(33, "\0"), "metadata has a zero byte in its name" },
    { changed(key, string.pack("<I4", 13)), "metadata 'k' has type 13, 0 to 12 are known" },
    { changed(key, string.pack("<I4I4", 7, 2)), "metadata 'k' is bool and has a byte 0x02" },
    { changed(l + 4, string.pack("<I4", 77)), "metadata 'l' is a list of type 77, 0 to 12 are known" },
    { changed(l + 8, string.pack("<I8", 1 << 61)), "truncated: the file ends within metadata" },
    { changed(l + 4, string.pack("<I4I8", 4, 1 << 62)), "truncated: the file ends within metadata" },
    { changed(l + 16, string.pack("<I8", 1 << 61)), "truncated: the file ends within metadata" },
    { changed(w, string.pack("<I4", 9)), "tensor 'w' has 9 axes, 8 is the most" },
    { changed(w + 4, string.pack("<I8I8", 1 << 40, 1 << 40)), "tensor 'w' is too large to address" },
    { changed(w + 4, string.pack("<I8", -1)), "tensor 'w' is too large to address" },
    { changed(w + 4, string.pack("<I8", 3)), "tensor 'w' has 24 bytes from byte 0 on, in 16 bytes of data" },
    { changed(w + 20, string.pack("<I4", 2)),
      "tensor 'w' is Q4_0 and has rows of 2 elements, which are no multiple of 32" },
    { changed(w + 24, string.pack("<I8", 8)), "tensor 'w' begins at byte 8 of the data, no multiple of 32" },
    { changed(w + 24, string.pack("<I8", 32)), "tensor 'w' has 16 bytes from byte 32 on, in 16 bytes of data" },
    { changed(w + 24, string.pack("<I8", -32)),
      "tensor 'w' begins at byte 18446744073709551584 of the data, no multiple of 32" },
    { gguf({}, { { "a", { 2 }, 0, ("x"):rep(8) }, { "a", { 2 }, 0, ("x"):rep(8) } }), "tensor 'a' occurs twice" },
    { gguf({ { "k", "u8", 1 }, { "k", "u8", 1 } }, {}), "metadata 'k' occurs twice" },
    { gguf({ { "general.alignment", "u32", 24 } }, {}),
      "general.alignment is no power of two up to 1048576, of type u32" },
    { gguf({ { "general.alignment", "u64", 32 } }, {}),
      "general.alignment is no power of two up to 1048576, of type u32" },
  }
  local deep = text "k" .. string.pack("<I4", 9) .. string.pack("<I4I8", 9, 1):rep(5)
  wrong[#wrong + 1] = { "GGUF" .. string.pack("<I4I8I8", 3, 0, 1) .. deep,
    "metadata 'k' has lists in lists, more than 4 deep" }
  for _, case in ipairs(wrong) do
    write(at "a", case[1])
    lu.assertEquals(whole_message(dc.load, at "a"), "DIR/a: " .. case[2])
  end
  local overlapping = gguf({}, { { "a", { 16 }, 0, ("x"):rep(64) }, { "b", { 16 }, 0, ("x"):rep(64) } })
  local second = overlapping:find("b", 1, true) + 1 + 4 + 8 + 4
  write(at "a", overlapping:sub(1, second - 1) .. string.pack("<I8", 32) .. overlapping:sub(second + 8))
  lu.assertEquals(whole_message(dc.load, at "a"), "DIR/a: tensors 'a' and 'b' overlap")
end

-- ---- conversions ----

TestConversions = { setUp = Base.setUp, tearDown = Base.tearDown }

function TestConversions:test_wider_cells_take_narrower_floats()
  local x = dc.tensor({ 1, 0.1, -3e-7, 60000, 1e-40 }, "f32[5]")
  for _, dtype in ipairs { "f16", "bf16", "f32" } do
    local t = x:cast(dtype)
    dc.save(at "a", { x = t })
    for _, wider in ipairs { "f32", "f64" } do
      local cell = dc.state(wider .. "[5]")
      dc.load(at "a", { x = cell })
      lu.assertTrue(cell:eq(t:cast(wider)):all():item())
    end
  end
end

function TestConversions:test_narrowing_is_asked_for()
  dc.save(at "a", { x = dc.tensor({ 1, 0.1, 70000, -3e-7 }, "f32[4]"), y = dc.ones "f64[2]" })
  for _, dtype in ipairs { "f16", "bf16" } do
    local cells = { x = dc.state(dtype .. "[4]"), y = dc.state(dtype .. "[2]") }
    lu.assertEquals(whole_message(dc.load, at "a", cells),
      ("load: DIR/a: tensor 'x' is f32[4], the state %s[4]: f32 against %s"):format(dtype, dtype))
    dc.load(at "a", cells, { cast = true })
    lu.assertTrue(cells.x:eq(dc.load(at "a").x:cast(dtype)):all():item())
    lu.assertEquals(cells.y:totable(), { 1, 1 })
  end
  dc.save(at "a", { x = dc.ones "i32[2]" })
  fails("i32 against f32", dc.load, at "a", { x = dc.state "f32[2]" }, { cast = true })
  dc.save(at "a", { x = dc.ones "bf16[2]" })
  fails("bf16 against f16", dc.load, at "a", { x = dc.state "f16[2]" })
end

-- All bytes are elements.
function TestConversions:test_floats_of_8_bits()
  local bytes = {}
  for i = 0, 255 do
    bytes[i + 1] = string.char(i)
  end
  local function value(b, exponent_bits)
    local fraction_bits = 7 - exponent_bits
    local bias, sign = (1 << (exponent_bits - 1)) - 1, b >= 128 and -1 or 1
    local e, m = (b & 127) >> fraction_bits, b & ((1 << fraction_bits) - 1)
    if exponent_bits == 4 and b & 127 == 127 or exponent_bits == 5 and e == 31 and m > 0 then
      return 0 / 0
    elseif exponent_bits == 5 and e == 31 then
      return sign * math.huge
    end
    return sign * (e > 0 and (1 + m / (1 << fraction_bits)) * 2.0 ^ (e - bias)
      or m / (1 << fraction_bits) * 2.0 ^ (1 - bias))
  end
  for name, exponent_bits in pairs { F8_E4M3 = 4, F8_E5M2 = 5 } do
    write(at "a", string.pack("<s8", ('{"x":{"dtype":"%s","shape":[16,16],"data_offsets":[0,256]}}'):format(name)) ..
      table.concat(bytes))
    local as_is, _, told = dc.load(at "a")
    lu.assertEquals({ as_is.x.dtype, told }, { exponent_bits == 4 and "f8e4m3fn" or "f8e5m2" })
    lu.assertEquals(as_is.x:bytes(), table.concat(bytes))
    dc.save(at "b", as_is)
    lu.assertEquals(dc.load(at "b").x:bytes(), table.concat(bytes))
    local got = dc.load(at "a", nil, { cast = true }).x
    lu.assertEquals({ got.dtype, got.shape }, { "f32", { 16, 16 } })
    local flat = got:reshape(256):totable()
    for i = 0, 255 do
      local want = value(i, exponent_bits)
      lu.assertTrue(flat[i + 1] == want or want ~= want and flat[i + 1] ~= flat[i + 1], name .. i)
    end
    for _, dtype in ipairs { "f16", "bf16" } do
      local cell = dc.state(dtype .. "[16, 16]")
      dc.load(at "a", { x = cell })
      lu.assertTrue(((cell:cast "f32"):eq(got) | got:ne(got)):all():item())
    end
  end
  write(at "a", string.pack("<s8", '{"x":{"dtype":"F8_E4M3","shape":[3],"data_offsets":[0,2]}}') .. "ab")
  fails("tensor 'x' is f8e4m3fn[3], 3 bytes, and has data_offsets 0 to 2", dc.load, at "a")
end

function TestConversions:test_by_several_threads()
  local x = dc.rand("f32[1500, 1000]", { seed = 1 })
  dc.save(at "a", { f32 = x, f16 = x:cast "f16", f64 = x:cast "f64" })
  local t = dc.load(at "a")
  lu.assertTrue(t.f32:eq(x):all():item())
  local cells = { f32 = dc.state "f32[1500, 1000]", f16 = dc.state "f32[1500, 1000]", f64 = dc.state "f16[1500, 1000]" }
  dc.load(at "a", cells, { cast = true })
  lu.assertTrue(cells.f32:eq(x):all():item())
  lu.assertTrue(cells.f16:eq(x:cast "f16":cast "f32"):all():item())
  lu.assertTrue(cells.f64:eq(x:cast "f64":cast "f16"):all():item())
end

-- ---- a part of a file, other names ----

TestChoices = { setUp = Base.setUp, tearDown = Base.tearDown }

local function names_of(t)
  local names = {}
  for name in pairs(t) do
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

function TestChoices:test_only()
  dc.save(at "a", { a = dc.ones "f32[2]", b = dc.ones "f32[3]", ["x.c"] = dc.ones "f32[4]" })
  lu.assertEquals(names_of(dc.load(at "a", nil, { only = { "a", "x.c" } })), { "a", "x.c" })
  lu.assertEquals(names_of(dc.load(at "a", nil, { only = function(name) return name < "b" end })), { "a" })
  local cell = dc.state "f32[2]"
  dc.load(at "a", { a = cell }, { only = { "a" } })
  lu.assertEquals(cell:totable(), { 1, 1 })
  lu.assertEquals(whole_message(dc.load, at "a", nil, { only = { "aa" } }),
    "load: DIR/a: has no tensor 'aa', which `only` asks for")
  fails("only is a list of names or a function, not the number 3", dc.load, at "a", nil, { only = 3 })
  fails("only[2] is the number 3; names of tensors are needed", dc.load, at "a", nil, { only = { "a", 3 } })
  fails("only is a table without a list of names", dc.load, at "a", nil, { only = { a = true } })
end

function TestChoices:test_rename()
  dc.save(at "a", { ["m.a"] = dc.ones "f32[2]", ["m.b"] = dc.ones "f32[3]", c = dc.ones "f32[4]" })
  local function strip(name)
    return name:match "^m%.(.*)"
  end
  lu.assertEquals(names_of(dc.load(at "a", nil, { rename = strip })), { "a", "b" })
  local cells = { a = dc.state "f32[2]", b = dc.state "f32[3]" }
  dc.load(at "a", cells, { rename = strip })
  lu.assertEquals(cells.b:totable(), { 1, 1, 1 })
  lu.assertEquals(whole_message(dc.load, at "a", nil, { rename = function() return "x" end }),
    "load: DIR/a: rename gives 'x' to both 'c' and 'm.a'")
  lu.assertEquals(whole_message(dc.load, at "a", nil, { rename = function() return 1 end }),
    "load: rename gives the number 1 for 'c'; a name or nil is needed")
  fails("has no tensor 'q'", dc.load, at "a", { q = dc.state "f32[2]" }, { rename = strip })
end

function TestChoices:test_shared_cells_under_other_names()
  local w = dc.param("f32[2]", { 1, 2 })
  dc.save(at "a", { a = w, b = w })
  local t = dc.load(at "a", nil, { rename = function(name) return "x." .. name end })
  lu.assertEquals(t["x.b"]:totable(), { 1, 2 })
  lu.assertEquals(names_of(t), { "x.a", "x.b" })
  local cell = dc.state "f32[2]"
  dc.load(at "a", { q = cell }, { rename = function(name) return name == "b" and "q" or nil end, partial = true })
end

function TestChoices:test_progress()
  local x = dc.rand("f32[3000, 1000]", { seed = 1 })
  dc.save(at "a", { a = x, b = x * 2, c = x * 3 })
  local calls = {}
  local function progress(done, total)
    calls[#calls + 1] = { done, total }
  end
  dc.load(at "a", nil, { progress = progress })
  lu.assertEquals(calls, { { 24000000, 36000000 }, { 36000000, 36000000 } })
  calls = {}
  local cells = { a = dc.state "f32[3000, 1000]", b = dc.state "f32[3000, 1000]", c = dc.state "f32[3000, 1000]" }
  dc.load(at "a", cells, { progress = progress })
  lu.assertEquals(calls, { { 24000000, 36000000 }, { 36000000, 36000000 } })
  lu.assertTrue(cells.b:eq(x * 2):all():item())
  -- a script that fails in between leaves cells that say so
  fails("no more", dc.load, at "a", cells, { progress = function() error "no more" end })
  lu.assertEquals(select(2, pcall(cells.c.totable, cells.c)).code, "DC0610")
  dc.load(at "a", cells)
  lu.assertTrue(cells.c:eq(x * 3):all():item())
  fails("progress is a function, not the number 1", dc.load, at "a", cells, { progress = 1 })
end

function TestChoices:test_options()
  dc.save(at "a", { a = dc.ones "f32[2]" })
  local cell = { a = dc.state "f32[2]" }
  fails("packed is for dc.load(path) without cells", dc.load, at "a", cell, { packed = true })
  fails("cast is the string 'f16'", dc.load, at "a", cell, { cast = "f16" })
  fails("cast is the string 'i8'", dc.load, at "a", nil, { cast = "i8" })
  lu.assertEquals(dc.load(at "a", nil, { cast = "f16" }).a.dtype, "f16")
end

-- ---- several files with an index ----

TestShards = { setUp = Base.setUp, tearDown = Base.tearDown }

local function list_dir()
  local names = {}
  local pipe <close> = assert(io.popen("ls -A " .. dir))
  for name in pipe:lines() do
    names[#names + 1] = name
  end
  return names
end

function TestShards:test_there_and_back()
  local w = dc.rand("f32[10, 10]", { seed = 1 })
  local shared = dc.param("f32[3]", { 1, 2, 3 })
  local values = { a = w, b = w * 2, c = w * 3, d = dc.ones "i64[2]", big = dc.zeros "f32[300]", x = shared,
    y = shared }
  local path = at "model.safetensors.index.json"
  dc.save(path, values, { epoch = "5" }, { pieces = 900 })
  lu.assertEquals(list_dir(), { "model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
    "model-00003-of-00003.safetensors", "model.safetensors.index.json" })
  for _, from in ipairs { path, dir } do
    local t, metadata = dc.load(from)
    lu.assertEquals(metadata, { epoch = "5", total_size = 2428 })
    for name, v in pairs(values) do
      lu.assertTrue(t[name]:eq(v):all():item(), name)
    end
  end
  local cells = { a = dc.state "f64[10, 10]", c = dc.state "f32[10, 10]" }
  dc.load(dir, cells, { partial = true })
  lu.assertTrue(cells.c:eq(w * 3):all():item())
  local before = check.read(path)
  dc.save(path, values, { epoch = "5" }, { pieces = 900 })
  lu.assertEquals(check.read(path), before)
  dc.save(path, {}, nil, { pieces = 1 })
  lu.assertEquals((dc.load(path)), {})
end

function TestShards:test_a_folder()
  fails("is a directory without model.safetensors.index.json or model.safetensors", dc.load, dir)
  dc.save(at "model.safetensors", { x = dc.ones "f32[2]" })
  lu.assertEquals(dc.load(dir).x:totable(), { 1, 1 })
end

function TestShards:test_arguments()
  local x = { x = dc.ones "f32[2]" }
  fails("'" .. at "a.safetensors" .. "' is no name of an index", dc.save, at "a.safetensors", x, nil, { pieces = 10 })
  local path = at "a.safetensors.index.json"
  fails("pieces is the number 0; a number of bytes is needed", dc.save, path, x, nil, { pieces = 0 })
  fails("metadata 'total_size': an index has its own", dc.save, path, x, { total_size = "1" }, { pieces = 9 })
  lu.assertEquals(list_dir(), {})
end

function TestShards:test_files_that_are_wrong()
  dc.save(at "p", { x = dc.ones "f32[2]" })
  local cases = {
    { '{"weight_map": {"x": "../p"}}', "index: tensor 'x' is in '../p', which is no name of a file beside it" },
    { '{"weight_map": {"x": "/etc/passwd"}}',
      "index: tensor 'x' is in '/etc/passwd', which is no name of a file beside it" },
    { '{"weight_map": {"x": ".."}}', "index: tensor 'x' is in '..', which is no name of a file beside it" },
    { '{"weight_map": {"y": "p"}}', "index: file 'p' has no tensor 'y'" },
    { '{"weight_map": {"x": "p", "x": "p"}}', "tensor 'x' occurs twice" },
    { '{"weight_map": {"x": 3}}', "index: at byte 21: a string expected, not '3'" },
    { '{"weight_map": {"x": "p"}', "index: at byte 25: '}' expected, not the end" },
    { '{"weight_map": {"x": "p"}} x', "index: at byte 27: the end expected, not 'x'" },
    { '{"weight_map": ["p"]        }', "index: at byte 15: '{' expected, not '['" },
    { '{"metadata": {"a": "x"}}', "no safetensors file and no index of such files: it has no 'weight_map'" },
    { '{"metadata": {"a": "1", "a": "2"}, "weight_map": {"x": "p"}}', "metadata 'a' occurs twice" },
    { '{"metadata": {"a": 1.}, "weight_map": {"x": "p"}}', "index: at byte 19: a number without digits" },
    { '{"metadata": {"a": nil}, "weight_map": {"x": "p"}}', "index: at byte 19: a value expected, not 'n'" },
    { '{"other":  ' .. ("["):rep(40), "index: at byte 43: nested more than 32 deep" },
  }
  for _, case in ipairs(cases) do
    write(at "a", case[1])
    lu.assertEquals(whole_message(dc.load, at "a"), "DIR/a: " .. case[2])
  end
  write(at "a", '{"weight_map": {"x": "q"}}')
  lu.assertEquals(whole_message(dc.load, at "a"), "DIR/q: No such file or directory")
  write(at "a", '{"metadata": {"total_size": 1e9, "n": 7, "l": [1, -2.5e+3, {"k": [true, false, null]}]}, "x": {}, ' ..
    '"weight_map": {"x": "p"}}')
  local t, metadata = dc.load(at "a")
  lu.assertEquals(t.x:totable(), { 1, 1 })
  lu.assertEquals(metadata, { n = 7 })
end

-- Where one of the files cannot be written, none is.
function TestShards:test_whole_or_not_at_all()
  local path = at "m.safetensors.index.json"
  dc.save(path, { a = dc.ones "f32[4]", b = dc.ones "f32[4]" }, nil, { pieces = 16 })
  os.execute("rm " .. at "m-00002-of-00002.safetensors" .. " && mkdir " .. at "m-00002-of-00002.safetensors")
  local before = check.read(at "m-00001-of-00002.safetensors")
  fails("is a directory", dc.save, path, { a = dc.zeros "f32[4]", b = dc.zeros "f32[4]" }, nil, { pieces = 16 })
  lu.assertEquals(check.read(at "m-00001-of-00002.safetensors"), before)
end

-- ---- GGUF, written ----

TestWrittenGguf = { setUp = Base.setUp, tearDown = Base.tearDown }

function TestWrittenGguf:test_types_have_the_bits_of_the_package_gguf()
  local x = dc.load("tests/lua/tensors/quantised.safetensors").q6_k
  local theirs = dc.load("tests/lua/tensors/written.gguf", nil, { packed = true })
  for name, want in pairs(theirs) do
    dc.save(at "a.gguf", { x = x }, nil, { type = name })
    local got, _, told = dc.load(at "a.gguf", nil, { packed = true })
    lu.assertEquals({ got.x.dtype, got.x.shape }, { want.dtype, want.shape })
    lu.assertEquals(got.x:bytes(), want:bytes(), name)
    lu.assertEquals(told and told.x, name:find "^q" and { type = name, shape = { 2, 256 } } or nil)
  end
end

function TestWrittenGguf:test_there_and_back()
  local shared = dc.param("f32[3]", { 1, 2, 3 })
  local values = { a = shared, b = shared, i = dc.tensor({ 1, -2 }, "i64[2]"), h = dc.ones "bf16[2, 3]",
    s = dc.tensor(3.5), d = dc.ones "f64[2]", none = dc.zeros "f32[0, 4]" }
  local metadata = { ["general.architecture"] = "x", n = 3, neg = -3, big = 1 << 40, f = 0.5, d = 1e300, b = true,
    z = false, text = "a\0b", texts = { "a", "" }, ints = { 1, -3 }, longs = { 1, 1 << 40 },
    floats = { 1, 2.5 }, bools = { true },
    lists = { { 1 }, { 2.5, 3 } }, none = {} }
  dc.save(at "a.gguf", values, metadata)
  local t, got = dc.load(at "a.gguf")
  lu.assertEquals(got, metadata)
  lu.assertEquals(math.type(got.n), "integer")
  for name, v in pairs(values) do
    lu.assertEquals({ t[name].dtype, t[name].shape }, { v.dtype, v.shape })
    lu.assertTrue(t[name]:eq(v):all():item(), name)
  end
  local before = check.read(at "a.gguf")
  dc.save(at "a.gguf", values, metadata)
  lu.assertEquals(check.read(at "a.gguf"), before)
  dc.save(at "b.gguf", {}, { n = { type = "u64", value = 3 }, l = { type = "u8", value = { 1, 255 } } })
  lu.assertEquals(select(2, dc.load(at "b.gguf")), { n = 3, l = { 1, 255 } })
end

function TestWrittenGguf:test_types_of_tensors()
  local values = { m = dc.ones "f32[2, 64]", odd = dc.ones "f32[2, 33]", v = dc.ones "f16[64]",
    i = dc.ones "i32[2, 32]" }
  local function types(type)
    dc.save(at "a.gguf", values, nil, { type = type })
    local t, _, told = dc.load(at "a.gguf", nil, { packed = true })
    local found = {}
    for _, name in ipairs { "i", "m", "odd", "v" } do
      found[#found + 1] = told and told[name] and told[name].type or t[name].dtype
    end
    return table.concat(found, " ")
  end
  lu.assertEquals(types(nil), "i32 f32 f32 f16")
  lu.assertEquals(types "q8_0", "i32 q8_0 f32 f32")
  lu.assertEquals(types "bf16", "i32 bf16 bf16 f32")
  lu.assertEquals(types(function(name) return name == "v" and "q4_0" or nil end), "i32 f32 f32 q4_0")
end

function TestWrittenGguf:test_what_has_no_place()
  local function refused(want, ...)
    lu.assertEquals(whole_message(dc.save, at "a.gguf", ...), want)
    lu.assertNil(io.open(at "a.gguf"))
  end
  refused("save: 'x' is u8[2], a type that GGUF does not have", { x = dc.ones "u8[2]" })
  refused("save: 'x' is f32[1, 1, 1, 1, 2]: GGUF has 4 axes at most", { x = dc.ones "f32[1, 1, 1, 1, 2]" })
  refused(("save: the name '%s' has 64 bytes, GGUF has 63 at most"):format(("n"):rep(64)),
    { [("n"):rep(64)] = dc.tensor(1) })
  local wide = dc.ones "f32[2, 32]"
  for _, v in ipairs { 1 / 0, -1 / 0, 0 / 0, 1e8 } do
    refused("save: 'x' has an element that q8_0 does not hold: NaN, an infinity or one that is too large",
      { x = wide * v }, nil, { type = "q8_0" })
  end
  refused("save: 'x' has an element that f16 does not hold: it is too large",
    { x = wide * 70000 }, nil, { type = "f16" })
  dc.save(at "b.gguf", { x = wide / 0 }, nil, { type = "f16" })
  lu.assertEquals(dc.load(at "b.gguf").x:min():item(), 1 / 0)
  local x = { x = dc.ones "f32[2]" }
  refused("save: type is the string 'q9'", x, nil, { type = "q9" })
  refused("save: type is the string 'q9'", { x = wide }, nil, { type = function() return "q9" end })
  refused("save: metadata 'a' is a function", x, { a = print })
  refused("save: metadata 'a' is a table", x, { a = { 1, "b" } })
  refused("save: metadata 'a' is a table with the key 'b'; lists are kept", x, { a = { b = 1 } })
  refused("save: metadata 'a' has the type 'u7'", x, { a = { type = "u7", value = 3 } })
  refused("save: metadata 'a' is the number 300, which is no u8", x, { a = { type = "u8", value = 300 } })
  refused("save: metadata 'general.alignment' is set by what is written", x, { ["general.alignment"] = 64 })
  fails("type is for GGUF files, whose names end with .gguf", dc.save, at "a", x, nil, { type = "f16" })
end

-- What a script that loads the file prints.
local function notes_of_loading(path)
  local program = require "tests.lua.program"
  local script = program.script(("require 'deepc'.load %q"):format(path))
  local out = program.run(program.quote(script), "DEEPC_DEVICE=eval")
  os.remove(script)
  return (out:gsub(dir, "DIR"))
end

function TestGguf:test_one_of_several_files_says_so()
  write(at "a", gguf({ { "split.count", "u16", 3 } }, { { "w", { 1 }, 0, "1234" } }))
  lu.assertEquals(notes_of_loading(at "a"),
    "[note] load: DIR/a is one of 3 files, and has the tensors of this one alone\n")
end

function TestGguf:test_notes_of_what_is_left_out_are_few()
  local tensors = {}
  for i = 1, 9 do
    tensors[i] = { "t" .. i, { 256 }, 23, ("x"):rep(136) }
  end
  write(at "a", gguf({}, tensors))
  lu.assertEquals(notes_of_loading(at "a"), "[note] load: tensor 't1' is left out: dtype 'IQ4_XS' is not read\n" ..
    "[note] load: tensor 't2' is left out: dtype 'IQ4_XS' is not read\n" ..
    "[note] load: tensor 't3' is left out: dtype 'IQ4_XS' is not read\n" ..
    "[note] load: 6 more tensors are left out; the third result has their names and types\n")
  local _, _, told = dc.load(at "a", nil, { only = { "t5" } })
  lu.assertEquals(told, { t5 = "IQ4_XS" })
end
