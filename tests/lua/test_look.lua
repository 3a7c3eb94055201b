-- Looking at typed functions: f:explain, f:kernels, f:source, f:plan.
local lu = require "luaunit"
local dc = require "deepc"

local function make()
  local w = dc.param("f32[8, 8]", dc.ones "f32[8, 8]")
  local f = dc.fn("f(x: f32[n, 8]) -> f32[n, 8]", function(x)
    local y = x:matmul(w):exp()
    w:set(w * 0.5)
    return y
  end)
  return f
end

TestLook = {}

function TestLook:test_explain_before_and_after_calls()
  local f = make()
  lu.assertStrContains(f:explain(), "f(x: f32[n, 8]) -> f32[n, 8]")
  lu.assertStrContains(f:explain(), "0 specialisations, at most 8; one is made at the first call")
  f(dc.ones "f32[4, 8]")
  f(dc.ones "f32[4, 8]")
  f(dc.ones "f32[2, 8]")
  local text = f:explain()
  lu.assertStrContains(text, "2 specialisations, at most 8")
  lu.assertStrMatches(text, ".*1%. n=4   2 calls.*2%. n=2   1 call .*")
  if f:info()[1].interpreted then
    lu.assertStrContains(text, "run by the reference interpreter")
  else
    lu.assertStrContains(text, "set in place")
    lu.assertStrContains(text, "test_look.lua:9")
  end
end

function TestLook:test_explain_tells_why_and_what_is_watched()
  local scale = 2
  local f = dc.fn("f(x: f32[n]) -> f32[n]", function(x)
    return x * scale
  end)
  f(dc.ones "f32[4]")
  f(dc.ones "f32[2]")
  lu.assertStrContains(f:explain(), "made for n 4 -> 2")
  lu.assertStrMatches(f:explain(), ".*watched +[^\n]*scale.*")
end

-- Globals that are functions or tables are compared, and told of as globals.
function TestLook:test_explain_lists_no_library()
  local env = setmetatable({ dc = dc, rate = 2, twice = function(x) return x * 2 end, tools = {} }, nil)
  local f = load("return dc.fn('f(x: f32[3]) -> f32[3]', function(x) return twice(x) * rate end)", "=f", "t", env)()
  f(dc.ones "f32[3]")
  local watched = f:explain():match "watched +([^\n]*)"
  lu.assertStrContains(watched, "globals")
  lu.assertStrContains(watched, "rate")
  lu.assertNotStrContains(watched, "twice")
  lu.assertNotStrContains(watched, "tools")
end

function TestLook:test_kernels_are_timed_from_the_first_look_on()
  local f = make()
  f(dc.ones "f32[4, 8]")
  if f:info()[1].interpreted then
    lu.skip "the interpreter has no kernels"
  end
  local list = f:kernels()
  lu.assertTrue(#list >= 1)
  lu.assertEquals(#list, f:info()[1].kernels)
  lu.assertEquals(list[1].calls, 0)
  for _ = 1, 3 do
    f(dc.ones "f32[4, 8]")
  end
  local flops = 0
  for _, k in ipairs(f:kernels()) do
    lu.assertEquals(k.calls, 3 * k.launches)
    lu.assertTrue(k.ms > 0)
    lu.assertStrContains(k.lines, "test_look.lua")
    lu.assertEquals(k.specialisation, 1)
    flops = flops + k.flops
  end
  lu.assertTrue(flops >= 2 * 4 * 8 * 8, "the product's own")
end

function TestLook:test_kernels_in_loops_are_counted_each_time()
  local f = dc.fn("f(x: f32[8]) -> f32[8]", function(x)
    return dc.fori(50, function(_, v) return (v * 1.5):sin() end, x)
  end)
  f(dc.ones "f32[8]")
  if f:info()[1].interpreted then
    lu.skip "the interpreter has no kernels"
  end
  local function most()
    local found
    for _, k in ipairs(f:kernels()) do
      found = found and found.calls >= k.calls and found or k
    end
    return found
  end
  local before = most().calls
  f(dc.ones "f32[8]")
  f(dc.ones "f32[8]")
  local k = most()
  lu.assertEquals(k.calls, before + 100)
  lu.assertAlmostEquals(k.gflops, k.calls * k.flops / k.launches / (k.ms * 1e6), 1e-6)
end

-- Every number of the report is a place in one of its lists, and the texts are made of it.
local function check_numbers(s)
  for i, n in ipairs(s.nodes) do
    lu.assertNotNil(s.parts[n.part])
    for _, input in ipairs(n.ins) do
      lu.assertTrue(input < i and s.nodes[input].part == n.part, "operands come first")
    end
    lu.assertTrue(n.home == nil or s.commands[n.home] ~= nil)
    lu.assertTrue(n.parameter == nil or s.parameters[n.parameter].type == n.type)
  end
  for i, part in ipairs(s.parts) do
    lu.assertTrue(part.parent == nil or part.parent ~= i and s.nodes[part.node].part == part.parent)
    for _, result in ipairs(part.results) do
      lu.assertEquals(s.nodes[result.node].part, i)
    end
  end
  for i, c in ipairs(s.commands) do
    lu.assertTrue(c.kernel == nil or s.kernels[c.kernel].name == c.label)
    lu.assertTrue(i + c.body + c.otherwise <= #s.commands)
    for _, node in ipairs(c.nodes or {}) do
      lu.assertNotNil(s.nodes[node])
    end
    for _, before in ipairs(c.after) do
      lu.assertTrue(before < i)
    end
  end
  for _, t in ipairs(s.temps) do
    lu.assertTrue(t.first <= t.last and s.commands[t.last] ~= nil and t.offset + t.bytes <= s.arena)
  end
end

function TestLook:test_report()
  local w = dc.param("f32[8, 8]", dc.ones "f32[8, 8]")
  local f = dc.fn("f(x: f32[n, 8], deep: bool[]) -> f32[n, 8]", function(x, deep)
    local y = x:matmul(w):softmax(2):matmul(w)
    y = dc.fori(5, function(_, v) return v:matmul(w):tanh() end, y)
    y = dc.cond(deep, function(v) return v:matmul(w) end, function(v) return v:sin() + v end, y)
    w:set(w * 0.5)
    return y
  end)
  lu.assertEquals(#f:report().specialisations, 0)
  f(dc.ones "f32[4, 8]", true)
  f(dc.ones "f32[40, 8]", false)
  local r = f:report()
  lu.assertEquals({ r.name, r.limit, #r.specialisations }, { "f", 8, 2 })
  for i, s in ipairs(r.specialisations) do
    lu.assertEquals({ s.calls, s.results[1].type }, { 1, ("f32[%d, 8]"):format(i == 1 and 4 or 40) })
    local cell = s.parameters[#s.parameters]
    lu.assertEquals({ cell.role, cell.trainable, cell.type }, { "parameter", true, "f32[8, 8]" })
    check_numbers(s)
    local kinds = {}
    for _, part in ipairs(s.parts) do
      kinds[part.kind] = true
    end
    lu.assertTrue(kinds.call and kinds.loop and kinds["then"] and kinds["else"])
    lu.assertEquals(s.loops[1].iterations, 5)
    if not s.interpreted then
      lu.assertTrue(#s.commands > 4 and s.exact)
      lu.assertEquals(#s.kernels, f:info()[i].kernels)
      for _, c in ipairs(s.commands) do
        lu.assertTrue(c.label == nil or f:plan():find(c.label, 1, true) ~= nil)
      end
    end
  end
  local text = f:report "json"
  lu.assertStrContains(text, '"sizes":"n=40"')
  lu.assertNotStrContains(text, "userdata")
  lu.assertErrorMsgContains("the form is \"json\"", f.report, f, "xml")
end

function TestLook:test_report_of_one_that_was_refused()
  local f = dc.fn("f(x: f32[n]) -> f32[n]", function(x) return x * 2 end)
  local ok = pcall(f.check, f, { n = 3 })
  local r = f:report()
  lu.assertTrue(ok and #r.specialisations <= 1)
  for _, s in ipairs(r.specialisations) do
    lu.assertEquals(s.sizes, "n=3")
  end
end

function TestLook:test_source_in_every_form()
  local f = make()
  f(dc.ones "f32[4, 8]")
  if f:info()[1].interpreted then
    lu.skip "the interpreter has no kernels"
  end
  for n, k in ipairs(f:kernels()) do
    lu.assertStrContains(f:source(n), "kernel " .. k.name .. "(")
    lu.assertEquals(f:source(n), f:source(n, "nest"))
    lu.assertStrMatches(f:source(n, "schedule"), "schedule " .. k.name .. ".*")
    lu.assertStrContains(f:source(n, "flat"), k.name)
    lu.assertStrContains(f:source(n, "text"), k.name)
  end
  lu.assertErrorMsgContains("no kernel 99; 'f' has", f.source, f, 99)
  lu.assertErrorMsgContains("no form 'pretty'; there are nest, schedule, flat and text", f.source, f, 1, "pretty")
end

-- In a loop over few elements, LLVM would follow the position through all rounds of a random number, for seconds.
function TestLook:test_positions_in_random_numbers_are_hidden_from_the_compiler()
  local f = dc.fn("f() -> f32[]", function() return dc.rand("f32[7]"):sum() end) -- no two vectors of any machine
  f()
  local text = f:info()[1].interpreted and "" or f:source(1, "text")
  if not text:find "target triple" then
    lu.skip "these kernels are not for LLVM"
  end
  lu.assertStrMatches(text, '.*asm "", "=r,0"%(i32 .*')
end

function TestLook:test_plan_names_what_is_read_and_written()
  local f = make()
  f(dc.ones "f32[4, 8]")
  local text = f:plan()
  lu.assertStrContains(text, "1 specialisation, at most 8")
  if not f:info()[1].interpreted then
    lu.assertStrContains(text, "result 1 <- ")
    lu.assertStrContains(text, "temporaries")
  end
end

-- The text of f:explain() about one value that may be computed again or stored, without the line.
local function choices(text)
  local found = {}
  for line in text:gmatch "[^\n]+" do
    if line:find "^     stored " or line:find "^     recomputed " then
      found[#found + 1] = line:match "^     (%l+ +%l+ .-: .-)   %S*test_look.lua:%d+$"
    end
  end
  return found
end

function TestLook:test_explain_tells_what_is_recomputed_and_what_is_stored()
  local m, r = dc.ones "f32[64, 100]", dc.ones "f32[100]"
  local function explained(signature, body, ...)
    local f = dc.fn(signature, body)
    f(...)
    if f:info()[1].interpreted then
      lu.skip "the interpreter stores everything"
    end
    return choices(f:explain())
  end
  -- Two kernels want it: 6400 elements computed once more, or written and read.
  lu.assertEquals(explained("f(x: f32[64, 100]) -> f32[64], f32[100]", function(x)
    local y = x * 2 + 1
    return y:sum(2), y:sum(1)
  end, m), { "recomputed    add f32[64, 100] for 2 kernels: 12800 operations more, not 50.0 KiB moved" })
  lu.assertEquals(explained("f(x: f32[64, 100]) -> f32[64], f32[100]", function(x)
    local y = x:exp()
    return y:sum(2), y:sum(1)
  end, m), { "stored        exp f32[64, 100] for 2 kernels: 50.0 KiB moved, not 102400 operations more" })
  lu.assertEquals(explained("f(x: f32[64, 100], v: f32[100]) -> f32[64, 100]", function(x, v)
    return x * v:exp()
  end, m, r), { "stored        exp f32[100] for 64 places of a broadcast: 25.4 KiB moved, not 100800 operations more" })
  lu.assertEquals(explained("f(x: f32[64, 100]) -> f32[64, 100]", function(x)
    return x:softmax(2)
  end, m), { "stored        exp f32[64, 100] for 2 steps of its row: 50.0 KiB moved, not 108800 operations more" })
  lu.assertEquals(explained("f(x: f32[64, 100]) -> f32[64, 100]", function(x)
    return x * 2 + 1
  end, m), {})
end

function TestLook:test_explain_tells_why_kernels_are_apart()
  local m, k = dc.ones "f32[64, 100]", dc.ones "f32[100, 64]"
  local function explained(body)
    local f = dc.fn("f(x: f32[64, 100], w: f32[100, 64]) -> f32[64, 100]", body)
    f(m, k)
    if f:info()[1].interpreted then
      lu.skip "the interpreter stores everything"
    end
    return choices(f:explain())
  end
  lu.assertEquals(explained(function(x, _)
    return x - x:sum(1)
  end), { "stored        sum f32[100]: read through expand" })
  lu.assertEquals(explained(function(x, w)
    return x:softmax(2):matmul(w):matmul(x)
  end)[1], "stored        dot f32[64, 64]: operand of a contraction")
end

function TestLook:test_a_copy_of_a_cell_has_a_reason()
  local w = dc.param("f32[8, 8]", dc.ones "f32[8, 8]")
  local f = dc.fn("f() -> ()", function()
    w:set(w:transpose() * 2)
  end)
  f()
  if f:info()[1].interpreted then
    lu.skip "the interpreter has no plan"
  end
  lu.assertStrContains(f:explain(), "set by a copy")
  lu.assertStrContains(f:explain(), "its kernel reads the old value elsewhere than it writes")
end
