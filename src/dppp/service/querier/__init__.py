"""The querier's room: asks a gateway, waits, checks what it gets."""
