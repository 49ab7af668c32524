"""What of git is read or written: repositories, ignore rules, commit plans."""
