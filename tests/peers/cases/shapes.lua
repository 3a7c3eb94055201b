-- Making, arranging and resampling, beside PyTorch and NumPy.
local dc = require "deepc"
local nn = require "deepc.nn"


local pairs_of_rows = {
  { x = "T[4, 3]", y = "T[5, 3]" }, { x = "T[2, 3, 2]", y = "T[2, 4, 2]" }, { x = "T[2, 1]", y = "T[3, 1]" },
}

return {
  -- diagonals
  { "diag", run = function(a)
    return { a.v:diag(), a.v:diag(2), a.v:diag(-1), a.m:diag(), a.m:diag(1), a.m:diag(-2) }
  end, peer = "tuple(torch.diag(v, k) for k in (0, 2, -1)) + tuple(torch.diag(m, k) for k in (0, 1, -2))",
    args = { { v = "T[4]", m = "T[3, 5]" }, { v = "T[1]", m = "T[4, 4]" }, { v = "i32[3]", m = "i32[5, 3]" } } },
  { "diagonal", run = function(a) return { a.x:diagonal(), a.x:diagonal(1, 1, 3), a.x:diagonal(-1, -1, 2) } end,
    peer = "(torch.diagonal(x), torch.diagonal(x, 1, 0, 2), torch.diagonal(x, -1, -1, 1))",
    args = { { x = "T[3, 4, 5]" }, { x = "T[2, 3, 3]" } } },
  { "trace", run = function(a) return { a.x:trace(), a.x:diag(1):sum() } end,
    peer = "(torch.trace(x), torch.diagonal(x, 1).sum())", args = { { x = "T[4, 4]" }, { x = "T[3, 6]" } } },
  { "trace of the last axes", run = function(a) return a.x:trace(-1, -2, -1) end,
    numpy = "np.trace(x, -1, -2, -1)", args = { { x = "T[2, 3, 4]" } } },

  -- products
  { "outer", run = function(a) return dc.outer(a.x, a.y) end, peer = "torch.outer(x, y)",
    args = { { x = "T[3]", y = "T[5]" }, { x = "T[1]", y = "T[2]" }, { x = "i32[2]", y = "i32[3]" } } },
  { "kron", run = function(a) return dc.kron(a.x, a.y) end, peer = "torch.kron(x, y)",
    args = { { x = "T[2, 3]", y = "T[3, 2]" }, { x = "T[4]", y = "T[2, 3]" }, { x = "T[2, 1, 2]", y = "T[3]" },
      { x = "T[]", y = "T[]" } } },
  { "dot", run = function(a) return { dc.dot(a.x, a.y), dc.vdot(a.x, a.y) } end,
    peer = "(torch.dot(x, y), torch.vdot(x, y))", args = { { x = "T[7]", y = "T[7]" }, { x = "T[1]", y = "T[1]" } } },
  { "inner", run = function(a) return dc.inner(a.x, a.y) end, peer = "torch.inner(x, y)",
    args = { { x = "T[2, 4]", y = "T[3, 4]" }, { x = "T[4]", y = "T[2, 3, 4]" }, { x = "T[3]", y = "T[3]" },
      { x = "T[]", y = "T[2]" } } },
  { "cross", run = function(a) return dc.cross(a.x, a.y) end, peer = "torch.linalg.cross(x.expand_as(y), y)",
    args = { { x = "T[4, 3]", y = "T[4, 3]" }, { x = "T[3]", y = "T[2, 3]" } } },
  { "cross along an axis", run = function(a) return dc.cross(a.x, a.y, 1) end, peer = "torch.linalg.cross(x, y, dim=0)",
    args = { { x = "T[3, 2]", y = "T[3, 2]" } } },

  -- grids and numbers in a row
  { "meshgrid", run = function(a) return { dc.meshgrid { a.x, a.y, a.z } } end,
    peer = "torch.meshgrid(x, y, z, indexing='ij')", args = { { x = "T[2]", y = "T[3]", z = "T[1]" } } },
  { "meshgrid xy", run = function(a) return { dc.meshgrid({ a.x, a.y, a.z }, { indexing = "xy" }) } end,
    peer = "torch.meshgrid(x, y, z, indexing='xy')", args = { { x = "T[2]", y = "T[3]", z = "T[4]" } } },
  { "linspace", run = function(a)
    return { dc.linspace(0, 1, 11, a.x.dtype), dc.linspace(3, -2, 8, a.x.dtype), dc.linspace(5, 6, 1, a.x.dtype),
      dc.linspace(a.x, a.y, 6) }
  end, peer = [[(torch.linspace(0, 1, 11, dtype=x.dtype), torch.linspace(3, -2, 8, dtype=x.dtype),
    torch.linspace(5, 6, 1, dtype=x.dtype), torch.linspace(float(x.detach()), float(y.detach()), 6, dtype=x.dtype))]],
    args = { { x = "T[]", y = "T[]" } }, grad = false },
  { "logspace", run = function(a)
    return { dc.logspace(-2, 2, 9, { dtype = a.x.dtype }), dc.logspace(0, 8, 5, { base = 2, dtype = a.x.dtype }) }
  end, peer = "(torch.logspace(-2, 2, 9, dtype=x.dtype), torch.logspace(0, 8, 5, base=2, dtype=x.dtype))",
    args = { { x = "T[]" } }, grad = false, tol = { f32 = 1e-5 } }, -- powers of f32 exponents, which are rounded
  { "arange", run = function(a)
    return { dc.arange(5) + a.x, dc.arange(2, 11, 3) + a.x, dc.arange(7, 0, -2) + a.x, dc.arange(3, 3) + a.x }
  end, peer = "tuple(torch.arange(*r, dtype=torch.int32) + x for r in ((5,), (2, 11, 3), (7, 0, -2), (3, 3)))",
    args = { { x = "i32[]" } }, dtypes = { "i32" } },
  { "arange of floats", run = function(a)
    return { dc.arange(0, 1, 0.125, a.x.dtype), dc.arange(1, 0, -0.3, a.x.dtype) }
  end, peer = "(torch.arange(0, 1, 0.125, dtype=x.dtype), torch.arange(1, 0, -0.3, dtype=x.dtype))",
    args = { { x = "T[]" } }, grad = false },
  { "vander", run = function(a) return { a.x:vander(), a.x:vander(2), a.x:vander(5, { increasing = true }) } end,
    peer = "(torch.vander(x), torch.vander(x, 2), torch.vander(x, 5, increasing=True))",
    args = { { x = "T[4]" }, { x = "T[1]" } } },

  -- repetition and order
  { "tile", run = function(a) return { a.x:tile(2), a.x:tile(2, 3), a.x:tile(2, 1, 3), a.x:tile { 1 } } end,
    peer = "(torch.tile(x, (2,)), torch.tile(x, (2, 3)), torch.tile(x, (2, 1, 3)), torch.tile(x, (1,)))",
    args = { { x = "T[2, 3]" }, { x = "T[4]" }, { x = "T[]" }, { x = "i32[2, 2, 1]" } } },
  { "repeat_interleave", run = function(a)
    return { a.x:repeat_interleave(3), a.x:repeat_interleave(2, 2), a.x:repeat_interleave({ 1, 0, 3 }, 1) }
  end, peer = [[(torch.repeat_interleave(x, 3), torch.repeat_interleave(x, 2, dim=1),
    torch.repeat_interleave(x, torch.tensor([1, 0, 3]), dim=0))]],
    args = { { x = "T[3, 2]" }, { x = "T[3, 1, 2]" } } },
  { "movedim", run = function(a) return { a.x:movedim(1, -1), a.x:movedim({ 1, 2 }, { 3, 1 }) } end,
    peer = "(torch.movedim(x, 0, -1), torch.movedim(x, (0, 1), (2, 0)))", args = { { x = "T[2, 3, 4]" } } },
  { "rot90", run = function(a)
    return { a.x:rot90(), a.x:rot90(2), a.x:rot90(-1), a.x:rot90(1, { 3, 1 }), a.x:rot90(4) }
  end, peer = "tuple(torch.rot90(x, *r) for r in ((1,), (2,), (-1,), (1, (2, 0)), (4,)))",
    args = { { x = "T[2, 3, 4]" } } },
  { "sliding windows", run = function(a)
    return { a.x:unfold(1, 3), a.x:unfold(2, 2, 2), a.x:unfold(1, 1), a.x:unfold(1, 5) }
  end, peer = "(x.unfold(0, 3, 1), x.unfold(1, 2, 2), x.unfold(0, 1, 1), x.unfold(0, 5, 1))",
    args = { { x = "T[5, 4]" }, { x = "T[7, 3, 2]" } } },
  { "pad reflect", run = function(a) return a.x:pad({ [3] = { 2, 1 }, [4] = { 0, 3 } }, { mode = "reflect" }) end,
    peer = "F.pad(x, (0, 3, 2, 1), mode='reflect')", args = { { x = "T[2, 1, 3, 5]" }, { x = "T[1, 2, 4, 4]" } } },
  { "pad replicate", run = function(a) return a.x:pad({ [3] = { 2, 1 }, [4] = { 0, 3 } }, { mode = "replicate" }) end,
    peer = "F.pad(x, (0, 3, 2, 1), mode='replicate')", args = { { x = "T[2, 1, 3, 5]" }, { x = "T[1, 2, 1, 1]" } } },
  { "pad circular", run = function(a) return a.x:pad({ [3] = { 2, 1 }, [4] = { 0, 3 } }, { mode = "circular" }) end,
    peer = "F.pad(x, (0, 3, 2, 1), mode='circular')", args = { { x = "T[2, 1, 3, 5]" }, { x = "T[1, 2, 2, 3]" } } },
  { "pad symmetric", run = function(a) return a.x:pad({ { 2, 1 }, { 0, 3 } }, { mode = "symmetric" }) end,
    numpy = "np.pad(x, ((2, 1), (0, 3)), mode='symmetric')", args = { { x = "T[3, 5]" }, { x = "i32[2, 3]" } } },
  { "long windows", run = function(a) return a.x:unfold(1, 40, 7) end, peer = "x.unfold(0, 40, 7)",
    args = { { x = "T[70, 2]" } } },

  -- distances
  { "cdist 2", run = function(a) return dc.cdist(a.x, a.y, { p = 2 }) end,
    peer = "torch.cdist(x, y, p=2, compute_mode='donot_use_mm_for_euclid_dist')",
    args = pairs_of_rows },
  { "cdist 1", run = function(a) return dc.cdist(a.x, a.y, { p = 1 }) end,
    peer = "torch.cdist(x, y, p=1, compute_mode='donot_use_mm_for_euclid_dist')",
    args = pairs_of_rows },
  { "cdist inf", run = function(a) return dc.cdist(a.x, a.y, { p = math.huge }) end,
    peer = "torch.cdist(x, y, p=float('inf'), compute_mode='donot_use_mm_for_euclid_dist')",
    args = pairs_of_rows },
  { "cdist 3", run = function(a) return dc.cdist(a.x, a.y, { p = 3 }) end,
    peer = "torch.cdist(x, y, p=3, compute_mode='donot_use_mm_for_euclid_dist')",
    args = pairs_of_rows },
  { "cdist 0.5", run = function(a) return dc.cdist(a.x, a.y, { p = 0.5 }) end,
    peer = "torch.cdist(x, y, p=0.5, compute_mode='donot_use_mm_for_euclid_dist')",
    args = pairs_of_rows },
  { "cdist 0", run = function(a) return dc.cdist(a.x, a.y, { p = 0 }) end, peer = "torch.cdist(x, y, p=0.)",
    args = { { x = { "T[2, 3]", values = { { 1, 2, 3 }, { 0, 2, 0 } } },
      y = { "T[1, 3]", values = { { 1, 2, 0 } } } } },
    grad = false },
  { "cdist of equal rows", run = function(a) return { dc.cdist(a.x, a.x), dc.cdist(a.x, a.x, { p = 1.5 }) } end,
    peer = "(torch.cdist(x, x, compute_mode='donot_use_mm_for_euclid_dist'), torch.cdist(x, x, p=1.5))",
    args = { { x = { "T[3, 2]", values = { { 1, 2 }, { 1, 2 }, { 3, 5 } } } } } },
  { "cosine_similarity", run = function(a)
    return { nn.cosine_similarity(a.x, a.y), nn.cosine_similarity(a.x, a.y, { axis = 1, eps = 0.5 }) }
  end, peer = "(F.cosine_similarity(x, y), F.cosine_similarity(x, y, dim=0, eps=0.5))",
    args = { { x = "T[4, 3]", y = "T[4, 3]" }, { x = "T[2, 3, 4]", y = "T[3, 4]" } } },
  { "pairwise_distance", run = function(a)
    return { nn.pairwise_distance(a.x, a.y), nn.pairwise_distance(a.x, a.y, { p = 1, eps = 0.1, keep = true }),
      nn.pairwise_distance(a.x, a.y, { p = 3 }) }
  end, peer = [[(F.pairwise_distance(x, y), F.pairwise_distance(x, y, p=1, eps=0.1, keepdim=True),
    F.pairwise_distance(x, y, p=3))]], args = { { x = "T[4, 3]", y = "T[4, 3]" }, { x = "T[2, 2, 3]", y = "T[3]" } } },
  { "normalize", run = function(a)
    return { nn.normalize(a.x), nn.normalize(a.x, { p = 1, axis = 1 }), nn.normalize(a.x, { p = math.huge, axis = -1 }),
      nn.normalize(a.x, { eps = 3 }) }
  end, peer = [[(F.normalize(x), F.normalize(x, p=1, dim=0), F.normalize(x, p=float("inf"), dim=-1),
    F.normalize(x, eps=3))]], args = { { x = "T[4, 3]" }, { x = "T[2, 3, 4]" } } },
  { "normalize nothing", run = function(a) return nn.normalize(a.x) end, peer = "F.normalize(x)",
    args = { { x = { "T[2, 2]", values = { { 0, 0 }, { 3, 4 } } } } }, grad = false },
}
