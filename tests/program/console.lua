-- Runs the commands of a page of the manual as they stand there: console.lua PAGE [PATTERN...]
--
-- Blocks of the language `console` are commands, each behind "$ ", and what they print. They run in the
-- folder where this script does. Commands that match a pattern are left out. Prints what differs, then how many
-- commands there were; the exit status tells.
local function read(path)
  local f = assert(io.open(path))
  local text = f:read "a"
  f:close()
  return text
end

local function left_out(command)
  for i = 2, #arg do
    if command:find(arg[i]) then
      return true
    end
  end
  return false
end

local count, wrong = 0, 0
for block in read(arg[1]):gmatch "\n```console\n(.-)\n```" do
  for command, printed in ("\n" .. block .. "\n"):gsub("\n%$ ", "\0"):gmatch "%z([^\n%z]*)\n?([^%z]*)" do
    if not left_out(command) then
      local p = assert(io.popen("{ " .. command .. "; } 2>&1"))
      local text = p:read("a"):gsub("\n*$", "")
      p:close()
      count = count + 1
      if text ~= printed:gsub("\n*$", "") then
        wrong = wrong + 1
        print(("$ %s\n%s"):format(command, text))
      end
    end
  end
end
print(count .. " commands, " .. wrong .. " differ")
os.exit(wrong == 0)
