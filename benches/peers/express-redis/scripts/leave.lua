-- ARGV: userId, epoch
local user, epoch = ARGV[1], ARGV[2]
if redis.call('HGET', epochs, user) == epoch and redis.call('ZSCORE', leases, user) then remove({ user }) end
return false
