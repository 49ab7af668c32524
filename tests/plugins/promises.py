"""Mark what a test proves: `--promise F7` runs the proofs, and skipped ones are named aloud."""
