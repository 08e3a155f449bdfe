#!lua flags=allow-oom
-- Remove a session and everything of it. ARGV: prefix, epoch, id, token. Reply: {what became of it, sessions left}, and
-- if it was removed: its owner, how many bytes the owner has, and how many sessions.
local P, id = ARGV[1], ARGV[3]
if redis.call('GET', P .. 'epoch') ~= ARGV[2] then return redis.error_reply('RESET the data is gone') end
local key = P .. 's:' .. id
local found = redis.call('HMGET', key, 'token', 'owner', 'holder', 'bytes', 'labels')
if not found[1] then return {'gone', redis.call('ZCARD', P .. 'sessions')} end
if found[1] ~= ARGV[4] then return {'fenced', redis.call('ZCARD', P .. 'sessions')} end
for _, word in ipairs(redis.call('SMEMBERS', P .. 'words:' .. id)) do redis.call('HDEL', P .. 'places', word) end
for _, label in ipairs(found[5] and cjson.decode(found[5]) or {}) do
  local place = 'list:' .. #found[2] .. ':' .. found[2] .. ':' .. label
  redis.call('ZREM', P .. 'created' .. place, id)
  redis.call('ZREM', P .. 'updated' .. place, id)
end
local ordinal = redis.call('HGET', key, 'ordinal')
local said = redis.call('HGETALL', P .. 'said:' .. id)
for at = 2, #said, 2 do
  for _, term in ipairs(cmsgpack.unpack(said[at])) do
    redis.call('SREM', P .. 'term:session\0' .. found[2] .. '\0' .. term, ordinal)
  end
end
redis.call('ZREM', P .. 'unindexed:' .. found[2], id)
redis.call('UNLINK', key, P .. 'said:' .. id, P .. 'log:' .. id, P .. 'words:' .. id)
local bytes = redis.call('HINCRBY', P .. 'kept:' .. found[2], 'bytes', -(found[4] or 0))
redis.call('ZREM', P .. 'sessions', id)
redis.call('ZREM', P .. 'owner:' .. found[2], id)
redis.call('ZREM', P .. 'times:' .. found[2], id)
redis.call('ZREM', P .. 'open', id)
redis.call('SREM', P .. 'open:' .. found[3], id)
return {'ok', redis.call('ZCARD', P .. 'sessions'), found[2], bytes, redis.call('ZCARD', P .. 'owner:' .. found[2])}
