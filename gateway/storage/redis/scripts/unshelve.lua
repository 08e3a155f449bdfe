#!lua flags=allow-oom
-- Remove a resource, its versions, and whatever belongs to it. ARGV: prefix, epoch, kind, id, owner. Reply: 1, or 0.
local P = ARGV[1]
if redis.call('GET', P .. 'epoch') ~= ARGV[2] then return redis.error_reply('RESET the data is gone') end
local first = P .. 'resource:' .. ARGV[3] .. '\0' .. ARGV[4]
if redis.call('HGET', first, 'owner') ~= ARGV[5] then return 0 end

local leaving = {ARGV[3] .. '\0' .. ARGV[4]}
while #leaving > 0 do
  local name = table.remove(leaving)
  local key = P .. 'resource:' .. name
  local found = redis.call('HMGET', key, 'owner', 'parent', 'ordinal')
  if found[1] then
    local split = string.find(name, '\0', 1, true)
    local kind, id = string.sub(name, 1, split - 1), string.sub(name, split + 1)
    local versions = redis.call('HLEN', key) - 4
    redis.call('DECRBY', P .. 'resources.kept', versions)
    local weight = redis.call('HGET', P .. 'weights', name)
    if weight then -- else it is from before resources were counted
      redis.call('HINCRBY', P .. 'kept:' .. found[1], 'resources', -versions)
      redis.call('HINCRBY', P .. 'kept:' .. found[1], 'bytes', -weight)
      redis.call('HDEL', P .. 'weights', name)
    end
    redis.call('UNLINK', key)
    local shelf = kind .. '\0' .. found[1]
    for _, state in ipairs({'all:', 'live:'}) do
      redis.call('ZREM', P .. state .. shelf, id)
      redis.call('ZREM', P .. state .. shelf .. '\0' .. found[2], id)
    end
    local terms = redis.call('GET', P .. 'terms:' .. name)
    for _, term in ipairs(terms and cmsgpack.unpack(terms) or {}) do
      redis.call('SREM', P .. 'term:' .. shelf .. '\0' .. term, found[3])
    end
    redis.call('UNLINK', P .. 'terms:' .. name)
    if found[2] ~= '' then redis.call('SREM', P .. 'below:' .. found[2], name) end
    for _, child in ipairs(redis.call('SMEMBERS', P .. 'below:' .. id)) do leaving[#leaving + 1] = child end
    redis.call('UNLINK', P .. 'below:' .. id)
  end
end
return 1
