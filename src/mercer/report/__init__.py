"""Self-contained HTML pages: no script, no network, charts as inline SVG."""

from mercer.report.charts import bars, grey_image, heat_map, line_chart, probability_strip, sparkline
from mercer.report.clouds import plot_clouds, plot_distances, registration_page
from mercer.report.html import (
    Html,
    columns,
    figure,
    page,
    paragraph,
    section,
    table,
    write_page,
)
from mercer.report.labellings import (
    labelling_picture,
    plot_convergence,
    plot_graph_labelling,
    plot_labelling,
    write_png,
)
from mercer.report.proportions import plot_decision, plot_proportions
from mercer.report.segmentations import plot_segment_confusion, plot_segmentation

__all__ = [
    "Html",
    "bars",
    "columns",
    "figure",
    "grey_image",
    "heat_map",
    "labelling_picture",
    "line_chart",
    "page",
    "paragraph",
    "plot_clouds",
    "plot_convergence",
    "plot_decision",
    "plot_distances",
    "plot_graph_labelling",
    "plot_labelling",
    "plot_proportions",
    "plot_segment_confusion",
    "plot_segmentation",
    "probability_strip",
    "registration_page",
    "section",
    "sparkline",
    "table",
    "write_page",
    "write_png",
]
