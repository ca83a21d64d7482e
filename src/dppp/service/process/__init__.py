"""What every long-running process needs: configuration, logs, health, TLS certificates that end."""
