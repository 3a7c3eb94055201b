#!/bin/sh
# Training that is killed with SIGKILL at random moments and goes on with --resume: the log of losses, the
# last checkpoint and the plot are those of a run that was never disturbed, byte for byte.
#
#   DEEPC_TEST_KILLS=20   how often (4); scripts/resume runs that many, for both networks
#   DEEPC_TEST_MODEL=cnn  which network (mlp)
#   DEEPC_TEST_SEED=7     of the moments
. "$(dirname "$0")/lib.sh"
example=$PWD/examples/fashion_mnist.lua
kills=${DEEPC_TEST_KILLS:-4}
model=${DEEPC_TEST_MODEL:-mlp}
seed=${DEEPC_TEST_SEED:-$(date +%s)}

cut_images 6400 500

# 3 epochs of 100 steps, a checkpoint after each 7 and at the end of each epoch. In a subshell.
start() { # start NAME [OPTIONS]
    name=$1
    shift
    exec "$DEEPC" "$example" --model "$model" --data "$dir/data" --epochs 3 --every 7 --loss-log "$dir/$name.log" \
        --checkpoint "$dir/$name.st" --plot "$dir/$name" --save "$dir/$name.net" "$@"
}

train() {
    (start "$@")
}

size_of() {
    if [ -e "$1" ]; then wc -c <"$1"; else echo 0; fi
}

run train whole
check "the undisturbed run ends well" test "$status" -eq 0
last=$(tail -n 1 "$dir/out")
check "a loss per step" test "$(wc -l <"$dir/whole.log")" -eq 300
total=$(size_of "$dir/whole.log")

# Where the kills come, in bytes of the log, and how many milliseconds later.
awk -v n="$kills" -v total="$total" -v seed="$seed" 'BEGIN {
    srand(seed)
    for (i = 0; i < n; i++) printf "%d %d\n", rand() * total * 0.97, rand() * 40
}' | sort -n >"$dir/moments"
echo "seed $seed"

killed=0
while read -r bytes later; do
    (start cut --resume >"$dir/part.out" 2>"$dir/part.err") &
    child=$!
    while kill -0 $child 2>/dev/null && [ "$(size_of "$dir/cut.log")" -lt "$bytes" ]; do
        sleep 0.01
    done
    sleep "0.0$(printf %02d "$later")"
    ! kill -9 $child 2>/dev/null || killed=$((killed + 1))
    wait $child 2>/dev/null
    check "no message of its own" sh -c "! grep -q ^deepc: $dir/part.err"
done <"$dir/moments"
echo "killed $killed times, of $kills"
check "it was killed" test "$killed" -gt 0

run train cut --resume
check "the last run ends well" test "$status" -eq 0
check "the same accuracy" test "$(tail -n 1 "$dir/out")" = "$last"
check "the same losses" cmp "$dir/whole.log" "$dir/cut.log"
check "the same checkpoint" cmp "$dir/whole.st" "$dir/cut.st"
check "the same parameters" cmp "$dir/whole.net" "$dir/cut.net"
check "the same plots" sh -c "cmp $dir/whole.svg $dir/cut.svg && cmp $dir/whole.png $dir/cut.png"

run train cut --resume
check "once more, there is nothing left to do" test "$status" -eq 0
check "and the accuracy is the same" test "$(tail -n 1 "$dir/out")" = "$last"
check "and the log, too" cmp "$dir/whole.log" "$dir/cut.log"
run train cut --resume --lr 0.5
check "another learning rate is refused" warns "the checkpoint is of --lr 0.001"
head -n 200 "$dir/whole.log" >"$dir/cut.log"
run train cut --resume
check "a log that is too short is refused" warns "when the checkpoint was made"
check "and left as it is" test "$(wc -l <"$dir/cut.log")" -eq 200
run "$DEEPC" "$example" --resume
check "--resume alone is refused" warns "--resume needs --checkpoint"
closing
