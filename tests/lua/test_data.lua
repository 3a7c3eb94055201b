-- Files to tensors, and batches.
local lu = require "luaunit"
local dc = require "deepc"
local data = require "deepc.data"
local check = require "tests.lua.check"

local fails = check.fails

local function write(path, bytes)
  local f = assert(io.open(path, "wb"))
  f:write(bytes)
  assert(f:close())
end

TestFiles = {}

function TestFiles:setUp()
  self.path = os.tmpname()
end

function TestFiles:tearDown()
  os.remove(self.path)
end

function TestFiles:test_idx()
  write(self.path, string.pack(">I4I4I4", 0x802, 2, 3) .. "\1\2\3\4\5\255")
  local t = data.idx(self.path)
  lu.assertEquals(t.dtype, "u8")
  lu.assertEquals(t:totable(), { { 1, 2, 3 }, { 4, 5, 255 } })
end

function TestFiles:test_files_that_are_not()
  local err = fails("/nonexistent/x: No such file", data.idx, "/nonexistent/x")
  lu.assertEquals(err.code, "DC0801")
  lu.assertStrMatches(err.at, ".*check.lua:%d+")
  write(self.path, "hello, this is text")
  lu.assertEquals(fails(self.path, data.idx, self.path).code, "DC0802")
  fails("a path is needed, not nil", data.idx)
end

function TestFiles:test_nothing_is_left_of_a_failure()
  write(self.path, string.pack(">I4I4I4", 0x802, 200, 300) .. "\1\2\3")
  collectgarbage()
  collectgarbage()
  local before = dc.stats().bytes_live
  for _ = 1, 100 do
    pcall(data.idx, self.path)
  end
  collectgarbage()
  collectgarbage()
  lu.assertEquals(dc.stats().bytes_live, before)
end

TestBatches = {}

local function numbers(n)
  local x = dc.iota(("i32[%d]"):format(n))
  return data.set((x:reshape(n, 1) * 10):cast "f32", x)
end

local function labels(set, options)
  local list = {}
  for x, y in set:batches(options) do
    local xs, ys = x:totable(), y:totable()
    for i = 1, #ys do
      lu.assertEquals(xs[i], { ys[i] * 10 }) -- rows stay together
      list[#list + 1] = ys[i]
    end
  end
  return list
end

function TestBatches:test_in_order()
  lu.assertEquals(labels(numbers(6), { size = 2 }), { 0, 1, 2, 3, 4, 5 })
  for x, y in numbers(6):batches { size = 3 } do
    lu.assertEquals(x.shape, { 3, 1 })
    lu.assertEquals(y.dtype, "i32")
  end
end

function TestBatches:test_shuffled()
  local set = numbers(100)
  local first = labels(set, { size = 10, shuffle = true, seed = 5 })
  local second = labels(set, { size = 10, shuffle = true, seed = 5 })
  lu.assertNotEquals(first, second) -- another epoch
  lu.assertEquals(labels(numbers(100), { size = 10, shuffle = true, seed = 5 }), first)
  lu.assertEquals(labels(set, { size = 10, shuffle = true, seed = 5, epoch = 1 }), first)
  lu.assertNotEquals(labels(set, { size = 10, shuffle = true, seed = 6, epoch = 1 }), first)
  table.sort(second)
  for i = 1, 100 do
    lu.assertEquals(second[i], i - 1)
  end
end

function TestBatches:test_orders_are_spread_evenly()
  local sum = 0
  for epoch = 1, 400 do
    sum = sum + labels(numbers(5), { size = 5, shuffle = true, seed = 1, epoch = epoch })[1]
  end
  lu.assertAlmostEquals(sum / 400, 2, 0.25)
end

function TestBatches:test_the_last_batch()
  lu.assertEquals(labels(numbers(7), { size = 3, last = "drop" }), { 0, 1, 2, 3, 4, 5 })
  lu.assertEquals(#labels(numbers(7), { size = 3, last = "keep" }), 7)
  local set = numbers(7)
  fails("7 rows are no whole number of batches of 3", set.batches, set, { size = 3 })
  fails('7 rows are less than a batch of 8, and last = "drop" leaves them out', set.batches, set,
    { size = 8, last = "drop" })
  lu.assertEquals(#labels(set, { size = 8, last = "keep" }), 7)
  lu.assertEquals(#labels(numbers(7), { size = 7, last = "drop" }), 7)
  lu.assertEquals(labels(numbers(0), { size = 8, last = "drop" }), {}) -- no rows: nothing is left out
  lu.assertEquals(labels(numbers(0), { size = 8 }), {})
end

function TestBatches:test_on_loan()
  local kept, cloned
  for x in numbers(4):batches { size = 2 } do
    if not kept then
      kept, cloned = x, x:clone()
    end
  end
  fails("a batch is on loan until the next iteration", function() return kept + 1 end)
  fails("x:clone() keeps one", function() return kept.shape end)
  lu.assertEquals(cloned:totable(), { { 0 }, { 10 } })
end

function TestBatches:test_memory_is_used_again()
  local set = numbers(64)
  local function epoch()
    for x in set:batches { size = 8, shuffle = true } do
      lu.assertEquals(#x, 8)
    end
  end
  epoch()
  local before = dc.stats().allocs
  epoch()
  lu.assertEquals(dc.stats().allocs, before)
end

function TestBatches:test_options()
  local set = numbers(4)
  fails("size is a positive integer, not nil", set.batches, set, {})
  fails("unknown option 'sise'", set.batches, set, { sise = 2 })
  fails('last is "drop", "keep" or "pad", not \'half\'', set.batches, set, { size = 2, last = "half" })
  fails("4 rows against 3", data.set, dc.zeros "f32[4]", dc.zeros "i32[3]")
end

-- Takes one batch.
local function leave(set, options)
  for _ in set:batches(options) do
    if #set > 0 then
      break
    end
  end
end

TestPad = {}

function TestPad:test_mask()
  local seen = {}
  for x, y, mask in numbers(7):batches { size = 3, last = "pad" } do
    lu.assertEquals(x.shape, { 3, 1 })
    lu.assertEquals(mask.dtype, "f32")
    seen[#seen + 1] = { y:totable(), mask:totable(), x:flatten():totable() }
  end
  lu.assertEquals(seen, {
    { { 0, 1, 2 }, { 1, 1, 1 }, { 0, 10, 20 } },
    { { 3, 4, 5 }, { 1, 1, 1 }, { 30, 40, 50 } },
    { { 6, 0, 0 }, { 1, 0, 0 }, { 60, 0, 0 } },
  })
end

function TestPad:test_whole_batches_have_a_mask_too()
  local count = 0
  for _, _, mask in numbers(6):batches { size = 3, last = "pad" } do
    lu.assertEquals(mask:totable(), { 1, 1, 1 })
    count = count + 1
  end
  lu.assertEquals(count, 2)
end

function TestPad:test_fewer_rows_than_a_batch()
  for _, y, mask in numbers(2):batches { size = 5, shuffle = true, last = "pad" } do
    lu.assertEquals(mask:totable(), { 1, 1, 0, 0, 0 })
    lu.assertEquals(y:sum():item(), 1)
  end
end

function TestPad:test_no_mask_otherwise()
  for _, _, mask in numbers(6):batches { size = 3, last = "drop" } do
    lu.assertNil(mask)
  end
end

TestPrefetch = {}

-- More than the two stretches that are gathered ahead.
function TestPrefetch:test_every_row_once_in_the_order_of_its_batch()
  for _, options in ipairs {
    { size = 7, last = "keep" }, { size = 7, last = "keep", shuffle = true, seed = 3 },
    { size = 1, shuffle = true }, { size = 64, last = "pad", shuffle = true },
  } do
    local seen = {}
    for x, y, mask in numbers(1000):batches(options) do
      local xs, ys, ms = x:totable(), y:totable(), mask and mask:totable()
      for i = 1, #ys do
        if not ms or ms[i] == 1 then
          lu.assertEquals(xs[i][1], ys[i] * 10)
          seen[#seen + 1] = ys[i]
        end
      end
    end
    lu.assertEquals(#seen, 1000)
    table.sort(seen)
    for i = 1, 1000 do
      lu.assertEquals(seen[i], i - 1)
    end
  end
end

function TestPrefetch:test_lengths()
  lu.assertEquals(#numbers(10):batches { size = 3, last = "drop" }, 3)
  lu.assertEquals(#numbers(10):batches { size = 3, last = "keep" }, 4)
  lu.assertEquals(#numbers(10):batches { size = 3, last = "pad" }, 4)
  lu.assertEquals(#numbers(9):batches { size = 3 }, 3)
end

function TestPrefetch:test_expressions_keep_their_values()
  local kept = {}
  for x in numbers(500):batches { size = 5 } do
    kept[#kept + 1] = x * 1
  end
  for i, x in ipairs(kept) do
    lu.assertEquals(x:totable()[1][1], (i - 1) * 50)
  end
end

-- A set of results of a function that is called again meanwhile.
function TestPrefetch:test_rows_that_are_results()
  local f = dc.fn("f(k: f32[]) -> f32[400, 1], i32[400]", function(k)
    local n = dc.iota "i32[400]"
    return (n:cast "f32" * k):reshape(400, 1), n
  end)
  local set, count = data.set(f(10)), 0
  for x, y in set:batches { size = 4, shuffle = true, seed = 1 } do
    lu.assertEquals(x:totable()[1][1], y:totable()[1] * 10)
    f(count)
    count = count + 1
  end
  lu.assertEquals(count, 100)
end

function TestPrefetch:test_a_loop_allocates_nothing()
  local set = numbers(6400)
  local total = dc.fn("total(x: f32[8, 1], y: i32[8]) -> f32[]", function(x, y)
    return (x:sum() + y:sum():cast "f32")
  end)
  for epoch = 1, 3 do
    local before
    for x, y in set:batches { size = 8, shuffle = true, seed = 1 } do
      local sum <close> = total(x, y) -- luacheck: ignore
      before = before or dc.stats().allocs
    end
    if epoch > 1 then
      lu.assertEquals(dc.stats().allocs, before)
    end
  end
end

-- However it ends, memory is given back.
function TestPrefetch:test_left_early()
  local set = numbers(2000)
  local function bytes()
    collectgarbage()
    collectgarbage()
    return dc.stats().bytes_live
  end
  leave(set, { size = 2000 }) -- computes the rows
  local before = bytes()
  leave(set, { size = 4, shuffle = true })
  lu.assertEquals(bytes(), before)
  pcall(function()
    for _ in set:batches { size = 4 } do
      error "stop"
    end
  end)
  lu.assertEquals(bytes(), before)
  local first = set:batches { size = 4 } -- never begun, never ended
  first()
  first = nil -- luacheck: ignore
  leave(set, { size = 500 })
  lu.assertEquals(bytes(), before)
  local thread = coroutine.wrap(function()
    for x in set:batches { size = 4 } do
      coroutine.yield(x:totable()[1][1])
    end
  end)
  lu.assertEquals({ thread(), thread() }, { 0, 40 })
  thread = nil -- luacheck: ignore
  leave(set, { size = 500 })
  lu.assertEquals(bytes(), before)
end

function TestPrefetch:test_behind_the_end()
  local next_batch = numbers(4):batches { size = 2 }
  lu.assertNotNil(next_batch())
  lu.assertNotNil(next_batch())
  lu.assertNil(next_batch())
  lu.assertNil(next_batch())
end

-- Batches that are asked for once: each `for` is the epoch that asking anew would have given.
function TestPrefetch:test_made_before_the_epochs()
  local options = { size = 4, shuffle = true, seed = 3, last = "keep" }
  local function rows(loop, most, progress)
    local list, n = {}, 0
    for _, y in progress and dc.progress(loop, { show = "off" }) or loop do
      table.move(y:totable(), 1, #y, #list + 1, list)
      n = n + 1
      if n == most then
        break
      end
    end
    return list
  end
  local one, other = numbers(10), numbers(10)
  local loop = one:batches(options)
  lu.assertEquals(one.epoch, 0)
  for epoch, most in ipairs { 9, 2, 9, 1, 9 } do -- some are left early
    lu.assertEquals(#loop, 3)
    lu.assertEquals(rows(loop, most, epoch % 2 == 0), rows(other:batches(options), most))
    lu.assertEquals({ one.epoch, other.epoch }, { epoch, epoch })
  end
  local position = { one:position(), other:position() } -- the set goes on elsewhere, and the batches with it
  lu.assertEquals(position[1], position[2])
  rows(loop, 1)
  position = one:position()
  local again = numbers(10)
  local made_before = again:batches(options)
  again:restore(position)
  lu.assertEquals(#made_before, 2)
  lu.assertEquals(rows(made_before, 9, true), { table.unpack(rows(other:batches(options)), 5) })
  lu.assertEquals(#made_before, 3)
  lu.assertEquals(rows(made_before), rows(other:batches(options)))
  lu.assertEquals(again.epoch, 7)
end

-- Each of two that take turns has its own epochs; one whose epoch is said has that one again.
function TestPrefetch:test_several_made_before()
  local set = numbers(6)
  local a, b = set:batches { size = 3, shuffle = true, seed = 1 }, set:batches { size = 3, shuffle = true, seed = 1 }
  local epochs = {}
  for _ in a do
    epochs[#epochs + 1] = set.epoch
    for _ in b do epochs[#epochs + 1] = set.epoch end
  end
  lu.assertEquals(epochs, { 1, 2, 2, 2, 3, 3 })
  local c, seen = set:batches { size = 6, shuffle = true, seed = 1, epoch = 2 }, {}
  for i = 1, 2 do
    for _, y in c do seen[i] = y:totable() end
  end
  lu.assertEquals(seen[1], seen[2])
  lu.assertEquals(set.epoch, 2)
end

TestPositions = {}

local function take(set, options, most)
  local list = {}
  for _, y in set:batches(options) do
    for _, v in ipairs(y:totable()) do
      list[#list + 1] = v
    end
    most = most and most - 1
    if most == 0 then
      return list, set:position()
    end
  end
  return list, set:position()
end

function TestPositions:test_goes_on_where_it_was()
  local options = { size = 10, shuffle = true, seed = 4 }
  local whole = numbers(100)
  local first, second = take(whole, options), take(whole, options)
  for stop = 1, 10 do
    local set = numbers(100)
    take(set, options)
    local head, position = take(set, options, stop)
    lu.assertEquals(position.epoch, 2)
    lu.assertEquals(position.batch, stop)
    local again = numbers(100)
    again:restore(position)
    lu.assertEquals(again.epoch, 1)
    lu.assertEquals(again:position(), position)
    for _, v in ipairs(take(again, options)) do
      head[#head + 1] = v
    end
    lu.assertEquals(head, second)
    lu.assertEquals(again.epoch, 2)
  end
  lu.assertNotEquals(first, second)
end

function TestPositions:test_between_epochs()
  local options = { size = 10, shuffle = true, seed = 4 }
  local set = numbers(100)
  local start = set:position()
  take(set, options)
  local position = set:position()
  local again, fresh = numbers(100), numbers(100)
  again:restore(position)
  lu.assertEquals(again.epoch, 1)
  lu.assertEquals(take(again, options), take(set, options))
  fresh:restore(start)
  lu.assertEquals(fresh.epoch, 0)
end

-- A loop that was left is over: the next one begins the next epoch.
function TestPositions:test_a_loop_that_was_left()
  local options = { size = 10, shuffle = true, seed = 4 }
  local set = numbers(100)
  leave(set, options)
  local again = numbers(100)
  again:restore(set:position())
  lu.assertEquals(take(again, options), take(set, options))
end

function TestPositions:test_other_options()
  local set = numbers(100)
  local _, position = take(set, { size = 10, shuffle = true, seed = 4 }, 3)
  local function asked_with(pattern, options, rows)
    local again = numbers(rows or 100)
    again:restore(position)
    fails(pattern, again.batches, again, options)
  end
  asked_with("the restored position is of size = 10, not 20", { size = 20, shuffle = true, seed = 4 })
  asked_with("of seed = 4, not 5", { size = 10, shuffle = true, seed = 5 })
  asked_with("of shuffle = true, not false", { size = 10, seed = 4 })
  asked_with("of rows = 100, not 200", { size = 10, shuffle = true, seed = 4 }, 200)
  fails("a position is needed", set.restore, set, {})
  fails("a position is needed", set.restore, set)
  for _, wrong in ipairs { { epoch = -1, batch = 0 }, { epoch = 1, batch = -2 }, { epoch = "x", batch = 0 } } do
    fails("a position is needed", set.restore, set, wrong)
  end
  local far = set:position()
  far.epoch, far.batch = 1, math.maxinteger
  far.rows, far.size, far.shuffle, far.seed, far.last = 100, 20, false, 4, "drop"
  position = far
  asked_with("the restored position is behind 9223372036854775807 batches, there are", { size = 20, seed = 4 })
end
