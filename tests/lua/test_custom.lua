-- dc.custom_grad and dc.remat: gradients given by hand, values computed again for the gradient.
local lu = require "luaunit"
local dc = require "deepc"

TestCustomGrad = {}

local function near(got, want, eps)
  got = got:totable()
  lu.assertEquals(#got, #want)
  for i = 1, #want do
    lu.assertAlmostEquals(got[i], want[i], (eps or 1e-5) * (1 + math.abs(want[i])))
  end
end

local function fails(code, text, f, ...)
  local ok, err = pcall(f, ...)
  lu.assertFalse(ok)
  lu.assertEquals(err.code, code)
  lu.assertStrContains(tostring(err), text)
end

local clip = dc.custom_grad(function(x)
  return x * 1
end, function(dy, _, _)
  return dy:maximum(-1):minimum(1)
end)

function TestCustomGrad:test_backward_is_used()
  local f = dc.fn("f(x: f32[3], k: f32[3]) -> f32[3], f32[3]", function(x, k)
    local y = clip(x)
    return y, dc.grad((y * k):sum(), x)
  end)
  local y, g = f({ 1, 2, 3 }, { -5, 0.5, 9 })
  near(y, { 1, 2, 3 })
  near(g, { -1, 0.5, 1 })
  y, g = f({ 4, 5, 6 }, { 0.25, -0.5, -2 }) -- traced again, the same graph
  near(y, { 4, 5, 6 })
  near(g, { 0.25, -0.5, -1 })
end

function TestCustomGrad:test_value_and_numbers_are_given_to_backward()
  local root = dc.custom_grad(function(x, k)
    return (x * k):sqrt()
  end, function(dy, y, _, k)
    return dy * k / (2 * y), nil
  end)
  local f = dc.fn("f(x: f32[2]) -> f32[2], f32[2]", function(x)
    local g = dc.grad(root(x, 4):sum(), x)
    return g, dc.grad(g:sum(), x) -- the value in the gradient has the given gradient too
  end)
  local g, h = f { 1, 4 }
  near(g, { 1, 0.5 })
  near(h, { -0.5, -0.0625 })
end

function TestCustomGrad:test_nil_is_no_gradient()
  local pick = dc.custom_grad(function(x, i, b)
    return x:take(i, 1) + b
  end, function(dy)
    return nil, nil, dy * 3
  end)
  local f = dc.fn("f(x: f32[3], i: i32[2], b: f32[2]) -> f32[3], f32[2]", function(x, i, b)
    local g = dc.grad(pick(x, i, b):sum(), { x, b }, { unused = "zero" })
    return g[1], g[2]
  end)
  local gx, gb = f({ 1, 2, 3 }, dc.tensor({ 2, 0 }, "i32[2]"), { 0, 0 })
  near(gx, { 0, 0, 0 })
  near(gb, { 3, 3 })
end

function TestCustomGrad:test_names_stay()
  dc.fn("f(x: f32[batch=2, d=3]) -> f32[batch=2, d=3]", function(x)
    return clip(x)
  end)
end

function TestCustomGrad:test_captured_tensors_are_told()
  local w = dc.param("f32[3]", 1)
  local bad = dc.custom_grad(function(x)
    return x * w
  end, function(dy)
    return dy
  end)
  fails("DC0505", "reads  f32[3]   cell", dc.fn, "f(x: f32[3]) -> f32[3]", function(x)
    return bad(x)
  end)
  local outer = function(x)
    local h = x:exp()
    return dc.custom_grad(function(a) return a * h end, function(dy) return dy end)(x)
  end
  fails("DC0505", "reads  f32[3]   made at", dc.fn, "f(x: f32[3]) -> f32[3]", outer)
  local fine = dc.custom_grad(function(x)
    return x * dc.stop_gradient(w) + 2
  end, function(dy)
    return dy * w
  end)
  local f = dc.fn("f(x: f32[3]) -> f32[3]", function(x)
    return dc.grad(fine(x):sum(), x)
  end)
  near(f { 1, 2, 3 }, { 1, 1, 1 })
end

function TestCustomGrad:test_wrong_gradients_are_told()
  local function try(backward, ...)
    local g = dc.custom_grad(function(x) return x * 2 end, backward)
    local more = ...
    return dc.fn("f(x: f32[3]) -> f32[3]", function(x) return g(x, more) end)
  end
  fails("DC0506", "returns 0 gradients for 2 arguments", try, function() end)
  fails("DC0506", "returns 3 gradients for 2 arguments", try, function(dy) return dy, nil, nil end)
  fails("DC0506", "test_custom.lua:", try, function() end)
  fails("DC0506", "the gradient of argument 1 is f32[], the argument is f32[3]", try, function(dy)
    return dy:sum(), nil
  end)
  fails("DC0506", "returns the number 1 as gradient of argument 1", try, function()
    return 1, nil
  end)
  fails("DC0506", "for argument 2, which is no tensor", try, function(dy)
    return dy, dy
  end, 7)
  local none = dc.custom_grad(function() return 2 end, function(dy) return dy end)
  fails("DC0506", "returns the number 2, one tensor is needed", dc.fn, "f(x: f32[3]) -> f32[3]", none)
  fails("DC0101", "is a function, not nil", dc.custom_grad, print)
end

function TestCustomGrad:test_a_failing_body_leaves_the_context_usable()
  local bad = dc.custom_grad(function() error "no" end, print)
  local ok = pcall(dc.fn, "f(x: f32[3]) -> f32[3]", function(x) return bad(x) end)
  lu.assertFalse(ok)
  self:test_backward_is_used()
end

TestRemat = {}

function TestRemat:test_same_values_and_gradients()
  local w = dc.param("f32[3]", { 0.5, -1, 2 })
  local function body(x, k)
    return (x * w * k):exp() + w
  end
  local block = dc.remat(body)
  local function step(call)
    return dc.fn("f(x: f32[3]) -> f32[3], f32[3], f32[3], f32[3]", function(x)
      local y = call(call(x, 0.5), 0.25)
      local g = dc.grad(y:sum(), { x, w })
      return y, g[1], g[2], dc.grad((g[1] * g[2]):sum(), x)
    end)
  end
  local plain = { step(body) { 0.1, 0.2, -0.3 } }
  local again = { step(block) { 0.1, 0.2, -0.3 } }
  for i = 1, 4 do
    near(again[i], plain[i]:totable())
  end
end

function TestRemat:test_dropout_has_one_mask()
  local block = dc.remat(function(x)
    local keep = dc.rand("f32[64]", { seed = 7 }):lt(0.5)
    return dc.where(keep, x * x, 0)
  end)
  local f = dc.fn("f(x: f32[64]) -> f32[64], f32[64]", function(x)
    local y = block(x)
    return y, dc.grad(y:sum(), x)
  end)
  local y, g = f(dc.full("f32[64]", 3))
  near(g, (y * (2 / 3)):totable())
end

function TestRemat:test_less_memory()
  local w = {}
  for i = 1, 8 do
    w[i] = dc.param("f32[64, 64]", dc.randn("f32[64, 64]", { seed = i, std = 0.1 }))
  end
  local function arena(wrap)
    local f = dc.fn("f(x: f32[128, 64]) -> f32[64, 64]", function(x)
      for i = 1, 8, 2 do
        x = wrap(function(h)
          return h:matmul(w[i]):tanh():matmul(w[i + 1]):tanh()
        end)(x)
      end
      return dc.grad(x:sum(), w)[1]
    end)
    f(dc.ones "f32[128, 64]")
    local info = f:info()[1]
    return info.interpreted and 0 or info.arena_bytes
  end
  local kept, again = arena(function(f) return f end), arena(dc.remat)
  if kept > 0 then
    lu.assertTrue(again < kept * 0.8, again .. " against " .. kept)
  end
end

function TestRemat:test_outside_it_is_the_function()
  local block = dc.remat(function(x, k) return x * k end)
  near(block(dc.tensor { 1, 2 }, 3), { 3, 6 })
  fails("DC0506", "inside typed functions", clip, dc.ones "f32[3]")
end
