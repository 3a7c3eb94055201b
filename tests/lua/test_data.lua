-- Files to tensors, and batches.
local lu = require "luaunit"
local dc = require "deepc"
local data = require "deepc.data"

local function fails(pattern, f, ...)
  local ok, err = pcall(f, ...)
  lu.assertFalse(ok)
  lu.assertStrContains(tostring(err), pattern)
  return err
end

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
  lu.assertStrMatches(err.at, ".*test_data.lua:%d+")
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
  lu.assertEquals(labels(set, { size = 8, last = "drop" }), {})
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
  fails('last is "drop" or "keep"', set.batches, set, { size = 2, last = "pad" })
  fails("4 rows against 3", data.set, dc.zeros "f32[4]", dc.zeros "i32[3]")
end
