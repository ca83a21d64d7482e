"""The edges: stores on disk, and later configuration, network and gateway."""
