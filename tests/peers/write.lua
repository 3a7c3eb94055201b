-- deepc tests/peers/write.lua AREA DIR: arguments of all variants of an area as DIR/arguments.safetensors, and what a
-- peer has to compute as DIR/list.json.
local dc = require "deepc"
package.path = "./?.lua;" .. package.path
local peers = require "tests.peers.peers"

local function quoted(s)
  return '"' .. s:gsub('[%c"\\]', function(c) return ("\\u%04x"):format(c:byte()) end) .. '"'
end

local function list_of(names)
  local parts = {}
  for i, name in ipairs(names) do
    parts[i] = quoted(name)
  end
  return "[" .. table.concat(parts, ", ") .. "]"
end

local area, dir = arg[1], arg[2]
local tensors, rows = {}, {}
for _, v in ipairs(peers.variants(area)) do
  local names = {}
  for name, x in pairs(v.args) do
    names[#names + 1] = name
    tensors[v.key .. "/" .. name] = x
  end
  table.sort(names)
  rows[#rows + 1] = ('{"key": %s, "dtype": %s, "args": %s, "grads": %s, "peer": %s, "numpy": %s}'):format(quoted(v.key),
    quoted(v.dtype), list_of(names), list_of(v.grads), quoted(v.case.peer or v.case.numpy),
    v.case.numpy and "true" or "false")
end
dc.save(dir .. "/arguments.safetensors", tensors)
local f <close> = assert(io.open(dir .. "/list.json", "w"))
f:write("[", table.concat(rows, ",\n"), "]\n")
