#!/bin/sh
# jax 0.10.2, XLA's CPU: rng_bit_generator with a state of two words, as jax.random.key(seed, impl="rbg") has, is Philox4x32-10 whose
# counter has the key as its upper half.
#
# A state of two words of 64 bits is a key and a counter of 64 bits. Philox4x32 counts in 128 bits; the upper 64 are not said
# anywhere, and one would expect zeros, as a state of three words (key, lower and upper half of the counter) with a third word of 0
# gives. Here they are the key itself, so that the bits of (key, n) are those of (key, n, key) and not of (key, n, 0): who computes
# them again elsewhere, from the key in a checkpoint, gets other numbers. The state that comes back has two words, so a carry
# out of the lower half is lost. The algorithm that is asked for is DEFAULT, which on CPUs means PHILOX.
#
#     key 1, 2 counter 3, 4   XLA 512747620 1298009047 1267190206 761827841
#     Philox, upper half 0    4217200051 1653593442 1450031448 72658424
#     Philox, upper half key  512747620 1298009047 1267190206 761827841
#
# Debian 12, amd64, Python 3.11; jax, jaxlib and NumPy from PyPI.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check jax==0.10.2 jaxlib==0.10.2
cat >run.py <<'PY'
import jax
import jax.numpy as jnp
MASK = 0xFFFFFFFF


def philox(counter, key):  # Salmon and others, SC 2011: ten rounds
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [(b >> 32) ^ c[1] ^ k[0], b & MASK, (a >> 32) ^ c[3] ^ k[1], a & MASK]
        k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
    return c


print("check", [hex(v) for v in philox([0] * 4, [0] * 2)])  # known answer of Random123
state = jnp.array([1, 2, 3, 4], jnp.uint32)
for name in "RNG_DEFAULT", "RNG_PHILOX":
    _, bits = jax.lax.rng_bit_generator(state, (4,), algorithm=getattr(jax.lax.RandomAlgorithm, name))
    print(name, bits.tolist())
print("upper half 0  ", philox([3, 4, 0, 0], [1, 2]))
print("upper half key", philox([3, 4, 1, 2], [1, 2]))
PY
JAX_PLATFORMS=cpu venv/bin/python run.py | tee seen.txt
cat >expected.txt <<'TXT'
check ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
RNG_DEFAULT [512747620, 1298009047, 1267190206, 761827841]
RNG_PHILOX [512747620, 1298009047, 1267190206, 761827841]
upper half 0   [4217200051, 1653593442, 1450031448, 72658424]
upper half key [512747620, 1298009047, 1267190206, 761827841]
TXT
cmp seen.txt expected.txt
