"""What the package jax-deepc says of deepc to JAX, against NumPy and SciPy: factors of matrices, donation, errors.

    JAX_PLATFORMS=deepc python tests/jax/check.py        ends with "N passed, N failed"
"""
import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
import scipy.linalg as sl

passed = failed = 0


def check(name, good):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print("not so:", name)


def near(a, b):
    return np.allclose(np.asarray(a), np.asarray(b), rtol=1e-3, atol=1e-3)


def matrices(*shape, dtype=np.float32):
    rng = np.random.default_rng(sum(shape))
    a = rng.normal(size=shape)
    return (a + 1j * rng.normal(size=shape) if dtype == np.complex64 else a).astype(dtype)


def test_lu():
    for n in 1, 2, 3, 5, 8, 20:
        a = matrices(20, n, n)
        lu, pivots = jsl.lu_factor(a)
        for i in range(len(a)):
            expected = sl.lu_factor(a[i])
            check(f"lu of {n}", near(lu[i], expected[0]) and (np.asarray(pivots[i]) == expected[1]).all())
        check(f"det of {n}", near(jnp.linalg.det(a), np.linalg.det(a)))
        check(f"inv of {n}", near(jnp.linalg.inv(a) @ a, np.eye(n)))
    b = matrices(3, 4, 4, dtype=np.complex64)
    check("complex solve", near(b @ jnp.linalg.solve(b, b[:, :, :2]), b[:, :, :2]))


def test_qr():
    for dtype in np.float32, np.complex64:
        for shape in (2, 5, 3), (3, 5), (4, 4), (3, 1):
            a = matrices(*shape, dtype=dtype)
            for mode in "reduced", "complete":
                q, r = jnp.linalg.qr(a, mode=mode)
                check(f"qr of {shape}", near(q @ r, a) and near(q.conj().mT @ q, np.eye(q.shape[-1])))
    for dtype in np.float32, np.complex64:
        for scale in np.float32(1e-25), np.float32(1e25):  # squares are beyond the type
            a = matrices(5, 3, dtype=dtype) * scale
            q, r = jnp.linalg.qr(a)
            check(f"qr of {a.dtype} times {scale}",
                  near(q @ (r / scale), a / scale) and near(q.conj().mT @ q, np.eye(3)))
    a = matrices(6, 4)
    raw, tau = jax._src.lax.linalg.geqrf(a)
    expected = sl.qr(a, mode="raw")[0]
    check("geqrf", near(raw, expected[0]) and near(tau, expected[1]))


def test_values():
    a = matrices(3, 6, 6)
    s = a + a.swapaxes(-1, -2)
    w, v = jnp.linalg.eigh(s)
    check("eigh", near(s @ v, v * w[:, None]) and near(w, np.linalg.eigvalsh(s)))
    check("eigh, upper", near(jnp.linalg.eigh(np.triu(s), UPLO="U", symmetrize_input=False)[0], w))
    w, v = jnp.linalg.eig(a)
    check("eig", near(a @ v, v * w[:, None]))
    for full in False, True:
        x = matrices(2, 5, 3)
        u, d, vh = jnp.linalg.svd(x, full_matrices=full)
        check("svd", near((u[..., :3] * d[:, None]) @ vh, x) and u.shape[-1] == (5 if full else 3))
    check("singular values", near(jnp.linalg.svd(a, compute_uv=False), np.linalg.svd(a, compute_uv=False)))
    g = jax.grad(lambda x: jnp.linalg.slogdet(x)[1])(a[0])
    check("gradient of slogdet", near(g, np.linalg.inv(a[0]).T))


def test_buffers():
    x = jnp.ones(1000)
    y = jax.jit(lambda v: v + 1, donate_argnums=0)(x)
    check("a donated array is gone", x.is_deleted() and near(y, 2))
    check("more than 256 arrays", near(jax.jit(lambda l: sum(l))([jnp.ones(2)] * 300), 300))
    check("nothing comes back", jax.jit(lambda v: ())(y) == ())
    check("bits of rbg", jax.random.bits(jax.random.key(0, impl="rbg"), (3,)).shape == (3,))


def test_errors():
    try:
        jnp.ones(3, jnp.int4) + 1
        check("4 bits are refused", False)
    except jax.errors.JaxRuntimeError as e:
        check("4 bits are refused", "UNIMPLEMENTED" in str(e))
    try:
        jnp.linalg.eigh(matrices(3, 3, dtype=np.complex64))
        check("complex eigh is refused", False)
    except NotImplementedError as e:
        check("complex eigh is refused", "deepc" in str(e))
    check("and the process goes on", near(jnp.ones(3) + 1, 2))


check("the platform", jax.default_backend() == "deepc")
for test in test_lu, test_qr, test_values, test_buffers, test_errors:
    test()
print(f"{passed} passed, {failed} failed")
raise SystemExit(failed > 0)
