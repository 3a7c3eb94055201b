-- Kernels of a function that do not wait for each other: one launch of a CPU, one kernel of a device with groups of
-- threads. Each has its own grid and barriers; what they compute is what each alone does.
local lu = require "luaunit"
local dc = require "deepc"

TestJoined = {}

local function whole(type, seed)
  return dc.randint("i32" .. type, { low = -9, high = 10, seed = seed }):cast "f32"
end

local function same(got, want)
  lu.assertEquals(got.shape, want.shape)
  lu.assertEquals((got - want):abs():max():item(), 0)
end

-- Through tiles that threads share, with barriers, of sizes that do not divide them.
function TestJoined:test_transposes()
  local f = dc.fn([[f(a: f32[20, 72], b: f32[320, 9], c: f32[160, 18])
    -> f32[72, 20], f32[9, 320], f32[18, 160] ]], function(a, b, c)
    return a:transpose(), b:transpose(), c:transpose()
  end)
  local a, b, c = whole("[20, 72]", 1), whole("[320, 9]", 2), whole("[160, 18]", 3)
  for _ = 1, 3 do
    local x, y, z = f(a, b, c)
    same(x, a:transpose())
    same(y, b:transpose())
    same(z, c:transpose())
  end
end

function TestJoined:test_products_and_sums()
  local f = dc.fn([[f(a: f32[20, 24], b: f32[24, 16], c: f32[9, 40], d: f32[40, 11])
    -> f32[20, 16], f32[9, 11], f32[24], f32[40, 9] ]], function(a, b, c, d)
    return a:matmul(b), c:matmul(d), a:sum(1), c:transpose()
  end)
  local a, b, c, d = whole("[20, 24]", 1), whole("[24, 16]", 2), whole("[9, 40]", 3), whole("[40, 11]", 4)
  local ab, cd, sums, turned = f(a, b, c, d)
  same(ab, a:matmul(b))
  same(cd, c:matmul(d))
  same(sums, a:sum(1))
  same(turned, c:transpose())
end
