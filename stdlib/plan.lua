-- `deepc plan`: the time of a step and the memory of a rank, for meshes that are not there.
--
-- core.plan_functions() has timed the kernels of each function in parts as one rank runs them, and lists what ranks
-- exchange. Here the step is walked through as a device runs it: kernels one after the other; an exchange begins where
-- it stands, exchanges go over the link one after the other, and a kernel that reads a result waits for it. With n
-- ranks, S bytes that a rank has, B bytes a second and a latency of L (Thakur, Rabenseifner and Gropp, 2005):
--
--   all_reduce                    2 (n - 1) / n S / B + 2 ceil(log2 n) L
--   reduce_scatter, all_to_all    (n - 1) / n S / B + ceil(log2 n) L
--   all_gather                    (n - 1) S / B + ceil(log2 n) L
--   broadcast                     S / B + ceil(log2 n) L
--   send                          S / B + L; recv: nothing, as if it had come already
--
-- Exchanges of one kind that follow each other, without a kernel between them that waits for one, pay the latency once,
-- up to 4 MiB together, as buckets do.

local _, core = ...

local BUCKET = 4 << 20

local units = { GB = 1e9, MB = 1e6, KB = 1e3, B = 1, Gbit = 1e9 / 8, Mbit = 1e6 / 8 }
local times = { s = 1, ms = 1e-3, us = 1e-6, ns = 1e-9 }

-- "50GB/s,5us"
local function read_link(text)
  local rate, unit, rest = text:match "^([%d.]+)(%a+)/s(.*)$"
  local latency, second = "5", "us"
  if rest and rest ~= "" then
    latency, second = rest:match "^,([%d.]+)(%a+)$"
  end
  local per_second, delay = tonumber(rate), tonumber(latency)
  if not (per_second and per_second > 0 and units[unit] and delay and times[second]) then
    core.fail("ARG", "plan", ("--link %s: a rate such as 50GB/s or 10Gbit/s is needed, and a latency such as ,5us")
      :format(text))
  end
  return { rate = per_second * units[unit], latency = delay * times[second], text = text }
end

-- By axis, and what holds for the others.
local function read_links(list)
  local links = { other = read_link "10GB/s,5us" }
  for _, text in ipairs(list) do
    local axis, rest = text:match "^([%a_][%w_]*)=(.+)$"
    links[axis or "other"] = read_link(rest or text)
  end
  return links
end

-- Over several axes the slowest link.
local function link_of(links, over)
  local slowest
  for _, axis in ipairs(over) do
    local link = links[axis] or links.other
    slowest = (not slowest or link.rate < slowest.rate) and link or slowest
  end
  return slowest
end

local factors = {
  all_reduce = function(n) return 2 * (n - 1) / n end,
  reduce_scatter = function(n) return (n - 1) / n end,
  all_to_all = function(n) return (n - 1) / n end,
  all_gather = function(n) return n - 1 end,
  broadcast = function(n) return n > 1 and 1 or 0 end,
  send = function() return 1 end,
  recv = function() return 0 end,
}

local function given(step)
  return factors[step.op](step.ranks) * step.bytes
end

-- Seconds of an exchange: on the link, and before it begins to move.
local function cost(step, links)
  local link, rounds = link_of(links, step.over), step.op == "send" and 1 or 0
  while step.op ~= "send" and step.op ~= "recv" and 1 << rounds < step.ranks do
    rounds = rounds + 1
  end
  return given(step) / link.rate, (step.op == "all_reduce" and 2 or 1) * rounds * link.latency
end

local function alike(a, b)
  return a and a.op == b.op and table.concat(a.over, "+") == table.concat(b.over, "+")
end

-- When the step is over, with what was computed, exchanged, given to others and waited for.
local function walk(steps, links)
  local now, free, ends = 0, 0, {}
  local sum = { compute = 0, exchange = 0, bytes = 0, waited = 0 }
  local bucket = { bytes = 0 }
  for i, step in ipairs(steps) do
    for _, before in ipairs(step.inside and {} or step.after) do
      if (ends[before] or 0) > now then
        sum.waited, now = sum.waited + ends[before] - now, ends[before]
      end
      bucket = ends[before] and { bytes = 0 } or bucket
    end
    if step.op then
      local moving, latency = cost(step, links)
      if alike(bucket.last, step) and bucket.bytes + step.bytes <= BUCKET and not step.inside then
        latency = 0
      else
        bucket = { bytes = 0 }
      end
      bucket.last, bucket.bytes = step, bucket.bytes + step.bytes
      local all = (moving + latency) * step.times
      sum.exchange, sum.bytes = sum.exchange + all, sum.bytes + given(step) * step.times
      if step.inside then
        now, sum.waited = now + all, sum.waited + all
      else
        free = math.max(free, now) + all
        ends[i] = free
      end
    else
      now, sum.compute = now + step.seconds, sum.compute + step.seconds
    end
  end
  sum.total, sum.waited = math.max(now, free), sum.waited + math.max(0, free - now)
  return sum
end

local function bytes_text(n)
  local list = { "bytes", "KiB", "MiB", "GiB", "TiB" }
  local i = 1
  while n >= 1024 and i < #list do
    n, i = n / 1024, i + 1
  end
  return (i == 1 and "%d %s" or "%.3g %s"):format(i == 1 and math.floor(n) or n, list[i])
end

local function ms(seconds)
  return ("%.4g ms"):format(seconds * 1e3)
end

local function describe(f, links)
  if f.refused then
    return ("%s: %s"):format(f.name, f.refused)
  end
  local t = walk(f.steps, links)
  local memory = f.parameters + f.states + f.arguments + f.temporaries
  return table.concat({
    ("%s%s"):format(f.name, f.where and ", " .. f.where or ""),
    ("  a call        %s: computes %s, exchanges %s, waits %s for them"):format(ms(t.total), ms(t.compute),
      ms(t.exchange), ms(t.waited)),
    ("  given         %s to other ranks in a call"):format(bytes_text(t.bytes)),
    ("  memory        %s a rank: parameters %s, states %s, arguments %s, temporaries %s"):format(bytes_text(memory),
      bytes_text(f.parameters), bytes_text(f.states), bytes_text(f.arguments), bytes_text(f.temporaries)),
  }, "\n")
end

return function(link_texts)
  local links = read_links(link_texts)
  local list, lines = core.plan_functions(), {}
  for i = #list, 1, -1 do
    lines[#lines + 1] = describe(list[i], links)
  end
  if #lines == 0 then
    lines[1] = "no typed function has values in parts: types split axes with '@', as in f32[batch @ data, 784]"
  end
  return table.concat(lines, "\n") .. "\n"
end
