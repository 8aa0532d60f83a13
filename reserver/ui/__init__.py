"""A page on loopback: who holds what, where, until when."""
