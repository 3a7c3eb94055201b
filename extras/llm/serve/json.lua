-- JSON (RFC 8259) as a machine that reads bytes: where in a value it is, and the brackets that are open. A state is a
-- text: a letter for the place, and the brackets, "k" behind them in the name of a field.
--
--   v   a value is due, o an object       ]   a value or the end of a list      }   a name or the end of an object
--   n   a name is due                     :   behind a name                     ,   behind a value
--   "   inside of a string                \   behind a backslash                u4  four hexadecimal digits are due
--   1 2 3 a b c d  bytes of a character are due                                 w   letters of true, false, null
--   -   behind a minus                    0   behind a zero                     i   behind other digits
--   ~   behind blanks, their number, and what is due behind them
--   .   behind a point                    f   behind digits behind it           e s E   behind an e, its sign, digits

local _, core = ...

local DEEPEST = 64
local BLANKS = 32 -- in a row; models write them without end where they may

local Machine = {}
Machine.__index = Machine

local function is_space(b)
  return b == 32 or b == 10 or b == 13 or b == 9
end

local function is_digit(b)
  return b >= 48 and b <= 57
end

local WORDS = { t = "rue", f = "alse", n = "ull" }

-- Behind a value.
local function done(stack)
  return "," .. stack
end

-- What a value begins with.
local function value(b, stack)
  local c = string.char(b)
  if c == '"' then
    return '"' .. stack
  elseif c == "{" or c == "[" then
    return #stack < DEEPEST and (c == "{" and "}" or "]") .. stack .. c or nil
  elseif c == "-" then
    return "-" .. stack
  elseif c == "0" then
    return "0" .. stack
  elseif is_digit(b) then
    return "i" .. stack
  elseif WORDS[c] then
    return "w" .. WORDS[c] .. ";" .. stack
  end
end

local places = {}

-- Bytes of characters behind the first: how many are due, and the bounds of the next one.
local function begin_character(b, stack)
  if b < 0x80 then
    return '"' .. stack
  elseif b >= 0xC2 and b <= 0xDF then
    return "1" .. stack
  elseif b == 0xE0 or b == 0xED or b == 0xF0 or b == 0xF4 then
    return ({ [0xE0] = "a", [0xED] = "b", [0xF0] = "c", [0xF4] = "d" })[b] .. stack
  elseif b > 0xE0 and b <= 0xEF then
    return "2" .. stack
  elseif b > 0xF0 and b < 0xF4 then
    return "3" .. stack
  end
end

local FOLLOWING = { ["1"] = { 0x80, 0xBF, '"' }, ["2"] = { 0x80, 0xBF, "1" }, ["3"] = { 0x80, 0xBF, "2" },
  a = { 0xA0, 0xBF, "1" }, b = { 0x80, 0x9F, "1" }, c = { 0x90, 0xBF, "2" }, d = { 0x80, 0x8F, "2" } }

for place, f in pairs(FOLLOWING) do
  places[place] = function(b, stack)
    return b >= f[1] and b <= f[2] and f[3] .. stack or nil
  end
end

-- A string ends as a name where the innermost bracket, with a mark behind it, says so.
places['"'] = function(b, stack)
  if b == 34 then
    return stack:sub(-1) == "k" and ":" .. stack:sub(1, -2) or done(stack)
  elseif b == 92 then
    return "\\" .. stack
  end
  return b >= 32 and begin_character(b, stack) or nil
end

places["\\"] = function(b, stack)
  if b == 117 then
    return "u4" .. stack
  end
  return ('"\\/bfnrt'):find(string.char(b), 1, true) and '"' .. stack or nil
end

places.u = function(b, rest)
  if not string.char(b):match "%x" then
    return nil
  end
  local n, stack = tonumber(rest:sub(1, 1)), rest:sub(2)
  return n > 1 and "u" .. n - 1 .. stack or '"' .. stack
end

-- Behind n blanks, in front of what is due.
places["~"] = function(b, rest)
  local n, state = rest:byte(), rest:sub(2)
  if is_space(b) then
    return n < BLANKS and "~" .. string.char(n + 1) .. state or nil
  end
  return places[state:sub(1, 1)](b, state:sub(2))
end

local function blank(state)
  return "~\1" .. state
end

places.v = function(b, stack)
  return is_space(b) and blank("v" .. stack) or value(b, stack)
end

places["]"] = function(b, stack)
  if b == 93 then
    return done(stack:sub(1, -2))
  end
  return is_space(b) and blank("]" .. stack) or value(b, stack)
end

places["}"] = function(b, stack)
  if b == 125 then
    return done(stack:sub(1, -2))
  end
  return places.n(b, stack, "}")
end

places.n = function(b, stack, here)
  if is_space(b) then
    return blank((here or "n") .. stack)
  end
  return b == 34 and '"' .. stack .. "k" or nil
end

places[":"] = function(b, stack)
  return is_space(b) and blank(":" .. stack) or b == 58 and "v" .. stack or nil
end

places[","] = function(b, stack)
  local inner = stack:sub(-1)
  if inner == "" then
    return nil -- the text ends where its value does
  elseif is_space(b) then
    return blank("," .. stack)
  elseif b == 44 then
    return (inner == "{" and "n" or "v") .. stack
  elseif b == (inner == "{" and 125 or 93) then
    return done(stack:sub(1, -2))
  end
end

-- Behind the digits of a number, where it may end.
local function after_number(b, stack)
  return places[","](b, stack)
end

places["-"] = function(b, stack)
  return b == 48 and "0" .. stack or is_digit(b) and "i" .. stack or nil
end

local function fraction(b, stack)
  if b == 46 then
    return "." .. stack
  end
  return (b == 101 or b == 69) and "e" .. stack or after_number(b, stack)
end

places["0"] = fraction

places.i = function(b, stack)
  return is_digit(b) and "i" .. stack or fraction(b, stack)
end

places["."] = function(b, stack)
  return is_digit(b) and "f" .. stack or nil
end

places.f = function(b, stack)
  if is_digit(b) then
    return "f" .. stack
  end
  return (b == 101 or b == 69) and "e" .. stack or after_number(b, stack)
end

places.e = function(b, stack)
  return (b == 43 or b == 45) and "s" .. stack or is_digit(b) and "E" .. stack or nil
end

places.s = function(b, stack)
  return is_digit(b) and "E" .. stack or nil
end

places.E = function(b, stack)
  return is_digit(b) and "E" .. stack or after_number(b, stack)
end

places.w = function(b, rest)
  if rest:byte() ~= b then
    return nil
  end
  local left = rest:sub(2)
  return left:sub(1, 1) == ";" and done(left:sub(2)) or "w" .. left
end

function Machine:step(state, byte)
  return places[state:sub(1, 1)](byte, state:sub(2))
end

local ENDS = { [","] = true, ["0"] = true, i = true, f = true, E = true }

function Machine:accepts(state)
  return #state == 1 and ENDS[state] == true
end

function Machine:is_last(state)
  return state == ","
end

places.o = function(b, stack)
  return b == 123 and "}" .. stack .. "{" or nil
end

-- The machine of a JSON value, or of an object.
function core.json_machine(object)
  return setmetatable({ start = object and "o" or "v" }, Machine)
end
