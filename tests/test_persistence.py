"""Model files: what comes back predicts the same bits; what is forged or broken is refused."""

import json
import pickle
import subprocess
import sys
import tracemalloc
import warnings
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays
from sklearn.base import BaseEstimator, clone
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import LinearSVC

import regbayes
from regbayes import _files, persistence
from regbayes.data import (
    SequenceFeatures,
    SequenceQuantizer,
    SequenceWords,
    StepTransformer,
    TableModel,
)
from regbayes.harmonium import (
    DiscriminativeRBM,
    Harmonium,
    InfiniteHarmonium,
    InfiniteMaxMarginHarmonium,
    MaxMarginHarmonium,
    MaxMarginHarmoniumRegressor,
)
from regbayes.hmm import (
    CategoricalHMM,
    GaussianHMM,
    InfiniteHMM,
    LargeMarginHMM,
    MarkovSwitchingMED,
    MaxMarginInfiniteHMM,
)
from regbayes.mixture import DPMultinomialLogit, GibbsInfiniteSVM, InfiniteSVM
from regbayes.persistence import ModelFileError
from regbayes.scores import (
    FisherKernelLearning,
    FisherScore,
    FreeEnergyScore,
    MarginClassifier,
    MaxMarginScore,
    MaxMarginScoreClassifier,
    PosteriorDivergenceScore,
    Preprocessed,
    SideBySide,
    SufficientStatisticsScore,
    TOPScore,
)
from regbayes.topics import LatentDirichlet, MaxMarginTopics
from tests.robustness.runs import DATA, SEQUENCES, same

STEPS, LABELS = SEQUENCES["MaxMarginInfiniteHMM"]
WORDS = [list("ab" * n) for n in range(3, 7)] + [list("aabb" * n) for n in range(2, 6)]
KINDS = ["single"] * 4 + ["pairs"] * 4
SYMBOLS = CategoricalHMM(2, n_iter=3, random_state=0)
CURVES = [np.sin(np.arange(n) * (1 + n % 2)) for n in range(9, 17)]
LOOKS = ("predict", "predict_proba", "decision_function", "transform", "decode", "score_samples")
few = {"n_draws": 4, "burn_in": 3, "random_state": 0}

FRAME = pd.DataFrame({"x": np.sin(np.arange(12.0)), "y": ["a", "b", "b"] * 4, "id": [1, 2, 2] * 4})
table, words, curves = DATA, (WORDS, KINDS), (CURVES, KINDS)
EXAMPLES = {
    GibbsInfiniteSVM: [
        (GibbsInfiniteSVM(**few), table),
        (GibbsInfiniteSVM(covariance="full", prediction="iterated", n_rounds=3, **few), table),
        (GibbsInfiniteSVM(warm_start=True, alpha=2, **few), table),
        (GibbsInfiniteSVM(n_draws=2, burn_in=1, random_state=np.random.default_rng(3)), table),
    ],
    DPMultinomialLogit: [(DPMultinomialLogit(prediction="single", n_rounds=2, **few), table)],
    InfiniteSVM: [
        (InfiniteSVM(max_components=2, random_state=0), table),
        (InfiniteSVM(max_components=2, covariance="full", random_state=0), table),
    ],
    InfiniteHMM: [
        (InfiniteHMM(**few), (STEPS,)),
        (InfiniteHMM("diag", stickiness=(1.0, 2.0), **few), (STEPS,)),
        (InfiniteHMM("categorical", **few), (WORDS,)),
        (InfiniteHMM("poisson", **few), ([np.abs(x).astype(int) for x in STEPS],)),
    ],
    MaxMarginInfiniteHMM: [
        (MaxMarginInfiniteHMM(**few), (STEPS, LABELS)),
        (MaxMarginInfiniteHMM(None, prediction="iterated", n_rounds=2, **few), (STEPS, LABELS)),
    ],
    MarkovSwitchingMED: [
        (MarkovSwitchingMED(2, random_state=0), (STEPS, LABELS)),
        (MarkovSwitchingMED(2, emission=None, random_state=0), (STEPS, LABELS)),
    ],
    CategoricalHMM: [
        (SYMBOLS, (WORDS,)),
        (CategoricalHMM(2, topology=[[True, True], [False, True]], unknown="missing"), (WORDS,)),
    ],
    GaussianHMM: [(GaussianHMM(2, random_state=0), (STEPS,)), (GaussianHMM(2, "full"), (STEPS,))],
    LargeMarginHMM: [(LargeMarginHMM(SYMBOLS, max_iter=5, tol=1.0), words)],
    SufficientStatisticsScore: [(SufficientStatisticsScore(SYMBOLS, segments=2), words)],
    FisherScore: [(FisherScore(GaussianHMM(2, random_state=0)), curves)],
    FreeEnergyScore: [(FreeEnergyScore(SYMBOLS), words)],
    PosteriorDivergenceScore: [(PosteriorDivergenceScore(SYMBOLS), words)],
    TOPScore: [(TOPScore(SYMBOLS), words)],
    FisherKernelLearning: [(FisherKernelLearning(SYMBOLS, n_iter=2, random_state=0), words)],
    MaxMarginScore: [
        (MaxMarginScore(SYMBOLS, n_iter=2, random_state=0), words),
        (MaxMarginScore(SYMBOLS, n_iter=1, solver="em", multi_class="ovr"), words),
    ],
    MarginClassifier: [(MarginClassifier(), table)],
    MaxMarginScoreClassifier: [
        (MaxMarginScoreClassifier(learn="never", cv=2, random_state=0), words),
        (MaxMarginScoreClassifier(SYMBOLS, classifier=LinearSVC(), cv=2, C=1.0), words),
        (MaxMarginScoreClassifier(learn="always", solver="em", cv=2, random_state=0), curves),
    ],
    Preprocessed: [
        (
            SufficientStatisticsScore(
                Preprocessed(SequenceQuantizer(3, use="velocities", random_state=0), SYMBOLS)
            ),
            curves,
        )
    ],
    SideBySide: [
        (
            SufficientStatisticsScore(
                SideBySide([Preprocessed(SequenceQuantizer(3), SYMBOLS), GaussianHMM(2)])
            ),
            curves,
        )
    ],
    **{
        harmonium: [(harmonium(4, max_iter=2, random_state=0), table)]
        for harmonium in (
            Harmonium,
            InfiniteHarmonium,
            MaxMarginHarmonium,
            InfiniteMaxMarginHarmonium,
        )
    },
    MaxMarginHarmoniumRegressor: [
        (MaxMarginHarmoniumRegressor(4, max_iter=2, random_state=0), (table[0], table[0][:, 0]))
    ],
    DiscriminativeRBM: [(DiscriminativeRBM(4, max_iter=2, random_state=0), table)],
    LatentDirichlet: [(LatentDirichlet(3, **few), SEQUENCES["LatentDirichlet"])],
    MaxMarginTopics: [
        (MaxMarginTopics(3, **few), SEQUENCES["MaxMarginTopics"]),
        (MaxMarginTopics("auto", max_topics=5, **few), SEQUENCES["MaxMarginTopics"]),
    ],
    SequenceQuantizer: [(SequenceQuantizer(3, random_state=0), (STEPS,))],
    SequenceWords: [(SequenceWords(2), (WORDS,))],
    SequenceFeatures: [(SequenceFeatures(use="both", scale=True), (STEPS,))],
    StepTransformer: [(StepTransformer(PCA(1)), (STEPS,))],
    TableModel: [
        (TableModel(GibbsInfiniteSVM(**few), ["x"], "y", facts={"rows": 2}), (FRAME,)),
        (TableModel(InfiniteHMM(**few), ["x"], None, "id"), (FRAME,)),
    ],
}
WITH_SKLEARN = [
    make_pipeline(scaler, head)
    for scaler, head in zip(
        (StandardScaler(), MinMaxScaler(), RobustScaler(), MaxAbsScaler(), Normalizer(), PCA(2)),
        (
            GibbsInfiniteSVM(**few),
            LinearSVC(),
            LogisticRegression(),
            LinearSVC(),
            MarginClassifier(),
            InfiniteSVM(max_components=2, random_state=0),
        ),
    )
]
CASES = [case for cases in EXAMPLES.values() for case in cases]
CASES += [(pipeline, table) for pipeline in WITH_SKLEARN]
FILES = Path(__file__).parent / "files"


def fitted(model, data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(model).fit(*data)


def answers(model, X):
    found = {}
    for name in LOOKS:
        if hasattr(model, name):
            got = getattr(model, name)(X)
            parts = got if isinstance(got, list) else [got]
            found[name] = [(np.asarray(p).dtype.str, np.asarray(p).tolist()) for p in parts]
    return found


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The file of a small model, and the model."""
    model = fitted(GibbsInfiniteSVM(**few), table)
    path = tmp_path_factory.mktemp("models") / "small.model"
    regbayes.save(model, path)
    return path, model


def test_there_is_an_example_of_every_estimator():
    public = set()
    for family in persistence._FAMILIES:
        module = import_module(f"regbayes.{family}")
        values = [getattr(module, name) for name in module.__all__]
        public |= {v for v in values if isinstance(v, type) and issubclass(v, BaseEstimator)}
    assert public == set(EXAMPLES)


@pytest.mark.parametrize(("model", "data"), CASES, ids=lambda each: type(each).__name__)
def test_what_comes_back_predicts_the_same_bits(tmp_path, model, data):
    model = fitted(model, data)
    path = tmp_path / "a.model"
    regbayes.save(model, path)
    again = regbayes.load(path)
    assert type(again) is type(model)
    assert same(again, model)
    got = answers(again, data[0])
    assert got == answers(model, data[0])
    assert got
    regbayes.save(again, tmp_path / "b.model")
    assert same(regbayes.load(tmp_path / "b.model"), model)
    assert same(pickle.loads(pickle.dumps(model)), model)  # the way scikit-learn's users expect


def test_a_model_that_is_not_fitted_comes_back(tmp_path):
    regbayes.save(GibbsInfiniteSVM(C=3.0), tmp_path / "x")
    again = regbayes.load(tmp_path / "x")
    assert again.get_params() == GibbsInfiniteSVM(C=3.0).get_params()


def test_a_loaded_model_fits_and_goes_on(tmp_path):
    model = fitted(GibbsInfiniteSVM(warm_start=True, **few), table)
    regbayes.save(model, tmp_path / "x")
    again = regbayes.load(tmp_path / "x")
    assert same(again.fit(*table), model.fit(*table))
    assert again.trace_.n_draws == 8


def test_callbacks_and_checkpoints_stay_behind(tmp_path):
    model = GibbsInfiniteSVM(checkpoint=tmp_path / "run", callbacks=[], **few).fit(*table)
    regbayes.save(model, tmp_path / "x")
    again = regbayes.load(tmp_path / "x")
    assert again.checkpoint is None
    assert again.callbacks is None
    np.testing.assert_array_equal(again.predict(table[0]), model.predict(table[0]))


@pytest.mark.parametrize("dtype", [int, bool, str, object])
def test_labels_of_any_type(tmp_path, dtype):
    names = ["\u00e9", ""] if dtype in (str, object) else [0, 1]
    y = np.array(names, dtype=dtype)[(table[0][:, 0] > 0).astype(int)]
    model = GibbsInfiniteSVM(**few)
    regbayes.save(model.fit(table[0], y), tmp_path / "x")
    assert same(regbayes.load(tmp_path / "x"), model)


def test_names_of_columns_come_along(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(table[0], columns=["width", "height"])
    model = GibbsInfiniteSVM(**few).fit(frame, table[1])
    regbayes.save(model, tmp_path / "x")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = regbayes.load(tmp_path / "x").predict(frame)
    np.testing.assert_array_equal(again, model.predict(frame))


# Old and new.


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.InconsistentVersionWarning")
@pytest.mark.parametrize("file", sorted(FILES.glob("*.model")), ids=lambda file: file.stem)
def test_files_of_older_formats_load(file):
    """They stay as they are, whatever becomes of the library."""
    model = regbayes.load(file)
    X, labels = json.loads(file.with_suffix(".json").read_text())
    assert np.concatenate([*map(np.atleast_1d, model.predict(X))]).tolist() == labels


def test_there_are_files_of_all_formats():
    formats = {int(file.stem.split("-")[1]) for file in FILES.glob("*.model")}
    assert formats == set(range(1, _files.FORMAT + 1))


def test_a_newer_format_is_refused_with_a_remedy(tmp_path, monkeypatch, small):
    monkeypatch.setattr(_files, "FORMAT", 2)
    regbayes.save(small[1], tmp_path / "x")
    monkeypatch.undo()
    with pytest.raises(ModelFileError, match="update regbayes"):
        regbayes.load(tmp_path / "x")


def test_a_parameter_that_is_new_takes_its_default(tmp_path, small):
    def forget(tree):
        del tree["dict"]["model"]["estimator"][1]["n_rounds"]

    assert regbayes.load(forge(small[0], tmp_path / "x", forget)).n_rounds == 50


def test_scikit_learn_of_another_version_is_warned_about(tmp_path):
    regbayes.save(fitted(WITH_SKLEARN[0], table), tmp_path / "x")
    other = forge(tmp_path / "x", tmp_path / "y", lambda t: t["dict"].update(sklearn="1.9.0b"))
    with pytest.warns(InconsistentVersionWarning):
        regbayes.load(other)


@pytest.mark.parametrize(
    "model",
    [RandomForestClassifier(), make_pipeline(StandardScaler(), RandomForestClassifier())],
    ids=["forest", "in a pipeline"],
)
def test_strangers_are_not_saved(tmp_path, model):
    with pytest.raises(ModelFileError, match=r"RandomForestClassifier(?s:.*)To mend it"):
        regbayes.save(model, tmp_path / "x")
    assert not list(tmp_path.iterdir())


def test_what_is_no_estimator_is_not_saved(tmp_path, small):
    with pytest.raises(ModelFileError, match="save the estimator"):
        regbayes.save(small[1].trace_, tmp_path / "x")


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        regbayes.load(tmp_path / "nowhere")


# Forgeries: files whose checksum is right and whose content is not.


def forge(source, target, change):
    """Change the tree of a file, and make its checksum right again."""
    arrays = load_arrays(source.read_bytes())
    with _files.safe_open(source, framework="numpy") as file:
        head = json.loads(file.metadata()["head"])
    head["tree"] = change(head["tree"]) or head["tree"]
    return write_forged(target, head, arrays)


def write_forged(target, head, arrays):
    text = head if isinstance(head, str) else json.dumps(head)
    metadata = {"head": text, "sha256": _files._checksum(text, arrays)}
    target.write_bytes(save_arrays(arrays, metadata))
    return target


def head_of(tree):
    return {"format": 1, "kind": "model", "version": "0.1.0", "tree": tree}


def estimator(name="mixture.GibbsInfiniteSVM", parameters=None, found=None):
    content = {"model": {"estimator": [name, parameters or {}, found or {}]}, "sklearn": "1"}
    return {"dict": content}


HOSTILE = {
    "no estimator": {"dict": {"model": 3}},
    "no dict": [1, 2],
    "an unknown class": estimator("os.system"),
    "a class of no family": estimator("chains.Trace"),
    "a function of a family": estimator("data.check_sequences"),
    "a module": estimator("sklearn.pipeline.make_pipeline"),
    "an unknown parameter": estimator(parameters={"n_threads": 3}),
    "a method replaced": estimator(found={"predict": 3}),
    "the class replaced": estimator(found={"__class__": 3}),
    "a property replaced": estimator("hmm.GaussianHMM", found={"start_": 3}),
    "no identifier": estimator(found={"a b": 3}),
    "a record of another package": estimator(found={"x_": {"record": ["os.stat_result", {}]}}),
    "a module that is not loaded": estimator(found={"x_": {"record": ["regbayes.demo.X", {}]}}),
    "not a record": estimator(found={"x_": {"record": ["regbayes.chains._run.run", {}]}}),
    "an imported name": estimator(
        found={"x_": {"record": ["regbayes.chains._run.Progress", {"state": 1}]}}
    ),
    "fields that are others": estimator(
        found={"x_": {"record": ["regbayes.priors.concentration.Fixed", {"values": 1}]}}
    ),
    "an unknown kind": estimator(found={"x_": {"eval": "1"}}),
    "two kinds": estimator(found={"x_": {"int": "1", "float": "1"}}),
    "an unknown array": estimator(found={"x_": {"array": "nowhere"}}),
    "an array by a list": estimator(found={"x_": {"array": ["a"]}}),
    "a column twice": estimator(found={"x_": [{"numbers": "a"}, {"numbers": "a"}]}),
    "unequal columns": estimator(found={"x_": {"rows": {"a": [1, 2], "b": [1]}}}),
    "an array of lists twice": estimator(
        found={"x_": [{"arrays": ["a", "fitting"]}, {"arrays": ["a", "fitting"]}]}
    ),
    "a text twice": estimator(found={"x_": [{"strings": ["a", "c"]}, {"strings": ["a", "d"]}]}),
    "shapes that do not fit": estimator(found={"x_": {"arrays": ["a", "shapes"]}}),
    "lengths that do not fit": estimator(found={"x_": {"strings": ["a", "b"]}}),
    "letters that are none": estimator(found={"x_": {"text": ["U", "letters"]}}),
    "a generator of no kind": estimator(
        found={"x_": {"generator": {"dict": {"bit_generator": "seed"}}}}
    ),
    "a generator beyond its end": estimator(
        found={
            "x_": {
                "generator": {
                    "dict": {
                        "bit_generator": "MT19937",
                        "state": {"dict": {"key": {"array": "a"}, "pos": 10**9}},
                    }
                }
            }
        }
    ),
    "a huge integer": estimator(found={"x_": {"int": "9" * 10_000}}),
    "depth": estimator(found={"x_": json.loads('{"tuple":[' * 200 + "]}" * 200)}),
    "a list of nothing": estimator(found={"x_": {"numbers": "empty"}}),
    "objects of a huge shape": estimator(found={"x_": {"objects": [[10**9, 10**9], [1]]}}),
    "many objects": estimator(found={f"x{i}_": {"numbers": f"bits{i}"} for i in range(40)}),
    "many rows": estimator(found={"x_": {"rows": {"a": {"numbers": "many"}}}}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_forged_files_are_refused(tmp_path, name):
    arrays = {
        "a": np.arange(6.0),
        "b": np.array([2, 5]),
        "c": np.array([48]),
        "d": np.array([48]),
        "fitting": np.array([[6]]),
        "shapes": np.array([[2, 2], [1, -1]]),
        "letters": np.full((2, 3), 2**31, dtype=np.uint32),
        "empty": np.zeros((2**40, 0)),
        "many": np.zeros(2**19, dtype=bool),
        **{f"bits{i}": np.zeros(2**16, dtype=bool) for i in range(40)},
    }
    path = write_forged(tmp_path / "x", head_of(HOSTILE[name]), arrays)
    with guarded(path), pytest.raises(ModelFileError, match=r"To mend it: .*\.$"):
        regbayes.load(path)


@pytest.mark.parametrize(
    "head",
    [
        "",
        "{}",
        "[]",
        "[" * 30_000,
        '{"format": 1',
        json.dumps(head_of(1) | {"format": 0}),
        json.dumps(head_of(1) | {"format": "1"}),
        json.dumps(head_of(1) | {"format": True}),
        json.dumps(head_of(1) | {"kind": "checkpoint"}),
        json.dumps(head_of(1) | {"version": [2]} | {"format": 9}),
        '{"format":1,"kind":"model","version":"1","tree":{"dict":{"model":' + "9" * 5000 + "}}}",
    ],
)
def test_forged_heads_are_refused(tmp_path, head):
    path = write_forged(tmp_path / "x", head, {"a": np.zeros(3)})
    with guarded(path), pytest.raises(ModelFileError, match="To mend it"):
        regbayes.load(path)


class guarded:
    """No module is imported meanwhile, and no memory is taken beyond what the file may ask for."""

    def __init__(self, path, allowance=100_000_000):
        self.limit = 2 * path.stat().st_size + allowance

    def __enter__(self):
        tracemalloc.start()
        self.modules = set(sys.modules)

    def __exit__(self, *error):
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak <= self.limit, f"{peak} bytes, and {self.limit} would do"
        assert set(sys.modules) == self.modules


# Accidents: ten thousand random mutations.


def hostile_header(data, rng):
    """Lie about sizes in the header, which safetensors reads before anything else."""
    n = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + n])
    names = [name for name in header if name != "__metadata__"]
    name = names[rng.integers(len(names))]
    lie = rng.integers(6)
    if lie == 0:
        header[name]["shape"] = [int(rng.integers(1, 2**40))]
    elif lie == 1:
        header[name]["data_offsets"][1] = int(rng.integers(2**62))
    elif lie == 2:
        header[name]["dtype"] = rng.choice(["F64", "U8", "BF16", "F8_E4M3", "nothing"]).item()
    elif lie == 3:
        del header[name]
    elif lie == 4:
        other = names[rng.integers(len(names))]
        header[name], header[other] = header[other], header[name]
    else:
        return int(rng.integers(2**63)).to_bytes(8, "little") + data[8:]
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data[8 + n :]


def swap_tensors(data, rng):
    arrays = load_arrays(data)
    n = int.from_bytes(data[:8], "little")
    metadata = json.loads(data[8 : 8 + n])["__metadata__"]
    one, two = rng.choice(sorted(arrays), size=2, replace=False)
    arrays[one], arrays[two] = arrays[two], arrays[one]
    return save_arrays(arrays, metadata)


def flip_bits(data, rng):
    out = bytearray(data)
    for place in rng.integers(len(out), size=rng.integers(1, 5)):
        out[place] ^= 1 << rng.integers(8)
    return bytes(out)


def hostile_json(data, rng):
    n = int.from_bytes(data[:8], "little")
    text = bytearray(data[8 : 8 + n])
    insert = [b"{", b"]", b'"', b"[[[[", b"null", b"1e999", b"\\u0000", b"-0", b"\xff"]
    place = int(rng.integers(n))
    text[place : place + int(rng.integers(3))] = insert[rng.integers(len(insert))]
    return len(text).to_bytes(8, "little") + bytes(text) + data[8 + n :]


def truncate(data, rng):
    return data[: rng.integers(len(data))] + bytes(int(rng.integers(2)) * int(rng.integers(100)))


MUTATIONS = [flip_bits, truncate, swap_tensors, hostile_json, hostile_header]


def survives(small, tmp_path, n, seed):
    path, model = small
    data = path.read_bytes()
    rng = np.random.default_rng(seed)
    target = tmp_path / "mutant"
    n_refused = 0
    for i in range(n):
        mutant = MUTATIONS[i % len(MUTATIONS)](data, rng)
        if mutant == data:
            continue
        target.write_bytes(mutant)
        with guarded(target, allowance=2**21):
            try:
                loaded = regbayes.load(target)
            except ModelFileError:
                n_refused += 1
            else:  # blanks of the header, and lies that come to the same
                assert same(loaded, model)
    return n_refused


def test_mutations_are_refused(small, tmp_path):
    assert survives(small, tmp_path, 500, seed=0) > 490


@pytest.mark.slow
def test_ten_thousand_mutations_are_refused(small, tmp_path):
    assert survives(small, tmp_path, 10_000, seed=1) > 9_900


def test_a_large_model_takes_its_own_size_when_it_is_loaded(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 2))
    model = GibbsInfiniteSVM(max_components=1, n_draws=100, burn_in=0, random_state=0)
    regbayes.save(model.fit(X, X[:, 0] > 0), tmp_path / "x")
    size = (tmp_path / "x").stat().st_size
    assert size > 1e7
    tracemalloc.start()
    regbayes.load(tmp_path / "x")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.2 * size


def test_too_many_small_parts_are_refused_when_saved(tmp_path):
    model = clone(SYMBOLS)
    model.many_ = [[None, 1] for _ in range(500_000)]
    with pytest.raises(ModelFileError, match="larger thin"):
        regbayes.save(model, tmp_path / "x")


def test_a_file_opens_in_a_fresh_process_without_what_it_does_not_name(small):
    code = (
        "import sys, regbayes\n"
        f"model = regbayes.load({str(small[0])!r})\n"
        "print(type(model).__name__, 'regbayes.hmm' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert out.stdout.split() == ["GibbsInfiniteSVM", "False"]
