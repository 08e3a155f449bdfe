#!lua
-- The terms of a resource from before there were terms; and, after the last one, that all resources of its list have terms.
-- ARGV: prefix, epoch, kind, owner, id, the version that was seen, the terms. Without an id: the list is done.
local P, kind, owner, id = ARGV[1], ARGV[3], ARGV[4], ARGV[5]
if redis.call('GET', P .. 'epoch') ~= ARGV[2] then return redis.error_reply('RESET the data is gone') end
local shelf = kind .. '\0' .. owner
if not id then return redis.call('SET', P .. 'indexed:' .. shelf, '1') end
local found, terms = redis.call('HMGET', P .. 'resource:' .. kind .. '\0' .. id, 'newest', 'ordinal'), {}
if found[1] ~= ARGV[6] then return 0 end -- what changed or deleted it has seen to the terms
for at = 7, #ARGV do
  terms[#terms + 1] = ARGV[at]
  redis.call('SADD', P .. 'term:' .. shelf .. '\0' .. ARGV[at], found[2])
end
redis.call('SET', P .. 'terms:' .. kind .. '\0' .. id, cmsgpack.pack(terms))
return 1
