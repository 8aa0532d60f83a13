"""What the API server tells: lists and watches, and what may have been missed."""
