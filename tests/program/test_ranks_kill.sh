#!/bin/sh
# Ranks that train are killed, one of them at random moments: the others end soon, and started again they go on from the last
# checkpoint; the losses are those of a run that was never disturbed, bit for bit. Then fewer ranks go on.
#
#   test_ranks_kill.sh [KILLS [SEED]]    how often (5), of the moments
. "$(dirname "$0")/lib.sh"
kills=${1:-${DEEPC_TEST_KILLS:-5}}
seed=${2:-${DEEPC_TEST_SEED:-$(date +%s)}}
rank_settings
export DEEPC_RANK_SECONDS=20
unset DEEPC_RANK_PREFIX
keep_kernels
epochs=$((kills < 10 ? 40 : 4 * kills)) steps=$((20 * (kills < 10 ? 40 : 4 * kills)))

openmpi="mpirun.openmpi --oversubscribe" mpich=mpirun.mpich launchers=
for launcher in "$openmpi" $mpich; do
    if command -v "${launcher%% *}" >/dev/null 2>&1; then
        launchers="$launchers ${launcher%% *}"
    else
        skip "${launcher%% *} is not installed"
    fi
done
[ -n "$launchers" ] || { closing; exit; }

# The next one: they take turns.
turn=0
next() {
    turn=$((turn + 1))
    launcher=$(echo $launchers | tr ' ' '\n' | sed -n "$((turn % $(echo $launchers | wc -w) + 1))p")
    [ "$launcher" = $mpich ] || launcher=$openmpi
}

# train N FOLDER [OPTIONS]
train() {
    next
    n=$1 folder=$2
    shift 2
    run timeout 120 $launcher -n "$n" "$DEEPC" tests/ranks/restart.lua --folder "$folder" --epochs $epochs "$@"
}

lines_of() {
    if [ -e "$1" ]; then wc -l <"$1"; else echo 0; fi
}

milliseconds() {
    echo $(($(date +%s%N) / 1000000))
}

# Does any rank still run?
any_alive() {
    for file in "$1"/pid.*; do
        kill -0 "$(cat "$file")" 2>/dev/null && return 0
    done
    return 1
}

for n in 2 3; do
    mkdir "$dir/whole$n" "$dir/cut$n"
    train $n "$dir/whole$n"
    check "$n ranks: the undisturbed run ends well" test "$status" -eq 0
    check "$n ranks: a loss per step" test "$(lines_of "$dir/whole$n/losses")" -eq $steps
done

# Each moment: how many ranks, the step at which it comes, so many milliseconds later, to which rank.
awk -v n="$kills" -v seed="$seed" -v steps="$steps" 'BEGIN {
    srand(seed)
    for (i = 0; i < n; i++) {
        ranks = 2 + i % 2
        printf "%d %d %d %d\n", ranks, 0.95 * steps * (i - i % 2 + rand() * 2) / n, rand() * 40, int(rand() * ranks)
    }
}' >"$dir/moments"
echo "seed $seed"

longest=0 killed=0
while read -r n step later victim; do
    folder=$dir/cut$n
    rm -f "$folder"/pid.*
    next
    $launcher -n "$n" "$DEEPC" tests/ranks/restart.lua --folder "$folder" --epochs $epochs >"$dir/out" 2>"$dir/err" &
    child=$!
    while kill -0 $child 2>/dev/null &&
        { [ ! -s "$folder/pid.$victim" ] || [ "$(lines_of "$folder/losses")" -lt "$step" ]; }; do
        sleep 0.01
    done
    sleep "0.0$(printf %02d "$later")"
    begun=$(milliseconds)
    ! kill -9 "$(cat "$folder/pid.$victim")" 2>/dev/null || killed=$((killed + 1))
    wait $child
    status=$?
    while any_alive "$folder" && [ $(($(milliseconds) - begun)) -lt 30000 ]; do
        sleep 0.01
    done
    took=$(($(milliseconds) - begun))
    [ $took -le $longest ] || longest=$took
    check "$launcher, $n ranks: the others end within 5 s" test $took -lt 5000
    out=$(cat "$dir/out") err=$(cat "$dir/err")
    check "$launcher, $n ranks: no traceback" sh -c "! grep -q traceback $dir/err"
    if [ "$launcher" = "$openmpi" ] && grep -q 'from step' "$dir/out" && ! grep -q done "$dir/out"; then
        check "$launcher, $n ranks: the others say who it was" \
            grep -qE "^\[[0-9]\] deepc: rank [0-9] \(.*\): ended because rank $victim \(.*\) was killed or has crashed" "$dir/err"
    fi
done <"$dir/moments"
echo "killed $killed times, of $kills; the others ended after $longest ms at most"
check "ranks were killed, most times" test "$killed" -ge $(((kills + 1) / 2))

for n in 2 3; do
    train $n "$dir/cut$n"
    check "$n ranks: the last run ends well" test "$status" -eq 0
    check "$n ranks: it has gone on from a checkpoint" sh -c "grep -q 'from step [1-9]' $dir/out"
    check "$n ranks: the losses of the undisturbed run" cmp "$dir/whole$n/losses" "$dir/cut$n/losses"
    (cd "$dir/whole$n" && cksum train.st*) >"$dir/whole"
    (cd "$dir/cut$n" && cksum train.st*) >"$dir/cut"
    check "$n ranks: files of a checkpoint" test "$(lines_of "$dir/whole")" -eq $((n + 1))
    check "$n ranks: its cells and states" cmp "$dir/whole" "$dir/cut"
done

# Three ranks begin, two and then one go on: the same training, its sums in another order.
mkdir "$dir/fewer" "$dir/fewer3"
train 3 "$dir/fewer" --epochs 10
train 2 "$dir/fewer" --epochs 20
check "two ranks go on with the checkpoint of three" says "2 ranks, from step 200"
run "$DEEPC" tests/ranks/restart.lua --folder "$dir/fewer" --epochs 40
check "and one" says "1 ranks, from step 400"
check "all steps are there" test "$(lines_of "$dir/fewer/losses")" -eq 800
train 3 "$dir/fewer3" --epochs 40
run "$DEEPC" tests/ranks/compare.lua "$dir/fewer/losses" "$dir/fewer3/losses" 1e-6
check "with the losses of three ranks, nearly" says "800 numbers"
closing
