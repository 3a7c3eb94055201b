-- The rules of the language, sentence by sentence (tests/lua/rules.lua): what is captured, cells,
-- gradients, models, random numbers, lazy code, memory, errors.
local rules = require "tests.lua.rules"

local check = rules.check

TestRules = {}

-- Guards: f is called twice, then something changes, then it is called until fields are compared, too.
local function changed(before, body, change)
  return before .. '\nlocal f = dc.fn("f(x: f32[])", function(x) ' .. body .. " end)\nf(1) f(1) " .. change ..
    "\nfor _ = 1, 16 do f(1) end"
end

function TestRules:test_guards()
  check {
    { "a local", changed("local k = 2", "return x * k", "k = 3"), raises = "captured local 'k' changed from 2 to 3" },
    { "a string", changed("local k = 'a'", "return k == 'a' and x * 2 or x", "k = 'b'"),
      raises = "captured local 'k'" },
    { "a boolean", changed("local k = true", "return k and x * 2 or x", "k = false"),
      raises = "captured local 'k' changed from true to false" },
    { "a tensor", changed("local k = dc.tensor(2)", "return x * k", "k = dc.tensor(3)"), raises = "DC0606" },
    { "a local of a function that is called", changed("local k = 2 local function g(y) return y * k end",
      "return g(x) + 1", "k = 3"), raises = "captured local 'k' changed from 2 to 3" },
    { "a field", changed("local t = { k = 2 }", "return x * t.k", "t.k = 3"),
      raises = "captured field 't.k' changed from 2 to 3" },
    { "a global", changed("", "return x * K", "K = 3"), raises = "K' changed from 2 to 3" },
    { "a tensor in a field", changed("local t = { h = dc.tensor(1) }", "return x * t.h", "t.h = dc.tensor(2)"),
      raises = "captured tensor 't.h' was replaced" },
    { "a field of a field", changed("local t = { m = { k = 2 } }", "return x * t.m.k", "t.m.k = 3"),
      raises = "'t.m.k' changed from 2 to 3" },
    { "an element", changed("local t = { 1, 2 }", "return x * t[1]", "t[1] = 5"), raises = "t[1]" },
    { "one more element", changed("local t = { 1, 2 }", "for i = 1, #t do x = x * t[i] end return x", "t[3] = 5"),
      raises = "DC060" },
    { "one more key", changed("local t = { a = 1 }", "for _, v in pairs(t) do x = x * v end return x", "t.b = 5"),
      raises = "DC060" },
    { "nil", changed("local k", "return k and x * k or x * 1", "k = 5"), raises = "captured local 'k'" },
    { "a table", changed("local t = { k = 2 }", "return x * t.k", "t = { k = 3 }"), raises = "DC060" },
    { "an equal table", changed("local t = { k = 2 }", "return x * t.k", "t = { k = 2 }") .. " print(#f:info())", "1" },
    { "a function", changed("local act = dc.relu", "return act(x)", "act = dc.tanh"), raises = "act" },
    { "a cell", changed("local p = dc.param('f32[]', 2)", "return x * p", "p = dc.param('f32[]', 3)"), raises = "'p'" },
    { "a layer in a table", changed("local t = { nn.ReLU() }", "for i = 1, #t do x = t[i](x) end return x * 2",
      "t[2] = nn.Dropout(0.5)"), raises = "DC060" },
    { "the same graph: nothing happens", changed("local k = 2 local n = dc.stats().compiles",
      "return k > 0 and x * 2 or x", "n = dc.stats().compiles k = 3") .. " print(dc.stats().compiles - n)", "0" },
    { "another field of the table", changed("local t = { k = 2, log = 1 }", "return x * t.k", "t.log = 2") ..
      " print(#f:info())", "1" },
    { "a counter in a field", [[
      local t = { n = 0 }
      local f = dc.fn("f(x: f32[])", function(x) t.n = t.n + 1 return x * t.n end)
      f(1)
      f(1)]], raises = "DC060" },
    { "a counter in a closure", [[
      local n = 0
      local function count() n = n + 1 return n end
      dc.fn("f(x: f32[])", function(x) return x * count() end)]], raises = "captured local 'n' is assigned" },
    { "an assigned local", [[
      local total = 0
      dc.fn("f(x: f32[])", function(x) total = total + x end)]], raises = "captured local 'total' is assigned" },
    { "a local read in a coroutine", changed("local k = 2",
      "return coroutine.wrap(function() return x * k end)()", "k = 3"), raises = "captured local 'k'" },
    { "a local of a metamethod", changed(
      "local k = 2 local o = setmetatable({}, { __index = function() return k end })",
      "return x * o.a", "k = 3"), raises = "captured local 'k'" },
    { "a local of a typed function inside", changed(
      "local k = 2 local g = dc.fn('g(x: f32[])', function(x) return x * k end)",
      "return g(x) + 1", "k = 3"), raises = "captured local 'k'" },
    { "a hidden counter", [[
      local words = ("a b c"):gmatch "%a"
      local f = dc.fn("f(x: f32[])", function(x) return words() == "a" and x * 1 or x * 2 end)
      f(1)
      f(1)]], raises = "DC0607" },
    { "a static parameter's field", [[
      local options = { k = 2 }
      local f = dc.fn("f(x: f32[], o)", function(x, o) return x * o.k end)
      f(1, options)
      f(1, options)
      options.k = 3
      for _ = 1, 16 do
        f(1, options)
      end]], raises = "k' changed from 2 to 3" },
    { "math.random", [[dc.fn("f(x: f32[])", function(x) return x * math.random() end)]], raises = "math.random" },
    { "under another name", [[
      local r = math.random
      dc.fn("f(x: f32[])", function(x) return x * r() end)]], raises = "math.random" },
    { "os.time", [[dc.fn("f(x: f32[])", function(x) return x * os.time() end)]], raises = "os.time" },
    { "os.clock", [[dc.fn("f(x: f32[])", function(x) return x * os.clock() end)]], raises = "os.clock" },
    { "io.read", [[dc.fn("f(x: f32[])", function(x) return x * io.read() end)]], raises = "io.read" },
    { "which work again afterwards", [[math.type(math.random(3)), math.type(os.time())]], "integer integer" },
    { "dc.static: each value is a specialisation", [[
      local k = dc.static(2)
      local f = dc.fn("f(x: f32[])", function(x) return x ^ k.value end)
      print(f(3))
      k.value = 3
      print(f(3))
      k.value = 2
      print(f(3), #f:info())]], "9.0; 27.0; 9.0 2" },
    { "assigned outside", [[
      local k = dc.static(2)
      dc.fn("f(x: f32[])", function(x) k.value = 3 return x end)]], raises = "DC0608" },
  }
end

function TestRules:test_cells()
  check {
    { "a cell stands wherever a tensor may", [[
      local p, s = dc.param("f32[2]", { 1, 2 }), dc.state("f32[2]", 3)
      print(p:sum(), values(p + s), values(dc.maximum(p, s)))]], "3.0 4.0 5.0 3.0 3.0" },
    { "states are not in parameters()", [[
      local L = nn.class "L"
      function L:init() self.p, self.s = dc.param "f32[2]", dc.state "f32[2]" end
      print(#L():parameters())]], "1" },
    { "set needs exactly its type", [[dc.state "f32[2]":set(dc.ones "f32[3]")]], raises = "DC0407" },
    { "names that do not differ", [[
      local s = dc.state "f32[a=2]"
      s:set(dc.ones "f32[2]")
      s:set(dc.ones "f32[a=2]" * 2)
      dc.fn("f(a: f32[a=2]) -> ()", function(a) s:set(a) end)(dc.ones "f32[b=2]")
      print(values(s))
      s:set(dc.ones "f32[b=2]")]], raises = "a cell is f32[a=2] and was set to f32[b=2]" },
    { "dtype included", [[dc.state "f32[2]":set(dc.ones "i32[2]")]], raises = "DC0407" },
    { "reads after it see the new value", [[
      local s = dc.state("f32[]", 1)
      local f = dc.fn("f()", function() local a = s + 0 s:set(s + 1) s:set(s * 10) return a, s + 0 end)
      local a, b = f()
      print(a, b, s)]], "1.0 20.0 20.0" },
    { "no gradient flows through set", [[
      local s, p = dc.state("f32[]", 1), dc.param("f32[]", 3)
      local f = dc.fn("f()", function() s:set(p * 2) return dc.grad(s * p, p) end)
      print(f())]], "6.0" },
    { "a cell returned is its value", [[
      local s = dc.state("f32[]", 1)
      local f = dc.fn("f()", function() s:set(s + 1) return s end)
      local a = f()
      print(a, f(), a, s)]], "2.0 3.0 2.0 3.0" },
    { "holders keep the old value", [[
      local s = dc.state("f32[]", 1)
      local recipe, copy = s * 7, s:clone()
      local f = dc.fn("f() -> ()", function() s:set(s + 1) end)
      f()
      print(recipe, copy, s)]], "7.0 1.0 2.0" },
    { "a trace that raises sets nothing", [[
      local s = dc.state("f32[]", 1)
      pcall(dc.fn, "f()", function() s:set(5) error "no" end)
      print(s)]], "1.0" },
    { "nor does a call that fails", [[
      local s = dc.state("f32[]", 1)
      local f = dc.fn("f(x: f32[1, 3], y: i32[1])", function(x, y) s:set(5) return nn.cross_entropy(x, y) end)
      print(pcall(f, { { 1, 2, 3 } }, { 7 }) == false, s)]], "true 1.0" },
    { "cells made inside are made once", [[
      local f = dc.fn("f(x: f32[])", function(x)
        local s = dc.state("f32[]", 1)
        s:set(s + x)
        return s * 1
      end)
      print(f(1), f(1), f(1))]], "2.0 3.0 4.0" },
    { "arguments are never donated", [[
      local x = dc.ones "f32[4]"
      local y = dc.fn("f(x: f32[4])", function(x) return x + 1 end)(x)
      print(x:sum(), y:sum())]], "4.0 8.0" },
    { "hyperparameters are states", [[
      local p = dc.param("f32[]", 1)
      local opt = optim.SGD({ p }, { lr = 1 })
      local f = dc.fn("f()", function() local l = p * p opt:step(l) return l end)
      f()
      print(p)
      opt.lr = 0.5
      f()
      print(p, #f:info(), opt.lr)]], "-1.0; 0.0 1 0.5" },
  }
end

function TestRules:test_gradients()
  check {
    { "of the form of wrt", [[
      local p, q = dc.param("f32[]", 3), dc.param("f32[]", 4)
      print(dc.grad(p * q, p), #dc.grad(p * q, { p, q }), dc.grad(p * q, { p, q })[2])]], "4.0 2 3.0" },
    { "of tensors", [[local x = dc.tensor { 1, 2 } print(values(dc.grad((x * x):sum(), x)))]], "2.0 4.0" },
    { "a scalar", [[local p = dc.param "f32[2]" local _ = dc.grad(p * p, p)]], raises = "DC0501" },
    { "not depending on one names its path", [[
      local net, other = nn.Linear(2, 1), nn.Linear(2, 1)
      local params = other:parameters()
      local _ = dc.grad(net(dc.ones "f32[1, 2]"):sum(), params)]], raises = "other.bias" },
    { "unused = zero", [[
      local p, q = dc.param("f32[]", 3), dc.param "f32[2]"
      local g = dc.grad(p * p, { p, q }, { unused = "zero" })
      print(g[1], values(g[2]))]], "6.0 0.0 0.0" },
    { "in opt:step, too", [[
      local p, q = dc.param("f32[]", 3), dc.param("f32[]", 4)
      local opt = optim.SGD({ p, q }, { lr = 1 })
      local f = dc.fn("f()", function() local l = p * p opt:step(l, { unused = "zero" }) return l end)
      f()
      print(p, q)
      dc.fn("f()", function() opt:step(p * p) end)]], raises = "DC0503" },
    { "at the version that loss read", [[
      local p = dc.param("f32[]", 3)
      local l = p * p
      p:set(5)
      print(dc.grad(l, p))
      p:set(3)
      print(dc.fn("f()", function() local m = p * p p:set(5) return dc.grad(m, p) end)())]], "6.0; 6.0" },
    { "results of compiled calls carry no graph", [[
      local p = dc.param("f32[]", 3)
      local f = dc.fn("f()", function() return p * p end)
      local _ = dc.grad(f(), p)]], raises = "take the gradient inside" },
    { "gradients of gradients", [[
      local x = dc.tensor(3)
      local g = dc.grad(x ^ 3, x)
      print(g, dc.grad(g, x))
      print(dc.fn("f(x: f32[])", function(x) return dc.grad(dc.grad(x ^ 3, x), x) end)(3))]], "27.0 18.0; 18.0" },
    { "custom_grad", [[
      local f = dc.custom_grad(function(x) return x * 1 end, function(dy) return dy * 10 end)
      print(dc.fn("f(x: f32[])", function(x) return dc.grad(f(x), x) end)(1))]], "10.0" },
    { "stop_gradient", [[local x = dc.tensor(3) print(dc.grad(x * dc.stop_gradient(x), x))]], "3.0" },
  }
end

function TestRules:test_models()
  check {
    { "calling a layer records its path", [[
      local net = nn.Sequential { nn.Flatten(), nn.Linear(784, 10) }
      local _ = net(dc.zeros "f32[3, 5, 5]")]], raises = "net.2 (nn.Linear 784 -> 10)" },
    { "restored after a caught error", [[
      local net = nn.Sequential { nn.Flatten(), nn.Linear(784, 10) }
      pcall(net, dc.zeros "f32[3, 5, 5]")
      local _, err = pcall(dc.zeros, "f32[")
      print(err.path)]], "nil" },
    { "integer parts are compared as numbers", [[
      local list = {}
      for i = 1, 11 do
        list[i] = nn.Linear(1, 1, { bias = false })
      end
      local named = nn.Sequential(list):named_parameters()
      print(named[2][1], named[10][1], named[11][1])]], "2.weight 10.weight 11.weight" },
    { "each cell once under its first path", [[
      local layer = nn.Linear(1, 1)
      local named = nn.Sequential { layer, layer }:named_parameters()
      print(#named, named[1][1], named[2][1])]], "2 1.bias 1.weight" },
    { "train and eval", [[
      local L = nn.class "L"
      function L:forward(x) return self.training and x * 2 or x * 1 end
      local l = L()
      local f = dc.fn("f(x: f32[])", function(x) return l(x) end)
      print(l.training, f(1))
      l:eval()
      print(l.training, f(1))
      l:train()
      print(l.training, f(1), #f:info())]], "true 2.0; false 1.0; true 2.0 2" },
    { "another structure is another specialisation", [[
      local net = nn.Sequential { nn.Linear(2, 2) }
      local f = dc.fn("f(x: f32[1, 2])", function(x) return net(x) end)
      f { { 1, 2 } }
      f { { 1, 2 } }
      net[1] = nn.Linear(2, 3)
      print(#f:info(), f { { 1, 2 } }.shape[2], #f:info())
      net[2] = nn.ReLU()
      print(f { { 1, 2 } }:min():item() >= 0, #f:info())
      net[2] = nil
      f { { 1, 2 } }
      print(#f:info())]], "1 3 2; true 3; 4" },
    { "another value is not", [[
      local net = nn.Sequential { nn.Linear(2, 2) }
      local f = dc.fn("f(x: f32[1, 2])", function(x) return net(x) end)
      f { { 1, 2 } }
      net[1].weight:set(0)
      net[1].bias:set(0)
      print(values(f { { 1, 2 } }), #f:info())]], "0.0 0.0 1" },
    { "another parameter is", [[
      local net = nn.Linear(2, 2)
      local f = dc.fn("f(x: f32[1, 2])", function(x) return net(x) end)
      f { { 1, 2 } }
      net.weight, net.bias = dc.param("f32[2, 2]", 0), dc.param("f32[2]", 7)
      print(values(f { { 1, 2 } }), #f:info())]], "7.0 7.0 2" },
    { "dropout", [[
      local drop, x = nn.Dropout(0.5), dc.ones "f32[1000]"
      local f = dc.fn("f(x: f32[1000])", function(x) return drop(x) end)
      print(f(x):eq(f(x)):all(), f(x):eq(0):mean():item() > 0.4, f(x):max())
      drop:eval()
      print(f(x):eq(x):all())]], "false true 2.0; true" },
    { "freezing", [[
      local net = nn.Sequential { nn.Linear(2, 2), nn.Linear(2, 1) }
      local opt = optim.SGD(net:parameters(), { lr = 1 })
      local f = dc.fn("f(x: f32[1, 2])", function(x) local l = net(x):sum() opt:step(l) return l end)
      f { { 1, 2 } }
      local w, v = net[1].weight:clone(), net[2].weight:clone()
      net[1]:freeze()
      f { { 1, 2 } }
      print((net[1].weight - w):abs():sum(), (net[2].weight - v):abs():sum():item() > 0, #f:info())]], "0.0 true 2" },
    { "undetermined sizes of parameters", [[dc.param "f32[n, 3]"]], raises = "DC04" },
    { "batches are on loan", [[
      local set, kept = data.set(dc.iota "f32[4]", dc.iota(4)), nil
      for x in set:batches { size = 2 } do
        kept = kept or x
      end
      local _ = kept + 1]], raises = "DC0107" },
    { "results and states of them are their own", [[
      local set, state, kept = data.set(dc.iota "f32[4]", dc.iota(4)), dc.state "f32[2]", {}
      local f = dc.fn("f(x: f32[2])", function(x) return x end)
      for x in set:batches { size = 2 } do
        kept[#kept + 1] = f(x)
        state:set(x)
      end
      print(values(kept[1]), values(kept[2]), values(state))]], "0.0 1.0 2.0 3.0 2.0 3.0" },
    { "clones stay, recipes keep their values", [[
      local set, kept, later = data.set(dc.iota "f32[4]", dc.iota(4)), {}, {}
      for x in set:batches { size = 2 } do
        kept[#kept + 1], later[#later + 1] = x:clone(), x * 10
      end
      print(values(kept[1]), values(later[1]), values(later[2]))]], "0.0 1.0 0.0 10.0 20.0 30.0" },
  }
end

function TestRules:test_random_numbers()
  check {
    { "a seed gives the same numbers", [[
      values(dc.randn("f32[3]", { seed = 1 })) == values(dc.randn("f32[3]", { seed = 1 }))]], "true" },
    { "otherwise the generator's, in order", [[
      dc.seed(5)
      local a, b = dc.randn "f32[3]", dc.randn "f32[3]"
      b, a = values(b), values(a)
      dc.seed(5)
      print(a == b, values(dc.randn "f32[3]") == a, values(dc.randn "f32[3]") == b)]], "false true true" },
    { "inside each site has its own, and each call advances once", [[
      dc.seed(5)
      local f = dc.fn("f()", function() return dc.randn "f32[3]", dc.randn "f32[3]" end)
      local a, b = f()
      local c, d = f()
      local count = dc.generator():totable()
      f()
      local after = dc.generator():totable()
      print(a:eq(b):any(), a:eq(c):any(), b:eq(d):any(), after[3] - count[3])
      dc.seed(5)
      print(a:eq((f())):all())]], "false false false 1; true" },
    { "tracing again changes nothing", [[
      local k = 1
      local f = dc.fn("f()", function() local _ = k return dc.rand "f32[]" end)
      local function draw(change)
        dc.seed(1)
        local list = {}
        for i = 1, 4 do
          k, list[i] = change and i or 1, tostring(f())
        end
        return table.concat(list, " ")
      end
      print(draw(false) == draw(true))]], "true" },
    { "values computed again draw the same", [[
      local block = dc.remat(function(x) return x * dc.rand "f32[3]" end)
      local f = dc.fn("f(x: f32[3])", function(x) local y = block(x) return y, dc.grad(y:sum(), x) end)
      local y, slope = f { 1, 1, 1 }
      print(y:eq(slope):all())]], "true" },
    { "its state is a cell", [[
      local before = dc.generator():clone()
      local a = dc.rand "f32[3]"
      local b = dc.rand "f32[3]"
      dc.generator():set(before)
      print(a:eq(b):any(), a:eq(dc.rand "f32[3]"):all())]], "false true" },
    { "a seed inside", [[
      local f = dc.fn("f()", function() return dc.randn("f32[3]", { seed = 1 }) end)
      print(values(f()) == values(f()))]], "true" },
  }
end

function TestRules:test_lazy_code()
  check {
    { "cell values are those of when it was written", [[
      local s = dc.state("f32[]", 1)
      local a = s + 1
      s:set(10)
      print(a)]], "2.0" },
    { "64 operations without a parameter", [[
      local before = dc.stats().realized
      local t = dc.tensor(1) * 1
      for _ = 1, 62 do
        t = t + 1
      end
      print(dc.stats().realized - before)
      t = t + 1
      print(dc.stats().realized - before)]], "0; 1" },
    { "printing never changes dc.grad", [[
      local p = dc.param("f32[]", 3)
      local l = p * p
      print(l, dc.grad(l, p))]], "9.0 6.0" },
    { "past 10,000 operations on a parameter", [[
      local t = dc.param("f32[]", 1) * 1
      for _ = 1, 11000 do
        t = t + 1
      end]], raises = "dc.stop_gradient" },
    { "without a parameter no end", [[
      local s = dc.state "f32[]"
      local t, u = dc.tensor(0), s + 0
      for _ = 1, 11000 do
        t, u = t + 1, u + 1
      end
      print(t, u)]], "11000.0 11000.0" },
  }
end

function TestRules:test_memory()
  check {
    { "close frees at once", [[local t = dc.ones "f32[4]" t:close() local _ = t + 1]], raises = "closed" },
    { "<close>, too", [[
      local kept
      do
        local t <close> = dc.ones "f32[4]"
        kept = t
      end
      local _ = kept + 1]], raises = "closed" },
    { "dc.scope keeps what it is told", [[
      local s = dc.scope()
      local a, b = dc.ones "f32[4]", s:keep(dc.ones "f32[4]")
      s:close()
      print(b:sum())
      local _ = a + 1]], raises = "closed" },
    { "a steady call allocates one small Lua object for a result", [[
      local f = dc.fn("f(x: f32[4]) -> f32[4]", function(x) return x + 1 end)
      local x = dc.ones "f32[4]"
      for _ = 1, 40 do
        f(x)
      end
      collectgarbage()
      collectgarbage "stop"
      local before = collectgarbage "count"
      for _ = 1, 100 do
        f(x)
      end
      local grown = (collectgarbage "count" - before) * 1024 / 100
      collectgarbage "restart"
      print(grown > 0, grown < 600)]], "true true" },
  }
end

function TestRules:test_errors()
  check {
    { "tables", [[
      local f = dc.fn("f(x: f32[3])", function(x) return x end)
      local _, err = pcall(f, dc.ones "f32[4]")
      print(err.code, err.op, err.at, err.expected, err.got, type(err.traceback))]],
      "DC0404 f script:2 f32[3] f32[4] string" },
    { "expected and got of results", [[
      local _, err = pcall(dc.fn, "f(x: f32[3]) -> f32[4]", function(x) return x end)
      print(err.code, err.expected, err.got)]], "DC0405 f32[4] f32[3]" },
    { "other errors pass through", [[
      local _, err = pcall(dc.fn, "f(x: f32[2])", function(x) error { code = 7, x } end)
      print(err.code, pcall(dc.fn, "f(x: f32[2])", function(x) local t return x + t.x end) == false)]], "7 true" },
    { "an error in a coroutine leaves no trace open", [[
      local f = dc.fn("f(x: f32[n])", function(x) return x:sum(7) end)
      coroutine.resume(coroutine.create(function() f { 1, 2 } end))
      collectgarbage()
      collectgarbage()
      print(values(dc.zeros "f32[2]" + 1), values(dc.fn("g(x: f32[n])", function(x) return x end) { 1, 2 }))]],
      "1.0 1.0 1.0 2.0" },
    { "of operations", [[
      local _, err = pcall(function() return dc.zeros "f32[2]" + dc.zeros "f32[3]" end)
      print(err.code, err.op, err.at, err.expected, err.got)]], "DC0301 add script:1 f32[2] f32[3]" },
    { "dims bound so far", [[
      local f = dc.fn("f(x: f32[n, d])", function(x) return x:sum(2) + dc.ones "f32[9]" end)
      f(dc.ones "f32[2, 3]")]], raises = "    dims   n=2, d=3\n" },
  }
end
