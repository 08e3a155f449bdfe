#!lua
-- Claim an idempotency key, unless a replica that lives has it. ARGV: prefix, epoch, replica, place, milliseconds.
-- Reply: 1 where the claimer has the key now.
local P, me, key = ARGV[1], ARGV[3], ARGV[1] .. 'claim:' .. ARGV[4]
if redis.call('GET', P .. 'epoch') ~= ARGV[2] then return redis.error_reply('RESET the data is gone') end
local holder = redis.call('GET', key)
if holder and holder ~= me and redis.call('EXISTS', P .. 'replica:' .. holder) == 1 then return 0 end
redis.call('SET', key, me, 'PX', ARGV[5])
return 1
