-- Beside tensor_peer.py: `read DIR` compares its files with what they are to have, `write DIR SEED` writes others.
local dc = require "deepc"
local what, dir = arg[1], arg[2]

local function compare(got, path)
  local want = dc.load(path)
  for name, x in pairs(want) do
    local y = assert(got[name], name)
    assert(y.dtype == x.dtype and table.concat(y.shape, ",") == table.concat(x.shape, ","), name)
    assert(#y:bytes() == 0 or y:bytes() == x:bytes(), name)
    got[name] = nil
  end
  assert(next(got) == nil, next(got))
end

if what == "read" then
  compare(dc.load(dir .. "/gguf.gguf"), dir .. "/gguf.safetensors")
  compare(dc.load(dir .. "/torch.pt"), dir .. "/torch.safetensors")
  compare(dc.load(dir .. "/legacy.pt"), dir .. "/torch.safetensors")
  return
end

local seed = math.tointeger(tonumber(arg[3]))
local x = dc.randn("f32[70, 96]", { seed = seed }) * dc.exp(dc.randn("f32[70, 1]", { seed = seed + 1 }))
local values = { x = x, deep = x:reshape(7, 10, 96), zeros = dc.zeros "f32[2, 32]", row = x[1], small = x * 1e-12 }
dc.save(dir .. "/w.safetensors", values)
for _, kind in ipairs { "f32", "f16", "bf16", "q8_0", "q4_0" } do
  dc.save(("%s/w_%s.gguf"):format(dir, kind), values, { ["general.architecture"] = "test", n = 3 }, { type = kind })
end
