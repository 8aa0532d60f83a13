"""The strategies, one file each; the names in them are those of upstream's descheduler."""
