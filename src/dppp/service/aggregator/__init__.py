"""The aggregator's room: `dppp aggregator run`, its place on the broker, its metrics."""
