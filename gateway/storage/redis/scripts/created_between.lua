-- The sessions of an owner that were created between two times, oldest first. ARGV: prefix, owner, first, last, how many.
-- Reply: {id, ordinal, summary} for each session; nothing if the times of some sessions are not known.
local P, times, rows = ARGV[1], ARGV[1] .. 'times:' .. ARGV[2], {}
if redis.call('ZCARD', times) ~= redis.call('ZCARD', P .. 'owner:' .. ARGV[2]) then return false end
for _, id in ipairs(redis.call('ZRANGE', times, ARGV[3], ARGV[4], 'BYSCORE', 'LIMIT', 0, ARGV[5])) do
  rows[#rows + 1] = {id, unpack(redis.call('HMGET', P .. 's:' .. id, 'ordinal', 'summary'))}
end
return rows
