---@meta deepc.plot

-- Made by scripts/reference from stdlib/plot.lua.

---Line charts.
---
---    local plot = require "deepc.plot"
---@class deepc.plot
local plot = {}

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
function plot.lines(path, series, options) end

return plot
