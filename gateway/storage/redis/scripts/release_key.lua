#!lua flags=allow-oom
-- Let an idempotency key go. ARGV: prefix, epoch, replica, place.
local key = ARGV[1] .. 'claim:' .. ARGV[4]
if redis.call('GET', key) == ARGV[3] then redis.call('DEL', key) end
return 1
