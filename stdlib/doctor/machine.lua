-- What deepc doctor finds on the machine without computing: processor, memory, libraries, packages that are missing.

local machine = {}

local function first_line(path)
  local f <close> = io.open(path)
  return f and f:read "l"
end

-- ---- processor, memory ----

-- What x86-64-v4, v3 and v2 need beyond the one below, as /proc/cpuinfo calls it.
local levels = {
  { "x86-64-v4", "avx512f avx512vl avx512bw avx512cd avx512dq" },
  { "x86-64-v3", "avx2 fma f16c bmi1 bmi2" },
  { "x86-64-v2", "sse4_2 ssse3 popcnt cx16" },
}
local extras = { avx512_bf16 = "bf16", avx512_fp16 = "fp16", avx512_vnni = "vnni", amx_tile = "AMX" }

local function level_of(flags)
  for i, row in ipairs(levels) do
    local all = true
    for j = i, #levels do
      for word in levels[j][2]:gmatch "%S+" do
        all = all and flags[word]
      end
    end
    if all then
      return row[1]
    end
  end
  return "x86-64"
end

local function processor()
  local name, flags, found = "unknown", {}, {}
  local f <close> = io.open "/proc/cpuinfo"
  for line in f and f:lines() or next, nil do
    local key, value = line:match "^([%w ]-)%s*:%s*(.*)$"
    if key == "model name" then
      name = value
    elseif key == "flags" then
      for word in value:gmatch "%S+" do
        flags[word] = true
      end
      break
    end
  end
  for flag, word in pairs(extras) do
    if flags[flag] then
      found[#found + 1] = word
    end
  end
  table.sort(found)
  return name, level_of(flags), found
end

-- Bytes, and what a control group leaves of them; nil where it is not known.
local function memory()
  local bytes = {}
  local f <close> = io.open "/proc/meminfo"
  for line in f and f:lines() or next, nil do
    local key, value = line:match "^(%w+):%s*(%d+) kB"
    if key then
      bytes[key] = tonumber(value) * 1024
    end
  end
  local limit = tonumber(first_line "/sys/fs/cgroup/memory.max" or first_line
    "/sys/fs/cgroup/memory/memory.limit_in_bytes")
  return bytes.MemTotal, bytes.MemAvailable, limit and limit < (bytes.MemTotal or math.huge) and limit or nil
end

-- How many cores' time a control group gives; nil: all.
local function quota()
  local most, period = (first_line "/sys/fs/cgroup/cpu.max" or ""):match "^(%d+) (%d+)"
  return most and tonumber(most) / tonumber(period) or nil
end

function machine.facts(system)
  local name, level, found = processor()
  local total, free, limit = memory()
  local cores, all = system.cores()
  return {
    processor = name, instructions = level, extensions = found, cores = cores, cores_online = all, core_quota = quota(),
    memory = total, memory_free = free, memory_limit = limit,
  }
end

-- ---- libraries ----

-- A row of each library that is opened where it is needed: its files in the order in which they are tried, the setting
-- that names another one, what it says of its version, what is missing without it, and the packages that have it.
-- off: the setting may be "off". wanted: where doctor advises to install it (else where there is a device for it).
-- read: the version out of what it says, where that is not a number with points.
machine.libraries = {
  { key = "llvm", title = "LLVM", setting = "DEEPC_LLVM", use = "compiles kernels for the CPU", wanted = true,
    debian = "libllvm19", fedora = "llvm-libs", arch = "llvm-libs" },
  { key = "lapack", title = "LAPACK", setting = "DEEPC_LAPACK", use = "deepc.linalg", wanted = true,
    files = { "libopenblas.so.0", "liblapack.so.3", "libopenblas.so", "liblapack.so" },
    version = { "openblas_get_config", "text" },
    debian = "libopenblas0-serial", fedora = "openblas-serial", arch = "openblas" },
  { key = "edit", title = "libedit", use = "editing at the prompt", wanted = true,
    debian = "libedit2", fedora = "libedit", arch = "libedit" },
  { key = "jpeg", title = "TurboJPEG", files = { "libturbojpeg.so.0" }, use = "JPEG files", wanted = true,
    debian = "libturbojpeg0", fedora = "turbojpeg", arch = "libjpeg-turbo" },
  { key = "sndfile", title = "libsndfile", files = { "libsndfile.so.1" }, use = "FLAC and Ogg files", wanted = true,
    version = { "sf_version_string", "text" }, debian = "libsndfile1", fedora = "libsndfile", arch = "libsndfile" },
  { key = "bz2", title = "libbz2", files = { "libbz2.so.1.0" }, use = "archives by bzip2",
    version = { "BZ2_bzlibVersion", "text" }, debian = "libbz2-1.0", fedora = "bzip2-libs", arch = "bzip2" },
  { key = "lzma", title = "liblzma", files = { "liblzma.so.5" }, use = "archives by LZMA",
    version = { "lzma_version_string", "text" }, debian = "liblzma5", fedora = "xz-libs", arch = "xz" },
  { key = "curl", title = "libcurl", files = { "libcurl.so.4" }, use = "data.fetch", wanted = true,
    version = { "curl_version", "text" }, debian = "libcurl4", fedora = "libcurl", arch = "curl" },
  { key = "pcre2", title = "PCRE2", files = { "libpcre2-8.so.0" }, use = "unusual tokenizers", wanted = true,
    debian = "libpcre2-8-0", fedora = "pcre2", arch = "pcre2" },
  { key = "opencl", title = "OpenCL", setting = "DEEPC_OPENCL", files = { "libOpenCL.so.1" },
    use = "devices opencl:N, with a driver", debian = "ocl-icd-libopencl1", arch = "ocl-icd" },
  { key = "cuda", title = "CUDA driver", setting = "DEEPC_CUDA", files = { "libcuda.so.1" }, use = "devices cuda:N",
    hint = "NVIDIA's driver, version 525 or later" },
  { key = "nvrtc", title = "NVRTC", setting = "DEEPC_NVRTC", files = { "libnvrtc.so.13", "libnvrtc.so.12" },
    folders = { "/usr/local/cuda/lib64" }, version = { "nvrtcVersion", "two" }, use = "compiles kernels for cuda:N",
    hint = "NVRTC of CUDA 12 or 13: NVIDIA's toolkit, or pip install nvidia-cuda-nvrtc and DEEPC_NVRTC" },
  { key = "nccl", title = "NCCL", setting = "DEEPC_NCCL", off = true, files = { "libnccl.so.2" },
    version = { "ncclGetVersion", "one" },
    read = function(s)
      local n = tonumber(s) or 0
      return ("%d.%d.%d"):format(n // 10000, n // 100 % 100, n % 100)
    end,
    use = "exchange between GPUs" },
  { key = "mpi", title = "MPI", setting = "DEEPC_MPI", off = true,
    version = { "MPI_Get_library_version", "name" },
    read = function(s) return s:match "^[^,:]*" end,
    files = { "libmpi.so.40", "libmpi.so.80", "libmpich.so.12", "libmpi.so.12", "libmpi_cray.so.12", "libmpi_abi.so.1",
      "libmpi_abi.so.0", "libmpi_abi.so" }, use = "ranks that mpirun starts" },
}

-- A library that is there and cannot be opened has other words than one that is not there.
local function is_absent(why)
  return why:find "cannot open shared object file: No such file" ~= nil
end

-- Which of the names is there, in a process of its own (parts.library): a library that is damaged may end it.
-- Gives what was found, or what is broken.
local function try(part, row, names)
  local words = { "library", row.version and row.version[1] or "", row.version and row.version[2] or "",
    table.unpack(names) }
  local r, broken, last = part(words, {}, 20), nil, nil
  for line in r.out:gmatch "[^\n]+" do
    local kind, a, b = line:match "^(%l+)\t([^\t]*)\t?(.*)$"
    if kind == "found" then
      return { path = a, version = row.read and row.read(b) or b:match "(%d+%.[%d.]*%d)" }
    elseif kind == "try" then
      last = a
    elseif kind == "no" then
      last, broken = nil, broken or not is_absent(a) and a or nil
    end
  end
  if last or part.failed(r) then
    broken = ("%s: opening it %s"):format(last or names[1], part.ended(r))
  end
  return nil, broken, r.out:match "\nno\t([^\n]*)"
end

local function find(system, part, row)
  local named = row.setting and os.getenv(row.setting)
  if named == "off" and row.off then
    return { off = true }
  elseif named and named ~= "" then
    local found, broken, why = try(part, row, { named })
    return found or { broken = ("%s=%s: %s"):format(row.setting, named, broken or why) }
  end
  local names = {}
  for _, folder in ipairs { "", table.unpack(row.folders or {}) } do
    for _, name in ipairs(row.files or system[row.key]) do
      names[#names + 1] = folder == "" and name or folder .. "/" .. name
    end
  end
  local found, broken = try(part, row, names)
  return found or { broken = broken }
end

function machine.find_libraries(system, part)
  local list = {}
  for i, row in ipairs(machine.libraries) do
    local one = find(system, part, row)
    one.name, one.use, one.key = row.title, row.use, row.key
    list[i] = one
    list[row.key] = one
  end
  return list
end

-- ---- packages ----

local function os_release()
  local about = {}
  local f <close> = io.open "/etc/os-release"
  for line in f and f:lines() or next, nil do
    local key, value = line:match '^([A-Z_]+)="?(.-)"?$'
    if key then
      about[key] = value
    end
  end
  return about
end

-- The LLVM of a release, where it is not libllvm19.
local llvm_of = { jammy = "libllvm15", noble = "libllvm18", forky = "libllvm21", sid = "libllvm21" }

-- The names of packages by library, and the command that takes them; nil where they are not known.
local function packages()
  local about = os_release()
  local like = " " .. (about.ID or "") .. " " .. (about.ID_LIKE or "") .. " "
  if like:find " debian " or like:find " ubuntu " then
    local codename = about.VERSION_CODENAME or "sid"
    return "debian", "apt-get install", { llvm = llvm_of[codename] }
  elseif like:find " fedora " then
    return "fedora", "dnf install", {}
  elseif like:find " arch " then
    return "arch", "pacman -S", {}
  end
end

-- What to install: a command, or nil, and sentences.
function machine.advice(libraries, wants)
  local names, words = {}, {}
  local family, command, special = packages()
  for _, row in ipairs(machine.libraries) do
    local absent = not libraries[row.key].path and not libraries[row.key].off
    if absent and (row.wanted or wants[row.key]) then
      local package = family and (special[row.key] or row[family])
      if package then
        names[#names + 1] = package
      else
        words[#words + 1] = row.hint or row.title .. ", for: " .. row.use
      end
    end
  end
  return #names > 0 and command .. " " .. table.concat(names, " ") or nil, words
end

return machine
