"""The examiners: they put a server of one dialect through the requirements of that dialect, from outside."""
