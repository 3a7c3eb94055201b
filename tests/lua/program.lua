-- The program, run as a user runs it: local program = require "tests.lua.program"
local program = { path = arg[-1] }

---For the shell.
function program.quote(s)
  return "'" .. s:gsub("'", "'\\''") .. "'"
end

---Runs the program with a shell line of arguments, behind `before`: settings, or what is piped into it. Output and
---errors together, and the status.
function program.run(line, before)
  local command = ("%s %s %s 2>&1; echo \"status $?\""):format(before or "", program.quote(program.path), line)
  local p <close> = assert(io.popen(command))
  local text, status = p:read("a"):match "^(.*)status (%d+)\n$"
  return text, tonumber(status)
end

---A file with this text, for the caller to remove.
function program.script(text)
  local path = os.tmpname()
  local f <close> = assert(io.open(path, "w"))
  f:write(text)
  return path
end

return program
