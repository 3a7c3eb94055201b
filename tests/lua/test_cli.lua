-- The program, run as a user runs it.
local lu = require "luaunit"

local program = require "tests.lua.program"

local run, script = program.run, program.script

TestProgram = {}

function TestProgram:test_code_and_version()
  lu.assertEquals({ run "-e 'print(1 + 1)'" }, { "2\n", 0 })
  local text, status = run "-v"
  lu.assertStrContains(text, "deepc 0.")
  lu.assertStrContains(text, "Lua 5.4")
  lu.assertEquals(status, 0)
end

function TestProgram:test_options_as_lua_has_them()
  lu.assertEquals({ run "-e 'x = 1' -e'print(x)'" }, { "1\n", 0 })
  lu.assertEquals({ run "-l S=string -e 'print(S.rep(\"a\", 3))'" }, { "aaa\n", 0 })
  lu.assertStrMatches((run "-v -e 'print(1)'"), "deepc [%d.]+, Lua 5.4[%d.]*\n1\n")
  lu.assertStrContains(run "-e", "-e needs an argument")
  lu.assertEquals({ run("-i", "echo '1 + 1' |") }, { "2\n", 0 })
  local path = script "print(...)"
  lu.assertEquals({ run("-e 'x = 1' -- " .. path .. " -v") }, { "-v\n", 0 })
  lu.assertEquals({ run("-i " .. path .. " a", "echo '#arg' |") }, { "a\n1\n", 0 })
  os.remove(path)
end

function TestProgram:test_script_with_arguments()
  local path = script 'print(arg[0] ~= nil, arg[1], #arg, ...) os.exit(3)'
  local text, status = run(path .. " a 'b c'")
  lu.assertEquals(text, "true\ta\t2\ta\tb c\n")
  lu.assertEquals(status, 3)
  os.remove(path)
end

-- What is not compared at each call is told.
function TestProgram:test_notes_about_captures()
  local path = script [[
    local dc = require "deepc"
    local list, o = {}, setmetatable({ k = 2, count = 0 }, {})
    for i = 1, 300 do list[i] = 1 end
    local f = dc.fn("f(x: f32[]) -> f32[]", function(x) return x * o.k * list[1] end)
    for i = 1, 20 do
      o.count = i
      f(1)
    end]]
  local text, status = run(path)
  lu.assertEquals(text:gsub("f, [^ ]*:", "f, PLACE:"), table.concat({
    "[note] f, PLACE: captured 'list' has 300 fields; more than 256 in all are compared at every 16th call only",
    "[note] f: captured 'o.count' changes without effect and no function that is traced names it: compared now and "
      .. "then from here on\n" }, "\n"))
  lu.assertEquals(status, 0)
  os.remove(path)
end

function TestProgram:test_numbers_are_checked_on_every_device()
  local path = script [[
    local dc = require "deepc"
    local w = dc.state("f32[3]", 1)
    local f = dc.fn("f(x: f32[3]) -> f32[]", function(x)
      w:set(w * 2)
      return (x:log() * 2 + w):sum()
    end)
    f { 1, 1, 1 }
    print(select(2, pcall(f, { 1, 0, 1 })).message:match "[^\n]*")
    print(w:totable()[1])]]
  for _, device in ipairs { "cpu", "eval", "sim:cpu", "sim:cuda", "cpu:cc" } do
    lu.assertStrContains(run(path, "DEEPC_CHECK=nan,1 DEEPC_DEVICE=" .. device),
      "5: log: -inf at 2, 1 of 3 elements, of f32[3] of 0 to 1; call 2 of 'f'\n2.0\n")
  end
  lu.assertStrContains((run("--options", "DEEPC_CHECK=nan")), "nan")
  lu.assertStrContains(run("-e 'x = 1'", "DEEPC_CHECK=inf"),
    "DEEPC_CHECK: not 0, 1 or 2, nan, or nan and one of them: nan,1")
  os.remove(path)
end

-- A script's own variables may have the names of Lua's functions.
function TestProgram:test_globals_of_a_script()
  local path = script [[
    local dc, nn, optim, data = require "deepc", require "deepc.nn", require "deepc.optim", require "deepc.data"
    type, next, table, string, select, math = "mlp", 5, {}, "x", 1, {}
    ipairs, pairs, tostring, pcall, error, setmetatable = nil
    local net = nn.Sequential { nn.Linear(4, 8), nn.Dropout(0.1), nn.ReLU(), nn.Linear(8, 3) }
    local opt = optim.Adam(net:parameters())
    local step = dc.fn("step(x: f32[8, 4], y: i32[8]) -> f32[]", function(x, y)
      local loss = nn.cross_entropy(net(x), y)
      opt:step(loss)
      return loss
    end)
    local set = data.set(dc.rand "f32[32, 4]", dc.iota "i32[32]" % 3)
    for x, y in dc.progress(set:batches { size = 8 }, { show = "off" }) do step(x, y) end
    dc.save(arg[1], net)
    dc.load(arg[1], net)
    print(#net:summary "f32[2, 4]" > 0, dc.options({ { "a", 1, "x" } }, { "--a", "2" }).a)
  ]]
  local saved = os.tmpname()
  lu.assertEquals({ run(path .. " " .. saved) }, { "true\t2\n", 0 })
  os.remove(path)
  os.remove(saved)
end

function TestProgram:test_standard_input()
  lu.assertEquals({ run("- x", "echo 'print(...)' |") }, { "x\n", 0 })
end

function TestProgram:test_lua_errors_have_a_traceback()
  local path = script "local function f() error 'oops' end\nf()\n"
  local text, status = run(path)
  lu.assertStrContains(text, "oops\nstack traceback:")
  lu.assertStrContains(text, ":1: oops")
  lu.assertEquals(status, 1)
  os.remove(path)
end

function TestProgram:test_errors_of_ours_are_printed_whole()
  local path = script 'local dc = require "deepc"\nlocal _ = dc.zeros "f32[2]" + dc.zeros "f32[3]"\n'
  local text, status = run(path)
  lu.assertStrContains(text, ":2: add: axis 1: 2 against 3\n")
  lu.assertStrContains(text, "[DC0301; deepc explain DC0301]")
  lu.assertNotStrContains(text, "stack traceback")
  lu.assertEquals(status, 1)
  os.remove(path)
end

function TestProgram:test_syntax_errors_and_missing_files()
  lu.assertEquals(select(2, run "-e 'x ='"), 1)
  local text, status = run "/nonexistent.lua"
  lu.assertStrContains(text, "/nonexistent.lua")
  lu.assertEquals(status, 1)
end

function TestProgram:test_unknown_option()
  local text, status = run "--fast x"
  lu.assertStrContains(text, "no option '--fast'")
  lu.assertEquals(status, 1)
end

function TestProgram:test_settings_of_the_environment()
  local text, status = run("-e 'print(1)'", "DEEPC_DEVICE=abacus")
  lu.assertStrContains(text, "abacus")
  lu.assertEquals(status, 1)
  text, status = run("-e 'print(1)'", "DEEPC_DEBUG=grpah")
  lu.assertStrContains(text, "no channel 'grpah'")
  lu.assertStrContains(text, "graph")
  lu.assertEquals(status, 1)
  text = run("-e 'print(require \"deepc\".stats().device)'", "DEEPC_DEVICE=eval")
  lu.assertEquals(text, "eval\n")
end

-- The same sums on every instruction set that the machine has, by the name of the device alone.
function TestProgram:test_instruction_sets()
  local path = script [[
local dc = require "deepc"
local f = dc.fn("f(x: f32[7, 300]) -> f32[7]", function(x) return (x * 2 + 1):sum(-1) end)
print(dc.stats().device, f(dc.iota("i32[2100]"):cast "f32":reshape(7, 300) % 5):sum():item())]]
  local sets = run("--devices"):match "instruction sets: ([^\n]*)"
  lu.assertStrContains(sets, "baseline")
  for set in sets:gmatch "%w+" do
    local devices = set == "baseline" and { "cpu:", "cpu:cc:" } or { "cpu:" }
    for _, device in ipairs(devices) do
      local text, status = run(path, "DEEPC_DEVICE=" .. device .. set)
      lu.assertStrContains(text, device .. set .. "\t10500.0\n")
      lu.assertEquals(status, 0)
    end
  end
  lu.assertStrContains(
    run(path, "DEEPC_DEVICE=cpu:sse9"),
    "no device is called 'cpu:sse9'; instruction sets are cpu:native, cpu:avx512, cpu:avx2, cpu:baseline"
  )
  lu.assertStrContains(run(path, "DEEPC_DEVICE=cpu:avx2 DEEPC_TARGET=baseline"), "DEEPC_TARGET: nothing, as")
end

-- A value without a meaning is an error that names the variable and says what it may be.
function TestProgram:test_settings_that_are_wrong()
  for setting, message in pairs {
    ["DEEPC_THREADS=two"] = "DEEPC_THREADS: not a whole number",
    ["DEEPC_THREADS=' 2'"] = "DEEPC_THREADS: not a whole number",
    ["DEEPC_THREADS=+2"] = "DEEPC_THREADS: not a whole number",
    ["DEEPC_THREADS=0x2"] = "DEEPC_THREADS: not a whole number",
    ["DEEPC_THREADS=010"] = "DEEPC_THREADS: not a whole number",
    ["DEEPC_SEED=9223372036854775808"] = "DEEPC_SEED: not a whole number",
    ["DEEPC_MEMORY=-1"] = "DEEPC_MEMORY: not a number of bytes",
    ["DEEPC_MEMORY=1MB"] = "DEEPC_MEMORY: not a number of bytes",
    ["DEEPC_MEMORY=9000000T"] = "DEEPC_MEMORY: not a number of bytes",
    ["DEEPC_THREADS=-3"] = "DEEPC_THREADS: a number of threads, or 0",
    ["DEEPC_PROGRESS=loud"] = "DEEPC_PROGRESS: 'auto', 'bar', 'lines' or 'off'",
    ["DEEPC_OPT=7"] = "DEEPC_OPT: 0, 1, 2 or 3",
    ["DEEPC_TUNE_SECONDS=0"] = "DEEPC_TUNE_SECONDS: a number of seconds from 1",
    ["DEEPC_CHECK=-1"] = "DEEPC_CHECK: 0, 1 or 2",
    ["DEEPC_GPU=fast"] = "DEEPC_GPU: 'wgmma', or nothing",
    ["DEEPC_MATH=fast"] = "DEEPC_MATH: 'strict' or 'tf32', 'ftz', one of them and 'ftz' with a comma, or nothing",
    ["DEEPC_COMPILE=later"] = "DEEPC_COMPILE: 'now', 'cache', 'process', 'off', or nothing",
    ["DEEPC_COMPARE=cpu"] = "DEEPC_COMPARE: only 'eval' can be compared with",
    ["DEEPC_SKIP=fusion"] = "DEEPC_SKIP: nothing is called 'fusion'; there are: ",
    ["DEEPC_SCHEDULE=/nonexistent"] = "/nonexistent: schedules cannot be read: No such file",
    ["DEEPC_DEVICE=sim:abacus"] = "there are sim:cpu, sim:cuda, sim:opencl\n  hint: deepc --devices tells",
    ["DEEPC_DEVICE=opencl DEEPC_OPENCL=/nonexistent"] = "opencl: /nonexistent: ",
  } do
    local text, status = run("-e 'print(1)'", setting)
    lu.assertStrContains(text, message)
    lu.assertEquals(status, 1)
  end
  -- TMPDIR is not a setting of deepc: one that is too long is ignored
  lu.assertEquals({ run("-e 'print(1)'", "TMPDIR=/" .. ("x"):rep(300)) }, { "1\n", 0 })
  local text, status = run("--options", "DEEPC_SEED=x")
  lu.assertStrContains(text, "DEEPC_SEED: not a whole number")
  lu.assertEquals(status, 1)
end

function TestProgram:test_without_a_compiler()
  local path = script [[
local dc = require "deepc"
local f = dc.fn("f(x: f32[4]) -> f32[]", function(x) return (x * 2):sum() end)
print(f(dc.ones "f32[4]"):item(), dc.stats().fallbacks)]]
  for _, compiler in ipairs { "cpu DEEPC_LLVM", "cpu:cc DEEPC_CC" } do
    local setting = ("DEEPC_DEVICE=%s=/nonexistent"):format(compiler)
    local text, status = run(path, setting)
    lu.assertStrContains(text, "[note] jit: f falls back to the interpreter: ")
    lu.assertStrContains(text, "/nonexistent")
    lu.assertStrContains(text, "8.0\t1\n")
    lu.assertEquals(status, 0)
  end
  os.remove(path)
end

function TestProgram:test_kernel()
  local path = script "kernel E_100(out0: f32[100] out, x0: f32[100]) {\n  for i in 100\n    out0[i] = neg(x0[i])\n}\n"
  local text, status = run("kernel " .. path .. " --target cuda --form schedule")
  lu.assertEquals({ text, status }, { "schedule E_100\n  block i\n", 0 })
  text, status = run("kernel " .. path .. " --target abacus")
  lu.assertStrContains(text, "no target 'abacus'; there are cpu, ")
  lu.assertEquals(status, 1)
  local empty = script("kernel E(out0: f32[6] out) {\n  for i in 6\n    for k in 0 reduce\n" ..
    "      out0[i] add= 1:f32\n}\n")
  text, status = run("kernel " .. empty)
  lu.assertEquals({ text, status }, { "deepc: " .. empty .. ": line 3: a loop of no iterations: k\n", 1 })
  os.remove(empty)
  text, status = run "kernel /nonexistent"
  lu.assertEquals({ text, status }, { "deepc: /nonexistent: No such file or directory\n", 1 })
  text, status = run "kernel"
  lu.assertStrContains(text, "usage: deepc kernel FILE")
  lu.assertEquals(status, 2)
  os.remove(path)
end

function TestProgram:test_a_compiler_that_hangs()
  local path = script [[
local dc = require "deepc"
local f = dc.fn("f(x: f32[4]) -> f32[]", function(x) return (x * 2):sum() end)
local g = dc.fn("g(x: f32[4]) -> f32[]", function(x) return (x * x):sum() end)
print(f(dc.ones "f32[4]"):item(), g(dc.ones "f32[4]"):item(), dc.stats().fallbacks)]]
  local compiler = script "#!/bin/sh\nexec sleep 600\n"
  os.execute("chmod 700 " .. compiler)
  local setting = "DEEPC_CACHE=off DEEPC_COMPILE=now DEEPC_COMPILE_SECONDS=1 DEEPC_DEVICE=cpu:cc DEEPC_CC=" .. compiler
  local text, status = run(path, setting)
  lu.assertStrContains(text, "did not end within 1 s, so it was ended and is not started again (DEEPC_COMPILE_SECONDS)")
  lu.assertStrContains(text, "8.0\t4.0\t2\n")
  lu.assertEquals(status, 0)
  os.remove(path)
  os.remove(compiler)
end

function TestProgram:test_devices_and_options()
  lu.assertStrContains((run "--devices"), "eval")
  lu.assertStrContains((run "--options"), "DEEPC_SEED")
end

function TestProgram:test_explain()
  local text, status = run "explain DC0301"
  lu.assertStrContains(text, "DC0301")
  lu.assertEquals(status, 0)
  text, status = run "explain"
  lu.assertStrContains(text, "DC0101")
  lu.assertStrContains(text, "DC0301")
  lu.assertEquals(status, 0)
  text, status = run "explain DC0302 DC3333"
  lu.assertStrContains(text, "# DC0302")
  lu.assertStrContains(text, "deepc: no error has the code 'DC3333'; the nearest are DC10")
  lu.assertEquals(status, 1)
  lu.assertEquals({ run "explain matmul" }, {
    "deepc: no error has the code 'matmul'; codes look like DC0301, deepc explain lists them\n", 1 })
end

function TestProgram:test_debug_channels()
  local path = script [[
local dc = require "deepc"
local f = dc.fn("f(x: f32[4]) -> f32[]", function(x) return (x * 2):sum() end)
print(f(dc.ones "f32[4]"):item())]]
  lu.assertEquals((run(path)), "8.0\n")
  local text = run(path, "DEEPC_DEVICE=cpu DEEPC_DEBUG=graph,time")
  lu.assertStrContains(text, "[graph]")
  lu.assertStrContains(text, "[time] f:")
  os.remove(path)
end

function TestProgram:test_a_state_that_closes_in_the_middle()
  -- finalizers that still make tensors while the state closes
  local path = script [[
local dc = require "deepc"
KEPT = setmetatable({}, { __gc = function() LATE = dc.ones "f32[10]" + 1 end })
local c = dc.state "f32[4]"
F = dc.fn("f(x: f32[4]) -> f32[4]", function(x) c:set(x) return x + c end)
R = F(dc.ones "f32[4]")
for _ in require "deepc.data".set(dc.ones "f32[4, 2]", dc.ones "i32[4]"):batches { size = 2 } do break end
print "ok"]]
  lu.assertEquals({ run(path) }, { "ok\n", 0 })
  os.remove(path)
end
