"""The strategies, with the names of upstream's descheduler."""
