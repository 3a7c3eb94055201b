-- Userdata of the library: scripts do not reach their metatables, and what a script does with the debug library
-- leads to a message.
local lu = require "luaunit"
local dc = require "deepc"

local function double() return dc.fn("f(x: f32[n]) -> f32[n]", function(x) return x * 2 end) end

-- One value of each kind that scripts hold, and the name that getmetatable gives.
local function kinds()
  local f = double()
  local traced = {}
  dc.fn("g(x: f32[2]) -> f32[2]", function(x) table.insert(traced, x) return x end) { 1, 2 }
  return {
    ["deepc.tensor"] = { dc.ones "f32[2]", dc.ones "f32[2]" * 2, dc.param("f32[2]", 1), dc.state("f32[2]", 1),
      traced[1] },
    ["deepc.fn"] = { f },
    ["deepc.job"] = { f:start { 1, 2 } },
    ["deepc.scope"] = { dc.scope() },
    ["deepc.static"] = { dc.static(1) },
  }
end

TestHidden = {}

function TestHidden:test_getmetatable_gives_the_name_of_the_type()
  for name, values in pairs(kinds()) do
    for _, v in ipairs(values) do
      lu.assertEquals(getmetatable(v), name)
      lu.assertFalse((pcall(setmetatable, v, {})))
      lu.assertEquals(debug.getmetatable(v).__name, name)
    end
  end
end

function TestHidden:test_error_values_show_a_copy()
  local _, e = pcall(function() return dc.ones "f32[2]" + dc.ones "f32[3]" end)
  lu.assertEquals(getmetatable(e).__tostring(e), tostring(e))
  getmetatable(e).__tostring = error
  lu.assertEquals(tostring(e), e.message)
  lu.assertFalse((pcall(setmetatable, e, nil)))
  e.message = nil
  lu.assertEquals(tostring(e), "an error of deepc without a message")
end

function TestHidden:test_the_registry_has_no_string_keys_of_ours()
  for key in pairs(debug.getregistry()) do
    lu.assertNotStrContains(tostring(key), "deepc")
  end
end

function TestHidden:test_objects_without_their_finalizer_cannot_be_made()
  -- What a script without the debug library could do once: take __gc away, make tensors, put it back.
  lu.assertErrorMsgContains("attempt to", function() getmetatable(dc.ones "f32[4]").__gc = nil end)
end

TestDebug = {}

-- Every value has its metatable taken for the length of f.
local function with_metatable(v, mt, f)
  local before = debug.getmetatable(v)
  debug.setmetatable(v, mt)
  local results = table.pack(pcall(f))
  debug.setmetatable(v, before)
  return table.unpack(results, 1, results.n)
end

function TestDebug:test_a_value_is_of_its_type_whatever_its_metatable_is()
  local f, x, s = double(), dc.ones "f32[2]", dc.scope()
  lu.assertTrue((with_metatable(x, nil, function() lu.assertEquals(f(x):totable(), { 2, 2 }) end)))
  for _, v in ipairs { x, f, s } do
    for _, other in ipairs { x, f, s } do
      if v ~= other then
        local ok = with_metatable(v, debug.getmetatable(other), function()
          local message = tostring(v)
          return message, v.shape, v(1)
        end)
        lu.assertFalse(ok)
      end
    end
  end
  local file = io.tmpfile()
  for _, v in ipairs { x, f, s } do
    local ok = with_metatable(file, debug.getmetatable(v), function() return tostring(file) .. #file:info() end)
    lu.assertFalse(ok)
  end
  file:close()
  s:close()
end

function TestDebug:test_finalizers_called_by_hand()
  local x, f = dc.ones "f32[2]", double()
  local gc = debug.getmetatable(x).__gc
  for _, v in ipairs { f, io.stdout, 1, "x", {}, print } do gc(v) end
  gc(nil)
  lu.assertEquals(x:totable(), { 1, 1 })
  gc(x)
  gc(x)
  lu.assertEquals(tostring(x), "(closed tensor)")
  lu.assertErrorMsgContains("closed tensor", function() return x + 1 end)
  lu.assertErrorMsgContains("DC0107", function() return x:sum() end)
  x:close()
  gc = debug.getmetatable(f).__gc
  for _ = 1, 4 do gc(f) end
  gc(x)
  lu.assertErrorMsgContains("a typed function is needed", f, { 1, 2 })
  lu.assertErrorMsgContains("a typed function is needed", tostring, f)
  local s = dc.scope()
  gc = debug.getmetatable(s).__gc
  gc(s)
  gc(s)
  lu.assertErrorMsgContains("a scope is needed", function() s:close() end)
end

function TestDebug:test_user_values_exchanged()
  for _, with in ipairs { false, 7, {}, { {} }, { io.stdout }, string.rep } do
    for n = 1, 4 do
      local f = double()
      f { 1, 2 }
      debug.setuservalue(f, with, n)
      for _, use in ipairs { function() f { 1, 2, 3 } end, function() f { 1, 2 } end, function() f:info() end,
        function() f:explain() end, function() f:kernels() end, function() f:source() end } do
        local ok, message = pcall(use)
        lu.assertTrue(ok or #tostring(message) > 0)
      end
    end
  end
  local k = dc.static(1)
  debug.setuservalue(k, 3, 2)
  lu.assertErrorMsgContains("has lost", function() k.value = 2 end)
end

function TestDebug:test_a_job_that_lost_its_user_values()
  for n = 1, 2 do
    local f = double()
    local job = f:start { 1, 2 }
    debug.setuservalue(job, nil, n)
    f = nil -- luacheck: ignore
    collectgarbage()
    collectgarbage()
    collectgarbage()
    local ok, message = pcall(job.result, job)
    lu.assertFalse(ok)
    lu.assertNotNil(tostring(message))
  end
end

function TestDebug:test_upvalues_exchanged()
  local x = dc.ones "f32[2]"
  for _, with in ipairs { false, 7, {}, io.stdout, x, print } do
    local sum = dc.ones
    local _, before = debug.getupvalue(sum, 1)
    debug.setupvalue(sum, 1, with)
    local ok, message = pcall(sum, "f32[2]")
    debug.setupvalue(sum, 1, before)
    lu.assertFalse(ok)
    lu.assertStrContains(tostring(message), "deepc is closed")
  end
  local index = debug.getmetatable(x).__index
  local _, methods = debug.getupvalue(index, 2)
  debug.setupvalue(index, 2, 7)
  local ok = pcall(function() return x.sum end)
  debug.setupvalue(index, 2, methods)
  lu.assertFalse(ok)
  lu.assertEquals(x:sum():item(), 2)
end

function TestDebug:test_entries_of_the_registry_taken_away()
  local program = arg[-1]
  local script = os.tmpname()
  local f <close> = assert(io.open(script, "w"))
  f:write [=[
    local dc = require "deepc"
    local nn, data = require "deepc.nn", require "deepc.data"
    local R, removed = debug.getregistry(), {}
    local keys = {}
    for k in pairs(R) do if type(k) == "userdata" then keys[#keys + 1] = k end end
    local function use()
      for _, step in ipairs {
        function() return dc.ones "f32[2]" * 2 + 1 end,
        function() return dc.fn("f(x: f32[n]) -> f32[n]", function(x) return x + math.abs(-1) end) { 1, 2 } end,
        function() return nn.Linear(2, 2)(dc.ones "f32[1, 2]") end,
        function() return dc.ones "f32[2]" + dc.ones "f32[3]" end,
        function() for _ in data.set(dc.ones "f32[4, 2]", dc.ones "f32[4]"):batches { size = 2 } do end end,
        function() local s <close> = dc.scope() return dc.static(1).value end,
        function() return require "deepc.plot" end,
        function() return tostring(dc.ones "f32[2]") end,
      } do pcall(step) end
      collectgarbage()
    end
    for i = 1, #keys do
      local before = R[keys[i]]
      for _, with in ipairs { false, 1, io.stdout } do
        R[keys[i]] = with or nil
        use()
        R[keys[i]] = before
      end
    end
    use()
    print "survived"
  ]=]
  f:close()
  local p <close> = assert(io.popen(("'%s' '%s' 2>&1; echo $?"):format(program, script)))
  local out = p:read "a"
  os.remove(script)
  lu.assertStrContains(out, "survived\n0\n")
end
