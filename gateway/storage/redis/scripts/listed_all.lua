#!lua
-- From now on all sessions are in the lists. ARGV: prefix, epoch.
if redis.call('GET', ARGV[1] .. 'epoch') ~= ARGV[2] then return redis.error_reply('RESET the data is gone') end
redis.call('SET', ARGV[1] .. 'lists', 1)
return 1
