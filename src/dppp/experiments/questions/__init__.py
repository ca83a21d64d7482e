"""Several labels and numbers against ε, beside what one has without the federation."""
