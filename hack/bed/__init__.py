"""What storms and measurements lie on: a control plane, Reserver with its rights, a scheduler."""
