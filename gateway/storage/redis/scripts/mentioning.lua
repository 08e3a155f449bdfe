-- The sessions of an owner that have all terms, and those in a turn, whose last texts are not indexed yet; newest first.
-- ARGV: prefix, owner, the terms. Reply: {id, ordinal, summary} for each session.
local P, owner, keys, rows, seen = ARGV[1], ARGV[2], {}, {}, {}
for at = 3, #ARGV do keys[#keys + 1] = P .. 'term:session\0' .. owner .. '\0' .. ARGV[at] end
local function add(id)
  if not id or seen[id] then return end
  seen[id] = true
  rows[#rows + 1] = {id, unpack(redis.call('HMGET', P .. 's:' .. id, 'ordinal', 'summary'))}
end
for _, ordinal in ipairs(redis.call('SINTER', unpack(keys))) do
  add(redis.call('ZRANGE', P .. 'owner:' .. owner, ordinal, ordinal, 'BYSCORE')[1])
end
for _, id in ipairs(redis.call('ZINTER', 2, P .. 'open', P .. 'owner:' .. owner)) do add(id) end
table.sort(rows, function(one, other) return tonumber(one[2]) > tonumber(other[2]) end)
return rows
