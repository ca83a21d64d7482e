"""What every long-running process needs: configuration, logs, health, certificates that end."""
