-- dc.trace of a path, dc.span: what the file has.
local lu = require "luaunit"
local dc, nn, optim = require "deepc", require "deepc.nn", require "deepc.optim"
local data = require "deepc.data"
local check = require "tests.lua.check"

local function temporary(ending)
  local path = os.tmpname()
  os.remove(path)
  return path .. ending
end

local function read(path)
  local text = check.read(path)
  os.remove(path)
  return check.json(text)
end

-- name -> events of that name, in the order of the file
local function by_name(trace)
  local found = {}
  for _, e in ipairs(trace.traceEvents) do
    found[e.name] = found[e.name] or {}
    table.insert(found[e.name], e)
  end
  return found
end

local function train(steps)
  local net = nn.Sequential { nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4) }
  local opt = optim.SGD(net:parameters(), { lr = 0.1 })
  local step = dc.fn("step(x: f32[16, 8], y: i32[16]) -> f32[]", function(x, y)
    local loss = nn.cross_entropy(net(x), y)
    opt:step(loss)
    return loss
  end)
  local set = data.set(dc.rand("f32[64, 8]", { seed = 1 }), dc.iota "i32[64]" % 4)
  local n = 0
  while n < steps do
    for x, y in set:batches { size = 16, shuffle = true } do
      n = n + 1
      if n <= steps then
        step(x, y)
      end
    end
  end
  return step
end

TestTrace = {}

function TestTrace:test_a_training_loop()
  local path = temporary ".json"
  local t = dc.trace(path)
  lu.assertEquals(tostring(t), "trace to " .. path)
  local s = dc.span "all of it"
  train(5)
  s:close()
  lu.assertEquals(t:stop(), path)
  lu.assertEquals(t:stop(), path) -- again is fine
  local trace = read(path)
  local found = by_name(trace)
  lu.assertEquals(trace.otherData.version, dc._VERSION)
  lu.assertEquals(trace.otherData.spans_left_out, "0")
  for i = 1, 5 do
    local e = found[("step #%d"):format(i)][1]
    lu.assertEquals(e.cat, "call")
    lu.assertEquals(e.args.step, i)
    lu.assertStrContains(e.args.lines, "test_trace.lua:")
  end
  lu.assertNil(found["step #6"])
  lu.assertEquals(found["trace step"][1].cat, "trace")
  lu.assertEquals(found["all of it"][1].cat, "user")
  lu.assertEquals(found["batch #1"][1].cat, "data")
  lu.assertTrue(found.memory[1].args.bytes > 0)
  local kernels, lines, layers, last = 0, 0, 0, 0
  local from, to = found["all of it"][1].ts, found["all of it"][1].ts + found["all of it"][1].dur
  for _, e in ipairs(trace.traceEvents) do
    if e.ph == "X" then
      lu.assertTrue(e.dur >= 0 and e.ts >= from - 1 and e.ts + e.dur <= to + 1, e.name)
      last = math.max(last, e.ts)
    end
    if e.cat == "kernel" and e.args.lines and e.args.lines:find("test_trace.lua", 1, true) then
      kernels = kernels + 1
      lines = lines + 1
      layers = layers + (e.args.layer and e.args.layer:find("nn.Linear", 1, true) and 1 or 0)
      lu.assertTrue(e.args.bytes > 0)
    end
  end
  if dc.stats().kernels + dc.stats().kernels_cached > 0 then
    lu.assertTrue(kernels >= 5 and layers >= 5)
    lu.assertNotNil(found["compile step"])
  end
end

-- Counts of bounded dims are those of the bounds.
function TestTrace:test_kernels_of_bounded_dims_have_no_counts()
  local path = temporary ".json"
  local f = dc.fn("bounded(x: f32[n<=1000, 64]) -> f32[n]", function(x) return x:exp():sum(2) end)
  local t = dc.trace(path)
  f(dc.ones "f32[10, 64]"):totable()
  t:stop()
  for _, e in ipairs(read(path).traceEvents) do
    if e.cat == "kernel" then
      lu.assertNil(e.args.flops or e.args.bytes or e.args["GB/s"], e.name)
    end
  end
end

-- Spans of one thread lie in each other, or beside each other.
function TestTrace:test_spans_are_nested()
  local path = temporary ".json"
  local t <close> = dc.trace(path)
  train(4)
  t:stop()
  local threads = {}
  for _, e in ipairs(read(path).traceEvents) do
    if e.ph == "X" then
      threads[e.tid] = threads[e.tid] or {}
      table.insert(threads[e.tid], { e.ts, e.ts + e.dur, e.name })
    end
  end
  local pairs_seen = 0
  for _, spans in pairs(threads) do
    table.sort(spans, function(a, b) return a[1] < b[1] or a[1] == b[1] and a[2] > b[2] end)
    local open = {}
    for _, s in ipairs(spans) do
      while #open > 0 and open[#open][2] <= s[1] + 0.0015 do
        table.remove(open)
      end
      if #open > 0 then
        pairs_seen = pairs_seen + 1
        lu.assertTrue(s[2] <= open[#open][2] + 0.0015, s[3] .. " in " .. open[#open][3])
      end
      table.insert(open, s)
    end
  end
  lu.assertTrue(pairs_seen > 10)
end

function TestTrace:test_only_while_it_records()
  local path = temporary ".json"
  local step = train(2)
  local x, y = dc.ones "f32[16, 8]", dc.zeros "i32[16]"
  step(x, y)
  local t = dc.trace(path)
  step(x, y)
  t:stop()
  step(x, y)
  local found = by_name(read(path))
  lu.assertNil(found["step #3"])
  lu.assertEquals(#found["step #4"], 1)
  lu.assertNil(found["step #5"])
  do
    local again <close> = dc.trace(path)
    step(x, y)
    lu.assertEquals(again.path, path)
  end
  found = by_name(read(path))
  lu.assertNil(found["step #4"])
  lu.assertEquals(#found["step #6"], 1)
end

function TestTrace:test_files_and_lazy_code()
  local path, file = temporary ".json", temporary ".safetensors"
  local t = dc.trace(path)
  dc.save(file, { x = dc.ones "f32[100]" * 3 })
  dc.load(file)
  t:stop()
  os.remove(file)
  local found = by_name(read(path))
  lu.assertEquals(found["save " .. file][1].cat, "file")
  lu.assertEquals(found["load " .. file][1].cat, "file")
end

function TestTrace:test_a_limit()
  local path = temporary ".json"
  local t = dc.trace(path, { spans = 7 })
  train(5)
  t:stop()
  lu.assertEquals(t.spans, 7)
  lu.assertTrue(t.left_out > 10)
  local n = 0
  for _, e in ipairs(read(path).traceEvents) do
    n = n + (e.ph ~= "M" and 1 or 0)
  end
  lu.assertEquals(n, 7)
end

function TestTrace:test_names_of_any_bytes()
  local path = temporary ".json"
  local names = { 'a "quoted" \\ name', "tab\there", "ümlaut", "bytes \xff\xfe", "" }
  local t = dc.trace(path)
  for _, name in ipairs(names) do
    dc.span(name):close()
  end
  t:stop()
  local found = by_name(read(path))
  for i = 1, 3 do
    lu.assertNotNil(found[names[i]], names[i])
  end
  lu.assertNotNil(found["bytes ÿþ"])
end

function TestTrace:test_wrong_uses()
  local path = temporary ".json"
  check.fails("trace: the path is empty", function() dc.trace "" end)
  check.fails("spans is how many are kept, an integer from 1 on, not 0", function() dc.trace(path, { spans = 0 }) end)
  check.fails("unknown option 'steps'", function() dc.trace(path, { steps = 1 }) end)
  check.fails("/nowhere/run.json", function() dc.trace "/nowhere/run.json" end)
  check.fails("a name is needed, not a table", function() dc.span {} end)
  local t = dc.trace(path)
  check.fails("is being recorded already", function() dc.trace(path) end)
  check.fails("a trace is needed", function() t.stop() end)
  check.fails("a span is needed", function() dc.span("x").close() end)
  t:stop()
  os.remove(path)
  lu.assertNil(io.open(path))
end

-- A span that is begun before, or ends behind, is no part of it.
function TestTrace:test_spans_across_the_ends()
  local path = temporary ".json"
  local early = dc.span "early"
  local t = dc.trace(path)
  early:close()
  local late = dc.span "late"
  t:stop()
  late:close()
  local found = by_name(read(path))
  lu.assertNil(found.early)
  lu.assertNil(found.late)
end
