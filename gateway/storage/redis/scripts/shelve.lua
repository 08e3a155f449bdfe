-- A new resource. ARGV: prefix, epoch, kind, id, owner, parent, most versions in all, the record.
-- Reply: its ordinal, or 'taken', or 'full'.
local P, kind, id, owner, parent = ARGV[1], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
if redis.call('GET', P .. 'epoch') ~= ARGV[2] then return redis.error_reply('RESET the data is gone') end
local key = P .. 'resource:' .. kind .. '\0' .. id
if redis.call('EXISTS', key) == 1 then return 'taken' end
if tonumber(redis.call('GET', P .. 'resources.kept') or '0') >= tonumber(ARGV[7]) then return 'full' end
redis.call('INCR', P .. 'resources.kept')
local ordinal = redis.call('INCR', P .. 'resources.ordinal')
redis.call('HSET', key, 'owner', owner, 'ordinal', ordinal, 'parent', parent, 'newest', '1', '1', ARGV[8])
local shelf = kind .. '\0' .. owner
for _, state in ipairs({'all:', 'live:'}) do
  redis.call('ZADD', P .. state .. shelf, ordinal, id)
  redis.call('ZADD', P .. state .. shelf .. '\0' .. parent, ordinal, id)
end
if parent ~= '' then redis.call('SADD', P .. 'below:' .. parent, kind .. '\0' .. id) end
return ordinal
