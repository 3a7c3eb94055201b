"""One epoch of the example fashion_mnist.lua with its data loader: 60000 images shuffled, in batches of
64, the loss of each step read.

    scripts/bench epoch [--peer PATTERN] [--threads 1,2] [--rounds N]

PyTorch eager with its DataLoader in the process, as it is mostly used (a sample at a time, collated), and
with a sampler of whole batches, which is faster. Weights begin the same; orders differ, so the mean loss
of the epoch is compared roughly.
"""
import frame
import mlp

SIZES, BATCH, IMAGES = (784, 128, 64, 10), 64, 60000
CASES = [frame.Case("784-128-64-10 batch 64", sizes=list(SIZES), batch=BATCH, rule="adam", rate=1e-3)]


def inputs(c, rng):
    import numpy as np
    found = mlp.inputs(c, rng)
    found["x"] = rng.integers(0, 256, (IMAGES, 28, 28), dtype=np.uint8)
    found["y"] = rng.integers(0, 10, (IMAGES,), dtype=np.int32)
    return found


def torch_side(c, inputs, whole=False):
    import torch
    from torch.utils import data
    net = mlp.torch_net(c, inputs)
    opt = torch.optim.Adam(net.parameters(), lr=c.rate, fused=True)
    images = data.TensorDataset(torch.from_numpy(inputs["x"]), torch.from_numpy(inputs["y"]).long())
    if whole:
        order = data.BatchSampler(data.RandomSampler(images), c.batch, drop_last=True)
        loader = data.DataLoader(images, sampler=order, batch_size=None)
    else:
        loader = data.DataLoader(images, batch_size=c.batch, shuffle=True, drop_last=True)

    def run(n):
        for _ in range(n):
            total, steps = 0.0, 0
            for x, y in loader:
                loss = torch.nn.functional.cross_entropy(net(x.float() / 255), y)
                opt.zero_grad()
                loss.backward()
                opt.step()
                total, steps = total + loss.item(), steps + 1
        return {"loss": total / steps}

    return run


def torch_whole(c, inputs):
    return torch_side(c, inputs, whole=True)


PEERS = {"torch eager, DataLoader": torch_side, "torch eager, DataLoader of batches": torch_whole}

if __name__ == "__main__":
    frame.main("epoch", CASES, inputs, PEERS, tolerance=2e-2, threads="1,2", rounds=3)
