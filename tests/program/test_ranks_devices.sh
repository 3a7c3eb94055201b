#!/bin/sh
# Ranks that compute on CUDA devices, on the stand-ins for CUDA and NCCL: what goes from device to device is what goes through the
# host, training too; when it has to go through the host, all of a group do; ranks that are killed, stop or fail meanwhile. With the
# argument "long": training of other models alone.
. "$(dirname "$0")/lib.sh"
here=$(cd "$(dirname "$0")/../ranks" && pwd)
lib=$(cd "$(dirname "$DEEPC")" && pwd)/tests/cuda/lib
for file in libcuda.so.1 libnvrtc.so.13 libnccl.so.2; do
    [ -e "$lib/$file" ] || skip "the stand-in $file was not built"
done
command -v g++ >/dev/null || skip "g++ is not installed, which the stand-in for NVRTC needs"
if [ $skipped -gt 0 ]; then
    closing
    exit
fi
. "$(dirname "$0")/lib_ranks.sh"
export UCX_ERROR_SIGNALS= # its handlers would take the place of the stand-in's
export ASAN_OPTIONS="$ASAN_OPTIONS:handle_segv=0"
export CUDA_STANDIN_DEVICES=4 LD_LIBRARY_PATH="$lib"
unset DEEPC_NCCL DEEPC_CUDA DEEPC_NVRTC DEEPC_DEVICE
keep_kernels
TMPDIR=$dir # where the stand-in for NCCL has its files
export TMPDIR

# ranks LAUNCHER N ARGS...: rank i on cuda:i, or on $on; `threads` are one process
ranks() {
    launcher=$1 n=$2
    shift 2
    if [ "$launcher" = threads ]; then
        run env DEEPC_DEVICE=cuda timeout 300 "$DEEPC" --ranks "${on:-$n}" "$@"
        return
    fi
    set -- -n "$n" sh -c 'DEEPC_DEVICE=${on:-cuda:${OMPI_COMM_WORLD_RANK:-$PMI_RANK}} exec "$@"' sh "$DEEPC" "$@"
    [ "$launcher" = mpich ] || set -- --oversubscribe "$@"
    run timeout 300 "mpirun.$launcher" "$@"
}

# exchanged N: all of the values, by so many exchanges of NCCL at least on each rank; 0: by none
exchanged() {
    [ "$(grep -c 'exchanged 136 values' "$dir/out")" -eq "$1" ] && [ "$status" -eq 0 ]
}
by_nccl() {
    [ "$(sed -n 's/.*NCCL stand-in: \([0-9]*\) exchanges/\1/p' "$dir/err" | sort -n | head -n 1)" -ge "$1" ]
}
said() { # said N TEXT: on so many ranks
    [ "$(grep -cF "$2" "$dir/err")" -eq "$1" ]
}
same() { # same N A B: what so many ranks have written
    for r in $(seq 0 $(($1 - 1))); do
        cmp "$dir/$2.$r" "$dir/$3.$r" || return 1
    done
}
export DEEPC_DEBUG=exchange

# trained "RANKS MODEL HOW": training, and what is given to others
trained() {
    model=$1
    set -- $model
    DEEPC_NCCL=off ranks $l "$1" "$here/train.lua" "$2" "$3" "$dir/host"
    given=$out
    check "$model: trained through the host" test $status -eq 0
    CUDA_STANDIN_CALLS=1 ranks $l "$1" "$here/train.lua" "$2" "$3" "$dir/device"
    check "$model: trained from device to device" test $status -eq 0
    check "$model: by NCCL" by_nccl 8
    check "$model: the same losses and parameters" cmp "$dir/host" "$dir/device"
    [ "$1" -gt 2 ] || check "$model: as many bytes" test "$out" = "$given"
}

if [ "${1-}" = long ]; then # models that tell the same at length
    l=${launchers##* }
    trained "2 gpt zero3"
    trained "4 gpt mixed"
    trained "2 rnn model"
    closing
    exit
fi

for l in $launchers; do
    n=3
    [ $l = openmpi ] || n=2
    DEEPC_NCCL=off ranks $l $n "$here/devices.lua" "$dir/host"
    check "$l, $n ranks: all values through the host" exchanged $n
    check "$l, $n ranks: it is told" said $n "no NCCL: DEEPC_NCCL=off"
    CUDA_STANDIN_CALLS=1 ranks $l $n "$here/devices.lua" "$dir/device"
    check "$l, $n ranks: all values from device to device" exchanged $n
    check "$l, $n ranks: NCCL has brought them" by_nccl 130
    check "$l, $n ranks: it is told, once" said $n "exchanges from device to device: NCCL 2.20.0"
    check "$l, $n ranks: the same values" same $n host device
    on=cuda:0 CUDA_STANDIN_CALLS=1 ranks $l 2 "$here/devices.lua" "$dir/one"
    check "$l: two ranks on one device exchange through the host" exchanged 2
    check "$l: and say why" said 2 "through the host: ranks 0 and 1 have the same GPU (cuda:0 and cuda:0)"
    check "$l: NCCL has brought nothing" said 2 "NCCL stand-in: 0 exchanges"
    DEEPC_NCCL=off ranks $l 2 "$here/devices.lua" "$dir/host"
    check "$l: the same values" same 2 host one
    DEEPC_NCCL=/nowhere/libnccl.so ranks $l 2 "$here/devices.lua" "$dir/missing"
    check "$l: without the library" exchanged 2
    check "$l: it is told" said 2 "no NCCL: /nowhere/libnccl.so"
done
DEEPC_NCCL=off ranks threads 3 "$here/devices.lua" "$dir/t.host"
check "threads: all values through the host" exchanged 3
CUDA_STANDIN_CALLS=1 ranks threads 3 "$here/devices.lua" "$dir/t.device"
check "threads: all values from device to device" exchanged 3
check "threads: NCCL has brought them" by_nccl 390
check "threads: the same values" same 3 t.host t.device
on=cuda:0,cuda:0 ranks threads 2 "$here/devices.lua" "$dir/t.one"
check "threads: two on one device exchange through the host" exchanged 2
DEEPC_NCCL=off ranks threads 4 "$here/train.lua" gpt mixed "$dir/t.host"
CUDA_STANDIN_CALLS=1 ranks threads 4 "$here/train.lua" gpt mixed "$dir/t.device"
check "threads: gpt mixed: by NCCL" by_nccl 100
check "threads: gpt mixed: the same losses and parameters" cmp "$dir/t.host" "$dir/t.device"
seed=${DEEPC_TEST_SEED:-$(date +%s)}
CUDA_STANDIN_CALLS=1 ranks threads 3 "$here/random.lua" 4 "$seed"
check "threads: random programs, seed $seed" test "$(grep -c '4 programs' "$dir/out")" -eq 3
check "threads: random programs by NCCL" by_nccl 50

[ -n "$launchers" ] || { closing; exit; }
l=${launchers##* }
case $launchers in *openmpi*) l=openmpi ;; esac

# One of the ranks has no library: all go through the host. One that computes on the CPU is none of them.
cat >"$dir/mixed.sh" <<'SH'
rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
[ "$rank" != 1 ] || export $odd
DEEPC_DEVICE=${DEEPC_DEVICE:-cuda:$rank} exec "$@"
SH
cat >"$dir/sum.lua" <<'LUA'
local dc = require "deepc"
local w = dc.world()
dc.mesh { data = w.size }
local f = dc.fn("f(x: f32[4]) -> f32[4]", function(x) return dc.all_reduce(x + 2) end)
for i = 1, 3 do print("sum " .. f(dc.ones "f32[4]" * i * (w.rank + 1)):sum():item()) end
LUA
export odd
x=
[ $l = mpich ] || x=--oversubscribe
odd=DEEPC_NCCL=off
run timeout 300 mpirun.$l $x -n 2 sh "$dir/mixed.sh" "$DEEPC" "$dir/sum.lua"
check "one rank has no library: both have the sums" test "$(grep -cE 'sum (28|40|52).0' "$dir/out")" -eq 6 -a $status -eq 0
check "one rank has no library: the other says so" said 1 "values go through the host: not all ranks have devices that exchange them"
odd=DEEPC_DEVICE=cpu
run timeout 300 mpirun.$l $x -n 2 sh "$dir/mixed.sh" "$DEEPC" "$dir/sum.lua"
check "one rank computes on the CPU" warns "the kind of device differs between ranks: rank 0 has 'cuda', rank 1 'cpu'"
check "one rank computes on the CPU: the status tells" test $status -ne 0 -a $status -ne 124

# Streams in other orders, every access checked.
for setting in CUDA_STANDIN_STREAMS=eager CUDA_STANDIN_STREAMS=random DEEPC_LAUNCH=wait CUDA_STANDIN_CHECK=1; do
    export "${setting?}"
    ranks $l 2 "$here/devices.lua" "$dir/other"
    check "$setting: all values" exchanged 2
    check "$setting: the same values" same 2 host other
    unset "${setting%%=*}"
done

trained "2 mlp data"

# Programs that are wrong, and accidents behind the moment at which ranks have agreed.
script() {
    {
        echo 'local dc = require "deepc"'
        echo 'local w = dc.world()'
        echo 'dc.mesh { data = w.size }'
        cat
    } >"$dir/$1.lua"
}
script shapes <<'LUA'
local f = dc.fn(("f(x: f32[%d]) -> f32[%d]"):format(4 + w.rank, 4 + w.rank), function(x) return dc.all_reduce(x * 2) end)
f(dc.ones("f32[" .. 4 + w.rank .. "]")):totable()
LUA
script calls <<'LUA'
local f = dc.fn("f(x: f32[4]) -> f32[4]", function(x) return dc.all_reduce(x * 4) end)
for _ = 1, 5 - w.rank do f(dc.ones "f32[4]"):totable() end
LUA
script lines <<'LUA'
local f = dc.fn("f(x: f32[4]) -> f32[4]", function(x) return dc.all_reduce(x * 5) end)
local g = dc.fn("g(x: f32[4]) -> f32[4]", function(x) return dc.all_reduce(x * 7) end)
for _ = 1, 3 do f(dc.ones "f32[4]"):totable() end
if w.rank == 0 then f(dc.ones "f32[4]"):totable() else g(dc.ones "f32[4]"):totable() end
LUA
script sums <<'LUA'
local f = dc.fn("f(x: f32[4]) -> f32[]", function(x) return dc.all_reduce(x * 6):sum() end)
for _ = 1, 10 do f(dc.ones "f32[4]"):item() end
print "done"
LUA
script ahead <<'LUA'
local x = dc.param("f32[4]", 1)
local f = dc.fn("f() -> ()", function() x:set(dc.all_reduce(x) / w.size) end)
for _ = 1, 200 do f() end
print("ahead " .. x:sum():item())
LUA
host=$(uname -n)
fails() { # fails NAME WORDS: the reason is this; of a script's path, which Lua cuts where it is long, its name counts
    sed -E "s/ \\($host\\)/ (host)/g; s/[^ ]*\\/([a-z]+\\.lua:)/\\1/g" "$dir/err" | grep -qF "$2" && [ "$status" -ne 0 -a "$status" -ne 124 ]
}
ranks $l 2 "$dir/shapes.lua"
check "other shapes" fails shapes "ranks disagree: rank 0: all_reduce f32 x 4, shapes.lua:4; rank 1: all_reduce f32 x 5, shapes.lua:4"
ranks $l 2 "$dir/calls.lua"
check "one call too many" fails calls "rank 1 (host) has ended, and rank 0 waits for it in all_reduce f32 x 4, calls.lua:4"
ranks $l 2 "$dir/lines.lua"
check "other functions that are both known" fails lines "ranks disagree: rank 0: all_reduce f32 x 4, lines.lua:4; rank 1: all_reduce f32 x 4, lines.lua:5"
ranks $l 3 "$dir/ahead.lua"
check "more exchanges than the host remembers" test "$(grep -c 'ahead 4.0' "$dir/out")" -eq 3 -a $status -eq 0

# accident N WHAT SECONDS
accident() {
    begun=$(date +%s)
    CUDA_STANDIN_NCCL=$2 ranks $l "$1" "$dir/sums.lua"
    took=$(($(date +%s) - begun))
    check "$2: ends after $took s" test $status -ne 0 -a $status -ne 124 -a $took -lt "$3"
    check "$2: nobody is done" test "$(grep -c done "$dir/out")" -eq 0
}
accident 3 kill@1:4 50
[ $l = mpich ] || check "killed: the others say who" fails sums "ended because rank 1 (host) was killed or has crashed"
accident 2 kill@0:1 50
accident 2 fail@1:3 50
check "NCCL fails: its words and the line" fails sums "all_reduce, sums.lua:4: NCCL: another rank or the network failed (ncclRemoteError)"

# Calls of the driver that fail on one rank.
cat >"$dir/failing.sh" <<'SH'
rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
[ "$rank" != 1 ] || export CUDA_STANDIN_FAIL="$failing"
DEEPC_DEVICE=cuda:$rank exec "$@"
SH
one_fails() {
    failing=$1
    export failing
    run timeout 60 mpirun.$l $x -n 2 sh "$dir/failing.sh" "$DEEPC" "$dir/sums.lua"
}
one_fails cuDeviceGetUuid_v2@1=1
check "a GPU that is not known: through the host" test "$(grep -c done "$dir/out")" -eq 2 -a $status -eq 0
check "it is told" said 2 "through the host: the driver of rank 1 does not tell which GPU is which"
for failing in cuEventRecord@1=1 cuEventRecord@3=1 cuEventQuery@1=999 cuLaunchKernel@2=719 cuStreamSynchronize@1=700; do
    one_fails $failing
    check "$failing on one rank: both end" test $status -ne 124
done
export DEEPC_RANK_SECONDS=3
accident 2 stop@1:4 50
check "a rank that is stopped: the other does not wait for ever" fails sums "others have not answered rank 0 (host) for 3 s in all_reduce, sums.lua:4"
closing
