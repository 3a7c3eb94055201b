-- sort, argsort and top_k: values, ties, NaN, axes, bounded axes, gradients, all dtypes.
local lu = require "luaunit"
local dc = require "deepc"

local inf, nan = math.huge, 0 / 0

TestSort = {}

-- The order in plain Lua: NaN behind everything, equal elements as they stand.
local function positions(list, descending)
  local at = {}
  for i = 1, #list do
    at[i] = i
  end
  local function before(a, b)
    local x, y = list[a], list[b]
    if x ~= x or y ~= y then
      if (x ~= x) ~= (y ~= y) then
        return (y ~= y) ~= descending
      end
    elseif x ~= y then
      return (x < y) ~= descending
    end
    return a < b
  end
  table.sort(at, before)
  for i = 1, #at do
    at[i] = at[i] - 1
  end
  return at
end

local function check(x, descending)
  local list = x:totable()
  local want = positions(list, descending)
  lu.assertEquals(x:argsort { descending = descending }:totable(), want)
  local sorted, k = x:sort { descending = descending }:totable(), math.max(1, #list // 5)
  for i = 1, #list do
    local v = list[want[i] + 1]
    lu.assertTrue(sorted[i] == v and (v ~= 0 or 1 / sorted[i] == 1 / v) or v ~= v and sorted[i] ~= sorted[i], i)
  end
  for _, n in ipairs { k, math.min(k, 9), #list } do -- many, few, all
    local values, at = x:top_k(n, { largest = descending })
    lu.assertEquals(at:totable(), { table.unpack(want, 1, n) })
    for i, v in ipairs(values:totable()) do
      lu.assertTrue(v == sorted[i] or v ~= v and sorted[i] ~= sorted[i])
    end
  end
end

function TestSort.test_order_of_every_dtype()
  for i, t in ipairs { "bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64" } do
    for _, n in ipairs { 1, 2, 13, 300 } do
      local x = dc.randint(("i64[%d]"):format(n), { low = t:match "^i" and -50 or 0, high = t == "bool" and 2 or 50,
        seed = i }):cast(t)
      if t == "bool" then
        lu.assertEquals(x:sort():cast("u8"):totable(), x:cast("u8"):sort():totable())
      else
        check(x, false)
        check(x, true)
      end
    end
  end
  for i, t in ipairs { "f16", "bf16", "f32", "f64" } do
    for _, n in ipairs { 1, 11, 12, 13, 25, 255, 257, 1500 } do
      local x = (dc.randn(("f32[%d]"):format(n), { seed = i }) * 4):round():cast(t)
      check(x, false)
      check(x, true)
    end
    check(dc.tensor({ nan, 1, -inf, 0.0, -0.0, inf, nan, -1, -0.0, 0.0 }, t), false)
    check(dc.tensor({ nan, 1, -inf, 0.0, -0.0, inf, nan, -1, -0.0, 0.0 }, t), true)
  end
end

function TestSort.test_extremes_of_integers()
  lu.assertEquals(dc.tensor({ math.maxinteger, math.mininteger, 0, -1 }, "i64"):sort():totable(),
    { math.mininteger, -1, 0, math.maxinteger })
  lu.assertEquals(dc.tensor({ -2147483648, 2147483647, 0 }, "i32"):argsort { descending = true }:totable(), { 1, 2, 0 })
end

function TestSort.test_axes_and_names()
  local x = dc.tensor({ { 3, 1, 2 }, { 0, 5, 4 } }, "f32[row=2, column=3]")
  lu.assertEquals(x:sort "row":totable(), { { 0, 1, 2 }, { 3, 5, 4 } })
  lu.assertEquals(x:sort(-2):totable(), x:sort(1):totable())
  lu.assertEquals(x:argsort { axis = 1, descending = true }:totable(), { { 0, 1, 1 }, { 1, 0, 0 } })
  local values, at = x:top_k(1, 1)
  lu.assertEquals({ values:totable(), at:totable() }, { { { 3, 5, 4 } }, { { 0, 1, 1 } } })
  lu.assertStrContains(tostring(x:sort()), "f32[row=2, column=3]")
  lu.assertStrContains(tostring(values), "f32[1, column=3]")
  lu.assertEquals(dc.sort(x, 2):totable(), { { 1, 2, 3 }, { 0, 4, 5 } })
end

function TestSort.test_nothing()
  lu.assertEquals(dc.zeros("f32[0]"):sort():totable(), {})
  lu.assertEquals(dc.zeros("f32[3, 0]"):argsort().shape[1], 3)
  lu.assertEquals(dc.zeros("f32[0, 3]"):sort().shape[2], 3)
  local values, at = dc.ones("f32[4]"):top_k(0)
  lu.assertEquals({ #values, #at }, { 0, 0 })
end

function TestSort.test_typed_functions_loops_and_vmap()
  local v = dc.randn("f32[5, 40]", { seed = 1 })
  local f = dc.fn("f(x: f32[5, 40]) -> f32[5, 40], i32[5, 40]", function(x)
    return (x * 2):sort { axis = 2 } + 1, x:argsort(2)
  end)
  local y, at = f(v)
  lu.assertEquals(y:totable(), (v:sort() * 2 + 1):totable())
  lu.assertEquals(at:totable(), v:argsort():totable())
  local rows = dc.fn("f(x: f32[5, 40]) -> f32[5, 40]", function(x)
    return dc.map(function(row) return row:sort() end, x)
  end)
  lu.assertEquals(rows(v):totable(), v:sort():totable())
  lu.assertEquals(dc.vmap(function(row) return row:sort { descending = true } end)(v):totable(),
    v:sort { descending = true }:totable())
end

function TestSort.test_bounded_axis()
  local f = dc.fn("f(x: f32[0 <= t <= 9, 2]) -> f32[t, 2], i32[t, 2], f32[t, 2]", function(x)
    return x:sort(1), x:argsort(1), x:sort { axis = 1, descending = true }
  end)
  for _, n in ipairs { 9, 4, 1, 0 } do
    local x = dc.randn(("f32[%d, 2]"):format(n), { seed = n })
    local a, b, c = f(x)
    lu.assertEquals({ a:totable(), b:totable(), c:totable() },
      { x:sort(1):totable(), x:argsort(1):totable(), x:sort { axis = 1, descending = true }:totable() })
  end
end

function TestSort.test_gradients()
  local x, w = dc.randn("f64[3, 30]", { seed = 3 }):watch(), dc.randn("f64[3, 30]", { seed = 4 })
  local at = x:argsort():totable()
  local got, want = dc.grad((x:sort() * w):sum(), x):totable(), {}
  for r, row in ipairs(at) do
    want[r] = {}
    for k, i in ipairs(row) do
      want[r][i + 1] = w:totable()[r][k]
    end
  end
  lu.assertEquals(got, want)
  local values = x:top_k(2, { axis = 2 })
  lu.assertEquals(dc.grad(values:sum(), x):sum(2):totable(), { 2, 2, 2 })
  lu.assertEquals(dc.grad((dc.grad((x:sort() ^ 2):sum(), x) * w):sum(), x):totable(), (w * 2):totable())
end

local function refused(what, f)
  lu.assertErrorMsgContains(what, f)
end

function TestSort.test_refusals()
  local x = dc.ones "f32[2, 3]"
  refused("a tensor without axes has no order", function() return dc.tensor(1):sort() end)
  refused("axis 3 of f32[2, 3]", function() return x:sort(3) end)
  refused("top_k: 4 of the 3 elements of axis 2", function() return x:top_k(4) end)
  refused("top_k: -1 of the 3", function() return x:top_k(-1) end)
  refused("descending must be true or false, not the number 1", function() return x:sort { descending = 1 } end)
  refused("'reverse'", function() return x:sort { reverse = true } end)
end
