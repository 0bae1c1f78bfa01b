"""What is refused, and in which words: wrong arguments of every module, one call each.

A check that nobody triggers may as well not be there; whoever adds one adds a line here or in the tests of its module.
"""

from __future__ import annotations

import gzip
import math

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

import mercer
from mercer.data import DataFileError
from mercer.inference.bif import read_bif

RNG = np.random.default_rng(0)
X2 = np.array([[0.0, 1.0], [1.0, 0.0], [0.2, 0.9], [0.8, 0.1]])
Y2 = np.array([0, 1, 0, 1])
CLOUD = RNG.normal(size=(30, 3))
LOW = np.array([[0.1, 0.2], [0.3, 0.1]])
GRAMMAR = "S -> A B [1.0]\nA -> 'a' [1.0]\nB -> 'b' [1.0]\n"
KERNELS, INFERENCE = mercer.kernels, mercer.inference


def tree(text: str) -> mercer.parsing.Tree:
    return mercer.parsing.read_trees(text)[0]


def grammar(text: str = GRAMMAR) -> mercer.parsing.Grammar:
    return mercer.parsing.Grammar.from_text(text)


def network() -> mercer.inference.BayesianNetwork:
    return INFERENCE.BayesianNetwork({"a": 2, "b": 2}, {"b": ["a"]}, {"a": [0.5, 0.5], "b": [[0.5, 0.5], [0.1, 0.9]]})


def pair(**more: object) -> mercer.inference.FactorGraph:
    return INFERENCE.FactorGraph([2, 2], edges=[[0, 1]], pairwise=[[1.0, 0.0], [0.0, 1.0]], **more)


def acceptor(semiring: str = "real") -> mercer.kernels.Transducer:
    made = KERNELS.Transducer(semiring)
    made.add_arc(0, "a", "a", 0.5, 1)
    return made.set_initial(0).set_final(1)


def bags(weight: object = None) -> dict[str, object]:
    return {"bags": [0, 0, 1, 1], "proportions": [0.5, 0.5], "bag_weight": weight}


GRAPHS = [(X2, [[0, 1], [1, 2]])] * 2, [Y2, Y2]


def sampled(**more: object) -> mercer.GraphLabeler:
    return mercer.GraphLabeler(solver="pcd", **more)


REFUSED = [
    # data
    (
        lambda: mercer.proportions.bag_proportions([0, 1], mercer.proportions.Bags([0, 0, 1])),
        "y has 2 labels, but bags has 3 rows",
    ),
    (lambda: mercer.proportions.bag_proportions([1, 1], [0, 0]), "y holds one class only, 1: name both"),
    (lambda: mercer.proportions.bag_proportions([[1], [1]], [0, 0]), "y must be one label for each row"),
    (lambda: mercer.proportions.make_bags([0, 1], scheme="groups"), "scheme='groups' needs groups"),
    (lambda: mercer.proportions.make_bags([0, 1], size=1, groups=[0, 1]), "takes no groups"),
    (lambda: mercer.proportions.make_bags([0, 1]), "needs a size"),
    (lambda: mercer.proportions.Bags([0, 1]).shares, "these bags have no proportions"),
    (lambda: mercer.proportions.Bags([0, 1], ([0.1], [0.2], [0.3])), r"must be \(low, high\), got 3 parts"),
    (lambda: mercer.data.segments_from_boundaries([2], 4, ["a"]), "with labels the first boundary must be 0"),
    (lambda: mercer.data.Sequences.from_matrices([]), "no sequences: give at least one"),
    (lambda: mercer.data.Sequences.concatenate([]), "nothing to concatenate"),
    (lambda: mercer.data.Graphs.concatenate([]), "nothing to concatenate"),
    (lambda: mercer.data.TextBuffer(["a", "b", "c"])[::2], "a slice of a TextBuffer must have step 1, got 2"),
    (lambda: mercer.parsing.Tree("S", []), "the node 'S' has no children"),
    # inference
    (lambda: INFERENCE.FactorGraph([2, 2], names=["a", "a"]), "names must be different: 'a' appears twice"),
    (lambda: INFERENCE.FactorGraph([2, 2], names=["a"]), "names must be as many as variables, 2, got 1"),
    (lambda: INFERENCE.FactorGraph([2], edges=[[0, 0]]), "edges and pairwise come together"),
    (lambda: INFERENCE.FactorGraph([2], pairwise=[[1.0, 2.0], [1.0, 1.0]]), "edges and pairwise come together"),
    (lambda: INFERENCE.FactorGraph([2], states=[["x"]]), "variable 0 has 2 states, states names 1"),
    (lambda: INFERENCE.FactorGraph({"a": 2}, names=["a"]), "are given by the mapping: leave them out"),
    (lambda: INFERENCE.FactorGraph({"a": 2}, states=[["x", "y"]]), "are given by the mapping: leave them out"),
    (lambda: pair(names=["a", "b"]).evidence({"a": 0, 0: 0}), "evidence names variable 'a' twice"),
    (lambda: INFERENCE.BayesianNetwork({"a": 2}, {"b": []}, {"a": [0.5, 0.5]}), "parents names variables that have no"),
    (lambda: INFERENCE.BayesianNetwork({"a": 2}, {}, {"a": [0.5, 0.5], "b": [1]}), "tables names variables that have"),
    (
        lambda: INFERENCE.BayesianNetwork({"a": 2, "b": 2}, {"a": ["b"], "b": ["a"]}, {"a": np.eye(2), "b": np.eye(2)}),
        "the arcs form a cycle among",
    ),
    (lambda: network().d_separated(["a"], ["a"]), "a, b and given must have no variable in common"),
    (lambda: network().d_separated(["a"], ["b"], given=["a"]), "a, b and given must have no variable in common"),
    (lambda: network().d_separated(["a"], ["b"], given=["b"]), "a, b and given must have no variable in common"),
    (lambda: INFERENCE.minimum_cut([1.0], [1.0], [[0.5, 1.0]], [1.0]), "edges must be pairs of nodes: integers"),
    (
        lambda: INFERENCE.variable_elimination(network(), ["a"], evidence={"a": 0}),
        "query names variables that are observed: 'a'",
    ),
    (lambda: INFERENCE.variable_elimination(network(), ["a", "a"]), "query names a variable twice"),
    (lambda: INFERENCE.Factor(["a"], [1.0, 2.0]).divide(INFERENCE.Factor(["b"], [1.0, 2.0])), "the divisor has variab"),
    (lambda: INFERENCE.Factor(["a"], [1.0, 2.0]).sum_out(["z"]), "the factor has no variables"),
    (lambda: INFERENCE.Factor(["a"], [1.0, 2.0]).max_out("a"), "must be a collection of names, got the string 'a'"),
    (
        lambda: INFERENCE.infer(pair(), "gibbs", blocks=[[0, 1]], schedule="chromatic", random_state=0),
        "blocks are drawn one after another",
    ),
    (lambda: INFERENCE.triangulate([("a", "a")]), "edges must be pairs of different nodes"),
    (
        lambda: INFERENCE.metropolis_hastings(pair(), lambda x, random: (x, math.nan), n_samples=3, random_state=0),
        "propose gave log_ratio = NaN",
    ),
    (lambda: INFERENCE.metropolis_hastings(pair(), "flip", n_samples=3), "propose must be callable, got 'flip'"),
    (lambda: mercer.fields.log_partition(3), "model must be an RBM or a BoltzmannMachine, got int"),
    # theory
    (
        lambda: mercer.theory.consistency.map("log", 30),
        "a grid of multiples of 1/60 over 30 labels has more than 2,000,0",
    ),
    (lambda: mercer.theory.consistency.map("log", 10**30), "over 1000000000000000000000000000000 labels has more than"),
    # registration
    (lambda: mercer.registration.register(CLOUD, CLOUD, effort=-1), "effort must be an integer of at least 1, got -1"),
    (
        lambda: mercer.registration.register(CLOUD, CLOUD, effort=1.5),
        "effort must be an integer of at least 1, got 1.5",
    ),
    (
        lambda: mercer.registration.register(CLOUD, 1e200 * CLOUD),
        r"target has a coordinate of size .*e\+200; use a unit",
    ),
    # proportions
    (
        lambda: mercer.MeanMap().fit(X2, mercer.proportions.Bags([0, 0, 1, 1], [0.5, 1.0])),
        "y must be one value for each row, got Bags: pass them as bags=",
    ),
    # ranking
    (lambda: mercer.ranking.LabelRanker().fit(X2, [[("a", "a")]] * 4), r"y\[0\] prefers 'a' to itself"),
    (
        lambda: mercer.ranking.LabelRanker().fit(X2, [[("a", "b"), ("b", "a")]] * 4),
        r"y\[0\] prefers 'a' to 'b' and 'b' to 'a'",
    ),
    (lambda: mercer.ranking.LabelRanker().fit(X2, [[("a", "b"), ("a", "b")]] * 4), r"y\[0\] holds the edge .* twice"),
    (lambda: mercer.ranking.LabelRanker().fit(X2, [[("a", "b")]] * 3 + [["ab!"]]), r"y\[3\] must hold edges \(u, v\)"),
    (lambda: mercer.ranking.LabelRanker().fit(X2, [[]] * 4), "y has no preferences to learn from"),
    (
        lambda: mercer.ranking.LabelRanker(lambda graph: [graph, []]).fit(X2, [[("a", "b")]] * 4),
        r"the decomposition of y\[0\] has an empty part",
    ),
    (
        lambda: mercer.ranking.LabelRanker().fit(X2, [[("a", "b")]] * 4).score(X2, [[]] * 4),
        "y has no preferences to compare with",
    ),
    (lambda: mercer.ranking.preference_graph.from_label([0, 1], [0, 1, 1]), "classes names a label twice"),
    (lambda: mercer.ranking.preference_graph.from_multilabel([[0, 1]], [0, 1, 2]), "Y has 2 columns and classes 3 lab"),
    (lambda: mercer.ranking.preference_graph.from_ranking([["a"], ["a", "a"]]), r"rankings\[1\] names a label twice"),
    (
        lambda: mercer.ranking.Ranker("roc-area", loss="squared-hinge").fit(X2, Y2),
        "loss 'squared-hinge' is for measure='pairs'",
    ),
    (
        lambda: mercer.ranking.Ranker("roc-area").fit(X2, Y2).score(X2, [1, 1, 1, 1]),
        "y has no group in which roc-area is defined",
    ),
    # parsing
    (lambda: mercer.parsing.Grammar.from_trees([tree("(S (A a))"), tree("(T (A a))")]), "have the root labels S, T"),
    (lambda: grammar("S A B 1.0"), "line 1: expected 'LABEL -> symbols"),
    (lambda: grammar("S -> 'a' [1.0] [2.0]"), "line 1: two weights for one alternative"),
    (lambda: grammar().derivation(tree("(A a)")), "the tree's root is 'A', the grammar's start symbol 'S'"),
    (lambda: grammar().derivation(tree("(S (B b) (A a))")), "the grammar has no rule"),
    (lambda: mercer.parsing.Parser(method="pcfg").partial_fit(None, [tree("(S (A a))")]), "partial_fit is for method="),
    (
        lambda: mercer.parsing.Parser(method="pcfg").fit(None, [tree("(S (A a))")], sample_weight=[1.0]),
        "method='pcfg' only counts rules",
    ),
    (
        lambda: mercer.parsing.Parser(method="pcfg").fit(None, [tree("(S (A a))")]).log_likelihood(None),
        "pass X .sentences., y .trees. or both",
    ),
    # kernels
    (lambda: acceptor().union("a"), "union needs another Transducer, got str"),
    (lambda: acceptor().compose(acceptor("tropical")), "needs one semiring, got real and tropical"),
    (lambda: KERNELS.Transducer().add_arc(0, [], "a", 1.0, 1), "must be hashable, got a list"),
    (lambda: KERNELS.Transducer().add_arc(0, math.nan, "a", 1.0, 1), "is NaN"),
    (lambda: KERNELS.Transducer().add_arc(0, "a", "a", math.nan, 1), "must be a finite number in the real semiring"),
    (lambda: KERNELS.Transducer().add_arc(0, "a", "a", math.inf, 1), "must be a finite number in the real semiring"),
    (lambda: KERNELS.Transducer().add_arc(0, "a", "a", True, 1), "must be a finite number in the real semiring"),
    (lambda: KERNELS.Transducer("tropical").add_arc(0, "a", "a", -math.inf, 1), "must be a number above −∞"),
    (lambda: KERNELS.Transducer().add_arc(0, "a", "b", 1.0, 1).weight("a", "b"), "has no initial state: call set_init"),
    (lambda: KERNELS.Transducer().add_arc(0, "a", "b", 1.0, 1).remove_epsilon(), "are removed from acceptors"),
    (lambda: KERNELS.Jaccard()(["abc"], ["abc"]), "set 0 is one string: pass its words"),
    (lambda: KERNELS.Delta()([[1]], [[1]]), "object 0 cannot be hashed: a list; use a tuple"),
    (lambda: KERNELS.Convolution(3, [KERNELS.Linear()])([1.0], [1.0]), "decompose must be callable, got 3"),
    (lambda: KERNELS.FunctionKernel(3)([1.0], [1.0]), "function must be callable, got 3"),
    (lambda: KERNELS.GaussianModel().log_prob(X2), "this GaussianModel is not fitted"),
    (lambda: KERNELS.MultinomialModel(alphabet="abc").fit(X2), "alphabet has 3 symbols, X has 2 columns"),
    (lambda: KERNELS.MultinomialModel().fit(X2).log_prob(np.ones((1, 3))), "X must have 2 columns, got 3"),
    # kernel methods
    (lambda: mercer.kernel_methods.CCA(1).fit(X2), "CCA needs two views"),
    (
        lambda: mercer.kernel_methods.KernelFisher(KERNELS.Linear()).fit(X2, Y2, sample_weight=[1, 0, 1, 0]),
        "the class 1 has no objects",
    ),
    (
        lambda: mercer.kernel_methods.KernelMeanClassifier().fit(X2, Y2, sample_weight=[0, 1, 0, 1]),
        "the class 0 has no objects with a positive weight",
    ),
    (lambda: mercer.kernel_methods.KernelSVC().fit(X2, Y2, sample_weight=[1, 0, 1, 0]), "the class 1 has no objects"),
    (
        lambda: mercer.kernel_methods.LinearProgramSVC(KERNELS.Linear(), C=math.inf).fit(X2[[0, 0]], [0, 1]),
        "separates the class 1 from the rest, so that C=inf has no solution",
    ),
    # maps
    (lambda: mercer.maps.HashAccumulator(4).merge(3), "expected a HashAccumulator, found int"),
    (lambda: mercer.maps.HashAccumulator(4).merge(mercer.maps.HashAccumulator(5)), "n_bits differs: 4 and 5"),
    (lambda: mercer.maps.CountMinSketch(8, 2).merge(3), "expected a CountMinSketch, found int"),
    (lambda: mercer.maps.CountMinSketch(8, 2).inner(mercer.maps.CountMinSketch(9, 2)), "width differs: 8 and 9"),
    (
        lambda: mercer.maps.CountMinSketch(8, 2, conservative=True).inner(
            mercer.maps.CountMinSketch(8, 2, conservative=True)
        ),
        "conservative sketches have no inner product",
    ),
    (lambda: mercer.maps.CountMinSketch(8, 1001), "a sketch of 1001 x 8 cells is too large"),
    (lambda: mercer.maps.canonical_form([[0, 1], [0, 0]]), "adjacency must be symmetric, with nothing on the diagonal"),
    (lambda: mercer.maps.canonical_form([[1, 1], [1, 0]]), "adjacency must be symmetric, with nothing on the diagonal"),
    (
        lambda: mercer.maps.EmpiricalKernelMap(lambda a, b: 1.0, kernel_params={"gamma": 1.0}).fit(X2),
        "kernel_params are for named kernels",
    ),
    # metrics
    (lambda: mercer.metrics.tag_score([[0, 1]], [[0, 1, 1]]), r"y_true has the shape \(1, 2\) and y_pred \(1, 3\)"),
    (lambda: mercer.metrics.one_error([[0, 1]], [[0, 1, 1]]), r"y_true has the shape \(1, 2\) and y_score \(1, 3\)"),
    (lambda: mercer.metrics.tag_score(np.zeros((0, 2)), np.zeros((0, 2))), "y_true is empty"),
    (lambda: mercer.metrics.tag_score([[0, 2]], [[0, 1]]), "y_true must hold 0 and 1 only"),
    (lambda: mercer.metrics.boundary_score([[0]], [[0], [0]], [3]), "y_true has 1 sequences, y_pred 2 and lengths 1"),
    (lambda: mercer.metrics.boundary_score([[0]], [[0]], [3, 3]), "y_true has 1 sequences, y_pred 1 and lengths 2"),
    (lambda: mercer.metrics.boundary_score([[0, 2, 2]], [[0]], [3]), "must rise from start to start"),
    (lambda: mercer.metrics.segment_f1([[(0, 2, "a"), (3, 4, "b")]], [[(0, 4, "a")]]), "without gap or overlap"),
    (lambda: mercer.metrics.bracket_f1([tree("(S a)")], []), "y_true has 1 trees and y_pred 0"),
    (lambda: mercer.metrics.zero_one_loss([1, 2], [1]), "y_true has 2 outputs, but y_pred has 1"),
    # proportions
    (
        lambda: mercer.proportions.assign_labels([0.1, 0.2], mercer.proportions.Bags([0, 0, 1], [0.5, 1.0])),
        "bags has 3 rows, b",
    ),
    (
        lambda: mercer.proportions.BagCV(mercer.proportions.MeanMap(), []).fit(X2, **bags()),
        "param_grid holds no combination",
    ),
    (
        lambda: mercer.proportions.MultipleInstanceSVM().fit(
            X2, bags=[0, 0, 1, 1], proportions=[0.0, 0.5], bag_weight=[1, 0]
        ),
        "all rows that count are negative: bag_weight",
    ),
    (lambda: mercer.proportions.VideoEventDetector((1, 1)).fit([X2, X2], [0, 1]), "granularities must differ"),
    (
        lambda: mercer.proportions.VideoEventDetector().fit([X2, X2[:, :1]], [0, 1]),
        "videos must have frames of one width",
    ),
    (lambda: mercer.proportions.VideoEventDetector().fit([X2, X2 * np.nan], [0, 1]), "video 1: "),
    # solvers
    (lambda: mercer.Tagger(solver="pcd").fit([X2], [Y2]), "learns labels of graphs, not Chain"),
    (lambda: sampled(penalty="l1").fit(*GRAPHS), "takes no ℓ1 penalty: use solver='owlqn'"),
    (lambda: sampled(loss="hinge").fit(*GRAPHS), "minimises the log loss; the loss is 'hinge'"),
    (lambda: sampled().fit(GRAPHS[0], [[0, 1, None, 0]] * 2), "needs all labels"),
    (lambda: sampled().fit(*GRAPHS, sample_weight=[1.0, 2.0]), "takes no sample_weight"),
    (
        lambda: mercer.Tagger(loss="hinge", solver="lbfgs").fit([X2], [Y2]),
        "needs a smooth loss; for 'hinge' use 'auto'",
    ),
    (
        lambda: mercer.Tagger(solver="lbfgs", penalty="l1").fit([X2], [Y2]),
        "needs a smooth penalty: use 'owlqn' or 'sgd'",
    ),
    # online learners
    (lambda: mercer.HashedClassifier().fit(["a", "b"], [0]), "found 2 documents and 1 values in y"),
    (lambda: mercer.HashedClassifier(class_weight="balanced").partial_fit(["a"], [0]), "needs all examples at once"),
    (lambda: mercer.HashedLabelSets(threshold=1.0).fit(["a"], [["x"]]), "threshold is a probability, got 1.0"),
    # sparse codes
    (lambda: mercer.SparseCoder().fit(), "fit needs rows X to take as atoms, or the parameter dictionary"),
    (lambda: mercer.SparseCoder(X2).fit(np.ones((2, 3))), "X has 3 features, but the atoms of dictionary have 2"),
    (lambda: mercer.SparseCoder(X2).code(np.ones((2, 3))), "X has 3 features, but the atoms of dictionary have 2"),
    (lambda: mercer.SparseCoder(X2, solver="l1", n_nonzero=2, tol=0.1).fit(), "n_nonzero is for solver='omp' and"),
    (lambda: mercer.SparseCoder(X2, solver="omp", alpha=0.1).fit(), "alpha has no meaning for solver='omp'"),
    # segmentation
    (lambda: mercer.segmentation.join_paragraphs(["a", " "], [0]), "sentence 1 is blank"),
    # reports
    (lambda: mercer.report.table([[1, 2], [3]], ["a", "b"]), "row 1 has 1 cells, but the header has 2 columns"),
    (lambda: mercer.report.table([[1, 2]], ["a", "b"], align="lx"), "align must have 2 letters from l, c and r"),
    (lambda: mercer.report.table([[1, 2]], ["a", "b"], align="l"), "align must have 2 letters from l, c and r"),
    (lambda: mercer.report.figure("<svg/>", "a"), "svg must be Html"),
    # inference again
    (lambda: INFERENCE.infer(INFERENCE.FactorGraph([3]), "cuts", task="map"), "method 'cuts' cannot take this graph"),
    (lambda: KERNELS.Jaccard()([[[1]], ["a"]], [["a"]]), "set 0: .*: use tuples and frozensets"),
    (
        lambda: mercer.maps.TextHasher(weighting="tfidf").transform(["a"]),
        "needs document frequencies: call fit or part",
    ),
    # others
    (
        lambda: mercer.retrieval.hamming_distances(np.zeros((1, 2), np.uint8), np.zeros((1, 3), np.uint8)),
        "got 2 and 3 by",
    ),
    (lambda: mercer.retrieval.HammingIndex(n_bits=2**24 + 8), r"n_bits must not exceed 2\^24"),
    (lambda: mercer.retrieval.HammingIndex(n_bits=8, ids=[1]), "ids need codes"),
    (lambda: mercer.retrieval.recall_at([[1, 2]], [[1]], ks=[3]), "ks must not exceed the 2 ids found for each query"),
    (lambda: mercer.fields.RBM(visible="gaussian", learner="pseudo-likelihood").fit(X2), "needs binary units"),
    (lambda: mercer.markov.HiddenMarkovModel(2).fit([["a"]], [[None]]), "y contains no label"),
    (lambda: mercer.markov.HiddenMarkovModel(2).fit([[2**70, 1]]), "integer symbols must fit into 64 bits"),
    (
        lambda: mercer.datasets.make_paragraphs(2, n_sentences=(3, 2)),
        "n_sentences must be a number, or a pair low",
    ),
    (lambda: mercer.datasets.make_treebank(2, min_length=5, max_length=4), "max_length=4 is below min_len"),
    (
        lambda: mercer.labeling.GraphLabeler(loss="hinge", training="pseudo-likelihood").fit([(X2, [[0, 1]])], [Y2]),
        "is a likelihood: it goes with loss='log', not 'hinge'",
    ),
    (
        lambda: mercer.labeling.GridLabeler().fit([np.zeros((4, 4, 3))], [np.zeros((4, 5), int)]),
        r"label map 0 has shape",
    ),
    (lambda: mercer.labeling.GraphLabeler().fit([(X2, [[0, 0]])], [Y2]), "must join two different nodes"),
    (lambda: mercer.labeling.GraphLabeler().fit([(X2, [[0.5, 1]])], [Y2]), "must be pairs of nodes: integers"),
    (lambda: mercer.labeling.GraphLabeler().fit([(X2,)], [Y2]), r"graph 0: expected \(node features, edges\)"),
    (
        lambda: mercer.labeling.GraphLabeler().fit([(X2, [[0, 1]], [[1.0]]), (X2, [[0, 1]])], [Y2, Y2]),
        "graph 1 has no edge features, others have",
    ),
    (
        lambda: mercer.alignment.Aligner.from_scores({"ab": 1.0}, -2.0, -1.0),
        r"substitution as a dict must have keys \(a, b\)",
    ),
]


@pytest.mark.parametrize(("call", "match"), REFUSED)
def test_wrong_arguments_are_refused_in_words(call, match):
    with pytest.raises((ValueError, TypeError, NotFittedError), match=match):
        call()


HEAD = "@relation r\n@attribute size numeric\n@attribute sea {0,1}\n"


@pytest.mark.parametrize(
    ("text", "line", "match"),
    [
        (HEAD.replace("size", "sea") + "@data\n", 3, "a second attribute 'sea'"),
        ("@relation r\nsize numeric\n", 2, "expected @relation, @attribute or @data"),
        ("@relation r\n@attribute\n", 2, "expected '@attribute NAME TYPE'"),
        ("@relation r\n@attribute sea {0,0}\n", 2, "'sea' lists a value twice"),
        ("@relation r\n@data\n1\n", 2, "@data before any @attribute"),
        (HEAD + "@data\n'1,0\n", 5, "a quote is not closed"),
        (HEAD + "@data\ninf,0\n", 5, "'inf' of 'size' is not finite"),
        (HEAD + "@data\n{0 inf}\n", 5, "'inf' of 'size' is not finite"),
        (HEAD + "@data\n{1 1,0 2}\n", 5, "attribute 0 after attribute 1: they must ascend"),
        (HEAD + "@data\n1,?\n", 1, "the label 'sea' has missing values"),
        (HEAD.replace("{0,1}", "{0,1,2}") + "@data\n1,1\n", 1, "the label 'sea' has 3 values, not two"),
        (HEAD.replace("{0,1}", "numeric") + "@data\n1,0.5\n", 1, "the label 'sea' has values other than 0 and 1"),
    ],
)
def test_faults_of_arff_files_are_named_with_their_line(tmp_path, text, line, match):
    path = tmp_path / "a.arff"
    path.write_text(text)
    with pytest.raises(DataFileError, match=match) as info:
        mercer.data.read_mulan(path, ["sea"])
    assert info.value.line == line


def test_a_list_of_labels_is_xml_and_names_some(tmp_path):
    path = tmp_path / "a.arff"
    path.write_text(HEAD + "@data\n1,1\n")
    for text, match in (("<labels><label name='sea'>", "no valid XML"), ("<labels></labels>", "label")):
        (tmp_path / "a.xml").write_text(text)
        with pytest.raises(DataFileError, match=match):
            mercer.data.read_mulan(path, tmp_path / "a.xml")
    with pytest.raises(DataFileError, match="no attribute is a label"):
        mercer.data.read_mulan(path, [])


BIF = "variable a {{ type discrete [ 2 ] {{ {} }}; }}\nprobability ( a ) {{ table 0.5, 0.5; }}\n"


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (BIF.format("x, x"), "variable 'a' has a state twice"),
        ("variable a { }\n", "variable 'a' has no type"),
        (BIF.format("x, y") + "probability ( a ) { table 0.5, 0.5; }\n", "variable 'a' has two tables"),
    ],
)
def test_faults_of_bif_files_are_named(tmp_path, text, match):
    path = tmp_path / "a.bif"
    path.write_text(text)
    with pytest.raises(ValueError, match=match):
        read_bif(path)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("2 1 0 0", "there should be one set of evidence"),
        ("1 2 0 1", "2 observed variables need 4 numbers, found 2"),
        ("2 0 1 0 0", "variable 0 is observed twice"),
    ],
)
def test_faults_of_evidence_files_are_named(tmp_path, text, match):
    path = tmp_path / "a.evid"
    path.write_text(text)
    with pytest.raises(ValueError, match=match):
        INFERENCE.read_uai_evidence(path)


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("a.xyz", b"# nothing\n", "expected lines of numbers, found none"),
        ("a.pcd", b"FIELDS x y z\n", "the header of a PCD file ends with DATA"),
        ("a.ply", b"ply\nformat ascii 1.0\nproperty float x\nend_header\n", "a property must follow an element"),
        ("a.ply.gz", b"ply\n", "not valid gzip data"),
        ("a.ply.gz", gzip.compress(b"ply\nformat ascii 1.0\n", mtime=0)[:-9], "the compressed data end too early"),
    ],
)
def test_faults_of_clouds_are_named(tmp_path, name, content, match):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataFileError, match=match):
        mercer.data.read_cloud(path)


def test_held_out_bags_without_weight_are_refused_on_either_side():
    """Whether the bags held out or the others weigh nothing: both leave early stopping without a measure."""
    X = np.random.default_rng(0).normal(size=(20, 2))
    model = mercer.ProportionClassifier(early_stopping=True, random_state=0, max_iter=2)
    refused = 0
    for only in range(10):
        weight = np.zeros(10)
        weight[only] = 1.0
        with pytest.raises(ValueError, match="early_stopping: all bags held out, or all others, have weight 0"):
            model.fit(X, bags=np.repeat(np.arange(10), 2), proportions=np.full(10, 0.5), bag_weight=weight)
        refused += 1
    assert refused == 10


def test_indptr_of_the_wrong_length_is_refused():
    X = sp.csr_matrix(np.eye(3))
    X.indptr = X.indptr[:-1].copy()
    with pytest.raises(ValueError, match="indptr"):
        mercer.LinearClassifier().fit(X, [0, 1, 0])
