-- Rows put into a large state: the state is changed where it is, and only the rows are stored.
local lu = require "luaunit"
local dc = require "deepc"
local close = require "tests.lua.check".close

local on_eval = (os.getenv "DEEPC_DEVICE" or "cpu") == "eval"

TestCacheRow = {}

-- Bytes that the scatters of f touch in a call, and how many there are.
local function scattered(f)
  local bytes, n = 0, 0
  for _, k in ipairs(f:kernels()) do
    if k.name:sub(1, 1) == "S" then
      bytes, n = bytes + k.bytes * k.launches, n + k.launches
    end
  end
  return bytes, n
end

local function check(f, want_bytes, want_launches)
  if on_eval then
    return
  end
  local info = f:info()[1]
  lu.assertEquals({ info.donated, info.denied, info.copies }, { 1, 0, 0 })
  lu.assertEquals({ scattered(f) }, { want_bytes, want_launches })
end

-- A key is put at a position that is data, and the same call reads all keys, new and old.
function TestCacheRow:test_attention_over_a_cache()
  local keys = dc.state "f32[2, 64, 8]"
  local f = dc.fn("step(pos: i32[1], k: f32[2, 1, 8], q: f32[2, 8]) -> f32[2, 64], f32[]", function(pos, k, q)
    local before = keys:sum()
    keys:set(keys:put(pos, k, 2))
    return (keys * q:reshape(2, 1, 8)):sum(3):softmax(2), before
  end)
  local rows, total = {}, 0
  for i = 0, 63 do
    local k, q = dc.rand "f32[2, 1, 8]", dc.rand "f32[2, 8]"
    local scores, before = f(dc.tensor({ (i * 5) % 64 }, "i32[1]"), k, q)
    lu.assertAlmostEquals(before:item(), total, 1e-3)
    rows[(i * 5) % 64 + 1] = k
    total = total + k:sum():item()
    if i == 63 then
      local want = (dc.concat(rows, 2) * q:reshape(2, 1, 8)):sum(3):softmax(2)
      lu.assertTrue((scores - want):abs():max():item() < 1e-5)
    end
  end
  lu.assertEquals(keys:totable(), dc.concat(rows, 2):totable())
  check(f, 2 * 2 * 8 * 4, 1)
end

-- Several puts, one behind the other, with readers of what was there between.
function TestCacheRow:test_puts_that_follow_one_another()
  local keys = dc.state "f32[64, 8]"
  local f = dc.fn("step(pos: i32[2], k: f32[2, 8]) -> f32[8], f32[8]", function(pos, k)
    local one = keys:put(pos, k)
    local sum = one:sum(1)
    local two = one:put(pos + 2, k * 2):put(pos + 4, k * 3)
    keys:set(two)
    return sum, two:sum(1)
  end)
  local k = dc.ones "f32[2, 8]"
  local one, two = f(dc.tensor({ 1, 8 }, "i32[2]"), k)
  lu.assertEquals(one:totable(), (k[1] * 2):totable())
  lu.assertEquals(two:totable(), (k[1] * 12):totable())
  one, two = f(dc.tensor({ 3, 10 }, "i32[2]"), k)
  lu.assertEquals(one:totable(), (k[1] * 10):totable())
  lu.assertEquals(two:totable(), (k[1] * 14):totable())
  check(f, 3 * 2 * 2 * 8 * 4, 3)
end

-- What is computed here and put into is changed where it is, too, unless it is wanted as it was.
function TestCacheRow:test_temporaries()
  local function make(keep)
    return dc.fn("f(pos: i32[2], k: f32[2, 8]) -> f32[64, 8], f32[64, 8]", function(pos, k)
      local x = (k:sum(1):reshape(1, 8):expand(64, 8)):tanh() * 0
      local y = x:put(pos, k):put(pos + 1, k * 2)
      return y, keep and x * 1 or y * 2
    end)
  end
  for _, keep in ipairs { true, false } do
    local y, x = make(keep)(dc.tensor({ 1, 8 }, "i32[2]"), dc.ones "f32[2, 8]")
    lu.assertEquals(y:sum():item(), 48)
    lu.assertEquals(x:sum():item(), keep and 0 or 96)
  end
end

-- An update that is made of other rows of the state needs them as they were.
function TestCacheRow:test_rows_of_the_state_itself()
  local keys = dc.state "f32[16, 8]"
  keys:set(dc.rand "f32[16, 8]")
  local f = dc.fn("f(to: i32[2], from: i32[2])", function(to, from) keys:set(keys:put(to, keys:take(from, 1))) end)
  local before = keys:totable()
  f(dc.tensor({ 0, 1 }, "i32[2]"), dc.tensor({ 1, 0 }, "i32[2]"))
  before[1], before[2] = before[2], before[1]
  lu.assertEquals(keys:totable(), before)
end

-- Parts that are no data: what is stored of f32[6, 10, 8], and the same as outside of a function.
function TestCacheRow:test_constant_positions()
  local parts = { -- an index, the size of what is put, elements that are stored
    { { 3 }, "10, 8", 80 },
    { { -1, 2 }, "8", 8 },
    { { {}, {}, 7 }, "6, 10", 60 },
    { { {}, 4 }, "6, 8", 48 },
    { { { 2, 5 } }, "4, 10, 8", 320 },
    { { { 2, 6, 2 }, { 1, 10, 3 }, { 3, 4 } }, "3, 4, 2", 24 },
    { { { 5, 1, -1 }, {}, { 8, 2, -3 } }, "5, 10, 3", 150 },
    { { 1, 1, 1 }, "", 1 },
    { { { 1, 3 }, {}, 2 }, "3, 1", 30 }, -- repeated
  }
  for n, p in ipairs(parts) do
    local index, size, stored = p[1], p[2], p[3]
    local state = dc.state "f32[6, 10, 8]"
    state:set(dc.rand "f32[6, 10, 8]")
    local f = dc.fn(("f(v: f32[%s])"):format(size), function(v) state:set(state:put(index, v * 2)) end)
    for _ = 1, 2 do
      local v, held, before = dc.rand(("f32[%s]"):format(size)), state * 1, state:totable()
      f(v)
      lu.assertEquals(state:totable(), dc.tensor(before):put(index, v * 2):totable(), n)
      lu.assertEquals(held:totable(), before, n)
    end
    if not on_eval then
      local info = f:info()[1]
      lu.assertEquals({ info.donated, info.denied, info.copies }, { 1, 0, 0 }, n)
      lu.assertStrContains(f:explain(), "(what changes alone)")
      lu.assertEquals(f:kernels()[1].bytes, 2 * 4 * stored, n)
    end
  end
end

-- Updates that are made of what they change are computed before, and then stored where they belong.
function TestCacheRow:test_updates_made_of_the_state()
  local n = dc.full("i32[]", 3)
  local bodies = {
    function(s) return s:put(n, s:take(n, 1) * 2 + 1) end,
    function(s) return s:put(n + 1, (s:take(n, 1) + s:take(n + 2, 1)) * 0.5) end,
    function(s)
      local p, q = s:take(n, 1), s:take(n + 1, 1)
      return s:put(n, p:minimum(q)):put(n + 1, p:maximum(q))
    end,
    function(s) return s:put({ { 2, 4 } }, s[{ { 1, 3 } }] * 2) end,
    function(s) return s:put(dc.iota(4), s:take(3 - dc.iota(4), 1)) end,
    function(s) return s:put((s:take(n, 1)[1] * 0):cast "i32" + 5, s:take(n, 1)) end,
  }
  for k, body in ipairs(bodies) do
    local s = dc.state("f32[64, 8]", dc.randn("f32[64, 8]", { seed = k }))
    local want = body(s * 1):totable()
    local f = dc.fn("f()", function() s:set(body(s)) end)
    f()
    lu.assertEquals(s:totable(), want, k)
    local loop = dc.fn("f(x: f32[64, 8]) -> f32[64, 8]", function(x)
      return dc.fori(3, function(_, c) return body(c) end, x)
    end)
    lu.assertEquals(loop(s):totable(), body(body(body(s * 1))):totable(), k)
    if not on_eval then
      local info = f:info()[1]
      lu.assertEquals({ info.donated, info.denied, info.copies }, { 1, 0, 0 }, k)
      lu.assertStrContains(f:explain(), "(what changes alone)", k)
    end
  end
end

-- Keys and values of several layers at once: none of them is stored whole for the sake of the others.
function TestCacheRow:test_parts_of_several_states()
  local states = {}
  for i = 1, 4 do
    states[i] = dc.state "f32[64, 8]"
    states[i]:set(dc.rand "f32[64, 8]")
  end
  local f = dc.fn("f(v: f32[3, 8], w: f32[8, 8]) -> f32[]", function(v, w)
    v = v:matmul(w)
    for i, s in ipairs(states) do
      s:set(s:put({ { 1, 3 } }, i < 3 and v or v * i))
    end
    return v:sum()
  end)
  local before, v, w = {}, dc.rand "f32[3, 8]", dc.rand "f32[8, 8]"
  for i, s in ipairs(states) do
    before[i] = s * 1
  end
  lu.assertAlmostEquals(f(v, w):item(), v:matmul(w):sum():item(), 1e-4)
  for i, s in ipairs(states) do
    local want = before[i]:put({ { 1, 3 } }, v:matmul(w) * (i < 3 and 1 or i))
    lu.assertTrue((s - want):abs():max():item() < 1e-5, i)
  end
  if not on_eval then
    lu.assertEquals(select(2, f:explain():gsub("what changes alone", "")), 4)
  end
end

-- As many rows or columns as a call has: those behind them stay.
function TestCacheRow:test_parts_of_sizes_known_at_run_time()
  local cases = { -- the state, what is put, where
    { "12, 4", "t, 4", function(v) return { { 1, #v } } end },
    { "12, 4", "t, 4", function(v) return { { 3, #v + 2 } } end },
    { "4, 12", "4, t", function(v) return { {}, { 4, v:size(2) + 3 } } end },
    { "12, 12", "t, t", function(v) return { { 2, #v + 1 }, { 5, #v + 4 } } end },
    { "3, 16, 2", "3, t, 2", function(v) return { {}, { 1, 2 * v:size(2) - 1, 2 } } end },
    { "3, 12, 2", "t, 2", function(v) return { 2, { 1, #v } } end },
  }
  for n, case in ipairs(cases) do
    local s = dc.state(("f32[%s]"):format(case[1]))
    s:set(dc.rand(("f32[%s]"):format(case[1])))
    local f = dc.fn(("f(v: f32[%s])"):format((case[2]:gsub("t", "1 <= t <= 8", 1))), function(v)
      s:set(s:put(case[3](v), v * 2))
    end)
    for _, t in ipairs { 8, 1, 5, 2, 7 } do
      local v, held = dc.rand(("f32[%s]"):format((case[2]:gsub("t", t)))), s * 1
      local want = held:put(case[3](v), v * 2)
      f(v)
      lu.assertEquals(s:totable(), want:totable(), n)
    end
    if not on_eval then
      local info = f:info()[1]
      lu.assertEquals({ info.donated, info.denied, info.copies }, { 1, 0, 0 }, n)
      lu.assertStrContains(f:explain(), "(what changes alone)")
    end
  end
end

-- What reads the state beside it has the old or the new value; what is made of other elements needs a copy.
function TestCacheRow:test_constant_positions_and_other_readers()
  local state = dc.state "f32[8, 16]"
  state:set(dc.rand "f32[8, 16]")
  local f = dc.fn("f(v: f32[16]) -> f32[16], f32[16], f32[8]", function(v)
    local old = state:sum(1)
    local new = state:put({ 3 }, v):put({ 5 }, v + 1)
    state:set(new)
    return old, new:sum(1), new[{ {}, 2 }]
  end)
  local swap = dc.fn("swap()", function() state:set(state:put({ 2 }, state[3]):put({ 3 }, state[2])) end)
  local own = dc.fn("own()", function() state:set(state:put({ { 2, 5 } }, state[{ { 2, 5 } }] * 2)) end)
  local near = dc.fn("near()", function() state:set(state:put({ { 2, 5 } }, state[{ { 1, 4 } }])) end)
  for _ = 1, 3 do
    local v, x = dc.rand "f32[16]", dc.tensor(state:totable())
    local y = x:put({ 3 }, v):put({ 5 }, v + 1)
    local old, new, column = f(v)
    close(old:totable(), x:sum(1):totable(), 1e-5)
    close(new:totable(), y:sum(1):totable(), 1e-5)
    lu.assertEquals(column:totable(), y[{ {}, 2 }]:totable())
    lu.assertEquals(state:totable(), y:totable())
    swap()
    y = y:put({ 2 }, y[3]):put({ 3 }, y[2])
    lu.assertEquals(state:totable(), y:totable())
    own()
    y = y:put({ { 2, 5 } }, y[{ { 2, 5 } }] * 2)
    lu.assertEquals(state:totable(), y:totable())
    near()
    y = y:put({ { 2, 5 } }, y[{ { 1, 4 } }])
    lu.assertEquals(state:totable(), y:totable())
  end
end
