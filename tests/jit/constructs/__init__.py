"""Many small functions that eager and static must treat alike; `cases.py` says how they are registered."""

from tests.jit.constructs import (
    branches as branches,
)
from tests.jit.constructs import (
    classes as classes,
)
from tests.jit.constructs import (
    containers as containers,
)
from tests.jit.constructs import (
    early_exits as early_exits,
)
from tests.jit.constructs import (
    errors as errors,
)
from tests.jit.constructs import (
    functions as functions,
)
from tests.jit.constructs import (
    generators as generators,
)
from tests.jit.constructs import (
    growing_lists as growing_lists,
)
from tests.jit.constructs import (
    inside_of_lists as inside_of_lists,
)
from tests.jit.constructs import (
    iteration_tools as iteration_tools,
)
from tests.jit.constructs import (
    iterators as iterators,
)
from tests.jit.constructs import (
    keys as keys,
)
from tests.jit.constructs import (
    lists_that_change as lists_that_change,
)
from tests.jit.constructs import (
    loops as loops,
)
from tests.jit.constructs import (
    matches as matches,
)
from tests.jit.constructs import (
    mutation as mutation,
)
from tests.jit.constructs import (
    names_and_loops as names_and_loops,
)
from tests.jit.constructs import (
    numbers_and_text as numbers_and_text,
)
from tests.jit.constructs import (
    objects as objects,
)
from tests.jit.constructs import (
    order_and_attributes as order_and_attributes,
)
from tests.jit.constructs import (
    returns_and_logic as returns_and_logic,
)
from tests.jit.constructs import (
    shapes as shapes,
)
from tests.jit.constructs import (
    tries as tries,
)
from tests.jit.constructs import (
    variants as variants,
)
from tests.jit.constructs import (
    writes_and_managers as writes_and_managers,
)
