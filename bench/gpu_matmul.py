"""Products of matrices and the convolutions of ResNet-18 on a GPU, beside PyTorch, which calls cuBLAS and cuDNN.

    scripts/bench gpu-matmul [--tiny] [--case PATTERN] [--peer PATTERN] [--rounds N] [--ms N]

f32 is f32 on both sides (PyTorch with TF32 off); tf32 beside PyTorch with TF32 on; f16 and bf16 add in f32. Whether
deepc's kernel uses tensor cores is seen in its text.
"""
import frame
import gpu_frame
import resnet

SIZES = (32,) if gpu_frame.TINY else (1024, 2048, 4096, 8192)
ROWS = [] if gpu_frame.TINY else [("16 x 1024 letters, fc1", 16384, 3072, 768), ("16 x 1024 letters, fc2", 16384, 768, 3072)]
BATCH, SIDE = (1, 16) if gpu_frame.TINY else (64, 1)
CLOSE = {"f32": 1e-4, "tf32": 2e-3, "f16": 2e-3, "bf16": 1e-2}


def product(dtype, label, m, n, k):
    return gpu_frame.case(f"{dtype} {label}", [("a", (m, k), dtype, 1.0), ("b", (k, n), dtype, k ** -0.5)],
                          flops=2 * m * n * k, kind="product", dtype=dtype, m=m, n=n, k=k, tolerance=CLOSE[dtype],
                          peers="torch.matmul")


def convolutions():
    seen = {}
    for _, i, o, k, stride, side in resnet.convs():
        side = max(side // SIDE, 1)
        seen.setdefault((i, o, k, stride, side), None)
    for i, o, k, stride, side in list(seen)[:2 if gpu_frame.TINY else None]:
        yield gpu_frame.case(f"conv {i} to {o}, {k} x {k} by {stride}, to {side} x {side}",
                             [("x", (BATCH, i, side * stride, side * stride), "f32", 1.0),
                              ("w", (o, i, k, k), "f32", (i * k * k) ** -0.5)],
                             flops=2 * BATCH * i * o * k * k * side * side, kind="conv", dtype="f32", inputs_=i, outputs=o,
                             window=k, stride=stride, batch=BATCH, from_=side * stride, side=side, tolerance=1e-4,
                             peers="channels")


CASES = [product(d, f"{s}x{s}x{s}", s, s, s) for d in CLOSE for s in SIZES] + \
    [product(d, *row) for d in CLOSE for row in ROWS] + list(convolutions())


def exact(c):
    import torch
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = c.dtype == "tf32"


def matmul(c, _):
    import torch
    exact(c)
    return gpu_frame.in_turn(c, lambda t: {"y": torch.matmul(t["a"], t["b"])})


def conv(c, _, last=False):
    import torch
    exact(c)
    torch.backends.cudnn.benchmark = True
    order = torch.channels_last if last else torch.contiguous_format

    def function(t):
        return {"y": torch.nn.functional.conv2d(t["x"].contiguous(memory_format=order), t["w"], stride=c.stride,
                                                padding=c.window // 2).contiguous()}
    return gpu_frame.in_turn(c, function)


PEERS = {"torch.matmul": matmul, "torch conv2d, channels second": conv}

if __name__ == "__main__":
    gpu_frame.main("gpu-matmul", CASES, PEERS)
