-- What a bounded dim costs: functions compiled once for all sizes up to a bound beside the same ones compiled for each
-- size, on one thread (DEEPC_THREADS=1). Processor time of a call, medians of rounds in turns, and the ratio fixed by
-- bounded: 1 is as fast, less is slower. Then the same for a transformer that reads a prompt and writes behind it.
--
--   DEEPC_THREADS=1 deepc bench/sizes.lua [ROUNDS]
local dc = require "deepc"
local nn = require "deepc.nn"

local ROUNDS = tonumber(arg[1]) or 9
local BOUND = 512

local function median(list)
  table.sort(list)
  return list[(#list + 1) // 2]
end

local function seconds(f, calls)
  local start = os.clock()
  for _ = 1, calls do
    f()
  end
  return (os.clock() - start) / calls
end

-- Medians of two functions in turns; calls that take about 20 ms together.
local function compare(a, b)
  a()
  b()
  local calls = math.max(1, math.floor(0.02 / math.max(seconds(b, 3), 1e-7)))
  local times = { {}, {} }
  for r = 1, ROUNDS do
    times[1][r], times[2][r] = seconds(a, calls), seconds(b, calls)
  end
  return median(times[1]), median(times[2])
end

local function show(name, n, bounded, fixed)
  print(("%-28s %5d  %9.1f us  %9.1f us  %5.2f"):format(name, n, bounded * 1e6, fixed * 1e6, fixed / bounded))
end

-- ---- operations ----

local cases = {
  { "elementwise [t, 256]", "x: f32[T, 256]", function(x) return (x * 2 + 1):tanh() end },
  { "sum of axis 1 [t, 256]", "x: f32[T, 256]", function(x) return x:sum(1) end },
  { "softmax [8, t, t]", "x: f32[8, T, T]", function(x) return x:softmax(3) end },
  { "product [t, 256] [256, 256]", "x: f32[T, 256], w: f32[256, 256]", function(x, w) return x:matmul(w) end },
  { "product [256, t] [t, 256]", "x: f32[256, T], w: f32[T, 256]", function(x, w) return x:matmul(w) end },
  { "attention [8, t, 32]", "q: f32[8, T, 32], k: f32[8, T, 32], v: f32[8, T, 32]", function(q, k, v)
    return (dc.einsum("h t d, h s d -> h t s", q, k) / 32 ^ 0.5):softmax(3):matmul(v)
  end },
  { "conv1d [4, 32, t]", "x: f32[4, 32, T], w: f32[32, 32, 3]", function(x, w)
    return dc.conv1d(x, w, { padding = 1 })
  end },
  { "scan [t, 64]", "x: f32[T, 64], w: f32[64, 64]", function(x, w)
    local _, y = dc.scan(function(h, v)
      h = (h:matmul(w) + v):tanh()
      return h, h
    end, dc.zeros "f32[64]", x)
    return y
  end },
}

print(("%-28s %5s  %12s  %12s  %5s"):format("", "t", "bounded", "fixed", "ratio"))
for _, case in ipairs(cases) do
  local name, params, body = table.unpack(case)
  local bounded = dc.fn("f(" .. params:gsub("T", ("t <= %d"):format(BOUND), 1):gsub("T", "t") .. ")", body)
  for _, n in ipairs { 8, 64, 256, BOUND } do
    local fixed = dc.fn("f(" .. params:gsub("T", tostring(n)) .. ")", body)
    local x = {}
    for dims in params:gmatch "%[([^%]]*)%]" do
      x[#x + 1] = dc.randn("f32[" .. dims:gsub("T", tostring(n)) .. "]", { seed = n }) * 0.1
    end
    show(name, n, compare(function() return bounded(table.unpack(x)) end, function() return fixed(table.unpack(x)) end))
  end
end

-- ---- a transformer that writes ----

local WIDTH, HEADS, LAYERS, LETTERS, NEW = 256, 8, 4, 256, 256
local ROOM, EACH = BOUND + NEW, WIDTH // HEADS

local Block = nn.class "Block"

function Block:init()
  self.norm1, self.into, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
  self.mlp = nn.Sequential { nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH) }
  local cache = ("f32[%d, %d, %d]"):format(ROOM, HEADS, EACH)
  self.keys, self.values = dc.state(cache), dc.state(cache)
end

function Block:finish(x, q, k, v, seen)
  local score = dc.where(seen, dc.einsum("t h d, s h d -> h t s", q, k) / EACH ^ 0.5, -1e9)
  local y = dc.einsum("h t s, s h d -> t h d", score:softmax(3), v)
  x = x + self.out(y:reshape(#x, WIDTH))
  return x + self.mlp(x)
end

function Block:forward(x)
  local all = self.into(self.norm1(x)):reshape(#x, 3, HEADS, EACH)
  local k, v = all[{ {}, 2 }], all[{ {}, 3 }]
  self.keys:set(self.keys:put({ { 1, #x } }, k))
  self.values:set(self.values:put({ { 1, #x } }, v))
  return self:finish(x, all[{ {}, 1 }], k, v, dc.iota(#x):reshape(1, -1):le(dc.iota(#x):reshape(-1, 1)))
end

function Block:step(x, p)
  local all = self.into(self.norm1(x)):reshape(3, HEADS, EACH)
  self.keys:set(self.keys:put(p, all[2]))
  self.values:set(self.values:put(p, all[3]))
  return self:finish(x, all[{ { 1 } }], self.keys, self.values, dc.iota(ROOM):le(p))
end

dc.seed(1)
local letter, head = nn.Embedding(LETTERS, WIDTH), nn.Linear(WIDTH, LETTERS)
local blocks = {}
for i = 1, LAYERS do
  blocks[i] = Block()
end

local function reader(size)
  return dc.fn(("read(prompt: i32[%s]) -> i32[]"):format(size), function(prompt)
    local x = letter(prompt)
    for _, block in ipairs(blocks) do
      x = block(x)
    end
    return head(x[-1]):argmax(1)
  end)
end

local write = dc.fn(("write(first: i32[], p: i32[]) -> i32[%d]"):format(NEW), function(first, p)
  local _, text = dc.scan(function(c)
    local x = letter(c.letter:reshape(1))
    for _, block in ipairs(blocks) do
      x = block:step(x, c.p)
    end
    local next = head(x[1]):argmax(1)
    return { letter = next, p = c.p + 1 }, next
  end, { letter = first, p = p }, nil, { length = NEW })
  return text
end)

local bounded = reader(("t <= %d"):format(BOUND))
for _, n in ipairs { 8, 64, 256, BOUND } do
  local prompt = dc.randint(("i32[%d]"):format(n), { seed = n, high = LETTERS })
  local fixed = reader(tostring(n))
  local function one() return bounded(prompt) end
  local function two() return fixed(prompt) end
  show("prompt, 4 layers of 256", n, compare(one, two))
  local a, b = compare(function() return write(one(), n) end, function() return write(two(), n) end)
  show(("and %d letters, each"):format(NEW), n, a / NEW, b / NEW)
  local before = dc.stats().allocs
  for _ = 1, 10 do
    write(one(), n)
  end
  print(("  allocations of memory for %d letters: %d"):format(10 * NEW, dc.stats().allocs - before))
end
print(("compilations: read %d, write %d"):format(#bounded:info(), #write:info()))
