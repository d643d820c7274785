"""The cover: which candidates together compute the network at the least cost."""

from fusion_engine.covering.cover import UncoveredError, cover
from fusion_engine.covering.types import Candidate, Plan

__all__ = ["Candidate", "Plan", "UncoveredError", "cover"]
