def reference_fails(v):
    return saturated(v)  # noqa: F821
