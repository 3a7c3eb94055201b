-- Random programs over cells, lazy tensors, results and typed functions, beside a model of pure values
-- in Lua tables: a tensor that is held never changes, and a cell has what was set last.
-- DEEPC_SEED gives the seed.
local lu = require "luaunit"
local dc = require "deepc"

local seed = math.tointeger(tonumber(os.getenv "DEEPC_SEED")) or os.time()
local N, MOD = 6, 97 -- elements; all values are whole and below, so that every result is exact

-- ---- the model: lists of N numbers, never changed ----

local function map(f, a, b)
  local out = {}
  for i = 1, N do
    out[i] = f(a[i], b and b[i]) % MOD
  end
  return out
end

local function add(a, b) return map(function(x, y) return x + y end, a, b) end
local function mul(a, b) return map(function(x, y) return x * y end, a, b) end
local function scale(a, k) return map(function(x) return x * k end, a) end

local function put(a, i, v)
  local out = map(function(x) return x end, a)
  out[i] = v
  return out
end

local function reversed(a)
  local out = {}
  for i = 1, N do
    out[i] = a[N + 1 - i]
  end
  return out
end

-- ---- one world: cells, functions, what is held ----

local function new_world(random)
  local w = { held = {}, cells = {}, log = {} }

  local function fresh()
    local v = {}
    for i = 1, N do
      v[i] = random(0, MOD - 1)
    end
    return v
  end

  for i = 1, 3 do
    local v = fresh()
    w.cells[i] = { t = (i == 1 and dc.param or dc.state)(("f32[%d]"):format(N), v), v = v }
  end
  local a, b, c = w.cells[1], w.cells[2], w.cells[3]
  local captured = { v = fresh() }
  captured.t = dc.tensor(captured.v)
  local lazy = { v = scale(captured.v, 3) }
  lazy.t = captured.t * 3 % MOD -- its recipe is pending when it is captured

  local function fn(sig, body)
    local text = sig:gsub("T", ("f32[%d]"):format(N))
    return dc.fn(text, body)
  end

  w.functions = {
    -- Updates in place where it may, and shows what was there before.
    { n = 1, f = fn("f1(x: T) -> T, T", function(x)
        local before = a.t + 0
        a.t:set((a.t * 3 + x) % MOD)
        return before, a.t
      end),
      model = function(x)
        local before = a.v
        a.v = add(scale(a.v, 3), x)
        return before, a.v
      end },
    -- Swaps two cells.
    { n = 0, f = fn("f2() -> T", function()
        local u, v = b.t + 0, c.t + 0
        b.t:set(v)
        c.t:set(u)
        return b.t
      end),
      model = function()
        b.v, c.v = c.v, b.v
        return b.v
      end },
    -- An argument and a capture as results.
    { n = 2, f = fn("f3(x: T, y: T) -> T, T, T", function(x, y) return x, captured.t, x * y % MOD end),
      model = function(x, y) return x, captured.v, mul(x, y) end },
    -- Reads what it set, then sets again.
    { n = 1, f = fn("f4(x: T) -> T", function(x)
        b.t:set((b.t + x) % MOD)
        local between = b.t + 0
        b.t:set((b.t * 2 + lazy.t) % MOD)
        return between
      end),
      model = function(x)
        local between = add(b.v, x)
        b.v = add(scale(between, 2), lazy.v)
        return between
      end },
    -- A typed function inside another, a list and a record.
    { n = 2, f = (function()
        local inner = fn("inner(x: T) -> T", function(x)
          c.t:set((c.t + x) % MOD)
          return c.t
        end)
        local outer = fn("f5(xs: {T}) -> {first: T, last: T}", function(xs)
          return { first = inner(xs[1]), last = inner(xs[2]) }
        end)
        return function(x, y)
          local r = outer { x, y }
          return r.first, r.last
        end
      end)(),
      model = function(x, y)
        c.v = add(c.v, x)
        local first = c.v
        c.v = add(c.v, y)
        return first, c.v
      end },
  }

  -- Values among which operations choose: what is held, and cells.
  function w.pick()
    local i = random(1, #w.held + #w.cells)
    return i <= #w.held and w.held[i] or w.cells[i - #w.held]
  end

  function w.hold(t, v, what)
    w.held[#w.held + 1] = { t = t, v = v, what = what }
    if #w.held > 12 then
      table.remove(w.held, random(1, #w.held))
    end
  end

  function w.check(e, what)
    lu.assertEquals(e.t:totable(), e.v, ("seed %d, %s:\n%s"):format(seed, what, table.concat(w.log, "\n")))
  end

  function w.check_all(what)
    for _, e in ipairs(w.held) do
      w.check(e, what .. ", " .. tostring(e.what))
    end
    for i, e in ipairs(w.cells) do
      w.check(e, what .. ", cell " .. i)
    end
  end

  w.actions = {
    function() -- a new value
      local v = fresh()
      w.hold(dc.tensor(v), v, "a tensor")
      return "tensor"
    end,
    function() -- lazy operations
      local x, y, k = w.pick(), w.pick(), random(2, 5)
      w.hold((x.t + y.t) % MOD, add(x.v, y.v), "a sum")
      w.hold(x.t * y.t % MOD, mul(x.v, y.v), "a product")
      w.hold(y.t * k % MOD, scale(y.v, k), "a multiple")
      return "add, mul, scale"
    end,
    function() -- movement and parts
      local x, i, k = w.pick(), random(1, N), random(0, MOD - 1)
      w.hold(x.t:put(i, k), put(x.v, i, k), "a put")
      w.hold(x.t:reshape(2, N // 2):reshape(N) + 0, x.v, "a reshape")
      w.hold(x.t[{ { N, 1, -1 } }], reversed(x.v), "a reverse")
      return "put, reshape, reverse"
    end,
    function() -- the value of a cell, held through what comes
      local cell = w.cells[random(1, 3)]
      w.hold(random(1, 2) == 1 and cell.t + 0 or cell.t:clone(), cell.v, "of a cell")
      return "read a cell"
    end,
    function() -- a cell set from outside
      local cell, x = w.cells[random(1, 3)], w.pick()
      cell.t:set(x.t)
      cell.v = x.v
      return "set a cell"
    end,
    function() -- a call
      local f = w.functions[random(1, #w.functions)]
      local x, y = w.pick(), w.pick()
      local t = table.pack(f.f(table.unpack({ x.t, y.t }, 1, f.n)))
      local v = table.pack(f.model(table.unpack({ x.v, y.v }, 1, f.n)))
      for i = 1, t.n do
        w.hold(t[i], v[i], "a result")
      end
      return "call"
    end,
    function() -- a call that raises changes nothing
      local ok = pcall(w.functions[1].f, dc.zeros "f32[2]")
      lu.assertFalse(ok)
      return "a wrong call"
    end,
    function() -- one held value is read
      w.check(w.pick(), "read")
      return "read"
    end,
    function() -- one is dropped or closed
      if #w.held > 0 then
        local e = table.remove(w.held, random(1, #w.held))
        local shared = false
        for _, other in ipairs(w.held) do
          shared = shared or rawequal(other.t, e.t)
        end
        if random(1, 2) == 1 and not shared then
          e.t:close()
        end
      end
      return "drop"
    end,
    function()
      collectgarbage "step"
      return "collect"
    end,
  }
  return w
end

local state = { x = 0 }

local function random(low, high)
  state.x = (state.x * 6364136223846793005 + 1442695040888963407) & math.maxinteger
  return low + (state.x >> 33) % (high - low + 1)
end

local function run(number, steps)
  state.x = seed * 1000003 + number
  local w = new_world(random)
  for step = 1, steps do
    local i = random(1, #w.actions)
    w.log[#w.log + 1] = ("%d.%d: %s"):format(number, step, w.actions[i]())
    if step % 20 == 0 then
      w.check_all("after step " .. step)
    end
  end
  w.check_all "at the end"
end

TestImmutability = {}

function TestImmutability:test_random_programs()
  for number = 1, 25 do
    run(number, 100)
  end
  lu.assertTrue(dc.stats().calls > 0)
  print("seed " .. seed)
end

-- What a state machine of a few actions finds rarely, one by one.

function TestImmutability:test_a_result_through_the_next_call()
  local c = dc.state("f32[3]", { 1, 2, 3 })
  local f = dc.fn("f(x: f32[3]) -> f32[3]", function(x)
    c:set(c + x)
    return c
  end)
  local seen = {}
  for i = 1, 5 do
    seen[i] = f { i, i, i }
  end
  lu.assertEquals(seen[1]:totable(), { 2, 3, 4 })
  lu.assertEquals(seen[4]:totable(), { 11, 12, 13 })
  lu.assertEquals(c:totable(), seen[5]:totable())
end

function TestImmutability:test_a_pending_recipe_through_a_set()
  local c = dc.state("f32[2]", { 1, 2 })
  local twice = c * 2
  c:set { 10, 20 }
  local sum = twice + c
  c:set { 100, 200 }
  lu.assertEquals(twice:totable(), { 2, 4 })
  lu.assertEquals(sum:totable(), { 12, 24 })
end

function TestImmutability:test_a_trace_that_raises_sets_nothing()
  local c = dc.state("f32[2]", { 1, 2 })
  lu.assertFalse(pcall(dc.fn, "f(x: f32[2]) -> f32[2]", function(x)
    c:set(x)
    error "stop"
  end))
  lu.assertEquals(c:totable(), { 1, 2 })
end
