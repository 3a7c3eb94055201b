"""Files of each format beside the format's own library.

peer.py write DIR    files by torch, numpy, safetensors, soundfile and pillow, option by option, and what these read from
                     them: FILE.want, a line for each tensor: name, dtype, sizes, bytes as hexadecimal; - where it is left out
peer.py check DIR    reads with these libraries what deepc wrote (DIR/ours/FILE, its bytes in FILE.bytes)
"""
import collections
import csv
import io
import os
import sys
import warnings
import zipfile

import ml_dtypes
import numpy as np
import safetensors
import safetensors.torch
import soundfile
import torch
from PIL import Image

warnings.simplefilter("ignore")
NAMES = {"bool": "bool", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16",
         "uint32": "u32", "uint64": "u64", "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
         "complex64": "c64", "complex128": "c128"}
rng = np.random.default_rng(1)


def array(x):
    """Of a torch tensor: its values in order, resolved, floats of 8 bits as f32."""
    if not isinstance(x, torch.Tensor):
        return np.asarray(x, order="C"), NAMES[np.asarray(x).dtype.newbyteorder("=").name]
    x = x.detach().resolve_conj().resolve_neg().contiguous()
    if "float8" in str(x.dtype):
        x = x.to(torch.float32)
    name = NAMES[str(x.dtype).split(".")[1]]
    return (x.view(torch.int16) if x.dtype == torch.bfloat16 else x).numpy(), name


def want(path, tensors):
    with open(path + ".want", "w") as f:
        for name, x in tensors.items():
            if x is None:
                print(name, "-", sep="\t", file=f)
                continue
            a, dtype = array(x)
            a = a.astype(a.dtype.newbyteorder("<"))
            print(name, dtype, ",".join(map(str, a.shape)), a.tobytes("C").hex(), sep="\t", file=f)


# ---- torch ----

def flat(value, path, out):
    """Tensors by their paths, as deepc names them; None for those that have no meaning there."""
    if isinstance(value, torch.Tensor):
        left = value.is_sparse or value.layout != torch.strided or value.is_quantized or value.is_meta
        out[path] = None if left or value.dim() > 8 or "float4" in str(value.dtype) else value
    elif isinstance(value, dict):
        for key, item in value.items():
            if isinstance(key, (str, int)):
                flat(item, (path + "." if path else "") + str(key), out)
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            flat(item, (path + "." if path else "") + str(i + 1), out)


def dtypes_of_torch():
    out = {}
    for name in NAMES:
        n = 24 * torch.empty(0, dtype=getattr(torch, name)).element_size()
        bits = torch.from_numpy(rng.integers(0, 2 if name == "bool" else 256, n, dtype=np.uint8))
        out[name] = bits.view(getattr(torch, name)).reshape(4, 6)
    return out


def cases_of_torch():
    all_types = dtypes_of_torch()
    yield "dtypes", all_types
    yield "turned", {k: v.t() for k, v in all_types.items()}
    yield "strided", {k: v[1::2, ::3] for k, v in all_types.items()}
    yield "flipped", {k: v.flip(0) for k, v in all_types.items()}
    yield "expanded", {k: v[:1].expand(3, 6) for k, v in all_types.items()}
    yield "unfolded", {k: v.reshape(-1).unfold(0, 4, 1) for k, v in all_types.items()}
    yield "conjugated", {k: v.conj() for k, v in all_types.items() if v.is_complex()}
    yield "parts", {k: v.clone().conj().imag for k, v in all_types.items() if v.is_complex()}
    yield "parameters", {"p": torch.nn.Parameter(torch.ones(2)), "b": torch.nn.Buffer(torch.ones(3))}
    yield "model", torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)).state_dict()
    yield "float8", {n: torch.arange(256, dtype=torch.uint8).view(getattr(torch, n)) for n in
                     ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
                      "float4_e2m1fn_x2")}
    yield "left_out", {"w": torch.ones(1), "coo": torch.eye(3).to_sparse(), "csr": torch.eye(3).to_sparse_csr(),
                       "q": torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8),
                       "m": torch.empty(2, device="meta"), "axes": torch.ones([1] * 12)}
    yield "values", {"w": torch.ones(1), "c": collections.Counter("hello"), "s": {1, 2}, "b": b"\xff\0", "z": 1 + 2j,
                     "a": bytearray(b"\xfe"), "\0": 1, "big": 1 << 80, (1, 2): 3, None: 4, 0.5: torch.zeros(1).item(),
                     "d": torch.device("cuda", 1), "t": torch.float32, "l": torch.strided,
                     "o": collections.OrderedDict(x=torch.zeros(2)), "i": float("inf")}
    yield "lists", [torch.ones(1), (torch.zeros(2), {"x": torch.ones(3)})]


def write_torch(folder):
    for name, value in cases_of_torch():
        for kind, options in ("zip", {}), ("legacy", {"_use_new_zipfile_serialization": False}), \
                ("protocol4", {"pickle_protocol": 4}):
            path = f"{folder}/{name}_{kind}.pt"
            try:
                torch.save(value, path, **options)
                read = torch.load(path) if kind != "protocol4" else value
            except Exception as e:
                print(f"torch does not write or read {name}, {kind}: {str(e)[:80]}")
                os.path.exists(path) and os.remove(path)
                continue
            out = {}
            flat(read, "", out)
            want(path, out)
    for name, method in ("deflated", zipfile.ZIP_DEFLATED), ("big", zipfile.ZIP_STORED):
        path = f"{folder}/dtypes_{name}.pt"
        with zipfile.ZipFile(f"{folder}/dtypes_zip.pt") as z, zipfile.ZipFile(path, "w", method) as to:
            for entry in z.namelist():
                to.writestr(entry, b"big" if name == "big" and entry.endswith("byteorder") else z.read(entry))
        out = {}
        flat(torch.load(path), "", out)
        want(path, {k: v for k, v in out.items() if name != "big" or k != "bool"})


# ---- numpy, safetensors ----

def arrays():
    for name in NAMES:
        if name == "bfloat16":
            yield name, rng.integers(0, 1 << 15, (3, 4)).astype(np.uint16).view(ml_dtypes.bfloat16)
        else:
            size = np.dtype(name).itemsize
            high = 2 if name == "bool" else 256
            yield name, rng.integers(0, high, 12 * size, dtype=np.uint8).view(name).reshape(3, 4)


def write_numpy(folder):
    forms = {"plain": lambda a: a, "fortran": np.asfortranarray, "scalar": lambda a: a[0, 0].reshape(()),
             "empty": lambda a: a[:0], "big": lambda a: a.astype(a.dtype.newbyteorder(">"))}
    for form, f in forms.items():
        made = {k: f(v) for k, v in arrays() if form != "big" or k != "bfloat16"}
        bits = {k: v.view(np.int16) if k == "bfloat16" else v for k, v in made.items()}

        def put(path, bits=bits):
            want(path, bits)
            text = open(path + ".want").read()
            open(path + ".want", "w").write(text.replace("bfloat16\ti16", "bfloat16\tbf16"))
        np.savez(f"{folder}/{form}.npz", **made)
        np.savez_compressed(f"{folder}/{form}_z.npz", **made)
        put(f"{folder}/{form}.npz")
        put(f"{folder}/{form}_z.npz")
        for method in "BZIP2", "LZMA":
            path = f"{folder}/{form}_{method}.npz"
            with zipfile.ZipFile(path, "w", getattr(zipfile, "ZIP_" + method)) as z:
                for name, a in made.items():
                    with z.open(name + ".npy", "w") as to:
                        np.lib.format.write_array(to, a, version=(2, 0))
            put(path)
        for name, a in made.items():
            path = f"{folder}/{form}_{name}.npy"
            np.save(path, a)
            with open(path, "ab") as to:
                np.save(to, a)  # another one behind it
            want(path, {"value": bits[name]})
            if name == "bfloat16":
                text = open(path + ".want").read()
                open(path + ".want", "w").write(text.replace("value\ti16", "value\tbf16"))
    np.savez(f"{folder}/left_out.npz", a=np.ones(2), t=np.array(["x", "yy"]), b=np.array([b"q"]),
             r=np.zeros(2, [("x", "<f4"), ("y", "<i8", (2,))]), o=np.array([1, None], object),
             d=np.array(["2020-01-01"], "M8[D]"), axes=np.zeros([1] * 10), v=np.zeros(2, "V5"))
    want(f"{folder}/left_out.npz", dict(a=np.ones(2), **{k: None for k in ("t", "b", "r", "o", "d", "axes", "v")}))


def write_safetensors(folder):
    tensors = {k: v for k, v in dtypes_of_torch().items() if k != "complex128"}
    for n in "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz":
        tensors[n] = torch.arange(256, dtype=torch.uint8).view(getattr(torch, n))
    path = f"{folder}/all.safetensors"
    safetensors.torch.save_file(tensors, path, metadata={"a": "b"})
    want(path, safetensors.torch.load_file(path))


# ---- sounds, images ----

def write_media(folder):
    x = rng.random((300, 2)) * 1.8 - 0.9
    for form in "WAV", "WAVEX", "RF64":
        for sub in soundfile.available_subtypes(form):
            for endian in "FILE", "BIG":
                path = f"{folder}/{form}_{sub}_{endian}.wav"
                try:
                    soundfile.write(path, x, 8000, format=form, subtype=sub, endian=endian)
                    y = soundfile.read(path, dtype="float32", always_2d=True)[0]
                except Exception:
                    os.path.exists(path) and os.remove(path)
                    continue
                want(path, {"value": None if "ADPCM" in sub else y})
    for mode in "1", "L", "LA", "P", "RGB", "RGBA", "I;16":
        n = {"LA": 2, "RGB": 3, "RGBA": 4}.get(mode, 1)
        a = rng.integers(0, 256, (9, 7, n), dtype=np.uint8)
        image = Image.fromarray(a.squeeze() if n != 2 else a, {"1": "L", "P": "L", "I;16": "L"}.get(mode, mode))
        if mode == "I;16":
            image = Image.fromarray(rng.integers(0, 65536, (9, 7), dtype=np.uint16))
        for options in {}, {"optimize": True}, {"compress_level": 0}:
            path = f"{folder}/{mode.replace(';', '')}_{len(options)}{''.join(options)}.png"
            (image.convert(mode) if mode in "1P" else image).save(path, **options)
            read = Image.open(path)
            b = np.asarray(read.convert("RGB") if mode == "P" else read.convert("L") if mode == "1" else read)
            want(path, {"value": b.reshape(9, 7, -1)})
    for mode, n in ("L", 1), ("RGB", 3), ("CMYK", 4):
        a = np.kron(rng.integers(0, 256, (2, 3, n), dtype=np.uint8), np.ones((8, 8, 1), np.uint8))
        for options in {}, {"progressive": True}, {"subsampling": 0}, {"optimize": True}:
            path = f"{folder}/{mode}_{''.join(options)}.jpg"
            Image.fromarray(a.squeeze(), mode).save(path, quality=95, **options)
            read = Image.open(path)
            b = np.asarray(read.convert("RGB") if mode == "CMYK" else read)
            want(path, {"value": b.reshape(16, 24, -1)})


# ---- what deepc wrote ----

def read_ours(path, dtype):
    """Its bytes, as the format's own library reads them."""
    if path.endswith(".npy"):
        return np.load(path).tobytes()
    if path.endswith(".npz"):
        return np.load(path)["x"].tobytes()
    if path.endswith(".safetensors"):
        x = safetensors.torch.load_file(path)["x"]
        return x.contiguous().view(torch.uint8).numpy().tobytes() if x.dtype != torch.bool else x.numpy().tobytes()
    if path.endswith(".csv"):
        rows = [row[0] for row in csv.reader(open(path))][1:]
        if dtype == "bool":
            return bytes(row == "true" for row in rows)
        kind = {"bf16": ml_dtypes.bfloat16}.get(dtype) or np.dtype(dtype.replace("i", "int").replace("uint", "uint") if
                                                               dtype[0] in "i" else dtype.replace("u", "uint") if
                                                               dtype[0] == "u" else dtype.replace("f", "float"))
        values = [int(row) if dtype[0] in "iu" else float(row or "nan") for row in rows]
        return np.array(values, dtype=kind).tobytes()
    if path.endswith(".wav"):
        return soundfile.read(path, dtype="float32", always_2d=True)[0].tobytes()
    image = Image.open(path)
    return np.asarray(image).tobytes()


def check(folder):
    bad = done = 0
    for name in sorted(os.listdir(folder)):
        if name.endswith(".bytes"):
            continue
        path, dtype = f"{folder}/{name}", name.split(".")[0].split("_")[-1]
        expected = open(path + ".bytes", "rb").read()
        try:
            same = read_ours(path, dtype) == expected
        except Exception as e:
            same = False
            print(f"{name}: {e}")
        if not same:
            print(f"{name}: its own library reads something else")
            bad += 1
        done += 1
    print(f"{done - bad} passed, {bad} failed")
    return bad


if sys.argv[1] == "write":
    for what in write_torch, write_numpy, write_safetensors, write_media:
        folder = f"{sys.argv[2]}/{what.__name__[6:]}"
        os.makedirs(folder, exist_ok=True)
        what(folder)
else:
    sys.exit(check(sys.argv[2] + "/ours") != 0)
