"""tensorboard_peer.py FOLDER: TensorBoard's own readers on what tensorboard_content.lua wrote."""
import io
import math
import sys

from tensorboard.backend import process_graph
from tensorboard.backend.event_processing import plugin_event_multiplexer
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto import graph_pb2
from tensorboard.plugins.hparams import metadata, plugin_data_pb2

folder = sys.argv[1]
everything = {"tensors": 0, "images": 0, "histograms": 0, "scalars": 0}


def read(run):
    accumulator = EventAccumulator(folder + "/" + run, size_guidance=everything)
    accumulator.Reload()
    return accumulator


def same(a, b):
    assert a == b, (a, b)


def near(a, b):
    assert abs(a - b) <= 1e-6 * max(1, abs(b)), (a, b)


run = read("1")
tags = run.Tags()
same(sorted(tags["scalars"]), ["counts/not_finite", "empty/not_finite", "loss", "nan", "tensor"])
same([e.step for e in run.Scalars("loss")], list(range(1, 201)))
for e in run.Scalars("loss"):
    near(e.value, 1 / e.step)
same((run.Scalars("tensor")[0].step, run.Scalars("tensor")[0].value), (7, 0.25))
assert math.isnan(run.Scalars("nan")[0].value)
same(run.Scalars("counts/not_finite")[0].value, 3.0)
for name, value in (("train", 0.5), ("test", 0.75)):
    same([(e.step, e.value) for e in read("1/" + name).Scalars("both")], [(3, value)])

h = run.Histograms("counts")[0].histogram_value
same((h.min, h.max, h.num, h.sum, h.sum_squares), (1.0, 3.0, 6.0, 14.0, 36.0))
same(list(h.bucket), [1.0, 2.0, 3.0])
near(h.bucket_limit[0], 1 + 2 / 3)
same(run.Histograms("empty")[0].histogram_value.num, 0.0)
h = run.Histograms("huge")[0].histogram_value
same((list(h.bucket), h.bucket_limit[1]), ([1.0, 1.0], 1.7e308))

try:
    from PIL import Image
except ImportError:
    Image = None
grid, grey = run.Images("grid")[0], run.Images("grey")[0]
same((grid.width, grid.height, grey.width, grey.height), (3 * 3 + 2 * 2, 2 * 2 + 2, 2, 2))
if Image:
    pixels = Image.open(io.BytesIO(grid.encoded_image_string)).convert("RGB")
    same(pixels.size, (13, 6))
    same(pixels.getpixel((5, 0)), (18, 19, 20))
    pixels = Image.open(io.BytesIO(grey.encoded_image_string)).convert("RGB")
    same([pixels.getpixel((x, y)) for y in (0, 1) for x in (0, 1)],
         [(0, 0, 0), (128, 128, 128), (255, 255, 255), (255, 0, 255)])
same(run.Tensors("notes")[0].tensor_proto.string_val[0].decode(), "the **first** run: äöü")


def check_graph(name):
    """Every input is a node, names are unique, and what the graph page is given can be made."""
    g = read(name).Graph()
    names = [n.name for n in g.node]
    same(len(names), len(set(names)))
    for n in g.node:
        for i in n.input:
            assert i.lstrip("^") in names, (n.name, i)
    process_graph.prepare_graph_for_ui(g, limit_attr_size=1024, large_attrs_key="_too_large_attrs")
    same(graph_pb2.GraphDef.FromString(g.SerializeToString()), g)
    return {n.name: n for n in g.node}


g = check_graph("1")
weight = g["net/3[Residual]/layer[Linear]/weight"]
same(weight.op, "Variable")
same([d.size for d in weight.attr["_output_shapes"].list.shape[0].dim], [8, 8])
dot = g["net/1[Linear]/dot"]
same(list(dot.input), ["x", "net/1[Linear]/weight"])
same(dot.attr["operations"].s, b"1024")
assert dot.attr["where"].s.startswith(b"tests/program/tensorboard_content.lua:"), dot.attr["where"].s
g = check_graph("loop")
loop = [n for n in g.values() if n.op == "loop"][0]
assert any("loop_body/" in i for i in loop.input), loop.input

found = {}
for tag, m in run._plugin_to_tag_to_content["hparams"].items():
    found[tag] = plugin_data_pb2.HParamsPluginData.FromString(m)
experiment = found[metadata.EXPERIMENT_TAG].experiment
same([(i.name, i.type) for i in experiment.hparam_infos], [("amsgrad", 2), ("lr", 3), ("optimizer", 1)])
same([m.name.tag for m in experiment.metric_infos], ["loss"])
settings = found[metadata.SESSION_START_INFO_TAG].session_start_info.hparams
same((settings["lr"].number_value, settings["optimizer"].string_value, settings["amsgrad"].bool_value),
     (1e-3, "Adam", False))

multiplexer = plugin_event_multiplexer.EventMultiplexer().AddRunsFromDirectory(folder)
multiplexer.Reload()
same(sorted(multiplexer.Runs()), ["1", "1/test", "1/train", "loop"])
print("read by tensorboard")
