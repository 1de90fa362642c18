-- ARGV: roomId, userId, epoch, cursor JSON or '', metadata JSON or '', leaseMs or ''
local roomId, user, cursor, metadata, leaseMs = ARGV[1], ARGV[2], ARGV[4], ARGV[5], ARGV[6]
local epoch = tonumber(ARGV[3])
local last = tonumber(redis.call('HGET', epochs, user) or 0)
if last == 0 or epoch > last then return 'unknown_session' end
if epoch < last then return 'superseded' end
local expires = tonumber(redis.call('ZSCORE', leases, user) or 0)
if expires == 0 then return 'left' end
if now > expires then return 'expired' end

local session = cjson.decode(redis.call('HGET', sessions, user))
if metadata ~= '' or leaseMs ~= '' then
  if leaseMs ~= '' then session.leaseMs = tonumber(leaseMs) end
  if metadata == '' then metadata = cjson.encode(session.metadata) end
  redis.call('HSET', sessions, user,
    string.format('{"joinedAtMs":%d,"leaseMs":%d,"metadata":%s}', session.joinedAtMs, session.leaseMs, metadata))
  redis.call('ZADD', due, 'LT', now + session.leaseMs, roomId)
end
if cursor ~= '' then redis.call('HSET', cursors, user, cursor) end
redis.call('ZADD', leases, 'XX', now + session.leaseMs, user)
return false
