"""What the paper's protocol and ours cost; used by `dppp reproduce overhead` and `dppp bench`."""
