-- A page of a session without its deltas. ARGV: prefix, id, after which entry, how many entries.
-- Reply: the id of the last entry of the page, then the spines.
local page = redis.call('XRANGE', ARGV[1] .. 'log:' .. ARGV[2], '(' .. ARGV[3], '+', 'COUNT', ARGV[4])
local told = {''}
for _, entry in ipairs(page) do
  told[1] = entry[1]
  told[#told + 1] = entry[2][4]
end
return told
