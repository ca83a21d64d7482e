"""How many votes each teacher should cast: for whoever has records and plans a federation."""
