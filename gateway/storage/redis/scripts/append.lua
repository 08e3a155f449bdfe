#!lua
-- Append to several sessions; each is all or nothing, and none knows of the others.
-- ARGV: prefix, epoch, replica, model, how many sessions there may be in all, how many of one owner ('' where that is
-- not bounded), '1' to announce the records to the other servers now; then for each session twelve values, its labels,
-- and its words:
--   id, token, head before, head after, in turn ('1', '0', or '' where nothing changes), owner, spine, deltas,
--   summary ('' where nothing changes), when it was changed, when it was created, how many labels, the labels,
--   how many words, the words.
-- Reply: how many sessions there are, then for each one {what became of it, the head that the log has now, its owner,
-- how many bytes the owner has, how many sessions}.
local P, epoch, me, model = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if redis.call('GET', P .. 'epoch') ~= epoch then return redis.error_reply('RESET the data is gone') end

local function turn(id, key, now)
  if now == '' then return end
  redis.call('HSET', key, 'in_turn', now)
  if now == '1' then
    redis.call('ZADD', P .. 'open', redis.call('HGET', key, 'ordinal'), id)
    redis.call('SADD', P .. 'open:' .. me, id)
    redis.call('SADD', P .. 'replicas', me) -- a writer that was thought dead is looked after again
  else
    redis.call('ZREM', P .. 'open', id)
    redis.call('SREM', P .. 'open:' .. me, id)
  end
end

local function next_ordinal()
  local partition = redis.call('HMGET', P .. 'partition', 'number', 'of')
  if not partition[1] then return redis.call('INCR', P .. 'ordinal') end
  local last, time = tonumber(redis.call('GET', P .. 'ordinal') or '0'), redis.call('TIME')
  local now = (tonumber(time[1]) - 1735689600) * 1000000 + tonumber(time[2]) -- microseconds since 2025
  -- it grows with time, so that lists of partitions can be merged, and is below 2^53 for 70 years
  local place = math.max(math.floor(4 * now / partition[2]), math.floor(last / partition[2]) + 1)
  redis.call('SET', P .. 'ordinal', string.format('%d', place * partition[2] + partition[1]))
  return string.format('%d', place * partition[2] + partition[1])
end

local function enrol(id, key, owner, token)
  local before = redis.call('GET', P .. 'ordinal') or '0'
  local ordinal = next_ordinal()
  redis.call('INCRBY', P .. 'timed', ordinal - before) -- an older Dragoman counts ordinals only, and adds no times
  redis.call('HSET', key, 'owner', owner, 'ordinal', ordinal, 'token', token, 'holder', me, 'head', '0', 'in_turn', '0')
  redis.call('ZADD', P .. 'sessions', ordinal, id)
  redis.call('ZADD', P .. 'owner:' .. owner, ordinal, id)
end

local function list(id, key, owner, summary, changed, created, labels)
  local ordinal, old = unpack(redis.call('HMGET', key, 'ordinal', 'labels'))
  local place, now = 'list:' .. #owner .. ':' .. owner .. ':', {}
  redis.call('ZADD', P .. 'times:' .. owner, created, id)
  for _, label in ipairs(labels) do
    now[label] = true
    redis.call('ZADD', P .. 'created' .. place .. label, ordinal, id)
    redis.call('ZADD', P .. 'updated' .. place .. label, changed, id)
  end
  for _, label in ipairs(old and cjson.decode(old) or {}) do
    if not now[label] then
      redis.call('ZREM', P .. 'created' .. place .. label, id)
      redis.call('ZREM', P .. 'updated' .. place .. label, id)
    end
  end
  redis.call('HSET', key, 'summary', summary, 'labels', cjson.encode(labels))
end

local function room(owner)
  if redis.call('ZCARD', P .. 'sessions') >= tonumber(ARGV[5]) then return 'full' end
  if ARGV[6] ~= '' and redis.call('ZCARD', P .. 'owner:' .. owner) >= tonumber(ARGV[6]) then return 'sessions' end
end

local told, at = {0}, 8
while ARGV[at] do
  local id, token, before, after, now = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
  local spine, deltas, labels = ARGV[at + 6], ARGV[at + 7], {}
  for place = at + 12, at + 11 + tonumber(ARGV[at + 11]) do labels[#labels + 1] = ARGV[place] end
  local first_word = at + 13 + #labels
  local words = tonumber(ARGV[first_word - 1])
  local key = P .. 's:' .. id
  local found, none = redis.call('HMGET', key, 'token', 'head', 'owner', 'bytes'), nil
  if not found[1] and before == '0' then
    none = room(ARGV[at + 5])
    if not none then
      enrol(id, key, ARGV[at + 5], token)
      found = {token, '0', ARGV[at + 5], '0'}
    end
  end
  if none then
    told[#told + 1] = {none, '0'}
  elseif not found[1] then
    told[#told + 1] = {'gone', '0'}
  elseif found[1] ~= token then
    told[#told + 1] = {'fenced', found[2]}
  elseif found[2] ~= before then
    told[#told + 1] = {'at', found[2]}
  else
    redis.call('XADD', P .. 'log:' .. id, after .. '-0', 'm', model, 's', spine, 'w', deltas)
    local size = #spine + #deltas
    redis.call('HSET', key, 'head', after, 'bytes', tonumber(found[4] or '0') + size)
    local bytes = redis.call('HINCRBY', P .. 'kept:' .. found[3], 'bytes', size)
    turn(id, key, now)
    if ARGV[at + 8] ~= '' then list(id, key, found[3], ARGV[at + 8], ARGV[at + 9], ARGV[at + 10], labels) end
    if (now == '0' or ARGV[at + 8] ~= '') and redis.call('EXISTS', P .. 'searched:' .. found[3]) == 1 then
      redis.call('ZADD', P .. 'unindexed:' .. found[3], redis.call('HGET', key, 'ordinal'), id)
    end
    for place = first_word, first_word + words - 1 do
      redis.call('HSET', P .. 'places', ARGV[place], id)
      redis.call('SADD', P .. 'words:' .. id, ARGV[place])
    end
    if ARGV[7] == '1' then redis.call('PUBLISH', P .. 'news:' .. id, spine .. deltas) end
    local sessions = before == '0' and redis.call('ZCARD', P .. 'owner:' .. found[3]) or -1
    told[#told + 1] = {'ok', after, found[3], bytes, sessions}
  end
  at = first_word + words
end
told[1] = redis.call('ZCARD', P .. 'sessions')
return told
