#!/bin/sh
# Safetensors files beside other programs': files that Python's package wrote are kept in
# tests/program/st_files/; where the package is installed (a virtual environment may be given as
# DEEPC_PEERS), it reads a file of ours, and we one that it writes now.
. "$(dirname "$0")/lib.sh"
here=tests/program

run "$DEEPC" $here/st_content.lua read $here/st_files/numpy.safetensors
check "a file of safetensors.numpy" test "$status" -eq 0
run "$DEEPC" $here/st_content.lua write "$dir/ours"
check "ours is written" test "$status" -eq 0
run "$DEEPC" $here/st_content.lua read "$dir/ours"
check "ours, without the tensor that numpy has not" warns "t_bf16"
check "equal content is equal bytes, on every machine" cmp "$dir/ours" $here/st_files/deepc.safetensors

python=
for try in "${DEEPC_PEERS:-/nonexistent}/bin/python3" python3; do
    if "$try" -c 'import safetensors, numpy' 2>/dev/null; then
        python=$try
        break
    fi
done
if [ -z "$python" ]; then
    skip "Python's packages safetensors and numpy are not installed (DEEPC_PEERS may name their environment)"
    closing
    exit
fi
run "$python" $here/st_peer.py read "$dir/ours"
check "the package reads ours" test "$status" -eq 0
run "$python" $here/st_peer.py write "$dir/theirs"
check "the package writes" test "$status" -eq 0
run "$DEEPC" $here/st_content.lua read "$dir/theirs"
check "and we read it" test "$status" -eq 0
closing
