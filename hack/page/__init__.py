"""The page: its pictures for the docs."""
