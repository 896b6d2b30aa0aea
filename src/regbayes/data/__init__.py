"""Validation: every error says what is wrong with the input and how to mend it."""

from regbayes.data._columns import Arranged, TableModel
from regbayes.data._documents import Documents, check_documents, check_labelled_documents
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
from regbayes.data._table import (
    Frame,
    check_classes,
    check_labelled_table,
    check_new_table,
    check_size,
)
from regbayes.data._views import (
    VIEW_BOUND,
    ViewReader,
    ViewRows,
    Views,
    check_class_labels,
    check_numbers,
)
from regbayes.data._words import SequenceWords

__all__ = [
    "VIEW_BOUND",
    "Arranged",
    "Documents",
    "Frame",
    "ReportMixin",
    "SequenceFeatures",
    "SequenceMixin",
    "SequenceQuantizer",
    "SequenceTags",
    "SequenceWords",
    "Sequences",
    "StepTransformer",
    "TableModel",
    "ViewReader",
    "ViewRows",
    "Views",
    "check_class_labels",
    "check_classes",
    "check_documents",
    "check_labelled_documents",
    "check_labelled_table",
    "check_new_table",
    "check_numbers",
    "check_sequence_labels",
    "check_sequences",
    "check_size",
    "check_step_labels",
]
