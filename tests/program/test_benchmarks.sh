#!/bin/sh
# scripts/benchmarks reads what scripts/bench prints: each time and each ratio in its place, what is missing, what is below 1.
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || { skip "python3 is not installed"; closing; exit; }

cat >"$dir/log" <<'EOF'
{"date": "1 May 2026, 10:00 UTC", "commit": "0123456789", "changed": false, "memory": "8 GiB", "cpus": 4,
 "system": "Linux", "parts": [{"title": "Layers", "words": ["scripts/bench", "layers", "--case", "a|b"],
 "before": "0.50", "after": "1.25", "status": 1, "lines": [
 "bench layers: Some CPU, 4 cores, Linux 6; inputs from seed 1; medians of 7 rounds of about 60 ms a side",
 "  deepc: deepc 0.1.0 on cpu, 64 bits", "  torch eager: torch 2.15.0, 2 OpenMP threads",
 "layers mish, 2 threads: deepc 607.6 us (48 GFLOP/s), torch eager 1.22 ms (24 GFLOP/s, 3.1 GB/s), ratio 2.01",
 "layers mish, 2 threads: deepc 607.6 us (48 GFLOP/s), jax.jit 0.55 ms, ratio 0.90 (three times: 0.90 0.89 0.91)",
 "layers b: odd, 1 thread: deepc 2.00 s, torch eager 3.00 s, ratio 1.50", "layers mish, 2 threads: deepc 607.6 us, memory 0.30 ms, ratio 0.50 yardstick", "layers: MISSING tinygrad: not installed"]}]}
EOF
page() {
    run python3 scripts/benchmarks --from "$@"
}
page "$dir/log"
check "a page is written" test $status -eq 0
check "with the peers as columns" says "| | deepc | torch eager | jax.jit | memory (yardstick) |"
check "times and ratios are where they belong" says "| mish, 2 threads | 607.6 us | 1.22 ms, **2.01** | 0.55 ms, **0.90** | 0.30 ms, **0.50** |"
check "a peer without a line has none" says "| b: odd, 1 thread | 2.00 s | 3.00 s, **1.50** |  |  |"
check "what is missing is told" says "Missing: tinygrad: not installed"
check "ratios are counted, but for yardsticks" says "| lines | 3, of which 1 are below 1 |"
check "so are versions" says "| torch | torch 2.15.0 |"
check "and the machine" says "| machine | Some CPU, 4 cores, Linux 6, 8 GiB |"
check "which was quiet" sh -c "! grep -q 'not quiet' '$dir/out'"
check "the command is there" says "scripts/bench layers --case 'a|b'"

sed 's/"after": "1.25"/"after": "9.00"/' "$dir/log" >"$dir/busy"
page "$dir/busy"
check "a busy machine is told" says "The machine was not quiet"
page "$dir/log" "$dir/busy"
check "several runs are one page" says "| lines | 6, of which 2 are below 1 |"
sed 's/0123456789/9876543210/' "$dir/log" >"$dir/other"
page "$dir/log" "$dir/other"
check "those of another commit are not" test $status -eq 1
check "and that is told" warns "not of one commit"
sed 's/ratio/share/g' "$dir/log" >"$dir/none"
page "$dir/none"
check "without a figure there is no page" test $status -eq 1 -a -z "$out"
check "and that is told, too" warns "nothing was measured"
closing
