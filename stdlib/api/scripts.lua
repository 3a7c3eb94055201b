---@meta _

-- Files and the surroundings of a script (annotations; see values.lua).

---@class deepc
local dc = {}

-- ---- Files ----

---Writes a safetensors file, or GGUF where the path ends with ".gguf", whole or not at all. Names are paths from what
---is saved; a cell that stands in several places is stored once. Equal content gives equal bytes.
---
---`pieces` is a number of bytes: the path is that of an index, "model.safetensors.index.json", and beside it are files
---of so many bytes, or of one tensor that is larger. `type` is for GGUF: "f32", "f16", "bf16", "q8_0" or "q4_0" for
---floats of two axes and more, or a function of a name and its value that gives one of these or nil, which keeps the
---dtype. Metadata of GGUF are integers, floats, booleans, texts and lists of these.
---
---Several ranks save together, each of them a file beside an index, PATH.index.json: docs/files.md. Of a value that all
---have one rank writes its own. With `alone` this rank writes one file without the others, of whole values.
---
---    dc.save(os.tmpname(), net, { epoch = "5" })
---    dc.save(os.tmpname() .. ".safetensors.index.json", net, nil, { pieces = 2 << 30 })
---    dc.save(os.tmpname() .. ".gguf", net, { ["general.architecture"] = "mine", layers = 2 }, { type = "f16" })
---
---Errors: DC0101 for what the file does not hold, DC0801 where it cannot be written; the old one is as it was; DC1007
---where another rank could not write its part.
---@param path string
---@param what deepc.nn.Layer|deepc.optim.Optimizer|table of tensors, cells, layers, optimisers, tables of these
---@param metadata? table<string, any> texts; of GGUF other values, too
---@param options? { pieces?: integer, type?: string|function, alone?: boolean } as above
function dc.save(path, what, metadata, options) end

---The tensors of a file by name, and its metadata: safetensors, the index of several such files or the folder that has
---it, GGUF, what torch.save of PyTorch writes, arrays of NumPy; the content tells. What PyTorch keeps in tables is in
---tables here. With `into`, sets the cells of a layer, an optimiser or a table instead: all names,
---dtypes and sizes are compared before anything is changed. Quantised tensors of GGUF files become f32; floats become
---those of wider cells exactly.
---
---`partial` loads what has the same name on both sides. `only`, a list of names or a function of a name, says which
---tensors of the file there are; the rest is never read. `rename` is a function from a name in the file to ours, nil to
---leave the tensor out. `cast` rounds floats to the dtypes of narrower cells; without `into` a dtype for all floats, or
---true, which reads floats of 8 bits as f32. `packed` gives quantised tensors as they lie, u8[..., bytes of a row], and
---{ type = "q4_1", shape = { 3, 64 } } of each as the third result. `progress` is called with the bytes read and those
---in all.
---
---`linear` says how the file keeps the weights of linear layers, "in, out" or, as PyTorch does, "out, in", where it
---does not say so itself. `first = 0` is for files that count the parts of lists from 0, as those of PyTorch do:
---"0.weight" is the weight of net[1].
---
---Cells in parts get the part of this rank, which alone is read where it can be. Several ranks load into cells
---together, and an error of one is an error on all; with `alone` this rank does so without the others.
---
---    local path = os.tmpname()
---    dc.save(path, net)
---    dc.load(path, net)
---    print(dc.load(path, nil, { only = { "weight" }, cast = "bf16" }).weight)
---
---Errors: DC0801 where the file cannot be read, DC0802 where it is damaged, DC0804 where it does not fit.
---@param path string
---@param into? deepc.nn.Layer|deepc.optim.Optimizer|table
---@param options? table partial, linear, first, only, rename, cast, packed, progress, alone
---@return table<string, deepc.Tensor>|table<string, any> # tensors by name; with `into`, metadata
---@return table<string, any>|string[] # metadata; with `into`, the names of cells that got nothing
---@return table<string, string|table>? # without `into`: types of tensors left out; of packed ones type and shape
function dc.load(path, into, options) end

---All that training needs to go on exactly as if it had not been interrupted, in one file; see
---dc.checkpoint.
---@class deepc.Checkpoint
---@field path string
local Checkpoint = {}

---A file for parts by name: layers, optimisers, cells and tables of these, whose values it keeps, and data
---sets, whose positions it keeps. The generator of random numbers is kept as well.
---
---    local ckpt = dc.checkpoint("/tmp/run.safetensors", { model = net, optimizer = opt, data = set })
---@param path string
---@param parts table<string, any>
---@return deepc.Checkpoint
function dc.checkpoint(path, parts) end

---Writes the file, whole or not at all; the one before it stays until then. Several ranks do so together, as dc.save
---does; values and positions are those of the first.
---
---    local ckpt = dc.checkpoint(os.tmpname(), { model = net })
---    ckpt:save { step = 1200, best = 0.91 }
---
---Errors: DC0801 where it cannot be written.
---@param values? table<string, number|boolean|string> kept exactly
function Checkpoint:save(values) end

---Sets every part to what the file has, after all of it has been compared, and gives the values that were
---saved; nil where there is no file.
---
---    local ckpt = dc.checkpoint("/tmp/none.safetensors", { model = net })
---    local at = ckpt:load() or { step = 0 }
---
---Errors: as dc.load.
---@return table<string, number|boolean|string>?
function Checkpoint:load() end

-- ---- Scripts ----

---What a script was given on its command line: `--name value`, `--name=value`, `--flag`, `--no-flag`.
---Each row is a name, a default and a text; the default tells the type: integer, number, string, flag.
---More by name: `type` where there is no default, `choices`, `min`, `max`, `required`, `needs`, another option or a
---list of some that have to have a value where this one is given, and `value`, what --help calls it. `about` stands
---above the list in --help, which prints and ends the script; `rest` allows arguments without a name. Dashes in names
---are `_` in the result.
---
---    local options, files = dc.options({
---      about = "Trains a network.", rest = "[FILE...]",
---      { "epochs", 5, "passes over the data", min = 1 },
---      { "lr", 1e-3, "learning rate" },
---      { "model", "mlp", "what to train", choices = { "mlp", "cnn" } },
---      { "checkpoint", nil, "keeps all that is needed to go on", value = "FILE" },
---      { "resume", false, "go on where the last run stopped", needs = "checkpoint" },
---      { "loss-log", nil, "where to write losses", value = "FILE" },
---    }, { "--epochs", "3", "--resume", "--checkpoint=run.st", "a.idx" })
---    print(options.epochs, options.lr, options.loss_log, files[1])
---
---Errors: DC0101 for an option that is not known, a value that does not fit and what another option needs; DC0110 for
---reading a name that is no option.
---@param list table rows in order, about, rest
---@param args? string[] `arg`
---@return table # values by name
---@return string[] # arguments without a name
function dc.options(list, args) end

---Ends the script with a sentence for who runs it, and status 1 (sys.exit): an error without a place, a code or a
---traceback. It is raised as every error is: pcall catches it, what is to be closed is closed, and a host goes on.
---
---    pcall(dc.fail, "there is no text; Debian's package bible-kjv has it")
---
---Errors: DC0101 for what is no sentence.
---@param sentence string
function dc.fail(sentence) end

---A loop that shows on stderr how far it is, how long it takes and how fast it is: a bar on a terminal,
---else a line now and then. `metrics` is a table that the loop fills, or a function that returns one; what
---is in it is read, tensors included, when a line is written and at no other time.
---
---    local shown = {}
---    for i in dc.progress(3, { title = "steps", metrics = shown, show = "off" }) do
---      shown.loss = dc.tensor(1 / i)
---    end
---
---`total` is how many values there are, `size` how many items each is, where the iterator does not tell;
---`every` so many seconds a line; `show` is "auto", "bar", "lines" or "off", and DEEPC_PROGRESS what auto is.
---@param source function|table|integer an iterator such as set:batches(...), a list, or how often
---@param options? table title, metrics, total, size, every, show
---@return function # and what `for` needs besides
function dc.progress(source, options) end

---Draws a tensor where print prints: an image, a line or a histogram, as Sixel, as blocks with colours or as
---characters, by what the terminal can (docs/prompt.md). [n] is a line, [h, w], [h, w, c], [c, h, w] with 1, 3 or 4
---channels and batches of these are images. Where values are NaN or infinite, this is seen and told.
---
---    dc.show(dc.iota("f32[8, 8]", 2), { width = 40, mode = "ascii" })
---
---Options:
---
---* as: "image", "line" or "hist"
---* layout: of images, "HW", "HWC", "CHW", "NHW", "NHWC" or "NCHW", where the shape does not tell
---* range: of images, { low, high }, what is black and what is white
---* columns, bins: images side by side; intervals of a histogram
---* width, mode: characters; "auto", "sixel", "blocks" or "ascii" (DEEPC_SHOW)
---
---Errors: DC0301 for shapes that are no pictures, DC0202 for complex numbers, DC0101 for options.
---@param x deepc.Tensor
---@param options? table<string, any>
function dc.show(x, options) end

-- ---- Looking at it ----

---Writes a number to the file that DEEPC_LOG names, which `deepc top` follows (docs/monitoring.md), as dc.progress and
---train.fit do with their metrics. There is a line with each name once in a second at most, and one with the last
---values when the program deepc ends; a tensor of one element is read from the device then, and at no other time.
---Without DEEPC_LOG nothing happens.
---
---    for step = 1, 3 do
---      dc.metric("loss", dc.tensor(1 / step))
---    end
---
---Errors: DC0101 for what is no number.
---@param name string
---@param value number|deepc.Tensor
function dc.metric(name, value) end

---Records what runs from when to when, on which thread and device, until `t:stop()`, and writes it to a file in the
---Trace Event Format, which https://ui.perfetto.dev and chrome://tracing show (torch.profiler): calls of typed
---functions with their numbers, tracing, stages of compilations, kernels with their lines, layers, GFLOP/s and GB/s,
---copies, batches that are gathered, exchanges of ranks, files, waiting, memory, and what dc.span names. A path that
---ends with .gz is compressed. `deepc --trace run.json train.lua` records a whole script.
---
---    local t = dc.trace(os.tmpname())
---    dc.fn("f(x: f32[4]) -> f32[]", function(x) return x:sum() end)(dc.ones "f32[4]")
---    print(t:stop())
---
---The file is written when it is stopped, when `t` is closed (`local t <close>`), or when the state closes. Of several
---ranks each writes one: run.0.json, run.1.json. `spans` is how many are kept, a million unless it is given; what comes
---later is left out, and a note says so. While it records, kernels of a bundle run one after the other, and CUDA graphs
---kernel by kernel.
---
---Of a matrix dc.trace is the sum of its diagonal: see x:trace.
---
---Errors: DC0604 while another trace is recorded; DC0801 for a file that cannot be written, at once.
---@param path string
---@param options? table spans
---@return table # with t:stop(), which returns the path
function dc.trace(path, options) end

---A part of what dc.trace records, with a name, on the script's thread: from the call until the value is closed, by
---`s:close()` or at the end of its block. Where nothing is recorded it costs next to nothing.
---
---    do
---      local s <close> = dc.span "evaluation"
---      print(dc.ones("f32[3]"):sum())
---    end
---
---Errors: DC0101 for a name that is no text.
---@param name string
---@return table # with s:close()
function dc.span(name) end

---Counters since the context was opened: traces, compiles and compile_ns (nanoseconds), kernels, kernels_shared
---(found compiled already), kernels_cached (found on disk), launches, prologues (times that values kept from call
---to call were computed), calls, fallbacks and interpreted (calls and programs on the interpreter); denormals
---(calls of compiled functions that met denormal numbers, on CPUs: dc.flush_denormals); realized, lazy_programs,
---lazy_general (of these, for any size) and lazy_nodes (now) of code outside typed functions;
---bytes_live and bytes_peak (of tensors, now and at most), allocs, handles (now), lost (values given back without
---the finalizer that Lua could not call), moved_out (values of cells copied because a tensor showed them);
---collections (whole ones of Lua's collector, for memory of tensors); compare_max (of DEEPC_COMPARE). And `device`, its
---name; `schedules`, "rules" or the fingerprint of those that dc.tune has found: on the same device, equal
---fingerprints give equal bits.
---
---    dc.stats().launches
---@return table<string, number|string>
function dc.stats() end

---Seconds of a clock that never goes back, from some moment on: differences are times that passed. os.clock counts what
---processors worked, for all threads, and nothing while a rank waits.
---
---    local begun = dc.clock()
---    print(dc.clock() - begun < 60)
---@return number
function dc.clock() end

---Whether operations that make infinities or NaN are errors from now on, as with `DEEPC_CHECK=nan`: a call
---whose results or cells hold some is run again on the interpreter, which names the operation, its line and its
---layer; cells keep their old values. Without an argument nothing changes.
---
---    dc.check_numbers(true)
---    local ok, err = pcall(function() return tostring(dc.zeros "f32[2]":log()) end)
---    print(err.code, err.op)
---    dc.check_numbers(false)
---
---Errors: DC0702 where such an operation is found.
---@param on? boolean
---@return boolean # whether they were before
function dc.check_numbers(on) end

---Whether denormal numbers (of `f32` and `bf16` those below 1.18e-38, of `f64` below 2.2e-308) are zeros from now
---on, as operands and as results, as with `DEEPC_MATH=ftz`. On many processors an operation with one takes some 100
---times as long; gradients that become smaller with each step of a long recurrence come to such numbers. Without an
---argument nothing changes. Kernels of GPUs are compiled for it: start with `DEEPC_MATH=ftz` there. `sim:` devices
---compute with them always. The host's and Lua's own arithmetic stays as it is.
---
---    dc.flush_denormals(true)
---    print((dc.full("f32[2]", 1e-30) * 1e-10):totable()[1]) --> 0.0
---    dc.flush_denormals(false)
---
---Errors: DC0101 on a device of CUDA or OpenCL, where it would change something.
---@param on? boolean
---@return boolean # whether they were before
function dc.flush_denormals(on) end

---The table of operations: name, class, operands, and the range of generated tests.
---
---    dc.ops()[1].name
---@return table[]
function dc.ops() end

---The element types in their order: `name`, `kind` ("bool", "integer", "float" or "complex"), `bits` of an element,
---`signed`, bits of the `exponent` and `fraction` of floats as they are stored, 0 of the others, and `finite`, whether
---they are floats without infinities.
---
---    for _, t in ipairs(dc.dtypes()) do print(t.name, t.kind, t.bits) end
---@return table[]
function dc.dtypes() end
