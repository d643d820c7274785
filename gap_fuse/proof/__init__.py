"""The proof of rules and kernels: what they claim, tried on cases drawn from themselves (docs/prove-a-rule.md)."""

from gap_fuse.proof.kernel_calls import calls_of
from gap_fuse.proof.kernel_proving import ImplementationProof
from gap_fuse.proof.kernel_report import kernel_json, kernel_lines
from gap_fuse.proof.kernel_running import prove_kernels
from gap_fuse.proof.proving import Effort, prove_rule, prove_rules
from gap_fuse.proof.report import proof_json, proof_lines
from gap_fuse.proof.selecting import select_kernels, select_rules
from gap_fuse.proof.types import Failure, RuleProof, VariantProof

__all__ = [
    "Effort",
    "Failure",
    "ImplementationProof",
    "RuleProof",
    "VariantProof",
    "calls_of",
    "kernel_json",
    "kernel_lines",
    "proof_json",
    "proof_lines",
    "prove_kernels",
    "prove_rule",
    "prove_rules",
    "select_kernels",
    "select_rules",
]
