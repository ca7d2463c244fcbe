"""Results as people look at them: a table, a timeline, a density; as text, HTML, SVG and PNG."""

from stretto.views.density import density
from stretto.views.table import show
from stretto.views.timeline import timeline
from stretto.views.view import View

__all__ = ["View", "density", "show", "timeline"]
