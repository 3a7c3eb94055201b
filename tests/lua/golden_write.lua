-- Writes the texts of wrong programs and of the examples of docs/errors/ again (scripts/golden).
local here = arg[0]:match "^(.*)/[^/]*$"
package.path = here .. "/../../?.lua;" .. package.path
local golden = require "tests.lua.golden"

local function write(path, text)
  local f = assert(io.open(path, "wb"))
  f:write(text)
  f:close()
end

local wanted = {}
for _, name in ipairs(arg) do
  wanted[name] = true
end
local function is_wanted(name)
  return #arg == 0 or wanted[name]
end

for _, name in ipairs(golden.names()) do
  if is_wanted(name) and (wanted[name] or not golden.pending[name]) then
    local text, state = golden.run(name)
    if text ~= golden.expected(name) then
      golden.write(name, text)
      io.write("-- ", name, "\n", text)
    end
    if state ~= "usable" then
      io.write(name, ": ", state, "\n")
    end
  end
end

for _, code in ipairs(golden.pages()) do
  local text, before = golden.example(code)
  if is_wanted(code) and text and text ~= before then
    local page = golden.page(code)
    local fence = "```text\n"
    local from, to = page:find(fence .. before, 1, true)
    write(golden.pages_folder .. code .. ".md", page:sub(1, from - 1) .. fence .. text .. page:sub(to + 1))
    io.write("-- ", code, "\n", text)
  end
end
