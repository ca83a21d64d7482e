"""The teacher's room: `dppp teacher run`, its place on the broker, its metrics and its models."""
