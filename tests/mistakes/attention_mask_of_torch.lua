local dc, nn = require "deepc", require "deepc.nn"

local attention = nn.MultiheadAttention(16, 4, { batch_first = true })
local hidden = dc.ones("bool[5, 5]"):triu(1)
attention(dc.zeros "f32[2, 5, 16]", nil, nil, { attn_mask = hidden })
