"""Ring masks with dealt secrets: ballots that need no dealer."""
