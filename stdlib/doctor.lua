-- deepc doctor: what is on this machine, what is missing, and a short test of it (vm/doctor_main.c).
--
-- A report is a table: facts first, then what the parts of the test found. It is printed as a text or as JSON. What is
-- broken - there, but not working - is a list of sentences; what is merely absent is no fault.

local dc = require "deepc"
local _, core = ...
local machine = require "deepc.doctor.machine"
local parts = require "deepc.doctor.parts"

local doctor = {}

-- ---- parts, in processes of their own ----

local signals = { [4] = "illegal instruction", [6] = "abort", [7] = "bus error", [8] = "arithmetic", [9] = "killed",
  [11] = "segmentation fault" }

-- part(words, variables, seconds): runs `deepc doctor --part WORDS`.
local function new_part(system)
  local part = setmetatable({}, { __call = function(_, words, variables, seconds)
    local argv, given = { system.exe, "doctor", "--part", table.unpack(words) }, { "DEEPC_MPI=off" }
    table.move(variables, 1, #variables, 2, given)
    local r, why = system.run(argv, given, seconds)
    return r or { out = "", err = why, how = "start", number = 0, seconds = 0, kib = 0 }
  end })

  function part.failed(r)
    return r.how ~= "exit" or r.number ~= 0
  end

  -- How it ended, as the end of a sentence.
  function part.ended(r)
    if r.how == "signal" then
      local name = signals[r.number]
      return ("ended the process that asked it, by signal %d%s"):format(r.number, name and " (" .. name .. ")" or "")
    elseif r.how == "time" then
      return ("did not end within %.0f s"):format(r.seconds)
    end
    local words = r.err:match "([^\n]*)\n*$"
    for line in r.err:gmatch "[^\n]+" do
      words = line:match "^deepc: (.*)" or words
    end
    return "failed: " .. (words ~= "" and words or "status " .. r.number)
  end

  return part
end

-- ---- devices ----

local kinds = { "cpu", "cpu:cc", "eval", "cuda", "opencl" }

-- All there are: { name, usable, about, broken }.
local function find_devices(part)
  local list = {}
  for _, kind in ipairs(kinds) do
    local r = part({ "devices", kind }, {}, 60)
    for name, usable, about in r.out:gmatch "([^\t\n]+)\t([01])\t([^\n]*)" do
      list[#list + 1] = { name = name, usable = usable == "1", about = about }
    end
    if part.failed(r) then
      list[#list + 1] = { name = kind, usable = false, about = part.ended(r), broken = true }
    end
  end
  return list
end

local LONG = 120 -- seconds that a device may take: drivers of OpenCL compile slowly

-- Does it compute what the interpreter does? Fills in d.test, and d.broken.
local function test_device(part, d)
  local r = part({ "test", "right" }, { "DEEPC_DEVICE=" .. d.name, "DEEPC_CACHE=off", "DEEPC_COMPILE=now" }, LONG)
  local t = { cases = 0, largest = 0, wrong = {} }
  local begun
  for line in r.out:gmatch "[^\n]+" do
    local words = {}
    for word in line:gmatch "[^\t]+" do
      words[#words + 1] = word
    end
    if words[1] == "begin" then
      begun = words[2]
    elseif words[1] == "case" then
      t.cases, begun = t.cases + 1, nil
      t.largest = math.max(t.largest, tonumber(words[4]) or 0)
      if words[3] ~= "ok" then
        t.wrong[#t.wrong + 1] = ("%s: %s off"):format(words[2], words[4])
      end
    elseif words[1] == "right" then
      t.fallbacks, t.seconds = tonumber(words[2]), tonumber(words[3])
    end
  end
  if part.failed(r) then
    t.failed = (begun and begun .. ": " or "") .. part.ended(r)
  elseif not t.seconds then
    t.failed = "its test printed no result"
  elseif t.fallbacks > 0 then
    t.failed = ("%d functions fall back to the interpreter: %s"):format(t.fallbacks,
      r.err:match "falls back to the interpreter: ([^\n]*)" or "")
  end
  d.test = t
  d.broken = t.failed ~= nil or #t.wrong > 0
end

-- ---- speed ----

-- The numbers behind the first word of lines, by that word; nil and how it ended where the part failed.
local function numbers(part, name, variables)
  local r = part({ "test", name }, variables, LONG)
  if part.failed(r) then
    return nil, part.ended(r)
  end
  local found = {}
  for line in r.out:gmatch "[^\n]+" do
    local key, value, more = line:match "^(%w+)\t([^\t]+)\t?(.*)$"
    if key == "compile" then
      key, value, more = "compile_" .. value, more, nil
    end
    if key then
      found[key] = tonumber(value)
      if more == "wrong" then
        return nil, "the loss of a training step does not fall"
      end
    end
  end
  return found
end

local function measure(system, part, device, cores, broken)
  local at, speed = "DEEPC_DEVICE=" .. device, {}
  local function run(name, ...)
    local found, why = numbers(part, name, { at, "DEEPC_COMPILE=now", ... })
    if not found then
      broken[#broken + 1] = ("%s, %s: %s"):format(device, name, why)
    end
    return found or {}
  end
  local compiling = run("compiling", "DEEPC_CACHE=off")
  speed.compile_first_ms, speed.compile_next_ms = compiling.compile_first, compiling.compile_next
  local folder = system.folder()
  local kept = "DEEPC_CACHE=" .. (folder and folder .. "/cache" or "off")
  local all = run("speed", kept)
  speed.product_gflops, speed.copy_gbs = all.product, all.copy
  if device:find "^cpu" and cores > 1 then
    local one = run("speed", kept, "DEEPC_THREADS=1")
    speed.product_gflops_1, speed.copy_gbs_1 = one.product, one.copy
  end
  if folder then
    system.remove(folder)
  end
  folder = system.folder()
  kept = "DEEPC_CACHE=" .. (folder and folder .. "/cache" or "off")
  for _, when in ipairs(folder and { "cold", "warm" } or { "cold" }) do
    local r = part({ "test", "start" }, { at, kept }, LONG)
    speed["start_" .. when .. "_ms"] = not part.failed(r) and r.seconds * 1e3 or nil
    speed["start_" .. when .. "_mib"] = not part.failed(r) and r.kib / 1024 or nil
  end
  speed.training_ms = run("training", kept).training
  if folder then
    system.remove(folder)
  end
  for _ = 1, 5 do
    local r = system.run({ system.exe, "-e", "require 'deepc'" }, { at }, 20)
    if r and not part.failed(r) then
      speed.start_ms = math.min(speed.start_ms or math.huge, r.seconds * 1e3)
    end
  end
  return speed
end

-- ---- the report ----

local function find_compiler(system)
  local cc = os.getenv "DEEPC_CC" or "cc"
  return system.program(cc:match "^%S*")
end

-- What is there and does not work.
local function find_broken(report)
  local broken = report.broken
  for _, d in ipairs(report.devices) do
    if d.broken and d.test then
      for _, text in ipairs(d.test.wrong) do
        broken[#broken + 1] = ("%s computes something else than the interpreter: %s"):format(d.name, text)
      end
      broken[#broken + 1] = d.test.failed and d.name .. ": " .. d.test.failed or nil
    elseif d.broken then
      broken[#broken + 1] = ("%s: looking for it %s"):format(d.name, d.about)
    end
  end
  for _, l in ipairs(report.libraries) do
    broken[#broken + 1] = l.broken and ("%s: %s"):format(l.name, l.broken) or nil
  end
  if report.cache.why ~= "" then
    broken[#broken + 1] = ("the cache %s is not used: %s"):format(report.cache.path, report.cache.why)
  end
end

local function exists(path)
  local f <close> = io.open(path)
  return f ~= nil
end

-- What this machine has hardware for.
local function find_wants(report)
  local nvidia = exists "/proc/driver/nvidia/version" or exists "/dev/nvidiactl"
  return { nvrtc = nvidia or report.libraries.cuda.path, cuda = nvidia, opencl = exists "/dev/dri/renderD128" }
end

-- The device whose speed is measured: what DEEPC_DEVICE names, or the first that works.
local function choose_device(part, report)
  local named = os.getenv "DEEPC_DEVICE" or ""
  local base = named:match "^cpu:cc" or named:match "^%a+"
  local asked, first
  for _, d in ipairs(report.devices) do
    local works = d.usable and not d.broken and d.name ~= "eval"
    first = first or works and d or nil
    asked = asked or (d.name == named or d.name == named .. ":0" or d.name == base) and d or nil
  end
  if named == "" then
    return first and first.name
  elseif asked and not asked.usable then
    report.broken[#report.broken + 1] = not asked.broken and ("DEEPC_DEVICE=%s: %s"):format(named, asked.about) or nil
    return nil
  elseif asked and (asked.broken or asked.name == "eval") then
    return nil
  end
  local r = part({ "test", "nothing" }, {}, LONG) -- opens it: there may be no cuda:7, no cpu:avx512
  if part.failed(r) then
    report.broken[#report.broken + 1] = ("DEEPC_DEVICE=%s %s"):format(named, part.ended(r))
    return nil
  end
  return named
end

-- Tests devices and their speed; fills in the report.
local function test(system, part, options, report, say)
  for _, d in ipairs(report.devices) do
    if d.usable and d.name ~= "eval" and (options.device or d.name) == d.name then
      say(d.name)
      test_device(part, d)
    end
  end
  report.device = choose_device(part, report)
  if report.device and not options.quick then
    say("speed of " .. report.device)
    report.speed = measure(system, part, report.device, report.machine.cores, report.broken)
  end
end

-- say(text): told while it goes on.
local function examine(system, options, say)
  local part = new_part(system)
  local report = { version = system.version, lua = system.lua, program = system.exe, broken = {} }
  report.machine, report.settings = machine.facts(system), system.settings()
  report.cache = system.cache()
  report.c_compiler = find_compiler(system)
  say "libraries"
  report.libraries = machine.find_libraries(system, part)
  say "devices"
  report.devices = find_devices(part)
  local from = system.now()
  test(system, part, options, report, say)
  report.test_seconds = system.now() - from
  find_broken(report)
  report.install, report.advice = machine.advice(report.libraries, find_wants(report))
  report.usable = #report.broken == 0
  return report
end

-- run(system, arguments): the status of the program.
function doctor.run(system, args)
  if args[1] == "--part" and parts[args[2]] then
    parts[args[2]](system, table.unpack(args, 3))
    return 0
  end
  local options = dc.options({
    about = "What is on this machine and what is missing, with a test of some ten seconds.\n"
      .. "Ends with 1 if something is there and does not work, not if it is only absent.",
    { "json", false, "the report as JSON" },
    { "quick", false, "without the speeds" },
    { "device", nil, "of devices, only this one is tested", value = "NAME" } }, args)
  if os.getenv "DEEPC_ALLOW" == "compute" then
    dc.fail "doctor: DEEPC_ALLOW=compute: it starts processes, which this forbids"
  end
  local text = require "deepc.doctor.text"
  local say = text.progress(options.json)
  local report = examine(system, options, say)
  say()
  print(options.json and text.json(report) or core.foreign(text.report(report), true))
  return report.usable and 0 or 1
end

return doctor
