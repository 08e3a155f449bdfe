#!lua flags=allow-oom
-- Store and remove keys in one step, if they are still as the caller has seen them.
-- ARGV: prefix, epoch, the version that was seen, how many to remove, their hashes, then hash and record of each to store.
-- Reply: 1, or 0 if the keys have changed meanwhile.
local P, removed = ARGV[1], tonumber(ARGV[4])
if redis.call('GET', P .. 'epoch') ~= ARGV[2] then return redis.error_reply('RESET the data is gone') end
if (redis.call('GET', P .. 'keys.version') or '0') ~= ARGV[3] then return 0 end
if #ARGV > 4 and redis.call('EXISTS', P .. 'keys.version') == 1 then
  redis.call('INCR', P .. 'keys.version')
elseif #ARGV > 4 then  -- if Redis has lost its data, no version of before comes again
  redis.call('SET', P .. 'keys.version', redis.call('TIME')[1] .. '000')
end
for i = 5, 4 + removed do
  redis.call('HDEL', P .. 'keys', ARGV[i])
  redis.call('HDEL', P .. 'keys.used', ARGV[i])
end
for i = 5 + removed, #ARGV, 2 do redis.call('HSET', P .. 'keys', ARGV[i], ARGV[i + 1]) end
return 1
