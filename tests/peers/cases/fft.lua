-- Fourier transforms beside torch.fft: sizes of every kind, axes, norms, gradients.
local fft = require "deepc.fft"

local sizes = {}
for _, n in ipairs { 1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 30, 37, 64, 100 } do
  sizes[#sizes + 1] = { x = ("Z[%d]"):format(n) }
end
local function real_sizes(type_of)
  local list = {}
  for _, n in ipairs { 1, 2, 3, 4, 5, 8, 10, 37, 64, 74 } do
    list[#list + 1] = { x = type_of:format(n) }
  end
  return list
end
local matrices = { { x = "Z[3, 8]" }, { x = "Z[6, 5, 2]" } }

local cases = {
  { "fft", run = function(a) return fft.fft(a.x) end, peer = "torch.fft.fft(x)",
    args = sizes },
  { "ifft", run = function(a) return fft.ifft(a.x) end, peer = "torch.fft.ifft(x)", args = sizes },
  { "fft of real", run = function(a) return fft.fft(a.x) end, peer = "torch.fft.fft(x)",
    args = { { x = "T[9]" }, { x = "T[2, 8]" } } },
  { "norms", run = function(a)
    return { fft.fft(a.x, { norm = "ortho" }), fft.fft(a.x, { norm = "forward" }), fft.ifft(a.x, { norm = "ortho" }),
      fft.ifft(a.x, { norm = "forward" }) }
  end, peer = [[(torch.fft.fft(x, norm="ortho"), torch.fft.fft(x, norm="forward"), torch.fft.ifft(x, norm="ortho"),
    torch.fft.ifft(x, norm="forward"))]], args = { { x = "Z[12]" } } },
  { "axes", run = function(a) return { fft.fft(a.x, { axis = 1 }), fft.ifft(a.x, { axis = -2 }) } end,
    peer = "(torch.fft.fft(x, dim=0), torch.fft.ifft(x, dim=-2))", args = matrices },
  { "n", run = function(a) return { fft.fft(a.x, { n = 5, axis = 1 }), fft.ifft(a.x, { n = 11, axis = 1 }) } end,
    peer = "(torch.fft.fft(x, n=5, dim=0), torch.fft.ifft(x, n=11, dim=0))", args = { { x = "Z[8, 2]" } } },
  { "rfft", run = function(a) return fft.rfft(a.x) end, peer = "torch.fft.rfft(x)", args = real_sizes "T[%d]" },
  { "rfft along another axis", run = function(a) return { fft.rfft(a.x, { axis = 1 }), fft.rfft(a.x,
    { n = 10, axis = 2 }) } end,
    peer = "(torch.fft.rfft(x, dim=0), torch.fft.rfft(x, n=10, dim=1))", args = { { x = "T[8, 6, 2]" } } },
  { "irfft", run = function(a) return { fft.irfft(a.x,
    { n = 2 * (a.x.shape[1] - 1) + 1 }), a.x.shape[1] > 1 and fft.irfft(a.x) or
    fft.irfft(a.x, { n = 1 }) } end,
    peer = "(torch.fft.irfft(x, n=2 * len(x) - 1), torch.fft.irfft(x) if len(x) > 1 else torch.fft.irfft(x, n=1))",
    args = { { x = "Z[1]" }, { x = "Z[2]" }, { x = "Z[3]" }, { x = "Z[4]" }, { x = "Z[5]" }, { x = "Z[9]" },
    { x = "Z[17]" },
      { x = "Z[33]" } } },
  { "irfft along another axis", run = function(a) return fft.irfft(a.x, { axis = 1, norm = "ortho" }) end,
    peer = "torch.fft.irfft(x, dim=0, norm='ortho')", args = { { x = "Z[5, 6, 2]" } } },
  { "hfft", run = function(a) return fft.hfft(a.x) end, peer = "torch.fft.hfft(x)", args = { { x = "Z[5]" } } },
  { "ihfft", run = function(a) return fft.ihfft(a.x) end, peer = "torch.fft.ihfft(x)",
    args = { { x = "T[8]" }, { x = "T[9]" } } },
  { "fft2", run = function(a) return { fft.fft2(a.x), fft.ifft2(a.x, { norm = "ortho" }) } end,
    peer = "(torch.fft.fft2(x), torch.fft.ifft2(x, norm='ortho'))",
    args = { { x = "Z[6, 8]" }, { x = "Z[2, 4, 5]" } } },
  { "rfft2", run = function(a) return { fft.rfft2(a.x), fft.rfft2(a.x, { s = { 4, 6 } }) } end,
    peer = "(torch.fft.rfft2(x), torch.fft.rfft2(x, s=(4, 6)))",
    args = { { x = "T[6, 8]" }, { x = "T[2, 4, 5]" } } },
  { "irfft2", run = function(a) return { fft.irfft2(a.x), fft.irfft2(a.x, { s = { 6, 7 } }) } end,
    peer = "(torch.fft.irfft2(x), torch.fft.irfft2(x, s=(6, 7)))", args = { { x = "Z[6, 5]" } } },
  { "fftn", run = function(a) return { fft.fftn(a.x), fft.ifftn(a.x), fft.fftn(a.x, { axes = { 1, 3 } }) } end,
    peer = "(torch.fft.fftn(x), torch.fft.ifftn(x), torch.fft.fftn(x, dim=(0, 2)))",
    args = { { x = "Z[4, 3, 5]" } } },
  { "rfftn", run = function(a) return fft.irfftn(fft.rfftn(a.x) * 2) end,
    peer = "torch.fft.irfftn(torch.fft.rfftn(x) * 2)",
    args = { { x = "T[4, 3, 6]" } } },
  { "fftfreq", run = function() return { fft.fftfreq(8, 0.5), fft.fftfreq(7), fft.rfftfreq(8, 0.5),
    fft.rfftfreq(7) } end,
    peer = "(torch.fft.fftfreq(8, 0.5), torch.fft.fftfreq(7), torch.fft.rfftfreq(8, 0.5), torch.fft.rfftfreq(7))",
    dtypes = { "f32" }, lazy_only = true },
  { "fftshift", run = function(a) return { fft.fftshift(a.x), fft.ifftshift(a.x), fft.fftshift(a.x, 1),
    fft.ifftshift(a.x, { -1 }) } end,
    peer = "(torch.fft.fftshift(x), torch.fft.ifftshift(x), torch.fft.fftshift(x, 0), torch.fft.ifftshift(x, -1))",
    args = { { x = "Z[5, 6]" } } },
}

-- The peer's transforms of SciPy as products with their matrices, whose gradients torch takes.
local cosines = {}
for _, n in ipairs { 2, 3, 4, 5, 7, 8, 9, 16, 30, 37, 74 } do
  cosines[#cosines + 1] = { x = ("T[%d]"):format(n) }
end
local MATRIX = [[
def along(f, t, norm=None, n=None):
    n = n or x.shape[-1]
    return (x.double() @ torch.tensor(f(np.eye(x.shape[-1]), t, n=n, norm=norm))).to(x.dtype)
result = tuple(along(f, t, norm) for f in (scipy.fft.%s, scipy.fft.i%s) for norm in (None, "ortho", "forward"))
]]
for kind = 1, 4 do
  for _, name in ipairs { "dct", "dst" } do
    cases[#cases + 1] = { ("%s, type %d"):format(name, kind), run = function(a)
      local list = {}
      for _, f in ipairs { fft[name], fft["i" .. name] } do
        for _, norm in ipairs { "backward", "ortho", "forward" } do
          list[#list + 1] = f(a.x, { type = kind, norm = norm })
        end
      end
      return list
    end, peer = "import scipy.fft\nt = " .. kind .. "\n" .. MATRIX:format(name, name), args = cosines }
  end
end
cases[#cases + 1] = { "dct along an axis, of another size", run = function(a)
  return { fft.dct(a.x, { axis = 1 }), fft.idct(a.x, { axis = 2, n = 4, type = 3 }), fft.dst(a.x, { n = 9 }) }
end, numpy = [[
import scipy.fft
result = (scipy.fft.dct(x, axis=0), scipy.fft.idct(x, 3, 4, axis=1), scipy.fft.dst(x, n=9))]],
  args = { { x = "T[5, 6, 2]" }, { x = "T[1, 3, 7]" } } }
cases[#cases + 1] = { "dct of one", run = function(a)
  return { fft.dct(a.x), fft.idct(a.x, { norm = "ortho" }), fft.dct(a.x, { type = 3 }), fft.dct(a.x, { type = 4 }),
    fft.dst(a.x), fft.dst(a.x, { type = 1 }) }
end, numpy = [[
import scipy.fft as f
result = (f.dct(x), f.idct(x, norm="ortho"), f.dct(x, 3), f.dct(x, 4), f.dst(x), f.dst(x, 1))]],
  args = { { x = "T[3, 1]" } } }

for _, case in ipairs(cases) do
  case.normwise = true
end
return cases
