-- Shared prologue of every script. A room is six keys, KEYS[1] to KEYS[6]:
--   room     hash: generation, version, arrivals
--   epochs   hash: user -> last epoch given, kept after the room ends
--   leases   sorted set: user by the instant the lease expires
--   order    sorted set: user by arrival
--   sessions hash: user -> JSON {joinedAtMs, leaseMs, metadata}
--   cursors  hash: user -> JSON
-- KEYS[7] is the sorted set of rooms by when to look at them next.
local room, epochs, leases, order, sessions, cursors, due =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function remove(users)
  redis.call('ZREM', leases, unpack(users))
  redis.call('ZREM', order, unpack(users))
  redis.call('HDEL', sessions, unpack(users))
  redis.call('HDEL', cursors, unpack(users))
  redis.call('HINCRBY', room, 'version', #users)
end

-- Exclusive, since a lease is expired only when the instant is strictly past it; in hundreds, since unpack is limited.
local function prune()
  repeat
    local gone = redis.call('ZRANGEBYSCORE', leases, '-inf', '(' .. now, 'LIMIT', 0, 500)
    if #gone > 0 then remove(gone) end
  until #gone < 500
end
