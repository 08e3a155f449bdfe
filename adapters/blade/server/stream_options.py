"""The words in the options of a Blade stream: `raw` and `bare`."""


RAW, BARE = "raw", "bare"
