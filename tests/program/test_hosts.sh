#!/bin/sh
# Training on two hosts, which are network namespaces of this machine with a link of 1 Gbit/s between them: the losses and
# parameters of one process, the same bits again, bytes that really cross the link, no more than the formula says, and exchanges
# that go on while kernels run.
. "$(dirname "$0")/lib.sh"
here=$(cd "$(dirname "$0")/../ranks" && pwd)
rank_settings
export DEEPC_RANK_PREFIX=off
keep_kernels

# on LAUNCHER RANKS COMMAND...: two hosts with so many ranks each
on() {
    launcher=$1 n=$2
    shift 2
    run timeout 300 sh "$here/hosts.sh" -l "$launcher" -n "$n" -r 1gbit -b "$@"
}

lines() {
    [ "$(grep -cE "$2" "$dir/out")" -eq "$1" ]
}

# trained LAUNCHER RANKS MODEL MODE: twice
trained() {
    rm -f "$dir/ranks" "$dir/first"
    on "$1" "$2" "$DEEPC" "$here/train.lua" "$3" "$4" "$dir/first"
    on "$1" "$2" "$DEEPC" "$here/train.lua" "$3" "$4" "$dir/ranks"
    check "$1, 2 hosts x $2: $3 $4: the same bits again" cmp "$dir/first" "$dir/ranks"
    run "$DEEPC" "$here/compare.lua" "$dir/one.$3" "$dir/ranks" 5e-7
    check "$1, 2 hosts x $2: $3 $4 as one process" test "$status" -eq 0
}

# What is exchanged while gradients are computed is not waited for.
overlap() {
    on "$1" 1 env DEEPC_DEBUG=exchange "$DEEPC" "$here/../../bench/processes.lua" mlp 1024 3 512 0 50
    set -- "$1" $(awk '/ under way, / { n++; for (i = 1; i <= NF; i++) {
        if ($(i + 1) " " $(i + 2) ~ /^ms under/) all += $i
        if ($(i + 1) " " $(i + 2) ~ /^ms waited/) waited += $i } }
        END { printf "%d %d %d", n, all, waited }' "$dir/err")
    check "$1: $2 exchanges, $3 ms under way, $4 ms waited for" test "$2" -gt 0 -a "$4" -lt "$3"
}

# What left each host: what its ranks gave to the other one, and headers.
crossed() {
    check "$1: bytes of both hosts" test "$(grep -c '^host[12] sent [0-9]* bytes$' "$dir/out")" -eq 2
    for sent in $(sed -n 's/^host[12] sent \([0-9]*\) bytes$/\1/p' "$dir/out"); do
        check "$1: $sent bytes left a host, of $2" test "$sent" -ge "$2" -a "$sent" -le $(($2 + $2 / 20))
    done
}

run sh "$here/hosts.sh" -l none
if [ "$status" -eq 77 ] && ! says "mpirun.none"; then
    skip "$out"
    closing
    exit
fi
for model in mlp gpt; do
    run "$DEEPC" "$here/train.lua" $model data "$dir/one.$model"
    check "$model in one process" test "$status" -eq 0
done
for launcher in openmpi mpich; do
    if ! command -v mpirun.$launcher >/dev/null 2>&1; then
        skip "mpirun.$launcher is not installed"
        continue
    fi
    on $launcher 1 "$DEEPC" "$here/bytes.lua" 5
    check "$launcher: two hosts" lines 2 '^rank [01] of host1 host2: 20971520 bytes given, 20971520 by the formula'
    crossed "$launcher" 20971520
    on $launcher 2 "$DEEPC" "$here/bytes.lua" 5
    check "$launcher: two hosts with two ranks" lines 4 '^rank [0-3] of host1 host1 host2 host2: .* 31457280 by the formula'
    crossed "$launcher, two ranks each" 20971520
    for model in mlp gpt; do
        trained $launcher 1 $model data
        trained $launcher 2 $model data
    done
    trained $launcher 2 gpt mixed
    overlap $launcher
done
closing
