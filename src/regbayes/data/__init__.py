"""Validation: every error says what is wrong with the input and how to mend it."""

from regbayes.data._table import Frame, check_labelled_table, check_new_table

__all__ = ["Frame", "check_labelled_table", "check_new_table"]
