"""What a reservation is: spec, owner matching, phases, and the ledger of what is held. Pure."""
