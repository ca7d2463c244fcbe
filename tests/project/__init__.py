"""The project itself: its layout, documentation, packages, kernels, public names and examples."""
