-- All keys and the number of their changes. ARGV: prefix. Reply: the version, the records, each beside its last use.
local P = ARGV[1]
local rows = {}
for _, hash in ipairs(redis.call('HKEYS', P .. 'keys')) do
  rows[#rows + 1] = {redis.call('HGET', P .. 'keys', hash), redis.call('HGET', P .. 'keys.used', hash) or ''}
end
return {tonumber(redis.call('GET', P .. 'keys.version') or '0'), rows}
