-- A page of resources, each {ordinal, newest record}.
-- ARGV: prefix, sorted set, lowest, highest, how many, 'REV' or '', kind.
local P, ids, rows = ARGV[1], nil, {}
if ARGV[6] == 'REV' then
  ids = redis.call('ZRANGE', P .. ARGV[2], ARGV[4], ARGV[3], 'BYSCORE', 'REV', 'LIMIT', 0, ARGV[5])
else
  ids = redis.call('ZRANGE', P .. ARGV[2], ARGV[3], ARGV[4], 'BYSCORE', 'LIMIT', 0, ARGV[5])
end
for _, id in ipairs(ids) do
  local key = P .. 'resource:' .. ARGV[7] .. '\0' .. id
  local head = redis.call('HMGET', key, 'ordinal', 'newest')
  rows[#rows + 1] = {head[1], redis.call('HGET', key, head[2])}
end
return rows
