"""The checks of `holdfast doctor`: what this machine can do, found by trying it."""
