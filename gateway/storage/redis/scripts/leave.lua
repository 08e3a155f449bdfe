#!lua flags=allow-oom
-- A replica goes, and says so: whatever it holds is free. ARGV: prefix, epoch, replica.
local P, me = ARGV[1], ARGV[3]
redis.call('DEL', P .. 'replica:' .. me)
if redis.call('GET', P .. 'leader') == me then redis.call('DEL', P .. 'leader') end
if redis.call('SCARD', P .. 'open:' .. me) == 0 then redis.call('SREM', P .. 'replicas', me) end
return 1
