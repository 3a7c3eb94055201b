#!/bin/sh
# Examples that learn from texts and images and make new ones, with --quick: their results are such as only training
# reaches, and a run that was stopped and goes on ends as one that was not.
. "$(dirname "$0")/lib.sh"
keep_kernels

quick() { # quick NAME OPTIONS...
    name=$1
    shift
    run "$DEEPC" "examples/$name.lua" --quick "$@"
}

last() {
    printf '%s\n' "$out" | tail -n 1
}

# result FIELD LOW HIGH -- is this field of the last line a number between the two?
result() {
    last | awk -v i="$1" -v low="$2" -v high="$3" '{ exit !($i ~ /^[0-9.]+$/ && $i > low && $i < high) }'
}

# goes_on NAME OPTIONS... -- after the run of two epochs that gave $out: one, and one more from its checkpoint
goes_on() {
    whole=$(last)
    quick "$@" --epochs 1 --checkpoint "$dir/$1.st"
    check "$1 ends well after an epoch" test "$status" -eq 0
    quick "$@" --epochs 2 --checkpoint "$dir/$1.st" --resume
    check "$1 goes on" test "$status" -eq 0
    check "and ends as if it had not been stopped" test "$(last)" = "$whole"
}

# ---- texts ----

for name in word_vectors gpt; do
    run env PATH="$dir" "$DEEPC" examples/$name.lua --quick
    check "without its text $name ends with 1" test "$status" -eq 1
    check "and says which package has it" warns "Debian's package bible-kjv has it"
done

if command -v bible >/dev/null 2>&1; then
    quick word_vectors --epochs 2
    check "word_vectors ends well" test "$status" -eq 0
    goes_on word_vectors
    quick word_vectors gold --plot "$dir/words.svg"
    check "it draws words" grep -q ">animals<" "$dir/words.svg"
    check "words near another one are found" sh -c "grep -q '^gold: .*silver' '$dir/out'"
    check "and pairs of them" result 1 2 11
    first=$out
    quick word_vectors gold
    check "the same text twice" test "$out" = "$first"

    quick gpt
    check "gpt ends well" test "$status" -eq 0
    check "letters are told from those before them" result 2 1 2.45
    first=$out
    "$DEEPC" examples/gpt.lua --quick --checkpoint "$dir/gpt.st" --every 40 >/dev/null 2>&1 &
    child=$!
    while kill -0 $child 2>/dev/null && [ ! -e "$dir/gpt.st" ]; do
        sleep 0.02
    done
    kill -9 $child 2>/dev/null
    wait $child 2>/dev/null
    quick gpt --checkpoint "$dir/gpt.st" --every 40 --resume
    check "after it was killed gpt goes on" test "$status" -eq 0
    check "and writes the same text" test "$out" = "$first"
else
    skip "bible-kjv is not installed"
fi

# ---- images ----

for name in vae diffusion; do
    quick $name --data "$dir"
    check "without its images $name ends with 1" test "$status" -eq 1
    check "and says which package has them" warns "Debian's package dataset-fashion-mnist has it"
done

if [ -d $data ]; then
    quick vae --epochs 2 --samples "$dir/vae.png"
    check "vae ends well" test "$status" -eq 0
    check "it knows images" result 3 200 340
    check "and draws" test -s "$dir/vae.png"
    goes_on vae --samples "$dir/again.png"
    check "the same images" cmp "$dir/vae.png" "$dir/again.png"

    quick diffusion --epochs 2 --samples "$dir/diffusion.png"
    check "diffusion ends well" test "$status" -eq 0
    check "noise is told from images" result 3 0.01 0.4
    check "and images are drawn" test -s "$dir/diffusion.png"
    goes_on diffusion --samples "$dir/again.png"
    check "the same images" cmp "$dir/diffusion.png" "$dir/again.png"
else
    skip "dataset-fashion-mnist is not installed"
fi
closing
