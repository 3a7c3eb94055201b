-- Random steps of training (tests/random/nets.lua) as programs of StableHLO, read again by deepc, with equal results:
--
--   deepc tests/stablehlo/random.lua [SEED [COUNT]]
--
-- Prints seeds whose results differ, then "N passed, N failed". Where a bias stands before a norm its gradient is 0 but
-- for rounding, which RMSprop and Adam divide by its size: such biases differ between any two ways of computing them,
-- as much as between DEEPC_OPT=0 and 2 (some 3 of 100 seeds).
local dc = require "deepc"
local stablehlo = require "deepc.stablehlo"

local here = arg[0]:match "^(.*)/" or "."
local compare = dofile(here .. "/again.lua").compare
local seed, count = math.tointeger(arg[1] or 1), math.tointeger(arg[2] or 20)

-- What nets.lua exports.
local step
stablehlo.export = function(f)
  step = f
end

-- "y_below7" holds integers from 0 to 6.
local function input(a)
  local t = ("%s[%s]"):format(a.dtype, table.concat(a.shape, ", "))
  if a.dtype:find "^b?f%d" then
    return dc.randn(t)
  elseif a.dtype == "bool" then
    return dc.bernoulli(t, { p = 0.5 })
  end
  return dc.randint(t, { high = math.tointeger(a.name:match "_below(%d+)" or 2) })
end

local failed = 0
for s = seed, seed + count - 1 do
  local ok, err = pcall(function()
    assert(loadfile(here .. "/../random/nets.lua"))(s, 12, "step.mlir")
    local _, arguments = stablehlo.text(step)
    local args = {}
    for i, a in ipairs(arguments) do
      args[i] = not a.value and input(a) or nil
    end
    compare("step", step, args, 1e-3)
  end)
  if not ok then
    failed = failed + 1
    print(("seed %d: %s"):format(s, err))
  end
end
print(("%d passed, %d failed"):format(count - failed, failed))
os.exit(failed == 0)
