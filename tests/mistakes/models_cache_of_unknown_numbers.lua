local models = require "deepc.models"

local net = models.llama { vocab_size = 100, hidden_size = 16, intermediate_size = 32, num_hidden_layers = 1,
  num_attention_heads = 2 }
models.generate(net, { 3, 1, 4 }, { cache = "i4" })
