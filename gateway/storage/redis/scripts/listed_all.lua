-- From now on all sessions are in the lists. ARGV: prefix, epoch, the version of the lists.
if redis.call('GET', ARGV[1] .. 'epoch') ~= ARGV[2] then return redis.error_reply('RESET the data is gone') end
redis.call('SET', ARGV[1] .. 'lists', ARGV[3])
return 1
