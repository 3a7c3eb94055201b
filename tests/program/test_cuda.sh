#!/bin/sh
# The device cuda:0, a process for each run, on the stand-in of tests/cuda, or a GPU where DEEPC_CUDA and
# DEEPC_NVRTC are not set: what a second process finds in the cache, ways of launching, and what is said when the
# device fails.
. "$(dirname "$0")/lib.sh"
export DEEPC_CACHE="$dir/cache" DEEPC_DEVICE=cuda:0

line=$("$DEEPC" --devices | grep "^cuda:0 ")
case $line in
*stand-in*) ;;
*)
    skip "no stand-in for CUDA: ${line:-no device}"
    closing
    exit
    ;;
esac

cat >"$dir/step.lua" <<'EOT'
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local net = nn.Sequential { nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 10) }
local opt = optim.Adam(net:parameters())
local step = dc.fn("step(x: f32[16, 20], y: i32[16]) -> f32[]", function(x, y)
  local loss = nn.cross_entropy(net(x), y)
  opt:step(loss)
  return loss
end)
local x, y = dc.randn("f32[16, 20]", { seed = 1 }), dc.iota "i32[16]" % 10
for _ = 1, 5 do
  print(("%a"):format(step(x, y):item()))
end
local s = dc.stats()
io.stderr:write(("kernels: %d compiled, %d from disk, %d fallbacks\n"):format(s.kernels, s.kernels_cached, s.fallbacks))
EOT
step() {
    run env "$@" "$DEEPC" "$dir/step.lua"
}
compiles() {
    warns ", 0 fallbacks" && [ "$(sed -n 's/^kernels: \([0-9]*\) compiled, .*/\1/p' "$dir/err")" -gt 3 ]
}
finds_all() {
    warns "kernels: 0 compiled" && warns ", 0 fallbacks"
}
same() {
    [ "$status" -eq 0 ] && [ "$out" = "$first" ]
}

# ---- the cache ----

step
first=$out
check "a cold start ends well" test "$status" -eq 0
check "with five losses" test "$(printf '%s\n' "$out" | wc -l)" -eq 5
check "it compiles" compiles
step
check "a warm start has the same losses" same
check "and compiles nothing" finds_all
step DEEPC_NVRTC=/nowhere/libnvrtc.so
check "nor needs a compiler to be there" finds_all
check "for the same losses" same
step DEEPC_COMPILE=cache
check "what may compile nothing finds all there is" finds_all
check "with the same losses" same
step CUDA_STANDIN_SM=80
check "another architecture has its own machine code" compiles
check "and ends well" test "$status" -eq 0
step
check "both are kept" finds_all
for file in "$dir"/cache/*; do
    [ -f "$file" ] && printf 'damaged' | dd of="$file" bs=1 seek=200 conv=notrunc 2>"$dir/dd"
done
step
check "damaged entries are not there" compiles
check "with the same losses" same
for file in "$dir"/cache/*; do
    [ -f "$file" ] && truncate -s 100 "$file"
done
step
check "nor are short ones" compiles
check "with the same losses" same

# ---- ways to compile and to launch ----

step CUDA_STANDIN_SM=130 DEEPC_CACHE=off
check "an architecture that NVRTC does not know gets PTX" compiles
check "and ends well" test "$status" -eq 0
for way in one wait; do
    step DEEPC_LAUNCH=$way
    check "DEEPC_LAUNCH=$way: the same losses" same
done
step DEEPC_CHECKS=now
check "checks that are told at once: the same losses" same
step DEEPC_LAUNCH=none
check "another word is refused" warns "DEEPC_LAUNCH: graph, one or wait"
step DEEPC_CHECKS=never
check "of checks, too" warns "DEEPC_CHECKS: later or now"
step DEEPC_COMPARE=eval
check "comparing changes nothing" same
step DEEPC_CHECK=2
check "guard zones change nothing" same
step DEEPC_CHECK=nan
check "looking for NaN changes nothing" same
step CUDA_STANDIN_STREAMS=random CUDA_STANDIN_THREADS=random CUDA_STANDIN_CHECK=1 DEEPC_CACHE=off
check "in any order, every access checked: the same losses" same

# ---- what is said ----

step CUDA_STANDIN_FAIL=cuGraphLaunch@3=719
check "a lost device is an error" test "$status" -eq 1
check "which names the line" warns "step.lua:13: cuda: "
check "and the error" warns "CUDA_ERROR_LAUNCH_FAILED; the device is lost to this process"
check "and how to find the kernel" warns "DEEPC_LAUNCH=wait waits for each kernel and names the one that fails"
step DEEPC_LAUNCH=wait CUDA_STANDIN_FAIL=cuLaunchKernel@9=700
check "waiting names the kernel" sh -c "grep -q \"a run, at kernel '[A-Za-z][^']*': CUDA_ERROR_ILLEGAL_ADDRESS\" '$dir/err'"
check "and the line" warns "step.lua:13: cuda: "
step CUDA_STANDIN_FAIL=cuDevicePrimaryCtxRetain@1=2
check "no context is an error" test "$status" -eq 1
step CUDA_STANDIN_FAIL=cuInit@1=803
check "a driver that does not start is an error" warns "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"
step CUDA_STANDIN_SM=60
check "an old device is refused" warns "compute capability 6.0, 7.0 or later is needed"
run env CUDA_STANDIN_DEVICES=2 CUDA_STANDIN_SM=90,60 "$DEEPC" --devices
check "devices are listed with their compiler" says ", 132 multiprocessors, 4.0 GiB, driver for CUDA 13.0, NVRTC $DEEPC_NVRTC"
check "and why one is not used" says "cuda:1     absent: device cuda:1 has compute capability 6.0"
run env DEEPC_NVRTC=/nowhere/libnvrtc.so "$DEEPC" --devices
check "a compiler that is missing is told" says "driver for CUDA 13.0, no NVRTC (/nowhere/libnvrtc.so), so no kernel is compiled"
run env CUDA_STANDIN_DEVICES=0 "$DEEPC" --devices
check "and a driver that knows no device" says "absent: the CUDA driver knows no device (CUDA_VISIBLE_DEVICES may hide some)"
step DEEPC_DEVICE=cuda:1
check "a device that is not there is refused" warns "the last is cuda:0"
step CUDA_STANDIN_MEMORY=10000000
check "a device with hardly any memory is no crash" test "$status" -le 1
step DEEPC_MEMORY=100K
check "a limit is an error" test "$status" -eq 1

# ---- examples ----

if [ -d $data ]; then
    cut_images 640 500
    run env "$DEEPC" examples/fashion_mnist.lua --data "$dir/data" --epochs 1 --loss-log "$dir/losses"
    check "ten steps of the mlp end well" test "$status" -eq 0
    run env DEEPC_DEVICE=eval "$DEEPC" examples/fashion_mnist.lua --data "$dir/data" --epochs 1 --loss-log "$dir/eval"
    run env DEEPC_DEVICE=cpu "$DEEPC" tests/program/losses.lua "$dir/losses" "$dir/eval" 10 1e-5
    check "with the losses of eval" test "$status" -eq 0
    echo "mlp: $out"
else
    skip "dataset-fashion-mnist is not installed"
fi
run "$DEEPC" examples/regression.lua
device=$out
run env DEEPC_DEVICE=eval "$DEEPC" examples/regression.lua
check "regression ends well" test "$status" -eq 0
check "as on eval" test "$(printf '%s\n' "$device" | grep '^step 100')" = "$(printf '%s\n' "$out" | grep '^step 100')"
closing
