---@meta _

-- Functions over one more axis (annotations; see values.lua).

---@class deepc
local dc = {}

-- ---- Functions over an axis ----

---A function that calls f for each row of its tensors and stacks what f returns: f is written for one row, and
---the result is as fast as if it had been written for all of them.
---
---    local dot = dc.vmap(function(a, b) return (a * b):sum() end)
---    print(dot(dc.tensor { { 1, 2 }, { 3, 4 } }, dc.tensor { { 5, 6 }, { 7, 8 } }))
---
---Rows go along axis 1 of every tensor among the arguments, in records and lists too. in_axes says otherwise: for
---each argument the number of an axis, from the end if negative, the name of a dim, or false, which leaves the
---argument as it is for all rows; for a record, a table of these; one that is no list is for all arguments. Numbers
---and other values are the same for all rows, and so is what f captures: tensors, parameters, layers. If nothing is
---mapped, size says how many rows there are.
---
---    local outer = dc.vmap(function(a, b) return a * b end, { in_axes = { 1, false } })
---    print(outer(dc.tensor { 1, 2, 3 }, dc.tensor { 4, 5 }))
---
---f returns tensors, records or lists of them, and numbers. The new axis is the first one of each result, or the
---one that out_axes says, in the same ways: with the name of a dim it stands in front of that dim; false is for a
---result that is the same for all rows, which stays without the axis. It has the name of the mapped axis, which must
---not be another one in each argument.
---
---In a typed function f is traced once, and each operation is made for all rows: a product of a matrix with a mapped
---vector becomes one product of two matrices. So gradients in f are those of each row, and dc.grad goes through the
---result.
---
---    local w = dc.param("f32[2, 3]", 1)
---    local slopes = dc.fn("slopes(xs: f32[8, 2]) -> f32[8, 2, 3]", function(xs)
---      return dc.vmap(function(x) return dc.grad(x:matmul(w):tanh():sum(), w) end)(xs)
---    end)
---    print(#slopes(dc.ones "f32[8, 2]").shape)
---
---Loops, branches and dc.vmap may stand in f, and it in them. A loop runs until all rows have ended; of a branch
---whose condition differs between rows, both sides are computed, so that a gradient taken outside of f may be NaN where
---the other side's is: 0 times infinity, as of sqrt at 0. dc.grad in f has that of the side alone. Each row draws its
---own random numbers. Checks of data tell the first row that fails, and dc.print shows all rows at once. f sets no
---cell. Elsewhere f is called by a loop of Lua.
---
---Errors: DC0101 where arguments have different numbers of rows; DC0103 for an axis that is none; DC0307 where the
---new axis is one too many; DC0614 where f returns no tensor or sets a cell; DC0603 where a tensor that was made in
---f is used after it, DC0608 where f assigns what it captured.
---@param f fun(...): ...
---@param options? { in_axes?: integer|string|boolean|table, out_axes?: integer|string|boolean|table, size?: integer }
---@return fun(...): ...
function dc.vmap(f, options) end

---Running combinations along an axis: at each position what f has made of the elements up to it. f(a, b) combines what
---lies in front, a, with what follows, b, and is called with whole slices, which it combines element by element along
---the axis: about twice the logarithm of the number of elements often, so that the depth is small where a loop goes
---step by step. It must be associative: f(f(a, b), c) is f(a, f(b, c)), but for rounding.
---
---    print(dc.associative_scan(function(a, b) return a:maximum(b) end, dc.tensor { 3, 1, 4, 1, 5 }))
---
---xs is a tensor, or a record or list of them that f gets and returns in this form, which makes recurrences of it.
---h[t] = k[t] * h[t - 1] + x[t] for all t:
---
---    local k, x = dc.full("f32[6]", 0.5), dc.ones "f32[6]"
---    local h = dc.associative_scan(function(a, b)
---      return { k = a.k * b.k, x = a.x * b.k + b.x }
---    end, { k = k, x = x }).x
---    print(h)
---
---Axis 1 is the default. With { reverse = true } it begins at the end, and b lies in front of a.
---
---Errors: DC0101 where the tensors have different sizes along the axis, DC0103 for the axis, DC0614 where f returns
---another form or other types than it is called with.
---@param f fun(a: any, b: any): any
---@param xs deepc.Tree
---@param options? { axis?: deepc.Axis, reverse?: boolean }
---@return any
function dc.associative_scan(f, xs, options) end
