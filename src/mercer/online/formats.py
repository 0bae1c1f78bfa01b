"""The format of a file of examples and the roles of its columns, stored in the model for later files.

Unspecified parts are detected from the first bytes of the file (`mercer.data.readers`), and reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import Any, TypeAlias

import numpy as np

from mercer._validation import check_choice
from mercer._warnings import warn_caller
from mercer.data.readers import roles as _roles
from mercer.data.readers.roles import LABEL_NAMES, MOST_CLASSES, Column, Table, guess_label
from mercer.data.readers.sniff import FORMATS, LAYOUTS, SUFFIXES, Sniffed, fail_unknown, sniff
from mercer.data.readers.source import Source
from mercer.exceptions import ColumnGuessWarning, DataFileError

__all__ = [
    "ColumnGuessWarning",
    "FieldName",
    "FileFormat",
    "ResolvedFormat",
    "announce",
    "resolved_format",
    "with_roles",
]

FieldName: TypeAlias = str | int

N_KNOTS = 8
"""Knots of a column of numbers. Of 2, 8, 16 and 32 on twelve tables together, with Adult left out: see the guide."""

_NAMED = ("csv", "jsonl")
"""Formats whose columns have names: a model of one reads the other."""


@dataclass(frozen=True)
class FileFormat:
    r"""The format of a file of examples, and the roles of its columns.

    Unspecified parts are detected from the first bytes of the file, or are those of the training file.

    Parameters
    ----------
    format : {"text", "vw", "svmlight", "csv", "jsonl", "json", "parquet", "arrow", "folder"}, optional
        By default detected from the first bytes; the suffix breaks ties. See the guide on files for the formats of
        lines.
    label : str, int or False, optional
        Formats with named columns: the name (``"a.b"`` for a field inside a field) or number of the label.
        Default: ``"label"``, ``"target"``, ``"class"``, ``"y"`` or a similar name in upper or lower case, or else the
        first or the last column if only one of them has few distinct values, with a `ColumnGuessWarning`. text:
        ``"first"`` or ``"last"``. False: the file for prediction has no label; needed only for the format text if
        documents contain tabs.
    text : str, int or several, optional
        Columns that hold text. Default: ``"text"``, and columns whose values mostly differ and have three words
        or more, with a `ColumnGuessWarning`.
    columns : str, int or several, or "rest", optional
        Feature columns: numbers, dates or categories; ``"rest"``: all columns without another role. Default: the rest,
        without columns that look like ids.
    categorical : str, int or several, optional
        Columns whose numbers are names (such as postcodes).
    separator : str, optional
        csv: separator of columns; text: separator of label and text. Default: the one that splits all lines
        consistently.
    header : bool, optional
        csv: whether the first line names the columns. By default it does if it contains a name given above
        (``label="paid"``) or looks different from the other lines. Without a header, the names are ``"0"``, ``"1"``, …
    zero_based : bool, optional
        svmlight: whether columns are counted from 0; default False.
    roles : dict, optional
        Maps names of columns to ``"number"``, ``"category"``, ``"text"``, ``"date"``, ``"label"``, ``"id"`` or
        ``"ignore"``, instead of guessed roles. Only for training.
    encoding : str, optional
        Character encoding. Default: UTF-8, or the byte order mark of the file; Latin-1, with a warning, if the first
        bytes are not valid UTF-8.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from mercer.online import FileFormat, HashedClassifier
    >>> path = Path(tempfile.mkdtemp()) / "visits.csv"
    >>> _ = path.write_text("page,paid\n" + "home,no\ncart,yes\n" * 20)
    >>> model = HashedClassifier(n_bits=16).fit_file(path, FileFormat("csv", label="paid", columns="page"))
    >>> model.score_file(path)
    1.0
    """

    format: str | None = None
    _: KW_ONLY
    label: FieldName | bool | None = None
    text: FieldName | Sequence[FieldName] | None = None
    columns: FieldName | Sequence[FieldName] | None = None
    categorical: FieldName | Sequence[FieldName] | None = None
    separator: str | None = None
    header: bool | None = None
    zero_based: bool | None = None
    roles: dict[str, str] | None = None
    encoding: str | None = None

    @classmethod
    def of(cls, format: FileFormat | str | None) -> FileFormat:
        """Return the format of an argument: itself, or a format of which only the name is known."""
        if isinstance(format, FileFormat):
            return format
        if format is not None and not isinstance(format, str):
            raise TypeError(f"format must be a FileFormat or the name of a format, got {format!r}")
        return cls(format)


@dataclass(frozen=True)
class ResolvedFormat:
    """The settings to read files like the training file, as JSON data."""

    format: str
    label: FieldName | bool | None = None
    text: tuple[FieldName, ...] | None = None
    columns: tuple[FieldName, ...] | str | None = None
    categorical: tuple[FieldName, ...] = ()
    separator: str | None = None
    header: bool | None = None
    zero_based: bool = False
    layout: str | None = None
    encoding: str | None = None
    ignored: tuple[str, ...] = ()
    numbers: tuple[tuple[str, float, float, tuple[float, ...]], ...] = ()
    dates: tuple[tuple[str, str], ...] = ()

    def options(self) -> dict[str, Any]:
        """Return the arguments of ``_core.examples.ExampleReader``."""
        out: dict[str, Any] = {}
        if self.label is False:
            out["label_place"] = "none"
        if self.format == "text":
            if self.label not in (None, False):
                out["label_place"] = check_choice("label", self.label, ("first", "last"))
            out["separator"] = self.separator or "\t"
        elif self.format == "svmlight":
            out["zero_based"] = self.zero_based
        elif self.format in _NAMED:
            out["label"] = None if self.label is False else self.label
            out["texts"] = None if self.text is None else list(self.text)
            out["rest"] = self.columns == "rest"
            out["columns"] = None if self.columns in (None, "rest") else list(self.columns or ())
            out["categorical"] = list(self.categorical)
            out["ignored"], out["dates"] = list(self.ignored), list(self.dates)
            out["numbers"] = [(name, mean, scale, list(knots)) for name, mean, scale, knots in self.numbers]
        if self.format == "csv":
            out["separator"] = self.separator or ","
            out["header"] = self.header is not False
        return out

    def resolved(self, roles: dict[str, Any] | None) -> ResolvedFormat:
        """Return the same with the names found by the reader, for later files."""
        if roles is None:
            return self
        columns = "rest" if roles["rest"] else tuple(roles["columns"])
        return replace(self, label=roles["label"], text=tuple(roles["texts"]), columns=columns)

    def to_json(self) -> dict[str, Any]:
        """Return plain data, for model files."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ResolvedFormat:
        """The inverse of :meth:`to_json`."""
        check_choice("format", data["format"], FORMATS)
        numbers = tuple(
            (_text(name), float(mean), float(scale), tuple(map(float, knots)))
            for name, mean, scale, knots in data.get("numbers", ())
        )
        if data.get("layout") is not None:
            check_choice("layout", data["layout"], LAYOUTS)
        return cls(
            data["format"], data["label"], None if data["text"] is None else _names("text", data["text"]),
            data["columns"] if data["columns"] in (None, "rest") else _names("columns", data["columns"]),
            _names("categorical", data["categorical"]), data["separator"],
            None if data["header"] is None else bool(data["header"]), bool(data["zero_based"]), data.get("layout"),
            None if data.get("encoding") is None else _text(data["encoding"]),
            tuple(map(_text, data.get("ignored", ()))), numbers,
            tuple((_text(name), _text(order)) for name, order in data.get("dates", ())),
        )  # fmt: skip


def _plain(value: Any) -> Any:
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a name must be text, got {value!r}")
    return value


def _names(argument: str, value: Any) -> tuple[FieldName, ...]:
    """One name or number, or several."""
    names = (value,) if isinstance(value, (str, int)) else tuple(value)
    for name in names:
        if isinstance(name, bool) or not isinstance(name, (str, int)):
            raise TypeError(f"{argument} must hold names or numbers of columns, got {name!r}")
    return names


# ------------------------------------------------------------------------------------------------- the format


def resolved_format(source: Source, known: ResolvedFormat | None, said: FileFormat) -> ResolvedFormat:
    """Return the requested format, or that of the content; unspecified parts are those of earlier files."""
    given = {name: value for name, value in vars(said).items() if value is not None and name != "roles"}
    encoding = given.pop("encoding", None) or (known.encoding if known else None)
    if encoding is not None and source.encoding is None:
        source.encoding = Source(source.path or "-", encoding).encoding
    asked = given.pop("format", None)
    if asked is None and "separator" in given and SUFFIXES.get(source.suffix) in ("text", "csv"):
        asked = SUFFIXES[source.suffix]  # whoever says what is between the parts of a line trusts the name
    sniffed = _sniffed(source, asked, known)
    form = sniffed.format
    for name in given:
        if name not in _allowed(form) and not (name == "label" and given["label"] is False):
            raise ValueError(f"{name} means nothing for files of the format {form!r}")
    for name in ("text", "categorical"):
        if name in given:
            given[name] = _names(name, given[name])
    if "columns" in given and given["columns"] != "rest":
        given["columns"] = _names("columns", given["columns"])
    base = _base(form, known)
    details: dict[str, Any] = {"layout": sniffed.layout, "encoding": encoding}
    if form in ("csv", "text") and sniffed.separator is not None:
        details["separator"] = sniffed.separator
    if form == "text" and base.label is None:
        details["label"] = sniffed.label
    return replace(base, **{**details, **given})


def _allowed(form: str) -> set[str]:
    return {
        "text": {"label", "separator"}, "vw": set(), "svmlight": {"zero_based"},
        "jsonl": {"label", "text", "columns", "categorical"},
        "csv": {"label", "text", "columns", "categorical", "separator", "header"},
    }[form]  # fmt: skip


def _base(form: str, known: ResolvedFormat | None) -> ResolvedFormat:
    """What the files before say about this one: all in the same format, the parts of columns in a relative."""
    if known is None:
        return ResolvedFormat(form)
    if known.format == form:
        return known
    if known.format in _NAMED and form in _NAMED:
        return replace(known, format=form, separator=None, header=None)
    return ResolvedFormat(form)


def _sniffed(source: Source, asked: str | None, known: ResolvedFormat | None) -> Sniffed:
    """What the file is; a format that was asked for is believed, and only its details are looked for."""
    if asked is not None:
        check_choice("format", asked, (*FORMATS, *LAYOUTS))
        if asked in LAYOUTS:
            return Sniffed("jsonl", asked)
        if asked not in ("csv", "text"):
            return Sniffed(asked)
    sniffed = sniff(source, only=asked)
    lines = sniffed.layout is None and sniffed.format in ("text", "csv", "prose", "columns")
    if known is not None and known.format == "text" and (asked == "text" or lines):
        return Sniffed("text", separator=known.separator, label=_label_place(known))
    if asked in (None, sniffed.format):
        if sniffed.format in FORMATS:
            return sniffed
        if known is not None and sniffed.layout is None:  # of documents there may be some without labels and tabs
            return Sniffed(known.format, separator=known.separator, label=_label_place(known))
        if sniffed.format == "columns":
            what = "a file of sentences, a token a line: it has no examples of classes"
            raise DataFileError(source.name, 1, what, "a Tagger learns from it: mercer train tagger")
        fail_unknown(source)
    separators = {"csv": "\t" if source.suffix in (".tsv", ".tab") else ",", "text": "\t"}
    return Sniffed(str(asked), separator=known.separator if known else separators.get(str(asked)))


def _label_place(known: ResolvedFormat) -> str | None:
    return known.label if known.format == "text" and isinstance(known.label, str) else None


# ------------------------------------------------------------------------------------------------- the columns


def read_table(form: ResolvedFormat, source: Source, named: Iterable[str] = ()) -> Table | None:
    """Return the first rows of a file with named columns; None if they are not a table.

    A first line with a name of the format or of ``named`` is a header.
    """
    if form.layout is not None:
        return _roles.table_of_records(source.records(form.layout))
    data, whole = source.head()
    if form.format == "jsonl":
        return _roles.table_of_records(_roles.records_of_lines(data, whole))
    separator = form.options()["separator"]
    if len(separator) != 1 or not separator.isascii():
        return None
    header = form.header
    if header is None and not _names_of(form, named).isdisjoint(_first_row(data, separator)):
        header = True
    return _roles.table_of_csv(data, whole, separator, header)


def _first_row(data: bytes, separator: str) -> list[str]:
    rows = _roles.csv_rows(data.decode("utf-8", "surrogateescape").removeprefix("\ufeff"), separator, 1)
    return rows[0] if rows else []


def _names_of(form: ResolvedFormat, named: Iterable[str]) -> set[str]:
    """The columns that somebody named; a number may be a place."""
    given = (form.label, form.text, form.columns, form.categorical, tuple(named))
    names = {name for part in given for name in ([part] if isinstance(part, str | int) else part or ())}
    return {name for name in names if isinstance(name, str) and name != "rest" and not name.isdecimal()}


def with_roles(
    form: ResolvedFormat, source: Source, numeric: bool, roles: dict[str, str] | None = None
) -> tuple[ResolvedFormat, list[str], list[str]]:
    """Return the format with a role for each column, warnings about it, and its full description.

    Roles given by the user are not checked against the data.
    """
    if form.format not in _NAMED:
        if roles:
            raise ValueError(f"roles mean nothing for files of the format {form.format!r}")
        return form, _guessed_words(form, source), _told(form, source)
    table = read_table(form, source, roles or ())
    if table is None:
        return form, [], _told(form, source)
    if form.format == "csv":
        form = replace(form, header=table.header)
    return table_roles(form, table, source.name, numeric, roles)


def table_roles(
    form: ResolvedFormat, table: Table, name: str, numeric: bool, roles: dict[str, str] | None = None
) -> tuple[ResolvedFormat, list[str], list[str]]:
    """Do the same as `with_roles` for a table that was read."""
    if roles:
        table = table.with_roles(roles, name)
        by_role = {role: [c for c, r in roles.items() if r == role] for role in roles.values()}
        if len(by_role.get("label", ())) > 1:
            raise ValueError(f"one column can be the label, got {by_role['label']}")
        if "label" in by_role:
            form = replace(form, label=by_role["label"][0])
    surprises: list[str] = []
    label = form.label
    if label is None:  # False: there is none among the columns
        guess = guess_label(table, numeric)
        if guess is None:
            known = f"{', '.join(LABEL_NAMES[:3])} or {LABEL_NAMES[3]}"
            what = f"no column is named {known}; which one is the label? the columns are {listed(table.names)}"
            raise DataFileError(name, 1, what, "label= names the label")
        label, why = guess
        if why:
            surprises.append(f"{name}: the column {quoted(label)} is taken as the label ({why}); label= names another")
    form = replace(form, label=label)
    guessed = form.text is None and form.columns is None
    form = _with_parts(form, table, roles or {}, surprises, name)
    label_name = _name_of(label, table)
    surprises += _oddities(form, table, name, label_name, numeric, guessed)
    return form, surprises, [_summary(form, table, name, label_name, numeric)]


def _with_parts(
    form: ResolvedFormat, table: Table, roles: dict[str, str], surprises: list[str], where: str
) -> ResolvedFormat:
    """The format with texts, numbers, dates and columns that are left out."""
    label = _name_of(form.label, table)
    role = {column.name: column.role for column in table.columns}
    explicit = form.columns is not None or form.text is not None
    if form.text is None and form.columns is None:
        texts = tuple(n for n in table.names if n != label and (role[n] == "text" or (n == "text" and n not in roles)))
        left = tuple(n for n in table.names if n != label and n not in texts and role[n] in ("id", "ignore"))
        rest = [n for n in table.names if n != label and n not in texts and n not in left]
        if not texts and not rest:  # an id is better than nothing
            left, rest = (), list(left)
        columns: Any = "rest" if rest or (form.format == "jsonl" and not texts) else None
        form = replace(form, text=texts, columns=columns, ignored=left)
        surprises += [
            f"{where}: the column {quoted(column.name)} is read as text ({_evidence(column)}); "
            f"roles={{{column.name!r}: 'category'}} takes each of its values as one category"
            for column in table.columns
            if column.name in texts and column.name != "text" and column.name not in roles
        ]
    elif form.columns is not None:
        chosen = table.names if form.columns == "rest" else [_name_of(ref, table) for ref in form.columns]
        own = {_name_of(ref, table) for ref in form.text or ()}
        if form.text is None:
            surprises += [
                f"{where}: the column {quoted(column.name)} looks like text ({_evidence(column)}), and each of its "
                f"values is one category; text={column.name!r} takes its words"
                for column in table.columns
                if column.role == "text" and column.name in chosen and column.name not in own | {label}
            ]
        if form.text is None:
            form = replace(form, text=("text",) if "text" in table.names and "text" not in (*chosen, label) else ())
        forced = tuple(n for n, r in roles.items() if r in ("id", "ignore"))
        form = replace(form, ignored=forced if form.columns == "rest" else ())
    text_names = {_name_of(ref, table) for ref in form.text or ()}
    categorical = {_name_of(ref, table) for ref in form.categorical} | {n for n, r in roles.items() if r == "category"}
    used = _used(form, table) - text_names - {label}
    features = [column for column in table.columns if column.name in used and column.name not in categorical]
    numbers = [column for column in features if column.role in ("number", "date") or (explicit and column.role == "id")]
    codes = tuple(code for column in numbers if (code := _code(column)) is not None)
    dates = tuple((column.name, column.order or "ymd") for column in features if column.role == "date")
    named = tuple(n for n, r in roles.items() if r == "category" and n in used)
    return replace(form, numbers=codes, dates=dates, categorical=(*form.categorical, *named))


def _used(form: ResolvedFormat, table: Table) -> set[Any]:
    if form.columns == "rest":
        return set(table.names) - set(form.ignored)
    return {_name_of(ref, table) for ref in form.columns or ()}


_EPOCH = np.datetime64("1970-01-01")


def _code(column: Column) -> tuple[str, float, float, tuple[float, ...]] | None:
    """Mean, scale and knots of a column of numbers; dates are days."""
    values = _days(column) if column.role == "date" else _floats(column.values)
    values = values[np.isfinite(values) & (np.abs(values) < 1e30)]
    if not len(values):
        return None
    mean, scale = float(values.mean()), float(values.std())
    distinct = np.unique(values)
    if not scale > 1e-12 * max(1.0, abs(mean)):
        return column.name, mean, max(1.0, abs(mean)), ()
    knots = distinct
    if len(distinct) > N_KNOTS:
        knots = np.unique(np.quantile(values, np.linspace(0, 1, N_KNOTS)))
        if len(knots) < 4:  # most values are one: quantiles of the others
            other = distinct[distinct != np.median(values)]
            knots = np.unique(np.concatenate([knots, np.quantile(other, np.linspace(0, 1, N_KNOTS - 2))]))
    return column.name, mean, scale, tuple(knots.tolist()) if len(knots) > 2 else ()


def _floats(values: Sequence[str]) -> np.ndarray:
    """Those that are numbers."""
    try:
        return np.array(list(map(float, values)), dtype=np.float64)
    except ValueError:
        return np.concatenate([np.zeros(0), *(_floats([value]) for value in values if _is_float(value))])


def _is_float(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _days(column: Column) -> np.ndarray:
    import re

    places = {"ymd": (0, 1, 2), "dmy": (2, 1, 0), "mdy": (2, 0, 1)}[column.order or "ymd"]
    days = []
    for value in column.values:
        parts = re.findall(r"\d+", value)[:5]
        if len(parts) < 3:
            continue
        year, month, day = (int(parts[i]) for i in places)
        hour = int(parts[3]) if len(parts) > 4 else 0
        try:
            days.append(float((np.datetime64(f"{year:04d}-{month:02d}-{day:02d}") - _EPOCH).astype(int)) + hour / 24)
        except ValueError:
            continue
    return np.array(days, dtype=np.float64)


def _oddities(
    form: ResolvedFormat, table: Table, where: str, label: str | None, numeric: bool, guessed: bool
) -> list[str]:
    """What is probably not meant: labels as many as rows, columns that say nothing, ids."""
    oddities = []
    if label in table.names and not numeric:
        column = table[str(label)]
        many = column.n_different > MOST_CLASSES or (
            column.n_values >= 40 and column.n_different > column.n_values // 4
        )
        if many:
            numbers = "; a HashedRegressor (train regressor) learns numbers" if column.role == "number" else ""
            oddities.append(
                f"{where}: the label {quoted(label)} has {column.n_different:,} different values in "
                f"{column.n_values:,} rows{numbers}"
            )
    if not guessed:  # whoever says which columns are features knows them
        return oddities
    for column in table.columns:
        if column.name in form.ignored and column.role == "id":
            oddities.append(
                f"{where}: the column {quoted(column.name)} is left out: it looks like an id "
                f"({column.n_different:,} different values in {column.n_values:,} rows); "
                f"roles={{{column.name!r}: 'category'}} takes it as a feature"
            )
    others = [column for column in table.columns if column.name != label and column.name not in form.ignored]
    constant = [column.name for column in others if column.constant]
    empty = [column.name for column in others if column.role == "empty"]
    rows = f"in the first {table.n_rows:,} rows" if table.n_rows >= _roles.SAMPLE_ROWS else "in every row"
    for names, what in ((constant, "the same value"), (empty, "nothing")):
        if names:
            oddities.append(f"{where}: columns that hold {what} {rows}: {listed(names)}")
    return oddities


def _summary(form: ResolvedFormat, table: Table, where: str, label: str | None, numeric: bool) -> str:
    """All columns and their roles, on a line; the classes of the label among them."""
    parts = []
    if label is not None:
        part = f"label {quoted(label)}"
        if label in table.names and not numeric and table[label].values:
            classes = table[label].classes()
            n = table[label].n_values
            shown = ", ".join(f"{quoted(c)[1:-1]} {100 * k / n:.0f} %" for c, k in classes[:5])
            count = f"{len(classes):,} class{'es' if len(classes) != 1 else ''}"
            part += f" ({count}: {shown}{', …' if len(classes) > 5 else ''})"
        parts.append(part)
    texts = [_name_of(ref, table) for ref in form.text or ()]
    if texts:
        parts.append(f"text {listed(texts)}")
    used = _used(form, table) - {label, *texts}
    categorical = {_name_of(ref, table) for ref in form.categorical}
    dates = {name for name, _ in form.dates}
    for noun, wanted in (
        ("numbers", ("number", "id")),
        ("dates", ("date",)),
        ("categories", ("category", "text", "list", "empty")),
    ):
        names = [
            column.name
            for column in table.columns
            if column.name in used
            and ("category" if column.name in categorical else "date" if column.name in dates else column.role)
            in wanted
        ]
        if names:
            parts.append(f"{noun} {listed(names)}")
    if form.ignored:
        parts.append(f"left out {listed(form.ignored)}")
    return f"{where}: {_kind(form)}; {'; '.join(parts)}"


def _kind(form: ResolvedFormat) -> str:
    if form.layout is not None:
        return {"json": "JSON", "parquet": "Parquet", "arrow": "Arrow", "folder": "a folder for each class"}[
            form.layout
        ]
    if form.format != "csv":
        return {"jsonl": "JSON lines", "vw": "Vowpal Wabbit's format"}.get(form.format, form.format)
    named = {
        ",": "",
        "\t": " split by tabs",
        ";": " split by semicolons",
        "|": " split by bars",
        " ": " split by spaces",
    }
    header = "" if form.header is not False else ", no header"
    return f"csv{named.get(form.separator or ',', f' split by {form.separator!r}')}{header}"


def _told(form: ResolvedFormat, source: Source) -> list[str]:
    """What a file without named columns is, where its name did not say it."""
    if SUFFIXES.get(source.suffix) == form.format:
        return []
    more = ""
    if form.format == "text":
        place = "last" if form.label == "last" else "first"
        mark = {"\t": "a tab", " ": "a space"}.get(form.separator or "\t", repr(form.separator))
        order = ("a text", "a label") if place == "last" else ("a label", "a text")
        more = f" ({order[0]}, {mark}, {order[1]})"
    return [f"{source.name}: {_kind(form)}{more}"]


def _guessed_words(form: ResolvedFormat, source: Source) -> list[str]:
    """Lines whose first word seems to be a label: a guess that should be said aloud."""
    if form.format != "text" or form.separator != " " or form.label == "last":
        return []
    words = [line.split(b" ", 1)[0].decode("utf-8", "replace") for line in source.head()[0].split(b"\n")[:2000] if line]
    if all(word.startswith("__label__") for word in words):
        return []
    often = Counter(words).most_common()
    shown = ", ".join(quoted(word)[1:-1] for word, _ in often[:5]) + (", …" if len(often) > 5 else "")
    what = f"the first word of each line is taken as its label ({len(often):,} of them: {shown})"
    return [f"{source.name}: {what}; a tab after the label, or separator=, says what is between label and text"]


def _name_of(ref: Any, table: Table) -> str | None:
    if isinstance(ref, bool) or ref is None:
        return None
    if isinstance(ref, str):
        return ref
    return table.names[ref] if -len(table.names) <= ref < len(table.names) else None


def _evidence(column: Column) -> str:
    return f"{column.n_different:,} different values in {column.n_values:,} rows, {column.n_words:.0f} words each"


def quoted(name: Any) -> str:
    """Return a printable name in quotes."""
    return repr(str(name).encode("utf-8", "surrogateescape").decode("utf-8", "replace"))


def listed(names: Sequence[Any]) -> str:
    """Return the first names in quotes."""
    shown = ", ".join(quoted(name) for name in names[:8])
    return f"{shown} and {len(names) - 8} more" if len(names) > 8 else shown


def announce(model: Any, source: Source | None, surprises: Iterable[str], told: Iterable[str]) -> None:
    """Report the detected format of a file before training, on the command line or as warnings."""
    say = getattr(model, "_say", None)
    surprises = list(surprises)
    if source is not None and source.encoding == "latin-1" and getattr(source, "guessed", False):
        surprises.insert(0, f"{source.name}: not UTF-8, read as Latin-1; encoding= names another encoding")
    for message in surprises:
        if say is not None:
            say("warning", message)
        else:
            warn_caller(message, ColumnGuessWarning)
    if say is not None:
        for message in told:
            say("note", message)
