"""The operations of the workbench; each holds the workbench once."""
