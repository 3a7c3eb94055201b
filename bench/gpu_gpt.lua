-- deepc's side of bench/gpu_gpt.py.
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
package.path = (arg[0]:match "^(.*)/" or ".") .. "/?.lua;" .. package.path
local gpu = require "gpu_frame"

-- Products of two tensors, of bf16 where the case says so; the result is f32.
local function product(case, a, b)
  if case.dtype == "bf16" then
    return a:cast "bf16":matmul(b:cast "bf16"):cast "f32"
  end
  return a:matmul(b)
end

local Block = nn.class "Block"

function Block:init(case, inputs, i)
  self.case = case
  self.norm1, self.norm2 = nn.LayerNorm(case.width), nn.LayerNorm(case.width)
  for _, name in ipairs { "qkv", "proj", "fc1", "fc2" } do
    self[name .. "_weight"] = dc.param(inputs[name .. i])
    self[name .. "_bias"] = dc.param(inputs[name .. i .. "_bias"])
  end
end

function Block:linear(name, x)
  return product(self.case, x, self[name .. "_weight"]) + self[name .. "_bias"]
end

function Block:attention(qkv)
  local case = self.case
  local size = case.width // case.heads
  local parts = qkv:reshape(case.batch, case.time, 3, case.heads, size)
  local function part(i)
    return parts[{ {}, {}, i }]:transpose(2, 3)
  end
  local scores = product(case, part(1), part(2):transpose(3, 4)) * size ^ -0.5
  local past = dc.ones(("bool[%d, %d]"):format(case.time, case.time)):tril()
  local y = product(case, dc.where(past, scores, -1e9):softmax(4), part(3))
  return y:transpose(2, 3):reshape(case.batch, case.time, case.width)
end

function Block:forward(x)
  x = x + self:linear("proj", self:attention(self:linear("qkv", self.norm1(x))))
  return x + self:linear("fc2", self:linear("fc1", self.norm2(x)):gelu { approximate = "tanh" })
end

local Model = nn.class "Model"

function Model:init(case, inputs)
  self.case = case
  self.embed, self.place, self.head = dc.param(inputs.embed), dc.param(inputs.place), dc.param(inputs.head)
  self.norm, self.blocks = nn.LayerNorm(case.width), {}
  for i = 1, case.layers do
    self.blocks[i] = Block(case, inputs, i - 1)
  end
end

function Model:forward(ids)
  local x = self.embed:take(ids, 1) + self.place
  for _, block in ipairs(self.blocks) do
    x = block(x)
  end
  return product(self.case, self.norm(x), self.head)
end

gpu.serve(function(case)
  local inputs = gpu.inputs(case)
  local net = Model(case, inputs)
  local opt = optim.AdamW(net:parameters(), { lr = 1e-3, weight_decay = 0 })
  local letters = ("i32[%d, %d]"):format(case.batch, case.time)
  local step = dc.fn(("step(x: %s, y: %s) -> f32[]"):format(letters, letters), function(x, y)
    local loss = nn.cross_entropy(net(x), y)
    opt:step(loss)
    return loss
  end)
  local ids, following = inputs.ids, inputs.next
  local run = gpu.waited(function(n)
    local loss
    for _ = 1, n do
      loss = step(ids, following)
    end
    return { loss = loss }
  end)
  return run
end)
