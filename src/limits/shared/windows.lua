-- The windows of one subject, counted for all servers together: a script runs atomically, so that no two servers can
-- take the same last request. The arithmetic is that of `src/limits/window/mod.rs`, by this store's clock, in
-- microseconds.
--
-- KEYS  1: the minute, a sorted set with a member for each request admitted, whose score is its time
--       2: the days, a hash from UTC day to count; only for subjects whose days are counted
-- ARGV  1: "take" to count a request, otherwise only read   2, 3: limits of minute and day, 0 for none
--       4, 5: a day, and the count of that day that the calling server knows   6: "sure" if it has just looked it up
-- Returns whether the request was admitted (1) or not (0), the time, the requests of the minute, when the minute has
-- room for one more than now, and the requests of the day. If this store has no count of the day and the server is not
-- sure, nothing is counted and the first value is -1: a store that was emptied must not allow a day's requests twice.
local MINUTE = 60000000
local DAY = 86400000000
-- In milliseconds, so that it is a little longer than a minute in microseconds.
local KEPT = 60001

local minute, days = KEYS[1], KEYS[2]
local per_minute, per_day = tonumber(ARGV[2]), tonumber(ARGV[3])

-- Lua's own conversion of a large number has an exponent.
local function text(number)
  return string.format('%.0f', number)
end

-- Reads a key. A value of another type was put there by something else, and is deleted.
local function read(kind, ...)
  local found = redis.pcall(kind, ...)
  if type(found) ~= 'table' or not found.err then
    return found
  end
  if string.find(found.err, 'WRONGTYPE') then
    redis.call('DEL', (...))
  end
  return redis.call(kind, ...)
end

local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])

-- If the clock was set back: by less than a minute, time stands still; by more, the counted requests move along.
local newest = tonumber(read('ZRANGE', minute, -1, -1)[1])
if newest and newest > now + MINUTE then
  local shift = newest - now
  local admitted = redis.call('ZRANGE', minute, 0, -1)
  redis.call('DEL', minute)
  for _, at in ipairs(admitted) do
    local moved = text(tonumber(at) - shift)
    redis.call('ZADD', minute, moved, moved)
  end
  redis.call('PEXPIRE', minute, KEPT)
elseif newest and newest > now then
  now = newest
end
redis.call('ZREMRANGEBYSCORE', minute, '-inf', text(now - MINUTE))

local used = redis.call('ZCARD', minute)
local today = text(math.floor(now / DAY))
local used_today = 0
if days then
  local known = read('HGET', days, today)
  if not known and ARGV[6] ~= 'sure' then
    return { -1, now, 0, 0, 0 }
  end
  used_today = tonumber(known or 0) or 0
  -- A store that was emptied gets its count back from the servers that remember it.
  if ARGV[4] == today and tonumber(ARGV[5]) > used_today then
    used_today = tonumber(ARGV[5])
    redis.call('HSET', days, today, used_today)
    redis.call('PEXPIRE', days, 2 * DAY / 1000)
  end
end

local has_room = (per_minute == 0 or used < per_minute) and (per_day == 0 or used_today < per_day)
local admitted = ARGV[1] == 'take' and has_room
if admitted and per_minute > 0 then
  local at = now
  while redis.call('ZADD', minute, 'NX', text(at), text(at)) == 0 do
    at = at + 1
  end
  redis.call('PEXPIRE', minute, KEPT)
  used = used + 1
end
if admitted and days then
  used_today = used_today + 1
  if redis.call('HSET', days, today, used_today) == 1 then
    -- The first request of a day: the days before yesterday are over.
    for _, day in ipairs(redis.call('HKEYS', days)) do
      if tonumber(day) < tonumber(today) - 1 then
        redis.call('HDEL', days, day)
      end
    end
  end
  redis.call('PEXPIRE', days, 2 * DAY / 1000)
end

-- If there are more requests than the limit, the excess makes no room when it leaves the window.
local leaving = math.max(used - per_minute, 0)
local oldest = tonumber(redis.call('ZRANGE', minute, leaving, leaving)[1] or now)
return { admitted and 1 or 0, now, used, oldest + MINUTE, used_today }
