"""A whole federation of processes on one machine, by the same steps as between organisations."""
