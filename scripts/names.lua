-- What public names of deepc are called in PyTorch, in JAX (with Flax and Optax) and in Torch7, and the reverse.
--
-- The rows stand in names/, as texts:
--
--   # Shape                                              a section
--   x:flip, x:roll | torch.flip, torch.roll | jnp.flip, jnp.roll | - | a note
--
-- Lists of the same length go in pairs; a list of another length belongs to each name; - is none. Names of deepc are
-- those of deepc.help. scripts/counterparts writes the tables of docs/coming-from.md and asks the Python packages whether
-- their names exist.

local counterparts = {}

counterparts.systems = { "PyTorch", "JAX", "Torch7" }

-- What a name may begin with, and what that stands for.
local short = {
  { "jnp.", "jax.numpy." }, { "jsp.", "jax.scipy." }, { "lax.", "jax.lax." }, { "nnx.", "flax.nnx." },
  { "F.", "torch.nn.functional." }, { "nn.functional.", "torch.nn.functional." }, { "np.", "jax.numpy." },
}

local function split(text, separator)
  local list = {}
  for part in (text .. separator):gmatch("%s*(.-)%s*" .. separator) do
    list[#list + 1] = part
  end
  return list
end

---A row: names of deepc; for each system a list of names ("-": none); a section and a note.
---@class scripts.names.Row
---@field section string
---@field names string[]
---@field note string?
---@field PyTorch string[]
---@field JAX string[]
---@field Torch7 string[]

local function read_rows(text, rows)
  local section
  for line in text:gmatch "[^\n]+" do
    if line:match "^# " then
      section = line:sub(3)
    else
      local columns = split(line, "|")
      local row = { section = section, names = split(columns[1], ","), note = columns[5] }
      for i, system in ipairs(counterparts.systems) do
        row[system] = split(columns[i + 1] or "", ",")
      end
      rows[#rows + 1] = row
    end
  end
end

local rows

---All rows, in order.
---@return scripts.names.Row[]
function counterparts.rows()
  if not rows then
    rows = {}
    read_rows(require "scripts.names.tensors", rows)
    read_rows(require "scripts.names.networks", rows)
    read_rows(require "scripts.names.libraries", rows)
  end
  return rows
end

---A name as it is written in full: "jnp.sum" as "jax.numpy.sum".
---@param name string
---@return string
function counterparts.full(name)
  for _, pair in ipairs(short) do
    if name:sub(1, #pair[1]) == pair[1] then
      return pair[2] .. name:sub(#pair[1] + 1)
    end
  end
  return name
end

---What the i-th name of a row is called in a system.
---@param row scripts.names.Row
---@param i integer
---@param system string
---@return string[]
function counterparts.of(row, i, system)
  local list, found = row[system], {}
  if #list == #row.names then
    list = { list[i] }
  end
  for _, name in ipairs(list) do
    found[#found + 1] = name ~= "-" and name or nil
  end
  return found
end

return counterparts
