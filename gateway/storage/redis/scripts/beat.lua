#!lua flags=allow-oom
-- A replica shows that it lives. ARGV: prefix, epoch, replica, milliseconds, what it reports of itself.
-- Reply: whether its lease was still good, whether it leads, how many sessions there are, whether it is to drain.
local P, me = ARGV[1], ARGV[3]
if redis.call('GET', P .. 'epoch') ~= ARGV[2] then return redis.error_reply('RESET the data is gone') end
local good = redis.call('EXISTS', P .. 'replica:' .. me)
redis.call('SET', P .. 'replica:' .. me, ARGV[5] or '1', 'PX', ARGV[4])
redis.call('SADD', P .. 'replicas', me)
local leader = redis.call('GET', P .. 'leader')
if not leader or leader == me then
  redis.call('SET', P .. 'leader', me, 'PX', ARGV[4])
  leader = me
end
local drains = redis.call('EXISTS', P .. 'drain:' .. me)
return {good, leader == me and 1 or 0, redis.call('ZCARD', P .. 'sessions'), drains}
