"""A teacher's own language model, behind a server with the chat completions interface."""
