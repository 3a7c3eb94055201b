#!/bin/sh
# The small examples, on both devices: they end, and with numbers that only training reaches.
. "$(dirname "$0")/lib.sh"
keep_kernels

# below LIMIT NUMBER -- is it a number, and below the limit?
below() {
    awk -v number="${2:-none}" -v limit="$1" 'BEGIN { exit !(number ~ /^[0-9.]+$/ && number + 0 < limit) }'
}

# last PATTERN -- the last field of the last line of the output that matches
last() {
    printf '%s\n' "$out" | awk -v pattern="$1" '$0 ~ pattern { n = $NF } END { print n }'
}

for device in cpu eval; do
    run env DEEPC_DEVICE=$device "$DEEPC" examples/regression.lua
    check "regression ends well ($device)" test "$status" -eq 0
    check "its loss is the noise's ($device)" below 0.0115 "$(last '^step 100')"

    run env DEEPC_DEVICE=$device "$DEEPC" examples/autoencoder.lua --plot "$dir/$device.svg"
    check "autoencoder ends well ($device)" test "$status" -eq 0
    check "SGD gets below the mean ($device)" below 0.01 "$(last '^optim.SGD')"
    check "Adam gets further ($device)" below 0.001 "$(last '^optim.Adam')"
    check "the losses of both are drawn ($device)" grep -q "optim.Adam" "$dir/$device.svg"
done

run "$DEEPC" examples/fit.lua
check "fit ends well" test "$status" -eq 0
check "the sine of 1 is found" sh -c "tail -n 1 '$dir/out' | grep -qE 'the network says 0\.8[2-6]'"

run "$DEEPC" examples/spirals.lua --plot "$dir/plane.svg"
check "spirals ends well" test "$status" -eq 0
check "it draws the plane" grep -q "the other one" "$dir/plane.svg"
check "the spirals are told apart" sh -c "tail -n 1 '$dir/out' | grep -qE '^test accuracy (1\.000|0\.9[89])'"
first=$out
run "$DEEPC" examples/spirals.lua
check "the same text twice" test "$out" = "$first"

run "$DEEPC" examples/conv_lstm.lua --steps 100 --plot "$dir/film.png"
check "conv_lstm ends well" test "$status" -eq 0
check "it draws a film" test -s "$dir/film.png"
check "it sees where squares go" below 0.1 "$(last '^step 100')"
compiled=$(last '^step 1 ')
run env DEEPC_DEVICE=eval "$DEEPC" examples/conv_lstm.lua --steps 1
check "conv_lstm ends well (eval)" test "$status" -eq 0
check "and begins with the same loss" test "$compiled" = "$(last '^step 1 ')"

# Words of every length, on two compilations.
run "$DEEPC" examples/reverse.lua --steps 600 --longest 4 --batch 32 --width 32
check "reverse ends well" test "$status" -eq 0
check "most words are right" below 0.2 "$(printf '%s\n' "$out" | awk '/ of 100 words are right/ { print 1 - $1 / 100 }')"

# A text that repeats itself is soon known, but for the first letters of a window.
awk 'BEGIN { for (i = 0; i < 100; i++) printf "the cat sat on the mat. " }' >"$dir/text"
learn() {
    run "$DEEPC" examples/characters.lua --steps 250 --batch 8 --context 32 --width 32 --heads 2 --layers 1 --sample 96 \
        "$@" "$dir/text"
}
learn
check "characters ends well" test "$status" -eq 0
check "the text is known" below 0.2 "$(last '^2400 characters of 11 kinds')"
check "as much as was asked for is written" test "$(printf %s "$out" | grep -v "^step" | tail -n 1 | wc -m)" -ge 96
first=$out
learn
check "the same text twice" test "$out" = "$first"
learn --seed 1
check "another one with another seed" test "$out" != "$first"
closing
