#!/bin/sh
# `deepc kernel`: docs/kernel.md is what it prints; what is not right is refused.
. "$(dirname "$0")/lib.sh"

run ./scripts/forms
check "scripts/forms works" test "$status" -eq 0
check "docs/kernel.md is what it writes (./scripts/forms > docs/kernel.md)" cmp -s "$dir/out" docs/kernel.md

cp tests/kernel/product.nest "$dir/k"
for target in cpu c11 opencl cuda sim:cpu sim:opencl sim:cuda; do
    for form in nest schedule flat text; do
        run "$DEEPC" kernel "$dir/k" --target $target --form $form
        check "$target $form" test "$status" -eq 0
        check "$target $form is not empty" test -n "$out"
    done
done
run "$DEEPC" kernel "$dir/k" --target cuda --schedule tests/kernel/product.simt
check "a schedule from a file" test "$status" -eq 0
check "it uses shared memory" says "__shared__"
check "and waits" says "__syncthreads"
run "$DEEPC" kernel "$dir/k" --form nest --naive
check "without moves it prints what it read" sh -c "grep -v '^#' '$dir/k' | cmp -s - '$dir/out'"

run "$DEEPC" kernel /nonexistent
check "no file" test "$status" -eq 1
check "is named" warns "/nonexistent"
run "$DEEPC" kernel "$dir/k" --target abacus
check "no target" test "$status" -eq 1
check "is named" warns "no target 'abacus'"
run "$DEEPC" kernel "$dir/k" --form shape
check "no form: usage" test "$status" -eq 2
echo 'for i in' >"$dir/bad"
run "$DEEPC" kernel "$dir/bad"
check "no kernel" test "$status" -eq 1
check "with the line" warns "line 1"
printf 'schedule product\n  split z 4\n' >"$dir/s"
run "$DEEPC" kernel "$dir/k" --schedule "$dir/s"
check "a move that does not fit" test "$status" -eq 1
check "is named" warns "split z 4"
closing
