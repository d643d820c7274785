"""Matching: rules against a view, with the quantisation lens, into candidates and reasons."""

from fusion_engine.matching.emission import Cost
from fusion_engine.matching.index import lacking_operators
from fusion_engine.matching.run import MatchResult, StaleError
from fusion_engine.matching.search import explain_node, match

__all__ = ["Cost", "MatchResult", "StaleError", "explain_node", "lacking_operators", "match"]
