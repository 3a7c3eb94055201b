-- Charts as SVG and as pixels: shapes in pixels from the upper left corner, each { kind, ... }. SVG is their text; for
-- PNG they are drawn into rows of pixels, lines and dots by how much of each pixel they cover, boxes on whole ones,
-- texts in a face of five by seven dots.
--
--   { "line", x1, y1, x2, y2, colour, width }      { "lines", points, colour, width }
--   { "box", x1, y1, x2, y2, colour, opacity }     { "dots", points, colour, radius, opacity }
--   { "text", x, y, text, anchor, colour }

local _, core = ...

local draw = {}
core.plot_draw = draw

-- ---- SVG ----

local function escaped(text)
  return (text:gsub("[&<>\"]", { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }))
end

-- Pixels: numbers are written the same in every locale.
local function tenths(v)
  return core.number("%.1f", v)
end

local function opacity(v)
  return v < 1 and (' fill-opacity="%s"'):format(core.number("%g", v)) or ""
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
  box = function(s)
    return ('<rect x="%s" y="%s" width="%s" height="%s" fill="#%06x"%s/>'):format(tenths(s[2]), tenths(s[3]),
      tenths(s[4] - s[2]), tenths(s[5] - s[3]), s[6], opacity(s[7]))
  end,
  dots = function(s)
    local list = {}
    for i, p in ipairs(s[2]) do
      list[i] = ('<circle cx="%s" cy="%s" r="%s"/>'):format(tenths(p[1]), tenths(p[2]), core.number("%g", s[4]))
    end
    return ('<g fill="#%06x"%s>%s</g>'):format(s[3], opacity(s[5]), table.concat(list))
  end,
  text = function(s)
    return ('<text x="%s" y="%s" text-anchor="%s" fill="#%06x">%s</text>'):format(tenths(s[2]), tenths(s[3]), s[5],
      s[6], escaped(s[4]))
  end,
}

function draw.svg(shapes, width, height)
  local out = {
    ('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" '
      .. 'font-size="11">'):format(width, height, width, height),
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
local function draw_line(rows, x1, y1, x2, y2, colour, width, share)
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
        blend(row, x + 1, colour, cover * (share or 1))
      end
    end
  end
end

local function draw_box(rows, x1, y1, x2, y2, colour, cover)
  local left, top = math.floor(x1 + 0.5), math.floor(y1 + 0.5)
  local right, bottom = math.max(math.floor(x2 + 0.5), left + 1), math.floor(y2 + 0.5)
  for y = math.max(top, 0), math.min(bottom, #rows) - 1 do
    for x = math.max(left, 0), math.min(right, #rows[y + 1]) - 1 do
      blend(rows[y + 1], x + 1, colour, cover)
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
  box = function(rows, s)
    draw_box(rows, s[2], s[3], s[4], s[5], s[6], s[7])
  end,
  dots = function(rows, s)
    for _, p in ipairs(s[2]) do
      draw_line(rows, p[1], p[2], p[1], p[2], s[3], 2 * s[4], s[5])
    end
  end,
  text = function(rows, s)
    draw_text(rows, s[2], s[3], s[4], s[5], s[6])
  end,
}

function draw.pixels(shapes, width, height)
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

return draw
