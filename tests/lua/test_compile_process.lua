-- DEEPC_COMPILE=process, as a user runs it: the same results as in the process, a note and the interpreter where the
-- compiler's process fails.
local lu = require "luaunit"

local program = require "tests.lua.program"

local quote, script = program.quote, program.script

local function run(settings, path)
  return program.run(path, "DEEPC_CACHE=off " .. settings)
end

local graphs = [[
local dc = require "deepc"
local f = dc.fn("f(x: f32[16, 33]) -> f32[16, 33]", function(x) return x:softmax(2) end)
local g = dc.fn("g(a: f32[17, 40], b: f32[40, 9]) -> f32[17, 9]", function(a, b) return a:matmul(b):tanh() end)
local h = dc.fn("h(x: f32[1000]) -> f32[]", function(x) return (x * x + 1):log():sum() end)
dc.seed(1)
local x, a, b, v = dc.randn "f32[16, 33]", dc.randn "f32[17, 40]", dc.randn "f32[40, 9]", dc.randn "f32[1000]"
local function bits(t)
  local out = {}
  for i, n in ipairs(t:totable()) do out[i] = ("%a"):format(n) end
  return table.concat(out)
end
print(bits(f(x):reshape "[528]"), bits(g(a, b):reshape "[153]"), ("%a"):format(h(v):item()))
print("fallbacks " .. dc.stats().fallbacks)]]

TestCompileProcess = {}

function TestCompileProcess:test_same_bits()
  local path = script(graphs)
  local inside = run("", path)
  lu.assertStrContains(inside, "fallbacks 0")
  local text, status = run("DEEPC_COMPILE=process", path)
  lu.assertEquals(text, inside)
  lu.assertEquals(status, 0)
  os.remove(path)
end

local two = [[
local dc = require "deepc"
local f = dc.fn("f(x: f32[4]) -> f32[]", function(x) return (x * 2):sum() end)
local g = dc.fn("g(x: f32[4]) -> f32[]", function(x) return (x * x):sum() end)
print(f(dc.ones "f32[4]"):item(), g(dc.ones "f32[4]"):item(), dc.stats().fallbacks)]]

-- A program in the place of ours; what the two functions give, with both fallen back.
local function with_compiler(lines, settings)
  local path, compiler = script(two), script("#!/bin/sh\n" .. lines .. "\n")
  os.execute("chmod 700 " .. compiler)
  local text, status = run(("DEEPC_COMPILE=process DEEPC_COMPILER=%s %s"):format(compiler, settings or ""), path)
  os.remove(path)
  os.remove(compiler)
  lu.assertEquals(status, 0)
  return text
end

function TestCompileProcess:test_one_that_hangs()
  local text = with_compiler("exec sleep 600", "DEEPC_COMPILE_SECONDS=1")
  lu.assertStrContains(text, "f falls back to the interpreter: cpu: the compiler's process did not answer within 1 s")
  lu.assertStrContains(text, "8.0\t4.0\t2\n")
end

function TestCompileProcess:test_one_that_crashes()
  local text = with_compiler "kill -9 $$"
  lu.assertStrContains(text, "the compiler's process was ended by signal 9 at a kernel")
  lu.assertStrContains(text, "8.0\t4.0\t2\n")
end

function TestCompileProcess:test_one_that_is_no_server()
  local other = "head -c 8 > /dev/null; echo 'usage: this is another program' >&0; sleep 9"
  lu.assertStrContains(with_compiler(other), "an answer that is none")
  lu.assertStrContains(with_compiler "exit 1", "ended with status 1")
end

-- Killed in the middle of its first kernel, the next one gets another process.
function TestCompileProcess:test_the_next_kernel_gets_another()
  local mark = os.tmpname()
  os.remove(mark)
  local once = ("if mkdir %s 2> /dev/null; then head -c 24 > /dev/null; kill -9 $$; fi\n"):format(mark)
  local text = with_compiler(once .. ('exec %s "$@"'):format(quote(program.path)))
  os.remove(mark)
  lu.assertStrContains(text, "was ended by signal 9 at a kernel")
  lu.assertStrContains(text, "8.0\t4.0\t1\n")
end

-- Without room for LLVM in the process, which inherits no more than the host gives it.
function TestCompileProcess:test_limits_of_the_process_alone()
  local text = with_compiler(('ulimit -v 100000; exec %s "$@"'):format(quote(program.path)))
  lu.assertStrContains(text, "8.0\t4.0\t2\n")
  lu.assertStrContains(text, "f falls back to the interpreter: cpu: ")
end

function TestCompileProcess:test_refused()
  local path = script "print(1)"
  local text, status = run("DEEPC_COMPILE=process DEEPC_ALLOW=compute", path)
  lu.assertStrContains(text, "compile: 'process', where no processes may be started (DC_ALLOW_COMPUTE)")
  lu.assertEquals(status, 1)
  text, status = run("DEEPC_COMPILE=process DEEPC_COMPILER=/nowhere/deepc", path)
  lu.assertStrContains(text, "there is no program '/nowhere/deepc' to compile with (DEEPC_COMPILER)")
  lu.assertEquals(status, 1)
  os.remove(path)
end

-- The part that is the server prints nothing and ends without a host.
function TestCompileProcess:test_the_server_without_a_host()
  local function serve(arguments)
    local p = assert(io.popen(quote(program.path) .. " --compile-server " .. arguments .. " < /dev/null 2>&1; echo $?"))
    local text = p:read "a"
    p:close()
    return text
  end
  lu.assertEquals(serve "'' x86_64-pc-linux-gnu '' 1", "0\n")
  lu.assertEquals(serve "nonsense", "2\n")
end
