#!/bin/sh
# The examples that read images and sounds, --quick: they end, with accuracies that only training reaches.
. "$(dirname "$0")/lib.sh"

# at_least LIMIT -- is the last line "test accuracy" and a number from the limit on?
at_least() {
    printf '%s\n' "$out" | tail -n 1 | awk -v limit="$1" '{ exit !(/^test accuracy [01][.][0-9]+$/ && $3 + 0 >= limit) }'
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
    check "digits goes on as if it had not stopped" test "$(echo "$out" | tail -n 2)" = "$(echo "$whole" | tail -n 2)"
else
    skip "digits: opencv-doc is not installed"
fi
run "$DEEPC" examples/digits.lua --data "$dir"
check "digits without data is an error" test "$status" -eq 1
check "digits names the package" warns "there is no $dir/digits.png; Debian's package opencv-doc has it"

closing
