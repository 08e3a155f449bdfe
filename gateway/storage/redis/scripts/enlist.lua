#!lua
-- Put sessions of an older Dragoman into the lists; one that was written since is left to its writer.
-- ARGV: prefix, epoch; then for each session: id, head, summary, when it was changed, when it was created, how many
-- labels, the labels.
-- Reply: how many were put into the lists.
local P, at, count = ARGV[1], 3, 0
if redis.call('GET', P .. 'epoch') ~= ARGV[2] then return redis.error_reply('RESET the data is gone') end
while ARGV[at] do
  local id, head, summary, changed, labels = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], {}
  for place = at + 6, at + 5 + tonumber(ARGV[at + 5]) do labels[#labels + 1] = ARGV[place] end
  local key = P .. 's:' .. id
  local owner, now, ordinal, old = unpack(redis.call('HMGET', key, 'owner', 'head', 'ordinal', 'summary'))
  if owner then redis.call('ZADD', P .. 'times:' .. owner, ARGV[at + 4], id) end
  if owner and now == head and not old then
    for _, label in ipairs(labels) do
      local place = 'list:' .. #owner .. ':' .. owner .. ':' .. label
      redis.call('ZADD', P .. 'created' .. place, ordinal, id)
      redis.call('ZADD', P .. 'updated' .. place, changed, id)
    end
    redis.call('HSET', key, 'summary', summary, 'labels', cjson.encode(labels))
    count = count + 1
  end
  at = at + 6 + #labels
end
return count
