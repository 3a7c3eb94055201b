-- Whatever of the library calls the script back, with callbacks that do what they should not: close the values in
-- use, call the same again, collect, raise, yield, start over in a coroutine. Each ends with a result or a message,
-- and the context goes on.
local lu = require "luaunit"
local dc = require "deepc"
local nn, optim, data = require "deepc.nn", require "deepc.optim", require "deepc.data"
local schedules = require "deepc.schedules"

-- ---- what is in use --------------------------------------------------------------------------

local function new_values()
  local v = { x = dc.ones "f32[2, 2]", y = dc.ones "f32[2, 2]" * 2, w = dc.param("f32[2, 2]", 1), k = dc.static(1) }
  v.captured = 1
  v.f = dc.fn("f(x: f32[n, 2]) -> f32[n, 2]", function(x) return x * v.captured end)
  v.lists = dc.fn("lists(x: f32[2, 2], l: {f32[2]}, o: {a: f32[], b: f32[]}) -> f32[2, 2]", function(x, l, o)
    return x * o.a + o.b + #l
  end)
  v.job = v.f:start(dc.ones "f32[2, 2]")
  v.layer = nn.Linear(2, 2)
  v.opt = optim.SGD({ v.w }, { lr = 0.1 })
  v.set = data.set(dc.ones "f32[6, 2]", dc.ones "f32[6]")
  v.t = { 1, 2, 3 }
  return v
end

-- What a callback does; `again` makes the call that it came from once more.
local deeds = {
  close = function(v)
    for _, name in ipairs { "x", "y", "w", "job" } do v[name]:close() end
    if v.scope then v.scope:close() end
    for _, x in ipairs(v.traced or {}) do x:close() end
  end,
  again = function(_, again) again() end,
  again_in_a_coroutine = function(_, again) coroutine.wrap(again)() end,
  collect = function()
    collectgarbage()
    collectgarbage()
  end,
  raise = function() error({}, 0) end,
  raise_ours = function() return dc.ones "f32[2]" + dc.ones "f32[3]" end,
  yield = function() coroutine.yield() end,
  change = function(v)
    for i = 1, 100 do v.t[i], v.t["k" .. i] = i, i end
    for i = 1, 100 do v.t[i], v.t["k" .. i] = nil, nil end
    v.captured, v.k.value = v.captured + 1, v.k.value + 1
  end,
  call = function(v) return v.f(dc.ones "f32[2, 2]"), v.f(v.x) end,
  set = function(v) v.w:set(v.w * 2) end,
  trace = function()
    dc.fn("g(x: f32[2]) -> f32[2]", function(x) return dc.remat(function(z) return z * 2 end)(x) end) { 1, 2 }
  end,
  leave_a_scope = function(v) v.scope = dc.scope() end,
  finish = function(v) return v.job:result() end,
  resurrect = function(v)
    setmetatable({ v.x, v.f, v.job }, { __gc = function(t) v.back = t end })
    collectgarbage()
  end,
}

-- A table whose every metamethod calls back.
local function asking(cb, value)
  local function f() cb() return value end
  local mt = { __index = f, __newindex = f, __len = f, __call = f, __eq = f, __lt = f, __le = f, __add = f, __mul = f,
    __concat = f, __unm = f, __close = f, __name = "Asking" }
  function mt.__tostring()
    cb()
    return "t"
  end
  function mt.__pairs(t)
    cb()
    return next, t
  end
  return setmetatable({}, mt)
end

local function traced(v, body) return dc.fn("h(x: f32[2, 2]) -> f32[2, 2]", body)(v.x) end

local calls = {
  -- tables taken for tensors, types, axes and options
  tensor = function(_, cb) return dc.tensor(asking(cb, 1)) end,
  tensor_of_type = function(_, cb) return dc.tensor({ asking(cb, 1), asking(cb, 1) }, "f32[2, 1]") end,
  add_to = function(v, cb) return asking(cb, 1) + v.x end,
  concat = function(v, cb) return v.x .. asking(cb, 1) end,
  sum = function(v, cb) return v.x:sum(asking(cb, 1)) end,
  sum_options = function(v, cb) return v.x:sum { axis = asking(cb, 1) } end,
  permute = function(v, cb) return v.x:permute(asking(cb, 1)) end,
  set = function(v, cb) v.w:set(asking(cb, asking(cb, 1))) end,
  param = function(_, cb) return dc.param("f32[2, 2]", asking(cb, asking(cb, 1))) end,
  random = function(_, cb) return dc.rand("f32[2]", asking(cb, 1)) end,
  grad = function(v, cb) return dc.grad((v.w * v.x):sum(), setmetatable({}, { __len = function() cb() return 1 end,
    __index = function() cb() return v.w end })) end,
  grad_options = function(v, cb) return dc.grad((v.w * v.x):sum(), v.w, asking(cb, "zero")) end,
  options = function(_, cb) return dc.options(asking(cb, 1), asking(cb, 1)) end,
  static = function(v, cb)
    v.k.value = asking(cb, 1)
    return tostring(dc.static(asking(cb, 1)))
  end,
  -- typed functions
  arguments = function(v, cb) return v.lists(v.x, asking(cb, { 1, 2 }), asking(cb, 1)) end,
  list = function(v, cb) return v.lists(v.x, setmetatable({}, { __len = function() cb() return 2 end,
    __index = function() cb() return { 1, 2 } end }), { a = 1, b = 2 }) end,
  check = function(v, cb) return v.f:check(asking(cb, 1)) end,
  start = function(v, cb) return v.lists:start(v.x, asking(cb, { 1, 2 }), { a = 1, b = 2 }) end,
  poll = function(v, cb) return v.job:poll(asking(cb, 1)), v.job:poll { ms = asking(cb, 1) } end,
  body = function(v, cb) return traced(v, function(x)
    v.traced = { x }
    cb()
    return x * 2
  end) end,
  body_of_a_cell = function(v, cb) return dc.fn("h(x: f32[2, 2]) -> f32[2, 2]", function(x)
    v.w:set(x * v.w)
    cb()
    return x * v.w
  end)(v.w) end,
  body_traced_again = function(v, cb)
    local h = dc.fn("h(x: f32[2, 2]) -> f32[2, 2]", function(x)
      if v.captured > 1 then cb() end
      return x * v.k.value
    end)
    h(v.x)
    v.captured = v.captured + 1
    return h(v.x), h(v.x)
  end,
  body_called_by_another = function(v, cb)
    local inner = dc.fn("i(x: f32[a, 2], l: {f32[2]}) -> {f32[a, 2]}", function(x, _)
      cb()
      return { x, x }
    end)
    return traced(v, function(x) return inner(x, { { 1, 2 }, { 3, 4 } })[1] end)
  end,
  results = function(v, cb) return dc.fn("h(x: f32[2, 2]) -> {f32[2, 2]}", function(x)
    return setmetatable({}, { __len = function() cb() return 2 end, __index = function() cb() return x end })
  end)(v.x) end,
  any_results = function(v, cb) return dc.fn("h(x: f32[2, 2]) ", function(x)
    cb()
    return x, x
  end)(v.x) end,
  print_inside = function(v, cb)
    local before = print
    print = cb -- luacheck: ignore
    local ok, err = pcall(traced, v, function(x)
      dc.print("x", x, asking(cb, 1))
      return x * 2
    end)
    print = before -- luacheck: ignore
    if not ok then error(err, 0) end
  end,
  print_of_a_job = function(v, cb)
    local h = dc.fn("h(x: f32[2, 2]) -> f32[2, 2]", function(x)
      dc.print(x, x)
      return x * 2
    end)
    local before = print
    print = cb -- luacheck: ignore
    v.job = h:start(v.x)
    local ok, err = pcall(v.job.result, v.job)
    print = before -- luacheck: ignore
    if not ok then error(err, 0) end
  end,
  custom_forward = function(v, cb) return traced(v, function(x)
    v.traced = { x }
    return dc.custom_grad(function(z)
      table.insert(v.traced, z)
      cb()
      return z * 1
    end, function(dy) return dy end)(x)
  end) end,
  custom_backward = function(v, cb) return traced(v, function(x)
    v.traced = { x }
    return dc.custom_grad(function(z) return z * 1 end, function(dy, y)
      v.traced = { x, dy, y }
      cb()
      return dy
    end)(x, v.w)
  end) end,
  remat = function(v, cb) return traced(v, function(x)
    return dc.remat(function(z)
      v.traced = { x, z }
      cb()
      return z * 2
    end)(x)
  end) end,
  remat_callable = function(v, cb) return dc.remat(asking(cb, v.x))(v.x) end,
  export = function(v, cb) return v.f:export("/dev/null", asking(cb, 1)) end,
  look = function(v, cb) return v.f[asking(cb, 1)] end,
  -- scopes
  scope = function(v, cb) return dc.scope(function()
    v.x = v.x * 2
    cb()
    return v.x, { v.y }
  end) end,
  scope_left = function(v, cb)
    local s <close> = dc.scope()
    v.scope, v.x = s, dc.ones "f32[2, 2]"
    local _ <close> = asking(cb, 1)
    return v.x + 1
  end,
  -- the modules that are written in Lua
  layer = function(v, cb)
    local Own = nn.class "Own"
    function Own:forward(x) -- luacheck: ignore
      v.traced = { x }
      cb()
      return x
    end
    local layer = Own()
    return layer(v.x), traced(v, function(x) return layer(x) end)
  end,
  sequence = function(v, cb) return nn.Sequential { v.layer, function(x)
    cb()
    return x
  end, v.layer }(v.x) end,
  layer_options = function(_, cb) return nn.Linear(2, 2, asking(cb, 1)), nn.Linear(asking(cb, 2), 2) end,
  step = function(v, cb) return v.opt:step((v.w * v.x):sum(), asking(cb, 1)) end,
  apply = function(v, cb) return v.opt:apply(asking(cb, v.x)) end,
  schedule = function(_, cb)
    local s = schedules.warmup(10, schedules.sequence { { 5, function() cb() return 1 end }, asking(cb, 1) })
    return s(1), s(11), s(asking(cb, 1))
  end,
  schedule_options = function(_, cb) return schedules.cosine(asking(cb, 1)) end,
  batches = function(v, cb)
    for x, y in v.set:batches { size = 2, last = "pad" } do
      v.x, v.y = x, y
      cb()
    end
    return v.x + 1
  end,
  batches_options = function(v, cb) return v.set:batches(asking(cb, 2)), v.set:restore(asking(cb, 1)) end,
  progress = function(_, cb)
    io.stderr = { write = function() cb() return true end } -- luacheck: ignore
    for _ in dc.progress(3, { show = "lines", every = 0 }) do cb() end
  end,
  progress_metrics = function(v, cb)
    io.stderr = { write = function() return true end } -- luacheck: ignore
    local function metrics() return { x = v.x:sum(), y = asking(cb, 1) } end
    for _ in dc.progress(setmetatable({}, { __call = function(_, _, i)
      cb()
      return (i or 0) < 3 and (i or 0) + 1 or nil
    end }), { show = "lines", every = 0, metrics = metrics }) do cb() end
  end,
  load = function(v, cb) return dc.load("/dev/null", asking(cb, v.w), asking(cb, 1)) end,
  checkpoint = function(v, cb)
    return dc.checkpoint("/dev/null", { a = asking(cb, v.w), w = v.w }):save(asking(cb, 1))
  end,
  -- texts and errors
  tostring = function(_, cb) return tostring(asking(cb, 1)), dc[asking(cb, 1)] end,
  error_value = function(v, cb)
    local _, err = pcall(function() return v.x + dc.ones "f32[3]" end)
    err.message, err.hint, err.code = asking(cb, "m"), asking(cb, "h"), asking(cb, "c")
    return err .. asking(cb, "x"), err == asking(cb, 1), #err
  end,
  error_raised = function(v, cb)
    local _, err = pcall(traced, v, function(_) error(asking(cb, 1)) end)
    return tostring(err)
  end,
}

-- ---- each with each --------------------------------------------------------------------------

local names, doings = {}, {}
for name in pairs(calls) do names[#names + 1] = name end
for name in pairs(deeds) do doings[#doings + 1] = name end
table.sort(names)
table.sort(doings)

local function too_long() error("too long", 0) end

-- The call in a coroutine of its own; resumed where it yields. Did it come back to the script, and its message.
local function run(call, deed, late)
  local v, depth, called = new_values(), 0, 0
  local function cb()
    called = called + 1
    if depth > 1 or called <= late then return end
    depth = depth + 1
    deeds[deed](v, function() return calls[call](v, cb) end)
    depth = depth - 1
  end
  local thread = coroutine.create(function() return calls[call](v, cb) end)
  debug.sethook(thread, too_long, "", 2000000)
  local ok, message
  for _ = 1, 5 do
    ok, message = coroutine.resume(thread)
    if not ok or coroutine.status(thread) == "dead" then break end
  end
  coroutine.close(thread)
  return called > 0, not ok and message or nil
end

local function check_message(what, message)
  if type(message) ~= "string" and getmetatable(message) == nil then return end -- raised by the callback
  local ok, text = pcall(tostring, message)
  if not ok then return end
  for _, words in ipairs { "broken promise", "DC09", "no failure", "too long", "not enough memory" } do
    lu.assertNotStrContains(text, words, false, what)
  end
end

local function check_context(what)
  local f = dc.fn("f(x: f32[n]) -> f32[n], f32[]", function(x) return x * 2, dc.grad((x * x):sum(), x):sum() end)
  local y, g = f { 1, 2 }
  lu.assertEquals({ y:totable(), g:item() }, { { 2, 4 }, 6 }, what)
end

-- The same deeds in finalizers that run at nearly every allocation, while the call runs undisturbed otherwise.
local function run_while_collecting(call, deed)
  local v, running, n = new_values(), true, 0
  local function chain()
    setmetatable({}, { __gc = function()
      if not running then return end
      n = n + 1
      if n < 200 then chain() end
      pcall(deeds[deed], v, function() end)
    end })
  end
  collectgarbage("incremental", 10, 400, 6)
  chain()
  chain()
  local message
  for _ = 1, 5 do
    local ok, err = pcall(calls[call], v, function() end)
    message = not ok and err or message
  end
  running = false
  collectgarbage("incremental", 200, 100, 13)
  return n, message
end

TestReenter = {}

local function silenced(f)
  local print_before, tmp = print, io.tmpfile()
  local stderr = io.stderr
  io.stderr, print = tmp, function() end -- luacheck: ignore
  local ok, err = pcall(f)
  io.stderr, print = stderr, print_before -- luacheck: ignore
  tmp:close()
  if not ok then error(err, 0) end
end

for _, deed in ipairs(doings) do
  TestReenter["test_" .. deed] = function()
    local silent = {}
    silenced(function()
      for _, call in ipairs(names) do
        for late = 0, 2 do
          local what = call .. ", " .. deed .. ", " .. late
          local back, message = run(call, deed, late)
          if not back and not silent[call] then silent[call] = tostring(message) end
          check_message(what, message)
        end
      end
      check_context(deed)
    end)
    lu.assertEquals(silent, {})
  end
end

TestFinalizersMeanwhile = {}

for _, deed in ipairs { "call", "change", "close", "finish", "leave_a_scope", "set", "trace" } do
  TestFinalizersMeanwhile["test_" .. deed] = function()
    local ran = 0
    silenced(function()
      for _, call in ipairs(names) do
        local n, message = run_while_collecting(call, deed)
        ran = ran + n
        check_message(call .. ", " .. deed, message)
      end
      check_context(deed)
    end)
    lu.assertTrue(ran > 10, ran)
  end
end
