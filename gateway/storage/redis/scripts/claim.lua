#!lua flags=allow-oom
-- Take a session, unless it is held by a replica that lives. ARGV: prefix, epoch, replica, id, by how much its token
-- grows: a random number, so that of two claims, of which Redis has lost the first, each has a token of its own.
-- Reply: {'yours', token, head, in turn}, {'held', by whom}, {'gone'}, or {'lapsed'} where the claimer has no lease.
local P, me, id = ARGV[1], ARGV[3], ARGV[4]
if redis.call('GET', P .. 'epoch') ~= ARGV[2] then return redis.error_reply('RESET the data is gone') end
local key = P .. 's:' .. id
local found = redis.call('HMGET', key, 'holder', 'head', 'in_turn')
local holder = found[1]
if not holder then return {'gone'} end
if redis.call('EXISTS', P .. 'replica:' .. me) == 0 then return {'lapsed'} end
if holder ~= me and holder ~= '' and redis.call('EXISTS', P .. 'replica:' .. holder) == 1 then return {'held', holder} end
local token = redis.call('HINCRBY', key, 'token', ARGV[5] or 1)
redis.call('HSET', key, 'holder', me)
if found[3] == '1' then
  redis.call('SREM', P .. 'open:' .. holder, id)
  redis.call('SADD', P .. 'open:' .. me, id)
end
if holder ~= me and holder ~= '' then
  redis.call('PUBLISH', P .. 'to:' .. holder, cjson.encode({kind = 'lost', session_id = id, token = token}))
end
return {'yours', tostring(token), found[2], found[3]}
