-- ARGV: roomId. Prunes a room that is due and notes when it must be looked at again.
prune()
local nearest = redis.call('ZRANGE', leases, 0, 0, 'WITHSCORES')
if #nearest == 0 then redis.call('ZREM', due, ARGV[1]) else redis.call('ZADD', due, nearest[2], ARGV[1]) end
return false
