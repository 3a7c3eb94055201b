-- Functions, layers, losses and optimisers beside what PyTorch, NumPy and SciPy computed (tests/peers).
local lu = require "luaunit"
local dc = require "deepc"
local peers = require "tests.peers.peers"
local lapack = require "tests.lua.lapack"

TestPeers = {}

local root = package.path:match "^(.-)/%.%./%?%.lua" .. "/peers"
local files = assert(io.popen("ls '" .. root .. "/cases'"))
for file in files:lines() do
  local area = file:match "^(.*)%.lua$"
  TestPeers["test_" .. area] = function()
    lu.skipIf(area == "linalg" and lapack.missing, lapack.missing)
    local tables = dc.load(root .. "/tables/" .. area .. ".safetensors")
    local wrong = {}
    for _, v in ipairs(peers.variants(area, root)) do
      for _, line in ipairs((peers.compare(v, peers.run(v), tables))) do
        wrong[#wrong + 1] = line
      end
    end
    lu.assertEquals(table.concat(wrong, "\n"), "")
  end
end
files:close()
