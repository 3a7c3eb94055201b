-- Charts as SVG and PNG.
local lu = require "luaunit"
local dc = require "deepc"
local plot = require "deepc.plot"
local check = require "tests.lua.check"

local path

local function fails(pattern, ...)
  return check.fails(pattern, plot.lines, ...)
end

local function write(kind, series, options)
  plot.lines(path .. kind, series, options)
  return check.read(path .. kind)
end

TestPlot = {}

function TestPlot:setUp()
  path = os.tmpname()
end

function TestPlot:tearDown()
  os.remove(path)
  os.remove(path .. ".svg")
  os.remove(path .. ".png")
end

function TestPlot:test_svg()
  local text = write(".svg", { { y = { 1, 4, 9 }, name = "a < b & \"c\"" } }, { title = "T", x = "step", y = "loss" })
  lu.assertStrContains(text:sub(1, 80), '<svg xmlns="http://www.w3.org/2000/svg" width="800" height="480"')
  lu.assertEquals(text:sub(-7), "</svg>\n")
  lu.assertStrContains(text, ">a &lt; b &amp; &quot;c&quot;</text>")
  lu.assertStrContains(text, ">T</text>")
  lu.assertStrContains(text, ">step</text>")
  local points = {}
  for x, y in text:match 'polyline points="([^"]*)"':gmatch "([%d.]+),([%d.]+)" do
    points[#points + 1] = { tonumber(x), tonumber(y) }
  end
  lu.assertEquals(#points, 3)
  lu.assertAlmostEquals(points[2][1] - points[1][1], points[3][1] - points[2][1], 0.2)
  lu.assertAlmostEquals((points[1][2] - points[3][2]) / (points[1][2] - points[2][2]), 8 / 3, 0.02)
  for _, tick in ipairs { "1", "5", "9" } do
    lu.assertStrContains(text, ">" .. tick .. "</text>")
  end
end

function TestPlot:test_log_scale()
  local text = write(".svg", { { x = { 0, 1, 2 }, y = { 100, 1, 0.01 } } }, { log = true })
  local ys = {}
  for y in text:match 'polyline points="([^"]*)"':gmatch ",([%d.]+)" do
    ys[#ys + 1] = tonumber(y)
  end
  lu.assertAlmostEquals(ys[2] - ys[1], ys[3] - ys[2], 0.2)
  lu.assertStrContains(text, ">0.01</text>")
  lu.assertStrContains(text, ">100</text>")
end

function TestPlot:test_gaps_and_single_points()
  local text = write(".svg", { { y = { 1, 2, 0 / 0, 3, math.huge, 4, 5 } } })
  lu.assertEquals(select(2, text:gsub("<polyline", "")), 2)
  lu.assertEquals(select(2, text:gsub("<circle", "")), 1)
  for _, series in ipairs { {}, { { y = {} } }, { { y = { 0 / 0 } } }, { { y = { 5 } } }, { { y = { -1 } } } } do
    for _, log in ipairs { true, false } do
      lu.assertStrContains(write(".svg", series, { log = log }), "</svg>")
      lu.assertStrContains(write(".png", series, { log = log }), "IEND")
    end
  end
end

-- Many points: as many as there are columns, peaks among them.
function TestPlot:test_many_points()
  local y = {}
  for i = 1, 50000 do
    y[i] = i % 1000 / 1000
  end
  y[12345] = 40
  local text = write(".svg", { { y = y } })
  lu.assertTrue(#text < 40000)
  lu.assertStrContains(text, ">40</text>")
  local top = math.huge
  for v in text:match 'polyline points="([^"]*)"':gmatch ",([%d.]+)" do
    top = math.min(top, tonumber(v))
  end
  lu.assertEquals(top, 40) -- pixels: the upper end of the axis
end

local function u32(s, at)
  return (string.unpack(">I4", s, at))
end

function TestPlot:test_png()
  local options = { width = 320, height = 200, title = "Zoë" }
  local s = write(".png", { { y = dc.tensor { 1, 2, 3 }, name = "rising" } }, options)
  lu.assertEquals(s:sub(1, 8), "\x89PNG\r\n\x1a\n")
  local at, names = 9, {}
  while at < #s do
    local n = u32(s, at)
    names[#names + 1] = s:sub(at + 4, at + 7)
    if #names == 1 then
      lu.assertEquals({ u32(s, at + 8), u32(s, at + 12) }, { 320, 200 })
    end
    at = at + 12 + n
  end
  lu.assertEquals(at, #s + 1)
  lu.assertStrMatches(table.concat(names, " "), "IHDR .*IDAT IEND")
  lu.assertTrue(s == write(".png", { { y = { 1, 2, 3 }, name = "rising" } }, options))
end

-- Texts of an SVG file by what is in them: { x =, y =, width =, height =, fill = } of each.
local function shapes(text, element)
  local list = {}
  for attributes in text:gmatch("<" .. element .. " ([^>]*)/>") do
    local shape = {}
    for key, value in attributes:gmatch '([%w-]+)="([^"]*)"' do
      shape[key] = tonumber(value) or value
    end
    list[#list + 1] = shape
  end
  return list
end

function TestPlot:test_points()
  local function drawn(series, options)
    plot.points(path .. ".svg", series, options)
    return check.read(path .. ".svg")
  end
  local text = drawn { { x = { 0, 1, 2, 0 / 0 }, y = { 0, 10, 20, 5 }, name = "a" }, { y = { 3, math.huge } } }
  local dots = shapes(text, "circle")
  lu.assertEquals(#dots, 3 + 1 + 1) -- the legend has one
  lu.assertAlmostEquals(dots[2].cx - dots[1].cx, dots[3].cx - dots[2].cx, 0.2)
  lu.assertAlmostEquals(dots[1].cy - dots[2].cy, dots[2].cy - dots[3].cy, 0.2)
  lu.assertAlmostEquals(dots[4].cx, dots[2].cx, 0.2)
  lu.assertStrContains(text, ">a</text>")
  lu.assertNil(text:find "polyline")
  local many, place = {}, {}
  for i = 1, 20000 do
    many[i], place[i] = i % 7, i % 11
  end
  lu.assertEquals(#shapes(drawn { { x = many, y = place } }, "circle"), 77) -- as many as are apart
  lu.assertStrContains(drawn({ { y = { 0.01, 100 } } }, { log = true }), ">0.01</text>")
  lu.assertStrContains(drawn {}, "</svg>")
end

function TestPlot:test_bars()
  local function drawn(series, options)
    plot.bars(path .. ".svg", series, options)
    local text = check.read(path .. ".svg")
    local list = shapes(text, "rect")
    table.remove(list, 1) -- the paper
    return list, text
  end
  local bars, text = drawn({ { y = { 2, -1, 0 }, name = "train" }, { y = { 4, 0 / 0, 1 } } },
    { labels = { "cats", "dogs", "m<ice" } })
  lu.assertEquals(#bars, 2 + 2 + 1) -- and the legend's
  lu.assertAlmostEquals(bars[1].height, 2 * bars[2].height, 0.3)
  lu.assertAlmostEquals(bars[3].height, 2 * bars[1].height, 0.3)
  lu.assertAlmostEquals(bars[1].y + bars[1].height, bars[2].y, 0.2) -- both at 0
  lu.assertAlmostEquals(bars[1].x + bars[1].width, bars[3].x, 0.2) -- side by side
  lu.assertNotEquals(bars[1].fill, bars[3].fill)
  for _, label in ipairs { "cats", "dogs", "m&lt;ice", "train" } do
    lu.assertStrContains(text, ">" .. label .. "</text>")
  end
  lu.assertEquals(#drawn { { y = dc.tensor { 1, 2, 3 } } }, 3)
  lu.assertEquals(#drawn {}, 0)
  local function wrong(message, ...)
    check.fails(message, plot.bars, path .. ".svg", ...)
  end
  wrong("there are 1 labels, series 1 has 2 bars", { { y = { 1, 2 } } }, { labels = { "a" } })
  wrong("plot.bars: labels are a list of texts, not the string 'a'", { { y = { 1 } } }, { labels = "a" })
  wrong("unknown option 'x'; known are name, y", { { x = { 1 }, y = { 1 } } })
  wrong("unknown option 'log'", { { y = { 1 } } }, { log = true })
end

function TestPlot:test_histogram()
  local function drawn(series, options)
    plot.histogram(path .. ".svg", series, options)
    local text = check.read(path .. ".svg")
    local list = shapes(text, "rect")
    table.remove(list, 1)
    return list, text
  end
  -- Heights in pixels are in proportion to the counts of dc.histogram.
  local function agrees(x, bins, options)
    options.bins = bins
    local bars = drawn({ { y = x } }, options)
    local counts = dc.histogram(x, bins, { range = options.range, density = options.density }):totable()
    local most, tallest, k = math.max(table.unpack(counts)), 0, 0
    for _, bar in ipairs(bars) do
      tallest = math.max(tallest, bar.height)
    end
    for _, c in ipairs(counts) do
      if c > 0 then
        k = k + 1
        lu.assertAlmostEquals(bars[k].height, c / most * tallest, 0.2)
      end
    end
    lu.assertEquals(#bars, k)
  end
  local x = dc.randn("f64[1000]", { seed = 1 }):clone()
  agrees(x, 12, {})
  agrees(x, 7, { range = { -1, 0.5 } })
  agrees(x, 20, { density = true })
  agrees((dc.iota("f64[100]") / 10):clone(), 9, {}) -- numbers on the edges
  agrees(dc.full("f64[5]", 3), 4, {})
  local bars, text = drawn({ { y = { 1, 2, 2, 0 / 0, math.huge }, name = "a" }, { y = { 3 } } }, { bins = 2 })
  lu.assertEquals({ #bars, bars[1]["fill-opacity"] }, { 4, 0.5 })
  lu.assertStrContains(text, ">a</text>")
  bars = drawn({ { y = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2 } } }, { bins = 2, log = true })
  lu.assertAlmostEquals(bars[1].height, 2 * bars[2].height, 0.2) -- 10 and 1, above 0.1
  lu.assertEquals(#drawn { { y = {} } }, 0)
  local function wrong(message, options)
    check.fails(message, plot.histogram, path .. ".svg", { { y = { 1 } } }, options)
  end
  wrong("plot.histogram: bins is a number from 1 to 1000, not 0", { bins = 0 })
  wrong("range is { low, high }, not a table", { range = { 1, 1 } })
  check.fails("y of series 1 are a list of numbers, not nil", plot.histogram, path .. ".svg", { {} })
end

-- All of them as PNG: the same bytes each time, and colours where there are bars.
function TestPlot:test_png_of_each()
  for _, name in ipairs { "points", "bars", "histogram" } do
    local function written()
      plot[name](path .. ".png", { { y = { 1, 2, 2, -3 }, name = "a" }, { y = { 2, 1 } } },
        { width = 300, height = 200 })
      return check.read(path .. ".png")
    end
    lu.assertTrue(written() == written(), name)
    local colours = {}
    local image = require "deepc.data".read_image(path .. ".png")
    lu.assertEquals(image.shape, { 200, 300, 3 })
    for _, row in ipairs(image:totable()) do
      for _, c in ipairs(row) do
        colours[("%02x%02x%02x"):format(c[1], c[2], c[3])] = true
      end
    end
    lu.assertTrue(colours["1f6fb4"], name)
  end
end

-- Numbers at the ends of what there is, alike or nearly so, and texts that are no UTF-8: a chart without NaN, and soon.
function TestPlot:test_extremes()
  local rows = {
    { math.mininteger, math.maxinteger }, { math.maxinteger, math.maxinteger - 1 }, { 1e16, 1e16 + 2 }, { 1e20, 1e20 },
    { 1, 1 + 2.0 ^ -52 }, { 5e-324, 5e-324 }, { 0, 5e-324 }, { 1e-310, 3e-310 }, { -1e308, 1e308 }, { 1e308, 1, 2 },
  }
  for i, row in ipairs(rows) do
    for _, name in ipairs { "lines", "points", "bars", "histogram" } do
      for _, options in ipairs { {}, name ~= "bars" and { log = true }, name == "histogram" and { density = true },
        name == "histogram" and { density = true, log = true } } do
        if options then
          plot[name](path .. ".svg", { { x = (name == "lines" or name == "points") and row or nil, y = row } }, options)
          local svg = check.read(path .. ".svg")
          lu.assertFalse(svg:find "nan" ~= nil or svg:find "inf" ~= nil or #svg > 20000, name .. i)
        end
      end
    end
  end
  check.fails("30 bins of this range are narrower than what numbers tell apart", plot.histogram, path .. ".svg",
    { { y = { 1 } } }, { range = { 1, 1 + 2.0 ^ -52 } })
end

function TestPlot:test_texts()
  for _, kind in ipairs { ".svg", ".png" } do
    plot.bars(path .. kind, { { y = { 1, 2 }, name = "caf\xe9" } }, { labels = { "a\1\xff", "\u{e9}" }, title = 5 })
  end
  local svg = check.read(path .. ".svg")
  lu.assertNotNil(utf8.len(svg))
  for _, text in ipairs { "caf?", "a ?", "\u{e9}", "5" } do
    lu.assertStrContains(svg, ">" .. text .. "</text>")
  end
  fails("title is a text, not a table", "a.svg", { { y = { 1 } } }, { title = {} })
end

function TestPlot:test_mistakes()
  fails("a path that ends in .svg or .png is needed, not nil")
  fails("a path that ends in .svg or .png is needed, not 'a.gif'", "a.gif", {})
  fails("series are a list, not nil", "a.svg")
  fails("series 1 is a number", "a.svg", { 1, 2 })
  fails("y of series 1 are a list of numbers, not nil", "a.svg", { {} })
  fails("number 2 of y of series 1 is a string", "a.svg", { { y = { 1, "x" } } })
  fails("series 1 has 1 x and 2 y", "a.svg", { { x = { 1 }, y = { 1, 2 } } })
  fails("unknown option 'colour'", "a.svg", { { y = { 1 } } }, { colour = 1 })
  fails("width is a number of pixels from 200 to 4000, not 10", "a.svg", { { y = { 1 } } }, { width = 10 })
  local err = fails("/nonexistent/a.svg: cannot be written", "/nonexistent/a.svg", { { y = { 1 } } })
  lu.assertEquals(err.code, "DC0801")
end
