-- Lua frees a userdata also where its finalizer could not be called: 200 C calls deep, or at the end of its stack. What
-- the userdata stood for is then given back by the next whole collection; nothing refers to freed memory before.

local lu = require "luaunit"
local dc, data = require "deepc", require "deepc.data"
local program = require "tests.lua.program"

local function collect_deep(n)
  if n == 0 then
    collectgarbage()
    return "x"
  end
  return (("a"):gsub("a", function() return collect_deep(n - 1) end))
end

-- Makes garbage, and collects it at each depth near the end of the C stack.
local function lose(make)
  for depth = 150, 200 do
    make()
    pcall(collect_deep, depth)
  end
  collectgarbage()
end

-- A whole collection of deepc's own: more is held than it lets pile up.
local large = dc.fn("large() -> f32[10000000]", function() return dc.zeros "f32[10000000]" end)
local function whole()
  local before, held = dc.stats().collections, {}
  while dc.stats().collections == before do held[#held + 1] = large() end
  for _, t in ipairs(held) do t:close() end
end

local folder = os.tmpname()
os.remove(folder)

local function write(name, text)
  local path = folder .. name
  local f <close> = assert(io.open(path, "wb"))
  f:write(text)
  return path
end

local makers = {
  tensors = function()
    for i = 1, 40 do dc.tensor({ i, 2 }, "f32[2]"):totable() end
  end,
  cells = function()
    for i = 1, 10 do dc.param("f32[2]", dc.full("f32[2]", i)) end
  end,
  functions = function()
    for i = 1, 4 do dc.fn("f(x: f32[n]) -> f32[n]", function(x) return x + i end) end
  end,
  specialisations = function()
    local f = dc.fn("f(x: f32[n]) -> f32[n]", function(x) return x * 2 end)
    f { 1, 2 }
  end,
  jobs = function()
    local f = dc.fn("f(x: f32[2]) -> f32[2]", function(x) return x * 2 end)
    f:start { 1, 2 }
  end,
  batches = function()
    local set = data.set { x = dc.ones "f32[20, 4]" }
    for _ = 1, 4 do
      for x in set:batches { size = 5, shuffle = true } do
        if x then break end
      end
    end
  end,
  scopes = function()
    for _ = 1, 10 do dc.scope() end
  end,
  statics = function()
    for i = 1, 10 do dc.static(i).value = i + 1 end
  end,
  texts = function()
    data.read_csv(write("a.csv", "x,y\n1,2\n3,4\n"))
  end,
  files = function()
    local path = write("a.safetensors", "")
    dc.save(path, { x = dc.ones "f32[2]" })
    dc.load(path)
  end,
}

TestLost = {}

for name, make in pairs(makers) do
  TestLost["test_" .. name] = function()
    make() -- what is made once
    whole()
    local before = dc.stats()
    lose(make)
    whole()
    whole()
    local after = dc.stats()
    lu.assertTrue(after.handles <= before.handles)
    lu.assertTrue(after.bytes_live <= before.bytes_live + 4096)
    make()
    lu.assertEquals((dc.tensor { 1, 2 } * 2):totable(), { 2, 4 })
  end
end

-- The others may be closed in time by what made them.
function TestLost:test_that_some_were_lost()
  local before = dc.stats().lost
  lose(makers.tensors)
  whole()
  lu.assertTrue(dc.stats().lost > before)
end

-- A finalizer that could not be called is not called later: the value that another finalizer brought back is closed.
function TestLost.test_brought_back()
  local back = {}
  local function make()
    local t = dc.tensor({ 1, 2 }, "f32[2]")
    t:totable()
    setmetatable({ t }, { __gc = function(self) back[#back + 1] = self[1] end })
  end
  lose(function() for _ = 1, 10 do make() end end)
  whole()
  whole()
  lu.assertTrue(#back > 0)
  for i = 1, #back do
    local ok, value = pcall(function() return back[i]:totable() end)
    lu.assertTrue(not ok or #value == 2)
  end
end

-- What is to be closed cannot be, where a coroutine that died in a trace is closed at the end of the C stack.
function TestLost.test_traces_of_dead_coroutines()
  local function deep(n, f)
    if n == 0 then return f() end
    return (("a"):gsub("a", function()
      deep(n - 1, f)
      return "x"
    end))
  end
  local refused = 0
  for n = 150, 199 do
    local f = dc.fn("f(x: f32[n]) -> f32[n]", function(x)
      local scope <close> = dc.scope()
      dc.scan(function(sum, v)
        if n % 2 == 0 then error "in a body" end
        return sum + v, scope and sum
      end, dc.zeros "f32[]", x)
      error "in a trace"
    end)
    local co = coroutine.create(function() f(dc.ones "f32[3]") end)
    coroutine.resume(co)
    if not pcall(deep, n, function() coroutine.close(co) end) then refused = refused + 1 end
    co = nil -- luacheck: ignore
    collectgarbage()
    local g = dc.fn("g(x: f32[n]) -> f32[n]", function(x) return x + n end)
    lu.assertEquals(g(dc.ones "f32[2]"):totable(), { n + 1, n + 1 })
  end
  lu.assertTrue(refused > 0)
end

-- What waits for the collector is little: of short-lived results some hundred, whatever has been held at once before.
-- The script does nothing else, since all that Lua holds sets the pace.
function TestLost:test_pace()
  local script = program.script [[
    local dc = require "deepc"
    local f, x = dc.fn("f(x: f32[4]) -> f32[4]", function(x) return x + 1 end), dc.ones "f32[4]"
    local most = 0
    for i = 1, 20000 do
      f(x)
      if i % 100 == 0 then most = math.max(most, dc.stats().handles) end
    end
    print(most < 1000 or most)
  ]]
  local text, status = program.run(script, "DEEPC_COMPILE=off")
  os.remove(script)
  lu.assertEquals(text .. status, "true\n0")
end

function TestLost:tearDown()
  os.remove(folder .. "a.csv")
  os.remove(folder .. "a.safetensors")
end
