/* A checkpoint of a layer, an optimiser, a data set and values, loaded; and the same file as tensors. */
#include "tests/fuzz/fuzz_lua.h"

static const char code[] =
    "local dc, nn = require 'deepc', require 'deepc.nn'\n"
    "local optim, data = require 'deepc.optim', require 'deepc.data'\n"
    "local net = nn.Linear(2, 3)\n"
    "local opt = optim.Adam(net:parameters(), { lr = 0.1 })\n"
    "local rows = data.set(dc.iota 'f32[8, 2]', dc.iota 'i32[8]')\n"
    "return function(path)\n"
    "  pcall(dc.load, path)\n"
    "  pcall(dc.load, path, net, { partial = true })\n"
    "  local saved = dc.checkpoint(path, { net = net, opt = opt, data = rows })\n"
    "  saved:load()\n"
    "end\n";

void fuzz_one(const fuzz_input *in)
{
    const char *path = fuzz_file(in->at, in->n);
    fuzz_lua(code, path, strlen(path));
}
