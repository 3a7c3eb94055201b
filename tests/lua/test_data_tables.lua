-- Files of arrays and tables: NumPy's, CSV.
local lu = require "luaunit"
local dc = require "deepc"
local data = require "deepc.data"
local check = require "tests.lua.check"
local program = require "tests.lua.program"

local fails = check.fails

local function write(path, bytes)
  local f = assert(io.open(path, "wb"))
  f:write(bytes)
  assert(f:close())
  return path
end

local function slurp(path)
  local f <close> = assert(io.open(path, "rb"))
  return f:read "a"
end

TestNumpy = {}

function TestNumpy:setUp()
  self.path = os.tmpname()
end

function TestNumpy:tearDown()
  os.remove(self.path)
end

function TestNumpy:test_there_and_back()
  for dtype in ("bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64"):gmatch "%w+" do
    local x = (dc.iota "i32[2, 3]" % 2):cast(dtype)
    data.write_npy(self.path, x)
    local y = data.read_npy(self.path)
    lu.assertEquals(y.dtype, dtype)
    lu.assertEquals(y:totable(), x:totable())
  end
  data.write_npy(self.path, dc.zeros "f32[0, 3]")
  lu.assertEquals(data.read_npy(self.path).shape, { 0, 3 })
  local w = dc.param("f32[2]", { 1, 2 })
  data.write_npy(self.path, w * 2) -- lazy
  lu.assertEquals(data.read_npy(self.path):totable(), { 2, 4 })
end

function TestNumpy:test_archives()
  for _, compress in ipairs { false, true } do
    data.write_npz(self.path, { x = dc.ones "f32[100]", y = dc.iota(3) }, { compress = compress })
    local t = data.read_npz(self.path)
    lu.assertEquals(t.x:sum():item(), 100)
    lu.assertEquals(t.y:totable(), { 0, 1, 2 })
    lu.assertNil(data.read_npz(self.path, { "y" }).x)
    fails("has no array 'z'", data.read_npz, self.path, { "z" })
  end
  lu.assertTrue(#slurp(self.path) < 400)
  data.write_npz(self.path, {})
  lu.assertEquals(data.read_npz(self.path), {})
end

function TestNumpy:test_errors()
  lu.assertEquals(fails("No such file", data.read_npy, "/nonexistent/x").code, "DC0801")
  write(self.path, "hello")
  lu.assertEquals(fails("not an npy file", data.read_npy, self.path).code, "DC0802")
  fails("not an npz file", data.read_npz, self.path)
  fails("a path is needed, not nil", data.read_npy)
  fails("a tensor is needed, not a table", data.write_npy, self.path, { 1 })
  fails("'x': a tensor is needed, not the number 1", data.write_npz, self.path, { x = 1 })
  fails("names are texts, not the number 1", data.write_npz, self.path, { dc.iota(2) })
  lu.assertEquals(slurp(self.path), "hello") -- what fails has written nothing
end

TestTables = {}
TestTables.setUp, TestTables.tearDown = TestNumpy.setUp, TestNumpy.tearDown

function TestTables:test_columns()
  write(self.path, 'id,price,name,ok\n1,2.5,"Smith, J.",true\n2,,x,false\n')
  local t, names = data.read_csv(self.path)
  lu.assertEquals(names, { "id", "price", "name", "ok" })
  lu.assertEquals(t.id.dtype, "i64")
  lu.assertEquals(t.price.dtype, "f64")
  lu.assertEquals(t.name, { "Smith, J.", "x" })
  lu.assertEquals(t.ok:totable(), { true, false })
  lu.assertTrue(t.price[2]:ne(t.price[2]):item()) -- NaN
  t, names = data.read_csv(self.path, { columns = { "price", 1 }, dtype = "f32", fill = 7 })
  lu.assertEquals(names, { "price", "id" })
  lu.assertEquals(t.price:totable(), { 2.5, 7 })
  lu.assertEquals(t.id.dtype, "f32")
  t = data.read_csv(self.path, { types = { id = "text", ok = "bool", price = "i32" }, fill = { price = -1 },
    columns = { "id", "ok" } })
  lu.assertEquals(t.id, { "1", "2" })
  lu.assertNil(t.price)
  fails("line 2, column 4 ('ok'): 'true' is no u8", data.read_csv, self.path, { dtype = "u8", columns = { "ok" } })
end

function TestTables:test_matrix()
  write(self.path, "1\t2\t3\n4\t5\t6\n")
  local m, names = data.read_csv(self.path, { header = false, separator = "\t", matrix = true })
  lu.assertEquals(m.dtype, "f32")
  lu.assertEquals(m:totable(), { { 1, 2, 3 }, { 4, 5, 6 } })
  lu.assertEquals(names, { "1", "2", "3" })
  m = data.read_csv(self.path, { header = false, separator = "\t", matrix = true, dtype = "i32", columns = { 1, 3 } })
  lu.assertEquals(m:totable(), { { 1, 3 }, { 4, 6 } })
  m = data.read_csv(self.path, { names = { "a", "b", "c" }, header = false, separator = "\t" })
  lu.assertEquals(m.b:totable(), { 2, 5 })
end

function TestTables:test_errors()
  write(self.path, "age,name\n1,x\n2\n")
  local err = fails("line 3 has 1 field, the first has 2", data.read_csv, self.path)
  lu.assertEquals(err.code, "DC0802")
  lu.assertEquals(fails("No such file", data.read_csv, "/nonexistent").code, "DC0801")
  write(self.path, "age,name\n1,x\n")
  fails("has no column 'aeg'", data.read_csv, self.path, { columns = { "aeg" } })
  fails("column 'age' is named twice", data.read_csv, self.path, { columns = { "age", 1 } })
  fails("line 2, column 2 ('name'): 'x' is no f32", data.read_csv, self.path, { matrix = true })
  fails("unknown option 'sep'", data.read_csv, self.path, { sep = ";" })
  fails("separator is one character, not 'ab'", data.read_csv, self.path, { separator = "ab" })
  fails("dtype is a dtype, not 'float'", data.read_csv, self.path, { dtype = "float" })
  fails("3 names for the 2 columns", data.read_csv, self.path, { names = { "a", "b", "c" } })
end

function TestTables:test_written()
  data.write_csv(self.path, { x = dc.tensor({ 0.1, 0 / 0, 3 }, "f64"), w = { "a", "b,c", 'd"' } })
  lu.assertEquals(slurp(self.path), 'w,x\na,0.1\n"b,c",\n"d""",3.0\n')
  local t = data.read_csv(self.path)
  lu.assertEquals(t.w, { "a", "b,c", 'd"' })
  lu.assertEquals(t.x[1]:item(), 0.1)
  data.write_csv(self.path, dc.tensor({ { 1, 2 }, { 3, 4 } }, "i32"), { names = { "b", "a" }, separator = ";" })
  lu.assertEquals(slurp(self.path), "b;a\n1;2\n3;4\n")
  data.write_csv(self.path, dc.iota "i32[2, 2]")
  lu.assertEquals(slurp(self.path), "0,1\n0,1\n")
  data.write_csv(self.path, { x = dc.tensor { 0 / 0, 1 } }, { header = false })
  lu.assertEquals(slurp(self.path), '""\n1.0\n')
  fails("column 'b' has 3 rows, 'a' 2", data.write_csv, self.path, { a = dc.iota(2), b = dc.iota(3) })
  fails("column 'a' has 2 axes, 1 is needed", data.write_csv, self.path, { a = dc.iota "i32[2, 2]" })
  fails("column 'a' at 1: a text is needed, not the number 1", data.write_csv, self.path, { a = { 1 } })
end

-- Whole numbers beyond 2^53: i64 or u64 where one of them holds all, else f64 and a note.
function TestTables:test_large_whole_numbers()
  write(self.path, "i,u,f,m\n-9223372036854775808,18446744073709551615,9007199254740993,-1\n"
    .. "9223372036854775807,1,2.5,18446744073709551615\n")
  local script = program.script(([[
    local t = require "deepc.data".read_csv %q
    print(("%%d %%d"):format(t.i[1]:item(), t.i[2]:item()), t.u, t.f.dtype, t.m.dtype)
    t = require "deepc.data".read_csv(%q, { types = { f = "text" }, columns = { "f" } })
    print(t.f[1])]]):format(self.path, self.path))
  local text = program.run(script):gsub(self.path, "FILE")
  os.remove(script)
  local note = "[note] read_csv: FILE: column '%s' is f64, which rounds 1 of its whole numbers; types = { ... } makes"
    .. ' it "i64", "u64" or "text"\n'
  lu.assertEquals(text, note:format "f" .. note:format "m" .. [=[
-9223372036854775808 9223372036854775807	  18446744073709551615                     1
u64[2]	f64	f64
9007199254740993
]=])
  local u = dc.frombytes(("\xff"):rep(8), "u64[1]")
  data.write_csv(self.path, { u = u })
  lu.assertTrue(data.read_csv(self.path).u:eq(u):all():item())
  fails("'18446744073709551615' is no i64", data.read_csv, self.path, { dtype = "i64" })
end

-- Names between quotes keep their blanks; what numbers are made of separates nothing.
function TestTables:test_names_and_separators()
  data.write_csv(self.path, { [" a "] = { " x ", "" }, ["b,\n"] = { "NA", "\t" } })
  local t, names = data.read_csv(self.path, { types = { [" a "] = "text", ["b,\n"] = "text" } })
  lu.assertEquals(names, { " a ", "b,\n" })
  lu.assertEquals(t, { [" a "] = { " x ", "" }, ["b,\n"] = { "NA", "\t" } })
  for separator in ("1 - . + e"):gmatch "%S" do
    fails(("separator is '%s', which numbers and words have"):format(separator), data.write_csv, self.path,
      dc.ones "f32[2, 2]", { separator = separator })
    fails("which numbers and words have", data.read_csv, self.path, { separator = separator })
  end
  fails("the separator is the quote", data.write_csv, self.path, dc.ones "f32[2, 2]", { separator = '"' })
end

function TestTables:test_floats_come_back()
  local x = dc.randn("f64[500]", { seed = 3 })
  data.write_csv(self.path, { x = x })
  lu.assertTrue(data.read_csv(self.path).x:eq(x):all():item())
end
