-- A GPT block: attention of heads that see what is before them, then two layers.
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
  local y = nn.scaled_dot_product_attention(part(1), part(2), part(3), { causal = true })
  return y:transpose(2, 3):reshape(batch, time, width)
end

function Block:forward(x)
  x = x + self.proj(attention(self.qkv(self.norm1(x)), self.heads))
  return x + self.fc2(self.fc1(self.norm2(x)):gelu { approximate = "tanh" })
end

return Block
