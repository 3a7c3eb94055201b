#!/bin/sh
# The examples that read images and sounds, --quick: they end, with accuracies that only training reaches.
. "$(dirname "$0")/lib.sh"
keep_kernels

# at_least LIMIT -- is the last line "test accuracy" and a number from the limit on?
at_least() {
    printf '%s\n' "$out" | tail -n 1 |
        awk -v limit="$1" '{ exit !(/^test accuracy [01][.][0-9]+$/ && $3 + 0 >= limit) }'
}

# same_end -- are the last two lines those of the run before, $whole?
same_end() {
    test "$(printf '%s\n' "$out" | tail -n 2)" = "$(printf '%s\n' "$whole" | tail -n 2)"
}

digits=/usr/share/doc/opencv-doc/examples/data/digits.png
if [ -e $digits ]; then
    run "$DEEPC" examples/digits.lua --quick
    check "digits ends well" test "$status" -eq 0
    check "digits are told" at_least 0.9
    whole=$out
    run "$DEEPC" examples/digits.lua --quick
    check "digits: the same text twice" test "$out" = "$whole"
    run "$DEEPC" examples/digits.lua --quick --epochs 1 --checkpoint "$dir/digits.st"
    check "digits: one epoch ends well" test "$status" -eq 0
    run "$DEEPC" examples/digits.lua --quick --checkpoint "$dir/digits.st" --resume
    check "digits goes on as if it had not stopped" same_end
else
    skip "digits: opencv-doc is not installed"
fi
run "$DEEPC" examples/digits.lua --data "$dir"
check "digits without data is an error" test "$status" -eq 1
check "digits names the package" warns "there is no $dir/digits.png; Debian's package opencv-doc has it"

sounds=/usr/share/asterisk/sounds
there=yes
for language in en es fr it ru; do
    ls -d $sounds/${language}_* >/dev/null 2>&1 || there=no
done
if [ $there = yes ]; then
    run "$DEEPC" examples/languages.lua --quick
    check "languages ends well" test "$status" -eq 0
    check "languages are told" at_least 0.55
    whole=$out
    run "$DEEPC" examples/languages.lua --quick --epochs 1 --checkpoint "$dir/languages.st"
    check "languages: one epoch ends well" test "$status" -eq 0
    run "$DEEPC" examples/languages.lua --quick --checkpoint "$dir/languages.st" --resume
    check "languages goes on as if it had not stopped" same_end
else
    skip "languages: asterisk-core-sounds-{en,es,fr,it,ru}-wav are not installed"
fi
run "$DEEPC" examples/languages.lua --data "$dir"
check "languages without data is an error" test "$status" -eq 1
check "languages names the package" warns "Debian's package asterisk-core-sounds-en-wav has it"

if [ -d $data ]; then
    resnet="examples/resnet.lua --quick"
    # shellcheck disable=SC2086
    run "$DEEPC" $resnet
    check "resnet ends well" test "$status" -eq 0
    check "clothes are told" at_least 0.5
    whole=$out
    # The rate depends on the number of epochs, so the run that is cut short is killed.
    # shellcheck disable=SC2086
    "$DEEPC" $resnet --checkpoint "$dir/resnet.st" --every 5 >/dev/null 2>&1 &
    child=$!
    while kill -0 $child 2>/dev/null && [ ! -e "$dir/resnet.st" ]; do
        sleep 0.02
    done
    kill -9 $child 2>/dev/null
    wait $child 2>/dev/null
    # shellcheck disable=SC2086
    run "$DEEPC" $resnet --checkpoint "$dir/resnet.st" --every 5 --resume
    check "resnet goes on as if it had not been killed" same_end
else
    skip "resnet: dataset-fashion-mnist is not installed"
fi
run "$DEEPC" examples/resnet.lua --data "$dir"
check "resnet without data is an error" test "$status" -eq 1
check "resnet names the package" warns "Debian's package dataset-fashion-mnist has it"

closing
