-- The man page and what shells complete, out of what the program says of itself: its options, commands and settings
-- stand in its own texts and nowhere else.
--
--   deepc scripts/shell_files.lua OUT
--
-- in the folder of the sources writes OUT/deepc.1 (vm/deepc.1.in with the lists filled in), OUT/deepc.bash, OUT/_deepc (zsh) and OUT/deepc.fish.

local out = assert(arg[1], "a folder is needed")
local program = arg[-1]

local function quoted(word)
  return "'" .. word:gsub("'", "'\\''") .. "'"
end

local function answer(...)
  local words = { "env -i", "DEEPC_CACHE=off", quoted(program) }
  for _, word in ipairs { ... } do
    words[#words + 1] = quoted(word)
  end
  local p = assert(io.popen(table.concat(words, " ") .. " </dev/null 2>&1"))
  local text = p:read "a"
  p:close()
  return text
end

local function read(path)
  local f <close> = assert(io.open(path))
  return f:read "a"
end

local function write(name, text)
  local f <close> = assert(io.open(out .. "/" .. name, "w"))
  assert(f:write(text))
end

-- ---- what there is ----

-- { word, usage, text } of the lines of `deepc --help`; the word is "check" or "--devices".
local commands, options = {}, {}
for line in answer("--help"):gmatch "[^\n]+" do
  local usage, text = line:match "^  (%S.-)  +(.+)$"
  local word = usage and usage:match "^%S+"
  if word and word:find "^%-" then
    options[#options + 1] = { word = word, usage = usage, text = text }
  elseif word and word:find "^%l[%l-]*$" then
    commands[#commands + 1] = { word = word, usage = usage, text = text }
  end
end
assert(#commands > 5 and #options > 5, "deepc --help lists no commands")

-- The options of a command, from its usage; { word, text or nil }
for _, command in ipairs(commands) do
  local usage, seen = answer(command.word, "--help"), {}
  command.options = {}
  local function add(word, text)
    if not seen[word] then
      seen[word] = { word = word, text = text }
      table.insert(command.options, seen[word])
    end
  end
  for line in usage:gmatch "[^\n]+" do
    local word, text = line:match "^  (%-%-?%a[%w-]*)%S*.-  +(.+)$"
    if word then
      add(word, text)
    end
  end
  for line in usage:gmatch "usage:[^\n]*" do
    for word in line:gmatch "%f[%-%w](%-%-?%a[%w-]*)" do
      add(word)
    end
  end
end

local settings = {}
do
  local name, default
  for line in answer("--options"):gmatch "[^\n]+" do
    if line:find "^ " and name then
      settings[#settings + 1] = { name = name, default = default, text = line:match "^%s*(.*)" }
      name = nil
    else
      name, default = line:match "^(%u[%u_]+)%s+default '(.-)'"
    end
  end
end
assert(#settings > 20, "deepc --options lists no settings")

-- What -l takes: modules with a page of their own.
local modules = {}
do
  local p = assert(io.popen "LC_ALL=C ls docs/reference")
  for name in p:read("a"):gmatch "(%S+)%.md" do
    if name ~= "README" then
      modules[#modules + 1] = name
    end
  end
  p:close()
end

-- ---- the page ----

local function roff(text)
  return (text:gsub("\\", "\\e"):gsub("%-", "\\-"):gsub("^([.'])", "\\&%1"))
end

-- A paragraph with a tag for each row.
local function tagged(list, tag, text)
  local lines = {}
  for _, row in ipairs(list) do
    lines[#lines + 1] = ".TP\n.B " .. roff(tag(row)) .. "\n" .. roff(text(row))
  end
  return table.concat(lines, "\n")
end

local function usage(row) return row.usage end
local function text(row)
  local name = row.text:find "^[%w-]+:" -- of a value
  return (name and row.text or row.text:sub(1, 1):upper() .. row.text:sub(2)) .. "."
end
local parts = {
  VERSION = answer("-v"):match "deepc ([%d.]+)",
  OPTIONS = tagged(options, usage, text),
  COMMANDS = tagged(commands, usage, text),
  SETTINGS = tagged(settings, function(row) return row.name end, function(row)
    return text(row) .. (row.default ~= "" and (" Default: %s."):format(row.default) or "")
  end),
}
write("deepc.1", (read("vm/deepc.1.in"):gsub("@(%u+)@", parts)))

-- ---- shells ----

local function words(list)
  local found = {}
  for i, row in ipairs(list) do
    found[i] = row.word
  end
  return table.concat(found, " ")
end

local bash = { [=[
# deepc                                                    -*- shell-script -*-
# Made by scripts/shell_files.lua.
_deepc() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command='' options='' i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        -e | -l | --ranks | --replay) ((i++)) ;;
        -*) ;;
        *) command=${COMP_WORDS[i]}; break ;;
        esac
    done
    case $prev in
    -e) return ;;
    -l) mapfile -t COMPREPLY < <(compgen -W "MODULES" -- "$cur"); return ;;
    --device | --ranks)
        mapfile -t COMPREPLY < <(compgen -W "$(deepc --devices 2>/dev/null | sed 's/ .*//')" -- "$cur")
        type __ltrimcolon_completions >/dev/null 2>&1 && __ltrimcolon_completions "$cur"
        return
        ;;
    esac
    case $command in
    '') options='OPTIONS' ;;]=] }
bash[1] = bash[1]:gsub("MODULES", (table.concat(modules, " "))):gsub("OPTIONS", (words(options)))
for _, c in ipairs(commands) do
  if #c.options > 0 then
    bash[#bash + 1] = ("    %s) options='%s' ;;"):format(c.word, words(c.options))
  end
end
bash[#bash + 1] = ([=[
    explain) options=$(deepc explain 2>/dev/null | grep -o '^ *DC[0-9]*') ;;
    esac
    if [[ $command = '' && $cur != -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W 'COMMANDS' -- "$cur")
    elif [[ $cur = -* || $command = explain ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
        return
    fi
    mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$cur")
}
complete -o filenames -F _deepc deepc
]=]):gsub("COMMANDS", (words(commands)))
write("deepc.bash", table.concat(bash, "\n"))

local function zsh_row(word, about)
  return quoted((word:gsub(":", "\\:")) .. (about and ":" .. about or ""))
end

local zsh = { "#compdef deepc", "# Made by scripts/shell_files.lua.", "",
  "local -a commands options", "commands=(" }
for _, c in ipairs(commands) do
  zsh[#zsh + 1] = "  " .. zsh_row(c.word, c.text)
end
zsh[#zsh + 1] = ")\noptions=("
for _, o in ipairs(options) do
  zsh[#zsh + 1] = "  " .. zsh_row(o.word, o.text)
end
zsh[#zsh + 1] = ([=[
)
case $words[CURRENT-1] in
  -e) return 1 ;;
  -l) compadd MODULES; return ;;
  --device|--ranks) compadd $(deepc --devices 2>/dev/null | sed "s/ .*//"); return ;;
esac
if (( CURRENT == 2 )) || [[ $words[CURRENT-1] = -* && -z ${(M)words[2,CURRENT-1]:#[a-z]*} ]]; then
  if [[ $PREFIX = -* ]]; then
    _describe -o option options
  else
    _describe command commands
    _files
  fi
  return
fi
case $words[2] in]=]):gsub("MODULES", (table.concat(modules, " ")))
for _, c in ipairs(commands) do
  if #c.options > 0 then
    local rows = {}
    for i, o in ipairs(c.options) do
      rows[i] = zsh_row(o.word, o.text)
    end
    zsh[#zsh + 1] = ("  %s) options=(%s) ;;"):format(c.word, table.concat(rows, " "))
  end
end
zsh[#zsh + 1] = [=[
  explain) compadd $(deepc explain 2>/dev/null | grep -o '^ *DC[0-9]*'); return ;;
  *) options=() ;;
esac
if [[ $PREFIX = -* ]]; then
  _describe -o option options
else
  _files
fi
]=]
write("_deepc", table.concat(zsh, "\n"))

local fish = { "# Made by scripts/shell_files.lua." }
local function add(condition, rest)
  fish[#fish + 1] = ("complete -c deepc %s%s"):format(condition and "-n " .. quoted(condition) .. " " or "", rest)
end
-- -l is a long option of one letter to fish, -o an old one of several
local function flag(word)
  return word:match "^%-%-(.+)" and "-l " .. word:sub(3) or #word == 2 and "-s " .. word:sub(2) or nil
end
for _, c in ipairs(commands) do
  add("__fish_use_subcommand", ("-a %s -d %s"):format(c.word, quoted(c.text)))
  for _, o in ipairs(c.options) do
    if flag(o.word) then
      add("__fish_seen_subcommand_from " .. c.word, flag(o.word) .. (o.text and " -d " .. quoted(o.text) or "")
        .. (o.word == "--device" and " -x -a \"(deepc --devices 2>/dev/null | string replace -r ' .*' '')\"" or ""))
    end
  end
end
for _, o in ipairs(options) do
  local f = flag(o.word)
  if f then
    local value = o.word == "-l" and " -x -a " .. quoted(table.concat(modules, " "))
      or o.word == "--ranks" and " -x -a \"(deepc --devices 2>/dev/null | string replace -r ' .*' '')\""
      or o.word == "-e" and " -x" or o.word == "--replay" and " -r" or ""
    add("__fish_use_subcommand", f .. " -d " .. quoted(o.text) .. value)
  end
end
add("__fish_seen_subcommand_from explain", "-f -a \"(deepc explain 2>/dev/null | string match -r 'DC[0-9]+')\"")
write("deepc.fish", table.concat(fish, "\n") .. "\n")
