"""Validation: every error says what is wrong with the input and how to mend it."""

from regbayes.data._features import SequenceFeatures
from regbayes.data._quantizer import SequenceQuantizer
from regbayes.data._report import ReportMixin
from regbayes.data._sequences import (
    SequenceMixin,
    Sequences,
    SequenceTags,
    check_sequence_labels,
    check_sequences,
    check_step_labels,
)
from regbayes.data._steps import StepTransformer
from regbayes.data._table import Frame, check_labelled_table, check_new_table

__all__ = [
    "Frame",
    "ReportMixin",
    "SequenceFeatures",
    "SequenceMixin",
    "SequenceQuantizer",
    "SequenceTags",
    "Sequences",
    "StepTransformer",
    "check_labelled_table",
    "check_new_table",
    "check_sequence_labels",
    "check_sequences",
    "check_step_labels",
]
