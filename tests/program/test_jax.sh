#!/bin/sh
# JAX on deepc, where a Python has JAX: tests/jax/check.py with the plugin of this build. DEEPC_JAX_PYTHON names another python3.
. "$(dirname "$0")/lib.sh"

python=${DEEPC_JAX_PYTHON:-python3}
library=$(dirname "$DEEPC")/libdeepc_pjrt.so
if ! "$python" -c 'import jax, scipy' >/dev/null 2>&1; then
    skip "this Python has no JAX (pip install jax): the plugin is tested by unit/test_pjrt alone"
    closing
    exit
fi
run env JAX_PLATFORMS=deepc DEEPC_PJRT_LIBRARY="$library" PYTHONPATH=extras/pjrt/python "$python" tests/jax/check.py
check "JAX computes on deepc" says " passed, 0 failed"
check "and ends well" test "$status" -eq 0

closing
