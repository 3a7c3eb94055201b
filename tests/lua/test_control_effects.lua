-- What bodies of loops and branches do besides returning something: cells, tests of data, random numbers, prints,
-- gradients; and what is left of a body that fails.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"

local function near(got, want)
  if type(want) == "table" then
    lu.assertEquals(#got, #want)
    for i = 1, #want do
      near(got[i], want[i])
    end
  else
    lu.assertTrue(got == want or math.abs(got - want) <= 1e-5 * (1 + math.abs(want)), ("%s, not %s"):format(got, want))
  end
end

local function value(t)
  return #t.shape == 0 and t:item() or t:totable()
end

-- f reads and sets the cells; from the same values it leaves the same ones, outside typed functions and inside.
local function same(cells, signature, f, ...)
  local start, want = {}, { values = {} }
  for i, cell in ipairs(cells) do
    start[i] = cell:clone()
  end
  want.results = table.pack(f(...))
  for i = 1, want.results.n do
    want.results[i] = value(want.results[i])
  end
  for i, cell in ipairs(cells) do
    want.values[i] = value(cell)
  end
  local inside = dc.fn(signature, f)
  for _ = 1, 3 do
    for i, cell in ipairs(cells) do
      cell:set(start[i])
    end
    local got = table.pack(inside(...))
    lu.assertEquals(got.n, want.results.n)
    for i = 1, got.n do
      near(value(got[i]), want.results[i])
    end
    for i, cell in ipairs(cells) do
      near(value(cell), want.values[i])
    end
  end
end

TestCells = {}

function TestCells:test_set_and_read_in_a_loop()
  local s, t = dc.state("f32[]", 1), dc.state("f32[]", 10)
  same({ s, t }, "f(xs: f32[4]) -> f32[4], f32[]", function(xs)
    local _, ys = dc.scan(function(_, x)
      s:set(s * 2 + x + t)
      return nil, s * 1
    end, nil, xs)
    return ys, s + t
  end, dc.tensor { 1, 2, 3, 4 })
end

function TestCells:test_set_before_the_loop_and_after_it()
  local s = dc.state("f32[]", 1)
  same({ s }, "f(x: f32[]) -> f32[]", function(x)
    s:set(s + 1)
    local before = s * 1
    local sum = dc.fori(3, function(_, c)
      s:set(s * x)
      return c + s
    end, 0)
    s:set(s + sum)
    return before + s
  end, dc.full("f32[]", 3))
end

-- A cell that nothing has read before the loop.
function TestCells:test_first_met_in_the_body()
  local s, unused = dc.state("f32[2]", 1), dc.state("f32[2]", 5)
  same({ s, unused }, "f(x: f32[2]) -> f32[2]", function(x)
    local c = dc.fori(4, function(_, c)
      local was = s * 1
      s:set(was + x)
      return c + was * unused
    end, x)
    return c + unused
  end, dc.tensor { 1, 2 })
end

function TestCells:test_in_nested_loops()
  local s, t, u = dc.state("f32[]", 1), dc.state("f32[]", 2), dc.state("f32[]", 3)
  same({ s, t, u }, "f(xs: f32[3, 2]) -> f32[], f32[3]", function(xs)
    return dc.scan(function(c, row)
      local inner = dc.scan(function(d, x)
        s:set(s + x * t)
        return d + s
      end, 0, row)
      t:set(t + inner)
      return c + inner * u, s * 1
    end, 0, xs)
  end, dc.tensor { { 1, 2 }, { 3, 4 }, { 5, 6 } })
end

function TestCells:test_on_a_side()
  for _, x in ipairs { 2, -2 } do
    local s, t = dc.state("f32[]", 1), dc.state("f32[]", 10)
    same({ s, t }, "f(v: f32[]) -> f32[], f32[]", function(v)
      local r = dc.cond(v:gt(0), function()
        s:set(s + v)
        return s * 2
      end, function()
        t:set(t * v)
        t:set(t - 1)
        return s + t
      end)
      return r, s + t
    end, dc.full("f32[]", x))
  end
end

function TestCells:test_on_sides_in_a_loop()
  local s, t = dc.state("f32[]", 1), dc.state("f32[]", 10)
  same({ s, t }, "f(xs: f32[5]) -> f32[5]", function(xs)
    return dc.map(function(x, i)
      dc.cond(x:gt(0), function() s:set(s + x) end, function()
        dc.fori(2, function()
          t:set(t + x * i:cast "f32")
        end)
      end)
      return s * t
    end, xs)
  end, dc.tensor { 1, -2, 3, -4, 5 })
end

function TestCells:test_in_a_while_loop_whose_condition_reads_it()
  local s = dc.state("f32[]", 1)
  same({ s }, "f(x: f32[]) -> f32[], f32[]", function(x)
    local c = dc.loop(function(_, i) return s:lt(100) & i:lt(50) end, function(c)
      s:set(s * 2)
      return c + x
    end, 0)
    return c, s * 1
  end, dc.full("f32[]", 3))
end

-- A cell that is carried, cut, stacked or asked is the value that it has there.
function TestCells:test_as_values()
  local s, t = dc.state("f32[]", 1), dc.state("f32[3]", { 1, 2, 3 })
  local n, on = dc.state("i32[]", 2), dc.state("bool[]", true)
  same({ s, t, n, on }, "f(x: f32[]) -> f32[], f32[3], f32[], f32[], f32[3]", function(x)
    local c, ys = dc.scan(function(c, e)
      s:set(s + e)
      t:set(t * 2)
      return c * x + e, s
    end, s, t)
    local count = dc.fori(n, function(i, k)
      n:set(n + 1)
      return k + i:cast "f32" + s
    end, 0)
    local r = dc.cond(on, function()
      on:set(false)
      return s
    end, function() return x end)
    local same_carry = dc.fori(3, function() s:set(s + 1) return s end, 0)
    return c, ys, count, r + same_carry, t + 0
  end, dc.full("f32[]", 3))
end

function TestCells:test_batch_norm()
  local net = nn.Sequential { nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2) }
  local cells = {}
  for i, named in ipairs(net:named_cells()) do
    cells[i] = named[2]
  end
  same(cells, "f(xs: f32[3, 4, 1, 2, 2]) -> f32[3, 4, 2, 2, 2]", function(xs)
    return dc.map(net, xs)
  end, dc.randn("f32[3, 4, 1, 2, 2]", { seed = 1 }))
end

TestGradients = {}

-- Steps of an optimiser inside a loop: gradients of the loss of each iteration.
function TestGradients:test_training_in_a_loop()
  local function train(make)
    local w = dc.param("f32[3]", { 1, 2, 3 })
    local opt = make { w }
    return w, function(xs)
      return dc.map(function(x)
        local loss = ((w * x):sum() - 1) ^ 2
        opt:step(loss)
        return loss
      end, xs)
    end
  end
  local xs = dc.randn("f32[6, 3]", { seed = 2 })
  for name, make in pairs {
    sgd = function(list) return optim.SGD(list, { lr = 0.05, momentum = 0.9 }) end,
    adam = function(list) return optim.Adam(list, { lr = 0.05 }) end,
  } do
    local w, f = train(make)
    local v, step = train(make)
    local losses = f(xs):totable()
    local inside = dc.fn("f(xs: f32[6, 3]) -> f32[6]", step)
    near(inside(xs):totable(), losses)
    near(v:totable(), w:totable())
    near(inside(xs):totable(), f(xs):totable())
    near(v:totable(), w:totable())
    lu.assertNotEquals(losses[1], losses[6], name)
  end
end

function TestGradients:test_of_what_a_body_computes()
  local f = dc.fn("f(xs: f32[3, 2]) -> f32[3, 2]", function(xs)
    return dc.map(function(x) return dc.grad((x * x * x):sum(), x) end, xs)
  end)
  near(f({ { 1, 2 }, { 3, 4 }, { 5, 6 } }):totable(), { { 3, 12 }, { 27, 48 }, { 75, 108 } })
end

function TestGradients:test_given_by_hand_in_a_body()
  local clip = dc.custom_grad(function(x) return x * x end, function(dy, y, x) return dy * y + x end)
  local block = dc.remat(function(x) return (x * x):exp() end)
  local k = dc.param("f32[]", 2)
  local f = dc.fn("f(xs: f32[3]) -> f32[3], f32[3], f32[3]", function(xs)
    local ys = dc.map(function(x)
      local y = clip(x) + block(x * k) + clip(k)
      return { y, dc.grad(y, x), dc.cond(x:gt(1), function() return dc.grad(clip(x), x) end, function() return 7 end) }
    end, xs)
    return ys[1], ys[2], ys[3]
  end)
  local x = { 0.5, 1, 1.5 }
  local want = { {}, {}, {} }
  for i, v in ipairs(x) do
    want[1][i] = v * v + math.exp(4 * v * v) + 4
    want[2][i] = v * v + v + 8 * v * math.exp(4 * v * v)
    want[3][i] = v > 1 and v * v + v or 7
  end
  for _ = 1, 2 do
    local y, g, h = f(x)
    near(y:totable(), want[1])
    near(g:totable(), want[2])
    near(h:totable(), want[3])
  end
end

TestData = {}

local function fails(text, f, ...)
  local ok, err = pcall(f, ...)
  lu.assertFalse(ok, text)
  lu.assertStrContains(tostring(err), text)
  return err
end

function TestData:test_an_index_in_a_loop()
  local t = dc.tensor { 10, 20, 30 }
  local f = dc.fn("f(at: i32[2, 3]) -> f32[2, 3]", function(at)
    return dc.map(function(row) return dc.map(function(i) return t:take(i) end, row) end, at)
  end)
  lu.assertEquals(f({ { 0, 1, 2 }, { 2, 2, 0 } }):totable(), { { 10, 20, 30 }, { 30, 30, 10 } })
  fails("index 3 outside 0..2", f, { { 0, 1, 2 }, { 2, 3, 4 } })
  fails("index -1 outside 0..2", f, { { 0, -1, 7 }, { 2, 3, 4 } })
  lu.assertEquals(f({ { 0, 1, 2 }, { 2, 2, 0 } }):totable()[2], { 30, 30, 10 })
end

function TestData:test_labels_in_a_scan()
  local f = dc.fn("f(logits: f32[3, 2, 4], labels: i32[3, 2]) -> f32[]", function(logits, labels)
    return (dc.scan(function(sum, x) return sum + nn.cross_entropy(x[1], x[2]) end, 0, { logits, labels }))
  end)
  local logits = dc.zeros "f32[3, 2, 4]"
  near(f(logits, dc.zeros "i32[3, 2]"):item(), 3 * math.log(4))
  fails("class 4 outside 0..3 at row 2", f, logits, dc.tensor({ { 0, 1 }, { 2, 4 }, { 7, 0 } }, "i32[3, 2]"))
end

-- A test on a side that does not run finds nothing.
function TestData:test_on_a_side()
  local t = dc.tensor { 10, 20, 30 }
  local f = dc.fn("f(at: i32[], there: bool[]) -> f32[]", function(at, there)
    return dc.cond(there, function() return t:take(at) end, function() return t:take(at // 2) end)
  end)
  lu.assertEquals(f(1, true):item(), 20)
  lu.assertEquals(f(5, false):item(), 30)
  fails("index 5 outside 0..2", f, 5, true)
  fails("index 4 outside 0..2", f, 8, false)
end

function TestData:test_in_a_condition()
  local t = dc.tensor { 1, 1, 0, 1 }
  local function f(at)
    return dc.loop(function(i) return t:take(i):gt(0.5) end, function(i) return i + 1 end, at)
  end
  local inside = dc.fn("f(at: i32[]) -> i32[]", f)
  lu.assertEquals({ inside(0):item(), inside(2):item() }, { 2, 2 })
  fails("index 4 outside 0..3", inside, 3)
  fails("index 7 outside 0..3", inside, 7)
  fails("index 7 outside 0..3", f, dc.full("i32[]", 7))
end

-- Cells keep their values where a test fails.
function TestData:test_cells_of_a_call_that_fails()
  local s, t = dc.state("f32[]", 1), dc.tensor { 1, 2 }
  local f = dc.fn("f(at: i32[3]) -> f32[]", function(at)
    return (dc.scan(function(c, i)
      s:set(s + 1)
      return c + t:take(i)
    end, 0, at))
  end)
  lu.assertEquals(f({ 0, 1, 0 }):item(), 4)
  lu.assertEquals(s:item(), 4)
  fails("index 2 outside", f, { 0, 2, 0 })
  lu.assertEquals(s:item(), 4)
end

TestRandom = {}

local function distinct(list)
  local seen = {}
  for _, v in ipairs(list) do
    if type(v) == "table" then
      v = table.concat(v, " ")
    end
    lu.assertNil(seen[v])
    seen[v] = true
  end
end

function TestRandom:test_each_iteration_draws_anew()
  dc.seed(3)
  local f = dc.fn("f(n: i32[]) -> f32[4, 2], f32[3, 2], f32[2], i32[]", function(n)
    local a = dc.map(function() return dc.rand "f32[2]" end, dc.zeros "f32[4]")
    local b = dc.map(function() return dc.rand "f32[2]" end, dc.zeros "f32[3]")
    return a, b, dc.rand "f32[2]", n
  end)
  local all = {}
  for _ = 1, 3 do
    local a, b, c = f(1)
    for _, row in ipairs(a:totable()) do all[#all + 1] = row end
    for _, row in ipairs(b:totable()) do all[#all + 1] = row end
    all[#all + 1] = c:totable()
  end
  distinct(all)
  dc.seed(3)
  local again = f(1)
  lu.assertEquals(again:totable(), { table.unpack(all, 1, 4) })
end

function TestRandom:test_in_nested_loops_and_sides()
  local f = dc.fn("f(p: bool[]) -> f32[3, 4], f32[3]", function(p)
    local _, ys = dc.scan(function(_, _, i)
      local _, row = dc.scan(function() return nil, dc.rand "f32[]" end, nil, nil, { length = 4 })
      local one = dc.cond(p & i:ge(0), function() return dc.rand "f32[]" end, function() return dc.randn "f32[]" end)
      return nil, { row, one }
    end, nil, nil, { length = 3, reverse = true })
    return ys[1], ys[2]
  end)
  local all = {}
  for call = 1, 4 do
    local rows, ones = f(call % 2 == 0)
    for _, row in ipairs(rows:totable()) do
      table.move(row, 1, 4, #all + 1, all)
    end
    table.move(ones:totable(), 1, 3, #all + 1, all)
  end
  distinct(all)
end

function TestRandom:test_in_a_while_loop()
  local f = dc.fn("f(x: f32[]) -> f32[], i32[]", function(x)
    local c = dc.loop(function(c) return c.x:lt(5) & dc.rand "f32[]":lt(2) end, function(c)
      return { x = c.x + dc.rand("f32[]", { low = 0.1 }), n = c.n + 1 }
    end, { x = x, n = dc.zeros "i32[]" })
    return c.x, c.n
  end)
  local x, n = f(0)
  lu.assertTrue(x:item() >= 5 and x:item() < 6)
  lu.assertTrue(n:item() > 5 and n:item() < 50)
  lu.assertNotEquals(f(0):item(), x:item())
end

-- The mask of dropout is another one for each element, in training and in no other mode.
function TestRandom:test_dropout()
  local drop = nn.Dropout(0.5)
  local f = dc.fn("f(xs: f32[4, 32]) -> f32[4, 32]", function(xs) return dc.map(drop, xs) end)
  distinct(f(dc.ones "f32[4, 32]"):totable())
  drop:eval()
  lu.assertEquals(f(dc.ones "f32[4, 32]"):totable(), dc.ones("f32[4, 32]"):totable())
end

-- What a call draws outside loops is what it was before there were loops.
function TestRandom:test_the_generator_advances_once()
  local one = dc.fn("one(n: i32[]) -> f32[2]", function(n) return dc.rand "f32[2]" + 0 * n:cast "f32" end)
  local many = dc.fn("many(n: i32[]) -> f32[2]", function(n)
    return dc.rand "f32[2]" + 0 * dc.fori(n, function(_, c) return c + dc.rand "f32[]" end, 0)
  end)
  dc.seed(11)
  local a = { one(1):totable(), one(1):totable() }
  dc.seed(11)
  lu.assertEquals({ many(5):totable(), many(2):totable() }, a)
end

TestPrints = {}

-- What is printed while f runs, a list of lines.
local function printed(f, ...)
  local lines, own = {}, print
  function _G.print(...)
    local list = table.pack(...)
    for i = 1, list.n do
      list[i] = tostring(list[i])
    end
    lines[#lines + 1] = table.concat(list, " ")
  end
  local ok, err = pcall(f, ...)
  _G.print = own
  lu.assertTrue(ok, tostring(err))
  return lines
end

-- The same lines outside typed functions and in each call.
local function prints(signature, f, ...)
  local want, inside = printed(f, ...), dc.fn(signature, f)
  for _ = 1, 3 do
    lu.assertEquals(printed(inside, ...), want)
  end
  return want
end

function TestPrints:test_in_a_scan()
  local want = prints("f(xs: f32[3]) -> f32[]", function(xs)
    dc.print("before", xs[1])
    local sum = dc.scan(function(c, x, i)
      dc.print("i", i, "x", x)
      dc.print("c", c)
      return c + x
    end, 0, xs, { reverse = true })
    dc.print("sum", sum)
    return sum
  end, dc.tensor { 1, 2, 3 })
  lu.assertEquals(want, { "before 1.0", "i 2 x 3.0", "c 0.0", "i 1 x 2.0", "c 3.0", "i 0 x 1.0", "c 5.0", "sum 6.0" })
end

function TestPrints:test_nested_and_on_sides()
  prints("f(xs: f32[3, 2]) -> f32[]", function(xs)
    return (dc.scan(function(c, row, i)
      dc.print("row", i)
      c = dc.cond((i % 2):eq(0), function()
        dc.print("even", c)
        return (dc.scan(function(d, x)
          dc.print("  x", x)
          dc.print "  -"
          return d + x
        end, c, row))
      end, function()
        dc.print "odd"
        dc.print("odd", c)
        return c * 2
      end)
      return c
    end, 0, xs))
  end, dc.tensor { { 1, 2 }, { 3, 4 }, { 5, 6 } })
end

function TestPrints:test_as_often_as_the_loop_runs()
  for n = 0, 4 do
    local want = prints("f(k: i32[]) -> f32[]", function(k)
      dc.print("n", k)
      local c = dc.fori(k, function(i, c)
        dc.print("fori", i)
        return c + 1
      end, 0, { max = 3 })
      return dc.loop(function(v) return v:lt(3) end, function(v)
        dc.print("loop", v)
        return v + 1
      end, c, { max = 10 })
    end, dc.full("i32[]", n))
    lu.assertEquals(#want, 1 + math.min(n, 3) + math.max(0, 3 - n))
  end
end

function TestPrints:test_texts_alone()
  local want = prints("f(x: f32[]) -> f32[]", function(x)
    dc.print "begin"
    local y = dc.fori(2, function(_, c)
      dc.print "again"
      return c + x
    end, 0)
    dc.print("end", 1)
    return y
  end, dc.full("f32[]", 1))
  lu.assertEquals(want, { "begin", "again", "again", "end 1" })
end

function TestPrints:test_whole_tensors()
  prints("f(xs: f32[2, 3, 2]) -> f32[]", function(xs)
    dc.map(function(x)
      dc.print(x, x:sum())
      return 0
    end, xs)
    return xs:sum()
  end, dc.randn("f32[2, 3, 2]", { seed = 4 }))
end

TestFailures = {}

-- What a body did that failed is taken back, where the script catches the error while it is traced.
function TestFailures:test_caught_in_a_trace()
  local s, t = dc.state("f32[]", 1), dc.tensor { 1, 2 }
  local f = dc.fn("f(x: f32[3], p: bool[]) -> f32[]", function(x, p)
    dc.print("x", x[1])
    local ok, err = pcall(dc.scan, function(c, e)
      s:set(s + e)
      dc.print("never", e)
      dc.cond(p, function()
        s:set(0)
        dc.print("nor this", e)
        t:take(e:cast "i32")
        return { e }
      end, function() return e end)
      return c
    end, 0, x)
    lu.assertFalse(ok)
    lu.assertStrContains(tostring(err), "result 1")
    return s + dc.fori(2, function(_, c) return c + x:sum() end, 0)
  end)
  local lines = printed(function()
    lu.assertEquals(f({ 1, 2, 30 }, true):item(), 67)
    lu.assertEquals(f({ 1, 2, 30 }, true):item(), 67)
  end)
  lu.assertEquals(lines, { "x 1.0", "x 1.0" })
  lu.assertEquals(s:item(), 1)
end

-- A coroutine that dies in a body.
function TestFailures:test_a_coroutine_that_dies()
  local s = dc.state("f32[]", 1)
  local kept = {}
  local f = dc.fn("f(x: f32[3]) -> f32[]", function(x)
    local co = coroutine.create(function()
      return dc.scan(function(c, e)
        s:set(s + e)
        error "out"
        return c
      end, 0, x)
    end)
    local ok = coroutine.resume(co)
    lu.assertFalse(ok)
    kept[1] = co
    return (dc.scan(function(c, e) return c + e * s end, 0, x))
  end)
  lu.assertEquals(f({ 1, 2, 3 }):item(), 6)
  coroutine.close(kept[1])
  lu.assertEquals(f({ 1, 2, 3 }):item(), 6)
  lu.assertEquals(s:item(), 1)
end

-- Bodies run in coroutines, too.
function TestFailures:test_in_a_coroutine()
  local f = dc.fn("f(x: f32[3]) -> f32[]", function(x)
    local sum
    coroutine.wrap(function()
      sum = dc.scan(function(c, e)
        local step = coroutine.wrap(function(v)
          while true do
            v = coroutine.yield(v * 2)
          end
        end)
        return c + step(e)
      end, 0, x)
    end)()
    return sum
  end)
  lu.assertEquals(f({ 1, 2, 3 }):item(), 12)
end

TestGuards = {}

-- What only a body reads from outside is compared at each call.
function TestGuards:test_captured_numbers()
  local k, options = 2, { shift = 1 }
  local f = dc.fn("f(xs: f32[3]) -> f32[3]", function(xs)
    return dc.map(function(x) return x * k + options.shift end, xs)
  end)
  lu.assertEquals(f({ 1, 2, 3 }):totable(), { 3, 5, 7 })
  lu.assertEquals(f({ 1, 2, 3 }):totable(), { 3, 5, 7 })
  k = 3
  fails("captured local 'k' changed from 2 to 3", f, { 1, 2, 3 })
  k, options.shift = 2, 5
  fails("changed from 1 to 5", f, { 1, 2, 3 })
end

function TestGuards:test_of_a_body_that_was_there_before()
  local k = 2
  local function body(x) return x * k end
  local f = dc.fn("f(xs: f32[3]) -> f32[3]", function(xs) return dc.map(body, xs) end)
  lu.assertEquals(f({ 1, 2, 3 }):totable(), { 2, 4, 6 })
  lu.assertEquals(f({ 1, 2, 3 }):totable(), { 2, 4, 6 })
  k = 3
  fails("captured local 'k' changed from 2 to 3", f, { 1, 2, 3 })
end

-- Two traces that differ in a body alone: the line of the difference is told.
function TestGuards:test_traces_that_differ_in_a_body()
  local source = coroutine.wrap(function()
    for i = 1, 10 do
      coroutine.yield(i)
    end
  end)
  local f = dc.fn("f(xs: f32[3]) -> f32[3]", function(xs)
    return dc.map(function(x)
      local y = x + 1
      return y * source() -- this line
    end, xs)
  end)
  local line = debug.getinfo(1, "l").currentline - 3
  lu.assertEquals(f({ 1, 2, 3 }):totable(), { 2, 3, 4 })
  local err = fails("two traces of 'f' differ", f, { 1, 2, 3 })
  lu.assertStrContains(tostring(err), ("control_effects.lua:%d, and nothing"):format(line))
end
