-- Training on however many ranks there are, which goes on from its last checkpoint (tests/program/test_ranks_kill.sh).
-- Rank 0 writes the checkpoint and a log of the losses with all their bits. Each rank notes the number of its process.
local dc = require "deepc"
local nn, optim, data = require "deepc.nn", require "deepc.optim", require "deepc.data"

local options = dc.options {
  { "folder", nil, "where files are", type = "string", required = true },
  { "epochs", 40, "passes over the data", min = 1 },
  { "every", 10, "steps from one checkpoint to the next", min = 1 },
}
local ROWS, BATCH = 240, 12

local world = dc.world()
dc.mesh { data = world.size }
dc.seed(1)

local function path(name)
  return options.folder .. "/" .. name
end

local function write(name, mode, text)
  local f = assert(io.open(path(name), mode))
  f:write(text)
  f:close()
end

write("pid." .. world.rank, "w", io.open "/proc/self/stat":read "a":match "^%d+")

local x = dc.rand(("f32[%d, 8]"):format(ROWS), { seed = 2 })
local set = data.set(x, (x * x):sum { axis = 2, keep = true })
local net = nn.Sequential { nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1) }
local adam = optim.Adam(net:parameters(), { lr = 1e-2 })

local signature = ("step(rows: f32[%d @ data, 8], y: f32[%d @ data, 1]) -> f32[]"):format(BATCH, BATCH)
local step = dc.fn(signature, function(rows, y)
  local difference = net(rows) - y
  local loss = (difference * difference):mean()
  adam:step(loss)
  return loss
end)

-- All ranks read the checkpoint, which is whole or not there. Losses behind it will be computed again.
local checkpoint = dc.checkpoint(path "train.st", { model = net, optimizer = adam, data = set })
local at = checkpoint:load() or { step = 0 }
if world.rank == 0 then
  local lines, log = {}, io.open(path "losses")
  for line in log and log:lines() or function() end do
    lines[#lines + 1] = #lines < at.step and line .. "\n" or nil
  end
  write("losses", "w", table.concat(lines))
  print(("%d ranks, from step %d"):format(world.size, at.step))
end

for _ = set.epoch + 1, options.epochs do
  for rows, y in set:batches { size = BATCH, shuffle = true } do
    local loss = step(rows, y)
    at.step = at.step + 1
    if world.rank == 0 then
      write("losses", "a", ("%d %a\n"):format(at.step, loss:item()))
    end
    if at.step % options.every == 0 then
      checkpoint:save(at)
    end
  end
end
if not at.done then
  at.done = true
  checkpoint:save(at)
end
if world.rank == 0 then
  print "done"
end
