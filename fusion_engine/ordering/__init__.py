"""Storage orders: what calls demand, which order each buffer gets, where copies stand."""
