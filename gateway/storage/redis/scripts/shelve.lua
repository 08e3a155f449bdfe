#!lua
-- A new resource. ARGV: prefix, epoch, kind, id, owner, parent, most versions in all, the record, its weight; then how
-- many there may be, '' where that is not bounded: of its kind, of its kind and parent, of its owner, and bytes; then
-- the terms by which it is found.
-- Reply: {its ordinal, how many its owner has, how many bytes}, or 'taken', 'full', 'many', 'below', or
-- {'resources' or 'stored_bytes', how many its owner has}.
local P, kind, id, owner, parent = ARGV[1], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
if redis.call('GET', P .. 'epoch') ~= ARGV[2] then return redis.error_reply('RESET the data is gone') end
local key = P .. 'resource:' .. kind .. '\0' .. id
if redis.call('EXISTS', key) == 1 then return 'taken' end
if tonumber(redis.call('GET', P .. 'resources.kept') or '0') >= tonumber(ARGV[7]) then return 'full' end
local shelf, kept = kind .. '\0' .. owner, P .. 'kept:' .. owner
if ARGV[10] ~= '' and redis.call('ZCARD', P .. 'live:' .. shelf) >= tonumber(ARGV[10]) then return 'many' end
if ARGV[11] ~= '' and redis.call('ZCARD', P .. 'live:' .. shelf .. '\0' .. parent) >= tonumber(ARGV[11]) then
  return 'below'
end
local has = redis.call('HMGET', kept, 'resources', 'bytes')
local number, bytes, weight = tonumber(has[1] or '0'), tonumber(has[2] or '0'), tonumber(ARGV[9])
if ARGV[12] ~= '' and number >= tonumber(ARGV[12]) then return {'resources', number} end
if ARGV[13] ~= '' and bytes + weight > tonumber(ARGV[13]) then return {'stored_bytes', bytes} end
redis.call('HSET', kept, 'resources', number + 1, 'bytes', bytes + weight)
redis.call('HSET', P .. 'weights', kind .. '\0' .. id, weight)
redis.call('INCR', P .. 'resources.kept')
local ordinal = redis.call('INCR', P .. 'resources.ordinal')
if #ARGV > 13 then
  if redis.call('EXISTS', P .. 'all:' .. shelf) == 0 then redis.call('SET', P .. 'indexed:' .. shelf, '1') end
  local terms = {}
  for at = 14, #ARGV do
    terms[#terms + 1] = ARGV[at]
    redis.call('SADD', P .. 'term:' .. shelf .. '\0' .. ARGV[at], ordinal)
  end
  redis.call('SET', P .. 'terms:' .. kind .. '\0' .. id, cmsgpack.pack(terms))
end
redis.call('HSET', key, 'owner', owner, 'ordinal', ordinal, 'parent', parent, 'newest', '1', '1', ARGV[8])
for _, state in ipairs({'all:', 'live:'}) do
  redis.call('ZADD', P .. state .. shelf, ordinal, id)
  redis.call('ZADD', P .. state .. shelf .. '\0' .. parent, ordinal, id)
end
if parent ~= '' then redis.call('SADD', P .. 'below:' .. parent, kind .. '\0' .. id) end
return {ordinal, number + 1, bytes + weight}
