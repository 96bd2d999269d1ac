"""Functions of the user's kind, each with arguments: converted must equal original."""

from tests.transformers.corpus import (
    branches as branches,
)
from tests.transformers.corpus import (
    comprehensions as comprehensions,
)
from tests.transformers.corpus import (
    functions as functions,
)
from tests.transformers.corpus import (
    handlers as handlers,
)
from tests.transformers.corpus import (
    loops as loops,
)
from tests.transformers.corpus import (
    matches as matches,
)
from tests.transformers.corpus import (
    names as names,
)
