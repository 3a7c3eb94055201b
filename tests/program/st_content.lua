-- The same content as st_peer.py: `write FILE`, or `read FILE`.
local dc = require "deepc"
local what, path = arg[1], arg[2]

local NOTE = 'Zo\u{eb} "quoted" \\ \n\u{1f600}'
local i = dc.iota("i32[12]"):reshape(3, 4)

local content = { scalar = dc.tensor(2.5), none = dc.zeros "f32[0, 4]" }
for dtype in ("bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64"):gmatch "%S+" do
  local rule = dtype == "bool" and i % 2 or dtype:match "^u" and i + 3 or dtype:match "f" and (i - 5):cast "f32" / 4
    or i - 5
  content["t_" .. dtype] = rule:cast(dtype)
end

if what == "write" then
  dc.save(path, content, { note = NOTE })
  return
end

content.t_bf16 = nil -- numpy has none
local got, metadata = dc.load(path)
for name, x in pairs(content) do
  local y = assert(got[name], name)
  assert(y.dtype == x.dtype and #y.shape == #x.shape, name)
  local a, b = x:reshape(-1):totable(), y:reshape(-1):totable()
  assert(#a == #b, name)
  for k = 1, #a do
    assert(a[k] == b[k], name)
  end
  got[name] = nil
end
assert(next(got) == nil, next(got))
assert(metadata.note == NOTE)
