"""The test bed of storms and measurements: control plane, scheduler, Reserver with its rights."""
