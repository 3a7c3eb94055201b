--- a function that is being traced when the script ends
local dc = require "deepc"
local co = coroutine.create(function()
  return dc.fn("f(x: f32[2]) -> f32[2]", function(x)
    pcall(coroutine.yield, x)
    error "left"
  end)(dc.ones "f32[2]")
end)
coroutine.resume(co)
found = co

--- a job that is not carried on
local dc = require "deepc"
local f = dc.fn("f(x: f32[64, 64]) -> f32[64, 64]", function(x) return x:matmul(x):matmul(x) end)
found = f:start(dc.ones "f32[64, 64]")

--- batches that are not finished
local dc, data = require "deepc", require "deepc.data"
local set = data.set(dc.iota "f32[1000, 10]", dc.iota "i32[1000]")
for b in set:batches { size = 10, shuffle = true } do
  found = b
  break
end
local next = set:batches { size = 8 }
found = { found, next }

--- values that outlive what made them
local dc = require "deepc"
local leak
pcall(function()
  dc.fn("f(x: f32[2]) -> f32[2]", function(x)
    leak = x
    error "left"
  end)(dc.ones "f32[2]")
end)
pcall(function() return leak + 1 end)
pcall(function() return leak:item() end)
pcall(tostring, leak)
found = leak

--- values that are closed twice
local dc = require "deepc"
local x = dc.ones "f32[2]"
x:close()
x:close()
refused(function() return x + 1 end)
refused(function() return x:item() end)
pcall(tostring, x)
pcall(dc.save, root .. "/out/x", { x = x })

--- scopes that are left by errors
local dc = require "deepc"
for _ = 1, 10 do
  pcall(function()
    local scope <close> = dc.scope()
    found = dc.ones "f32[2]"
    error(scope)
  end)
end
pcall(function() return found + 1 end)

--- errors in the middle of everything
local dc, nn, optim = require "deepc", require "deepc.nn", require "deepc.optim"
local net = nn.Linear(2, 2)
local opt = optim.SGD(net:parameters(), { lr = 0.1 })
for i = 1, 6 do
  pcall(function()
    dc.fn("f(x: f32[2, 2]) -> f32[]", function(x)
      if i == 1 then error {} end
      local loss = net(x):sum()
      if i == 2 then error(loss) end
      opt:step(loss)
      if i == 3 then error() end
      if i == 4 then return nil end
      if i == 5 then return x end
      return loss
    end)(dc.ones "f32[2, 2]")
  end)
end

--- a function in itself
local dc = require "deepc"
local f
refused(function() f = dc.fn("f(x: f32[2]) -> f32[2]", function(x) return f(x) + 1 end) end)
f = dc.fn("f(x: f32[n]) -> f32[n]", function(x) return f(x) + 1 end)
refused(function() f(dc.ones "f32[2]") end)

--- a gradient that calls back
local dc = require "deepc"
pcall(function()
  local g = dc.custom_grad(function(x) return x end, function() error "left" end)
  dc.fn("f(x: f32[2]) -> f32[2]", function(x) return dc.grad(g(x):sum(), x) end)(dc.ones "f32[2]")
end)

--- the last thing: a state full of everything
local dc, nn = require "deepc", require "deepc.nn"
found = {}
for i = 1, 50 do
  found[i] = { nn.Linear(4, 4), dc.ones "f32[4]" + i, dc.rand "f32[4]", dc.param("f32[4]", i),
    coroutine.wrap(function() coroutine.yield(i) end) }
  found[i][5]()
end
