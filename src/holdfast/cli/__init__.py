"""The command line: arguments in, one surface for answers and errors out."""
