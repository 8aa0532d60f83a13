"""A real Karpenter, whose cloud are nodes of KWOK, for the end-to-end tests of autoscalers."""
