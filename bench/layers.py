"""A training step of one layer: forward, gradients of a mean of cubes for what goes in and for the parameters, SGD.

    scripts/bench layers [--case PATTERN] [--threads 1,2] [--rounds N] [--ms N]

Beside PyTorch eager. Both sides begin with the same weights; the loss and the gradient of what goes in are compared.
"""
import frame

RATE = 1e-2


def case(label, kind, x, params, **fields):
    return frame.Case(label, kind=kind, x=list(x), params={name: list(shape) for name, shape in params.items()}, **fields)


def convolution(weight, outputs):
    return {"weight": weight, "bias": (outputs,)}


CASES = [
    case("conv1d 64 -> 64, 5", "Conv1d", (16, 64, 1000), convolution((64, 64, 5), 64), args=[64, 64, 5]),
    case("conv3d 8 -> 16, 3", "Conv3d", (4, 8, 16, 16, 16), convolution((16, 8, 3, 3, 3), 16), args=[8, 16, 3]),
    case("conv transpose 2d 64 -> 32, 4, stride 2", "ConvTranspose2d", (8, 64, 16, 16),
         convolution((64, 32, 4, 4), 32), args=[64, 32, 4], stride=2, padding=1),
    case("group norm 8 of 64", "GroupNorm", (16, 64, 32, 32), convolution((64,), 64), args=[8, 64]),
    case("instance norm 64", "InstanceNorm2d", (16, 64, 32, 32), {}, args=[64]),
    case("batch norm 64", "BatchNorm2d", (16, 64, 32, 32), convolution((64,), 64), args=[64]),
    case("attention 8 heads of 256", "MultiheadAttention", (8, 128, 256),
         {"in_proj_weight": (256, 768), "in_proj_bias": (768,), "out_proj.weight": (256, 256), "out_proj.bias": (256,)},
         args=[256, 8]),
    case("adaptive avg 7 of 32", "AdaptiveAvgPool2d", (16, 64, 32, 32), {}, args=[7]),
    case("adaptive avg 8 of 32", "AdaptiveAvgPool2d", (16, 64, 32, 32), {}, args=[8]),
    case("adaptive avg 1 of 32", "AdaptiveAvgPool2d", (16, 64, 32, 32), {}, args=[1]),
    case("adaptive max 7 of 32", "AdaptiveMaxPool2d", (16, 64, 32, 32), {}, args=[7]),
    case("adaptive max 8 of 32", "AdaptiveMaxPool2d", (16, 64, 32, 32), {}, args=[8]),
    case("hardswish", "Hardswish", (16, 64, 32, 32), {}, args=[]),
    case("mish", "Mish", (16, 64, 32, 32), {}, args=[]),
    case("ctc 100 of 32, 20 letters", "ctc", (100, 16, 32), {}, args=[]),
]


def inputs(c, rng):
    import numpy as np
    found = {"x": rng.standard_normal(c.x).astype(np.float32)}
    for name, shape in c.params.items():
        found[name] = (rng.standard_normal(shape) * 0.05).astype(np.float32)
    if c.kind == "ctc":
        found["y"] = rng.integers(1, c.x[2], (c.x[1], 20), dtype=np.int32)
    return found


def torch_side(c, inputs):
    import torch
    x = torch.from_numpy(inputs["x"]).requires_grad_()
    if c.kind == "ctc":
        y = torch.from_numpy(inputs["y"]).long()
        lengths = torch.full((c.x[1],), c.x[0]), torch.full((c.x[1],), 20)

        def loss_of():
            return torch.nn.functional.ctc_loss(x.log_softmax(-1), y, *lengths)

        params = []
    else:
        options = {name: getattr(c, name) for name in ("stride", "padding") if hasattr(c, name)}
        heads = c.kind == "MultiheadAttention"
        net = getattr(torch.nn, c.kind)(*c.args, **options, **({"batch_first": True} if heads else {}))
        named = dict(net.named_parameters())
        for name in c.params:
            value = torch.from_numpy(inputs[name])
            named[name].data.copy_(value.t() if heads and value.dim() == 2 else value)
        params = list(net.parameters())

        def loss_of():
            y = net(x, x, x, need_weights=False)[0] if heads else net(x)
            return (y * y * y).mean()

    opt = torch.optim.SGD(params, lr=RATE) if params else None

    def run(n):
        for _ in range(n):
            loss = loss_of()
            x.grad = None
            if opt:
                opt.zero_grad()
            loss.backward()
            if opt:
                opt.step()
        return {"loss": loss.detach(), "dx": x.grad}

    return run


if __name__ == "__main__":
    frame.main("layers", CASES, inputs, {"torch eager": torch_side}, tolerance=1e-3)
