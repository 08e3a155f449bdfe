#!lua flags=allow-oom
-- Remove what is left of an owner who has no sessions and no resources. ARGV: prefix, epoch, owner, kinds of resources.
-- Reply: 1, or 0 if the owner has a session or a resource again.
local P, owner = ARGV[1], ARGV[3]
if redis.call('GET', P .. 'epoch') ~= ARGV[2] then return redis.error_reply('RESET the data is gone') end
if redis.call('EXISTS', P .. 'owner:' .. owner) == 1 then return 0 end
for at = 4, #ARGV do
  if redis.call('EXISTS', P .. 'all:' .. ARGV[at] .. '\0' .. owner) == 1 then return 0 end
end
for at = 4, #ARGV do redis.call('UNLINK', P .. 'indexed:' .. ARGV[at] .. '\0' .. owner) end
for _, word in ipairs({'kept:', 'searched:', 'unindexed:', 'tokens:'}) do redis.call('UNLINK', P .. word .. owner) end
redis.call('HDEL', P .. 'untimed', owner)
local start = owner .. '\0'
for _, place in ipairs(redis.call('HKEYS', P .. 'answers')) do
  if string.sub(place, 1, #start) == start then
    redis.call('DECRBY', P .. 'answers.bytes', redis.call('HGET', P .. 'answers.sizes', place) or '0')
    for _, hash in ipairs({'answers', 'answers.sizes', 'answers.times'}) do redis.call('HDEL', P .. hash, place) end
    redis.call('ZREM', P .. 'answers.order', place)
  end
end
return 1
