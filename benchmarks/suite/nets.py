"""What the nets of Paddle and torch have in common: classes written once, for both, and their weights.

Both packages call most layers alike, so that a class of the suite takes its layers from the package that it is given.
Names that differ have a method here.
"""

from collections.abc import Callable
from typing import Any

from benchmarks.suite.forms import Form, with_training
from benchmarks.suite.sides import with_torch
from benchmarks.suite.workload import Arrays, Job, Side


class Package:
    """Paddle's or torch's names in one spelling."""

    def __init__(self, package: Any):
        self.package, self.nn, self.functional = package, package.nn, package.nn.functional
        self.torch = package.__name__ == "torch"
        self.base: Any = package.nn.Module if self.torch else package.nn.Layer
        self.stack, self.softmax, self.tanh = package.stack, package.nn.functional.softmax, package.tanh
        self.concat: Any = package.cat if self.torch else package.concat

    def tensor(self, array: Any) -> Any:
        return self.package.from_numpy(array) if self.torch else self.package.to_tensor(array)

    def filled(self, net: Any, given: Arrays) -> Any:
        """Give a net the weights of these names; those of torch's linear layers are transposed."""
        if not self.torch:
            net.set_state_dict({name: given[name] for name in net.state_dict() if name in given})
            return net
        linear = {f"{name}.weight" for name, part in net.named_modules() if isinstance(part, self.nn.Linear)}
        for name, weight in net.named_parameters():
            weight.data.copy_(self.package.from_numpy(given[name].T if name in linear else given[name]))
        return net

    def optimizer(self, kind: str, weights: list[Any], rate: float, **options: Any) -> Any:
        """Return an optimizer; what its options are called differs least between the two."""
        if self.torch:
            return getattr(self.package.optim, kind)(weights, lr=rate, **options)
        return getattr(self.package.optimizer, "Momentum" if kind == "SGD" else kind)(
            learning_rate=rate, parameters=weights, **options
        )

    def cleared(self, optimizer: Any) -> None:
        (optimizer.zero_grad if self.torch else optimizer.clear_grad)()


Decorate = Callable[..., Any]
Make = Callable[[Package, Decorate, Decorate, Arrays], Job]
"""(package, what decorates the model, what decorates the step, arrays) -> job."""


def tutorial(make: Make) -> dict[str, Side]:
    """Make dy2st's sides in three forms, and paddle's and torch's, of a job that is written once."""

    def of_paddle(form: Form, given: Arrays) -> Job:
        return make(Package(form.paddle), form.model, form.whole, given)

    def of_torch(torch: Any, compiled: Any, given: Arrays) -> Job:
        return make(Package(torch), lambda net: net, lambda step: step, given)

    return with_training(of_paddle, minimize=False) | with_torch(of_torch, compiled=False)


def eagerly(sides: dict[str, Side]) -> Callable[[Arrays], Any]:
    """Return the reference of a job whose NumPy would be as long as itself: eager mode, which runs on NumPy."""
    return lambda given: sides["dy2st eager"](given)()
