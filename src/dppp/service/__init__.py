"""The edges: whatever has a disk, a clock, a network or a person. One room per party or concern."""
