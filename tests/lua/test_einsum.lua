-- dc.einsum against plain loops, its names, its gradients and its errors.
local lu = require "luaunit"
local dc = require "deepc"

local function type_of(x) return #x.shape == 0 and x.dtype .. "[]" or tostring(x):match "[^\n]*$" end

local function random(type_text, seed)
  return dc.rand(type_text, { seed = seed, low = -1, high = 1 })
end

-- The element of nested tables at the values of these letters.
local function at(table_, letters, values)
  for _, letter in ipairs(letters) do
    table_ = table_[values[letter]]
  end
  return table_
end

local function words(text)
  local list = {}
  for word in text:gmatch "%S+" do list[#list + 1] = word end
  return list
end

-- What einsum means: a sum over all letters that the result lacks.
local function reference(text, ...)
  local left, right = text:match "^(.*)%->(.*)$"
  local lists, sizes, order = {}, {}, words(right)
  local known = {}
  for _, letter in ipairs(order) do known[letter] = true end
  for part in (left .. ","):gmatch "([^,]*)," do
    lists[#lists + 1] = words(part)
    for axis, letter in ipairs(lists[#lists]) do
      sizes[letter] = select(#lists, ...):size(axis)
      if not known[letter] then
        known[letter] = true
        order[#order + 1] = letter
      end
    end
  end
  local data = {}
  for i = 1, select("#", ...) do data[i] = select(i, ...):totable() end
  local rank, values = #words(right), {}
  local function level(k)
    if k > rank then
      local sum = 0
      local function inner(m)
        if m > #order then
          local product = 1
          for i, list in ipairs(lists) do product = product * at(data[i], list, values) end
          sum = sum + product
          return
        end
        for v = 1, sizes[order[m]] do
          values[order[m]] = v
          inner(m + 1)
        end
      end
      inner(k)
      return sum
    end
    local list = {}
    for v = 1, sizes[order[k]] do
      values[order[k]] = v
      list[v] = level(k + 1)
    end
    return list
  end
  return level(1)
end

local function close(got, want, what)
  if type(want) == "number" then
    lu.assertAlmostEquals(got, want, 1e-5, what)
    return
  end
  lu.assertEquals(#got, #want, what)
  for i = 1, #want do close(got[i], want[i], what) end
end

local cases = {
  { "b i, i o -> b o", "f32[3, 4]", "f32[4, 2]" },
  { "b h t d, b h s d -> b h t s", "f32[2, 3, 2, 4]", "f32[2, 3, 5, 4]" },
  { "i j -> j i", "f32[2, 3]" },
  { "i j -> i", "f32[2, 3]" },
  { "i j ->", "f32[2, 3]" },
  { "i i -> i", "f32[3, 3]" },
  { "i i ->", "f32[3, 3]" },
  { "i j i -> j i", "f32[3, 2, 3]" },
  { "i i i -> i", "f32[2, 2, 2]" },
  { "i, j -> i j", "f32[2]", "f32[3]" },
  { "i, i -> i", "f32[4]", "f32[4]" },
  { "i, i ->", "f32[4]", "f32[4]" },
  { "i j, i j -> j", "f32[2, 3]", "f32[2, 3]" },
  { "b i, b i -> i b", "f32[2, 3]", "f32[2, 3]" },
  { "b i j, b j k -> b i k", "f32[2, 3, 4]", "f32[2, 4, 2]" },
  { "i k, k -> i", "f32[2, 3]", "f32[3]" },
  { "i j, k -> k i", "f32[2, 3]", "f32[2]" },
  { "i j, j k, k l -> i l", "f32[2, 3]", "f32[3, 4]", "f32[4, 2]" },
  { "i j, j k, k -> i", "f32[2, 3]", "f32[3, 4]", "f32[4]" },
  { "i, j, k, l -> l k j i", "f32[2]", "f32[3]", "f32[2]", "f32[2]" },
  { "i i, i j -> j", "f32[3, 3]", "f32[3, 2]" },
  { "query head, head value -> query value", "f32[2, 3]", "f32[3, 2]" },
  { "i, i, i -> i", "f32[3]", "f32[3]", "f32[3]" },
  { "b i,   b i  ->b", "f32[2, 3]", "f32[2, 3]" },
}

TestEinsum = {}

function TestEinsum:test_against_loops()
  for _, case in ipairs(cases) do
    local args = {}
    for i = 2, #case do args[i - 1] = random(case[i], i) end
    local got = dc.einsum(case[1], table.unpack(args))
    close(#got.shape == 0 and got:item() or got:totable(), reference(case[1], table.unpack(args)), case[1])
  end
end

function TestEinsum:test_inside_a_typed_function()
  for _, case in ipairs(cases) do
    local args, params = {}, {}
    for i = 2, #case do
      args[i - 1] = random(case[i], i)
      params[i - 1] = ("a%d: %s"):format(i - 1, case[i])
    end
    local want = dc.einsum(case[1], table.unpack(args))
    local f = dc.fn(("f(%s) -> %s"):format(table.concat(params, ", "), type_of(want)), ({
      function(a1) return dc.einsum(case[1], a1) end,
      function(a1, a2) return dc.einsum(case[1], a1, a2) end,
      function(a1, a2, a3) return dc.einsum(case[1], a1, a2, a3) end,
      function(a1, a2, a3, a4) return dc.einsum(case[1], a1, a2, a3, a4) end,
    })[#args])
    local got = f(table.unpack(args))
    lu.assertTrue((got - want):abs():max():item() < 1e-5, case[1])
  end
end

function TestEinsum:test_the_rest_broadcasts()
  local a, b = random("f32[2, 1, 3, 4]", 1), random("f32[5, 4, 2]", 2)
  local got = dc.einsum("... i j, ... j k -> ... i k", a, b)
  lu.assertEquals(got.shape, { 2, 5, 3, 2 })
  lu.assertTrue((got - a:matmul(b)):abs():max():item() < 1e-5)
  lu.assertEquals(dc.einsum("... i -> ...", dc.ones "f32[2, 3]"):totable(), { 3, 3 })
  lu.assertEquals(dc.einsum("i ... -> ... i", dc.ones "f32[2, 3, 4]").shape, { 3, 4, 2 })
  lu.assertEquals(dc.einsum("..., ... -> ...", dc.tensor { 1, 2 }, dc.tensor(3)):totable(), { 3, 6 })
  lu.assertEquals(dc.einsum("i ..., i -> ...", dc.ones "f32[2]", dc.ones "f32[2]"):item(), 2)
end

function TestEinsum:test_names_are_those_of_the_operands()
  local z = dc.zeros
  lu.assertEquals(type_of(dc.einsum("b i, i o -> b o", z "f32[batch=2, 3]", z "f32[3, out=4]")), "f32[batch=2, out=4]")
  lu.assertEquals(type_of(dc.einsum("b i, i o -> o b", z "f32[batch=2, in=3]", z "f32[in=3, 4]")), "f32[4, batch=2]")
  lu.assertEquals(type_of(dc.einsum("i i -> i", z "f32[n=3, n=3]")), "f32[n=3]")
  lu.assertEquals(type_of(dc.einsum("i, j -> i j", z "f32[n=3]", z "f32[m=2]")), "f32[n=3, m=2]")
  lu.assertEquals(type_of(dc.einsum("... i, ... i -> ...", z "f32[1, 3]", z "f32[batch=4, 3]")), "f32[batch=4]")
end

function TestEinsum:test_dtypes()
  local a = dc.tensor({ 100, 200 }, "u8")
  lu.assertEquals(type_of(dc.einsum("i, i ->", a, a)), "i32[]")
  lu.assertEquals(dc.einsum("i, i ->", a, a):item(), 50000)
  lu.assertEquals(type_of(dc.einsum("i j -> j i", dc.zeros "u8[2, 3]")), "u8[3, 2]")
  lu.assertEquals(dc.einsum("i ->", a):item(), 300)
end

function TestEinsum:test_gradients()
  local g = dc.fn("g(a: f32[3, 3], b: f32[3, 2]) -> f32[3, 3], f32[3, 2]", function(a, b)
    local loss = dc.einsum("i i, i j -> j", a, b):sum()
    local d = dc.grad(loss, { a, b })
    return d[1], d[2]
  end)
  local a, b = dc.tensor { { 1, 2, 3 }, { 4, 5, 6 }, { 7, 8, 9 } }, dc.tensor { { 1, 2 }, { 3, 4 }, { 5, 6 } }
  local ga, gb = g(a, b)
  lu.assertEquals(ga:totable(), { { 3, 0, 0 }, { 0, 7, 0 }, { 0, 0, 11 } })
  lu.assertEquals(gb:totable(), { { 1, 1 }, { 5, 5 }, { 9, 9 } })
end

-- The message without place and code.
local function raises(want, code, ...)
  local ok, err = pcall(dc.einsum, ...)
  lu.assertFalse(ok)
  lu.assertEquals(err.code, code)
  local text = err.message:gsub("^[%w_./-]+:%d+: ", ""):gsub(" +made at [^\n]*", ""):gsub("\n  %[DC.*", "")
  lu.assertEquals(text, want)
end

function TestEinsum:test_mistakes_in_the_text()
  local a = dc.zeros "f32[2, 3]"
  raises("einsum: a text such as \"b i, i o -> b o\" is needed, not f32[2, 3]\n    of     f32[2, 3]", "DC0101", a, a)
  raises("einsum: 'i j': -> and the letters of the result are missing", "DC0101", "i j", a)
  raises("einsum: 'i j -> k': 'k' of the result is in no operand", "DC0101", "i j -> k", a)
  raises("einsum: 'bi,io->bo': 'bo' of the result is in no operand\n" ..
    "  hint: blanks separate letters: \"b i, i o -> b o\"", "DC0101", "bi,io->bo", a, a)
  raises("einsum: 'i j -> i i': 'i' is twice in the result", "DC0101", "i j -> i i", a)
  raises("einsum: 'i j -> i, j': nothing expected behind the result", "DC0101", "i j -> i, j", a)
  raises("einsum: 'i 2 -> i': a letter expected, not '2 -> i'", "DC0101", "i 2 -> i", a)
  raises("einsum: 'i j, j k -> i k' is for 2 tensors, 1 given", "DC0101", "i j, j k -> i k", a)
  raises("einsum: '... i ... -> i': '...' twice in one list", "DC0101", "... i ... -> i", a)
  raises("einsum: '... i -> i': '...' is missing in the result", "DC0101", "... i -> i", a)
  raises("einsum: 'i j -> ... i': '...' of the result is in no operand", "DC0101", "i j -> ... i", a)
  raises("einsum: a zero byte in the string 'i'", "DC0101", "i\0", a)
end

function TestEinsum:test_mistakes_of_the_operands()
  local z = dc.zeros
  raises([==[
einsum: 'i' is 3 in operand 1 and 4 in operand 2
    1      f32[2, 3]
    2      f32[4, 2]]==], "DC0301", "b i, i o -> b o", z "f32[2, 3]", z "f32[4, 2]")
  raises([==[
einsum: 'i' is 2 in operand 1 and 3 in operand 1
    1      f32[2, 3]]==], "DC0301", "i i -> i", z "f32[2, 3]")
  raises([==[
einsum: 'k' is the dim 'a' of operand 1 and 'b' of operand 3
    1      f32[a=2]
    3      f32[b=2]
  hint: :rename changes names]==], "DC0305", "k, j, k -> k", z "f32[a=2]", z "f32[c=1]", z "f32[b=2]")
  raises([==[
einsum: f32[2, 3, 4] has 3 axes, operand 2 has 2 letters
    2      f32[2, 3, 4]]==], "DC0302", "i j, j k -> k", z "f32[2, 3]", z "f32[2, 3, 4]")
  raises([==[
einsum: f32[2, 3] has 2 axes, operand 1 has 1 letter
    1      f32[2, 3]
  hint: blanks separate letters: "b i, i o -> b o"]==], "DC0302", "bi, i -> bi", z "f32[2, 3]", z "f32[3]")
  raises([==[
einsum: dtypes differ: f32[2] and i32[2]
    1      f32[2]
    2      i32[2]
  hint: dtypes never mix; :cast "f32" converts]==], "DC0201", "i, i ->", z "f32[2]", z "i32[2]")
  raises([==[
einsum: '...' is 2 in operand 1 and 3 in operand 2
    1      f32[2, 1]
    2      f32[3, 1]]==], "DC0301", "... i, ... i -> ...", z "f32[2, 1]", z "f32[3, 1]")
end
