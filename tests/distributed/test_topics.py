"""Topics over shards of documents: the numbers of one machine, bit by bit, whatever the shards."""

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

from regbayes.chains import Checkpoint
from regbayes.distributed import _topics, fit
from regbayes.distributed._shards import Place, Shards
from regbayes.kernels.topics import Corpus, make_corpus
from regbayes.priors import AsymmetricDirichlet, Fixed, GammaPrior
from regbayes.topics import LatentDirichlet, MaxMarginTopics, gibbs
from tests.distributed.here import Here
from tests.robustness.runs import flat, same

RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(
    np.repeat(RNG.dirichlet(np.full(30, 0.2), 3), 8, axis=0) * 25
)  # three topics of thirty words
COUNTS[5] = 0  # an empty document
K = 4


def corpus_of(counts):
    table = csr_array(counts)
    return make_corpus(table.indptr, table.indices, table.data, counts.shape[1])


def make_model(fixed=False):
    alpha = Fixed(0.1) if fixed else GammaPrior(1.0, 10.0)
    beta = Fixed(0.05) if fixed else GammaPrior(1.0, 20.0)
    return gibbs.Model(corpus_of(COUNTS), K, AsymmetricDirichlet(alpha), beta, n_settle=6)


def cut(model, edges):
    corpora = [corpus_of(COUNTS[low:high]) for low, high in itertools.pairwise(edges)]
    sizes = np.array([len(corpus.words) for corpus in corpora])
    data = [
        _topics.Shard(replace(model, corpus=corpus), Place(int(before), int(sizes.sum())))
        for corpus, before in zip(corpora, np.cumsum(sizes) - sizes)
    ]
    none = np.empty(0, dtype=np.int32)
    word_starts = np.zeros(model.corpus.n_words + 1, dtype=np.int64)
    law = replace(model, corpus=Corpus(none, model.corpus.starts, none, word_starts))
    return Shards([], sizes, Here(), data), law


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("edges", [[0, 24], [0, 5, 6, 24], [0, 1, 9, 17, 20, 24]])
def test_sweeps_over_shards_are_those_of_one_machine(edges, fixed):
    model = make_model(fixed)
    shards, law = cut(model, edges)
    one, two = np.random.default_rng(1), np.random.default_rng(1)
    state, parts = gibbs.init(model, one), _topics.init(shards, law, two)
    for sweep in range(12):  # half of them settle
        state = gibbs.step(model, one, state)
        parts = _topics.step(shards, law, two, parts)
        z = np.concatenate([pair[0] for pair in vars(parts.tokens)["pairs"]])
        np.testing.assert_array_equal(state.z, z)
        assert one.bit_generator.state == two.bit_generator.state, sweep
        assert flat(gibbs.record(model, state)) == flat(_topics.record(law, parts))


few = {"n_draws": 4, "burn_in": 10, "n_chains": 2, "random_state": 0}


def quiet(function, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **options)


def test_a_fit_on_a_cluster_is_that_of_one_machine(client, tmp_path):
    dask_array = pytest.importorskip("dask.array")
    dataframe = pytest.importorskip("dask.dataframe")
    import pandas as pd

    model = LatentDirichlet(K, **few)
    here = quiet(clone(model).fit, COUNTS)
    table = pd.DataFrame(COUNTS, columns=[f"w{i}" for i in range(30)])
    for i, (low, high) in enumerate([(0, 10), (10, 24)]):
        table[low:high].to_parquet(tmp_path / f"{i}.parquet", index=False)
    ways = {
        "here": COUNTS,
        "sparse": csr_array(COUNTS),
        "array": dask_array.from_array(COUNTS, chunks=(7, 10)),
        "Parquet": dataframe.read_parquet(tmp_path),
    }
    for name, X in ways.items():
        there = quiet(fit, clone(model), X, client=client, n_shards=3)
        if name == "Parquet":
            assert list(there.feature_names_in_[:2]) == ["w0", "w1"]
            del there.feature_names_in_
        assert same(here, there), name


@pytest.mark.slow
def test_a_run_goes_on_from_its_checkpoint(client, tmp_path):
    model = LatentDirichlet(K, **few)
    whole = quiet(clone(model).fit, COUNTS)
    book = Checkpoint(tmp_path, every=1)
    begun = clone(model).set_params(n_draws=1, checkpoint=book)
    quiet(fit, begun, COUNTS, client=client, n_shards=3)
    ended = clone(model).set_params(checkpoint=book)
    quiet(fit, ended, COUNTS, client=client, n_shards=3)
    assert same(whole, ended)


def test_what_cannot_be_done_says_so(client):
    with pytest.raises(TypeError, match="MaxMarginTopics cannot be fitted"):
        fit(MaxMarginTopics(2), COUNTS, client=client)
