"""Harmoniums: features of tables, texts and several views, which count themselves."""
