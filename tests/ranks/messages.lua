-- dc.send and dc.recv between two ranks: outside of functions, in them, in loops and branches, with gradients.
--
--   mpirun -n 2 deepc tests/ranks/messages.lua
local dc = require "deepc"

local world = dc.world()
dc.mesh { pipe = world.size }
local me, other = world.rank, 1 - world.rank

local function same(x, list)
  local numbers = x:reshape(-1):totable()
  assert(#numbers == #list, tostring(x))
  for i, value in ipairs(list) do
    assert(numbers[i] == value, tostring(x))
  end
end

-- ---- values ----

for _, dtype in ipairs { "bool", "i8", "u16", "i64", "f16", "bf16", "f32", "f64" } do
  local of = ("%s[3]"):format(dtype)
  dc.send(dc.ones(of), { to = other })
  local got = dc.recv(of, { from = other })
  assert(got.dtype == dtype)
  same(got:cast "f32", { 1, 1, 1 })
end

-- Both send what no buffer of the transport holds, then receive.
local large = dc.full("f32[600000]", me)
dc.send(large, { to = other })
dc.send(large + 1, { to = other })
assert(dc.recv("f32[600000]", { from = other }):max():item() == other)
assert(dc.recv("f32[600000]", { from = other }):min():item() == other + 1)

-- ---- gradients ----

local p = dc.param("f32[3]", 2)

local function chain(x)
  if me == 0 then
    local token = dc.send(x * p, { to = 1, over = "pipe" })
    return token, dc.grad(token, p)
  end
  local h = dc.recv("f32[3]", { from = 0, over = "pipe" })
  local loss = (h * h * p):sum()
  return loss, dc.grad(loss, p)
end

-- sum(x^2 p^2 q) of a p on rank 0 and a q on rank 1
local function check_chain(loss, gradient)
  same(loss, { me == 0 and 0 or 112 })
  same(gradient, me == 0 and { 8, 32, 72 } or { 4, 16, 36 })
end

local row = dc.tensor { 1, 2, 3 }
check_chain(chain(row))
local compiled = dc.fn("chain(x: f32[3]) -> f32[], f32[3]", chain)
for _ = 1, 3 do
  check_chain(compiled(row))
end

-- What is sent depends on no parameter, and is part of a larger loss: it is answered all the same.
local answered = dc.fn("answered(x: f32[3]) -> f32[3]", function(x)
  if me == 0 then
    local loss = (p * x):sum() + dc.send(x * 3, { to = 1 })
    return dc.grad(loss, p)
  end
  return dc.grad((dc.recv("f32[3]", { from = 0 }) * p):sum(), p)
end)
same(answered(row), me == 0 and { 1, 2, 3 } or { 3, 6, 9 })

-- Both at once: sum(x^2 p q) of a p on each rank and the other one's q. In an order that both have.
local turned = dc.fn("turned(x: f32[3]) -> f32[3], f32[3]", function(x)
  local y = dc.send_recv(x * p * (1 + me), { to = other, from = other })
  return y, dc.grad((y * p):sum(), p)
end)
local y, slope = turned(row)
same(y, other == 0 and { 2, 4, 6 } or { 4, 8, 12 })
same(slope, { 2 * (1 + other) + 2 * (1 + me), 2 * (2 + 2 * other) + 4 * (1 + me), 6 * (1 + other) + 6 * (1 + me) })
local steps = dc.iota(3) + me
same(dc.send_recv(steps, { to = other, from = other }), { other, 1 + other, 2 + other })

-- ---- loops and branches ----

local looped = dc.fn("looped(xs: f32[4, 3]) -> f32[3]", function(xs)
  return dc.scan(function(sum, x)
    local _, gradient = chain(x)
    return sum + gradient
  end, dc.zeros "f32[3]", xs)
end)
same(looped(dc.iota(12):reshape(4, 3):cast "f32"), me == 0 and { 1008, 1328, 1712 } or { 504, 664, 856 })

-- The first one is received, although nothing reads it.
local chosen = dc.fn("chosen(x: f32[2], yes: bool[]) -> f32[2]", function(x, yes)
  return dc.cond(yes, function()
    dc.send(x, { to = other })
    dc.send(x * 2, { to = other })
    dc.recv("f32[2]", { from = other })
    return dc.recv("f32[2]", { from = other })
  end, function() return x end)
end)
same(chosen(dc.full("f32[2]", 1 + me), true), { 2 * (1 + other), 2 * (1 + other) })
same(chosen(dc.full("f32[2]", 1 + me), false), { 1 + me, 1 + me })

-- In the order of the script, sums over all ranks included, also where operands depend on nothing.
local ordered = dc.fn("ordered(x: f32[2]) -> f32[2], f32[]", function(x)
  local sum = dc.all_reduce(x)
  if me == 0 then
    dc.send(x * 3, { to = 1 })
    dc.send(x, { to = 1 })
  else
    dc.recv("f32[2]", { from = 0 })
    sum = sum + dc.recv("f32[2]", { from = 0 })
  end
  local count = dc.all_reduce(me == 0 and dc.ones "f32[]" or x:sum())
  return dc.all_reduce(sum * 2), count
end)
local sum, count = ordered(dc.ones "f32[2]")
same(sum, { 10, 10 })
same(count, { 3 })

-- What nothing uses on this rank others use: it is performed as it is written, in loops and branches too. Equal ones
-- are two.
local unused = dc.fn("unused(x: f32[2], yes: bool[]) -> f32[2]", function(x, yes)
  local twin = me == 0 and x or x * 1
  local zero, one, two = dc.all_reduce(x), dc.all_reduce(x), dc.all_reduce(twin)
  local last = dc.scan(function(c)
    local all = dc.all_reduce(me == 0 and dc.ones "f32[2]" or c)
    return me == 0 and c + all or c
  end, x, nil, { length = 3 })
  local kept = dc.cond(yes, function()
    local all = dc.all_reduce(x)
    return me == 0 and all or x
  end, function() return x end)
  if me == 0 then
    return zero + one + two + last + kept
  end
  return last + kept
end)
-- A loop is in the call, and in the loop round it, also where it is made of nothing that changes there on this rank.
local constant = dc.param("f32[2]", 1)
local placed = dc.fn("placed(x: f32[2]) -> f32[2], f32[2], f32[2]", function(x)
  local in_call = dc.scan(function(c)
    return c + dc.all_reduce(me == 0 and constant or x)
  end, dc.zeros "f32[2]", nil, { length = 3 })
  local in_loop = dc.scan(function(o)
    return o + dc.scan(function(c)
      return c + dc.all_reduce(me == 0 and x or o)
    end, me == 0 and x or o, nil, { length = 2 })
  end, x, nil, { length = 2 })
  local rows = dc.vmap(function(r) return dc.all_reduce(r) * 1 end)(x)
  return in_call, in_loop, me == 0 and rows or x
end)
for _ = 1, 3 do
  local in_call, in_loop, rows = placed(dc.full("f32[2]", 1 + me))
  same(in_call, { 9, 9 })
  same(in_loop, me == 0 and { 31, 31 } or { 42, 42 })
  same(rows, me == 0 and { 3, 3 } or { 2, 2 })
end
for _ = 1, 2 do
  same(unused(dc.full("f32[2]", 1 + me), true), me == 0 and { 22, 22 } or { 4, 4 })
end

-- Outside of functions a gradient that is received is none of the values that were received before.
local sent = dc.send_recv(row * p, { to = other, from = other })
same(dc.grad((sent * sent * row):sum(), p), { 4, 32, 108 })

-- A ring of one rank gives what it gets: of a state the value that it has then.
local state = dc.state("f32[2]", 3)
local itself = dc.fn("itself() -> f32[2], f32[2]", function()
  local was = dc.send_recv(state, { to = me, from = me })
  state:set(state + 1)
  return was, dc.grad((dc.send_recv(state, { to = me, from = me }) * state):sum(), state)
end)
local before, twice = itself()
same(before, { 3, 3 })
same(twice, { 8, 8 })
local mine = dc.send_recv(state, { to = me, from = me })
state:set(dc.zeros "f32[2]")
same(mine, { 4, 4 })

-- Nothing but messages, call after call.
local bare = dc.fn("bare(x: f32[2])", function(x)
  for _ = 1, 3 do
    dc.send(x, { to = other })
  end
  for _ = 1, 3 do
    dc.recv("f32[2]", { from = other })
  end
end)
for _ = 1, 4 do
  bare(dc.ones "f32[2]")
end

-- What a call gives to others is told, of loops for all iterations.
local told = looped:exchanges()
assert(#told == 2)
for _, e in ipairs(told) do
  assert(e.type == "f32[3]" and e.over[1] == "pipe" and e.times == 4 and e.bytes == (e.op == "send" and 12 or 0))
end
local text = looped:explain()
assert(text:find "reference interpreter" or text:find "send f32%[3%] over pipe, 12 bytes 4 times   %S*messages%.lua:")
print "right"
