#!lua flags=allow-oom
-- Sessions with an open turn whose holder lives no more. ARGV: prefix, epoch, replica, how many at most.
-- Each call looks at a few replicas, so that it costs no more in a large fleet; whoever is found dead, all look after.
local P, me, most, looks, found = ARGV[1], ARGV[3], tonumber(ARGV[4]), 8, {}
for _, other in ipairs(redis.call('SRANDMEMBER', P .. 'replicas', looks)) do
  if other ~= me and redis.call('EXISTS', P .. 'replica:' .. other) == 0 then redis.call('SADD', P .. 'dead', other) end
end
for _, other in ipairs(redis.call('SMEMBERS', P .. 'dead')) do
  if #found >= most then break end
  if other == me or redis.call('EXISTS', P .. 'replica:' .. other) == 1 then
    redis.call('SREM', P .. 'dead', other)
  else
    local left = redis.call('SRANDMEMBER', P .. 'open:' .. other, most - #found)
    if #left == 0 then
      redis.call('SREM', P .. 'replicas', other)
      redis.call('SREM', P .. 'dead', other)
    end
    for _, id in ipairs(left) do
      if redis.call('EXISTS', P .. 's:' .. id) == 1 then
        found[#found + 1] = id
      else
        redis.call('SREM', P .. 'open:' .. other, id)
      end
    end
  end
end
return found
