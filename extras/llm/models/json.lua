-- The JSON of config.json and of indices of sharded files: objects and lists become tables, null becomes json.null.
-- Private to deepc.models.

local _, core = ...

local json = { null = setmetatable({}, { __name = "null", __tostring = function() return "null" end }) }

local LARGEST = 16 << 20 -- bytes

-- The object in a file.
function json.read(op, path)
  local text = core.read_file(op, path)
  if #text > LARGEST then
    core.fail("FORMAT", op, ("%s: more than %d bytes of JSON"):format(path, LARGEST))
  end
  local t = core.json_read(op, path, text, json.null)
  if not text:find "^[ \t\r\n]*{" then
    core.fail("FORMAT", op, path .. ": an object is needed")
  end
  return t
end

return json
