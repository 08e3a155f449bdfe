#!lua
-- Store when keys were used; a later use stays. ARGV: prefix, epoch, then hash, time and address of each.
local P = ARGV[1]
if redis.call('GET', P .. 'epoch') ~= ARGV[2] then return redis.error_reply('RESET the data is gone') end
for i = 3, #ARGV, 3 do
  local before = tonumber(string.match(redis.call('HGET', P .. 'keys.used', ARGV[i]) or '', '^%S+') or '0')
  if redis.call('HEXISTS', P .. 'keys', ARGV[i]) == 1 and before < tonumber(ARGV[i + 1]) then
    redis.call('HSET', P .. 'keys.used', ARGV[i], ARGV[i + 1] .. ' ' .. ARGV[i + 2])
  end
end
return 1
