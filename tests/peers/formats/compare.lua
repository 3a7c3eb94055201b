-- compare.lua DIR: what deepc reads of the files in DIR (peer.py write), beside what their own libraries read; then
-- writes every dtype with every writer into DIR/ours, for peer.py check.
local dc = require "deepc"
local data = require "deepc.data"

local dir = ...
local passed, failed = 0, 0

local function lines(command)
  local p <close> = assert(io.popen(command))
  local list = {}
  for line in p:lines() do
    list[#list + 1] = line
  end
  return list
end

local function same(name)
  return name
end

local function read(path)
  if path:find "%.wav$" then
    return { value = (data.read_wav(path)) }
  elseif path:find "%.png$" or path:find "%.jpg$" then
    return { value = data.read_image(path) }
  end
  return (dc.load(path, nil, { rename = same, cast = true }))
end

-- Why they differ; or nil. near: JPEG is decoded to within two levels; false: one NaN is like another.
local function differ(x, dtype, shape, bytes, near)
  if dtype == "-" then
    return x and "is read" or nil
  elseif not x then
    return "is not read"
  elseif x.dtype ~= dtype or table.concat(x.shape, ",") ~= shape then
    return ("is %s[%s], not %s[%s]"):format(x.dtype, table.concat(x.shape, ","), dtype, shape)
  elseif near then
    local y = dc.frombytes(bytes, ("u8[%s]"):format(shape))
    return (x:cast "i32" - y:cast "i32"):abs():max():item() > 2 and "has other values" or nil
  end
  if x:bytes() == bytes then
    return nil
  end
  -- of floats of 8 bits NaN has no pattern of its own
  local y = dc.frombytes(bytes, ("%s[%s]"):format(dtype, shape))
  return not (near == false and (x:eq(y) | x:ne(x) & y:ne(y)):all():item()) and "has other values" or nil
end

local function compare(path)
  local ok, t = pcall(read, path)
  for line in io.lines(path .. ".want") do
    local name, dtype, shape, hex = line:match "^([^\t]*)\t([^\t]*)\t?([^\t]*)\t?(.*)$"
    local bytes = hex:gsub("%x%x", function(h) return string.char(tonumber(h, 16)) end)
    local near = path:find "%.jpg$" and true
    if name:find "float8" then
      near = false
    end
    local why = ok and differ(t[name], dtype, shape, bytes, near)
      or not ok and dtype ~= "-" and tostring(t):gsub("\n.*", "")
    passed, failed = passed + (why and 0 or 1), failed + (why and 1 or 0)
    if why then
      print(("%s: '%s' %s"):format(path, name, why))
    end
  end
end

for _, path in ipairs(lines(("find %s -name '*.want' | sort"):format(dir))) do
  compare((path:gsub("%.want$", "")))
end

-- ---- what we write ----

local WRITERS = {
  npy = function(path, x) data.write_npy(path, x) end,
  npz = function(path, x) data.write_npz(path, { x = x }) end,
  ["z.npz"] = function(path, x) data.write_npz(path, { x = x }, { compress = true }) end,
  safetensors = function(path, x) dc.save(path, { x = x }) end,
  csv = function(path, x) data.write_csv(path, { x = x:reshape(-1) }) end,
  png = function(path, x) data.write_image(path, x) end,
  wav = function(path, x) data.write_wav(path, x, 8000, { bits = "f32" }) end,
}

os.execute(("mkdir -p %s/ours"):format(dir))
for dtype in ("bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128"):gmatch "%S+" do
  local x
  if dtype:find "^c" then
    local part = dtype == "c64" and "f32[4, 3]" or "f64[4, 3]"
    x = dc.complex(dc.randn(part, { seed = 1 }), dc.randn(part, { seed = 2 }))
  elseif dtype:find "f" then
    x = dc.randn("f64[4, 3]", { seed = 3 }):cast(dtype)
  else
    local bytes = {}
    for i = 1, 12 * 8 do
      bytes[i] = string.char(dtype == "bool" and i % 3 % 2 or i * 37 % 256)
    end
    bytes = table.concat(bytes)
    x = dc.frombytes(bytes:sub(1, 12 * (tonumber(dtype:match "%d+") or 8) // 8), dtype .. "[4, 3]")
  end
  for ending, write in pairs(WRITERS) do
    local path = ("%s/ours/%s_%s.%s"):format(dir, ending:gsub("%W", ""), dtype, ending)
    if pcall(write, path, x) and not (ending == "safetensors" and dtype == "c128") then
      local f <close> = assert(io.open(path .. ".bytes", "wb"))
      f:write(x:bytes())
    else
      os.remove(path)
    end
  end
end

print(("%d passed, %d failed"):format(passed, failed))
os.exit(failed == 0)
