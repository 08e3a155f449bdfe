-- The heads of sessions, by ordinal.
-- ARGV: prefix, sorted set, lowest, highest, how many, 'REV' or ''; or prefix, 'open', owner or nothing.
local P, rows, ids = ARGV[1], {}, nil
if ARGV[2] ~= 'open' then
  local low, high = ARGV[3], ARGV[4]
  if ARGV[6] == 'REV' then
    ids = redis.call('ZRANGE', P .. ARGV[2], high, low, 'BYSCORE', 'REV', 'LIMIT', 0, ARGV[5])
  else
    ids = redis.call('ZRANGE', P .. ARGV[2], low, high, 'BYSCORE', 'LIMIT', 0, ARGV[5])
  end
elseif ARGV[3] then
  ids = redis.call('ZINTER', 2, P .. 'open', P .. 'owner:' .. ARGV[3])
else
  ids = redis.call('ZRANGE', P .. 'open', 0, -1)
end
for _, id in ipairs(ids) do
  rows[#rows + 1] = {id, unpack(redis.call('HMGET', P .. 's:' .. id, 'owner', 'ordinal', 'head', 'in_turn'))}
end
return rows
