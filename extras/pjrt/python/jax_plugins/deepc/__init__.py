"""JAX on deepc.

JAX finds this package by itself, and uses the platform "deepc" where JAX_PLATFORMS names it, or where no accelerator is.
DEEPC_DEVICE says on which of deepc's devices it computes ("cpu", "cuda", "opencl"), DEEPC_THREADS with how many threads.
DEEPC_PJRT_LIBRARY names another library than the one of the package.
"""

import functools
import importlib.util
import os
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import xla_bridge
from jax._src.lax import linalg
from jax.interpreters import mlir

PLATFORM = "deepc"
PRIORITY = 100  # above the CPU of XLA (0), below GPUs and TPUs (200 and more)


def initialize():
    library = os.environ.get("DEEPC_PJRT_LIBRARY") or str(pathlib.Path(__file__).parent / "libdeepc_pjrt.so")
    if not os.path.exists(library):
        raise FileNotFoundError(f"jax-deepc: there is no {library}")
    _choose_lapack()
    xla_bridge._nonexperimental_plugins.add(PLATFORM)
    xla_bridge.register_plugin(PLATFORM, priority=PRIORITY, library_path=library)
    _allow_donation()
    _register_linear_algebra()


def _choose_lapack():
    """That of SciPy, which JAX needs anyway: Debian's own may be the reference implementation, ten times slower."""
    found = importlib.util.find_spec("scipy")
    if "DEEPC_LAPACK" in os.environ or found is None or found.origin is None:
        return
    libraries = pathlib.Path(found.origin).parents[1] / "scipy.libs"
    for library in sorted(libraries.glob("libscipy_openblas-*.so")):
        os.environ["DEEPC_LAPACK"] = str(library)


def _allow_donation():
    from jax._src.interpreters import mlir as internal
    if PLATFORM not in internal._platforms_with_donation:
        internal._platforms_with_donation.append(PLATFORM)


# ---- what JAX has no lowering of its own for ---------------------------------------------------------------------------
#
# A call of deepc is a custom call "deepc.NAME" (extras/stablehlo/stablehlo/lapack_calls.lua), whose backend_config has numbers.


def _call(name, ctx, operands, **config):
    config = {k: np.int64(v) for k, v in config.items()}
    return jax.ffi.ffi_lowering(f"deepc.{name}")(ctx, *operands, **config)


def _refuse_complex(name, ctx):
    if jnp.issubdtype(ctx.avals_in[0].dtype, jnp.complexfloating):
        raise NotImplementedError(f"deepc: {name} of complex matrices is not supported")


def _eigh(ctx, a, *, lower, sort_eigenvalues, subset_by_index, algorithm):
    del sort_eigenvalues, algorithm  # they come in ascending order, by one algorithm
    n = ctx.avals_in[0].shape[-1]
    _refuse_complex("eigh", ctx)
    if subset_by_index not in (None, (0, n)):
        raise NotImplementedError("deepc: eigh of some eigenvalues (subset_by_index) is not supported")
    return _call("eigh", ctx, [a], lower=lower)


def _eig(ctx, a, *, compute_left_eigenvectors, compute_right_eigenvectors, **others):
    del others
    _refuse_complex("eig", ctx)
    if compute_left_eigenvectors:
        raise NotImplementedError("deepc: eig with left eigenvectors is not supported")
    return _call("eig", ctx, [a], vectors=compute_right_eigenvectors)


def _svd(ctx, a, *, full_matrices, compute_uv, subset_by_index, algorithm):
    del algorithm
    m, n = ctx.avals_in[0].shape[-2:]
    _refuse_complex("svd", ctx)
    if subset_by_index not in (None, (0, min(m, n))):
        raise NotImplementedError("deepc: svd of some singular values (subset_by_index) is not supported")
    return _call("svd", ctx, [a], vectors=compute_uv, full=full_matrices)


def _qr(ctx, a, *, pivoting, full_matrices, use_magma):
    if pivoting:
        raise NotImplementedError("deepc: qr with pivoting is not supported")
    if jnp.issubdtype(ctx.avals_in[0].dtype, jnp.complexfloating) or 0 in ctx.avals_in[0].shape:
        return mlir.lower_fun(linalg._qr_lowering)(ctx, a, pivoting=False, full_matrices=full_matrices, use_magma=use_magma)
    return _call("qr", ctx, [a], full=full_matrices)


def _of_matrices(f):
    """A function of matrices for what has further axes in front."""
    def call(a, *others):
        g = f
        for _ in a.shape[:-2]:
            g = jax.vmap(g)
        return g(a, *others)
    return call


@_of_matrices
def _geqrf(a):
    """Reflections below the diagonal of R, one column after the other, as LAPACK's geqrf has them, and their factors."""
    m, n = a.shape
    rows = jnp.arange(m)

    def reflect(j, state):
        a, taus = state
        column = jax.lax.dynamic_slice_in_dim(a, j, 1, 1)[:, 0]
        scale = jnp.max(jnp.where(rows >= j, jnp.maximum(jnp.abs(jnp.real(column)), jnp.abs(jnp.imag(column))), 0))
        scale = jnp.where(scale == 0, 1, scale)  # squares of what is near the limits of the type are beyond them
        scaled = column / scale
        alpha = scaled[j]
        below = jnp.where(rows > j, scaled, 0)
        rest = jnp.sum(jnp.abs(below) ** 2)
        size = jnp.sqrt(jnp.abs(alpha) ** 2 + rest)
        beta = jnp.where(jnp.real(alpha) >= 0, -size, size).astype(a.dtype)
        none = (rest == 0) & (jnp.imag(alpha) == 0)
        tau = jnp.where(none, 0, (beta - alpha) / jnp.where(none, 1, beta)).astype(a.dtype)
        v = jnp.where(rows == j, 1, below / jnp.where(none, 1, alpha - beta))
        turned = a - jnp.conj(tau) * jnp.outer(v, jnp.conj(v) @ a)
        kept = jnp.where(rows > j, v, jnp.where(rows == j, jnp.where(none, alpha, beta) * scale, column))
        a = jnp.where(jnp.arange(n) > j, turned, a)
        return jax.lax.dynamic_update_slice(a, kept[:, None], (0, j)), taus.at[j].set(tau)

    return jax.lax.fori_loop(0, min(m, n), reflect, (a, jnp.zeros(min(m, n), a.dtype)))


@_of_matrices
def _householder_product(a, taus):
    m, n = a.shape
    k, rows = taus.shape[0], jnp.arange(m)

    def reflect(i, q):
        j = k - 1 - i
        v = jnp.where(rows > j, jax.lax.dynamic_slice_in_dim(a, j, 1, 1)[:, 0], jnp.where(rows == j, 1, 0).astype(a.dtype))
        return q - taus[j] * jnp.outer(v, jnp.conj(v) @ q)

    return jax.lax.fori_loop(0, k, reflect, jnp.eye(m, n, dtype=a.dtype))


def _lu(a):
    """LU of square matrices by deepc, of others and of complex ones by JAX's own loops; transpositions from the permutation."""
    *batch, m, n = a.shape
    if m != n or m == 0 or jnp.issubdtype(a.dtype, jnp.complexfloating):
        return linalg._lu_python(a)
    lu, permutation = jax.ffi.ffi_call(
        "deepc.lu", (jax.ShapeDtypeStruct(a.shape, a.dtype), jax.ShapeDtypeStruct((*batch, m), jnp.int32)))(a)

    def find(i, state):
        order, pivots = state
        wanted = jnp.broadcast_to(jax.lax.dynamic_slice_in_dim(permutation, i, 1, -1), order.shape)
        at = jnp.expand_dims(jnp.argmax(order == wanted, axis=-1).astype(jnp.int32), -1)
        here = jnp.broadcast_to(jax.lax.dynamic_slice_in_dim(order, i, 1, -1), order.shape)
        order = jnp.where(start == jnp.broadcast_to(at, order.shape), here, order)  # rows i and at change places
        order = jnp.where(start == i, wanted, order)
        return order, jax.lax.dynamic_update_slice_in_dim(pivots, at, i, -1)

    start = jax.lax.broadcasted_iota(jnp.int32, (*batch, m), len(batch))
    _, pivots = jax.lax.fori_loop(0, m, find, (start, jnp.zeros_like(start)))
    return lu, pivots, permutation


def _missing(name, ctx, *operands, **params):
    del ctx, operands, params
    raise NotImplementedError(f"deepc: {name} is not supported")


def _register_linear_algebra():
    rules = {"eigh": _eigh, "eig": _eig, "svd": _svd, "qr": _qr}
    for name in "schur", "hessenberg", "tridiagonal", "geqp3":
        rules[name] = functools.partial(_missing, name)
    rules["lu"] = mlir.lower_fun(_lu, multiple_results=True)
    rules["geqrf"] = mlir.lower_fun(_geqrf, multiple_results=True)
    rules["householder_product"] = mlir.lower_fun(_householder_product, multiple_results=False)
    for name, rule in rules.items():
        mlir.register_lowering(getattr(linalg, f"{name}_p"), rule, platform=PLATFORM)
