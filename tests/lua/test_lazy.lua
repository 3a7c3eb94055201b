-- Code outside typed functions: expressions that are computed when their value is read.
local lu = require "luaunit"
local dc = require "deepc"
local check = require "tests.lua.check"
local spent = require "tests.lua.spent"

local fails = check.fails

TestLazy = {}

-- Parts of a large tensor are no work, and each place is another program: none of them is compiled.
function TestLazy:test_parts_of_large_tensors_are_not_compiled()
  local x = dc.iota("f32[300, 1000]", 1):clone()
  local before = dc.stats().kernels
  for i = 1, 30 do
    lu.assertEquals(x[i][i]:item(), i - 1)
    lu.assertEquals(x[{ i, 7 }]:item(), i - 1)
    lu.assertEquals(x[i]:sum():item(), (i - 1) * 1000)
  end
  if dc.stats().device:match "^cpu" and os.getenv "DEEPC_LAZY" ~= "compile" then
    lu.assertEquals(dc.stats().kernels, before)
  end
end

-- What is computed of parts is one program for all of them, and the parts keep what gradients need.
function TestLazy:test_parts_of_large_tensors_share_programs()
  local x = dc.iota("f32[300, 5000]", 1):clone()
  local function energy(i) return (x[i] * x[i]):sum():item() end
  lu.assertEquals(energy(3), 4 * 5000)
  local kernels = spent(function()
    for i = 1, 20 do
      lu.assertEquals(energy(i), (i - 1) ^ 2 * 5000)
    end
  end).kernels
  if dc.stats().device:match "^cpu" and os.getenv "DEEPC_LAZY" ~= "eval" then
    lu.assertEquals(kernels, 0)
  end
  local part = x[4]
  lu.assertEquals((part * part):sum():item(), 9 * 5000)
  local g = dc.grad((part * part):sum(), x)
  lu.assertEquals({ g[4][1]:item(), g[4][5000]:item(), g[5]:abs():sum():item() }, { 6, 6, 0 })
end

function TestLazy:test_nothing_is_computed_before_it_is_read()
  local x = dc.tensor { 1, 2, 3 }
  local y
  lu.assertEquals(spent(function() y = (x * 2 + 1):sum() end).realized, 0)
  lu.assertEquals(spent(function() lu.assertEquals(y:item(), 15) end).realized, 1)
  lu.assertEquals(spent(function() lu.assertEquals(y:item(), 15) end).realized, 0)
end

function TestLazy:test_every_reader_sees_the_value()
  local x = dc.tensor { 1, 2 }
  lu.assertEquals(tostring(x * 2), "  2.0  4.0\nf32[2]")
  lu.assertEquals((x * 2):totable(), { 2, 4 })
  lu.assertEquals((x * 2):clone():totable(), { 2, 4 })
  lu.assertEquals("" .. (x * 2):sum(), "6.0")
  lu.assertEquals(dc.param("f32[2]", x * 2):totable(), { 2, 4 })
  local c = dc.state "f32[2]"
  c:set(x * 3)
  lu.assertEquals(c:totable(), { 3, 6 })
  local f = dc.fn("f(v: f32[2]) -> f32[2]", function(v) return v + 1 end)
  lu.assertEquals(f(x * 2):totable(), { 3, 5 })
end

function TestLazy:test_a_captured_one_is_an_input_of_the_first_call()
  local x = dc.tensor { 1, 2 } * 2
  local y = dc.tensor { 10, 20 } * 2
  lu.assertEquals(x:totable(), { 2, 4 })
  local stats = spent(function()
    self.f = dc.fn("f(a: f32[]) -> f32[2]", function(a) return x * a + y * y end)
  end)
  lu.assertEquals(stats.realized, 0)
  lu.assertEquals(self.f(1):totable(), { 402, 1604 })
  lu.assertEquals(self.f(2):totable(), { 404, 1608 })
end

function TestLazy:test_a_closed_operand_is_still_read()
  local x = dc.tensor { 1, 2 }
  local y = x + 1
  x:close()
  lu.assertEquals(y:totable(), { 2, 3 })
  local z = y * 2
  y:close()
  lu.assertEquals(z:totable(), { 4, 6 })
end

function TestLazy:test_cells_are_read_when_written()
  local p = dc.param("f32[2]", { 1, 2 })
  local y = p * 10
  p:set { 5, 6 }
  local z = p * 10
  p:set(p + 1)
  lu.assertEquals(y:totable(), { 10, 20 })
  lu.assertEquals(z:totable(), { 50, 60 })
  lu.assertEquals(p:totable(), { 6, 7 })
  local bump = dc.fn("bump() -> ()", function() p:set(p + 100) end)
  local before = p * 1
  bump()
  lu.assertEquals(before:totable(), { 6, 7 })
  lu.assertEquals(p:totable(), { 106, 107 })
end

function TestLazy:test_names_stay()
  local x = dc.zeros "f32[batch=2, d=3]"
  lu.assertStrContains(tostring(x + 1), "f32[batch=2, d=3]")
  lu.assertStrContains(tostring(x:sum(2)), "f32[batch=2]")
  local y = x:reshape "[a=2, b=3]"
  lu.assertStrContains(tostring(y), "f32[a=2, b=3]")
  lu.assertStrContains(tostring(y + 0), "f32[a=2, b=3]")
  fails("[DC0305", function() return x + y end)
end

function TestLazy:test_errors_are_found_when_written()
  local x = dc.ones "f32[2]"
  fails("add: axis 1: 2 against 3", function() return x + dc.ones "f32[3]" end)
end

TestPrograms = {}

function TestPrograms:test_another_number_is_no_other_program()
  local x = dc.tensor { 1, 2, 3 }
  lu.assertEquals((x * 2.5 + 7):totable(), { 9.5, 12, 14.5 })
  local stats = spent(function()
    lu.assertEquals((x * 3.5 + 9):totable(), { 12.5, 16, 19.5 })
    lu.assertEquals((dc.tensor { 4, 5, 6 } * -2 + 0.5):totable(), { -7.5, -9.5, -11.5 })
  end)
  lu.assertEquals(stats.lazy_programs, 0)
  lu.assertEquals(stats.realized, 2)
  stats = spent(function() lu.assertEquals((x * x + 9):totable(), { 10, 13, 18 }) end)
  lu.assertEquals(stats.lazy_programs, 1) -- the same tensor twice is another structure
end

-- The value of dc.full, an exponent, the shift of a large roll: as a typed function has them. Of short exponents, 4 to
-- 10 here, code of a few products is made: each is a program of its own, and all others are one.
function TestPrograms:test_values_are_arguments()
  local x = (dc.rand("f32[120, 150]", { seed = 4 }) * 3 - 1.5):clone()
  local forms = {
    { function(i) return dc.full("f32[7]", i + 0.25) * 2 end, 1 },
    { function(i) return dc.full("i8[a=2, b=3]", i) end, 1 },
    { function(i) return x[1] * dc.full("f32[]", i) end, 1 },
    { function(i) return x[2] ^ (i + 2) end, 8 },
    { function(i) return x[2]:cast "f64" ^ -(i + 2) end, 8 },
    { function(i) return x[2]:cast "bf16" ^ (i + 2) end, 8 },
    { function(i) return x:roll(i, 1) end, 1 },
    { function(i) return x:roll(-i, 2) end, 1 },
    { function(i) return x:cast("i16"):reshape(18000):roll(40 * i) end, 1 },
  }
  for number, form in ipairs(forms) do
    form[1](2):totable()
    local stats = spent(function()
      for i = 2, 32 do form[1](i):max():item() end
    end)
    lu.assertTrue(stats.lazy_programs <= form[2], number .. ": " .. stats.lazy_programs)
    for _, i in ipairs { 3, 17 } do
      local made = form[1](i)
      local f = dc.fn(("f() -> %s"):format(made.dtype .. "[" .. table.concat(made.shape, ", ") .. "]"),
        function() return form[1](i) end)
      local want = f()
      local wrong = (made - want):abs():cast("f64") / want:abs():cast("f64"):maximum(1e-30)
      lu.assertTrue(wrong:max():item() < 1e-6, number)
    end
  end
  for i = 1, 130, 43 do
    lu.assertEquals(x:roll(i, 1)[1 + i % 120]:totable(), x[1]:totable())
  end
  local y = dc.tensor({ 2, 3, -3, 0.5 }):watch() -- written as in a typed function
  lu.assertEquals(dc.grad((y ^ 5):sum(), y):totable(), { 80, 405, 405, 0.3125 })
end

function TestPrograms:test_large_ones_are_compiled_once()
  lu.skipIf(os.getenv "DEEPC_DEVICE" == "eval" or os.getenv "DEEPC_LAZY" ~= "steady", "nothing is compiled")
  local x = dc.tensor(2, "f32[]") * dc.ones "f32[100, 100]"
  lu.assertEquals(x[1][1]:item(), 2)
  lu.assertEquals(x[1][2]:item(), 2) -- read twice: it has a value now
  lu.assertEquals((x * 2.5 + 7):sum():item(), 120000)
  local stats = spent(function() lu.assertEquals((x * 3.5 + 9):sum():item(), 160000) end)
  lu.assertEquals(stats.compiles, 0)
  lu.assertEquals(stats.calls, 1)
  lu.assertEquals(stats.interpreted, 0)
end

function TestPrograms:test_little_work_is_interpreted()
  local x = dc.ones "f32[4, 4]"
  local stats = spent(function() lu.assertEquals((x:exp() * 3):sum(2):sum():item() > 100, true) end)
  lu.assertEquals(stats.compiles, 0)
  lu.assertEquals(stats.interpreted, 1)
end

function TestPrograms:test_what_is_read_again_is_kept()
  local x = dc.tensor { 1, 2, 3 }
  local y = x * 2
  local a, b = y + 1, y - 1
  lu.assertEquals(a:totable(), { 3, 5, 7 })
  collectgarbage()
  local stats = spent(function() lu.assertEquals(y:totable(), { 2, 4, 6 }) end)
  lu.assertEquals(stats.realized, 0) -- b reads it, so it was a result of a's program
  lu.assertEquals(b:totable(), { 1, 3, 5 })
end

function TestPrograms:test_a_reshape_of_a_value_is_no_copy()
  local x = dc.tensor { 1, 2, 3, 4 }
  local stats = spent(function() lu.assertEquals(x:reshape("[2, 2]"):totable(), { { 1, 2 }, { 3, 4 } }) end)
  lu.assertEquals(stats.realized, 0)
  lu.assertEquals(stats.bytes_live, 0)
end

TestLimits = {}

function TestLimits:test_realized_after_64_operations()
  local x = dc.zeros "f32[2]"
  lu.assertEquals(x:totable(), { 0, 0 })
  local stats = spent(function()
    for _ = 1, 63 do
      x = x + 2
    end
  end)
  lu.assertEquals(stats.realized, 0)
  lu.assertEquals(spent(function() x = x + 2 end).realized, 1)
  lu.assertEquals(x:totable(), { 128, 128 })
end

function TestLimits:test_shared_operands_count_once()
  local x = dc.ones "f32[]"
  lu.assertEquals(x:item(), 1)
  local stats = spent(function()
    for _ = 1, 63 do
      x = x + x -- as a tree of operations this would be too much for any memory
    end
  end)
  lu.assertEquals(stats.realized, 0)
  lu.assertEquals(x:item(), 2.0 ^ 63)
end

function TestLimits:test_a_recipe_that_is_kept_has_a_limit()
  local p = dc.param("f32[]", 1)
  local x, n = p * 1, 1
  local err = fails("more than 10000 operations", function()
    while n < 20000 do
      x, n = x + 2, n + 1
    end
  end)
  lu.assertEquals(n, 10000)
  lu.assertStrContains(tostring(err), "dc.stop_gradient")
  lu.assertStrContains(tostring(err), "[DC0507")
  x = dc.stop_gradient(x) + 2
  lu.assertEquals(x:item(), 20001)
  for _ = 1, 20000 do
    x = x + 1
  end
  lu.assertEquals(x:item(), 40001)
end

TestGrad = {}

function TestGrad:test_of_a_cell_and_of_a_list()
  local w, b = dc.param("f32[2]", { 3, 4 }), dc.param("f32[]", 1)
  local x = dc.tensor { 10, 20 }
  local loss = (w * x + b):sum()
  lu.assertEquals(dc.grad(loss, w):totable(), { 10, 20 })
  local g = dc.grad(loss, { w, b })
  lu.assertEquals(#g, 2)
  lu.assertEquals(g[1]:totable(), { 10, 20 })
  lu.assertEquals(g[2]:item(), 2)
end

function TestGrad:test_is_computed_with_its_neighbours_and_the_loss()
  local w, b = dc.param("f32[2]", { 3, 4 }), dc.param("f32[]", 1)
  local loss = (w * w + b):sum()
  local g
  lu.assertEquals(spent(function() g = dc.grad(loss, { w, b }) end).realized, 0)
  lu.assertEquals(spent(function() lu.assertEquals(g[1]:totable(), { 6, 8 }) end).realized, 1)
  lu.assertEquals(spent(function()
    lu.assertEquals(g[2]:item(), 2)
    lu.assertEquals(loss:item(), 27)
  end).realized, 0)
end

function TestGrad:test_printing_changes_nothing()
  local w = dc.param("f32[2]", { 3, 4 })
  local y = w * w
  local loss = y:sum()
  lu.assertEquals(y:totable(), { 9, 16 })
  lu.assertEquals(tostring(loss), "25.0")
  lu.assertEquals(dc.grad(loss, w):totable(), { 6, 8 })
  lu.assertEquals(dc.grad(loss, y):totable(), { 1, 1 })
end

function TestGrad:test_with_respect_to_a_tensor()
  local x = dc.tensor { 1, 2 }
  lu.assertEquals(dc.grad((x ^ 3):sum(), x):totable(), { 3, 12 })
  local y = x * 2
  lu.assertEquals(dc.grad((y * y):sum(), y):totable(), { 4, 8 })
  local r = dc.full("f32[2]", 3) * 1
  lu.assertEquals(dc.grad((r * r):sum(), r):totable(), { 6, 6 })
end

function TestGrad:test_of_a_chain_of_any_length_from_a_watched_tensor()
  local function chain(x, n)
    local y = x
    for _ = 1, n do
      y = y * 1.001
    end
    return y
  end
  local plain = dc.tensor { 1, 2 }
  fails("is gone", dc.grad, chain(plain, 100):sum(), plain)
  fails("x = x:watch()", dc.grad, chain(plain, 100):sum(), plain)
  local x = plain:watch()
  lu.assertEquals(x:totable(), { 1, 2 })
  for _, n in ipairs { 1, 63, 64, 65, 100, 500 } do
    local y = chain(x, n)
    lu.assertAlmostEquals(dc.grad(y:sum(), x)[1]:item(), 1.001 ^ n, 1e-4 * 1.001 ^ n)
    tostring(y)
    lu.assertAlmostEquals(dc.grad(y:sum(), x)[2]:item(), 1.001 ^ n, 1e-4 * 1.001 ^ n)
  end
  fails("more than 10000 operations", chain, x, 10001)
end

function TestGrad:test_of_a_watched_tensor_for_itself()
  local x, y = dc.tensor(3.0):watch(), dc.tensor(2.0):watch()
  lu.assertEquals(dc.grad(x, x):item(), 1)
  local both = dc.grad(x, { y, x }, { unused = "zero" })
  lu.assertEquals({ both[1]:item(), both[2]:item() }, { 0, 1 })
  fails("does not depend on 'y'", dc.grad, x, { x, y })
  fails("was computed already", dc.grad, x, y)
end

function TestGrad:test_a_watched_tensor_is_a_fresh_start()
  local w = dc.param("f32[2]", { 3, 4 })
  local x = (w * w):watch()
  lu.assertEquals(dc.grad((x * x):sum(), x):totable(), { 18, 32 })
  lu.assertEquals(dc.grad((x * w):sum(), w):totable(), { 9, 16 })
  local part = x[2]
  lu.assertEquals(part:item(), 16)
  lu.assertEquals(dc.grad(part * part, x):totable(), { 0, 32 })
  local s = dc.tensor { 5, -3 }
  for _ = 1, 2000 do -- as a recipe this would be too long
    s = s:watch()
    s = s - 0.1 * dc.grad(((s - 1) ^ 2):sum(), s)
  end
  lu.assertAlmostEquals(s[1]:item(), 1, 1e-5)
  local c = w:watch()
  lu.assertEquals(dc.grad((c * c):sum(), c):totable(), { 6, 8 })
  local f = dc.fn("f(v: f32[2]) -> f32[2]", function(v)
    local y = (v * 2):watch()
    return dc.grad((y * y):sum(), y)
  end)
  lu.assertEquals(f({ 1, 2 }):totable(), { 4, 8 })
  fails("watch", function() return dc.tensor({ 1 }, "i32[1]"):watch() end)
end

function TestGrad:test_gradients_of_gradients()
  local w = dc.param("f32[2]", { 1, 2 })
  local g = dc.grad((w ^ 4):sum(), w)
  local h = dc.grad(g:sum(), w)
  lu.assertEquals(h:totable(), { 12, 48 })
  lu.assertEquals(g:totable(), { 4, 32 })
  lu.assertEquals(dc.grad(h:sum(), w):totable(), { 24, 48 })
  lu.assertEquals(dc.grad(g:sum(), w):totable(), { 12, 48 }) -- also where g has its value already
end

function TestGrad:test_stop_gradient()
  local w = dc.param("f32[]", 3)
  lu.assertEquals(dc.grad(dc.stop_gradient(w) * w, w):item(), 3)
end

function TestGrad:test_at_the_version_that_the_loss_read()
  local w = dc.param("f32[]", 3)
  local loss = w * w
  w:set(100)
  lu.assertEquals(dc.grad(loss, w):item(), 6)
  local both = loss + w * 5 -- two versions: the last
  lu.assertEquals(dc.grad(both, w):item(), 5)
  w:set(w * 2) -- no gradient flows through set
  lu.assertEquals(dc.grad(w * w, w):item(), 400)
end

function TestGrad:test_names_are_those_of_the_parameter()
  local w = dc.param("f32[out=2]", { 1, 2 })
  lu.assertStrContains(tostring(dc.grad((w * w):sum(), w)), "f32[out=2]")
end

function TestGrad:test_unused()
  local w, v = dc.param("f32[2]", 1), dc.param("f32[2]", 1)
  local loss = (w * 2):sum()
  fails("grad: loss does not depend on 'v'", dc.grad, loss, v)
  fails("grad: loss does not depend on 'v'", dc.grad, loss, { w, v })
  lu.assertEquals(dc.grad(loss, v, { unused = "zero" }):totable(), { 0, 0 })
  local g = dc.grad(loss, { v, w }, { unused = "zero" })
  lu.assertEquals({ g[1]:totable(), g[2]:totable() }, { { 0, 0 }, { 2, 2 } })
  fails('unused is "zero" or nothing', dc.grad, loss, w, { unused = true })
  fails("loss is f32[2], a scalar of floats is needed", dc.grad, w * 2, w)
end

function TestGrad:test_never_zeros_for_a_recipe_that_is_gone()
  local x = dc.tensor { 1, 2 }
  local y = x * x
  lu.assertEquals(y:totable(), { 1, 4 }) -- reads no parameter: from here on a plain value
  local loss = (y * 2):sum()
  fails("the recipe that leads from loss back to 'x' is gone", dc.grad, loss, x)
  fails("is gone", dc.grad, loss, x, { unused = "zero" })
  fails("is gone", dc.grad, (y * x):sum(), x) -- nor the half of it that is left
  lu.assertEquals(dc.grad(loss, y):totable(), { 2, 2 })
  local later = dc.tensor { 5, 5 }
  lu.assertEquals(dc.grad(loss, later, { unused = "zero" }):totable(), { 0, 0 })
  local total = x:sum()
  lu.assertEquals(total:item(), 3)
  fails("loss was computed already, reads no parameter and carries no graph", dc.grad, total, x)
  fails("loss carries no graph", dc.grad, dc.tensor(1), x)
end

function TestGrad:test_data_that_was_computed_already_is_no_obstacle()
  local x = dc.tensor { 1, 2 } * 0.5
  lu.assertEquals(x:totable(), { 0.5, 1 })
  local w = dc.param("f32[2]", 1)
  lu.assertEquals(dc.grad((w * x):sum(), w):totable(), { 0.5, 1 })
end

function TestGrad:test_results_of_compiled_calls()
  local w, v = dc.param("f32[2]", 1), dc.param("f32[2]", 2)
  local forward = dc.fn("forward(x: f32[2]) -> f32[]", function(x) return (x * w):sum() end)
  fails("loss is a result of compiled 'forward' and carries no graph", dc.grad, forward { 1, 2 }, w)
  fails("take the gradient inside it", dc.grad, forward { 1, 2 }, w)
  local y = forward { 1, 2 }
  fails("[DC0502", dc.grad, y * 2, w)
  fails("[DC0502", dc.grad, y * 2, w, { unused = "zero" })
  lu.assertEquals(dc.grad((v * y):sum(), v):totable(), { 3, 3 })
end

function TestGrad:test_a_loop_of_descent()
  local w = dc.param("f32[2]", { 5, -3 })
  for _ = 1, 100 do
    local loss = ((w - dc.tensor { 1, 2 }) ^ 2):sum()
    w:set(w - 0.1 * dc.grad(loss, w))
  end
  lu.assertAlmostEquals(w[1]:item(), 1, 1e-5)
  lu.assertAlmostEquals(w[2]:item(), 2, 1e-5)
end

function TestGrad:test_an_optimiser_outside()
  local nn, optim = require "deepc.nn", require "deepc.optim"
  local x, y = dc.randn("f32[16, 4]", { seed = 1 }), dc.tensor({ 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0 },
    "i32[16]")
  for _, make in ipairs {
    function(p) return optim.SGD(p, { lr = 0.1, momentum = 0.9 }) end,
    function(p) return optim.Adam(p, { lr = 0.01 }) end,
  } do
    local function train(compiled)
      dc.seed(7)
      local net = nn.Sequential { nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3) }
      local opt = make(net:parameters())
      local function body(a, b)
        local loss = nn.cross_entropy(net(a), b)
        opt:step(loss)
        return loss
      end
      local step = compiled and dc.fn("step(a: f32[16, 4], b: i32[16]) -> f32[]", body) or body
      local losses = {}
      for i = 1, 12 do
        losses[i] = step(x, y):item()
        if i == 6 then
          opt.lr = 0.05
        end
      end
      return losses
    end
    local lazy, compiled = train(false), train(true)
    for i = 1, 12 do
      lu.assertAlmostEquals(lazy[i], compiled[i], 1e-4)
    end
    lu.assertTrue(lazy[12] < lazy[1])
  end
end

TestMemory = {}

local STEPS = tonumber(os.getenv "DEEPC_TEST_STEPS") or 12000 -- memory is as flat with 100000

-- Runs f many times; what is alive in between stays under a bound that does not depend on the number.
local function flat(f, steps)
  collectgarbage()
  collectgarbage()
  local before = dc.stats()
  local programs
  for i = 1, steps or STEPS do
    f(i)
    if i == 300 then
      programs = dc.stats().lazy_programs
    end
    if i % 50 == 0 then
      local now = dc.stats()
      lu.assertTrue(now.bytes_live - before.bytes_live < 8 << 20, i)
      lu.assertTrue(now.lazy_nodes - before.lazy_nodes < 60000, i) -- 18 MB: until what Lua has itself doubled
    end
  end
  lu.assertEquals(dc.stats().lazy_programs, programs) -- nothing new after the first steps
  collectgarbage()
  collectgarbage()
end

function TestMemory:test_a_chain()
  local x = dc.ones "f32[16]"
  flat(function() x = x * 1.0001 + 0.1 end)
  lu.assertTrue(x[1]:item() > 300)
  local y = dc.zeros "f32[64, 64]"
  flat(function() y = y * 0.5 + 1 end)
  lu.assertAlmostEquals(y[3][4]:item(), 2, 1e-6)
end

function TestMemory:test_what_is_not_read()
  local x = dc.ones "f32[64, 64]"
  flat(function() return x * 1.0001 + 0.1 end)
end

function TestMemory:test_what_is_read_each_time()
  local x = dc.ones "f32[64, 64]"
  flat(function(i) return (x * i):sum():item() end)
end

function TestMemory:test_draws()
  local x = dc.zeros "f32[4]"
  flat(function() x = x * 0.9 + dc.rand "f32[4]" end, STEPS // 6)
  lu.assertTrue(x[1]:item() > 0)
end

function TestMemory:test_cells_set_each_time()
  local w = dc.param("f32[64]", 1)
  flat(function(i) w:set(w * 0.5 + i % 2) end)
end

function TestMemory:test_gradients_each_time()
  local w = dc.param("f32[8]", 1)
  flat(function()
    local loss = ((w - 3) ^ 2):sum()
    w:set(w - 0.01 * dc.grad(loss, w))
  end)
  lu.assertAlmostEquals(w[1]:item(), 3, 1e-4)
end

function TestMemory:test_large_garbage_goes_before_memory_is_out()
  local x = dc.ones "f32[1024, 1024]" -- 4 MiB
  lu.assertEquals(x[1][1]:item(), 1)
  collectgarbage()
  collectgarbage()
  collectgarbage "stop"
  local before = dc.stats().bytes_live
  for i = 1, 40 do
    local _ = (x * i):clone()
  end
  collectgarbage "restart"
  collectgarbage()
  collectgarbage()
  lu.assertTrue(dc.stats().bytes_live - before < 16 << 20)
  for i = 1, 200 do
    local _ = (x * i):clone()
    lu.assertTrue(dc.stats().bytes_live - before < 200 << 20, i)
  end
end
