-- Tensors as text: whole texts.
local lu = require "luaunit"
local dc = require "deepc"

local function shows(t, ...)
  lu.assertEquals(tostring(t), table.concat({ ... }, "\n"))
end

TestScalars = {}

function TestScalars:test_have_the_fewest_digits()
  shows(dc.tensor(0.1), "0.1")
  shows(dc.tensor(6), "6.0")
  shows(dc.tensor(20000), "20000.0")
  shows(dc.tensor(1 / 3), "0.33333334")
  shows(dc.tensor(1e-5), "1e-05")
  shows(dc.tensor(1e30), "1e+30")
  shows(dc.tensor(-math.huge), "-inf")
  shows(dc.tensor(0 / 0), "nan")
  shows(dc.tensor(6, "i32[]"), "6")
  shows(dc.tensor(true, "bool[]"), "true")
end

function TestScalars:test_concat_in_both_orders()
  lu.assertEquals("x = " .. dc.tensor(2), "x = 2.0")
  lu.assertEquals(dc.tensor(2) .. "!", "2.0!")
  lu.assertEquals(1 .. dc.tensor(2), "12.0")
  lu.assertEquals(dc.tensor(1) .. dc.tensor(2), "1.02.0")
end

TestTables = {}

function TestTables:test_columns_are_aligned()
  shows(dc.tensor { { 1, -2.5 }, { 10, 3 } }, "   1.0  -2.5", "  10.0   3.0", "f32[2, 2]")
  shows(dc.tensor({ 1, 20 }, "i32[n=2]"), "   1  20", "i32[n=2]")
  shows(dc.tensor({ true, false }, "bool[2]"), "   true  false", "bool[2]")
end

function TestTables:test_no_more_decimals_than_needed()
  shows(dc.zeros "f32[2]", "  0.0  0.0", "f32[2]")
  shows(dc.tensor { 0.5, 0.25 }, "  0.50  0.25", "f32[2]")
  shows(dc.tensor { 0.5, 1 / 3 }, "  0.5000  0.3333", "f32[2]")
end

function TestTables:test_exponents_where_sizes_differ()
  shows(dc.tensor { 1e-5, 1 }, "  1.0e-05  1.0e+00", "f32[2]")
  shows(dc.tensor { 1e9, 2.5 }, "  1.0e+09  2.5e+00", "f32[2]")
  shows(dc.tensor { 123456, 1 / 3 }, "  1.2346e+05  3.3333e-01", "f32[2]")
  shows(dc.tensor { 100000, 2 }, "  100000.0       2.0", "f32[2]")
end

function TestTables:test_not_finite()
  shows(dc.tensor { 1.5, 0 / 0, 1 / 0, -1 / 0 }, "   1.5   nan   inf  -inf", "f32[4]")
  shows(dc.tensor { 0 / 0, 0 / 0 }, "  nan  nan", "f32[2]")
end

function TestTables:test_without_elements()
  shows(dc.zeros "f32[0, 3]", "f32[0, 3]")
  shows(dc.zeros "i32[2, 0, 3]", "i32[2, 0, 3]")
end

function TestTables:test_higher_ranks_have_heads()
  shows(dc.iota("i32[4]"):reshape(2, 1, 2), "[1, :, :]", "  0  1", "[2, :, :]", "  2  3", "i32[2, 1, 2]")
  shows(dc.iota("i32[4]"):reshape(1, 2, 1, 2),
    "[1, 1, :, :]", "  0  1", "[1, 2, :, :]", "  2  3", "i32[1, 2, 1, 2]")
end

TestLong = {}

function TestLong:test_rows_that_fit_are_whole()
  shows(dc.iota(16), "   0   1   2   3   4   5   6   7   8   9  10  11  12  13  14  15", "i32[16]")
end

function TestLong:test_vectors_show_their_ends()
  shows(dc.iota(2000), "     0     1     2  ...  1997  1998  1999", "i32[2000]")
  shows(dc.iota(27), "   0   1   2  ...  24  25  26", "i32[27]")
end

function TestLong:test_matrices_show_their_ends()
  shows(dc.iota("i32[1200]"):reshape(40, 30),
    "     0     1     2  ...    27    28    29",
    "    30    31    32  ...    57    58    59",
    "    60    61    62  ...    87    88    89",
    "  ...",
    "  1110  1111  1112  ...  1137  1138  1139",
    "  1140  1141  1142  ...  1167  1168  1169",
    "  1170  1171  1172  ...  1197  1198  1199",
    "i32[40, 30]")
end

function TestLong:test_blocks_show_their_ends()
  shows(dc.iota("i32[6]"):reshape(6, 1, 1),
    "[1, :, :]", "  0", "[2, :, :]", "  1", "...", "[5, :, :]", "  4", "[6, :, :]", "  5", "i32[6, 1, 1]")
end

function TestLong:test_many_blocks_show_fewer()
  local text = tostring(dc.zeros "f32[4, 4, 4, 4, 1, 1]")
  local _, heads = text:gsub("%[%d, %d, %d, %d, :, :%]", "")
  lu.assertEquals(heads, 16)
  lu.assertEquals(text:sub(1, 40), "[1, 1, 1, 1, :, :]\n  0.0\n...\n[1, 1, 1, 4")
end

function TestLong:test_wide_numbers_show_fewer()
  local text = tostring(dc.full("f32[30]", -1.23456e-20))
  lu.assertEquals(text, ("  -1.2346e-20"):rep(2) .. "  ..." .. ("  -1.2346e-20"):rep(2) .. "\nf32[30]")
  for line in text:gmatch "[^\n]+" do
    lu.assertTrue(#line <= 80)
  end
end

function TestLong:test_only_what_is_shown_decides_its_form()
  local t = {}
  for i = 1, 100 do
    t[i] = i == 50 and 1e20 or i
  end
  shows(dc.tensor(t), "    1.0    2.0    3.0  ...   98.0   99.0  100.0", "f32[100]")
end

TestOthers = {}

function TestOthers:test_cells_have_their_label()
  shows(dc.param("f32[2]", 0.5), "  0.5  0.5", "parameter f32[2]")
  shows(dc.state("i32[2]", 1), "  1  1", "state i32[2]")
  shows(dc.state("f32[]", 1), "1.0")
  local nn = require "deepc.nn"
  local net = nn.Sequential { nn.Linear(1, 2) }
  local _ = net:named_parameters()
  lu.assertEquals(tostring(net:parameters()[1]):match "[^\n]*$",
    "parameter net.1.bias f32[2]")
end

function TestOthers:test_traced()
  local seen = {}
  dc.fn("f(x: f32[2]) -> f32[2]", function(x)
    local y = x + 1
    seen.text = tostring(y)
    return y
  end)
  lu.assertStrMatches(seen.text, "f32%[2%] %(traced, [^\n]*test_print%.lua:%d+%)")
end

function TestOthers:test_closed()
  local t = dc.zeros "f32[2]"
  t:close()
  lu.assertEquals(tostring(t), "(closed tensor)")
end
