"""The privacy ledger of one teacher: nothing is answered that is not written down and paid for."""
