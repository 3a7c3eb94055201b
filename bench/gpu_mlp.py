"""One training step of multilayer perceptrons on a GPU: forward, gradients, update.

    scripts/bench gpu-mlp [--tiny] [--case PATTERN] [--peer PATTERN] [--rounds N] [--ms N]

As bench/mlp.py, on the device; f32 on both sides, PyTorch with TF32 off.
"""
import gpu_frame
import mlp
import training

NETS = [((784, 32, 10), 8)] if gpu_frame.TINY else [((784, 128, 64, 10), 64), ((784, 512, 512, 10), 512),
                                                    ((784, 4096, 4096, 10), 1024)]


def case(rule, sizes, batch):
    pairs = list(zip(sizes, sizes[1:]))
    given = [("x", (batch, 28, 28), "u8", 256), ("y", (batch,), "i32", 10)]
    for i, (a, b) in enumerate(pairs):
        given += [(f"w{i}", (a, b), "f32", a ** -0.5), (f"b{i}", (b,), "f32", a ** -0.5)]
    return gpu_frame.case(f"{rule} {'-'.join(map(str, sizes))} batch {batch}", given, turn=False, later=(5, 2e-2),
                          flops=mlp.flops(sizes, batch), sizes=list(sizes), batch=batch, rule=rule, rate=mlp.RATE[rule])


CASES = [case(rule, *net) for rule in ("adam", "sgd") for net in NETS]


def torch_side(c, _, compiled=False):
    import torch
    torch._dynamo.reset()
    torch.backends.cuda.matmul.allow_tf32 = False
    given = gpu_frame.host_arrays(c)
    net = mlp.torch_net(c, given).to(gpu_frame.device())
    fused = {} if compiled else {"fused": True}
    opt = (torch.optim.Adam if c.rule == "adam" else torch.optim.SGD)(net.parameters(), lr=c.rate, **fused)
    x, y = (torch.from_numpy(given[n]).to(gpu_frame.device()) for n in "xy")

    def loss_of(x, y):
        return torch.nn.functional.cross_entropy(net(x.float() / 255), y)

    return gpu_frame.waited(training.torch_training(net, opt, loss_of, x, y.long(), compiled))


def torch_compile(c, inputs):
    return torch_side(c, inputs, compiled=True)


PEERS = {"torch eager": torch_side, "torch.compile": torch_compile}

if __name__ == "__main__":
    gpu_frame.main("gpu-mlp", CASES, PEERS)
