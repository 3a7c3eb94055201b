-- Charts as SVG and PNG.
local lu = require "luaunit"
local dc = require "deepc"
local plot = require "deepc.plot"
local check = require "tests.lua.check"
local program = require "tests.lua.program"

local path

local function fails(pattern, ...)
  return check.fails(pattern, plot.lines, ...)
end

local function write(kind, series, options)
  plot.lines(path .. kind, series, options)
  return check.read(path .. kind)
end

-- Why no PNG can be written here, or nil.
local function no_png()
  local name = os.tmpname()
  local ok, err = pcall(plot.lines, name .. ".png", { { y = { 1 } } })
  os.remove(name)
  os.remove(name .. ".png")
  return not ok and tostring(err):match "no libpng is installed[^\n]*" or nil
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
  local without = no_png()
  local text = write(".svg", { { y = { 1, 2, 0 / 0, 3, math.huge, 4, 5 } } })
  lu.assertEquals(select(2, text:gsub("<polyline", "")), 2)
  lu.assertEquals(select(2, text:gsub("<circle", "")), 1)
  for _, series in ipairs { {}, { { y = {} } }, { { y = { 0 / 0 } } }, { { y = { 5 } } }, { { y = { -1 } } } } do
    for _, log in ipairs { true, false } do
      lu.assertStrContains(write(".svg", series, { log = log }), "</svg>")
      if not without then lu.assertStrContains(write(".png", series, { log = log }), "IEND") end
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
  lu.skipIf(no_png(), no_png())
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

-- A library that cannot be opened stands in front of the real one.
function TestPlot:test_png_without_library()
  os.remove(path)
  os.execute("mkdir " .. program.quote(path))
  local library = path .. "/libpng16.so.16"
  io.open(library, "w"):close()
  local script = program.script(('require "deepc.plot".lines(%q, { { y = { 1, 2 } } })\n'):format(path .. ".png"))
  local text, status = program.run(script, "LD_LIBRARY_PATH=" .. program.quote(path))
  os.remove(script)
  os.remove(library)
  lu.assertEquals(status, 1)
  lu.assertStrContains(text, path .. ".png: cannot be written: no libpng is installed " ..
    "(libpng16.so.16; Debian: apt-get install libpng16-16)\n")
  lu.assertStrContains(text, "DC0801")
  lu.assertNil(io.open(path .. ".png"))
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
