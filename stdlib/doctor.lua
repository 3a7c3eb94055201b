-- deepc doctor: what deepc --devices lists, whether it computes what the interpreter does, and what could be installed.
--
-- Drivers, compilers and libraries may end the process that asks them: each is asked in one of its own, a `deepc -e`.

local dc = require "deepc"
local _, core = ...

local doctor = {}

local PATIENCE = 120 -- seconds for a device: drivers of OpenCL compile slowly

-- What deepc prints that is called with this setting and these words, and how it failed, or nil.
local function ask(setting, words)
  local command = ("env %s timeout %d /proc/$PPID/exe %s 2>&1 </dev/null"):format(setting, PATIENCE, words)
  local p = assert(io.popen(command))
  local text = p:read "a"
  local fine, _, status = p:close()
  return text, not fine and (status == 124 and ("did not end within %d s"):format(PATIENCE)
    or status > 128 and ("ended its process by signal %d"):format(status - 128)
    or "failed: " .. (text:match "deepc: ([^\n]*)" or "status " .. status)) or nil
end

local function quoted(word)
  return "'" .. word:gsub("'", "'\\''") .. "'"
end

-- ---- is it right? ----

-- Random numbers, made here: no device has a part in it.
local function random(dtype, of, ...)
  local n, list = 1, {}
  for _, size in ipairs { ... } do
    n = n * size
  end
  for i = 1, n do
    list[i] = of()
  end
  return dc.tensor(list, ("%s[%d]"):format(dtype, n)):reshape(...)
end

local function reals(...) return random("f32", function() return 4 * math.random() - 2 end, ...) end
local function integers(most, n) return random("i32", function() return math.random(0, most) end, n) end

-- Rows: a typed function, how far off it may be beside the largest value, its arguments.
local function cases()
  return {
    { dc.fn("elements(x: f32[n, m], y: f32[n, m]) -> f32[n, m]", function(x, y)
      return (x * y + x:tanh()):exp() * (y:abs() + 1):log() - x:sigmoid() / (y:square() + 1)
    end), 1e-5, reals(37, 53), reals(37, 53) },
    { dc.fn("rows(x: f32[n, m]) -> f32[n, m], f32[n], f32[m], i32[n]", function(x)
      return x:softmax(2), x:logsumexp(2), x:mean(1), x:argmax(2)
    end), 1e-5, reals(61, 130) },
    { dc.fn("product(a: f32[n, k], b: f32[k, m], c: f32[m]) -> f32[n, m]", function(a, b, c)
      return (a:matmul(b) + c):relu()
    end), 1e-5, reals(67, 129), reals(129, 45), reals(45) },
    { dc.fn("convolution(x: f32[b, c, h, w], k: f32[o, c, 3, 3]) -> f32[o, c, 3, 3], f32[b, c, h, w]", function(x, k)
      local by = dc.grad(dc.conv2d(x, k, { padding = 1 }):tanh():square():sum(), { k, x })
      return by[1], by[2]
    end), 1e-4, reals(2, 3, 11, 13), reals(5, 3, 3, 3) },
    { dc.fn("integers(a: i32[n], b: i32[n]) -> i32[n], i64[], i64[n]", function(a, b)
      return (a * b + 7):bit_xor(b) // 3 - a % 5, a:sum(), (a - b):cumsum(1)
    end), 0, integers(1000, 300), integers(1000, 300) },
    { dc.fn("indices(x: f32[v, m], i: i32[n]) -> f32[n, m], f32[v, m]", function(x, i)
      local taken = x:take(i, 1)
      return taken, dc.grad((taken * taken):sum(), x)
    end), 1e-5, reals(50, 17), integers(49, 90) },
  }
end

-- The largest difference of two results, beside the value that there should be, which is of the interpreter.
local function difference(got, want)
  got, want = got:to "eval":cast "f64", want:cast "f64"
  return ((got - want):abs() / (want:abs() + 1)):max():item()
end

-- In a process whose DEEPC_DEVICE is looked at: prints a line; an error ends it.
function doctor.test()
  math.randomseed(20)
  local list, largest = cases(), 0
  for _, case in ipairs(list) do
    local f, most, there = case[1], case[2], {}
    for i = 3, #case do
      there[i - 2] = case[i]:to "eval"
    end
    local got, want = table.pack(f(table.unpack(case, 3))), table.pack(f(table.unpack(there)))
    for i = 1, want.n do
      local off = difference(got[i], want[i])
      if off > most or off ~= off then
        dc.fail(("%s computes something else than the interpreter: %.2g off"):format(f.name, off))
      end
      largest = math.max(largest, off)
    end
  end
  if dc.stats().fallbacks > 0 then
    dc.fail(("%d functions fall back to the interpreter"):format(dc.stats().fallbacks))
  end
  print(("%d functions agree with the interpreter to %.0e"):format(#list, largest))
end

-- ---- libraries ----

-- Opened where they are needed: title, use, setting that names another, files, packages of Debian, Fedora and Arch.
local libraries = {
  { "LAPACK", "deepc.linalg", "DEEPC_LAPACK",
    { "libopenblas.so.0", "liblapack.so.3", "libopenblas.so", "liblapack.so" },
    "libopenblas0-serial", "openblas-serial", "openblas" },
  { "TurboJPEG", "JPEG files", nil, { "libturbojpeg.so.0" }, "libturbojpeg0", "turbojpeg", "libjpeg-turbo" },
  { "libsndfile", "FLAC and Ogg files", nil, { "libsndfile.so.1" }, "libsndfile1", "libsndfile", "libsndfile" },
  { "libcurl", "data.fetch", nil, { "libcurl.so.4" }, "libcurl4", "libcurl", "curl" },
  { "PCRE2", "unusual tokenizers", nil, { "libpcre2-8.so.0" }, "libpcre2-8-0", "pcre2", "pcre2" },
  { "libbz2", "archives by bzip2", nil, { "libbz2.so.1.0" }, "libbz2-1.0", "bzip2-libs", "bzip2" },
  { "liblzma", "archives by LZMA", nil, { "liblzma.so.5" }, "liblzma5", "xz-libs", "xz" },
}

-- The column of packages and the command that takes them, by what /etc/os-release says; nil where they are not known.
local function packages()
  local f <close> = io.open "/etc/os-release"
  local about = "\n" .. (f and f:read "a" or "")
  for i, row in ipairs { { "debian", "apt-get install" }, { "fedora", "dnf install" }, { "arch", "pacman -S" } } do
    if about:find("\nID[_LIKE]*=[^\n]*" .. row[1]) then
      return 4 + i, row[2]
    end
  end
end

-- Prints their state; what could be installed; what is named and cannot be opened goes to `broken`.
local function look_at_libraries(broken, missing)
  local column, command = packages()
  print "libraries, opened when they are needed"
  for _, row in ipairs(libraries) do
    local named, found, why = row[3] and os.getenv(row[3]), nil, nil
    for _, name in ipairs(named and { named } or row[4]) do
      local code = ("assert(package.loadlib(%q, '*'))"):format(name)
      if not found then
        _, why = ask("DEEPC_DEVICE=eval", "-e " .. quoted(code))
        found = not why and name
      end
    end
    print(("  %-10s %s"):format(row[1], core.foreign(found or "absent; for: " .. row[2])))
    broken[#broken + 1] = named and why and ("%s=%s: %s"):format(row[3], named, why) or nil
    missing[#missing + 1] = not found and row[column or 1] or nil
  end
  if #missing > 0 then
    print(("\nto install:\n  %s %s"):format(command or "", table.concat(missing, " ")))
  end
end

-- ---- devices ----

-- Prints what --devices lists, with a test of each that works; how many compile, and what is broken.
local function look_at_devices(only, broken, missing)
  local text, why = ask("", "--devices")
  local named, compile, known = os.getenv "DEEPC_DEVICE", 0, {}
  print "devices"
  local function test(name, about)
    print(("  %-10s %s"):format(core.foreign(name), core.foreign(about)))
    known[name] = true
    if name == "eval" or about:find "^absent: " or only and only ~= name then
      return
    end
    local said, failed = ask("DEEPC_COMPILE=now DEEPC_CACHE=off DEEPC_DEVICE=" .. quoted(name),
      "-e 'require(\"deepc.doctor\").test()'")
    broken[#broken + 1] = failed and name .. ": " .. failed or nil
    compile = compile + (failed and 0 or 1)
    print("             " .. core.foreign(failed or said:match "([^\n]*)\n*$"))
  end
  for name, about in text:gmatch "([%w:]+) +([^\n]*)\n" do
    if not name:find "^sim:" then
      test(name, about)
    end
  end
  if named and named ~= "" and not known[named] then
    test(named, "named by DEEPC_DEVICE")
  end
  broken[#broken + 1] = (why or text:match "\n +(the next one ended[^\n]*)") or nil
  missing[#missing + 1] = text:find "^cpu +absent: " and "libllvm19" or nil
  return compile
end

function doctor.doctor(words)
  local o = dc.options({
    about = "What there is to compute on, with a test of each, and which libraries are missing. Ends with 1 if\n"
      .. "something is there and does not work, not if it is only absent.",
    { "device", nil, "of devices, only this one is tested", value = "NAME" } }, words)
  if os.getenv "DEEPC_ALLOW" == "compute" then
    dc.fail "doctor: DEEPC_ALLOW=compute: it starts processes, which this forbids"
  end
  local broken, missing = {}, {}
  local compile = look_at_devices(o.device, broken, missing)
  look_at_libraries(broken, missing)
  if #broken > 0 then
    dc.fail("doctor: what is here does not all work:\n  " .. table.concat(broken, "\n  "))
  end
  print("\ndeepc works here" .. (compile == 0 and not o.device and ", on the interpreter alone." or "."))
end

return doctor
