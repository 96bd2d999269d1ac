"""`paddle.viz`: pictures of Programs and Layers, as HTML to explore or as SVG."""

from dy2st.viz.drawing import draw, to_svg

__all__ = ["draw", "to_svg"]
