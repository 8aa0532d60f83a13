"""PodMoves: watched, carried out step by step, and resumed."""
