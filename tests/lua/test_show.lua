-- dc.show: what is drawn, turned back into pixels by decoders of half blocks and of Sixel. Sessions at a terminal
-- are in program/test_show.sh.
local lu = require "luaunit"
local dc = require "deepc"
local check = require "tests.lua.check"

local fails = check.fails

-- What dc.show prints, as a list of lines.
local function shown(x, options)
  local text = ""
  local was = print
  print = function(v) text = text .. tostring(v) .. "\n" end -- luacheck: ignore
  local ok, err = pcall(dc.show, x, options)
  print = was -- luacheck: ignore
  lu.assertTrue(ok, tostring(err))
  local lines = {}
  for line in text:gmatch "([^\n]*)\n" do
    lines[#lines + 1] = line
  end
  return lines, text
end

-- Half blocks to rows of pixels; -1: that of the background.
local function decode_blocks(lines)
  local rows = {}
  for i = 1, #lines - 1 do
    local line, top, low = lines[i], -1, -1
    local a, b, at = {}, {}, 1
    while at <= #line do
      local codes = line:match("^\27%[([%d;]*)m", at)
      if codes then
        local list, k = {}, 1
        for n in codes:gmatch "%d+" do
          list[#list + 1] = math.tointeger(tonumber(n))
        end
        while k <= #list do
          if list[k] == 0 then
            top, low, k = -1, -1, k + 1
          elseif list[k] == 49 then
            low, k = -1, k + 1
          else
            lu.assertTrue((list[k] == 38 or list[k] == 48) and list[k + 1] == 2)
            local colour = list[k + 2] << 16 | list[k + 3] << 8 | list[k + 4]
            if list[k] == 38 then
              top = colour
            else
              low = colour
            end
            k = k + 5
          end
        end
        at = at + #codes + 3
      else
        lu.assertEquals(line:sub(at, at + 2), "▀")
        a[#a + 1], b[#b + 1], at = top, low, at + 3
      end
    end
    rows[2 * i - 1], rows[2 * i] = a, b
  end
  local last = rows[#rows]
  if last and last[1] == -1 then
    rows[#rows] = nil
  end
  return rows
end

-- Sixel to rows of pixels.
local function decode_sixel(text)
  local width, height, body = text:match '^\27P0;1q"1;1;(%d+);(%d+)(.-)\27\\'
  width, height = math.tointeger(tonumber(width)), math.tointeger(tonumber(height))
  local rows, colours, x, y, colour = {}, {}, 0, 0, nil
  for i = 1, height do
    rows[i] = {}
  end
  local at = 1
  while at <= #body do
    local c = body:sub(at, at)
    local n, r, g, b = body:match("^#(%d+);2;(%d+);(%d+);(%d+)", at)
    if n then
      local function full(v)
        return (tonumber(v) * 255 + 50) // 100
      end
      colours[n] = full(r) << 16 | full(g) << 8 | full(b)
      at = select(2, body:find("^#[%d;]+", at)) + 1
    elseif c == "#" then
      n = body:match("^#(%d+)", at)
      colour, at = colours[n], at + 1 + #n
      lu.assertNotNil(colour)
    elseif c == "$" then
      x, at = 0, at + 1
    elseif c == "-" then
      x, y, at = 0, y + 6, at + 1
    else
      local count, char = body:match("^!(%d+)(.)", at)
      at = count and at + 2 + #count or at + 1
      local bits = (char or c):byte() - 63
      lu.assertTrue(bits >= 0 and bits < 64)
      for _ = 1, math.tointeger(tonumber(count or 1)) do
        x = x + 1
        for k = 0, 5 do
          if bits >> k & 1 == 1 then
            lu.assertNil(rows[y + k + 1][x], "two colours at a pixel")
            rows[y + k + 1][x] = colour
          end
        end
      end
    end
  end
  for _, row in ipairs(rows) do
    lu.assertEquals(#row, width)
  end
  return rows
end

local function enlarged(rows, times)
  local out = {}
  for i, row in ipairs(rows) do
    for k = 1, times do
      local to = {}
      out[(i - 1) * times + k] = to
      for _, v in ipairs(row) do
        for _ = 1, times do
          to[#to + 1] = v
        end
      end
    end
  end
  return out
end

local function near(a, b, by)
  lu.assertEquals(#a, #b)
  for i, row in ipairs(a) do
    lu.assertEquals(#row, #b[i])
    for k, v in ipairs(row) do
      for shift = 0, 16, 8 do
        lu.assertTrue(math.abs((v >> shift & 255) - (b[i][k] >> shift & 255)) <= by, ("%06x %06x"):format(v, b[i][k]))
      end
    end
  end
end

TestShow = {}

local GREY = dc.tensor { { 0, 0.5, 1 }, { 1, 0, 0.2 }, { 0.4, 0.6, 0.8 } }
local PIXELS = { { 0, 0x808080, 0xffffff }, { 0xffffff, 0, 0x333333 }, { 0x666666, 0x999999, 0xcccccc } }

function TestShow:test_blocks()
  local lines = shown(GREY, { mode = "blocks", width = 3 })
  lu.assertEquals(decode_blocks(lines), PIXELS)
  lu.assertEquals(lines[#lines], "f32[3, 3]   0 to 1")
  lines = shown(GREY, { mode = "blocks", width = 80 })
  lu.assertEquals(decode_blocks(lines), enlarged(PIXELS, 10))
  local colours = dc.iota(12):cast("u8"):reshape(2, 2, 3)
  local wanted = { { 0x000102, 0x030405 }, { 0x060708, 0x090a0b } }
  lu.assertEquals(decode_blocks((shown(colours, { mode = "blocks", width = 2 }))), wanted)
  lu.assertEquals(decode_blocks((shown(colours:permute(3, 1, 2), { mode = "blocks", width = 2 }))), wanted)
  local clear = dc.tensor({ { { 200, 100, 50, 255 }, { 200, 100, 50, 0 } } }, "u8[1, 2, 4]")
  lu.assertEquals(decode_blocks((shown(clear, { mode = "blocks", width = 2, layout = "HWC" }))), { { 0xc86432, 0 } })
end

function TestShow:test_sixel()
  local _, text = shown(GREY, { mode = "sixel", width = 80 })
  near(decode_sixel(text), enlarged(PIXELS, 85), 2)
  lu.assertStrContains(text, "f32[3, 3]   0 to 1")
  local many = (dc.iota(40 * 50 * 3) * 7919 % 256):cast("u8"):reshape(40, 50, 3) -- more colours than registers
  local _, sixels = shown(many, { mode = "sixel", width = 80 })
  local list, wanted = many:totable(), {}
  for i, row in ipairs(list) do
    wanted[i] = {}
    for k, v in ipairs(row) do
      wanted[i][k] = v[1] << 16 | v[2] << 8 | v[3]
    end
  end
  near(decode_sixel(sixels), enlarged(wanted, 5), 27)
  local ramp = (dc.iota(256):cast "f32" / 255):reshape(16, 16)
  local rows = {}
  for i = 0, 255 do
    rows[i // 16 + 1] = rows[i // 16 + 1] or {}
    rows[i // 16 + 1][i % 16 + 1] = i * 0x010101
  end
  local _, grey = shown(ramp, { mode = "sixel", width = 80 })
  near(decode_sixel(grey), enlarged(rows, 16), 2)
end

-- Means where there are more values than pixels; NaN and infinities are seen and counted.
function TestShow:test_large_and_strange()
  local x = dc.zeros "f32[8, 8]":put({ { 1, 2 }, { 1, 4 } }, 1)
  lu.assertEquals(decode_blocks((shown(x, { mode = "blocks", width = 2 }))), { { 0x808080, 0 }, { 0, 0 } })
  local bad = dc.tensor { { 0 / 0, 0, 1 / 0 }, { -1 / 0, 1, 0 / 0 } }
  local lines = shown(bad, { mode = "blocks", width = 3 })
  lu.assertEquals(decode_blocks(lines), { { 0xff00ff, 0, 0xff0000 }, { 0x0000ff, 0xffffff, 0xff00ff } })
  lu.assertEquals(lines[#lines], "f32[2, 3]   0 to 1   NaN: 2 (magenta), inf: 1 (red), -inf: 1 (blue)")
  lines = shown(bad, { mode = "ascii", width = 3 })
  lu.assertEquals(lines[#lines], "f32[2, 3]   0 to 1   NaN: 2 (?), inf: 1 (^), -inf: 1 (v)")
  lines = shown(dc.full("f32[2, 2]", 0 / 0), { mode = "blocks", width = 2 })
  lu.assertEquals(lines[#lines], "f32[2, 2]   0 to 1   NaN: 4 (magenta)")
end

-- A grid is never wider than what it is drawn on.
function TestShow:test_grids_of_many()
  local many = dc.zeros "u8[300, 4, 4]"
  for _, mode in ipairs { "ascii", "blocks" } do
    local lines = shown(many, { layout = "NHW", mode = mode, width = 12 })
    lu.assertTrue(utf8.len((lines[1]:gsub("\27%[[%d;]*m", ""))) <= 12)
  end
  fails("show: 20 columns of images are wider than 12", dc.show, many, { layout = "NHW", mode = "ascii", width = 12,
    columns = 20 })
end

function TestShow:test_grids_and_ranges()
  local batch = dc.iota(5 * 4):cast("u8"):reshape(5, 2, 2) * 10
  local rows = decode_blocks((shown(batch, { mode = "blocks", width = 5, layout = "NHW", columns = 2 })))
  lu.assertEquals(#rows, 2 * 3 + 2)
  lu.assertEquals(rows[1], { 0, 0x0a0a0a, 0, 0x282828, 0x323232 })
  lu.assertEquals(rows[7], { 0xa0a0a0, 0xaaaaaa, 0, 0, 0 })
  local lines = shown(dc.tensor { { -2, 2 } }, { mode = "blocks", width = 2 })
  lu.assertEquals(decode_blocks(lines), { { 0, 0xffffff } })
  lu.assertEquals(lines[#lines], "f32[1, 2]   -2 to 2")
  lines = shown(dc.tensor({ { 7, 9 } }, "i64[1, 2]"), { mode = "blocks", width = 2, range = { 7, 11 } })
  lu.assertEquals(decode_blocks(lines), { { 0, 0x808080 } })
  lines = shown(dc.tensor({ { true, false } }, "bool[1, 2]"), { mode = "blocks", width = 2 })
  lu.assertEquals(decode_blocks(lines), { { 0xffffff, 0 } })
end

-- Where the output is no terminal: characters, without any sequence.
function TestShow:test_ascii()
  local x = dc.tensor { { 0, 1 }, { 1, 0.5 } }
  local lines, text = shown(x, { mode = "ascii", width = 4 })
  lu.assertEquals(lines[#lines], "f32[2, 2]   0 to 1")
  lu.assertEquals({ lines[1], lines[2] }, { "  @@", "@@++" })
  lu.assertNil(text:find "\27")
  local _, plain = shown(x)
  lu.assertNil(plain:find "\27")
  lu.assertNil(plain:find "[\x80-\xff]")
end

function TestShow:test_lines()
  local lines = shown(dc.tensor { 0, 1, 2, 3 }, { mode = "ascii", width = 63 })
  lu.assertEquals(#lines, 12 + 2)
  lu.assertStrContains(lines[1], "3 |" .. (" "):rep(45) .. ("*"):rep(15))
  lu.assertStrMatches(lines[12], "0 |" .. ("%*"):rep(15))
  lu.assertStrMatches(lines[13], "   1" .. (" "):rep(58) .. "4")
  lu.assertEquals(lines[14], "f32[4]")
  local marked = shown(dc.tensor { 1, 0 / 0, 1 / 0, -1 / 0 }, { mode = "ascii", width = 63 })
  lu.assertEquals(marked[13], (" "):rep(18) .. ("?"):rep(15) .. ("^"):rep(15) .. ("v"):rep(15))
  lu.assertEquals(marked[#marked], "f32[4]   NaN: 1 (?), inf: 1 (^), -inf: 1 (v)")
  local many = shown(dc.iota(10000), { mode = "blocks", width = 40 })
  lu.assertStrContains(many[1], "9999 │")
  lu.assertEquals(many[#many], "i32[10000]")
  lu.assertEquals(shown(dc.zeros "f32[0]"), { "f32[0]" })
  lu.assertEquals(shown(dc.tensor(2.5)), { "2.5" })
  lu.assertStrContains(shown(dc.tensor { 5, 5 }, { mode = "ascii" })[1], "5 |")
end

function TestShow:test_histograms()
  local x = dc.tensor { 0, 0, 0, 0, 1, 1, 2, 3, 0 / 0 }
  local lines = shown(x, { as = "hist", bins = 4, mode = "ascii", width = 13 })
  lu.assertEquals({ lines[1], lines[12] }, { "4 |**", "0 |********" })
  lu.assertEquals({ lines[5], lines[6], lines[8], lines[9] }, { "  |**", "  |****", "  |****", "  |********" })
  lu.assertEquals(lines[#lines], "f32[9]   mean 0.875   NaN: 1")
  lu.assertEquals(shown(dc.full("f32[3]", 0 / 0), { as = "hist" }), { "f32[3]   mean none   NaN: 3" })
  local normal = dc.randn("f32[50, 50]", { seed = 1 })
  lu.assertStrContains(table.concat(shown(normal, { as = "hist", mode = "blocks" })), "█")
end

function TestShow:test_mistakes()
  local x = dc.zeros "f32[2, 2]"
  fails("show: a tensor is needed, not the number 1", dc.show, 1)
  fails("show: c64[2, 2] has no picture", dc.show, dc.zeros "c64[2, 2]")
  fails("show: no axis of f32[5, 7, 7] can be channels", dc.show, dc.zeros "f32[5, 7, 7]")
  fails("show: an image is [h, w]", dc.show, dc.zeros "f32[1, 1, 1, 2, 2]")
  fails("show: an image without pixels", dc.show, dc.zeros "f32[0, 2]")
  fails("show: a line is drawn of [n], not of f32[2, 2]", dc.show, x, { as = "line" })
  fails('show: as is "image", "line" or "hist", not \'plot\'', dc.show, x, { as = "plot" })
  fails('show: mode is "auto", "sixel", "blocks" or "ascii", not \'kitty\'', dc.show, x, { mode = "kitty" })
  fails("show: width is a positive integer, not 0", dc.show, x, { width = 0 })
  fails("show: bins is a positive integer, not 1.5", dc.show, x, { as = "hist", bins = 1.5 })
  fails("show: bins are at most 65536, not 2000000", dc.show, x, { as = "hist", bins = 2000000 })
  fails("show: unknown option 'kind'", dc.show, x, { kind = 1 })
  fails("show is called while 'f' is traced", dc.fn, "f(x: f32[]) -> f32[]", function(x) -- luacheck: ignore
    dc.show(x)
    return x
  end)
end
