-- Sets of any number of values, rows of files and of several lengths, parts of sets, rows that are drawn.
local lu = require "luaunit"
local dc = require "deepc"
local data = require "deepc.data"
local check = require "tests.lua.check"

local fails = check.fails

-- All values of the last tensor of each batch, one after the other.
local function taken(set, options, k)
  local list = {}
  for a, b, c in set:batches(options) do
    for _, v in ipairs(({ a, b, c })[k or 1]:totable()) do
      list[#list + 1] = v
    end
  end
  return list
end

local function sorted(list)
  table.sort(list)
  return list
end

local function upto(n)
  local list = {}
  for i = 1, n do
    list[i] = i - 1
  end
  return list
end

TestSets = {}

function TestSets:test_one_and_three_values()
  local n = dc.iota(10)
  lu.assertEquals(taken(data.set(n), { size = 5 }), upto(10))
  local set = data.set(n, n * 2, (n * 3):cast "f32")
  for x, y, z, mask in set:batches { size = 4, last = "pad", shuffle = true } do
    lu.assertTrue((x * 2):eq(y):all():item())
    lu.assertEquals(z.dtype, "f32")
    lu.assertEquals(mask.shape, { 4 })
    lu.assertEquals(mask:sum():item(), #x == 4 and math.min(4, mask:sum():item()))
  end
  fails("value 3 has 4 rows, value 1 10", data.set, n, n, dc.iota(4))
  fails("value 3: a tensor is needed, not the number 1", data.set, n, n, 1)
  fails("17 values in a row, 16 are the most", data.set, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n)
end

function TestSets:test_records()
  local n = dc.iota(6)
  local set = data.set { image = (n * 10):reshape(6, 1), label = n }
  lu.assertEquals(#set, 6)
  lu.assertEquals(set.label:totable(), upto(6))
  local f = dc.fn("f(b: { image: i32[2, 1], label: i32[2] }) -> i64[]", function(b)
    return b.image:sum() + b.label:sum()
  end)
  local seen = {}
  for batch in set:batches { size = 2 } do
    seen[#seen + 1] = f(batch):item()
  end
  lu.assertEquals(seen, { 11, 55, 99 })
  fails("label has 5 rows, image 6", function() return data.set { label = dc.iota(5), image = dc.iota(6) } end)
end

function TestSets:test_mapped()
  local set = data.set(dc.iota(6), dc.iota(6))
  local list = {}
  for x, y, extra in set:batches { size = 3, map = function(x, y) return x:cast "f32" / 2, y, "more" end } do
    lu.assertEquals(x.dtype, "f32")
    lu.assertEquals(extra, "more")
    list[#list + 1] = y:sum():item()
  end
  lu.assertEquals(list, { 3, 12 })
  fails("map is a function, not the number 1", set.batches, set, { size = 3, map = 1 })
end

TestParts = {}

function TestParts:test_rows()
  local set = data.set(dc.iota(10), dc.iota(10) * 2)
  local odd = set:rows { 2, 4, 6, 8, 10 }
  lu.assertEquals(#odd, 5)
  lu.assertEquals(taken(odd, { size = 5 }, 2), { 2, 6, 10, 14, 18 })
  lu.assertEquals(taken(odd:rows { 5, 1 }, { size = 2 }), { 9, 1 })
  lu.assertEquals(sorted(taken(odd, { size = 2, shuffle = true, last = "keep" })), { 1, 3, 5, 7, 9 })
  fails("row 11 of 10 rows", set.rows, set, { 1, 11 })
  fails("row 6 of 5 rows", odd.rows, odd, { 6 })
end

function TestParts:test_random_split()
  local set = data.set(dc.iota(11))
  local a, b = set:random_split({ 0.75, 0.25 }, { seed = 3 })
  lu.assertEquals({ #a, #b }, { 9, 2 })
  local c = set:random_split({ 9, 2 }, { seed = 3 })
  lu.assertEquals(taken(a, { size = 9 }), taken(c, { size = 9 }))
  local all = taken(a, { size = 9 })
  table.move(taken(b, { size = 2 }), 1, 2, #all + 1, all)
  lu.assertNotEquals(all, upto(11))
  lu.assertEquals(sorted(all), upto(11))
  fails("shares are 0.9 together, not 1", set.random_split, set, { 0.5, 0.4 })
  fails("sizes are 10 together, of 11 rows", set.random_split, set, { 5, 5 })
end

function TestParts:test_k_fold()
  local set, seen = data.set(dc.iota(10)), {}
  for i, train, test in set:k_fold(3, { seed = 1 }) do
    lu.assertEquals(#train + #test, 10)
    local both = taken(train, { size = #train })
    for _, v in ipairs(taken(test, { size = #test })) do
      seen[#seen + 1] = v
      both[#both + 1] = v
    end
    lu.assertEquals(sorted(both), upto(10))
    lu.assertTrue(i <= 3)
  end
  lu.assertEquals(sorted(seen), upto(10))
  local folds, numbers = set:k_fold(3, { seed = 1 }), {}
  for _ = 1, 2 do
    for i in folds do numbers[#numbers + 1] = i end
  end
  lu.assertEquals(numbers, { 1, 2, 3, 1, 2, 3 })
  fails("k is an integer from 2 to the 10 rows, not 11", set.k_fold, set, 11)
end

TestDrawn = {}

function TestDrawn:test_weights()
  local set = data.set(dc.iota(4))
  local list = taken(set, { size = 100, weights = dc.tensor { 0, 1, 3, 0 }, draws = 4000, seed = 1 })
  local count = { [0] = 0, 0, 0, 0 }
  for _, v in ipairs(list) do
    count[v] = count[v] + 1
  end
  lu.assertEquals({ count[0], count[3] }, { 0, 0 })
  lu.assertAlmostEquals(count[1], 1000, 120) -- four deviations of a binomial
  lu.assertEquals(sorted(taken(set, { size = 2, weights = dc.tensor { 0, 1, 3, 0 }, draws = 2, replacement = false })),
    { 1, 2 })
  local weights = dc.tensor { 1, 1, 1, 1 }
  lu.assertEquals(sorted(taken(set, { size = 4, weights = weights, replacement = false })), upto(4))
  fails("3 rows are to be drawn once each, 2 have a weight above 0", set.batches, set,
    { size = 3, weights = dc.tensor { 0, 1, 3, 0 }, draws = 3, replacement = false })
  fails("weight 2 is -1", set.batches, set, { size = 4, weights = dc.tensor { 1, -1, 1, 1 } })
  fails("no weight is above 0", set.batches, set, { size = 4, weights = dc.zeros "f32[4]" })
  fails("a number for each of 4 rows", set.batches, set, { size = 4, weights = dc.ones "f32[3]" })
  fails("draws is for rows that are drawn", set.batches, set, { size = 4, draws = 8 })
end

function TestDrawn:test_balance()
  local label = dc.tensor({ 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 }, "i32")
  local sum = 0
  for _, v in ipairs(taken(data.set(label), { size = 100, balance = label, draws = 2000, seed = 2 })) do
    sum = sum + v
  end
  lu.assertAlmostEquals(sum, 1000, 90)
end

function TestDrawn:test_positions()
  local options = { size = 10, weights = dc.iota "f32[50]", draws = 100, seed = 9 }
  local whole, list, set = taken(data.set(dc.iota(50)), options), {}, data.set(dc.iota(50))
  for x in set:batches(options) do
    table.move(x:totable(), 1, 10, #list + 1, list)
    if #list == 30 then
      break
    end
  end
  local again = data.set(dc.iota(50))
  again:restore { epoch = 1, batch = 3, rows = 100, size = 10, shuffle = false, seed = 9, last = "drop" }
  table.move(taken(again, options), 1, 70, 31, list)
  lu.assertEquals(list, whole)
end

TestRagged = {}

function TestRagged:test_filled_up()
  local rows = data.ragged({ { 7, 2, 1 }, { 4 }, {}, { 5, 5 } }, { pad = -1 })
  lu.assertEquals(rows.dtype, "i32")
  lu.assertEquals(rows.shape, { 4, 3 })
  lu.assertEquals(rows:lengths():totable(), { 3, 1, 0, 2 })
  lu.assertEquals(rows:row(4):totable(), { 5, 5 })
  local seen = {}
  for x, n in data.set(rows, rows:lengths()):batches { size = 2 } do
    seen[#seen + 1] = { x:totable(), n:totable() }
  end
  lu.assertEquals(seen, { { { { 7, 2, 1 }, { 4, -1, -1 } }, { 3, 1 } }, { { { -1, -1 }, { 5, 5 } }, { 0, 2 } } })
  local shapes = {}
  for x in data.set(data.ragged({ { 1 }, { 2 }, { 3, 3, 3, 3, 3 } }, { to = { 2, 8 } })):batches { size = 1 } do
    shapes[#shapes + 1] = x.shape[2]
  end
  lu.assertEquals(shapes, { 2, 2, 8 })
end

function TestRagged:test_tensors_and_values()
  local list = { dc.ones "f32[2, 3]", dc.ones "f32[1, 3]" * 2 }
  local values = data.ragged { values = dc.concat(list, 1), lengths = { 2, 1 } }
  for x in data.set(data.ragged(list), values):batches { size = 2, map = function(x, y) return x - y end } do
    lu.assertEquals(x.shape, { 2, 2, 3 })
    lu.assertEquals(x:abs():sum():item(), 0)
  end
  fails("lengths are 4 together, values 3", data.ragged, { values = dc.iota(3), lengths = { 2, 2 } })
  fails("row 2 has 3 places, the largest length of to is 2", data.ragged, { { 1 }, { 1, 2, 3 } }, { to = 2 })
  fails("a list of growing lengths", data.ragged, { { 1 } }, { to = { 4, 4 } })
end

function TestRagged:test_grouped_and_bounded()
  local list, total = {}, 0
  for i = 1, 600 do
    list[i] = {}
    for k = 1, (i * 37) % 50 + 1 do
      list[i][k] = i
      total = total + i
    end
  end
  local rows = data.ragged(list)
  local set = data.set(rows, rows:lengths())
  local sum = dc.fn("sum(x: i32[20, t <= 64], n: i32[20]) -> i64[], i64[]", function(x, n) return x:sum(), n:sum() end)
  for _, shuffle in ipairs { false, true } do
    local places, got, lengths = 0, 0, 0
    for x, n in set:batches { size = 20, group = rows, shuffle = shuffle, seed = 5 } do
      local s, m = sum(x, n)
      got, lengths, places = got + s:item(), lengths + m:item(), places + 20 * x.shape[2]
    end
    lu.assertEquals(got, total)
    lu.assertTrue(places < lengths * 1.1) -- few places are filled up
  end
  lu.assertEquals(#sum:info(), 1)
end

TestStreams = {}

-- 0, 1, 2 ... n - 1, each with a tensor.
local function counting(n)
  return data.stream(function(epoch)
    local i = -1
    return function()
      i = i + 1
      if i < n then
        return i, dc.full("f32[2]", i), { i, epoch }, "row " .. i
      end
    end
  end)
end

function TestStreams:test_collated()
  local seen = {}
  for i, x, pair, text in counting(5):batches { size = 2 } do
    lu.assertEquals(i.dtype, "i32")
    lu.assertEquals(x:sum(2):totable(), (i * 2):cast("f32"):totable())
    lu.assertEquals(pair.shape, { #text, 2 })
    table.move(i:totable(), 1, #i, #seen + 1, seen)
  end
  lu.assertEquals(seen, upto(5))
  lu.assertEquals(taken(counting(5), { size = 2, last = "drop" }), upto(4))
  for n in counting(5):batches { size = 5, collate = function(rows) return #rows * 10 end } do
    lu.assertEquals(n, 50)
  end
  fails("a function is needed that gives an iterator, not the number 1", data.stream, 1)
  fails("size is a positive integer, not nil", counting(1).batches, counting(1), {})
end

-- Asked for once: each `for` asks the source anew, also where the one before was left early.
function TestStreams:test_made_before_the_epochs()
  local stream = counting(5)
  local batches, seen = stream:batches { size = 2 }, {}
  for most = 1, 3 do
    for i, _, pair in most == 2 and dc.progress(batches, { show = "off" }) or batches do
      seen[#seen + 1] = { i:totable()[1], pair:totable()[1][2], stream.epoch }
      if #seen == most then
        break
      end
    end
  end
  lu.assertEquals(seen, { { 0, 1, 1 }, { 0, 2, 2 }, { 0, 3, 3 } })
  local again = counting(5)
  batches = again:batches { size = 2 }
  again:restore(stream:position())
  for i in batches do seen[#seen + 1] = i:totable() end
  lu.assertEquals({ seen[4], seen[5], seen[6] }, { { 2, 3 }, { 4 } })
  lu.assertEquals(again.epoch, 3)
end

function TestStreams:test_shuffled_and_resumed()
  local options = { size = 4, shuffle = 6, seed = 3 }
  local stream = counting(20)
  local first, second = taken(stream, options), taken(stream, options)
  lu.assertNotEquals(first, second)
  lu.assertEquals(sorted(taken(counting(20), options)), upto(20))
  local cut, list = counting(20), {}
  for i in cut:batches(options) do
    table.move(i:totable(), 1, 4, #list + 1, list)
    if #list == 8 then
      break
    end
  end
  local again = counting(20)
  again:restore(cut:position())
  table.move(taken(again, options), 1, 12, 9, list)
  lu.assertEquals(list, first)
  lu.assertEquals(again.epoch, 1)
end

TestFiles = {}

function TestFiles:setUp()
  self.path = os.tmpname()
end

function TestFiles:tearDown()
  os.remove(self.path)
end

function TestFiles:test_rows_of_files()
  local x = dc.iota("i32[1000]"):reshape(100, 10)
  data.write_npy(self.path, x)
  local rows = data.rows(self.path)
  lu.assertEquals(rows.shape, { 100, 10 })
  lu.assertEquals(rows:row(3):totable(), x[3]:totable())
  local ways = { { size = 7, last = "keep" }, { size = 7, shuffle = true, last = "pad" }, { size = 100 } }
  for _, options in ipairs(ways) do
    local seen = 0
    for a, b in data.set(rows, x):batches(options) do
      lu.assertTrue(a:eq(b):all():item())
      seen = seen + #a
    end
    lu.assertEquals(seen, options.last == "pad" and 105 or 100)
  end
  dc.save(self.path, { x = x })
  lu.assertEquals(data.rows(self.path, { name = "x" }):row(100):totable(), x[100]:totable())
  fails("has no tensor 'y'", data.rows, self.path, { name = "y" })
  local f <close> = assert(io.open(self.path, "wb"))
  f:write("head", x:bytes())
  f:close()
  lu.assertEquals(data.rows(self.path, { type = "i32[100, 10]", at = 4 }):row(2):totable(), x[2]:totable())
  fails("has 4004 bytes, 4004 from byte 4 on are wanted", data.rows, self.path, { type = "u8[4004]", at = 4 })
end

-- A file that becomes shorter is an error of the batch that wants it, not of those before.
function TestFiles:test_a_file_that_is_cut()
  data.write_npy(self.path, dc.iota("i32[100000]"):reshape(1000, 100))
  local whole = assert(io.open(self.path, "rb"))
  local bytes = whole:read(128 + 400 * 500)
  whole:close()
  local set = data.set(data.rows(self.path))
  local f = assert(io.open(self.path, "wb"))
  f:write(bytes)
  f:close()
  local seen = 0
  local err = fails("has become shorter: row 501 is missing", function()
    for x in set:batches { size = 10 } do
      seen = seen + #x
    end
  end)
  lu.assertEquals(err.code, "DC0802")
  lu.assertTrue(seen <= 500)
end
