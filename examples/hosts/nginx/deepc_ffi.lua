-- Functions that scripts of deepc exported, called from LuaJIT through libdeepc.so. Nothing of it is nginx.
--
--     local deepc = require "deepc_ffi"
--     local context = deepc.open { memory = 256 * 2 ^ 20, threads = 1, deadline = 200 }
--     local f = context:load "model.dcfn"
--     local results, why = f:call { x = { { 0.1, 0.2 } } }     -- nil and a sentence where something does not fit
--     context:close()
local ffi = require "ffi"

ffi.cdef [[
typedef struct dc_rt dc_rt;
typedef struct dc_function dc_function;
typedef struct dc_config {
  size_t size;
  const char *device, *debug;
  void (*log)(void *, const char *, const char *, size_t);
  void *log_ctx;
  int threads;
  void (*on_bug)(void *, const char *);
  void *bug_ctx;
  size_t memory_limit;
  void *(*alloc)(void *, void *, size_t, size_t);
  void *alloc_ctx;
  const char *cache, *compile;
  uint64_t allow;
  void *stream, *ranks;
  int rank;
} dc_config;
typedef struct dc_array {
  int dtype, rank;
  int64_t dim[8];
  void *data;
  size_t bytes;
} dc_array;
int dc_open(const dc_config *, dc_rt **);
void dc_close(dc_rt *);
void dc_deadline(dc_rt *, int64_t);
const char *dc_errmsg(dc_rt *);
int dc_load(dc_rt *, const char *, dc_function **);
void dc_unload(dc_function *);
int dc_call(dc_function *, const dc_array *, size_t, dc_array *, size_t);
const char *dc_function_signature(const dc_function *);
size_t dc_function_variants(const dc_function *);
bool dc_function_argument(const dc_function *, size_t, size_t, const char **, dc_array *);
bool dc_function_result(const dc_function *, size_t, size_t, dc_array *);
]]

-- By the numbers of dc_dtype; floats of 16 and 8 bits have no type of C.
local types = {
  [0] = { name = "bool", c = "uint8_t" },
  { name = "i8", c = "int8_t", low = -2 ^ 7, high = 2 ^ 7 - 1 },
  { name = "i16", c = "int16_t", low = -2 ^ 15, high = 2 ^ 15 - 1 },
  { name = "i32", c = "int32_t", low = -2 ^ 31, high = 2 ^ 31 - 1 },
  { name = "i64", c = "int64_t", low = -2 ^ 53, high = 2 ^ 53 },
  { name = "u8", c = "uint8_t", low = 0, high = 2 ^ 8 - 1 },
  { name = "u16", c = "uint16_t", low = 0, high = 2 ^ 16 - 1 },
  { name = "u32", c = "uint32_t", low = 0, high = 2 ^ 32 - 1 },
  { name = "u64", c = "uint64_t", low = 0, high = 2 ^ 53 },
  [11] = { name = "f32", c = "float", low = -3.4028234663852886e38, high = 3.4028234663852886e38 },
  [12] = { name = "f64", c = "double", low = -math.huge, high = math.huge },
}
for _, t in pairs(types) do
  t.array, t.pointer = ffi.typeof(t.c .. "[?]"), ffi.typeof(t.c .. "*")
end

local lib = ffi.load(os.getenv "DEEPC_LIB" or "deepc")

-- ---- a list of lists to an array, and back ----

local function wrong(where, ...)
  error({ sentence = where .. ": " .. string.format(...) }, 0)
end

local function store(t, at, i, v, where)
  if t.name == "bool" then
    if type(v) ~= "boolean" then wrong(where, "expected true or false, found %s", tostring(v)) end
    at[i] = v and 1 or 0
    return
  end
  if type(v) ~= "number" then
    wrong(where, "expected %s, found %s", t.name, type(v) == "table" and "a list" or tostring(v))
  end
  if not (v >= t.low and v <= t.high) or (t.name:find "^[iu]" and v % 1 ~= 0) then
    wrong(where, "%.17g is no %s", v, t.name)
  end
  at[i] = v
end

local function fill(t, at, i, v, shape, axis, where)
  if axis > #shape then
    store(t, at, i, v, where)
    return i + 1
  end
  if type(v) ~= "table" then wrong(where, "expected a list of %d, found %s", shape[axis], tostring(v)) end
  if #v ~= shape[axis] then wrong(where, "expected a list of %d, found one of %d", shape[axis], #v) end
  for k = 1, #v do i = fill(t, at, i, v[k], shape, axis + 1, where .. "[" .. k - 1 .. "]") end
  return i
end

local function lists(t, at, i, shape, axis)
  if axis > #shape then
    local v = at[i]
    if t.name == "bool" then return v ~= 0, i + 1 end
    local n = tonumber(v)
    if type(v) == "cdata" and not (n > -2 ^ 53 and n < 2 ^ 53) then n = v end -- no number of Lua: it stays an int64_t
    return n, i + 1
  end
  local list = {}
  for k = 1, shape[axis] do list[k], i = lists(t, at, i, shape, axis + 1) end
  return list, i
end

local function shape_of(a)
  local shape = {}
  for k = 1, a.rank do shape[k] = tonumber(a.dim[k - 1]) end
  return shape
end

-- Has v these sizes, as far as its first elements tell?
local function has_shape(v, shape)
  for _, n in ipairs(shape) do
    if type(v) ~= "table" or #v ~= n then return false end
    v = v[1]
  end
  return type(v) ~= "table"
end

-- ---- functions ----

local Function = {}
Function.__index = Function

local function variant_for(self, arguments)
  if #self.variants == 1 then return self.variants[1] end -- what does not fit is told by where
  for _, variant in ipairs(self.variants) do
    local fits = true
    for _, p in ipairs(variant) do fits = fits and has_shape(arguments[p.name], p.shape) end
    if fits then return variant end
  end
  error({ sentence = "no variant of " .. self.signature .. " has arguments of these sizes" }, 0)
end

local function fill_arguments(self, arguments)
  if type(arguments) ~= "table" then error({ sentence = "expected an object with the arguments" }, 0) end
  for _, p in ipairs(self.variants[1]) do
    if arguments[p.name] == nil then error({ sentence = "the argument " .. p.name .. " is missing" }, 0) end
  end
  for name in pairs(arguments) do
    if not self.names[name] then error({ sentence = "there is no argument " .. tostring(name) }, 0) end
  end
  local variant = variant_for(self, arguments)
  for i, p in ipairs(variant) do
    fill(p.type, p.at, 0, arguments[p.name], p.shape, 1, p.name)
    self.input[i - 1] = p.array
  end
end

-- Arguments by their names, as nested lists, to a list of results, and one of their dtypes. Where something does not
-- fit, nil and a sentence; and true where that is no matter of the arguments.
function Function:call(arguments)
  local ok, why
  if not self.handle then
    ok, why = pcall(self.open, self)
    if not ok then return nil, why, true end
  end
  ok, why = pcall(fill_arguments, self, arguments)
  if not ok then
    if type(why) ~= "table" then error(why, 0) end
    return nil, why.sentence
  end
  for i = 0, self.nout - 1 do self.output[i].data = nil end
  local status = lib.dc_call(self.handle, self.input, #self.variants[1], self.output, self.nout)
  if status ~= 0 then
    why = self.context:message()
    if status == 3 then -- a state was left half written: the next call has those of the file
      lib.dc_unload(self.handle)
      self.handle = nil
    end
    return nil, why, status ~= 1 and status ~= 2
  end
  local results, dtypes = {}, {}
  for i = 1, self.nout do
    local a = self.output[i - 1]
    local t = types[a.dtype]
    results[i] = lists(t, ffi.cast(t.pointer, a.data), 0, shape_of(a), 1)
    dtypes[i] = t.name
  end
  return results, dtypes
end

-- ---- contexts ----

local Context = {}
Context.__index = Context

-- The first line of what went wrong.
function Context:message()
  return (ffi.string(lib.dc_errmsg(self.handle)):match "^[^\n]*")
end

-- options: memory (bytes), threads, deadline (ms of a call); device, cache, compile as in dc_config
local function open(options)
  local config, out = ffi.new "dc_config", ffi.new "dc_rt *[1]"
  config.size = ffi.sizeof(config)
  config.memory_limit = options.memory or 0
  config.threads = options.threads or 1
  config.device, config.cache, config.compile = options.device, options.cache, options.compile -- strings of `options`
  local status = lib.dc_open(config, out)
  local self = setmetatable({ handle = out[0], options = options }, Context)
  if status ~= 0 then
    local why = self:message()
    lib.dc_close(self.handle)
    error("deepc: " .. why, 0)
  end
  return self
end

local function describe(handle, variant, get)
  local list, name, a = {}, ffi.new "const char *[1]", ffi.new "dc_array"
  while get(handle, variant, #list, name, a) do
    local t = types[a.dtype]
    if not t then error("deepc: an argument or result is a float of 16 or 8 bits, which is not taken here", 0) end
    local array = ffi.new("dc_array", a)
    local at = t.array(math.max(1, tonumber(a.bytes)))
    array.data = at
    local text = name[0] ~= nil and ffi.string(name[0]) or nil
    list[#list + 1] = { name = text, type = t, shape = shape_of(a), at = at, array = array }
  end
  return list
end

-- Lists and static values make variants that differ in more than sizes; arguments are taken by the names of the first.
local function same_kinds(one, other)
  if #one ~= #other then return false end
  for i = 1, #one do
    if one[i].name ~= other[i].name or one[i].type ~= other[i].type then return false end
  end
  return true
end

local function result_of(handle, variant, i, _, a)
  return lib.dc_function_result(handle, variant, i, a)
end

local function describe_all(f, handle)
  f.variants, f.names, f.nout = {}, {}, nil
  f.signature = ffi.string(lib.dc_function_signature(handle))
  for v = 0, tonumber(lib.dc_function_variants(handle)) - 1 do
    f.variants[v + 1] = describe(handle, v, lib.dc_function_argument)
    local results = describe(handle, v, result_of)
    f.nout = f.nout or #results
    if not same_kinds(f.variants[1], f.variants[v + 1]) or #results ~= f.nout then
      error(("deepc: variants 0 and %d of %s differ in more than sizes"):format(v, f.signature), 0)
    end
  end
  for _, p in ipairs(f.variants[1]) do f.names[p.name] = true end
  f.input = ffi.new("dc_array[?]", #f.variants[1] + 1)
  f.output = ffi.new("dc_array[?]", f.nout + 1)
end

function Function:open()
  local context, out = self.context, ffi.new "dc_function *[1]"
  lib.dc_deadline(context.handle, 0)
  local status = lib.dc_load(context.handle, self.path, out)
  lib.dc_deadline(context.handle, context.options.deadline or 0)
  if status ~= 0 then error("deepc: " .. context:message(), 0) end
  local ok, why = pcall(describe_all, self, out[0])
  if not ok then
    lib.dc_unload(out[0])
    error(why, 0)
  end
  self.handle = out[0]
end

function Context:load(path)
  local f = setmetatable({ context = self, path = path }, Function)
  f:open()
  return f
end

function Context:close()
  lib.dc_close(self.handle)
  self.handle = nil
end

return { open = open }
