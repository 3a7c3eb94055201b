-- Movement of computed values: views, which nothing computes; parts of them, which share programs.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local spent = require "tests.lua.spent"

local CPU = dc.stats().device:match "^cpu" and os.getenv "DEEPC_LAZY" == "steady"

-- Computed, and nothing else holds it.
local function computed(type)
  local n, shape = 1, {}
  for d in type:match("%[(.*)%]"):gmatch "%d+" do
    n, shape[#shape + 1] = n * d, math.tointeger(d)
  end
  local x = dc.iota("f32[" .. n .. "]"):clone():reshape(table.unpack(shape))
  x:sum():item()
  return x
end

TestParts = {}

local function check_parts(make, most, n)
  for _, of in ipairs { function(p) return p:sum() end, function(p) return (p * 2):max() end } do
    local x = make()
    local first = of(x[1]):item()
    local stats = spent(function()
      for i = 1, n or 300 do
        of(x[i]):item()
      end
    end)
    if not CPU then
      lu.assertAlmostEquals(of(x[1]):item(), first, math.abs(first) * 1e-6)
    else
      lu.assertEquals(of(x[1]):item(), first)
      lu.assertTrue(stats.compiles <= most, stats.compiles .. " compilations")
    end
  end
end

-- What is put somewhere, beside what a typed function makes of it, where positions are part of the program.
function TestParts:test_puts_share_programs()
  local x, row = computed "f32[40, 6, 8]", computed "f32[6, 8]"
  local forms = {
    function(i) return { i }, row end,
    function(i) return { i, i % 6 + 1 }, row[1] end,
    function(i) return { i, -(i % 6) - 1, i % 8 + 1 }, i end,
    function(i) return { {}, i % 6 + 1 }, row[{ {}, { 1, 8 } }][1] end,
    function(i) return { {}, {}, { i % 4 + 1, i % 4 + 4, 3 } }, row[{ {}, { 1, 2 } }] end,
    function(i) return { { i + 3, i, -1 } }, row[1] end,
    function(i) return { i % 40 + 1, { i % 3 + 2, i % 3 + 4 } }, dc.ones "f32[3, 1]" end,
    function(i) return { { i, i + 1 }, { 1, 2 } }, 7 end, -- two ranges: a program for each place
  }
  for number, form in ipairs(forms) do
    local stats = spent(function()
      local seen = x
      for i = 1, 36 do
        local at, v = form(i)
        seen = seen:put(at, v)
        seen:sum():item()
      end
    end)
    lu.assertTrue(number == #forms or stats.lazy_programs <= 10, number .. ": " .. stats.lazy_programs .. " programs")
    for _, i in ipairs { 1, 2, 17, 36 } do
      local at, v = form(i)
      local f = dc.fn("f(a: f32[40, 6, 8]) -> f32[40, 6, 8]", function(a) return a:put(at, v) end)
      lu.assertEquals(x:put(at, v):totable(), f(x):totable(), number)
    end
  end
end

function TestParts:test_gradients_of_puts()
  local x, v = computed("f32[5, 4]"):watch(), computed("f32[4]"):watch()
  for _, i in ipairs { 1, 3, 5 } do
    local made = (x:put({ i }, v) * dc.iota("f32[20]"):reshape(5, 4)):sum()
    local dx, dv = table.unpack(dc.grad(made, { x, v }))
    local want = {}
    for k = 0, 19 do
      want[k + 1] = k // 4 == i - 1 and 0 or k
    end
    lu.assertEquals(dx:reshape(20):totable(), want)
    lu.assertEquals(dv:totable(), { 4 * i - 4, 4 * i - 3, 4 * i - 2, 4 * i - 1 })
  end
end

function TestParts:test_share_programs()
  local x, y = computed "f32[300, 784]", computed "f32[100, 200, 300]"
  check_parts(function() return x:reshape(300, 28, 28) end, 0)
  check_parts(function() return x[{ { -1, 1, -1 } }] end, 0)
  check_parts(function() return x:transpose() end, 0)
  check_parts(function() return x[{ { 7 } }]:expand(300, 784) end, 0)
  check_parts(function() return x:transpose():reshape(300, 784) end, 1) -- its copy
  -- parts that are worth a program: dense ones in place, others as windows
  check_parts(function() return y:reshape(300, 20000) end, 1)
  check_parts(function() return y:transpose(1, 3) end, 2)
  check_parts(function() return y:permute(2, 3, 1) end, 2, 200)
  check_parts(function() return y[{ {}, {}, { 299, 1, -2 } }]:permute(3, 2, 1) end, 2, 150)
end

-- Wherever a part begins: few programs, for those at multiples of 64 bytes and for the others.
function TestParts:test_share_programs_wherever_they_begin()
  local x, m = computed "f32[40001]", computed "f32[40, 1001]"
  local function check(of, want, most)
    of(1):sum():item()
    local stats = spent(function()
      for i = 1, 40 do
        lu.assertEquals(of(i):sum():item(), want(i))
      end
    end)
    if CPU then
      lu.assertTrue(stats.compiles <= most, stats.compiles .. " compilations")
    end
  end
  -- the elements are their own positions: a difference is how far the parts are from each other
  check(function(i) return x[{ { i + 1, 20000 + i } }] - x[{ { 1, 20000 } }] end, function(i) return i * 20000 end, 3)
  check(function(i) return x[{ { i + 1, 20000 + i } }] - x[{ { i, 19999 + i } }] end, function() return 20000 end, 3)
  check(function(i) return m[{ {}, { i, i + 499 } }] - m[{ {}, { 1, 500 } }] end,
    function(i) return (i - 1) * 20000 end, 3)
  check(function(i) return (m[{ {}, { i, i + 900, 2 } }] - i):max() end, function() return 39 * 1001 + 899 end, 3)
  check(function(i) return x[{ { 20000 + i, i, -1 } }] - x[{ { 20000 + 2 * i, 2 * i, -1 } }] end,
    function(i) return -i * 20001 end, 3)
end

function TestParts:test_of_a_pending_value_compute_it_once()
  local x = computed "f32[300, 784]"
  local net = nn.Sequential { nn.Linear(784, 8), nn.ReLU(), nn.Linear(8, 784) }
  net(x):sum():item() -- draws the parameters
  for _, move in ipairs {
    function(o) return o:reshape(300, 28, 28) end,
    function(o) return o:transpose() end,
    function(o) return o[{ { -1, 1, -1 } }] end,
    function(o) return o end,
    function(o) return o:reshape(4, 75 * 784) end,
  } do
    local stats = spent(function()
      local o = move(net(x))
      for i = 1, #o do
        o[i]:sum():item()
      end
    end)
    if CPU then
      lu.assertTrue(stats.compiles <= 2, stats.compiles .. " compilations")
      lu.assertTrue(stats.launches <= 310)
    end
  end
end

function TestParts:test_of_a_typed_result()
  local x = computed "f32[300, 784]"
  local net = nn.Linear(784, 784)
  local f = dc.fn("f(a: f32[n, 784]) -> f32[n, 784]", function(a) return net(a) end)
  f(x)
  local stats = spent(function()
    local o = f(x):reshape(300, 28, 28)
    for i = 1, 300 do
      o[i]:sum():item()
    end
  end)
  if CPU then
    lu.assertEquals(stats.calls, 1)
    lu.assertEquals(stats.compiles, 0)
  end
end

function TestParts:test_single_elements_run_nothing()
  local x = computed "f32[3, 784]"
  local v, sum = x:reshape(3, 28, 28):transpose(), 0
  local stats = spent(function()
    for i = 1, 3 do
      for j = 1, 28 do
        for k = 1, 28 do
          sum = sum + v[i][j][k]:item()
          lu.assertEquals(tostring(v[{ i, k, j }]), tostring(((i - 1) * 784 + (j - 1) * 28 + k - 1) + 0.0))
        end
      end
    end
  end)
  lu.assertEquals(sum, 2351 * 2352 / 2)
  lu.assertEquals({ stats.realized, stats.launches, stats.interpreted }, { 0, 0, 0 })
end

function TestParts:test_a_whole_that_movement_hides_is_computed_twice_at_most()
  local x = computed "f32[8, 8]"
  local y = (x:matmul(x)):reshape(4, 16)
  local stats = spent(function()
    for _, op in ipairs { "sum", "max", "min", "mean" } do
      y[op](y):item()
    end
  end)
  lu.assertEquals(stats.realized, 4)
  lu.assertEquals(spent(function() y:totable() end).realized, 0)
end

TestViews = {}

function TestViews:test_are_read_where_they_stand()
  local x = computed "f32[30, 40]"
  for _, v in ipairs { x:transpose(), x:reshape(40, 30), x[{ { -1, 1, -2 } }], x[{ {}, { 2, 9 } }],
    x[{ 3 }]:expand(5, 40), x:reshape(2, 15, 40):permute(3, 1, 2) } do
    local stats = spent(function()
      v:totable()
      tostring(v)
    end)
    local device = dc.stats().device
    if not (device:match "^opencl" or device:match "^cuda") then -- whose memory is far
      lu.assertEquals({ stats.realized, stats.launches, stats.interpreted, stats.bytes_live }, { 0, 0, 0, 0 })
    end
  end
end

function TestViews:test_dense_aligned_parts_are_no_copies()
  local x = computed "f32[64, 1024]"
  local f = dc.fn("f(a: f32[32, 1024]) -> f32[]", function(a) return a:sum() end)
  f(x[{ { 1, 32 } }])
  local stats = spent(function()
    for i = 1, 33 do
      local s = (2 * (i - 1) + 31) / 2 * 1024 * 32 * 1024 + 1023 * 512 * 32
      lu.assertAlmostEquals(f(x[{ { i, i + 31 } }]):item(), s, s * 1e-6)
    end
  end)
  lu.assertEquals(stats.allocs, 0)
  lu.assertEquals(stats.realized, 0)
end

function TestViews:test_do_not_change()
  local p = dc.param("f32[4, 300]", computed "f32[4, 300]")
  local row, column, back = p[2], p:transpose()[300], p[{ { -1, 1, -1 } }]
  lu.assertEquals(row[300]:item(), 599)
  p:set(p * 0)
  lu.assertEquals(row[300]:item(), 599)
  lu.assertEquals(column:totable(), { 299, 599, 899, 1199 })
  lu.assertEquals(back[1][1]:item(), 900)
  lu.assertEquals(p:sum():item(), 0)
  local f = dc.fn("f(a: f32[]) -> f32[64, 64]", function(a) return dc.ones "f32[64, 64]" * a end)
  local kept = {}
  for i = 1, 5 do
    local o = f(i)
    kept[i] = { o[3], o[{ { 17, 48 } }], o:transpose()[{ {}, { 1, 2 } }], o[1][1] }
    for _, v in ipairs(kept[i]) do
      if i % 2 == 0 then
        v:totable()
      end
    end
  end
  for i, views in ipairs(kept) do
    for _, v in ipairs(views) do
      lu.assertEquals(v:min():item(), i)
      lu.assertEquals((v * 1):max():item(), i)
    end
  end
  local s = dc.state("f32[64]", computed "f32[64]")
  local head = s[{ { 1, 32 } }]
  head:totable()
  s:set(s[{ { -1, 1, -1 } }]) -- a view of itself
  lu.assertEquals({ s[1]:item(), s[64]:item(), head[2]:item() }, { 63, 0, 1 })
end

function TestViews:test_crumbs_do_not_keep_the_whole()
  collectgarbage()
  local before = dc.stats().bytes_live
  local rows = {}
  for i = 1, 20 do
    local x = computed "f32[1000, 100]"
    rows[i] = x[i]
    lu.assertEquals(rows[i][1]:item() + rows[i]:sum():item(), (i - 1) * 100 + 9900 * (i - 1) + 4950 + (i - 1) * 100)
    rows[i]:totable()
  end
  collectgarbage()
  collectgarbage()
  lu.assertTrue(dc.stats().bytes_live - before < 1000 * 100 * 4)
  lu.assertEquals(rows[20][1]:item(), 1900)
end

function TestViews:test_a_loop_of_movement_ends()
  local x = computed "f32[6, 4]"
  local y = x
  for _ = 1, 1000 do
    y = y:transpose():reshape(6, 4):transpose():transpose()
  end
  lu.assertEquals(y:sum():item(), 276)
  local z = x
  for _ = 1, 1000 do
    z = z:transpose()[{ { -1, 1, -1 } }]:transpose()
  end
  lu.assertEquals(z:totable(), x:totable())
end

function TestViews:test_gradients_go_through()
  local x = computed "f32[4, 6]"
  local y = x:transpose():reshape(4, 6)[2]
  lu.assertEquals(dc.grad((y * y):sum(), x):sum():item(), 2 * y:sum():item())
  local p = dc.param("f32[4, 6]", x)
  local row = p[3]
  lu.assertEquals(row:totable(), { 12, 13, 14, 15, 16, 17 })
  lu.assertEquals(dc.grad((row * row):sum(), p)[3]:totable(), { 24, 26, 28, 30, 32, 34 })
  local g = dc.grad(p:reshape(24)[{ { 5, 24, 7 } }]:square():sum(), p)
  lu.assertEquals(g:reshape(24)[5]:item(), 8)
end

function TestViews:test_files_and_cells_take_them()
  local x = computed "f32[8, 64]"
  local path = os.tmpname()
  dc.save(path, { a = x[3], b = x[{ { 3, 5 } }], c = x:transpose(), d = x[{ {}, { 1, 64, 9 } }] })
  local got = dc.load(path)
  os.remove(path)
  lu.assertEquals(got.a:totable(), x[3]:totable())
  lu.assertEquals(got.b:totable(), { x[3]:totable(), x[4]:totable(), x[5]:totable() })
  lu.assertEquals(got.c[64]:totable(), x[{ {}, 64 }]:totable())
  lu.assertEquals(got.d[8]:totable(), { 448, 457, 466, 475, 484, 493, 502, 511 })
  local p = dc.param("f32[64]", x[2])
  p:set(x[5])
  lu.assertEquals(p:totable(), x[5]:totable())
end

-- Random movement against the same of a table of positions.
TestRandomViews = {}

local function count(shape)
  local n = 1
  for _, d in ipairs(shape) do
    n = n * d
  end
  return n
end

-- The model's elements at where(index), index counted from 0 in the new shape.
local function moved(m, shape, where)
  local n, out, index = count(shape), {}, {}
  for i = 0, n - 1 do
    local rest = i
    for k = #shape, 1, -1 do
      index[k] = rest % shape[k]
      rest = rest // shape[k]
    end
    local from = where(index)
    local at = 0
    for k = 1, #m.shape do
      at = at * m.shape[k] + from[k]
    end
    out[i + 1] = m[at + 1]
  end
  out.shape = shape
  return out
end

local function copy(t) return table.move(t, 1, #t, 1, {}) end

local MOVES = {
  function(v, m) -- another order of the axes
    local perm, shape = {}, {}
    for k = 1, #m.shape do
      table.insert(perm, math.random(k), k)
    end
    for k, from in ipairs(perm) do
      shape[k] = m.shape[from]
    end
    return v:permute(table.unpack(perm)), moved(m, shape, function(i)
      local from = {}
      for k, axis in ipairs(perm) do
        from[axis] = i[k]
      end
      return from
    end)
  end,
  function(v, m) -- a range with a step along each axis
    local ranges, shape, first, step = {}, {}, {}, {}
    for k, d in ipairs(m.shape) do
      local a, b = math.random(d), math.random(d)
      if math.random(2) == 1 then
        a, b = math.random() < 0.5 and 1 or math.random(math.min(2, d)), d
      end
      step[k] = math.random(4) == 1 and math.random(3) or 1
      step[k] = (a > b or (a == b and math.random(2) == 1)) and -step[k] or step[k]
      ranges[k], first[k], shape[k] = { a, b, step[k] }, a - 1, math.abs(b - a) // math.abs(step[k]) + 1
    end
    return v[ranges], moved(m, shape, function(i)
      local from = {}
      for k = 1, #shape do
        from[k] = first[k] + i[k] * step[k]
      end
      return from
    end)
  end,
  function(v, m) -- a position along one axis
    local axis = math.random(#m.shape)
    local at, shape, index = math.random(m.shape[axis]), copy(m.shape), {}
    table.remove(shape, axis)
    for k = 1, #m.shape do
      index[k] = k == axis and at or {}
    end
    return v[index], moved(m, shape, function(i)
      local from = copy(i)
      from[#shape + 1] = nil
      table.insert(from, axis, at - 1)
      return from
    end)
  end,
  function(v, m) -- two axes as one, or one as two
    local shape = copy(m.shape)
    local axis = math.random(#shape)
    if math.random(2) == 1 and axis < #shape then
      shape[axis] = shape[axis] * table.remove(shape, axis + 1)
    else
      local d = shape[axis]
      local f = d % 2 == 0 and 2 or d % 3 == 0 and 3 or 1
      shape[axis] = d // f
      table.insert(shape, axis + math.random(0, 1), f)
      if shape[axis] == f and shape[axis + 1] ~= d // f then
        return v, m
      end
    end
    if #shape > 6 then
      return v, m
    end
    local out = copy(m)
    out.shape = shape
    return v:reshape(table.unpack(shape)), out
  end,
  function(v, m) -- a new axis that repeats
    if count(m.shape) > 20000 or #m.shape > 4 then
      return v, m
    end
    local shape, first = copy(m.shape), copy(m.shape)
    local axis, n = math.random(#shape + 1), math.random(3)
    table.insert(shape, axis, n)
    table.insert(first, axis, 1)
    return v:reshape(table.unpack(first)):expand(table.unpack(shape)), moved(m, shape, function(i)
      local from = copy(i)
      from[#shape + 1] = nil
      table.remove(from, axis)
      return from
    end)
  end,
}

local function check_chain(dtype, shape, tries)
  local n = count(shape)
  local limit = dtype == "u8" and 256 or dtype == "f16" and 2048 or n
  local base = (dc.iota("i32[" .. n .. "]") % limit):cast(dtype):clone():reshape(table.unpack(shape))
  local model = { shape = shape }
  for i = 1, n do
    model[i] = (i - 1) % limit
  end
  for _ = 1, tries do
    local v, m = base, model
    for _ = 1, math.random(6) do
      if #m.shape > 0 then
        v, m = MOVES[math.random(#MOVES)](v, m)
      end
    end
    lu.assertEquals(v.shape, m.shape)
    if #m.shape == 0 then
      lu.assertEquals(v:item(), m[1])
    else
      local flat = math.random(2) == 1 and v:reshape(-1) or v:clone():reshape(-1)
      local twice = (v:cast "f64" + v:cast "f64"):reshape(-1):totable()
      lu.assertEquals(flat:totable(), copy(m))
      for i = 1, #m do
        if twice[i] ~= 2 * m[i] then
          lu.fail(("element %d of %s: %s"):format(i, tostring(v), twice[i]))
        end
      end
    end
  end
end

function TestRandomViews:test_small()
  math.randomseed(11)
  for _, dtype in ipairs { "f32", "u8", "i64", "f16" } do
    check_chain(dtype, { 6, 4, 5 }, 60)
    check_chain(dtype, { 12, 3, 2, 4 }, 60)
  end
end

function TestRandomViews:test_large_ones_as_windows()
  math.randomseed(12)
  check_chain("f32", { 30, 36, 50 }, 12)
  check_chain("u8", { 64, 20, 42 }, 8)
  check_chain("f64", { 54000 }, 8)
end
