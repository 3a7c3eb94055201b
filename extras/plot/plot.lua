-- Small charts, as SVG or PNG: axes with ticks, lines, points or bars, a legend.
--
-- A chart is laid out once, as a list of shapes, which both writers take (plot/draw.lua).

local draw = require "deepc.plot.draw"
local _, core = ...

---Charts: lines, points, bars, histograms.
---
---    local plot = require "deepc.plot"
---@class deepc.plot
local plot = {}

local INK, GRID = 0x333333, 0xdddddd
local RADIUS = 3 -- of dots
local COLOURS = { 0x1f6fb4, 0xd1495b, 0x2e8b57, 0xe08e0b, 0x7b4fa3, 0x4d4d4d }

-- ---- scales ----

-- Larger numbers have no place on a scale, whose length has to be a number; what is closer is the same.
local HUGE, TINY = 1e300, 1e-300

-- The least of 1, 2, 5 times a power of ten that makes at most `most` steps of a range.
local function step_of(range, most)
  local raw = range / most
  local power = 10.0 ^ math.floor(math.log(raw, 10))
  for _, k in ipairs { 1, 2, 5 } do
    if k * power >= raw * (1 - 1e-9) then
      return k * power
    end
  end
  return 10 * power
end

local function label_of(v)
  return core.number("%.6g", v)
end

-- Bounds and ticks of a scale over [low, high], at most so many steps.
local function linear(low, high, most)
  if high - low < TINY then
    local half = math.abs(low) < TINY and 1 or math.abs(low) / 2
    low, high = low - half, high + half
  end
  local step, ticks = step_of(high - low, most), {}
  low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
  for i = 0, math.floor((high - low) / step + 0.5) do
    local v = low + i * step
    ticks[#ticks + 1] = { v, label_of(math.abs(v) < step / 1e6 and 0.0 or v) }
  end
  return { low = low, high = high, ticks = ticks, at = function(v) return v end }
end

local function logarithmic(low, high)
  local from, to, ticks = math.floor(math.log(low, 10) + 1e-9), math.ceil(math.log(high, 10) - 1e-9), {}
  to = math.max(to, from + 1)
  for p = from, to do
    for _, k in ipairs(to - from > 3 and { 1 } or { 1, 2, 5 }) do
      if p < to or k == 1 then
        local v = math.log(k, 10) + p
        ticks[#ticks + 1] = { v, label_of(k * 10.0 ^ p) }
      end
    end
  end
  return { low = from, high = to, ticks = ticks, at = function(v) return math.log(v, 10) end }
end

-- ---- what is drawn ----

local function finite(v)
  return v == v and math.abs(v) <= HUGE
end

-- Where there are many more points than columns: the least and the largest of each column's.
local function thin(points, columns)
  if #points <= 4 * columns then
    return points
  end
  local out, first, last = {}, points[1][1], points[#points][1]
  local width = (last - first) / columns
  local low, high, column
  local function flush()
    if low then
      local a, b = low, high
      if b[1] < a[1] then
        a, b = b, a
      end
      out[#out + 1] = a
      out[#out + 1] = b ~= a and b or nil
    end
  end
  for _, p in ipairs(points) do
    local c = math.min(math.floor((p[1] - first) / width), columns - 1)
    if c ~= column then
      flush()
      column, low, high = c, p, p
    end
    low, high = p[2] < low[2] and p or low, p[2] > high[2] and p or high
  end
  flush()
  return out
end

-- Points of which there are many: one in each pixel.
local function apart(points)
  local seen, out = {}, {}
  for _, p in ipairs(points) do
    local key = math.floor(p[1]) << 16 | math.floor(p[2])
    if not seen[key] then
      seen[key], out[#out + 1] = true, p
    end
  end
  return out
end

-- Numbers, as floats: differences of integers may wrap around.
local function list_of(op, v, what)
  if core.kind(v) then
    v = v:totable()
  end
  if type(v) ~= "table" then
    core.fail("ARG", op, ("%s are a list of numbers, not %s"):format(what, type(v)))
  end
  local list = {}
  for i = 1, #v do
    if type(v[i]) ~= "number" then
      core.fail("ARG", op, ("number %d of %s is a %s"):format(i, what, type(v[i])))
    end
    list[i] = v[i] + 0.0
  end
  return list
end

-- A text as both writers can take it: UTF-8 without characters of control, which XML has not.
local function text_of(v)
  local text = tostring(v):gsub("%c", " ")
  local _, wrong = utf8.len(text)
  while wrong do
    text = text:sub(1, wrong - 1) .. "?" .. text:sub(wrong + 1)
    _, wrong = utf8.len(text, wrong)
  end
  return text
end

-- What all series have: a name and a colour; `...`: what else this kind may have.
local function new_series(op, s, i, ...)
  if type(s) ~= "table" or core.kind(s) then
    core.fail("ARG", op, ("series %d is a %s"):format(i, type(s)), "{ { y = losses, name = \"loss\" } }")
  end
  core.options(op, s, "name", ...)
  return { name = s.name and text_of(s.name), colour = COLOURS[(i - 1) % #COLOURS + 1] }
end

-- A series as runs of points without gaps; a gap is what has no place on the scales.
local function read_points(op, s, i, log)
  local series = new_series(op, s, i, "x", "y")
  local ys = list_of(op, s.y, ("y of series %d"):format(i))
  local xs = s.x ~= nil and list_of(op, s.x, ("x of series %d"):format(i))
  if xs and #xs ~= #ys then
    core.fail("ARG", op, ("series %d has %d x and %d y"):format(i, #xs, #ys))
  end
  local runs, run = {}, nil
  for k = 1, #ys do
    local x, y = xs and xs[k] or k, ys[k]
    if finite(x) and finite(y) and (not log or y > 0) then
      if not run then
        run = {}
        runs[#runs + 1] = run
      end
      run[#run + 1] = { x, y }
    else
      run = nil
    end
  end
  series.runs = runs
  return series
end

local function bounds(series)
  local x1, x2, y1, y2 = math.huge, -math.huge, math.huge, -math.huge
  for _, s in ipairs(series) do
    for _, run in ipairs(s.runs) do
      for _, p in ipairs(run) do
        x1, x2, y1, y2 = math.min(x1, p[1]), math.max(x2, p[1]), math.min(y1, p[2]), math.max(y2, p[2])
      end
    end
  end
  if x1 > x2 then
    return 0, 1, 1, 10 -- nothing to show
  end
  return x1, x2, y1, y2
end

-- ---- layout ----

local TEXT = 14 -- height of a line of text

local function add_axes(shapes, box, sx, sy, o)
  for _, t in ipairs(sy.ticks) do
    local y = box.y(t[1])
    shapes[#shapes + 1] = { "line", box.left, y, box.right, y, GRID, 1 }
    shapes[#shapes + 1] = { "text", box.left - 6, y + 4, t[2], "end", INK }
  end
  for _, t in ipairs(sx.ticks) do
    local x = box.x(t[1])
    shapes[#shapes + 1] = { "line", x, box.bottom, x, box.bottom + 4, INK, 1 }
    shapes[#shapes + 1] = { "text", x, box.bottom + 16, t[2], "middle", INK }
  end
  shapes[#shapes + 1] = { "line", box.left, box.bottom, box.right, box.bottom, INK, 1 }
  shapes[#shapes + 1] = { "line", box.left, box.top, box.left, box.bottom, INK, 1 }
  local middle = (box.left + box.right) / 2
  shapes[#shapes + 1] = o.title and { "text", middle, 18, o.title, "middle", INK } or nil
  shapes[#shapes + 1] = o.x and { "text", middle, box.bottom + 34, o.x, "middle", INK } or nil
  shapes[#shapes + 1] = o.y and { "text", 8, box.top - 8, o.y, "start", INK } or nil
end

-- How a series is shown in the legend, left of its name: by kind of chart.
local swatches = {}

function swatches.lines(x, y, colour)
  return { "line", x - 26, y, x - 8, y, colour, 2 }
end

function swatches.points(x, y, colour)
  return { "dots", { { x - 13, y } }, colour, RADIUS, 1 }
end

function swatches.bars(x, y, colour)
  return { "box", x - 20, y - 5, x - 8, y + 5, colour, 1 }
end

local function add_legend(shapes, box, series, swatch)
  local y = box.top + 8
  for _, s in ipairs(series) do
    if s.name then
      local x = box.right - 6 * utf8.len(s.name) - 8
      shapes[#shapes + 1] = swatch(x, y, s.colour)
      shapes[#shapes + 1] = { "text", x, y + 4, s.name, "start", INK }
      y = y + TEXT + 2
    end
  end
end

-- The axes, and where values of the scales lie in pixels.
local function frame(sx, sy, o)
  local longest = 0
  for _, t in ipairs(sy.ticks) do
    longest = math.max(longest, #t[2])
  end
  local box = { left = 16 + 6 * longest, right = o.width - 20, top = 40, bottom = o.height - 26 - (o.x and 20 or 0) }
  function box.x(v)
    return box.left + (v - sx.low) / (sx.high - sx.low) * (box.right - box.left)
  end
  function box.y(v)
    return box.bottom - (v - sy.low) / (sy.high - sy.low) * (box.bottom - box.top)
  end
  local shapes = {}
  add_axes(shapes, box, sx, sy, o)
  return shapes, box
end

local function x_scale(x1, x2, o)
  return linear(x1, x2, math.max(o.width // 100, 2))
end

local function y_scale(y1, y2, o)
  return o.log and logarithmic(y1, y2) or linear(y1, y2, math.max(o.height // 60, 2))
end

local function layout_points(series, o, kind)
  local x1, x2, y1, y2 = bounds(series)
  local sy = y_scale(y1, y2, o)
  local shapes, box = frame(x_scale(x1, x2, o), sy, o)
  for _, s in ipairs(series) do
    local all = {}
    for _, run in ipairs(s.runs) do
      local points = kind == "lines" and {} or all
      for _, p in ipairs(run) do
        points[#points + 1] = { box.x(p[1]), box.y(sy.at(p[2])) }
      end
      if kind == "lines" then
        shapes[#shapes + 1] = { "lines", thin(points, math.floor(box.right - box.left)), s.colour, 1.5 }
      end
    end
    if #all > 0 then
      shapes[#shapes + 1] = { "dots", apart(all), s.colour, RADIUS, 0.7 }
    end
  end
  add_legend(shapes, box, series, swatches[kind])
  return shapes
end

-- A bar from `from` to `to` on the scale of x, from `base` to a height.
local function add_bar(shapes, box, from, to, base, height, colour, opacity)
  local a, b = box.y(base), box.y(height)
  if a ~= b then
    shapes[#shapes + 1] = { "box", box.x(from), math.min(a, b), box.x(to), math.max(a, b), colour, opacity }
  end
end

-- Groups of bars side by side, in the middle of whole numbers; below each its label.
local function layout_bars(series, o)
  local count, y1, y2 = 0, 0, 0
  for _, s in ipairs(series) do
    count = math.max(count, #s.heights)
    for i = 1, #s.heights do
      local h = s.heights[i]
      if finite(h) then
        y1, y2 = math.min(y1, h), math.max(y2, h)
      end
    end
  end
  local ticks, every = {}, math.ceil(math.max(count, 1) * 40 / o.width) -- labels have room
  for i = 1, count, every do
    ticks[#ticks + 1] = { i, o.labels and text_of(o.labels[i]) or ("%d"):format(i) }
  end
  local sy = y_scale(y1, y2 == y1 and y1 + 1 or y2, o)
  local shapes, box = frame({ low = 0.5, high = math.max(count, 1) + 0.5, ticks = ticks }, sy, o)
  local wide = 0.8 / math.max(#series, 1)
  for k, s in ipairs(series) do
    for i = 1, #s.heights do
      local from = i - 0.4 + (k - 1) * wide
      if finite(s.heights[i]) then
        add_bar(shapes, box, from, from + wide, 0, s.heights[i], s.colour, 1)
      end
    end
  end
  shapes[#shapes + 1] = { "line", box.left, box.y(0), box.right, box.y(0), INK, 1 }
  add_legend(shapes, box, series, swatches.bars)
  return shapes
end

-- Bars of counts, over each other where there are several series.
local function layout_histogram(series, edges, o)
  local most = 0
  for _, s in ipairs(series) do
    most = math.max(most, table.unpack(s.heights))
  end
  local least = most -- that is shown on a logarithmic scale
  for _, s in ipairs(series) do
    for _, h in ipairs(s.heights) do
      least = h > 0 and math.min(least, h) or least
    end
  end
  most, least = most > 0 and most or 1, least > 0 and least or 1
  local sy = y_scale(o.log and least / 2 or 0, most, o)
  local shapes, box = frame(x_scale(edges[1], edges[#edges], o), sy, o)
  for _, s in ipairs(series) do
    for i, h in ipairs(s.heights) do
      if h > 0 then
        add_bar(shapes, box, edges[i], edges[i + 1], sy.low, sy.at(h), s.colour, #series > 1 and 0.5 or 1)
      end
    end
  end
  add_legend(shapes, box, series, swatches.bars)
  return shapes
end

-- ---- histograms ----

-- Of so many bins that floats can tell from each other.
local function least_width(low, high, bins)
  return bins * math.max(2.0 ^ -50 * math.max(math.abs(low), math.abs(high)), TINY)
end

-- Edges of bins between the least and the largest number, or those of the option (numpy.histogram_bin_edges).
local function edges_of(series, o)
  local low, high = math.huge, -math.huge
  for _, s in ipairs(series) do
    for i = 1, #s.values do
      local v = s.values[i]
      if finite(v) then
        low, high = math.min(low, v), math.max(high, v)
      end
    end
  end
  if o.range then
    low, high = o.range[1] + 0.0, o.range[2] + 0.0
  elseif low > high then
    low, high = 0.0, 1.0 -- nothing to show
  else
    local more = math.max(least_width(low, high, o.bins), low == high and 1.0 or 0.0) - (high - low)
    low, high = low - math.max(more, 0.0) / 2, high + math.max(more, 0.0) / 2
  end
  local edges, step = {}, (high - low) / o.bins
  for i = 1, o.bins do
    edges[i] = low + (i - 1) * step
  end
  edges[o.bins + 1] = high
  return edges
end

-- How many values lie in each bin, the upper edge of the last one included; with density the integral is 1.
local function count(values, edges, density)
  local n, low, high = #edges - 1, edges[1], edges[#edges]
  local counts, total = {}, 0
  for i = 1, n do
    counts[i] = 0
  end
  for k = 1, #values do
    local v = values[k]
    if finite(v) and v >= low and v <= high then
      local i = math.min(math.floor((v - low) / (high - low) * n), n - 1) + 1
      i = v < edges[i] and i - 1 or i < n and v >= edges[i + 1] and i + 1 or i -- rounding
      counts[i], total = counts[i] + 1, total + 1
    end
  end
  for i = 1, density and n or 0 do
    counts[i] = total > 0 and counts[i] / (total * (edges[i + 1] - edges[i])) or 0
  end
  return counts
end

-- ---- the functions ----

local function size_option(op, o, name, default)
  local v = o[name] or default
  if math.type(v) ~= "integer" or v < 200 or v > 4000 then
    core.fail("ARG", op, ("%s is a number of pixels from 200 to 4000, not %s"):format(name, core.shown(v)))
  end
  return v
end

-- Checks what all charts are called with; the options with sizes.
local function read(op, path, series, options, ...)
  local kind = type(path) == "string" and path:lower():match "%.(%w+)$"
  if kind ~= "svg" and kind ~= "png" then
    core.fail("ARG", op, ("a path that ends in .svg or .png is needed, not %s"):format(core.shown(path)))
  elseif type(series) ~= "table" then
    core.fail("ARG", op, ("series are a list, not %s"):format(type(series)))
  end
  core.refuse_tracing(op)
  core.options(op, options, "title", "x", "y", "width", "height", ...)
  if series.y ~= nil or series.x ~= nil then
    core.fail("ARG", op, "series are a list, not one series", '{ { y = losses, name = "loss" } }')
  end
  local o = {}
  for name, value in pairs(options or {}) do
    o[name] = value
  end
  for _, name in ipairs { "title", "x", "y" } do
    if o[name] ~= nil and type(o[name]) ~= "string" and type(o[name]) ~= "number" then
      core.fail("ARG", op, ("%s is a text, not %s"):format(name, core.describe(o[name])))
    end
    o[name] = o[name] ~= nil and text_of(o[name]) or nil
  end
  o.width, o.height = size_option(op, o, "width", 800), size_option(op, o, "height", 480)
  return o
end

local function write(op, path, shapes, o)
  if path:lower():sub(-4) == ".svg" then
    core.write_file(op, path, draw.svg(shapes, o.width, o.height))
  else
    core.write_png(op, path, o.width, o.height, draw.pixels(shapes, o.width, o.height))
  end
end

local function write_points(op, kind, path, series, options)
  local o, list = read(op, path, series, options, "log"), {}
  for i, s in ipairs(series) do
    list[i] = read_points(op, s, i, o.log)
  end
  write(op, path, layout_points(list, o, kind), o)
end

---Writes a chart of lines, as SVG or PNG after the end of the path (matplotlib.pyplot.plot). A series is a table
---{ y = numbers, x = numbers, name = "loss" }; without x, numbers count from 1; a name puts it into the legend. Numbers
---are a list or a tensor of one axis; where one is not finite, or beyond 1e300, the line has a gap.
---
---    plot.lines("/tmp/loss.svg", { { y = { 2.3, 1.1, 0.7 }, name = "loss" } }, { x = "step", log = true })
---
---Errors: DC0101 for the path, the series and options; DC0801 where the file cannot be written.
---@param path string ends in .svg or .png
---@param series table[]
---@param options? { title?: string, x?: string, y?: string, log?: boolean, width?: integer, height?: integer }
function plot.lines(path, series, options)
  write_points("plot.lines", "lines", path, series, options)
end

---Writes a chart of points, as SVG or PNG (matplotlib.pyplot.scatter): series and options are those of plot.lines, a
---dot for each pair of numbers that are finite, of many in one pixel one.
---
---    plot.points("/tmp/classes.svg", {
---      { x = { 1, 2, 3 }, y = { 2, 1, 2 }, name = "cats" }, { x = { 4, 5 }, y = { 4, 3 }, name = "dogs" },
---    })
---
---Errors: as plot.lines.
---@param path string ends in .svg or .png
---@param series table[]
---@param options? { title?: string, x?: string, y?: string, log?: boolean, width?: integer, height?: integer }
function plot.points(path, series, options)
  write_points("plot.points", "points", path, series, options)
end

---Writes a chart of bars, as SVG or PNG (matplotlib.pyplot.bar). A series is a table { y = heights, name = "2024" };
---several stand side by side. `labels` are texts below the bars, or groups of them; else they count from 1.
---
---    plot.bars("/tmp/accuracy.svg", { { y = { 0.91, 0.87 }, name = "train" }, { y = { 0.9, 0.8 }, name = "test" } },
---      { labels = { "cats", "dogs" } })
---
---Errors: as plot.lines.
---@param path string ends in .svg or .png
---@param series table[]
---@param options? { labels?: string[], title?: string, x?: string, y?: string, width?: integer, height?: integer }
function plot.bars(path, series, options)
  local op = "plot.bars"
  local o, list = read(op, path, series, options, "labels"), {}
  if o.labels ~= nil and type(o.labels) ~= "table" then
    core.fail("ARG", op, "labels are a list of texts, not " .. core.describe(o.labels))
  end
  for i, s in ipairs(series) do
    list[i] = new_series(op, s, i, "y")
    list[i].heights = list_of(op, s.y, ("y of series %d"):format(i))
    if o.labels and #o.labels ~= #list[i].heights then
      core.fail("ARG", op, ("there are %d labels, series %d has %d bars"):format(#o.labels, i, #list[i].heights))
    end
  end
  write(op, path, layout_bars(list, o), o)
end

local function check_range(op, range, bins)
  if range ~= nil and not (type(range) == "table" and #range == 2 and type(range[1]) == "number"
    and type(range[2]) == "number" and finite(range[1]) and finite(range[2]) and range[1] < range[2]) then
    core.fail("ARG", op, "range is { low, high }, not " .. core.describe(range))
  elseif range and range[2] + 0.0 - range[1] < least_width(range[1], range[2], bins) then
    core.fail("ARG", op, ("%d bins of this range are narrower than what numbers tell apart"):format(bins))
  end
end

---Writes a histogram, as SVG or PNG (matplotlib.pyplot.hist): how many of the numbers of a series { y = numbers,
---name = "weights" } lie in each of `bins` bins between the least and the largest of all, or in `range`; the bins are
---those of dc.histogram. With `density` the area is 1; `log` is for heights. Several series lie over each other. What
---is not finite is left out.
---
---    plot.histogram("/tmp/weights.svg", { { y = dc.randn "f32[1000]", name = "weights" } }, { bins = 40 })
---
---Errors: as plot.lines.
---@param path string ends in .svg or .png
---@param series table[]
---@param options? table bins (30), range ({ low, high }), density, log; title, x, y, width, height
function plot.histogram(path, series, options)
  local op = "plot.histogram"
  local o, list = read(op, path, series, options, "bins", "range", "density", "log"), {}
  o.bins = o.bins == nil and 30 or o.bins
  if math.type(o.bins) ~= "integer" or o.bins < 1 or o.bins > 1000 then
    core.fail("ARG", op, ("bins is a number from 1 to 1000, not %s"):format(core.shown(o.bins)))
  end
  check_range(op, o.range, o.bins)
  for i, s in ipairs(series) do
    list[i] = new_series(op, s, i, "y")
    list[i].values = list_of(op, s.y, ("y of series %d"):format(i))
  end
  local edges = edges_of(list, o)
  for _, s in ipairs(list) do
    s.heights = count(s.values, edges, o.density)
  end
  write(op, path, layout_histogram(list, edges, o), o)
end

return core.module("deepc.plot", plot)
