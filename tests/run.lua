-- Runs LuaUnit tests: deepc tests/run.lua tests/lua/test_a.lua ...  (without files: all of them)
--
-- A test file defines global tables Test... with functions test...; every other global that is not
-- declared is an error, read or written. Ends with the line "N passed, N failed" that scripts/test
-- adds up; skipped tests print "skip: name: reason". Exit status 77 when all were skipped.

local lu = require "luaunit"

-- LuaUnit looks for these whether they exist or not.
local hooks = { setupSuite = true, teardownSuite = true }

local function strict(name)
  return type(name) ~= "string" or not name:match("^[Tt]est") and not hooks[name]
end

setmetatable(_G, {
  __newindex = function(t, name, value)
    if strict(name) then
      error(("global '%s' is assigned but not declared"):format(tostring(name)), 2)
    end
    rawset(t, name, value)
  end,
  __index = function(_, name)
    if strict(name) then
      error(("global '%s' is read but not declared"):format(tostring(name)), 2)
    end
  end,
})

local here = arg[0]:match("^(.*)/[^/]*$") or "."

-- For helpers shared by test files: require "tests.lua.name", whatever the working directory.
package.path = here .. "/../?.lua;" .. package.path

local function all_files()
  local files = {}
  local p = assert(io.popen("ls '" .. here .. "'/lua/test_*.lua"))
  for line in p:lines() do
    files[#files + 1] = line
  end
  p:close()
  return files
end

local files = #arg > 0 and { table.unpack(arg) } or all_files()
local broken = 0
for _, file in ipairs(files) do
  local chunk, message = loadfile(file)
  local ok = chunk ~= nil
  if ok then
    ok, message = xpcall(chunk, debug.traceback, file)
  end
  if not ok then
    broken = broken + 1
    print("failed to load " .. tostring(message))
  end
end

local runner = lu.LuaUnit.new()
runner:runSuite("-o", "text")
local r = runner.result
for _, node in ipairs(r.skippedTests) do
  print(("skip: %s: %s"):format(node.testName, tostring(node.msg)))
end

local passed, failed, skipped = r.successCount, r.notSuccessCount + broken, r.skippedCount
if passed + failed + skipped == 0 then
  print("no test found in " .. table.concat(files, " "))
  failed = 1
end
print(("%d passed, %d failed"):format(passed, failed)
  .. (skipped > 0 and (", %d skipped"):format(skipped) or ""))
os.exit(failed > 0 and 1 or passed == 0 and 77 or 0, true)
