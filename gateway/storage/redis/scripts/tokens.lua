#!lua flags=allow-oom
-- Tokens of a bucket that all servers share; it fills with time. ARGV: prefix, epoch, owner, tokens per second, how many
-- it holds, how many are wanted. Reply: {how many there are, after how many seconds there is one}.
local P, rate, size, wanted = ARGV[1], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
if redis.call('GET', P .. 'epoch') ~= ARGV[2] then return redis.error_reply('RESET the data is gone') end
local key, time = P .. 'tokens:' .. ARGV[3], redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local found = redis.call('HMGET', key, 'left', 'at')
local left = found[1] and math.min(size, tonumber(found[1]) + (now - tonumber(found[2])) * rate) or size
local granted = math.min(math.floor(left), wanted)
redis.call('HSET', key, 'left', string.format('%.6f', left - granted), 'at', string.format('%.6f', now))
redis.call('PEXPIRE', key, math.ceil(size / rate * 1000) + 1000)
return {granted, string.format('%.3f', granted > 0 and 0 or (1 - left) / rate)}
