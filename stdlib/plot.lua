-- Small line charts, as SVG or PNG: axes with ticks, lines, a legend.
--
-- A chart is laid out once, as a list of shapes in pixels from the upper left corner: lines, boxes, texts.
-- Both writers take that list. SVG is their text; for PNG they are drawn into rows of pixels, lines by how
-- much of each pixel they cover, texts in a face of five by seven dots.

local _, core = ...

---Line charts.
---
---    local plot = require "deepc.plot"
---@class deepc.plot
local plot = {}

local INK, GRID = 0x333333, 0xdddddd
local COLOURS = { 0x1f6fb4, 0xd1495b, 0x2e8b57, 0xe08e0b, 0x7b4fa3, 0x4d4d4d }

-- ---- scales ----

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
  if low == high then
    local half = low == 0 and 1 or math.abs(low) / 2
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
  return v == v and v ~= math.huge and v ~= -math.huge
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

local function list_of(v, what)
  if core.kind(v) then
    v = v:totable()
  end
  if type(v) ~= "table" then
    core.fail("ARG", "plot.lines", ("%s are a list of numbers, not %s"):format(what, type(v)))
  end
  for i = 1, #v do
    if type(v[i]) ~= "number" then
      core.fail("ARG", "plot.lines", ("number %d of %s is a %s"):format(i, what, type(v[i])))
    end
  end
  return v
end

-- A series as runs of points without gaps; a gap is what has no place on the scales.
local function read_series(s, i, log)
  if type(s) ~= "table" then
    core.fail("ARG", "plot.lines", ("series %d is a %s"):format(i, type(s)), "{ { y = losses, name = \"loss\" } }")
  end
  core.options("plot.lines", s, "name", "x", "y")
  local ys = list_of(s.y, ("y of series %d"):format(i))
  local xs = s.x ~= nil and list_of(s.x, ("x of series %d"):format(i))
  if xs and #xs ~= #ys then
    core.fail("ARG", "plot.lines", ("series %d has %d x and %d y"):format(i, #xs, #ys))
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
  return { name = s.name and tostring(s.name), runs = runs, colour = COLOURS[(i - 1) % #COLOURS + 1] }
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

local TEXT, SMALL = 14, 10 -- heights of a line of text

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

local function add_legend(shapes, box, series)
  local y = box.top + 8
  for _, s in ipairs(series) do
    if s.name then
      local x = box.right - 6 * utf8.len(s.name, 1, -1, true) - 8
      shapes[#shapes + 1] = { "line", x - 26, y, x - 8, y, s.colour, 2 }
      shapes[#shapes + 1] = { "text", x, y + 4, s.name, "start", INK }
      y = y + TEXT + 2
    end
  end
end

local function layout(series, o, width, height)
  local x1, x2, y1, y2 = bounds(series)
  local sx = linear(x1, x2, math.max(width // 100, 2))
  local sy = o.log and logarithmic(y1, y2) or linear(y1, y2, math.max(height // 60, 2))
  local longest = 0
  for _, t in ipairs(sy.ticks) do
    longest = math.max(longest, #t[2])
  end
  local box = { left = 16 + 6 * longest, right = width - 20, top = 40, bottom = height - 26 - (o.x and 20 or 0) }
  function box.x(v)
    return box.left + (v - sx.low) / (sx.high - sx.low) * (box.right - box.left)
  end
  function box.y(v)
    return box.bottom - (v - sy.low) / (sy.high - sy.low) * (box.bottom - box.top)
  end
  local shapes = {}
  add_axes(shapes, box, sx, sy, o)
  for _, s in ipairs(series) do
    for _, run in ipairs(s.runs) do
      local points = {}
      for i, p in ipairs(run) do
        points[i] = { box.x(p[1]), box.y(sy.at(p[2])) }
      end
      shapes[#shapes + 1] = { "lines", thin(points, math.floor(box.right - box.left)), s.colour, 1.5 }
    end
  end
  add_legend(shapes, box, series)
  return shapes
end

-- ---- SVG ----

local function escaped(text)
  return (text:gsub("[&<>\"]", { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }))
end

-- Pixels: numbers are written the same in every locale.
local function tenths(v)
  return core.number("%.1f", v)
end

local svg_of = {
  line = function(s)
    return ('<line x1="%s" y1="%s" x2="%s" y2="%s" stroke="#%06x" stroke-width="%s"/>'):format(
      tenths(s[2]), tenths(s[3]), tenths(s[4]), tenths(s[5]), s[6], core.number("%g", s[7]))
  end,
  lines = function(s)
    local points = {}
    for i, p in ipairs(s[2]) do
      points[i] = tenths(p[1]) .. "," .. tenths(p[2])
    end
    if #points == 1 then
      return ('<circle cx="%s" cy="%s" r="2" fill="#%06x"/>'):format(tenths(s[2][1][1]), tenths(s[2][1][2]), s[3])
    end
    return ('<polyline points="%s" fill="none" stroke="#%06x" stroke-width="%s" stroke-linejoin="round"/>'):format(
      table.concat(points, " "), s[3], core.number("%g", s[4]))
  end,
  text = function(s)
    return ('<text x="%s" y="%s" text-anchor="%s" fill="#%06x">%s</text>'):format(tenths(s[2]), tenths(s[3]), s[5],
      s[6], escaped(s[4]))
  end,
}

local function svg(shapes, width, height)
  local out = {
    ('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" '
      .. 'font-size="%d">'):format(width, height, width, height, SMALL + 1),
    ('<rect width="%d" height="%d" fill="#ffffff"/>'):format(width, height),
  }
  for _, s in ipairs(shapes) do
    out[#out + 1] = svg_of[s[1]](s)
  end
  out[#out + 1] = "</svg>\n"
  return table.concat(out, "\n")
end

-- ---- PNG ----

-- Seven rows of five dots, a digit of base 32 each, from the top.
local FACE = {
  ["0"] = "ehjlphe", ["1"] = "4c4444e", ["2"] = "eh1248v", ["3"] = "v2421he", ["4"] = "26aiv22", ["5"] = "vgu11he",
  ["6"] = "68guhhe", ["7"] = "v124888", ["8"] = "ehhehhe", ["9"] = "ehhf12c",
  A = "ehhvhhh", B = "uhhuhhu", C = "ehggghe", D = "sihhhis", E = "vgguggv", F = "vgguggg", G = "ehgnhhf",
  H = "hhhvhhh", I = "e44444e", J = "72222ic", K = "hikokih", L = "ggggggv", M = "hrllhhh", N = "hhpljhh",
  O = "ehhhhhe", P = "uhhuggg", Q = "ehhhlid", R = "uhhukih", S = "fgge11u", T = "v444444", U = "hhhhhhe",
  V = "hhhhha4", W = "hhhllla", X = "hha4ahh", Y = "hhha444", Z = "v1248gv",
  a = "00e1fhf", b = "ggmphhu", c = "00egghe", d = "11djhhf", e = "00ehvge", f = "698s888", g = "0fhhf1e",
  h = "ggmphhh", i = "40c444e", j = "20622ic", k = "ggikoki", l = "c44444e", m = "00qllhh", n = "00mphhh",
  o = "00ehhhe", p = "00uhugg", q = "00djf11", r = "00mpggg", s = "00ege1u", t = "88s8896", u = "00hhhjd",
  v = "00hhha4", w = "00hhlla", x = "00ha4ah", y = "00hhf1e", z = "00v248v",
  [" "] = "0000000", ["."] = "00000cc", [","] = "0000c48", [":"] = "0cc0cc0", ["-"] = "000v000", ["+"] = "044v440",
  ["/"] = "01248g0", ["%"] = "op248j3", ["("] = "2488842", [")"] = "8422248", ["_"] = "000000v", ["="] = "00v0v00",
  ["^"] = "4ah0000", ["*"] = "04lel40", ["?"] = "eh12404", ["!"] = "4444404", ["'"] = "4480000", ["#"] = "aavavaa",
  ["["] = "e88888e", ["]"] = "e22222e", ["<"] = "248g842", [">"] = "8421248", ["|"] = "4444444", ["&"] = "cik8lid",
}

-- `cover` of a colour over what is there.
local function blend(row, x, colour, cover)
  local under, out = row[x], 0
  for shift = 16, 0, -8 do
    local a, b = under >> shift & 255, colour >> shift & 255
    out = out << 8 | math.floor(a + (b - a) * cover + 0.5)
  end
  row[x] = out
end

-- A line of some width with round ends: each pixel near it by its distance. Centres of pixels are at .5.
local function draw_line(rows, x1, y1, x2, y2, colour, width)
  local dx, dy, reach = x2 - x1, y2 - y1, width / 2 + 0.5
  local length2 = dx * dx + dy * dy
  local top, bottom = math.floor(math.min(y1, y2) - reach), math.ceil(math.max(y1, y2) + reach)
  for y = math.max(top, 0), math.min(bottom, #rows - 1) do
    local row, py = rows[y + 1], y + 0.5 - y1
    -- where the line is near this row
    local a, b = x1, x2
    if dy ~= 0 then
      a, b = x1 + dx * (py - reach) / dy, x1 + dx * (py + reach) / dy
    end
    a, b = math.min(a, b), math.max(a, b)
    a, b = math.max(a, math.min(x1, x2)) - reach, math.min(b, math.max(x1, x2)) + reach
    for x = math.max(math.floor(a), 0), math.min(math.ceil(b), #row - 1) do
      local px = x + 0.5 - x1
      local t = length2 > 0 and math.max(0, math.min(1, (px * dx + py * dy) / length2)) or 0
      local ex, ey = px - t * dx, py - t * dy
      local cover = math.min(1, reach - (ex * ex + ey * ey) ^ 0.5)
      if cover > 0 then
        blend(row, x + 1, colour, cover)
      end
    end
  end
end

local function draw_text(rows, x, y, text, anchor, colour)
  local letters = {}
  for _, c in utf8.codes(text, true) do
    letters[#letters + 1] = FACE[c < 128 and string.char(c) or "?"] or FACE["?"]
  end
  local wide = #letters * 6 - 1
  x = math.floor(anchor == "end" and x - wide or anchor == "middle" and x - wide / 2 or x)
  y = math.floor(y) - 7
  for i, letter in ipairs(letters) do
    for r = 1, 7 do
      local dots, row = tonumber(letter:sub(r, r), 32), rows[y + r]
      for c = 1, 5 do
        local at = x + (i - 1) * 6 + c
        if row and row[at] and dots >> (5 - c) & 1 == 1 then
          row[at] = colour
        end
      end
    end
  end
end

-- Lines of one pixel along an axis lie on whole pixels.
local function snap(v, other, width)
  return v == other and width == 1 and math.floor(v) + 0.5 or v
end

local png_of = {
  line = function(rows, s)
    local x1, y1, x2, y2 = s[2], s[3], s[4], s[5]
    draw_line(rows, snap(x1, x2, s[7]), snap(y1, y2, s[7]), snap(x2, x1, s[7]), snap(y2, y1, s[7]), s[6], s[7])
  end,
  lines = function(rows, s)
    local points = s[2]
    for i = 1, math.max(#points - 1, 1) do
      local a, b = points[i], points[i + 1] or points[i]
      draw_line(rows, a[1], a[2], b[1], b[2], s[3], #points == 1 and 4 or s[4])
    end
  end,
  text = function(rows, s)
    draw_text(rows, s[2], s[3], s[4], s[5], s[6])
  end,
}

local function pixels(shapes, width, height)
  local rows, format = {}, (">I3"):rep(width)
  for y = 1, height do
    local row = {}
    for x = 1, width do
      row[x] = 0xffffff
    end
    rows[y] = row
  end
  for _, s in ipairs(shapes) do
    png_of[s[1]](rows, s)
  end
  for y = 1, height do
    rows[y] = format:pack(table.unpack(rows[y], 1, width))
  end
  return table.concat(rows)
end

-- ---- the function ----

local function size_option(o, name, default)
  local v = o[name] or default
  if math.type(v) ~= "integer" or v < 200 or v > 4000 then
    core.fail("ARG", "plot.lines", ("%s is a number of pixels from 200 to 4000, not %s"):format(name, core.shown(v)))
  end
  return v
end

---Writes a chart of lines, as SVG or PNG after the end of the path. A series is a table { y = numbers,
---x = numbers, name = "loss" }; without x, numbers count from 1; a name puts it into the legend. Numbers
---are a list or a tensor of one axis; where one is not finite, the line has a gap.
---
---    plot.lines("/tmp/loss.svg", { { y = { 2.3, 1.1, 0.7 }, name = "loss" } }, { x = "step", log = true })
---
---Errors: DC0101 for the path, the series and options; DC0801 where the file cannot be written.
---@param path string ends in .svg or .png
---@param series table[]
---@param options? { title?: string, x?: string, y?: string, log?: boolean, width?: integer, height?: integer }
function plot.lines(path, series, options)
  local kind = type(path) == "string" and path:lower():match "%.(%w+)$"
  if kind ~= "svg" and kind ~= "png" then
    core.fail("ARG", "plot.lines", ("a path that ends in .svg or .png is needed, not %s"):format(core.shown(path)))
  elseif type(series) ~= "table" then
    core.fail("ARG", "plot.lines", ("series are a list, not %s"):format(type(series)))
  end
  core.refuse_tracing("plot.lines")
  core.options("plot.lines", options, "title", "x", "y", "log", "width", "height")
  if series.y ~= nil then
    core.fail("ARG", "plot.lines", "series are a list, not one series", '{ { y = losses, name = "loss" } }')
  end
  local o, list = options or {}, {}
  local width, height = size_option(o, "width", 800), size_option(o, "height", 480)
  for i, s in ipairs(series) do
    list[i] = read_series(s, i, o.log)
  end
  local shapes = layout(list, o, width, height)
  if kind == "svg" then
    core.write_file("plot.lines", path, svg(shapes, width, height))
  else
    core.write_png("plot.lines", path, width, height, pixels(shapes, width, height))
  end
end

return core.module("deepc.plot", plot)
