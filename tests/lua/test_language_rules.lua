-- The rules of the language, sentence by sentence (tests/lua/rules.lua): values, names, signatures,
-- calls and tracing. What changes from call to call is in test_language_state.lua.
local rules = require "tests.lua.rules"

local check = rules.check

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
    { "sums of bool are counts, of integers have 64 bits", [[
      for _, d in ipairs { "bool", "i8", "i16", "u8", "u16", "u32", "i64", "f32" } do
        local a = dc.ones(d .. "[3]")
        print(a:sum().dtype, a:prod().dtype)
      end]], "i32 i32; i64 i64; i64 i64; u64 u64; u64 u64; u64 u64; i64 i64; f32 f32" },
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
      local f = dc.fn("f(x: i32[], y: i32[n]) -> i32[]", function(x, y) return x * y:max() end)
      print(f(4, { 1, 2, 3 }))]], "12" },
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
