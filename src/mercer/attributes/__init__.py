"""Attributes that many classes and rows share, for retrieval and for classes without training rows."""

from typing import TYPE_CHECKING

from mercer._lazy import on_demand

if TYPE_CHECKING:
    from mercer.attributes.category import CategoryAttributes, attribute_table
    from mercer.attributes.design import design_attributes, visual_proximity
    from mercer.attributes.report import AttributeReport, attribute_report
    from mercer.attributes.retriever import AttributeRetriever, Ranking
    from mercer.attributes.weak import WeakAttributes
    from mercer.attributes.zero_shot import ZeroShotClassifier, attribute_similarity

__all__ = [
    "AttributeReport",
    "AttributeRetriever",
    "CategoryAttributes",
    "Ranking",
    "WeakAttributes",
    "ZeroShotClassifier",
    "attribute_report",
    "attribute_similarity",
    "attribute_table",
    "design_attributes",
    "visual_proximity",
]
__getattr__, __dir__ = on_demand(__name__)
