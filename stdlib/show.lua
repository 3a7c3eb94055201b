-- dc.show: tensors in the terminal. Images as half blocks with colours, as Sixel, or as characters; rows of numbers
-- and histograms as charts of blocks or characters.

local _, core = ...
require "deepc.operands"
require "deepc.pictures"

local show = {}

local WIDE, HIGH = 80, 24   -- of a terminal that does not tell, and of what is none
local CELL = { 10, 20 }     -- pixels of a character, where that is not told
local SMALL = 32            -- what is smaller is enlarged up to so many pixels of blocks,
local SMALL_SIXEL = 256     -- or of Sixel
local LINES = 12            -- of a chart
local RAMP = " .:-=+*#%@"

-- ---- the terminal ----

local modes = { auto = true, sixel = true, blocks = true, ascii = true }

local has_sixel -- what the terminal answered, once it was asked

-- How to draw: { mode, colours, columns, lines, cell }. colours: 0, 256, or 1 << 24.
local function read_screen(op, options)
  local columns, lines, across, up, colours = core.screen()
  local mode = options.mode or core.show_setting()
  if not modes[mode] then
    core.fail("ARG", op, ('mode is "auto", "sixel", "blocks" or "ascii", not %s'):format(core.shown(mode)))
  end
  if mode == "auto" and (not columns or colours == 0) then
    mode = "ascii"
  elseif mode == "auto" then
    if has_sixel == nil then
      has_sixel = core.asks_sixel()
    end
    mode = has_sixel and "sixel" or "blocks"
  end
  if not columns then -- it is asked for where no terminal is: for one that knows all colours
    colours = core.wants_colour() and 1 << 24 or 0
  end
  local width = options.width or math.min(columns or WIDE, 200)
  core.check_size(op, "width", width)
  return { mode = mode, colours = colours, columns = width, lines = lines or HIGH,
    cell = across and across > 0 and { across, up } or CELL }
end

-- ---- colours ----

-- The nearest of the cube of 6 x 6 x 6 and the 24 greys.
local function of_256(r, g, b)
  local function level(v)
    return v < 48 and 0 or v < 115 and 1 or (v - 35) // 40
  end
  local function far(x, y, z)
    return (r - x) ^ 2 + (g - y) ^ 2 + (b - z) ^ 2
  end
  local steps = { [0] = 0, 95, 135, 175, 215, 255 }
  local i, j, k = level(r), level(g), level(b)
  local grey = math.max(0, math.min(23, ((r + g + b) // 3 - 3) // 10))
  if far(grey * 10 + 8, grey * 10 + 8, grey * 10 + 8) < far(steps[i], steps[j], steps[k]) then
    return 232 + grey
  end
  return 16 + 36 * i + 6 * j + k
end

local function colour_text(screen, pixel)
  if screen.colours > 256 then
    return ("2;%d;%d;%d"):format(pixel >> 16, pixel >> 8 & 255, pixel & 255)
  end
  return ("5;%d"):format(of_256(pixel >> 16, pixel >> 8 & 255, pixel & 255))
end

-- ---- images ----

-- The size of n images of h x w, in pixels, that fit: { height, width, columns, gap }. `most`: width and height of
-- all; small: up to which size they are enlarged; tall: how many times as high as wide a pixel is shown.
local function fit(op, p, options, most, small, tall)
  local gap = p.n > 1 and 1 or 0
  local columns, room = math.min(core.grid_columns(op, p.n, options.columns), p.n), (most[1] + gap) // (1 + gap)
  if options.columns and columns > room then
    core.fail("ARG", op, ("%d columns of images are wider than %d, of which each has a pixel at least"):format(columns,
      most[1]), ("columns = %d"):format(room))
  end
  columns = math.min(columns, room)
  local rows = (p.n + columns - 1) // columns
  local width = (most[1] - gap * (columns - 1)) / (columns * p.w)
  local height = (most[2] - gap * (rows - 1)) / (rows * p.h) * tall
  local scale = math.min(width, height)
  if scale >= 1 then
    scale = math.max(1, math.min(math.floor(scale), small // (math.max(p.h, p.w) * columns)))
  end
  return { width = math.max(1, math.floor(p.w * scale)), height = math.max(1, math.floor(p.h * scale / tall + 0.5)),
    columns = columns, gap = gap, channels = 3 }
end

local function pixel_at(pixels, width, x, y)
  return (string.unpack(">I3", pixels, (y * width + x) * 3 + 1))
end

-- Two rows of pixels to a line.
local function draw_blocks(screen, pixels, width, height)
  local lines = {}
  for y = 0, height - 1, 2 do
    local parts, last_top, last_low = {}, nil, nil
    for x = 0, width - 1 do
      local top, low = pixel_at(pixels, width, x, y), y + 1 < height and pixel_at(pixels, width, x, y + 1) or -1
      if top ~= last_top or low ~= last_low then
        parts[#parts + 1] = ("\27[38;%s;%sm"):format(colour_text(screen, top), low < 0 and "49"
          or "48;" .. colour_text(screen, low))
        last_top, last_low = top, low
      end
      parts[#parts + 1] = "▀"
    end
    lines[#lines + 1] = table.concat(parts) .. "\27[0m"
  end
  return lines
end

local marks = { [0xff00ff] = "?", [0xff0000] = "^", [0x0000ff] = "v" }

local function draw_ascii(pixels, width, height, strange)
  local lines = {}
  for y = 0, height - 1 do
    local parts = {}
    for x = 0, width - 1 do
      local v = pixel_at(pixels, width, x, y)
      local mark = strange > 0 and marks[v]
      local grey = (299 * (v >> 16) + 587 * (v >> 8 & 255) + 114 * (v & 255)) // 1000
      local i = math.min(#RAMP, grey * #RAMP // 256 + 1)
      parts[x + 1] = mark or RAMP:sub(i, i)
    end
    lines[y + 1] = (table.concat(parts):gsub(" +$", ""))
  end
  return lines
end

local function number(v)
  return core.number("%.4g", v)
end

local function strange_text(nan, above, below, names)
  local list = {}
  for i, n in ipairs { nan, above, below } do
    if n > 0 then
      list[#list + 1] = ("%s: %d"):format(({ "NaN", "inf", "-inf" })[i], n)
        .. (names and (" (%s)"):format(names[i]) or "")
    end
  end
  return #list > 0 and "   " .. table.concat(list, ", ") or ""
end

local function type_text(x)
  return ("%s[%s]"):format(x.dtype, table.concat(x.shape, ", "))
end

local function show_image(op, x, options, screen)
  local image = { layout = options.layout, range = options.range }
  local p = core.picture_of(op, x, image, "auto")
  if options.range == nil and core.is_float(x.dtype) and p.low >= 0 and p.high <= 1 then
    p.low, p.high = 0.0, 1.0
  end
  local sixel, ascii = screen.mode == "sixel", screen.mode == "ascii" or screen.colours == 0 and screen.mode ~= "sixel"
  local most, small, tall = { screen.columns, 2 * (screen.lines - 3) }, SMALL, 1
  if sixel then
    most, small = { screen.columns * screen.cell[1], (screen.lines - 3) * screen.cell[2] }, SMALL_SIXEL
  elseif ascii then
    most, small, tall = { screen.columns, screen.lines - 3 }, 2 * SMALL, 2
  end
  local size = fit(op, p, options, most, small, tall)
  local pixels, width, height, nan, above, below = core.paint(op, x, p, size)
  local lines
  if sixel then
    lines = { core.sixel(pixels, width, height) }
  elseif ascii then
    lines = draw_ascii(pixels, width, height, nan + above + below)
  else
    lines = draw_blocks(screen, pixels, width, height)
  end
  lines[#lines + 1] = ("%s   %s to %s%s"):format(type_text(x), number(p.low), number(p.high),
    strange_text(nan, above, below, ascii and { "?", "^", "v" } or { "magenta", "red", "blue" }))
  return lines
end

-- ---- charts ----

-- A chart of columns, each filled from one height to another, from 0 to 1; nil: nothing is there. The labels stand at
-- the left of the top and the bottom, and below; `below` marks columns.
local function chart(screen, columns, labels, below)
  local blocks = screen.mode ~= "ascii"
  local steps = blocks and 2 * LINES or LINES
  local wide = math.max(#labels.top, #labels.bottom)
  local lines = {}
  local function filled(c, step) -- steps count from the top
    local from, to = c and c[1], c and c[2]
    if not from then
      return false
    end
    local first = steps - 1 - math.floor(to * (steps - 1) + 0.5)
    local last = steps - 1 - math.floor(from * (steps - 1) + 0.5)
    return step >= first and step <= last
  end
  for line = 1, LINES do
    local label = line == 1 and labels.top or line == LINES and labels.bottom or ""
    local parts = {}
    for i = 1, columns.n do
      local c = columns[i]
      if blocks then
        local top, low = filled(c, 2 * line - 2), filled(c, 2 * line - 1)
        parts[i] = top and low and "█" or top and "▀" or low and "▄" or " "
      else
        parts[i] = filled(c, line - 1) and "*" or " "
      end
    end
    local text = table.concat(parts):gsub(" +$", "")
    if blocks and screen.colours > 0 and text ~= "" then
      text = "\27[38;5;33m" .. text .. "\27[0m"
    end
    lines[line] = (" "):rep(wide - #label) .. label .. (blocks and " │" or " |") .. text
  end
  if below then
    lines[#lines + 1] = (" "):rep(wide + 2) .. below
  end
  local space = columns.n - #labels.first - #labels.last
  lines[#lines + 1] = (" "):rep(wide + 2) .. labels.first .. (" "):rep(math.max(space, 1)) .. labels.last
  return lines
end

-- What of the columns' width is left for them, behind labels of these lengths.
local function room_of(screen, ...)
  local wide = 0
  for _, text in ipairs { ... } do
    wide = math.max(wide, #text)
  end
  return math.max(screen.columns - wide - 2, 8)
end

-- Which values a column covers: at least one. Of few values each has one place, and what is between is drawn through.
local function columns_of_line(list, n, s, room)
  local count = math.min(room, math.max(n, math.min(room, 60)))
  local range = s.high > s.low and s.high - s.low or 1
  local columns, marks_below, last = { n = count }, {}, nil
  for c = 1, count do
    local from = (c - 1) * n // count + 1
    local low, high, mark
    for i = from, math.max(from, c * n // count) do
      local v = list[i]
      if v ~= v then
        mark = "?"
      elseif v == math.huge or v == -math.huge then
        mark = mark or v > 0 and "^" or "v"
      else
        local h = s.high > s.low and (v - s.low) / range or 0.5
        low, high = math.min(low or h, h), math.max(high or h, h)
      end
    end
    marks_below[c] = mark or " "
    if low then
      columns[c] = { low, high }
      if last then -- down or up to where the one before ends
        columns[c][1] = math.min(low, math.max(last[1], math.min(last[2], low)))
        if last[2] < low then
          columns[c][1] = (last[2] + low) / 2
          last[2] = math.max(last[2], (last[2] + low) / 2)
        elseif last[1] > high then
          columns[c][2] = (last[1] + high) / 2
          last[1] = math.min(last[1], (last[1] + high) / 2)
        end
      end
    end
    last = columns[c]
  end
  local below = table.concat(marks_below):gsub(" +$", "")
  return columns, below ~= "" and below or nil
end

local function show_line(op, x, _, screen)
  if #x.shape ~= 1 then
    core.fail("DIMS", op, ("a line is drawn of [n], not of %s"):format(core.describe(x)), ":reshape(-1)", "x", x)
  end
  local s = core.statistics(op, x, 0)
  local n = x.shape[1]
  local lines = {}
  if n > 0 then
    local labels = { top = number(s.high), bottom = number(s.low), first = "1", last = ("%d"):format(n) }
    local list = x:totable()
    for i, v in ipairs(list) do
      list[i] = v == true and 1 or v == false and 0 or v
    end
    local columns, below = columns_of_line(list, n, s, room_of(screen, labels.top, labels.bottom))
    lines = chart(screen, columns, labels, below)
  end
  lines[#lines + 1] = type_text(x) .. strange_text(s.nan, s.above, s.below, { "?", "^", "v" })
  return lines
end

local function show_histogram(op, x, options, screen)
  local room = room_of(screen, "1000000")
  local bins = options.bins or math.min(room, 60)
  core.check_size(op, "bins", bins)
  if bins > 65536 then
    core.fail("ARG", op, ("bins are at most 65536, not %d"):format(bins))
  end
  local s = core.statistics(op, x, bins)
  local lines, most = {}, 0
  for i = 1, bins do
    most = math.max(most, s[i])
  end
  if most > 0 then
    local wide = math.max(1, room // bins)
    local columns = { n = math.min(room, bins * wide) }
    for c = 1, columns.n do -- more bins than columns: the largest of those that it covers
      local from, count = (c - 1) * bins // columns.n + 1, 0
      for i = from, math.max(from, c * bins // columns.n) do
        count = math.max(count, s[i])
      end
      columns[c] = count > 0 and { 0, count / most } or nil
    end
    lines = chart(screen, columns, { top = ("%d"):format(most), bottom = "0", first = number(s.low),
      last = number(s.high) })
  end
  lines[#lines + 1] = ("%s   mean %s%s"):format(type_text(x), s.n > 0 and number(s.sum / s.n) or "none",
    strange_text(s.nan, s.above, s.below))
  return lines
end

-- ---- the whole ----

local kinds = { image = show_image, line = show_line, hist = show_histogram }

function show.show(x, options)
  local op = "show"
  core.refuse_tracing(op)
  core.options(op, options, "as", "layout", "range", "columns", "bins", "mode", "width")
  options = options or {}
  if not core.kind(x) then
    core.fail("ARG", op, ("a tensor is needed, not %s"):format(core.describe(x)))
  end
  local as = options.as
  if as ~= nil and not kinds[as] then
    core.fail("ARG", op, ('as is "image", "line" or "hist", not %s'):format(core.shown(as)))
  end
  local rank = #x.shape
  as = as or rank == 0 and "value" or rank == 1 and "line" or "image"
  if core.is_complex(x.dtype) then
    core.fail("DTYPE", op, ("%s has no picture: real numbers are needed"):format(core.describe(x)), "x:abs()", "x", x)
  end
  local screen = read_screen(op, options)
  if core.checking() then
    return
  elseif as == "value" then
    print(x)
  else
    print(table.concat(kinds[as](op, x, options, screen), "\n"))
  end
end

return core.entries(show)
