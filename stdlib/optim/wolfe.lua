-- A line search for the strong Wolfe conditions (Nocedal and Wright, 2006, algorithms 3.5 and 3.6): brackets a step
-- that satisfies them, then shrinks the bracket by cubic interpolation.

local _, core = ...

local class = core.optim

-- Where the cubic through two points with these slopes is least, within the bounds.
local function cubic(x1, f1, g1, x2, f2, g2, low, high)
  if not low then
    low, high = math.min(x1, x2), math.max(x1, x2)
  end
  local d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
  local square = d1 * d1 - g1 * g2
  if square < 0 or square ~= square then
    return (low + high) / 2
  end
  local d2 = square ^ 0.5
  local at
  if x1 <= x2 then
    at = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
  else
    at = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
  end
  return math.min(math.max(at, low), high)
end

local SUFFICIENT, CURVATURE = 1e-4, 0.9

-- Steps from `first` on until two points enclose one that satisfies the conditions, or one does: it alone, or both.
local function bracket(evaluate, start, first, most)
  local before, t, count = start, first, 0
  local now = evaluate(t)
  while count < most do
    if now.loss > start.loss + SUFFICIENT * t * start.slope or (count > 1 and now.loss >= before.loss) then
      return before, now, count
    elseif math.abs(now.slope) <= -CURVATURE * start.slope then
      return now, nil, count
    elseif now.slope >= 0 then
      return before, now, count
    end
    local next_t = cubic(before.t, before.loss, before.slope, t, now.loss, now.slope, t + 0.01 * (t - before.t), t * 10)
    before, t, count = now, next_t, count + 1
    now = evaluate(t)
  end
  return start, now, count
end

-- A step inside of both ends: one that is close to an end for the second time, or beyond it, moves away from it.
local function inside(t, low, high, stuck)
  local least, largest = math.min(low.t, high.t), math.max(low.t, high.t)
  local margin = 0.1 * (largest - least)
  if math.min(largest - t, t - least) >= margin then
    return t, false
  elseif not stuck and t < largest and t > least then
    return t, true
  end
  return math.abs(t - largest) < math.abs(t - least) and largest - margin or least + margin, false
end

-- evaluate(t) gives a point: { t, loss, slope, ... }; `start` is that of t = 0. `size` is the largest element of the
-- direction. Returns the point that was found.
function class.search(evaluate, start, first, most, size, tolerance)
  local low, high, count = bracket(evaluate, start, first, most)
  if not high then
    return low
  end
  if low.loss > high.loss then
    low, high = high, low
  end
  local stuck = false
  while count < most and math.abs(high.t - low.t) * size >= tolerance do
    local t
    t, stuck = inside(cubic(low.t, low.loss, low.slope, high.t, high.loss, high.slope), low, high, stuck)
    local now = evaluate(t)
    count = count + 1
    if now.loss > start.loss + SUFFICIENT * t * start.slope or now.loss >= low.loss then
      high = now
      if high.loss < low.loss then
        low, high = high, low
      end
    elseif math.abs(now.slope) <= -CURVATURE * start.slope then
      return now
    else
      high = now.slope * (high.t - low.t) >= 0 and low or high
      low = now
    end
  end
  return low
end
