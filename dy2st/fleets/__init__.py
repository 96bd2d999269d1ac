"""Work spread over actors: batch inference and hyperparameter search, on Ray or on processes of this machine.

`fleet.py` gives out items and brings results back in order, whoever dies; `engines.py` has the actors; `inference.py`
and `search.py` are what is done with them.
"""

from dy2st.fleets.fleet import ActorDied, Fleet
from dy2st.fleets.inference import predict
from dy2st.fleets.search import Trial, best, draw, grid, search

__all__ = ["ActorDied", "Fleet", "Trial", "best", "draw", "grid", "predict", "search"]
