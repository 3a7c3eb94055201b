-- Small kernels that do not wait for each other, joined to few launches on devices of thread groups.
local lu = require "luaunit"
local dc = require "deepc"
local optim = require "deepc.optim"

local device = os.getenv "DEEPC_DEVICE" or "cpu"
local joins = (device:find "cuda" or device == "sim:opencl") and not (os.getenv "DEEPC_SKIP" or ""):find "bundle"

TestJoined = {}

-- Parameters of awkward sizes, vectors and matrices, and what each is to be after some steps along given gradients.
local function adam(sizes)
  dc.seed(7)
  local params, alone, gradients = {}, {}, {}
  for i, n in ipairs(sizes) do
    local value = dc.randn(("f32[%d]"):format(n))
    params[i], alone[i] = dc.param(value), dc.param(value)
    gradients[i] = dc.randn(("f32[%d]"):format(n))
  end
  return params, alone, gradients
end

local function update_of(params, gradients)
  local opt = optim.Adam(params, { lr = 1e-2 })
  return dc.fn("update(lr: f32[]) -> f32[]", function(lr)
    local loss
    for i, p in ipairs(params) do
      local term = (p * gradients[i]):sum()
      loss = loss and loss + term or term
    end
    opt:step(loss, { lr = lr })
    return loss
  end)
end

function TestJoined:test_adam_over_many_parameters()
  local sizes = {}
  for i = 1, 40 do
    sizes[i] = (i * 37) % 91 + 1 + (i % 5 == 0 and 600 or 0)
  end
  local params, alone, gradients = adam(sizes)
  local together = update_of(params, gradients)
  for _ = 1, 3 do
    together(1e-2)
  end
  -- Each parameter by itself: nothing to be joined with but its own.
  for i, p in ipairs(alone) do
    local one = update_of({ p }, { gradients[i] })
    for _ = 1, 3 do
      one(1e-2)
    end
    lu.assertEquals((p - params[i]):abs():max():item(), 0)
  end
  if not joins then
    return
  end
  local updates, joined = 0, 0
  for _, k in ipairs(together:kernels()) do
    local n = k.name:match "^bundle_(%d+)_E"
    joined = joined + (n or 0)
    updates = updates + (n and k.launches or 0)
  end
  lu.assertTrue(joined >= 40, "updates that are joined: " .. joined)
  lu.assertTrue(updates <= (device == "sim:opencl" and 12 or 5), "launches: " .. updates)
end

-- Each part of a joined kernel stands in the plan with what it writes and reads, and its source can be looked at.
function TestJoined:test_looked_at()
  local a, b = dc.param "f32[5]", dc.param "f32[7]"
  local f = dc.fn("f(x: f32[]) -> f32[]", function(x)
    a:set(a * 2 + 1)
    b:set(b - x)
    return x
  end)
  f(1)
  lu.assertEquals(a:sum():item(), 5)
  lu.assertEquals(b:sum():item(), -7)
  if not joins then
    return
  end
  lu.assertEquals(f:info()[1].launches, 1)
  local k = f:kernels()[1]
  lu.assertStrMatches(k.name, "bundle_2_E_%d")
  for _, form in ipairs { "nest", "schedule", "flat", "text" } do
    local text = f:source(1, form)
    local whole = form == "flat" or form == "text"
    lu.assertStrContains(text, whole and "bundle_2_E_" or "E_5")
    lu.assertStrContains(text, whole and "bundle_2_E_" or "E_7")
  end
  lu.assertStrMatches(f:plan(), ".*bundle_2_E_%d .*%+  E_%d  .* <%- .*%+  E_%d  .* <%- .*")
end

-- Small sums stand beside anything small. Beside many groups they would take registers and memory of each of them.
function TestJoined:test_unlike_parts()
  local function launches(n)
    local f = dc.fn(("f(x: f32[%d], y: f32[700]) -> f32[%d], f32[]"):format(n, n), function(x, y)
      return x * 2 + 1, (y * y):sum()
    end)
    local y = dc.full("f32[700]", 2)
    local a, b = f(dc.ones(("f32[%d]"):format(n)), y)
    lu.assertEquals(a:sum():item(), 3 * n)
    lu.assertEquals(b:item(), 2800)
    return f:info()[1].launches
  end
  local few, many = launches(60), launches(1 << 20)
  if joins and device:find "cuda" then
    lu.assertEquals(few, 1)
    lu.assertEquals(many, 2)
  end
end
