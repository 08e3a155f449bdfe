-- Sessions of an owner whose last texts are not in the index, between two turns; a session in a turn is left until its end.
-- ARGV: prefix, epoch, owner, how many. Reply: {id, head, up to which record it is indexed} for each.
local P, owner, rows = ARGV[1], ARGV[3], {}
if redis.call('GET', P .. 'epoch') ~= ARGV[2] then return redis.error_reply('RESET the data is gone') end
local unindexed = P .. 'unindexed:' .. owner
if redis.call('EXISTS', P .. 'searched:' .. owner) == 0 then -- from now on whoever writes a session says so
  redis.call('SET', P .. 'searched:' .. owner, '1')
  local all = redis.call('ZRANGE', P .. 'owner:' .. owner, 0, -1, 'WITHSCORES')
  for at = 1, #all, 2 do redis.call('ZADD', unindexed, all[at + 1], all[at]) end
end
while #rows < tonumber(ARGV[4]) do
  local id = redis.call('ZRANGE', unindexed, #rows, #rows)[1]
  if not id then break end
  local head, indexed, in_turn = unpack(redis.call('HMGET', P .. 's:' .. id, 'head', 'indexed', 'in_turn'))
  if head and head ~= indexed and in_turn ~= '1' then
    rows[#rows + 1] = {id, head, indexed or '0'}
  else
    redis.call('ZREM', unindexed, id) -- the end of its turn brings it back
  end
end
return rows
