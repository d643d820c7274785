"""The rule language: YAML files of rules into a RuleSet, and the expressions they compute with."""

from fusion_engine.language.load import check_rules, load_library, load_rules
from fusion_engine.language.vocabulary import (
    Binding,
    Unknown,
    as_attribute,
    as_condition,
    as_operand,
    evaluate_expression,
)

__all__ = [
    "Binding",
    "Unknown",
    "as_attribute",
    "as_condition",
    "as_operand",
    "check_rules",
    "evaluate_expression",
    "load_library",
    "load_rules",
]
