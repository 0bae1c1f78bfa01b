"""Origins, licences and citations of public data sets, and their download into the cache.

A file is searched in ``data_home``, in the folder MERCER_DATA, and in the cache. A missing data set with a public
origin is downloaded into the cache. Every download is verified by its SHA-256, compressed or not.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mercer.datasets.checksums import CHECKSUMS
from mercer.exceptions import FetchError

__all__ = ["ORIGINS", "FetchError", "Origin", "cache_folder", "fetch", "fetch_file", "origin_of"]


@dataclass(frozen=True)
class Origin:
    """The origin of a data set.

    Attributes
    ----------
    title : str
        Description of the data set.
    licence : str
        The licence as stated by the origin.
    citation : str
        The publication to cite.
    files : dict
        Name of a file → URLs, tried in this order. ``URL#member`` is a file inside a zip archive.
    """

    title: str
    licence: str
    citation: str
    files: dict[str, tuple[str, ...]] = field(default_factory=dict)


_GITHUB = "https://raw.githubusercontent.com"
_NLTK = f"{_GITHUB}/nltk/nltk_data/gh-pages/packages/corpora"
_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
_GRAPHS = (
    f"{_GITHUB}/bknyaz/graph_nn/42424688d23f34f6b6e9b4c110f3381c02198312/data",
    "https://www.chrsmrrs.com/graphkerneldatasets",
)


def _zipped(archive: str, folder: str, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    return {name: (f"{archive}#{folder}/{name}",) for name in names}


def _plain(base: str, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    return {name: (f"{base}/{name}",) for name in names}


def _tu_origin(name: str) -> Origin:
    prefix = f"graphs/{name}/"
    files = [key.removeprefix(prefix) for key in CHECKSUMS if key.startswith(prefix)]
    return Origin(
        f"{name}: graphs in the TU Dortmund format",
        "not stated",
        "Morris et al., TUDataset: a collection of benchmark datasets for learning with graphs, 2020",
        {file: tuple(f"{base}/{name}.zip#{name}/{file}" for base in _GRAPHS) for file in files},
    )


ORIGINS: dict[str, Origin] = {
    "conll2000": Origin(
        "CoNLL 2000: chunks of the Wall Street Journal",
        "not stated (text of the Penn Treebank)",
        "Tjong Kim Sang and Buchholz, Introduction to the CoNLL-2000 shared task: chunking, CoNLL 2000",
        _zipped(f"{_NLTK}/conll2000.zip", "conll2000", ("train.txt", "test.txt")),
    ),
    "conll2002": Origin(
        "CoNLL 2002: named entities, Spanish and Dutch",
        "research only",
        "Tjong Kim Sang, Introduction to the CoNLL-2002 shared task, CoNLL 2002",
        _zipped(
            f"{_NLTK}/conll2002.zip",
            "conll2002",
            [f"{language}.{part}" for language in ("esp", "ned") for part in ("train", "testa", "testb")],
        ),
    ),
    "basenp-crfpp": Origin(
        "Base noun phrases: the sample distributed with CRF++",
        "LGPL or BSD, as CRF++",
        "Kudo, CRF++: yet another CRF toolkit",
        _plain(f"{_GITHUB}/taku910/crfpp/master/example/basenp", ("train.data", "test.data")),
    ),
    "sms-spam": Origin(
        "SMS Spam Collection",
        "CC BY 4.0",
        "Almeida, Gómez Hidalgo and Yamakami, Contributions to the study of SMS spam filtering, DocEng 2011",
        {
            "SMSSpamCollection": (
                "https://archive.ics.uci.edu/static/public/228/sms+spam+collection.zip#SMSSpamCollection",
                f"{_GITHUB}/mahdithedev/Naive-Bayes-model/6bcd75f1e8fa7d9e6923cad655b6406c112ceea8/data/SMSSpamCollection",
            )
        },
    ),
    "text-r8": Origin(
        "R8: eight classes of Reuters-21578, one cleaned document per line",
        "free for research, credit Reuters and D. D. Lewis",
        "Lewis, Reuters-21578 text categorization collection, 1997",
        {
            "R8.txt": (f"{_GITHUB}/yao8839836/text_gcn/5fa0c35dbe09453a8f724c3f3eb8b6f172deb18c/data/R8.txt",),
            "R8.clean.txt": (
                f"{_GITHUB}/yao8839836/text_gcn/5fa0c35dbe09453a8f724c3f3eb8b6f172deb18c/data/corpus/R8.clean.txt",
            ),
        },
    ),
    "trec-qc": Origin(
        "TREC questions, 6 coarse and 50 fine classes",
        "not stated",
        "Li and Roth, Learning question classifiers, COLING 2002",
        _zipped(f"{_NLTK}/qc.zip", "qc", ("train.txt", "test.txt")),
    ),
    "rcv1-vw": Origin(
        "1,000 documents of RCV1 in the format of Vowpal Wabbit",
        "research only",
        "Lewis et al., RCV1: a new benchmark collection for text categorization research, JMLR 2004",
        _plain(
            f"{_GITHUB}/VowpalWabbit/vowpal_wabbit/6bc08155407ac33294db0808271b346f1bbe9260/test/train-sets",
            ("rcv1_small.dat", "rcv1_multiclass.dat"),
        ),
    ),
    "uci": Origin(
        "Adult: census records, income above or below 50,000 dollars",
        "CC BY 4.0",
        "Becker and Kohavi, Adult, UCI Machine Learning Repository, 1996",
        _plain(f"{_UCI}/adult", ("adult.data", "adult.test")),
    ),
    "multilabel/scene": Origin(
        "Scene: images with up to three of six labels",
        "not stated",
        "Boutell et al., Learning multi-label scene classification, Pattern Recognition 2004",
        _plain(
            f"{_GITHUB}/tsoumakas/mulan/5862bed221a9ec2baf9a090f5e98637e9dfb088b/data/multi-label/scene",
            ("scene-train.arff", "scene-test.arff", "scene.xml"),
        ),
    ),
    "news20": Origin(
        "20 Newsgroups as sparse rows in the format of LIBSVM",
        "not stated",
        "Lang, NewsWeeder: learning to filter netnews, ICML 1995",
        {"news20.bz2": (f"{_GITHUB}/konstmish/opt_methods/master/optmethods/datasets/news20.bz2",)},
    ),
    **{
        f"graphs/{name}": _tu_origin(name)
        for name in sorted({key.split("/")[1] for key in CHECKSUMS if key.startswith("graphs/")})
    },
}
"""Downloadable data sets, by folder."""


def cache_folder() -> Path:
    """Return the folder of downloaded data sets: MERCER_CACHE, or the user's cache folder.

    Returns
    -------
    pathlib.Path
    """
    given = os.environ.get("MERCER_CACHE")
    if given:
        return Path(given).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "mercer"


def origin_of(name: str) -> Origin:
    """Return the origin of a data set.

    Parameters
    ----------
    name : str
        The folder of the data set, such as ``"conll2000"`` or ``"graphs/MUTAG"``.

    Returns
    -------
    Origin

    Examples
    --------
    >>> from mercer.datasets import origin_of
    >>> origin_of("sms-spam").licence
    'CC BY 4.0'
    """
    if name not in ORIGINS:
        raise ValueError(f"the data set {name!r} cannot be downloaded; available are {', '.join(ORIGINS)}")
    return ORIGINS[name]


def fetch(name: str, *, folder: str | os.PathLike[str] | None = None, progress: bool = False) -> Path:
    """Download a data set if it is missing, and return its folder.

    Parameters
    ----------
    name : str
        The folder of the data set, such as ``"conll2000"`` or ``"graphs/MUTAG"``.
    folder : path, optional
        Target folder of the data sets; by default :func:`cache_folder`.
    progress : bool, default=False
        Show a progress bar on standard error if tqdm is installed.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    FetchError
        If a file cannot be downloaded, or its checksum is wrong. No partial file remains.
    ImportError
        If pooch is not installed; install it with ``pip install 'mercer[data]'``.

    Examples
    --------
    >>> from mercer.datasets import fetch
    >>> fetch("sms-spam").name  # doctest: +SKIP
    'sms-spam'
    """
    origin = origin_of(name)
    home = cache_folder() if folder is None else Path(folder)
    for file in origin.files:
        fetch_file(name, file, home, progress=progress)
    return home / name


def fetch_file(dataset: str, name: str, home: Path, *, progress: bool = False) -> Path:
    """Download one file of a data set into ``home`` if it is missing, and return its path.

    Parameters
    ----------
    dataset, name : str
        The data set and its file.
    home : pathlib.Path
        The folder of data sets.
    progress : bool, default=False

    Returns
    -------
    pathlib.Path
    """
    target = home / dataset / name
    if target.is_file():
        return target
    files, failures = origin_of(dataset).files, []
    for url in files[name]:
        archive, _, member = url.partition("#")
        try:
            if not member:
                _download(url, CHECKSUMS[f"{dataset}/{name}"][0], target, progress)
                return target
            # One download serves all files of the archive; those that are wrong are not written.
            together = {
                home / dataset / other: (one.partition("#")[2], CHECKSUMS[f"{dataset}/{other}"][0])
                for other, urls in files.items()
                for one in urls
                if one.startswith(f"{archive}#") and (other == name or not (home / dataset / other).is_file())
            }
            _unpack(archive, together, target, progress)
            return target
        except FetchError as error:
            failures.append(str(error))
    raise FetchError(
        f"cannot fetch {dataset}/{name}: {'; '.join(failures)}. Copy the file to {target.parent}, or set "
        "MERCER_DATA to a folder that contains it"
    )


def _download(url: str, checksum: str | None, target: Path, progress: bool) -> None:
    """Download a verified file to ``target`` atomically."""
    pooch = _pooch()
    name = f".{target.name}.download"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FetchError(f"cannot write into {target.parent}: {error}") from error
    try:
        known = None if checksum is None else f"sha256:{checksum}"
        loader = pooch.HTTPDownloader(progressbar=progress, timeout=30)
        Path(pooch.retrieve(url, known, fname=name, path=target.parent, downloader=loader)).replace(target)
    except ValueError as error:  # pooch: the hash differs, or the protocol is unknown
        problem = _WRONG if "hash" in str(error) else str(error)
        raise FetchError(f"{url} {problem}") from error
    except OSError as error:  # no network, no such address, connection lost; requests' errors are of this kind
        raise FetchError(f"{url} could not be downloaded ({type(error).__name__}: {_first_line(error)})") from error
    finally:
        (target.parent / name).unlink(missing_ok=True)


def _unpack(url: str, wanted: dict[Path, tuple[str, str]], needed: Path, progress: bool) -> None:
    """Extract members of a zip archive; the required member must exist and have the right checksum."""
    archive = needed.with_name(f".{needed.name}.zip")
    _download(url, None, archive, progress)
    try:
        with zipfile.ZipFile(archive) as opened:
            there = set(opened.namelist())
            for target, (member, checksum) in wanted.items():
                data = opened.read(member) if member in there else b""
                if hashlib.sha256(data).hexdigest() == checksum:
                    part = target.with_name(f".{target.name}.part")
                    part.write_bytes(data)
                    part.replace(target)
                elif target == needed:
                    problem = f"{member} {_WRONG}" if member in there else f"{url} has no {member}"
                    raise FetchError(problem)
    except (zipfile.BadZipFile, EOFError) as error:
        raise FetchError(f"{url} is not a complete zip archive: {error}") from error
    finally:
        archive.unlink(missing_ok=True)


_WRONG = "is not the expected file: its SHA-256 differs"


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0][:200]


def _pooch() -> Any:
    try:
        import pooch
    except ImportError as error:
        raise ImportError("downloading data sets needs pooch: pip install 'mercer[data]'") from error
    import logging

    pooch.get_logger().setLevel(logging.WARNING)
    return pooch
