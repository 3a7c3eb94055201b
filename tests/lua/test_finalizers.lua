-- Finalizers and metamethods of scripts that call, close, set and trace in the middle of what the
-- library does: a value or an error, never a crash, and nothing is left over.
local lu = require "luaunit"
local dc = require "deepc"

local program = require "tests.lua.program"

-- Runs a script of its own, up to the end of its state; output and errors together, and the status.
local function run(text, how)
  local path = program.script(text)
  local said, status = program.run((how or "") .. " " .. path)
  os.remove(path)
  return said, status
end

TestClosing = {}

function TestClosing:test_a_typed_function_called_after_its_own_finalizer()
  local said, status = run [[
    local dc = require "deepc"
    local f
    T = setmetatable({}, { __gc = function()
      print(f({ 1, 2 }):totable()[2], tostring(f), #f:info(), #f:kernels())
    end })
    f = dc.fn("f(x: f32[n]) -> f32[n]", function(x) return x * 2 end)
    f { 1, 2, 3 }
  ]]
  lu.assertStrContains(said, "4.0\tf(x: f32[n]) -> f32[n]\t2\t")
  lu.assertEquals(status, 0)
end

function TestClosing:test_what_is_made_while_the_state_closes()
  local said, status = run [[
    local dc = require "deepc"
    T = setmetatable({}, { __gc = function()
      local f = dc.fn("f(x: f32[n]) -> f32[n]", function(x) return x * 2 end)
      print(f({ 1, 2 }):totable()[2], #f:explain() > 0)
      local p = dc.param("f32[2]", 1)
      p:set(p + 1)
      print(p, dc.randn "f32[2]".dtype, dc.scope() ~= nil, dc.static(3).value)
    end })
  ]]
  lu.assertStrContains(said, "4.0\ttrue")
  lu.assertStrContains(said, "f32\ttrue\t3")
  lu.assertEquals(status, 0)
end

function TestClosing:test_exit_while_a_body_is_traced_in_a_coroutine()
  local said, status = run [[
    local dc = require "deepc"
    local x = dc.ones "f32[2]"
    T = setmetatable({}, { __gc = function() print(pcall(function() return (x * 2):sum():item() end)) end })
    dc.fn("f(x: f32[2]) -> f32[2]", function(x)
      coroutine.wrap(function() os.exit(3, true) end)()
      return x
    end)
  ]]
  lu.assertEquals({ said, status }, { "true\t4.0\n", 3 })
end

dc.generator() -- is made when it is first asked for

function TestClosing:test_an_error_value_whose_text_raises()
  local raising = "setmetatable({}, { __tostring = function() error(%s) end })"
  local text = "error(" .. raising:format(raising:format '"inner"') .. ")"
  local said, status
  for _, script in ipairs { text, "error(" .. raising:format '"inner"' .. ")" } do
    lu.assertEquals({ run(script) }, { "deepc: (error object is a table value)\n", 1 })
  end
  lu.assertEquals({ run("local t = " .. raising:format '"inner"' .. " t.message = 'm' error(t)") }, { "deepc: m\n", 1 })
  lu.assertEquals({ run(text .. "\n1 + 1\n", "-i <") }, { "(error object is a table value)\n2\n", 0 })
  said, status = run(text, "check")
  lu.assertStrContains(said, "(error object is a table value)")
  lu.assertEquals(status, 1)
end

TestFinalizers = {}

function TestFinalizers:test_a_typed_function_brought_back()
  local back
  do
    local f = dc.fn("f(x: f32[n]) -> f32[n]", function(x) return x * 2 end)
    f { 1, 2 }
    setmetatable({ f = f }, { __gc = function(t) back = t.f end })
  end
  collectgarbage()
  collectgarbage()
  collectgarbage()
  lu.assertEquals(back({ 1, 2 }):totable(), { 2, 4 })
  collectgarbage()
  lu.assertEquals(back({ 1, 2, 3 }):totable(), { 2, 4, 6 })
  lu.assertEquals(getmetatable(back), "deepc.fn")
end

-- Finalizers run in the opposite order of their making: what a table refers to has lost its own when the table's runs.
function TestFinalizers:test_texts_of_what_is_gone()
  local texts = {}
  do
    local t = setmetatable({}, { __gc = function(t)
      for name, v in pairs(t) do texts[name] = tostring(v) end
    end })
    local f = dc.fn("f(x: f32[2]) -> f32[2]", function(x) return x * 2 end)
    t.job, t.scope, t.tensor, t.static, t.fn = f:start { 1, 2 }, dc.scope(), dc.ones "f32[2]", dc.static(2), f
    t.scope:close()
  end
  for _ = 1, 3 do collectgarbage() end
  lu.assertEquals({ texts.job, texts.scope }, { "job (gone)", "scope (gone)" })
  for _, name in ipairs { "tensor", "static", "fn" } do lu.assertIsString(texts[name]) end
end

-- Calls f with a tensor and a table whose fields close it when they are asked for.
local function closing(f, value)
  local x = dc.ones "f32[2, 2]" * 2
  local function close()
    x:close()
    return value
  end
  return pcall(f, x, setmetatable({}, { __len = function() return close() and 1 end, __index = close }))
end

function TestFinalizers:test_tensors_closed_while_arguments_are_read()
  for _, f in ipairs {
    function(x, t) return x:sum(t) end,
    function(x, t) return x:permute(t) end,
    function(x, t) return x:reshape(t) end,
    function(x, t) return x:take(t, 1) end,
    function(x, t) return x:flip(t) end,
    function(x, t) return x:put({ 1 }, t) end,
    function(x, t) return x:softmax(t) end,
    function(x, t) return dc.fn("f(a: f32[2, 2], y: f32[1]) -> f32[2, 2]", function(a, y) return a * y end)(x, t) end,
  } do
    local ok, message = closing(f, 1)
    lu.assertFalse(ok)
    lu.assertStrMatches(tostring(message), ".*%[DC0%d%d%d;.*")
  end
  lu.assertEquals(dc.ones("f32[2]"):sum():item(), 2.0)
end

function TestFinalizers:test_lengths_that_are_none()
  local function long(n) return setmetatable({}, { __len = function() return n end }) end
  local f = dc.fn("f(x: f32[], l: {f32[2]}) -> f32[]", function(x, l) return x + #l end)
  lu.assertEquals(f(1, long(-1)):item(), 1.0)
  for _, call in ipairs {
    function() f(1, long(1 << 40)) end,
    function() f:check { l = 1 << 40 } end,
    function() f:check { l = 5000 } end,
    function() dc.grad((dc.param("f32[]", 1) * 2):sum(), long(-3)) end,
    function() dc.grad((dc.param("f32[]", 1) * 2):sum(), long(1 << 40)) end,
  } do
    local ok, message = pcall(call)
    lu.assertFalse(ok)
    lu.assertStrContains(tostring(message), "DC0101")
  end
  lu.assertErrorMsgContains("out of memory", function()
    return tostring(dc.ones("f32[4]"):pad { { 10 ^ 18 // 1 | 0, 10 ^ 18 // 1 | 0 } })
  end)
end

function TestFinalizers:test_a_cell_closed_while_it_is_set()
  local p = dc.param("f32[2]", 1)
  local t = setmetatable({}, { __len = function() return 2 end, __index = function(_, i) p:close() return i end })
  local ok, message = pcall(p.set, p, t)
  lu.assertFalse(ok)
  lu.assertStrContains(tostring(message), "DC0107")
end

-- Runs f while objects die at nearly every allocation, whose finalizers call `action`.
local function while_collecting(action, f)
  local running, n = true, 0
  local function chain()
    setmetatable({}, { __gc = function()
      if not running then return end
      n = n + 1
      pcall(action)
      chain()
    end })
  end
  collectgarbage("incremental", 10, 400, 6)
  collectgarbage()
  chain()
  chain()
  local ok, message = pcall(f)
  running = false
  collectgarbage("incremental", 200, 100, 13)
  collectgarbage()
  lu.assertTrue(ok, tostring(message))
  lu.assertTrue(n > 0)
end

function TestFinalizers:test_messages_survive_the_finalizers_that_run_while_they_are_made()
  local a, b = dc.ones "f32[2]", dc.ones "f32[3]"
  while_collecting(function() return (a * 2):sum():item() end, function()
    for _ = 1, 20 do
      local ok, message = pcall(function() return a + b end)
      lu.assertFalse(ok)
      lu.assertStrContains(tostring(message), "DC0301")
    end
  end)
end

function TestFinalizers:test_a_function_called_by_finalizers_while_it_is_called()
  local k = dc.static(1)
  local f = dc.fn("f(x: f32[n], s: f32[]) -> f32[n]", function(x, s) return x * s * k.value end)
  local wrong = 0
  while_collecting(function()
    local y = f({ 5, 6, 7 }, 3)
    wrong = wrong + (y:totable()[3] == 21 and 0 or 1)
  end, function()
    for i = 1, 20 do
      lu.assertEquals(f(dc.tensor { i, 2 }, 2):totable(), { 2 * i, 4 })
    end
  end)
  lu.assertEquals(wrong, 0)
end

-- A trace ends with values to be closed, when Lua's stack may move: Lua 5.4.4 itself would lose its place.
function TestFinalizers:test_a_function_traced_again_while_it_is_traced()
  local n, x = 1, dc.ones "f32[2]"
  local f = dc.fn("f(v: f32[2]) -> {f32[2]}", function(v)
    local t = {}
    for i = 1, n do t[i] = v * i end
    return t
  end)
  lu.assertEquals(#f(x), 1)
  while_collecting(function()
    n = n % 180 + 67
    f(x)
  end, function()
    for _ = 1, 100 do
      local ok, message = pcall(f, x)
      if not ok then lu.assertStrMatches(tostring(message), ".*captured local 'n'.*") end
    end
  end)
  n = 1
  lu.assertEquals(f(x)[1]:totable(), { 1, 1 })
end

function TestFinalizers:test_random_actions_in_finalizers()
  local state = math.tointeger(tonumber(os.getenv "DEEPC_SEED")) or 1
  local function random(n)
    state = (state * 6364136223846793005 + 1442695040888963407) & math.maxinteger
    return 1 + (state >> 33) % n
  end
  collectgarbage()
  collectgarbage()
  local before = dc.stats()
  local pool, fns, cfg, k = {}, {}, { a = 1, b = { c = 2 } }, dc.static(1)
  local function any() return pool[random(#pool)] end
  local function body(x, n)
    local y = x * n
    pcall(function() y = y + any() end)
    if random(3) == 1 then pcall(function() y = y * k.value + cfg.a * cfg.b.c end) end
    if random(3) == 1 then pcall(function() any():set(y) end) end
    if random(4) == 1 then pcall(function() y = fns[random(4)](y, n) end) end
    if random(9) == 1 then error "body" end
    return y
  end
  local actions = {
    function() any():close() end,
    function() pool[random(10)] = dc.param("f32[2, 3]", 1) end,
    function() pool[random(10)] = dc.randn "f32[2, 3]" + any() end,
    function() any():set(any()) end,
    function()
      local parameter = random(2) == 1 and "n: f32[]" or "n"
      fns[random(4)] = dc.fn(("f(x: f32[a, b], %s) -> f32[a, b]"):format(parameter),
        function(x, n) return body(x, n) end)
    end,
    function() return tostring(any()) end,
    function() k.value = random(3) end,
    function() cfg.a, cfg.b.c = random(2), random(2) end,
    function() fns[random(4)]:explain() end,
    function() local w = dc.param("f32[2, 3]", 1) return tostring(dc.grad((w * any()):sum(), w)) end,
    function() pool[random(10)] = fns[random(4)](any(), random(2)) end,
  }
  local function act() return actions[random(#actions)]() end
  for i = 1, 10 do
    pool[i] = dc.ones "f32[2, 3]" * i
  end
  for i = 1, 4 do
    fns[i] = dc.fn("z(x: f32[a, b], n: f32[]) -> f32[a, b]", function(x, n) return x * n end)
  end
  while_collecting(act, function()
    for _ = 1, 60 do
      local ok, message = pcall(act)
      lu.assertNotStrContains(ok and "" or tostring(message), "no failure")
    end
  end)
  pool, fns = nil, nil
  for _ = 1, 6 do collectgarbage() end
  local after = dc.stats()
  lu.assertEquals(after.handles, before.handles)
  if os.getenv "DEEPC_LAZY" == "eval" then -- elsewhere kernels of lazy expressions are kept, with their temporaries
    lu.assertEquals(after.bytes_live, before.bytes_live)
  end
end

TestPrintInside = {}

function TestPrintInside:test_a_dc_print_that_raises_shows_nothing()
  local f = dc.fn("f(x: f32[2], y: f32[2]) -> f32[2]", function(x, y)
    pcall(dc.print, x, setmetatable({}, { __tostring = function() error "no" end }))
    local c = dc.ones "f32[2]"
    c:close()
    pcall(dc.print, x, c)
    dc.print(y)
    return x
  end)
  local lines, print_before = {}, print
  print = function(v) lines[#lines + 1] = tostring(v:sum():item()) end -- luacheck: ignore
  f({ 1, 2 }, { 3, 4 })
  print = print_before -- luacheck: ignore
  lu.assertEquals(lines, { "7.0" })
end
