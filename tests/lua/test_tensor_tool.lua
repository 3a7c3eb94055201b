-- deepc inspect, deepc convert.
local lu = require "luaunit"
local dc = require "deepc"
local program = require "tests.lua.program"

local quote = program.quote

local dir

local function at(name)
  return dir .. "/" .. name
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

local function run(line)
  local text, status = program.run(line, "DEEPC_DEVICE=eval")
  return text:gsub(dir, "DIR"), status
end

TestInspect = { setUp = Base.setUp, tearDown = Base.tearDown }

function TestInspect:test_a_file()
  local words = {}
  for i = 1, 20 do
    words[i] = "w" .. i
  end
  dc.save(at "a.gguf", { ["b.10.w"] = dc.ones "f32[2, 64]", ["b.2.w"] = dc.ones "f32[2, 64]", v = dc.ones "f32[3]" },
    { ["general.architecture"] = "x", n = 3, f = 0.1, words = words, some = { 1, 2 }, yes = true,
      long = ("a\n\"é"):rep(30) }, { type = "q8_0" })
  local text, status = run("inspect " .. quote(at "a.gguf"))
  lu.assertEquals(text, [[
DIR/a.gguf: gguf, 3 tensors, 259 elements, 284 bytes

  name    type  sizes    bytes
  b.2.w   Q8_0  [2, 64]  136
  b.10.w  Q8_0  [2, 64]  136
  v       F32   [3]      12

metadata
  f                     f32           0.1
  general.architecture  text          "x"
  long                  text          "]] .. ("a\\n\\\"é"):rep(11) .. [[a\n\"..." (150 bytes)
  n                     u32           3
  some                  list of i32   {1, 2}
  words                 list of text  20 of text: {"w1", "w2", "w3", ...}
  yes                   bool          true

by type
  F32   1 tensor   3 elements    12 bytes
  Q8_0  2 tensors  256 elements  272 bytes
]])
  lu.assertEquals(status, 0)
end

function TestInspect:test_failures()
  local text, status = run("inspect " .. quote(at "none"))
  lu.assertEquals({ text, status }, { "deepc: DIR/none: No such file or directory\n", 1 })
  text, status = run "inspect"
  lu.assertEquals({ text, status }, { "deepc: inspect: a file is needed: deepc inspect model.safetensors\n", 1 })
  text, status = run("inspect " .. quote(dir))
  lu.assertEquals({ text, status },
    { "deepc: DIR: is a directory without model.safetensors.index.json or model.safetensors\n", 1 })
  lu.assertStrContains(run "inspect --help", "usage: deepc inspect")
end

TestConvert = { setUp = Base.setUp, tearDown = Base.tearDown }

function TestConvert:test_between_formats()
  local w = dc.rand("f32[4, 64]", { seed = 1 })
  local shared = dc.param("f32[2]", { 1, 2 })
  dc.save(at "a", { ["m.w"] = w, ["m.a"] = shared, ["m.b"] = shared, i = dc.ones "i64[2]" }, { epoch = "5" })
  local text, status = run(("convert %s %s --type q8_0 --rename '^m%%.=model.'"):format(quote(at "a"),
    quote(at "b.gguf")))
  lu.assertEquals({ text, status }, { "", 0 })
  local t, metadata, told = dc.load(at "b.gguf", nil, { packed = true })
  lu.assertEquals(told, { ["model.w"] = { type = "q8_0", shape = { 4, 64 } } })
  lu.assertEquals(t["model.b"]:totable(), { 1, 2 })
  lu.assertEquals(t.i.dtype, "i64")
  lu.assertEquals(metadata, { epoch = "5" })
  dc.save(at "direct.gguf", { w = w }, nil, { type = "q8_0" })
  lu.assertEquals(t["model.w"]:bytes(), dc.load(at "direct.gguf", nil, { packed = true }).w:bytes())
  text, status = run(("convert %s %s --type f16"):format(quote(at "b.gguf"), quote(at "c")))
  lu.assertEquals({ text, status }, { "", 0 })
  t, metadata = dc.load(at "c")
  lu.assertEquals({ t["model.w"].dtype, t["model.a"].dtype, t.i.dtype }, { "f16", "f16", "i64" })
  lu.assertEquals(metadata, { epoch = "5" })
end

function TestConvert:test_types_of_metadata_stay()
  dc.save(at "a.gguf", { x = dc.ones "f32[2]" }, { n = { type = "u64", value = 3 }, l = { type = "u8", value = { 1 } },
    f = { type = "f64", value = 0.1 } })
  run(("convert %s %s"):format(quote(at "a.gguf"), quote(at "b.gguf")))
  local text = run("inspect " .. quote(at "b.gguf"))
  lu.assertStrContains(text, "f  f64         0.1\n  l  list of u8  {1}\n  n  u64         3\n")
  text = run(("convert %s %s"):format(quote(at "a.gguf"), quote(at "c")))
  lu.assertEquals(text, "[note] convert: metadata 'l' is left out: safetensors has texts alone\n")
  lu.assertEquals(select(2, dc.load(at "c")), { n = "3", f = "0.10000000000000001" })
end

function TestConvert:test_failures()
  dc.save(at "a", { x = dc.ones "f32[2, 32]" / 0, y = dc.ones "f32[2]" })
  local function refused(want, line)
    local text, status = run("convert " .. line)
    lu.assertEquals({ text, status }, { "deepc: " .. want .. "\n", 1 })
  end
  refused("convert: two files are needed: deepc convert model.gguf model.safetensors", quote(at "a"))
  refused("convert: q8_0 is for GGUF files, whose names end with .gguf",
    ("%s %s --type q8_0"):format(quote(at "a"), quote(at "b")))
  refused("convert: --rename 'xy' has no PATTERN=TEXT", ("%s %s --rename xy"):format(quote(at "a"), quote(at "b")))
  refused("malformed pattern (missing ']')", ("%s %s --rename '[=y'"):format(quote(at "a"), quote(at "b")))
  refused("save: 'x' has an element that q8_0 does not hold: NaN, an infinity or one that is too large",
    ("%s %s --type q8_0"):format(quote(at "a"), quote(at "b.gguf")))
  refused("load: DIR/a: rename gives 'z' to both 'x' and 'y'",
    ("%s %s --rename '.=z'"):format(quote(at "a"), quote(at "b")))
  lu.assertStrContains(run("convert --type q9 a b"), "--type is f32, f16, bf16, q8_0 or q4_0, not 'q9'")
  lu.assertNil(io.open(at "b"))
  lu.assertNil(io.open(at "b.gguf"))
end
