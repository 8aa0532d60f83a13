"""Does a pod fit on a node beside what is held for others, and where best. Pure."""
