"""Parts on real workers, processes of their own: the weights of memory to the last bit, whoever dies on the way.

One scheduler in this process, a worker started as people start one (``dask worker``), the others forked from a process
that has imported the package, loopback only.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from mercer.classification import LinearClassifier
from mercer.data import Partitions, Store
from mercer.learning.checkpoint import Checkpoint
from mercer.learning.partitioned import prepare
from mercer.maps import RandomProjection, TextHasher
from mercer.online import HashedClassifier
from mercer.tagging import Tagger
from reference.forked import Process, popen

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


class Cluster:
    """A scheduler, and workers that can be killed."""

    def __init__(self) -> None:
        self.scheduler = distributed.LocalCluster(
            n_workers=0, processes=True, host="127.0.0.1", dashboard_address=None, silence_logs=50
        )
        self.client = distributed.Client(self.scheduler)
        self.workers: list[subprocess.Popen | Process] = []

    def start(self, n: int) -> None:
        options = [self.scheduler.scheduler_address]
        options += ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1"]
        if not self.workers:
            command = [sys.executable, "-m", "distributed.cli.dask_worker", *options]
            self.workers.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            n -= 1
        self.workers += [popen("from distributed.cli.dask_worker import main; main()", *options) for _ in range(n)]
        self.client.wait_for_workers(len(self.workers), timeout=600)

    def kill(self) -> None:
        worker = self.workers.pop(0)
        worker.send_signal(signal.SIGKILL)
        worker.wait()

    def close(self) -> None:
        while self.workers:
            self.kill()
        self.client.close()
        self.scheduler.close()


@pytest.fixture(scope="module")
def cluster():
    made = Cluster()
    try:
        made.start(2)
        yield made
    finally:
        made.close()


def sentences(n=24, seed=0):
    random = np.random.default_rng(seed)
    X = [[{"w": f"w{j}", "s": f"{j % 7}"} for j in random.integers(30, size=random.integers(1, 7))] for _ in range(n)]
    y = [["ABCD"[int(token["w"][1:]) % 4 if random.random() < 0.9 else 0] for token in x] for x in X]
    return X, y


@pytest.fixture(scope="module")
def parts():
    return Partitions.split(*sentences(), n=5)


def tagger():
    """Few iterations show what these tests claim."""
    return Tagger(max_iter=12)


@pytest.fixture(scope="module")
def reference(parts):
    return tagger().fit(parts)


def bags(parts):
    from dask import bag

    return [bag.from_delayed([dask.delayed(list(column)) for column in columns]) for columns in
            ([part.X for part in parts], [part.y for part in parts])]  # fmt: skip


def shared_files():
    """Files of weights in shared memory."""
    folder = "/dev/shm" if os.path.isdir("/dev/shm") else "/tmp"
    return {name for name in os.listdir(folder) if name.startswith(f"mercer-{os.getuid()}-")}


def test_bags_give_the_weights_of_memory(cluster, parts, reference):
    X, y = bags(parts)
    before = shared_files()
    found = tagger().fit(X, y)
    np.testing.assert_array_equal(found.coef_, reference.coef_)
    assert found.history_["objective"] == reference.history_["objective"]
    lazy = found.predict(X)
    assert type(lazy) is type(X)
    assert lazy.compute() == reference.predict(parts)
    assert found.score(X, y) == reference.score(parts)
    assert shared_files() <= before


def test_each_worker_holds_its_share_of_neighbours(cluster, parts):
    X, y = bags(parts)
    model = tagger()
    with prepare(model, X, y, None, model._loss(), None) as risk:
        homes, held = risk.place._homes(), [number for _, numbers in risk.place._groups for number in numbers]
    assert [homes.count(home) for home in sorted(set(homes))] == [(len(parts) + 1) // 2, len(parts) // 2]
    assert homes == sorted(homes)
    assert sorted(held) == list(range(len(parts)))


def test_without_shared_memory_and_with_less_traffic(cluster, parts, reference):
    X, y = bags(parts)
    with dask.config.set({"mercer.shared-memory": False}):
        np.testing.assert_array_equal(tagger().fit(X, y).coef_, reference.coef_)
    for traffic, error in (("float32", 1e-3), ("bfloat16", 0.3)):
        with dask.config.set({"mercer.traffic": traffic}):
            assert np.abs(tagger().fit(X, y).coef_ - reference.coef_).max() < error
    with dask.config.set({"mercer.traffic": "int8"}), pytest.raises(ValueError, match=r"mercer.traffic must be one of"):
        tagger().fit(X, y)


def test_arrays_and_frames(cluster):
    import dask.array as da
    import dask.dataframe as dd
    import pandas as pd

    random = np.random.default_rng(0)
    X = random.normal(size=(60, 3))
    y = np.array(["a", "b", "c"])[X.argmax(axis=1)]
    parts = Partitions.split(X, y, n=3)
    for settings in ({"loss": "log"}, {"solver": "bmrm", "tol": 0.1}):
        model = LinearClassifier(**settings).fit(da.from_array(X, (20, 2)), da.from_array(y, 20))
        np.testing.assert_array_equal(model.coef_, LinearClassifier(**settings).fit(parts).coef_)
    lazy = model.predict(da.from_array(X, (20, 2)))
    assert isinstance(lazy, da.Array)
    assert lazy.compute().tolist() == model.predict(X).tolist()
    assert model.decision_function(da.from_array(X, (20, 3))).compute().shape == (60, 3)
    frame = pd.DataFrame(X, columns=["u", "v", "w"]).assign(label=y)
    lazy_frame = dd.from_pandas(frame, npartitions=3)
    model = LinearClassifier("log").fit(lazy_frame[["u", "v", "w"]], lazy_frame["label"])
    assert model.feature_names_in_.tolist() == ["u", "v", "w"]
    answer = model.predict(lazy_frame[["u", "v", "w"]])
    assert isinstance(answer, dd.Series)
    assert answer.compute().tolist() == model.predict(frame[["u", "v", "w"]]).tolist()


def test_a_store_maps_and_the_hashed_learner(cluster, parts, reference, tmp_path):
    store = Store(tmp_path / "s")
    for part in parts:
        store.append(*part)
    np.testing.assert_array_equal(tagger().fit(store.distributed()).coef_, reference.coef_)
    texts = ["good fine", "bad poor", "fine good", "poor awful"] * 6
    labels = np.array([1, 0, 1, 0] * 6)
    from dask import bag

    X = bag.from_sequence(texts, npartitions=3)
    y = [dask.delayed(labels[8 * i : 8 * i + 8]) for i in range(3)]
    model = HashedClassifier(n_bits=10, max_iter=3).fit(X, y)
    assert model.score(texts, labels) == 1.0
    assert TextHasher(n_bits=6).fit(X).transform(X).compute()[0].shape == (1, 64)
    rows = [dask.delayed(np.eye(3)), dask.delayed(np.ones((2, 3)))]
    found = dask.compute(*RandomProjection(2, random_state=0).fit(rows).transform(rows))
    assert [one.shape for one in found] == [(3, 2), (2, 2)]


def tasks(cluster):
    """Keys of what workers have computed, by the log of transitions of the scheduler."""
    return {key for key, *rest in cluster.scheduler.scheduler.transition_log if rest[1] == "memory"}


def test_kernels_shards_and_bags_on_workers(cluster, tmp_path):
    import dask.array as da
    from dask import bag

    from mercer.kernels import Gaussian, Gram, Spectrum
    from mercer.proportions import Bags, MeanMap
    from mercer.retrieval import HammingIndex, ShardedIndex

    random = np.random.default_rng(0)
    X, kernel = random.normal(size=(20, 3)), Gaussian(1.0)
    lazy = da.from_array(X, (7, 2))
    matrix = kernel(lazy)
    assert isinstance(matrix, da.Array)
    assert matrix.chunks == ((7, 7, 6), (7, 7, 6))
    np.testing.assert_allclose(matrix.compute(), kernel(X), rtol=1e-12)
    np.testing.assert_allclose(kernel(lazy, da.from_array(X[:5], (3, 3))).compute(), kernel(X, X[:5]), rtol=1e-12)
    np.testing.assert_allclose(Gram(kernel).fit(X[:5]).transform(lazy).compute(), kernel(X, X[:5]), rtol=1e-12)
    words = ["ab", "abc", "bcd", "xyz"] * 2
    spectra = Spectrum(2)(bag.from_sequence(words, npartitions=3), dtype=np.float32)
    assert spectra.dtype == np.float32
    np.testing.assert_allclose(spectra.compute(), Spectrum(2)(words))
    codes = random.integers(0, 256, (40, 2), dtype=np.uint8)
    HammingIndex(codes[25:]).save(tmp_path / "shard")
    for shards in (
        [HammingIndex(codes[:25]), tmp_path / "shard"],
        [dask.delayed(HammingIndex)(codes[:25]), dask.delayed(HammingIndex)(codes[25:])],
    ):
        found = ShardedIndex(shards, on_workers=True).search(codes[:4], k=5)
        for one, other in zip(found, HammingIndex(codes).search(codes[:4], k=5), strict=True):
            np.testing.assert_array_equal(one, other)
    parts = [(X[:8], Bags([0] * 4 + [1] * 4, [0.2, 0.7])), (X[8:], Bags([2] * 6 + [3] * 6, [0.5, 0.9]))]
    model = MeanMap().fit([dask.delayed(part) for part in parts])
    np.testing.assert_array_equal(model.coef_, MeanMap().fit(Partitions(parts)).coef_)


def test_maps_before_a_linear_machine_and_searches_over_parameters(cluster):
    """What stands for a kernel machine on a cluster, and joblib's backend for many small fits."""
    import dask.array as da
    import joblib
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline

    from mercer.kernel_methods import KernelSVC
    from mercer.maps import FourierFeatures
    from mercer.proportions import BagCV, MeanMap, make_bags

    X = np.random.default_rng(0).normal(size=(120, 2))
    y = np.where((X**2).sum(axis=1) > 1.4, "out", "in")
    lazy, labels = da.from_array(X, (40, 2)), da.from_array(y, 40)
    model = make_pipeline(FourierFeatures(60, random_state=0), LinearClassifier("log")).fit(lazy, labels)
    assert model.score(lazy, labels) > 0.9
    assert model.predict(lazy).compute().tolist() == model.predict(X).tolist()
    with pytest.raises(TypeError, match="map them first"):
        KernelSVC().fit(lazy, labels)
    sentences_, tags = sentences(12)
    bags = make_bags(y, 8, random_state=0)
    found = []
    for config in ({"backend": "dask"}, {"n_jobs": 1}):
        before = tasks(cluster)
        with joblib.parallel_config(**config):
            grid = GridSearchCV(Tagger(max_iter=5), {"C": [0.1, 10.0]}, cv=2).fit(sentences_, tags)
            search = BagCV(MeanMap(), {"alpha": [0.001, 0.1]}, cv=2, random_state=0).fit(X, bags=bags)
        found.append((grid.cv_results_["mean_test_score"].tolist(), search.cv_results_["mean_test_score"].tolist()))
        calls = [key for key in tasks(cluster) - before if "batch" in str(key)]
        assert len(calls) >= 2 or "backend" not in config
    assert found[0] == found[1]


def test_delayed_parts_hold_all_of_it(cluster, parts, reference):
    delayed = [dask.delayed(tuple(part)) for part in parts]
    model = tagger().fit(delayed)
    np.testing.assert_array_equal(model.coef_, reference.coef_)
    found = dask.compute(*model.predict(delayed))
    assert [tags for one in found for tags in one] == reference.predict(parts)
    found = dask.compute(*model.log_likelihood(delayed))
    np.testing.assert_array_equal(np.concatenate(found), reference.log_likelihood(parts))
    X, y = bags(parts)
    with pytest.raises(TypeError, match="log_likelihood takes a Store"):
        model.log_likelihood(X, y)


def test_weights_without_outputs_are_no_outputs():
    import dask.array as da

    from mercer.learning._dask import delayed_parts

    X, weights = np.ones((4, 2)), np.arange(4.0)
    (part, _) = dask.compute(*delayed_parts(da.from_array(X, (2, 2)), None, da.from_array(weights, 2)))
    assert part.y is None
    assert part.sample_weight.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("traffic", ["float64", "float32", "bfloat16"])
def test_vectors_with_few_entries_travel_as_entries_and_keep_their_bits(traffic):
    from mercer.learning import _dask

    vector = np.zeros(1000)
    vector[[3, 500, 999]] = 1.5, -0.0, -2.25
    sent = _dask.thinned(_dask.packed(vector, traffic))
    assert isinstance(sent, _dask.Thin)
    assert sent.nbytes < 40
    found = _dask.unpacked(sent.dense(), traffic)
    np.testing.assert_array_equal(found.view(np.int64), vector.view(np.int64))
    full = np.arange(1.0, 9.0)
    assert _dask.thinned(full) is full


def test_shared_memory_of_a_training_that_is_over_is_let_go(tmp_path):
    from mercer.learning import _dask

    old, new = str(tmp_path / "old"), str(tmp_path / "new")
    _dask._mapped(old, 16, create=True)
    os.unlink(old)
    _dask._mapped(new, 16, create=True)
    assert old not in _dask._MAPS
    assert new in _dask._MAPS


def test_workers_killed_on_the_way(cluster, parts, reference, monkeypatch):
    from mercer.learning import _dask

    X, y = bags(parts)
    asked, ask_all = [0], _dask.OnWorkers._ask_all

    def dying(self, *args):
        asked[0] += 1
        if asked[0] in points:
            cluster.kill()
            cluster.start(1)
        return ask_all(self, *args)

    monkeypatch.setattr(_dask.OnWorkers, "_ask_all", dying)
    points = {4}
    found = tagger().fit(X, y)
    assert asked[0] > max(points)
    assert type(found.coef_) is np.ndarray
    np.testing.assert_array_equal(found.coef_, reference.coef_)
    assert found.history_["objective"] == reference.history_["objective"]


def test_a_killed_client_goes_on_from_its_checkpoint(cluster, parts, reference, tmp_path):
    class Killed(Checkpoint):
        def write(self, state, arrays):
            super().write(state, arrays)
            if state["solver"]["iterations"] == 3:
                raise SystemExit

    X, y = bags(parts)
    for first, second in (((X, y), (parts,)), ((parts,), (X, y))):  # also from a cluster to one machine and back
        path = tmp_path / "checkpoint"
        with pytest.raises(SystemExit):
            tagger().fit(*first, checkpoint=Killed(path, every=0))
        np.testing.assert_array_equal(tagger().fit(*second, checkpoint=path).coef_, reference.coef_)


KILLED_CLIENT = """
import os, signal, sys
from dask import delayed
from distributed import Client
from mercer.data import Store
from mercer.learning.checkpoint import Checkpoint
from mercer.learning.partitioned import prepare
from mercer.tagging import Tagger

class Killed(Checkpoint):
    def write(self, state, arrays):
        super().write(state, arrays)
        if state["solver"]["iterations"] == 3:
            os.kill(os.getpid(), signal.SIGKILL)

address, folder, path = sys.argv[1:]
client = Client(address)
Tagger(max_iter=12).fit(Store(folder).distributed(), checkpoint=Killed(path, every=0))
"""


def test_a_client_that_is_killed_outright_is_resumed_by_another(cluster, parts, reference, tmp_path):
    store = Store(tmp_path / "s")
    for part in parts:
        store.append(*part)
    client = popen(KILLED_CLIENT, cluster.scheduler.scheduler_address, str(store.path), str(tmp_path / "checkpoint"))
    client.communicate()
    assert client.returncode == -signal.SIGKILL
    found = tagger().fit(store.distributed(), checkpoint=tmp_path / "checkpoint")
    np.testing.assert_array_equal(found.coef_, reference.coef_)


def test_ctrl_c_on_the_client_keeps_the_best_weights_and_the_cluster(cluster, parts, reference, monkeypatch):
    from mercer.learning import _dask

    X, y = bags(parts)
    before, asked, ask_all = shared_files(), [0], _dask.OnWorkers._ask_all

    def pressed(self, *args):
        asked[0] += 1
        if asked[0] == 6:
            threading.Timer(0.0, os.kill, (os.getpid(), signal.SIGINT)).start()
            time.sleep(0.5)
        return ask_all(self, *args)

    monkeypatch.setattr(_dask.OnWorkers, "_ask_all", pressed)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it may be ignored
    try:
        found = tagger().fit(X, y)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert found.interrupted_
    assert asked[0] == 6
    assert np.isfinite(found.coef_).all()
    assert shared_files() <= before
    monkeypatch.undo()
    np.testing.assert_array_equal(tagger().fit(X, y).coef_, reference.coef_)


def test_the_command_trains_on_a_cluster(cluster, tmp_path, capsys):
    import mercer
    from mercer.cli import main

    words = [["the", "dog", "barks"], ["a", "dog"], ["the", "cat", "sleeps"]]
    lines = ["\n".join(f"{w} {w[-1].upper()}" for w in one) + "\n\n" for one in words * 4]
    (tmp_path / "t.conll").write_text("".join(lines))
    folder, model = str(tmp_path / "t.store"), tmp_path / "m.mercer"
    assert main(["convert", str(tmp_path / "t.conll"), folder, "-q"]) == 0
    address = cluster.scheduler.scheduler_address
    assert main(["train", "tagger", "--store", folder, "--cluster", address, "--model", str(model), "-q"]) == 0
    assert mercer.load(model).predict([[("the",), ("cat",)]]) == [["E", "T"]]
    assert main(["train", "tagger", "--store", folder, "--cluster", "tcp://127.0.0.1:1", "--model", str(model)]) == 2
    assert "no Dask scheduler answers" in capsys.readouterr().err


def test_bad_input_is_named(cluster, parts, monkeypatch):
    X, y = bags(parts)
    from dask import bag

    with pytest.raises(ValueError, match="different numbers of partitions: X has 5, y has 2"):
        tagger().fit(X, bag.from_sequence([["A"]] * 2, npartitions=2))
    with pytest.raises(TypeError, match="y must be a Dask collection"):
        tagger().fit(X, [["A"]])
    broken = [dask.delayed(part.X) for part in parts]
    labels = [dask.delayed(part.y) for part in parts]
    labels[3] = dask.delayed(parts[3].y[1:])
    with pytest.raises(ValueError, match=r"partition 3: .*sequences in X"):
        tagger().fit(broken, labels)

    def large(part):
        raise MemoryError

    labels[3] = dask.delayed(large)(parts[3].y)
    with pytest.raises(MemoryError):
        tagger().fit(broken, labels)
    from mercer.learning import _dask

    killed = distributed.KilledWorker("('mercer-part-3-abcd',)", None, 4)
    place = _dask.OnWorkers(X, y, None)
    assert "partition 3 ended the worker" in str(place._killed(killed))
    shared, own = (set(place._parts[i].__dask_graph__()) for i in (1, 2))
    for task in own - shared:  # some are of the caller, who makes the examples
        assert "partition 2 ended" in str(place._killed(distributed.KilledWorker(task, None, 4)))
    assert own - shared
    monkeypatch.setattr(_dask, "environment", lambda: {"mercer": "9.9", "instruction set": "abacus"})
    with pytest.raises(_dask.ClusterError, match=r"worker tcp.* differs: mercer .* \(here 9.9\).*MERCER_SIMD"):
        _dask.OnWorkers(X, y, None)


def test_no_scheduler_and_no_client():
    from mercer.learning import _dask

    begin = time.monotonic()
    with pytest.raises(_dask.ClusterError, match="no Dask scheduler answers at"):
        _dask.connect("tcp://127.0.0.1:1", timeout=1.0)
    assert time.monotonic() - begin < 60
