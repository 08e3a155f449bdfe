"""The examiners: they test a server, or a client, of one dialect from outside, requirement by requirement."""
