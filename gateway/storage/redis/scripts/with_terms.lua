-- The resources that have all terms, newest first, each {ordinal, newest record}; or 'unindexed' if some lack terms.
-- ARGV: prefix, kind, owner, the terms.
local P, kind, shelf, keys, rows = ARGV[1], ARGV[2], ARGV[2] .. '\0' .. ARGV[3], {}, {}
if redis.call('EXISTS', P .. 'all:' .. shelf) == 0 then return rows end
if redis.call('EXISTS', P .. 'indexed:' .. shelf) == 0 then return 'unindexed' end
for at = 4, #ARGV do keys[#keys + 1] = P .. 'term:' .. shelf .. '\0' .. ARGV[at] end
local ordinals = redis.call('SINTER', unpack(keys))
table.sort(ordinals, function(one, other) return tonumber(one) > tonumber(other) end)
for _, ordinal in ipairs(ordinals) do
  local id = redis.call('ZRANGE', P .. 'live:' .. shelf, ordinal, ordinal, 'BYSCORE')[1]
  if id then
    local key = P .. 'resource:' .. kind .. '\0' .. id
    rows[#rows + 1] = {ordinal, redis.call('HGET', key, redis.call('HGET', key, 'newest'))}
  end
end
return rows
