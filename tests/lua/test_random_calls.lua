-- Random calls of every public function with random arguments, inside and outside typed functions:
-- whatever happens is a value or an error, and nothing is left over. DEEPC_SEED gives the seed.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"

local seed = math.tointeger(tonumber(os.getenv "DEEPC_SEED")) or 1

-- A generator of its own: math.random is refused while a typed function is traced.
local state = { x = seed }

local function random(low, high)
  if not high then
    low, high = 1, low
  end
  state.x = (state.x * 6364136223846793005 + 1442695040888963407) & math.maxinteger
  return low + (state.x >> 33) % (high - low + 1)
end

local pick = function(list) return list[random(#list)] end

local types = { "f32[2, 3]", "f32[3]", "f32[]", "i32[2]", "u8[3, 1]", "bool[2, 3]", "f32[batch=2, 3]",
  "i32[0]", "u32[2]", "f32[1]", "f32[", "f99[2]", "f32[-1]", "f32[n]", "" }
local plain = { 0, 1, 2, -1, 3, 0.5, 1e300, -1e9, math.huge, 0 / 0, true, false, "x", "f32", "i32", "batch",
  math.maxinteger, math.mininteger }

-- It would leave files of these names, and go on after the call.
local writes = { trace = true }

-- Every function of the module and every method of tensors, in an order of their own.
local function names_of(t)
  local names = {}
  for name, v in pairs(t) do
    if type(v) == "function" and not writes[name] then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

local _, method_table = debug.getupvalue(debug.getmetatable(dc.ones "f32[1]").__index, 2)
local methods, makers = names_of(method_table), names_of(dc)
for _, name in ipairs { "shape", "dtype", "view", "backward" } do
  methods[#methods + 1] = name
end

local texts = { "b i, i o -> b o", "a b -> b a", "... a -> ...", "a a -> a", "f(x: f32[n]) -> f32[n]",
  "f(x: f32[2, 3], k) -> f32[]", "f(x?: f32[...], l: {f32[n]}) -> {f32[n]}", "f(x: f32[2, 3]) -> f32[2, 3]",
  "f() -> ()", "f(x: f32[n*2+1", "f(a, a)" }
local bodies = { function(x) return x end, function() end, function() error "body" end,
  function(x) return x * 2, x end, function(x, k) return k and x end, string.rep, setmetatable({}, { __call = print }) }
local raising = setmetatable({}, { __index = function() error "index" end, __len = function() return 3 end,
  __tostring = function() error "text" end })

local operators = {
  function(a, b) return a + b end, function(a, b) return a - b end, function(a, b) return a * b end,
  function(a, b) return a / b end, function(a, b) return a // b end, function(a, b) return a % b end,
  function(a, b) return a ^ b end, function(a, b) return a & b end, function(a, b) return a << b end,
  function(a) return -a end, function(a) return ~a end, function(a) return #a end,
  function(a, b) return a[b] end, function(a, b) return a .. b end, function(a, b) return a < b end,
  function(a, b) return nn.cross_entropy(a, b) end, function(a) return tostring(a) end,
}

local function is_tensor(v) return type(v) == "userdata" end

-- dc.print calls the print of now.
local print_before = print
local function quiet(f)
  print = function(...) return select("#", ...) end -- luacheck: ignore
  local ok, message = pcall(f)
  print = print_before -- luacheck: ignore
  if not ok then error(message, 0) end
end

local function step(pool)
  local function argument()
    local kind = random(14)
    if kind <= 5 then return pick(pool) end
    if kind == 6 then return pick(types) end
    if kind == 7 then return { pick(plain), pick(plain) } end
    if kind == 8 then return { { pick(plain), 2 }, axis = pick(plain), keep = true } end
    if kind == 9 then return nil end
    if kind == 10 then return { pick(pool), pick(pool) } end
    if kind == 11 then return pick(texts) end
    if kind == 12 then return pick(bodies) end
    if kind == 13 then return random(4) == 1 and raising or { seed = pick(plain), limit = pick(plain), n = 2 } end
    return pick(plain)
  end
  local kind = random(3)
  local ok, result
  if kind == 1 then
    ok, result = pcall(dc[pick(makers)], pick { pick(types), argument(), argument() }, argument(), argument())
    if ok and is_tensor(result) and pcall(function() return result.info end) then
      ok, result = pcall(result, argument(), argument())
    end
  elseif kind == 2 then
    local t = pick(pool)
    ok, result = pcall(function(...) return t[pick(methods)](t, ...) end, argument(), argument())
  else
    ok, result = pcall(pick(operators), argument(), argument())
  end
  if ok and is_tensor(result) and pcall(function() return result.shape end) then
    pool[random(6, 14)] = result
  elseif not ok then
    lu.assertIsString(tostring(result))
    lu.assertNotStrContains(tostring(result), "broken promise")
  end
  return ok
end

local function fresh()
  local pool = { dc.ones "f32[2, 3]", dc.tensor { 1, 2, 3 }, dc.param("f32[3]", 1), dc.state("i32[2]", 1),
    dc.tensor(2) }
  for i = 6, 14 do
    pool[i] = pool[i % 5 + 1]
  end
  return pool
end

dc.generator() -- is made when it is first asked for

TestRandomCalls = {}

function TestRandomCalls:test_outside() quiet(function()
  collectgarbage()
  collectgarbage()
  local before = dc.stats().bytes_live
  local fine = 0
  for _ = 1, 60 do
    local pool = fresh()
    for _ = 1, 100 do
      fine = fine + (step(pool) and 1 or 0)
    end
  end
  for _ = 1, 4 do collectgarbage() end
  lu.assertTrue(fine > 300, "seed " .. seed)
  lu.assertEquals(dc.stats().bytes_live, before)
end) end

function TestRandomCalls:test_while_traced() quiet(function()
  collectgarbage()
  collectgarbage()
  local before, traced = dc.stats().bytes_live, 0
  for _ = 1, 60 do
    pcall(function()
      local f = dc.fn("f(x: f32[2, 3], n: f32[]) -> f32[2, 3]", function(x, n)
        local pool = fresh()
        pool[1], pool[2] = x, n
        for i = 6, 14 do
          pool[i] = pool[i % 5 + 1]
        end
        for _ = 1, 40 do
          step(pool)
        end
        for i = 14, 1, -1 do
          local ok, y = pcall(function() return pool[i]:cast "f32" * n + x end)
          if ok and #y.shape == 2 and y:size(2) == 3 and #y == 2 then return y end
        end
        return x
      end)
      traced = traced + 1
      f(dc.ones "f32[2, 3]", 2)
    end)
  end
  for _ = 1, 4 do collectgarbage() end
  lu.assertTrue(traced > 20, "seed " .. seed)
  lu.assertEquals(dc.stats().bytes_live, before)
end) end
