-- Rows that are longer than what the registers of a thread group hold: softmax, cross entropy and gradients, compiled,
-- beside what is computed outside of typed functions. So it goes through rows in registers, in shared memory and in
-- parts, in lengths that vectors divide and in others; parts of nothing but -inf add nothing.
local lu = require "luaunit"
local dc, nn = require "deepc", require "deepc.nn"

TestLongRows = {}

local ROWS = 2
local LENGTHS = { 12289, 17408, 20011, 40013, 56044, 58031 }
local UNIT = { f32 = 2 ^ -16, bf16 = 2 ^ -7 }

local function close(t, got, want)
  local off = (got:cast "f32" - want:cast "f32"):abs():max():item()
  local size = want:cast "f32":abs():max():item()
  lu.assertTrue(off <= UNIT[t] * size, ("%g off, of %g at most"):format(off, size))
end

local function rows(t, n, seed)
  return dc.randn(("f32[%d, %d]"):format(ROWS, n), { seed = seed }):cast(t)
end

for t in pairs(UNIT) do
  for _, n in ipairs(LENGTHS) do
    local type = ("%s[%d, %d]"):format(t, ROWS, n)
    TestLongRows[("test_softmax_%s_%d"):format(t, n)] = function()
      local x = rows(t, n, 1)
      local f = dc.fn(("f(v: %s) -> %s"):format(type, type), function(v) return v:softmax(2) end)
      close(t, f(x), x:softmax(2))
    end
    TestLongRows[("test_gradients_%s_%d"):format(t, n)] = function()
      local x, g, y = rows(t, n, 2), rows(t, n, 3), dc.tensor({ 1, n - 1 }):cast "i32"
      local function all(v, h, at)
        local loss = nn.cross_entropy(v, at)
        local norm = (v:cast "f32" - v:cast "f32":mean(2):reshape(ROWS, 1)) * h:cast "f32"
        return loss, dc.grad(loss, v), dc.grad((v:softmax(2) * h):sum(), v), norm:cast(t)
      end
      local signature = "f(v: %s, h: %s, at: i32[%d]) -> %s[], %s, %s, %s"
      local f = dc.fn(signature:format(type, type, ROWS, t, type, type, type), all)
      local got = { f(x, g, y) }
      local want = { all(dc.param(type, x), g, y) }
      for i = 1, 4 do
        close(t, got[i], want[i])
      end
    end
  end
end

function TestLongRows:test_parts_without_a_number()
  local n = 70001
  local type = ("f32[%d, %d]"):format(ROWS, n)
  local f = dc.fn(("f(v: %s) -> %s"):format(type, type), function(v) return v:softmax(2) end)
  local x = dc.where(dc.iota("i32[70001]"):lt(30000):reshape(1, n), rows("f32", n, 4) - 40, -math.huge)
  close("f32", f(x), x:softmax(2))
  local sum = f(dc.full(type, -math.huge)):sum():item()
  lu.assertTrue(sum ~= sum)
end

-- Exponentials about the maxima of other rows are no softmax.
function TestLongRows:test_maxima_in_another_order()
  local n = 60000
  local f = dc.fn(("f(x: f32[2, %d]) -> f32[2]"):format(n), function(x)
    return (x - x:max(2):reshape(1, 2):expand(n, 2):reshape(2, n)):exp():sum(2)
  end)
  local x = dc.tensor { { 0 }, { math.log(2) } }:expand(2, n):clone()
  lu.assertAlmostEquals(f(x)[1]:item() / n, 0.75, 1e-4)
  lu.assertAlmostEquals(f(x)[2]:item() / n, 1.5, 1e-4)
end
