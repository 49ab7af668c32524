"""Decide what facts about the machine mean for what Holdfast promises."""
