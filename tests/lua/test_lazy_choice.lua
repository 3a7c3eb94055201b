-- What computes an expression outside typed functions: the interpreter, until it has taken what a compilation costs.
local lu = require "luaunit"
local dc = require "deepc"
local program = require "tests.lua.program"
local spent = require "tests.lua.spent"

local AUTO = dc.stats().device:match "^cpu" and (os.getenv "DEEPC_LAZY" or "auto") == "auto"

TestChoice = {}

function TestChoice:setUp() lu.skipIf(not AUTO, "another device or setting") end

-- Each of another size, once: none is worth a compilation.
function TestChoice:test_many_sizes_compile_nothing()
  local x = dc.iota("f32[20000]"):clone()
  local forms = {
    function(n) return dc.rand(("f32[%d]"):format(1000 + n), { seed = n }):mean() end,
    function(n) return (x[{ { 1, 1000 + n } }]:sin() * 2):mean() end,
    function(n) return dc.concat({ x[{ { n, 3000 + n } }], x[{ { 1, 2000 + n } }] }, 1):sum() end,
    function(n) return x[{ { 1, 9000 } }]:roll(n, 1):max() end,
    function(n) return x:pad({ { n, 5 } }, n):max() end,
    function(n) return dc.ones(("f32[%d, 64]"):format(100 + n)):matmul(dc.ones "f32[64, 64]"):softmax(2):sum() end,
  }
  for number, form in ipairs(forms) do
    local stats = spent(function()
      for n = 1, 20 do form(n):item() end
    end)
    lu.assertEquals(stats.compiles, 0, number)
    lu.assertEquals(stats.interpreted, 20, number)
  end
end

-- Each of another size, again and again: one program for any of them, once that is worth it.
function TestChoice:test_a_size_that_differs_is_compiled_once()
  local x = dc.rand("f32[400000]", { seed = 3 }):clone()
  local forms = {
    function(n) return (x[{ { 1, 50000 + 100 * n } }]:tanh() * 2):mean() end,
    function(n) return x[{ { 1, 200 * (500 + n) } }]:reshape(500 + n, 200):softmax(2):exp():sum(1):max() end,
    function(n) local v = x[{ { n, 300000 } }] return ((v - v:mean()):square():mean() + 1e-9):sqrt():exp() end,
  }
  for number, form in ipairs(forms) do
    local values, later = {}, {}
    local stats = spent(function()
      for n = 1, 60 do values[n] = form(n):item() end
      for n = 1, 60 do later[n] = form(n):item() end
    end)
    lu.assertEquals(stats.compiles, 1, number)
    lu.assertEquals(stats.lazy_general, 1, number)
    lu.assertTrue(stats.interpreted >= 2 and stats.interpreted < 40, number)
    for n = 1, 60 do -- the first ones were the interpreter's
      lu.assertAlmostEquals(later[n], values[n], 1e-5 * math.abs(values[n]))
    end
  end
end

-- A size beyond the bound of the program is the interpreter's, then that of another program.
function TestChoice:test_a_size_beyond_the_bound()
  local function form(n) return (dc.iota(("f32[%d]"):format(n)) * 1e-6):tanh():mul(3):sum():item() end
  local stats = spent(function()
    for n = 1, 40 do form(30000 + n) end
    for n = 1, 40 do form(90000 + n) end
  end)
  lu.assertEquals(stats.lazy_general, 2)
  local sum = 0
  for i = 0, 90000 - 1 do sum = sum + 3 * (1 - 2 / (1 + math.exp(2e-6 * i))) end
  lu.assertAlmostEquals(form(90000), sum, 1e-5 * sum)
end

-- The bits of 2.0 of f64 are those of a size that is known at run time.
function TestChoice:test_constants_of_f64()
  local x = (dc.iota "f64[300000]" * 1e-5):clone()
  local function form(n) return (x[{ { 1, 60000 + n } }]:sinh() + x[{ { 1, 60000 + n } }]:pow(2.5)):sum():item() end
  local values = {}
  local stats = spent(function()
    for n = 1, 60 do values[n] = form(n) end
  end)
  lu.assertTrue(stats.lazy_general <= 1)
  for n = 1, 60 do
    local got = form(n)
    lu.assertAlmostEquals(got, values[n], 1e-9 * got)
  end
end

-- Sizes that are in no line, and operations that need a fixed size, are the interpreter's.
function TestChoice:test_sizes_that_no_program_is_made_for()
  local x = dc.rand("f32[300000]", { seed = 4 }):clone()
  local stats = spent(function()
    for n = 1, 40 do
      local a, b = 100 + n * n % 37, 150 + n * 7 % 11
      lu.assertEquals(x[{ { 1, a * b } }]:reshape(a, b):tanh():cast("i32"):sum():item(), 0)
    end
    for n = 1, 40 do x[{ { 1, 9000 + n } }]:cumsum(1):max():item() end
  end)
  lu.assertEquals(stats.lazy_general, 0)
end

-- What takes the interpreter long is compiled at the first time.
function TestChoice:test_much_work_is_compiled_at_once()
  local a = dc.iota("f32[400, 400]", 1):clone()
  local stats = spent(function() lu.assertEquals(a:matmul(a)[1][1]:item(), 0) end)
  lu.assertEquals({ stats.compiles, stats.interpreted }, { 1, 0 })
end

-- One expression in a loop is compiled once, after as many rounds as another loop of that form would take.
function TestChoice:test_a_loop_is_compiled_soon()
  local x = dc.rand("f32[50000]", { seed = 1 }):clone()
  local rounds
  local stats = spent(function()
    for i = 1, 200 do
      local before = dc.stats().compiles
      ; ((x * (i + 0.5) + 1.5):exp():minimum(7) * x):sum():item()
      rounds = rounds or dc.stats().compiles > before and i
    end
  end)
  lu.assertEquals(stats.compiles, 1)
  lu.assertTrue(rounds > 3 and rounds < 50, rounds)
  lu.assertEquals(stats.interpreted, rounds - 1)
  lu.assertEquals(stats.lazy_programs, 1)
end

-- What a parameter begins with and what a typed function captures has the same bits, whatever was computed before.
function TestChoice:test_values_that_stay_do_not_depend_on_the_past()
  local x = dc.iota("f32[6400]"):clone()
  local stats = spent(function() dc.param("f32[6400]", x:sin() * 1.1 + 0.3) end)
  lu.assertEquals({ stats.compiles, stats.interpreted }, { 1, 0 })
  local waves = x:cos() * 1.1 + 0.3
  local first = dc.fn("first(i: i32[]) -> f32[]", function(i) return waves:take(i:reshape(1)):sum() end)
  lu.assertEquals(spent(function() first(1) end).interpreted, 0)
end

local SCRIPT = [[
local dc = require "deepc"
%s
local x = dc.rand("f32[30000]", { seed = 3 }):clone()
local list = {}
for i = 1, 60 do
  list[#list + 1] = ("%%a"):format(((x * (i + 0.5)):exp():minimum(9) + x:sin()):mean():item())
end
print(table.concat(list, " "))
print(dc.stats().compiles)
]]

local function output(before, line)
  local path = program.script(SCRIPT:format(line))
  local text, status = program.run(path, "DEEPC_CACHE=off " .. before)
  os.remove(path)
  lu.assertEquals(status, 0, text)
  return text:match "^(.*)\n(%d+)\n$"
end

-- Whatever is done at the same time, however many threads there are: the same rounds are compiled, with the same bits.
function TestChoice:test_the_same_script_has_the_same_bits()
  local first, compiled = output("DEEPC_THREADS=1", "")
  lu.assertEquals(compiled, "1")
  lu.assertEquals({ output("DEEPC_THREADS=3 nice", "") }, { first, compiled })
end

-- A run that goes on from a checkpoint has another past: what it computes does not depend on that.
function TestChoice:test_behind_a_checkpoint_the_past_plays_no_part()
  local path = os.tmpname()
  local line = ("dc.checkpoint(%q, { s = dc.state 'f32[]' })"):format(path)
  local rounds, compiled = output("", line)
  lu.assertEquals(compiled, "2") -- the random numbers, too
  lu.assertEquals((output("DEEPC_LAZY=compile", "")), rounds)
  lu.assertEquals((output("DEEPC_LAZY=steady", "")), rounds)
  os.remove(path)
end
