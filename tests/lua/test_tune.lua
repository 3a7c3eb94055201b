-- dc.tune: what it tells, that results stay, who goes by what it finds, and what it refuses.
local lu = require "luaunit"
local dc = require "deepc"
local program = require "tests.lua.program"

local device = os.getenv "DEEPC_DEVICE" or "cpu"
local on_eval = device == "eval" or os.getenv "DEEPC_COMPILE" == "off"
local skip = os.getenv "DEEPC_SKIP" or ""
local is_searched = not on_eval and (os.getenv "DEEPC_OPT" or "2") >= "2" and not skip:find "all"
  and not skip:find "tuned" and not skip:find "schedule"
local is_groups = device:find "cuda" ~= nil or os.getenv "DEEPC_TARGET" == "simt"

TestTune = {}

local function product()
  local f = dc.fn("product(x: f32[m, 48], w: f32[48, 40]) -> f32[m, 40]", function(x, w) return x:matmul(w):relu() end)
  local function values(type) return (dc.rand(type) * 16 - 8):floor() / 8 end
  return f, values "f32[24, 48]", values "f32[48, 40]"
end

-- Sums of such values are exact in any order.
function TestTune:test_results_stay()
  local f, x, w = product()
  local before = f(x, w)
  local rows = dc.tune(f, { seconds = 0.5 })
  lu.assertEquals(#rows, is_searched and #f:kernels() or 0)
  lu.assertTrue(rows.seconds < 10)
  for _, k in ipairs(rows) do
    lu.assertStrContains(k.lines, "test_tune.lua:")
    lu.assertTrue(k.best_ms <= k.rules_ms and k.gain >= 1)
    lu.assertEquals(k.tuned, k.best_ms < k.rules_ms)
    lu.assertEquals(k.specialisation, 1)
  end
  lu.assertEquals(f(x, w):totable(), before:totable())
  lu.assertEquals(before:totable(), x:matmul(w):relu():totable()) -- what was given out before has not moved
end

-- Groups of threads have tiles and threads to choose.
function TestTune:test_groups_of_threads()
  if not is_groups or not is_searched then
    return
  end
  local f, x, w = product()
  local before = f(x, w)
  local rows = dc.tune(f, { seconds = 10 })
  lu.assertTrue(rows[1].tried > 0)
  lu.assertEquals(f(x, w):totable(), before:totable())
  dc.tune(f, { forget = true })
end

function TestTune:test_a_second_time_it_is_known()
  local f, x, w = product()
  f(x, w)
  local first = dc.tune(f, { seconds = 0.3 })
  for i, k in ipairs(dc.tune(f)) do
    lu.assertTrue(k.known or first[i].why ~= nil) -- of a search that was cut short there may be nothing to know
  end
  for _, k in ipairs(dc.tune(f, { seconds = 0.3, again = true })) do
    lu.assertFalse(k.known)
  end
  lu.assertEquals(#dc.tune(f, { forget = true }), 0)
  lu.assertNotStrContains(f:explain(), "tuned")
  lu.assertEquals(f(x, w):totable(), x:matmul(w):relu():totable())
end

-- Every specialisation, in-place updates, integers that choose elements.
function TestTune:test_a_step_of_training()
  local table_, w = dc.param("f32[50, 16]", 0.5), dc.param("f32[16, 8]", 0.25)
  local function make()
    return dc.fn("step(i: i32[n]) -> f32[]", function(i)
      local loss = table_:take(i, 1):matmul(w):square():mean()
      local g = dc.grad(loss, { table_, w })
      table_:set(table_ - g[1] * 0.125)
      w:set(w - g[2] * 0.125)
      return loss
    end)
  end
  local f = make()
  local i = dc.tensor({ 1, 49, 7, 7 }, "i32[4]")
  f(i)
  f(dc.tensor({ 0, 3 }, "i32[2]"))
  local t, v = dc.tensor(table_:totable(), "f32[50, 16]"), dc.tensor(w:totable(), "f32[16, 8]")
  local rows = dc.tune(f, { seconds = 0.6 })
  lu.assertEquals(#rows, is_searched and #f:kernels() or 0)
  lu.assertEquals(table_:totable(), t:totable()) -- the search computes with memory of its own
  lu.assertEquals(w:totable(), v:totable())
  local tuned = f(i):item()
  table_:set(t)
  w:set(v)
  lu.assertAlmostEquals(make()(i):item(), tuned, 1e-6)
  dc.tune(f, { forget = true })
end

function TestTune:test_what_it_refuses()
  local f, x, w = product()
  local function says(text, ...) lu.assertErrorMsgContains(text, dc.tune, ...) end
  says("has no kernels yet", f)
  f(x, w)
  says("seconds are more than 0", f, { seconds = 0 })
  says("seconds are more than 0", f, { seconds = 0 / 0 })
  says("again is true or false", f, { again = 1 })
  says("moves", f, { moves = 3 })
  says("options are a table", f, 3)
  says("typed function", x)
  local job = f:start(x, w)
  says("a job of it is open", f)
  job:close()
  lu.assertErrorMsgContains("while a typed function is traced", dc.fn, "g(v: f32[2]) -> f32[2]", function(v)
    dc.tune(f)
    return v
  end)
end

function TestTune:test_the_fingerprint_of_the_rules()
  local f, x, w = product()
  f(x, w)
  dc.tune(f, { seconds = 0.3 })
  local found = false
  for _, k in ipairs(dc.tune(f)) do found = found or k.tuned end
  lu.assertEquals(dc.stats().schedules ~= "rules", found)
  dc.tune(f, { forget = true })
  lu.assertEquals(dc.stats().schedules, "rules")
end

-- ---- other processes ----

local script = [[
local dc = require "deepc"
local f = dc.fn("f(x: f32[36, 512], w: f32[512, 36]) -> f32[36, 36]", function(x, w) return x:matmul(w) end)
local x = (dc.iota "f32[36, 512]" % 7 - 3) / 4
local w = (dc.iota "f32[512, 36]" % 5 - 2) / 4
local y = f(x, w)
if arg[1] == "tune" then dc.tune(f, { seconds = 1 }) end
y = f(x, w)
local k = f:kernels()[1]
print(dc.stats().schedules, f:source(1, "schedule"):gsub("\n", "|"), f:explain():match "tuned" or "untuned",
  y:sum():item(), dc.stats().kernels, k.name)
]]

local function fields(text)
  local list = {}
  for field in text:gsub("\n", ""):gmatch "[^\t]+" do list[#list + 1] = field end
  return { schedules = list[1], moves = list[2], tuned = list[3], sum = list[4], text = text }
end

-- The first finds, or finds nothing to be faster; the second goes by it without a search, and so does DEEPC_OPT=3.
function TestTune:test_another_process()
  if device ~= "cpu" or not is_searched then
    return
  end
  local path, folder = program.script(script), os.tmpname()
  os.remove(folder)
  local before = "DEEPC_CACHE=" .. program.quote(folder)
  local function run(how, settings)
    local text, status = program.run(path .. " " .. how, before .. " " .. (settings or ""))
    lu.assertEquals(status, 0, text)
    return fields(text)
  end
  local first = run ""
  local tuned = run "tune"
  local second = run ""
  local skipped = run("", "DEEPC_SKIP=tuned")
  local third = run("", "DEEPC_OPT=3 DEEPC_TUNE_SECONDS=1")
  lu.assertEquals(first.schedules, "rules")
  lu.assertEquals({ second.schedules, second.moves, second.tuned }, { tuned.schedules, tuned.moves, tuned.tuned })
  lu.assertEquals(third.schedules, tuned.schedules)
  lu.assertNotStrContains(third.text, "[note]") -- all is known, nothing is searched
  lu.assertEquals({ skipped.schedules, skipped.moves }, { "rules", first.moves })
  lu.assertEquals({ tuned.sum, second.sum, skipped.sum }, { first.sum, first.sum, first.sum })
  os.remove(path)
  os.execute("rm -r " .. program.quote(folder))
end

function TestTune:test_before_first_calls()
  if device ~= "cpu" or not is_searched then
    return
  end
  local path = program.script(script)
  local text, status = program.run(path, "DEEPC_CACHE=off DEEPC_OPT=3 DEEPC_TUNE_SECONDS=1")
  os.remove(path)
  lu.assertEquals(status, 0, text)
  lu.assertStrContains(text, "[note] tune: f: ")
end


local saving = [[
local dc = require "deepc"
local path = arg[1]
local ckpt = dc.checkpoint(path, { w = dc.param("f32[4]", 1) })
ckpt:save()
ckpt:load()
print "as it was"
local f <close> = assert(io.open(path, "rb"))
local bytes = f:read "a"
local g <close> = assert(io.open(path, "wb"))
g:write((bytes:gsub('("deepc.schedules": *)"rules"', '%1"ruled"')))
g:close()
ckpt:load()
]]

function TestTune:test_checkpoints_hold_the_fingerprint()
  local path, file = program.script(saving), os.tmpname()
  local text, status = program.run(path .. " " .. program.quote(file), "DEEPC_CACHE=off")
  os.remove(path)
  os.remove(file)
  lu.assertEquals(status, 0, text)
  local before, after = text:match "^(.*)as it was(.*)$"
  lu.assertNotStrContains(before, "[note]")
  lu.assertStrContains(after, "was written with other schedules (ruled) than those of now (rules)")
end
