"""The webhooks: AdmissionReviews of pods that are created or resized, and their certificates."""
