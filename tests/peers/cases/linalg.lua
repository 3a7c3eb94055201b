-- deepc.linalg beside torch.linalg, NumPy and SciPy. Signs of vectors are LAPACK's, which peers may call in another
-- version, so what depends on them is compared by products that do not.
local dc = require "deepc"
local linalg = require "deepc.linalg"

-- Matrices that are far from singular: what is drawn, and 3 on the diagonal.
local function square(x)
  local n = x.shape[#x.shape]
  return x + 3 * dc.eye(("%s[%d, %d]"):format(x.dtype, n, n))
end

local function definite(x)
  local n = x.shape[#x.shape]
  return x:matmul(x:transpose()) + dc.eye(("%s[%d, %d]"):format(x.dtype, n, n))
end

-- A row for each matrix.
local function row(w)
  local shape = w.shape
  table.insert(shape, #shape, 1)
  return w:reshape(shape)
end

local SQUARE = "a = a + 3 * torch.eye(a.shape[-1], dtype=a.dtype); "
local DEFINITE = "a = a @ a.mT + torch.eye(a.shape[-1], dtype=a.dtype); "

local function u(type)
  return { type, low = -1, high = 1 }
end

local squares = { { a = u "T[1, 1]" }, { a = u "T[4, 4]" }, { a = u "T[2, 3, 3]" } }
local any = { { a = u "T[4, 4]" }, { a = u "T[2, 5, 3]" }, { a = u "T[3, 4]" }, { a = u "T[1, 3]" } }
-- Where matrices are not made regular, rounding errors grow with their condition, those of gradients with its square.
local near = { f32 = 3e-5, f64 = 1e-12 }

return {
  -- systems
  { "solve", run = function(a) return linalg.solve(square(a.a), a.b) end,
    peer = SQUARE .. "result = torch.linalg.solve(a, b)",
    args = { { a = u "T[3, 3]", b = "T[3]" }, { a = u "T[4, 4]", b = "T[4, 2]" }, { a = u "T[2, 3, 3]", b = "T[2, 3]" },
      { a = u "T[2, 3, 3]", b = "T[3, 2]" }, { a = u "T[3, 3]", b = "T[2, 3, 2]" }, { a = u "T[1, 1]", b = "T[1]" },
      { a = u "T[2, 1, 3, 3]", b = "T[4, 3, 1]" } } },
  { "inv", run = function(a) return linalg.inv(square(a.a)) end,
    peer = SQUARE .. "result = torch.linalg.inv(a)", args = squares },
  { "triangular_solve", run = function(a)
    local m = square(a.a)
    return { linalg.triangular_solve(m, a.b), linalg.triangular_solve(m, a.b, { upper = true }),
      linalg.triangular_solve(m, a.b, { upper = true, unit = true }),
      linalg.triangular_solve(m, a.b, { transposed = true }),
      linalg.triangular_solve(m, a.b:transpose(), { left = false, upper = true }) }
  end, peer = SQUARE .. [[
f = torch.linalg.solve_triangular
result = (f(a, b, upper=False), f(a, b, upper=True), f(a, b, upper=True, unitriangular=True),
          f(a.mT, b, upper=True), f(a, b.mT, upper=True, left=False))]],
    args = { { a = u "T[3, 3]", b = "T[3, 2]" }, { a = u "T[2, 4, 4]", b = "T[2, 4, 3]" } } },
  { "triangular_solve of a vector", run = function(a) return linalg.triangular_solve(square(a.a), a.b) end,
    peer = SQUARE .. "result = torch.linalg.solve_triangular(a, b[:, None], upper=False)[:, 0]",
    args = { { a = u "T[4, 4]", b = "T[4]" } } },
  { "cholesky", run = function(a)
    return { linalg.cholesky(definite(a.a)), linalg.cholesky(definite(a.a), { upper = true }) }
  end, peer = DEFINITE .. "result = (torch.linalg.cholesky(a), torch.linalg.cholesky(a, upper=True))",
    args = squares },
  { "cholesky_solve, cholesky_inverse", run = function(a)
    local l = linalg.cholesky(definite(a.a))
    return { linalg.cholesky_solve(l, a.b), linalg.cholesky_inverse(l),
      linalg.cholesky_solve(l:transpose(), a.b, { upper = true }),
      linalg.cholesky_inverse(l:transpose(), { upper = true }) }
  end, peer = DEFINITE .. [[
l = torch.linalg.cholesky(a)
result = (torch.cholesky_solve(b, l), torch.cholesky_inverse(l), torch.cholesky_solve(b, l.mT, upper=True),
          torch.cholesky_inverse(l.mT, upper=True))]],
    args = { { a = u "T[3, 3]", b = "T[3, 2]" }, { a = u "T[2, 3, 3]", b = "T[2, 3, 2]" } } },
  { "lu", run = function(a) return { linalg.lu(a.a) } end, peer = "torch.linalg.lu(a)",
    args = { { a = u "T[4, 4]" }, { a = u "T[2, 3, 3]" } } },
  { "lu_solve", run = function(a)
    local lu, rows = linalg.lu_factor(a.a)
    return { linalg.lu_solve(lu, rows, a.b), linalg.lu_solve(lu, rows, a.b, { transposed = true }) }
  end, peer = "result = (torch.linalg.solve(a, b), torch.linalg.solve(a.mT, b))", tol = near,
    args = { { a = u "T[3, 3]", b = "T[3, 2]" }, { a = u "T[2, 4, 4]", b = "T[2, 4, 3]" } } },
  { "lstsq", run = function(a) return linalg.lstsq(a.a, a.b) end, peer = "torch.linalg.lstsq(a, b).solution",
    tol = near,
    args = { { a = u "T[5, 3]", b = "T[5, 2]" }, { a = u "T[2, 4, 4]", b = "T[2, 4, 1]" },
      { a = u "T[2, 4]", b = "T[2, 3]" } } },
  { "lstsq of rank 1", run = function(a) return linalg.lstsq(a.a, a.b) end, peer = "torch.linalg.pinv(a) @ b",
    args = { { a = { "T[3, 2]", values = { { 1, 2 }, { 2, 4 }, { -1, -2 } } }, b = "T[3, 2]" } } },
  { "pinv", run = function(a) return linalg.pinv(a.a) end, peer = "torch.linalg.pinv(a)",
    tol = near, args = any },
  { "pinv of lower rank, of equal singular values", run = function(a) return linalg.pinv(a.a) end,
    peer = "torch.linalg.pinv(a)",
    args = { { a = { "T[2, 2]", values = { { 1, 2 }, { 2, 4 } } } },
      { a = { "T[2, 2]", values = { { 0, 1 }, { -1, 0 } } } },
      { a = { "T[2, 3]", values = { { 0, 0, 0 }, { 0, 0, 0 } } } } } },
  { "pinv hermitian", run = function(a)
    return { linalg.pinv(a.a + a.a:transpose(), { hermitian = true }), linalg.pinv(a.a, { rtol = 0.5 }) }
  end, peer = "(torch.linalg.pinv(a + a.mT, hermitian=True), torch.linalg.pinv(a, rtol=0.5))", tol = near,
    args = { { a = u "T[3, 3]" } } },

  -- numbers
  { "det", run = function(a) return linalg.det(a.a) end, peer = "torch.linalg.det(a)", args = squares },
  { "det of singular matrices", run = function(a) return linalg.det(a.a) end,
    differs = "the gradient is the transposed adjugate, which PyTorch has as 0",
    peer = "result = a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]",
    args = { { a = { "T[2, 2]", values = { { 1, 2 }, { 2, 4 } } } },
      { a = { "T[2, 2]", values = { { 0, 0 }, { 0, 0 } } } } } },
  { "det of singular 3 x 3 matrices", run = function(a) return linalg.det(a.a) end,
    differs = "the gradient is the transposed adjugate, which PyTorch has as 0",
    peer = "torch.dot(a[0], torch.linalg.cross(a[1], a[2]))",
    args = { { a = { "T[3, 3]", values = { { 0, 0, 0 }, { 0, 1, 0 }, { 0, 0, 2 } } } },
      { a = { "T[3, 3]", values = { { 1, 2, 3 }, { 4, 5, 6 }, { 7, 8, 9 } } } } } },
  { "slogdet", run = function(a) return { linalg.slogdet(a.a) } end, peer = "torch.linalg.slogdet(a)",
    args = squares },
  { "matrix_rank", run = function(a)
    return { linalg.matrix_rank(a.a), linalg.matrix_rank(a.a, { rtol = 0.5 }), linalg.matrix_rank(a.a, { atol = 1 }) }
  end, peer = [[
f = torch.linalg.matrix_rank
result = tuple(x.to(torch.int32) for x in (f(a), f(a, rtol=0.5), f(a, atol=1)))]], grad = false,
    args = { { a = "T[4, 3]" }, { a = "T[2, 3, 3]" }, { a = { "T[2, 2]", values = { { 1, 2 }, { 2, 4 } } } } } },
  { "cond", run = function(a) return { linalg.cond(square(a.a)), linalg.cond(square(a.a), -2) } end,
    peer = SQUARE .. "result = (torch.linalg.cond(a), torch.linalg.cond(a, -2))",
    args = { { a = u "T[3, 3]" }, { a = u "T[2, 2, 2]" } } },
  { "cond by inverses", run = function(a)
    local m, out = square(a.a), {}
    for i, p in ipairs { "fro", "nuc", 1, -1, math.huge, -math.huge } do
      out[i] = linalg.cond(m, p)
    end
    return out
  end, peer = SQUARE .. [[
n = torch.linalg.matrix_norm
result = tuple(n(a, p) * n(torch.linalg.inv(a), p) for p in ("fro", "nuc", 1, -1, float("inf"), -float("inf")))]],
    args = { { a = u "T[3, 3]" }, { a = u "T[2, 2, 2]" } } },
  { "cond of singular matrices", run = function(a) return { linalg.cond(a.a, 1), linalg.cond(a.a, "fro") } end,
    peer = "(torch.linalg.cond(a, 1), torch.linalg.cond(a, 'fro'))", grad = false,
    args = { { a = { "T[2, 2]", values = { { 1, 2 }, { 2, 4 } } } } } },

  -- factors, by what does not depend on signs
  { "qr", run = function(a)
    local q, r = linalg.qr(a.a)
    return { q:matmul(r), r:abs(), linalg.qr(a.a, { mode = "r" }):square(), q:square() }
  end, peer = "q, r = torch.linalg.qr(a); result = (q @ r, r.abs(), r.square(), q.square())",
    args = { { a = u "T[4, 4]" }, { a = u "T[2, 5, 3]" } } },
  { "qr of wide matrices", run = function(a)
    local q, r = linalg.qr(a.a)
    return { q:matmul(r), r:square(), q:square() }
  end, peer = "q, r = torch.linalg.qr(a); result = (q @ r, r.square(), q.square())", grad = false,
    args = { { a = u "T[3, 4]" }, { a = u "T[1, 3]" } } },
  { "qr, complete", run = function(a)
    local q, r = linalg.qr(a.a, { mode = "complete" })
    return { q:matmul(r), r:square(), q:square(), q:matmul(q:transpose()) }
  end, peer = "q, r = torch.linalg.qr(a, 'complete'); result = (q @ r, r.square(), q.square(), q @ q.mT)", grad = false,
    args = { { a = u "T[4, 3]" }, { a = u "T[2, 5, 2]" }, { a = u "T[5, 1]" }, { a = u "T[3, 0]" } } },
  { "qr, complete, of square matrices", run = function(a)
    local q, r = linalg.qr(square(a.a), { mode = "complete" })
    return { q:square(), r:square() }
  end, peer = SQUARE .. "q, r = torch.linalg.qr(a, 'complete'); result = (q.square(), r.square())",
    args = { { a = u "T[3, 3]" }, { a = u "T[2, 2, 2]" } } },
  { "eigh", run = function(a)
    local w, v = linalg.eigh(definite(a.a))
    local wu, vu = linalg.eigh(definite(a.a), { upper = true })
    return { w, v:square(), (v * row(w:exp())):matmul(v:transpose()), wu, vu:square() }
  end, peer = DEFINITE .. [[
w, v = torch.linalg.eigh(a)
result = (w, v.square(), (v * w.exp()[..., None, :]) @ v.mT, w, v.square())]], tol = near,
    args = { { a = u "T[3, 3]" }, { a = u "T[2, 4, 4]" } } },
  { "eigvalsh", run = function(a) return linalg.eigvalsh(definite(a.a)) end,
    peer = DEFINITE .. "result = torch.linalg.eigvalsh(a)", args = squares },
  { "eigvalsh of equal values", run = function(a) return linalg.eigvalsh(a.a):square():sum() end,
    peer = "torch.linalg.eigvalsh(a).square().sum()",
    args = { { a = { "T[2, 2]", values = { { 1, 0 }, { 0, 1 } } } },
      { a = { "T[2, 2]", values = { { 0, 0 }, { 0, 0 } } } } } },
  -- by what depends neither on phases nor on the order
  { "eig", run = function(a)
    local w, v = linalg.eig(a.a)
    return { w:exp():real():sum(-1), w:imag():square():sum(-1), (v:abs() ^ 4 * row(w:abs())):sum(-1) }
  end, peer = [[
w, v = torch.linalg.eig(a)
result = (w.exp().real.sum(-1), w.imag.square().sum(-1), (v.abs() ** 4 * w.abs()[..., None, :]).sum(-1))]], tol = near,
    args = { { a = u "T[3, 3]" }, { a = u "T[2, 4, 4]" }, { a = { "T[2, 2]", values = { { 0, -2 }, { 1, 0 } } } } } },
  { "eigvals", run = function(a)
    local w = linalg.eigvals(a.a)
    return { (w * w * w):real():sum(-1), w:abs():sum(-1) }
  end, peer = "w = torch.linalg.eigvals(a); result = ((w * w * w).real.sum(-1), w.abs().sum(-1))", tol = near,
    args = { { a = u "T[3, 3]" }, { a = u "T[2, 5, 5]" } } },
  { "svd", run = function(a)
    local v, s, vh = linalg.svd(a.a)
    return { s, v:square(), vh:square(), (v * row(s:exp())):matmul(vh) }
  end, peer = [[
v, s, vh = torch.linalg.svd(a, full_matrices=False)
result = (s, v.square(), vh.square(), (v * s.exp()[..., None, :]) @ vh)]], tol = near,
    args = { { a = u "T[3, 3]" }, { a = u "T[2, 4, 2]" }, { a = u "T[2, 3]" } } },
  { "svd, full", run = function(a) -- further vectors by what does not depend on their choice
    local v, s, vh = linalg.svd(a.a, { full = true })
    local k = s.shape[#s.shape]
    local first = v:slice { [-1] = { 1, k } }:matmul(vh:slice { [-2] = { 1, k } })
    return { s, v:matmul(v:transpose()), vh:transpose():matmul(vh), first }
  end, peer = [[
v, s, vh = torch.linalg.svd(a, full_matrices=True)
k = s.shape[-1]
result = (s, v @ v.mT, vh.mT @ vh, v[..., :k] @ vh[..., :k, :])]], grad = false,
    args = { { a = u "T[3, 3]" }, { a = u "T[2, 4, 2]" }, { a = u "T[2, 3]" }, { a = u "T[1, 4]" } } },
  { "svd, full: gradients", run = function(a)
    local v, s, vh = linalg.svd(a.a, { full = true })
    local k = s.shape[#s.shape]
    return { s, v:slice { [-1] = { 1, k } }:square(), vh:slice { [-2] = { 1, k } }:square() }
  end, peer = [[
v, s, vh = torch.linalg.svd(a, full_matrices=True)
k = s.shape[-1]
result = (s, v[..., :k].square(), vh[..., :k, :].square())]], tol = near,
    args = { { a = u "T[3, 3]" }, { a = u "T[2, 4, 2]" }, { a = u "T[2, 3]" } } },
  { "svdvals", run = function(a) return linalg.svdvals(a.a) end, peer = "torch.linalg.svdvals(a)",
    args = any },

  -- norms
  { "vector_norm", run = function(a)
    local out = {}
    for _, p in ipairs { 2, 1, 0, 3 } do
      out[#out + 1] = linalg.vector_norm(a.x, p)
      out[#out + 1] = linalg.vector_norm(a.x, p, { axis = -1, keep = true })
    end
    return out
  end, peer = [[
result = ()
for p in (2, 1, 0, 3):
    result += (torch.linalg.vector_norm(x, p), torch.linalg.vector_norm(x, p, -1, True))]],
    args = { { x = "T[5]" }, { x = "T[2, 3]" }, { x = "T[1]" } } },
  { "vector_norm, the others", run = function(a)
    local out = {}
    for _, p in ipairs { 0.5, -1, math.huge, -math.huge } do
      out[#out + 1] = linalg.vector_norm(a.x, p)
      out[#out + 1] = linalg.vector_norm(a.x, p, { axis = -1, keep = true })
    end
    return out
  end, peer = [[
result = ()
for p in (0.5, -1, float("inf"), -float("inf")):
    result += (torch.linalg.vector_norm(x, p), torch.linalg.vector_norm(x, p, -1, True))]],
    args = { { x = "T[5]" }, { x = "T[2, 3]" }, { x = "T[1]" } } },
  { "vector_norm of zeros", run = function(a)
    return { linalg.vector_norm(a.x), linalg.vector_norm(a.x, 1), linalg.vector_norm(a.x, 3) }
  end, peer = "(torch.linalg.vector_norm(x), torch.linalg.vector_norm(x, 1), torch.linalg.vector_norm(x, 3))",
    args = { { x = { "T[3]", values = { 0, 0, 0 } } } } },
  { "matrix_norm", run = function(a)
    local out = { linalg.matrix_norm(a.x) }
    for _, p in ipairs { "nuc", 1, -1, 2, -2, math.huge, -math.huge } do
      out[#out + 1] = linalg.matrix_norm(a.x, p, { keep = true })
    end
    return out
  end, peer = [[
result = (torch.linalg.matrix_norm(x),)
for p in ("nuc", 1, -1, 2, -2, float("inf"), -float("inf")):
    result += (torch.linalg.matrix_norm(x, p, keepdim=True),)]],
    args = { { x = "T[3, 3]" }, { x = "T[2, 4, 3]" }, { x = "T[2, 3]" } } },
  { "matrix_norm of other axes", run = function(a)
    return { linalg.matrix_norm(a.x, "nuc", { axis = { 1, 2 } }), linalg.matrix_norm(a.x, 1, { axis = { 3, 1 } }),
      linalg.matrix_norm(a.x, 1, { axis = { 3, 1 }, keep = true }) }
  end, peer = [[(torch.linalg.matrix_norm(x, "nuc", (0, 1)), torch.linalg.matrix_norm(x, 1, (2, 0)),
 torch.linalg.matrix_norm(x, 1, (2, 0), keepdim=True))]], args = { { x = "T[2, 3, 4]" } } },
  { "norm", run = function(a)
    return { linalg.norm(a.x), linalg.norm(a.m), linalg.norm(a.x, 3), linalg.norm(a.m, 2), linalg.norm(a.m, 1),
      linalg.norm(a.m, 3, { axis = 1 }), linalg.norm(a.t), linalg.norm(a.t, "nuc", { axis = { 1, 3 } }) }
  end, peer = [[
n = torch.linalg.norm
result = (n(x), n(m), n(x, 3), n(m, 2), n(m, 1), n(m, 3, 0), n(t), n(t, "nuc", (0, 2)))]],
    args = { { x = "T[4]", m = "T[3, 2]", t = "T[2, 3, 2]" } } },

  -- powers, products
  { "matrix_exp", run = function(a) return linalg.matrix_exp(a.a) end, peer = "torch.linalg.matrix_exp(a)",
    args = { { a = u "T[1, 1]" }, { a = "T[4, 4]" }, { a = u "T[2, 3, 3]" },
      { a = { "T[2, 2]", low = -9, high = 9 } },
      { a = { "T[2, 2]", values = { { 0, 0 }, { 0, 0 } } } }, { a = { "T[3, 3]", low = -1e-3, high = 1e-3 } } } },
  { "matrix_power", run = function(a)
    local m = square(a.a)
    return { linalg.matrix_power(m, 0), linalg.matrix_power(m, 1), linalg.matrix_power(m, 5),
      linalg.matrix_power(m, -2) }
  end, peer = SQUARE .. "result = tuple(torch.linalg.matrix_power(a, n) for n in (0, 1, 5, -2))",
    args = squares },
  -- Elements are sums of larger products, so errors are measured against all of them.
  { "multi_dot", normwise = true, run = function(a)
    return { linalg.multi_dot { a.a, a.b, a.c, a.d }, linalg.multi_dot { a.x, a.b, a.c, a.y },
      linalg.multi_dot { a.a, a.b } }
  end, peer = "f = torch.linalg.multi_dot; result = (f([a, b, c, d]), f([x, b, c, y]), f([a, b]))",
    args = { { a = "T[2, 6]", b = "T[6, 3]", c = "T[3, 4]", d = "T[4, 5]", x = "T[6]", y = "T[4]" } } },
}
