#!/bin/sh
# DEEPC_SCHEDULE: what DEEPC_DEBUG=kernel prints is pasted into a file and used instead of the rules.
. "$(dirname "$0")/lib.sh"

cat >"$dir/f.lua" <<'EOT'
local dc = require "deepc"
local f = dc.fn("f(x: f32[64, 96]) -> f32[64]", function(x) return (x * x):sum(2) end)
print(f(dc.ones "f32[64, 96]")[64])
EOT
kernel() { # the scheduled nest that was printed
    sed -n '/^\[kernel\] R_64_k96, scheduled/,/^}/p' "$dir/err"
}

run env DEEPC_DEBUG=kernel "$DEEPC" "$dir/f.lua"
check "the rules' schedule is printed" warns "
schedule R_64_k96
  split_reduce k "
kernel >"$dir/by_rule"
sed -n '/^schedule /,/^\[/p' "$dir/err" | grep -v '^\[' >"$dir/pasted"
run env DEEPC_DEBUG=kernel DEEPC_SCHEDULE="$dir/pasted" "$DEEPC" "$dir/f.lua"
check "pasted into a file, it is taken" test "$status" -eq 0
kernel >"$dir/by_file"
check "the nest is the same" cmp "$dir/by_rule" "$dir/by_file"
check "so is the result" says "96.0"

cat >"$dir/own" <<'EOT'
# by hand
schedule R_64_k96
  split i 16
  unroll i.i
EOT
run env DEEPC_DEBUG=kernel DEEPC_SCHEDULE="$dir/own" "$DEEPC" "$dir/f.lua"
check "another schedule is taken" test "$status" -eq 0
check "and printed" warns "
schedule R_64_k96
  split i 16
  unroll i.i
[kernel]"
check "with the same result" says "96.0"

printf 'schedule R_64_k96\n  split i 16\n  unroll j\n' >"$dir/wrong"
run env DEEPC_SCHEDULE="$dir/wrong" "$DEEPC" "$dir/f.lua"
check "a move that does not fit is an error" test "$status" -eq 1
check "it names the file" warns "DEEPC_SCHEDULE: $dir/wrong: "
check "the kernel and the move" warns "kernel R_64_k96: 'unroll j' does not apply: "
check "and the call" warns "f.lua:3"
printf 'schedule R_64_k96\n  slip i 16\n' >"$dir/unknown"
run env DEEPC_SCHEDULE="$dir/unknown" "$DEEPC" "$dir/f.lua"
check "a word that is no move is an error" test "$status" -eq 1
run env DEEPC_SCHEDULE="$dir/nothing" "$DEEPC" "$dir/f.lua"
check "a missing file is an error" test "$status" -eq 1
check "it is named" warns "$dir/nothing"
printf 'schedule R_1_k1\n' >"$dir/other"
run env DEEPC_DEBUG=kernel DEEPC_SCHEDULE="$dir/other" "$DEEPC" "$dir/f.lua"
kernel >"$dir/by_file"
check "kernels that the file does not have follow the rules" cmp "$dir/by_rule" "$dir/by_file"
# Groups of threads: tiles in shared memory, stages, matrix instructions.
cat >"$dir/p.lua" <<'EOT'
local dc = require "deepc"
local f = dc.fn("f(x: f16[48, 64], w: f16[64, 40]) -> f16[48, 40]", function(x, w) return x:matmul(w) end)
local x, w = dc.iota "f32[48, 64]" % 3, dc.iota "f32[64, 40]" % 5
print(f(x:cast "f16", w:cast "f16"):cast "f32":sum():item() == x:matmul(w):sum():item())
EOT
run env DEEPC_DEVICE=sim:cuda DEEPC_LAZY=eval DEEPC_DUMP="$dir/dump" "$DEEPC" "$dir/p.lua"
set -- "$dir"/dump/D_48_40_k64-*.txt
"$DEEPC" kernel "$1" --target cuda --form schedule >"$dir/tiles"
check "the rules take matrix instructions" grep -q "tensorize .* mma_f16" "$dir/tiles"
check "and stages" grep -q "stage x0.c 4" "$dir/tiles"
given() { # the file, changed by sed
    sed "$1" "$dir/tiles" >"$dir/changed"
    run env DEEPC_DEVICE=sim:cuda DEEPC_LAZY=eval DEEPC_SCHEDULE="$dir/changed" "$DEEPC" "$dir/p.lua"
}
for change in '' 's/c 4$/c 2/' '/stage/d' '/swizzle/d' 's/split_full k 32/split_full k 48/;/swizzle/d'; do
    given "$change"
    check "given by hand, '$change' changes no result" says true
done
given 's/mma_f16/mma_bf16/'
check "an instruction for other elements" warns "a and b are not plain loads of the dtype of mma_bf16"
given 's/stage x1.c 4/stage x1.c 3/'
check "stages that differ" warns "'stage x0.c 4' does not apply: x0.c cannot be staged: what is filled before it is to have as many stages"
given 's/stage x1.c 4/stage x1.c 9/'
check "too many stages" warns "there are 2 to 8 stages"
given 's/split_full i1 32/split_full i1 4096/'
check "too many threads" warns "threads, at most 1024 are allowed"
given 's/stage x1.c 4/stages x1.c 4/'
check "a word that is no move: those that there are" warns " prefetch pipeline: stages x1.c 4"

closing
