-- The report of deepc doctor as a text and as JSON.

local json = require "deepc.tokenizers.json"

local text = {}

-- ---- while it goes on ----

-- A function that shows what is being done, on a terminal alone; without an argument it takes that away.
function text.progress(quiet)
  local f = not quiet and os.getenv "TERM" and os.getenv "TERM" ~= "dumb" and io.open "/dev/tty"
  if f then
    f:close()
  end
  return function(what)
    if f then
      io.stderr:write("\r\27[K", what and what .. " ..." or "")
      io.stderr:flush()
    end
  end
end

-- ---- numbers ----

local function size_of(bytes)
  if bytes < 1 << 30 then
    return ("%.0f MiB"):format(bytes / (1 << 20))
  end
  return ("%.1f GiB"):format(bytes / (1 << 30))
end

local function number(x)
  return (x < 10 and "%.2f" or x < 100 and "%.1f" or "%.0f"):format(x)
end

local function one_and_all(one, all, cores, unit)
  if not all then
    return "failed"
  elseif not one then
    return ("%s %s"):format(number(all), unit)
  end
  return ("%s %s on one thread, %s on %d"):format(number(one), unit, number(all), cores)
end

-- ---- lines ----

local function machine_lines(add, r)
  local m = r.machine
  local cores = m.cores == m.cores_online and ("%d cores"):format(m.cores)
    or ("%d of %d cores"):format(m.cores, m.cores_online)
  if m.core_quota and m.core_quota < m.cores then
    cores = ("%s, the time of %s"):format(cores, number(m.core_quota))
  end
  add("deepc", ("%s, %s, %s"):format(r.version, r.lua, r.program))
  add("processor", ("%s, %s%s; %s"):format(m.processor, m.instructions,
    #m.extensions > 0 and " with " .. table.concat(m.extensions, ", ") or "", cores))
  if m.memory then
    add("memory", size_of(m.memory) .. (m.memory_free and ", " .. size_of(m.memory_free) .. " free" or "")
      .. (m.memory_limit and "; the control group allows " .. size_of(m.memory_limit) or ""))
  end
  local c = r.cache
  add("cache", c.path == "" and "none: DEEPC_CACHE is off, or there is no HOME" or c.why ~= "" and
    ("%s is not used: %s"):format(c.path, c.why) or
    ("%s: %d programs, %s of at most %s"):format(c.path, c.files, size_of(c.bytes), size_of(c.most)))
  for i, setting in ipairs(r.settings) do
    add(i == 1 and "settings" or "", setting)
  end
  add("C compiler", r.c_compiler or "absent; the device cpu:cc needs one")
end

local function device_lines(add, r)
  for _, d in ipairs(r.devices) do
    add(d.name, (d.usable or d.broken) and d.about or "absent: " .. d.about)
    local t = d.test
    if t and t.failed then
      add("", "broken: " .. t.failed)
    elseif t then
      add("", #t.wrong > 0 and ("wrong: %s"):format(table.concat(t.wrong, "; ")) or
        ("%d functions agree with the interpreter to %.1g, in %.1f s"):format(t.cases, t.largest, t.seconds))
    end
  end
end

local function library_lines(add, r)
  for _, l in ipairs(r.libraries) do
    if l.path then
      add(l.name, (l.version and l.version .. ", " or "") .. l.path)
    else
      add(l.name, (l.off and "switched off" or l.broken and "broken: " .. l.broken or "absent") .. "; for: " .. l.use)
    end
  end
end

local function speed_lines(add, r)
  local s, cores = r.speed, r.machine.cores
  local function ms(value)
    return value and number(value) .. " ms" or "failed"
  end
  add("compiling", ("%s for a kernel; the first one, with the compiler's start, %s"):format(ms(s.compile_next_ms),
    ms(s.compile_first_ms)))
  add("product", "f32, 1024 x 1024: " .. one_and_all(s.product_gflops_1, s.product_gflops, cores, "GFLOP/s"))
  add("copy", "64 MiB: " .. one_and_all(s.copy_gbs_1, s.copy_gbs, cores, "GB/s, read and written"))
  add("training", ("%s for a step: 784-256-10, a batch of 64, Adam"):format(ms(s.training_ms)))
  add("start", ("%s; to the end of a first step %s, %s with its kernels in the cache"):format(ms(s.start_ms),
    ms(s.start_cold_ms), ms(s.start_warm_ms)))
end

-- A heading, and rows whose first words have one width.
local function section(out, heading, fill, r)
  local rows, width = {}, 10
  fill(function(name, line)
    rows[#rows + 1] = { name, line }
    width = math.max(width, #name)
  end, r)
  out[#out + 1] = heading
  for _, row in ipairs(rows) do
    out[#out + 1] = ("  %-" .. width .. "s  %s"):format(row[1], row[2])
  end
  out[#out + 1] = ""
end

local function list(out, heading, lines)
  if #lines > 0 then
    out[#out + 1] = heading
    for _, line in ipairs(lines) do
      out[#out + 1] = "  " .. line
    end
    out[#out + 1] = ""
  end
end

function text.report(r)
  local out = {}
  section(out, "this machine", machine_lines, r)
  section(out, "devices", device_lines, r)
  section(out, "libraries, opened when they are needed", library_lines, r)
  if r.speed then
    section(out, ("speed of %s"):format(r.device), speed_lines, r)
  end
  list(out, "missing; to install it", r.install and { r.install } or {})
  list(out, "missing, and in no package known here", r.advice)
  list(out, "broken", r.broken)
  out[#out + 1] = r.usable and (r.device and "deepc works here." or
    "deepc works here, on the interpreter alone, which is slow: LLVM or a C compiler is missing.")
    or ("%d thing%s broken."):format(#r.broken, #r.broken == 1 and " is" or "s are")
  return table.concat(out, "\n")
end

-- ---- JSON ----

-- Lists stay lists where they are empty; numbers that JSON does not have do not occur.
local function plain(x)
  if type(x) ~= "table" then
    return x
  elseif next(x) == nil then
    return json.empty
  end
  local copy = {}
  for k, v in pairs(x) do
    if #x == 0 or math.type(k) == "integer" then -- libraries are a list that has names, too
      copy[k] = plain(v)
    end
  end
  return copy
end

function text.json(report)
  local written = json.write(plain(report), error, 2)
  return written
end

return text
