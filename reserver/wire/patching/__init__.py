"""SchedPatches and AdmissionReviews: bytes to values and back."""
