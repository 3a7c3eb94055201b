#!/bin/sh
# Training on several ranks: the same losses and parameters as one process with the whole batch, within rounding, however
# the values lie on the ranks; the same bits when it is repeated; bytes given to other ranks as the formulas say.
. "$(dirname "$0")/lib.sh"
here=$(cd "$(dirname "$0")/../ranks" && pwd)
rank_settings
keep_kernels

# trained MPIRUN N MODEL MODE: beside one process
trained() {
    rm -f "$dir/ranks"
    run timeout 300 $1 -n "$2" "$DEEPC" "$here/train.lua" "$3" "$4" "$dir/ranks"
    given=$(printf '%s\n' "$out" | grep 'bytes given')
    check "$1, $2 ranks: $3 $4 ends well" test "$status" -eq 0 -a -n "$given"
    run "$DEEPC" "$here/compare.lua" "$dir/one.$3" "$dir/ranks" 5e-7
    check "$1, $2 ranks: $3 $4 as one process" test "$status" -eq 0
}

# What is given to others is what f:exchanges() says: exactly, where each rank has one other in a group.
exact() {
    set -- "$1" $(printf '%s\n' "$given" | sed 's/.*: \([0-9]*\) bytes given in a step, \([0-9]*\) by.*/\1 \2/')
    check "$1: $2 bytes given, $3 by the formula" test "$2" -eq "$3"
}

for model in mlp gpt cnn rnn; do
    run "$DEEPC" "$here/train.lua" $model data "$dir/one.$model"
    check "$model in one process" test "$status" -eq 0
done

run env DEEPC_COMPILE=off "$DEEPC" "$here/layers.lua" data "$dir/one.layers"
check "layers in one process" says "101 models"

# layers MPIRUN N MODES: each kind of layer and optimiser, however the values lie; interpreted, since they run three times
layers() {
    for mode in $3; do
        run env DEEPC_COMPILE=off timeout 120 $1 -n "$2" "$DEEPC" "$here/layers.lua" $mode "$dir/layers"
        check "$1, $2 ranks: layers, $mode, end well" test "$status" -eq 0
        run "$DEEPC" "$here/compare.lua" "$dir/one.layers" "$dir/layers" 5e-6
        check "$1, $2 ranks: layers, $mode, as one process" test "$status" -eq 0
    done
}

# A mesh that is not here: 8 ranks of which this process is one.
run "$DEEPC" plan --mesh data=4,model=2 --link 50GB/s --link model=300GB/s,2us "$here/train.lua" gpt data "$dir/plan"
check "plan tells the time of a call" says "  a call        "
check "plan tells what is given to other ranks" says "  given         165 KiB to other ranks in a call"
check "plan tells the memory of a rank" says " a rank: parameters 110 KiB, states 110 KiB"
check "plan writes nothing" test ! -e "$dir/plan" -a "$status" -eq 0
# Stages of a pipeline, each of which has a run of the script; 48 KiB are four parts of f32[4, 12, 32] in both directions.
run "$DEEPC" plan --mesh data=1,pipe=4 --link 1MB/s,1ms "$here/pipeline.lua" 1f1b 1 "$dir/plan"
check "plan tells of four places" says " ms: 4 places along 'pipe', the busiest computes "
check "plan tells what a stage in the middle gives" says "; gives 48 KiB to other ranks
  memory        " 
check "plan of a pipeline ends well" test "$status" -eq 0
waits=$(printf '%s\n' "$out" | sed -n 's/  place 3 .*waits \([0-9]*\).*/\1/p')
# Messages of 6 KiB take 6.1 ms of the link and are there 1 ms later. The first part comes to the last stage after three of
# them, the fourth after 54 ms, since gradients of two others go over the same links; the loss takes 4 ms more.
check "the last stage waits for messages: $waits ms" test "$waits" -ge 54 -a "$waits" -le 80
run "$DEEPC" plan --mesh data=1,pipe=1 "$here/pipeline.lua" 1f1b 1 "$dir/plan"
check "one stage exchanges nothing" says "no typed function has values in parts"
cat >"$dir/along.lua" <<'LUA'
local dc = require "deepc"
local m, how = dc.mesh { a = 2, b = 2 }, arg[1]
local function swapped(x, axis)
  local other = 1 - m.place[axis]
  return dc.send_recv(x, { to = other, from = other, over = axis })
end
local f = dc.fn("f(x: f32[4]) -> f32[4]", function(x)
  if how == "loop" then
    return (dc.scan(function(c, row) return swapped(c, "a") + row, nil end, x, dc.ones "f32[500]"))
  end
  local y = swapped(x, "a")
  return how == "both" and swapped(y, "b") or y
end)
f(dc.ones "f32[4]")
if how == "other" then
  local g = dc.fn("g(x: f32[4]) -> f32[4]", function(x) return swapped(x, "b") end)
  g(dc.ones "f32[4]")
end
LUA
run "$DEEPC" plan --mesh a=2,b=2 --link 1MB/s,1ms "$dir/along.lua" one
check "plan of two that swap: 16 bytes and the latency" says "  a call        1.01"
run "$DEEPC" plan --mesh a=2,b=2 "$dir/along.lua" both
check "plan of messages along two axes" says "f: what is sent or received along several axes is not planned"
run "$DEEPC" plan --mesh a=2,b=2 "$dir/along.lua" loop
check "plan of messages in a loop" says "f: what is sent or received in a loop or a branch is not planned"
run "$DEEPC" plan --mesh a=2,b=2 "$dir/along.lua" other
check "plan of functions along two axes: one of them" grep -q "g, .*along.lua:16" "$dir/out"
check "and why not the other one" says "f: it sends along 'a', others along 'b'"
run "$DEEPC" plan --mesh data=4 "$here/train.lua" gpt data "$dir/plan"
check "plan names the axis that is missing" says "--mesh says nothing of axis 'model'"
run "$DEEPC" plan --mesh data=4,model=2 --link fast "$here/train.lua" mlp data "$dir/plan"
check "plan refuses a rate that is none" says "--link fast: a rate such as 50GB/s or 10Gbit/s is needed"
run "$DEEPC" plan "$here/train.lua"
check "plan without a mesh says how it is used" warns "usage: deepc plan --mesh"

for model in "2 mlp zero1" "2 cnn data" "2 rnn model" "4 gpt mixed" "4 gpt zero3"; do
    set -- $model
    trained "$here/threads.sh" "$1" "$2" "$3"
done
if command -v mpirun.mpich >/dev/null 2>&1; then
    layers mpirun.mpich 2 "data zero1 zero3 model"
    layers mpirun.mpich 4 "data model"
    for model in mlp gpt cnn rnn; do
        for mode in data zero1 zero3 model; do
            trained mpirun.mpich 2 $model $mode
            exact "$model $mode"
        done
        trained mpirun.mpich 4 $model mixed
        exact "$model mixed"
        cp "$dir/ranks" "$dir/first"
        trained mpirun.mpich 4 $model mixed
        check "$model mixed: the same bits again" cmp -s "$dir/first" "$dir/ranks"
    done
else
    skip "mpirun.mpich is not installed (mpich)"
fi
if command -v mpirun.openmpi >/dev/null 2>&1; then
    for mode in data zero1 zero3 model mixed; do
        trained "mpirun.openmpi --oversubscribe" 4 gpt $mode
    done
else
    skip "mpirun.openmpi is not installed (openmpi-bin)"
fi
closing
