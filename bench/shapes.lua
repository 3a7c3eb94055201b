-- deepc's side of bench/shapes.py. Results are closed as soon as they are no longer needed.
local dc = require "deepc"
local nn = require "deepc.nn"
local frame = dofile((arg[0]:match "^(.*)/" or ".") .. "/frame.lua")

local function turn(t, turned)
  return turned and t:transpose() or t
end

local function dot(c, a, b, bias, residual)
  a, b = turn(a, c.turned:find "a"), turn(b, c.turned:find "b")
  if c.at == "i8" then
    return a:matmul(b) -- i32
  elseif c.at ~= "f32" then
    a = a:cast "f32"
  end
  if c.bt ~= "f32" then b = b:cast "f32" end
  if c.scale then b = b * bias end
  if c.before then a = a:gelu() end
  local y = a:matmul(b)
  return c.after and (y + bias):gelu() + residual or y
end

local function heads(c, q, k, v)
  local function split(x) return x:reshape(c.b, c.t, c.h, c.d):permute(1, 3, 2, 4) end
  local y = (split(q):matmul(split(k):transpose()) * c.d ^ -0.5):softmax(4):matmul(split(v))
  return y:permute(1, 3, 2, 4):reshape(c.b, c.t, c.h * c.d)
end

local function weight_gradient(_, a, b, w)
  return dc.grad((a:matmul(w) * b):sum(), { w })[1]
end

local function conv(c, a, b)
  return dc.conv2d(a, b, { padding = c.w % 2 == 1 and c.w // 2 or 0, stride = c.stride, groups = c.groups })
end

local function flat(c, a, b)
  return conv(c, a, b):reshape(c.b, c.o, -1)
end

-- f(c, inputs in the order of their names)
local forms = {
  dot = dot,
  heads = heads,
  weight_gradient = weight_gradient,
  heads_gradient = function(c, a, b, w)
    return weight_gradient(c, a:permute(1, 3, 2, 4):reshape(c.b, c.t, c.h * c.d), b, w)
  end,
  conv = conv,
  conv_flat = function(c, a, b) return flat(c, a, b) + 1 end,
  conv_norm = function(c, a, b) return nn.layer_norm(flat(c, a, b), (c.s // c.stride) ^ 2 // 1 | 0) end,
  conv_softmax = function(c, a, b) return flat(c, a, b):softmax(3) end,
  sum = function(_, a) return a:sum(2) end,
  max = function(_, a) return a:max(2) end,
  softmax = function(_, a) return a:softmax(2) end,
  norm = function(c, a) return nn.layer_norm(a, c.c) end,
  mean_square = function(_, a) return (a * a):mean(2) end,
  argmax = function(_, a) return a:argmax(2) end,
  sum_columns = function(_, a) return a:sum(1) end,
  sum_middle = function(_, a) return a:sum(2) end,
  softmax_columns = function(_, a) return a:softmax(1) end,
  take = function(_, a, ids) return a:take(ids, 1) end,
  take_columns = function(_, a, ids) return a:take(ids, 2) end,
  take_dot = function(_, a, b, e, ids) return e:take(ids, 1) + a:matmul(b) end,
  transpose = function(_, a) return a:transpose() end,
  permute = function(c, a)
    local p = {}
    for i = 1, 3 do p[i] = math.tointeger(c.perm:sub(i, i)) end
    return a:permute(table.unpack(p))
  end,
  cast = function(c, a) return a:cast(c.to) end,
  slice = function(_, a) return a[{ { 2, -1 }, { 2, -1 } }] + 1 end,
  step = function(_, a) return a[{ { 1, -1, 2 }, {} }] + 1 end,
  flip = function(_, a) return a:flip(2) end,
  pad = function(_, a) return a:pad { [2] = { 1, 2 } } end,
  concat = function(_, a, b) return dc.concat({ a, b }, 2) end,
  roll = function(_, a) return a:roll(1, 2) end,
  broadcast = function(_, a, b) return a * b end,
  outer = function(_, a, b) return a:reshape(-1, 1) * b end,
  reshape_add = function(c, a, b) return a:reshape(c.r, -1, 4) + b end,
  repeats = function(c, a) return a:reshape(c.r, c.c, 1):expand(c.r, c.c, 4):reshape(c.r, -1) end,
}
forms["repeat"] = forms.repeats

frame.serve(function(case, inputs)
  local names, params, args, last = {}, {}, {}, nil
  for name in pairs(inputs) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do
    local t, dtype = inputs[name], ({ a = case.at, b = case.bt })[name]
    if dtype and t.dtype ~= dtype then t = t:cast(dtype):clone() end
    args[i] = t
    params[i] = ("%s: %s[%s]"):format(name, t.dtype, table.concat(t.shape, ", "))
  end
  -- the parameters of a function are those of its signature
  local of = ("local form, case = ...; return function(%s) return form(case, %s) end")
  local list = table.concat(names, ", ")
  local body = load(of:format(list, list))(forms[case.form], case)
  local f = dc.fn(("f(%s)"):format(table.concat(params, ", ")), body)
  return function(n)
    for _ = 1, n do
      if last then last:close() end
      last = f(table.unpack(args))
    end
    return { y = last }
  end
end)
