-- `deepc plan`: the time of a step and the memory of a rank, for meshes that are not there.
--
-- core.plan_functions() has timed the kernels of each function in parts as one rank runs them; its reports tell what
-- ranks exchange. Here the step is walked through as a device runs it: kernels one after the other; an exchange begins
-- where it stands, exchanges go over the link one after the other, and a kernel that reads a result waits for it. With
-- n ranks, S bytes that a rank has, B bytes a second and a latency of L (Thakur, Rabenseifner and Gropp, 2005):
--
--   all_reduce                    2 (n - 1) / n S / B + 2 ceil(log2 n) L
--   reduce_scatter, all_to_all    (n - 1) / n S / B + ceil(log2 n) L
--   all_gather                    (n - 1) S / B + ceil(log2 n) L
--   broadcast                     S / B + ceil(log2 n) L
--   send                          S / B + L
--
-- Collectives of one kind that follow each other, without a kernel between them that waits for one, pay the latency
-- once, up to 4 MiB together, as buckets do.
--
-- Where ranks send and receive, as stages of a pipeline do, the script runs once for each place along that axis, and
-- the steps of all places are walked through together: a recv waits for what its sender gives it.

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
  return a and a.op == b.op and not a.peer and table.concat(a.over, "+") == table.concat(b.over, "+")
end

-- When the step is over, with what was computed, exchanged, given to others and waited for. sent(step, when) is told
-- when something is there for another rank, received(step) says when what this one waits for is there.
local function walk(steps, links, sent, received)
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
    if step.op == "recv" then
      local there = math.max(now, received(step))
      sum.waited, now = sum.waited + there - now, there
    elseif step.op then
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
        if step.op == "send" then -- the next one may begin before this one is there
          ends[i] = nil
          free = free - latency
          sent(step, free + latency)
        end
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

local function memory_text(f)
  return ("%s a rank: parameters %s, states %s, arguments %s, temporaries %s"):format(
    bytes_text(f.parameters + f.states + f.arguments + f.temporaries), bytes_text(f.parameters), bytes_text(f.states),
    bytes_text(f.arguments), bytes_text(f.temporaries))
end

local function title(f)
  return f.name .. (f.where and ", " .. f.where or "")
end

local function describe(f, links)
  if f.refused then
    return ("%s: %s"):format(f.name, f.refused)
  end
  local t = walk(f.steps, links)
  return table.concat({
    title(f),
    ("  a call        %s: computes %s, exchanges %s, waits %s for them"):format(ms(t.total), ms(t.compute),
      ms(t.exchange), ms(t.waited)),
    ("  given         %s to other ranks in a call"):format(bytes_text(t.bytes)),
    ("  memory        %s"):format(memory_text(f)),
  }, "\n")
end

-- ---- places that send to each other ----

-- The axis along which a function sends and receives, nil where it does not; and why it is not planned, if so.
local function axis_of(f)
  local axis
  for _, step in ipairs(f.steps or {}) do
    if step.peer and step.ranks > 1 then
      local over = table.concat(step.over, "+")
      axis = axis or over
      if step.inside then
        return axis, "what is sent or received in a loop or a branch is not planned"
      elseif #step.over > 1 or over ~= axis then
        return axis, "what is sent or received along several axes is not planned"
      end
    end
  end
  return axis
end

-- Walks through the steps of all places, each until it needs what is not there yet. places: of one function, by
-- place. Nil where one waits for what nobody sends.
local function walk_together(places, links)
  local under_way, sums, threads, moved = {}, {}, {}, true
  local function queue(from, to)
    local key = from .. " to " .. to
    under_way[key] = under_way[key] or {}
    return under_way[key]
  end
  for k, f in ipairs(places) do
    local function sent(step, when)
      table.insert(queue(k - 1, step.peer), when)
      moved = true
    end
    local function received(step)
      local from = queue(step.peer, k - 1)
      while not from[1] do
        coroutine.yield()
      end
      moved = true
      return table.remove(from, 1)
    end
    threads[k] = coroutine.create(function() sums[k] = walk(f.steps, links, sent, received) end)
  end
  while moved do
    moved = false
    for _, thread in ipairs(threads) do
      if coroutine.status(thread) ~= "dead" then
        assert(coroutine.resume(thread))
      end
    end
  end
  return #sums == #places and sums or nil
end

local function describe_places(places, axis, links)
  local lines = { title(places[1]) }
  for _, f in ipairs(places) do
    local own, why = axis_of(f)
    why = f.refused or why or own and own ~= axis and ("it sends along '%s', others along '%s'"):format(own, axis)
    if why then
      return ("%s: %s"):format(f.name, why)
    end
  end
  local sums = walk_together(places, links)
  if not sums then
    return ("%s: a place along '%s' receives what no other one sends"):format(places[1].name, axis)
  end
  local total, busiest = 0, 0
  for _, t in ipairs(sums) do
    total, busiest = math.max(total, t.total), math.max(busiest, t.compute)
  end
  lines[2] = ("  a call        %s: %d places along '%s', the busiest computes %.3g %% of it"):format(ms(total),
    #places, axis, 100 * busiest / total)
  for k, t in ipairs(sums) do
    lines[#lines + 1] = ("  place %-7d computes %s, waits %s; gives %s to other ranks"):format(k - 1, ms(t.compute),
      ms(t.waited), bytes_text(t.bytes))
    lines[#lines + 1] = ("  memory        %s"):format(memory_text(places[k]))
  end
  return table.concat(lines, "\n")
end

-- A table of tables, texts, numbers and booleans as a piece of Lua.
local function dump(value)
  if type(value) ~= "table" then
    return ("%q"):format(value)
  end
  local parts, keys = {}, {}
  for key in pairs(value) do
    keys[#keys + 1] = key
  end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  for i, key in ipairs(keys) do
    parts[i] = ("[%s]=%s"):format(dump(key), dump(value[key]))
  end
  return "{" .. table.concat(parts, ",") .. "}"
end

-- ---- the whole ----

-- Function i of each run; nil and why where they are not the same one. Then: does any of them send or receive?
local function same_function(runs, i, axis)
  local places, sends = {}, false
  for k, list in ipairs(runs) do
    local f = list[i]
    if not f or f.name ~= runs[1][i].name then
      return nil, ("%s: the script has other functions at place %d along '%s'"):format(runs[1][i].name, k - 1, axis)
    end
    places[k], sends = f, sends or axis_of(f) ~= nil
  end
  return places, sends
end

local function tell(runs, axis, links)
  local lines = {}
  for i = #runs[1], 1, -1 do
    local places, sends = same_function(runs, i, axis)
    lines[#lines + 1] = not places and sends or sends and describe_places(places, axis, links) or
      describe(runs[1][i], links)
  end
  if #lines == 0 then
    lines[1] = "no typed function has values in parts: types split axes with '@', as in f32[batch @ data, 784]"
  end
  return table.concat(lines, "\n") .. "\n"
end

local function first_axis(list)
  for _, f in ipairs(list) do
    local axis, why = axis_of(f)
    if axis and not why then
      return axis
    end
  end
end

-- The steps of a call, in the order of its commands, and what a rank has in memory.
local function plan_of(report)
  if report.refused then
    return { name = report.name, refused = report.refused }
  end
  local steps, first = {}, 0
  for i, c in ipairs(report.commands) do
    local x, after = c.exchange or {}, {}
    for k, number in ipairs(c.after) do
      after[k] = number - first
    end
    if c.prologue then
      first = i
    else
      steps[#steps + 1] = {
        inside = c.inside or false, after = after, seconds = report.calls > 0 and c.ns * 1e-9 / report.calls or 0,
        op = x.op, over = x.over, peer = x.peer, ranks = x.ranks, bytes = x.bytes, times = x.op and c.times,
      }
    end
  end
  return {
    name = report.name, where = report.where, parameters = report.parameter_bytes, states = report.state_bytes,
    arguments = report.argument_bytes, temporaries = report.arena + report.derived_bytes, steps = steps,
  }
end

-- before: what this gave for the places before, of which each has its own run of the script; last: there are no
-- more. Returns what is to be printed, or nil with what is to be given to the next run and the axis of the places.
return function(link_texts, before, last)
  local links, list, runs = read_links(link_texts), {}, {}
  for i, report in ipairs(core.plan_functions()) do
    list[i] = plan_of(report)
  end
  for k, text in ipairs(before) do
    runs[k] = assert(load("return " .. text))()
  end
  runs[#runs + 1] = list
  local axis = first_axis(runs[1])
  if last or not axis then
    return tell(runs, axis, links)
  end
  return nil, dump(list), axis
end
