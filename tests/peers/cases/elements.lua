-- Functions of single elements.
return {
  { "exp", run = function(a) return a.x:exp() end, peer = "torch.exp(x)",
    args = { { x = "T[7]" }, { x = "T[2, 3]" }, { x = { "T[4]", values = { 0 / 0, math.huge, -math.huge, -0.0 } } } } },
  { "tanh", run = function(a) return a.x:tanh() end, peer = "torch.tanh(x)",
    args = { { x = "T[]" }, { x = "T[2, 3]" }, { x = { "T[4]", values = { 0 / 0, math.huge, -math.huge, -0.0 } } } } },
}
