-- dc.progress: what it hands on, what it writes, and what it reads for that.
local lu = require "luaunit"
local dc = require "deepc"
local data = require "deepc.data"
local check = require "tests.lua.check"

local fails = check.fails

-- What f writes to stderr.
local function written(f)
  local there, list = io.stderr, {}
  io.stderr = { write = function(self, text) -- luacheck: ignore 122
    list[#list + 1] = text
    return self
  end }
  local ok, err = pcall(f)
  io.stderr = there -- luacheck: ignore 122
  return table.concat(list), ok, err
end

-- Lines without what differs from run to run.
local function plain(text)
  return (text:gsub("%d+:%d%d", "T"):gsub("  left T", ""):gsub("  [%d.]+ (%a+)/s", "  R %1/s"))
end

TestLoops = {}

function TestLoops:test_a_metric_is_one_number()
  local text, ok, err = written(function()
    local options = { show = "lines", every = 0, metrics = { loss = dc.ones "f32[1, 1]", all = dc.ones "f32[2]" } }
    for _ in dc.progress(2, options) do error "not reached" end
  end)
  lu.assertEquals(text, "")
  lu.assertFalse(ok)
  lu.assertStrContains(tostring(err), "progress: metric 'all' is f32[2], not one number")
end

function TestLoops:test_values_are_handed_on()
  local quiet = { show = "off" }
  local list = {}
  for i in dc.progress(3, quiet) do list[#list + 1] = i end
  for i, v in dc.progress({ "a", "b" }, quiet) do list[#list + 1] = i .. v end
  for a, b in dc.progress(("k=v x=y"):gmatch "(%w)=(%w)", quiet) do list[#list + 1] = a .. b end
  lu.assertEquals(list, { 1, 2, 3, "1a", "2b", "kv", "xy" })
  local set, sum = data.set(dc.iota "i32[10]", dc.iota "i32[10]"), 0
  for x, y in dc.progress(set:batches { size = 5 }, quiet) do
    sum = sum + (x * y):sum():item()
  end
  lu.assertEquals(sum, 285)
  for _ in dc.progress(0, quiet) do error "none" end
  for _ in dc.progress({}, quiet) do error "none" end
end

-- Made before the loops: each shows itself from its beginning, also behind one that was left.
function TestLoops:test_again()
  local set = data.set(dc.iota "i32[6]")
  local text = written(function()
    local shown = dc.progress(set:batches { size = 2 }, { show = "lines", every = 100 })
    local seen = {}
    for most = 2, 4 do
      local n = 0
      for x in shown do
        seen[#seen + 1] = x:totable()[1]
        n = n + 1
        if n == most then break end
      end
    end
    lu.assertEquals(seen, { 0, 2, 0, 2, 4, 0, 2, 4 })
    seen = {}
    local count = dc.progress(2, { show = "off" })
    for _ = 1, 2 do
      for i in count do seen[#seen + 1] = i end
    end
    lu.assertEquals(seen, { 1, 2, 1, 2 })
  end)
  lu.assertEquals(select(2, text:gsub("3/3  100%%", "")), 1, text)
  lu.assertEquals(select(2, text:gsub("1/3   33%%", "")), 1, text)
end

function TestLoops:test_iterators_of_several_values()
  local text = written(function()
    local seen = {}
    for key, value in dc.progress(pairs { a = 1, b = 2 }) do seen[key] = value end
    lu.assertEquals(seen, { a = 1, b = 2 })
  end)
  lu.assertStrContains(text, "2  ")
end

function TestLoops:test_what_is_to_be_closed()
  local closed = {}
  local function closing(name)
    return setmetatable({}, { __close = function(_, err) closed[#closed + 1] = name .. tostring(err) end })
  end
  local i = 0
  local function count()
    i = i + 1
    return i < 4 and i or nil
  end
  written(function()
    for _ in dc.progress(count, nil, nil, closing "a") do i = i + 0 end
    i = 0
    for _ in dc.progress(count, nil, nil, closing "b") do
      if i > 0 then break end
    end
  end)
  local object = setmetatable({}, { __call = count, __close = getmetatable(closing "c").__close })
  i = 0
  fails("stop", function()
    for _ in dc.progress(object, { show = "off" }) do error("stop", 0) end
  end)
  lu.assertEquals(closed, { "anil", "bnil", "cstop" })
end

TestLines = {}

function TestLines:test_each_value()
  local shown = {}
  local text = written(function()
    for i in dc.progress(3, { title = "epoch 1", metrics = shown, show = "lines", every = 0, size = 10 }) do
      shown.loss, shown.accuracy, shown.name = dc.tensor(1 / 8), i, "x"
    end
  end)
  local lines = {}
  for line in plain(text):gmatch "[^\n]+" do lines[#lines + 1] = line end
  lu.assertEquals(lines, {
    "epoch 1  0/3    0%  T",
    "epoch 1  1/3   33%  T  R items/s  accuracy 1  loss 0.125  name x",
    "epoch 1  2/3   66%  T  R items/s  accuracy 2  loss 0.125  name x",
    "epoch 1  3/3  100%  T  R items/s  accuracy 3  loss 0.125  name x",
  })
end

function TestLines:test_the_last_alone()
  local set = data.set(dc.zeros "f32[10, 2]", dc.iota "i32[10]")
  for last, count in pairs { drop = 3, keep = 4 } do
    local text = written(function()
      local n = 0
      for _ in dc.progress(set:batches { size = 3, last = last }, { show = "lines", every = 1e9 }) do n = n + 1 end
      lu.assertEquals(n, count)
    end)
    lu.assertEquals(plain(text), ("%d/%d  100%%  T  R items/s\n"):format(count, count))
  end
  lu.assertEquals(plain(written(function()
    for _ in dc.progress(("abc"):gmatch ".", { show = "lines" }) do lu.success = lu.success end
  end)), "3  T  R it/s\n")
end

function TestLines:test_metrics_are_read_when_a_line_is_written()
  local reads = 0
  local function metrics()
    reads = reads + 1
    return { loss = 2 }
  end
  local text = written(function()
    for _ in dc.progress(1000, { metrics = metrics, show = "lines", every = 1e9 }) do lu.assertEquals(reads, 0) end
  end)
  lu.assertEquals(reads, 1)
  lu.assertStrContains(text, "loss 2")
  -- a lazy tensor is computed for a line and for nothing else
  local shown, before = {}, nil
  written(function()
    for i in dc.progress(50, { metrics = shown, show = "lines", every = 1e9 }) do
      shown.loss = dc.tensor(i) * 2
      before = dc.stats().realized
    end
  end)
  lu.assertEquals(dc.stats().realized, before + 1)
end

function TestLines:test_an_error_reads_nothing()
  local text, ok, err = written(function()
    for i in dc.progress(5, { show = "lines", every = 1e9, metrics = function() error "read" end }) do
      if i == 2 then error("stop", 0) end
    end
  end)
  lu.assertFalse(ok)
  lu.assertEquals(err, "stop")
  lu.assertEquals(text, "")
end

function TestLines:test_a_loop_that_is_left()
  local text = written(function()
    for i in dc.progress(5, { show = "lines", every = 1e9 }) do
      if i == 3 then break end
    end
  end)
  lu.assertEquals(plain(text), "2/5   40%  T  R it/s\n")
end

TestBar = {}

function TestBar:test_one_line_is_drawn_again()
  local text = written(function()
    for _ in dc.progress(4, { title = "t", show = "bar", every = 0 }) do lu.success = lu.success end
  end)
  local drawn = {}
  for line in plain(text):gmatch "\r([^\r\n]*)" do drawn[#drawn + 1] = line:gsub("%s+$", "") end
  lu.assertEquals(#drawn, 5)
  lu.assertStrMatches(drawn[1], "t  0/4    0%%  %[> +%]  T")
  lu.assertStrMatches(drawn[3], "t  2/4   50%%  %[=+> +%]  T  R it/s")
  lu.assertStrMatches(drawn[5], "t  4/4  100%%  %[=+%]  T  R it/s")
  lu.assertEquals(text:sub(-1), "\n")
  local _, ends = text:gsub("\n", "")
  lu.assertEquals(ends, 1)
end

function TestBar:test_the_line_is_ended_by_an_error()
  local text = written(function()
    for i in dc.progress(4, { show = "bar", every = 0 }) do
      if i == 2 then error "stop" end
    end
  end)
  lu.assertEquals(text:sub(-1), "\n")
  local _, ends = text:gsub("\n", "")
  lu.assertEquals(ends, 1)
end

function TestBar:test_it_fits()
  local text = written(function()
    for _ in dc.progress(2, { title = ("ü"):rep(300), show = "bar", every = 0 }) do lu.success = lu.success end
  end)
  for line in text:gmatch "\r([^\r\n]*)" do
    lu.assertTrue(utf8.len(line) < 300)
  end
end

TestSilence = {}

function TestSilence:test_off()
  lu.assertEquals(written(function()
    for _ in dc.progress(3, { show = "off", every = 0, metrics = function() error "read" end }) do
      lu.success = lu.success
    end
  end), "")
end

function TestSilence:test_mistakes()
  fails("progress: an iterator, a list or a number is needed, not nil", dc.progress)
  fails("an iterator, a list or a number is needed, not a string", dc.progress, "abc")
  fails("unknown option 'totals'", dc.progress, 3, { totals = 3 })
  fails("total is an integer from 0, not 1.5", dc.progress, 3, { total = 1.5 })
  fails("every is a number of seconds from 0, not -1", dc.progress, 3, { every = -1 })
  fails('show is "auto", "bar", "lines" or "off", not \'dots\'', dc.progress, 3, { show = "dots" })
  fails("metrics are a table, or a function that returns one, not a number", dc.progress, 3, { metrics = 3 })
  fails("options are a table", dc.progress, 3, 4)
end

-- ---- metrics (program/test_top.sh has what is written) ----

TestMetric = {}

function TestMetric:test_a_metric_has_a_name_and_a_number()
  fails("metric: the name of a metric is a text, not nil", function() dc.metric() end)
  fails("metric: the name of a metric is a text", function() dc.metric("", 1) end)
  fails("metric: metric 'loss' is", function() dc.metric("loss", "0.5") end)
  fails("metric: metric 'loss' is", function() dc.metric "loss" end)
  fails("metric: metric 'loss' is f32[2, 1], not one number", function() dc.metric("loss", dc.ones "f32[2, 1]") end)
end

function TestMetric:test_it_is_told_outside_of_typed_functions()
  fails("metric is called while 'f' is traced", function()
    dc.fn("f(x: f32[2]) -> f32[]", function(x)
      dc.metric("loss", x:sum())
      return x:sum()
    end)
  end)
end

function TestMetric:test_without_a_log_nothing_is_read()
  local n = 0
  for _ in dc.progress(2, { show = "off", metrics = function() error "read" end }) do
    for _ in dc.progress(2, { show = "off", title = 7, metrics = { a = "text" } }) do n = n + 1 end
  end
  lu.assertEquals(n, 4)
  local x = dc.full("f32[1, 1]", 2) + 1
  local before = dc.stats().realized
  dc.metric("loss", x)
  dc.metric("worst", -math.huge)
  lu.assertEquals(dc.stats().realized, before)
  lu.assertEquals(x:item(), 3)
end
