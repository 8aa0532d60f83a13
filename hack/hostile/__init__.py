"""A tenant who writes whatever costs most, all the time, and what that costs all others."""
