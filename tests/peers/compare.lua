-- deepc tests/peers/compare.lua AREA...: each case, lazily and compiled, beside the table of its peer's results; prints
-- the largest error of each case and what is beyond its tolerance. Exit status 1 if anything is.
local dc = require "deepc"
package.path = "./?.lua;" .. package.path
local peers = require "tests.peers.peers"

local failed, passed = 0, 0
for _, area in ipairs(arg) do
  local tables = dc.load("tests/peers/tables/" .. area .. ".safetensors")
  local worst, order = {}, {}
  for _, v in ipairs(peers.variants(area)) do
    local name = v.case[1] .. " " .. v.dtype
    if not worst[name] then
      order[#order + 1], worst[name] = name, 0
    end
    for _, how in ipairs { "run", "run_compiled" } do
      local ok, results = xpcall(peers[how], debug.traceback, v)
      if how == "run_compiled" and v.case.lazy_only then
        ok, results = true, {}
      end
      local wrong, off = { ok or ("%s %s: %s"):format(v.key, how, results) }, 0
      if ok then
        wrong, off = peers.compare(v, results, tables)
      end
      worst[name] = math.max(worst[name], off)
      for _, line in ipairs(wrong) do
        print(("%s (%s)"):format(line, how == "run" and "lazy" or "compiled"))
      end
      failed, passed = failed + (#wrong > 0 and 1 or 0), passed + (#wrong == 0 and 1 or 0)
    end
  end
  for _, name in ipairs(order) do
    print(("%-12s %-40s %.1e"):format(area, name, worst[name]))
  end
end
print(("%d passed, %d failed"):format(passed, failed))
os.exit(failed == 0 and 0 or 1)
