-- deepc's side of bench/tokenizers.py.
local dc = require "deepc"
local data = require "deepc.data"
local tokenizers = require "deepc.tokenizers"
local frame = dofile((arg[0]:match "^(.*)/" or ".") .. "/frame.lua")

local PLAIN = { special = false }

local function total(list)
  local sum = 0
  for _, x in ipairs(list) do
    sum = sum + x
  end
  return sum
end

local function total_bytes(text)
  return dc.frombytes(text, "u8"):cast "i32":sum():item()
end

frame.serve(function(case)
  local tok, text = tokenizers.load(case.file), data.read_text(case.text)
  local lines, ids = {}, tok:encode(text, PLAIN)
  for line in text:gmatch "[^\n]*\n?" do
    lines[#lines + 1] = line ~= "" and line or nil
  end
  local kinds = {
    whole = function() return tok:encode(text, PLAIN) end,
    lines = function()
      local all = {}
      for i, line in ipairs(lines) do
        all[i] = tok:encode(line, PLAIN)
      end
      return all
    end,
    decode = function() return tok:decode(ids) end,
  }
  return function(n)
    local out
    for _ = 1, n do
      out = kinds[case.kind]()
    end
    local sum = 0
    if case.kind == "lines" then
      for _, list in ipairs(out) do
        sum = sum + total(list)
      end
    else
      sum = case.kind == "whole" and total(out) or total_bytes(out)
    end
    return { sum = dc.tensor { sum % 1000003 } }
  end
end)
