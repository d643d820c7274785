"""What a rule author asks of the command: check, list, show, query, scaffold, document."""
