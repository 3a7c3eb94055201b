-- What the attributes of StableHLO's operations are, for those who write them; those of other names are what their
-- values say: numbers of 64 bits, booleans, strings.

local attributes = {
  dot = "lhs_batching_dimensions rhs_batching_dimensions lhs_contracting_dimensions rhs_contracting_dimensions",
  gather = "offset_dims collapsed_slice_dims operand_batching_dims start_indices_batching_dims start_index_map "
    .. "index_vector_dim",
  scatter = "update_window_dims inserted_window_dims input_batching_dims scatter_indices_batching_dims "
    .. "scatter_dims_to_operand_dims index_vector_dim",
  -- the pattern that is written for NaN
  nan = { f64 = 0x7FF8000000000000, f32 = 0x7FC00000, f16 = 0x7E00, bf16 = 0x7FC0, f8E5M2 = 0x7E, f8E4M3FN = 0x7F },
}

local kinds = { window_reversal = "booleans", padding = "pairs", value = "dense", comparison_direction = "direction",
  compare_type = "compare_type", fft_type = "fft_type", transpose_a = "transpose", dot_dimension_numbers = "dot",
  scatter_dimension_numbers = "scatter", precision_config = "precision" }
for name in ("dimensions permutation broadcast_dimensions start_indices limit_indices strides edge_padding_low "
  .. "edge_padding_high interior_padding window_strides window_dimensions window_dilations base_dilations lhs_dilation "
  .. "rhs_dilation slice_sizes fft_length"):gmatch "%S+" do
  kinds[name] = "integers"
end

local defaults = { window_strides = 1, lhs_dilation = 1, rhs_dilation = 1, base_dilations = 1, window_dilations = 1,
  padding = 0, window_reversal = false, indices_are_sorted = false, unique_indices = false, is_stable = false,
  lower = false }

local function are_all(list, v)
  for _, x in ipairs(list) do
    if type(x) == "table" and not are_all(x, v) or type(x) ~= "table" and x ~= v then
      return false
    end
  end
  return true
end

---Is it what an operation has where nothing is said? Text leaves it out, artifacts do not.
function attributes.is_default(op, name, v)
  if defaults[name] == nil or op == "stablehlo.triangular_solve" then -- which needs all of its attributes
    return false
  end
  return are_all({ v }, defaults[name])
end

---The kind of an attribute of an operation, or nil.
function attributes.kind(op, name)
  if name == "dimension_numbers" then
    return op == "stablehlo.convolution" and "conv" or "gather"
  end
  return kinds[name]
end

---The names of a table of attributes in the order of the alphabet.
---@param t table
---@return string[]
function attributes.names(t)
  local list = {}
  for name in pairs(t) do
    list[#list + 1] = name
  end
  table.sort(list)
  return list
end

return attributes
