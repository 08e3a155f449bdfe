#!lua flags=allow-oom
-- Let a session that rests go, so that anybody may claim it. ARGV: prefix, epoch, replica, id, token.
local key = ARGV[1] .. 's:' .. ARGV[4]
local found = redis.call('HMGET', key, 'token', 'in_turn')
if found[1] ~= ARGV[5] or found[2] ~= '0' then return 0 end
redis.call('HSET', key, 'holder', '')
return 1
