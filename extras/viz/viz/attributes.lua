-- Attributes of nodes in words, for the page of deepc.viz. Axes count from 1, as in scripts.

local function join(list)
  return table.concat(list, ", ")
end

local function axes_of_mask(mask)
  local list = {}
  for axis = 1, 8 do
    if mask >> (axis - 1) & 1 == 1 then
      list[#list + 1] = axis
    end
  end
  return (#list == 1 and "axis " or "axes ") .. join(list)
end

local function plus_one(list, from, to)
  local out = {}
  for i = from, to do
    out[#out + 1] = list[i] + 1
  end
  return out
end

local function take(list, from, n)
  return join(table.move(list, from, from + n - 1, 1, {}))
end

local words = {}

function words.const(a)
  return a[1]
end

function words.permute(a)
  return "axes " .. join(plus_one(a, 1, #a))
end

function words.flip(a)
  return axes_of_mask(a[1])
end

function words.iota(a)
  return "along axis " .. a[1] + 1
end

function words.slice(a)
  local n = #a // 2
  return n > 0 and ("from %s, step %s"):format(take(a, 1, n), take(a, n + 1, n)) or ""
end

function words.pad(a)
  local n = #a // 2
  return n > 0 and ("before %s, step %s"):format(take(a, 1, n), take(a, n + 1, n)) or ""
end

-- [nb, nc, left batch, right batch, left contracted, right contracted]
function words.dot(a)
  local nb, nc = a[1], a[2]
  local out, at = {}, 3 + 2 * nb
  if nb > 0 then
    out[1] = ("batch %s and %s"):format(join(plus_one(a, 3, 2 + nb)), join(plus_one(a, 3 + nb, 2 + 2 * nb)))
  end
  if nc > 0 then
    out[#out + 1] = ("sums over axis %s and axis %s"):format(join(plus_one(a, at, at + nc - 1)),
      join(plus_one(a, at + nc, at + 2 * nc - 1)))
  end
  return table.concat(out, "; ")
end

-- [n, groups, batch groups, three lists of n + 2 axes, for each dim: stride, lo, hi, dilations, reversed]
function words.conv(a)
  local n, at, stride, padding = a[1], 4 + 3 * (a[1] + 2), {}, {}
  for i = 0, n - 1 do
    stride[#stride + 1] = a[at + 6 * i]
    padding[#padding + 1] = a[at + 6 * i + 1]
  end
  return ("stride %s, padding %s, groups %d"):format(join(stride), join(padding), a[2])
end

function words.gather(a)
  return "along axis " .. a[1] + 1
end

function words.sort(a)
  return a[1] == 1 and "descending" or "ascending"
end

function words.top_k(a)
  return ("k %d, %s"):format(a[1], a[2] == 1 and "descending" or "ascending")
end

function words.running(a)
  local kinds = { [0] = "sum", "product", "max", "min" }
  return ("running %s%s"):format(kinds[a[1]] or a[1], a[2] == 1 and ", from the end" or "")
end

function words.set_size(a)
  return "of axis " .. a[1] + 1
end

words.argsort = words.sort

---The attributes of a node of core.executables.
---@param node table
---@return string
return function(node)
  local a = node.attributes
  if #a == 0 then
    return ""
  elseif node.class == "reduction" then
    return axes_of_mask(a[1])
  elseif node.op:match "^scatter" then
    return words.gather(a)
  end
  local write = words[node.op]
  return tostring(write and write(a) or join(a))
end
