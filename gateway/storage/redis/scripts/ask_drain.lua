#!lua flags=allow-oom
-- Ask a replica to drain and stop; it sees this when it next renews its lease.
-- ARGV: prefix, epoch, replica, for how many milliseconds this is asked. Reply: 1, or 0 if there is no such replica.
local P, other = ARGV[1], ARGV[3]
if redis.call('GET', P .. 'epoch') ~= ARGV[2] then return redis.error_reply('RESET the data is gone') end
if redis.call('EXISTS', P .. 'replica:' .. other) == 0 then return 0 end
redis.call('SET', P .. 'drain:' .. other, '1', 'PX', ARGV[4])
return 1
