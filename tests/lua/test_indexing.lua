-- Elements at integers that are data: dtypes, names, axes without elements, sizes known at run time, vmap, loops,
-- errors. Values and gradients beside PyTorch and NumPy are in tests/peers/cases/indexing.lua.
local lu = require "luaunit"
local dc = require "deepc"

local raises = require "tests.lua.check".raises

local function ints(list) return dc.tensor(list, "i32") end

TestIndexing = {}

function TestIndexing:test_dtypes()
  for _, dtype in ipairs { "i8", "u16", "i64", "f16", "bf16", "f64" } do
    local x = dc.tensor({ { 1, 2, 3 }, { 4, 5, 6 } }, dtype)
    lu.assertEquals(x:gather({ { 2 }, { 0 } }, 2):cast "f64":totable(), { { 3 }, { 4 } }, dtype)
    lu.assertEquals(x:scatter({ { 2, 2 }, { 0, 1 } }, 2, 2, { reduce = "mul" }):cast "f64":totable(),
      { { 1, 2, 12 }, { 8, 10, 6 } }, dtype)
    lu.assertEquals(x:index_reduce({ 1, 1 }, x, 1, { reduce = "max" }).dtype, dtype)
    lu.assertEquals(x:segment_sum({ 1, 1 }, 2):cast "f64":totable(), { { 0, 0, 0 }, { 5, 7, 9 } }, dtype)
  end
  local flags = dc.tensor({ true, false, false }, "bool")
  lu.assertEquals(flags:scatter({ 1, 1 }, dc.tensor({ true, false }, "bool"), 1, { reduce = "max" }):totable(),
    { true, true, false })
  lu.assertEquals(ints { 1, 2 }:scatter({ 0, 0 }, ints { 4, 4 }, 1, { reduce = "mean" }):totable(), { 3.0, 2.0 })
  lu.assertEquals(dc.ones "f16[1]":index_add(dc.zeros "i32[4000]", 1):item(), 4001 // 2 * 2) -- added up in f32
end

-- The least and the largest integer change nothing.
function TestIndexing:test_without_what_is_there()
  for dtype, ends in pairs { i8 = { -128, 127 }, u8 = { 0, 255 }, i64 = { math.mininteger, math.maxinteger },
    u32 = { 0, 0xffffffff }, f32 = { -math.huge, math.huge } } do
    local x = dc.tensor({ 1, 2 }, dtype)
    for k, how in ipairs { "max", "min" } do
      local put = x:scatter({ 0 }, dc.tensor({ ends[k] }, dtype), 1, { reduce = how, include_self = false })
      lu.assertEquals(put:totable()[1], ends[k], dtype .. how)
    end
  end
  local most = ~dc.zeros "u64[1]"
  lu.assertTrue(dc.ones "u64[1]":scatter({ 0 }, most, 1, { reduce = "min", include_self = false }):eq(most):item())
end

function TestIndexing:test_names_and_axes()
  local x = dc.iota "f32[b=2, t=3]"
  lu.assertEquals(tostring(x:gather(dc.zeros "i32[b=2, 1]", "t")), tostring(dc.zeros "f32[b=2, 1]"))
  lu.assertEquals(x:gather(dc.zeros "i32[k=4, t=3]", -2):size "k", 4)
  lu.assertEquals(x:scatter(dc.zeros "i32[b=2, 1]", 1, "t"):size "t", 3)
  lu.assertEquals(x:segment_sum({ 0, 0 }, 5):size "t", 3)
  lu.assertEquals(x:take_nd { dc.zeros "i32[k=4]" }:size "t", 3)
  raises("gather: axis 1: 'b' against 'c'", "DC0305", x.gather, x, dc.zeros "i32[c=2, 1]", 2)
end

function TestIndexing:test_axes_without_elements()
  local none = dc.zeros "f32[0, 3]"
  lu.assertEquals(none:gather(dc.zeros "i32[0, 3]", 1).shape, { 0, 3 })
  lu.assertEquals(none:scatter(dc.zeros "i32[0, 3]", 1, 1).shape, { 0, 3 })
  lu.assertEquals(dc.ones "f32[2]":scatter_add(dc.zeros "i32[0]", dc.zeros "f32[0]"):totable(), { 1, 1 })
  lu.assertEquals(none:segment_max(dc.zeros "i32[0]", 2, { fill = 1 }):totable(), { { 1, 1, 1 }, { 1, 1, 1 } })
  lu.assertEquals(dc.zeros "f32[2, 0]":segment_mean({ 0, 1 }, 3).shape, { 3, 0 })
  lu.assertEquals(none:compact(dc.zeros "bool[0]").shape, { 0, 3 })
  lu.assertEquals(none:nonzero().shape, { 0, 2 })
  lu.assertEquals(dc.zeros "f32[0]":histogram(2, { range = { 0, 1 } }):totable(), { 0, 0 })
  local inf = math.huge
  local counts, finite = dc.tensor { 1, 2, inf, -inf, 0 / 0, 1.9 }:histogram(4) -- bins of what is finite
  lu.assertEquals({ counts:totable(), finite:totable() }, { { 1, 0, 0, 2 }, { 1, 1.25, 1.5, 1.75, 2 } })
  lu.assertEquals(dc.tensor { inf, 0 / 0 }:histogram(2):totable(), { 0, 0 })
  raises("gather: index 0 outside 0..-1 of axis 1 at position [1, 1]", "DC0701", none.gather, none,
    dc.zeros "i32[1, 3]", 1)
  lu.assertEquals(dc.tensor { 1, 3 }:searchsorted(2):item(), 1)
  lu.assertEquals(dc.full("i32[]", 1):bincount { bins = 2 }:totable(), { 0, 1 })
end

function TestIndexing:test_inside_typed_functions()
  local f = dc.fn("f(x: f32[2, 3], i: i32[2, 2]) -> f32[2, 2], f32[2, 3]", function(x, i)
    return x:gather(i, 2), x:scatter_add(i, dc.ones "f32[2, 2]", 2)
  end)
  local x = dc.iota "f32[2, 3]"
  local y, z = f(x, ints { { 2, 0 }, { 1, 1 } })
  lu.assertEquals({ y:totable(), z:totable() }, { { { 2, 0 }, { 1, 1 } }, { { 1, 1, 3 }, { 0, 3, 2 } } })
  local err = raises("gather: index 3 outside 0..2 of axis 2 at position [2, 1]", "DC0701", f, x,
    ints { { 2, 0 }, { 3, 1 } })
  lu.assertStrContains(err.message, "argument 'i' of f")
  local kept = dc.state("f32[3]", 1)
  local step = dc.fn("step(i: i32[2]) -> ()", function(i) kept:set(kept:scatter(i, 5, 1, { reduce = "max" })) end)
  raises("scatter: index -1 outside 0..2 of axis 1 at position 2", "DC0701", step, ints { 0, -1 })
  lu.assertEquals(kept:totable(), { 1, 1, 1 }) -- the call changed nothing
  step { 0, 0 }
  lu.assertEquals(kept:totable(), { 5, 1, 1 })
end

function TestIndexing:test_sizes_known_at_run_time()
  local f = dc.fn([[f(x: f32[t <= 8, 3], i: i32[t, 2], s: i32[t]) -> f32[t, 2], f32[t, 3], f32[2, 3], f32[t], i32[] ]],
    function(x, i, s)
      local y, n = x[{ {}, 1 }]:compact(s:eq(1))
      return x:gather(i, 2), x:scatter(i, 9, 2, { reduce = "max" }), x:segment_sum(s, 2), y, n
    end)
  for _, t in ipairs { 1, 3, 8 } do
    local x, s = dc.iota(("f32[%d, 3]"):format(t), 1), dc.iota(t) % 2
    local y, z, sums, some, n = f(x, dc.zeros(("i32[%d, 2]"):format(t)) + 1, s)
    lu.assertEquals(y:sum():item(), t * (t - 1.0))
    lu.assertEquals(z[{ {}, 2 }]:eq(9):all():item(), true)
    lu.assertEquals(sums[2][1]:item(), (x[{ {}, 1 }] * s:cast "f32"):sum():item())
    lu.assertEquals({ n:item(), some:sum():item() }, { t // 2, sums[2][1]:item() })
  end
  local g = dc.fn("g(s: f32[n <= 9], v: f32[k <= 4]) -> i32[k], i32[4]", function(s, v)
    return s:searchsorted(v), v:cast "i32":bincount { bins = 4 }
  end)
  local at, counts = g({ 0, 1, 2, 2, 3 }, { 2, 3, 0 })
  lu.assertEquals({ at:totable(), counts:totable() }, { { 2, 4, 0 }, { 1, 0, 1, 1 } })
end

function TestIndexing:test_vmap_and_loops()
  local x, i = dc.iota("f32[4, 2, 3]", 1) + dc.iota("f32[4, 2, 3]", 3), dc.iota "i32[4, 2, 1]"
  local rows = dc.vmap(function(a, k) return a:gather(k, 2), a:scatter(k, 7, 2, { reduce = "max" }) end)
  local f = dc.fn("f(x: f32[4, 2, 3], i: i32[4, 2, 1]) -> f32[4, 2, 1], f32[4, 2, 3]", rows)
  local y, z = f(x, i)
  lu.assertTrue(y:eq(x:gather(i, 3)):all():item())
  lu.assertTrue(z:eq(x:scatter(i, 7, 3, { reduce = "max" })):all():item())
  local sums = dc.fn("sums(k: i32[5, 2], v: f32[5, 2]) -> f32[3]", function(k, v)
    local last = dc.scan(function(c, xs) return c:scatter_add(xs.k, xs.v), nil end, dc.zeros "f32[3]", { k = k, v = v })
    return last
  end)
  lu.assertEquals(sums(dc.iota "i32[5, 2]" * 2, dc.ones "f32[5, 2]"):totable(), { 5, 0, 5 })
end

-- Gradients of gradients, beside central differences.
function TestIndexing:test_second_derivatives()
  local i, step = ints { 0, 1, 1, 0, 1 }, 1e-4
  local weights = dc.tensor({ 1, -2, 3, 0.5, 2 }, "f64")
  local function slope(how, v)
    local y = dc.full("f64[3]", 1.5):scatter(i, v, 1, { reduce = how })
    return (dc.grad((y * y):sum(), v) * weights):sum()
  end
  for _, case in ipairs { { "mul", { 2, 3, -1, 0.5, 4 } }, { "mul", { 2, 0, -1, 0.5, 4 } },
    { "mul", { 2, 0, 0, 0.5, 4 } },
    { "max", { 2, 3, -1, 0.5, 4 } }, { "mean", { 2, 3, -1, 0.5, 4 } } } do
    local v = dc.tensor(case[2], "f64"):watch()
    local got = dc.grad(slope(case[1], v), v):totable()
    for k = 1, 5 do
      local d = dc.one_hot(ints { k - 1 }, 5, "f64")[1] * step
      local at = dc.tensor(case[2], "f64")
      local want = (slope(case[1], (at + d):watch()) - slope(case[1], (at - d):watch())):item() / (2 * step)
      lu.assertAlmostEquals(got[k], want, 1e-5 * math.max(1, math.abs(want)), case[1])
    end
  end
end

function TestIndexing:test_room()
  local f = dc.fn("f(x: f32[4]) -> f32[2], i32[]", function(x) return x:compact(x:gt(0), { bound = 2 }) end)
  local x = dc.tensor { 3, 0, 5, 7 }
  raises("compact: 3 elements are selected, the bound is 2", "DC0701", x.compact, x, x:gt(0), { bound = 2 })
  raises("compact: 3 elements are selected, the bound is 2", "DC0701", f, x)
  local y, n = f { 0, 1, 0, 0 }
  lu.assertEquals({ y:totable(), n:item() }, { { 1, 0 }, 1 })
  y, n = x:compact(x:gt(0), { bound = 2, more = "drop" })
  lu.assertEquals({ y:totable(), n:item() }, { { 3, 5 }, 2 })
  lu.assertEquals(x:compact(x:gt(9), { bound = 0, more = "drop" }).shape, { 0 })
  local flags = dc.tensor({ true, false }, "bool")
  lu.assertEquals(flags:compact(flags):totable()[1], true) -- the rest is false, which 0 is not
  lu.assertEquals((dc.unique(flags)):totable()[1], false)
  lu.assertEquals(flags:compact(flags, { fill = true }):totable(), { true, true })
end

function TestIndexing:test_order()
  local x = dc.tensor({ { 5, 1, 7 }, { 9, 3, 4 } }, "i32")
  lu.assertEquals(x:median(2):totable(), { 5, 4 })
  lu.assertEquals({ x:median().dtype, x:median():item() }, { "f32", 4.5 })
  lu.assertEquals(x:cast "f16":quantile(0.5, { axis = 1, keep = true }):totable(), { { 7, 2, 5.5 } })
  lu.assertEquals(dc.tensor(3):median():item(), 3)
  lu.assertEquals(x:rename { "b", "t" }:median "t":size "b", 2)
  local g = dc.fn("g(v: f32[2 <= n <= 9]) -> f32[], f32[], f32[n], i32[], f32[n]", function(v)
    local values, count = v:unique()
    return v:median(), v:quantile(0.25, { interpolation = "higher" }), values, count, dc.grad(v:median(), v)
  end)
  for _, case in ipairs { { { 4, 1, 3, 1 }, 2, 1, { 1, 3, 4, 0 }, 3 }, { { 2, 8 }, 5, 8, { 2, 8 }, 2 },
    { { 3, 1, 2 }, 2, 2, { 1, 2, 3 }, 3 } } do
    local middle, quarter, values, count, slope = g(case[1])
    lu.assertEquals({ middle:item(), quarter:item(), values:totable(), count:item() }, { table.unpack(case, 2) })
    lu.assertEquals(slope:sum():item(), 1)
  end
  local nan = 0 / 0
  local most, at = dc.tensor({ { nan, 1, nan }, { nan, 1, 2 } }, "f32"):mode()
  lu.assertTrue(most[1]:isnan():item())
  lu.assertEquals({ most[2]:item(), at:totable() }, { 1, { 2, 1 } })
  most, at = dc.tensor({ true, false, true }, "bool"):mode()
  lu.assertEquals({ most:item(), at:item() }, { true, 2 })
  lu.assertEquals(x:rename { "b", "t" }:mode "t":size "b", 2)
  lu.assertEquals(dc.tensor(3):mode { axis = {} }:item(), 3)
  local many = dc.randint("i32[3, 40000]", { high = 1000, seed = 1 })
  local value, where = many:mode(2)
  local counts = dc.stack({ many[1]:bincount { bins = 1000 }, many[2]:bincount { bins = 1000 },
    many[3]:bincount { bins = 1000 } }, 1)
  lu.assertEquals(value:totable(), counts:argmax(2):totable())
  lu.assertEquals(many:gather(where:reshape(3, 1), 2):flatten():totable(), value:totable())
  local h = dc.fn("h(v: f32[2 <= n <= 9]) -> f32[], i32[], f32[n]", function(v)
    local y, k = v:mode()
    return y, k, dc.grad(y, v)
  end)
  for _, case in ipairs { { { 4, 1, 3, 1 }, 1, 3, { 0, 0, 0, 1 } }, { { 2, 8 }, 2, 0, { 1, 0 } } } do
    local y, k, slope = h(case[1])
    lu.assertEquals({ y:item(), k:item(), slope:totable() }, { table.unpack(case, 2) })
  end
  raises("mode: f32[0] has no elements to choose from", "DC0101", dc.mode, dc.zeros "f32[0]")
  raises("mode: x is c64[2]; complex numbers have no order", "DC0202", dc.mode, dc.zeros "c64[2]")
  raises("kthvalue: k is a whole number from 1 to 3, not 4", "DC0101", x.kthvalue, x, 4)
  raises("quantile: q is a number from 0 to 1, or a list of them, not 50", "DC0101", x.quantile, x, 50)
  raises("median: f32[0] has no elements to choose from", "DC0101", dc.median, dc.zeros "f32[0]")
  raises("unique: 5 elements are selected, the bound is 2", "DC0701", dc.unique, dc.iota(5), { bound = 2 })
end

function TestIndexing:test_mistakes()
  local x = dc.zeros "f32[2, 3]"
  raises('scatter: reduce is "set", "add", "mul", "max", "min" or "mean", not \'sum\'', "DC0101", x.scatter, x,
    { { 0 }, { 0 } }, 1, 2, { reduce = "sum" })
  raises("scatter: axis 1: 2 against 3", "DC0301", x.scatter, x, dc.zeros "i32[3, 1]", 1, 2)
  raises("scatter: x has 2 axes, values 1; as many are needed", "DC0301", x.scatter, x, dc.zeros "i32[2, 1]",
    dc.ones "f32[2]", 2)
  raises("index_fill: the value is f32[2], one for all is needed", "DC0301", x.index_fill, x, { 0, 1 },
    dc.ones "f32[2]")
  raises("take_nd: 3 coordinates for f32[2, 3]; 1 to 2 are needed", "DC0101", x.take_nd, x, { { 0 }, { 0 }, { 0 } })
  raises("take_nd: index 3 outside 0..2 of axis 2 at position 1", "DC0701", x.take_nd, x, { { 0 }, { 3 } })
  raises("segment_sum: the integers are i32[3]; they have the sizes of the first axes of f32[2, 3]", "DC0301",
    x.segment_sum, x, { 0, 0, 0 }, 2)
  raises("segment_sum: index 2 outside 0..1 of axis 1 at position 2", "DC0701", x.segment_sum, x, { 0, 2 }, 2)
  raises("compact: mask is f32[2, 3], bool is needed", "DC0202", x.compact, x, x)
  raises("bincount: bins is a positive integer, not nil", "DC0101", dc.bincount, ints { 1 }, {})
  raises("histogram: range is { low, high }, two numbers, the lower one first, not { 1, 0 }", "DC0101", x.histogram, x,
    2, { range = { 1, 0 } })
  raises("searchsorted: dtypes differ: f32[2] and i32[1]", "DC0202", dc.searchsorted, dc.ones "f32[2]", ints { 1 })
  raises("interp: points are f32[2], values f32[3]; one axis of the same size is needed", "DC0301", x.interp, x,
    { 0, 1 }, { 0, 1, 2 })
end
