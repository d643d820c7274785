"""For exporters: functions whose namespace says where operators came from (docs/for-exporters.md)."""

from gap_fuse.export.marks import namespaced
from gap_fuse.export.outlining import Outlined, outline
from gap_fuse.export.torch_export import fusion_friendly_export

__all__ = ["Outlined", "fusion_friendly_export", "namespaced", "outline"]
