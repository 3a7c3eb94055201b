-- A tokenizer's file has a normalizer that is not known.
local tokenizers = require "deepc.tokenizers"
local path = os.tmpname() .. ".json"
local f <close> = assert(io.open(path, "w"))
f:write [[{ "normalizer": { "type": "Shout" }, "model": { "type": "BPE", "vocab": {}, "merges": [] } }]]
f:close()
local ok, err = pcall(tokenizers.load, path)
os.remove(path)
assert(not ok)
error((tostring(err):gsub(path:gsub("%W", "%%%0"), "tokenizer.json")), 0)
