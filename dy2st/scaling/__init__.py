"""Scale on paper: step time, memory and traffic of a model on 1 to 4,096 ranks, before anybody has rented them.

`costs.py` reads from a Program what its operations cost; `simulation.py` spreads that over ranks in four ways.
"""

from dy2st.scaling.costs import Cost, costs_of
from dy2st.scaling.report import report
from dy2st.scaling.simulation import STRATEGIES, Link, Outlook, Workload, outlook

__all__ = ["STRATEGIES", "Cost", "Link", "Outlook", "Workload", "costs_of", "outlook", "report"]
