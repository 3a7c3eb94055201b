"""Training steps of the peers, as the benchmarks share them: run(n) does n steps and gives the last loss."""


def torch_training(net, opt, loss_of, x, y, compiled=False):
    import torch
    update = opt.step
    if compiled:
        loss_of = torch.compile(loss_of, dynamic=False)
        update = torch.compile(lambda: opt.step(), dynamic=False)

    def run(n):
        for _ in range(n):
            loss = loss_of(x, y)
            opt.zero_grad()
            loss.backward()
            update()
        return {"loss": loss}

    return run


def tinygrad_training(opt, loss_of, x, y):
    from tinygrad import TinyJit
    from tinygrad.helpers import Context

    @TinyJit
    def step(x, y):
        with Context(TRAINING=1):
            opt.zero_grad()
            loss = loss_of(x, y)
            loss.backward()
            return loss.realize(*opt.schedule_step())

    def run(n):
        for _ in range(n):
            loss = step(x, y)
        return {"loss": loss.numpy()}

    return run


def jax_training(rule, rate, loss_of, params, x, y):
    """One jitted function per step, which is given its state to overwrite. params: a tree of arrays."""
    import jax
    import jax.numpy as jnp
    each = jax.tree_util.tree_map

    def adam(params, m, v, t, x, y):
        loss, grads = jax.value_and_grad(loss_of)(params, x, y)
        t = t + 1
        m = each(lambda a, g: 0.9 * a + 0.1 * g, m, grads)
        v = each(lambda a, g: 0.999 * a + 0.001 * g * g, v, grads)
        now, scale = rate / (1 - 0.9 ** t), 1 / (1 - 0.999 ** t)
        params = each(lambda p, a, b: p - now * a / (jnp.sqrt(b * scale) + 1e-8), params, m, v)
        return loss, params, m, v, t

    def sgd(params, x, y):
        loss, grads = jax.value_and_grad(loss_of)(params, x, y)
        return loss, each(lambda p, g: p - rate * g, params, grads)

    if rule == "adam":
        step = jax.jit(adam, donate_argnums=(0, 1, 2, 3))
        state = [params, *(each(jnp.zeros_like, params) for _ in range(2)), jnp.zeros((), jnp.float32)]
    else:
        step = jax.jit(sgd, donate_argnums=(0,))
        state = [params]

    def run(n):
        for _ in range(n):
            loss, *state[:] = step(*state, x, y)
        jax.block_until_ready(state)
        return {"loss": loss}

    return run
