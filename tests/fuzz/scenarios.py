"""Small calls of entry points that tests reach with large arguments only: for ``python -m fuzz.record``."""

from __future__ import annotations

import numpy as np

from mercer import _core


def ints(*values, dtype=np.int64):
    return np.array(values, dtype)


def graph():
    return _core.inference.FlatGraph(
        ints(2, 2, dtype=np.int32),
        np.zeros(4),
        0.0,
        ints(0, 2),
        ints(0, 1, dtype=np.int32),
        ints(0),
        np.array([1.0, 0, 0, 1]),
    )


def test_chart():
    grammar = _core.parsing.ChartGrammar(
        2,
        2,
        4,
        0,
        ints(0, 1, dtype=np.int32),
        ints(0, 1, 1, 0, dtype=np.int32)[None],
        ints(0, 1, 1, dtype=np.int32)[None],
        ints([1, 0, 2], [1, 1, 3], dtype=np.int32),
    )
    words, offsets = ints(0, 1, dtype=np.int32), ints(0, 2)
    grammar.best(np.ones(4), words, offsets, None, False, 1)
    grammar.f1_best(np.ones(4), words, offsets, np.ones((3, 2), np.uint8), ints(3), None, False, 1)


def test_circulants():
    for cls, dtype in ((_core.maps.Circulant32, np.float32), (_core.maps.Circulant64, np.float64)):
        for signs in (None, np.array([1, -1, 1, -1, 1], dtype)):
            circulant = cls(np.arange(5, dtype=dtype), signs)
            circulant.project(np.ones((2, 5), dtype), np.zeros((2, 5), dtype), 1)
            circulant.codes(np.ones((2, 5), dtype), 5, np.zeros((2, 1), np.uint8), 1)


def test_clique_trees():
    for heuristic in ("min_fill", "min_degree"):
        flat = graph()
        tree = _core.inference.CliqueTree(flat, heuristic, 1e6, False)
        tree.elimination()
        tree.max(flat, 2)
        tree.sample(flat, 3, 1)
        tree.factor_beliefs(tree.sum(flat)[0])


def test_numbers_and_text():
    for number in (1, 1.5, True, np.float32(2), 10**30):
        _core.hashing.number_text(number)
    _core.text.string_characters(np.frombuffer("aé".encode(), np.uint8).copy(), ints(0, 1, 3), False)
    _core.text.string_characters(np.frombuffer(b"ab", np.uint8).copy(), ints(0, 1, 2, dtype=np.int32), True)
    for dtype in (np.int32, np.int64):
        _core.examples.buffer_examples(
            np.frombuffer(b"a b c", np.uint8).copy(), ints(0, 2, 5, dtype=dtype), ints(1, 0), "word", 1, 2, True, 0
        )
    vocabulary = _core.vocabulary.Vocabulary(0)
    vocabulary.encode_utf8(np.frombuffer(b"abab", np.uint8).copy(), ints(0, 1, 2, 3, 4), ints(0, 2, 4), True)


def test_waves():
    for dtype in (np.float32, np.float64):
        _core.maps.waves(np.ones((3, 2), dtype), np.ones(2, dtype), 0, 0.5, np.zeros((3, 2), dtype), 1)
        _core.maps.waves(np.ones((3, 2), dtype), np.ones(1, dtype), 1, 0.5, np.zeros((3, 3), dtype), 1)
        _core.maps.structured_waves(
            np.ones((2, 3), dtype),
            np.ones((1, 3, 64), dtype),
            np.ones(4, dtype),
            np.ones(4, dtype),
            0,
            1.0,
            np.zeros((2, 4), dtype),
            1,
        )
        _core.kernels.transpose_into(np.ones((2, 3), dtype), np.zeros((3, 2), dtype))
        _core.kernels.sparse_pairwise(
            ints(0, 1, 2),
            ints(0, 1, dtype=np.int32),
            np.ones(2, dtype),
            ints(0, 2),
            ints(0, 2, dtype=np.int32),
            np.ones(2, dtype),
            3,
            "minimum",
            np.zeros((2, 1), dtype),
            1,
        )


def test_learners():
    model = _core.learner.HashedModel(task="multiclass", loss="log", n_bits=4)
    examples = _core.examples.Examples(
        ints(0, 1, 3), ints(1, 2, 3, dtype=np.uint64), None, None, None, ints(0, 1, dtype=np.int32), ["a", "b"]
    )
    model.learn(examples)
    model.top_k(examples, 2)
    machine = _core.machines.KernelMachine(np.eye(4))
    machine.solve_box(ints(2, 0, 3), np.ones(3), -np.ones(3), np.ones(3), np.zeros(3), 1, 1e-3, 50)
    machine.solve_tube(ints(2, 0, 3), np.array([1.0, -1.0, 0.5]), 0.1, np.ones(3), 1e-3, 50)
    slope, one = np.array([1.0, -1.0, 0.5]), np.ones(3)
    for machine in (
        _core.machines.BoxBlocks(slope, -one, one, np.zeros(3), one, 1, 1e-3, 50, 20),
        _core.machines.TubeBlocks(slope, 0.1, one, one, 1e-3, 50, 20),
    ):
        while len(places := machine.wanted()):
            machine.give(np.eye(3)[places])
        machine.result()
    machine = _core.machines.TubeBlocks(slope, 0.1, np.zeros(3), one, 1e-3, 50, 20)
    machine.wanted()
    machine.result()
    _core.bags.ascend_rows(np.eye(3), np.ones(3), np.zeros(3), np.ones(3), 1e-3, 5)
    _core.chain.hidden_marginals(
        np.zeros((2, 2)),
        ints(0, 1, 1, dtype=np.int32),
        np.zeros((2, 2)),
        np.zeros(2),
        ints(0, 1, 3),
        np.zeros((3, 2)),
        np.zeros((2, 2)),
        np.zeros((2, 2)),
        np.zeros(2),
        np.zeros(2),
        1,
    )
    _core.kernels.permuted_products(np.eye(3), np.eye(3), ints([0, 1, 2], [2, 1, 0], dtype=np.int32), np.zeros(2), 1)


def test_counts_of_labels():
    _core.fields.label_counts(
        np.array([[0, 1, 1], [1, 0, 1]], np.uint8),
        np.full((2, 1), 0.5),
        ints([0, 1], [1, 2]),
        ints(0, 3),
        ints(0, 2),
        np.zeros((3, 2)),
        np.zeros((2, 2, 2)),
    )


def test_methods_of_other_objects():
    rows = _core.linear.Rows(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    dual = _core.multiclass.MulticlassDual(
        rows, ints(0, 1, 1, dtype=np.int32), np.ones(3), np.eye(2)[::-1].copy(), False, 1, 1, 1024, 1
    )
    dual.dual_variables(np.zeros((3, 2)))
    parts = _core.segments.SegmentParts(
        np.zeros((2, 2)), np.zeros((2, 2)), np.zeros(2), np.zeros(2), ints(0, 2, 3), np.zeros((3, 2))
    )
    parts.spans(np.zeros((3, 2, 2)), 1)
    graphs = _core.kernels.WalkGraphs(
        ints(0, 2),
        ints(0, 1, 2),
        ints(1, 0, dtype=np.int32),
        np.full(2, 0.1),
        ints(0, 0, dtype=np.int32),
        ints(0, 0, dtype=np.uint64),
        np.ones(2),
        np.ones(2),
        np.array([0.1]),
        1,
    )
    assert len(graphs) == 1
    sampler = _core.inference.Sampler(graph(), np.zeros((2, 2), np.int32), 0, "gibbs", [])
    sampler.states()


def test_joint_machines():
    alpha = np.zeros(3)
    _core.joint.joint_kernel_pass(np.eye(3) + 0.1, alpha, ints(0, 2, 1), 1.0, 1.0, False)


def test_registration():
    rng = np.random.default_rng(0)
    points, queries = rng.random((12, 3)), rng.random((3, 3))
    tree = _core.registration.CloudTree(points)
    normals = tree.normals(4, None, 1)[0]
    tree.normals(4, queries, 1)
    tree.descriptors(normals, 0.5, 1)
    tree.nearest(queries, 0.25, 1)
    tree.k_nearest(queries, 3, 2)
    tree.count(queries, 0.5, 1)
    tree.fit(queries, np.eye(4)[None], 0.3, 1)
    for kind in (0, 1, 2):
        _core.registration.icp(
            tree, normals, points, normals, np.ones(12), np.eye(4), kind, 1.0, 0.8, 1e-3, 3, 1e-4, 1e-4, 1
        )
    flat = _core.registration.CloudTree(np.ascontiguousarray(points[:, :2]))
    _core.registration.icp(flat, None, queries[:, :2].copy(), None, None, np.eye(3), 0, 1.0, 1.0, 1e-3, 2, 0.1, 0.1, 2)
    _core.registration.consistent_poses(points, points[::-1].copy(), None, None, 0.2, 0.0, 0.3, 5, 5, 3, 1)
    _core.registration.consistent_poses(points, points, normals, normals, 0.1, 0.0, 0.3, 5, 5, 3, 2)
