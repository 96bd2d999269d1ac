"""Functions of the user's kind, each with arguments: converted must equal original."""
