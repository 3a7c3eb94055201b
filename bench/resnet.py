"""ResNet-18 (width 64): one image of 224x224 in eval mode; training steps with a few small images.

    scripts/bench resnet [--case PATTERN] [--peer PATTERN] [--threads 1,2] [--rounds N] [--ms N]

Every side begins with the same weights. In eval mode batch norms have running statistics and PyTorch runs in
inference_mode; training is SGD with momentum, as networks of this kind are trained. PyTorch is eager with
channels first and with channels last, and compiled with channels last.
"""
import frame
from training import torch_training

STAGES = [64, 128, 256, 512]


def convs():
    """(name, inputs, outputs, window, stride, size of the output) of all convolutions, in order."""
    found, inputs, side = [("stem", 3, 64, 7, 2, 112)], 64, 56
    for s, width in enumerate(STAGES):
        for b in range(2):
            stride = 2 if s > 0 and b == 0 else 1
            side //= stride
            found.append((f"s{s}b{b}c1", inputs, width, 3, stride, side))
            found.append((f"s{s}b{b}c2", width, width, 3, 1, side))
            if stride == 2:
                found.append((f"s{s}b{b}down", inputs, width, 1, stride, side))
            inputs = width
    return found


FLOPS = 2 * sum(i * o * k * k * side * side for _, i, o, k, _, side in convs()) + 2 * 512 * 1000


def case(label, n, size=224, rate=0.0):
    flops = n * FLOPS * (size / 224) ** 2
    return frame.Case(f"ResNet-18, {label}", flops=3 * flops if rate else flops, batch=n, size=size, rate=rate,
                      stages=STAGES)


CASES = [case("batch 1", 1), case("training, 4 of 64x64", 4, 64, 0.001), case("training, 16 of 64x64", 16, 64, 0.001)]


def inputs(c, rng):
    import numpy as np
    found = {"x": rng.standard_normal((c.batch, 3, c.size, c.size)).astype(np.float32),
             "y": rng.integers(0, 1000, (c.batch,)).astype(np.int32)}
    for name, i, o, k, _, _ in convs():
        found[f"{name}_w"] = (rng.standard_normal((o, i, k, k)) * (2 / (i * k * k)) ** 0.5).astype(np.float32)
        found[f"{name}_scale"] = rng.uniform(0.5, 1, (o,)).astype(np.float32)
        found[f"{name}_shift"] = rng.uniform(-0.1, 0.1, (o,)).astype(np.float32)
        found[f"{name}_mean"] = rng.uniform(-0.1, 0.1, (o,)).astype(np.float32)
        found[f"{name}_var"] = rng.uniform(0.5, 1.5, (o,)).astype(np.float32)
    found["fc_w"] = (rng.standard_normal((512, 1000)) * 0.02).astype(np.float32)
    found["fc_b"] = rng.uniform(-0.1, 0.1, (1000,)).astype(np.float32)
    return found


def torch_net(inputs):
    import torch
    nn = torch.nn

    def array(name):
        return torch.from_numpy(inputs[name]).clone()

    class Unit(nn.Module):
        """A convolution and its norm."""

        def __init__(self, name, i, o, k, stride):
            super().__init__()
            self.conv = nn.Conv2d(i, o, k, stride=stride, padding=k // 2, bias=False)
            self.norm = nn.BatchNorm2d(o)
            self.conv.weight.data = array(f"{name}_w")
            self.norm.weight.data, self.norm.bias.data = array(f"{name}_scale"), array(f"{name}_shift")
            self.norm.running_mean, self.norm.running_var = array(f"{name}_mean"), array(f"{name}_var")

        def forward(self, x):
            return self.norm(self.conv(x))

    class Block(nn.Module):
        def __init__(self, c1, c2, down):
            super().__init__()
            self.c1, self.c2, self.down = c1, c2, down

        def forward(self, x):
            y = self.c2(torch.relu(self.c1(x)))
            return torch.relu(y + (x if self.down is None else self.down(x)))

    unit = {name: Unit(name, i, o, k, stride) for name, i, o, k, stride, _ in convs()}
    layers = [unit["stem"], nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    for s in range(len(STAGES)):
        for b in range(2):
            name = f"s{s}b{b}"
            layers.append(Block(unit[f"{name}c1"], unit[f"{name}c2"], unit.get(f"{name}down")))
    fc = nn.Linear(512, 1000)
    fc.weight.data, fc.bias.data = array("fc_w").t().contiguous(), array("fc_b")
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), fc).eval()


def torch_side(c, inputs, compiled=False, last=False):
    import torch
    torch._dynamo.reset()
    net, x = torch_net(inputs), torch.from_numpy(inputs["x"])
    if last:
        net, x = net.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    if c.rate:
        y = torch.from_numpy(inputs["y"]).long()
        opt = torch.optim.SGD(net.train().parameters(), lr=c.rate, momentum=0.9)
        return torch_training(net, opt, lambda x, y: torch.nn.functional.cross_entropy(net(x), y), x, y, compiled)
    call = torch.compile(net) if compiled else net

    def run(n):
        with torch.inference_mode():
            for _ in range(n):
                y = call(x)
        return {"y": y}
    return run


def torch_last(c, inputs):
    return torch_side(c, inputs, last=True)


def torch_compile_last(c, inputs):
    return torch_side(c, inputs, compiled=True, last=True)


PEERS = {"torch eager": torch_side, "torch eager nhwc": torch_last, "torch.compile nhwc": torch_compile_last}

if __name__ == "__main__":
    frame.main("resnet", CASES, inputs, PEERS, tolerance=1e-3, threads="1,2",
               yardsticks=("torch.compile nhwc",))
