-- What is known of public names: help(name) gives a text, or nil.
--
-- Read from the annotations in the sources of stdlib/, which are embedded: api/ for what is
-- written in C, the other modules for themselves. scripts/reference writes the pages of
-- docs/reference/ and the files of library/ from the same entries.

local _, core = ...

local help = {}

-- What the methods of a class are called on.
local receiver = {
  Tensor = "x", Cell = "p", Function = "f", Static = "k", Scope = "s", Error = "err", Layer = "layer",
  Optimizer = "opt", LBFGS = "opt", Average = "ema", GradScaler = "scaler", Plateau = "plateau", Metric = "metric",
  Writer = "log", Set = "set", Checkpoint = "ckpt", Rows = "rows", Vocabulary = "vocabulary", Stream = "stream",
  Decoder = "net", Cache = "cache", Bert = "net", Whisper = "net",
}

---@class deepc.help.Param
---@field name string
---@field type string
---@field text string
---@field optional boolean

---@class deepc.help.Entry
---@field kind "class"|"function"|"alias"
---@field module string "deepc.nn"
---@field section string? its heading
---@field owner string? of a function: the class, or the table of the module
---@field name string
---@field is_method boolean
---@field doc string[]
---@field params deepc.help.Param[]
---@field returns { type: string, text: string }[]
---@field fields deepc.help.Param[]
---@field also string[] other names
---@field written string? the parameters in the code
---@field parent string? of a class
---@field exported boolean a class that the module has
---@field is_module boolean

-- ---- reading ----

-- A type in front of other text: blanks inside brackets belong to it.
local function split_type(s)
  local depth, at = 0, 1
  while at <= #s do
    local c = s:sub(at, at)
    if c:match "[%(%[{<]" then
      depth = depth + 1
    elseif c:match "[%)%]}>]" then
      depth = depth - 1
    elseif c == " " and depth == 0 and not s:sub(1, at - 1):match "[:|,]$" then
      break
    end
    at = at + 1
  end
  return s:sub(1, at - 1), (s:sub(at):gsub("^%s*#?%s*", ""))
end

local function read_param(text)
  local name, rest = text:match "^([^%s]+)%s*(.*)$"
  local type_text, about = split_type(rest)
  local optional = name:sub(-1) == "?"
  return { name = name:gsub("%?$", ""), type = type_text, text = about, optional = optional }
end

local tags = {}

function tags.param(block, text)
  table.insert(block.params, read_param(text))
end

function tags.field(block, text)
  table.insert(block.fields, read_param(text))
end

tags["return"] = function(block, text)
  local type_text, about = split_type(text)
  local rest = about:match "^%.%.%.%s*#?%s*(.*)$" -- any number of them
  if rest then
    type_text, about = type_text .. " ...", rest
  end
  table.insert(block.returns, { type = type_text, text = about })
end

function tags.class(block, text)
  block.class, block.parent = text:match "^([%w_.]+):?%s*([%w_.]*)"
end

function tags.alias(block, text)
  block.alias, block.type = text:match "^([%w_.]+)%s*(.*)$"
end

-- The parameters of fun(a: A, b?: B): C
function tags.overload(block, text)
  local list = text:match "^fun%((.*)%)"
  while list and list ~= "" do
    local name, rest = list:match "^%s*([%w_.]+%??):?%s*(.*)$"
    if not name then
      break
    end
    local depth, at = 0, 1
    while at <= #rest and not (depth == 0 and rest:sub(at, at) == ",") do
      local c = rest:sub(at, at)
      depth = depth + (c:match "[%({<]" and 1 or c:match "[%)}>]" and -1 or 0)
      at = at + 1
    end
    block.overload = block.overload or {}
    table.insert(block.overload, read_param(name .. " " .. rest:sub(1, at - 1)))
    list = rest:sub(at + 1)
  end
end

local function new_block()
  return { doc = {}, params = {}, returns = {}, fields = {}, also = {} }
end

local function short(class)
  return class:match "[%w_]+$"
end

local Reader = {}
Reader.__index = Reader

function Reader:add(block, more)
  for k, v in pairs(more) do
    block[k] = v
  end
  block.module, block.section = self.module, self.section
  while block.doc[#block.doc] == "" do
    table.remove(block.doc)
  end
  table.insert(self.entries, block)
  return block
end

-- A function of a class or of the module; undocumented ones are not public.
function Reader:add_function(block, var, sep, name, written)
  block.written = written
  local class = self.class_of[var]
  if name == "init" and class then -- its parameters are those of the constructor
    class.params = block.params
  elseif class or var == self.table then
    if #block.doc > 0 then
      local owner = class and class.name or self.table
      local entry = self:add(block, { kind = "function", owner = owner, name = name, is_method = sep == ":" })
      self.functions[var .. "." .. name] = entry
    end
  end
end

-- A line of code, and the comment above it.
function Reader:code(line, block)
  local var, sep, name, written = line:match "^function ([%w_.]+)([.:])([%w_]+)%((.-)%)"
  if var then
    self:add_function(block, var, sep, name, written)
    return
  end
  local to, key, from = line:match '^([%w_]+)[.%[]"?([%w_]+)"?%]? = ([%w_]+%.[%w_]+)$'
  if from == nil then -- nn.Linear = Linear
    to, key = line:match "^([%w_]+)%.[%w_]+ = ([%w_]+)$"
    local class = to == self.table and self.class_of[key]
    if class then
      class.exported = true
    end
    return self:class_line(line, block)
  end
  local same = self.functions[from]
  if same and (self.class_of[to] or to == self.table) then
    table.insert(same.also, { owner = to == self.table and to or self.class_of[to].name, name = key })
  end
end

-- local Linear = ...   optim.Adam = ...
function Reader:class_line(line, block)
  local var = line:match "^local ([%w_]+) = " or line:match "^([%w_.]+) = "
  if block.class and var and #block.doc > 0 then -- without a text: known from an earlier source
    local is_module = block.class == self.module
    local inside = block.class:match "^deepc%.(.+)$"
    local entry = self:add(block, {
      kind = "class",
      name = is_module and self.table or inside,
      is_module = is_module,
      exported = var:match "%." ~= nil,
    })
    if not is_module then
      self.class_of[var] = entry
    end
  end
end

-- Appends what the annotations of a source say to self.entries.
local function read_source(self, text)
  local block = new_block()
  for line in (text .. "\n"):gmatch "([^\n]*)\n" do
    local tag, rest = line:match "^%-%-%-@(%w+)%s*(.*)$"
    local doc = line:match "^%-%-%-(.*)$"
    if tag then
      if tags[tag] then
        tags[tag](block, rest)
      end
    elseif doc and not doc:match "^%-" then
      table.insert(block.doc, doc)
    elseif line:match "^%-%- %-%-%-%- .* %-%-%-%-$" then
      self.section = line:match "^%-%- %-%-%-%- (.*) %-%-%-%-$"
    else
      if block.alias then
        self:add(block, { kind = "alias", name = short(block.alias) })
      elseif line ~= "" then
        self:code(line, block)
      end
      block = new_block()
    end
  end
end

-- Appends what is said of a module, { name, source, ... }.
local function read(module, entries)
  local name = module[1]
  local self = setmetatable({
    module = name, entries = entries, class_of = {}, functions = {},
    table = name == "deepc" and "dc" or short(name),
  }, Reader)
  for i = 2, #module do
    read_source(self, core.source(module[i]))
  end
end

-- The modules, each with the sources that its annotations stand in. Those of extras/ may be absent from a build.
local modules = {
  { "deepc", "deepc.api.values", "deepc.api.shape", "deepc.api.arrange", "deepc.api.elements", "deepc.api.numbers",
    "deepc.api.sums", "deepc.api.order", "deepc.api.indexing", "deepc.api.functions", "deepc.api.control",
    "deepc.api.vmap", "deepc.api.ranks", "deepc.api.scripts", "deepc.api.complex" },
  { "deepc.nn", "deepc.nn.class", "deepc.nn.layers", "deepc.nn.activations", "deepc.nn.piecewise", "deepc.nn.smooth",
    "deepc.nn.norms", "deepc.nn.channel_norms", "deepc.nn.conv", "deepc.nn.padding", "deepc.nn.resample",
    "deepc.nn.patches", "deepc.nn.similarity", "deepc.nn.pool", "deepc.nn.unpool", "deepc.nn.cells",
    "deepc.nn.recurrent", "deepc.nn.attention", "deepc.nn.positions", "deepc.nn.transformer", "deepc.nn.losses",
    "deepc.nn.loss_forms", "deepc.nn.ctc", "deepc.nn.initial", "deepc.nn.summary", "deepc.nn.whole",
    "deepc.nn.containers", "deepc.nn.bags", "deepc.nn.reparametrise",
    "deepc.nn.quantized", "deepc.nn.calibrate" },
  { "deepc.optim", "deepc.optim.class", "deepc.optim.step", "deepc.optim.sgd", "deepc.optim.adam",
    "deepc.optim.large", "deepc.optim.groups", "deepc.optim.lbfgs", "deepc.optim.average", "deepc.optim.scaler" },
  { "deepc.fft", "deepc.fft.transforms", "deepc.fft.cosine" },
  { "deepc.signal", "deepc.signal" },
  { "deepc.stablehlo", "deepc.stablehlo" },
  { "deepc.schedules", "deepc.schedules" },
  { "deepc.metrics", "deepc.metrics.class", "deepc.metrics.classes", "deepc.metrics.numbers",
    "deepc.metrics.ranking", "deepc.metrics.text" },
  { "deepc.linalg", "deepc.linalg.base", "deepc.linalg.factors", "deepc.linalg.solve", "deepc.linalg.values",
    "deepc.linalg.norms", "deepc.linalg.products" },
  { "deepc.pipeline", "deepc.pipeline" },
  { "deepc.train", "deepc.train.class", "deepc.train.fit" },
  { "deepc.tensorboard", "deepc.tensorboard.writer", "deepc.tensorboard.graph", "deepc.tensorboard.hparams" },
  { "deepc.data", "deepc.data.set", "deepc.data.rows", "deepc.data.stream", "deepc.data.tables", "deepc.data.media",
    "deepc.data.folders", "deepc.data.text", "deepc.data.fetch" },
  { "deepc.tokenizers", "deepc.tokenizers.class", "deepc.tokenizers.sources", "deepc.tokenizers.gguf",
    "deepc.tokenizers.chat" },
  { "deepc.random", "deepc.random.continuous", "deepc.random.discrete" },
  { "deepc.models", "deepc.models.base", "deepc.models.load", "deepc.models.bert", "deepc.models.cache",
    "deepc.models.decoder",
    "deepc.models.llama", "deepc.models.gpt2", "deepc.models.mamba", "deepc.models.whisper",
    "deepc.models.vision", "deepc.models.vit", "deepc.models.unet", "deepc.models.speech",
    "deepc.models.generate", "deepc.models.lora" },
  { "deepc.serve", "deepc.serve.server", "deepc.serve.request", "deepc.serve.masks" },
  { "deepc.plot", "deepc.plot" },
  { "deepc.viz", "deepc.viz" },
}

local entries

---All entries, in the order of the sources.
---@return deepc.help.Entry[]
function help.entries()
  if not entries then
    entries = {}
    for _, module in ipairs(modules) do
      if core.source(module[2]) then
        read(module, entries)
      end
    end
  end
  return entries
end

---What the annotations of a module stand in, in order: "deepc.nn.layers".
---@param name string
---@return string[]
function help.sources(name)
  for _, module in ipairs(modules) do
    if module[1] == name then
      return { table.unpack(module, 2) }
    end
  end
  return {}
end

---The modules, that of C first.
---@return string[]
function help.modules()
  local names = {}
  for _, module in ipairs(modules) do
    names[#names + 1] = core.source(module[2]) and module[1]
  end
  return names
end

-- ---- texts ----

-- "deepc.Tensor" as "Tensor"
local function plain_type(text)
  return (text:gsub("deepc%.([%w_.]+)", "%1"))
end

local function list_params(params)
  local list = {}
  for i, p in ipairs(params) do
    list[i] = p.name .. (p.optional and "?" or "")
  end
  return table.concat(list, ", ")
end

local function call_text(owner, name, params, is_method)
  local on = is_method and (receiver[short(owner)] or owner)
  if not name:match "^[%a_][%w_]*$" or name == "not" then
    return ("%s[%q](%s)"):format(on or owner, name, params)
  end
  return ("%s%s%s(%s)"):format(on or owner, is_method and ":" or ".", name, params)
end

---How it is written: "x:sum(axes?)", and its other names.
---@param e deepc.help.Entry
---@return string, string[]
function help.signature(e)
  local params, also = list_params(e.params), {}
  if e.kind == "class" then
    local list = #e.params > 0 and e.params or e.overload or {}
    local made = e.exported and short(e.name):match "^%u" -- others are tables of functions
    return made and ("%s(%s)"):format(e.name, list_params(list)) or e.name, also
  elseif e.kind == "alias" then
    return e.name, also
  end
  for i, a in ipairs(e.also) do
    if a.owner == "Tensor" then -- a function first, whose first parameter is the tensor
      also[i] = call_text("Tensor", a.name, params:gsub("^[^,]*,?%s*", ""), true)
    else
      local first = e.is_method and "x" .. (params ~= "" and ", " or "") or ""
      also[i] = call_text(a.owner, a.name, e.owner == a.owner and params or first .. params, e.owner == a.owner)
    end
  end
  return call_text(e.owner, e.name, params, e.is_method), also
end

local function add_rows(out, rows)
  local width = 0
  for _, row in ipairs(rows) do
    width = math.max(width, #row[1])
  end
  for _, row in ipairs(rows) do
    out[#out + 1] = (("  %-" .. width .. "s  %s"):format(row[1], row[2]):gsub("%s+$", ""))
  end
end

local function rows_of(e)
  local rows = {}
  for _, p in ipairs(#e.params > 0 and e.params or e.overload or {}) do
    local about = p.text ~= "" and ", " .. p.text or ""
    rows[#rows + 1] = { p.name .. (p.optional and "?" or ""), plain_type(p.type) .. about }
  end
  for _, p in ipairs(e.fields) do
    if p.name ~= "[any]" then -- what indices give
      rows[#rows + 1] = { "." .. p.name, plain_type(p.type) .. (p.text ~= "" and ", " .. p.text or "") }
    end
  end
  for _, r in ipairs(e.returns) do
    rows[#rows + 1] = { "returns", plain_type(r.type) .. (r.text ~= "" and ", " .. r.text or "") }
  end
  return rows
end

-- Names of what belongs to a class or a module.
local function members(e)
  local list = {}
  for _, m in ipairs(help.entries()) do
    local inside = m.kind == "class" and not m.is_module and e.is_module and m.module == e.module
    if (m.kind == "function" and m.owner == e.name) or inside then
      list[#list + 1] = m.kind == "class" and short(m.name) or m.name
    end
    for _, a in ipairs(m.also) do
      if a.owner == e.name then
        list[#list + 1] = a.name
      end
    end
  end
  table.sort(list)
  return list
end

local function add_members(out, e)
  local list, line = members(e), " "
  for _, name in ipairs(list) do
    if #line + #name > 78 then
      out[#out + 1] = line
      line = " "
    end
    line = line .. " " .. name
  end
  if #list > 0 then
    out[#out + 1] = line
  end
end

---The text of one entry.
---@param e deepc.help.Entry
---@return string
function help.text(e)
  local signature, also = help.signature(e)
  local out = { table.concat({ signature, table.unpack(also) }, "   ") }
  for _, line in ipairs(e.doc) do
    out[#out + 1] = line == "" and "" or "  " .. line
  end
  local rows = rows_of(e)
  if e.kind == "alias" then
    rows = { { "is", plain_type(e.type) } }
  end
  if #rows > 0 then
    out[#out + 1] = ""
    add_rows(out, rows)
  end
  if e.kind == "class" and #members(e) > 0 then
    out[#out + 1] = ""
    add_members(out, e)
  end
  return table.concat(out, "\n")
end

-- ---- finding ----

local index

local function add_key(key, e)
  local list = index[key] or {}
  index[key] = list
  if list[#list] ~= e then
    list[#list + 1] = e
  end
end

local function add_function_keys(owner, name, e)
  add_key(owner .. "." .. name, e)
  add_key(short(owner) .. "." .. name, e)
  add_key((receiver[short(owner)] or owner) .. "." .. name, e)
  add_key(name, e)
end

local function build_index()
  index = {}
  for _, e in ipairs(help.entries()) do
    if e.kind == "function" then
      add_function_keys(e.owner, e.name, e)
      for _, a in ipairs(e.also) do
        add_function_keys(a.owner, a.name, e)
      end
    else
      add_key(e.name, e)
      add_key(short(e.name), e)
      if e.is_module then
        add_key(e.module, e)
      end
    end
  end
end

-- "lstm" for nn.LSTM.
local function in_other_case(name)
  local found
  for key in pairs(index) do
    if key:lower() == name:lower() and (not found or key < found) then
      found = key
    end
  end
  return found and help.find(found)
end

-- "view", a method of other libraries.
local function of_hint(name)
  local last = name:match "[^.]*$"
  local hint = core.hint(last)
  return hint and ("%s: here %s"):format(last, hint)
end

local libraries = { torch = true, jax = true, jnp = true, jsp = true, lax = true, nnx = true, flax = true, optax = true,
  np = true, numpy = true, F = true }

-- "torch.nn.Linear": the tables of names are in the manual; what has the last word as its name is a guess.
local function of_others(name)
  local library, last = name:match "^(%w+)%.", name:match "[^.]*$"
  if not libraries[library] then
    return nil
  end
  local own = last ~= "" and help.find(last)
  return ("%s: docs/coming-from.md tells what it is called here%s"):format(name,
    own and ". Of this word:\n\n" .. own or "")
end

---The text about "sum", "dc.sum", "x:sum", "nn.Linear", "Tensor", or nil. Several, if the name has
---several meanings. A name of PyTorch or JAX, "torch.cat", gives what has its last word as name.
---@param name string
---@return string?
function help.find(name)
  if not index then
    build_index()
  end
  name = name:gsub("^%s+", ""):gsub("%s*%(?%)?%s*$", ""):gsub(":", "."):gsub("^%.", "")
  local list = index[name] or index[name:gsub("^deepc%.", "")]
  if not list then
    return of_others(name) or in_other_case(name) or of_hint(name)
  end
  local texts = {}
  for i, e in ipairs(list) do
    texts[i] = help.text(e)
  end
  return table.concat(texts, "\n\n")
end

return setmetatable(help, {
  __call = function(_, name)
    return help.find(name)
  end,
})
