"""Data sets: generators of synthetic data, and loaders of public corpora, which are downloaded on request."""

from mercer.datasets.alignments import AlignmentTask, make_alignments
from mercer.datasets.chains import ChainTask, make_chain_task
from mercer.datasets.clouds import make_mug
from mercer.datasets.coreference import (
    COREFERENCE_FEATURES,
    Coreference,
    coreference_features,
    make_coreference,
)
from mercer.datasets.corpora import load_basenp, load_conll2000, load_conll2002
from mercer.datasets.digits import DigitCodes, make_digit_codes
from mercer.datasets.dominance import make_mixed_dominance, make_nondominant
from mercer.datasets.faces import FaceImages, load_faces, make_faces
from mercer.datasets.graphs import load_tu, make_motif_graphs
from mercer.datasets.multilabel import load_multilabel
from mercer.datasets.origins import Origin, cache_folder, fetch, origin_of
from mercer.datasets.proportions import AdultData, load_adult, load_proportion_set, make_proportion_toy
from mercer.datasets.regions import RegionTask, make_regions
from mercer.datasets.segments import (
    ActionTask,
    ParagraphTask,
    load_topics_prose,
    make_actions,
    make_paragraphs,
)
from mercer.datasets.shapes import ShapeTask, make_shapes
from mercer.datasets.texts import (
    SparseData,
    TextData,
    load_20newsgroups,
    load_ag_news,
    load_movie_reviews,
    load_news20,
    load_r8,
    load_rcv1_small,
    load_reuters21578,
    load_sms_spam,
    load_trec_questions,
    load_webkb,
)
from mercer.datasets.topics import TopicTree, make_topic_tree, make_zipf_corpus, path_features
from mercer.datasets.trees import Treebank, make_treebank
from mercer.datasets.videos import AttributeTask, VideoTask, make_attribute_categories, make_videos
from mercer.exceptions import FetchError

__all__ = [
    "COREFERENCE_FEATURES",
    "ActionTask",
    "AdultData",
    "AlignmentTask",
    "AttributeTask",
    "ChainTask",
    "Coreference",
    "DigitCodes",
    "FaceImages",
    "FetchError",
    "Origin",
    "ParagraphTask",
    "RegionTask",
    "ShapeTask",
    "SparseData",
    "TextData",
    "TopicTree",
    "Treebank",
    "VideoTask",
    "cache_folder",
    "coreference_features",
    "fetch",
    "load_20newsgroups",
    "load_adult",
    "load_ag_news",
    "load_basenp",
    "load_conll2000",
    "load_conll2002",
    "load_faces",
    "load_movie_reviews",
    "load_multilabel",
    "load_news20",
    "load_proportion_set",
    "load_r8",
    "load_rcv1_small",
    "load_reuters21578",
    "load_sms_spam",
    "load_topics_prose",
    "load_trec_questions",
    "load_tu",
    "load_webkb",
    "make_actions",
    "make_alignments",
    "make_attribute_categories",
    "make_chain_task",
    "make_coreference",
    "make_digit_codes",
    "make_faces",
    "make_mixed_dominance",
    "make_motif_graphs",
    "make_mug",
    "make_nondominant",
    "make_paragraphs",
    "make_proportion_toy",
    "make_regions",
    "make_shapes",
    "make_topic_tree",
    "make_treebank",
    "make_videos",
    "make_zipf_corpus",
    "origin_of",
    "path_features",
]
