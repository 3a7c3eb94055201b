-- The functions that scripts/gpu-kernels makes kernels of, in sections:
--
--   deepc tests/cuda/gpu_kernels.lua             a line each: number, section, title, limits
--   deepc tests/cuda/gpu_kernels.lua NUMBER      traces and compiles that one
--
-- Limits are those of its kernels, each in words of gpu_kernels.c; a family without any is not tested.
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"

local families = {}
local section

local function family(title, make, limits)
  families[#families + 1] = { section = section, title = title, make = make, limits = limits or "" }
end

-- A function by its type and body; the type is written with the sizes in it.
local function fn(type, body, ...)
  local text = ("f" .. type):format(...)
  return function()
    return dc.fn(text, body)
  end
end

-- Products -------------------------------------------------------------------------------------

local function nn_(x, y)
  return x:matmul(y)
end
local function nt(x, y)
  return x:matmul(y:transpose(1, 2))
end
local function tn(x, y)
  return x:transpose(1, 2):matmul(y)
end
local function tt(x, y)
  return x:transpose(1, 2):matmul(y:transpose(1, 2))
end
local forms = { nn = nn_, nt = nt, tn = tn, tt = tt }

-- form: n or t for each operand, t where it is stored transposed.
local function product(t, m, n, k, form, limits, with)
  local body = forms[form]
  local a = form:sub(1, 1) == "t" and { k, m } or { m, k }
  local b = form:sub(2) == "t" and { n, k } or { k, n }
  family(("%s %s, %d by %d, sums of %d%s"):format(t, form, m, n, k, with or ""),
    fn("(x: %s[%d, %d], y: %s[%d, %d]) -> %s[%d, %d]", body, t, a[1], a[2], t, b[1], b[2], t, m, n), limits)
end

section = "Products"
for _, t in ipairs { "f32", "f16", "bf16" } do
  for _, n in ipairs { 1024, 2048, 4096, 8192 } do
    for _, form in ipairs(n <= 4096 and { "nn", "nt", "tn", "tt" } or { "nn" }) do
      local limited = t == "f32" and n == 1024 or t == "bf16" and n <= 4096 and n ~= 2048
      product(t, n, n, n, form, limited
        and "local=0 registers=255 shared=98304 loads=1 stores=1 banks=1")
    end
  end
end

-- By instructions of four warps, for sm_90 alone, with DEEPC_GPU=wgmma.
for _, t in ipairs { "f16", "bf16" } do
  for _, form in ipairs { "nn", "nt", "tn" } do
    product(t, 4096, 4096, 4096, form, (t == "f16" or form == "nn")
      and "local=0 registers=192 shared=196608 loads=1 stores=1 banks=1 mma=0", ", wgmma")
  end
end
product("f16", 1000, 1096, 520, "nn", "local=0 registers=192 shared=196608 mma=0", ", wgmma")

-- Bytes, sums in i32.
for _, form in ipairs { "nt", "nn", "tn", "tt" } do
  local signature = "(x: i8[4096, 4096], y: i8[4096, 4096]) -> i32[4096, 4096]"
  family(("i8 %s, 4096 by 4096, sums of 4096"):format(form), fn(signature, forms[form]),
    form == "nt" and "local=0 registers=255 shared=98304 loads=1 stores=1 banks=1")
end

-- What follows a product, by runs of what is stored.
for _, n in ipairs { 1024, 1000 } do
  family(("bf16 and a bias, gelu, a residual, 1024 by %d, sums of 1024"):format(n),
    fn("(x: bf16[1024, 1024], y: bf16[1024, %d], b: bf16[%d], r: bf16[1024, %d]) -> bf16[1024, %d]",
      function(x, y, b, r)
        return (x:matmul(y) + b):gelu() + r
      end, n, n, n, n), "local=0 registers=255 shared=98304 loads=1.1 banks=1 stores=" .. (n == 1024 and "1" or "1.6"))
end

section = "Products of few tiles"
for _, t in ipairs { "f32", "f16" } do
  for _, form in ipairs { "nn", "tn" } do
    product(t, 512, 512, 8192, form, "local=0 registers=168 shared=65536 loads=1 stores=1 read=8 idle=0.5")
  end
  -- A layer of 784 to 256 and its gradients, then the one of 256 to 10.
  product(t, 64, 256, 784, "nn", "local=0 registers=96 loads=1 stores=1 read=5 idle=0.6")
  product(t, 64, 784, 256, "nt")
  product(t, 784, 256, 64, "tn")
  product(t, 64, 10, 256, "nn")
  product(t, 64, 256, 10, "nt")
  product(t, 256, 10, 64, "tn")
  product(t, 256, 256, 1001, "nn")
end

family("softmax of f32 64 by 10, sums of 256, with a bias",
  fn("(x: f32[64, 256], w: f32[256, 10], b: f32[10]) -> f32[64, 10]", function(x, w, b)
    return (x:matmul(w) + b):softmax(2)
  end), "local=0 registers=96 idle=0.98")

section = "Products of few rows"
for _, t in ipairs { "f32", "f16" } do
  for _, m in ipairs { 1, 4, 8, 16, 32 } do
    for _, form in ipairs { "nn", "nt" } do
      product(t, m, 4096, 4096, form, m <= 8 and (m < 8 or t == "f32")
        and ("local=0 registers=128 shared=0 loads=1 read=%d"):format(m < 8 and 3 or 5))
    end
  end
end

for _, t in ipairs { "f32", "bf16" } do
  family(("%s, rows of 12 heads of 64 by 768"):format(t),
    fn("(x: %s[8, 12, 1024, 64], w: %s[768, 768]) -> %s[8, 1024, 768]", function(x, w)
      return x:transpose(2, 3):reshape(8, 1024, 768):matmul(w)
    end, t, t, t), "local=0 loads=1 stores=1 banks=1")
end

-- Convolutions ---------------------------------------------------------------------------------

section = "Convolutions"
-- 32 images, channels second; the gradients by x and by w. groups: channels that are by themselves. Limits: of the
-- result, of the gradient by w, of that by x.
local function convolution(t, c, o, size, k, stride, groups, limits)
  local after = size // stride
  local options = { stride = stride, padding = k // 2, groups = groups }
  local images, kernel = ("%s[32, %d, %d, %d]"):format(t, c, size, size),
    ("%s[%d, %d, %d, %d]"):format(t, o, c // groups, k, k)
  local out = ("%s[32, %d, %d, %d]"):format(t, o, after, after)
  local title = ("%s %dx%d/%d, %s%d channels, %d"):format(t, k, k, stride,
    groups > 1 and "each of " or c .. " to ", o, size)
  limits = limits or {}
  family(title, fn("(x: %s, w: %s) -> %s", function(x, w)
    return dc.conv2d(x, w, options)
  end, images, kernel, out), limits[1])
  if c > 3 then
    family(title .. ", gradient of x", fn("(x: %s, w: %s, g: %s) -> %s", function(x, w, g)
      return dc.grad((dc.conv2d(x, w, options) * g):sum(), x)
    end, images, kernel, out, images), limits[3])
  end
  family(title .. ", gradient of w", fn("(x: %s, w: %s, g: %s) -> %s", function(x, w, g)
    return dc.grad((dc.conv2d(x, w, options) * g):sum(), w)
  end, images, kernel, out, kernel), limits[2])
end
local tiled = "local=0 registers=255 shared=49152 banks=1"
local joined = { nil, nil, "local=0 registers=255 shared=49152 loads=1.1 stores=1.1 banks=1.5 read=8" }
local vectors = { "local=0 registers=168 loads=1.2 stores=1.3 banks=1 read=14",
  "local=0 registers=144 loads=1.3 stores=1.3 banks=1 read=1.5" }
for _, t in ipairs { "f32", "f16" } do
  convolution(t, 3, 64, 224, 7, 2, 1, t == "f16" and vectors)
  convolution(t, 64, 64, 56, 3, 1, 1, { tiled .. " loads=1.1 read=12.5", tiled .. " loads=1.1 read=9" })
  convolution(t, 64, 128, 56, 3, 2, 1, joined)
  convolution(t, 64, 128, 56, 1, 2, 1, joined)
  convolution(t, 256, 256, 14, 3, 1, 1)
  convolution(t, 512, 512, 7, 3, 1, 1)
  convolution(t, 64, 64, 56, 3, 1, 64, { "local=0 registers=128 loads=1 stores=1 read=4.5" })
end

section = "Convolutions of odd channels"
local odd = "local=0 registers=144 loads=1.6 stores=3 banks=1.5 read="
for _, n in ipairs { 33, 50 } do
  convolution("f16", n, n, 28, 3, 1, 1, { odd .. 19, odd .. 4.5, odd .. 19 })
end

section = "Convolutions of few channels"
local few = "local=0 registers=128 "
for _, n in ipairs { 4, 8 } do
  convolution("f32", 64, n, 28, 3, 1, 1, { few .. "read=30", few .. "read=13" })
end

-- Rows -----------------------------------------------------------------------------------------

section = "Row by row"
-- Longer rows are in shared memory, where it has room: on sm_90. On sm_80 some of their registers are spilled.
local long = "registers=64 shared=227000 loads=1.2 stores=1.2 banks=1"
local rows = "local=0 registers=128 shared=49152 loads=1 stores=1 banks=1"
for _, n in ipairs { 128, 768, 1024, 4096, 16384, 50257 } do
  local m = n > 10000 and 1024 or 4096
  local whole = (n == 1024 or n == 4096) and rows
  local t = ("f32[%d, %d]"):format(m, n)
  family(("softmax, %s"):format(t), fn("(x: %s) -> %s", function(x)
    return x:softmax(2)
  end, t, t), n == 50257 and long .. " read=1.2" or whole)
  if n == 50257 then
    local b = ("bf16[%d, %d]"):format(m, n)
    family(("softmax, %s"):format(b), fn("(x: %s) -> %s", function(x)
      return x:softmax(2)
    end, b, b), "local=0 " .. long .. " read=1.3")
    family(("cross entropy and its gradient, %s"):format(b), fn("(x: %s, y: i32[%d]) -> f32[], %s", function(x, y)
      local loss = nn.cross_entropy(x:cast "f32", y)
      return loss, dc.grad(loss, x)
    end, b, m, b), "local=0 registers=64 stores=1.2 banks=1 read=2")
  end
  if n <= 4096 then
    local norm = nn.LayerNorm(n)
    family(("layer norm, %s"):format(t), fn("(x: %s) -> %s", function(x)
      return norm(x)
    end, t, t), whole)
    family(("layer norm, %s, gradients"):format(t), fn("(x: %s, g: %s) -> %s, f32[%d], f32[%d]", function(x, g)
      local d = dc.grad((norm(x) * g):sum(), { x, norm.weight, norm.bias })
      return d[1], d[2], d[3]
    end, t, t, t, n, n))
  end
  family(("cross entropy and its gradient, %s"):format(t), fn("(x: %s, y: i32[%d]) -> f32[], %s", function(x, y)
    local loss = nn.cross_entropy(x, y)
    return loss, dc.grad(loss, x)
  end, t, m, t), n <= 16384 and "local=0 registers=128 banks=1 read=2")
end

-- Vocabularies whose rows no group holds: maximum and sum of parts, then the result.
for _, t in ipairs { "f32", "bf16" } do
  local whole = ("%s[256, 128256]"):format(t)
  family(("softmax, %s"):format(whole), fn("(x: %s) -> %s", function(x)
    return x:softmax(2)
  end, whole, whole), "local=0 registers=64 loads=1.2 stores=1.2 banks=1")
end

-- Memory ---------------------------------------------------------------------------------------

section = "Element by element, transposes"
local along = "local=0 registers=64 shared=49152 loads=1 stores=1 banks=1"
family("x * y + 1, f32[16777216]", fn("(x: f32[16777216], y: f32[16777216]) -> f32[16777216]", function(x, y)
  return x * y + 1
end), along)
family("x + row, f32[4096, 4096]", fn("(x: f32[4096, 4096], y: f32[4096]) -> f32[4096, 4096]", function(x, y)
  return x + y
end), along)
family("x + column, bf16[4096, 4096]", fn("(x: bf16[4096, 4096], y: bf16[4096, 1]) -> bf16[4096, 4096]", function(x, y)
  return x + y
end))
for _, t in ipairs { "f32", "bf16", "u8" } do
  family(("transpose, %s[4096, 4096]"):format(t), fn("(x: %s[4096, 4096]) -> %s[4096, 4096]", function(x)
    return x:transpose(1, 2)
  end, t, t), along)
end
family("transpose of heads, f32[8, 1024, 12, 64]", fn("(x: f32[8, 1024, 12, 64]) -> f32[8, 12, 1024, 64]", function(x)
  return x:transpose(2, 3)
end), along)
family("channels last, f32[8, 64, 56, 56]", fn("(x: f32[8, 64, 56, 56]) -> f32[8, 56, 56, 64]", function(x)
  return x:transpose(2, 3):transpose(3, 4)
end))

family("without the first column, f32[4096, 1001]", fn("(x: f32[4096, 1001]) -> f32[4096, 1000]", function(x)
  return x[{ {}, { 2, 1001 } }]
end), "local=0 registers=64 loads=1.2 stores=1.2")
family("without the first 3, f32[5000001]", fn("(x: f32[5000001]) -> f32[4999998]", function(x)
  return x[{ { 4, 5000001 } }]
end), "local=0 registers=64 loads=1.2 stores=1.2")
family("side by side, f32[4096, 1000], f32[4096, 1001]",
  fn("(x: f32[4096, 1000], y: f32[4096, 1001]) -> f32[4096, 2001]", function(x, y)
    return dc.concat({ x, y }, 2)
  end), "local=0 registers=64 loads=1.2 stores=1.2")

section = "Reductions"
family("sums of rows, f32[4096, 4096]", fn("(x: f32[4096, 4096]) -> f32[4096]", function(x)
  return x:sum(2)
end), rows)
family("sums of rows, f32[16, 1048576]", fn("(x: f32[16, 1048576]) -> f32[16]", function(x)
  return x:sum(2)
end))
family("sums of columns, f32[4096, 4096]", fn("(x: f32[4096, 4096]) -> f32[4096]", function(x)
  return x:sum(1)
end), rows)
for _, t in ipairs { "f32", "bf16" } do
  family(("sums of columns, %s[16384, 768]"):format(t), fn("(x: %s[16384, 768]) -> %s[768]", function(x)
    return x:sum(1)
  end, t, t), rows .. " each=2")
end
family("sums of columns, f32[65536, 64]", fn("(x: f32[65536, 64]) -> f32[64]", function(x)
  return x:sum(1)
end))
family("sum of all, f32[16777216]", fn("(x: f32[16777216]) -> f32[]", function(x)
  return x:sum()
end))
family("largest of all, f32[16777216]", fn("(x: f32[16777216]) -> f32[]", function(x)
  return x:max()
end))
family("place of the largest of rows, f32[4096, 4096]", fn("(x: f32[4096, 4096]) -> i32[4096]", function(x)
  return x:argmax(2)
end), rows)
family("place of the largest of columns, f32[4096, 4096]", fn("(x: f32[4096, 4096]) -> i32[4096]", function(x)
  return x:argmax(1)
end), rows)
for _, last in ipairs { false, true } do
  local dims = last and "32, 56, 56, 64" or "32, 64, 56, 56"
  local t, axes = ("f32[%s]"):format(dims), last and { 1, 2, 3 } or { 1, 3, 4 }
  family(("batch norm, %s"):format(t), fn("(x: %s) -> %s", function(x)
    local function channels(v)
      return last and v or v:reshape(1, 64, 1, 1)
    end
    return (x - channels(x:mean(axes))) / channels(x:var(axes) + 1e-5):sqrt()
  end, t, t), "local=0 registers=64 loads=1.2 stores=1.2 banks=1")
end
-- A remainder of results that is no whole group must not be a group of one thread.
family("sums of 4 rows, f32[4, 1000064]", fn("(x: f32[4, 1000064]) -> f32[1000064]", function(x)
  return x:sum(1)
end), "local=0 registers=64 loads=1.2 stores=1.2 each=4")
family("means and variances of channels, f32[8, 64, 56, 56]",
  fn("(x: f32[8, 64, 56, 56]) -> f32[64], f32[64]", function(x)
    return x:mean { 1, 3, 4 }, x:var { 1, 3, 4 }
  end))

section = "Rows by number"
family("8192 rows of f32[50257, 768]", fn("(x: f32[50257, 768], i: i32[8192]) -> f32[8192, 768]", function(x, i)
  return x:take(i)
end), "local=0 registers=64 loads=1 stores=1")
family("their gradient", fn("(x: f32[50257, 768], i: i32[8192], g: f32[8192, 768]) -> f32[50257, 768]",
  function(x, i, g)
    return dc.grad((x:take(i) * g):sum(), x)
  end), "local=0 registers=64 loads=1 stores=1")
family("the gradient of rows of f32[2, 768]", fn("(x: f32[2, 768], i: i32[16384], g: f32[16384, 768]) -> f32[2, 768]",
  function(x, i, g)
    return dc.grad((x:take(i) * g):sum(), x)
  end), "local=0 registers=64 loads=1.2 stores=1 banks=1")
family("the gradient of numbers of f32[1000000]",
  fn("(x: f32[1000000], i: i32[100000], g: f32[100000]) -> f32[1000000]", function(x, i, g)
    return dc.grad((x:take(i) * g):sum(), x)
  end), "local=0 registers=64 loads=1.2 stores=1")

-- Training -------------------------------------------------------------------------------------

section = "Optimizers"
-- Adam over parameters of these sizes, whose gradients are arguments.
local function adam(title, count, size, limits)
  family(title, function()
    local cells = {}
    for i = 1, count do
      cells[i] = dc.param(dc.zeros(("f32[%d]"):format(size)))
    end
    local opt = optim.Adam(cells, { lr = 1e-3 })
    return dc.fn(("step(g: f32[%d, %d]) -> f32[]"):format(count, size), function(g)
      local loss = 0
      for i = 1, count do
        loss = loss + (cells[i] * g[i]):sum()
      end
      opt:step(loss)
      return loss
    end)
  end, limits)
end
adam("Adam, 1048576 numbers", 1, 1048576, "local=0 registers=64")
adam("Adam, 40 times 1000 numbers", 40, 1000, "local=0 registers=64")
family("Adam, 40 sizes from 2 to 691", function()
  local cells = {}
  for i = 1, 40 do
    cells[i] = dc.param(dc.zeros(("f32[%d]"):format((i * 37) % 91 + 1 + (i % 5 == 0 and 600 or 0))))
  end
  local opt = optim.Adam(cells, { lr = 1e-3 })
  return dc.fn("step(k: f32[]) -> f32[]", function(k)
    local loss = k
    for i = 1, 40 do
      loss = loss + cells[i]:square():sum()
    end
    opt:step(loss)
    return loss
  end)
end, "local=0 registers=64")

section = "Steps"
family("training step of 784-512-512-10, 128 images, Adam", function()
  local net = nn.Sequential { nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10) }
  local opt = optim.Adam(net:parameters(), { lr = 1e-3 })
  return dc.fn("step(x: f32[128, 784], y: i32[128]) -> f32[]", function(x, y)
    local loss = nn.cross_entropy(net(x), y)
    opt:step(loss)
    return loss
  end)
end, "local=0")

local Block = dofile "bench/gpt_block.lua"

family("GPT block, f32[8, 1024, 768], 12 heads", function()
  local net = Block(768, 12)
  return dc.fn("block(x: f32[8, 1024, 768]) -> f32[8, 1024, 768]", function(x)
    return net(x)
  end)
end)
family("GPT block, f32[8, 1024, 768], 12 heads, training step, Adam", function()
  local net = Block(768, 12)
  local opt = optim.Adam(net:parameters(), { lr = 1e-3 })
  return dc.fn("step(x: f32[8, 1024, 768], g: f32[8, 1024, 768]) -> f32[]", function(x, g)
    local loss = (net(x) * g):sum()
    opt:step(loss)
    return loss
  end)
end, "local=0")

section = "Odd shapes"
family("cross entropy of pixels and its gradient, f32[16, 21, 128, 128]",
  fn("(x: f32[16, 21, 128, 128], y: i32[16, 128, 128]) -> f32[], f32[16, 21, 128, 128]", function(x, y)
    local loss = nn.cross_entropy(x:transpose(2, 3):transpose(3, 4):reshape(262144, 21), y:reshape(262144))
    return loss, dc.grad(loss, x)
  end), "local=0 registers=64 loads=2.2 stores=1.05 banks=1") -- each pixel's own class is gathered
family("log softmax of pixels, f32[16, 21, 128, 128]", fn("(x: f32[16, 21, 128, 128]) -> f32[262144, 21]", function(x)
  return x:transpose(2, 3):transpose(3, 4):reshape(262144, 21):log_softmax(2)
end), "local=0 registers=64 loads=1.1 stores=1.05 banks=1")
for _, n in ipairs { 64, 300 } do
  family(("logsumexp of columns, f32[%d, 40000]"):format(n), fn("(x: f32[%d, 40000]) -> f32[40000]", function(x)
    return x:transpose(1, 2):logsumexp(2)
  end, n), "local=0 registers=64 loads=1 stores=1 banks=1 read=1")
end
family("channels last to rows, f32[128, 8, 8, 64]", fn("(x: f32[128, 8, 8, 64]) -> f32[128, 4096]", function(x)
  return x:transpose(3, 4):transpose(2, 3):reshape(128, 4096) + 1
end), "local=0 registers=64 loads=1 stores=1 banks=1 read=1")
for _, n in ipairs { 3, 8, 16 } do
  family(("10000 products of %d by %d"):format(n, n),
    fn("(x: f32[10000, %d, %d], y: f32[10000, %d, %d]) -> f32[10000, %d, %d]", nn_, n, n, n, n, n, n),
    "local=0 registers=64 loads=1.05 stores=1.05 banks=1.1 read=1.1")
end
family("100000 points by a matrix of 3 by 3", fn("(x: f32[100000, 3], y: f32[3, 3]) -> f32[100000, 3]", nn_),
  "local=0 registers=64 loads=1.05 stores=1.05 banks=1.1 read=1.1")

-- ----------------------------------------------------------------------------------------------

if arg[1] then
  families[tonumber(arg[1])].make()
else
  for i, f in ipairs(families) do
    print(("%d\t%s\t%s\t%s"):format(i, f.section, f.title, f.limits))
  end
end
