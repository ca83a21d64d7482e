"""The network between organisations: NATS, and messages cut into frames that it carries."""
