#!lua
-- Make the times of an owner complete after an older Dragoman has created or removed sessions. ARGV: prefix, epoch, owner.
-- Reply: 1, or 0 if the summary of a session, which says when it was created, is missing.
local P, owner = ARGV[1], ARGV[3]
if redis.call('GET', P .. 'epoch') ~= ARGV[2] then return redis.error_reply('RESET the data is gone') end
local all, times = P .. 'owner:' .. owner, P .. 'times:' .. owner
for _, id in ipairs(redis.call('ZDIFF', 2, all, times)) do
  local summary = redis.call('HGET', P .. 's:' .. id, 'summary')
  local created = summary and cjson.decode(summary).created_at
  if not created then return 0 end
  redis.call('ZADD', times, created, id)
end
for _, id in ipairs(redis.call('ZDIFF', 2, times, all)) do redis.call('ZREM', times, id) end
local without_times = (redis.call('GET', P .. 'ordinal') or 0) - (redis.call('GET', P .. 'timed') or 0)
redis.call('HSET', P .. 'untimed', owner, without_times)
return 1
