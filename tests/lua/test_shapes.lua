-- Arranging elements: names, sizes known at run time, other dtypes, edges, errors. Values and gradients are compared
-- with those of PyTorch and NumPy: tests/peers/cases/shapes.lua.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local raises = require "tests.lua.check".raises

local function type_of(x)
  return tostring(x):match "[^\n]*$"
end

-- f(x) in a typed function.
local function typed(f, of)
  return dc.fn(("f(x: %s) -> f32[...]"):format(of), function(x) return f(x) end)
end

TestArrange = {}

function TestArrange:test_names()
  local x = dc.zeros "f32[a=2, b=3, c=3]"
  lu.assertEquals(type_of(x:diagonal(0, "b", "c")), "f32[a=2, 3]")
  lu.assertEquals(type_of(dc.zeros "f32[n=3, n=3]":diag()), "f32[n=3]")
  lu.assertEquals(type_of(dc.zeros "f32[n=3]":diag()), "f32[3, 3]")
  lu.assertEquals(type_of(x:trace(0, 2, 3)), "f32[a=2]")
  lu.assertEquals(type_of(x:tile(2, 1, 1)), "f32[4, b=3, c=3]")
  lu.assertEquals(type_of(x:repeat_interleave(2, "b")), "f32[a=2, 6, c=3]")
  lu.assertEquals(type_of(x:movedim("c", 1)), "f32[c=3, a=2, b=3]")
  lu.assertEquals(type_of(x:rot90(1, { "a", "b" })), "f32[b=3, a=2, c=3]")
  lu.assertEquals(type_of(x:unfold("b", 2)), "f32[a=2, 2, c=3, 2]")
  lu.assertEquals(type_of(x:unfold("b", 1)), "f32[a=2, b=3, c=3, 1]")
  lu.assertEquals(type_of(dc.outer(dc.zeros "f32[a=2]", dc.zeros "f32[b=3]")), "f32[a=2, b=3]")
  lu.assertEquals(type_of(dc.inner(x, dc.zeros "f32[d=4, c=3]")), "f32[a=2, b=3, d=4]")
end

function TestArrange:test_empty_and_scalars()
  lu.assertEquals(dc.zeros "f32[0]":diag(-2).shape, { 2, 2 })
  lu.assertEquals(dc.zeros "f32[0]":diag().shape, { 0, 0 })
  lu.assertEquals(dc.zeros "f32[2, 3]":diag(7).shape, { 0 })
  lu.assertEquals(dc.zeros "f32[0, 3]":trace():item(), 0)
  lu.assertEquals(dc.zeros "f32[2, 0]":tile(3, 2).shape, { 6, 0 })
  lu.assertEquals(dc.zeros "f32[2, 3]":tile(0, 1).shape, { 0, 3 })
  lu.assertEquals(dc.zeros "f32[3]":repeat_interleave(0).shape, { 0 })
  lu.assertEquals(dc.zeros "f32[3]":repeat_interleave({ 0, 0, 0 }, 1).shape, { 0 })
  lu.assertEquals(dc.tensor(5):repeat_interleave(2):totable(), { 5, 5 })
  lu.assertEquals(dc.outer(dc.zeros "f32[0]", dc.zeros "f32[2]").shape, { 0, 2 })
  lu.assertEquals(dc.dot(dc.zeros "f32[0]", dc.zeros "f32[0]"):item(), 0)
  lu.assertEquals(dc.linspace(1, 2, 0).shape, { 0 })
  lu.assertEquals(dc.arange(3, 0).shape, { 0 })
  lu.assertEquals(dc.tensor { 1, 2 }:vander(0).shape, { 2, 0 })
  local x, y = dc.meshgrid { dc.zeros "f32[0]", dc.iota "f32[2]" }
  lu.assertEquals({ x.shape, y.shape }, { { 0, 2 }, { 0, 2 } })
end

function TestArrange:test_dtypes()
  for _, dtype in ipairs { "bool", "i8", "u8", "i64", "u64", "f16", "bf16", "f64" } do
    local one = dtype == "bool" and true or 1
    local x = dc.tensor({ one, one }, dtype)
    lu.assertEquals(type_of(x:diag(1)), dtype .. "[3, 3]")
    lu.assertEquals(x:diag():diag():totable(), x:totable())
    lu.assertEquals(type_of(x:tile(2, 2)), dtype .. "[2, 4]")
    lu.assertEquals(type_of(x:repeat_interleave(3)), dtype .. "[6]")
    lu.assertEquals(type_of(x:unfold(1, 2)), dtype .. "[1, 2]")
    lu.assertEquals(type_of(x:diag():rot90()), dtype .. "[2, 2]")
    if dtype ~= "bool" then
      lu.assertEquals(type_of(dc.outer(x, x)), dtype .. "[2, 2]")
      lu.assertEquals(type_of(dc.arange(0, 3, 1, dtype)), dtype .. "[3]")
      lu.assertEquals(x:dot(x):cast("f64"):item(), 2)
    end
  end
  lu.assertEquals(dc.tensor({ 200, 200 }, "u8"):diag():trace():item(), 400) -- as :sum, i32
  lu.assertEquals(dc.linspace(0, 1, 3, "f16"):totable(), { 0, 0.5, 1 })
  lu.assertEquals(dc.arange(0, 4, 1, "u8"):totable(), { 0, 1, 2, 3 })
  lu.assertEquals({ dc.arange(3).dtype, dc.arange(0, 3, 0.5).dtype, dc.arange(3.0).dtype }, { "i32", "f32", "f32" })
end

function TestArrange:test_sizes_known_at_run_time()
  local tile = typed(function(x) return x:tile(2) end, "f32[t <= 8]")
  lu.assertEquals(tile({ 1, 2, 3 }):totable(), { 1, 2, 3, 1, 2, 3 })
  lu.assertEquals(tile({ 4 }):totable(), { 4, 4 })
  local each = typed(function(x) return x:repeat_interleave(2) end, "f32[t <= 8]")
  lu.assertEquals(each({ 1, 2, 3 }):totable(), { 1, 1, 2, 2, 3, 3 })
  local turned = typed(function(x) return x:rot90() end, "f32[t <= 8, 2]")
  lu.assertEquals(turned({ { 1, 2 }, { 3, 4 }, { 5, 6 } }):totable(), { { 2, 4, 6 }, { 1, 3, 5 } })
  local products = typed(function(x) return dc.outer(x, dc.tensor { 1, 10 }) end, "f32[t <= 8]")
  lu.assertEquals(products({ 1, 2, 3 }):totable(), { { 1, 10 }, { 2, 20 }, { 3, 30 } })
  raises("diag: the size of axis 1 of f32[t <= 8] is known when the function runs only", "DC0311", function()
    typed(function(x) return x:diag() end, "f32[t <= 8]") { 1 }
  end)
end

function TestArrange:test_mapped_and_in_loops()
  local diagonals = dc.vmap(function(x) return x:diag(), x:tile(2), x:unfold(1, 2) end)
  local matrices, twice, windows = diagonals(dc.tensor { { 1, 2 }, { 3, 4 } })
  lu.assertEquals(matrices:totable(), { { { 1, 0 }, { 0, 2 } }, { { 3, 0 }, { 0, 4 } } })
  lu.assertEquals(twice:totable(), { { 1, 2, 1, 2 }, { 3, 4, 3, 4 } })
  lu.assertEquals(windows:totable(), { { { 1, 2 } }, { { 3, 4 } } })
  local f = typed(function(x) return dc.fori(3, function(_, y) return y:rot90() end, x) end, "f32[2, 2]")
  lu.assertEquals(f({ { 1, 2 }, { 3, 4 } }):totable(), { { 3, 1 }, { 4, 2 } })
end

function TestArrange:test_second_gradients()
  local x, y = dc.tensor { 1, 2, 3 }, dc.tensor { 4, 5, 7 }
  local slope = dc.grad((dc.cross(x, y) ^ 2):sum(), x)
  local curve = dc.grad(slope:sum(), x)
  -- |x × y|² = |x|² |y|² - (x·y)²: twice |y|² less twice y sum(y)
  lu.assertEquals(curve:totable(), { 2 * 90 - 2 * 4 * 16, 2 * 90 - 2 * 5 * 16, 2 * 90 - 2 * 7 * 16 })
end

function TestArrange:test_steps_and_names_wherever_a_slice_is()
  local x = dc.iota "i32[a=2, t=6]"
  lu.assertEquals(x[{ {}, { 6, 1, -2 } }]:totable()[1], { 5, 3, 1 })
  lu.assertEquals(x:slice { t = { -1, 1, -4 } }:totable()[1], { 5, 1 })
  lu.assertEquals(x:put({ t = { 6, 1, -2 } }, dc.tensor({ 10, 20, 30 }, "i32")):totable()[2], { 0, 30, 2, 20, 4, 10 })
  lu.assertEquals(x:put({ 1, { 1, 6, 5 } }, 9):totable(), { { 9, 1, 2, 3, 4, 9 }, { 0, 1, 2, 3, 4, 5 } })
end

TestPad = {}

function TestPad:test_modes()
  local x = dc.iota "i32[t=4]"
  for mode, want in pairs {
    reflect = { 2, 1, 0, 1, 2, 3, 2, 1, 0 }, symmetric = { 1, 0, 0, 1, 2, 3, 3, 2, 1 },
    replicate = { 0, 0, 0, 1, 2, 3, 3, 3, 3 }, edge = { 0, 0, 0, 1, 2, 3, 3, 3, 3 },
    circular = { 2, 3, 0, 1, 2, 3, 0, 1, 2 }, wrap = { 2, 3, 0, 1, 2, 3, 0, 1, 2 },
    constant = { 0, 0, 0, 1, 2, 3, 0, 0, 0 },
  } do
    local y = x:pad({ t = { 2, 3 } }, { mode = mode })
    lu.assertEquals(y:totable(), want, mode)
    lu.assertEquals(type_of(y), "i32[9]")
  end
  lu.assertEquals(x:pad({ 1 }, { value = 7 }):totable(), { 7, 0, 1, 2, 3, 7 })
  lu.assertEquals(type_of(dc.zeros "f32[n=2, t=4]":pad({ t = 1 }, { mode = "wrap" })), "f32[n=2, 6]")
  lu.assertEquals(dc.tensor({ true, false }, "bool"):pad({ { 1, 0 } }, { mode = "circular" }):totable(),
    { false, true, false })
end

function TestPad:test_sizes_known_at_run_time()
  for mode, want in pairs { replicate = { 1, 1, 2, 3, 3 }, circular = { 3, 1, 2, 3, 1 } } do
    local f = typed(function(x) return dc.concat { dc.ones "f32[1]", x }:pad({ 1 }, { mode = mode }) end, "f32[t <= 8]")
    lu.assertEquals(f({ 2, 3 }):totable(), want, mode)
  end
  raises('pad: a margin of 2 of mode "circular" needs 2 elements, axis 1 has t, which may be 1', "DC0311", function()
    typed(function(x) return x:pad({ 2 }, { mode = "circular" }) end, "f32[t <= 8]") { 1 }
  end)
end

function TestPad:test_wrong()
  local x = dc.zeros "f32[3]"
  raises('pad: a margin of 3 of mode "reflect" needs 4 elements, axis 1 has 3', "DC0301", dc.pad, x, { 3 },
    { mode = "reflect" })
  raises('pad: a margin of 1 of mode "replicate" needs 1 element, axis 1 has 0', "DC0301", dc.pad, dc.zeros "f32[0]",
    { 1 }, { mode = "edge" })
  raises('pad: a value is for mode "constant", not "reflect"', "DC0101", dc.pad, x, { 1 },
    { mode = "reflect", value = 1 })
  raises('pad: mode is "constant", "reflect", "symmetric", "replicate" or "circular", not the string \'mirror\'',
    "DC0101", dc.pad, x, { 1 }, { mode = "mirror" })
end

function TestArrange:test_masks_are_no_index()
  local x = dc.zeros "f32[3]"
  local function hint_of(f) return select(2, pcall(f)).hint end
  lu.assertEquals(hint_of(function() return x[x:gt(0)] end),
    "x:compact(mask, { bound = n }) has what it selects; dc.where(mask, x, 0) keeps the shape")
  lu.assertEquals(hint_of(function() return x:put(x:gt(0), 1) end), "dc.where(mask, v, x) has v where the mask is true")
  lu.assertEquals(hint_of(function() return x:put({ x:gt(0) }, 1) end),
    "dc.where(mask, v, x) has v where the mask is true")
end

function TestArrange:test_wrong()
  local x, m = dc.zeros "f32[3]", dc.zeros "f32[2, 3]"
  for text, case in pairs {
    ["diag: a vector or a matrix is needed, not f32[2, 2, 2]"] = { "DC0301", dc.diag, dc.zeros "f32[2, 2, 2]" },
    ["diag: the offset is an integer, not 0.5"] = { "DC0101", dc.diag, x, 0.5 },
    ["diagonal: two axes are needed, f32[3] has 1"] = { "DC0101", dc.diagonal, x },
    ["diagonal: axis 2 is given twice"] = { "DC0101", dc.diagonal, m, 0, 2, -1 },
    ["trace: axis 4 of f32[2, 3]: axes are 1 to 2, -1 is the last, or a name"] = { "DC0103", dc.trace, m, 0, 4 },
    ["outer: right is f32[2, 3]; a vector is needed"] = { "DC0301", dc.outer, x, m },
    ["dot: sizes differ: f32[3] and f32[2]"] = { "DC0301", dc.dot, x, dc.zeros "f32[2]" },
    ["dot: vectors are needed, not f32[2, 3] and f32[3]"] = { "DC0301", dc.dot, m, x },
    ["kron: dtypes differ: f32[3] and i32[2]"] = { "DC0202", dc.kron, x, dc.iota(2) },
    ["inner: the last axes differ: f32[2, 3] and f32[2]"] = { "DC0301", dc.inner, m, dc.zeros "f32[2]" },
    ["cross: axis 1 of f32[2] has 2 elements, 3 are needed"] = { "DC0301", dc.cross, x, dc.zeros "f32[2]" },
    ["meshgrid: vector 2 is f32[2, 3]; a vector is needed"] = { "DC0301", dc.meshgrid, { x, m } },
    ['meshgrid: indexing is "ij" or "xy", not \'yx\''] = { "DC0101", dc.meshgrid, { x }, { indexing = "yx" } },
    ["tile: a number of times is an integer from 0 on, not -1"] = { "DC0101", dc.tile, x, -1 },
    ["repeat_interleave: 2 counts for the 3 elements of axis 1"] = { "DC0301", dc.repeat_interleave, x, { 1, 2 }, 1 },
    ["repeat_interleave: the counts are i32[3], numbers are needed"] = { "DC0101", dc.repeat_interleave, x,
      dc.iota(3) },
    ["movedim: 1 axes are to go to 2 places"] = { "DC0101", dc.movedim, m, 1, { 1, 2 } },
    ["movedim: axis 1 is given twice"] = { "DC0101", dc.movedim, m, { 1, 1 }, { 1, 2 } },
    ["rot90: a list of two axes is needed, not 1"] = { "DC0101", dc.rot90, m, 1, 1 },
    ["unfold: a window of 4 is larger than axis 1 of f32[3]"] = { "DC0301", dc.unfold, x, 1, 4 },
    ["unfold: the step is an integer from 1 on, not 0"] = { "DC0101", dc.unfold, x, 1, 2, 0 },
    ["linspace: how many numbers is an integer from 0 on, not -1"] = { "DC0101", dc.linspace, 0, 1, -1 },
    ["linspace: the first number is a number or a scalar of floats, not f32[3]"] = { "DC0101", dc.linspace, x, 1, 3 },
    ["linspace: a dtype of floats is needed, not 'i32'"] = { "DC0101", dc.linspace, 0, 1, 3, "i32" },
    ["logspace: the base is a number, not 'e'"] = { "DC0101", dc.logspace, 0, 1, 3, { base = "e" } },
    ["arange: steps of 0 never come to 5"] = { "DC0101", dc.arange, 0, 5, 0 },
    ["arange: 200 does not fit i8"] = { "DC0101", dc.arange, 0, 201, 100, "i8" },
    ["vander: a vector is needed, not f32[2, 3]"] = { "DC0301", dc.vander, m },
  } do
    raises(text, case[1], function() case[2](table.unpack(case, 3)) end)
  end
end

TestDistances = {}

function TestDistances:test_names_dtypes_and_sizes()
  local x, y = dc.zeros "f32[b=2, n=3, d=4]", dc.zeros "f32[b=2, m=5, d=4]"
  lu.assertEquals(type_of(dc.cdist(x, y)), "f32[b=2, n=3, m=5]")
  lu.assertEquals(dc.cdist(dc.zeros "f32[0, 2]", dc.zeros "f32[3, 2]").shape, { 0, 3 })
  lu.assertEquals(dc.cdist(dc.zeros "f32[1, 0]", dc.zeros "f32[1, 0]", { p = math.huge }):totable(), { { 0 } })
  for _, dtype in ipairs { "f16", "bf16" } do -- computed in f32
    local v = dc.cdist(dc.tensor({ { 300, 400 } }, dtype), dc.zeros(dtype .. "[1, 2]"))
    lu.assertEquals(v.dtype, dtype)
    lu.assertEquals(v:item(), 500)
    lu.assertEquals(nn.normalize(dc.tensor({ { 300, 400 } }, dtype)).dtype, dtype)
  end
  local f = dc.fn("f(x: f32[n <= 8, 2], y: f32[m <= 8, 2]) -> f32[n, m]", dc.cdist)
  lu.assertEquals(f({ { 0, 0 }, { 3, 0 } }, { { 3, 4 } }):totable(), { { 5 }, { 4 } })
  lu.assertEquals(nn.normalize(dc.tensor { 3, 4 }):totable()[1], dc.tensor(0.6):item())
  lu.assertEquals(type_of(nn.normalize(x, { axis = "d" })), "f32[b=2, n=3, d=4]")
  lu.assertEquals(type_of(nn.cosine_similarity(x, x, { axis = "d" })), "f32[b=2, n=3]")
  local matrix = dc.vmap(function(v) return dc.cdist(v, v) end)(dc.iota "f32[2, 3, 1]")
  lu.assertEquals(matrix[2]:totable(), { { 0, 0, 0 }, { 0, 0, 0 }, { 0, 0, 0 } })
end

function TestDistances:test_wrong()
  local x = dc.zeros "f32[2, 3]"
  raises("cdist: x is f32[2, 3], y f32[2, 4]; [..., rows, size] with one size are needed", "DC0301", dc.cdist, x,
    dc.zeros "f32[2, 4]")
  raises("cdist: p is a number from 0 on, or math.huge, not -1", "DC0101", dc.cdist, x, x, { p = -1 })
  raises("cdist: y is i32[2], floats are needed", "DC0202", dc.cdist, x, dc.iota(2))
  raises("normalize: eps is a number from 0 on, not -1", "DC0101", nn.normalize, x, { eps = -1 })
  raises("cosine_similarity: x is f32[2, 3], y f64[2, 3]", "DC0202", nn.cosine_similarity, x, x:cast "f64")
  raises("pairwise_distance: y is i32[2], floats are needed", "DC0202", nn.pairwise_distance, x, dc.iota(2))
end
