"""Topics of documents: found by their words alone, or with a margin on the documents' labels."""

from regbayes.topics._latent_dirichlet import LatentDirichlet
from regbayes.topics._max_margin import MaxMarginTopics

__all__ = ["LatentDirichlet", "MaxMarginTopics"]
