"""What is made from the contracts in proto/: Python code, and their reference."""
