"""One file is one table or figure: ``python -m experiments 000_table1``."""
