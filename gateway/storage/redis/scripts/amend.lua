#!lua
-- Another record in place of the newest version of a resource.
-- ARGV: prefix, epoch, kind, id, the version, the record that was seen, the record to write, how many bytes it has more.
-- Reply: 'ok', or 'changed' if there is another record by now, or no resource.
local P, name, version = ARGV[1], ARGV[3] .. '\0' .. ARGV[4], ARGV[5]
if redis.call('GET', P .. 'epoch') ~= ARGV[2] then return redis.error_reply('RESET the data is gone') end
local key = P .. 'resource:' .. name
local found = redis.call('HMGET', key, 'newest', 'owner', version)
if found[1] ~= version or found[3] ~= ARGV[6] then return 'changed' end
redis.call('HSET', key, version, ARGV[7])
if redis.call('HEXISTS', P .. 'weights', name) == 1 then -- else it is from before resources were counted
  redis.call('HINCRBY', P .. 'weights', name, ARGV[8])
  redis.call('HINCRBY', P .. 'kept:' .. found[2], 'bytes', ARGV[8])
end
return 'ok'
