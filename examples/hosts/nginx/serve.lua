-- What nginx.conf calls: a context and a function in each worker, and the answer to a request.
-- luacheck: globals ngx
local deepc = require "deepc_ffi"
local json = require "cjson.safe"

local serve = {}
local context, f, failed

function serve.open(path, options)
  local ok, why = pcall(function()
    context = deepc.open(options)
    f = context:load(path)
  end)
  if not ok then
    failed = why
    ngx.log(ngx.ERR, why)
  end
end

function serve.close()
  if context then context:close() end
  context, f = nil, nil
end

local function answer(code, text)
  ngx.status = code
  ngx.header["Content-Type"] = "application/json"
  ngx.say(text)
end

local function refuse(code, why)
  answer(code, json.encode { error = why })
end

-- By cjson numbers would have 14 digits.
local formats = { f32 = "%.9g", f64 = "%.17g" }

-- JSON of nested lists. It has no infinities and NaNs.
local function text_of(v, format)
  if type(v) == "table" then
    local list = {}
    for i = 1, #v do list[i] = text_of(v[i], format) end
    return "[" .. table.concat(list, ",") .. "]"
  elseif type(v) == "number" then
    return v - v == 0 and format:format(v) or "null"
  end
  return (tostring(v):gsub("U?LL$", "")) -- true, false, int64_t
end

function serve.run()
  if not f then return refuse(503, failed or "not open") end
  if ngx.req.get_method() ~= "POST" then
    ngx.header.Allow = "POST"
    return refuse(405, "POST is wanted here")
  end
  ngx.req.read_body()
  local arguments, why = json.decode(ngx.req.get_body_data() or "")
  if arguments == nil then return refuse(400, "the body is not JSON: " .. why) end
  local results, dtypes, ours = f:call(arguments)
  if not results then return refuse(ours and 500 or 400, dtypes) end
  for i = 1, #results do results[i] = text_of(results[i], formats[dtypes[i]] or "%.0f") end
  return answer(200, ('{"results":[%s],"worker":%d}'):format(table.concat(results, ","), ngx.worker.pid()))
end

return serve
