-- What the cache on disk gives back names the lines of the script that asks, not of the one that was compiled.
local lu = require "luaunit"

local program = require "tests.lua.program"

-- Statements of one function, each on a line of its own or behind the one before.
local statements = { "local y = x:exp()", "local z = y * 2", "local a = z:sum(2)", "local b = (z + y):sum(1)",
  "local c = dc.scan(function(c, v)", "local d = (c + v):tanh()", "return d * 0.5", "end, dc.zeros 'f32[7]', x)" }

local function text_of(breaks)
  local body = {}
  for i, s in ipairs(statements) do
    body[i] = s .. ((breaks >> (i - 1)) & 1 == 1 and "\n" or " ")
  end
  return ([[
local dc = require "deepc"
local f = dc.fn("f(x: f32[64, 7]) -> f32[64], f32[7], f32[7]", function(x) %s return a, b, c end)
f(dc.ones "f32[64, 7]")
for line in f:report "json":gmatch '"where": *("[^"]*")' do print(line) end
for line in f:explain():gmatch "[%%w_.]+:%%d+" do print(line) end]]):format(table.concat(body))
end

TestCachedLines = {}

function TestCachedLines:test_the_same_graph_on_other_lines()
  local folder, path = os.tmpname(), program.script ""
  os.remove(folder)
  local seed = math.tointeger(tonumber(os.getenv "DEEPC_TEST_SEED")) or os.time()
  math.randomseed(seed)
  for i = 1, 6 do
    local breaks = i == 1 and 0 or math.random(0, 255)
    local f <close> = assert(io.open(path, "w"))
    f:write(text_of(breaks))
    f:close()
    local want = program.run(path, "DEEPC_CACHE=off")
    local got = program.run(path, "DEEPC_CACHE=" .. folder)
    lu.assertStrContains(want, ":2")
    lu.assertEquals(got, want, ("seed %d, breaks %d"):format(seed, breaks))
  end
  os.remove(path)
  os.execute("rm -rf " .. folder)
end
