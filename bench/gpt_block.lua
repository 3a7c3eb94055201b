-- A GPT block: attention of heads that see what is before them, then two layers.
local dc = require "deepc"
local nn = require "deepc.nn"

local Block = nn.class "Block"

function Block:init(width, heads)
  self.heads = heads
  self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
  self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
  self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
end

local function attention(qkv, heads)
  local batch, time, width = qkv:size(1), qkv:size(2), qkv:size(3) // 3
  local parts = qkv:reshape(batch, time, 3, heads, width // heads)
  local function part(i)
    return parts[{ {}, {}, i }]:transpose(2, 3)
  end
  local scores = part(1):matmul(part(2):transpose(3, 4)) * (width // heads) ^ -0.5
  local mask = dc.full(("f32[%d, %d]"):format(time, time), -1e9):triu(1)
  local y = (scores + mask):softmax(4):matmul(part(3))
  return y:transpose(2, 3):reshape(batch, time, width)
end

function Block:forward(x)
  x = x + self.proj(attention(self.qkv(self.norm1(x)), self.heads))
  return x + self.fc2(self.fc1(self.norm2(x)):gelu { approximate = "tanh" })
end

return Block
