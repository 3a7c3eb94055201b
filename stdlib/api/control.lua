---@meta _

-- Loops and branches (annotations; see values.lua).

---@class deepc
local dc = {}

-- ---- Loops and branches ----

---A tensor, or a record or list of trees: what loops carry, cut and stack. A number among what a loop begins
---with is an f32[], true and false are a bool[].
---@alias deepc.Tree deepc.Tensor|number|boolean|table

---Calls body(carry, x, i) for each element of xs along axis 1, one after the other: x is the element, without
---that axis, carry what the call before returned, init first, and i the number of the element, an i32[] that
---counts from 0 as data does. Returns the last carry, and y of all calls stacked along a new axis 1, which has
---the name of axis 1 of xs.
---
---    local last, sums = dc.scan(function(carry, x) return carry + x, carry + x end, 0, dc.tensor { 1, 2, 3 })
---    print(last, sums)
---
---carry, x and y are tensors, or records and lists of them, as deep as one likes; each may be nil. A carry keeps
---its type from one call to the next. With { reverse = true } the last element comes first. Without xs,
---{ length = n } says how often the body is called. With { remat = true } gradients keep the carries of every
---sqrt(n)-th iteration alone, and compute the others again: less memory, one more forward pass (Chen and others,
---Training Deep Nets with Sublinear Memory Cost, 2016).
---
---In a typed function the body is traced once and is a loop of the graph, which takes as long to compile for ten
---elements as for a million. Layers, parameters and tensors that it reads are found by themselves; cells that it
---sets, random numbers, checks of data and dc.print are those of each iteration. Elsewhere the body is called by
---a loop of Lua.
---
---Errors: DC0614 where the body returns another carry than it was given, or nothing; DC0603 where a tensor that was
---made in the body is used after it, DC0608 where it assigns what it captured; DC0101 for xs of different lengths.
---@param body fun(carry: any, x: any, i: deepc.Tensor): any, any
---@param init deepc.Tree|nil
---@param xs deepc.Tree|nil
---@param options? { reverse?: boolean, length?: integer, remat?: boolean }
---@return any carry
---@return any ys
function dc.scan(body, init, xs, options) end

---f(x, i) for each element of xs along axis 1, stacked along a new axis 1: dc.scan without a carry.
---
---    local norms = dc.map(function(row) return (row * row):sum():sqrt() end, dc.tensor { { 3, 4 }, { 6, 8 } })
---
---Errors: those of dc.scan.
---@param f fun(x: any, i: deepc.Tensor): any
---@param xs deepc.Tree
---@return any ys
function dc.map(f, xs) end

---Calls body(carry, i) as long as condition(carry, i) is true, and returns the last carry. The condition returns a
---bool[]; i counts the iterations from 0. With { max = n } there are at most n of them.
---
---    local c = dc.loop(function(c) return c.x:lt(100) end, function(c)
---      return { x = c.x * 2, n = c.n + 1 }
---    end, { x = 1, n = 0 })
---    print(c.x, c.n)
---
---In a typed function both are traced once. The condition changes nothing: it sets no cell and does not print.
---
---Errors: DC0614 where the condition returns no bool[], and those of dc.scan.
---@param condition fun(carry: any, i: deepc.Tensor): deepc.Tensor
---@param body fun(carry: any, i: deepc.Tensor): any
---@param init deepc.Tree|nil
---@param options? { max?: integer, remat?: boolean } remat as for dc.scan
---@return any carry
function dc.loop(condition, body, init, options) end

---Calls body(i, carry) n times and returns the last carry; i is an i32[] from 0 to n - 1. n is an integer, or an
---i32[] that is known when the function is called; less than 0 is 0. With { max = m } there are at most m iterations.
---
---    print(dc.fori(10, function(i, sum) return sum + i:cast "f32" end, 0))
---
---Errors: those of dc.scan.
---@param n integer|deepc.Tensor
---@param body fun(i: deepc.Tensor, carry: any): any
---@param init deepc.Tree|nil
---@param options? { max?: integer, remat?: boolean } remat as for dc.scan
---@return any carry
function dc.fori(n, body, init, options) end

---yes(...) if the bool[] p is true, else no(...). Both return the same number of values of the same types. In a
---typed function both are traced, and one of them runs at each call; what the other one would do does not happen.
---If p is true or false, a Lua boolean, that function is called and the other one is not looked at.
---
---    local x = dc.tensor { -3, 4 }
---    print(dc.cond(x:sum():gt(0), function(a) return a:sqrt() end, function(a) return a * 2 end, x))
---
---dc.where chooses element by element, and computes both.
---
---Errors: DC0614 where they return different types; DC0603 where a tensor that was made in one is used after it.
---@param p deepc.Tensor|boolean
---@param yes fun(...): ...
---@param no fun(...): ...
---@param ... any what they are called with
---@return ...
function dc.cond(p, yes, no, ...) end

---Calls one function of the list: the first if i is 0, the second if it is 1. Less than 0 is 0, and more than there
---are is the last. i is an i32[], or an integer, which counts from 0 as well.
---
---    local double, square = function(x) return x * 2 end, function(x) return x * x end
---    print(dc.switch(dc.full("i32[]", 1), { double, square }, dc.tensor { 3, 4 }))
---
---Errors: those of dc.cond.
---@param i deepc.Tensor|integer
---@param list (fun(...): ...)[]
---@param ... any what they are called with
---@return ...
function dc.switch(i, list, ...) end
