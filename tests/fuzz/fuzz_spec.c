/* Texts that scripts give: products by letters, types, axes by names, signatures of functions. The first byte chooses. */
#include "tests/fuzz/fuzz_lua.h"

static const char code[] =
    "local dc = require 'deepc'\n"
    "local x, y = dc.iota('f32[b=2, i=3]'), dc.iota('f32[i=3, o=4]')\n"
    "local use = {\n"
    "  function(t) return dc.einsum(t, x, y) end,\n"
    "  function(t) return dc.einsum(t, x) end,\n"
    "  function(t) return dc.einsum(t, x, y, x) end,\n"
    "  function(t) return dc.zeros(t) end,\n"
    "  function(t) return x:reshape(t) end,\n"
    "  function(t) return x:sum(t) end,\n"
    "  function(t) return x:permute(t) end,\n"
    "  function(t) return x:slice { [t] = 1 } end,\n"
    "  function(t) return dc.fn(t, function(a) return a end) end,\n"
    "  function(t) return dc.fn(t, function(a) return a end)(x) end,\n"
    "  function(t) return dc.tensor({ 1, 2 }, t) end,\n"
    "}\n"
    "return function(text)\n"
    "  local v = use[(text:byte() or 0) % #use + 1](text:sub(2))\n"
    "  if type(v) ~= 'userdata' or not v.totable then return end\n"
    "  local n = 1.0\n"
    "  for _, size in ipairs(v.shape) do n = n * size end\n"
    "  if n <= 1000 then v:totable() end\n" /* Lua's own memory has no limit here */
    "end\n";

void fuzz_one(const fuzz_input *in)
{
    fuzz_lua(code, in->text, in->n);
}
