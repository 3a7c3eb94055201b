-- The snippets of README.md and docs/ run as they stand there.
--
-- The Lua blocks of a page of the manual are one program, whose lines are those of the page:
--
--   print(x)        --> 1.0          what it prints, one comment for each line; nothing else is printed
--   --> 2.0
--   f(x)            --! f: 1 ...     the paragraph raises this: the first lines of the message, without
--   --!     left   f32[2]            its place
--
-- Blocks of the language `console` are commands, each behind "$ ", and what they print. Others are not run.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local lapack = require "tests.lua.lapack"

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

TestManual = {}

-- The program of a page; what it prints, as { text, line }, and what its paragraphs raise, in order.
local function program_of(path)
  local line, inside, paragraph = 0, false, nil
  local text, prints, errors = {}, {}, {}
  local function finish()
    if paragraph and paragraph.message then
      errors[#errors + 1] = table.concat(paragraph.message, "\n")
      text[paragraph.first] = "raises(function() " .. text[paragraph.first]
      text[paragraph.last] = text[paragraph.last] .. " end)"
    end
    paragraph = nil
  end
  for source in read(path):gmatch "([^\n]*)\n" do
    line = line + 1
    text[line] = ""
    if source:match "^```" then
      finish()
      inside = not inside and source == "```lua"
    elseif inside and source:match "^%s*$" then
      finish()
    elseif inside then
      paragraph = paragraph or { first = line }
      paragraph.last = line
      local code, message = source:match "^(.-)%s*%-%-! ?(.*)$"
      if message then
        paragraph.message = paragraph.message or {}
        table.insert(paragraph.message, message)
      else
        local printed
        code, printed = source:match "^(.-)%s*%-%-> ?(.*)$"
        if printed then
          prints[#prints + 1] = { printed, line }
        end
      end
      text[line] = code or source:gsub("%s*%-%-%s.*$", "")
    end
  end
  lu.assertFalse(inside)
  return table.concat(text, "\n"), prints, errors
end

-- Runs it; returns the lines that it printed and the messages that were raised.
local function run_page(path)
  local text, prints, errors = program_of(path)
  local printed, raised = {}, {}
  local function show(...)
    local t = table.pack(...)
    for i = 1, t.n do
      t[i] = tostring(t[i])
    end
    for piece in (table.concat(t, "\t") .. "\n"):gmatch "([^\n]*)\n" do
      printed[#printed + 1] = piece
    end
  end
  local env = setmetatable({
    print = show,
    raises = function(f)
      local ok, err = pcall(f)
      raised[#raised + 1] = ok and "nothing" or tostring(err):gsub("^[^\n]-%.md:%d+: ", "")
    end,
  }, {
    __index = _G,
    __newindex = function(_, key)
      error(("%s: global '%s' is assigned"):format(path, key), 2)
    end,
  })
  local program = assert(load(text, "@" .. path, "t", env))
  local real = print
  rawset(_G, "print", show) -- for dc.print
  local ok, err = xpcall(program, debug.traceback)
  rawset(_G, "print", real)
  lu.assertTrue(ok, tostring(err))
  return printed, prints, raised, errors
end

-- Every page runs, prints what it says and raises what it says: at least so many lines and messages.
local function check_page(path, lines, failures)
  local function any_line(text) -- lines of the page may move, and files
    return (text:gsub("%.md:%d+", ".md:N"):gsub("/tmp/lua_%w+", "/tmp/file"))
  end
  dc.seed(0)
  local printed, prints, raised, errors = run_page(path)
  for i, expected in ipairs(prints) do
    lu.assertEquals(any_line(printed[i] or ""), any_line(expected[1]), ("%s:%d"):format(path, expected[2]))
  end
  lu.assertNil(printed[#prints + 1], path)
  for i, expected in ipairs(errors) do
    expected = any_line(expected)
    lu.assertEquals(any_line(raised[i] or "nothing"):sub(1, #expected), expected, path)
  end
  lu.assertTrue(#prints >= lines and #errors >= failures, path)
end

-- Chapters, with the least numbers of printed lines and of failures in them.
local chapters = {
  language = { 1, 0 },
  types = { 25, 9 },
  tensors = { 60, 10 },
  indexing = { 25, 3 },
  complex = { 10, 2 },
  functions = { 14, 10 },
  loops = { 10, 3 },
  sizes = { 7, 3 },
  training = { 20, 4 },
  optimisers = { 11, 2 },
  metrics = { 4, 1 }, tokenizers = { 16, 0 },
  train = { 1, 1 }, tensorboard = { 1, 1 },
  linalg = { 10, 4 },
  files = { 5, 2 },
  data = { 25, 2 },
  layers = { 12, 1 },
  models = { 12, 3 },
  serving = { 8, 3 }, stablehlo = { 3, 2 },
  random = { 8, 2 },
  scripts = { 1, 3 }, monitoring = { 0, 1 },
  launching = { 1, 0 },
  convolutions = { 13, 3 },
  lazy = { 6, 4 },
  profiling = { 1, 0 },
  errors = { 3, 1 },
  embedding = { 1, 0 },
  tutorial = { 14, 2 },
  ["coming-from"] = { 1, 0 },
}

for name, least in pairs(chapters) do
  TestManual["test_" .. name] = function()
    lu.skipIf(name == "linalg" and lapack.missing, lapack.missing)
    check_page("docs/" .. name .. ".md", least[1], least[2])
  end
end

-- Names that the tables of operations have exist, as methods and as functions.
function TestManual:test_operations_exist()
  local text, count = read "docs/tensors.md", 0
  local x = dc.ones "f32[2, 2]"
  for row in text:match("\n| kind | methods |\n[^\n]*\n(.-)\n\n"):gmatch "[^\n]+" do
    for names in row:gmatch "`([^`]*)`" do
      for name in names:gmatch "[%w_]+" do
        lu.assertIsFunction(dc[name], name)
        lu.assertIsFunction(x[name], name)
        count = count + 1
      end
    end
  end
  lu.assertTrue(count > 70, count)
end

TestCommands = {}

local quote = require "tests.lua.program".quote

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
  self.before = ("cd %s && export DEEPC_CACHE=off PATH=%s:$PATH && "):format( -- nothing is compiled already
    quote(self.folder), quote(program:match "^(.*)/" or "."))
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

-- The first page of the documentation site: a script that fails, and what it says.
function TestCommands:test_front_page()
  write_files(blocks "scripts/web/index.md", self.folder)
  lu.assertEquals(self:run "scripts/web/index.md", 1)
end

function TestCommands:test_devices()
  write_files(blocks "docs/schedules.md", self.folder)
  lu.assertEquals(self:run "docs/devices.md", 5)
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
  lu.assertItemsEquals(table_words(page, "channel"), rows("core/base/log.h", '%f[%w]CH%(%u+, "(%l+)"'))
  lu.assertEquals(table_words(page, "move"), rows("jit/moves/moves.def", '\nMOVE%([%u_]+, *"([%l_]+)"'))
  for name, args in read("jit/moves/moves.def"):gmatch '\nMOVE%([%u_]+, *"([%l_]+)", *[%l_]+, *"([%l .]+)"' do
    local written = assert(read(page):match("\n| `" .. name .. " ([%u .]+)` |"), name)
    written = written:gsub("BUF", "buffer"):gsub("%f[%w]N%f[%W]", "count"):gsub("%f[%w]S%f[%W]", "scope")
    written = written:gsub("ROW", "tile"):gsub("%f[%w]%u+%f[%W]", "axis"):gsub(" %.%.%.$", " axis...")
    lu.assertEquals(written, args, name)
    lu.assertStrContains(read("tests/fuzz/dict/moves"), '"\\x0a' .. name .. " ")
  end
  local settings = read("HACKING.md"):match "\n| setting |.-\n\n"
  for _, setting in ipairs(rows("core/base/opt.def", '\nOPT%(%l+, *"([%u_]+)"')) do
    lu.assertStrContains(settings, "`" .. setting)
  end
  lu.assertStrContains(table.concat(rows("HACKING.md", "\n| (%l+) | "), " "),
    table.concat(rows("core/base/log.h", '%f[%w]CH%(%u+, "(%l+)"'), " "))
  local skip = rows("jit/compile/stages.def", "\nSTAGE%((%l+)")
  table.move(rows("jit/flat/passes.def", "\nPASS%((%l+)"), 1, 99, #skip + 1, skip)
  lu.assertEquals(table_words(page, "word"), skip)
end

-- The C of docs/embedding.md is of programs that tests/program/test_install.sh builds and runs.
function TestCommands.test_embedding()
  local programs, count = "", 0
  for _, name in ipairs { "train_host.c", "run_host.c", "sandbox_host.c", "device_host.c", "ranks_host.c",
    "CMakeLists.txt" } do
    programs = programs .. read("examples/embed/" .. name)
  end
  for _, block in ipairs(blocks "docs/embedding.md") do
    if block.language == "c" then
      lu.assertTrue(programs:find(block.text .. "\n", 1, true) ~= nil, "docs/embedding.md:" .. block.line)
      count = count + 1
    elseif block.language == "cmake" then
      for line in block.text:gmatch "[^\n]+" do
        lu.assertStrContains(programs, line)
      end
    end
  end
  lu.assertTrue(count >= 8, count)
end

-- Blocks of docs/tutorial.md that name a file are parts of it; tests/program/test_install.sh runs these files.
function TestCommands.test_tutorial()
  local count = 0
  for _, block in ipairs(blocks "docs/tutorial.md") do
    local name = block.language:match "^%l+ ([%w.]+)$"
    if name then
      local text = read("examples/tutorial/" .. name)
      lu.assertTrue(text:find(block.text, 1, true) ~= nil, "docs/tutorial.md:" .. block.line)
      count = count + 1
    end
  end
  lu.assertTrue(count >= 6, count)
end

TestNames = {}

local function exists(path)
  local f = io.open(root .. "/" .. path)
  if f then
    f:close()
  end
  return f ~= nil
end

local texts = {
  "README.md", "ARCHITECTURE.md", "HACKING.md", "dsl/README.md", "dsl/base/README.md", "dsl/ops/README.md",
  "dsl/control/README.md", "dsl/fn/README.md", "vm/README.md",
  "stdlib/README.md", "tests/README.md", "docs/language.md", "docs/types.md", "docs/tensors.md", "docs/functions.md",
  "docs/indexing.md", "docs/loops.md", "docs/sizes.md", "docs/training.md", "docs/files.md", "docs/lazy.md",
  "docs/installing.md", "docs/optimisers.md", "docs/metrics.md", "docs/train.md", "docs/data.md", "docs/complex.md",
  "docs/tensorboard.md", "docs/accuracy.md",
  "docs/tokenizers.md", "extras/README.md", "extras/llm/README.md", "extras/llm/tokenizer/README.md",
  "extras/editors/README.md", "extras/viz/README.md",
  "docs/linalg.md", "docs/models.md", "docs/serving.md", "docs/stablehlo.md",
  "docs/embedding.md", "docs/profiling.md",
  "examples/embed/README.md",
  "docs/errors.md", "docs/prompt.md", "docs/trust.md", "docs/devices.md", "docs/schedules.md",
  "docs/dependencies.md", "docs/errors/README.md", "docs/reference/README.md",
}
for path in io.popen(("cd '%s' && find core jit -name README.md"):format(root)):lines() do
  texts[#texts + 1] = path
end

-- Files of the project that a text names are there.
function TestNames:test_files()
  local count = 0
  local folders = {
    core = true, jit = true, dsl = true, vm = true, formats = true, backends = true, stdlib = true, tests = true,
    scripts = true, docs = true, extras = true,
  }
  for _, path in ipairs(texts) do
    for word in read(path):gmatch "%f[%w][%w_/]+%.[a-z]+%f[^%w*]" do
      if folders[word:match "^(%w+)/"] and not word:match "%u%u" then
        lu.assertTrue(exists(word), ("%s: %s"):format(path, word))
        count = count + 1
      end
    end
  end
  lu.assertTrue(count > 100, count)
end

-- The table of a folder, or of the one above, names each of its files.
function TestNames:test_tables_of_folders()
  local folders = { "dsl", "vm", "stdlib" }
  local groups = "core/*/ jit/*/ dsl/*/ extras/ extras/llm/ extras/editors/ extras/viz/"
  for folder in io.popen(("cd '%s' && ls -d %s"):format(root, groups)):lines() do
    folders[#folders + 1] = folder:sub(1, -2)
  end
  lu.assertTrue(#folders > 10)
  for _, folder in ipairs(folders) do
    local at = io.open(root .. "/" .. folder .. "/README.md") and folder or folder:match "^%l+"
    local text = read(at .. "/README.md"):gsub("[^%w_]", " ")
    local list = io.popen(("ls '%s/%s'"):format(root, folder))
    for name in list:lines() do
      local stem = name:match "^([%w_]+)%.[a-z]+$"
      if stem and stem ~= "README" and not stem:match "_impl$" then
        lu.assertStrContains(" " .. text .. " ", " " .. stem .. " ", false, false, folder .. "/" .. name)
      end
    end
    list:close()
  end
end
