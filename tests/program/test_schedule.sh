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
closing
