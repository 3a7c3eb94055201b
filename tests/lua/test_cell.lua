-- Parameters, states and gradients.
local lu = require "luaunit"
local dc = require "deepc"
local check = require "tests.lua.check"

local fails = check.fails

TestCell = {}

function TestCell:test_making()
  lu.assertEquals(dc.param("f32[2]"):totable(), { 0, 0 })
  lu.assertEquals(dc.param("f32[2]", 0.5):totable(), { 0.5, 0.5 })
  lu.assertEquals(dc.param("f32[2]", { 1, 2 }):totable(), { 1, 2 })
  lu.assertEquals(dc.state("i32[]", dc.tensor(7, "i32[]")):item(), 7)
  fails("param: i32[2]: a float is needed", dc.param, "i32[2]")
  fails("param: 3 elements, 2 are needed", dc.param, "f32[2]", { 1, 2, 3 })
  fails("[DC0407", dc.param, "f32[2]", dc.ones "f32[3]")
end

-- A tensor or a cell in the place of the type: its type, and alone its value as well.
function TestCell:test_making_like_another()
  local t = dc.tensor({ { 1, 2 } }, "f32[n=1, 2]")
  local p = dc.param(t * 2)
  lu.assertEquals(p:totable(), { { 2, 4 } })
  lu.assertEquals(p:size "n", 1)
  local mean, sum = dc.state(p), dc.state(p, 0)
  p:set(t)
  lu.assertEquals(mean:totable(), { { 2, 4 } })
  lu.assertEquals(sum:totable(), { { 0, 0 } })
  lu.assertEquals(dc.rand(p).shape, { 1, 2 })
  lu.assertEquals(dc.bernoulli(t:gt(0), { p = 0 }):totable(), { { false, false } })
  lu.assertEquals(dc.randint(dc.zeros "u8[3]", { low = 7, high = 8 }):totable(), { 7, 7, 7 })
  fails("param: i32[2]: a float is needed", dc.param, dc.iota(2))
  fails("[DC0602", dc.fn, "f(x: f32[2]) -> ()", function(x) dc.state(x) end)
  dc.fn("f(x: f32[2]) -> f32[2]", function(x) return x + dc.rand(x) end)
end

function TestCell:test_stands_where_a_tensor_may()
  local p = dc.param("f32[2]", { 1, 2 })
  lu.assertEquals((p * 2 + p):totable(), { 3, 6 })
  lu.assertEquals(p.shape, { 2 })
  lu.assertEquals(p:sum():item(), 3)
  lu.assertEquals(p[2]:item(), 2)
  lu.assertEquals(tostring(dc.state("f32[]", 2)), "2.0")
end

function TestCell:test_set_outside()
  local p = dc.param("f32[2]", { 1, 2 })
  local before = p:clone()
  p:set { 3, 4 }
  lu.assertEquals(p:totable(), { 3, 4 })
  lu.assertEquals(before:totable(), { 1, 2 })
  p:set(0)
  lu.assertEquals(p:totable(), { 0, 0 })
  p:set(p + 1)
  lu.assertEquals(p:totable(), { 1, 1 })
  fails("set: a cell is f32[2] and was set to f32[3]", p.set, p, dc.ones "f32[3]")
  fails("a cell keeps its type", p.set, p, dc.ones "i32[2]")
  fails("tensors are immutable", before.set, before, 1)
  fails("set: a tensor, a table or a number is needed, not nil", p.set, p, nil)
end

function TestCell:test_set_inside_acts_when_the_call_ends()
  local c = dc.state("f32[]", 1)
  local f = dc.fn("f(x: f32[]) -> f32[], f32[]", function(x)
    local old = c + 0
    c:set(c * x)
    return old, c + 0 -- reads after set see the new value
  end)
  lu.assertEquals(c:item(), 1) -- tracing sets nothing
  local old, new = f(3)
  lu.assertEquals({ old:item(), new:item(), c:item() }, { 1, 3, 3 })
  old, new = f(3)
  lu.assertEquals({ old:item(), new:item(), c:item() }, { 3, 9, 9 })
end

function TestCell:test_set_twice_and_by_numbers()
  local c, n = dc.state("f32[2]", 1), dc.state("i32[]", 0)
  local f = dc.fn("f() -> ()", function()
    c:set(c + 1)
    c:set(c * 10)
    n:set(n + 1)
    n:set(n + 1)
  end)
  f()
  f()
  lu.assertEquals(c:totable(), { 210, 210 })
  lu.assertEquals(n:item(), 4)
  local g = dc.fn("g() -> ()", function()
    c:set(5)
    n:set(-1)
  end)
  g()
  lu.assertEquals(c:totable(), { 5, 5 })
  lu.assertEquals(n:item(), -1)
end

function TestCell:test_swap()
  local a, b = dc.state("f32[2]", { 1, 2 }), dc.state("f32[2]", { 3, 4 })
  local swap = dc.fn("swap() -> ()", function()
    local x = a + 0
    a:set(b)
    b:set(x)
  end)
  swap()
  lu.assertEquals(a:totable(), { 3, 4 })
  lu.assertEquals(b:totable(), { 1, 2 })
end

function TestCell:test_holders_keep_the_old_value()
  local c = dc.state("f32[2]", { 1, 2 })
  local show = dc.fn("show() -> f32[2]", function() return c end)
  local bump = dc.fn("bump() -> ()", function() c:set(c + 1) end)
  local held = show()
  bump()
  lu.assertEquals(held:totable(), { 1, 2 })
  lu.assertEquals(show():totable(), { 2, 3 })
end

function TestCell:test_a_cell_as_argument()
  local c = dc.state("f32[2]", { 1, 2 })
  local f = dc.fn("f(x: f32[2]) -> f32[]", function(x) return x:sum() end)
  lu.assertEquals(f(c):item(), 3)
end

function TestCell:test_a_trace_that_raises_sets_nothing()
  local c = dc.state("f32[]", 1)
  fails("stop", dc.fn, "f() -> ()", function()
    c:set(5)
    error "stop"
  end)
  lu.assertEquals(c:item(), 1)
  lu.assertEquals((c + 1):item(), 2)
end

function TestCell:test_values_of_cells_inside()
  local c = dc.state("f32[]", 1)
  fails("f32[] has no value while 'f' is traced", dc.fn, "f() -> ()", function() return c:item() end)
end

TestGrad = {}

-- Runs body(x) traced and returns the gradient of its result with respect to w.
local function gradient(w, body)
  local f = dc.fn(("f() -> f32[%s]"):format(table.concat(w.shape, ", ")), function()
    return dc.grad(body(), w)
  end)
  return f():totable()
end

function TestGrad:test_one_and_a_list()
  local w, b = dc.param("f32[2]", { 3, 4 }), dc.param("f32[]", 1)
  lu.assertEquals(gradient(w, function() return (w * w):sum() end), { 6, 8 })
  local f = dc.fn("f(x: f32[2]) -> f32[2], f32[]", function(x)
    local g = dc.grad((w * x + b):sum(), { w, b })
    lu.assertEquals(#g, 2)
    return g[1], g[2]
  end)
  local gw, gb = f { 10, 20 }
  lu.assertEquals(gw:totable(), { 10, 20 })
  lu.assertEquals(gb:item(), 2)
end

function TestGrad:test_with_respect_to_a_tensor()
  local f = dc.fn("f(x: f32[2]) -> f32[2]", function(x) return dc.grad((x ^ 3):sum(), x) end)
  lu.assertEquals(f({ 1, 2 }):totable(), { 3, 12 })
end

function TestGrad:test_second_order()
  local f = dc.fn("f(x: f32[2]) -> f32[2]", function(x)
    return dc.grad(dc.grad((x ^ 3):sum(), x):sum(), x)
  end)
  lu.assertEquals(f({ 1, 2 }):totable(), { 6, 12 })
end

function TestGrad:test_stop_gradient()
  local w = dc.param("f32[]", 3)
  lu.assertEquals(gradient(w, function() return dc.stop_gradient(w) * w end), 3)
end

function TestGrad:test_taken_at_the_version_that_the_loss_read()
  local w = dc.param("f32[]", 3)
  lu.assertEquals(gradient(w, function()
    local loss = w * w
    w:set(w * 100)
    return loss
  end), 6)
  w:set(3)
  lu.assertEquals(gradient(w, function() -- no gradient flows through set
    w:set(w * 2)
    return w * w
  end), 12)
end

function TestGrad:test_unused()
  local w = dc.param("f32[2]", 1)
  local f = dc.fn("f(x: f32[]) -> f32[2]", function(x) return dc.grad(x * 2, w, { unused = "zero" }) end)
  lu.assertEquals(f(1):totable(), { 0, 0 })
  fails("loss does not depend on 'w'", dc.fn, "g(x: f32[]) -> f32[2]", function(x) return dc.grad(x * 2, w) end)
  fails('unused is "zero" or nothing', dc.fn, "g(x: f32[]) -> f32[2]", function(x)
    return dc.grad(x * 2, w, { unused = true })
  end)
end

function TestGrad:test_needs_a_scalar_of_this_trace()
  local w = dc.param("f32[2]", 1)
  fails("loss is f32[2], a scalar of floats is needed", dc.fn, "f() -> f32[2]", function() return dc.grad(w * 2, w) end)
  fails("loss carries no graph", dc.grad, dc.tensor(1), w)
  fails("grad: a tensor is needed, not nil", dc.fn, "f() -> f32[2]", function() return dc.grad((w * 2):sum(), nil) end)
end

TestNamesOfCells = {}

function TestNamesOfCells:test_set_asks_for_the_names_too()
  local c = dc.state "f32[a=2]"
  c:set(dc.ones "f32[2]") -- an unnamed dim agrees with any name
  c:set(dc.ones "f32[a=2]")
  local function refused(f)
    local ok, err = pcall(f)
    lu.assertFalse(ok)
    lu.assertStrContains(tostring(err), "is f32[a=2] and was set to f32[b=2]")
  end
  refused(function() c:set(dc.ones "f32[b=2]") end)
  refused(function() dc.fn("f(x: f32[b=2]) -> ()", function(x) c:set(x) end) end)
  lu.assertEquals(c:totable(), { 1, 1 })
end

-- Draws that a cell starts with are computed when it is read.
TestInitialValues = {}

local function drawn()
  return dc.param("f32[4, 3]", dc.rand("f32[4, 3]", { seed = 5 }))
end

-- How many lazy expressions are computed while body runs.
local function computed(body)
  local before = dc.stats().realized
  body()
  return dc.stats().realized - before
end

function TestInitialValues:test_computed_when_they_are_read()
  local p
  lu.assertEquals(computed(function() p = drawn() end), 0)
  local want = dc.rand("f32[4, 3]", { seed = 5 }):totable()
  lu.assertEquals(computed(function() lu.assertEquals(p:totable(), want) end), 1)
  lu.assertEquals(computed(function() lu.assertEquals(p:totable(), want) end), 0)
end

function TestInitialValues:test_not_computed_when_something_else_comes_first()
  lu.assertEquals(computed(function()
    local p = drawn()
    p:set(dc.tensor({ { 1, 2, 3 }, { 4, 5, 6 }, { 7, 8, 9 }, { 1, 1, 1 } }))
    lu.assertEquals(p:totable()[2], { 4, 5, 6 })
  end), 0)
end

function TestInitialValues:test_a_file_comes_first()
  local nn = require "deepc.nn"
  local path = os.tmpname()
  local old, new = nn.Linear(8, 4), nil
  dc.save(path, old)
  lu.assertEquals(computed(function()
    new = nn.Linear(8, 4)
    dc.load(path, new)
  end), 0)
  os.remove(path)
  lu.assertEquals(new.weight:totable(), old.weight:totable())
  lu.assertEquals(new.bias:totable(), old.bias:totable())
end

function TestInitialValues:test_order_of_reading_does_not_matter()
  local function pair(first)
    dc.seed(9)
    local a, b = dc.param("f32[5]", dc.randn "f32[5]"), dc.param("f32[5]", dc.randn "f32[5]")
    local _ = (first == "b" and b or a):totable()
    return { a:totable(), b:totable() }
  end
  lu.assertEquals(pair "a", pair "b")
end

function TestInitialValues:test_compiled_functions_read_them()
  local p = drawn()
  local f = dc.fn("f() -> f32[4, 3]", function() return p * 2 end)
  lu.assertEquals(f():totable(), (dc.rand("f32[4, 3]", { seed = 5 }) * 2):totable())
end

function TestInitialValues:test_gradients_and_lazy_code_read_them()
  local p = drawn()
  lu.assertEquals(dc.grad((p * p):sum(), p):totable(), (dc.rand("f32[4, 3]", { seed = 5 }) * 2):totable())
end

function TestInitialValues:test_a_call_that_fails_leaves_them()
  local p = drawn()
  local f = dc.fn("f(i: i32[]) -> f32[]", function(i)
    p:set(dc.zeros "f32[4, 3]")
    return dc.tensor({ 1, 2 }, "f32[2]"):take(i)
  end)
  lu.assertFalse((pcall(f, dc.tensor(7, "i32[]"))))
  lu.assertEquals(p:totable(), dc.rand("f32[4, 3]", { seed = 5 }):totable())
  f(dc.tensor(1, "i32[]"))
  lu.assertEquals(p:totable()[1], { 0, 0, 0 })
end

function TestInitialValues:test_the_type_is_checked_at_once()
  fails("[DC0407", dc.param, "f32[2]", dc.rand "f32[3]")
  fails("[DC0407", dc.state, "f64[3]", dc.rand "f32[3]")
end

function TestInitialValues:test_values_made_of_tensors_are_computed_at_once()
  local t = dc.ones("f32[3]"):clone()
  lu.assertEquals(computed(function() dc.param("f32[3]", t * 2 + 1) end), 1)
end
