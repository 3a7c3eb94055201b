-- docs/gallery.md is what scripts/gallery writes; its pictures are there, and small; others are not.
local lu = require "luaunit"
local links = assert(loadfile "scripts/links.lua")("module")

local function read(path)
  local f = assert(io.open(path, "rb"), path)
  local text = f:read "a"
  f:close()
  return text
end

TestGallery = {}

function TestGallery:test_the_page_is_up_to_date()
  local text = assert(loadfile "scripts/gallery.lua")("text")
  lu.assertTrue(text == read "docs/gallery.md", "docs/gallery.md is not what scripts/gallery --page writes")
end

function TestGallery:test_pictures_are_shown_and_small()
  local page, sum, count = read "docs/gallery.md", 0, 0
  for _, name in ipairs(links.find("docs/gallery", "-type f")) do
    local picture = read("docs/gallery/" .. name)
    lu.assertTrue(page:find("](gallery/" .. name .. ")", 1, true) ~= nil, name .. " is not shown")
    lu.assertTrue(#picture > 0 and #picture <= 60000, ("%s has %d bytes"):format(name, #picture))
    lu.assertTrue(picture:match "^\137PNG" ~= nil or picture:match "^<svg" ~= nil, name)
    sum, count = sum + #picture, count + 1
  end
  lu.assertTrue(count >= 8 and sum <= 600000, ("%d pictures of %d bytes"):format(count, sum))
end
