#!/bin/sh
# Ranks that fail, disagree, end early or hang, under the launchers of MPICH and Open MPI: what each of them says, whole; how
# lines are numbered; signals.
. "$(dirname "$0")/lib.sh"
here=$(cd "$(dirname "$0")/../ranks" && pwd)
rank_settings
unset DEEPC_RANK_PREFIX
case $DEEPC in
/*) ;;
*) DEEPC=$PWD/$DEEPC ;;
esac
keep_kernels
cd "$dir" || exit 1

openmpi="mpirun.openmpi --oversubscribe" mpich=mpirun.mpich threads=$here/threads.sh
have() {
    command -v "${1%% *}" >/dev/null 2>&1
}

# script NAME <LUA: behind the lines that all of them have; the mesh is line 3, what is read here begins at line 4.
script() {
    {
        echo 'local dc = require "deepc"'
        echo 'local w = dc.world()'
        echo 'dc.mesh { data = w.size }'
        cat
    } >"$1.lua"
}

# says_why N WORDS: ranks say these words, each once at most and one at least; one says where as well, or that it ended because
# of them. Nobody says anything else.
says_why() {
    sed -n 's/^\[[0-9]*\] deepc: //p' "$dir/err" | sed -E "s/ \\($host\\)/ (host)/g" >"$dir/said"
    sed -E 's/^rank [0-9] \(host\): ended because //; s/^rank [0-9] \(host\) failed: //; s/^[a-z_]*\.lua:[0-9]+: //; s/, here [0-9]+$/, here N/' "$dir/said" |
        sort -u >"$dir/why"
    test "$(cat "$dir/why")" = "$2" -a "$(wc -l <"$dir/said")" -le "$1" -a "$(grep -c 'stack traceback' "$dir/err")" -le 1 &&
        ! grep -E '^\[[0-9]*\] ' "$dir/err" | grep -qvE '^\[[0-9]*\] (deepc: |stack traceback:|	|  \[DC|    (left|right|of|dims|loss) |  hint: )'
}
host=$(uname -n)

# fails LAUNCHER N NAME WORDS: so many ranks of the script end with an error, and the reason is this.
fails() {
    for _ in 1 2 3 4 5; do # on a busy machine ranks may take longer to begin than they may take to answer
        run timeout 60 $1 -n "$2" "$DEEPC" "$3.lua"
        case $err in *"have not begun for 1 s"*) ;; *) break ;; esac
    done
    check "$1, $3: the status tells" test "$status" -ne 0 -a "$status" -ne 124
    check "$1, $3: $4" says_why "$2" "$4"
}

# ---- wrong programs ----

script shapes <<'LUA'
dc.all_reduce(dc.ones("f32[" .. 4 + w.rank .. "]"))
LUA
script dtypes <<'LUA'
dc.all_reduce(dc.ones(w.rank == 0 and "f32[4]" or "i32[4]"))
LUA
script kinds <<'LUA'
if w.rank == 0 then
  dc.all_reduce(dc.ones "f32[4]")
else
  dc.all_gather(dc.ones "f32[4]", 1)
end
LUA
script combines <<'LUA'
dc.all_reduce(dc.ones "f32[4]", { op = w.rank == 0 and "sum" or "max" })
LUA
script roots <<'LUA'
dc.broadcast(dc.ones "f32[4]", w.rank)
LUA
script barriers <<'LUA'
if w.rank == 0 then dc.barrier() else dc.all_reduce(dc.ones "f32[4]") end
LUA
script arrays <<'LUA'
dc.all_gather(dc.ones(w.rank == 0 and "f32[4, 2]" or "f32[2, 4]"), 2)
LUA
script calls <<'LUA'
for _ = 1, 3 - w.rank do
  dc.all_reduce(dc.ones "f32[4]")
end
LUA
script leaves <<'LUA'
if w.rank == 1 then os.exit(0) end
dc.all_reduce(dc.ones "f32[4]")
LUA
script exits <<'LUA'
if w.rank == 1 then os.exit(3) end
dc.all_reduce(dc.ones "f32[4]")
LUA
script throws <<'LUA'
if w.rank == 1 then error "boom" end
dc.all_reduce(dc.ones "f32[4]")
LUA
script throws_alone <<'LUA'
dc.all_reduce(dc.ones "f32[4]")
if w.rank == 1 then error "boom" end
while true do end
LUA
script throws_last <<'LUA'
dc.all_reduce(dc.ones "f32[4]")
if w.rank == 1 then error "boom" end
LUA
script throws_all <<'LUA'
dc.all_reduce(dc.ones "f32[4]")
error "no such luck"
LUA
script sentence <<'LUA'
if w.rank == 1 then dc.fail "there is no data" end
dc.all_reduce(dc.ones "f32[4]")
LUA
script wrong <<'LUA'
if w.rank == 1 then dc.ones "f32[4]":matmul(dc.ones "f32[5]") end
dc.all_reduce(dc.ones "f32[4]")
LUA
script mesh_again <<'LUA'
dc.mesh(w.rank == 0 and { data = w.size } or { data = 1, model = w.size })
dc.all_reduce(dc.ones "f32[4]")
LUA
cat >meshes.lua <<'LUA'
local dc = require "deepc"
local w = dc.world()
dc.mesh(w.rank == 0 and { data = w.size } or { data = 1, model = w.size })
LUA
script mesh_sizes <<'LUA'
if w.rank == 1 then dc.mesh { data = 3 } end
dc.all_reduce(dc.ones "f32[4]")
LUA
script seeds <<'LUA'
dc.seed(w.rank)
local layer = require "deepc.nn".Linear(3, 1)
local f = dc.fn("f(x: f32[n @ data, 3]) -> f32[]", function(x) return layer(x):sum() end)
f(dc.ones "f32[4, 3]")
LUA
script cells <<'LUA'
local p = dc.param("f32[3]", 1)
local f = dc.fn("f(x: f32[n @ data, 3]) -> f32[]", function(x)
  return w.rank == 0 and (x * p):sum() or x:sum()
end)
f(dc.ones "f32[4, 3]")
LUA
script sizes <<'LUA'
local f = dc.fn("f(x: f32[n @ data, 3]) -> f32[]", function(x) return x:sum() end)
f(dc.ones("f32[" .. 4 + w.rank .. ", 3]"))
LUA
script lengths <<'LUA'
local f = dc.fn("f(x: f32[2 @ data, n<=8]) -> f32[]", function(x) return x:sum() end)
f(dc.ones("f32[1, " .. 4 + w.rank .. "]"))
LUA
script lengths_given <<'LUA'
local f = dc.fn("f(x: f32[n<=8]) -> f32[n]", function(x) return dc.all_reduce(x * 2) end)
f(dc.ones("f32[" .. 4 + w.rank .. "]"))
LUA
script arguments <<'LUA'
local f = dc.fn("f(x: f32[4 @ data], y: f32[2]) -> f32[]", function(x, y) return x:sum() * y:sum() end)
f(dc.ones "f32[2]", dc.full("f32[2]", w.rank))
LUA
script rates <<'LUA'
local f = dc.fn("f(x: f32[4 @ data], lr: f32[]) -> f32[]", function(x, lr) return x:sum() * lr end)
f(dc.ones "f32[2]", w.rank + 1)
LUA
script captured <<'LUA'
local y = dc.full("f32[2]", w.rank)
local f = dc.fn("f(x: f32[4 @ data]) -> f32[]", function(x) return x:sum() * y:sum() end)
f(dc.ones "f32[2]")
LUA
script resharded <<'LUA'
dc.fn("f(x: f32[12 @ data, 8]) -> f32[12 @ data, 8]", function(x) return dc.reshard(x, "f32[12, 8 @ data]") * 2 end)
LUA
script inner <<'LUA'
local sum = dc.fn("sum(x: f32[n @ data]) -> f32[]", function(x) return x:sum() end)
dc.fn("f(x: f32[8]) -> f32[]", function(x) return sum(x) end)
LUA
script parts <<'LUA'
local weight = dc.param("f32[6 @ data, 6]", 1)
dc.whole(weight, "f32[6, 6 @ data]")
LUA
# Those that exchange nothing of a size known at run time may call it as they like.
script apart <<'LUA'
local f = dc.fn("f(x: f32[n<=8]) -> f32[]", function(x) return dc.all_reduce(x:sum()) end)
local alone = dc.fn("alone(x: f32[n<=8]) -> f32[n]", function(x) return x * 2 end)
for n = 1, 1 + w.rank do alone(dc.ones("f32[" .. n .. "]")) end
assert(f(dc.ones("f32[" .. 4 + w.rank .. "]")):item() == (w.size == 1 and 4 or 22))
print "right"
LUA
script control <<'LUA'
local f = dc.fn("f(x: f32[n @ data, 3]) -> f32[]", function(x)
  return w.rank == 0 and x:sum() or x:max()
end)
f(dc.ones "f32[4, 3]")
LUA
script sent_dtypes <<'LUA'
if w.rank == 0 then dc.send(dc.ones "f32[4]", { to = 1 }) else dc.recv("i32[4]", { from = 0 }) end
dc.barrier()
LUA
script sent_shapes <<'LUA'
if w.rank == 0 then dc.send(dc.ones "f32[4, 2]", { to = 1 }) else dc.recv("f32[2, 4]", { from = 0 }) end
LUA
script sent_in_vain <<'LUA'
if w.rank == 0 then dc.send(dc.ones "f32[4]", { to = 1 }) end
LUA
script sent_to_who_sums <<'LUA'
if w.rank == 0 then dc.send(dc.ones "f32[4]", { to = 1 }) end
dc.all_reduce(dc.ones "f32[4]")
LUA
script never_sent <<'LUA'
if w.rank == 0 then dc.recv("f32[4]", { from = 1 }) end
LUA
script not_answered <<'LUA'
local p = dc.param("f32[3]", 1)
if w.rank == 0 then print(dc.grad(dc.send(p * 2, { to = 1 }), p)) else dc.recv("f32[3]", { from = 0 }) end
LUA
script sent_to_itself <<'LUA'
dc.send(dc.ones "f32[4]", { to = 1 })
LUA
script sent_in_parts <<'LUA'
local f = dc.fn("f(x: f32[4 @ data]) -> f32[]", function(x) return dc.send(x, { to = 1 - w.rank }) end)
f(dc.ones "f32[2]")
LUA
script sent_by_rows <<'LUA'
local f = dc.fn("f(x: f32[2, 3]) -> f32[2]", function(x)
  return dc.vmap(function(row) return dc.send(row, { to = 1 - w.rank }) end)(x)
end)
f(dc.ones "f32[2, 3]")
LUA
script sent_of_any_size <<'LUA'
local f = dc.fn("f(x: f32[n<=8]) -> f32[]", function(x) return dc.send(x, { to = 1 - w.rank }) end)
f(dc.ones "f32[4]")
LUA
script received_in_parts <<'LUA'
dc.recv("f32[4 @ data]", { from = 1 - w.rank })
LUA
script gradient_of_a_loop <<'LUA'
local p = dc.param("f32[3]", 1)
local f = dc.fn("f(x: f32[2, 3]) -> f32[3]", function(x)
  local token = dc.scan(function(sum, row) return sum + dc.send(row * p, { to = 1 - w.rank }) end, 0.0, x)
  return dc.grad(token, p)
end)
f(dc.ones "f32[2, 3]")
LUA
script hangs <<'LUA'
dc.all_reduce(dc.ones "f32[4]")
if w.rank == 1 then while true do end end
dc.all_reduce(dc.ones "f32[4]")
LUA
script stops <<'LUA'
if w.rank == 1 then os.execute "kill -STOP $PPID" end
dc.all_reduce(dc.ones "f32[4]")
LUA
script killed <<'LUA'
dc.all_reduce(dc.ones "f32[4]")
if w.rank == 1 then os.execute "kill -9 $PPID" end
dc.all_reduce(dc.ones "f32[4]")
LUA
script loops <<'LUA'
dc.all_reduce(dc.ones "f32[4]")
if w.rank == 0 then io.open("ready", "w"):close() end
while true do end
LUA
script interrupted <<'LUA'
dc.all_reduce(dc.ones "f32[4]")
if w.rank == 1 then io.popen "kill -INT $PPID":close() end -- os.execute ignores it meanwhile
dc.all_reduce(dc.ones "f32[4]")
LUA

# wrong_programs LAUNCHER
wrong_programs() {
    fails "$1" 2 shapes "ranks disagree: rank 0: all_reduce f32 x 4, shapes.lua:4; rank 1: all_reduce f32 x 5, shapes.lua:4"
    fails "$1" 2 dtypes "ranks disagree: rank 0: all_reduce f32 x 4, dtypes.lua:4; rank 1: all_reduce i32 x 4, dtypes.lua:4"
    fails "$1" 2 kinds "ranks disagree: rank 0: all_reduce f32 x 4, kinds.lua:5; rank 1: all_gather f32 x 4, kinds.lua:7"
    fails "$1" 2 combines "ranks disagree: rank 0: all_reduce f32 x 4, combines.lua:4; rank 1: all_reduce f32 x 4, maximum, combines.lua:4"
    fails "$1" 2 roots "ranks disagree: rank 0: broadcast f32 x 4, from rank 0, roots.lua:4; rank 1: broadcast f32 x 4, from rank 1, roots.lua:4"
    fails "$1" 2 barriers "ranks disagree: rank 0: barrier u8 x 1, barriers.lua:4; rank 1: all_reduce f32 x 4, barriers.lua:4"
    fails "$1" 2 arrays "ranks disagree: rank 0: all_gather f32 x 8, arrays.lua:4; rank 1: all_gather f32 x 8, arrays.lua:4: of other arrays, or over other axes"
    fails "$1" 2 calls "rank 1 (host) has ended, and rank 0 waits for it in all_reduce f32 x 4, calls.lua:5"
    fails "$1" 2 meshes "the mesh differs between ranks: rank 0 has 'data = 2', rank 1 'data = 1, model = 2'"
    fails "$1" 2 mesh_again "mesh: there is another mesh already, and a program has one"
    fails "$1" 2 seeds "the value of layer.weight (dc.seed makes draws equal) differs between ranks: rank 0 has 'f32[3, 1], which begins with 0.524220347', rank 1 'f32[3, 1], which begins with 0.112973511'"
    fails "$1" 2 cells "what 'f' computes differs between ranks: rank 0 has 'f(x: f32[n=8 @ data, 3]) -> f32[], 8 operations', rank 1 'f(x: f32[n=8 @ data, 3]) -> f32[], 4 operations'"
    fails "$1" 2 sizes "what 'f' computes differs between ranks: rank 0 has 'f(x: f32[n=8 @ data, 3]) -> f32[], 4 operations', rank 1 'f(x: f32[n=10 @ data, 3]) -> f32[], 4 operations'"
    fails "$1" 2 lengths "a size known at run time differs between ranks in 'f': 4 to 5, here N"
    fails "$1" 2 lengths_given "a size known at run time differs between ranks in 'f': 4 to 5, here N"
    alike="which no '@' splits and all ranks should have alike, differs between ranks: rank 0 has"
    fails "$1" 2 arguments "argument 'y' of 'f', $alike 'f32[2], which begins with 0', rank 1 'f32[2], which begins with 1'"
    fails "$1" 2 rates "argument 'lr' of 'f', $alike '1', rank 1 '2'"
    fails "$1" 2 captured "the captured tensor 'made at captured.lua:4' of 'f', $alike 'f32[2], which begins with 0', rank 1 'f32[2], which begins with 1'"
    fails "$1" 3 resharded "reshard: f32[12, 8]: 3 ranks cannot share the 8 elements of axis 2 equally"
    fails "$1" 3 inner "sum: f32[n=8]: 3 ranks cannot share the 8 elements of axis 1 equally"
    fails "$1" 3 parts "whole: f32[2, 6] is no part of a value of the type 'f32[6, 6 @ data]'"
    fails "$1" 2 control "what 'f' computes differs between ranks: rank 0 and rank 1 both have 'f(x: f32[n=8 @ data, 3]) -> f32[], 4 operations'"
    fails "$1" 2 mesh_sizes "mesh: { data = 3 } has places for 3 ranks, and there are 2"
    fails "$1" 2 sent_dtypes "ranks disagree: rank 0: send f32 x 4, sent_dtypes.lua:4; rank 1: recv i32 x 4, sent_dtypes.lua:4"
    fails "$1" 2 sent_shapes "ranks disagree: rank 0: send f32 x 8, sent_shapes.lua:4; rank 1: recv f32 x 8, sent_shapes.lua:4: of other shapes"
    fails "$1" 2 sent_in_vain "rank 1 (host) has ended, and rank 0 waits for it in send f32 x 4, sent_in_vain.lua:4"
    fails "$1" 2 sent_to_who_sums "ranks disagree: rank 0: send f32 x 4, sent_to_who_sums.lua:4; rank 1: all_reduce f32 x 4, sent_to_who_sums.lua:5"
    fails "$1" 2 never_sent "rank 1 (host) has ended, and rank 0 waits for it in recv f32 x 4, never_sent.lua:4"
    fails "$1" 2 not_answered "rank 1 (host) has ended, and rank 0 waits for it in recv f32 x 3, not_answered.lua:5"
    fails "$1" 2 sent_to_itself "send: rank 1 would wait for itself"
    fails "$1" 2 sent_in_parts "send: the values of this function are whole ones that ranks have parts of, and here ranks give each other values of their own"
    fails "$1" 2 sent_by_rows "send: in dc.vmap each row would be a message to another rank"
    fails "$1" 2 sent_of_any_size "send: axis 1 of f32[<= 8] has a size known at run time, and a fixed size is needed"
    fails "$1" 2 received_in_parts "recv: a message is a whole value: 'f32[4 @ data]' is in parts"
    fails "$1" 2 gradient_of_a_loop "grad: what is sent or received in a loop, a branch or a custom gradient is differentiated inside of it alone"
}

# ---- errors ----

# full LAUNCHER NAME TEXT: the rank that fails prints its own error, with all that belongs to it.
full() {
    check "$1, $2: rank 1 says what was wrong" warns "$3"
}

errors() {
    fails "$1" 3 throws "boom"
    full "$1" throws "[1] deepc: throws.lua:4: boom
[1] stack traceback:"
    check "$1, throws: the others say whom it comes from" warns "[0] deepc: rank 0 ($host): ended because rank 1 ($host) failed: throws.lua:4: boom"
    fails "$1" 2 throws_alone "boom"
    check "$1, a rank in an endless loop ends" warns "[0] deepc: rank 0 ($host): ended because rank 1 ($host) failed: throws_alone.lua:5: boom"
    fails "$1" 2 throws_last "boom"
    check "$1, a rank at its end hears it" warns "[0] deepc: rank 0 ($host): ended because rank 1 ($host) failed: throws_last.lua:5: boom"
    fails "$1" 3 throws_all "no such luck"
    fails "$1" 2 sentence "there is no data"
    fails "$1" 2 exits "os.exit with status 3"
    fails "$1" 2 leaves "rank 1 (host) has ended, and rank 0 waits for it in all_reduce f32 x 4, leaves.lua:5"
    fails "$1" 2 wrong "matmul: inner dims differ: axis 1 = 4 against axis 1 = 5"
    full "$1" wrong "[1]   [DC0301; deepc explain DC0301]"
    DEEPC_RANK_SECONDS=1
    export DEEPC_RANK_SECONDS
    fails "$1" 2 hangs "rank 1 (host) has not answered for 1 s in all_reduce, hangs.lua:6"
    full "$1" hangs "[1] deepc: hangs.lua:5: rank 1 ($host) has not answered for 1 s in all_reduce, hangs.lua:6"
    [ "$1" = "$threads" ] || fails "$1" 2 stops "rank 1 (host) has not answered for 1 s in all_reduce, stops.lua:5"
    unset DEEPC_RANK_SECONDS
}

# ---- signals ----

# MPICH's launcher kills all ranks as soon as one is killed.
signals() {
    run timeout 60 $1 -n 3 "$DEEPC" killed.lua
    check "$1, killed: all end" test "$status" -ne 0 -a "$status" -ne 124
    [ "$1" = $mpich ] || check "$1, killed: ranks say who" warns "[0] deepc: rank 0 ($host): ended because rank 1 ($host) was killed or has crashed"
    run timeout 60 $1 -n 2 "$DEEPC" interrupted.lua
    check "$1, interrupted: no traceback" sh -c "! grep -q traceback $dir/err"
    check "$1, interrupted: rank 0 alone speaks" test "$(grep -c 'deepc: ' "$dir/err")" -eq 1
    # the launcher is told to end
    rm -f ready
    $1 -n 3 "$DEEPC" loops.lua >"$dir/out" 2>"$dir/err" &
    child=$! tries=0
    while [ ! -e ready ] && [ $tries -lt 600 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    kill $child
    status=0
    wait $child || status=$?
    # MPICH's launcher ends with 0 now and then, though all of its ranks were ended.
    [ "$1" = $mpich ] || check "$1 is ended: the status tells" test "$status" -ne 0
    check "$1 is ended: it had begun" test -e ready
    out='' err=$(cat "$dir/err")
    # It ends them one after the other: who still runs may say whom it misses, once.
    check "$1 is ended: a rank says one line at most" test -z "$(grep -o '^\[[0-9]*\] deepc: ' "$dir/err" | sort | uniq -d)"
    check "$1 is ended: three lines at most" test "$(grep -c 'deepc: ' "$dir/err")" -le 3
}

# ---- slices ----

# Rank 1 pauses elsewhere than rank 0: between two sums that are made together.
script slices <<'LUA'
local f = dc.fn("f(a: f32[4096], b: f32[4096]) -> f32[4096], f32[4096]", function(a, b)
  local x = dc.all_reduce(a * 2)
  for _ = 1, 8 do
    b = b:sort() * 0.5
  end
  local y = dc.all_reduce(b)
  return x, y
end)
local a, b = dc.full("f32[4096]", w.rank + 1), dc.full("f32[4096]", 256)
local pauses = 0
for _ = 1, 5 do
  local job = f:start(a, b)
  while not job:poll { ms = w.rank == 0 and 1000 or 0.001 } do
    pauses = pauses + 1
  end
  local x, y = job:result()
  assert(x:min():item() == 6 and x:max():item() == 6, tostring(x))
  assert(y:min():item() == 2 and y:max():item() == 2, tostring(y))
end
assert(w.rank == 0 or pauses > 5, pauses)
if w.rank == 1 then print "right" end
LUA

slices() {
    run timeout 60 $1 -n 2 "$DEEPC" slices.lua
    check "$1: a call in slices has the sums of the whole call" says "[1] right"
}

# ---- values ----

# Sizes known at run time beside dims that are split: arguments, results and what lies behind them, by this rank's strides.
script bounded <<'LUA'
local part = dc.fn("part(x: f32[n<=8, 4 @ data]) -> f32[], f32[n, 4], f32[4 @ data, n]", function(x)
  return x:sum(), x * 3, x:transpose() * 2
end)
for n = 1, 8 do
  local whole = dc.iota("f32[" .. n * 4 .. "]"):reshape(n, 4)
  local x = dc.part(whole, "f32[" .. n .. ", 4 @ data]")
  local sum, tripled, turned = part(x)
  assert(sum:item() == whole:sum():item(), n)
  assert((tripled - whole * 3):abs():max():item() == 0, n)
  assert((turned - x:transpose() * 2):abs():max():item() == 0, n)
  assert(#turned == 4 / w.size, n)
end
print "right"
LUA
# Functions inside functions take whole values, whatever their signature splits; tables are parts.
script inside <<'LUA'
local weight = dc.param("f32[4, 8 @ data]", dc.iota("f32[32]"):reshape(4, 8))
local inner = dc.fn("inner(w: f32[4, n @ data]) -> f32[]", function(w) return (w * w):sum() end)
local outer = dc.fn("outer() -> f32[]", function() return inner(weight) + 0 end)
assert(outer():item() == 10416)
local double = dc.fn("double(v: f32[4 @ data]) -> f32[]", function(v) return (v * 2):sum() end)
local t = {}
for i = 1, 4 // w.size do t[i] = i end
assert(double(t):item() == (w.size == 1 and 20 or 2 * w.size * (4 // w.size) * (4 // w.size + 1) / 2))
local rows = dc.fn("rows(x: f32[8 @ data, 4]) -> f32[4 @ data]", function(x) return dc.reshard(x:sum(1), "f32[4 @ data]") end)
local y = rows(dc.ones("f32[" .. 8 // w.size .. ", 4]"))
assert(#y == 4 // w.size and y:min():item() == 8 and y:max():item() == 8)
for _, e in ipairs(rows:exchanges()) do assert(e.op == "reduce_scatter" and e.written) end
print "right"
LUA

# Gradients of several batches are added up in a loop, and over the ranks once behind it; with a branch in it, too. Beside the
# same on whole batches.
script batches <<'LUA'
local nn = require "deepc.nn"
dc.seed(1)
local net = nn.Sequential { nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4) }
local params = net:parameters()
local function gradients(branch)
  return function(x, y)
    local zeros = {}
    for i, p in ipairs(params) do zeros[i] = dc.zeros(p) end
    local c = dc.scan(function(c, e, i)
      local function some() return nn.mse_loss(net(e.x), e.y) end
      local loss = branch and dc.cond(i:lt(3), some, function() return dc.zeros "f32[]" end) or some()
      local g, sums = dc.grad(loss, params), {}
      for k = 1, #g do sums[k] = c.sums[k] + g[k] / 4 end
      return { sums = sums, loss = c.loss + loss / 4 }
    end, { sums = zeros, loss = dc.zeros "f32[]" }, { x = x, y = y })
    return c.loss, table.unpack(c.sums)
  end
end
local x, y = dc.randn("f32[4, 8, 16]", { seed = 1 }), dc.randn("f32[4, 8, 4]", { seed = 2 })
local px, py = dc.part(x, "f32[4, 8 @ data, 16]"), dc.part(y, "f32[4, 8 @ data, 4]")
for _, branch in ipairs { false, true } do
  local results = "-> f32[], f32[32], f32[16, 32], f32[4], f32[32, 4]"
  local one = dc.fn("one(x: f32[4, 8, 16], y: f32[4, 8, 4]) " .. results, gradients(branch))
  local all = dc.fn("all(x: f32[4, 8 @ data, 16], y: f32[4, 8 @ data, 4]) " .. results, gradients(branch))
  local want, got = { one(x, y) }, { all(px, py) }
  for i = 1, 5 do assert((want[i] - got[i]):abs():max():item() < 1e-6, i) end
  local n = 0
  for _, e in ipairs(all:exchanges()) do
    assert(e.op == "all_reduce" and e.times == 1, e.type)
    n = n + 1
  end
  assert(n == (w.size == 1 and 0 or 5), n)
end
print "right"
LUA

# A rank that does not differentiate what the other one does: told by the next exchange, though lines and arrays are the same.
script undifferentiated <<'LUA'
local p = dc.param("f32[2]", 1)
local f = dc.fn("f(x: f32[2]) -> f32[2]", function(x)
  local y = dc.all_reduce(x * p)
  return dc.grad((w.rank == 0 and y or x * p):sum(), p)
end)
for _ = 1, 3 do f(dc.ones "f32[2]"):totable() end
LUA
values() {
    for name in bounded inside batches apart; do
        run timeout 60 "$DEEPC" $name.lua
        check "$name: alone" says right
        run timeout 60 $1 -n 4 "$DEEPC" $name.lua
        check "$1, $name: 4 ranks" test "$(grep -c right out)" -eq 4
    done
}

# ---- lines ----

cat >lines.lua <<'LUA'
local dc = require "deepc"
print("one", "two")
io.write("three\n", "fo", "ur\nfive")
io.write(" six\n")
io.stdout:write("seven\n"):flush()
io.stderr:write "no end"
dc.print(dc.ones "f32[2]")
print(("x"):rep(600)) -- all is less than the 4 KiB that Open MPI takes at a time
if arg[1] then os.exit(0) end
LUA
cat >lines.txt <<EOT
[R] one	two
[R] three
[R] four
[R] five six
[R] seven
[R] f32[2]
EOT
cat >help.lua <<'LUA'
require "deepc".options { { "epochs", 5, "passes" } }
LUA
cat >loop.lua <<'LUA'
local dc = require "deepc"
for _ in dc.progress(3, { title = "steps", every = 0 }) do end
print "done"
LUA

lines() {
    for how in "" exit; do
        run timeout 60 $1 -n 3 "$DEEPC" lines.lua $how
        for r in 0 1 2; do
            check "$1: the lines of rank $r" test "$(grep "^\[$r\] [a-w]" out)" = "$(sed "s/R/$r/" lines.txt)"
            check "$1: a line without an end" grep -q "^\[$r\] no end" err
            check "$1: a long line" awk -v "r=[$r] x" 'index($0, r) == 1 && length($0) == 604 { n++ } END { exit n != 1 }' out
        done
        check "$1: no other line" test "$(grep -cv '^\[[012]\] ' out)" -eq 0
    done
    run env DEEPC_RANK_PREFIX=off timeout 60 $1 -n 2 "$DEEPC" lines.lua
    check "$1: DEEPC_RANK_PREFIX=off" test "$(grep -c '^five six$' out)" -eq 2
    run timeout 60 $1 -n 2 "$DEEPC" help.lua --help
    check "$1: the first rank alone tells the options" test "$(grep -c passes out)" -eq 1
    run timeout 60 $1 -n 2 "$DEEPC" loop.lua
    check "$1: progress of rank 0" grep -q '^\[0\] steps  3/3' err
    check "$1: and of no other one" sh -c '! grep -q "^\[1\]" err'
    check "$1: both come to the end" test "$(grep -c done out)" -eq 2
}

# Compiled before, from another version of the script on each rank, as on hosts with caches of their own.
script kept <<'LUA'
local p = dc.param "f32[8, 4]"
local f = dc.fn("f(x: f32[6 @ data, 8]) -> f32[]", function(x)
  local loss = (x:matmul(p) + 1):square():mean()
  p:set(p - dc.grad(loss, p))
  return loss
end)
local x = dc.part(dc.ones "f32[6, 8]", "f32[6 @ data, 8]")
f(x)
print("kept", f(x):item())
LUA
kept() {
    for cache in one two; do
        { [ $cache = one ] || echo "-- a line more"; cat kept.lua; } >before.lua
        run env DEEPC_COMPILE=now DEEPC_CACHE="$dir/cache.$cache" timeout 60 $1 -n 2 "$DEEPC" before.lua
        check "$1: a script whose kernels are kept in $cache" test "$(grep -c kept out)" -eq 2
    done
    run env DEEPC_COMPILE=now timeout 60 $1 -n 1 env DEEPC_CACHE="$dir/cache.one" "$DEEPC" kept.lua : \
        -n 1 env DEEPC_CACHE="$dir/cache.two" "$DEEPC" kept.lua
    check "$1: ranks with other caches agree" test "$(grep -c kept out)" -eq 2 -a "$status" -eq 0
}

run env DEEPC_RANK_PREFIX=no "$DEEPC" lines.lua
check "a wrong setting is told" warns "DEEPC_RANK_PREFIX: 'on' or 'off'"
run "$DEEPC" lines.lua
check "alone nothing is in front" says "one	two
three
four
five six"

# Ranks that are threads: what a process does it does for all of them.
script waits <<'LUA'
if w.rank == 1 then error "boom" end
io.open("ready", "w"):close()
os.execute "sleep 30" -- nothing ends it
LUA
cat >without.lua <<'LUA'
local dc = require "deepc"
if arg[1] ~= "all" then
  local number = io.open("first", "r") and 1 or 0
  io.open("first", "w"):close()
  if number == 0 then error "no world" end
end
print(dc.ones("f32[3]"):sum():item())
LUA
script values_of_two <<'LUA'
print(dc.all_reduce(dc.full("f32[]", 1 + w.rank)):item())
LUA
cat >buffers.lua <<'LUA'
local dc = require "deepc"
io.stdout:setvbuf "full"
local rank = dc.world().rank
for i = 1, 100 do
  io.write(rank, " one")
  io.write " two\n"
end
LUA
# Lines of exchanges in loops and branches are known of functions that come from the cache, too.
script nested <<'LUA'
local f = dc.fn("f(x: f32[4], yes: bool[]) -> f32[4]", function(x, yes)
  return dc.cond(yes, function() return dc.all_reduce(x * 3) end, function() return x end)
end)
for _ = 1, 2 - w.rank do f(dc.ones "f32[4]", true):totable() end
LUA
threads() {
    fails "$threads" 2 undifferentiated "ranks disagree: rank 0: all_reduce f32 x 2, undifferentiated.lua:6; rank 1: all_reduce f32 x 2, undifferentiated.lua:6: not the same one of the function"
    for try in compiled kept; do
        run env DEEPC_COMPILE=now DEEPC_CACHE="$dir/cache.nested" timeout 60 "$DEEPC" --ranks 2 nested.lua
        check "threads: the line of an exchange in a branch, $try" says_why 2 "rank 1 (host) has ended, and rank 0 waits for it in all_reduce f32 x 4, nested.lua:5"
    done
    values "$threads"
    errors "$threads"
    slices "$threads"
    lines "$threads"
    run timeout 60 "$DEEPC" --ranks 4 buffers.lua
    check "threads: lines are whole, however a script would have them" \
        test "$(grep -cxE '\[([0-3])\] \1 one two' out)" -eq 400 -a "$(wc -l <out)" -eq 400
    run timeout 60 "$DEEPC" --ranks 3 without.lua all
    check "threads that exchange nothing" test "$(grep -c '3.0$' out)" -eq 3 -a "$status" -eq 0
    run timeout 60 "$DEEPC" --ranks 2 without.lua
    check "threads: an error without a world" warns "deepc: without.lua:5: no world"
    check "threads: the status tells" test "$status" -eq 1
    rm -f ready
    run timeout 20 "$DEEPC" --ranks 2 waits.lua
    check "threads: one that cannot be ended ends with the process" warns "[0] deepc: this rank did not end, where others have failed"
    check "threads: with the status of the one that failed" test "$status" -eq 1
    for signal in INT TERM; do
        rm -f ready
        "$DEEPC" --ranks 3 loops.lua >out 2>err &
        child=$!
        while [ ! -e ready ]; do sleep 0.1; done
        kill -$signal $child
        status=0
        wait $child || status=$?
        check "threads: SIG$signal: the status is its own: $status" test "$status" -eq $([ $signal = INT ] && echo 130 || echo 143)
        check "threads: SIG$signal: one line at most" test "$(grep -c 'deepc: ' err)" -le 1
    done
    for list in 0 65 x,,y 2.5; do
        run "$DEEPC" --ranks $list lines.lua
        check "--ranks $list" warns "deepc: --ranks $list: "
    done
    if have $mpich; then
        run timeout 60 $mpich -n 1 "$DEEPC" --ranks 2 values_of_two.lua
        check "threads of the one process that a launcher started" test "$(grep -c '3.0$' out)" -eq 2 -a "$status" -eq 0
        run timeout 60 $mpich -n 2 "$DEEPC" --ranks 2 values_of_two.lua
        check "threads of one of several processes" warns "--ranks 2: this process is one of the ranks of mpiexec with PMI already"
    fi
    run "$DEEPC" --ranks 2 lines.lua -i
    check "threads: words behind the file are the script's" test "$status" -eq 0
    for args in -i "" -; do
        run "$DEEPC" --ranks 2 $args </dev/null
        check "--ranks 2 $args" warns "deepc: --ranks 2: a FILE is needed, or -e CODE, and no -i"
    done
}

# What they say comes from no launcher: once is enough.
wrong_programs "$threads"
threads
for launcher in "$openmpi" $mpich; do
    if have "$launcher"; then
        values "$launcher"
        errors "$launcher"
        signals "$launcher"
        slices "$launcher"
        lines "$launcher"
        kept "$launcher"
    else
        skip "${launcher%% *} is not installed"
    fi
done
closing
