"""What senders of every kind say about tokens, in one form."""
