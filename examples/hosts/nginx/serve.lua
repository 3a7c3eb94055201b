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

local function answer(code, value)
  ngx.status = code
  ngx.header["Content-Type"] = "application/json"
  ngx.say(json.encode(value))
end

-- JSON has no infinities and NaNs.
local function finite(v)
  if type(v) == "table" then
    for i = 1, #v do v[i] = finite(v[i]) end
  elseif v ~= v or v == math.huge or v == -math.huge then
    return json.null
  end
  return v
end

function serve.run()
  if not f then return answer(503, { error = failed or "not open" }) end
  if ngx.req.get_method() ~= "POST" then
    ngx.header.Allow = "POST"
    return answer(405, { error = "POST is wanted here" })
  end
  ngx.req.read_body()
  local arguments, why = json.decode(ngx.req.get_body_data() or "")
  if arguments == nil then return answer(400, { error = "the body is not JSON: " .. why }) end
  local results, ours
  results, why, ours = f:call(arguments)
  if not results then return answer(ours and 500 or 400, { error = why }) end
  return answer(200, { results = finite(results), worker = ngx.worker.pid() })
end

return serve
