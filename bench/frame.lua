-- deepc's side of a benchmark (bench/frame.py): answers commands, one line each.
--
--   package.path = (arg[0]:match "^(.*)/" or ".") .. "/?.lua;" .. package.path
--   local frame = require "frame"
--   frame.serve(function(case, inputs)  -- the fields of the case; tensors by name
--     local f = dc.fn(...)
--     return function(n)                -- n iterations; the results of the last one by name
--       local y
--       for _ = 1, n do y = f(inputs.x) end
--       return { y = y }
--     end
--   end)
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local data = require "deepc.data"

local frame = {
  collecting = false, -- serve() gives its function back: for a benchmark made of others
  note = "", -- what the benchmark's lines say of deepc's side
}

local SAMPLE = 20000

-- An input as bench/frame.py writes it: one or two files of bytes.
local function read_input(folder, entry)
  local low = data.idx(("%s/%s.low"):format(folder, entry.name))
  if entry.dtype == "u8" then
    return low
  end
  local high = data.idx(("%s/%s.high"):format(folder, entry.name))
  local number = high:cast "i32" * 256 + low:cast "i32"
  if entry.dtype == "f32" then
    number = (number - 32768):cast "f32" * entry.scale
  end
  return number:reshape(table.unpack(entry.shape)):clone()
end

local function read_inputs(folder)
  local inputs = {}
  for _, entry in ipairs(dofile(folder .. "/manifest.lua")) do
    inputs[entry.name] = read_input(folder, entry)
  end
  return inputs
end

-- Every so many elements, as bench/frame.py does.
local function sample(t)
  local n = 1
  for _, size in ipairs(t.shape) do
    n = n * size
  end
  local step = math.max(1, n // SAMPLE)
  if step > 1 and step % 2 == 0 then
    step = step + 1
  end
  local values = t:cast("f32"):reshape(n)[{ { 1, n, step } }]:totable()
  return values
end

local function write_results(file, results)
  local names = {}
  for name in pairs(results) do
    names[#names + 1] = name
  end
  table.sort(names)
  local out = assert(io.open(file, "wb"))
  for _, name in ipairs(names) do
    local value = results[name]
    local values = type(value) == "number" and { value } or sample(value)
    out:write(string.pack("<I4", #values))
    for _, v in ipairs(values) do
      out:write(string.pack("<f", v))
    end
  end
  out:close()
end

-- n training steps with the same examples, and the last loss.
function frame.steps(step, inputs)
  local x, y = inputs.x, inputs.y
  return function(n)
    local loss
    for _ = 1, n do
      loss = step(x, y)
    end
    return { loss = loss }
  end
end

-- Trains a classifier of bytes of images: n steps, the last loss. see(x) is what the network is given.
function frame.training(case, net, inputs, see)
  local rule = case.rule == "adam" and optim.Adam or optim.SGD
  local opt = rule(net:parameters(), { lr = case.rate })
  local b = case.batch
  local step = dc.fn(("step(x: u8[%d, 28, 28], y: i32[%d]) -> f32[]"):format(b, b), function(x, y)
    local loss = nn.cross_entropy(net(see(x)), y)
    opt:step(loss)
    return loss
  end)
  return frame.steps(step, inputs)
end

function frame.serve(prepare)
  if frame.collecting then
    return prepare
  end
  local case, inputs, run
  local commands = {
    load = function(folder, text)
      case, inputs, run = assert(load("return " .. text))(), read_inputs(folder), nil
    end,
    prepare = function()
      run = prepare(case, inputs)
    end,
    first = function(file) -- the same and the first iteration
      run = prepare(case, inputs)
      write_results(file, run(1))
    end,
    run = function(n, file)
      local results = run(math.tointeger(n))
      if file then
        write_results(file, results)
      end
    end,
  }
  io.stdout:setvbuf "line"
  print "ready"
  for line in io.lines() do
    local word, first, rest = line:match "^(%S+)%s*(%S*)%s*(.*)$"
    if word == "versions" then
      print(("deepc %s on %s, %d bits"):format(dc._VERSION, dc.stats().device, 8 * string.packsize "T"))
    elseif word == "note" then
      print("note " .. frame.note)
    else
      local ok, message = pcall(commands[word], first, rest ~= "" and rest or nil)
      print(ok and "done" or "failed " .. tostring(message):gsub("\n", " "))
    end
  end
end

return frame
