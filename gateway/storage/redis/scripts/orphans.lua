#!lua flags=allow-oom
-- Sessions with an open turn whose holder lives no more. ARGV: prefix, epoch, replica, how many at most.
local P, me, most, found = ARGV[1], ARGV[3], tonumber(ARGV[4]), {}
for _, other in ipairs(redis.call('SMEMBERS', P .. 'replicas')) do
  if #found >= most then break end
  if other ~= me and redis.call('EXISTS', P .. 'replica:' .. other) == 0 then
    local left = redis.call('SRANDMEMBER', P .. 'open:' .. other, most - #found)
    if #left == 0 then redis.call('SREM', P .. 'replicas', other) end
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
