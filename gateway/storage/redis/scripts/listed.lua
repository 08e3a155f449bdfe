-- A page of a list of sessions, newest first. ARGV: prefix, 'created' or 'updated', owner, label, first, last (by rank).
-- Reply: {id, ordinal, summary} for each session.
local P, rows = ARGV[1], {}
local key = P .. ARGV[2] .. 'list:' .. #ARGV[3] .. ':' .. ARGV[3] .. ':' .. ARGV[4]
for _, id in ipairs(redis.call('ZRANGE', key, ARGV[5], ARGV[6], 'REV')) do
  rows[#rows + 1] = {id, unpack(redis.call('HMGET', P .. 's:' .. id, 'ordinal', 'summary'))}
end
return rows
