-- A block of a transformer: attention whose products of queries, keys and values are layers of their own.
--
--   local Block = dofile("block.lua")(width, heads, dropout)
local nn = require "deepc.nn"

return function(width, heads, dropout)
  local Block = nn.class "Block"

  function Block:init()
    self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
    self.q, self.k, self.v = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)
    self.proj = nn.Linear(width, width)
    self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
    self.drop = nn.Dropout(dropout)
  end

  function Block:forward(x)
    local h = self.norm1(x)
    local function split(y)
      return y:reshape(x:size(1), x:size(2), heads, width // heads):transpose(2, 3)
    end
    local y = nn.scaled_dot_product_attention(split(self.q(h)), split(self.k(h)), split(self.v(h)), { causal = true })
    x = x + self.proj(y:transpose(2, 3):reshape(x:size(1), x:size(2), width))
    return x + self.drop(self.fc2(self.fc1(self.norm2(x)):gelu { approximate = "tanh" }))
  end

  return Block
end
