#!lua
-- Another version of a resource, or the newest one put away.
-- ARGV: prefix, epoch, kind, id, the version that was seen, the version to write, most versions in all, the record, its
-- weight; then how many versions its owner may have and how many bytes, '' where that is not bounded; then 'terms' and
-- the terms by which it is found from now on, or nothing if it is found as before.
-- Reply: {'ok', how many its owner has, how many bytes}, {'changed'} if there is another version by now, {'gone'},
-- {'full'}, or {'resources' or 'stored_bytes', how many its owner has}.
local P, kind, id, seen, version = ARGV[1], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
if redis.call('GET', P .. 'epoch') ~= ARGV[2] then return redis.error_reply('RESET the data is gone') end
local key = P .. 'resource:' .. kind .. '\0' .. id
local found = redis.call('HMGET', key, 'newest', 'owner', 'parent')
if not found[1] then return {'gone'} end
if found[1] ~= seen then return {'changed'} end
local kept = P .. 'kept:' .. found[2]
local has = redis.call('HMGET', kept, 'resources', 'bytes')
local number, bytes = tonumber(has[1] or '0'), tonumber(has[2] or '0')
if version ~= seen then
  if tonumber(redis.call('GET', P .. 'resources.kept') or '0') >= tonumber(ARGV[7]) then return {'full'} end
  local weight = tonumber(ARGV[9])
  if ARGV[10] ~= '' and number >= tonumber(ARGV[10]) then return {'resources', number} end
  if ARGV[11] ~= '' and bytes + weight > tonumber(ARGV[11]) then return {'stored_bytes', bytes} end
  number, bytes = number + 1, bytes + weight
  redis.call('HSET', kept, 'resources', number, 'bytes', bytes)
  redis.call('HINCRBY', P .. 'weights', kind .. '\0' .. id, weight)
  redis.call('INCR', P .. 'resources.kept')
else
  local shelf = P .. 'live:' .. kind .. '\0' .. found[2]
  redis.call('ZREM', shelf, id)
  redis.call('ZREM', shelf .. '\0' .. found[3], id)
end
if ARGV[12] then
  local shelf, ordinal = P .. 'term:' .. kind .. '\0' .. found[2] .. '\0', redis.call('HGET', key, 'ordinal')
  local had, terms = redis.call('GET', P .. 'terms:' .. kind .. '\0' .. id), {}
  for _, term in ipairs(had and cmsgpack.unpack(had) or {}) do redis.call('SREM', shelf .. term, ordinal) end
  for at = 13, #ARGV do
    terms[#terms + 1] = ARGV[at]
    redis.call('SADD', shelf .. ARGV[at], ordinal)
  end
  redis.call('SET', P .. 'terms:' .. kind .. '\0' .. id, cmsgpack.pack(terms))
end
redis.call('HSET', key, 'newest', version, version, ARGV[8])
return {'ok', number, bytes}
