-- Twice ten thousand calls that fail, under pcall and in coroutines: bodies of tests/mistakes and wrong calls of
-- every public function. Nothing is left of them: no buffer, no handle, no trace.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local data = require "deepc.data"
local golden = require "tests.lua.golden"

local seed = math.tointeger(tonumber(os.getenv "DEEPC_SEED")) or 1

-- A generator of its own: math.random is refused while a typed function is traced.
local state = seed
local function random(n)
  state = (state * 6364136223846793005 + 1442695040888963407) & math.maxinteger
  return 1 + (state >> 33) % n
end

local function pick(list)
  return list[random(#list)]
end

-- ---- what is called ----

-- Values are made into text, as print does; nothing is written.
local env = setmetatable({
  print = function(...)
    for i = 1, select("#", ...) do
      tostring((select(i, ...)))
    end
  end,
}, { __index = _G })

-- Programs, with the time that one run takes; not those that fail for want of a mesh, which others have declared.
local function programs()
  local fast, slow, names = {}, {}, {}
  for _, name in ipairs(golden.names()) do
    local text = golden.code(name)
    if not text:match "^%-%- %a+:" and not golden.pending[name] and not name:match "^ranks_no_mesh" then
      local chunk = assert(load(text, "@" .. name .. ".lua", "t", env))
      local start = os.clock()
      lu.assertFalse((pcall(chunk)), name)
      local list = os.clock() - start < 2e-3 and fast or slow
      list[#list + 1] = chunk
      names[chunk] = name
    end
  end
  return fast, slow, names
end

-- What would wait, write, read a data set or leave something on purpose.
local left_out = { print = true, save = true, fashion_mnist = true, seed = true, stats = true,
  ops = true, class = true }

-- Functions by name, of the modules and of tensors.
local function functions(x)
  local list = {}
  for _, module in ipairs { dc, nn, optim, data, getmetatable(x).__index } do
    if type(module) == "table" then
      for name, f in pairs(module) do
        local callable = type(f) == "function" or type(f) == "table" and getmetatable(f) and getmetatable(f).__call
        local named = type(name) == "string" and not left_out[name] and not name:find "^_" and not name:find "^write_"
        if named and callable then
          list[#list + 1] = { name = name, call = function(...) return f(...) end }
        end
      end
    end
  end
  for name, f in pairs(dc) do -- most are methods too
    if type(f) == "function" and not left_out[name] then
      list[#list + 1] = { name = name, call = function(t, ...) return t[name](t, ...) end }
    end
  end
  table.sort(list, function(a, b) return a.name < b.name end) -- the same order in every run
  return list
end

local function values()
  local closed, leaked = dc.ones "f32[2]", {}
  closed:close()
  pcall(dc.fn, "leak(x: f32[3]) -> f32[3]", function(x)
    leaked.x = x
    return x
  end)
  return {
    dc.ones "f32[2, 3]", dc.ones "f32[3]", dc.ones "f32[]", dc.zeros "i32[2]", dc.zeros "bool[2, 3]",
    dc.ones "f32[batch=2, 3]", dc.zeros "u8[0, 2]", dc.param("f32[3]", 1), dc.state("i32[]", 0), closed, leaked.x,
    nn.Linear(3, 2), dc.fn("f(x: f32[n]) -> f32[n]", function(x) return x + 1 end),
    0, 1, 2, -1, 3, 0.5, 1e300, math.huge, 0 / 0, math.mininteger, true, false, "x", "f32", "f32[2, 3]", "f32[",
    "f32[n]", "batch", "b i, i o -> b o", "", {}, { 1, 2 }, { { 1, 2 }, { 3 } }, { axis = 1 },
    { axis = 7, keep = true }, { unknown = 1 }, function() end, function() error "mine" end, io.stdout,
  }
end

-- ---- calling ----

-- As scripts meet errors: under pcall, in a coroutine that dies, in one that is left.
local ways = {
  pcall,
  function(f, ...)
    return coroutine.resume(coroutine.create(f), ...)
  end,
  function(f, ...)
    local args = table.pack(...)
    local co = coroutine.wrap(function()
      local ok, err = pcall(f, table.unpack(args, 1, args.n))
      coroutine.yield(ok, err) -- and it is never resumed
    end)
    return co()
  end,
  function(f, ...)
    return xpcall(f, function(e) return e .. "" end, ...)
  end,
}

local function collect()
  for _ = 1, 3 do
    collectgarbage()
  end
  local s = dc.stats()
  return { bytes = s.bytes_live, handles = s.handles, nodes = s.lazy_nodes }
end

TestLeaks = {}

function TestLeaks:setUp()
  dc.rand("f32[]"):item() -- the generator is a cell, made when it is first drawn from
end

function TestLeaks:test_programs()
  local fast, slow, names = programs()
  lu.assertTrue(#fast > 50)
  local before = collect()
  for i = 1, 10000 do
    local body = i % 300 == 0 and pick(slow) or pick(fast)
    local ok, err = pick(ways)(body)
    lu.assertFalse(ok, names[body])
    lu.assertNotStrContains(tostring(err), "broken promise")
  end
  lu.assertEquals(collect(), before)
  lu.assertEquals((dc.ones "f32[3]" + 1):sum():item(), 6)
end

function TestLeaks:test_wrong_calls()
  local pool = values()
  for i = 1, 9 do
    pool[i]:totable() -- computed now, not by one of the calls
  end
  local list = functions(pool[1])
  lu.assertTrue(#list > 100)
  collect()
  local before = collect()
  local failed, calls = 0, 0
  while failed < 10000 do
    local f = pick(list)
    calls = calls + 1
    lu.assertTrue(calls < 100000)
    local ok, err = pick(ways)(f.call, pick(pool), pick(pool), random(2) == 1 and pick(pool) or nil)
    if not ok then
      failed = failed + 1
      lu.assertNotStrContains(tostring(err), "broken promise", f.name)
    end
    err = nil -- luacheck: ignore
  end
  -- cells that were set have another value, of the same size; what was closed is no more
  local after = collect()
  lu.assertTrue(after.bytes <= before.bytes, ("%d bytes were live, now %d"):format(before.bytes, after.bytes))
  lu.assertTrue(after.handles <= before.handles, ("%d handles, now %d"):format(before.handles, after.handles))
  lu.assertEquals(#pool, #values())
end

-- Lua leaves such a coroutine as it is; the trace in it is over all the same.
function TestLeaks:test_a_trace_in_a_coroutine_that_died()
  dc.rand "f32[1]":close() -- the generator is made at the first draw
  local before = collect()
  local function die()
    local co = coroutine.create(function()
      dc.fn("f(x: f32[3]) -> f32[3]", function(x)
        return x + dc.ones "f32[2]"
      end)
    end)
    lu.assertFalse((coroutine.resume(co)))
    return co
  end
  local co = die()
  lu.assertEquals((dc.ones "f32[3]" * 2):sum():item(), 6) -- a value: nothing is traced
  lu.assertTrue(dc.rand("f32[2]"):totable()[1] < 1)
  lu.assertFalse((coroutine.close(co)))
  local outer = dc.fn("outer(x: f32[3]) -> f32[3]", function(x)
    die()
    return x * 3
  end)
  local inner = dc.fn("inner(x: f32[n]) -> f32[]", function(x)
    return x + dc.dim "n" -- another type than declared
  end)
  local around = dc.fn("around(x: f32[k]) -> f32[k]", function(x)
    coroutine.resume(coroutine.create(function() return inner(x) end))
    collectgarbage()
    return x + dc.dim "k"
  end)
  lu.assertEquals(around({ 1, 2, 3 }):totable(), { 4, 5, 6 })
  lu.assertEquals(outer({ 1, 2, 3 }):totable(), { 3, 6, 9 })
  outer, inner, around, co = nil, nil, nil, nil -- luacheck: ignore
  lu.assertEquals(collect(), before)
end
