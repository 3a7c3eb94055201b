#!/bin/sh
# What deepc.tensorboard writes, read by TensorBoard itself, where the package tensorboard is installed (a virtual environment
# may be given as DEEPC_PEERS; scripts/readers makes one).
. "$(dirname "$0")/lib.sh"
here=tests/program

run "$DEEPC" $here/tensorboard_content.lua "$dir/runs"
check "the run is written" test "$status" -eq 0
check "NaN in a histogram is told" warns "'counts': NaN: 1, infinite: 2, of 9 values"
check "and in an image" warns "'grey': NaN: 1, infinite: 0 of its values"

python=
for try in "${DEEPC_PEERS:-/nonexistent}/bin/python3" python3; do
    if "$try" -c 'import tensorboard' 2>/dev/null; then
        python=$try
        break
    fi
done
if [ -z "$python" ]; then
    skip "Python's package tensorboard is not installed (DEEPC_PEERS may name its environment; scripts/readers makes one)"
    closing
    exit
fi
run "$python" $here/tensorboard_peer.py "$dir/runs"
check "TensorBoard reads all of it" says "read by tensorboard"

# A file that ends in the middle of a record, as after a crash: what is before is there.
file=$(ls "$dir"/runs/loop/events.*)
size=$(wc -c <"$file")
head -c $((size - 5)) "$file" >"$dir/short" && mkdir "$dir/cut" && mv "$dir/short" "$dir/cut/events.out.tfevents.1.cut"
run "$python" -c '
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
a = EventAccumulator(sys.argv[1])
a.Reload()
print(a.Tags()["graph"], a.most_recent_step)' "$dir/cut"
check "a record that was cut is left out" says "False"
closing
