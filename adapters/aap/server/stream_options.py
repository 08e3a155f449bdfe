"""AAP, outward: records in, frames out. No clock, no socket."""


IDS = "ids"
