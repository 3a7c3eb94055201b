-- The rules of the language, sentence by sentence: each row is a sentence, a script, and what it prints
-- or raises. A script that is an expression prints its values. `values(x)` is a tensor's numbers.
local lu = require "luaunit"
local dc = require "deepc"
local nn = require "deepc.nn"
local optim = require "deepc.optim"
local data = require "deepc.data"

local function values(t)
  local list = t:flatten():totable()
  for i, v in ipairs(list) do
    list[i] = tostring(v)
  end
  return table.concat(list, " ")
end

local function has_name(x, name)
  return (pcall(x.size, x, name))
end

-- What the script prints, lines behind each other with "; ".
local function run(script)
  local printed = {}
  local function show(...)
    local t = table.pack(...)
    for i = 1, t.n do
      t[i] = tostring(t[i])
    end
    printed[#printed + 1] = table.concat(t, " ", 1, t.n)
  end
  local env = setmetatable({
    dc = dc, nn = nn, optim = optim, data = data, values = values, has_name = has_name, print = show, K = 2,
  }, { __index = _G })
  local expression = load("return " .. script, "=script", "t", env)
  local chunk = expression or assert(load(script, "=script", "t", env))
  if expression then
    show(chunk())
  else
    chunk()
  end
  return table.concat(printed, "; ")
end

local function check(rows)
  for _, row in ipairs(rows) do
    local ok, result = pcall(run, row[2])
    if row.raises then
      lu.assertFalse(ok, row[1])
      lu.assertStrContains(tostring(result), row.raises, false, false, row[1])
    else
      lu.assertTrue(ok, row[1] .. ": " .. tostring(result))
      lu.assertEquals(result, row[3], row[1])
    end
  end
end

TestRules = {}

function TestRules:test_ground_rules()
  check {
    { "nothing is global", [[rawget(_G, "deepc"), rawget(_G, "dc")]], "nil nil" },
    { "everything raises", [[select("#", pcall(data.idx, "/absent"))]], "2" },
    { "error values read as text", [[
      local _, e = pcall(dc.zeros, "f32[x")
      print(type(e), ("failed: " .. e):sub(1, 8), e:match "DC%d+", #e:upper() > 10)]], "table failed:  DC0401 true" },
    { "operators give f32 from f32", [[dc.tensor { 1, 2 }.dtype, dc.tensor(1).dtype]], "f32 f32" },
    { "unless a type says otherwise", [[dc.tensor({ 1, 2 }, "i32[2]").dtype, dc.tensor(1, "u8").dtype]], "i32 u8" },
    { "axes: from 1, negative, by name", [[
      local x = dc.ones "f32[a=2, b=3]"
      print(x:sum(1).shape[1], x:sum(-1).shape[1], x:sum("a").shape[1])]], "3 2 3" },
    { "integer data counts from 0", [[dc.tensor { 3, 9, 4 }:argmax(1), values(dc.iota(3))]], "1 0 1 2" },
    { "tensors are immutable", [[local x = dc.zeros "f32[2]" x.y = 1]], raises = "tensors are immutable" },
  }
end

function TestRules:test_dtypes()
  check {
    { "a number takes the tensor's dtype", [[(dc.ones "u8[1]" + 1).dtype, (dc.ones "f64[1]" * 0.5).dtype]], "u8 f64" },
    { "a fraction beside integers", [[dc.ones "i32[1]" + 0.5]], raises = "0.5" },
    { "a value that does not fit", [[dc.ones "u8[1]" + 300]], raises = "300" },
    { "a negative beside unsigned", [[dc.ones "u8[1]" * -1]], raises = "-1" },
    { "NaN beside integers", [[dc.ones "i32[1]" + 0 / 0]], raises = "DC0203" },
    { "dtypes never mix", [[dc.ones "i32[1]" + dc.ones "f32[1]"]], raises = "DC0201" },
    { "casts truncate and saturate, NaN gives 0", [[
      local x = dc.tensor { 1.9, -1.9, 1e20, -1e20, 0 / 0 }
      print(values(x:cast "i32"))
      print(values(x:cast "u8"))]], "1 -1 2147483647 -2147483648 0; 1 0 255 0 0" },
    { "integers wrap in casts", [[dc.tensor({ 300 }, "i32"):cast "u8":item()]], "44" },
    { "/ and ^ of integers give f32", [[
      for _, d in ipairs { "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64" } do
        local a = dc.full(d .. "[1]", 7)
        assert((a / 2).dtype == "f32" and (a ^ 2).dtype == "f32", d)
        print((a / 2):item(), (a ^ 2):item())
      end]], ("3.5 49.0; "):rep(7) .. "3.5 49.0" },
    { "sum and prod of bool and narrow integers", [[
      for _, d in ipairs { "bool", "i8", "i16", "u8", "u16", "u32", "i64", "f32" } do
        local a = dc.ones(d .. "[3]")
        print(a:sum().dtype, a:prod().dtype)
      end]], ("i32 i32; "):rep(5) .. "u32 u32; i64 i64; f32 f32" },
    { "mean of integers and bool", [[
      dc.ones "bool[2]":mean().dtype, dc.ones "i64[2]":mean().dtype, dc.ones "f64[2]":mean().dtype]], "f32 f32 f64" },
    { "argmax and iota", [[dc.ones "f64[2]":argmax(1).dtype, dc.iota(3).dtype]], "i32 i32" },
    { "all of them, cast into each other", [[
      local names = { "bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64" }
      for _, from in ipairs(names) do
        for _, to in ipairs(names) do
          local x = dc.ones(from .. "[2]"):cast(to)
          assert(x.dtype == to and (x[1]:item() == 1 or x[1]:item() == true), from .. to)
        end
      end
      print(#names)]], "13" },
    { "in typed functions", [[
      for _, d in ipairs { "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64" } do
        local f = dc.fn(("f(x: %s[3]) -> %s[3]"):format(d, d), function(x) return x * 2 + 1 end)
        assert(values(f { 1, 2, 3 }):gsub("%.0", "") == "3 5 7", d)
      end
      print(dc.fn("f(x: i64[])", function(x) return x * 2 + 1 end)(math.maxinteger // 2))]],
      "9223372036854775807" },
    { "whole range of 64 bits", [[
      dc.tensor({ 9007199254740993 }, "i64"):item(), dc.full("i64[1]", math.mininteger):item() == math.mininteger]],
      "9007199254740993 true" },
  }
end

function TestRules:test_operators()
  check {
    { "all of them", [[
      local a, b = dc.tensor(12, "i32"), dc.tensor(5, "i32")
      print(a + b, a - b, a * b, a // b, a % b, a & b, a | b, a ~ b, a << b, a >> b, -a, ~a)
      print(a / b, a ^ 2)]], "17 7 60 2 2 4 13 9 384 0 -12 -13; 2.4 144.0" },
    { "each has a method", [[
      local a, b = dc.tensor(12, "i32"), dc.tensor(5, "i32")
      print(a:add(b), a:sub(b), a:mul(b), a:floor_div(b), a:mod(b), a:bit_and(b), a:bit_or(b), a:bit_xor(b))
      print(a:shift_left(b), a:shift_right(b), a:neg(), a:bit_not(), a:div(b), a:pow(2))]],
      "17 7 60 2 2 4 13 9; 384 0 -12 -13 2.4 144.0" },
    { "// and % floor, rem truncates", [[
      local a, b = dc.tensor({ -7, 7, -7, 7 }, "i32"), dc.tensor({ 2, -2, -2, 2 }, "i32")
      print(values(a // b), values(a % b), values(a:rem(b)))]], "-4 -4 3 3 1 -1 -1 1 -1 1 -1 1" },
    { "of floats, too", [[
      local a = dc.tensor { -7.5, 7.5 }
      print(values(a // 2), values(a % 2), values(a % -2))]], "-4.0 3.0 0.5 1.5 -1.5 -0.5" },
    { "integer x // 0 = -1, x % 0 = x", [[
      local a = dc.tensor({ 7, -7, 0 }, "i32")
      print(values(a // 0), values(a % 0))]], "-1 -1 -1 7 -7 0" },
    { "never a trap", [[
      local a = dc.tensor({ math.mininteger }, "i64")
      print((a // -1):item() == math.mininteger, (a % -1):item())]], "true 0" },
    { "# is the size of axis 1", [[#dc.zeros "f32[4, 2]"]], "4" },
    { "string .. tensor makes text", [["loss " .. dc.tensor(2.5), dc.tensor(2.5) .. "x", 1 .. dc.tensor(2.5)]],
      "loss 2.5 2.5x 12.5" },
    { "comparisons are methods", [[
      local a = dc.tensor { 1, 2, 3 }
      print(values(a:lt(2)), values(a:ge(2)), values(a:eq(2)), values(a:ne(2)))]],
      "true false false false true true false true false true false true" },
    { "< raises", [[dc.tensor(1) < dc.tensor(2)]], raises = "x:lt :le :gt :ge" },
    { "<= raises", [[1 <= dc.tensor(2)]], raises = "DC0204" },
    { "== of two tensors raises", [[dc.tensor(1) == dc.tensor(1)]], raises = "rawequal" },
    { "~= of two tensors raises", [[dc.tensor(1) ~= dc.tensor(1)]], raises = "DC0204" },
    { "a tensor is itself and no number", [[
      local a = dc.tensor(1)
      print(a == a, a == 1, a == nil, rawequal(a, a))]], "true false false true" },
    { "einsum is a product", [[
      dc.einsum("i, i ->", dc.tensor { 1, 2 }, dc.tensor { 3, 4 }), dc.einsum("i i ->", dc.eye "f32[3, 3]"),
      values(dc.einsum("i, j -> i j", dc.tensor { 1, 2 }, dc.tensor { 3, 4 }))]], "11.0 3.0 3.0 4.0 6.0 8.0" },
  }
end

function TestRules:test_places()
  check {
    { "a chain counts as its first line", "local a = dc.ones 'f32[2]'\nlocal b = a\n  :sum(1)\n  :sum(5)",
      raises = "script:2: sum" },
    { "an operator as its own", "local a = dc.ones 'f32[2]'\nlocal b = a\n  +\n  dc.ones 'f32[3]'",
      raises = "script:3: add" },
    { "calls at the end keep the line", "local a = dc.ones 'f32[2]'\nlocal function g()\n  return a:sum(4)\nend\ng()",
      raises = "script:3: sum" },
    { "a fault while realizing names the operation's own line",
      "local x = dc.tensor { 1, 2 }\nlocal y = x:take(dc.tensor({ 5 }, 'i32'), 1)\nlocal z = y + 1\nprint(z)",
      raises = "script:2: take" },
  }
end

function TestRules:test_indexing()
  check {
    { "k drops, {k} keeps", [[
      local a = dc.iota "i32[4, 3]"
      print(#a[2].shape, #a[{ 2, 3 }].shape, #a[{ {}, 3 }].shape, #a[{ { 2 } }].shape)]], "1 0 1 2" },
    { "{a, b, step} is inclusive", [[
      local a = dc.iota(10)
      print(values(a[{ { 2, 4 } }]), values(a[{ { 2, 8, 3 } }]), values(a[{ { 8, 2, -3 } }]))]],
      "1 2 3 1 4 7 7 4 1" },
    { "negatives count from the end", [[dc.iota(5)[-1], values(dc.iota(5)[{ { -3, -1 } }])]], "4 2 3 4" },
    { "outside raises", [[dc.iota(5)[6] ]], raises = "index 6 outside 1..5" },
    { "outside at the start", [[dc.iota(5)[-6] ]], raises = "DC0106" },
    { "ranges, too", [[dc.iota(5)[{ { 2, 6 } }] ]], raises = "DC0106" },
    { "take", [[
      values(dc.tensor { 5, 6, 7 }:take(dc.tensor({ 2, 0 }, "i32"), 1)),
      table.concat(dc.zeros "f32[2, 3]":take(dc.zeros "i32[4, 5]", 2).shape, " ")]], "7.0 5.0 2 4 5" },
    { "take outside", [[dc.tensor { 5, 6, 7 }:take({ 3 }, 1):item()]], raises = "DC0701" },
    { "put makes another tensor", [[
      local a = dc.zeros "f32[3]"
      print(values(a:put({ 2 }, 5)), values(a:put({ { 2, 3 } }, dc.tensor { 1, 2 })), values(a))]],
      "0.0 5.0 0.0 0.0 1.0 2.0 0.0 0.0 0.0" },
    { "fields and size", [[
      local z = dc.zeros "f32[batch=2, 3]"
      print(z.shape[1], z.shape[2], z.dtype, z:size "batch", z:size(-1))]], "2 3 f32 2 3" },
    { "unknown names raise", [[dc.zeros "f32[3]".foo]], raises = "a tensor has no 'foo'" },
    { "shortest digits that read back", [[
      dc.tensor(0.1), dc.tensor(1 / 3), dc.tensor(1e-7), dc.tensor(3), dc.tensor(3, "i32"), dc.tensor(0.1, "f64"),
      dc.tensor(true, "bool")]], "0.1 0.33333334 1e-07 3.0 3 0.1 true" },
  }
end

function TestRules:test_names()
  check {
    { "may occur twice", [[dc.zeros "f32[n=2, n=2]"]], "  0.0  0.0\n  0.0  0.0\nf32[n=2, n=2]" },
    { "asking by that name is then an error", [[dc.zeros "f32[n=3, n=3]":sum "n"]], raises = "are both 'n'" },
    { "results return under the caller's names", [[
      local f = dc.fn("f(x: f32[n, d]) -> f32[n]", function(x) return x:sum(2) end)
      local y = f(dc.zeros "f32[batch=4, feature=3]")
      print(has_name(y, "batch"), has_name(y, "n"))]], "true false" },
    { "names agree afterwards", [[
      local f = dc.fn("f(x: f32[n], y: f32[n])", function(x, y) return x + y end)
      f(dc.zeros "f32[a=4]", dc.zeros "f32[b=4]")]], raises = "DC0404" },
    { "an unnamed dim agrees with any name", [[
      local f = dc.fn("f(x: f32[n], y: f32[n]) -> f32[n]", function(x, y) return x + y end)
      print(has_name(f(dc.zeros "f32[a=4]", dc.zeros "f32[4]"), "a"))
      print(has_name(dc.zeros "f32[4]" + dc.zeros "f32[a=4]", "a"))]], "true; true" },
    { "different names at one position", [[dc.zeros "f32[a=4]" + dc.zeros "f32[b=4]"]], raises = "DC0305" },
    { "a named axis of 1 does not stretch", [[dc.zeros "f32[a=1]" + dc.zeros "f32[4]"]], raises = "DC030" },
    { "an unnamed one does", [[has_name(dc.zeros "f32[1]" + dc.zeros "f32[a=4]", "a")]], "true" },
    { "ranks align from the right", [[table.concat((dc.zeros "f32[2, 3]" + dc.zeros "f32[3]").shape, " ")]], "2 3" },
    { "matmul broadcasts the rest", [[
      local y = dc.zeros "f32[b=5, 1, 2, 3]":matmul(dc.zeros "f32[h=4, 3, 7]")
      print(table.concat(y.shape, " "), has_name(y, "b"), has_name(y, "h"))]], "5 4 2 7 true true" },
    { "lost by a partial slice of that axis", [[
      local x = dc.zeros "f32[a=4, b=3]"[{ {}, { 1, 2 } }]
      print(has_name(x, "a"), has_name(x, "b"))]], "true false" },
    { "by pad", [[has_name(dc.zeros "f32[a=4]":pad { a = { 1, 0 } }, "a")]], "false" },
    { "by concat", [[
      local a = dc.zeros "f32[a=4, b=2]"
      local x = dc.concat({ a, a }, 1)
      print(has_name(x, "a"), has_name(x, "b"))]], "false true" },
    { "by keep = true", [[
      local x = dc.zeros "f32[a=4, b=2]":sum { axis = "a", keep = true }
      print(has_name(x, "a"), has_name(x, "b"))]], "false true" },
    { "by reshape, but for the common run from the left, then from the right", [[
      local x = dc.zeros "f32[a=4, b=6, c=5]":reshape(4, 2, 3, 5)
      print(has_name(x, "a"), has_name(x, "b"), has_name(x, "c"))]], "true false true" },
    { "reshape gives names", [[
      local x = dc.zeros "f32[b=4, 5, 8]":reshape "[batch, head, t=8]"
      print(x:size "batch", x:size "head", x:size "t")]], "4 5 8" },
    { "rename changes them", [[has_name(dc.zeros "f32[a=4]":rename { a = "b" }, "b")]], "true" },
    { "letters of einsum are local", [[
      local x = dc.einsum("row col, col o -> row o", dc.zeros "f32[a=2, b=3]", dc.zeros "f32[b=3, c=4]")
      print(has_name(x, "a"), has_name(x, "c"), has_name(x, "row"))]], "true true false" },
    { "dc.dim is an integer of the innermost function", [[
      local g = dc.fn("g(x: f32[d]) -> f32[d]", function(x) print("inner", dc.dim "d") return x end)
      dc.fn("f(x: f32[d=6]) -> f32[3]", function(x)
        local y = g(x:reshape(2, 3)[1])
        print("outer", dc.dim "d", math.type(dc.dim "d"))
        return y
      end)]], "inner 3; outer 6 integer" },
    { "and nothing outside", [[dc.dim "d"]], raises = "DC0408" },
  }
end

function TestRules:test_signatures()
  check {
    { "no results", [[
      local s = dc.state "f32[]"
      local f = dc.fn("f(x: f32[]) -> ()", function(x) s:set(x) end)
      print(select("#", f(4)), s)]], "0 4.0" },
    { "no declared results", [[
      local f = dc.fn("f(x: f32[2])", function(x) return x:sum(), x end)
      print(select("#", f { 1, 2 }))]], "2" },
    { "? may be nil", [[
      local f = dc.fn("f(x: f32[2], b?: f32[2]) -> f32[2]", function(x, b) return b and x + b or x * 1 end)
      print(values(f({ 1, 2 })), values(f({ 1, 2 }, { 3, 4 })), values(f({ 1, 2 }, nil)))]],
      "1.0 2.0 4.0 6.0 1.0 2.0" },
    { "no type: static, each value a specialisation", [[
      local f = dc.fn("f(x: f32[], k, double?) -> f32[]", function(x, k, double)
        local y = x ^ k
        return double and y * 2 or y
      end)
      print(f(3, 2), f(3, 3), f(3, 2, true), f(3, 2), #f:info())]], "9.0 27.0 18.0 9.0 3" },
    { "records are tables", [[
      local f = dc.fn("f(p: { x: f32[n], y: f32[n] }) -> { sum: f32[n], dot: f32[] }", function(p)
        return { sum = p.x + p.y, dot = (p.x * p.y):sum() }
      end)
      local r = f { x = { 1, 2 }, y = { 3, 4 } }
      print(values(r.sum), r.dot)]], "4.0 6.0 11.0" },
    { "and lists", [[
      local f = dc.fn("f(l: { f32[n] }) -> { f32[n] }", function(l)
        local sums = { l[1] }
        for i = 2, #l do
          sums[i] = sums[i - 1] + l[i]
        end
        return sums
      end)
      local r = f { { 1, 2 }, { 3, 4 }, { 5, 6 } }
      print(#r, values(r[3]))]], "3 9.0 12.0" },
    { "bare names bind first, in all arguments", [[
      local f = dc.fn("f(x: f32[2*n + 1], y: f32[n]) -> f32[n]", function(x, y) return y end)
      print(#f(dc.ones "f32[7]", dc.ones "f32[3]"))
      f(dc.ones "f32[8]", dc.ones "f32[3]")]], raises = "DC0404" },
    { "an expression linear in one name is solved", [[
      local f = dc.fn("f(x: f32[2*(n + 1)]) -> f32[n]", function(x) return x[{ { 1, dc.dim "n" } }] end)
      print(#f(dc.ones "f32[6]"))]], "2" },
    { "and must be whole", [[dc.fn("f(x: f32[2*n])", function(x) return x end)(dc.ones "f32[7]")]],
      raises = "DC0404" },
    { "others are definition errors", [[dc.fn("f(x: f32[n*n])", function(x) return x end)]],
      raises = "DC0402" },
    { "two names cannot be solved", [[dc.fn("f(x: f32[n + m])", function(x) return x end)]],
      raises = "DC0402" },
    { "one ... per type", [[dc.fn("f(x: f32[..., ...])", function(x) return x end)]],
      raises = "'...' stands twice" },
    { "the same dims throughout", [[
      local f = dc.fn("f(x: f32[..., c], y: f32[...]) -> f32[...]", function(x, y) return x:sum(-1) + y end)
      print(table.concat(f(dc.ones "f32[2, 3, 4]", dc.ones "f32[2, 3]").shape, " "))
      f(dc.ones "f32[2, 3, 4]", dc.ones "f32[2, 5]")]], raises = "DC0404" },
    { "sizes of results are computed", [[
      local f = dc.fn("f(x: f32[n]) -> f32[2*n], f32[n//2], f32[n%2]", function(x)
        return dc.concat { x, x }, x[{ { 1, #x // 2 } }], x[{ { 1, #x % 2 } }]
      end)
      local a, b, c = f { 1, 2, 3, 4, 5 }
      print(#a, #b, #c)]], "10 2 1" },
  }
end

function TestRules:test_calls()
  check {
    { "all dims are numbers: checked when defined", [[
      dc.fn("f(x: f32[2, 3])", function(x) return x:matmul(dc.ones "f32[4, 2]") end)]], raises = "DC0301" },
    { "or given in a third argument", [[
      dc.fn("f(x: f32[batch, 3])", function(x) return x:matmul(dc.ones "f32[4, 2]") end, { batch = 64 })]],
      raises = "DC0301" },
    { "several of them", [[
      local f = dc.fn("f(x: f32[batch, 3])", function(x) print(#x) return x end, { batch = { 64, 32 } })
      print(#f:info())]], "64; 32; 2" },
    { "otherwise at the first call with each binding", [[
      local f = dc.fn("f(x: f32[n]) -> f32[]", function(x) print(#x) return x:sum() end)
      print "defined"
      f { 1, 2 }
      f { 1 }]], "defined; 2; 1" },
    { "a number is taken for any T[], a table for a tensor", [[
      local f = dc.fn("f(x: i32[], y: i32[n]) -> i32[]", function(x, y) return x * y:sum() end)
      print(f(4, { 1, 2, 3 }))]], "24" },
    { "numbers fit the dtype", [[dc.fn("f(x: i32[])", function(x) return x end)(4.5)]], raises = "4.5" },
    { "tensors have the declared dtype", [[dc.fn("f(x: i32[])", function(x) return x end)(dc.tensor(4))]],
      raises = "DC0404" },
    { "any callable", [[
      local net = nn.Linear(3, 2)
      local call = setmetatable({}, { __call = function(_, x) return x + 1 end })
      local inner = dc.fn("g(x: f32[]) -> f32[]", function(x) return x * 2 end)
      print(#dc.fn("f(x: f32[n, 3]) -> f32[n, 2]", net)(dc.ones "f32[5, 3]"), dc.fn("f(x: f32[])", call)(1),
        dc.fn("f(x: f32[])", inner)(4))]], "5 2.0 8.0" },
    { "of C, and without debug information", [[
      local stripped = load(string.dump(function(y) return y + 1 end, true))
      print(values(dc.fn("f(x: f32[2])", dc.relu) { -1, 1 }), dc.fn("f(x: f32[])", stripped)(1))]], "0.0 1.0 2.0" },
    { "parameter names are checked", [[dc.fn("f(x: f32[], y: f32[])", function(y, x) return x + y end)]],
      raises = "parameter 1 is 'x' in the signature and 'y' in the function" },
    { "... is refused", [[dc.fn("f(x: f32[])", function(...) return ... end)]], raises = "'...'" },
    { "limit", [[
      local f = dc.fn("f(x: f32[n])", function(x) return x end, nil, { limit = 2 })
      f { 1 }
      f { 1, 2 }
      f { 1, 2, 3 }]], raises = "n 2 -> 3" },
    { "the limit is 8", [[
      local f = dc.fn("f(x: f32[n])", function(x) return x end)
      for n = 1, 8 do
        f(dc.ones(("f32[%d]"):format(n)))
      end
      print(#f:info(), pcall(f, dc.ones "f32[9]") == false)]], "8 true" },
    { "f:check", [[
      local f = dc.fn("f(x: f32[batch, 3])", function(x) return x:matmul(dc.ones "f32[4, 2]") end)
      f:check { batch = 64 }]], raises = "DC0301" },
    { "the result must match the declared type", [[dc.fn("f(x: f32[2]) -> f32[3]", function(x) return x end)]],
      raises = "DC0405" },
    { "results are fresh", [[
      local f = dc.fn("f(x: f32[]) -> f32[]", function(x) return x + 1 end)
      local a = f(1)
      local b = f(2)
      print(a, b)]], "2.0 3.0" },
  }
end

function TestRules:test_tracing()
  check {
    { "the body runs when traced and once more at the second call", [[
      local f = dc.fn("f(x: f32[])", function(x) print "body" return x end)
      for i = 1, 4 do
        f(1)
        print(i)
      end]], "body; 1; body; 2; 3; 4" },
    { "print shows type and line",
      "local _ = dc.fn('f(x: f32[64, 10])', function(x)\n  local y = x * 2\n  print(y)\nend)",
      "f32[64, 10] (traced, script:2)" },
    { "of arguments, too", "local _ = dc.fn('f(x: f32[64, 10])', function(x)\n  print(x)\nend)",
      "f32[64, 10] (traced, argument 'x' of f, script:1)" },
    { "no value inside", [[dc.fn("f(x: f32[2])", function(x) return x:totable() end)]], raises = "DC0602" },
    { "a captured tensor is an input", [[
      local c = dc.tensor { 1, 2 }
      print(values(dc.fn("f(x: f32[2])", function(x) return x + c end) { 1, 1 }))]], "2.0 3.0" },
    { "a traced tensor used after its trace", "local t = {}\n" .. [[
      dc.fn("f(x: f32[2])", function(x)
        t[1] = x * 2
        return x
      end)
      local _ = t[1] + 1]], raises = "'f'" },
    { "names its line", "local t = {}\n" .. [[
      dc.fn("f(x: f32[2])", function(x)
        t[1] = x * 2
        return x
      end)
      local _ = t[1] + 1]], raises = "script:3" },
    { "coroutines finished inside are traced", [[
      local f = dc.fn("f(x: f32[])", function(x)
        local co = coroutine.wrap(function(y)
          coroutine.yield(y * 2)
          return y * 3
        end)
        return co(x) + co()
      end)
      print(f(2))]], "10.0" },
    { "a typed function inside another is checked", [[
      local g = dc.fn("g(x: f32[4])", function(x) return x:sum() end)
      dc.fn("f(x: f32[2, 3])", function(x) return g(x[1]) end)]], raises = "DC0404" },
    { "and inlined", [[
      local g = dc.fn("g(x: f32[n]) -> f32[]", function(x) return x:sum() end)
      local f = dc.fn("f(x: f32[2, 3])", function(x) return g(x[1]) * g(x[2]) end)
      print(f { { 1, 2, 3 }, { 4, 5, 6 } }, #f:info())]], "90.0 1" },
  }
end

-- Guards: f is called twice, then something changes, then it is called until fields are compared, too.
local function changed(before, body, change)
  return before .. '\nlocal f = dc.fn("f(x: f32[])", function(x) ' .. body .. " end)\nf(1) f(1) " .. change ..
    "\nfor _ = 1, 16 do f(1) end"
end

function TestRules:test_guards()
  check {
    { "a local", changed("local k = 2", "return x * k", "k = 3"), raises = "captured local 'k' changed from 2 to 3" },
    { "a string", changed("local k = 'a'", "return k == 'a' and x * 2 or x", "k = 'b'"),
      raises = "captured local 'k'" },
    { "a boolean", changed("local k = true", "return k and x * 2 or x", "k = false"),
      raises = "captured local 'k' changed from true to false" },
    { "a tensor", changed("local k = dc.tensor(2)", "return x * k", "k = dc.tensor(3)"), raises = "DC0606" },
    { "a local of a function that is called", changed("local k = 2 local function g(y) return y * k end",
      "return g(x) + 1", "k = 3"), raises = "captured local 'k' changed from 2 to 3" },
    { "a field", changed("local t = { k = 2 }", "return x * t.k", "t.k = 3"),
      raises = "captured field 't.k' changed from 2 to 3" },
    { "a global", changed("", "return x * K", "K = 3"), raises = "K' changed from 2 to 3" },
    { "a tensor in a field", changed("local t = { h = dc.tensor(1) }", "return x * t.h", "t.h = dc.tensor(2)"),
      raises = "captured tensor 't.h' was replaced" },
    { "a field of a field", changed("local t = { m = { k = 2 } }", "return x * t.m.k", "t.m.k = 3"),
      raises = "'t.m.k' changed from 2 to 3" },
    { "an element", changed("local t = { 1, 2 }", "return x * t[1]", "t[1] = 5"), raises = "t[1]" },
    { "one more element", changed("local t = { 1, 2 }", "for i = 1, #t do x = x * t[i] end return x", "t[3] = 5"),
      raises = "DC060" },
    { "one more key", changed("local t = { a = 1 }", "for _, v in pairs(t) do x = x * v end return x", "t.b = 5"),
      raises = "DC060" },
    { "nil", changed("local k", "return k and x * k or x * 1", "k = 5"), raises = "captured local 'k'" },
    { "a table", changed("local t = { k = 2 }", "return x * t.k", "t = { k = 3 }"), raises = "DC060" },
    { "an equal table", changed("local t = { k = 2 }", "return x * t.k", "t = { k = 2 }") .. " print(#f:info())", "1" },
    { "a function", changed("local act = dc.relu", "return act(x)", "act = dc.tanh"), raises = "act" },
    { "a cell", changed("local p = dc.param('f32[]', 2)", "return x * p", "p = dc.param('f32[]', 3)"), raises = "'p'" },
    { "a layer in a table", changed("local t = { nn.ReLU() }", "for i = 1, #t do x = t[i](x) end return x * 2",
      "t[2] = nn.Dropout(0.5)"), raises = "DC060" },
    { "the same graph: nothing happens", changed("local k = 2 local n = dc.stats().compiles",
      "return k > 0 and x * 2 or x", "n = dc.stats().compiles k = 3") .. " print(dc.stats().compiles - n)", "0" },
    { "another field of the table", changed("local t = { k = 2, log = 1 }", "return x * t.k", "t.log = 2") ..
      " print(#f:info())", "1" },
    { "a counter in a field", [[
      local t = { n = 0 }
      local f = dc.fn("f(x: f32[])", function(x) t.n = t.n + 1 return x * t.n end)
      f(1)
      f(1)]], raises = "DC060" },
    { "a counter in a closure", [[
      local n = 0
      local function count() n = n + 1 return n end
      dc.fn("f(x: f32[])", function(x) return x * count() end)]], raises = "captured local 'n' is assigned" },
    { "an assigned local", [[
      local total = 0
      dc.fn("f(x: f32[])", function(x) total = total + x end)]], raises = "captured local 'total' is assigned" },
    { "a local read in a coroutine", changed("local k = 2",
      "return coroutine.wrap(function() return x * k end)()", "k = 3"), raises = "captured local 'k'" },
    { "a local of a metamethod", changed(
      "local k = 2 local o = setmetatable({}, { __index = function() return k end })",
      "return x * o.a", "k = 3"), raises = "captured local 'k'" },
    { "a local of a typed function inside", changed(
      "local k = 2 local g = dc.fn('g(x: f32[])', function(x) return x * k end)",
      "return g(x) + 1", "k = 3"), raises = "captured local 'k'" },
    { "a hidden counter", [[
      local words = ("a b c"):gmatch "%a"
      local f = dc.fn("f(x: f32[])", function(x) return words() == "a" and x * 1 or x * 2 end)
      f(1)
      f(1)]], raises = "DC0607" },
    { "a static parameter's field", [[
      local options = { k = 2 }
      local f = dc.fn("f(x: f32[], o)", function(x, o) return x * o.k end)
      f(1, options)
      f(1, options)
      options.k = 3
      for _ = 1, 16 do
        f(1, options)
      end]], raises = "k' changed from 2 to 3" },
    { "math.random", [[dc.fn("f(x: f32[])", function(x) return x * math.random() end)]], raises = "math.random" },
    { "under another name", [[
      local r = math.random
      dc.fn("f(x: f32[])", function(x) return x * r() end)]], raises = "math.random" },
    { "os.time", [[dc.fn("f(x: f32[])", function(x) return x * os.time() end)]], raises = "os.time" },
    { "os.clock", [[dc.fn("f(x: f32[])", function(x) return x * os.clock() end)]], raises = "os.clock" },
    { "io.read", [[dc.fn("f(x: f32[])", function(x) return x * io.read() end)]], raises = "io.read" },
    { "which work again afterwards", [[math.type(math.random(3)), math.type(os.time())]], "integer integer" },
    { "dc.static: each value is a specialisation", [[
      local k = dc.static(2)
      local f = dc.fn("f(x: f32[])", function(x) return x ^ k.value end)
      print(f(3))
      k.value = 3
      print(f(3))
      k.value = 2
      print(f(3), #f:info())]], "9.0; 27.0; 9.0 2" },
    { "assigned outside", [[
      local k = dc.static(2)
      dc.fn("f(x: f32[])", function(x) k.value = 3 return x end)]], raises = "DC0608" },
  }
end

function TestRules:test_cells()
  check {
    { "a cell stands wherever a tensor may", [[
      local p, s = dc.param("f32[2]", { 1, 2 }), dc.state("f32[2]", 3)
      print(p:sum(), values(p + s), values(dc.maximum(p, s)))]], "3.0 4.0 5.0 3.0 3.0" },
    { "states are not in parameters()", [[
      local L = nn.class "L"
      function L:init() self.p, self.s = dc.param "f32[2]", dc.state "f32[2]" end
      print(#L():parameters())]], "1" },
    { "set needs exactly its type", [[dc.state "f32[2]":set(dc.ones "f32[3]")]], raises = "DC0407" },
    { "names that do not differ", [[
      local s = dc.state "f32[a=2]"
      s:set(dc.ones "f32[2]")
      s:set(dc.ones "f32[a=2]" * 2)
      dc.fn("f(a: f32[a=2]) -> ()", function(a) s:set(a) end)(dc.ones "f32[b=2]")
      print(values(s))
      s:set(dc.ones "f32[b=2]")]], raises = "a cell is f32[a=2] and was set to f32[b=2]" },
    { "dtype included", [[dc.state "f32[2]":set(dc.ones "i32[2]")]], raises = "DC0407" },
    { "reads after it see the new value", [[
      local s = dc.state("f32[]", 1)
      local f = dc.fn("f()", function() local a = s + 0 s:set(s + 1) s:set(s * 10) return a, s + 0 end)
      local a, b = f()
      print(a, b, s)]], "1.0 20.0 20.0" },
    { "no gradient flows through set", [[
      local s, p = dc.state("f32[]", 1), dc.param("f32[]", 3)
      local f = dc.fn("f()", function() s:set(p * 2) return dc.grad(s * p, p) end)
      print(f())]], "6.0" },
    { "a cell returned is its value", [[
      local s = dc.state("f32[]", 1)
      local f = dc.fn("f()", function() s:set(s + 1) return s end)
      local a = f()
      print(a, f(), a, s)]], "2.0 3.0 2.0 3.0" },
    { "holders keep the old value", [[
      local s = dc.state("f32[]", 1)
      local recipe, copy = s * 7, s:clone()
      local f = dc.fn("f() -> ()", function() s:set(s + 1) end)
      f()
      print(recipe, copy, s)]], "7.0 1.0 2.0" },
    { "a trace that raises sets nothing", [[
      local s = dc.state("f32[]", 1)
      pcall(dc.fn, "f()", function() s:set(5) error "no" end)
      print(s)]], "1.0" },
    { "nor does a call that fails", [[
      local s = dc.state("f32[]", 1)
      local f = dc.fn("f(x: f32[1, 3], y: i32[1])", function(x, y) s:set(5) return nn.cross_entropy(x, y) end)
      print(pcall(f, { { 1, 2, 3 } }, { 7 }) == false, s)]], "true 1.0" },
    { "cells made inside are made once", [[
      local f = dc.fn("f(x: f32[])", function(x)
        local s = dc.state("f32[]", 1)
        s:set(s + x)
        return s * 1
      end)
      print(f(1), f(1), f(1))]], "2.0 3.0 4.0" },
    { "arguments are never donated", [[
      local x = dc.ones "f32[4]"
      local y = dc.fn("f(x: f32[4])", function(x) return x + 1 end)(x)
      print(x:sum(), y:sum())]], "4.0 8.0" },
    { "hyperparameters are states", [[
      local p = dc.param("f32[]", 1)
      local opt = optim.SGD({ p }, { lr = 1 })
      local f = dc.fn("f()", function() local l = p * p opt:step(l) return l end)
      f()
      print(p)
      opt.lr = 0.5
      f()
      print(p, #f:info(), opt.lr)]], "-1.0; 0.0 1 0.5" },
  }
end

function TestRules:test_gradients()
  check {
    { "of the form of wrt", [[
      local p, q = dc.param("f32[]", 3), dc.param("f32[]", 4)
      print(dc.grad(p * q, p), #dc.grad(p * q, { p, q }), dc.grad(p * q, { p, q })[2])]], "4.0 2 3.0" },
    { "of tensors", [[local x = dc.tensor { 1, 2 } print(values(dc.grad((x * x):sum(), x)))]], "2.0 4.0" },
    { "a scalar", [[local p = dc.param "f32[2]" local _ = dc.grad(p * p, p)]], raises = "DC0501" },
    { "not depending on one names its path", [[
      local net, other = nn.Linear(2, 1), nn.Linear(2, 1)
      local params = other:parameters()
      local _ = dc.grad(net(dc.ones "f32[1, 2]"):sum(), params)]], raises = "other.bias" },
    { "unused = zero", [[
      local p, q = dc.param("f32[]", 3), dc.param "f32[2]"
      local g = dc.grad(p * p, { p, q }, { unused = "zero" })
      print(g[1], values(g[2]))]], "6.0 0.0 0.0" },
    { "in opt:step, too", [[
      local p, q = dc.param("f32[]", 3), dc.param("f32[]", 4)
      local opt = optim.SGD({ p, q }, { lr = 1 })
      local f = dc.fn("f()", function() local l = p * p opt:step(l, { unused = "zero" }) return l end)
      f()
      print(p, q)
      dc.fn("f()", function() opt:step(p * p) end)]], raises = "DC0503" },
    { "at the version that loss read", [[
      local p = dc.param("f32[]", 3)
      local l = p * p
      p:set(5)
      print(dc.grad(l, p))
      p:set(3)
      print(dc.fn("f()", function() local m = p * p p:set(5) return dc.grad(m, p) end)())]], "6.0; 6.0" },
    { "results of compiled calls carry no graph", [[
      local p = dc.param("f32[]", 3)
      local f = dc.fn("f()", function() return p * p end)
      local _ = dc.grad(f(), p)]], raises = "take the gradient inside" },
    { "gradients of gradients", [[
      local x = dc.tensor(3)
      local g = dc.grad(x ^ 3, x)
      print(g, dc.grad(g, x))
      print(dc.fn("f(x: f32[])", function(x) return dc.grad(dc.grad(x ^ 3, x), x) end)(3))]], "27.0 18.0; 18.0" },
    { "custom_grad", [[
      local f = dc.custom_grad(function(x) return x * 1 end, function(dy) return dy * 10 end)
      print(dc.fn("f(x: f32[])", function(x) return dc.grad(f(x), x) end)(1))]], "10.0" },
    { "stop_gradient", [[local x = dc.tensor(3) print(dc.grad(x * dc.stop_gradient(x), x))]], "3.0" },
  }
end

function TestRules:test_models()
  check {
    { "calling a layer records its path", [[
      local net = nn.Sequential { nn.Flatten(), nn.Linear(784, 10) }
      local _ = net(dc.zeros "f32[3, 5, 5]")]], raises = "net.2 (nn.Linear 784 -> 10)" },
    { "restored after a caught error", [[
      local net = nn.Sequential { nn.Flatten(), nn.Linear(784, 10) }
      pcall(net, dc.zeros "f32[3, 5, 5]")
      local _, err = pcall(dc.zeros, "f32[")
      print(err.path)]], "nil" },
    { "integer parts are compared as numbers", [[
      local list = {}
      for i = 1, 11 do
        list[i] = nn.Linear(1, 1, { bias = false })
      end
      local named = nn.Sequential(list):named_parameters()
      print(named[2][1], named[10][1], named[11][1])]], "2.weight 10.weight 11.weight" },
    { "each cell once under its first path", [[
      local layer = nn.Linear(1, 1)
      local named = nn.Sequential { layer, layer }:named_parameters()
      print(#named, named[1][1], named[2][1])]], "2 1.bias 1.weight" },
    { "train and eval", [[
      local L = nn.class "L"
      function L:forward(x) return self.training and x * 2 or x * 1 end
      local l = L()
      local f = dc.fn("f(x: f32[])", function(x) return l(x) end)
      print(l.training, f(1))
      l:eval()
      print(l.training, f(1))
      l:train()
      print(l.training, f(1), #f:info())]], "true 2.0; false 1.0; true 2.0 2" },
    { "another structure is another specialisation", [[
      local net = nn.Sequential { nn.Linear(2, 2) }
      local f = dc.fn("f(x: f32[1, 2])", function(x) return net(x) end)
      f { { 1, 2 } }
      f { { 1, 2 } }
      net[1] = nn.Linear(2, 3)
      print(#f:info(), f { { 1, 2 } }.shape[2], #f:info())
      net[2] = nn.ReLU()
      print(f { { 1, 2 } }:min():item() >= 0, #f:info())
      net[2] = nil
      f { { 1, 2 } }
      print(#f:info())]], "1 3 2; true 3; 4" },
    { "another value is not", [[
      local net = nn.Sequential { nn.Linear(2, 2) }
      local f = dc.fn("f(x: f32[1, 2])", function(x) return net(x) end)
      f { { 1, 2 } }
      net[1].weight:set(0)
      net[1].bias:set(0)
      print(values(f { { 1, 2 } }), #f:info())]], "0.0 0.0 1" },
    { "another parameter is", [[
      local net = nn.Linear(2, 2)
      local f = dc.fn("f(x: f32[1, 2])", function(x) return net(x) end)
      f { { 1, 2 } }
      net.weight, net.bias = dc.param("f32[2, 2]", 0), dc.param("f32[2]", 7)
      print(values(f { { 1, 2 } }), #f:info())]], "7.0 7.0 2" },
    { "dropout", [[
      local drop, x = nn.Dropout(0.5), dc.ones "f32[1000]"
      local f = dc.fn("f(x: f32[1000])", function(x) return drop(x) end)
      print(f(x):eq(f(x)):all(), f(x):eq(0):mean():item() > 0.4, f(x):max())
      drop:eval()
      print(f(x):eq(x):all())]], "false true 2.0; true" },
    { "freezing", [[
      local net = nn.Sequential { nn.Linear(2, 2), nn.Linear(2, 1) }
      local opt = optim.SGD(net:parameters(), { lr = 1 })
      local f = dc.fn("f(x: f32[1, 2])", function(x) local l = net(x):sum() opt:step(l) return l end)
      f { { 1, 2 } }
      local w, v = net[1].weight:clone(), net[2].weight:clone()
      net[1]:freeze()
      f { { 1, 2 } }
      print((net[1].weight - w):abs():sum(), (net[2].weight - v):abs():sum():item() > 0, #f:info())]], "0.0 true 2" },
    { "undetermined sizes of parameters", [[dc.param "f32[n, 3]"]], raises = "DC04" },
    { "batches are on loan", [[
      local set, kept = data.set(dc.iota "f32[4]", dc.iota(4)), nil
      for x in set:batches { size = 2 } do
        kept = kept or x
      end
      local _ = kept + 1]], raises = "DC0107" },
    { "results and states of them are their own", [[
      local set, state, kept = data.set(dc.iota "f32[4]", dc.iota(4)), dc.state "f32[2]", {}
      local f = dc.fn("f(x: f32[2])", function(x) return x end)
      for x in set:batches { size = 2 } do
        kept[#kept + 1] = f(x)
        state:set(x)
      end
      print(values(kept[1]), values(kept[2]), values(state))]], "0.0 1.0 2.0 3.0 2.0 3.0" },
    { "clones stay, recipes keep their values", [[
      local set, kept, later = data.set(dc.iota "f32[4]", dc.iota(4)), {}, {}
      for x in set:batches { size = 2 } do
        kept[#kept + 1], later[#later + 1] = x:clone(), x * 10
      end
      print(values(kept[1]), values(later[1]), values(later[2]))]], "0.0 1.0 0.0 10.0 20.0 30.0" },
  }
end

function TestRules:test_random_numbers()
  check {
    { "a seed gives the same numbers", [[
      values(dc.randn("f32[3]", { seed = 1 })) == values(dc.randn("f32[3]", { seed = 1 }))]], "true" },
    { "otherwise the generator's, in order", [[
      dc.seed(5)
      local a, b = dc.randn "f32[3]", dc.randn "f32[3]"
      b, a = values(b), values(a)
      dc.seed(5)
      print(a == b, values(dc.randn "f32[3]") == a, values(dc.randn "f32[3]") == b)]], "false true true" },
    { "inside each site has its own, and each call advances once", [[
      dc.seed(5)
      local f = dc.fn("f()", function() return dc.randn "f32[3]", dc.randn "f32[3]" end)
      local a, b = f()
      local c, d = f()
      local count = dc.generator():totable()
      f()
      local after = dc.generator():totable()
      print(a:eq(b):any(), a:eq(c):any(), b:eq(d):any(), after[3] - count[3])
      dc.seed(5)
      print(a:eq((f())):all())]], "false false false 1; true" },
    { "tracing again changes nothing", [[
      local k = 1
      local f = dc.fn("f()", function() local _ = k return dc.rand "f32[]" end)
      local function draw(change)
        dc.seed(1)
        local list = {}
        for i = 1, 4 do
          k, list[i] = change and i or 1, tostring(f())
        end
        return table.concat(list, " ")
      end
      print(draw(false) == draw(true))]], "true" },
    { "values computed again draw the same", [[
      local block = dc.remat(function(x) return x * dc.rand "f32[3]" end)
      local f = dc.fn("f(x: f32[3])", function(x) local y = block(x) return y, dc.grad(y:sum(), x) end)
      local y, slope = f { 1, 1, 1 }
      print(y:eq(slope):all())]], "true" },
    { "its state is a cell", [[
      local before = dc.generator():clone()
      local a = dc.rand "f32[3]"
      local b = dc.rand "f32[3]"
      dc.generator():set(before)
      print(a:eq(b):any(), a:eq(dc.rand "f32[3]"):all())]], "false true" },
    { "a seed inside", [[
      local f = dc.fn("f()", function() return dc.randn("f32[3]", { seed = 1 }) end)
      print(values(f()) == values(f()))]], "true" },
  }
end

function TestRules:test_lazy_code()
  check {
    { "cell values are those of when it was written", [[
      local s = dc.state("f32[]", 1)
      local a = s + 1
      s:set(10)
      print(a)]], "2.0" },
    { "64 operations without a parameter", [[
      local before = dc.stats().realized
      local t = dc.tensor(1) * 1
      for _ = 1, 62 do
        t = t + 1
      end
      print(dc.stats().realized - before)
      t = t + 1
      print(dc.stats().realized - before)]], "0; 1" },
    { "printing never changes dc.grad", [[
      local p = dc.param("f32[]", 3)
      local l = p * p
      print(l, dc.grad(l, p))]], "9.0 6.0" },
    { "past 10,000 operations on a parameter", [[
      local t = dc.param("f32[]", 1) * 1
      for _ = 1, 11000 do
        t = t + 1
      end]], raises = "dc.stop_gradient" },
    { "without a parameter no end", [[
      local s = dc.state "f32[]"
      local t, u = dc.tensor(0), s + 0
      for _ = 1, 11000 do
        t, u = t + 1, u + 1
      end
      print(t, u)]], "11000.0 11000.0" },
  }
end

function TestRules:test_memory()
  check {
    { "close frees at once", [[local t = dc.ones "f32[4]" t:close() local _ = t + 1]], raises = "closed" },
    { "<close>, too", [[
      local kept
      do
        local t <close> = dc.ones "f32[4]"
        kept = t
      end
      local _ = kept + 1]], raises = "closed" },
    { "dc.scope keeps what it is told", [[
      local s = dc.scope()
      local a, b = dc.ones "f32[4]", s:keep(dc.ones "f32[4]")
      s:close()
      print(b:sum())
      local _ = a + 1]], raises = "closed" },
    { "a steady call allocates one small Lua object for a result", [[
      local f = dc.fn("f(x: f32[4]) -> f32[4]", function(x) return x + 1 end)
      local x = dc.ones "f32[4]"
      for _ = 1, 40 do
        f(x)
      end
      collectgarbage()
      collectgarbage "stop"
      local before = collectgarbage "count"
      for _ = 1, 100 do
        f(x)
      end
      local grown = (collectgarbage "count" - before) * 1024 / 100
      collectgarbage "restart"
      print(grown > 0, grown < 200)]], "true true" },
  }
end

function TestRules:test_errors()
  check {
    { "tables", [[
      local f = dc.fn("f(x: f32[3])", function(x) return x end)
      local _, err = pcall(f, dc.ones "f32[4]")
      print(err.code, err.op, err.at, err.expected, err.got, type(err.traceback))]],
      "DC0404 f script:2 f32[3] f32[4] string" },
    { "expected and got of results", [[
      local _, err = pcall(dc.fn, "f(x: f32[3]) -> f32[4]", function(x) return x end)
      print(err.code, err.expected, err.got)]], "DC0405 f32[4] f32[3]" },
    { "other errors pass through", [[
      local _, err = pcall(dc.fn, "f(x: f32[2])", function(x) error { code = 7, x } end)
      print(err.code, pcall(dc.fn, "f(x: f32[2])", function(x) local t return x + t.x end) == false)]], "7 true" },
    { "an error in a coroutine leaves no trace open", [[
      local f = dc.fn("f(x: f32[n])", function(x) return x:sum(7) end)
      coroutine.resume(coroutine.create(function() f { 1, 2 } end))
      collectgarbage()
      collectgarbage()
      print(values(dc.zeros "f32[2]" + 1), values(dc.fn("g(x: f32[n])", function(x) return x end) { 1, 2 }))]],
      "1.0 1.0 1.0 2.0" },
    { "of operations", [[
      local _, err = pcall(function() return dc.zeros "f32[2]" + dc.zeros "f32[3]" end)
      print(err.code, err.op, err.at, err.expected, err.got)]], "DC0301 add script:1 f32[2] f32[3]" },
    { "dims bound so far", [[
      local f = dc.fn("f(x: f32[n, d])", function(x) return x:sum(2) + dc.ones "f32[9]" end)
      f(dc.ones "f32[2, 3]")]], raises = "    dims   n=2, d=3\n" },
  }
end
