"""Reservations as files contain them."""

from __future__ import annotations

SPEC = (
    '{"owners": [{"pod": {"name": "web-0", "namespace": "shop"}}], '
    '"node": "w1", "resources": {"cpu": 2}}'
)
OBJECT = f"""
apiVersion: reserver.io/v1alpha1
kind: Reservation
metadata: {{name: a, namespace: shop}}
spec: {SPEC}
"""
NAMED = f"name: b\nspec: {SPEC}\n"
