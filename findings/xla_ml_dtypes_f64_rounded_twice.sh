#!/bin/sh
# JAX 0.8.1 (jaxlib 0.8.1), ml_dtypes 0.5.4, NumPy 2.3.5: one f64 becomes two different f16, f8e4m3fn or f8e5m2, depending on
# whether NumPy or XLA converts it; and no bf16 is the nearest one.
#
# A number a little above the middle of two neighbours becomes the upper one. Where it is rounded to f32 first it is the middle
# itself, and the tie goes to the even neighbour, here the lower one. Who goes by f32 depends on the type:
#
#     from f64 to    float16   bfloat16   float8_e4m3fn   float8_e5m2
#     NumPy          once      twice      twice           twice         (float16 is NumPy's own, the others are of ml_dtypes)
#     XLA's CPU      twice     twice      once            once
#
# So parameters that were converted on the host and the same ones converted by jax.jit differ in the last bit, in either
# direction. Seen with eager jax.numpy as with jax.jit, x64 on.
#
# Debian 12, amd64, Python 3.11; packages from PyPI.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check jax==0.8.1 jaxlib==0.8.1 ml_dtypes==0.5.4 numpy==2.3.5
cat >run.py <<'PY'
import jax, jax.numpy as jnp, ml_dtypes, numpy as np
jax.config.update("jax_enable_x64", True)
for name, bits in ("float16", 10), ("bfloat16", 7), ("float8_e4m3fn", 3), ("float8_e5m2", 2):
    dtype = jnp.dtype(name)
    x = np.array([1 + 2.0 ** -(bits + 1) + 2.0 ** -40])  # above the middle of 1 and its upper neighbour
    above = {0.0: "twice", 2.0 ** -bits: "once"}
    host = float(x.astype(dtype)[0]) - 1
    device = float(jax.jit(lambda v: v.astype(dtype))(jnp.asarray(x))[0]) - 1
    print(name, "NumPy", above[host], "XLA", above[device])
PY
JAX_PLATFORMS=cpu venv/bin/python run.py | tee seen.txt
cat >expected.txt <<'TXT'
float16 NumPy once XLA twice
bfloat16 NumPy twice XLA twice
float8_e4m3fn NumPy twice XLA once
float8_e5m2 NumPy twice XLA once
TXT
cmp seen.txt expected.txt
