"""Kernels as data: descriptors, their sizes, their numpy meaning."""

from fusion_engine.kernels.loader import KERNEL_FILE, KernelSet, load_kernels, read_kernels
from fusion_engine.kernels.references import reference
from fusion_engine.kernels.sizes import Sizes, solve_sizes

__all__ = ["KERNEL_FILE", "KernelSet", "Sizes", "load_kernels", "read_kernels", "reference", "solve_sizes"]
