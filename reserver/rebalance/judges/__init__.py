"""How each strategy of a policy is judged as part of one plan (`sound`), a file for each kind."""
