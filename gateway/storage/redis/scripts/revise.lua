-- Another version of a resource, or the newest one put away.
-- ARGV: prefix, epoch, kind, id, the version that was seen, the version to write, most versions in all, the record.
-- Reply: 'ok', 'changed' if there is another version by now, 'gone', or 'full'.
local P, kind, id, seen, version = ARGV[1], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
if redis.call('GET', P .. 'epoch') ~= ARGV[2] then return redis.error_reply('RESET the data is gone') end
local key = P .. 'resource:' .. kind .. '\0' .. id
local found = redis.call('HMGET', key, 'newest', 'owner', 'parent')
if not found[1] then return 'gone' end
if found[1] ~= seen then return 'changed' end
if version ~= seen then
  if tonumber(redis.call('GET', P .. 'resources.kept') or '0') >= tonumber(ARGV[7]) then return 'full' end
  redis.call('INCR', P .. 'resources.kept')
else
  local shelf = P .. 'live:' .. kind .. '\0' .. found[2]
  redis.call('ZREM', shelf, id)
  redis.call('ZREM', shelf .. '\0' .. found[3], id)
end
redis.call('HSET', key, 'newest', version, version, ARGV[8])
return 'ok'
