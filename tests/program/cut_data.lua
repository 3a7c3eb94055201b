-- Cuts Fashion-MNIST to its first images: cut_data.lua FROM TO TRAIN TEST
-- Reads the gzipped idx files of FROM through the program's own reader and writes plain ones to TO.
local from, to, train, test = arg[1], arg[2], tonumber(arg[3]), tonumber(arg[4])

local function cut(name, count, item)
  local gz = assert(io.popen(("gzip -dc '%s/%s.gz'"):format(from, name)))
  local head = gz:read(item == 1 and 8 or 16)
  local body = gz:read(count * item)
  gz:close()
  assert(#body == count * item, name .. " is shorter than asked for")
  local out = assert(io.open(to .. "/" .. name, "wb"))
  out:write(head:sub(1, 4), string.pack(">I4", count), head:sub(9), body)
  assert(out:close())
end

cut("train-images-idx3-ubyte", train, 784)
cut("train-labels-idx1-ubyte", train, 1)
cut("t10k-images-idx3-ubyte", test, 784)
cut("t10k-labels-idx1-ubyte", test, 1)
