#!lua
-- Keep the answer to a request that may come twice, and let its key go; the oldest make room.
-- ARGV: prefix, epoch, place, when, since when others are kept, most answers, most bytes, its bytes, the answer.
local P, place = ARGV[1], ARGV[3]
if redis.call('GET', P .. 'epoch') ~= ARGV[2] then return redis.error_reply('RESET the data is gone') end
local order, kept, sizes, times, total =
  P .. 'answers.order', P .. 'answers', P .. 'answers.sizes', P .. 'answers.times', P .. 'answers.bytes'

local function drop(old)
  redis.call('DECRBY', total, redis.call('HGET', sizes, old) or '0')
  for _, hash in ipairs({kept, sizes, times}) do redis.call('HDEL', hash, old) end
  redis.call('ZREM', order, old)
end

redis.call('DEL', P .. 'claim:' .. place)
drop(place)
redis.call('HSET', kept, place, ARGV[9])
redis.call('HSET', sizes, place, ARGV[8])
redis.call('HSET', times, place, ARGV[4])
redis.call('ZADD', order, redis.call('INCR', P .. 'answers.count'), place)
redis.call('INCRBY', total, ARGV[8])
while redis.call('ZCARD', order) > 1 do
  local oldest = redis.call('ZRANGE', order, 0, 0)[1]
  if tonumber(redis.call('HGET', times, oldest)) >= tonumber(ARGV[5])
    and redis.call('ZCARD', order) <= tonumber(ARGV[6])
    and tonumber(redis.call('GET', total)) <= tonumber(ARGV[7]) then break end
  drop(oldest)
end
return 1
