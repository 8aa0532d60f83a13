"""What runs all the time beside the calls: tidying, placing, waking, telling."""
