"""One training step of convolutional networks on a GPU: ResNet-18 and an 8-layer network.

    scripts/bench gpu-cnn [--tiny] [--case PATTERN] [--peer PATTERN] [--rounds N] [--ms N]

As bench/cnn.py and bench/resnet.py, on the device; f32 on both sides, PyTorch with TF32 off and cuDNN's search on.
"""
import cnn
import gpu_frame
import resnet
import training

TINY = gpu_frame.TINY
NETS = {name: layers for name, layers in cnn.NETS.items() if not TINY or name == "lenet"}


def layers_case(name, layers, batch):
    given = [("x", (batch, 28, 28), "u8", 256), ("y", (batch,), "i32", 10)]
    for i, layer in enumerate(layers):
        if "inputs" in layer:
            a, b, k = layer["inputs"], layer["outputs"], layer.get("window")
            shape, terms = ((a, b), a) if k is None else ((b, a, k, k), a * k * k)
            given += [(f"w{i}", shape, "f32", terms ** -0.5), (f"b{i}", (b,), "f32", terms ** -0.5)]
    return gpu_frame.case(f"{name}, batch {batch}", given, turn=False, later=(5, 2e-2), kind="cnn",
                          flops=cnn.flops(layers) * batch / cnn.BATCH, layers=layers, batch=batch, rule="adam", rate=1e-3)


def resnet_case(batch, size):
    given = [("x", (batch, 3, size, size), "f32", 1.0), ("y", (batch,), "i32", 1000), ("fc_w", (512, 1000), "f32", 0.04),
             ("fc_b", (1000,), "f32", 0.04)]
    for name, i, o, k, _, _ in resnet.convs():
        given.append((f"{name}_w", (o, i, k, k), "f32", (6 / (i * k * k)) ** 0.5))
        given += [(f"{name}_{part}", (o,), "f32", 1.0) for part in ("scale", "shift", "mean", "var")]
    return gpu_frame.case(f"ResNet-18, batch {batch} of {size} x {size}", given, turn=False, later=(2, 2e-2), kind="resnet",
                          flops=3 * batch * resnet.FLOPS * (size / 224) ** 2, batch=batch, size=size, rate=1e-3,
                          stages=resnet.STAGES)


CASES = [layers_case(name, layers, 4 if TINY else 512) for name, layers in NETS.items()]
if not TINY:
    CASES += [resnet_case(64, 64), resnet_case(32, 224)]


def torch_side(c, _, compiled=False, last=False):
    import torch
    torch._dynamo.reset()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    given, place = gpu_frame.host_arrays(c), gpu_frame.device()
    order = {"memory_format": torch.channels_last} if last else {}
    net = (resnet.torch_net(given).train() if c.kind == "resnet" else cnn.torch_net(c, given)).to(place, **order)
    x, y = torch.from_numpy(given["x"]).to(place), torch.from_numpy(given["y"]).to(place).long()
    if c.kind == "resnet":
        opt, x = torch.optim.SGD(net.parameters(), lr=c.rate, momentum=0.9), x.to(**order)
    else:
        opt = torch.optim.Adam(net.parameters(), lr=c.rate, **({} if compiled else {"fused": True}))

    def loss_of(x, y):
        seen = x if c.kind == "resnet" else x.float().unsqueeze(1) / 255
        return torch.nn.functional.cross_entropy(net(seen), y)

    return gpu_frame.waited(training.torch_training(net, opt, loss_of, x, y, compiled))


def torch_last(c, inputs):
    return torch_side(c, inputs, last=True)


def torch_compile_last(c, inputs):
    return torch_side(c, inputs, compiled=True, last=True)


PEERS = {"torch eager": torch_side, "torch eager nhwc": torch_last, "torch.compile nhwc": torch_compile_last}

if __name__ == "__main__":
    gpu_frame.main("gpu-cnn", CASES, PEERS)
