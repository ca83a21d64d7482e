"""How often labels are right under each framework, and what the paper claims about that."""
