"""gap-fuse: declarative fusion rules, an exact tiler and a C emitter for ONNX networks on small multi-core chips."""
