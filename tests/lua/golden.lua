-- Wrong programs and what they say: tests/mistakes/NAME.lua and NAME.txt. Shared by test_golden.lua and
-- scripts/golden.
--
-- Each program runs in a process of its own. Its first line may say how:
--
--   -- run: deepc check        the text is what this command prints about the file
--   -- run: script             the text is all that it prints, notes too
--   -- env: DEEPC_ALLOW=compute    settings that it runs with
--
-- Else it is run as a script, and the text is that of the error value; a second part of the output says
-- whether the context is still good for something afterwards.

local golden = { folder = "tests/mistakes/" }


-- Programs about what does not exist yet: their texts are what it shall say. Name -> reason.
golden.pending = {
}

local function quote(s)
  return "'" .. s:gsub("'", "'\\''") .. "'"
end

local function read(path)
  local f = io.open(path, "rb")
  local text = f and f:read "a"
  if f then
    f:close()
  end
  return text
end

local function output(line)
  local p = assert(io.popen(line .. " 2>&1"))
  local text = p:read "a"
  p:close()
  return text
end

local program = arg[-1]
if program:sub(1, 1) ~= "/" then
  program = output "pwd":match "[^\n]*" .. "/" .. program
end

-- The settings that the first line of a program names, for the shell.
local function settings_of(text)
  return text:match "^%-%- env: ([%w_= ]*)\n" or ""
end

---Names of all programs, sorted.
function golden.names()
  local list = {}
  for name in output("ls " .. golden.folder):gmatch "([^\n]+)%.lua\n" do
    list[#list + 1] = name
  end
  return list
end

---Without what is not the same in every run, and notes of the log unless they are what is asked for.
local function normalize(text, notes)
  text = text:gsub("/tmp/lua_%w+", "/tmp/file")
  return notes and text or (text:gsub("%[note%][^\n]*\n", ""))
end

---Runs a program: its message, and "usable" or what is wrong with the context afterwards.
function golden.run(name)
  local path = golden.folder .. name .. ".lua"
  local how = read(path):match "^%-%- run: deepc (%w+)\n"
  if how then
    local text = output(("cd %s && %s %s %s"):format(golden.folder, quote(program), how, name .. ".lua"))
    return normalize(text), "usable"
  end
  if read(path):match "^%-%- run: script\n" then
    local line = ("cd %s && DEEPC_PROGRESS=off %s %s.lua"):format(golden.folder, quote(program), name)
    return normalize(output(line), true), "usable"
  end
  local text = output(("%s %s tests/lua/golden_one.lua %s %s"):format(settings_of(read(path)), quote(program), name,
    path))
  local message, state = text:match "^(.*)\n%-%-\n([^\n]*)"
  if not message then
    return normalize(text), "the program did not come to its end"
  end
  return normalize(message) .. "\n", state
end

---The text that is expected, or nil.
function golden.expected(name)
  return read(golden.folder .. name .. ".txt")
end

-- ---- pages ----

golden.pages_folder = "docs/errors/"

---Codes that have a page, sorted.
function golden.pages()
  local list = {}
  for code in output("ls " .. golden.pages_folder):gmatch "(DC%d+)%.md\n" do
    list[#list + 1] = code
  end
  return list
end

function golden.page(code)
  return read(golden.pages_folder .. code .. ".md")
end

---What the example of a page says and what is written there, or nil if it is not to be run.
function golden.example(code)
  local example, text = golden.page(code):match "\n## Example\n\n```lua\n(.-)```\n\n```text\n(.-)```"
  if not example then
    return nil
  end
  local path = os.tmpname()
  local f = assert(io.open(path, "wb"))
  f:write(example)
  f:close()
  local said
  if code:match "^DC09" then -- these are found by deepc check alone
    said = output(("d=$(mktemp -d) && cp %s $d/example.lua && cd $d && %s check example.lua; rm -r $d")
      :format(path, quote(program)))
    said = said:gsub("\n$", "")
  else
    said = output(("%s tests/lua/golden_one.lua example %s"):format(quote(program), path))
  end
  os.remove(path)
  return normalize(said:match "^(.*)\n%-%-\n" or said) .. "\n", text
end

return golden
