"""What a start of Reserver takes beside the real API server of a large cluster."""
