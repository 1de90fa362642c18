-- ARGV: roomId, userId, leaseMs, metadata JSON, cursor JSON ('null' when absent)
local roomId, user, leaseMs, metadata, cursor = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
prune()
if redis.call('ZCARD', leases) == 0 then redis.call('HINCRBY', room, 'generation', 1) end
local epoch = redis.call('HINCRBY', epochs, user, 1)
redis.call('ZADD', leases, now + leaseMs, user)
redis.call('ZADD', order, redis.call('HINCRBY', room, 'arrivals', 1), user)
redis.call('HSET', sessions, user,
  string.format('{"joinedAtMs":%d,"leaseMs":%d,"metadata":%s}', now, leaseMs, metadata))
redis.call('HSET', cursors, user, cursor)
redis.call('HINCRBY', room, 'version', 1)
redis.call('ZADD', due, 'LT', now + leaseMs, roomId)
return { epoch, tonumber(redis.call('HGET', room, 'generation')), now }
