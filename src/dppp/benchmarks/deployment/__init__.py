"""`dppp bench --deployment`: real processes and a broker, against their bare parts."""
