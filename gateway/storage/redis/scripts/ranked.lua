-- A page of the resources that have most of the terms; or 'unindexed' if some resources lack terms.
-- ARGV: prefix, kind, owner, how many resources make a term common, where the page begins, how many, the terms.
-- Reply: {how many terms count, {{ordinal, newest record, how many terms it has}, ...}}.
local P, kind, shelf = ARGV[1], ARGV[2], ARGV[2] .. '\0' .. ARGV[3]
local common, from, most = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
if redis.call('EXISTS', P .. 'all:' .. shelf) == 0 then return {#ARGV - 6, {}} end
if redis.call('EXISTS', P .. 'indexed:' .. shelf) == 0 then return 'unindexed' end
local rare, frequent, missing = {}, {}, 0
for at = 7, #ARGV do
  local key = P .. 'term:' .. shelf .. '\0' .. ARGV[at]
  local number = redis.call('SCARD', key)
  if number == 0 then
    missing = missing + 1
  elseif number > common then
    frequent[#frequent + 1] = key
  else
    rare[#rare + 1] = key
  end
end
local counting = #rare > 0 and rare or frequent
local counts, order, rows = {}, {}, {}
for _, key in ipairs(counting) do
  for _, ordinal in ipairs(redis.call('SMEMBERS', key)) do
    if counts[ordinal] then
      counts[ordinal] = counts[ordinal] + 1
    else
      counts[ordinal], order[#order + 1] = 1, ordinal
    end
  end
end
table.sort(order, function(one, other)
  if counts[one] ~= counts[other] then return counts[one] > counts[other] end
  return tonumber(one) > tonumber(other)
end)
for at = from + 1, math.min(from + most, #order) do
  local ordinal = order[at]
  local id = redis.call('ZRANGE', P .. 'live:' .. shelf, ordinal, ordinal, 'BYSCORE')[1]
  if id then
    local key = P .. 'resource:' .. kind .. '\0' .. id
    rows[#rows + 1] = {ordinal, redis.call('HGET', key, redis.call('HGET', key, 'newest')), counts[ordinal]}
  end
end
return {#counting + missing, rows}
