#!lua
-- Index the new texts of a session, unless it has changed since it was read, or another server was faster.
-- ARGV: prefix, epoch, owner, id, the head that was read, up to which record it was indexed; then the terms.
local P, owner, id = ARGV[1], ARGV[3], ARGV[4]
if redis.call('GET', P .. 'epoch') ~= ARGV[2] then return redis.error_reply('RESET the data is gone') end
local key, terms = P .. 's:' .. id, {}
local head, indexed, ordinal = unpack(redis.call('HMGET', key, 'head', 'indexed', 'ordinal'))
if head ~= ARGV[5] or (indexed or '0') ~= ARGV[6] then return 0 end
for at = 7, #ARGV do
  local place = P .. 'term:session\0' .. owner .. '\0' .. ARGV[at]
  if redis.call('SADD', place, ordinal) == 1 then terms[#terms + 1] = ARGV[at] end
end
if #terms > 0 then redis.call('HSET', P .. 'said:' .. id, head, cmsgpack.pack(terms)) end
redis.call('HSET', key, 'indexed', head)
redis.call('ZREM', P .. 'unindexed:' .. owner, id)
return 1
