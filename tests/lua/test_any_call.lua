-- Every public function with arguments of every kind (any_call.lua), in a program of its own: no call ends it, and
-- none breaks a promise. One half of them is called with pairs, too, the other one where scripts may only compute.
-- DEEPC_SEED chooses other random calls, and by its parity which half is which.
local lu = require "luaunit"

local program, seed = arg[-1], math.tointeger(tonumber(os.getenv "DEEPC_SEED")) or 1
local here = io.popen("pwd"):read "l"

local function absolute(path) return path:sub(1, 1) == "/" and path or here .. "/" .. path end

local settings = "DEEPC_MEMORY=64M DEEPC_COMPILE=off DEEPC_CACHE=off DEEPC_THREADS=1"

-- Its output in a folder of its own, where strings that are taken for paths land; the end of the log where it failed.
local function run(more, times, pairs_too, share)
  local folder = os.tmpname()
  os.remove(folder)
  local call = ("%s %s '%s' '%s' %d %d %d %d"):format(settings, more, absolute(program),
    absolute "tests/lua/any_call.lua", seed, times, pairs_too, share)
  local in_folder = "mkdir '%s' && cd '%s' && %s < /dev/null 2> err; echo \"status $?\""
  local p <close> = assert(io.popen(in_folder:format(folder, folder, call)))
  local out = p:read "a"
  local last = ""
  if not out:find "status 0\n" then
    os.execute(("cd '%s' && %s log < /dev/null > /dev/null 2>&1"):format(folder, call))
    last = io.popen(("cd '%s'; tail -c 2000 err; echo; tail -n 1 log | cut -c1-400"):format(folder)):read "a"
  end
  os.execute(("rm -rf '%s'"):format(folder))
  return out, last
end

local function check(more, times, pairs_too, share)
  local out, last = run(more, times, pairs_too, share)
  lu.assertStrContains(out, "status 0\n", false, last)
  local functions, calls, messages = out:match "(%d+) functions, (%d+) calls, (%d+) messages"
  lu.assertTrue(tonumber(functions) > 450, out)
  lu.assertTrue(tonumber(calls) > (pairs_too == 1 and 40 or 30) * functions, out)
  lu.assertTrue(tonumber(messages) > calls // 2 and tonumber(messages) < tonumber(calls), out)
end

TestAnyCall = {}

function TestAnyCall:test_with_pairs() check("", 10, 1, seed % 2) end

function TestAnyCall:test_that_may_only_compute() check("DEEPC_ALLOW=compute", 5, 0, 1 - seed % 2) end
