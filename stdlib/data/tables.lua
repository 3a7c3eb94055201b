-- Files of arrays and tables: NumPy's, and tables as text.

local data = require "deepc.data.set"
local dc = require "deepc"
require "deepc.operands"
local _, core = ...

local function check_path(op, path)
  if type(path) ~= "string" then
    core.fail("ARG", op, "a path is needed, not " .. core.describe(path))
  end
end

local function check_tensor(op, x, what)
  if not core.kind(x) then
    core.fail("ARG", op, ("%sa tensor is needed, not %s"):format(what or "", core.describe(x)),
      type(x) == "table" and "dc.tensor(values) makes one of a table of numbers" or nil)
  end
end

-- ---- NumPy's files ----

---An array of NumPy, a file .npy (numpy.load, numpy.save). All dtypes are read; bf16, which NumPy does not have, from
---the two bytes that ml_dtypes' bfloat16 are there (V2). Big-endian elements and Fortran's order of axes are
---converted. Objects of Python, texts and records are refused. Of several arrays the first is read, which a note tells.
---
---    data.read_npy "x.npy"
---
---Errors: DC0801 where it cannot be read, DC0802 where it is damaged.
---@param path string
---@return deepc.Tensor
function data.read_npy(path)
  check_path("read_npy", path)
  local t, behind = core.npy_read(path)
  if behind > 0 then
    core.note(("read_npy: %s: %d bytes behind the array are left"):format(path, behind))
  end
  return t
end

---Writes a tensor as an array of NumPy, whole or not at all (numpy.save).
---
---    data.write_npy("x.npy", dc.ones "f32[2, 3]")
---
---Errors: DC0801 where it cannot be written.
---@param path string
---@param x deepc.Tensor
function data.write_npy(path, x)
  check_path("write_npy", path)
  check_tensor("write_npy", x)
  core.npy_write(path, x)
end

---The arrays of a file .npz, by name (numpy.load, numpy.savez, numpy.savez_compressed), stored, deflated, or packed by
---bzip2 or LZMA, for which Debian's libbz2-1.0 and liblzma5 are needed. With a list of names these alone are read;
---without one objects, texts and records are left out, which a note tells.
---
---    data.read_npz "arrays.npz"
---    data.read_npz("arrays.npz", { "x", "y" })
---
---Errors: as data.read_npy.
---@param path string
---@param names? string[]
---@return table<string, deepc.Tensor>
function data.read_npz(path, names)
  check_path("read_npz", path)
  if names ~= nil and type(names) ~= "table" then
    core.fail("ARG", "read_npz", "a list of names is needed, not " .. core.describe(names))
  end
  local archive <close> = core.npz_open(path)
  local at, tensors = {}, {}
  for i, name in ipairs(core.npz_names(archive)) do
    at[name] = i
  end
  local all = names
  if not all then
    all = core.npz_names(archive)
  end
  for _, name in ipairs(all) do
    if not at[name] then
      core.fail("FILE", "read_npz", ("%s: has no array %s"):format(path, core.shown(name)))
    end
    local why = not names and core.npz_unread(archive, at[name])
    if why then
      core.note(("read_npz: %s: '%s' is left out: %s"):format(path, name, why))
    else
      tensors[name] = core.npz_take(archive, at[name])
    end
  end
  return tensors
end

---Writes tensors by name as a file .npz, whole or not at all (numpy.savez); deflated with `compress`
---(numpy.savez_compressed). Equal tensors give equal bytes.
---
---    data.write_npz("arrays.npz", { x = dc.ones "f32[2, 3]", y = dc.iota(2) }, { compress = true })
---
---Errors: DC0801 where it cannot be written.
---@param path string
---@param tensors table<string, deepc.Tensor>
---@param options? { compress?: boolean }
function data.write_npz(path, tensors, options)
  check_path("write_npz", path)
  if type(tensors) ~= "table" then
    core.fail("ARG", "write_npz", "a table of tensors by name is needed, not " .. core.describe(tensors))
  end
  core.options("write_npz", options, "compress")
  local names, list = {}, {}
  for name in pairs(tensors) do
    if type(name) ~= "string" or name == "" then
      core.fail("ARG", "write_npz", ("names are texts, not %s"):format(core.describe(name)), "{ x = x, y = y }")
    end
    names[#names + 1] = name
  end
  table.sort(names)
  for i, name in ipairs(names) do
    check_tensor("write_npz", tensors[name], ("'%s': "):format(name))
    list[i] = tensors[name]
  end
  core.npz_write(path, names, list, options and options.compress or false)
end

-- ---- tables of text ----

local missing = { "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "None", "<NA>" }

-- One byte, or `otherwise`; "" is none.
local function byte(op, options, name, otherwise)
  local v = options[name]
  if v == nil then
    return otherwise
  end
  if type(v) ~= "string" or #v > 1 or v == "\n" or v == "\r" then
    core.fail("ARG", op, ("%s is one character, not %s"):format(name, core.shown(v)))
  elseif v:find "^[%w+.-]" then
    core.fail("ARG", op, ("%s is %s, which numbers and words have"):format(name, core.shown(v)))
  end
  return v
end

local function count(op, options, name)
  local v = options[name]
  if v ~= nil and (math.type(v) ~= "integer" or v < 0) then
    core.fail("ARG", op, ("%s is a number of lines from 0 on, not %s"):format(name, core.shown(v)))
  end
  return v
end

local dtypes = {}
for name in ("bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64"):gmatch "%w+" do
  dtypes[name] = true
end

local function check_kind(what, kind, also)
  if not dtypes[kind] and kind ~= also then
    core.fail("ARG", "read_csv", ("%s is a dtype%s, not %s"):format(what, also and (' or "%s"'):format(also) or "",
      core.shown(kind)))
  end
end

-- A first line of numbers alone is most likely a record.
local function note_numbers(path, names)
  for _, name in ipairs(names) do
    if not tonumber(name) then
      return
    end
  end
  core.note(("read_csv: %s: the first line, %s, gives the columns their names; { header = false } reads it as a record")
    :format(path, core.foreign(table.concat(names, ", ", 1, math.min(#names, 5)) .. (#names > 5 and ", ..." or ""))))
end

-- Names of the columns of a file: its header, those given, or none.
local function names_of(path, first, options)
  local names = options.names
  if names then
    if #names ~= #first then
      core.fail("ARG", "read_csv", ("%d names for the %d columns of %s"):format(#names, #first, path))
    end
  elseif options.header ~= false then
    names = first
    note_numbers(path, names)
  else
    names = {}
    for i = 1, #first do
      names[i] = tostring(i)
    end
  end
  local at = {}
  for i, name in ipairs(names) do
    if at[name] then
      core.fail("FORMAT", "read_csv", ("%s: columns %d and %d are both called '%s'"):format(path, at[name], i, name),
        "names = { ... } names them otherwise")
    end
    at[name] = i
  end
  return names, at
end

-- The number of a column by its name or number.
local function column_at(path, names, at, key)
  local i = math.type(key) == "integer" and names[key] and key or at[key]
  if not i then
    local near = type(key) == "string" and core.near(at, key)
    core.fail("ARG", "read_csv", ("%s has no column %s"):format(path, core.shown(key)),
      near or ("its columns are %s%s"):format(table.concat(names, ", ", 1, math.min(#names, 12)),
        #names > 12 and (", and %d more"):format(#names - 12) or ""))
  end
  return i
end

local function check_csv_options(options)
  core.options("read_csv", options, "separator", "quote", "comment", "header", "skip", "rows", "columns", "names",
    "types", "dtype", "matrix", "missing", "fill")
  for _, key in ipairs { "columns", "names", "types", "missing" } do
    if options[key] ~= nil and type(options[key]) ~= "table" then
      core.fail("ARG", "read_csv", ("%s is a table, not %s"):format(key, core.describe(options[key])))
    end
  end
  if options.fill ~= nil and type(options.fill) ~= "number" and type(options.fill) ~= "table" then
    core.fail("ARG", "read_csv", "fill is a number, or a table of numbers by column, not " ..
      core.describe(options.fill))
  end
  if options.dtype ~= nil then
    check_kind("dtype", options.dtype)
  end
  local words = options.missing or missing
  for _, word in ipairs(words) do
    if type(word) ~= "string" then
      core.fail("ARG", "read_csv", "missing is a list of texts, not of " .. core.describe(word))
    end
  end
  return {
    separator = byte("read_csv", options, "separator", ","), quote = byte("read_csv", options, "quote", '"'),
    comment = byte("read_csv", options, "comment", ""), header = options.header ~= false,
    skip = count("read_csv", options, "skip"), rows = count("read_csv", options, "rows"), missing = words,
  }
end

-- What each column is to be: kinds and values in the place of missing ones.
local function wishes(path, names, at, options)
  local kinds, fill, order = {}, {}, {}
  local all = options.columns
  if not all then
    all = names
  end
  for _, key in ipairs(all) do
    local i = column_at(path, names, at, key)
    if kinds[i] then
      core.fail("ARG", "read_csv", ("column '%s' is named twice"):format(names[i]))
    end
    kinds[i] = options.dtype or (options.matrix and "f32" or "find")
    order[#order + 1] = i
  end
  for key, kind in pairs(options.types or {}) do
    check_kind(("the type of column %s"):format(core.shown(key)), kind, "text")
    local i = column_at(path, names, at, key)
    kinds[i] = kinds[i] and kind
  end
  for key, value in pairs(type(options.fill) == "table" and options.fill or {}) do
    if type(value) ~= "number" then
      core.fail("ARG", "read_csv", ("fill for column %s is a number, not %s"):format(core.shown(key),
        core.describe(value)))
    end
    fill[column_at(path, names, at, key)] = value
  end
  for i = 1, #names do
    kinds[i] = kinds[i] or false
    if type(options.fill) == "number" then
      fill[i] = options.fill
    end
  end
  return kinds, fill, order
end

local ROWS = 997 -- of a file that is not here: a number that scripts hardly write

local function texts(n)
  local list = {}
  for i = 1, n do
    list[i] = ""
  end
  return list
end

-- For deepc check, where the file is not here: what the options say of it; nil where they leave the dtype or the number
-- of columns open. A column that they do not name is an error of its own.
local function made_up(path, options)
  local all, types = options.columns or options.names, options.types or {}
  if options.matrix then
    if all then
      return dc.zeros(("%s[%d, %d]"):format(options.dtype or "f32", ROWS, #all)), all
    end
    return
  end
  local columns, kept = {}, {}
  local function add(key)
    local name = options.columns and options.names and options.names[key] or key
    local kind = options.dtype or types[key] or types[name]
    if kind and not columns[name] then
      columns[name] = kind == "text" and texts(ROWS) or dc.zeros(("%s[%d]"):format(kind, ROWS))
      kept[#kept + 1] = name
    end
  end
  for _, key in ipairs(all or {}) do
    add(key)
  end
  if not all then
    for key in pairs(types) do
      add(key)
    end
    table.sort(kept)
  end
  return setmetatable(columns, { __index = function(_, name)
    core.fail("ABSENT", "read_csv", ("%s is not here, and no option says what column %s is"):format(path,
      core.shown(name)), 'types = { name = "f32" } says it')
  end }), kept
end

---A table of text: values between separators, a record a line, fields with separators or ends of lines in quotes (RFC
---4180; pandas.read_csv). The columns by name, each a tensor of one axis or, of one with texts, a list; and the names
---in their order. The type of a column is found - whole numbers are i64, or u64 where one is beyond it and none is
---negative; others f64, true and false bool - or given. A note tells of whole numbers that f64 rounds.
---With `matrix = true` all columns are one tensor [rows, columns], f32 or the `dtype`. The file may be gzipped.
---
---    data.read_csv "train.csv"
---    data.read_csv("train.csv", { columns = { "age", "income" }, matrix = true })
---    data.read_csv("train.tsv", { separator = "\t", types = { id = "text", score = "f32" }, fill = { score = 0 } })
---
---Nothing, NA, NaN, null and their like are missing values: NaN in a column of floats, whole numbers become floats;
---what `fill` says where it does; an error in a column whose given dtype has no NaN. Numbers are the nearest of their
---dtype.
---
---Options: `separator` ",", `quote` '"', `comment` none, each one character or "" for none; `header` false where the
---first line is a record; `names` instead of the file's; `skip` lines in front, at most `rows` records; `columns` by
---name or number, in this order; `types` by column, a dtype or "text"; `dtype` of all; `missing`, words instead of
---the usual ones.
---
---Errors: DC0801 where it cannot be read, DC0802 with line and column for what does not fit, DC0101 for options.
---@param path string
---@param options? table
---@return table<string, deepc.Tensor|string[]>|deepc.Tensor columns
---@return string[] names
function data.read_csv(path, options)
  check_path("read_csv", path)
  options = options == nil and {} or options
  local how = check_csv_options(options)
  if options.matrix and next(options.types or {}) then
    core.fail("ARG", "read_csv", "a matrix has one dtype: dtype instead of types")
  end
  if core.rows_absent("read_csv", path) then
    local columns, kept = made_up(path, options)
    if columns then
      return columns, kept
    end
  end
  local file <close> = core.csv_open("read_csv", path, how)
  local names, at = names_of(path, core.csv_first(file), options)
  local kinds, fill, order = wishes(path, names, at, options)
  local kept = {}
  for k, i in ipairs(order) do
    kept[k] = names[i]
  end
  if options.matrix then
    if #order == 0 then
      core.fail("FORMAT", "read_csv", path .. ": there are no columns")
    end
    for k = 2, #order do
      if order[k] < order[k - 1] then
        core.fail("ARG", "read_csv", "the columns of a matrix stand in the order of the file",
          ":take puts them in another")
      end
    end
    return core.csv_parse(file, kinds, fill, true), kept
  end
  local columns = {}
  local parsed, rounded = core.csv_parse(file, kinds, fill, false)
  for k, i in ipairs(order) do
    columns[kept[k]] = parsed[i]
    if rounded[i] > 0 then
      core.note(("read_csv: %s: column '%s' is f64, which rounds %d of its whole numbers; types = { ... } makes it"
        .. ' "i64", "u64" or "text"'):format(path, kept[k], rounded[i]))
    end
  end
  return columns, kept
end

-- Columns and their names, of a table by name or of a matrix.
local function columns_of(columns, options)
  local names = options.names
  if core.kind(columns) then
    local shape = columns.shape
    if #shape ~= 2 then
      core.fail("DIMS", "write_csv", ("a matrix has 2 axes, this tensor %d"):format(#shape), nil, "of", columns)
    end
    local list = {}
    for i = 1, shape[2] do
      list[i] = columns[{ {}, i }]
    end
    if names and #names ~= #list then
      core.fail("ARG", "write_csv", ("%d names for %d columns"):format(#names, #list))
    end
    return list, names
  end
  if type(columns) ~= "table" then
    core.fail("ARG", "write_csv", "a table of columns by name or a matrix is needed, not " .. core.describe(columns))
  end
  if not names then
    names = {}
    for name in pairs(columns) do
      names[#names + 1] = name
    end
    table.sort(names, function(a, b) return tostring(a) < tostring(b) end)
  end
  local list = {}
  for i, name in ipairs(names) do
    list[i] = columns[name]
    if list[i] == nil then
      core.fail("ARG", "write_csv", ("there is no column %s"):format(core.shown(name)))
    end
  end
  return list, names
end

-- The number of rows of a column.
local function rows_of(name, column)
  if core.kind(column) then
    local shape, dtype = column.shape, column.dtype
    if core.is_complex(dtype) then
      core.fail("DTYPE", "write_csv", ("column '%s' has complex numbers (%s), which tables of text do not have"):format(
        name, dtype), "dc.real(x) and dc.imag(x) are two columns", "of", column)
    end
    if #shape ~= 1 then
      core.fail("DIMS", "write_csv", ("column '%s' has %d axes, 1 is needed"):format(name, #shape), nil, "of", column)
    end
    return shape[1]
  end
  if type(column) ~= "table" then
    core.fail("ARG", "write_csv", ("column '%s' is a tensor or a list of texts, not %s"):format(name,
      core.describe(column)))
  end
  for i, text in ipairs(column) do
    if type(text) ~= "string" then
      core.fail("ARG", "write_csv", ("column '%s' at %d: a text is needed, not %s"):format(name, i,
        core.describe(text)), "dc.tensor(values) makes a column of numbers")
    end
  end
  return #column
end

---Writes a table of text, whole or not at all (pandas.DataFrame.to_csv): columns by name, in the order of `names` or
---of the alphabet, each a tensor of one axis or a list of texts; or a tensor [rows, columns]. Numbers have the fewest
---digits that read back, NaN is nothing, texts are quoted where they have to be. Complex numbers are refused.
---
---    data.write_csv("out.csv", { x = dc.iota(3), word = { "a", "b", "c" } })
---    data.write_csv("out.csv", dc.ones "f32[3, 2]", { names = { "a", "b" } })
---
---Errors: DC0801 where it cannot be written, DC0301 for columns of different lengths, DC0202 for complex numbers,
---DC0101.
---@param path string
---@param columns table<string, deepc.Tensor|string[]>|deepc.Tensor
---@param options? { names?: string[], separator?: string, header?: boolean }
function data.write_csv(path, columns, options)
  check_path("write_csv", path)
  options = options == nil and {} or options
  core.options("write_csv", options, "names", "separator", "header")
  local list, names = columns_of(columns, options)
  local separator = byte("write_csv", options, "separator", ",")
  if separator == "" then
    core.fail("ARG", "write_csv", "a separator is needed")
  elseif separator == '"' then
    core.fail("ARG", "write_csv", "the separator is the quote")
  end
  local shown, n = {}, nil
  for i, column in ipairs(list) do
    shown[i] = tostring(names and names[i] or i)
    local rows = rows_of(shown[i], column)
    if n and rows ~= n then
      core.fail("DIMS", "write_csv", ("column '%s' has %d rows, '%s' %d"):format(shown[i], rows, shown[1], n))
    end
    n = rows
  end
  local header = options.header
  if header == nil then
    header = names ~= nil
  end
  core.csv_write(path, shown, list, separator, header)
end
