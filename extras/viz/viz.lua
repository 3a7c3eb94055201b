-- A page about what a script computed: every typed function that it called, with graph, kernels, lines, memory and
-- time.
-- `deepc --viz out.html train.lua` writes one; a script writes one by itself:
--
--     local viz = require "deepc.viz"
--     viz.start()
--     ...
--     viz.write "out.html"
--
-- The page is one file that needs nothing else: the files of viz/ with the data as JSON.

local _, core = ...

local dc = require "deepc"

---@class deepc.viz
local viz = {}

local STYLES = { "page.css", "views.css", "print.css" }
local SCRIPTS = { "model.js", "layout.js", "layers.js", "scene.js", "draw.js", "graph.js", "roofline.js", "kernels.js",
  "lines.js", "memory.js", "flame.js", "overview.js", "details.js", "search.js", "page.js" }

local begun -- when it was started: core.clock
local peak -- of the machine: { gflops, gbs }, false where it is not measured, nil before

---Kernels are timed from now on, and the functions that are called are remembered, also those that are
---dropped. What was called before has no times.
function viz.start()
  core.report_begin()
  begun = begun or core.clock()
end

local function read_all(names)
  local parts = {}
  for i, name in ipairs(names) do
    parts[i] = core.viz_file(name)
  end
  local text = table.concat(parts, "\n")
  return text
end

-- The page with what stands between double braces replaced.
local function fill(page, values)
  local text = page:gsub("{{([%w_]+)}}", values)
  return text
end

local function escape(text)
  local out = text:gsub("[&<>\"]", { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" })
  return out
end

-- Only where kernels run at full speed is the machine worth a measurement.
local function measure_peak()
  local machine = core.viz_machine()
  if peak == nil and not machine.interpreted and not machine.simulated then
    local ok, gflops, gbs = pcall(require "deepc.peaks")
    peak = ok and gflops > 0 and { gflops = gflops, gbs = gbs }
  end
  return peak or nil
end

-- The text of the page.
local function page_of(about)
  local data = require "deepc.viz.data"(about)
  data.peak = data.functions[1] and measure_peak() or nil
  local json = require("deepc.json").write(data, "list")
  local text = fill(core.viz_file "page.html", {
    title = escape(about.script or "deepc"), style = read_all(STYLES), script = read_all(SCRIPTS), data = json,
  })
  return text
end

---Writes the page with what has been called since `viz.start`. The file is replaced as a whole, or not at all.
---@param path string
function viz.write(path)
  if type(path) ~= "string" then
    core.fail("ARG", "viz.write", ("a path is needed, not %s"):format(core.describe(path)))
  end
  local script = arg and arg[0]
  core.write_file("viz.write", path, page_of { script = script, version = dc._VERSION })
end

-- For the program: `deepc --viz`. A path that cannot be written is an error now. Returns what writes the page: about
-- is { script, command, error }.
function viz._program(path)
  core.viz_check(path)
  viz.start()
  return function(about)
    about.version, about.seconds = dc._VERSION, math.floor(core.clock() - begun + 0.5)
    core.write_file("--viz", path, page_of(about))
  end
end

return core.module("deepc.viz", viz)
