#!/bin/sh
# deepc check: scripts with mistakes and without, and what is said of them, whole.
. "$(dirname "$0")/lib.sh"
case $DEEPC in
/*) ;;
*) DEEPC=$PWD/$DEEPC ;;
esac
cd "$dir" || exit 1
unset DEEPC_DEVICE

# finds SENTENCE STATUS FILE: the check prints what stands in the file `want`
finds() {
    run "$DEEPC" check "$3"
    check "$1: what it prints" test "$out" = "$(cat want)"
    check "$1: its status" test "$status" -eq "$2"
    check "$1: no errors on stderr" test -z "$err"
}

cat >clean.lua <<'EOT'
local dc = require "deepc"
local nn, optim, data = require "deepc.nn", require "deepc.optim", require "deepc.data"

local Net = nn.class "Net"
function Net:init(o)
  self.first = nn.Linear(784, 32)
  self.bias = o.bias and dc.param("f32[10]", dc.zeros "f32[10]")
  self.second = nn.Linear(32, 10, { bias = false })
end
function Net:forward(x, mask)
  local h = self.first(x):relu()
  if mask then
    h = h * mask
  end
  local y = self.second(h)
  if self.bias then
    y = y + self.bias
  end
  return y
end

local net = Net { bias = true }
local opt = optim.Adam(net:parameters(), { lr = 1e-3 })
local images = data.idx "missing/train-images-idx3-ubyte.gz"
local labels = data.idx "missing/train-labels-idx1-ubyte.gz"
local train = data.set(images, labels:cast "i32")

local step = dc.fn("step(x: u8[50, 28, 28], y: i32[50]) -> f32[]", function(x, y)
  local loss = nn.cross_entropy(net(x:cast "f32":reshape "[50, 784]" / 255), y)
  opt:step(loss)
  return loss
end)

local previous, best
local function smooth(x, keep)
  keep = keep or dc.ones "f32[]"
  return x and keep and x * keep
end
for epoch = 1, 3 do
  for x, y in train:batches { size = 50, shuffle = true } do
    local loss = step(x, y)
    if previous then
      loss = loss + previous
    end
    previous = loss
    if not best or loss:item() < best then
      best = loss:item()
    end
    local _ = smooth(loss)
  end
  print("epoch", epoch, best)
end
local m = images:gt(0)
local n = m ~= nil and m:cast "f32"
local _ = n
previous:close()
EOT
: >want
finds "a script without mistakes" 0 clean.lua

# Large files of images are not unpacked, their elements are zeros; labels are read.
{ printf '\000\000\010\003\000\000\007\320\000\000\000\034\000\000\000\034' && head -c 1568000 /dev/zero | tr '\000' '\001'; } |
    gzip >many-images.gz
printf '\000\000\010\001\000\000\000\004\001\011\003\002' >few-labels
cat >large.lua <<'EOT'
local data = require "deepc.data"
local images, labels = data.idx "many-images.gz", data.idx "few-labels"
assert(images.shape[1] == 2000 and images:max():item() == 0)
assert(labels:max():item() == 9)
error "here"
EOT
cat >want <<'EOT'
large.lua:5: note: here
  hint: the script stopped here; values are not computed by deepc check
EOT
finds "images that are zeros" 0 large.lua

# Files that are not here hold what the script says of them: what stands behind is looked at.
cat >absent.lua <<'EOT'
local dc, data = require "deepc", require "deepc.data"
local column = dc.fn("column(x: f32[n], y: i64[n]) -> f32[]", function(x, y) return (x * y:cast "f32"):sum() end)
local t, names = data.read_csv("no/t.csv", { types = { price = "f32", kind = "i64", name = "text" } })
assert(#names == 3 and #t.name == #t.price)
column(t.price, t.kind)
local m, order = data.read_csv("no/t.csv", { matrix = true, columns = { "a", "b", "c" } })
assert(m.shape[2] == 3 and order[3] == "c")
local images = data.images(data.files "no/photos", { size = { 28, 30 }, channels = 1 })
assert(images.shape[2] == 28 and images.dtype == "u8")
local folder, classes = data.image_folder("no/photos", { size = { 8, 8 }, channels = 3 })
assert(#classes > 1)
for x, y in folder:batches { size = 4 } do
  assert(x.shape[4] == 3 and y.dtype == "i32")
end
local sounds, rate = data.sounds({ "no/a.wav" }, { frames = 100, channels = 1, rate = 8000 })
assert(sounds.shape[2] == 100 and rate == 8000)
assert(data.read_bytes("no/x", "i16[3, 5]").shape[2] == 5 and data.read_bytes("no/x", "f64").dtype == "f64")
assert(#data.Vocabulary(data.read_text "no/x.txt", { split = "words" }) > 3)
for x in data.cifar10("no/b.bin"):batches { size = 10 } do
  assert(x.shape[2] == 32)
end
column(t.kind, t.price)
EOT
cat >want <<'EOT'
absent.lua:22: DC0404: column: argument 'x' is i64[997], declared f32[n]
  hint: :cast "f32" converts
EOT
finds "files that are not here" 1 absent.lua

# Where nothing is said, it is no mistake; the functions are traced all the same.
cat >unknown.lua <<'EOT'
local dc, data = require "deepc", require "deepc.data"
local f = dc.fn("f(x: f32[n, 4]) -> f32[n, 3]", function(x) return x end)
local t = data.read_csv("no/t.csv", { types = { price = "f32" } })
print(f(t.size))
EOT
cat >want <<'EOT'
unknown.lua:2: DC0405: f: result 1 is f32[n, 4], declared f32[n, 3]
unknown.lua:4: note: read_csv: no/t.csv is not here, and no option says what column 'size' is
  hint: types = { name = "f32" } says it
EOT
finds "a column of which nothing is said" 1 unknown.lua
for read in 'data.read_npy "no/x.npy"' 'data.read_image "no/x.png"' 'assert(io.open "no/x")' 'assert(io.popen("ls"):read())' 'io.lines "no/x"'; do
    echo "local data = require 'deepc.data' local x = $read" >stops.lua
    run "$DEEPC" check stops.lua
    check "$read: no mistake" test "$status" -eq 0
    says 'note: '
done

# Loops run to their end.
cat >rounds.lua <<'EOT'
local dc = require "deepc"
local f = dc.fn("f(x: f32[2]) -> f32[2]", function(x) return x * 2 end)
local x, hits = dc.ones "f32[2]", {}
for k = 1, 20000 do
  local right = f(x):eq(x)
  if k % 100 == 0 then
    print(right:all():item())
  end
end
for k = 1, 100 do
  hits[k] = f(x):eq(x)
end
print(hits[50]:all():item())
error(("%d results"):format(#hits))
EOT
cat >want <<'EOT'
rounds.lua:14: note: 100 results
  hint: the script stopped here; values are not computed by deepc check
EOT
finds "loops run to their end" 0 rounds.lua

cat >library.lua <<'EOT'
local dc = require "deepc"
local nn, optim, data = require "deepc.nn", require "deepc.optim", require "deepc.data"
local schedules = require "deepc.schedules"
local o = dc.options { about = "x", { "epochs", 3, "" }, { "data", nil, "", required = true } }
local net = nn.Sequential { nn.Embedding(100, 8), nn.LayerNorm(8), nn.Dropout(0.1), nn.Linear(8, 16), nn.GELU(), nn.RMSNorm(16),
  nn.Linear(16, 3) }
net[4].weight:set(nn.init.orthogonal(net[4].weight))
net[7].weight:set(nn.init.kaiming_normal(net[7].weight))
print(net:summary "i32[64, 12]")
local opt = optim.AdamW(net:parameters(), { clip_norm = 1, weight_decay = 0.05 })
local rate = schedules.warmup(10, schedules.cosine { lr = 1e-3, steps = 100 })
local step = dc.fn("step(x: i32[50, 12], y: i32[50, 12], m: bool[50], lr: f32[]) -> f32[], f32[]", function(x, y, m, lr)
  local loss = nn.cross_entropy(net(x), y, { mask = m, label_smoothing = 0.1, ignore_index = -1 })
  local norm = opt:step(loss, { lr = lr })
  return loss, norm
end)
local set = data.set(dc.zeros "i32[1000, 12]", dc.zeros "i32[1000, 12]")
local shown, i = {}, 0
for _ = 1, o.epochs do
  for x, y in dc.progress(set:batches { size = 50, shuffle = true }, { metrics = shown }) do
    i = i + 1
    shown.loss, shown.norm = step(x, y, dc.ones "bool[50]", rate(i))
    if shown.loss:item() > 1e9 then error "diverged" end
  end
  opt.clip_norm = 0.5
end
for _, named in ipairs(opt:named_cells()) do print(named[1], named[2]) end
EOT
: >want
finds "a script that uses most of the library" 0 library.lua

cat >conditions.lua <<'EOT'
local dc = require "deepc"
local a, b = dc.tensor { 1, 2 }, dc.tensor { 2, 1 }
local m = a:lt(b)
local k = b:lt(a)
if m then print "always" end
local both = m and k
local neither = not m
while m do
  break
end
if a:eq(b) then print "always" end
local state = { done = a:gt(b) }
if state.done then print "always" end
a:add(1)
b
  :mul(2)
local s = dc.tensor(3)
s:item()
if both == nil or neither then print "once" end
local f = dc.fn("f(x: f32[2], m: bool[2]) -> f32[2]", function(x, m)
  if m then x = x * 2 end
  return x
end)
f(a, m)
EOT
cat >want <<'EOT'
conditions.lua:4: DC0901: nothing uses the value of lt: a tensor is always true
  hint: dc.where(m, a, b), a & b
conditions.lua:11: DC0901: nothing uses the value of eq: a tensor is always true
  hint: dc.where(m, a, b), a & b
conditions.lua:12: DC0901: nothing uses the value of gt: a tensor is always true
  hint: dc.where(m, a, b), a & b
conditions.lua:20: warning: nothing uses the value of argument 'm'
EOT
finds "conditions that are always true" 1 conditions.lua

cat >shapes.lua <<'EOT'
local dc = require "deepc"
local w = dc.param("f32[784, 10]", dc.zeros "f32[784, 10]")
local one = dc.fn("one(x: f32[32, 28, 28]) -> f32[32, 10]", function(x)
  return x:matmul(w)
end)
local two = dc.fn("two(x: f32[32, 784]) -> f32[32]", function(x)
  return x:matmul(w)
end)
local three = dc.fn("three(x: f32[n, 784]) -> f32[n, 10]", function(x)
  return x:matmul(w) + x
end, nil)
three(dc.zeros "f32[4, 784]")
print(one, two)
EOT
cat >want <<'EOT'
shapes.lua:4: DC0301: matmul: inner dims differ: axis 3 = 28 against axis 1 = 784
  hint: 28 * 28 = 784; :flatten(2) first?
shapes.lua:6: DC0405: two: result 1 is f32[32, 10], declared f32[32]
shapes.lua:10: DC0301: add: axis 2: 10 against 784
EOT
run "$DEEPC" check shapes.lua
check "functions that do not pass: the first" says "shapes.lua:4: DC0301: matmul: inner dims differ: axis 3 = 28 against axis 1 = 784
  hint: 28 * 28 = 784; :flatten(2) first?"
check "functions that do not pass: the second" says ": DC0405: two: result 1 is f32[32, 10], declared f32[32]"
check "functions that do not pass: at a call" says "shapes.lua:10: DC0301: add: axis 2: 10 against 784"
check "functions that do not pass: the status" test "$status" -eq 1

# Functions that no call has told the sizes: what is wrong with any size is found, with some size it is not.
cat >open.lua <<'EOT'
local dc = require "deepc"
local w = dc.param("f32[784, 10]", dc.zeros "f32[784, 10]")
local inner = dc.fn("inner(x: f32[n, 28]) -> f32[n, 10]", function(x)
  return x:matmul(w)
end)
local result = dc.fn("result(x: f32[n, 784]) -> f32[n]", function(x)
  return x:matmul(w)
end)
local two = dc.fn("two(x: f32[n, 784], y: f32[m, 5]) -> f32[n, 10]", function(x, y)
  return x:matmul(w) + x + y:sum()
end)
local part = dc.fn("part(p: { x: f32[2*n, k] }, q?: f32[j], r: f32[t <= 8]) -> f32[2*n, k]", function(p, q, r)
  assert(q == nil and r)
  return p.x + w:matmul(w):sum()
end)
print(inner, result, two, part)
error "stopped"
EOT
cat >want <<'EOT'
open.lua:4: DC0301: matmul: inner dims differ: axis 2 = 28 against axis 1 = 784
open.lua:6: DC0405: result: result 1 is f32[n, 10], declared f32[n]
open.lua:10: DC0301: add: axis 2: 10 against 784
open.lua:14: DC0301: matmul: inner dims differ: axis 2 = 10 against axis 1 = 784
  hint: the right one :transpose()d would fit
open.lua:17: error: stopped
EOT
finds "sizes that no call has told" 1 open.lua

cat >any.lua <<'EOT'
local dc = require "deepc"
local w = dc.param("f32[784, 10]", dc.zeros "f32[784, 10]")
local late
local set = {
  dc.fn("fixed(x: f32[n, 784]) -> f32[50, 784]", function(x) return x:reshape "[50, 784]" end),
  dc.fn("fixed_result(x: f32[n, 784]) -> f32[50, 784]", function(x) return x end),
  dc.fn("groups(x: f32[n, 784]) -> f32[k, 64, 784]", function(x) return x:reshape(-1, 64, 784) end),
  dc.fn("inner(x: f32[n, k], y: f32[m, j]) -> f32[n, j]", function(x, y) return x:matmul(y) end),
  dc.fn("constant(x: f32[n]) -> f32[n]", function(x) return x + dc.zeros "f32[3]" end),
  dc.fn("square(x: f32[n, 10]) -> f32[n, n]", function(x) return x end),
  dc.fn("stretched(x: f32[n]) -> f32[7]", function(x) return x + dc.zeros "f32[7]" end),
  dc.fn("asserted(x: f32[n]) -> f32[n]", function(x)
    assert(x.shape[1] % 48 == 0, "48")
    return x
  end),
  dc.fn("branch(x: f32[n, 784]) -> f32[n, 10]", function(x)
    if x.shape[1] > 50 then return x:matmul(x) end
    return x:matmul(w)
  end),
  dc.fn("window(x: f32[n, 1, h, w]) -> f32[n, 1, a, b]", function(x)
    return x:conv2d(dc.zeros "f32[1, 1, 300, 300]")
  end),
  dc.fn("narrow(x: f32[n, 784]) -> f32[k, 10]", function(x) return x:matmul(w)[{ { 1, 2000 } }] end),
  dc.fn("absent(x: f32[n, 784]) -> f32[n, 10]", function(x) return x:matmul(late) end),
  dc.fn("missing(x: f32[n, 784]) -> f32[n, 10]", function(x) return x and late end),
  dc.fn("list(xs: { f32[n, 28] }) -> f32[n, 10]", function(xs) return xs[1]:matmul(w) end),
  dc.fn("static(x: f32[n, 28], k) -> f32[n, 10]", function(x, k) return x:matmul(w) + k end),
  dc.fn("unused(x: f32[n]) -> f32[n]", function(x)
    local few = x:lt(3)
    if x.shape[1] < 10 then x = dc.where(few, x, 0) end
    return x
  end),
}
local caught = dc.fn("caught(x: f32[n, 28]) -> f32[n, 10]", function(x) return x:matmul(w) end)
assert(not pcall(caught, dc.zeros "f32[2, 28]"))
print(set)
os.exit(0)
EOT
: >want
finds "sizes that some call may have" 0 any.lua
printf 'local dc = require "deepc"\nlocal f = dc.fn("f(x: f32[n]) -> f32[n]", function(x)\n  while true do x = x end\nend)\nprint(f)\n' >slow.lua
run timeout 20 "$DEEPC" check -t 0.3 slow.lua
check "a trace that does not end is ended" says "slow.lua: note: the script had not ended when its time was over"

echo 'local x = = 1' >syntax.lua
echo "syntax.lua:1: syntax: unexpected symbol near '='" >want
finds "a script that is no Lua" 1 syntax.lua

printf 'local t = {}\nlocal n = t.x.y\n' >lua.lua
echo "lua.lua:2: error: attempt to index a nil value (field 'x')" >want
finds "a mistake in Lua" 1 lua.lua

cat >values.lua <<'EOT'
local dc = require "deepc"
local double = dc.fn("double(x: f32[]) -> f32[]", function(x) return x * 2 end)
assert(double(dc.tensor(2)):item() == 4, "that is not four")
local _ = dc.zeros "f32[2]" + dc.zeros "f32[3]"
EOT
cat >want <<'EOT'
values.lua:3: note: that is not four
  hint: the script stopped here; values are not computed by deepc check
EOT
finds "a script that needs values" 0 values.lua

echo 'while true do pcall(function() while true do end end) end' >caught.lua
run timeout 20 "$DEEPC" check -t 0.2 caught.lua
check "one that catches what ends it is ended" says "caught.lua: note: the script had not ended when its time was over"
printf 'local dc = require "deepc"\nlocal fine, err = pcall(os.exit, 3)\nerror("failed: " .. tostring(err))\n' >left.lua
: >want
finds "os.exit in pcall" 0 left.lua
printf 'local dc = require "deepc"\nlocal f = dc.fn("f(x: f32[2]) -> f32[2]", function(x)\n  local fine, err = pcall(os.exit)\n' >left.lua
printf '  error("failed: " .. tostring(err))\nend)\nassert(f, "no")\nerror "reached"\n' >>left.lua
finds "in a typed function, too" 0 left.lua

printf 'local n = 0\nwhile true do n = n + 1 end\n' >endless.lua
run "$DEEPC" check -t 1 endless.lua
check "an endless script is ended" says "endless.lua: note: the script had not ended when its time was over"
check "its status" test "$status" -eq 0

echo kept >kept.txt
cat >world.lua <<'EOT'
os.remove "kept.txt"
local f = io.open("kept.txt", "w")
f:write "changed"
f:close()
os.execute "touch made.txt"
io.write "text"
io.stdout:write "text"
print "text"
local t = require "deepc".trace "kept.txt"
assert(t:stop() == "kept.txt" and t:stop() == "kept.txt")
require "deepc".trace "made.txt"
os.exit(3)
EOT
: >want
finds "a script that changes files" 0 world.lua
for asks in dot "plan --mesh data=2"; do
    # shellcheck disable=SC2086
    run "$DEEPC" $asks world.lua
done
check "the file is as it was" test "$(cat kept.txt)" = kept
check "no other one was made" test ! -e made.txt

# ---- as JSON ----

cat >json.lua <<'EOT'
local dc = require "deepc"
local w = dc.param("f32[784, 10]", dc.zeros "f32[784, 10]")
local f = dc.fn("f(x: f32[32, 28, 28]) -> f32[32, 10]", function(x) -- "a text", \ ü
  return x:matmul(w)
end)
local g = dc.fn("g(x: f32[2]) -> f32[2]", function(x)
  x:add(1)
  return x + dc.zeros "f32[3]"
end)
EOT
cat >want <<'EOT'
{"version":1,"file":"json.lua","complete":true,"problems":[{"file":"json.lua","line":4,"column":12,"end_column":18,"severity":"error","code":"DC0301","message":"matmul: inner dims differ: axis 3 = 28 against axis 1 = 784","hint":"28 * 28 = 784; :flatten(2) first?","related":[{"message":"left: f32[32, 28, 28], argument 'x' of f, json.lua:3","file":"json.lua","line":3},{"message":"right: f32[784, 10], parameter made at json.lua:2","file":"json.lua","line":2}]},
 {"file":"json.lua","line":8,"column":12,"end_column":13,"severity":"error","code":"DC0301","message":"add: axis 1: 2 against 3","related":[{"message":"left: f32[2], argument 'x' of g, json.lua:6","file":"json.lua","line":6},{"message":"right: f32[3], made at json.lua:8","file":"json.lua","line":8}]}]}
EOT
run "$DEEPC" check --json json.lua
check "as JSON: what it prints" test "$out" = "$(cat want)"
check "as JSON: its status" test "$status" -eq 1
run "$DEEPC" check --json -t 5 syntax.lua
check "as JSON: a script that is no Lua" test "$out" = '{"version":1,"file":"syntax.lua","complete":false,"problems":[{"file":"syntax.lua","line":1,"column":11,"end_column":12,"severity":"error","code":"syntax","message":"unexpected symbol near '"'='"'"}]}'
run "$DEEPC" check --json clean.lua
check "as JSON: without mistakes" test "$out" = '{"version":1,"file":"clean.lua","complete":true,"problems":[]}'
check "as JSON: their status" test "$status" -eq 0
run "$DEEPC" check --json values.lua
check "as JSON: a note" says '"severity":"note","message":"that is not four","hint":"the script stopped here'
run "$DEEPC" check -t 1 --json endless.lua
check "as JSON: an endless script" says '{"version":1,"file":"endless.lua","complete":false,"problems":[{"file":"endless.lua","severity":"note"'
printf 'error "\xff\xc3\x28 \1 \"quoted\" \xed\xa0\x80"\n' >bytes.lua
run "$DEEPC" check --json bytes.lua
check "as JSON: bytes that are no text" says '"message":"��( \u0001 \"quoted\" ���"'
mkdir a_folder_with_a_long_name_that_is_longer_than_lua_tells_in_its_messages
cp lua.lua a_folder_with_a_long_name_that_is_longer_than_lua_tells_in_its_messages
run "$DEEPC" check a_folder_with_a_long_name_that_is_longer_than_lua_tells_in_its_messages/lua.lua
check "a long name is told whole" says "a_folder_with_a_long_name_that_is_longer_than_lua_tells_in_its_messages/lua.lua:2: error: attempt"
printf 'local f = io.tmpfile()\nf:write "x"\nassert(os.tmpname() == "/dev/null")\n' >temporary.lua
run "$DEEPC" check temporary.lua
check "temporary files are not made" test "$status" -eq 0
run "$DEEPC" check --json nothing.lua
check "as JSON: a file that is not there" says '"severity":"error","message":"cannot open nothing.lua'

run "$DEEPC" check
check "without a file it tells how" warns "usage: deepc check"
check "and fails" test "$status" -eq 1
run "$DEEPC" check nothing.lua
check "a file that is not there" says "nothing.lua"
check "is a mistake" test "$status" -eq 1
closing
