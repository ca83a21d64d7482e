"""What must survive on disk or in PostgreSQL: teachers' ledgers, aggregators' batches, files."""
