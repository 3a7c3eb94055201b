-- The page of deepc.viz: its data as JSON, beside what f:kernels() and f:info() say; the option --viz.
local lu = require "luaunit"
local dc = require "deepc"
local nn, optim = require "deepc.nn", require "deepc.optim"
local viz = require "deepc.viz"
local write_json = require("deepc.json").write
local program = require "tests.lua.program"

local function to_json(v)
  return write_json(v, "list")
end

-- ---- a reader ----

local from_json

local escapes = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t", ['"'] = '"', ["\\"] = "\\", ["/"] = "/" }

local function read_string(s, at)
  local parts = {}
  while true do
    local text, stop, after = s:match('^([^"\\]*)(["\\])()', at)
    parts[#parts + 1] = text
    if stop == '"' then
      return table.concat(parts), after
    end
    local kind = s:sub(after, after)
    if kind == "u" then
      parts[#parts + 1] = utf8.char(tonumber(s:sub(after + 1, after + 4), 16))
      at = after + 5
    else
      parts[#parts + 1] = assert(escapes[kind])
      at = after + 1
    end
  end
end

local function read_list(s, at)
  local list = {}
  while s:sub(at, at) ~= "]" do
    list[#list + 1], at = from_json(s, at)
    at = s:match("^,?()", at)
  end
  return list, at + 1
end

local function read_object(s, at)
  local t = {}
  while s:sub(at, at) ~= "}" do
    local key
    key, at = read_string(s, at + 1)
    assert(s:sub(at, at) == ":")
    t[key], at = from_json(s, at + 1)
    at = s:match("^,?()", at)
  end
  return t, at + 1
end

function from_json(s, at)
  local c = s:sub(at, at)
  if c == '"' then
    return read_string(s, at + 1)
  elseif c == "[" then
    return read_list(s, at + 1)
  elseif c == "{" then
    return read_object(s, at + 1)
  end
  local word, after = s:match("^([%w%.+-]+)()", at)
  local words = { ["true"] = true, ["false"] = false, null = "null" }
  if words[word] ~= nil then
    return words[word], after
  end
  return assert(tonumber(word)), after
end

local function data_of(path)
  local f <close> = assert(io.open(path, "rb"))
  local page = f:read "a"
  local json = assert(page:match '<script type="application/json" id="data">(.-)</script>')
  local data, after = from_json(json, 1)
  lu.assertEquals(after, #json + 1)
  return data, page
end

local function write()
  local path = os.tmpname()
  viz.write(path)
  local data, page = data_of(path)
  os.remove(path)
  return data, page
end

local function find(data, name)
  local found
  for _, f in ipairs(data.functions) do
    found = f.name == name and f or found
  end
  return assert(found, name)
end

local function text(data, number)
  return data.strings[number + 1]
end

viz.start()

-- ---- JSON ----

function testJsonOfAnyBytes()
  local bytes = {}
  for i = 0, 255 do
    bytes[#bytes + 1] = string.char(i)
  end
  local hard = "</script><!-- \u{2028} & \u{1F600}"
  local s = to_json { a = table.concat(bytes), b = hard, c = { 1, 2.5, 0 / 0, true }, d = {} }
  lu.assertNotNil(utf8.len(s))
  lu.assertNil(s:find("[<&]"))
  local back = from_json(s, 1)
  lu.assertEquals(back.b, hard)
  lu.assertEquals(back.a:sub(1, 128), table.concat(bytes, "", 1, 128))
  lu.assertEquals(back.a:sub(129), ("\u{FFFD}"):rep(128))
  lu.assertEquals(back.c, { 1, 2.5, "null", true })
  lu.assertEquals(back.d, {})
end

function testJsonOfCutUtf8()
  lu.assertEquals(from_json(to_json { a = "x\xe2\x82y\xffz\xc3" }, 1).a, "x\u{FFFD}\u{FFFD}y\u{FFFD}z\u{FFFD}")
end

-- ---- a training step ----

local function train()
  local net = nn.Sequential { nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3) }
  local opt = optim.Adam(net:parameters(), { lr = 1e-2 })
  local step = dc.fn("viz_step(x: f32[6, 4], y: i32[6]) -> f32[]", function(x, y)
    local loss = nn.cross_entropy(net(x), y)
    opt:step(loss)
    return loss
  end)
  for _ = 1, 5 do
    step(dc.ones "f32[6, 4]", dc.zeros "i32[6]")
  end
  return step
end

function testNumbersAgreeWithKernels()
  local step = train()
  local data = write()
  local f, list = find(data, "viz_step"), step:kernels()
  lu.assertEquals(f.calls, 5)
  lu.assertEquals(#f.kernels, #list)
  if dc.stats().device == "eval" then
    lu.assertTrue(f.interpreted)
    return
  end
  for i, k in ipairs(list) do
    local told, ns, runs = f.kernels[i], 0, 0
    for _, c in ipairs(f.commands) do
      if c.kernel == i - 1 then
        ns, runs = ns + c.ns, runs + c.runs
      end
    end
    lu.assertEquals(told.name, k.name)
    lu.assertEquals({ told.calls, told.launches, told.flops, told.bytes }, { k.calls, k.launches, k.flops, k.bytes })
    lu.assertEquals(told.lines, k.lines)
    lu.assertAlmostEquals(told.ms, k.ms, 1e-9)
    lu.assertAlmostEquals(ns / 1e6, k.ms, 1e-9)
    lu.assertEquals(runs, k.calls)
    lu.assertEquals(text(data, told.nest), step:source(i))
    lu.assertEquals(text(data, told.schedule), step:source(i, "schedule"))
    lu.assertEquals(text(data, told.text), step:source(i, "text"))
  end
end

function testEachNodeIsComputed()
  train()
  local data = write()
  local f = find(data, "viz_step")
  if f.interpreted then
    return
  end
  lu.assertTrue(f.exact)
  local computed, users, layers = {}, {}, {}
  for _, c in ipairs(f.commands) do
    for _, n in ipairs(c.nodes) do
      computed[n] = true
    end
  end
  for i, n in ipairs(f.nodes) do
    for _, u in ipairs(n[5]) do
      lu.assertTrue(u < i - 1, "operands come before their users")
      users[u] = true
    end
    for k = 2, #n[7], 2 do
      layers[text(data, n[7][k])] = true
    end
    if text(data, n[2]) ~= "input" and text(data, n[1]) ~= "const" then
      lu.assertTrue(computed[i - 1], text(data, n[1]) .. " is computed by a command")
    end
  end
  for _, part in ipairs(f.parts) do
    for _, r in ipairs(part.results) do
      users[r.node] = true
    end
  end
  for i, n in ipairs(f.nodes) do
    lu.assertTrue(users[i - 1] or text(data, n[2]) == "input")
  end
  lu.assertTrue(layers["net.1 (nn.Linear 4 -> 8)"])
  lu.assertTrue(layers["net.3 (nn.Linear 8 -> 3)"])
end

function testTemporariesLieInTheArena()
  train()
  local f = find(write(), "viz_step")
  local use, most = {}, 0
  for _, t in ipairs(f.temps) do
    lu.assertTrue(t.offset + t.bytes <= f.arena)
    lu.assertTrue(t.first <= t.last and t.last < #f.commands)
    lu.assertTrue(f.nodes[t.node + 1][11] == t.bytes)
    for i = t.first, t.last do
      use[i] = (use[i] or 0) + t.bytes
      most = math.max(most, use[i])
    end
  end
  lu.assertTrue(most <= f.arena)
  lu.assertTrue(f.interpreted or most > 0)
  local set = {}
  for _, p in ipairs(f.parameters) do
    set[p.name or ""] = p.set
  end
  if not f.interpreted then
    lu.assertEquals(set["net.1.weight"], "in place")
  end
end

-- ---- other functions ----

function testLoopsAndBranches()
  local f = dc.fn("viz_loop(x: f32[8]) -> f32[8]", function(x)
    local y = dc.fori(10, function(_, c) return c * 1.5 + 1 end, x)
    return dc.cond(y:sum():gt(0), function() return y:sin() end, function() return y:cos() end)
  end)
  for _ = 1, 3 do
    f(dc.ones "f32[8]")
  end
  local data = write()
  local told, kinds, runs = find(data, "viz_loop"), {}, {}
  for _, p in ipairs(told.parts) do
    kinds[#kinds + 1] = p.kind
  end
  if told.interpreted then
    return
  end
  table.sort(kinds)
  lu.assertEquals(kinds, { "call", "else", "loop", "then" })
  lu.assertTrue(told.exact)
  for _, c in ipairs(told.commands) do
    if c.inside and c.kind == "launch" then
      runs[#runs + 1] = c.runs
    end
  end
  table.sort(runs)
  lu.assertEquals(runs, { 0, 3, 30 }) -- one side of the branch
end

local function roles_of(list)
  local roles = {}
  for i, p in ipairs(list) do
    roles[i] = p.role
  end
  return table.concat(roles, " ")
end

-- What is counted is that of the bound, so that there is no rate.
function testBoundedDims()
  local weight = dc.ones "f32[16, 16]"
  local f = dc.fn("viz_bounded(x: f32[n <= 64, 16]) -> f32[n, 16]", function(x)
    dc.print(x:sum())
    return x:matmul(weight)
  end)
  f:kernels()
  f(dc.ones "f32[3, 16]")
  local told = find(write(), "viz_bounded")
  lu.assertEquals(roles_of(told.parameters), "argument size captured")
  lu.assertEquals({ #told.results, told.results[1].printed, told.results[2].printed }, { 2, nil, true })
  lu.assertStrContains(roles_of(told.parts[#told.parts].results), "result printed")
  for _, c in ipairs(told.commands) do
    lu.assertTrue(c.bounded)
  end
  for _, k in ipairs(f:kernels()) do
    lu.assertTrue(k.ms > 0 and k.bytes > 0)
    lu.assertEquals({ k.gflops, k.gbs }, { 0, 0 })
  end
end

-- Of a job that is closed between two slices, too.
function testCommandsTakeNoMoreThanCalls()
  local f = dc.fn("viz_job(x: f32[64, 64]) -> f32[64, 64]", function(x)
    for _ = 1, 8 do
      x = x:matmul(x):tanh()
    end
    return x
  end)
  f:kernels()
  for _ = 1, 5 do
    local job = f:start(dc.ones "f32[64, 64]")
    lu.assertFalse(job:poll { ms = 0 })
    job:poll { ms = 0 }
    job:close()
  end
  f(dc.ones "f32[64, 64]")
  local told, inside = find(write(), "viz_job"), 0
  for _, c in ipairs(told.commands) do
    inside = inside + c.ns
  end
  lu.assertEquals(told.calls, 1)
  lu.assertTrue(told.ns >= inside, ("%d of %d ns"):format(inside, told.ns))
end

local function call_and_drop()
  local f = dc.fn("viz_dropped(x: f32[4]) -> f32[4]", function(x) return x + 2 end)
  f(dc.ones "f32[4]")
end

function testDroppedFunctionsAreTold()
  call_and_drop()
  for _ = 1, 4 do
    collectgarbage()
  end
  local f = find(write(), "viz_dropped")
  lu.assertEquals(f.calls, 1)
  lu.assertEquals(#f.nodes, 3)
end

function testExecutablesFromTheDisk()
  -- The second process finds the executable whole, and tells as much of it.
  local script = program.script [[
local dc = require "deepc"
local f = dc.fn("kept(x: f32[33, 5]) -> f32[33]", function(x) return (x * x):sum(2):sqrt() end)
f(dc.ones "f32[33, 5]")
print(dc.stats().kernels)
]]
  local page, folder = os.tmpname(), os.tmpname()
  os.remove(folder)
  local before = "DEEPC_DEVICE=cpu DEEPC_CACHE=" .. program.quote(folder)
  local line = "--viz " .. program.quote(page) .. " " .. program.quote(script)
  local _, status = program.run(line, before)
  lu.assertEquals(status, 0)
  local first = find(data_of(page), "kept")
  _, status = program.run(line, before)
  lu.assertEquals(status, 0)
  local second = find(data_of(page), "kept")
  os.remove(page)
  os.remove(script)
  os.execute("rm -rf " .. program.quote(folder))
  lu.assertEquals(second.exact, first.exact)
  lu.assertEquals(#second.nodes, #first.nodes)
  lu.assertEquals(#second.commands, #first.commands)
end

-- ---- the option ----

-- On a device that is not measured, unless `before` names one.
local function run_with_page(source, before)
  before = before or "DEEPC_DEVICE=sim:cpu"
  local script, page = program.script(source), os.tmpname()
  local line = ("--viz %s %s one 'two words'"):format(program.quote(page), program.quote(script))
  local out, status = program.run(line, before)
  local data, text_of_page = data_of(page)
  os.remove(script)
  os.remove(page)
  return out, status, data, text_of_page
end

local SCRIPT = [[
local dc = require "deepc"
local f = dc.fn("f(x: f32[4]) -> f32[4]", function(x) return x * 2 end)
f(dc.ones "f32[4]")
]]

function testScriptThatFails()
  local out, status, data = run_with_page(SCRIPT .. 'error("</script>\\xff\\"")\n')
  lu.assertEquals(status, 1)
  lu.assertStrContains(out, [[</script>\xff"]])
  lu.assertStrContains(data.error, "</script>\u{FFFD}\"")
  lu.assertEquals(find(data, "f").calls, 1)
  lu.assertEquals(data.command:match " one .*", " one two words")
  lu.assertEquals(data.sources[1].text, SCRIPT .. 'error("</script>\\xff\\"")\n')
end

function testScriptThatExits()
  local out, status, data = run_with_page(SCRIPT .. "os.exit(7)\n")
  lu.assertEquals({ out, status }, { "", 7 })
  lu.assertEquals(find(data, "f").calls, 1)
  lu.assertNil(data.error)
end

-- The page cannot be written any more: that is said, and the script ends as it wants to, but for a success.
function testExitWithoutPage()
  for code, wanted in pairs { [""] = 1, ["true"] = 1, ["false"] = 1, ["7"] = 7 } do
    local source = 'os.execute("rm -r " .. arg[1])\npcall(function() os.exit(%s) end)\nprint "goes on"\n'
    local script = program.script(source:format(code))
    local folder = os.tmpname()
    os.remove(folder)
    os.execute("mkdir " .. program.quote(folder))
    local quoted = program.quote(folder .. "/page.html")
    local out, status = program.run(("--viz %s %s %s"):format(quoted, program.quote(script), program.quote(folder)))
    os.remove(script)
    lu.assertStrContains(out, "No such file")
    lu.assertNil(out:find "goes on")
    lu.assertEquals(status, wanted, code)
  end
end

local PRODUCT = [[
local g = dc.fn("g(x: f32[6, 4], w: f32[4, 8]) -> f32[6, 8]", function(x, w) return x:matmul(w) end)
g(dc.ones "f32[6, 4]", dc.ones "f32[4, 8]")
]]

function testSimulatedDevicesAndTheInterpreter()
  for _, device in ipairs { "sim:cpu", "sim:cuda", "eval" } do
    local out, status, data = run_with_page(SCRIPT .. PRODUCT, "DEEPC_DEVICE=" .. device)
    lu.assertEquals({ out, status }, { "", 0 })
    lu.assertEquals(#find(data, "g").kernels, device == "eval" and 0 or 1)
    lu.assertNil(data.peak)
    lu.assertEquals(find(data, "f").device, device)
    lu.assertEquals(find(data, "f").interpreted, device == "eval" or nil)
  end
end

function testTheFirstRankWrites()
  local script, page = program.script(SCRIPT), os.tmpname()
  local line = ("--ranks 2 --viz %s %s"):format(program.quote(page), program.quote(script))
  local out, status = program.run(line, "DEEPC_DEVICE=sim:cpu")
  local data = data_of(page)
  os.remove(script)
  os.remove(page)
  lu.assertEquals({ out, status }, { "", 0 })
  lu.assertEquals(data.rank, 0)
  lu.assertEquals(find(data, "f").calls, 1)
end

function testChannelsLogOnce()
  local out, status = run_with_page(SCRIPT, "DEEPC_DEVICE=sim:cpu DEEPC_DEBUG=plan")
  local _, times = out:gsub("%[plan%] f\n", "")
  lu.assertEquals({ times, status }, { 1, 0 })
end

function testPageThatCannotBeWritten()
  local script = program.script 'print "it ran"'
  for path, why in pairs { ["/nowhere/page.html"] = "No such file", ["/"] = "directory" } do
    local out, status = program.run(("--viz %s %s"):format(path, program.quote(script)))
    lu.assertEquals(status, 1)
    lu.assertStrContains(out, why)
    lu.assertNil(out:find "it ran")
  end
  local out, status = program.run "--viz"
  os.remove(script)
  lu.assertEquals(status, 1)
  lu.assertStrContains(out, "--viz needs an argument")
end

function testWriteRefuses()
  lu.assertErrorMsgContains("a path is needed, not the number 3", viz.write, 3)
  lu.assertErrorMsgContains("No such file", viz.write, "/nowhere/page.html")
end

-- What a page before has measured of the machine is none of the script's.
local function check_peaks_are_left_out(data)
  local device = dc.stats().device
  lu.assertEquals(data.peak == nil, device == "eval" or device:find "^sim:" ~= nil)
  for _, f in ipairs(data.functions) do
    lu.assertFalse(f.name == "peak" or f.name == "stream" or f.name == "inputs", f.name)
  end
end

function testPageStandsAlone()
  train()
  write()
  collectgarbage "stop"
  local data, page = write()
  lu.assertFalse(collectgarbage "isrunning", "a collector that is stopped stays so")
  collectgarbage "restart"
  check_peaks_are_left_out(data)
  lu.assertNotNil(utf8.len(page))
  page = page:gsub('<script type="application/json".-</script>', "")
  lu.assertNil(page:find "src=")
  lu.assertNil(page:gsub("http://www%.w3%.org/2000/svg", ""):find "https?://")
  lu.assertNil(page:find("{{", 1, true))
end
