"""The proof of rules and kernels: what they claim, tried on cases drawn from themselves (docs/prove-a-rule.md)."""

from gap_fuse.proof.proving import Effort, prove_rule, prove_rules
from gap_fuse.proof.report import proof_json, proof_lines
from gap_fuse.proof.selecting import select_kernels, select_rules
from gap_fuse.proof.types import Failure, RuleProof, VariantProof

__all__ = [
    "Effort",
    "Failure",
    "RuleProof",
    "VariantProof",
    "proof_json",
    "proof_lines",
    "prove_rule",
    "prove_rules",
    "select_kernels",
    "select_rules",
]
