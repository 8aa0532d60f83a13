"""What runs beside the calls: cleaning, placing, waking, reporting."""
