#!/bin/sh
# GGUF and PyTorch files beside the packages gguf and torch, where they are installed (a virtual environment may be given as
# DEEPC_PEERS): what they write is read bit for bit, what we write has the bits of gguf.quantize. The seed is printed.
. "$(dirname "$0")/lib.sh"
here=tests/program

python=
for try in "${DEEPC_PEERS:-/nonexistent}/bin/python3" python3; do
    if "$try" -c 'import gguf, torch, safetensors, numpy' 2>/dev/null; then
        python=$try
        break
    fi
done
if [ -z "$python" ]; then
    skip "Python's packages gguf, torch, safetensors and numpy are not installed (DEEPC_PEERS may name their environment)"
    closing
    exit
fi
seed=$(date +%s)
echo "seed $seed"
run "$python" $here/tensor_peer.py write "$dir" "$seed"
check "the packages write" test "$status" -eq 0
run "$DEEPC" $here/tensor_content.lua read "$dir"
check "and we read it" test "$status" -eq 0
run "$DEEPC" $here/tensor_content.lua write "$dir" "$seed"
check "we write" test "$status" -eq 0
run "$python" $here/tensor_peer.py check "$dir"
check "with the bits of the package" test "$status" -eq 0
closing
