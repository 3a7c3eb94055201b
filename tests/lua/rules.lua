-- Rules in rows, for test_language_rules.lua and test_language_state.lua: each row is a sentence, a
-- script, and what it prints or raises. A script that is an expression prints its values. `values(x)`
-- is a tensor's numbers, `has_name(x, name)` whether a dim of it has that name, K the global 2.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local data = require "deepc.data"

local rules = {}

local function values(t)
  local list = t:flatten():totable()
  for i, v in ipairs(list) do
    list[i] = tostring(v)
  end
  return table.concat(list, " ")
end

local function has_name(x, name)
  return (pcall(x.size, x, name))
end

-- What the script prints, lines behind each other with "; ".
local function run(script)
  local printed = setmetatable({}, { __mode = "k" }) -- weak: bodies that print are not traced again for it
  local function show(...)
    local t = table.pack(...)
    for i = 1, t.n do
      t[i] = tostring(t[i])
    end
    printed[#printed + 1] = table.concat(t, " ", 1, t.n)
  end
  local env = setmetatable({
    dc = dc, nn = nn, optim = optim, data = data, values = values, has_name = has_name, print = show, K = 2,
  }, { __index = _G })
  local expression = load("return " .. script, "=script", "t", env)
  local chunk = expression or assert(load(script, "=script", "t", env))
  if expression then
    show(chunk())
  else
    chunk()
  end
  return table.concat(printed, "; ")
end

---Every row does what it says.
function rules.check(rows)
  for _, row in ipairs(rows) do
    local ok, result = pcall(run, row[2])
    if row.raises then
      lu.assertFalse(ok, row[1])
      lu.assertStrContains(tostring(result), row.raises, false, false, row[1])
    else
      lu.assertTrue(ok, row[1] .. ": " .. tostring(result))
      lu.assertEquals(result, row[3], row[1])
    end
  end
end

return rules
