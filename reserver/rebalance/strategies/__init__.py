"""The strategies; their names are those of upstream's descheduler."""
