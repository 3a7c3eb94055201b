-- Random expressions outside typed functions, each computed for one random size after the other: by the interpreter,
-- and by programs for any size (DEEPC_LAZY=sizes), in a process each. Numbers are whole and small, so every bit has to
-- be the same. The sizes come back in another order, so that programs are run at their bounds and far below.
--
--   deepc lazy_sizes.lua [COUNT [SEED]]       COUNT (40) expressions; this one runs itself twice
local dc = require "deepc"

local count, seed, role = tonumber(arg[1] or 40), tonumber(arg[2] or 1), arg[3]
local STEPS, CALLS = 7, 14

if not role then
  local function read(lazy)
    local command = ("DEEPC_LAZY=%s '%s' '%s' %d %d run"):format(lazy, arg[-1], arg[0], count, seed)
    local p <close> = assert(io.popen(command))
    return p:read "a"
  end
  local want, got = read "eval", read "sizes"
  local lines, general = {}, got:match "general (%d+)"
  for line in want:gmatch "[^\n]+" do
    lines[#lines + 1] = line
  end
  local n, failed = 0, 0
  for line in got:gmatch "[^\n]+" do
    n = n + 1
    if line ~= lines[n] and not line:find "^general" then
      failed = failed + 1
      print(("seed %d: interpreter %s\n        any size    %s"):format(seed, lines[n], line))
    end
  end
  print(("%d lines, %s programs for any size"):format(n, general))
  print(("%d passed, %d failed"):format(n - failed, failed + (n == #lines and n > count and 0 or 1)))
  os.exit(failed == 0 and n == #lines and tonumber(general) > count // 4)
end

local function pick(list)
  return list[math.random(#list)]
end

-- ---- steps: each makes a tensor of its operand, whose sizes depend on n ----

local function small(x) -- from -8 to 8, whatever it was
  return (x % 17) - 8
end

local vectors = {
  function() local k = math.random(-3, 3) return function(x) return small(x * k + x:abs()) end end,
  function() local k = math.random(1, 5) return function(x) return small(x:sum() + x * k) end end,
  function() return function(x) return x:maximum(x:flip(1)) end end,
  function() local k = math.random(1, 4) return function(x) return x:roll(k, 1) end end,
  function() return function(x) return dc.concat({ x, x * 2 }, 1) end end,
  function() local k = math.random(1, 3) return function(x) return x[{ { k, x:size(1) - k } }] end end,
  function() return function(x) return x:cumsum(1):clamp(-8, 8) end end,
  function() local k = math.random(1, 3) return function(x) return x:pad { { k, 2 } } end end,
  function() return function(x) return dc.where(x:gt(0), x, x:mean():floor():clamp(-8, 8):cast(x.dtype)) end end,
  function() return function(x) return x:reshape(1, x:size(1)):expand(3, x:size(1)):sum(1) end end,
  function() return function(x) return small(x + dc.iota(("%s[%d]"):format(x.dtype, x:size(1)))) end end,
  function() return function(x) return x:cast "i32":cast(x.dtype) end end,
  function() return function(x) return x:sort() end end,
  function() return function(x) return small(x:outer(x):sum(2)) end end,
  function() return function(x) return x:take(dc.iota(("i32[%d]"):format(x:size(1) // 2)) * 2, 1) end end,
  function() return function(x) return dc.concat({ x, x, x, x }, 1):reshape(x:size(1), 4):sum(2) end end,
  function() return function(x) return small(dc.concat({ x, x }, 1):reshape(2, x:size(1)):transpose():max(2)) end end,
  function()
    return function(x)
      local n = x:size(1)
      return small((x:reshape(n, 1) * 2 - x:reshape(1, n)):min(1))
    end
  end,
  function() return function(x) return x:argmax(1):cast(x.dtype) % 5 + x end end,
  function() return function(x) return x:eq(x:flip(1)):cast(x.dtype) - x end end,
  function() return function(x) return dc.triu(x:outer(x)):sum(1) % 7 end end,
  function() return function(x) return x:put({ 1 }, 3) end end,
  function() local k = math.random(1, 4) return function(x) return x:window(k, 1):max(2) end end,
  function() return function(x) return x[{ { 1, x:size(1), 2 } }] end end,
  function()
    return function(x)
      local m = x:reshape(x:size(1), 1)
      return small(m:matmul(m:transpose()):max(2))
    end
  end,
}

local function expression()
  local steps = {}
  for i = 1, math.random(1, STEPS) do
    steps[i] = pick(vectors)()
  end
  return function(x)
    for _, step in ipairs(steps) do
      local ok, y = pcall(step, x)
      if ok and y:size(1) > 0 and y:size(1) < 3000 then
        x = y
      end
    end
    return x
  end
end

-- ---- runs ----

local function checksum(x)
  local sum, n = 0, 0
  for _, v in ipairs(x:reshape(-1):cast("f64"):totable()) do
    n = n + 1
    sum = (sum * 31 + v) % 1000000007
  end
  return ("%d of %d"):format(sum, n)
end

for i = 1, count do
  math.randomseed(seed * 1000003 + i)
  local f, dtype = expression(), pick { "f32", "f32", "i32", "f64" }
  local base, step, sizes = math.random(1, 60), math.random(1, 7), {}
  for k = 1, CALLS do
    sizes[k] = base + step * math.random(0, 30)
  end
  for k, n in ipairs(sizes) do
    local x = small(dc.iota(("%s[%d]"):format(dtype, n)) * (k + 3)):clone()
    local whole = f(x)
    print(i, k, n, checksum(whole), whole:sum():item())
  end
end
print("general " .. dc.stats().lazy_general)
