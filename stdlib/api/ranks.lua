---@meta _

-- Ranks: several processes (annotations; see values.lua).

---@class deepc
local dc = {}

-- ---- Ranks ----

---The ranks that run the same script: threads of this process (deepc --ranks 4), or processes that a launcher such as
---mpirun started; else there is one. rank counts from 0; host is the name of this rank's machine, hosts are those of
---all; sent is how many bytes this rank has given to others so far.
---
---    local world = dc.world()
---    print(world.rank, world.size)
---
---Errors: DC1007 where the others cannot be reached, or the library of MPI is missing.
---@return { rank: integer, size: integer, host: string, hosts: string[], sent: integer }
function dc.world() end

---Names the axes along which ranks stand: an array of all ranks, in row-major order. A table by name is in the
---order of the names, a list of pairs in its own. There is one mesh in a program; all ranks make the same.
---
---    local mesh = dc.mesh { data = dc.world().size }
---    print(mesh.size, mesh.sizes.data, mesh.place.data)
---
---Errors: DC0313 where the mesh has not one place for each rank.
---@param sizes table<string, integer>|{ [1]: string, [2]: integer }[]
---@return { size: integer, axes: string[], sizes: table<string, integer>, place: table<string, integer> }
function dc.mesh(sizes) end

---Parameters, states, layers or tables of them are held in parts from now on: each rank keeps its own. The spec is
---a type, "f32[784, 256 @ model]" or "[784, 256 @ model]"; for a layer a table of such types by name, where *
---stands for anything; or an axis of the mesh, along which the first axis is split that the ranks can share
---equally. Returns what it was given. To be called before a typed function uses them.
---
---    dc.mesh { data = 1 }
---    local w = dc.shard(dc.param "f32[8, 4]", "data")
---
---Errors: DC0313 for a type that does not fit, an axis that does not divide, a name that nothing has, a cell that
---is in parts or in use already.
---@param what any
---@param spec string|table<string, string>
---@return any
function dc.shard(what, spec) end

---What this rank has of a tensor that is whole: a slice. The type is that of the whole tensor.
---
---    dc.mesh { data = 1 }
---    print(dc.part(dc.iota(4), "i32[4 @ data]"))
---
---Errors: DC0313 for another type, or an axis that does not divide.
---@param x deepc.Tensor
---@param type string
---@return deepc.Tensor
function dc.part(x, type) end

---The whole of a value of which each rank has a part: all ranks call it and all get it. A cell in parts knows its
---type; of a tensor the type of the whole is given.
---
---    dc.mesh { data = 1 }
---    print(dc.whole(dc.ones "f32[2]", "f32[2 @ data]"))
---
---Errors: DC0313 for a tensor without a type.
---@param x deepc.Tensor
---@param type? string
---@return deepc.Tensor
function dc.whole(x, type) end

---In a typed function: the same value, in these parts from here on. Elsewhere, and where nothing is in parts, the
---value.
---
---    dc.mesh { data = 1 }
---    local f = dc.fn("f(x: f32[4 @ data, 2]) -> f32[4 @ data, 2]", function(x)
---      return dc.reshard(x, "f32[4, 2]") * 2
---    end)
---    print(f(dc.ones "f32[4, 2]"))
---
---Errors: DC0313 for another type.
---@param x deepc.Tensor
---@param type string of the whole value
---@return deepc.Tensor
function dc.reshard(x, type) end

---The sum, element by element, of a tensor of each rank: all call it, all get it. { over = "data" } says along
---which axes of the mesh ("data+model"; all, if not given), { op = "max" } or "min" what else than a sum. Its
---gradient is that of the sum of what all ranks differentiate. Not in functions whose types split axes, whose
---values are whole ones.
---
---    dc.mesh { data = 1 }
---    print(dc.all_reduce(dc.ones "f32[2]"))
---
---Errors: DC0313; DC1007 where another rank fails, disagrees or does not answer.
---@param x deepc.Tensor
---@param options? { over?: string, op?: "sum"|"max"|"min" }
---@return deepc.Tensor
function dc.all_reduce(x, options) end

---As dc.all_reduce, of which each rank gets one of equal parts of an axis.
---
---    dc.mesh { data = 1 }
---    print(dc.reduce_scatter(dc.ones "f32[2, 3]", 1))
---
---Errors: as dc.all_reduce; DC0101 where the axis does not divide.
---@param x deepc.Tensor
---@param axis integer|string
---@param options? { over?: string, op?: "sum"|"max"|"min" }
---@return deepc.Tensor
function dc.reduce_scatter(x, axis, options) end

---The tensors of all ranks one behind the other along an axis.
---
---    dc.mesh { data = 1 }
---    print(dc.all_gather(dc.ones "f32[2, 3]", 1))
---
---Errors: as dc.all_reduce.
---@param x deepc.Tensor
---@param axis integer|string
---@param options? { over?: string }
---@return deepc.Tensor
function dc.all_gather(x, axis, options) end

---Each rank gives one of equal parts of `axis` to each, and puts those that it gets one behind the other along
---`to`.
---
---    dc.mesh { data = 1 }
---    print(dc.all_to_all(dc.ones "f32[2, 3]", 1, 2))
---
---Errors: as dc.all_reduce; DC0101 where the axis does not divide.
---@param x deepc.Tensor
---@param axis integer|string
---@param to integer|string
---@param options? { over?: string }
---@return deepc.Tensor
function dc.all_to_all(x, axis, to, options) end

---The tensor of one rank, which is counted from 0 along the axes: all call it, all get it.
---
---    dc.mesh { data = 1 }
---    print(dc.broadcast(dc.ones "f32[2]", 0))
---
---Errors: as dc.all_reduce; DC0101 for a rank that is not there.
---@param x deepc.Tensor
---@param from integer
---@param options? { over?: string }
---@return deepc.Tensor
function dc.broadcast(x, from, options) end

---Sends a tensor to another rank: number `to` of those along the axes, counted from 0, which receives it by dc.recv
---of the same type. Does not wait for it. The result is a scalar, 0, for gradients: who differentiates it gets for
---x what the other one's gradient of what it received is, by a message back. So both differentiate, or neither, in
---an order in which messages meet: those of one rank to another arrive in the order in which they are sent.
---In functions whose types split no axes, and outside of functions.
---
---    dc.mesh { data = 1 }
---    local rank = dc.world().rank
---    if rank > 0 then
---      dc.send(dc.ones "f32[2]", { to = rank - 1, over = "data" })
---    end
---
---Errors: DC0313; DC1007 where the other one fails, expects something else or does not receive it.
---@param x deepc.Tensor
---@param options { to: integer, over?: string }
---@return deepc.Tensor
function dc.send(x, options) end

---What rank number `from` along the axes, counted from 0, sends by dc.send. Its gradient goes back to that rank, by
---whoever takes one of what is computed from it.
---
---    dc.mesh { data = 1 }
---    local rank = dc.world().rank
---    if rank < dc.world().size - 1 then
---      print(dc.recv("f32[2]", { from = rank + 1, over = "data" }))
---    end
---
---Errors: as dc.send.
---@param type string
---@param options { from: integer, over?: string }
---@return deepc.Tensor
function dc.recv(type, options) end

---Sends x to rank `to` and returns what rank `from` sends of the same type: a step round a ring. Who differentiates the
---result gets for x what rank `to` makes of it. In a ring of one rank, which is both, the result is x.
---
---    dc.mesh { data = 1 }
---    local rank, size = dc.world().rank, dc.world().size
---    print(dc.send_recv(dc.ones "f32[2]", { to = (rank + 1) % size, from = (rank - 1) % size, over = "data" }))
---
---Errors: as dc.send.
---@param x deepc.Tensor
---@param options { to: integer, from: integer, over?: string }
---@return deepc.Tensor
function dc.send_recv(x, options) end

---All ranks have come here when it returns.
---
---    dc.barrier()
---
---Errors: DC1007 where another rank fails or does not come.
function dc.barrier() end
