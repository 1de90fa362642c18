prune()
local users = redis.call('ZRANGE', order, 0, -1)
if #users == 0 then return { now } end
local state = redis.call('HMGET', room, 'generation', 'version')
return {
  now,
  tonumber(state[1]),
  tonumber(state[2]),
  users,
  redis.call('HMGET', epochs, unpack(users)),
  redis.call('ZMSCORE', leases, unpack(users)),
  redis.call('HMGET', sessions, unpack(users)),
  redis.call('HMGET', cursors, unpack(users)),
}
