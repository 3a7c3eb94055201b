---@meta _

-- Typed functions, parameters, gradients (annotations; see values.lua).

---@class deepc
local dc = {}

---@class deepc.Tensor
local Tensor = {}

---@class deepc.Function
local Function = {}

-- ---- Typed functions ----

---A typed function: the signature, then a body that is traced. Given all sizes, it is traced and
---checked here; otherwise at the first call with each set of sizes. The body runs then, and once more
---at the second call; not at calls.
---
---A type of the signature is "f32[n, 784]" (also with expressions such as 2*n+1, and "..."), a record
---"{ x: f32[n], y: i32[n] }" or a list "{ f32[n] }". A parameter "x?: type" may be nil; one without a
---type is static: each value is a specialisation of its own.
---
---Where ranks work together "f32[n @ data, 784]" says along which axes of the mesh an axis is split (docs/ranks.md).
---Options for them: `strict = true`, values are exchanged only where a type or dc.reshard asks for it, sums excepted;
---`reduce = "f32"`, gradients of 16-bit floats are summed in f32.
---
---What the body captures - locals, fields, globals, tensors - may not change unseen: a call compares,
---and traces again where something did.
---
---    local f = dc.fn("f(x: f32[n, 784]) -> f32[n]", function(x) return x:sum(2) end)
---
---Errors: DC0401, DC0402 in the signature; whatever the body raises; DC0405, DC0406 for its results;
---DC0403, DC0404 for the arguments of a call; DC0605 to DC0608 for what is captured; DC0313 for what is split.
---@param signature string "name(x: type, ...) -> type, ..."
---@param body function|table what is traced; anything that can be called
---@param sizes? table<string, integer|integer[]> of names: { batch = 64 }, { batch = { 64, 32 } }
---@param options? { limit?: integer, strict?: boolean, reduce?: string } limit: of specialisations; 8
---@return deepc.Function
function dc.fn(signature, body, sizes, options) end

---Traces and checks it for some sizes, without a device.
---
---    dc.fn("f(x: f32[n]) -> f32[]", function(x) return x:sum() end):check { n = 64 }
---
---Errors: as dc.fn.
---@param sizes? table<string, any> of the dims; static parameters and lengths of lists by name
function Function:check(sizes) end

---Writes it to a file, with its parameters and what it captured, for hosts in C that call it without Lua
---(dc_load in deepc.h). The file has a variant for each table of sizes; without one, for each specialisation
---that there is. A path that ends in ".mlir" or ".mlirbc" is written as a program of StableHLO, for one table of sizes,
---with the options of stablehlo.export behind them.
---
---    local net = nn.Linear(4, 2)
---    local policy = dc.fn("policy(x: f32[n, 4]) -> f32[n, 2]", function(x) return net(x):softmax(2) end)
---    policy:export(os.tmpname(), { n = 1 }, { n = 64 })
---
---Errors: DC0101 without sizes where nothing has been compiled, or where two variants have the same types of
---arguments; DC0801 for the file.
---@param path string
---@param ... table<string, any> sizes, as f:check takes them
function Function:export(path, ...) end

---Starts a call that is carried on piece by piece, a job, for hosts with other things to do between two frames.
---From here to its end the function's parameters and states that it sets are the job's own: reading or setting
---them is an error, and so is another call with the same sizes. What it only reads may change; the job goes on
---with the old values. Nothing has changed before the first of them is written.
---
---    local f = dc.fn("f(x: f32[1000]) -> f32[]", function(x) return x:sum() end)
---    local job = f:start(dc.ones "f32[1000]")
---    while not job:poll { ms = 2 } do end
---    print(job:result())
---
---Errors: as a call; DC0604 while a typed function is traced, or while a job of the same call has not ended.
---@param ... any the arguments
---@return deepc.Job
function Function:start(...) end

---Would a call, or a job, with these arguments begin at once? Where their types are new the function is traced for
---them, which this waits for, and compiled on another thread, which it does not; `false` until that has ended. Nothing
---is computed. On ranks the answers may differ.
---
---    local f = dc.fn("f(x: f32[n]) -> f32[]", function(x) return x:exp():sum() end)
---    while not f:ready(dc.ones "f32[1000]") do end --- draw a frame, say
---    print(f(dc.ones "f32[1000]"))
---
---Errors: as a call before it computes; DC0604 while a typed function is traced.
---@param ... any the arguments
---@return boolean
function Function:ready(...) end

---A call in slices. One that is closed or forgotten before its end is cancelled: nothing has changed, or, if it
---had begun to write parameters, these are to be set again before they are read (DC0610).
---@class deepc.Job
local Job = {}

---Carries it on for about so many milliseconds, at least one kernel.
---
---    local job = dc.fn("f(x: f32[3]) -> f32[]", function(x) return x:sum() end):start { 1, 2, 3 }
---    while not job:poll { ms = 2 } do end
---
---Errors: what the call would raise, which ends the job.
---@param options? { ms?: number } 0 without: one kernel
---@return boolean # has it ended?
function Job:poll(options) end

---What the call returns, after what is left of it; once.
---
---    print(dc.fn("f(x: f32[3]) -> f32[]", function(x) return x:sum() end):start({ 1, 2, 3 }):result())
---
---Errors: what the call would raise.
---@return any ...
function Job:result() end

---Cancels it. Jobs are closed by `local job <close> = f:start(x)` too.
---
---    dc.fn("f(x: f32[3]) -> f32[]", function(x) return x:sum() end):start({ 1, 2, 3 }):close()
function Job:close() end

---A value that typed functions read while they are traced: `k.value`. It is assigned outside; each
---value is a specialisation of its own.
---
---    local k = dc.static(2)
---@param value any
---@return deepc.Static
function dc.static(value) end

---The size of a dim of the innermost typed function that is traced.
---
---    dc.fn("f(x: f32[n, d]) -> f32[n, d]", function(x) return x / dc.dim "d" ^ 0.5 end):check { n = 2, d = 4 }
---
---Errors: DC0408 outside, or for a dim that the signature lacks.
---@param name string
---@return integer
function dc.dim(name) end

---Prints at each call of the typed function that it stands in; outside as print does.
---
---    dc.print("x is", x)
---@param ... any
function dc.print(...) end

---What has been compiled of it, one table for each set of sizes.
---Counts: kernels, launches, copies, nodes of the graph, cells set in place (donated) and copied (denied).
---Bytes: arena_bytes, of temporaries, and arena_lower_bound, the least that any order would need; arena_ratio
---is one by the other; derived_bytes, of the `derived` values that are kept from call to call. `interpreted`
---tells whether it runs on the interpreter.
---
---    f:info()[1].launches
---@return table[] counts and bytes
function Function:info() end

---A text about it: its specialisations with their calls, kernels with their lines, temporaries, which
---cells are set in place and why others are not, which values are kept from call to call, which are stored
---and which computed again; whose schedules were found by dc.tune.
---
---    print(f:explain())
---@return string
function Function:explain() end

---What its specialisations exchange with other ranks in a call, where values are in parts: `op`, `type` of what a rank
---gives, `over` the names of axes of the mesh, `bytes` that this rank gives to others each time, `times` in a call,
---`written`, was it asked for by a type or by dc.reshard, and `where`, the line of the script.
---
---    for _, x in ipairs(f:exchanges()) do print(x.op, x.type, x.bytes) end
---@return table[] { op, type, over, bytes, times, written, where }
function Function:exchanges() end

---What it is, as a table of tables, texts and numbers: its specialisations with their types, graph, kernels, commands
---and memory ([fields](../functions.md#as-a-table)). `f:explain()`, `f:plan()`, `f:kernels()` and `f:dot()` are made of
---it. The graph is made again by the stages of the compilation, which takes some milliseconds a kernel.
---
---    print(#f:report().specialisations[1].nodes)
---
---Errors: DC0101 for another form; those of the compilation that it waits for.
---@param form? "json" the table as a text for other programs
---@return table|string
function Function:report(form) end

---Its kernels, numbered through all specialisations. They are timed from the first f:kernels() on, at
---the prompt always. `calls` are those that were timed, in loops each round, `ms` is what they took together in
---milliseconds, `gflops` is 10^9 operations a second, `gbs` 10^9 bytes a second; 0 before the first. With a bounded dim
---`flops` and `bytes` are those of the largest sizes, and there is no rate: both are 0.
---
---    for n, k in ipairs(f:kernels()) do print(n, k.name, k.ms) end
---@return table[] name, lines, specialisation, launches, flops and bytes per call; calls, ms, gflops, gbs
function Function:kernels() end

---The text of a kernel.
---
---    for n in ipairs(f:kernels()) do print(f:source(n, "flat")) end
---
---Errors: DC0101 where there is no such kernel or form.
---@param n? integer of f:kernels(); 1
---@param form? "nest"|"schedule"|"flat"|"text" "text" is what a compiler is given; "nest"
---@return string
function Function:source(n, form) end

---Times other schedules for the kernels of a function that has been called, on the device at hand, and keeps those
---that are faster: calls from now on go by them, and so do other processes, through the cache on disk. Results are
---the same but for the order of additions in long sums. Takes about `seconds`; nothing is kept if it is interrupted.
---
---    for _, k in ipairs(dc.tune(f, { seconds = 5 })) do print(k.name, k.lines, k.rules_ms, k.best_ms) end
---
---A row for each kernel: name, lines, specialisation, launches per call; rules_ms and best_ms, of a launch by the
---rules' schedule and by the best one; gain, one by the other; tried, how many were timed; tuned, whether the best is
---not the rules'; schedule, its moves as DEEPC_SCHEDULE takes them; known, where it was found before and is not
---searched again; why, where the search did not go to its end. The list also has `seconds`.
---
---Errors: DC0101 where it has not been called yet; DC0604 in a trace, or while a job of the function is open.
---@param f deepc.Function
---@param options? table seconds (10, or DEEPC_TUNE_SECONDS); again: known kernels, too; forget: the rules' schedules
---@return table[]
function dc.tune(f, options) end

---A text: what runs in which order, what it writes and reads. `+64` is a temporary at that place; what
---stands below a launch with a `+` is part of it.
---
---    print(f:plan())
---@return string
function Function:plan() end

---The graph of a specialisation, the last one unless it is told, as a text for Graphviz: `dot -Tsvg step.dot -o
---step.svg`. Nodes have their operation, type and line, edges the type of what goes along them. It is the graph that
---is compiled: each colour is a group, which becomes a command (a node may be computed in several); numbers are those
---of the commands of f:report(). Clusters are layers, or the groups with `by = "group"`. `compiled = false` gives the
---graph as it was traced. `path` also writes it to a file.
---
---    io.open("/dev/null", "w"):write(f:dot { by = "group" })
---
---Errors: DC0101 for options, and where it has not been traced yet.
---@param options? { by?: "layer"|"group", compiled?: boolean, specialisation?: integer, path?: string }
---@return string
function Function:dot(options) end

-- ---- Parameters, states, gradients ----

---A parameter: a cell that is trained. "f32[784, 10 @ model]" with a whole initial value: each rank keeps its part.
---
---    local w = dc.param("f32[784, 10]", dc.randn("f32[784, 10]", { std = 0.02 }))
---    local b = dc.param(dc.zeros "f32[10]")
---
---Errors: DC0202 for a dtype that is no float, DC0407 for an initial value of another type, DC0101 for a
---table that does not fit.
---@param type deepc.Type|deepc.Tensor of floats; a tensor stands for its type
---@param init? deepc.Tensor|table|number without: the tensor in the place of the type, or zeros
---@param options? { device?: string } where it lies; without: where the initial value does
---@return deepc.Cell
function dc.param(type, init, options) end

---A state: a cell that is not trained, as running statistics and caches are.
---
---    local count = dc.state("i32[]", 0)
---    local mean = dc.state(dc.ones "f32[10]")     -- with these values
---    local cache = dc.state "f32[0 <= t <= 512, 64]" -- begins with the least size
---
---A first axis with a bound grows: the state has the size of what it is set to.
---
---Errors: DC0407 for an initial value of another type, DC0112 for a table that does not fit, DC0312 for a size that is
---out of its range.
---@param type deepc.Type|deepc.Tensor a tensor stands for its type
---@param init? deepc.Tensor|table|number without: the tensor in the place of the type, or zeros
---@param options? { device?: string } where it lies; without: where the initial value does
---@return deepc.Cell
function dc.state(type, init, options) end

---The parameter or state lies on that device from now on, with its value. Functions that read it are compiled anew;
---tensors with values that it had stay where they are.
---
---    dc.state("i32[]", 0):move "eval"
---
---Errors: DC1002 for a device that is not there, DC0604 in a typed function, DC0206 for a tensor, which x:to copies.
---@param device string "cpu", "opencl:0"
---@return deepc.Cell # itself
function Tensor:move(device) end

---The device of the context, where values of tables and files lie: what DEEPC_DEVICE or the host names.
---
---    print(dc.device())
---@return string # "cpu"
function dc.device() end

---Gives a cell another value; reads after it see that. In a typed function it changes when the call
---ends, and not at all if the call fails.
---
---    dc.state("i32[]", 0):set(7)
---
---Errors: DC0407 for another type, DC0206 for what is no cell.
---@param value deepc.Operand|table of exactly the cell's type; a number fills it
function Tensor:set(value) end

---The gradient of a scalar, taken in the typed function that makes it. Of the same form as `wrt`.
---
---    dc.fn("f(x: f32[3]) -> f32[3]", function(x) return dc.grad((x * x):sum(), x) end)
---
---Errors: DC0501 where loss is no scalar, DC0502 where it carries no graph, DC0503 where it does not
---depend on one.
---@param loss deepc.Tensor
---@param wrt deepc.Cell|deepc.Tensor|(deepc.Cell|deepc.Tensor)[]
---@param options? { unused?: "zero" } zeros instead of an error
---@return deepc.Tensor|deepc.Tensor[]
function dc.grad(loss, wrt, options) end

---The same values, a constant for gradients.
---
---    dc.stop_gradient(x)
---@return deepc.Tensor
function Tensor:stop_gradient() end
dc.stop_gradient = Tensor.stop_gradient

---The same values as a start of gradients, for code outside typed functions: what is computed from it keeps
---its recipe for dc.grad, printed or not, up to 10,000 operations. Nothing is kept of what is behind x.
---
---    local x = dc.rand("f32[3]"):watch()
---    dc.grad((x * x):sum(), x)
---
---Errors: DC0202 for integers.
---@return deepc.Tensor
function Tensor:watch() end
dc.watch = Tensor.watch

---A function with a gradient of its own. forward takes tensors, or anything else, and returns one
---tensor; backward takes the gradient of that tensor, the tensor and the arguments, and returns a
---gradient for each argument, nil for one that has none. Both run when the result is called in a typed
---function. forward reads its arguments alone: the gradient of anything else would be lost.
---
---    local clip = dc.custom_grad(function(x) return x * 1 end,
---                                function(dy, y, x) return dy:maximum(-1):minimum(1) end)
---    dc.fn("f(x: f32[3]) -> f32[3]", function(x) return dc.grad(clip(x):sum(), x) end)
---
---Errors: DC0505 where forward reads a tensor that is no argument, DC0506 for a wrong number or type of
---gradients, and outside typed functions.
---@param forward fun(...): deepc.Tensor
---@param backward fun(dy: deepc.Tensor, y: deepc.Tensor, ...): ...
---@return fun(...): deepc.Tensor
function dc.custom_grad(forward, backward) end

---The same function and gradient, for less memory: what it computes on the way is not kept for the
---gradient, but computed again from its arguments. What it reads besides has its gradient as well.
---
---    local block = dc.remat(function(x) return (x * x):exp() end)
---    dc.fn("f(x: f32[3]) -> f32[3]", function(x) return dc.grad(block(x):sum(), x) end)
---
---Errors: DC0506 where it does not return one tensor.
---@param f fun(...): deepc.Tensor
---@return fun(...): deepc.Tensor
function dc.remat(f) end

---The same function with products of 16 bits: `:matmul`, `dc.einsum` of two and convolutions that f calls round
---their f32 operands to this type, and their results, which are f32 again (mixed precision, Micikevicius et al.,
---2018; torch.autocast). Everything else - sums, norms, softmax, losses, parameters - stays f32, f64 is left alone.
---"f32" switches it off inside. Gradients of these products are products of 16 bits, too: with f16 small ones
---vanish, so the loss is scaled (optim.GradScaler).
---
---    local forward = dc.autocast("bf16", nn.Linear(8, 4))
---    print(forward(dc.ones "f32[2, 8]").dtype)
---
---Errors: DC0101 for another dtype, for what is no function, and where it calls a compiled function outside of
---typed functions: `dc.autocast` stands inside.
---@param dtype "bf16"|"f16"|"f32"
---@param f fun(...: any): ...
---@return fun(...: any): ...
function dc.autocast(dtype, f) end
