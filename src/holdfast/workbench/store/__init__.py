"""All that is kept of one project: checkpoints, trees, pruning."""
