-- dc.scan, dc.loop, dc.fori, dc.map, dc.cond, dc.switch: in a typed function, where a body is traced once, they give
-- what they give outside, where they are loops of Lua.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"

local function near(got, want, what)
  if type(want) ~= "table" then
    lu.assertTrue(got == want or math.abs(got - want) <= 1e-5 * (1 + math.abs(want)) or (got ~= got and want ~= want),
      ("%s: %s, not %s"):format(what, got, want))
    return
  end
  lu.assertEquals(#got, #want, what)
  for i = 1, #want do
    near(got[i], want[i], what)
  end
end

local function plain(v)
  return v ~= nil and type(v) ~= "number" and (#v.shape == 0 and v:item() or v:totable()) or v
end

-- The results of f outside typed functions and of two calls inside are equal, and of the same types.
local function same(signature, f, ...)
  local want = table.pack(f(...))
  local inside = dc.fn(signature, f)
  for call = 1, 2 do
    local got = table.pack(inside(...))
    lu.assertEquals(got.n, want.n)
    for i = 1, want.n do
      lu.assertEquals(tostring(got[i]):match "[%w]+%[.*%]$", tostring(want[i]):match "[%w]+%[.*%]$")
      near(plain(got[i]), plain(want[i]), ("call %d, result %d"):format(call, i))
    end
  end
  return table.unpack(want, 1, want.n)
end

TestScan = {}

function TestScan:test_recurrence()
  local w = dc.param("f32[3, 3]", dc.randn("f32[3, 3]", { seed = 1 }))
  local h, ys = same("f(h: f32[2, 3], xs: f32[t=5, b=2, 3]) -> f32[2, 3], f32[t=5, b=2, 3]", function(h, xs)
    return dc.scan(function(c, x)
      c = (c:matmul(w) + x):tanh()
      return c, c * 2
    end, h, xs)
  end, dc.zeros "f32[2, 3]", dc.randn("f32[t=5, b=2, 3]", { seed = 2 }))
  lu.assertEquals({ h.shape, ys.shape }, { { 2, 3 }, { 5, 2, 3 } })
end

function TestScan:test_cumulative_sum_both_ways()
  local function sum(reverse)
    return function(xs)
      return dc.scan(function(c, x) return c + x, c + x end, 0, xs, { reverse = reverse })
    end
  end
  local x = dc.tensor { 1, 2, 3, 4 }
  local last, all = same("f(xs: f32[4]) -> f32[], f32[4]", sum(false), x)
  lu.assertEquals({ last:item(), all:totable() }, { 10, { 1, 3, 6, 10 } })
  last, all = same("f(xs: f32[4]) -> f32[], f32[4]", sum(true), x)
  lu.assertEquals({ last:item(), all:totable() }, { 10, { 10, 9, 7, 4 } })
end

function TestScan:test_records_lists_and_numbers()
  same("f(a: f32[2], xs: f32[3, 2], ns: i32[3]) -> f32[2], i32[], f32[], f32[3, 2], i32[3], f32[3]", function(a, xs, ns)
    local c, ys = dc.scan(function(c, x)
      local sum = c.pair[1] + x.x
      return { pair = { sum, c.pair[2] + x.n }, k = c.k * 2 }, { sum, { n = x.n * c.pair[2], k = 7 } }
    end, { pair = { a, dc.full("i32[]", 3) }, k = 1.5 }, { x = xs, n = ns })
    return c.pair[1], c.pair[2], c.k, ys[1], ys[2].n, ys[2].k
  end, dc.tensor { 1, 2 }, dc.tensor { { 1, 2 }, { 3, 4 }, { 5, 6 } }, dc.tensor({ 4, 5, 6 }, "i32[3]"))
end

function TestScan:test_length_without_xs_and_the_number()
  local _, ys = same("f(x: f32[]) -> f32[], i32[4]", function(x)
    return dc.scan(function(c, e, i)
      lu.assertNil(e)
      return c * 2, i
    end, x, nil, { length = 4, reverse = true })
  end, dc.full("f32[]", 3))
  lu.assertEquals(ys:totable(), { 0, 1, 2, 3 })
end

function TestScan:test_without_carry_or_without_ys()
  same("f(xs: f32[3]) -> f32[3]", function(xs)
    local none, ys = dc.scan(function(_, x) return nil, x * x end, nil, xs)
    lu.assertNil(none)
    return ys
  end, dc.tensor { 1, 2, 3 })
  same("f(xs: f32[3]) -> f32[]", function(xs)
    local c, none = dc.scan(function(c, x) return c + x end, 0, xs)
    lu.assertNil(none)
    return c
  end, dc.tensor { 1, 2, 3 })
end

function TestScan:test_captured_values_pass_through()
  same("f(a: f32[2], b: f32[2], xs: f32[3, 2]) -> f32[2], f32[2], f32[3, 2], f32[3]", function(a, b, xs)
    local c, y = dc.scan(function(c)
      return { same = c.same, swap = c.other, other = c.swap }, { b, 1 }
    end, { same = a, swap = a * 2, other = b }, xs)
    return c.same, c.swap, y[1], y[2]
  end, dc.tensor { 1, 2 }, dc.tensor { 3, 4 }, dc.zeros "f32[3, 2]")
end

function TestScan:test_nested()
  same("f(xs: f32[3, 4]) -> f32[], f32[3], f32[3, 4]", function(xs)
    local c, ys = dc.scan(function(c, row, i)
      local sum, all = dc.scan(function(s, x, k)
        s = s + x * (i + k):cast "f32"
        return s, s * c
      end, 0, row)
      return c + sum, { sum, all }
    end, 1, xs)
    return c, ys[1], ys[2]
  end, dc.randn("f32[3, 4]", { seed = 3 }))
end

function TestScan:test_layers_and_captured_tensors()
  local cell = nn.Linear(4, 4)
  local scale = dc.tensor { 1, 2, 3, 4 }
  same("f(x: f32[2, 4], xs: f32[6, 2, 4]) -> f32[2, 4]", function(x, xs)
    return (dc.scan(function(h, e) return nn.ReLU()(cell(h) + e) * scale end, x, xs))
  end, dc.ones "f32[2, 4]", dc.randn("f32[6, 2, 4]", { seed = 5 }))
end

function TestScan:test_a_layer_is_a_body()
  local layer = nn.Linear(3, 2)
  same("f(xs: f32[5, 3]) -> f32[5, 2]", function(xs) return dc.map(layer, xs) end, dc.randn("f32[5, 3]", { seed = 5 }))
end

function TestScan:test_no_elements()
  local s = dc.state("f32[]", 1)
  local c, ys, more = same("f(xs: f32[t=0, 2]) -> f32[2], f32[t=0, 2], i32[t=0]", function(xs)
    local c, ys = dc.scan(function(c, x, i)
      s:set(s + 1)
      return c + x, { c, i }
    end, dc.ones "f32[2]", xs)
    return c, ys[1], ys[2]
  end, dc.zeros "f32[t=0, 2]")
  lu.assertEquals({ c:totable(), ys.shape, more.shape, s:item() }, { { 1, 1 }, { 0, 2 }, { 0 }, 1 })
end

function TestScan:test_map()
  local ys = same("f(xs: f32[t=3, 2], k: f32[3]) -> f32[t=3]", function(xs, k)
    return dc.map(function(x, i) return (x.x * x.k):sum() + i:cast "f32" end, { x = xs, k = k })
  end, dc.tensor({ { 1, 2 }, { 3, 4 }, { 5, 6 } }, "f32[t=3, 2]"), dc.tensor { 1, 2, 3 })
  lu.assertEquals(ys:totable(), { 3, 15, 35 })
end

TestLoops = {}

function TestLoops:test_fori_counts_in_any_integer_dtype()
  for _, dtype in ipairs { "i8", "u8", "u32", "i64", "u64" } do
    local f = dc.fn(("f(n: %s[]) -> i32[]"):format(dtype), function(n)
      return dc.fori(n, function(_, c) return c + 1 end, dc.zeros "i32[]", { max = 9 })
    end)
    lu.assertEquals(f(dc.full(dtype .. "[]", 7)):item(), 7)
  end
end

function TestLoops:test_fori()
  local function power(n, x)
    return dc.fori(n, function(i, c) return c * x + i:cast "f32" end, dc.ones "f32[2]")
  end
  same("f(x: f32[2]) -> f32[2]", function(x) return power(5, x) end, dc.tensor { 1, 2 })
  same("f(x: f32[2]) -> f32[2]", function(x) return power(0, x) end, dc.tensor { 1, 2 })
  for _, n in ipairs { 0, 1, 7, -2 } do
    same("f(n: i32[], x: f32[2]) -> f32[2]", power, dc.full("i32[]", n), dc.tensor { 1, 2 })
  end
  for _, n in ipairs { 0, 2, 7 } do
    local r = same("f(count: i32[], x: f32[]) -> f32[]", function(count, x)
      return dc.fori(count, function(_, c) return c + x end, 0, { max = 3 })
    end, dc.full("i32[]", n), dc.full("f32[]", 2))
    lu.assertEquals(r:item(), math.min(n, 3) * 2)
  end
end

function TestLoops:test_while()
  local function collatz(n)
    local c = dc.loop(function(c) return c.n:ne(1) end, function(c)
      local odd = (c.n % 2):eq(1)
      return { n = dc.where(odd, c.n * 3 + 1, c.n // 2), steps = c.steps + 1 }
    end, { n = n, steps = dc.zeros "i32[]" })
    return c.steps
  end
  for _, n in ipairs { 1, 6, 27 } do
    same("f(n: i32[]) -> i32[]", collatz, dc.full("i32[]", n))
  end
  lu.assertEquals(collatz(dc.full("i32[]", 27)):item(), 111)
end

function TestLoops:test_while_with_a_bound_and_the_number()
  local r = same("f(x: f32[]) -> f32[]", function(x)
    return dc.loop(function(c, i) return c:lt(1000) & i:lt(4) end, function(c, i)
      return c * 2 + i:cast "f32"
    end, x, { max = 6 })
  end, dc.full("f32[]", 1))
  lu.assertEquals(r:item(), 16 + 8 * 0 + 4 * 1 + 2 * 2 + 3)
  r = same("f(x: f32[]) -> f32[]", function(x)
    return dc.loop(function(c) return c:lt(1000) end, function(c) return c * 2 end, x, { max = 3 })
  end, dc.full("f32[]", 1))
  lu.assertEquals(r:item(), 8)
end

function TestLoops:test_square_root_in_a_scan()
  same("f(xs: f32[4]) -> f32[4]", function(xs)
    return dc.map(function(x)
      return dc.loop(function(r) return (r * r - x):abs():gt(1e-4) end, function(r) return (r + x / r) / 2 end, x,
        { max = 50 })
    end, xs)
  end, dc.tensor { 1, 2, 9, 100 })
end

TestBranches = {}

function TestBranches:test_cond()
  local function f(x, k)
    return dc.cond(x:sum():gt(0), function(a) return a:sqrt(), a:sum() * k end, function(a)
      return a * 2, 1
    end, x)
  end
  same("f(x: f32[2], k: f32[]) -> f32[2], f32[]", f, dc.tensor { 4, 9 }, dc.full("f32[]", 3))
  same("f(x: f32[2], k: f32[]) -> f32[2], f32[]", f, dc.tensor { -4, -9 }, dc.full("f32[]", 3))
end

function TestBranches:test_cond_of_a_boolean()
  local seen = {}
  local function f(x)
    return dc.cond(x.shape[1] > 1, function(a) seen[1] = true return a:sum() end, function(a)
      seen[2] = true
      return a
    end, x)
  end
  lu.assertEquals(f(dc.tensor { 1, 2 }):item(), 3)
  lu.assertEquals(seen, { true })
end

function TestBranches:test_switch()
  for i = -1, 5 do
    local r = same("f(k: i32[], x: f32[2]) -> f32[2]", function(k, x)
      return dc.switch(k, {
        function(a) return a + 1 end, function(a) return a * 2 end, function(a) return a:exp() end,
        function(a) return a - 3 end, function(a) return { 7 } and a * 0 + 7 end,
      }, x)
    end, dc.full("i32[]", i), dc.tensor { 1, 2 })
    if i >= 4 then
      lu.assertEquals(r:totable(), { 7, 7 })
    end
  end
end

function TestBranches:test_records()
  for _, x in ipairs { 1, -1 } do
    same("f(v: f32[]) -> f32[], f32[]", function(v)
      local r = dc.cond(v:gt(0), function() return { a = v, b = { 2 } } end, function() return { a = 3, b = { v } } end)
      return r.a, r.b[1]
    end, dc.full("f32[]", x))
  end
end

function TestBranches:test_nested_in_loops()
  same("f(xs: f32[6], k: f32[]) -> f32[], f32[6]", function(xs, k)
    return dc.scan(function(c, x, i)
      local y = dc.cond(x:gt(0), function()
        return dc.fori(3, function(j, s) return s + x * (j + i):cast "f32" end, c)
      end, function()
        return dc.cond((i % 2):eq(0), function(a) return a - k end, function(a) return a + k * x end, c)
      end)
      return y, y * 2
    end, 1, xs)
  end, dc.tensor { 1, -2, 3, -4, -5, 6 }, dc.full("f32[]", 0.5))
end

-- What both sides compute, what one has computed before, what follows.
function TestBranches:test_equal_nodes_on_both_sides()
  for _, x in ipairs { 4, -4 } do
    same("f(v: f32[]) -> f32[], f32[]", function(v)
      local before = v:abs()
      local r = dc.cond(v:gt(0), function() return v:exp() + before:sqrt() end, function()
        return v:exp() * v:abs()
      end)
      return r, v:exp() + v:abs():sqrt()
    end, dc.full("f32[]", x))
  end
end
TestRemat = {}

-- Gradients with remat are those without: of a recurrence with captured weights, over a number of elements that no
-- chunk divides.
function TestRemat:test_gradients()
  local w = dc.param("f32[4, 4]", dc.randn("f32[4, 4]", { seed = 1, std = 0.4 }))
  local function step(remat)
    return dc.fn("f(xs: f32[23, 2, 4]) -> f32[], f32[4, 4], f32[23, 2, 4]", function(xs)
      local last, all = dc.scan(function(h, x)
        h = (h:matmul(w) + x):tanh()
        return h, h * h
      end, dc.zeros "f32[2, 4]", xs, { remat = remat })
      local loss = last:sum() + all:mean()
      local dw, dx = table.unpack(dc.grad(loss, { w, xs }))
      return loss, dw, dx
    end)
  end
  local xs = dc.randn("f32[23, 2, 4]", { seed = 2 })
  local kept, again = step(false), step(true)
  local want, got = { kept(xs) }, { again(xs) }
  for i = 1, 3 do
    near(plain((got[i]:reshape "[-1]")), plain((want[i]:reshape "[-1]")), "result " .. i)
  end
  lu.assertStrContains(kept:explain(), "loop          23 iterations, of a gradient: reads ")
end

-- Rows of a table: what each iteration adds is added where it belongs, whatever else reads the table.
function TestRemat:test_rows_of_a_table()
  local rows, t = dc.randn("f32[200, 8]", { seed = 1 }), dc.randint("i32[40, 3]", { high = 200, seed = 2 })
  local bodies = {
    function(a, c, i) return (c + a:take(i, 1):sum(1)):tanh() end,
    function(a, c, i) return (c * a:take(i[1]) + a:take(i[2])):tanh() end,
    function(a, c, i) return (c + a:take(i[1]) * a:mean(1)):tanh() end,
    function(a, c, i) return (c + a[3] * a:take(i[3])):tanh() end,
  }
  for n, body in ipairs(bodies) do
    for _, remat in ipairs { false, true } do
      local f = dc.fn("f(a: f32[200, 8], all: i32[40, 3]) -> f32[200, 8]", function(a, all)
        local last = dc.scan(function(c, i) return body(a, c, i) end, dc.ones "f32[8]", all, { remat = remat })
        return dc.grad((last * last):sum(), a)
      end)
      local want = dc.fn("f(a: f32[200, 8], all: i32[40, 3]) -> f32[200, 8]", function(a, all)
        local c = dc.ones "f32[8]"
        for k = 1, 40 do
          c = body(a, c, all[k])
        end
        return dc.grad((c * c):sum(), a)
      end)
      near(plain((f(rows, t):reshape "[-1]")), plain((want(rows, t):reshape "[-1]")), "rows " .. n)
    end
  end
end

function TestRemat:test_options()
  local err = select(2, pcall(dc.scan, function(c) return c end, 0, nil, { length = 3, remat = 1 }))
  lu.assertStrContains(tostring(err), "remat is true or false, not 1")
  lu.assertEquals(select("#", dc.scan(function(c) return c + 1 end, 0, nil, { length = 3, remat = true })), 1)
end

