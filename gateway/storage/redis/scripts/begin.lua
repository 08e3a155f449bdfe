#!lua flags=allow-oom
-- The first words of a server to a database: which format is kept here, and which life of the data this is.
-- ARGV: prefix, the format that we write, an epoch to begin if there is none; in a cluster also the number of this
-- partition, and how many there are.
local P = ARGV[1]
redis.call('SET', P .. 'format', ARGV[2], 'NX')
redis.call('SET', P .. 'epoch', ARGV[3], 'NX')
if ARGV[4] then redis.call('HSET', P .. 'partition', 'number', ARGV[4], 'of', ARGV[5]) end
return {redis.call('GET', P .. 'format'), redis.call('GET', P .. 'epoch')}
