-- A square that moves and bounces off the walls: a ConvLSTM (Shi et al., 2015) learns to say what comes next.
--
-- Shows a recurrent cell of one's own, run over a sequence with dc.scan: in the typed function it is one loop, however
-- many frames there are.

local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local data = require "deepc.data"

local options = dc.options {
  about = "Learns what the next frame of a small film is.",
  { "steps", 200, "of training", min = 1 },
  { "hidden", 8, "channels of the state", min = 1 },
  { "plot", nil, "draws a film above what was said of its frames, .png", value = "FILE" },
}

dc.seed(0)
math.randomseed(1)

local TIME, BATCH, SIZE, SQUARE = 10, 16, 12, 3

-- ---- data ----

-- Where a square is that goes to and fro: from 1 to SIZE - SQUARE + 1.
local function position(start, speed, t)
  local room = SIZE - SQUARE
  local at = (start + speed * t) % (2 * room)
  return 1 + (at > room and 2 * room - at or at)
end

-- The frames of a batch of films, f32[time, batch, 1, size, size], with one more at the end.
local function draw_films()
  local frames, squares = {}, {}
  for b = 1, BATCH do
    squares[b] = { math.random(0, 20), math.random(0, 20), math.random(-1, 1), math.random(-1, 1) }
  end
  for t = 1, TIME + 1 do
    frames[t] = {}
    for b, s in ipairs(squares) do
      local top, left = position(s[1], s[3], t), position(s[2], s[4], t)
      local rows = {}
      for y = 1, SIZE do
        rows[y] = {}
        for x = 1, SIZE do
          rows[y][x] = y >= top and y < top + SQUARE and x >= left and x < left + SQUARE and 1 or 0
        end
      end
      frames[t][b] = { rows }
    end
  end
  return dc.tensor(frames)
end

-- ---- network ----

-- An LSTM whose products are convolutions: h and c are images of several channels.
local ConvLSTMCell = nn.class "ConvLSTMCell"

function ConvLSTMCell:init(channels, hidden, window)
  local padding = { padding = window // 2 }
  self.hidden = hidden
  self.see = nn.Conv2d(channels, 4 * hidden, window, padding)
  self.keep = nn.Conv2d(hidden, 4 * hidden, window, padding)
end

-- What frames add to the gates. It does not depend on the state, so it can be done for all frames at once.
function ConvLSTMCell:add(frames)
  return self.see(frames)
end

function ConvLSTMCell:forward(added, state)
  local i, f, g, o = (added + self.keep(state.h)):split(4, 2)
  local c = f:sigmoid() * state.c + i:sigmoid() * g:tanh()
  return { h = o:sigmoid() * c:tanh(), c = c }
end

local Film = nn.class "Film"

function Film:init(hidden)
  self.cell = ConvLSTMCell(1, hidden, 5)
  self.show = nn.Conv2d(hidden, 1, 3, { padding = 1 })
end

-- Of f32[time, batch, 1, height, width], the logits of each next frame.
function Film:forward(frames)
  local time, batch, _, height, width = table.unpack(frames.shape)
  local function in_time(x)
    return x:reshape(time, batch, -1, height, width)
  end
  local added = in_time(self.cell:add(frames:reshape(-1, 1, height, width)))
  local zeros = dc.zeros(("f32[%d, %d, %d, %d]"):format(batch, self.cell.hidden, height, width))
  local _, hs = dc.scan(function(state, element)
    state = self.cell(element, state)
    return state, state.h
  end, { h = zeros, c = zeros }, added)
  return in_time(self.show(hs:reshape(-1, self.cell.hidden, height, width)))
end

-- ---- training ----

local net = Film(options.hidden)
local opt = optim.Adam(net:parameters(), { lr = 1e-2 })
local all = ("f32[%d, %d, 1, %d, %d]"):format(TIME + 1, BATCH, SIZE, SIZE)

local step = dc.fn(("step(films: %s) -> f32[]"):format(all), function(films)
  local loss = nn.bce_with_logits(net(films[{ { 1, TIME } }]), films[{ { 2, TIME + 1 } }])
  opt:step(loss)
  return loss
end)

local guess = dc.fn(("guess(films: %s) -> f32[%d, %d]"):format(all, SIZE, SIZE), function(films)
  return net(films[{ { 1, TIME } }])[{ TIME, 1, 1 }]:sigmoid()
end)

-- What it says of each next frame of the first film.
local guesses = dc.fn(("guesses(films: %s) -> f32[%d, %d, %d]"):format(all, TIME, SIZE, SIZE), function(films)
  return net(films[{ { 1, TIME } }])[{ {}, 1, 1 }]:sigmoid()
end)

for k = 1, options.steps do
  local loss = step(draw_films())
  if k == 1 or k % 25 == 0 then
    print(("step %d  loss %.4f"):format(k, loss:item()))
  end
end

-- The last frame of a film that the network has not seen: what comes, and what it says.
local test = draw_films()
local truth, said = test[{ TIME + 1, 1, 1 }]:totable(), guess(test):totable()
for y = 1, SIZE do
  local left, right = {}, {}
  for x = 1, SIZE do
    left[x] = truth[y][x] > 0.5 and "#" or "."
    right[x] = said[y][x] > 0.75 and "#" or said[y][x] > 0.25 and "+" or "."
  end
  print(table.concat(left, " ") .. "     " .. table.concat(right, " "))
end

if options.plot then -- frames beside each other, each point as 5 x 5 pixels, a margin round each frame
  local frames = dc.stack { test[{ { 2, TIME + 1 }, 1, 1 }], guesses(test) }
  local sheet = (1 - frames):pad({ [3] = { 0, 1 }, [4] = { 0, 1 } }, 0.7):permute(1, 3, 2, 4)
    :reshape(2 * (SIZE + 1), TIME * (SIZE + 1))
  data.write_image(options.plot, (sheet * 255):cast("u8"):repeat_interleave(5, 1):repeat_interleave(5, 2))
end
