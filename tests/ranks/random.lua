-- Random programs of collectives and messages on ranks, beside the same computed by each rank alone for all of them:
-- values and gradients; outside of functions, in one, in a loop, in a branch.
--
--   deepc --ranks N tests/ranks/random.lua [COUNT [SEED]]
--   mpirun -n N deepc tests/ranks/random.lua ...
local dc = require "deepc"

local count, first = tonumber(arg[1] or 20), tonumber(arg[2] or 1)
local world = dc.world()
local size, me = world.size, world.rank
local type_of <const> = "f32[12, 2]"

-- The mesh: one axis, or two.
local axes, names = { a = size }, { "a" }
if size % 2 == 0 and size > 2 then
  axes, names = { a = 2, b = size // 2 }, { "a", "b", "a+b" }
end
dc.mesh(axes)

-- The ranks with which a rank exchanges `over` axes, in their order; and which of them it is, from 0.
local function group(rank, over)
  local b = axes.b or 1
  local x, y = rank // b, rank % b
  local ranks = {}
  for i = 0, size - 1 do
    local same_x, same_y = i // b == x, i % b == y
    if (over:find "a" or same_x) and (over:find "b" or same_y) then
      ranks[#ranks + 1] = i
    end
  end
  for k, i in ipairs(ranks) do
    if i == rank then
      return ranks, k - 1
    end
  end
end

-- ---- programs -------------------------------------------------------------------------------------------

local random = {} -- of its own: math.random would be the script's
function random:below(n)
  self.state = (self.state * 6364136223846793005 + 1442695040888963407)
  return (self.state >> 33) % n
end

local kinds <const> = { "all_reduce", "maximum", "reduce_scatter", "all_to_all", "broadcast", "ring", "pair", "pair",
  "mul", "sin", "param" }

local function make(seed)
  random.state = seed * 2654435761
  for _ = 1, 5 do
    random:below(2)
  end
  local program = {}
  for i = 1, 3 + random:below(7) do
    local over = names[1 + random:below(#names)]
    local n = #group(0, over)
    program[i] = {
      kind = kinds[1 + random:below(#kinds)],
      x = 1 + random:below(i),
      y = 1 + random:below(i),
      over = over,
      to = random:below(n),
      from = random:below(n),
    }
  end
  return program
end

-- What does not depend on other ranks.
local function own(step, x, y, p)
  if step.kind == "mul" then
    return x * y * 0.5
  elseif step.kind == "sin" then
    return x:sin() + y
  end
  return x * p
end

-- ---- on ranks: the value of this rank, and the loss ------------------------------------------------------------

local exchange = {}
function exchange.all_reduce(s, x)
  return dc.all_reduce(x, { over = s.over }) * 0.3
end
function exchange.maximum(s, x)
  return dc.all_reduce(x, { over = s.over, op = "max" })
end
function exchange.reduce_scatter(s, x)
  local part = dc.reduce_scatter(x, 1, { over = s.over })
  return dc.all_gather(part * part, 1, { over = s.over }) * 0.1
end
function exchange.all_to_all(s, x)
  return dc.all_to_all(x, 1, 1, { over = s.over })
end
function exchange.broadcast(s, x)
  return dc.broadcast(x, s.from, { over = s.over })
end
function exchange.ring(s, x)
  local ranks, i = group(me, s.over)
  local n = #ranks
  return dc.send_recv(x, { to = (i + s.to) % n, from = (i - s.to) % n, over = s.over })
end

-- Who sends gives the scalar of the message to the loss; the others have what they had.
local function pair(s, x, tokens)
  local _, i = group(me, s.over)
  if i == s.from then
    tokens[#tokens + 1] = dc.send(x, { to = s.to, over = s.over })
  elseif i == s.to then
    return dc.recv(type_of, { from = s.from, over = s.over })
  end
  return x
end

local function fits(s)
  return s.kind ~= "pair" or s.to ~= s.from
end

local function values_of(program, x, p)
  local value, tokens = { x * p }, {}
  for i, s in ipairs(program) do
    local v = value[s.x]
    if not fits(s) then
      value[i + 1] = v + 1
    elseif s.kind == "pair" then
      value[i + 1] = pair(s, v, tokens)
    elseif exchange[s.kind] then
      value[i + 1] = exchange[s.kind](s, v)
    else
      value[i + 1] = own(s, v, value[s.y], p)
    end
  end
  return value, tokens
end

local function run(program, x, p)
  local value, tokens = values_of(program, x, p)
  local loss = dc.zeros "f32[]"
  for i, v in ipairs(value) do
    loss = loss + (v * (i / #value)):sum()
  end
  for _, token in ipairs(tokens) do
    loss = loss + token
  end
  return loss, dc.grad(loss, p, { unused = "zero" })
end

-- ---- alone: the values of all ranks, from 1 --------------------------------------------------------------------

local function of_group(values, rank, over)
  local ranks, i = group(rank, over)
  local list = {}
  for k, r in ipairs(ranks) do
    list[k] = values[r + 1]
  end
  return list, i
end

local function total(list, by)
  local sum = list[1]
  for k = 2, #list do
    sum = by(sum, list[k])
  end
  return sum
end
local function plus(a, b) return a + b end
local function maximum(a, b) return dc.maximum(a, b) end

local alone = {}
function alone.all_reduce(_, list)
  return total(list, plus) * 0.3
end
function alone.maximum(_, list)
  return total(list, maximum)
end
function alone.reduce_scatter(_, list)
  local sum = total(list, plus)
  return sum * sum * 0.1
end
function alone.all_to_all(_, list, i)
  local rows, parts = 12 // #list, {}
  for k, x in ipairs(list) do
    parts[k] = x[{ { i * rows + 1, (i + 1) * rows } }]
  end
  return dc.concat(parts, 1)
end
function alone.broadcast(s, list)
  return list[s.from + 1]
end
function alone.ring(s, list, i)
  return list[(i - s.to) % #list + 1]
end
function alone.pair(s, list, i)
  return list[(i == s.to and s.from or i) + 1]
end

local function values_alone(program, x, p)
  local value = { {} }
  for r = 1, size do
    value[1][r] = x[r] * p[r]
  end
  for i, s in ipairs(program) do
    local now = {}
    for r = 1, size do
      if not fits(s) then
        now[r] = value[s.x][r] + 1
      elseif alone[s.kind] then
        now[r] = alone[s.kind](s, of_group(value[s.x], r - 1, s.over))
      else
        now[r] = own(s, value[s.x][r], value[s.y][r], p[r])
      end
    end
    value[i + 1] = now
  end
  return value
end

local function run_alone(program, x, p)
  local value = values_alone(program, x, p)
  local losses, loss = {}, dc.zeros "f32[]"
  for r = 1, size do
    losses[r] = dc.zeros "f32[]"
    for i, v in ipairs(value) do
      losses[r] = losses[r] + (v[r] * (i / #value)):sum()
    end
    loss = loss + losses[r]
  end
  return losses[me + 1], dc.grad(loss, p[me + 1], { unused = "zero" })
end

-- ---- both -------------------------------------------------------------------------------------------------

local function near(got, want, what)
  local apart, scale = (got - want):abs():max():item(), 1 + want:abs():max():item()
  if apart > 2e-5 * scale or apart ~= apart then
    error(("rank %d, %s: apart by %g, of %g"):format(me, what, apart, scale))
  end
end

local p, x = {}, {}
for r = 1, size do
  p[r] = dc.param(dc.rand(type_of, { seed = 100 + r }) + 0.5)
  x[r] = dc.rand("f32[3, 12, 2]", { seed = 200 + r }) - 0.5
end
local mine, rows = p[me + 1], x[me + 1]

local function check(program, name)
  local losses, gradients = dc.zeros "f32[]", dc.zeros(type_of)
  for k = 1, 3 do
    local row = {}
    for r = 1, size do
      row[r] = x[r][k]
    end
    local loss, gradient = run_alone(program, row, p)
    if k == 1 then
      local l, g = run(program, rows[1], mine)
      near(l, loss, name .. " outside")
      near(g, gradient, name .. " outside, gradient")
      local f = dc.fn(("f(v: %s) -> f32[], %s"):format(type_of, type_of), function(v) return run(program, v, mine) end)
      l, g = f(rows[1])
      near(l, loss, name .. " in a function")
      near(g, gradient, name .. " in a function, gradient")
      local branch = dc.fn(("f(v: %s, yes: bool[]) -> f32[], %s"):format(type_of, type_of), function(v, yes)
        return dc.cond(yes, function() return run(program, v, mine) end,
          function() return dc.zeros "f32[]", dc.zeros(type_of) end)
      end)
      l, g = branch(rows[1], true)
      near(l, loss, name .. " in a branch")
      near(g, gradient, name .. " in a branch, gradient")
      assert(branch(rows[1], false):item() == 0)
    end
    losses, gradients = losses + loss, gradients + gradient
  end
  local loop = dc.fn(("f(xs: f32[3, 12, 2]) -> f32[], %s"):format(type_of), function(xs)
    local c = dc.scan(function(c, v)
      local loss, gradient = run(program, v, mine)
      return { loss = c.loss + loss, gradient = c.gradient + gradient }
    end, { loss = dc.zeros "f32[]", gradient = dc.zeros(type_of) }, xs)
    return c.loss, c.gradient
  end)
  local l, g = loop(rows)
  near(l, losses, name .. " in a loop")
  near(g, gradients, name .. " in a loop, gradient")
end

-- Each rank uses one of the values, another one than the next rank: in a function, in a loop in a loop, of which it
-- uses one carry, in a branch in a loop.
local function check_unused(program, name)
  local row, chosen = {}, 1 + me % (#program + 1)
  for r = 1, size do
    row[r] = x[r][1]
  end
  local want = values_alone(program, row, p)[chosen][me + 1]
  local function one(v)
    return values_of(program, v, mine)[chosen]
  end
  local flat = dc.fn(("f(v: %s) -> %s"):format(type_of, type_of), one)
  near(flat(rows[1]), want, name .. " unused in a function")
  local nested = dc.fn(("f(v: %s) -> %s"):format(type_of, type_of), function(v)
    local outer = dc.scan(function(o)
      local inner = dc.scan(function(c)
        return { used = c.used + one(v), unused = c.unused + one(v) }
      end, { used = o.used, unused = o.unused }, nil, { length = 2 })
      return { used = inner.used, unused = o.unused + inner.unused }
    end, { used = dc.zeros(type_of), unused = v }, nil, { length = 2 })
    return me % 2 == 0 and outer.used or v * 4
  end)
  near(nested(rows[1]), me % 2 == 0 and want * 4 or rows[1] * 4, name .. " unused in loops")
  local branch = dc.fn(("f(v: %s, yes: bool[]) -> %s"):format(type_of, type_of), function(v, yes)
    local c = dc.scan(function(c)
      return c + dc.cond(yes, function() return one(v) end, function() return v end)
    end, dc.zeros(type_of), nil, { length = 2 })
    return me % 2 == 1 and c or v * 2
  end)
  near(branch(rows[1], true), me % 2 == 1 and want * 2 or rows[1] * 2, name .. " unused in a branch")
end

for seed = first, first + count - 1 do
  local program = make(seed)
  check(program, "seed " .. seed)
  check_unused(program, "seed " .. seed)
end
print(("%d programs"):format(count))
