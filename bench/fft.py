"""Fourier transforms beside PyTorch (MKL, where its build has it) and SciPy (pocketfft): complex and real ones of sizes
that are powers of two, that have other small factors, and a prime; of one row and of many; along other axes; frames of
a signal.

    scripts/bench fft [--case PATTERN] [--peer PATTERN] [--threads 1,2] [--rounds N] [--ms N]
"""
import math

import frame


def fft(n, batch, line="fft"):
    flops = (5 if line == "fft" else 2.5) * batch * n * math.log2(n)
    return frame.Case(f"{line} {batch} x {n}", line=line, n=n, m=batch, flops=flops)


CASES = [*(fft(n, batch) for n in (64, 256, 1024, 4096, 1000, 1009) for batch in (1, 16, 256)),
         fft(65536, 1), fft(65536, 16), fft(1000000, 1),
         *(fft(n, batch, line) for line in ("rfft", "irfft") for n, batch in ((256, 16), (1024, 256), (1000, 16), (65536, 1))),
         frame.Case("fft2 512 x 512", line="fft2", n=512, m=512, flops=5 * 512**2 * 18),
         frame.Case("fft axis 1 of 1024 x 64", line="columns", n=64, m=1024, flops=5 * 65536 * 10),
         frame.Case("gradient of |rfft|^2 16 x 1024", line="gradient", peers="torch", n=1024, m=16),
         frame.Case("stft 10 s, 400 of 16 kHz, hop 160", line="stft", peers="torch", n=160000, m=1)]


def inputs(c, rng):
    import numpy as np
    shape = (c.m, c.n // 2 + 1 if c.line == "irfft" else c.n)
    x = rng.standard_normal(shape, dtype=np.float32)
    if c.line in ("rfft", "gradient", "stft"):
        return {"x": x}
    return {"x": x, "y": rng.standard_normal(shape, dtype=np.float32)}


def torch_side(c, inputs):
    import torch
    x = torch.from_numpy(inputs["x"])
    if "y" in inputs:
        x = torch.complex(x, torch.from_numpy(inputs["y"]))
    window = torch.hann_window(400)
    if c.line == "gradient":
        x.requires_grad_()
    f = {
        "fft": torch.fft.fft,
        "rfft": torch.fft.rfft,
        "irfft": lambda x: torch.fft.irfft(x, c.n),
        "fft2": torch.fft.fft2,
        "columns": lambda x: torch.fft.fft(x, dim=0),
        "gradient": lambda x: torch.autograd.grad(torch.fft.rfft(x).abs().square().sum(), x)[0],
        "stft": lambda x: torch.stft(x, 400, 160, window=window, return_complex=True),
    }[c.line]

    def run(n):
        for _ in range(n):
            y = f(x)
        return {"y": (torch.view_as_real(y) if y.is_complex() else y) / scale(c)}

    return run


def scipy_side(c, inputs):
    import numpy as np
    import scipy.fft
    x = inputs["x"]
    if "y" in inputs:
        x = (x + 1j * inputs["y"]).astype(np.complex64)
    f = {
        "fft": scipy.fft.fft,
        "rfft": scipy.fft.rfft,
        "irfft": lambda x: scipy.fft.irfft(x, c.n),
        "fft2": scipy.fft.fft2,
        "columns": lambda x: scipy.fft.fft(x, axis=0),
    }[c.line]

    def run(n):
        for _ in range(n):
            y = f(x)
        y = np.ascontiguousarray(y)
        return {"y": (np.stack((y.real, y.imag), -1) if np.iscomplexobj(y) else y) / np.float32(scale(c))}

    return run


def scale(c):
    """What brings results to the size of the inputs."""
    return 1 if c.line == "irfft" else c.n if c.line in ("fft2", "gradient") else 32


if __name__ == "__main__":
    frame.main("fft", CASES, inputs, {"torch": torch_side, "scipy": scipy_side})
