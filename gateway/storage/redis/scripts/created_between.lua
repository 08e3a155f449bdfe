-- The sessions of an owner that were created between two times, oldest first. ARGV: prefix, owner, first, last, how many.
-- Reply: {id, ordinal, summary} for each session; nothing if an older Dragoman, which knows no times, has created or
-- removed sessions since the script add_times looked: then add_times must look again.
local P, times, rows = ARGV[1], ARGV[1] .. 'times:' .. ARGV[2], {}
local without_times = (redis.call('GET', P .. 'ordinal') or 0) - (redis.call('GET', P .. 'timed') or 0)
if without_times ~= tonumber(redis.call('HGET', P .. 'untimed', ARGV[2]) or 0) then return false end
if redis.call('ZCARD', times) ~= redis.call('ZCARD', P .. 'owner:' .. ARGV[2]) then return false end
for _, id in ipairs(redis.call('ZRANGE', times, ARGV[3], ARGV[4], 'BYSCORE', 'LIMIT', 0, ARGV[5])) do
  rows[#rows + 1] = {id, unpack(redis.call('HMGET', P .. 's:' .. id, 'ordinal', 'summary'))}
end
return rows
