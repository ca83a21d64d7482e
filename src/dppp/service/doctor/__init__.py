"""Looks over what an organisation runs, and says what to do: `dppp doctor`. It changes nothing."""
