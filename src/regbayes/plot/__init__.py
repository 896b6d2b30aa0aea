"""Pictures of fitted models; every function takes and returns a matplotlib Axes.

matplotlib is an optional dependency, ``pip install "regbayes[plot]"``, and is imported by the
first picture, not by this package.
"""

from regbayes.plot._chain import plot_signal, plot_states, plot_transitions
from regbayes.plot._labels import plot_activations, plot_confusion
from regbayes.plot._regions import plot_decision_regions
from regbayes.plot._topics import plot_topic_words
from regbayes.plot._trace import plot_co_assignment, plot_component_counts, plot_trace

__all__ = [
    "plot_activations",
    "plot_co_assignment",
    "plot_component_counts",
    "plot_confusion",
    "plot_decision_regions",
    "plot_signal",
    "plot_states",
    "plot_topic_words",
    "plot_trace",
    "plot_transitions",
]
