"""From a float model and samples to statistics, and from those to a standard QDQ model."""

from quantizer.prepare import prepare
from quantizer.quantise import activations, quantise
from quantizer.statistics import Statistics, Summary, collect, merge, summarise

__all__ = ["Statistics", "Summary", "activations", "collect", "merge", "prepare", "quantise", "summarise"]
