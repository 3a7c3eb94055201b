-- The snippets of README.md and docs/ run as they stand there. What a fragment takes from around it
-- (a network, a data set, `n`) is in its environment; `...` in a body stands for anything. Blocks of
-- the language `console` are commands, each behind "$ ", and what they print.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local data = require "deepc.data"

local root = arg[0]:match "^(.*)/tests/[^/]*$" or "."

local function read(path)
  local f = assert(io.open(root .. "/" .. path))
  local text = f:read "a"
  f:close()
  return text
end

-- The fenced blocks of a file: { text, line, language }.
local function blocks(path)
  local list, line, open = {}, 0, nil
  for text in read(path):gmatch "([^\n]*)\n" do
    line = line + 1
    local fence = text:match "^```(.*)$"
    if fence and not open then
      open = { line = line + 1, language = fence, text = {} }
    elseif fence then
      open.text = table.concat(open.text, "\n")
      list[#list + 1], open = open, nil
    elseif open then
      open.text[#open.text + 1] = text
    end
  end
  lu.assertNil(open)
  return list
end

-- Runs a block; returns its environment, whose lines are those of the file, and what it printed.
local function run(path, block, given)
  local printed = {}
  local env = setmetatable({
    dc = dc, nn = nn, optim = optim, require = require, ipairs = ipairs,
    print = function(...)
      local t = table.pack(...)
      for i = 1, t.n do
        t[i] = tostring(t[i])
      end
      printed[#printed + 1] = table.concat(t, "\t")
    end,
  }, {
    __index = function(_, key)
      error(("%s:%d: '%s' is not defined"):format(path, block.line, key), 2)
    end,
    __newindex = function(_, key)
      error(("%s:%d: global '%s' is assigned"):format(path, block.line, key), 2)
    end,
  })
  for key, value in pairs(given or {}) do
    rawset(env, key, value)
  end
  local text = ("\n"):rep(block.line - 1) .. block.text:gsub(" do %.%.%. end", " do end")
  local returns = block.text:match "^local (%w+)"
  if returns then
    text = text .. "\nreturn " .. returns
  end
  local chunk = assert(load(text, "@" .. path, "t", env))
  return chunk(), table.concat(printed, "\n")
end

-- The block that contains the text.
local function find(list, text)
  for _, block in ipairs(list) do
    if block.text:find(text, 1, true) then
      return block
    end
  end
  error("no block contains " .. text)
end

TestReadme = {}

function TestReadme:test_ten_lines()
  local block = find(blocks "README.md", "xor")
  dc.seed(0)
  local _, printed = run("README.md", block)
  local loss = tonumber(printed:match "^xor, loss (%S+)$")
  lu.assertTrue(loss < 0.05)
end

function TestReadme:test_the_change_that_it_proposes()
  local block = find(blocks "README.md", "xor")
  local changed, count = block.text:gsub("nn%.Linear%(16, 2%)", "nn.Linear(8, 2)")
  lu.assertEquals(count, 1)
  local ok, err = pcall(run, "README.md", { text = changed, line = block.line })
  lu.assertFalse(ok)
  local text = tostring(err)
  lu.assertStrContains(text, "README.md:" .. block.line + 5)
  lu.assertStrContains(text, "f32[4, 16]")
  lu.assertStrContains(text, "f32[8, 2]")
  lu.assertStrContains(text, "net.3 (nn.Linear 8 -> 2)")
end

TestLanguage = {}

local path = "docs/language.md"

function TestLanguage:setUp()
  self.blocks = blocks(path)
end

function TestLanguage:test_every_lua_block_runs()
  local net = nn.Sequential { nn.Flatten(), nn.Linear(784, 10) }
  local around = {
    axis = 1,
    n = 7,
    net = net,
    opt = optim.Adam(net:parameters()),
    train = data.set(dc.zeros "f32[130, 2]", dc.iota "i32[130]"),
  }
  local count = 0
  for _, block in ipairs(self.blocks) do
    if block.language == "lua" then
      run(path, block, around)
      count = count + 1
    end
  end
  lu.assertEquals(count, 6)
end

function TestLanguage:test_the_step()
  dc.seed(0)
  local net = nn.Sequential { nn.Flatten(), nn.Linear(784, 10) }
  local step = run(path, find(self.blocks, "step(x: u8"), { net = net, opt = optim.Adam(net:parameters()) })
  local x = dc.iota("i32[64, 784]", 1):cast("u8"):reshape(64, 28, 28)
  local y = dc.iota "i32[64]" % 10
  local first = step(x, y, 1e-3):item()
  for _ = 1, 20 do
    step(x, y, 1e-3)
  end
  lu.assertTrue(step(x, y, 0):item() < first)
end

function TestLanguage:test_the_layer()
  local Block = run(path, find(self.blocks, "nn.class"))
  local x = dc.tensor { { 1, 2, 3 } }
  local block = Block(3)
  lu.assertEquals(block(x):totable(), (x + block.inner(x):relu()):totable())
  lu.assertEquals(#block:parameters(), 2)
end

function TestLanguage:test_the_error()
  local shown = find(self.blocks, "inner dims differ").text
  local script = ("\n"):rep(10) .. table.concat({
    'local net = nn.Sequential { function(x) return x end, nn.Linear(784, 10) }',
    'dc.fn("step(img: f32[batch=32, 28, 28]) -> f32[32, 10]", function(img)',
    '',
    '',
    '  local y = net(img)',
    '  return y',
    'end)',
  }, "\n")
  local ok, err = pcall(assert(load(script, "@train.lua", "t", { dc = dc, nn = nn })))
  lu.assertFalse(ok)
  lu.assertEquals(tostring(err), shown)
  for _, field in ipairs { "code", "op", "at", "path", "message", "traceback" } do
    lu.assertIsString(err[field], field)
  end
end

-- Operations that the tables name exist, as methods and as functions.
function TestLanguage:test_operations_exist()
  local text, count = read(path), 0
  local x = dc.ones "f32[2, 2]"
  for _, kind in ipairs { "functions", "comparison", "reduction", "along one axis" } do
    local row = assert(text:match("| " .. kind .. " | (.-) |\n"), kind)
    local names = row:match "^`([^`]*)`"
    for name in names:gsub("%b()", ""):gmatch "[%w_]+" do
      lu.assertIsFunction(dc[name], name)
      lu.assertIsFunction(x[name], name)
      count = count + 1
    end
  end
  for name in assert(text:match "Each operator has a method %(`(.-)`%)"):gmatch "[%w_]+" do
    lu.assertIsFunction(dc[name], name)
    lu.assertIsFunction(x[name], name)
    count = count + 1
  end
  lu.assertEquals(count, 18 + 9 + 11 + 5 + 14)
end

TestCommands = {}

local function quote(text)
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

local function output(command)
  local p = assert(io.popen(command))
  local text = p:read "a"
  p:close()
  return text
end

-- Those whose first line is a comment with a name are files that commands find.
local function write_files(list, folder)
  for _, block in ipairs(list) do
    local name = block.text:match "^%-%- (%w+%.lua)\n" or block.text:match "^# (%w+%.sched)\n"
    if name then
      local f = assert(io.open(folder .. "/" .. name, "w"))
      f:write(block.text, "\n")
      f:close()
    end
  end
end

function TestCommands:setUp()
  local program = arg[-1]
  if not program:match "^/" and program:match "/" then
    program = output("pwd"):gsub("\n", "") .. "/" .. program
  end
  self.folder = output("mktemp -d"):gsub("\n", "")
  self.before = ("cd %s && PATH=%s:$PATH && "):format(quote(self.folder), quote(program:match "^(.*)/" or "."))
end

function TestCommands:tearDown()
  os.execute("rm -rf " .. quote(self.folder))
end

-- Runs the commands of a page in order; returns how many there are.
function TestCommands:run(page)
  local count = 0
  for _, block in ipairs(blocks(page)) do
    if block.language == "console" then
      local rest = "\n" .. block.text .. "\n"
      for command, printed in rest:gsub("\n%$ ", "\0"):gmatch "%z([^\n]*)\n?([^%z]*)" do
        local text = output(self.before .. "{ " .. command .. "; } 2>&1"):gsub("\n*$", "")
        lu.assertEquals(text, (printed:gsub("\n*$", "")), page .. ": " .. command)
        count = count + 1
      end
    end
  end
  return count
end

function TestCommands:test_schedules()
  write_files(blocks "docs/schedules.md", self.folder)
  lu.assertEquals(self:run "docs/schedules.md", 9)
end

function TestCommands:test_devices()
  write_files(blocks "docs/schedules.md", self.folder)
  lu.assertEquals(self:run "docs/devices.md", 3)
end

-- docs/devices.md: the same bits from compiled devices, strict and without schedules; and for any
-- number of threads.
function TestCommands:test_same_bits()
  local f = assert(io.open(self.folder .. "/bits.lua", "w"))
  f:write [[
local dc = require "deepc"
local f = dc.fn("f(x: f32[40, 50], w: f32[50, 30]) -> f32[40, 30], f32[40], f32[40, 50]", function(x, w)
  return x:matmul(w), (x * x + x):sum(2), (x * 3 + 1):exp() / (x + 7):sqrt()
end)
for _, y in ipairs { f(dc.rand("f32[40, 50]", { seed = 1 }), dc.rand("f32[50, 30]", { seed = 2 })) } do
  for _, v in ipairs(y:flatten():totable()) do print(("%a"):format(v)) end
end]]
  f:close()
  local function bits(settings)
    local text = output(self.before .. settings .. " deepc bits.lua 2>&1")
    lu.assertEquals(select(2, text:gsub("\n", "\n")), 40 * 30 + 40 + 40 * 50, settings)
    return text
  end
  local devices = output(self.before .. "deepc --devices")
  local strict, plain = bits "DEEPC_DEVICE=sim:cpu DEEPC_MATH=strict DEEPC_OPT=1", {}
  for device, line in devices:gmatch "(%S+) +([^\n]*)\n" do
    local rounds = not device:match "^opencl" or line:match "PoCL" -- divisions correctly
    if device ~= "eval" and rounds and not line:match "^absent" then
      lu.assertTrue(bits("DEEPC_MATH=strict DEEPC_OPT=1 DEEPC_DEVICE=" .. device) == strict, device)
    end
  end
  for threads = 1, 3 do
    plain[threads] = bits("DEEPC_CHECK=2 DEEPC_THREADS=" .. threads)
    lu.assertTrue(plain[threads] == plain[1], threads .. " threads")
  end
end

-- Words of tables are those of the code.
local function table_words(page, heading)
  local words = {}
  local text = assert(read(page):match("\n| " .. heading .. " |[^\n]*\n| %-[^\n]*\n(.-)\n\n"), heading)
  for word in ("\n" .. text):gmatch "\n| `([%w_]+)" do
    words[#words + 1] = word
  end
  return words
end

local function rows(file, pattern)
  local words = {}
  for word in read(file):gmatch(pattern) do
    words[#words + 1] = word
  end
  return words
end

function TestCommands:test_tables()
  local page = "docs/schedules.md"
  lu.assertItemsEquals(table_words(page, "channel"), rows("core/log.h", '%f[%w]CH%(%u+, "(%l+)"'))
  lu.assertEquals(table_words(page, "move"), rows("jit/moves.def", '\nMOVE%([%u_]+, *"([%l_]+)"'))
  local settings = read("HACKING.md"):match "\n| setting |.-\n\n"
  for _, setting in ipairs(rows("core/opt.def", '\nOPT%(%l+, *"([%u_]+)"')) do
    lu.assertStrContains(settings, "`" .. setting)
  end
  lu.assertStrContains(table.concat(rows("HACKING.md", "\n| (%l+) | "), " "),
    table.concat(rows("core/log.h", '%f[%w]CH%(%u+, "(%l+)"'), " "))
  local skip = rows("jit/stages.def", "\nSTAGE%((%l+)")
  table.move(rows("jit/passes.def", "\nPASS%((%l+)"), 1, 99, #skip + 1, skip)
  lu.assertEquals(table_words(page, "word"), skip)
end
