#!lua flags=allow-oom
-- A write for which WAIT can wait, though there is no room for anything else. KEYS: where.
redis.call('SET', KEYS[1], '1')
return 1
