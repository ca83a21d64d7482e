"""What queriers reach over HTTP: their jobs, their views, the page. Runs in the aggregator."""
