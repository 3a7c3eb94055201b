"""Files read: a table of 54 MB and of few digits, arrays, images one by one and in batches; a list of numbers as a tensor.

    scripts/bench data [--case PATTERN] [--peer PATTERN] [--threads 1,2] [--rounds N]

pandas' C engine and NumPy read tables and arrays, Pillow and torchvision decode images, PyTorch makes tensors of lists and
its DataLoader batches of files, with as many workers as there are threads. Files lie in a folder below TMPDIR and are warm.
"""
import os
import tempfile

import frame

FOLDER = os.path.join(tempfile.gettempdir(), "deepc-bench-data")
IMAGES, SIDE = 64, 320

CASES = [frame.Case(label, kind=kind, file=os.path.join(FOLDER, file), folder=FOLDER, images=IMAGES, peers=peers)
         for label, kind, file, peers in (
             ("csv 54 MB, columns", "csv", "long.csv", "pandas"),
             ("csv 54 MB, matrix f32", "matrix", "long.csv", "pandas"),
             ("csv 25 MB of 6 digits", "csv", "short.csv", "pandas"), ("npy 22 MB", "npy", "x.npy", "NumPy"),
             ("png 320 x 320", "image", "0.png", "Pillow|torch"),
             ("jpeg 320 x 320", "image", "0.jpg", "Pillow|torch"),
             ("64 jpegs in batches of 16", "batches", "jpg", "torch"),
             ("list of 1e6 numbers", "table", "", "NumPy|torch"))]


def make_files():
    import numpy as np
    from PIL import Image
    os.makedirs(FOLDER, exist_ok=True)
    if os.path.exists(f"{FOLDER}/done"):
        return
    rng = np.random.default_rng(0)
    x = rng.standard_normal((270000, 10))
    names = ",".join("abcdefghij")
    np.savetxt(f"{FOLDER}/long.csv", x, delimiter=",", fmt="%.17g", header=names, comments="")
    np.savetxt(f"{FOLDER}/short.csv", x, delimiter=",", fmt="%.6g", header=names, comments="")
    np.save(f"{FOLDER}/x.npy", x)
    y, z = np.mgrid[0:SIDE, 0:SIDE]
    for i in range(IMAGES):
        noise = rng.integers(0, 40, (SIDE, SIDE, 3))
        image = (np.stack([y, z, y + z], -1) // 3 + noise + i).clip(0, 255).astype("u1")
        Image.fromarray(image).save(f"{FOLDER}/{i}.jpg", quality=90)
        if i == 0:
            Image.fromarray(image).save(f"{FOLDER}/0.png")
    open(f"{FOLDER}/done", "w").close()


def inputs(c, rng):
    import numpy as np
    make_files()
    return {"unused": np.zeros(1, dtype=np.float32)}


def repeat(read, total):
    def run(n):
        for _ in range(n):
            last = read()
        return {"sum": total(last)}

    return run


def number(v):
    import numpy as np
    return np.array([v], dtype=np.float32)


def pandas_side(c, _):
    import numpy as np
    import pandas
    if c.kind == "csv":
        return repeat(lambda: pandas.read_csv(c.file), lambda t: number(np.abs(t.values).sum()))
    if c.kind == "matrix":
        return repeat(lambda: pandas.read_csv(c.file, dtype="f4").values, lambda t: number(np.abs(t).sum(dtype="f8")))
    raise frame.Missing(c.kind)


def numpy_side(c, _):
    import numpy as np
    if c.kind == "npy":
        return repeat(lambda: np.load(c.file), lambda x: number(np.abs(x).sum()))
    if c.kind == "table":
        values = [i * 0.5 for i in range(1000000)]
        return repeat(lambda: np.array(values, dtype="f4"), lambda x: number(x.sum(dtype="f8")))
    raise frame.Missing(c.kind)


def pillow_side(c, _):
    import numpy as np
    from PIL import Image
    if c.kind == "image":
        return repeat(lambda: np.asarray(Image.open(c.file)), lambda x: number(x.sum(dtype="f8")))
    raise frame.Missing(c.kind)


def torch_side(c, _):
    import torch
    if c.kind == "table":
        values = [i * 0.5 for i in range(1000000)]
        return repeat(lambda: torch.tensor(values), lambda x: number(x.double().sum()))
    import torchvision
    if c.kind == "image":
        return repeat(lambda: torchvision.io.read_image(c.file), lambda x: number(x.double().sum()))
    if c.kind != "batches":
        raise frame.Missing(c.kind)

    class Files(torch.utils.data.Dataset):
        def __len__(self):
            return c.images

        def __getitem__(self, i):
            return torchvision.io.read_image(f"{c.folder}/{i}.jpg")

    loader = torch.utils.data.DataLoader(Files(), batch_size=16, num_workers=torch.get_num_threads(),
                                         persistent_workers=True)
    return repeat(lambda: sum(x.double().sum() for x in loader), number)


PEERS = {"pandas": pandas_side, "NumPy": numpy_side, "Pillow": pillow_side, "torch": torch_side}

if __name__ == "__main__":
    frame.main("data", CASES, inputs, PEERS, tolerance=1e-4, threads="2", rounds=3)
