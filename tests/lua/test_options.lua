-- dc.options: arguments of scripts.
local lu = require "luaunit"
local dc = require "deepc"
local check = require "tests.lua.check"
local program = require "tests.lua.program"

local fails = check.fails

local list = {
  about = "Trains a network.",
  rest = "[FILE...]",
  { "epochs", 5, "passes over the data", min = 1, max = 100 },
  { "lr", 1e-3, "learning rate" },
  { "model", "mlp", "what to train", choices = { "mlp", "cnn", "gru" } },
  { "resume", false, "go on where the last run stopped" },
  { "shuffle", true, "in another order each time" },
  { "loss-log", nil, "where to write losses", value = "FILE" },
  { "seed", nil, "of the generator", type = "integer" },
}

local function read(...)
  return dc.options(list, { ... })
end

TestFail = {}

function TestFail:test_is_an_error_of_one_sentence()
  local ok, err = pcall(dc.fail, "there are 100 % of them")
  lu.assertFalse(ok)
  lu.assertEquals(tostring(err), "there are 100 % of them")
  lu.assertEquals("so: " .. err, "so: there are 100 % of them")
  lu.assertNil(err.code)
  lu.assertStrContains(err.at, "test_options.lua")
  for _, wrong in ipairs { "", " ", 3, {} } do
    lu.assertEquals(fails("a sentence is needed, not ", dc.fail, wrong).code, "DC0101")
  end
end

function TestFail:test_ends_a_script()
  local path = program.script [[
    local dc <const> = require "deepc"
    local last <close> = setmetatable({}, { __close = function() print "closed" end })
    dc.fail "there is no text"
  ]]
  lu.assertEquals({ program.run(path) }, { "closed\ndeepc: there is no text\n", 1 })
  lu.assertEquals({ program.run("check " .. path) }, { path .. ": error: there is no text\n", 1 })
  os.remove(path)
end

TestValues = {}

function TestValues:test_defaults()
  local o, rest = read()
  lu.assertEquals(o.epochs, 5)
  lu.assertEquals(o.lr, 1e-3)
  lu.assertEquals(o.model, "mlp")
  lu.assertIs(o.resume, false)
  lu.assertIs(o.shuffle, true)
  lu.assertNil(o.loss_log)
  lu.assertNil(o.seed)
  lu.assertEquals(rest, {})
end

function TestValues:test_every_form()
  local o, rest = read("--epochs", "7", "a", "--lr=0.5", "--resume", "--no-shuffle", "--loss-log=x=y", "-", "--seed",
    "-3", "--model", "cnn", "--", "--epochs", "b")
  lu.assertEquals(o.epochs, 7)
  lu.assertEquals(math.type(o.epochs), "integer")
  lu.assertEquals(o.lr, 0.5)
  lu.assertIs(o.resume, true)
  lu.assertIs(o.shuffle, false)
  lu.assertEquals(o.loss_log, "x=y")
  lu.assertEquals(o.seed, -3)
  lu.assertEquals(o.model, "cnn")
  lu.assertEquals(rest, { "a", "-", "--epochs", "b" })
end

function TestValues:test_the_last_one_counts()
  lu.assertEquals(read("--epochs", "7", "--epochs", "9").epochs, 9)
  lu.assertIs(read("--resume", "--no-resume").resume, false)
  lu.assertIs(read("--resume=false").resume, false)
  lu.assertIs(read("--shuffle=yes").shuffle, true)
end

function TestValues:test_types()
  lu.assertEquals(math.type(read("--lr", "1").lr), "float")
  lu.assertEquals(math.type(read("--lr", "1e-2").lr), "float")
  lu.assertEquals(read("--epochs", "1e1").epochs, 10)
  lu.assertEquals(math.type(dc.options({ { "p", 1, "", type = "number" } }, {}).p), "float")
  lu.assertEquals(dc.options({ { "n", "", "" } }, { "--n", "" }).n, "")
end

TestMistakes = {}

function TestMistakes:test_of_the_command_line()
  local err = fails("options: unknown option '--epoch'", read, "--epoch", "3")
  lu.assertEquals(err.hint, "is '--epochs' meant?")
  lu.assertEquals(err.code, "DC0101")
  lu.assertEquals(fails("unknown option '--zzzzzzzz'", read, "--zzzzzzzz").hint, "--help lists what there is")
  lu.assertStrContains(fails("unknown option '-epochs'", read, "-epochs", "3").hint, "--epochs")
  fails("--epochs needs a value", read, "--epochs")
  fails("--epochs needs a value", read, "--epochs", "--lr", "3")
  fails("--epochs needs an integer, not '2.5'", read, "--epochs", "2.5")
  fails("--epochs needs an integer, not ''", read, "--epochs=")
  fails("--lr needs a number, not 'fast'", read, "--lr", "fast")
  fails("--lr needs a number, not 'nan'", read, "--lr", "nan")
  fails("--epochs is at least 1, not 0", read, "--epochs", "0")
  fails("--epochs is at most 100, not 101", read, "--epochs", "101")
  lu.assertEquals(fails("--model is mlp, cnn or gru, not 'cmn'", read, "--model", "cmn").hint, "is 'cnn' meant?")
  fails("--resume needs true or false, not 'maybe'", read, "--resume=maybe")
  fails("--no-shuffle takes no value", read, "--no-shuffle=1")
  fails("unknown option '--no-epochs'", read, "--no-epochs")
  fails("nothing is known of the argument 'x'", dc.options, { { "n", 1, "" } }, { "x" })
  fails("--n is required", dc.options, { { "n", nil, "", type = "integer", required = true } }, {})
end

function TestMistakes:test_of_reading()
  local o = read()
  local err = fails("the options have no 'epoch'", function() return o.epoch end)
  lu.assertEquals(err.hint, "is 'epochs' meant?")
  lu.assertEquals(err.code, "DC0110")
end

function TestMistakes:test_of_the_list()
  fails("a list of options is needed, not nil", dc.options)
  fails("row 1 is a string, not a table", dc.options, { "epochs" }, {})
  fails("'epochs' is a name; options are rows in order", dc.options, { epochs = 5 }, {})
  fails("row 1 begins with number", dc.options, { { 5 } }, {})
  fails("row 1 begins with '--epochs'", dc.options, { { "--epochs", 5 } }, {})
  fails("--n stands in the list twice", dc.options, { { "n", 1 }, { "n", 2 } }, {})
  fails("--help is there already", dc.options, { { "help", false } }, {})
  fails("the type of --n is table", dc.options, { { "n", {} } }, {})
  fails("the type of --n is int", dc.options, { { "n", 1, "", type = "int" } }, {})
  fails("'default' of --n says nothing", dc.options, { { "n", default = 1 } }, {})
  fails("--n is no number and has bounds", dc.options, { { "n", "x", "", min = 1 } }, {})
  fails("choices of --n are a list of texts", dc.options, { { "n", 1, "", choices = { 1, 2 } } }, {})
  fails("arguments are a list, not a number", dc.options, { { "n", 1, "" } }, 3)
end

local kept = {
  { "checkpoint", nil, "a file" }, { "resume", false, "go on", needs = "checkpoint" },
  { "every", 200, "steps between two", needs = "checkpoint" }, { "log", "run.log", "" },
  { "plot", nil, "", needs = { "log", "checkpoint" } },
}

function TestMistakes:test_what_another_one_needs()
  local function with(...)
    return dc.options(kept, { ... })
  end
  lu.assertEquals(with().every, 200)
  lu.assertIs(with("--checkpoint", "x", "--resume").resume, true)
  lu.assertIs(with("--resume", "--checkpoint", "x").resume, true)
  lu.assertIs(with("--resume", "--no-resume").resume, false)
  lu.assertEquals(with("--plot", "x", "--checkpoint", "y").log, "run.log")
  lu.assertEquals(fails("options: --resume needs --checkpoint", with, "--resume").code, "DC0101")
  fails("options: --every needs --checkpoint", with, "--every", "200")
  fails("options: --plot needs --checkpoint", with, "--plot", "x")
  fails("--n needs 'm', which is no other option", dc.options, { { "n", 1, needs = "m" } }, {})
  local err = fails("--n needs 'n', which is no other option", dc.options, { { "n", 1, needs = "n" } }, {})
  lu.assertNil(err.hint)
  fails("is 'checkpoint' meant?", dc.options, { { "n", 1, needs = "chekpoint" }, { "checkpoint", "" } }, {})
  fails("what --n needs is the name of an option, not nil", dc.options, { { "n", 1, needs = { nil, "m" } } }, {})
  fails("what --n needs is a list, not a table of names", dc.options, { { "n", 1, needs = { m = true } } }, {})
  fails("what --n needs is the name of an option, not true", dc.options, { { "n", 1, needs = true } }, {})
end

TestHelp = {}

function TestHelp:test_text_and_end()
  local path = program.script [[
    local dc = require "deepc"
    dc.options {
      about = "Trains a network.", rest = "[FILE...]",
      { "epochs", 5, "passes over the data", min = 1, max = 100 }, { "lr", 1e-3, "learning rate" },
      { "model", "mlp", "what to train", choices = { "mlp", "cnn", "gru" } },
      { "resume", false, "go on where the last run stopped", needs = { "loss-log", "seed" } },
      { "shuffle", true, "in another order each time" },
      { "loss-log", nil, "where to write losses", value = "FILE" },
      { "seed", nil, "of the generator", type = "integer" },
    }
    print "never"
  ]]
  local text, status = program.run(path .. " --epochs 0 --help")
  os.remove(path)
  lu.assertEquals(status, 0)
  lu.assertEquals(text:gsub("lua_%w+", "train.lua"), [=[
usage: deepc train.lua [options] [FILE...]
Trains a network.

  --epochs N       passes over the data (5)
  --lr X           learning rate (0.001)
  --model TEXT     what to train: mlp, cnn or gru (mlp)
  --resume         go on where the last run stopped (needs --loss-log, --seed)
  --shuffle        in another order each time (on; --no-shuffle)
  --loss-log FILE  where to write losses
  --seed N         of the generator
  --help           this text
]=])
end
