"""Searches of ``mercer tune`` for models that need more than a file of examples: label sets, group shares, bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mercer.cli import field, multilabel, proportions
from mercer.cli.columns import shown
from mercer.cli.errors import UsageError
from mercer.cli.tasks import Task, Verdict

if TYPE_CHECKING:
    import numpy as np


class LabelSetTask(Task):
    """Rows with any number of labels: the estimators of `mercer.multilabel`."""

    kind, why = "multilabel", "as asked for"

    def __init__(self, file: str, labels: str | None) -> None:
        self.file, self.labels = file, labels
        self.table = multilabel._read(file, labels, None)
        self.sets = self.table.label_sets()
        self.n = len(self.sets)
        self.usual = "views" if self.n <= multilabel._EXACT else "hashed"

    def fit(self, rows: np.ndarray, **settings: Any) -> Any:
        import mercer.multilabel as estimators

        name = settings.pop("method", self.usual)
        if name == "hashed":
            settings.setdefault("random_state", 0)
        model = getattr(estimators, multilabel._CLASSES[name])(**settings)
        return model.fit(self.table.X[rows], [self.sets[i] for i in rows])

    def judge(self, model: Any, rows: np.ndarray, brief: bool = False) -> Verdict:
        from collections import Counter

        truth = [set(self.sets[i]) for i in rows]
        given = [set(labels) for labels in model.predict(self.table.X[rows])]
        often = Counter(label for labels in self.sets for label in labels).most_common(1)
        constant = {label for label, _ in often}
        f1, usual = _micro_f1(truth, given), _micro_f1(truth, [constant] * len(truth))
        return Verdict("micro-F1", f1, usual, "the most frequent label for every row", [("micro-F1", f"{f1:.4f}")])

    def candidates(self) -> list[dict[str, Any]]:
        rates = [{"learning_rate": rate, "max_iter": epochs} for rate in (0.2, 1.0) for epochs in (3, 10)]
        if self.usual == "hashed":
            return [{}, *rates, {"max_iter": 10}]
        made: list[dict[str, Any]] = [{}, {"alpha": 0.01}, {"alpha": 1.0}]
        made += [{"method": "joint", "C": C} for C in (0.1, 1.0, 10.0)]
        made += [{"method": "neighbors", "n_neighbors": k} for k in (5, 10, 20)]
        return [*made, {"method": "hashed"}, *({"method": "hashed", **rate} for rate in rates)]

    def command(self, model: str) -> str:
        labels = "" if self.labels is None else f" --labels {shown(self.labels)}"
        return f"mercer train multilabel {shown(self.file)}{labels} --model {model}"


def _micro_f1(truth: list[set[str]], given: list[set[str]]) -> float:
    right = sum(len(a & b) for a, b in zip(truth, given, strict=True))
    return 2 * right / max(1, sum(map(len, truth)) + sum(map(len, given)))


class ShareTask(Task):
    """Rows in groups with known shares: the estimators of `mercer.proportions`. Folds are of whole groups."""

    kind, why = "proportions", "as asked for"

    def __init__(self, file: str, bag: str, table: str, label: str | None, seed: int) -> None:
        self.file, self.bag, self.shares, self.seed = file, bag, table, seed
        self.rows = proportions.read_table(file, None)
        self.left = [bag, *([label] if label else [])]
        self.y = proportions._labels(self.rows, label, file)
        self.bags = proportions.bags_of(self.rows, proportions.read_table(table, None), bag, file, table, self.y)
        self.n = len(self.bags)
        if self.n < 3:
            raise UsageError(
                f"{shown(file)}: {self.n} groups are too few to hold some of them out", "three are the least"
            )

    def _some(self, chosen: np.ndarray) -> tuple[Any, Any, Any]:
        """Rows, labels and groups of some groups; of all groups, rows without a group as well."""
        if len(chosen) == self.n:
            return self.rows, self.y, self.bags
        bags, places = self.bags.select(chosen)
        rows = {name: [cells[i] for i in places] for name, cells in self.rows.items()}
        y = None if self.y is None else [self.y[i] for i in places]
        return rows, y if y and any(y) else None, bags

    def fit(self, rows: np.ndarray, **settings: Any) -> Any:
        method = proportions.MethodName(settings.pop("method", "alternating"))
        table, y, bags = self._some(rows)
        model = proportions._estimator(
            method, proportions.KernelName.linear, None, table, self.left, None, self.seed, -1
        )
        return model.set_params(**{**proportions.usual_settings(method), **settings}).fit(table, y, bags=bags)

    def judge(self, model: Any, rows: np.ndarray, brief: bool = False) -> Verdict:
        import numpy as np

        from mercer.proportions import proportion_risk
        from mercer.proportions.selection import constant_shares

        table, _, bags = self._some(rows)
        error = proportion_risk(model.predict_proportions(table, bags), bags)
        constant = proportion_risk(np.tile(constant_shares(self.bags), (len(bags), 1)), bags)
        figures = [("error of shares", f"{error:.4f}"), ("of one share for all groups", f"{constant:.4f}")]
        return Verdict("1 − error of shares", 1 - error, 1 - constant, "one share for all groups", figures)

    def candidates(self) -> list[dict[str, Any]]:
        made: list[dict[str, Any]] = [{}]
        for method in (name for name in proportions.MethodName if name is not proportions.MethodName.convex):
            made_settings = proportions._candidates(method, proportions._TRIED_C, proportions.InitName.auto)
            made += [{"method": method.value, **settings} for settings in made_settings]
        return made

    def command(self, model: str) -> str:
        given = f"{shown(self.file)} --bag {self.bag} --proportions {shown(self.shares)}"
        return f"mercer train proportions {given} --model {model}"


class FieldTask(Task):
    """Rows of bits: `RBM`, or `BoltzmannMachine` without hidden units."""

    kind, why = "field", "as asked for"

    def __init__(self, file: str, hidden: int, above: float | None, seed: int) -> None:
        import numpy as np

        self.file, self.hidden, self.above, self.seed = file, hidden, above, seed
        self.X = np.asarray(field._rows(file, above))
        self.n = len(self.X)
        if not np.isin(self.X, (0, 1)).all():
            raise UsageError(f"{shown(file)}: rows must hold 0 and 1", "--above X makes bits of numbers")

    def fit(self, rows: np.ndarray, **settings: Any) -> Any:
        from mercer.fields import RBM, BoltzmannMachine

        kind = RBM if self.hidden else BoltzmannMachine
        size = {"n_hidden": self.hidden} if self.hidden else {}
        return kind(**{**size, "random_state": self.seed, "n_jobs": -1, **settings}).fit(self.X[rows])

    def judge(self, model: Any, rows: np.ndarray, brief: bool = False) -> Verdict:
        import numpy as np

        from mercer.exceptions import UnreliableEstimateError

        share = np.clip(self.X.mean(axis=0), 0.5 / self.n, 1 - 0.5 / self.n)
        alone = float(np.where(self.X[rows] > 0, np.log(share), np.log1p(-share)).sum(axis=1).mean())
        try:
            value = float(model.score(self.X[rows]))
        except UnreliableEstimateError:  # nobody can say how good it is: it counts as no better than the baseline
            value = alone
        figures = [("log-likelihood of a row", f"{value:.4f}"), ("of independent columns", f"{alone:.4f}")]
        return Verdict("log-likelihood", value, alone, "independent columns", figures)

    def candidates(self) -> list[dict[str, Any]]:
        made: list[dict[str, Any]] = [{}]
        if self.hidden:
            made += [{"n_hidden": size} for size in sorted({max(4, self.hidden // 8), 2 * self.hidden})]
            made += [{"learning_rate": rate} for rate in (0.05, 0.5)]
        else:
            made += [{"learning_rate": rate} for rate in (0.02, 0.2)]
        return [*made, {"weight_decay": 1e-3}, {"weight_decay": 1e-2}]

    def command(self, model: str) -> str:
        above = "" if self.above is None else f" --above {self.above:g}"
        return f"mercer train field {shown(self.file)} --hidden {self.hidden}{above} --model {model}"
