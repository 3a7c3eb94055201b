-- Typed functions: signatures, tracing, checks, captured tensors, specialisations.
local lu = require "luaunit"
local dc = require "deepc"
local check = require "tests.lua.check"

local fails = check.fails

TestSignature = {}

function TestSignature:test_what_cannot_be_read()
  local function body() end
  fails("'(' expected before 'x: f32[2]'", dc.fn, "f x: f32[2]", body)
  fails("unknown dtype 'f31'", dc.fn, "f(x: f31[2])", body)
  fails("parameter 'x' is given twice", dc.fn, "f(x: f32[], x: f32[])", body)
  fails("its end expected before 'junk'", dc.fn, "f() -> f32[] junk", body)
  fails("'n' is 2 and 3", dc.fn, "f(x: f32[n=2], y: f32[n=3])", body)
  fails("a signature such as", dc.fn, function() end)
end

function TestSignature:test_sizes_that_no_call_could_find()
  local function body(x) return x:sum() end
  fails("the size of 'n' cannot be found from n*n", dc.fn, "f(x: f32[n*n]) -> f32[]", body)
  fails("n - 9 is -1; a size is 0 or more", dc.fn, "f(x: f32[n=8]) -> f32[n - 9]", body)
  fails("n = 7 is not 2*m for a whole m", dc.fn, "f(x: f32[n=2*m]) -> f32[]", body, { n = 7 })
  local f = dc.fn("f(x: f32[n=2*m], y: f32[n]) -> f32[]", function(x, y) return (x + y):sum() end, { m = 3 })
  lu.assertEquals(f(dc.ones "f32[6]", dc.ones "f32[6]"):item(), 12)
  fails("n = 7 is not 2*m for a whole m", f.check, f, { n = 7 })
end

-- A size of results alone is what the definition says; without one, what the body returns.
function TestSignature:test_sizes_of_results_alone()
  local function body(x) return x * 2 end
  for _, sizes in ipairs { { v = 3 }, { m = 3 }, { m = 3, v = 3 }, {} } do
    local f = dc.fn(sizes.m and "f(x: f32[3]) -> f32[v=m]" or "f(x: f32[3]) -> f32[v]", body, sizes)
    for _ = 1, 3 do
      lu.assertEquals(f(dc.ones "f32[3]"):totable(), { 2, 2, 2 })
    end
    lu.assertEquals(#f:info(), 1)
  end
  fails("result 1 is f32[3], declared f32[v=4]", dc.fn, "f(x: f32[3]) -> f32[v]", body, { v = 4 })
end

function TestSignature:test_arguments_that_contradict_a_result()
  local f = dc.fn("f(x: f32[m], y: f32[n]) -> f32[n=2*m]", function(x, y) return y + x:sum() * 0 end)
  lu.assertEquals(f(dc.ones "f32[2]", dc.ones "f32[4]").shape, { 4 })
  fails("the arguments do not fit together: n = 5 against 2*m = 4", f, dc.ones "f32[2]", dc.ones "f32[5]")
end

function TestSignature:test_parameters_of_the_body()
  fails("parameter 1 is 'x' in the signature and 'y' in the function", dc.fn, "f(x: f32[])", function(y) return y end)
  fails("the function takes '...'", dc.fn, "f(x: f32[])", function(...) return ... end)
  fails("the function takes 2 parameters, its signature has 1", dc.fn, "f(x: f32[])", function(x, y) return x, y end)
  fails("a function is needed, not nil", dc.fn, "f(x: f32[])", nil)
end

function TestSignature:test_it_prints_itself()
  local f = dc.fn("scale(x: f32[batch=2, 3], s: f32[]) -> f32[2, 3]", function(x, s) return x * s end)
  lu.assertEquals(tostring(f), "scale(x: f32[batch=2, 3], s: f32[]) -> f32[2, 3]")
  lu.assertEquals(f.name, "scale")
  fails("a typed function has no 'nam'", function() return f.nam end)
end

TestCalls = {}

function TestCalls:test_traced_once_and_replayed()
  local traced = { n = 0 }
  local f = dc.fn("f(x: f32[3], s: f32[]) -> f32[3]", function(x, s)
    traced.n = traced.n + 1
    return x * s + 1
  end)
  lu.assertEquals(traced.n, 1)
  lu.assertEquals(f(dc.tensor { 1, 2, 3 }, 2):totable(), { 3, 5, 7 })
  lu.assertEquals(traced.n, 1)
  lu.assertEquals(f(dc.tensor { 1, 2, 3 }, dc.tensor(3)):totable(), { 4, 7, 10 })
  lu.assertEquals(f({ 1, 2, 3 }, 2):totable(), { 3, 5, 7 })
  lu.assertEquals(traced.n, 2) -- the second call traces again
end

function TestCalls:test_several_results_and_none()
  local f = dc.fn("f(x: f32[3]) -> f32[], f32[3]", function(x) return x:sum(), x * 2 end)
  local s, y = f { 1, 2, 3 }
  lu.assertEquals(s:item(), 6)
  lu.assertEquals(y:totable(), { 2, 4, 6 })
  local cell = dc.state("f32[]", 1)
  local g = dc.fn("g() -> ()", function() cell:set(cell + 1) end)
  lu.assertEquals(select("#", g()), 0)
  lu.assertEquals(cell:item(), 2)
  local h = dc.fn("h(x: f32[3])", function(x) return x + 1 end)
  lu.assertEquals(h({ 1, 2, 3 }):totable(), { 2, 3, 4 })
end

function TestCalls:test_results_stay()
  local f = dc.fn("f(x: f32[2]) -> f32[2]", function(x) return x + 1 end)
  local a = f { 1, 2 }
  local b = f { 10, 20 }
  lu.assertEquals(a:totable(), { 2, 3 })
  lu.assertEquals(b:totable(), { 11, 21 })
end

function TestCalls:test_constants_arguments_and_captures_as_results()
  local kept = dc.tensor { 5, 6 }
  local f = dc.fn("f(x: f32[2]) -> f32[2], f32[2], f32[]", function(x) return x, kept, 7 end)
  local x, k, n = f { 1, 2 }
  lu.assertEquals(x:totable(), { 1, 2 })
  lu.assertEquals(k:totable(), { 5, 6 })
  lu.assertEquals(n:item(), 7)
end

function TestCalls:test_wrong_arguments()
  local f = dc.fn("f(x: f32[2, 3], n: i32[]) -> f32[]", function(x, n) return (x * n:cast "f32"):sum() end)
  local x = dc.ones "f32[2, 3]"
  fails("f: arguments: 1 given, 2 declared", f, x)
  fails("f: argument 'x' is f32[3, 3], declared f32[2, 3]: axis 1 = 3 against 2", f, dc.ones "f32[3, 3]", 1)
  fails("f: argument 'x' is i32[2, 3], declared f32[2, 3]", f, dc.ones "i32[2, 3]", 1)
  fails('hint: :cast "f32" converts', f, dc.ones "i32[2, 3]", 1)
  fails("f: argument 'x' is nil, declared f32[2, 3]", f, nil, 1)
  fails("f: argument 'x' is the string 'abc'", f, "abc", 1)
  fails("f: 1.5 does not fit i32", f, x, 1.5)
  fails("f: 2 elements at [1], 3 are needed on axis 2", f, { { 1, 2 }, { 3, 4 } }, 1)
  lu.assertEquals(f(x, 2):item(), 12)
end

function TestCalls:test_wrong_results()
  fails("result 1 is f32[2], declared f32[3]", dc.fn, "f(x: f32[2]) -> f32[3]", function(x) return x end)
  fails("results: 0 returned, 1 declared", dc.fn, "f(x: f32[2]) -> f32[2]", function(x) local _ = x end)
  fails("result 1 is nil, declared f32[2]", dc.fn, "f(x: f32[2]) -> f32[2]", function(x) return x and nil end)
end

TestCapture = {}

function TestCapture:test_a_captured_tensor_is_an_input()
  local w = dc.tensor { 1, 2 }
  local f = dc.fn("f(x: f32[2]) -> f32[2]", function(x) return x * w + w end)
  lu.assertEquals(f({ 3, 4 }):totable(), { 4, 10 })
  lu.assertEquals(f({ 3, 4 }):totable(), { 4, 10 })
  w:close() -- the function keeps what it captured
  lu.assertEquals(f({ 3, 4 }):totable(), { 4, 10 })
end

function TestCapture:test_tensors_made_inside()
  local f = dc.fn("f(x: f32[2]) -> f32[2]", function(x)
    return x + dc.tensor { 10, 20 } + dc.ones "f32[2]" + dc.iota "f32[2]"
  end)
  lu.assertEquals(f({ 0, 0 }):totable(), { 11, 22 })
end

function TestCapture:test_traced_tensors_do_not_leave()
  local kept = {}
  local f = dc.fn("step(x: f32[2]) -> f32[2]", function(x)
    kept.leaked = x + 1
    return kept.leaked
  end)
  lu.assertNotNil(f)
  fails("a tensor traced in 'step' is used outside it", function() return kept.leaked + 1 end)
  fails("a tensor traced in 'step' is used outside it", function() return kept.leaked:totable() end)
  fails("a tensor traced in 'step' is used outside it", dc.fn, "g(y: f32[2]) -> f32[2]", function(y)
    return y + kept.leaked
  end)
end

function TestCapture:test_a_typed_function_inside_another()
  local double = dc.fn("double(x: f32[2], s: f32[]) -> f32[2]", function(x, s) return x * s end)
  local before = dc.stats().compiles
  local f = dc.fn("f(x: f32[2]) -> f32[2]", function(x) return double(x, 2) + double(x, 3) end)
  lu.assertEquals(dc.stats().compiles, before + 1)
  lu.assertEquals(f({ 1, 2 }):totable(), { 5, 10 })
  fails("double: argument 'x' is f32[3], declared f32[2]", dc.fn, "g(x: f32[3]) -> f32[2]", function(x)
    return double(x, 2)
  end)
end

function TestCapture:test_a_function_defined_while_another_is_traced()
  local made = {}
  local outer = dc.fn("outer(x: f32[2]) -> f32[2]", function(x)
    made.inner = dc.fn("inner(y: f32[2]) -> f32[2]", function(y) return y * 3 end)
    return x + 1
  end)
  lu.assertEquals(outer({ 1, 2 }):totable(), { 2, 3 })
  lu.assertEquals(made.inner({ 1, 2 }):totable(), { 3, 6 })
end

function TestCapture:test_printing_inside()
  local seen = {}
  dc.fn("f(x: f32[2]) -> f32[2]", function(x)
    local y = x + 1
    seen.text = tostring(y)
    return y
  end)
  lu.assertStrMatches(seen.text, "f32%[2%] %(traced, .*test_fn.lua:%d+%)")
end

function TestCapture:test_comparison_inside_a_coroutine_is_traced()
  local f = dc.fn("f(x: f32[2]) -> f32[2]", function(x)
    return coroutine.wrap(function() return x + 1 end)()
  end)
  lu.assertEquals(f({ 1, 2 }):totable(), { 2, 3 })
  fails("coroutine.yield out of 'g' while it is traced", function()
    coroutine.wrap(function()
      dc.fn("g(x: f32[2]) -> f32[2]", function(x) coroutine.yield() return x end)
    end)()
  end)
  lu.assertEquals((dc.ones "f32[1]" + 1):totable(), { 2 }) -- no trace is left
end

TestNames = {}

function TestNames:test_names_bind_at_the_call()
  local traced = {}
  local f = dc.fn("f(x: f32[batch, n], y: f32[batch]) -> f32[batch]", function(x, y)
    traced[#traced + 1] = x:size "batch"
    return x:sum(2) + y
  end)
  lu.assertEquals(traced, {})
  lu.assertEquals(f({ { 1, 2 }, { 3, 4 } }, { 10, 20 }):totable(), { 13, 27 })
  lu.assertEquals(f(dc.ones "f32[3, 2]", dc.zeros "f32[3]"):totable(), { 2, 2, 2 })
  lu.assertEquals(f(dc.ones "f32[2, 2]", dc.zeros "f32[2]"):totable(), { 2, 2 })
  lu.assertEquals(traced, { 2, 3, 2 })
  fails("argument 'y' is f32[4], declared f32[batch=3]: axis 1 = 4 against 3", f, dc.ones "f32[3, 2]", dc.ones "f32[4]")
end

function TestNames:test_sizes_given_at_definition()
  local traced = { n = 0 }
  local f = dc.fn("f(x: f32[batch, 2]) -> f32[batch]", function(x)
    traced.n = traced.n + 1
    return x:sum(2)
  end, { batch = 3 })
  lu.assertEquals(traced.n, 1)
  lu.assertEquals(f(dc.ones "f32[3, 2]"):totable(), { 2, 2, 2 })
  fails("unknown option 'bach'", dc.fn, "f(x: f32[batch])", function(x) return x end, { bach = 3 })
end

function TestNames:test_limit_of_specialisations()
  local f = dc.fn("f(x: f32[n]) -> f32[]", function(x) return x:sum() end, nil, { limit = 2 })
  f(dc.ones "f32[1]")
  f(dc.ones "f32[2]")
  fails("f: 2 specialisations are compiled, which is its limit; the next one: n 2 -> 3", f, dc.ones "f32[3]")
  lu.assertEquals(#f:info(), 2)
end

TestLeaks = {}

function TestLeaks:test_functions_are_collected()
  local function round()
    for i = 1, 20 do
      local w, c = dc.ones "f32[100]", dc.state "f32[100]"
      local f = dc.fn("f(x: f32[100]) -> f32[100]", function(x)
        c:set(c + x)
        return x * w
      end)
      f(dc.ones "f32[100]")
      pcall(dc.fn, "g(x: f32[100]) -> f32[]", function(x) return x * w + i end)
    end
    collectgarbage()
    collectgarbage()
    return dc.stats().bytes_live
  end
  local first = round()
  lu.assertEquals(round(), first)
  lu.assertEquals(round(), first)
end

function TestLeaks:test_a_steady_call_allocates_nothing_on_the_device()
  local c = dc.state("f32[100]")
  local f = dc.fn("f(x: f32[100]) -> f32[]", function(x)
    c:set(c + x)
    return c:sum()
  end)
  local x = dc.ones "f32[100]"
  for _ = 1, 3 do
    f(x):close()
  end
  local before = dc.stats().allocs
  for _ = 1, 100 do
    f(x):close()
  end
  lu.assertEquals(dc.stats().allocs, before)
end

TestCompiling = {}

-- Each has a constant of its own, and so a kernel.
local function define(n)
  return dc.fn(("f%d(x: f32[40]) -> f32[40]"):format(n), function(x) return x * n + 0.5 end)
end

function TestCompiling:test_functions_that_are_called_and_others_that_are_not()
  local before = dc.stats().compiles
  local fs = {}
  for i = 1, 50 do
    fs[i] = define(i)
  end
  lu.assertEquals(dc.stats().compiles, before + 50)
  for i = 50, 1, -2 do
    lu.assertEquals(fs[i](dc.ones "f32[40]")[40]:item(), i + 0.5)
  end
end

function TestCompiling:test_functions_that_are_dropped_while_they_are_compiled()
  collectgarbage()
  collectgarbage()
  local live = dc.stats().bytes_live
  for i = 1, 20 do
    define(100 + i)
    collectgarbage()
  end
  lu.assertEquals(define(121)(dc.ones "f32[40]")[1]:item(), 121.5)
  collectgarbage()
  collectgarbage()
  lu.assertEquals(dc.stats().bytes_live, live)
end

function TestCompiling:test_a_function_that_was_not_called_tells_its_counts()
  local info = define(200):info()[1]
  lu.assertEquals(info.interpreted or info.launches == 1, true)
end

function TestCompiling:test_equal_kernels_are_compiled_once()
  local x = dc.ones "f32[40]"
  define(300)(x)
  local before = dc.stats()
  lu.assertEquals(define(300)(x)[1]:item(), 300.5)
  lu.assertEquals(define(300)(x)[2]:item(), 300.5)
  local after = dc.stats()
  lu.assertEquals(after.kernels, before.kernels)
  if after.device ~= "eval" then
    lu.assertEquals(after.kernels_shared, before.kernels_shared + 2)
  end
end

TestManyTensors = {}

-- A call like the one before is taken apart by a shorter way, which sees every difference.
function TestManyTensors:test_records()
  local n = 300
  local args, results, given = {}, {}, {}
  for i = 1, n do
    args[i], results[i] = ("a%d: f32[2]"):format(i), ("r%d: f32[2]"):format(i)
    given["a" .. i] = dc.full("f32[2]", i)
  end
  local f = dc.fn(("f(x: f32[2], args: {%s}) -> {%s}"):format(table.concat(args, ", "), table.concat(results, ", ")),
    function(x, args) -- luacheck: ignore 431
      local out = {}
      for i = 1, n do
        out["r" .. i] = args["a" .. i] * x
      end
      return out
    end)
  local x = dc.tensor { 1, 2 }
  for round = 1, 3 do
    given.a7 = dc.full("f32[2]", 10 * round)
    local out = f(x, given)
    lu.assertEquals(out.r7:totable(), { 10 * round, 20 * round })
    lu.assertEquals(out.r300:totable(), { 300, 600 })
  end
  given.b = x
  fails("args has a field 'b' that is not declared", f, x, given)
  given.b, given.a7 = nil, dc.ones "f32[3]"
  fails("argument 'args.a7' is f32[3], declared f32[2]", f, x, given)
  given.a7 = nil
  fails("argument 'args.a7' is nil", f, x, given)
  given.a7 = { 5, 6 }
  lu.assertEquals(f(x, given).r7:totable(), { 5, 12 })
  given.a7 = nil
  local inner = setmetatable({}, { __index = function(_, name)
    return name == "a7" and f(dc.ones "f32[2]", setmetatable({}, { __index = function() return x end })).r1 or x
  end })
  lu.assertEquals(f(x, inner).r7:totable(), { 1, 4 }) -- which calls f for its seventh field
  lu.assertEquals(f(x, setmetatable(given, { __index = { a7 = dc.tensor { 1, 1 } } })).r7:totable(), { 1, 2 })
  fails("argument 'args' is the number 7", f, x, 7)
end
