---@meta _

-- Reductions, products, windows (annotations; see values.lua).

---@class deepc
local dc = {}

---@class deepc.Tensor
local Tensor = {}

-- ---- Reductions ----

---The sum, of all elements or along axes. Of integers in i64, of unsigned ones in u64; of bool, whose sums are counts,
---in i32. The option dtype asks for another: what is summed is converted to it first.
---
---    dc.zeros "f32[2, 3]":sum(2)     dc.zeros "f32[2, 3]":sum { axis = 2, keep = true }
---    dc.ones "u8[4]":sum { dtype = "i32" }
---
---Errors: DC0103, DC0104 for axes.
---@param axes? deepc.Axes all
---@return deepc.Tensor of the dtype of x, of integers i64 or u64
function Tensor:sum(axes) end
dc.sum = Tensor.sum

---The mean; of integers and bool in f32, rounded once; NaN of no elements. The option dtype asks for another.
---
---    dc.zeros "f32[2, 3]":mean()
---
---Errors: DC0103, DC0104 for axes.
---@param axes? deepc.Axes all
---@return deepc.Tensor of the dtype of x, a float; f32 of integers and bool
function Tensor:mean(axes) end
dc.mean = Tensor.mean

---The largest; NaN if one is.
---
---    dc.zeros "f32[2, 3]":max(1)
---
---Errors: DC0103, DC0104 for axes.
---@param axes? deepc.Axes all
---@return deepc.Tensor of the dtype of x
function Tensor:max(axes) end
dc.max = Tensor.max

---The smallest; NaN if one is.
---
---    dc.zeros "f32[2, 3]":min(1)
---
---Errors: DC0103, DC0104 for axes.
---@param axes? deepc.Axes all
---@return deepc.Tensor of the dtype of x
function Tensor:min(axes) end
dc.min = Tensor.min

---The product; of integers in i64 or u64, of bool in i32. The option dtype asks for another.
---
---    dc.tensor { 2, 3 }:prod()
---
---Errors: DC0103, DC0104 for axes.
---@param axes? deepc.Axes all
---@return deepc.Tensor of the dtype of x, of integers i64 or u64
function Tensor:prod(axes) end
dc.prod = Tensor.prod

---Are all true? Of a bool tensor; x:ne(0) makes one.
---
---    dc.tensor { 1, 2 }:gt(0):all()
---
---Errors: DC0202 for other dtypes; DC0103, DC0104 for axes.
---@param axes? deepc.Axes all
---@return deepc.Tensor # bool
function Tensor:all(axes) end
dc.all = Tensor.all

---Is any true? Of a bool tensor; x:ne(0) makes one.
---
---    dc.tensor { 1, 2 }:gt(1):any()
---
---Errors: DC0202 for other dtypes; DC0103, DC0104 for axes.
---@param axes? deepc.Axes all
---@return deepc.Tensor # bool
function Tensor:any(axes) end
dc.any = Tensor.any

---The variance: squares of the distances from the mean, by their count less the correction (0). Of complex numbers the
---sum of those of both parts, a real number.
---
---    dc.tensor { 1, 2, 4 }:var { correction = 1 }
---
---Errors: DC0103, DC0104 for axes.
---@param axes? deepc.Axis|deepc.Axis[]|{ axis?: deepc.Axis|deepc.Axis[], keep?: boolean, correction?: number } all
---@return deepc.Tensor of the dtype of x, a float; f32 of integers and bool
function Tensor:var(axes) end
dc.var = Tensor.var

---The standard deviation, the root of x:var; its gradient is 0 where all are equal.
---
---    dc.tensor { 1, 2, 4 }:std()
---
---Errors: DC0103, DC0104 for axes.
---@param axes? deepc.Axis|deepc.Axis[]|{ axis?: deepc.Axis|deepc.Axis[], keep?: boolean, correction?: number } all
---@return deepc.Tensor of the dtype of x, a float; f32 of integers and bool
function Tensor:std(axes) end
dc.std = Tensor.std

---The root of the sum of squares; its gradient at 0 is 0.
---
---    dc.tensor { 3, 4 }:norm()
---
---Errors: DC0103, DC0104 for axes.
---@param axes? deepc.Axes all
---@return deepc.Tensor of the dtype of x, a float; f32 of integers and bool
function Tensor:norm(axes) end
dc.norm = Tensor.norm

---log(sum(exp(x))), safe for large x.
---
---    dc.tensor { 1000, 1000 }:logsumexp()
---
---Errors: DC0202 for integers and booleans; DC0103, DC0104 for axes.
---@param axes? deepc.Axes all
---@return deepc.Tensor of the dtype of x, a float
function Tensor:logsumexp(axes) end
dc.logsumexp = Tensor.logsumexp

-- ---- Of what is no NaN ----

---The sum of what is no NaN (torch.nansum, np.nansum); 0 where there is nothing else.
---
---    dc.tensor { 1, 0 / 0, 3 }:nansum()
---
---Errors: DC0103, DC0104 for axes.
---@param axes? deepc.Axes all
---@return deepc.Tensor of the dtype of x, of integers i64 or u64
function Tensor:nansum(axes) end
dc.nansum = Tensor.nansum

---The product of what is no NaN (np.nanprod); 1 where there is nothing else.
---
---    dc.tensor { 1, 0 / 0, 3 }:nanprod()
---
---Errors: DC0103, DC0104 for axes.
---@param axes? deepc.Axes all
---@return deepc.Tensor of the dtype of x, of integers i64 or u64
function Tensor:nanprod(axes) end
dc.nanprod = Tensor.nanprod

---The mean of what is no NaN (torch.nanmean, np.nanmean); NaN where there is nothing else.
---
---    dc.tensor { 1, 0 / 0, 3 }:nanmean()
---
---Errors: DC0103, DC0104 for axes.
---@param axes? deepc.Axes all
---@return deepc.Tensor of the dtype of x, a float; f32 of integers and bool
function Tensor:nanmean(axes) end
dc.nanmean = Tensor.nanmean

---The largest of what is no NaN (np.nanmax); NaN where there is nothing else.
---
---    dc.tensor { 1, 0 / 0, 3 }:nanmax()
---
---Errors: DC0103, DC0104 for axes.
---@param axes? deepc.Axes all
---@return deepc.Tensor of the dtype of x
function Tensor:nanmax(axes) end
dc.nanmax = Tensor.nanmax

---The smallest of what is no NaN (np.nanmin); NaN where there is nothing else.
---
---    dc.tensor { 1, 0 / 0, 3 }:nanmin()
---
---Errors: DC0103, DC0104 for axes.
---@param axes? deepc.Axes all
---@return deepc.Tensor of the dtype of x
function Tensor:nanmin(axes) end
dc.nanmin = Tensor.nanmin

---The variance of what is no NaN, as x:var (np.nanvar); NaN where there is no more than the correction.
---
---    dc.tensor { 1, 0 / 0, 3 }:nanvar()
---
---Errors: DC0103, DC0104 for axes.
---@param axes? deepc.Axis|deepc.Axis[]|{ axis?: deepc.Axis|deepc.Axis[], keep?: boolean, correction?: number } all
---@return deepc.Tensor of the dtype of x, a float; f32 of integers and bool
function Tensor:nanvar(axes) end
dc.nanvar = Tensor.nanvar

---The root of x:nanvar (np.nanstd).
---
---    dc.tensor { 1, 0 / 0, 3 }:nanstd()
---
---Errors: DC0103, DC0104 for axes.
---@param axes? deepc.Axis|deepc.Axis[]|{ axis?: deepc.Axis|deepc.Axis[], keep?: boolean, correction?: number } all
---@return deepc.Tensor of the dtype of x, a float; f32 of integers and bool
function Tensor:nanstd(axes) end
dc.nanstd = Tensor.nanstd

---How many elements are not 0, or true; NaN counts (torch.count_nonzero, np.count_nonzero).
---
---    dc.tensor { 0, 1, 2 }:count_nonzero()
---
---Errors: DC0103, DC0104 for axes.
---@param axes? deepc.Axes all
---@return deepc.Tensor # i32
function Tensor:count_nonzero(axes) end
dc.count_nonzero = Tensor.count_nonzero

---Running sums along an axis: at each position the sum up to it. With { axis = 2, reverse = true } of those from
---there to the end. Work and memory are in proportion to the elements; floats of 16 bits are added in f32. Sums of
---integers have 64 bits, counts of bool are i32, as those of x:sum; the option dtype asks for another.
---
---    dc.tensor { 1, 2, 3 }:cumsum(1)
---
---Errors: DC0101 without an axis, DC0103 for the axis.
---@param axis deepc.Axis|{ axis: deepc.Axis, reverse?: boolean, dtype?: string } may be left out where there is one
---@return deepc.Tensor of the shape of x, of its dtype; of integers i64 or u64, of bool i32
function Tensor:cumsum(axis) end
dc.cumsum = Tensor.cumsum

---Running products along an axis, as cumsum. A factor of 0 is nothing special for gradients.
---
---    dc.tensor { 1, 2, 3 }:cumprod(1)
---
---Errors: DC0101 without an axis, DC0103 for the axis.
---@param axis deepc.Axis|{ axis: deepc.Axis, reverse?: boolean, dtype?: string } may be left out where there is one
---@return deepc.Tensor of the shape of x, of its dtype; of integers i64 or u64, of bool i32
function Tensor:cumprod(axis) end
dc.cumprod = Tensor.cumprod

---Running maxima along an axis: at each position the largest up to it, as cumsum. Behind a NaN all are NaN; of equal
---largest ones each has the same share of the gradient.
---
---    dc.tensor { 1, 3, 2 }:cummax(1)
---
---Errors: DC0101 without an axis, DC0103 for the axis.
---@param axis deepc.Axis|{ axis: deepc.Axis, reverse?: boolean } may be left out where there is one
---@return deepc.Tensor of the type of x
function Tensor:cummax(axis) end
dc.cummax = Tensor.cummax

---Running minima along an axis, as cummax.
---
---    dc.tensor { 3, 1, 2 }:cummin { axis = 1, reverse = true }
---
---Errors: DC0101 without an axis, DC0103 for the axis.
---@param axis deepc.Axis|{ axis: deepc.Axis, reverse?: boolean } may be left out where there is one
---@return deepc.Tensor of the type of x
function Tensor:cummin(axis) end
dc.cummin = Tensor.cummin

---log(cumsum(exp(x))) along an axis, right where exp(x) would overflow, and for -inf.
---
---    dc.tensor { 1000, 1000 }:logcumsumexp(1)
---
---Errors: DC0101 without an axis, DC0103 for the axis, DC0202 for integers.
---@param axis deepc.Axis|{ axis: deepc.Axis, reverse?: boolean } may be left out where there is one
---@return deepc.Tensor of the type of x
function Tensor:logcumsumexp(axis) end
dc.logcumsumexp = Tensor.logcumsumexp

---The position of the largest along an axis, from 0; the first if several are.
---
---    dc.tensor { 3, 1, 4 }:argmax(1)
---
---Errors: DC0101 without an axis, or where it has no elements; DC0103 for the axis.
---@param axis deepc.Axis may be left out where there is one
---@return deepc.Tensor # i32
function Tensor:argmax(axis) end
dc.argmax = Tensor.argmax

---The position of the smallest along an axis, from 0; the first if several are.
---
---    dc.tensor { 3, 1, 4 }:argmin(1)
---
---Errors: as x:argmax.
---@param axis deepc.Axis may be left out where there is one
---@return deepc.Tensor # i32
function Tensor:argmin(axis) end
dc.argmin = Tensor.argmin

---exp(x) divided by its sum along an axis; safe for large x.
---
---    dc.zeros "f32[2, 3]":softmax(2)
---
---Errors: DC0202 for integers and booleans, DC0101 without an axis, DC0103 for the axis.
---@param axis deepc.Axis may be left out where there is one
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:softmax(axis) end
dc.softmax = Tensor.softmax

---The logarithm of softmax, computed at once.
---
---    dc.zeros "f32[2, 3]":log_softmax(2)
---
---Errors: DC0202 for integers and booleans, DC0101 without an axis, DC0103 for the axis.
---@param axis deepc.Axis may be left out where there is one
---@return deepc.Tensor of the shape and dtype of x, a float
function Tensor:log_softmax(axis) end
dc.log_softmax = Tensor.log_softmax

-- ---- Products ----

---The product of matrices: the last two axes; axes before those align and stretch as in a + b. Of integers in i64, of
---unsigned ones in u64; of 8 bits in i32, which is refused where it may not hold the sum. The option dtype asks for
---another.
---
---    dc.zeros "f32[64, 784]":matmul(dc.zeros "f32[784, 10]")
---    dc.ones "i32[4, 4]":matmul(dc.ones "i32[4, 4]", { dtype = "i32" })
---
---Errors: DC0301 where the inner sizes differ, DC0201 for other dtypes, DC0202 for booleans, DC0302 for a
---scalar.
---@param b deepc.Tensor|deepc.Cell of the same dtype
---@param options? { dtype?: string }
---@return deepc.Tensor of the dtype of both, of integers i64, u64 or i32
function Tensor:matmul(b, options) end
dc.matmul = Tensor.matmul

---Products over letters, which blanks separate: what the result lacks is summed. A letter twice in
---one operand is its diagonal; "..." stands for the axes that are left. Results have the names of
---the operands' dims.
---
---    dc.einsum("b i, i o -> b o", dc.zeros "f32[2, 3]", dc.zeros "f32[3, 4]")
---
---Errors: DC0101 in the text, DC0301 where sizes of a letter differ, DC0302 for counts of axes.
---@param text string "b i, i o -> b o"
---@param ... deepc.Tensor|deepc.Cell as many as the text has
---@return deepc.Tensor
function dc.einsum(text, ...) end

-- ---- Convolutions and pools ----

---@alias deepc.PerDim integer|integer[] one for all dims of the window, or a list

---Each result is a sum of products over a window of x and all its channels; the kernel is not turned
---round. x is [batch, channels, height, width], w [channels of the result, channels / groups, height, width
---of the window], the result [batch, channels, height, width].
---
---    dc.conv2d(dc.zeros "f32[8, 3, 28, 28]", dc.zeros "f32[16, 3, 3, 3]", { padding = 1 })
---
---Options: stride (1), dilation (1, the distance of elements of the window), groups (1), padding (0): zeros
---round x, as a number, a list of one for each dim, a list of lists with both sides, or "same".
---
---Errors: DC0301 where channels differ, DC0302, DC0309 for a window larger than x, DC0310 for groups.
---@param x deepc.Tensor|deepc.Cell
---@param w deepc.Tensor|deepc.Cell of the same dtype
---@param options? { stride?: deepc.PerDim, padding?: deepc.PerDim|string, dilation?: deepc.PerDim, groups?: integer }
---@return deepc.Tensor of the dtype of both; of 8/16-bit integers i32
function dc.conv2d(x, w, options) end

---dc.conv2d for one dim: x is [batch, channels, length].
---
---    dc.conv1d(dc.zeros "f32[8, 3, 28]", dc.zeros "f32[16, 3, 5]", { padding = "same" })
---
---Errors: as dc.conv2d.
---@param x deepc.Tensor|deepc.Cell
---@param w deepc.Tensor|deepc.Cell
---@param options? { stride?: deepc.PerDim, padding?: deepc.PerDim|string, dilation?: deepc.PerDim, groups?: integer }
---@return deepc.Tensor
function dc.conv1d(x, w, options) end

---dc.conv2d for three dims: x is [batch, channels, depth, height, width].
---
---    dc.conv3d(dc.zeros "f32[1, 2, 8, 8, 8]", dc.zeros "f32[4, 2, 3, 3, 3]")
---
---Errors: as dc.conv2d.
---@param x deepc.Tensor|deepc.Cell
---@param w deepc.Tensor|deepc.Cell
---@param options? { stride?: deepc.PerDim, padding?: deepc.PerDim|string, dilation?: deepc.PerDim, groups?: integer }
---@return deepc.Tensor
function dc.conv3d(x, w, options) end

---A convolution the other way round, the gradient of dc.conv2d for its x: each element of x adds the kernel, times
---itself, to the result, `stride` apart. x is [batch, channels, height, width], w [channels, channels of the result
---/ groups, height, width of the window]. torch.nn.functional.conv_transpose2d.
---
---    dc.conv_transpose2d(dc.zeros "f32[8, 16, 14, 14]", dc.zeros "f32[16, 3, 4, 4]", { stride = 2, padding = 1 })
---
---Options: stride (1), dilation (1), groups (1), padding (0): what is cut from the result, as a number, a list of
---one for each dim, a list of lists with both sides; output_padding (0): so many more elements behind it, of which
---only those of padding that was not needed are not 0.
---
---Errors: DC0301 where channels differ, DC0302, DC0310 for groups, DC0101 where nothing is left.
---@param x deepc.Tensor|deepc.Cell
---@param w deepc.Tensor|deepc.Cell of the same dtype
---@param options? table see above
---@return deepc.Tensor of the dtype of both; of 8/16-bit integers i32
function dc.conv_transpose2d(x, w, options) end

---dc.conv_transpose2d for one dim: x is [batch, channels, length].
---
---    dc.conv_transpose1d(dc.zeros "f32[8, 16, 14]", dc.zeros "f32[16, 3, 4]", { stride = 2 })
---
---Errors: as dc.conv_transpose2d.
---@param x deepc.Tensor|deepc.Cell
---@param w deepc.Tensor|deepc.Cell
---@param options? table as of dc.conv_transpose2d
---@return deepc.Tensor
function dc.conv_transpose1d(x, w, options) end

---dc.conv_transpose2d for three dims: x is [batch, channels, depth, height, width].
---
---    dc.conv_transpose3d(dc.zeros "f32[1, 2, 4, 4, 4]", dc.zeros "f32[2, 3, 2, 2, 2]", { stride = 2 })
---
---Errors: as dc.conv_transpose2d.
---@param x deepc.Tensor|deepc.Cell
---@param w deepc.Tensor|deepc.Cell
---@param options? table as of dc.conv_transpose2d
---@return deepc.Tensor
function dc.conv_transpose3d(x, w, options) end

---@class deepc.MaxPoolOptions
---@field stride? deepc.PerDim
---@field padding? deepc.PerDim
---@field dilation? deepc.PerDim
---@field ceil_mode? boolean
---@field return_indices? boolean

---The largest element of each window, NaN where there is one. The gradient goes to the first of equal
---elements, the last axis counting fastest.
---
---    dc.max_pool2d(dc.zeros "f32[8, 16, 28, 28]", 2)
---
---Options: stride (that of the window), padding (0; what is outside is never the largest), dilation (1), ceil_mode
---(false; true: a last window may look behind the padding if it begins before), return_indices (false; true: where
---the largest elements are, too, counted from 0 over height and width as in PyTorch: the first of equal ones, the last
---NaN; for nn.max_unpool2d).
---
---Errors: DC0302, DC0309 for a window larger than x; DC0311 for indices where the width has a bound.
---@param x deepc.Tensor|deepc.Cell [batch, channels, height, width]
---@param window deepc.PerDim
---@param options? deepc.MaxPoolOptions
---@return deepc.Tensor of the dtype of x, with one element for each place of the window
---@return deepc.Tensor? indices i32, with return_indices
function dc.max_pool2d(x, window, options) end

---dc.max_pool2d for one dim.
---
---    dc.max_pool1d(dc.zeros "f32[8, 16, 28]", 2)
---
---Errors: as dc.max_pool2d.
---@param x deepc.Tensor|deepc.Cell
---@param window deepc.PerDim
---@param options? deepc.MaxPoolOptions
---@return deepc.Tensor
---@return deepc.Tensor? indices i32, with return_indices
function dc.max_pool1d(x, window, options) end

---dc.max_pool2d for three dims.
---
---    dc.max_pool3d(dc.zeros "f32[1, 2, 8, 8, 8]", 2)
---
---Errors: as dc.max_pool2d.
---@param x deepc.Tensor|deepc.Cell
---@param window deepc.PerDim
---@param options? deepc.MaxPoolOptions
---@return deepc.Tensor
---@return deepc.Tensor? indices i32, with return_indices
function dc.max_pool3d(x, window, options) end

---The mean of each window; of integers f32.
---
---    dc.avg_pool2d(dc.zeros "f32[8, 16, 28, 28]", 2)
---
---Options: stride (that of the window), padding (0), count_padding (true: padding counts as zeros; false:
---not at all; torch's count_include_pad), ceil_mode (false; true: a last window may look behind the padding if it
---begins before, which never counts), divisor_override (a number by which every sum is divided).
---
---Errors: DC0302, DC0309 for a window larger than x.
---@param x deepc.Tensor|deepc.Cell [batch, channels, height, width]
---@param window deepc.PerDim
---@param options? table see above
---@return deepc.Tensor as dc.max_pool2d; of integers f32
function dc.avg_pool2d(x, window, options) end

---dc.avg_pool2d for one dim.
---
---    dc.avg_pool1d(dc.zeros "f32[8, 16, 28]", 2)
---
---Errors: as dc.avg_pool2d.
---@param x deepc.Tensor|deepc.Cell
---@param window deepc.PerDim
---@param options? table see above
---@return deepc.Tensor
function dc.avg_pool1d(x, window, options) end

---dc.avg_pool2d for three dims.
---
---    dc.avg_pool3d(dc.zeros "f32[1, 2, 8, 8, 8]", 2)
---
---Errors: as dc.avg_pool2d.
---@param x deepc.Tensor|deepc.Cell
---@param window deepc.PerDim
---@param options? table see above
---@return deepc.Tensor
function dc.avg_pool3d(x, window, options) end
