-- Wrong programs and what they say: tests/mistakes/AREA.txt, several to a file. Shared by test_golden.lua and
-- scripts/golden.
--
--   ==== NAME
--   the program
--   ==== says
--   the text; an empty line, and the next one
--
-- Each program runs in a process of its own, as NAME.lua. Its first line may say how:
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

local programs, names = {}, {} -- by name, { area =, code =, says = }; sorted

local function read_area(area)
  local text = "\n" .. read(golden.folder .. area .. ".txt")
  local at, to, name = text:find "\n==== ([%w_]+)\n"
  while at do
    local says, begin = text:find("\n==== says\n", to, true)
    local nextat, nextto, following = text:find("\n\n==== ([%w_]+)\n", begin)
    assert(says and not programs[name], name)
    programs[name] = { area = area, code = text:sub(to + 1, says), says = text:sub(begin + 1, nextat or -1) }
    names[#names + 1] = name
    at, to, name = nextat, nextto, following
  end
end

for area in output("ls " .. golden.folder):gmatch "([^\n]+)%.txt\n" do
  read_area(area)
end
table.sort(names)

---Names of all programs, sorted.
function golden.names()
  return names
end

---Gives a program another text and writes its file again.
function golden.write(name, says)
  local area, blocks = programs[name].area, {}
  programs[name].says = says
  for _, other in ipairs(names) do
    local p = programs[other]
    if p.area == area then
      blocks[#blocks + 1] = ("==== %s\n%s==== says\n%s"):format(other, p.code, p.says)
    end
  end
  local f = assert(io.open(golden.folder .. area .. ".txt", "wb"))
  f:write(table.concat(blocks, "\n"))
  f:close()
end


---Without what is not the same in every run, and notes of the log unless they are what is asked for.
local function normalize(text, notes)
  text = text:gsub("/tmp/lua_%w+", "/tmp/file")
  return notes and text or (text:gsub("%[note%][^\n]*\n", ""))
end

-- What running the code prints, which is name.lua in a folder of its own; what was made of it.
local function outcome(name, code, folder)
  local here = ("cd %s && %%s %%s %s.lua"):format(folder, name)
  local how = code:match "^%-%- run: deepc (%w+)\n"
  if how then
    return normalize(output(here:format(quote(program), how))), "usable"
  end
  if code:match "^%-%- run: script\n" then
    return normalize(output(here:format("DEEPC_PROGRESS=off", quote(program))), true), "usable"
  end
  local text = output(("%s %s tests/lua/golden_one.lua %s %s/%s.lua"):format(settings_of(code), quote(program), name,
    folder, name))
  local message, state = text:match "^(.*)\n%-%-\n([^\n]*)"
  if not message then
    return normalize(text), "the program did not come to its end"
  end
  return normalize(message) .. "\n", state
end

---Runs a program: its message, and "usable" or what is wrong with the context afterwards.
function golden.run(name)
  local code, folder = programs[name].code, output "mktemp -d":match "[^\n]+"
  local path = folder .. "/" .. name .. ".lua"
  local f = assert(io.open(path, "wb"))
  f:write(code)
  f:close()
  local text, state = outcome(name, code, folder)
  os.remove(path)
  assert(os.remove(folder))
  return text, state
end

---The program itself.
function golden.code(name)
  return programs[name].code
end

---The text that is expected.
function golden.expected(name)
  return programs[name].says
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
